//! A session with a server: opening it in either era, the list of its tools, and the two calls.
//!
//! **Invariant:** the only methods ever sent are `initialize` (or `server/discover`), `tools/list` and `tools/call`, the last
//! with the name of a configured tool; beside them the notices that the protocol wants.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use kb_store::SourceConfig;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value, json};

use super::error::{CallError, FetchError};
use super::redact::Redactor;
use crate::protocol::{LEGACY_VERSIONS, META_CAPABILITIES, META_VERSION, MODERN_VERSION};
use crate::wire::{
    INVALID_PARAMS, INVALID_REQUEST, Incoming, Line, METHOD_NOT_FOUND, UNSUPPORTED_VERSION, parse, response,
};

const META_CLIENT: &str = "io.modelcontextprotocol/clientInfo";
/// Pages of a list of tools.
const MOST_PAGES: usize = 100;

/// The moment by which an answer has to be there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline {
    at: Instant,
    pub(crate) allowed: Duration,
}

impl Deadline {
    /// Returns the moment so far from now.
    pub(crate) fn after(allowed: Duration) -> Self {
        Self { at: Instant::now() + allowed, allowed }
    }

    /// Returns how long there is still to wait.
    pub(crate) fn left(&self) -> Duration {
        self.at.saturating_duration_since(Instant::now())
    }
}

/// The other end, whatever carries the messages.
pub(crate) trait Peer: Send + Sync {
    /// Asks, and waits for the answer.
    fn request(&self, method: &str, params: &Value, deadline: Deadline) -> Result<Value, CallError>;

    /// Says something that has no answer.
    fn notify(&self, method: &str, params: &Value);

    /// Told of the version that was settled.
    fn opened(&self, version: &str);
}

/// A message of the server that a client has to do something with.
#[derive(Debug, PartialEq)]
pub(crate) enum Message {
    Response { id: i64, outcome: Result<Value, CallError> },
    Request { id: Value, method: String },
}

/// Takes apart what a server sent: one message, a batch of them, or noise, which is none.
pub(crate) fn messages(bytes: &[u8]) -> Vec<Message> {
    if bytes.first() == Some(&b'[')
        && let Ok(batch) = serde_json::from_slice::<Vec<Value>>(bytes)
    {
        return batch.into_iter().filter_map(|message| one(message.to_string().as_bytes())).collect();
    }
    one(bytes).into_iter().collect()
}

fn one(bytes: &[u8]) -> Option<Message> {
    // Noise is not worth a look.
    if bytes.iter().find(|byte| !byte.is_ascii_whitespace()) != Some(&b'{') {
        return None;
    }
    match parse(&Line::Whole(bytes.to_vec()), usize::MAX)? {
        Incoming::Response { id, outcome } => {
            let id = number(&id)?;
            Some(Message::Response { id, outcome: outcome.map_err(|error| rpc_error(&error)) })
        }
        Incoming::Request { id, method, .. } => Some(Message::Request { id, method }),
        Incoming::Notification { .. } => None,
        Incoming::Invalid { error, .. } => {
            // What cannot be read as text, such as half of a surrogate pair, may still say whose answer it is.
            let envelope: Envelope = serde_json::from_slice(bytes).ok()?;
            let reason = error.message;
            (envelope.result.is_some() || envelope.error.is_some()).then_some(Message::Response {
                id: number(&envelope.id)?,
                outcome: Err(CallError::Unreadable { reason }),
            })
        }
    }
}

#[derive(Deserialize)]
struct Envelope {
    id: Value,
    result: Option<IgnoredAny>,
    error: Option<IgnoredAny>,
}

/// Reads an id of ours; some servers send it back as a text.
fn number(id: &Value) -> Option<i64> {
    id.as_i64().or_else(|| id.as_str()?.parse().ok())
}

pub(crate) fn rpc_error(error: &Value) -> CallError {
    let message = error.get("message").and_then(Value::as_str).unwrap_or("no message");
    CallError::Rpc { code: error.get("code").and_then(Value::as_i64).unwrap_or(0), message: message.to_owned() }
}

/// Returns a request as a line with its end.
pub(crate) fn request_line(id: i64, method: &str, params: &Value) -> Vec<u8> {
    let mut line = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string().into_bytes();
    line.push(b'\n');
    line
}

/// Answers a request of the server: a ping is answered, all else there is not.
pub(crate) fn answer_to(id: &Value, method: &str) -> String {
    let outcome = match method {
        "ping" => Ok(json!({}).into()),
        _ => Err(crate::wire::RpcError::new(METHOD_NOT_FOUND, format!("there is no method `{method}`"))),
    };
    response(id, outcome)
}

/// One of the tools that there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tool {
    Select,
    Read,
}

/// An open session.
pub(crate) struct Session<'s> {
    peer: Box<dyn Peer>,
    config: &'s SourceConfig,
    redactor: &'s Redactor,
    pub(crate) version: String,
    /// How the server names itself.
    pub(crate) server: String,
}

impl<'s> Session<'s> {
    /// Opens a session: as the older era does, else as the newer one.
    pub(crate) fn open(
        peer: Box<dyn Peer>,
        config: &'s SourceConfig,
        redactor: &'s Redactor,
    ) -> Result<Self, FetchError> {
        let deadline = Deadline::after(config.limits.connect);
        let failed = |reason: String| FetchError::Connect { reason: redactor.clean(&reason) };
        let latest = LEGACY_VERSIONS[LEGACY_VERSIONS.len() - 1];
        let params = json!({"protocolVersion": latest, "capabilities": {}, "clientInfo": client_info()});
        let (version, result) = match peer.request("initialize", &params, deadline) {
            Ok(result) => {
                let version = result.get("protocolVersion").and_then(Value::as_str).unwrap_or_default().to_owned();
                if !LEGACY_VERSIONS.contains(&version.as_str()) {
                    let known = LEGACY_VERSIONS.join(", ");
                    return Err(failed(format!("the server speaks the protocol of `{version}`; kb speaks {known}")));
                }
                (version, result)
            }
            Err(error @ CallError::Rpc { code, .. })
                if [METHOD_NOT_FOUND, INVALID_PARAMS, INVALID_REQUEST, UNSUPPORTED_VERSION].contains(&code) =>
            {
                let result = peer.request("server/discover", &with_meta(json!({})), deadline);
                match result {
                    Ok(result) if supports_modern(&result) => (MODERN_VERSION.to_owned(), result),
                    _ => return Err(failed(error.to_string())),
                }
            }
            Err(error) => return Err(failed(error.to_string())),
        };
        peer.opened(&version);
        if version != MODERN_VERSION {
            peer.notify("notifications/initialized", &json!({}));
        }
        let info = result.get("serverInfo").or_else(|| result.get("_meta")?.get(crate::protocol::META_SERVER));
        let text = |key: &str| info.and_then(|info| info.get(key)).and_then(Value::as_str).unwrap_or("?");
        let server = redactor.clean(&format!("{} {}", text("name"), text("version")));
        Ok(Self { peer, config, redactor, version, server })
    }

    fn is_modern(&self) -> bool {
        self.version == MODERN_VERSION
    }

    fn request(&self, method: &str, params: Value, deadline: Deadline) -> Result<Value, CallError> {
        let params = if self.is_modern() { with_meta(params) } else { params };
        self.peer.request(method, &params, deadline)
    }

    /// Lists the tools, and refuses a configured one that is not there or not read-only. Nothing is called.
    pub(crate) fn verify(&self) -> Result<(), FetchError> {
        let deadline = Deadline::after(self.config.limits.list);
        let listed = self.list(deadline).map_err(|reason| FetchError::List { reason: self.redactor.clean(&reason) })?;
        for tool in self.config.tools() {
            let mut is_listed = false;
            for entry in listed.iter().filter(|entry| entry.get("name").and_then(Value::as_str) == Some(tool)) {
                is_listed = true;
                let hint = entry.get("annotations").and_then(|annotations| annotations.get("readOnlyHint"));
                if hint == Some(&Value::Bool(false)) {
                    return Err(FetchError::NotReadOnly { tool: tool.to_owned() });
                }
            }
            if !is_listed {
                let names: Vec<String> = listed
                    .iter()
                    .filter_map(|entry| entry.get("name").and_then(Value::as_str))
                    .take(30)
                    .map(|name| format!("`{}`", self.redactor.clean(name)))
                    .collect();
                let known = if names.is_empty() {
                    "; it lists none".to_owned()
                } else {
                    format!("; it has {}", names.join(", "))
                };
                return Err(FetchError::NotListed { tool: tool.to_owned(), known });
            }
        }
        Ok(())
    }

    fn list(&self, deadline: Deadline) -> Result<Vec<Value>, String> {
        let mut tools = Vec::new();
        let mut seen = HashSet::new();
        let mut params = json!({});
        for _ in 0..MOST_PAGES {
            let mut result = self.request("tools/list", params, deadline).map_err(|error| error.to_string())?;
            match result.get_mut("tools").map(Value::take) {
                Some(Value::Array(page)) => tools.extend(page),
                _ => return Err("the answer has no list of tools".to_owned()),
            }
            match result.get("nextCursor").and_then(Value::as_str).filter(|cursor| !cursor.is_empty()) {
                // A cursor that comes again leads nowhere: what was listed so far is all there is to be had.
                Some(cursor) if seen.insert(cursor.to_owned()) => params = json!({"cursor": cursor}),
                _ => return Ok(tools),
            }
        }
        Ok(tools)
    }

    /// Calls one of the two tools.
    pub(crate) fn call(&self, tool: Tool, arguments: &Map<String, Value>) -> Result<Value, CallError> {
        let (name, allowed) = match (tool, &self.config.selection) {
            (Tool::Select, kb_store::Selection::Select(select)) => (&select.tool, self.config.limits.select),
            _ => (&self.config.read.tool, self.config.limits.read),
        };
        let params = json!({"name": name, "arguments": arguments});
        let outcome = self.request("tools/call", params, Deadline::after(allowed));
        outcome.map_err(|error| match error {
            CallError::Rpc { code, message } => CallError::Rpc { code, message: self.redactor.clean(&message) },
            CallError::Unreadable { reason } => CallError::Unreadable { reason: self.redactor.clean(&reason) },
            error => error,
        })
    }
}

fn client_info() -> Value {
    json!({"name": "kb", "version": env!("CARGO_PKG_VERSION")})
}

/// Adds what every request of the newer era says of its client.
fn with_meta(mut params: Value) -> Value {
    params["_meta"] = json!({META_VERSION: MODERN_VERSION, META_CAPABILITIES: {}, META_CLIENT: client_info()});
    params
}

fn supports_modern(result: &Value) -> bool {
    let versions = result.get("supportedVersions").and_then(Value::as_array);
    versions.is_some_and(|versions| versions.iter().any(|version| version == MODERN_VERSION))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn answers_are_told_from_noise() {
        let response = |id, outcome| Message::Response { id, outcome };
        let of = |text: &str| messages(text.as_bytes());
        assert_eq!(of(r#"{"jsonrpc":"2.0","id":3,"result":{"a":1}}"#), [response(3, Ok(json!({"a": 1})))]);
        assert_eq!(of(r#" {"jsonrpc":"2.0","id":"3","result":{}}"#), [response(3, Ok(json!({})))]);
        let error = CallError::Rpc { code: -1, message: "no".to_owned() };
        assert_eq!(of(r#"{"jsonrpc":"2.0","id":3,"error":{"code":-1,"message":"no"}}"#), [response(3, Err(error))]);
        let batch = of(
            r#"[{"jsonrpc":"2.0","id":1,"result":1},{"jsonrpc":"2.0","method":"x"},{"jsonrpc":"2.0","id":2,"result":2}]"#,
        );
        assert_eq!(batch, [response(1, Ok(json!(1))), response(2, Ok(json!(2)))]);
        assert_eq!(
            of(r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#),
            [Message::Request { id: json!("p"), method: "ping".to_owned() }]
        );
        for noise in [
            "",
            "log: about to answer",
            "{",
            "null",
            "[",
            "[1]",
            r#"{"jsonrpc":"2.0","id":{},"result":1}"#,
            "{\"id\":1}",
        ] {
            assert_eq!(of(noise), [], "{noise}");
        }
    }

    #[test]
    fn an_answer_that_cannot_be_read_is_known_by_its_id() {
        let found =
            messages(br#"{"jsonrpc":"2.0","id":9,"result":{"content":[{"type":"text","text":"bad \ud800 char"}]}}"#);
        assert!(
            matches!(&found[..], [Message::Response { id: 9, outcome: Err(CallError::Unreadable { .. }) }]),
            "{found:?}"
        );
    }

    #[test]
    fn of_what_a_server_asks_only_a_ping_is_answered() {
        assert_eq!(answer_to(&json!(1), "ping"), r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
        assert!(answer_to(&json!(1), "sampling/createMessage").contains("-32601"));
    }

    proptest! {
        #[test]
        fn no_bytes_of_a_server_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..80), at in 0_usize..70) {
            messages(&bytes);
            // A message that is damaged at one place.
            let mut damaged = br#"[{"jsonrpc":"2.0","id":9,"result":{"content":["\ud83d\ude00"]}},{"id":"x","error":{}}]"#.to_vec();
            damaged[at] = bytes.first().copied().unwrap_or(0);
            messages(&damaged);
        }
    }
}
