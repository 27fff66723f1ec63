//! Input that no client should send, and ends that no client should make.

use std::time::Instant;

use kb_store::Text;
use serde_json::{Value, json};

use crate::client::{Client, Log, PATIENCE, open};

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

/// How often a rebuild may be done before it can be cancelled: on a busy machine it is at times.
const ATTEMPTS: usize = 50;

/// Starts a server on a base whose rebuild takes a while, and a rebuild that has told of its progress once.
fn rebuilding() -> (Client, kb_store::KnowledgeBase, i64) {
    let mut client = Client::legacy(&json!({}));
    let base = open(&client.dir.path().join("kb"));
    let texts = (0..8000).map(|n| kb_store::Text::markdown(format!("# Part {n}\n\nword{n} common\n")));
    base.learn_batch(&mut texts.into_iter(), &mut kb_store::Silent).unwrap();
    let id = client.post("tools/call", json!({"name": "rebuild", "_meta": {"progressToken": "t"}}));
    // The first notice of progress comes before the first document.
    assert_eq!(client.notice("notifications/progress")["params"]["progressToken"], "t");
    (client, base, id)
}

#[test]
fn a_cancelled_rebuild_gives_no_answer_and_leaves_the_index() {
    for _ in 0..ATTEMPTS {
        let (mut client, base, id) = rebuilding();
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}));
        // Meanwhile, and after it, searches are answered.
        assert_eq!(client.done("search", json!({"query": "word2999"}))["hits"][0]["title"], "Part 2999");
        let is_answered = client.end().iter().any(|message| message["id"] == id);
        // Created and filled, and rebuilt only where that was answered.
        assert_eq!(base.generation().unwrap(), if is_answered { 2 } else { 1 });
        if !is_answered {
            return;
        }
    }
    panic!("no rebuild was cancelled");
}

#[test]
fn the_end_of_the_input_cancels_maintenance() {
    for _ in 0..ATTEMPTS {
        let (mut client, base, id) = rebuilding();
        let rest = client.end();
        let answer = rest.iter().find(|message| message["id"] == id).expect("it is answered");
        let content = &answer["result"]["structuredContent"];
        if content["code"] == "cancelled" {
            assert_eq!(base.generation().unwrap(), 1);
            return;
        }
        assert_eq!(content["documents"], 8000, "{answer}");
    }
    panic!("no rebuild was cancelled");
}

/// Seen on a busy machine: a call that waits for another writer was told "busy" where it had been cancelled.
#[test]
fn a_call_that_waits_for_a_writer_can_be_cancelled() {
    let (log, written) = Log::pair();
    let mut client = Client::start_with(|settings| {
        settings.activity = Some(Box::new(log));
        settings.wait = crate::client::PATIENCE;
    });
    client.initialize("2025-11-25", &json!({}));
    let lock = std::fs::File::options().write(true).open(client.dir.path().join("kb/lock")).unwrap();
    lock.lock().unwrap();
    let call = json!({"name": "learn", "arguments": {"content": "text"}, "_meta": {"progressToken": 1}});
    let id = client.post("tools/call", call);
    assert_eq!(client.notice("notifications/progress")["params"]["message"], "waiting for another writer");
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}));
    written.wait();
    lock.unlock().unwrap();
    assert!(client.end().iter().all(|message| message["id"] != id));
    assert!(written.text().contains("\"cancelled\""), "{}", written.text());
    assert_eq!(open(&client.dir.path().join("kb")).status().unwrap().documents, 0);
}

#[test]
fn the_log_tells_of_calls_and_never_of_texts() {
    let (log, written) = Log::pair();
    let mut client = Client::start_with(|settings| settings.activity = Some(Box::new(log)));
    client.initialize("2025-11-25", &json!({}));
    client.done("learn", json!({"content": "the secret text", "docid": "notes"}));
    client.done("search", json!({"query": "secret"}));
    client.failed("retrieve", json!({"docid": "gone"}));
    client.end();
    let text = written.text();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let told: Vec<_> =
        lines.iter().map(|line| (line["tool"].as_str().unwrap(), line["outcome"].as_str().unwrap())).collect();
    assert_eq!(told, [("learn", "ok"), ("search", "ok"), ("retrieve", "not-found")]);
    assert_eq!(lines[2]["ids"], json!(["gone"]));
    assert!(lines[0]["time"].is_string() && lines[0]["milliseconds"].is_number());
    assert!(!text.contains("secret"), "{text}");
}

#[test]
fn a_lost_index_is_made_anew_while_searches_are_answered() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("kb");
    open(&path).learn(&Text::markdown("# Pumps\n\nThe valve opens at six.\n")).unwrap();
    std::fs::remove_dir_all(path.join("index")).unwrap();
    let mut client = Client::start_in(dir, |_| {});
    client.initialize("2025-11-25", &json!({}));
    let first = client.done("search", json!({"query": "valve"}));
    assert_eq!(first["hits"][0]["title"], "Pumps");
    assert!(first["incomplete"].is_string(), "{first}");
    let began = Instant::now();
    let mut last = first.clone();
    while last.get("incomplete").is_some() && began.elapsed() < PATIENCE {
        last = client.done("search", json!({"query": "valve"}));
    }
    assert_eq!((&last["hits"], last.get("incomplete")), (&first["hits"], None));
}
