//! JSON-RPC 2.0 messages, one a line: how they are read, and how they are taken apart.
//!
//! **Invariant:** every line that asks for an answer gets one, whatever is in it: a line that is no message is an
//! [`Incoming::Invalid`] with the id that could be read, never dropped. Only blank lines are passed over.

use std::io::{self, BufRead};

use serde_json::{Map, Value, json};

use crate::reply::Reply;

/// The parameters of a request.
pub(crate) type Params = Map<String, Value>;

/// The code for a line that is not JSON.
pub(crate) const PARSE_ERROR: i64 = -32700;
/// The code for JSON that is no message.
pub(crate) const INVALID_REQUEST: i64 = -32600;
/// The code for a method that there is not.
pub(crate) const METHOD_NOT_FOUND: i64 = -32601;
/// The code for parameters that do not fit the method.
pub(crate) const INVALID_PARAMS: i64 = -32602;
/// The code for a fault of the server.
pub(crate) const INTERNAL_ERROR: i64 = -32603;
/// The code for a resource that there is not, to peers of the older era.
pub(crate) const RESOURCE_NOT_FOUND: i64 = -32002;
/// The code for headers of HTTP that are not what the body says.
pub(crate) const HEADER_MISMATCH: i64 = -32020;
/// The code for a protocol version that is not served, to peers of the newer era.
pub(crate) const UNSUPPORTED_VERSION: i64 = -32022;

/// Why a request is answered with an error of the protocol.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RpcError {
    pub(crate) code: i64,
    pub(crate) message: String,
    pub(crate) data: Option<Value>,
}

impl RpcError {
    pub(crate) fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    pub(crate) fn params(message: impl Into<String>) -> Self {
        Self::new(INVALID_PARAMS, message)
    }

    pub(crate) fn with_data(mut self, data: Value) -> Self {
        self.data = Some(data);
        self
    }
}

/// A message of the peer.
#[derive(Debug, PartialEq)]
pub(crate) enum Incoming {
    Request {
        id: Value,
        method: String,
        params: Params,
    },
    Notification {
        method: String,
        params: Params,
    },
    /// The answer to a request of ours: the result, or the error.
    Response {
        id: Value,
        outcome: Result<Value, Value>,
    },
    Invalid {
        id: Value,
        error: RpcError,
    },
}

/// Reads lines of bounded length.
pub(crate) struct Lines<R> {
    input: R,
    max_bytes: usize,
}

/// A line, or what was in its place.
#[derive(Debug, PartialEq)]
pub(crate) enum Line {
    Whole(Vec<u8>),
    /// Longer than the bound; what it held was passed over.
    TooLong,
}

impl<R: BufRead> Lines<R> {
    pub(crate) fn new(input: R, max_bytes: usize) -> Self {
        Self { input, max_bytes }
    }

    /// Returns the next line without its end; the last needs none. `None` at the end of the input.
    pub(crate) fn next(&mut self) -> io::Result<Option<Line>> {
        let mut line = Vec::new();
        let mut is_too_long = false;
        let mut read_any = false;
        loop {
            let (used, is_end) = {
                let buffer = match self.input.fill_buf() {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    buffer => buffer?,
                };
                if buffer.is_empty() {
                    break;
                }
                read_any = true;
                let newline = buffer.iter().position(|&byte| byte == b'\n');
                let piece = &buffer[..newline.unwrap_or(buffer.len())];
                if line.len() + piece.len() > self.max_bytes {
                    is_too_long = true;
                    line = Vec::new();
                }
                if !is_too_long {
                    line.extend_from_slice(piece);
                }
                (newline.map_or(buffer.len(), |at| at + 1), newline.is_some())
            };
            self.input.consume(used);
            if is_end {
                break;
            }
        }
        Ok(match (read_any, is_too_long) {
            (false, _) => None,
            (true, true) => Some(Line::TooLong),
            (true, false) => Some(Line::Whole(line)),
        })
    }
}

/// Takes a line apart; `None` for a blank one.
pub(crate) fn parse(line: &Line, max_bytes: usize) -> Option<Incoming> {
    let Line::Whole(bytes) = line else {
        let message = format!("the line is longer than {max_bytes} bytes");
        return Some(invalid(Value::Null, INVALID_REQUEST, message));
    };
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return None;
    }
    Some(match serde_json::from_slice(bytes) {
        Ok(Value::Object(message)) => classify(message),
        Ok(Value::Array(_)) => {
            invalid(Value::Null, INVALID_REQUEST, "batches are not served: send one message a line".to_owned())
        }
        Ok(_) => invalid(Value::Null, INVALID_REQUEST, "a message is a JSON object".to_owned()),
        Err(error) => invalid(Value::Null, PARSE_ERROR, format!("the line is not JSON: {error}")),
    })
}

fn invalid(id: Value, code: i64, message: String) -> Incoming {
    Incoming::Invalid { id, error: RpcError::new(code, message) }
}

fn classify(mut message: Map<String, Value>) -> Incoming {
    let id = message.remove("id");
    let readable = id.clone().filter(is_id).unwrap_or(Value::Null);
    let wrong = |text: &str| invalid(readable.clone(), INVALID_REQUEST, text.to_owned());
    if message.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return wrong("`jsonrpc` is not \"2.0\"");
    }
    if !message.contains_key("method") && (message.contains_key("result") || message.contains_key("error")) {
        let outcome = match message.remove("error") {
            Some(error) => Err(error),
            None => Ok(message.remove("result").unwrap_or_default()),
        };
        return Incoming::Response { id: id.unwrap_or_default(), outcome };
    }
    let Some(Value::String(method)) = message.remove("method") else {
        return wrong("`method` is missing or not a string");
    };
    let params = match message.remove("params") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(params)) => params,
        Some(_) if id.is_none() => Map::new(),
        Some(_) => return invalid(readable, INVALID_PARAMS, "`params` is not an object".to_owned()),
    };
    match id {
        None => Incoming::Notification { method, params },
        Some(id) if is_id(&id) => Incoming::Request { id, method, params },
        Some(_) => wrong("`id` is neither a string nor an integer"),
    }
}

/// Says whether a value is an id that MCP allows.
pub(crate) fn is_id(value: &Value) -> bool {
    value.is_string() || value.is_i64() || value.is_u64()
}

/// Writes the answer to a request, as a line without its end.
pub(crate) fn response(id: &Value, outcome: Result<Reply, RpcError>) -> String {
    match outcome {
        Ok(reply) => format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{}}}", reply.into_json()),
        Err(error) => {
            let mut object = json!({"code": error.code, "message": error.message});
            if let Some(data) = error.data {
                object["data"] = data;
            }
            json!({"jsonrpc": "2.0", "id": id, "error": object}).to_string()
        }
    }
}

/// Writes a notification.
pub(crate) fn notification(method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(input: &[u8], max_bytes: usize) -> Vec<Line> {
        // A small buffer, so that lines span several reads.
        let mut lines = Lines::new(io::BufReader::with_capacity(4, input), max_bytes);
        std::iter::from_fn(|| lines.next().unwrap()).collect()
    }

    fn error_of(line: &[u8]) -> (Value, i64) {
        match parse(&Line::Whole(line.to_vec()), 100) {
            Some(Incoming::Invalid { id, error }) => (id, error.code),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn lines_end_with_a_newline_or_the_input() {
        let whole = |text: &str| Line::Whole(text.into());
        assert_eq!(lines(b"", 10), []);
        assert_eq!(lines(b"abcdefg\n\nhi", 10), [whole("abcdefg"), whole(""), whole("hi")]);
        assert_eq!(lines(b"abcdefghijk\nok\n", 10), [Line::TooLong, whole("ok")]);
        assert_eq!(lines(b"abcdefghij\n", 10), [whole("abcdefghij")]);
    }

    #[test]
    fn what_is_no_message_keeps_the_id_that_could_be_read() {
        assert_eq!(error_of(b"{\"id\":1"), (Value::Null, PARSE_ERROR));
        assert_eq!(error_of(b"\xff"), (Value::Null, PARSE_ERROR));
        assert_eq!(error_of(b"42"), (Value::Null, INVALID_REQUEST));
        assert_eq!(error_of(b"[]"), (Value::Null, INVALID_REQUEST));
        assert_eq!(error_of(br#"{"id":7,"method":"ping"}"#), (json!(7), INVALID_REQUEST));
        assert_eq!(error_of(br#"{"jsonrpc":"2.0","id":"a"}"#), (json!("a"), INVALID_REQUEST));
        assert_eq!(error_of(br#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#), (Value::Null, INVALID_REQUEST));
        assert_eq!(error_of(br#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#), (Value::Null, INVALID_REQUEST));
        assert_eq!(error_of(br#"{"jsonrpc":"2.0","id":3,"method":"x","params":[1]}"#), (json!(3), INVALID_PARAMS));
    }

    #[test]
    fn messages_are_told_apart() {
        let message = |line: &str| parse(&Line::Whole(line.into()), 100);
        assert_eq!(message(" \r"), None);
        let request = Incoming::Request { id: json!(1), method: "ping".to_owned(), params: Map::new() };
        assert_eq!(message("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":null}\r"), Some(request));
        let notification = Incoming::Notification { method: "x".to_owned(), params: Map::new() };
        assert_eq!(message(r#"{"jsonrpc":"2.0","method":"x","params":[1]}"#), Some(notification));
        let response = Incoming::Response { id: json!("s"), outcome: Ok(json!({})) };
        assert_eq!(message(r#"{"jsonrpc":"2.0","id":"s","result":{}}"#), Some(response));
    }
}
