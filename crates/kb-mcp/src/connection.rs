//! One client: reads its messages, has them answered on the right thread, and ends well.
//!
//! **Invariant:** every request that was read gets exactly one answer, unless it was cancelled: also where its handler
//! panics, and where the input ends first. After the end of the input nothing waits longer than a commit in flight.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, BufReader, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use kb_store::KnowledgeBase;
use serde_json::{Value, json};

use crate::activity::ActivityLog;
use crate::call::{Era, Ticket};
use crate::lanes::Lane;
use crate::outbox::Outbox;
use crate::protocol::{
    LOG_LEVELS, META_CAPABILITIES, META_LOG_LEVEL, META_VERSION, MODERN_VERSION, SUBSCRIPTION_ID, frame,
};
use crate::watch::Watch;
use crate::wire::{INTERNAL_ERROR, Incoming, Lines, Params, RpcError, UNSUPPORTED_VERSION, parse, response};

/// Reads that run side by side.
const READERS: usize = 4;
/// Calls that run side by side though each may take long: maintenance, and what waits for the client's model.
const SLOW: usize = 4;
/// How long what can be left is waited for after the end of the input.
const GRACE: Duration = Duration::from_millis(800);
/// How long the last answers may take to be read.
const LAST_WORDS: Duration = Duration::from_secs(5);
/// The time between two looks whether a wait has become pointless.
const GLANCE: Duration = Duration::from_millis(50);

/// How a base is served.
pub struct Settings {
    /// How long a write waits for other writers before it says "busy".
    ///
    /// The base itself should be opened with a wait of [`Settings::LOCK_WAIT`], so that a call that is cancelled does
    /// not wait on.
    pub wait: Duration,
    /// The longest line that is read, in bytes. What is longer is passed over and refused.
    pub max_line_bytes: usize,
    /// Gives the time for the activity log.
    pub clock: fn() -> SystemTime,
    /// Where each call is written down: one JSON line of time, tool, ids, outcome and milliseconds.
    pub activity: Option<Box<dyn Write + Send>>,
}

impl Settings {
    /// The wait with which a base that is served should be opened.
    pub const LOCK_WAIT: Duration = Duration::from_millis(250);

    /// Returns the usual settings: a wait of 30 seconds, lines of up to 256 MiB, no log.
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

/// What is known of the client.
#[derive(Debug, Default)]
pub(crate) struct Session {
    /// The version of the older era, once `initialize` was answered.
    pub(crate) version: Option<String>,
    pub(crate) capabilities: Value,
    /// The least level of log messages; none are sent before one is set.
    pub(crate) log_level: Option<usize>,
}

/// A client that is being served.
#[derive(Debug)]
pub(crate) struct Connection {
    base: KnowledgeBase,
    wait: Duration,
    max_line_bytes: usize,
    pub(crate) activity: Option<ActivityLog>,
    outbox: Outbox,
    session: Mutex<Session>,
    pub(crate) watch: Watch,
    in_flight: Mutex<BTreeMap<u64, Arc<Ticket>>>,
    one_less: Condvar,
    next_number: AtomicU64,
    asked: Mutex<HashMap<String, Sender<Result<Value, Value>>>>,
    reads: Lane,
    writes: Lane,
    slow: Lane,
    is_closing: AtomicBool,
}

/// Serves a base to one client until the input ends.
///
/// One message a line each way. Every request that was read is answered before this returns, but for maintenance, which
/// is cancelled. Fails only where the input cannot be read; an output that nobody reads is no failure.
pub fn serve(
    base: KnowledgeBase,
    settings: Settings,
    input: impl Read,
    output: impl Write + Send + 'static,
) -> io::Result<()> {
    let (outbox, writer) = Outbox::start(output);
    let connection = Arc::new(Connection::new(base, settings, outbox));
    let watching = Arc::clone(&connection);
    let watcher = std::thread::spawn(move || watching.watch.run(&watching.base, &watching.outbox));
    let outcome = connection.read(input);
    connection.finish();
    connection.outbox.close();
    let closed = Instant::now();
    // A client that has stopped reading is not waited for.
    while !(writer.is_finished() && watcher.is_finished()) && closed.elapsed() < LAST_WORDS {
        std::thread::sleep(Duration::from_millis(1));
    }
    outcome
}

impl Connection {
    fn new(base: KnowledgeBase, settings: Settings, outbox: Outbox) -> Self {
        Self {
            base,
            wait: settings.wait,
            max_line_bytes: settings.max_line_bytes,
            activity: settings.activity.map(|output| ActivityLog::new(output, settings.clock)),
            outbox,
            session: Mutex::default(),
            watch: Watch::default(),
            in_flight: Mutex::default(),
            one_less: Condvar::new(),
            next_number: AtomicU64::new(1),
            asked: Mutex::default(),
            reads: Lane::new(READERS),
            writes: Lane::new(1),
            slow: Lane::new(SLOW),
            is_closing: AtomicBool::new(false),
        }
    }

    pub(crate) const fn base(&self) -> &KnowledgeBase {
        &self.base
    }

    pub(crate) const fn outbox(&self) -> &Outbox {
        &self.outbox
    }

    pub(crate) const fn wait(&self) -> Duration {
        self.wait
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.is_closing.load(Ordering::SeqCst)
    }

    pub(crate) fn session(&self) -> MutexGuard<'_, Session> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says whether the client of the older era declared a capability.
    pub(crate) fn client_capability(&self, name: &str) -> bool {
        self.session().capabilities.get(name).is_some()
    }

    fn read(self: &Arc<Self>, input: impl Read) -> io::Result<()> {
        let mut lines = Lines::new(BufReader::with_capacity(1 << 16, input), self.max_line_bytes);
        while let Some(line) = lines.next()? {
            match parse(&line, self.max_line_bytes) {
                None => {}
                Some(Incoming::Request { id, method, params }) => self.request(id, &method, params),
                Some(Incoming::Notification { method, params }) => self.notification(&method, &params),
                Some(Incoming::Response { id, outcome }) => self.response(&id, outcome),
                Some(Incoming::Invalid { id, error }) => self.outbox.put(&response(&id, Err(error))),
            }
        }
        Ok(())
    }

    fn notification(&self, method: &str, params: &Params) {
        // The others say nothing that has to be acted on, and unknown ones are to be ignored.
        if method == "notifications/cancelled"
            && let Some(id) = params.get("requestId")
        {
            for ticket in self.lock_in_flight().values().filter(|ticket| ticket.id == *id) {
                ticket.cancel();
            }
            self.watch.end(id);
        }
    }

    /// Tells the era of a request from what it says of itself.
    pub(crate) fn era(&self, method: &str, params: &Params) -> Result<Era, RpcError> {
        let meta = match params.get("_meta") {
            None | Some(Value::Null) => None,
            Some(Value::Object(meta)) => Some(meta),
            Some(_) => return Err(RpcError::params("`_meta` is not an object")),
        };
        let Some(version) = meta.and_then(|meta| meta.get(META_VERSION)) else {
            if self.session().version.is_some() || matches!(method, "initialize" | "ping") {
                return Ok(Era::Legacy);
            }
            let message = format!("begin with `initialize`, or say `{META_VERSION}` in `_meta`");
            return Err(RpcError::params(message));
        };
        if version != MODERN_VERSION {
            let Some(version) = version.as_str() else {
                return Err(RpcError::params(format!("`{META_VERSION}` is not a string")));
            };
            let message = format!("protocol version {} is not served", crate::tools::arguments::shown(version));
            let data = json!({"supported": [MODERN_VERSION], "requested": version});
            return Err(RpcError::new(UNSUPPORTED_VERSION, message).with_data(data));
        }
        let Some(capabilities) = meta.and_then(|meta| meta.get(META_CAPABILITIES)).filter(|value| value.is_object())
        else {
            return Err(RpcError::params(format!("`{META_CAPABILITIES}` is missing in `_meta` or not an object")));
        };
        let log_level = meta.and_then(|meta| meta.get(META_LOG_LEVEL)).and_then(Value::as_str).map(str::to_owned);
        Ok(Era::Modern { capabilities: capabilities.clone(), log_level })
    }

    /// Answers on the thread that reads.
    pub(crate) fn reply(&self, id: &Value, method: &str, era: &Era, outcome: Result<Value, RpcError>) {
        self.outbox.put(&response(id, outcome.map(|result| frame(result, method, era))));
    }

    /// Has a request answered on a lane. `None` of the work is no answer: the request stays open.
    pub(crate) fn run(
        self: &Arc<Self>,
        lane: LaneName,
        ticket: Ticket,
        method: &'static str,
        era: Era,
        work: impl FnOnce(&Connection, &Ticket, &Era) -> Result<Option<Value>, RpcError> + Send + 'static,
    ) {
        let number = self.next_number.fetch_add(1, Ordering::SeqCst);
        let ticket = Arc::new(ticket);
        self.lock_in_flight().insert(number, Arc::clone(&ticket));
        let connection = Arc::clone(self);
        let job = move || {
            if !ticket.is_cancelled() {
                let outcome =
                    catch_unwind(AssertUnwindSafe(|| work(&connection, &ticket, &era))).unwrap_or_else(|_| {
                        let message =
                            format!("`{}` failed on a fault of the server; the base is as it was", ticket.name);
                        Err(RpcError::new(INTERNAL_ERROR, message))
                    });
                if let Some(outcome) = outcome.transpose()
                    && !ticket.is_cancelled()
                    && ticket.claim_answer()
                {
                    connection.reply(&ticket.id, method, &era, outcome);
                }
            }
            // Last, so that the end of the input waits until the answer is put.
            connection.lock_in_flight().remove(&number);
            connection.one_less.notify_all();
        };
        match lane {
            LaneName::Read => &self.reads,
            LaneName::Write => &self.writes,
            LaneName::Slow => &self.slow,
        }
        .run(job);
    }

    /// Asks the client of the older era, and waits for its answer.
    pub(crate) fn ask(
        &self,
        method: &str,
        params: &Value,
        patience: Duration,
        ticket: &Ticket,
    ) -> Result<Value, String> {
        let id = format!("kb-{}", self.next_number.fetch_add(1, Ordering::SeqCst));
        let (sender, receiver) = channel();
        self.lock_asked().insert(id.clone(), sender);
        self.outbox.put(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string());
        let began = Instant::now();
        loop {
            match receiver.recv_timeout(GLANCE) {
                Ok(Ok(result)) => return Ok(result),
                Ok(Err(error)) => {
                    let message = error["message"].as_str().unwrap_or("no reason given");
                    return Err(format!("the client declined: {}", crate::tools::arguments::shown(message)));
                }
                Err(RecvTimeoutError::Timeout) if began.elapsed() < patience => {
                    if !ticket.is_cancelled() && !self.is_closing() {
                        continue;
                    }
                }
                Err(_) => {}
            }
            self.lock_asked().remove(&id);
            let params = json!({"requestId": id, "reason": "no longer needed"});
            self.outbox.put(&crate::wire::notification("notifications/cancelled", &params));
            return Err("the client did not answer in time".to_owned());
        }
    }

    fn response(&self, id: &Value, outcome: Result<Value, Value>) {
        if let Some(sender) = id.as_str().and_then(|id| self.lock_asked().remove(id)) {
            // Who asked may have given up.
            let _ = sender.send(outcome);
        }
    }

    /// Sends a log message to a client that asked for messages of its level.
    pub(crate) fn log(&self, era: &Era, level: &'static str, data: &Value) {
        let wanted = match era {
            Era::Legacy => self.session().log_level,
            Era::Modern { log_level, .. } => {
                log_level.as_deref().and_then(|name| LOG_LEVELS.iter().position(|level| *level == name))
            }
        };
        let of_message = LOG_LEVELS.iter().position(|known| *known == level);
        if wanted.zip(of_message).is_some_and(|(wanted, of_message)| of_message >= wanted) {
            let params = json!({"level": level, "logger": "kb", "data": data});
            self.outbox.put(&crate::wire::notification("notifications/message", &params));
        }
    }

    /// Ends: maintenance is cancelled, what was read is answered, streams are closed.
    fn finish(&self) {
        self.is_closing.store(true, Ordering::SeqCst);
        for id in self.watch.close() {
            let modern = Era::Modern { capabilities: Value::Null, log_level: None };
            let mut result = frame(json!({}), "subscriptions/listen", &modern);
            result["_meta"][SUBSCRIPTION_ID] = id.clone();
            self.outbox.put(&response(&id, Ok(result)));
        }
        let began = Instant::now();
        let mut in_flight = self.lock_in_flight();
        while !in_flight.is_empty() {
            if began.elapsed() >= GRACE {
                for ticket in in_flight.values().filter(|ticket| ticket.can_be_left && ticket.claim_answer()) {
                    let message = format!("`{}` was not done: the input ended before it was", ticket.name);
                    self.outbox.put(&response(&ticket.id, Err(RpcError::new(INTERNAL_ERROR, message))));
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

    fn lock_asked(&self) -> MutexGuard<'_, HashMap<String, Sender<Result<Value, Value>>>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
