//! `kb serve`: the server over HTTP as a process.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::Kb;

/// How long a reply may take before the test fails.
const PATIENCE: Duration = Duration::from_mins(3);

/// A server that runs until it is dropped.
struct Served {
    child: Child,
    address: String,
}

impl Served {
    fn start(kb: &Kb, arguments: &[&str]) -> Self {
        let command = [&["--db", "served.kbdb", "serve", "--http", "127.0.0.1:0"], arguments].concat();
        let mut child = kb.command(command).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("kb starts");
        let stdout = child.stdout.take().expect("a pipe");
        let mut served = Self { child, address: String::new() };
        let mut url = String::new();
        BufReader::new(stdout).read_line(&mut url).expect("the URL");
        let address = url.trim().strip_prefix("http://").and_then(|rest| rest.strip_suffix("/mcp"));
        address.unwrap_or_else(|| panic!("no URL: {url:?}")).clone_into(&mut served.address);
        served
    }

    /// Sends a message; returns the status and the message that comes back.
    fn post(&self, headers: &str, message: &Value) -> (String, Value) {
        let body = message.to_string();
        let mut stream = TcpStream::connect(&self.address).expect("the server listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
        write!(
            stream,
            "POST /mcp HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\n{headers}Content-Length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        )
        .expect("the request is sent");
        let mut reply = String::new();
        stream.read_to_string(&mut reply).expect("a reply");
        let status = reply.split(' ').nth(1).expect("a status").to_owned();
        let body = reply.split_once("\r\n\r\n").expect("a body").1;
        (status, serde_json::from_str(body).expect("JSON"))
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // Nothing to do where it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn status_call() -> (String, Value) {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let headers = "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: status\r\n".to_owned();
    let params = json!({"name": "status", "_meta": meta});
    (headers, json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}))
}

#[cfg(unix)]
#[test]
fn it_serves_until_it_is_told_to_stop() {
    let kb = Kb::bare();
    let mut served = Served::start(&kb, &["--log", "calls.jsonl"]);
    let (headers, call) = status_call();
    let (status, answer) = served.post(&headers, &call);
    assert_eq!((status.as_str(), &answer["result"]["structuredContent"]["documents"]), ("200", &json!(0)));
    let told =
        std::process::Command::new("kill").args(["-TERM", &served.child.id().to_string()]).status().expect("kill runs");
    assert!(told.success());
    assert_eq!(served.child.wait().expect("it ends").code(), Some(0));
    assert!(kb.path("served.kbdb/head").exists());
    assert!(String::from_utf8(kb.read("calls.jsonl")).expect("text").contains("\"tool\":\"status\""));
}

#[test]
fn a_token_is_taken_from_a_file_and_asked_of_everybody() {
    let kb = Kb::bare();
    kb.write("token", "0123456789abcdef0123\n");
    let served = Served::start(&kb, &["--token-file", "token"]);
    let (headers, call) = status_call();
    assert_eq!(served.post(&headers, &call).0, "401");
    let with = format!("{headers}Authorization: Bearer 0123456789abcdef0123\r\n");
    assert_eq!(served.post(&with, &call).0, "200");
}

#[test]
fn an_address_that_others_can_reach_needs_a_token() {
    let kb = Kb::bare();
    let serve = |arguments: &[&str]| kb.run([&["--db", "kb", "serve"], arguments].concat());
    let open = serve(&["--http", "0.0.0.0:0"]).expect_exit(1);
    assert!(open.stderr.contains("bearer token") && open.stderr.contains("--token-env"), "{open}");
    let unset = serve(&["--http", "0.0.0.0:0", "--token-env", "NO_SUCH_TOKEN"]).expect_exit(1);
    assert!(unset.stderr.contains("NO_SUCH_TOKEN"), "{unset}");
    kb.write("token", "short");
    serve(&["--http", "127.0.0.1:0", "--token-file", "token"]).expect_exit(1);
    serve(&["--http", "localhost"]).expect_exit(2);
    let unnamed = kb.run(["serve", "--http", "127.0.0.1:0"]).expect_exit(1);
    assert!(unnamed.stderr.contains("`kb serve` was not told which database"), "{unnamed}");
}
