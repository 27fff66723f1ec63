//! What all clients of one process share: the stores, the threads that answer, the requests under way, the watch.
//!
//! Nothing here knows how messages travel: each request brings the [`Outbox`] through which it is answered.
//!
//! **Invariant:** every request that was taken gets exactly one answer, unless it was cancelled: also where its handler
//! panics, and where the end comes first. Once the end was said nothing is waited for longer than a commit in flight.

use std::collections::BTreeMap;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use kb_store::{Observer, Progress};
use serde_json::{Value, json};

use crate::activity::ActivityLog;
use crate::call::{Era, Ticket};
use crate::lanes::Lane;
use crate::protocol::{SUBSCRIPTION_ID, frame, server_name};
use crate::reply::Reply;
use crate::served::Served;
use crate::watch::Watch;
use crate::wire::{INTERNAL_ERROR, RpcError};

/// Reads that run side by side.
const READERS: usize = 4;
/// Calls that run side by side though each may take long: maintenance, and what waits for the client's model.
const SLOW: usize = 4;
/// How long what can be left is waited for after the end was said.
const GRACE: Duration = Duration::from_millis(800);
/// The least time between two attempts to make a broken index anew.
const MEND_PAUSE: Duration = Duration::from_mins(1);
/// The time between two looks whether a wait has become pointless.
pub(crate) const GLANCE: Duration = Duration::from_millis(50);

/// How a base is served.
pub struct Settings {
    /// How long a write waits for other writers before it says "busy".
    ///
    /// The base itself should be opened with a wait of [`Settings::LOCK_WAIT`], so that a call that is cancelled does
    /// not wait on.
    pub wait: Duration,
    /// The longest message that is read, in bytes. What is longer is passed over and refused.
    pub max_line_bytes: usize,
    /// Gives the time for the activity log.
    pub clock: fn() -> SystemTime,
    /// Where each call is written down: one JSON line of time, tool, ids, outcome and milliseconds.
    pub activity: Option<Box<dyn Write + Send>>,
}

impl Settings {
    /// The wait with which a base that is served should be opened.
    pub const LOCK_WAIT: Duration = Duration::from_millis(250);

    /// Returns the usual settings: a wait of 30 seconds, messages of up to 256 MiB, no log.
    pub fn new(clock: fn() -> SystemTime) -> Self {
        Self { wait: Duration::from_secs(30), max_line_bytes: 256 << 20, clock, activity: None }
    }
}

impl std::fmt::Debug for Settings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let has_log = self.activity.is_some();
        f.debug_struct("Settings").field("wait", &self.wait).field("has_log", &has_log).finish_non_exhaustive()
    }
}

/// The thread on which a request is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LaneName {
    Read,
    Write,
    Slow,
}

/// What serves stores to any number of clients.
#[derive(Debug)]
pub(crate) struct Server {
    served: Served,
    wait: Duration,
    pub(crate) activity: Option<ActivityLog>,
    pub(crate) watch: Watch,
    in_flight: Mutex<BTreeMap<u64, Arc<Ticket>>>,
    one_less: Condvar,
    next_number: AtomicU64,
    reads: Lane,
    writes: Lane,
    slow: Lane,
    is_closing: AtomicBool,
    /// When the index was last made anew, or that was tried.
    mended: Mutex<Option<Instant>>,
}

impl Server {
    /// Starts to serve; returns the thread that tells of changes as well.
    pub(crate) fn start(served: Served, settings: Settings) -> (Arc<Self>, JoinHandle<()>) {
        let server = Arc::new(Self {
            served,
            wait: settings.wait,
            activity: settings.activity.map(|output| ActivityLog::new(output, settings.clock)),
            watch: Watch::default(),
            in_flight: Mutex::default(),
            one_less: Condvar::new(),
            next_number: AtomicU64::new(1),
            reads: Lane::new(READERS),
            writes: Lane::new(1),
            slow: Lane::new(SLOW),
            is_closing: AtomicBool::new(false),
            mended: Mutex::default(),
        });
        let watching = Arc::clone(&server);
        let watcher = std::thread::spawn(move || watching.watch.run(&watching.served));
        (server, watcher)
    }

    pub(crate) const fn served(&self) -> &Served {
        &self.served
    }

    pub(crate) const fn wait(&self) -> Duration {
        self.wait
    }

    /// Says whether the end was said.
    pub(crate) fn is_closing(&self) -> bool {
        self.is_closing.load(Ordering::SeqCst)
    }

    /// Returns a number that no client and no request of this process has yet.
    pub(crate) fn number(&self) -> u64 {
        self.next_number.fetch_add(1, Ordering::SeqCst)
    }

    /// Has a request answered on a lane. `None` of the work is no answer: the request stays open.
    pub(crate) fn run(
        self: &Arc<Self>,
        lane: LaneName,
        ticket: Ticket,
        method: &'static str,
        era: Era,
        work: impl FnOnce(&Ticket, &Era) -> Result<Option<Reply>, RpcError> + Send + 'static,
    ) {
        let number = self.number();
        let ticket = Arc::new(ticket);
        self.lock_in_flight().insert(number, Arc::clone(&ticket));
        let server = Arc::clone(self);
        let job = move || {
            if !ticket.is_cancelled() {
                let outcome = catch_unwind(AssertUnwindSafe(|| work(&ticket, &era))).unwrap_or_else(|_| {
                    let message = format!("`{}` failed on a fault of the server; the base is as it was", ticket.name);
                    Err(RpcError::new(INTERNAL_ERROR, message))
                });
                if let Some(outcome) = outcome.transpose()
                    && !ticket.is_cancelled()
                    && ticket.claim_answer()
                {
                    ticket.out.answer(
                        &ticket.id,
                        outcome.map(|reply| reply.framed(method, &era, server_name(&server.served))),
                    );
                }
            }
            // Last, so that the end waits until the answer is put.
            server.lock_in_flight().remove(&number);
            server.one_less.notify_all();
        };
        match lane {
            LaneName::Read => &self.reads,
            LaneName::Write => &self.writes,
            LaneName::Slow => &self.slow,
        }
        .run(job);
    }

    /// Has the index made anew, of which a search at this generation said that it cannot be used. Searches go on
    /// meanwhile; where it does not come about, one of the next asks for it again.
    pub(crate) fn mend_index(self: &Arc<Self>, generation: u64) {
        let mut mended = self.mended.lock().unwrap_or_else(PoisonError::into_inner);
        if self.is_closing() || mended.is_some_and(|before| before.elapsed() < MEND_PAUSE) {
            return;
        }
        *mended = Some(Instant::now());
        drop(mended);
        let server = Arc::clone(self);
        self.slow.run(move || {
            let mut observer = UntilClosing(&server);
            if let Some(base) = server.served.base() {
                let _ = catch_unwind(AssertUnwindSafe(|| base.reindex(generation, &mut observer)));
            }
        });
    }

    /// Cancels the request of a client with this id: it gets no answer.
    pub(crate) fn cancel(&self, client: u64, id: &Value) {
        for ticket in self.lock_in_flight().values().filter(|ticket| ticket.client == client && ticket.id == *id) {
            ticket.cancel();
        }
        self.watch.end(client, id);
    }

    /// Cancels all requests of a client that is gone.
    pub(crate) fn leave(&self, client: u64) {
        for ticket in self.lock_in_flight().values().filter(|ticket| ticket.client == client) {
            ticket.cancel();
        }
        self.watch.leave(client);
    }

    /// Ends: maintenance is cancelled, what was taken is answered, streams are closed.
    pub(crate) fn finish(&self) {
        self.is_closing.store(true, Ordering::SeqCst);
        for (id, out) in self.watch.close() {
            let modern = Era::Modern { capabilities: Value::Null, log_level: None };
            let mut result = frame(json!({}), "subscriptions/listen", &modern, server_name(&self.served));
            result["_meta"][SUBSCRIPTION_ID] = id.clone();
            out.answer(&id, Ok(result.into()));
        }
        let began = Instant::now();
        let mut in_flight = self.lock_in_flight();
        while !in_flight.is_empty() {
            if began.elapsed() >= GRACE {
                for ticket in in_flight.values().filter(|ticket| ticket.can_be_left && ticket.claim_answer()) {
                    let message = format!("`{}` was not done: the end came before it was", ticket.name);
                    ticket.out.answer(&ticket.id, Err(RpcError::new(INTERNAL_ERROR, message)));
                }
                if in_flight.values().all(|ticket| ticket.can_be_left) {
                    break;
                }
            }
            in_flight = self.one_less.wait_timeout(in_flight, GLANCE).unwrap_or_else(PoisonError::into_inner).0;
        }
        drop(in_flight);
        [&self.reads, &self.writes, &self.slow].into_iter().for_each(Lane::close);
    }

    fn lock_in_flight(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Ticket>>> {
        self.in_flight.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Lets an operation go on until the end is said.
struct UntilClosing<'s>(&'s Server);

impl Observer for UntilClosing<'_> {
    fn progress(&mut self, _: &Progress<'_>) -> bool {
        !self.0.is_closing()
    }
}
