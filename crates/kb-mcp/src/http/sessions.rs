//! Sessions of the older era: what one client opened by `initialize`, kept between its requests.
//!
//! **Invariant:** there are never more than the bound, and none stays that was idle for longer than it may. One that is
//! in use, by a request or an open stream, is never ended for another's sake.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::connection::Connection;
use crate::outbox::{Inbox, Outbox};
use crate::server::Server;

/// Notices that wait for a client that has no stream open.
const WAITING_NOTICES: usize = 1000;

/// A client of the older era.
#[derive(Debug)]
pub(super) struct HttpSession {
    pub(super) connection: Arc<Connection>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    /// Notices that belong to no request; taken while a stream is open.
    notices: Option<Inbox>,
    /// The number of the stream that was opened last.
    newest_stream: u64,
    uses: usize,
    last_use: Instant,
}

/// A use of a session, which keeps it from being ended as idle.
#[derive(Debug)]
pub(super) struct InUse(Arc<HttpSession>);

/// The sessions of a server.
#[derive(Debug)]
pub(super) struct Sessions {
    by_id: Mutex<HashMap<String, Arc<HttpSession>>>,
    most: usize,
    idle: Duration,
}

impl Sessions {
    pub(super) fn new(most: usize, idle: Duration) -> Self {
        Self { by_id: Mutex::default(), most, idle }
    }

    /// Opens a session; `None` where there are as many as there may be, all in use.
    pub(super) fn open(&self, server: &Arc<Server>, id: String) -> Option<InUse> {
        let mut by_id = self.lock();
        while by_id.len() >= self.most {
            let unused = by_id.iter().filter_map(|(id, session)| Some((session.unused_since()?, id.clone())));
            let (_, longest) = unused.min()?;
            by_id.remove(&longest)?.end();
        }
        let (outbox, notices) = Outbox::of_at_most(WAITING_NOTICES);
        let connection = Connection::new(server, outbox);
        let state = State { notices: Some(notices), newest_stream: 0, uses: 1, last_use: Instant::now() };
        let session = Arc::new(HttpSession { connection, state: Mutex::new(state), changed: Condvar::new() });
        by_id.insert(id, Arc::clone(&session));
        Some(InUse(session))
    }

    /// Returns a session, to be used.
    pub(super) fn get(&self, id: &str) -> Option<InUse> {
        let by_id = self.lock();
        let session = Arc::clone(by_id.get(id)?);
        session.lock().uses += 1;
        drop(by_id);
        Some(InUse(session))
    }

    /// Ends a session; says whether there was one.
    pub(super) fn end(&self, id: &str) -> bool {
        let ended = self.lock().remove(id);
        ended.is_some_and(|session| {
            session.end();
            true
        })
    }

    /// Ends those that were idle for too long.
    pub(super) fn end_idle(&self) {
        let is_idle = |session: &HttpSession| session.unused_since().is_some_and(|since| since.elapsed() >= self.idle);
        self.lock().retain(|_, session| {
            let stays = !is_idle(session);
            if !stays {
                session.end();
            }
            stays
        });
    }

    /// Ends all.
    pub(super) fn end_all(&self) {
        for (_, session) in self.lock().drain() {
            session.connection.outbox().close();
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<HttpSession>>> {
        self.by_id.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HttpSession {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn unused_since(&self) -> Option<Instant> {
        let state = self.lock();
        (state.uses == 0).then_some(state.last_use)
    }

    fn end(&self) {
        self.connection.server.leave(self.connection.number());
        self.connection.outbox().close();
    }

    /// Opens the stream of notices. One that is open gives way, since its client may be gone without a word; `None`
    /// where it did not within the time.
    pub(super) fn open_stream(&self, patience: Duration) -> Option<(u64, Inbox)> {
        let began = Instant::now();
        let mut state = self.lock();
        state.newest_stream += 1;
        let number = state.newest_stream;
        loop {
            if state.newest_stream != number {
                return None;
            }
            if let Some(notices) = state.notices.take() {
                return Some((number, notices));
            }
            let left = patience.checked_sub(began.elapsed())?;
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Says whether a stream has to give way to another.
    pub(super) fn is_replaced(&self, stream: u64) -> bool {
        self.lock().newest_stream != stream
    }

    /// Gives back what [`HttpSession::open_stream`] took, for the next stream.
    pub(super) fn close_stream(&self, notices: Inbox) {
        self.lock().notices = Some(notices);
        self.changed.notify_all();
    }
}

impl std::ops::Deref for InUse {
    type Target = HttpSession;

    fn deref(&self) -> &HttpSession {
        &self.0
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.uses -= 1;
        state.last_use = Instant::now();
    }
}
