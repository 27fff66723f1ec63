//! A server behind streamable HTTP.
//!
//! Each request is a POST, its answer JSON or a stream of events that holds it.
//!
//! **Invariant:** the token goes to the configured host and no other: a redirect to another one is refused. No status,
//! header or body of the server reaches an error unless it is cleaned.

use std::io::{BufReader, Read};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use ureq::http::{HeaderMap, Response};
use ureq::{Agent, Body};

use super::MAX_MESSAGE_BYTES;
use super::error::CallError;
use super::session::{Deadline, Message, Peer, answer_to, messages, request_line, rpc_error};
use super::sse::Events;
use crate::protocol::MODERN_VERSION;
use crate::wire::notification;

/// Redirects within the host that are followed.
const MOST_REDIRECTS: usize = 3;
/// The first wait before a request is sent again; it doubles.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// The longest wait that a server is granted.
const LONGEST_PAUSE: Duration = Duration::from_secs(20);
/// How long closing the session may take.
const CLOSING: Duration = Duration::from_secs(2);

/// A server behind HTTP.
pub(crate) struct HttpPeer {
    agent: Agent,
    url: Mutex<String>,
    token: Option<String>,
    auth_env: Option<String>,
    retries: u32,
    next_id: AtomicI64,
    session: Mutex<Option<String>>,
    version: Mutex<Option<String>>,
}

impl HttpPeer {
    pub(crate) fn new(url: &str, auth_env: Option<&str>, token: Option<String>, retries: u32) -> Self {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .proxy(None)
            .user_agent(concat!("kb/", env!("CARGO_PKG_VERSION")))
            .build();
        Self {
            agent: config.new_agent(),
            url: Mutex::new(url.to_owned()),
            token,
            auth_env: auth_env.map(str::to_owned),
            retries,
            next_id: AtomicI64::new(1),
            session: Mutex::new(None),
            version: Mutex::new(None),
        }
    }

    /// Sends a message, following redirects within the host.
    fn post(&self, line: &[u8], method: &str, params: &Value, deadline: Deadline) -> Result<Response<Body>, CallError> {
        for _ in 0..=MOST_REDIRECTS {
            let url = get(&self.url);
            let left = deadline.left();
            if left.is_zero() {
                return Err(CallError::Timeout { allowed: deadline.allowed });
            }
            let mut request = self
                .agent
                .post(&url)
                .config()
                .timeout_global(Some(left))
                .build()
                .header("Content-Type", "application/json")
                .header("Accept", "application/json, text/event-stream");
            let version =
                if method == "server/discover" { Some(MODERN_VERSION.to_owned()) } else { get(&self.version) };
            if version.as_deref() == Some(MODERN_VERSION) && !method.is_empty() {
                request = request.header("Mcp-Method", method);
                let name = params.get("name").and_then(Value::as_str);
                if let Some(name) = name.filter(|name| name.bytes().all(|byte| byte.is_ascii_graphic())) {
                    request = request.header("Mcp-Name", name);
                }
            }
            for (name, value) in [
                ("Authorization", self.token.as_ref().map(|token| format!("Bearer {token}"))),
                ("Mcp-Session-Id", get(&self.session)),
                ("MCP-Protocol-Version", version),
            ] {
                if let Some(value) = value {
                    request = request.header(name, value);
                }
            }
            let response = request.send(line).map_err(|error| failure(&error, deadline))?;
            if !response.status().is_redirection() {
                return Ok(response);
            }
            let target = redirected(&url, response.headers())?;
            *self.url.lock().unwrap_or_else(PoisonError::into_inner) = target;
        }
        Err(refused("it is redirected again and again".to_owned()))
    }

    /// Sends a request once, and returns its result.
    fn once(&self, method: &str, params: &Value, deadline: Deadline) -> Result<Value, CallError> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let mut response = self.post(&request_line(id, method, params), method, params, deadline)?;
        if method == "initialize"
            && let Some(session) = header(response.headers(), "mcp-session-id")
        {
            *self.session.lock().unwrap_or_else(PoisonError::into_inner) = Some(session);
        }
        let status = response.status();
        let media_type = header(response.headers(), "content-type").unwrap_or_default().to_ascii_lowercase();
        let wait = header(response.headers(), "retry-after")
            .and_then(|text| text.trim().parse().ok())
            .map(Duration::from_secs);
        if media_type.starts_with("text/event-stream") && status.is_success() {
            return self.answer_of_events(response.body_mut(), id, deadline);
        }
        let mut bytes = Vec::new();
        let limited = response.body_mut().with_config().limit(MAX_MESSAGE_BYTES as u64);
        limited.reader().read_to_end(&mut bytes).map_err(|error| broken(&error, deadline))?;
        let mut found = messages(&bytes).into_iter().filter_map(|message| match message {
            Message::Response { id: of, outcome } if of == id => Some(outcome),
            _ => None,
        });
        match found.next() {
            Some(outcome) => outcome,
            None if status.is_success() => {
                Err(CallError::Unreadable { reason: "it is no answer to what was asked".to_owned() })
            }
            None => {
                // Some servers answer a refusal with an error that has no id.
                let error = serde_json::from_slice::<Value>(&bytes).ok().and_then(|value| value.get("error").cloned());
                match error.filter(|error| error.is_object() && status.as_u16() == 400) {
                    Some(error) => Err(rpc_error(&error)),
                    None => Err(self.status_error(status.as_u16(), wait)),
                }
            }
        }
    }

    fn answer_of_events(&self, body: &mut Body, id: i64, deadline: Deadline) -> Result<Value, CallError> {
        let reader = BufReader::with_capacity(64 << 10, body.with_config().limit(u64::MAX).reader());
        let mut events = Events::new(reader, MAX_MESSAGE_BYTES);
        while let Some(data) = events.next().map_err(|error| broken(&error, deadline))? {
            for message in messages(&data) {
                match message {
                    Message::Response { id: of, outcome } if of == id => return outcome,
                    Message::Response { .. } => {}
                    Message::Request { id, method } => {
                        // The server's own question fails by itself where this does not reach it.
                        let _ = self.post(answer_to(&id, &method).as_bytes(), "", &Value::Null, deadline);
                    }
                }
            }
            if deadline.left().is_zero() {
                return Err(CallError::Timeout { allowed: deadline.allowed });
            }
        }
        Err(CallError::Unreadable { reason: "the stream of events ended before the answer".to_owned() })
    }

    fn status_error(&self, status: u16, wait: Option<Duration>) -> CallError {
        let may_pass = matches!(status, 429 | 502 | 503 | 504);
        let reason = match (status, &self.auth_env) {
            (401 | 403, Some(name)) => format!("the server refused the token of `{name}` (HTTP status {status})"),
            (401 | 403, None) => {
                format!("the server wants a token, and `transport.auth_env` names none (HTTP status {status})")
            }
            (404, _) if get(&self.session).is_some() => {
                "the server has ended the session, or has nothing at this address (HTTP status 404)".to_owned()
            }
            _ => format!("the server answered with HTTP status {status}"),
        };
        CallError::Connection { reason, may_pass, wait }
    }
}

impl Peer for HttpPeer {
    fn request(&self, method: &str, params: &Value, deadline: Deadline) -> Result<Value, CallError> {
        let mut pause = FIRST_PAUSE;
        for attempt in 0.. {
            let outcome = self.once(method, params, deadline);
            let wait = match &outcome {
                Err(CallError::Connection { may_pass: true, wait, .. }) if attempt < self.retries => *wait,
                _ => return outcome,
            };
            let wait = wait.unwrap_or(pause).min(LONGEST_PAUSE);
            if wait >= deadline.left() {
                return outcome;
            }
            std::thread::sleep(wait);
            pause *= 2;
        }
        unreachable!("the loop returns")
    }

    fn notify(&self, method: &str, params: &Value) {
        let deadline = Deadline::after(CLOSING);
        // A notice that is lost is found out by the next request.
        let _ = self.post(notification(method, params).as_bytes(), method, params, deadline);
    }

    fn opened(&self, version: &str) {
        *self.version.lock().unwrap_or_else(PoisonError::into_inner) = Some(version.to_owned());
    }
}

impl Drop for HttpPeer {
    fn drop(&mut self) {
        let Some(session) = get(&self.session) else { return };
        let mut request = self.agent.delete(get(&self.url)).config().timeout_global(Some(CLOSING)).build();
        request = request.header("Mcp-Session-Id", session);
        for (name, value) in [
            ("Authorization", self.token.as_ref().map(|token| format!("Bearer {token}"))),
            ("MCP-Protocol-Version", get(&self.version)),
        ] {
            if let Some(value) = value {
                request = request.header(name, value);
            }
        }
        // The server forgets the session by itself where this does not reach it.
        let _ = request.call();
    }
}

fn get<T: Clone>(value: &Mutex<T>) -> T {
    value.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

fn header(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
}

fn refused(reason: String) -> CallError {
    CallError::Connection { reason, may_pass: false, wait: None }
}

/// Returns where a redirect leads, if that is the same host by the same scheme.
fn redirected(url: &str, headers: &HeaderMap) -> Result<String, CallError> {
    let target = header(headers, "location").unwrap_or_default();
    let origin = origin(url);
    let path = &target;
    if target.starts_with('/') && !target.starts_with("//") {
        return Ok(format!("{origin}{path}"));
    }
    if !target.is_empty() && self::origin(&target).eq_ignore_ascii_case(origin) && target.contains("://") {
        return Ok(target);
    }
    let host = if target.contains("://") { self::origin(&target) } else { "an address that is none" };
    let host: String = host.chars().filter(|c| !c.is_control()).take(100).collect();
    Err(refused(format!("the server redirects to {host}, which is not followed; configure the address that is meant")))
}

/// Returns scheme, host and port of an address.
fn origin(url: &str) -> &str {
    let Some(at) = url.find("://") else { return url };
    let end = url[at + 3..].find(['/', '?', '#']).map_or(url.len(), |end| at + 3 + end);
    &url[..end]
}

fn failure(error: &ureq::Error, deadline: Deadline) -> CallError {
    let (reason, may_pass) = match error {
        ureq::Error::Timeout(_) => return CallError::Timeout { allowed: deadline.allowed },
        ureq::Error::Io(error) if is_timeout(error) => return CallError::Timeout { allowed: deadline.allowed },
        ureq::Error::Io(error) => (format!("the connection failed: {error}"), true),
        ureq::Error::HostNotFound => ("the host is not known".to_owned(), false),
        ureq::Error::ConnectionFailed => ("the connection failed".to_owned(), true),
        // Others may repeat what was sent.
        ureq::Error::Rustls(error) => (format!("no secure connection: {error}"), false),
        ureq::Error::Tls(reason) => (format!("no secure connection: {reason}"), false),
        ureq::Error::Protocol(_) => ("the server does not speak HTTP as it should".to_owned(), false),
        _ => ("the request could not be sent".to_owned(), false),
    };
    CallError::Connection { reason, may_pass, wait: None }
}

/// Says why a body could not be read to its end.
fn broken(error: &std::io::Error, deadline: Deadline) -> CallError {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<ureq::Error>());
    if is_timeout(error) || matches!(inner, Some(ureq::Error::Timeout(_))) {
        return CallError::Timeout { allowed: deadline.allowed };
    }
    CallError::Unreadable { reason: "it broke off".to_owned() }
}

fn is_timeout(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::TimedOut | std::io::ErrorKind::WouldBlock)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redirect_stays_with_its_host() {
        let to = |target: &str| {
            let mut headers = HeaderMap::new();
            headers.insert("location", target.parse().unwrap());
            redirected("https://a.example:8443/mcp?x=1", &headers).ok()
        };
        assert_eq!(to("/other").as_deref(), Some("https://a.example:8443/other"));
        assert_eq!(to("https://A.example:8443/x").as_deref(), Some("https://A.example:8443/x"));
        for bad in [
            "https://b.example/",
            "https://a.example/",
            "http://a.example:8443/",
            "//b.example/x",
            "other",
            "",
            "https://a.example:8443@b.example/",
        ] {
            assert_eq!(to(bad), None, "{bad}");
        }
    }
}
