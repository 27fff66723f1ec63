//! Input that no client should send, and ends that no client should make.

use std::io::Write;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::client::{Client, open};

#[test]
fn every_bad_line_is_answered_and_the_next_one_served() {
    let mut client = Client::legacy(&json!({}));
    let lines: [(&[u8], Value, i64); 7] = [
        (b"{\"jsonrpc\":\"2.0\",\"id\":901,\"method\":", Value::Null, -32700),
        (b"\xff\xfe", Value::Null, -32700),
        (b"[]", Value::Null, -32600),
        (b"{\"id\":902,\"method\":\"ping\"}", json!(902), -32600),
        (b"{\"jsonrpc\":\"2.0\",\"id\":903,\"method\":\"tools/call\"}", json!(903), -32602),
        (b"{\"jsonrpc\":\"2.0\",\"id\":904,\"method\":\"tools/call\",\"params\":{\"name\":\"status\",\"arguments\":[]}}", json!(904), -32602),
        (b"{\"jsonrpc\":\"2.0\",\"id\":905,\"method\":\"tools/call\",\"params\":{\"name\":\"serach\"}}", json!(905), -32602),
    ];
    for (line, id, code) in lines {
        client.send_raw(line);
        client.send_raw(b"\n");
        let answer = client.next();
        assert_eq!((&answer["id"], answer["error"]["code"].as_i64()), (&id, Some(code)), "{answer}");
    }
    client.send_raw(b"\r\n \n");
    assert_eq!(client.request("ping", json!({}))["result"], json!({}));
}

#[test]
fn a_line_over_the_bound_costs_that_line_alone() {
    let mut client = Client::start_with(|settings| settings.max_line_bytes = 1000);
    client.send_raw(&[b'x'; 5000]);
    client.send_raw(b"\n");
    assert_eq!(client.next()["error"]["code"], -32600);
    assert_eq!(client.request("ping", json!({}))["result"], json!({}));
}

#[test]
fn what_was_read_before_the_end_is_answered_the_unterminated_line_too() {
    let mut client = Client::legacy(&json!({}));
    let calls: Vec<i64> = (0..20)
        .map(|n| client.post("tools/call", json!({"name": "learn", "arguments": {"content": format!("text {n}")}})))
        .collect();
    client.send_raw(b"{\"jsonrpc\":\"2.0\",\"id\":\"last\",\"method\":\"ping\"}");
    let rest = client.end();
    let answered = |id: Value| rest.iter().any(|message| message["id"] == id && message.get("result").is_some());
    assert!(calls.iter().all(|id| answered(json!(id))) && answered(json!("last")), "{rest:?}");
    assert_eq!(open(&client.dir.path().join("kb")).status().unwrap().documents, 20);
}

#[test]
fn a_cancelled_rebuild_gives_no_answer_and_leaves_the_index() {
    let mut client = Client::legacy(&json!({}));
    let base = open(&client.dir.path().join("kb"));
    let texts = (0..8000).map(|n| kb_store::Text::markdown(format!("# Part {n}\n\nword{n} common\n")));
    base.learn_batch(&mut texts.into_iter(), &mut kb_store::Silent).unwrap();
    let before = base.generation().unwrap();
    let call = json!({"name": "rebuild", "arguments": {}, "_meta": {"progressToken": "t"}});
    let id = client.post("tools/call", call);
    // It is under way: the first notice of progress comes before the first document.
    assert_eq!(client.notice("notifications/progress")["params"]["progressToken"], "t");
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}));
    // Meanwhile, and after it, searches are answered.
    assert_eq!(client.done("search", json!({"query": "word2999"}))["hits"][0]["title"], "Part 2999");
    assert!(client.end().iter().all(|message| message["id"] != id));
    assert_eq!(base.generation().unwrap(), before);
}

#[test]
fn the_end_of_the_input_cancels_maintenance() {
    let mut client = Client::legacy(&json!({}));
    let base = open(&client.dir.path().join("kb"));
    let texts = (0..8000).map(|n| kb_store::Text::markdown(format!("# Part {n}\n\nword{n} common\n")));
    base.learn_batch(&mut texts.into_iter(), &mut kb_store::Silent).unwrap();
    let call = json!({"name": "rebuild", "arguments": {}, "_meta": {"progressToken": "t"}});
    let id = client.post("tools/call", call);
    client.notice("notifications/progress");
    let rest = client.end();
    let answer = rest.iter().find(|message| message["id"] == id).expect("it is answered");
    assert_eq!(answer["result"]["structuredContent"]["code"], "cancelled", "{answer}");
}

/// A log that can be read while it is written.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn the_log_tells_of_calls_and_never_of_texts() {
    let log = Log::default();
    let written = log.clone();
    let mut client = Client::start_with(|settings| settings.activity = Some(Box::new(log)));
    client.initialize("2025-11-25", &json!({}));
    client.done("learn", json!({"content": "the secret text", "docid": "notes"}));
    client.done("search", json!({"query": "secret"}));
    client.failed("retrieve", json!({"docid": "gone"}));
    client.end();
    let text = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let told: Vec<_> =
        lines.iter().map(|line| (line["tool"].as_str().unwrap(), line["outcome"].as_str().unwrap())).collect();
    assert_eq!(told, [("learn", "ok"), ("search", "ok"), ("retrieve", "not-found")]);
    assert_eq!(lines[2]["ids"], json!(["gone"]));
    assert!(lines[0]["time"].is_string() && lines[0]["milliseconds"].is_number());
    assert!(!text.contains("secret"), "{text}");
}
