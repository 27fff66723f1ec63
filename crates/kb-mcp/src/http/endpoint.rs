//! The one endpoint: what a request over HTTP asks of the server, in either era, and how it is answered.
//!
//! ```text
//! older era   POST in a session, GET for its stream of notices, DELETE to end it    Mcp-Session-Id
//! newer era   POST, each request by itself; its headers repeat what its body says   no session, no GET
//! ```
//!
//! A request is answered with one JSON object, or with a stream of events where something is said before the answer.
//!
//! **Invariant:** what the headers say of a request of the newer era is what its body says, or it is not served. A
//! stream that its client closes cancels the request of the newer era; that of the older era goes on.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::sessions::{HttpSession, InUse, Sessions};
use super::wire::{Head, Refusal, Wire};
use crate::connection::Connection;
use crate::outbox::{Inbox, Next, Outbox};
use crate::protocol::{LEGACY_VERSIONS, META_VERSION, MODERN_VERSION};
use crate::server::Server;
use crate::wire::{
    HEADER_MISMATCH, INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, Incoming, Line, METHOD_NOT_FOUND, PARSE_ERROR,
    Params, RpcError, UNSUPPORTED_VERSION, parse, response,
};

/// The path of the endpoint.
pub(super) const PATH: &str = "/mcp";
/// The time between two looks whether the client is still there, while its request is answered.
const GLANCE: Duration = Duration::from_millis(250);
/// The time between two looks while a stream is open.
const STREAM_GLANCE: Duration = Duration::from_secs(1);
/// The time after which something is said on a silent stream.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// How long a stream may take to give way to the next.
const GIVE_WAY: Duration = Duration::from_secs(5);

const JSON: (&str, &str) = ("Content-Type", "application/json");
const SESSION: &str = "mcp-session-id";
const VERSION: &str = "mcp-protocol-version";

/// What answers requests.
#[derive(Debug)]
pub(super) struct Endpoint {
    pub(super) server: Arc<Server>,
    pub(super) sessions: Sessions,
    pub(super) max_body_bytes: usize,
}

/// A POST that is not served, as it is answered.
struct Misuse {
    status: u16,
    id: Value,
    error: Box<RpcError>,
}

impl Misuse {
    fn new(status: u16, code: i64, message: impl Into<String>) -> Self {
        Self { status, id: Value::Null, error: Box::new(RpcError::new(code, message)) }
    }

    fn about(mut self, id: &Value) -> Self {
        self.id = id.clone();
        self
    }
}

impl From<Refusal> for Misuse {
    fn from(refusal: Refusal) -> Self {
        Self::new(refusal.status, INVALID_REQUEST, refusal.reason)
    }
}

impl Endpoint {
    /// Answers a request whose body was read. Fails where the reply cannot be written; the connection is over then.
    pub(super) fn answer(&self, wire: &mut Wire, head: &Head, body: Vec<u8>) -> io::Result<()> {
        let outcome = match head.method.as_str() {
            "POST" => self.post(wire, head, body),
            "GET" => self.get(wire, head),
            "DELETE" => self.delete(wire, head),
            _ => {
                return wire.reply(405, &[("Allow", "GET, POST, DELETE")], b"");
            }
        };
        match outcome {
            Ok(done) => done,
            Err(Misuse { status, id, error }) => {
                let allow: &[_] = if status == 405 { &[JSON, ("Allow", "POST")] } else { &[JSON] };
                wire.reply(status, allow, response(&id, Err(*error)).as_bytes())
            }
        }
    }

    fn post(&self, wire: &mut Wire, head: &Head, body: Vec<u8>) -> Result<io::Result<()>, Misuse> {
        if !head.lists("content-type", &["application/json"]) {
            return Err(Misuse::new(415, INVALID_REQUEST, "the body has to be `application/json`"));
        }
        let takes = |kind: &str, group: &str| head.lists("accept", &[kind, group, "*/*"]);
        if !takes("application/json", "application/*") || !takes("text/event-stream", "text/*") {
            let message = "`Accept` has to name `application/json` and `text/event-stream`";
            return Err(Misuse::new(406, INVALID_REQUEST, message));
        }
        let message = match parse(&Line::Whole(body), self.max_body_bytes) {
            None => return Err(Misuse::new(400, PARSE_ERROR, "the body is empty")),
            Some(Incoming::Invalid { id, error }) => return Err(Misuse { status: 400, id, error: Box::new(error) }),
            Some(message) => message,
        };
        let version = head.header(VERSION)?;
        let meta_version = match &message {
            Incoming::Request { params, .. } | Incoming::Notification { params, .. } => {
                params.get("_meta").and_then(|meta| meta.get(META_VERSION))
            }
            Incoming::Response { .. } | Incoming::Invalid { .. } => None,
        };
        let is_older = version.is_none_or(|version| LEGACY_VERSIONS.contains(&version));
        if is_older && meta_version.is_none() {
            return self.post_older(wire, head, message);
        }
        self.post_newer(wire, head, version, message)
    }

    /// Answers a message of the older era.
    fn post_older(&self, wire: &mut Wire, head: &Head, message: Incoming) -> Result<io::Result<()>, Misuse> {
        let id = match &message {
            Incoming::Request { id, .. } => id.clone(),
            _ => Value::Null,
        };
        let is_opening = matches!(&message, Incoming::Request { method, .. } if method == "initialize");
        let Some(session_id) = head.header(SESSION)? else {
            return if is_opening { self.open(wire, message, &id) } else { Err(no_session().about(&id)) };
        };
        let session = self.sessions.get(session_id).ok_or_else(|| gone().about(&id))?;
        Ok(self.respond(wire, &session.connection, message, false))
    }

    /// Opens a session.
    fn open(&self, wire: &mut Wire, message: Incoming, id: &Value) -> Result<io::Result<()>, Misuse> {
        let session_id = new_id().map_err(|error| {
            Misuse::new(500, INTERNAL_ERROR, format!("the system gives no random numbers: {error}")).about(id)
        })?;
        let session = self.sessions.open(&self.server, session_id.clone()).ok_or_else(|| {
            Misuse::new(503, INTERNAL_ERROR, "there are as many sessions as there may be; try again later").about(id)
        })?;
        let (outbox, inbox) = Outbox::new();
        // Answered at once, so that it is known whether it opened anything before the client is told.
        session.connection.receive(message, &outbox);
        drop(outbox);
        if session.connection.session().version.is_some() {
            return Ok(self.pass_on(wire, inbox, &[("Mcp-Session-Id", &session_id)], false));
        }
        drop(session);
        self.sessions.end(&session_id);
        Ok(self.pass_on(wire, inbox, &[], false))
    }

    /// Answers a message of the newer era.
    fn post_newer(
        &self,
        wire: &mut Wire,
        head: &Head,
        version: Option<&str>,
        message: Incoming,
    ) -> Result<io::Result<()>, Misuse> {
        let Incoming::Request { id, method, params } = &message else {
            // The newer era has neither notifications nor responses of the client over HTTP.
            return Ok(wire.reply(202, &[], b""));
        };
        if let Some(version) =
            version.filter(|version| *version != MODERN_VERSION && !LEGACY_VERSIONS.contains(version))
        {
            let shown = crate::tools::arguments::shown(version);
            let error = RpcError::new(UNSUPPORTED_VERSION, format!("protocol version {shown} is not served"))
                .with_data(json!({"supported": [MODERN_VERSION], "requested": version}));
            return Err(Misuse { status: 400, id: id.clone(), error: Box::new(error) });
        }
        check_headers(head, version, method, params).map_err(|misuse| misuse.about(id))?;
        let (outbox, notices) = Outbox::new();
        drop(notices);
        // It belongs to no session: a client of its own, for as long as it is answered.
        let connection = Connection::new(&self.server, outbox);
        let outcome = self.respond(wire, &connection, message, true);
        self.server.leave(connection.number());
        Ok(outcome)
    }

    /// Has a message answered, and passes on what is said of it.
    fn respond(
        &self,
        wire: &mut Wire,
        connection: &Arc<Connection>,
        message: Incoming,
        is_newer: bool,
    ) -> io::Result<()> {
        if !matches!(message, Incoming::Request { .. }) {
            let (outbox, _) = Outbox::new();
            connection.receive(message, &outbox);
            return wire.reply(202, &[], b"");
        }
        let (outbox, inbox) = Outbox::new();
        connection.receive(message, &outbox);
        // The others that can put something are the request's own: with the last of them the reply ends.
        drop(outbox);
        self.pass_on(wire, inbox, &[], is_newer)
    }

    /// Writes what is said of a request, up to its answer.
    fn pass_on(&self, wire: &mut Wire, mut inbox: Inbox, headers: &[(&str, &str)], is_newer: bool) -> io::Result<()> {
        let mut is_stream = false;
        let mut spoke = Instant::now();
        loop {
            let patience = if is_stream { STREAM_GLANCE } else { GLANCE };
            match inbox.next(patience) {
                Next::Answer(line, code) if !is_stream => {
                    let status = if is_newer { status_of(code) } else { 200 };
                    let headers: Vec<_> = [JSON].iter().chain(headers).copied().collect();
                    return wire.reply(status, &headers, line.as_bytes());
                }
                Next::Answer(line, _) | Next::Line(line) => {
                    if !is_stream {
                        wire.begin_events(headers)?;
                        is_stream = true;
                    }
                    wire.event(&line)?;
                    spoke = Instant::now();
                }
                Next::Nothing => {
                    // At the end of the server its connections are closed to be read, which looks the same.
                    if wire.is_gone() && !self.server.is_closing() {
                        return Err(io::ErrorKind::ConnectionAborted.into());
                    }
                    if is_stream && spoke.elapsed() >= KEEP_ALIVE {
                        wire.keep_alive()?;
                        spoke = Instant::now();
                    }
                }
                Next::Over => {
                    if !is_stream {
                        // It was cancelled, and gets no answer.
                        wire.begin_events(headers)?;
                    }
                    return wire.end_events();
                }
            }
        }
    }

    /// Opens the stream of notices of a session.
    fn get(&self, wire: &mut Wire, head: &Head) -> Result<io::Result<()>, Misuse> {
        let session = self.session(head)?;
        if !head.lists("accept", &["text/event-stream", "text/*", "*/*"]) {
            return Err(Misuse::new(406, INVALID_REQUEST, "`Accept` has to name `text/event-stream`"));
        }
        let Some((stream, mut notices)) = session.open_stream(GIVE_WAY) else {
            return Err(Misuse::new(409, INVALID_REQUEST, "the session has another stream open"));
        };
        let outcome = self.stream(wire, &session, stream, &mut notices);
        session.close_stream(notices);
        Ok(outcome)
    }

    fn stream(&self, wire: &mut Wire, session: &HttpSession, stream: u64, notices: &mut Inbox) -> io::Result<()> {
        wire.begin_events(&[])?;
        let mut spoke = Instant::now();
        // At once, so that the client knows that the stream is open.
        wire.keep_alive()?;
        loop {
            match notices.next(STREAM_GLANCE) {
                Next::Line(line) | Next::Answer(line, _) => {
                    wire.event(&line)?;
                    spoke = Instant::now();
                }
                Next::Over => return wire.end_events(),
                Next::Nothing if self.server.is_closing() || session.is_replaced(stream) => return wire.end_events(),
                Next::Nothing if wire.is_gone() => return Err(io::ErrorKind::ConnectionAborted.into()),
                Next::Nothing => {
                    if spoke.elapsed() >= KEEP_ALIVE {
                        wire.keep_alive()?;
                        spoke = Instant::now();
                    }
                }
            }
        }
    }

    /// Ends a session.
    fn delete(&self, wire: &mut Wire, head: &Head) -> Result<io::Result<()>, Misuse> {
        let session = self.session(head)?;
        drop(session);
        let id = head.header(SESSION)?.unwrap_or_default();
        if self.sessions.end(id) { Ok(wire.reply(204, &[], b"")) } else { Err(gone()) }
    }

    fn session(&self, head: &Head) -> Result<InUse, Misuse> {
        if head.header(VERSION)? == Some(MODERN_VERSION) {
            return Err(Misuse::new(405, INVALID_REQUEST, format!("{MODERN_VERSION} has POST alone")));
        }
        let id = head.header(SESSION)?.ok_or_else(no_session)?;
        self.sessions.get(id).ok_or_else(gone)
    }
}

fn no_session() -> Misuse {
    Misuse::new(400, INVALID_REQUEST, "the header `Mcp-Session-Id` is missing: begin with `initialize`")
}

fn gone() -> Misuse {
    Misuse::new(404, INVALID_REQUEST, "there is no such session: begin again with `initialize`")
}

/// Returns an id that nobody can guess.
fn new_id() -> Result<String, getrandom::Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)?;
    Ok(format!("{:032x}", u128::from_be_bytes(bytes)))
}

/// Holds the headers of a request of the newer era against its body.
fn check_headers(head: &Head, version: Option<&str>, method: &str, params: &Params) -> Result<(), Misuse> {
    let mismatch = |text: String| Misuse::new(400, HEADER_MISMATCH, text);
    let header = |name: &'static str| head.header(name).map_err(|refusal| mismatch(refusal.reason));
    let in_body = params.get("_meta").and_then(|meta| meta.get(META_VERSION));
    match (version, in_body) {
        (None, _) => return Err(mismatch("the header `MCP-Protocol-Version` is missing".to_owned())),
        // What is wrong with the body is said of the body.
        (Some(_), None) => {}
        (Some(version), Some(in_body)) if in_body == version => {}
        (Some(_), Some(_)) => {
            return Err(mismatch("the header `MCP-Protocol-Version` is not the version of the body".to_owned()));
        }
    }
    match header("mcp-method")? {
        None => return Err(mismatch("the header `Mcp-Method` is missing".to_owned())),
        Some(value) if value != method => {
            return Err(mismatch("the header `Mcp-Method` is not the method of the body".to_owned()));
        }
        Some(_) => {}
    }
    let field = match method {
        "tools/call" | "prompts/get" => "name",
        "resources/read" => "uri",
        _ => return Ok(()),
    };
    let named = params.get(field).and_then(Value::as_str);
    match (header("mcp-name")?, named) {
        (None, Some(_)) => Err(mismatch("the header `Mcp-Name` is missing".to_owned())),
        (Some(value), Some(named)) if decoded(value).as_deref() != Some(named) => {
            Err(mismatch(format!("the header `Mcp-Name` is not the `{field}` of the body")))
        }
        _ => Ok(()),
    }
}

/// Returns the text of a header that may be in base64; `None` where it says so and is not.
fn decoded(value: &str) -> Option<String> {
    match value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?=")) {
        None => Some(value.to_owned()),
        Some(encoded) => STANDARD.decode(encoded).ok().and_then(|bytes| String::from_utf8(bytes).ok()),
    }
}

/// Returns the status that the newer era gives an answer.
const fn status_of(code: Option<i64>) -> u16 {
    match code {
        Some(METHOD_NOT_FOUND) => 404,
        Some(PARSE_ERROR | INVALID_REQUEST | INVALID_PARAMS | UNSUPPORTED_VERSION | HEADER_MISMATCH) => 400,
        _ => 200,
    }
}

#[cfg(test)]
mod tests {
    use super::decoded;

    #[test]
    fn a_name_may_come_in_base64() {
        assert_eq!(decoded("plain").as_deref(), Some("plain"));
        assert_eq!(decoded("=?base64?SGVsbG8sIOS4lueVjA==?=").as_deref(), Some("Hello, 世界"));
        assert_eq!(decoded("=?base64?***?="), None);
        assert_eq!(decoded("=?BASE64?SGVsbG8=?=").as_deref(), Some("=?BASE64?SGVsbG8=?="));
    }
}
