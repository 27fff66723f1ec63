//! One client: what it said of itself, and its messages on their way to what answers them.
//!
//! A client on a pipe is one connection, a session over HTTP another. A request of the newer era over HTTP, which
//! belongs to no session, is a client of its own.
//!
//! **Invariant:** what one client opened, asked or was told is never another's: its requests and streams carry its
//! number. What is said of a request goes through the outbox that came with it.

use std::collections::HashMap;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::call::{Era, Ticket};
use crate::outbox::Outbox;
use crate::protocol::{LOG_LEVELS, META_CAPABILITIES, META_LOG_LEVEL, META_VERSION, MODERN_VERSION, server_name};
use crate::reply::Reply;
use crate::served::Served;
use crate::server::{GLANCE, Server};
use crate::wire::{Incoming, Params, RpcError, UNSUPPORTED_VERSION, notification};

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
    pub(crate) server: Arc<Server>,
    number: u64,
    outbox: Outbox,
    session: Mutex<Session>,
    asked: Mutex<HashMap<String, Sender<Result<Value, Value>>>>,
}

impl Connection {
    /// Takes a client on. The outbox is for what belongs to no request.
    pub(crate) fn new(server: &Arc<Server>, outbox: Outbox) -> Arc<Self> {
        let (server, number) = (Arc::clone(server), server.number());
        Arc::new(Self { server, number, outbox, session: Mutex::default(), asked: Mutex::default() })
    }

    pub(crate) fn served(&self) -> &Served {
        self.server.served()
    }

    /// Answers a request at once.
    pub(crate) fn reply(&self, out: &Outbox, id: &Value, method: &str, era: &Era, outcome: Result<Value, RpcError>) {
        out.answer(id, outcome.map(|result| Reply::from(result).framed(method, era, server_name(self.served()))));
    }

    /// Returns the number of the client, which no other has.
    pub(crate) const fn number(&self) -> u64 {
        self.number
    }

    /// Returns where notices go that belong to no request.
    pub(crate) const fn outbox(&self) -> &Outbox {
        &self.outbox
    }

    pub(crate) fn session(&self) -> MutexGuard<'_, Session> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says whether the client of the older era declared a capability.
    pub(crate) fn client_capability(&self, name: &str) -> bool {
        self.session().capabilities.get(name).is_some()
    }

    /// Takes a message; what answers it goes to `out`.
    pub(crate) fn receive(self: &Arc<Self>, message: Incoming, out: &Outbox) {
        match message {
            Incoming::Request { id, method, params } => self.request(id, &method, params, out),
            Incoming::Notification { method, params } => self.notification(&method, &params),
            Incoming::Response { id, outcome } => self.response(&id, outcome),
            Incoming::Invalid { id, error } => out.answer(&id, Err(error)),
        }
    }

    fn notification(&self, method: &str, params: &Params) {
        // The others say nothing that has to be acted on, and unknown ones are to be ignored.
        if method == "notifications/cancelled"
            && let Some(id) = params.get("requestId")
        {
            self.server.cancel(self.number, id);
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

    /// Asks the client of the older era, and waits for its answer.
    pub(crate) fn ask(
        &self,
        method: &str,
        params: &Value,
        patience: Duration,
        ticket: &Ticket,
    ) -> Result<Value, String> {
        let id = format!("kb-{}", self.server.number());
        let (sender, receiver) = channel();
        self.lock_asked().insert(id.clone(), sender);
        ticket.out.put(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string());
        let began = Instant::now();
        loop {
            match receiver.recv_timeout(GLANCE) {
                Ok(Ok(result)) => return Ok(result),
                Ok(Err(error)) => {
                    let message = error["message"].as_str().unwrap_or("no reason given");
                    return Err(format!("the client declined: {}", crate::tools::arguments::shown(message)));
                }
                Err(RecvTimeoutError::Timeout) if began.elapsed() < patience => {
                    if !ticket.is_cancelled() && !self.server.is_closing() {
                        continue;
                    }
                }
                Err(_) => {}
            }
            self.lock_asked().remove(&id);
            let params = json!({"requestId": id, "reason": "no longer needed"});
            ticket.out.put(notification("notifications/cancelled", &params));
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
    pub(crate) fn log(&self, out: &Outbox, era: &Era, level: &'static str, data: &Value) {
        let wanted = match era {
            Era::Legacy => self.session().log_level,
            Era::Modern { log_level, .. } => {
                log_level.as_deref().and_then(|name| LOG_LEVELS.iter().position(|level| *level == name))
            }
        };
        let of_message = LOG_LEVELS.iter().position(|known| *known == level);
        if wanted.zip(of_message).is_some_and(|(wanted, of_message)| of_message >= wanted) {
            let params = json!({"level": level, "logger": "kb", "data": data});
            out.put(notification("notifications/message", &params));
        }
    }

    fn lock_asked(&self) -> MutexGuard<'_, HashMap<String, Sender<Result<Value, Value>>>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
