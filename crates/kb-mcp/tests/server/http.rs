//! The server over HTTP: both eras, who is let in, and what is bounded.

use std::fs::File;
use std::time::{Duration, Instant};

use kb_mcp::{HttpError, HttpServer, HttpSettings, Settings};
use serde_json::json;

use crate::client::{Log, PATIENCE, open};
use crate::http_client::{Http, Reply, request};

const LISTED: &[(&str, &str)] = &[("MCP-Protocol-Version", "2025-11-25")];

fn code(reply: Reply) -> (u16, i64) {
    let status = reply.status;
    let body = reply.json();
    (status, body["error"]["code"].as_i64().unwrap_or_else(|| panic!("no error: {body}")))
}

/// Asks until there is room: what was used last may take a moment to be given up.
fn answered(ask: impl Fn() -> Reply) -> Reply {
    let began = Instant::now();
    loop {
        let reply = ask();
        if reply.status != 503 || began.elapsed() > PATIENCE {
            return reply;
        }
    }
}

#[test]
fn a_session_is_opened_used_and_ended() {
    let http = Http::start();
    let session = http.session(&json!({}));
    assert_eq!(http.call(&session, "learn", json!({"content": "# A\n\nvalve\n", "docid": "a"}))["docid"], "a");
    assert_eq!(http.call(&session, "search", json!({"query": "valve"}))["hits"][0]["docid"], "a");
    let list = request("tools/list", json!({}));
    assert_eq!(http.post(&[], &list).status, 400);
    assert_eq!(http.post(&[("Mcp-Session-Id", "guessed")], &list).status, 404);
    let wrong = [("Mcp-Session-Id", session.as_str()), ("MCP-Protocol-Version", "1999-01-01")];
    assert_eq!(code(http.post(&wrong, &list)), (400, -32022));
    let right = [("Mcp-Session-Id", session.as_str()), LISTED[0]];
    assert_eq!(http.post(&right, &list).json()["result"]["tools"].as_array().unwrap().len(), 17);
    assert_eq!(http.send("DELETE", &right, "").status, 204);
    assert_eq!(http.post(&right, &list).status, 404);
    assert_eq!(http.send("DELETE", &right, "").status, 404);
}

#[test]
fn there_are_never_more_sessions_than_the_bound() {
    let http = Http::start_with(|_, http| http.max_sessions = 1);
    let session = http.session(&json!({}));
    let ping = request("ping", json!({}));
    // As long as the first is in use, there is no room.
    let refused = answered(|| http.post(&[], &request("initialize", json!({}))));
    assert!(!refused.headers.contains_key("mcp-session-id"));
    assert_eq!(refused.json()["error"]["code"], -32602);
    // It made room for one that opened nothing.
    assert_eq!(http.post(&[("Mcp-Session-Id", &session)], &ping).status, 404);
    let next = answered(|| http.post(&[], &request("initialize", json!({"protocolVersion": "2025-11-25"}))));
    assert_eq!((next.status, next.headers.contains_key("mcp-session-id")), (200, true));
}

#[test]
fn the_stream_of_a_session_tells_of_changes_and_gives_way_to_the_next() {
    let http = Http::start();
    let session = http.session(&json!({}));
    let of_session = [("Mcp-Session-Id", session.as_str())];
    http.call(&session, "learn", json!({"content": "one", "docid": "d"}));
    let subscribe = request("resources/subscribe", json!({"uri": "kbdb://document/d"}));
    assert_eq!(http.post(&of_session, &subscribe).json()["result"], json!({}));
    // What comes before the stream is open waits for it.
    http.call(&session, "learn", json!({"content": "two", "docid": "d"}));
    let mut first = http.send("GET", &of_session, "");
    assert_eq!(first.event().unwrap()["params"]["uri"], "kbdb://document/d");
    let mut second = http.send("GET", &of_session, "");
    assert_eq!(first.event(), None);
    http.call(&session, "learn", json!({"content": "three", "docid": "d"}));
    assert_eq!(second.event().unwrap()["method"], "notifications/resources/updated");
    http.send("DELETE", &of_session, "");
    assert_eq!(second.event(), None);
}

#[test]
fn a_request_that_tells_of_progress_is_answered_by_a_stream() {
    let http = Http::start();
    let session = http.session(&json!({}));
    http.call(&session, "learn", json!({"content": "one", "docid": "d"}));
    let call = request("tools/call", json!({"name": "rebuild", "_meta": {"progressToken": 7}}));
    let mut reply = http.post(&[("Mcp-Session-Id", &session)], &call);
    assert_eq!(reply.event().unwrap()["params"]["progressToken"], 7);
    assert_eq!(reply.event().unwrap()["result"]["structuredContent"]["documents"], 1);
    assert_eq!(reply.event(), None);
}

#[test]
fn the_model_of_the_older_era_is_asked_on_the_stream_of_the_call() {
    let http = Http::start();
    let session = http.session(&json!({"sampling": {}}));
    let of_session = [("Mcp-Session-Id", session.as_str())];
    let arguments = json!({"content": "# Pumps\n", "docid": "pumps", "describe": true});
    let mut call = http.post(&of_session, &request("tools/call", json!({"name": "learn", "arguments": arguments})));
    let asked = call.event().unwrap();
    assert_eq!(asked["method"], "sampling/createMessage");
    let text = "{\"description\": \"On pumps\", \"keywords\": [\"valve\"]}";
    let message = json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": text}});
    let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "result": message});
    assert_eq!(http.post(&of_session, &answer).status, 202);
    assert_eq!(call.event().unwrap()["result"]["structuredContent"]["described"]["done"], true);
}

#[test]
fn the_newer_era_needs_no_session_and_its_headers_say_what_its_body_says() {
    let http = Http::start();
    let status = http.newer("tools/call", json!({"name": "status"}));
    assert!(!status.headers.contains_key("mcp-session-id"));
    assert_eq!(status.json()["result"]["resultType"], "complete");
    assert_eq!(code(http.newer("initialize", json!({}))), (404, -32601));
    assert_eq!(code(http.newer("resources/read", json!({"uri": "kbdb://document/none"}))), (400, -32602));

    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let call = request("tools/call", json!({"name": "status", "_meta": meta}));
    let version = ("MCP-Protocol-Version", "2026-07-28");
    let (method, name) = (("Mcp-Method", "tools/call"), ("Mcp-Name", "=?base64?c3RhdHVz?="));
    assert_eq!(http.post(&[version, method, name], &call).status, 200);
    let wrong: [&[(&str, &str)]; 6] = [
        &[method, name],
        &[version, name],
        &[version, method],
        &[("MCP-Protocol-Version", "2025-11-25"), method, name],
        &[version, ("Mcp-Method", "tools/list"), name],
        &[version, method, ("Mcp-Name", "gc")],
    ];
    for headers in wrong {
        assert_eq!(code(http.post(headers, &call)), (400, -32020), "{headers:?}");
    }
    let without = request("tools/list", json!({}));
    assert_eq!(code(http.post(&[version, ("Mcp-Method", "tools/list")], &without)), (400, -32602));
    assert_eq!(http.send("GET", &[version], "").status, 405);
}

#[test]
fn a_stream_of_the_newer_era_tells_of_changes_and_is_closed_in_the_end() {
    let mut http = Http::start();
    let session = http.session(&json!({}));
    let wanted = json!({"resourceSubscriptions": ["kbdb://document/d"]});
    let mut stream = http.newer("subscriptions/listen", json!({"notifications": wanted}));
    assert_eq!(stream.event().unwrap()["method"], "notifications/subscriptions/acknowledged");
    http.call(&session, "learn", json!({"content": "one", "docid": "d"}));
    let told = stream.event().unwrap();
    assert_eq!(told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], 1);
    http.stop();
    assert_eq!(stream.event().unwrap()["id"], 1);
    assert_eq!(stream.event(), None);
}

/// Closing the stream is how the newer era cancels.
#[test]
fn a_call_of_the_newer_era_ends_with_its_connection() {
    let (log, written) = Log::pair();
    let http = Http::start_with(|settings, _| {
        settings.activity = Some(Box::new(log));
        settings.wait = PATIENCE;
    });
    // While somebody else writes, a call waits.
    let lock = File::options().write(true).create(true).truncate(false).open(http.dir.path().join("kb/lock")).unwrap();
    lock.lock().unwrap();
    let arguments = json!({"content": "text", "docid": "d"});
    let mut call =
        http.newer("tools/call", json!({"name": "learn", "arguments": arguments, "_meta": {"progressToken": 1}}));
    assert_eq!(call.event().unwrap()["params"]["message"], "waiting for another writer");
    drop(call);
    written.wait();
    assert!(written.text().contains("\"cancelled\""), "{}", written.text());
    lock.unlock().unwrap();
    assert_eq!(open(&http.dir.path().join("kb")).status().unwrap().documents, 0);
}

#[test]
fn only_who_may_is_let_in() {
    let token = "0123456789abcdef-secret";
    let http = Http::start_with(|_, http| {
        http.token = Some(token.to_owned());
        http.origins = vec!["https://app.example".to_owned()];
    });
    let bearer = format!("Bearer {token}");
    let ask = |headers: &[(&str, &str)]| {
        let opening = json!({"protocolVersion": "2025-11-25", "capabilities": {}});
        http.post(headers, &request("initialize", opening)).status
    };
    assert_eq!(ask(&[("Authorization", &bearer)]), 200);
    assert_eq!(ask(&[("Authorization", &bearer), ("Origin", "https://app.example")]), 200);
    assert_eq!(ask(&[("Authorization", &bearer), ("Origin", "http://localhost:3000")]), 200);
    assert_eq!(ask(&[("Authorization", &bearer), ("Origin", "http://evil.example")]), 403);
    assert_eq!(ask(&[("Authorization", &bearer), ("Host", "evil.example")]), 403);
    for wrong in ["Bearer 0123456789abcdef-secreT", "Bearer", "Basic x", token] {
        assert_eq!(ask(&[("Authorization", wrong)]), 401, "{wrong}");
    }
    let refused = http.post(&[], &request("ping", json!({})));
    assert_eq!((refused.status, refused.headers["www-authenticate"].as_str()), (401, "Bearer"));
}

#[test]
fn an_address_that_others_can_reach_needs_a_token() {
    let dir = tempfile::tempdir().unwrap();
    let bind = |address: &str, token: Option<&str>| {
        let mut http = HttpSettings::new(address.parse().unwrap());
        http.token = token.map(str::to_owned);
        HttpServer::bind(open(&dir.path().join("kb")), Settings::new(std::time::SystemTime::now), http)
    };
    assert!(matches!(bind("0.0.0.0:0", None), Err(HttpError::NeedsToken { .. })));
    assert!(matches!(bind("[::]:0", None), Err(HttpError::NeedsToken { .. })));
    for weak in ["", "short", "with blanks 0123456789", "ümlaut-0123456789abc"] {
        assert!(matches!(bind("127.0.0.1:0", Some(weak)), Err(HttpError::BadToken)), "{weak}");
    }
    assert!(bind("0.0.0.0:0", Some("0123456789abcdef")).is_ok());
}

#[test]
fn what_is_no_request_is_refused_and_costs_nobody_else() {
    let http = Http::start_with(|_, http| http.max_body_bytes = 1000);
    let session = http.session(&json!({}));
    assert_eq!(http.raw(b"nonsense\r\n\r\n").status, 400);
    assert_eq!(http.raw(b"GET /mcp HTTP/1.1\r\n\r\n").status, 400);
    assert_eq!(http.raw(b"POST /else HTTP/1.1\r\nHost: localhost\r\n\r\n").status, 404);
    assert_eq!(http.raw(format!("GET /{} HTTP/1.1\r\n", "x".repeat(40_000)).as_bytes()).status, 431);
    assert_eq!(http.send("PUT", &[], "").status, 405);
    assert_eq!(http.send("POST", &[("Content-Type", "text/plain")], "{}").status, 415);
    assert_eq!(http.send("POST", &[("Accept", "application/json")], "{}").status, 406);
    assert_eq!(http.send("POST", &[], &"x".repeat(1001)).status, 413);
    let of_session = [("Mcp-Session-Id", session.as_str())];
    assert_eq!(code(http.send("POST", &of_session, "{\"id\":1")), (400, -32700));
    assert_eq!(code(http.send("POST", &of_session, "[]")), (400, -32600));
    assert_eq!(code(http.send("POST", &of_session, "{\"id\":7,\"method\":\"ping\"}")), (400, -32600));
    let answered = http.post(&of_session, &request("no/such", json!({})));
    assert_eq!(code(answered), (200, -32601));
}

#[test]
fn a_body_in_chunks_and_a_second_request_on_one_connection_are_served() {
    let http = Http::start();
    let body = request("initialize", json!({"protocolVersion": "2025-11-25", "capabilities": {}})).to_string();
    let (first, second) = body.split_at(20);
    let head = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: */*\r\n";
    let chunked = format!(
        "{head}Transfer-Encoding: chunked\r\n\r\n{:x}\r\n{first}\r\n{:X};x=y\r\n{second}\r\n0\r\nTrailer: x\r\n\r\n",
        first.len(),
        second.len()
    );
    // Both are sent at once; the second follows in what was read of the first.
    let reply = http.raw(format!("{chunked}{head}Content-Length: 0\r\nConnection: close\r\n\r\n").as_bytes());
    assert_eq!(reply.status, 200);
    let next = reply.next();
    assert_eq!(next.status, 400);
    assert_eq!(next.json()["error"]["code"], -32700);
    let broken = format!("{head}Transfer-Encoding: chunked\r\n\r\n3\r\nabcdef\r\n");
    assert_eq!(http.raw(broken.as_bytes()).status, 400);
}

#[test]
fn an_idle_session_ends_and_one_in_use_does_not() {
    let http = Http::start_with(|_, http| http.idle = Duration::from_millis(20));
    let ping = request("ping", json!({}));
    let (in_use, stream) = loop {
        // On a busy machine it may have been idle for too long already.
        let id = http.open(&json!({}));
        let stream = http.send("GET", &[("Mcp-Session-Id", &id)], "");
        if stream.status == 200 {
            break (id, stream);
        }
    };
    let idle = http.open(&json!({}));
    let began = Instant::now();
    // Each look is a use: it has to be idle between two of them.
    while http.post(&[("Mcp-Session-Id", &idle)], &ping).status == 200 && began.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(200));
    }
    assert_eq!(http.post(&[("Mcp-Session-Id", &idle)], &ping).status, 404);
    assert_eq!(http.post(&[("Mcp-Session-Id", &in_use)], &ping).status, 200);
    drop(stream);
}

#[test]
fn connections_beyond_the_bound_are_refused_at_once() {
    let http = Http::start_with(|_, http| http.max_connections = 1);
    let opening = request("initialize", json!({"protocolVersion": "2025-11-25", "capabilities": {}}));
    let held = std::net::TcpStream::connect(http.address).unwrap();
    assert_eq!(http.post(&[], &opening).status, 503);
    drop(held);
    assert_eq!(answered(|| http.post(&[], &opening)).status, 200);
}

#[test]
fn what_was_asked_before_the_stop_is_answered() {
    let mut http = Http::start();
    let session = http.session(&json!({"sampling": {}}));
    let arguments = json!({"content": "# Pumps\n", "docid": "pumps", "describe": true});
    let call = request("tools/call", json!({"name": "learn", "arguments": arguments}));
    let mut reply = http.post(&[("Mcp-Session-Id", &session)], &call);
    // It is under way, and waits for the client.
    assert_eq!(reply.event().unwrap()["method"], "sampling/createMessage");
    http.stop();
    assert_eq!(reply.event().unwrap()["method"], "notifications/cancelled");
    let answer = reply.event().unwrap()["result"]["structuredContent"].clone();
    assert_eq!((&answer["docid"], &answer["described"]["done"]), (&json!("pumps"), &json!(false)));
    assert_eq!(reply.event(), None);
    assert_eq!(open(&http.dir.path().join("kb")).status().unwrap().documents, 1);
}
