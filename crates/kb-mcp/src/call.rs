//! One request on its way: what a handler may know of it and of the client.
//!
//! **Invariant:** a write waits for other writers no longer than it was told to, and stops waiting as soon as the
//! request is cancelled or the input ends.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use kb_store::{KnowledgeBase, Observer, Progress, ProjectError, ProjectStore, StoreError};
use serde_json::{Map, Value, json};

use crate::connection::Connection;
use crate::failure::Failure;
use crate::outbox::Outbox;
use crate::wire::notification;

/// The least time between two notices of progress.
const PROGRESS_PACE: Duration = Duration::from_millis(100);

/// The era of the protocol that a request belongs to.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Era {
    /// Opened by `initialize`.
    Legacy,
    /// 2026-07-28: each request says what its client can do.
    Modern {
        /// The client's capabilities.
        capabilities: Value,
        /// The least level of log messages that this request asks for.
        log_level: Option<String>,
    },
}

impl Era {
    pub(crate) const fn is_modern(&self) -> bool {
        matches!(self, Self::Modern { .. })
    }
}

/// A request that is being answered.
#[derive(Debug)]
pub(crate) struct Ticket {
    /// The id as the client gave it.
    pub(crate) id: Value,
    /// What it calls: the method, or the tool.
    pub(crate) name: String,
    /// It only reads, or can be stopped at any moment without loss.
    pub(crate) can_be_left: bool,
    /// The number of the client that asks.
    pub(crate) client: u64,
    /// Where the answer goes, and what is told before it.
    pub(crate) out: Outbox,
    is_cancelled: AtomicBool,
    is_answered: AtomicBool,
}

impl Ticket {
    pub(crate) fn new(id: Value, name: String, can_be_left: bool, client: u64, out: &Outbox) -> Self {
        let (is_cancelled, is_answered) = (AtomicBool::new(false), AtomicBool::new(false));
        Self { id, name, can_be_left, client, out: out.clone(), is_cancelled, is_answered }
    }

    pub(crate) fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(Ordering::SeqCst)
    }

    /// Says, once, that the answer may be given.
    pub(crate) fn claim_answer(&self) -> bool {
        !self.is_answered.swap(true, Ordering::SeqCst)
    }
}

/// What a handler is given beside its arguments.
pub(crate) struct Call<'c> {
    pub(crate) connection: &'c Connection,
    pub(crate) base: &'c KnowledgeBase,
    pub(crate) ticket: &'c Ticket,
    pub(crate) era: &'c Era,
    /// The token for notices of progress, where the client wants them.
    pub(crate) progress_token: Option<Value>,
    /// What the client answered to a result that asked for input.
    pub(crate) input: Map<String, Value>,
    /// The progress that was told last.
    pub(crate) told: Cell<u64>,
}

impl Call<'_> {
    /// Returns the base, to read.
    pub(crate) const fn base(&self) -> &KnowledgeBase {
        self.base
    }

    /// Says whether the caller no longer waits.
    pub(crate) fn is_stopped(&self) -> bool {
        self.ticket.is_cancelled() || self.connection.server.is_closing()
    }

    /// Writes to the base, waiting for other writers.
    pub(crate) fn write<T>(
        &self,
        mut operation: impl FnMut(&KnowledgeBase) -> Result<T, StoreError>,
    ) -> Result<T, Failure> {
        let started = Instant::now();
        loop {
            match operation(self.base()) {
                // The base itself waits for a moment only: see `Settings::wait`.
                Err(StoreError::Busy { holder, .. }) => {
                    if self.is_stopped() {
                        return Err(StoreError::Cancelled.into());
                    }
                    let waited = started.elapsed();
                    if waited >= self.connection.server.wait() {
                        return Err(StoreError::Busy { holder, waited }.into());
                    }
                    self.tell_progress(0, None, "waiting for another writer");
                }
                other => return Ok(other?),
            }
        }
    }

    /// Returns what tells the client how a long operation goes on, and stops it when it is cancelled.
    pub(crate) fn observer(&self) -> Progressing<'_> {
        Progressing { call: self, told: None }
    }

    /// Tells a client that wants to know how far the call is. Progress has to rise from notice to notice, even where a
    /// new phase counts anew.
    fn tell_progress(&self, done: u64, total: Option<u64>, phase: &str) {
        let Some(token) = &self.progress_token else { return };
        let done = done.max(self.told.get() + 1);
        self.told.set(done);
        let mut params = json!({"progressToken": token, "progress": done, "message": phase});
        if let Some(total) = total.filter(|total| *total >= done) {
            params["total"] = total.into();
        }
        self.ticket.out.put(notification("notifications/progress", &params));
    }
}

/// What a handler of project knowledge is given beside its arguments.
pub(crate) struct ProjectCall<'c> {
    pub(crate) connection: &'c Connection,
    pub(crate) store: &'c ProjectStore,
    pub(crate) ticket: &'c Ticket,
}

impl ProjectCall<'_> {
    /// Returns the store, to read.
    pub(crate) const fn store(&self) -> &ProjectStore {
        self.store
    }

    /// Writes to the store, waiting for other writers.
    pub(crate) fn write<T>(
        &self,
        mut operation: impl FnMut(&ProjectStore) -> Result<T, ProjectError>,
    ) -> Result<T, Failure> {
        let server = &self.connection.server;
        let started = Instant::now();
        loop {
            match operation(self.store) {
                // The store itself waits for a moment only: see `Settings::wait`.
                Err(error) if error.is_retryable() => {
                    if self.ticket.is_cancelled() || server.is_closing() {
                        return Err(StoreError::Cancelled.into());
                    }
                    if started.elapsed() >= server.wait() {
                        return Err(error.into());
                    }
                }
                other => return Ok(other?),
            }
        }
    }
}

/// Tells the client how far an operation is.
pub(crate) struct Progressing<'c> {
    call: &'c Call<'c>,
    told: Option<Instant>,
}

impl Observer for Progressing<'_> {
    fn progress(&mut self, progress: &Progress<'_>) -> bool {
        if self.told.is_none_or(|told| told.elapsed() >= PROGRESS_PACE) {
            self.told = Some(Instant::now());
            self.call.tell_progress(progress.done, progress.total, progress.phase);
        }
        !self.call.is_stopped()
    }
}
