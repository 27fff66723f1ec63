//! Streamable HTTP, and the revisions of the protocol.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::{IDS, asked, counts, fake_server, lab};
use crate::harness::{Kb, Run};

const TOKEN: &str = "hunter2hunter2";

/// A server on a port of the loopback, ended when this is dropped.
struct Served {
    child: Child,
    url: String,
}

impl Served {
    fn start(kb: &Kb, arguments: &str) -> Self {
        let mut child = Command::new(fake_server())
            .args(arguments.split_whitespace())
            .args(["--http", "--log"])
            .arg(kb.path("log"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut url = String::new();
        BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut url).expect("it says where it is");
        Self { child, url: url.trim().to_owned() }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // One that has ended by itself is as good.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn write_source(kb: &Kb, url: &str, keys: &str) {
    let yaml = format!(
        "system: lab\ntransport: {{kind: http, url: '{url}', auth_env: FAKE_TOKEN}}\n\
         select: {{tool: search, {IDS}}}\nread: {{tool: read, id_arg: id}}\n{keys}\n"
    );
    kb.write("lab.yaml", yaml);
}

fn run(kb: &Kb) -> Run {
    let run = kb.run_with(["source", "run", "lab.yaml", "--yes", "--json"], b"", &[("FAKE_TOKEN", Path::new(TOKEN))]);
    assert!(!run.stderr.contains(TOKEN) && !run.text().contains(TOKEN), "{run}");
    run
}

#[test]
fn documents_come_over_http() {
    for scenario in ["plain", "events", "events,chatter", "redirect", "session_needed", "modern", "busy"] {
        let kb = Kb::new();
        let served = Served::start(&kb, scenario);
        write_source(&kb, &served.url, "retries: 10");
        let run = run(&kb).expect_exit(0);
        assert_eq!(counts(&run), [5, 0, 0, 0, 0], "{scenario}");
        drop(served);
        let log = asked(&kb);
        let calls = log.iter().filter(|line| line.starts_with("search ") || line.starts_with("read ")).count();
        assert_eq!(calls, 6, "{scenario}: {log:#?}");
        assert!(log.iter().any(|line| line.ends_with(&format!("authorization: Bearer {TOKEN}"))));
        if scenario == "plain" {
            assert!(log.iter().any(|line| line.starts_with("DELETE ")), "the session is closed: {log:#?}");
        }
    }
}

#[test]
fn what_http_refuses_is_told_without_the_token() {
    for (scenario, reason) in [
        ("401", "the server refused the token of `FAKE_TOKEN`"),
        ("redirect_away", "the server redirects to http://elsewhere.example"),
        ("hang_initialize", "no answer within 1 s"),
        ("select_fails", "the index is away"),
    ] {
        let kb = Kb::new();
        let served = Served::start(&kb, scenario);
        let timeout = if scenario.starts_with("hang") { "timeout: {connect: 1}" } else { "" };
        write_source(&kb, &served.url, timeout);
        let run = run(&kb);
        assert!(run.exit == 1 && run.stderr.contains(reason), "{scenario}\n{run}");
        assert_eq!(kb.run(["status", "--json"]).json()["documents"], 0);
    }
    let kb = Kb::new();
    let served = Served::start(&kb, "plain");
    write_source(&kb, &served.url, "retries: 0");
    drop(served);
    let run = run(&kb);
    assert!(run.exit == 1 && run.stderr.contains("the connection failed"), "{run}");
}

#[test]
fn no_token_reaches_the_database() {
    let kb = Kb::new();
    let served = Served::start(&kb, "echo_token,some_fail");
    write_source(&kb, &served.url, "");
    run(&kb);
    let run = kb.run_with(["source", "add", "lab.yaml"], b"", &[("FAKE_TOKEN", Path::new(TOKEN))]);
    run.expect_exit(0);
    let status = kb.run(["source", "status", "lab", "--json"]).expect_exit(0);
    assert!(status.text().contains("FAKE_TOKEN") && !status.text().contains(TOKEN), "{status}");
}

#[test]
fn old_and_new_revisions_are_spoken() {
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let kb = Kb::new();
        lab(&kb, &format!("plain --version {version}"), "");
        let online = kb.run(["source", "check", "lab.yaml", "--online", "--json"]).expect_exit(0).json();
        assert_eq!(online["online"]["protocol"], version);
        kb.run(["source", "run", "lab.yaml", "--yes"]).expect_exit(0);
    }
    let kb = Kb::new();
    lab(&kb, "modern", "");
    let online = kb.run(["source", "check", "lab.yaml", "--online", "--json"]).expect_exit(0).json();
    assert_eq!(online["online"]["protocol"], "2026-07-28");
    lab(&kb, "plain --version 1999-01-01", "");
    let run = kb.run(["source", "run", "lab.yaml"]);
    assert!(run.exit == 1 && run.stderr.contains("`1999-01-01`"), "{run}");
}
