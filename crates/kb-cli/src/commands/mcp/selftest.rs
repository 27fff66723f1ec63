//! `kb mcp --selftest`: starts the server as a client would, and tries what it offers.
//!
//! **Invariant:** the database is made for the test in the system's temporary folder and removed after it; no other is
//! touched.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::{Value, json};

use crate::commands::Context;
use crate::failure::{Exit, Failure};

/// How long one answer may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// One thing that was tried.
#[derive(Debug, Serialize)]
struct Trial {
    name: &'static str,
    ok: bool,
    milliseconds: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
}

/// All that was tried.
#[derive(Debug, Serialize)]
struct Report {
    ok: bool,
    trials: Vec<Trial>,
}

pub(crate) fn run(context: &mut Context) -> Result<Exit, Failure> {
    let folder = std::env::temp_dir().join(format!("kb-selftest-{}", std::process::id()));
    std::fs::create_dir(&folder).map_err(|error| Failure::io("create", &folder, &error))?;
    let folder = Folder(folder);
    let mut server = Server::start(&folder.0.join("kb"))?;
    let trials = try_all(&mut server);
    let report = Report { ok: trials.iter().all(|trial| trial.ok), trials };
    context.output.result(&report, |out| {
        for trial in &report.trials {
            let word = if trial.ok { "ok    " } else { "FAILED" };
            writeln!(out, "{word}  {:<22} {:>8.1} ms", trial.name, trial.milliseconds)?;
            if let Some(detail) = &trial.detail {
                writeln!(out, "        {detail}")?;
            }
        }
        Ok(())
    })?;
    Ok(if report.ok { Exit::Done } else { Exit::Failed })
}

fn try_all(server: &mut Server) -> Vec<Trial> {
    let mut trials = Vec::new();
    let mut attempt = |name, outcome: &mut dyn FnMut() -> Result<bool, String>| {
        let began = Instant::now();
        let outcome = outcome();
        let milliseconds = (began.elapsed().as_secs_f64() * 10_000.0).round() / 10.0;
        let ok = outcome == Ok(true);
        trials.push(Trial { name, ok, milliseconds, detail: outcome.err() });
    };
    let opening = json!({
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "kb-selftest", "version": "1"},
    });
    attempt("initialize", &mut || Ok(server.request("initialize", &opening)?["serverInfo"]["name"] == "kb"));
    attempt("tools", &mut || {
        Ok(server.request("tools/list", &json!({}))?["tools"].as_array().is_some_and(|tools| tools.len() == 17))
    });
    attempt("learn", &mut || {
        let text = "# Pumps\n\nThe valve opens at six.\n";
        Ok(server.call("learn", &json!({"content": text, "docid": "pumps"}))?["docid"] == "pumps")
    });
    attempt("search", &mut || Ok(server.call("search", &json!({"query": "valve"}))?["hits"][0]["docid"] == "pumps"));
    attempt("retrieve", &mut || {
        let document = server.call("retrieve", &json!({"docid": "pumps"}))?;
        Ok(document["sections"].to_string().contains("opens at six"))
    });
    attempt("prompts", &mut || {
        server.call("skill-learn", &json!({"name": "sum", "description": "Sums up", "body": "Sum {{doc}}."}))?;
        let prompt = server.request("prompts/get", &json!({"name": "sum", "arguments": {"doc": "it"}}))?;
        Ok(prompt["messages"][0]["content"]["text"] == "Sum it.")
    });
    attempt("resources", &mut || {
        let read = server.request("resources/read", &json!({"uri": "kbdb://document/pumps"}))?;
        Ok(read["contents"][0]["mimeType"] == "application/json")
    });
    attempt("completions", &mut || {
        let reference = json!({"type": "ref/resource", "uri": "kbdb://document/{docid}"});
        let params = json!({"ref": reference, "argument": {"name": "docid", "value": "pu"}});
        Ok(server.request("completion/complete", &params)?["completion"]["values"][0] == "pumps")
    });
    attempt("check", &mut || Ok(server.call("check", &json!({}))?["ok"] == true));
    attempt("protocol 2026-07-28", &mut || {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        Ok(server.request("server/discover", &json!({"_meta": meta}))?["supportedVersions"][0] == "2026-07-28")
    });
    attempt("end with the input", &mut || server.end());
    trials
}

/// A folder that goes when the test is over.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        // What cannot be removed is left to the system, which cleans its temporary folder.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A server in a process of its own.
struct Server {
    child: Child,
    input: Option<ChildStdin>,
    messages: Receiver<Value>,
    next_id: u64,
}

impl Server {
    fn start(database: &Path) -> Result<Self, Failure> {
        let program = std::env::current_exe().map_err(|error| Failure::io("find", Path::new("kb"), &error))?;
        let mut child = Command::new(&program)
            .args(["--quiet", "mcp", "--db"])
            .arg(database)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| Failure::io("start", &program, &error))?;
        let input = child.stdin.take();
        let output = child.stdout.take();
        let (sender, messages) = channel();
        std::thread::spawn(move || {
            for line in output.into_iter().flat_map(|output| BufReader::new(output).lines()) {
                let Ok(line) = line else { break };
                // A line that is no JSON is told of as such: it is a fault of the server.
                let message = serde_json::from_str(&line).unwrap_or(Value::String(line));
                if sender.send(message).is_err() {
                    break;
                }
            }
        });
        Ok(Self { child, input, messages, next_id: 1 })
    }

    fn request(&mut self, method: &str, params: &Value) -> Result<Value, String> {
        let id = self.next_id;
        self.next_id += 1;
        let line = format!("{}\n", json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        let input = self.input.as_mut().ok_or("the input is closed")?;
        input.write_all(line.as_bytes()).map_err(|error| format!("the server does not read: {error}"))?;
        loop {
            let message = self.messages.recv_timeout(PATIENCE).map_err(|_| "no answer in ten seconds".to_owned())?;
            if message.is_string() {
                return Err(format!("stdout carries something else than messages: {message}"));
            }
            if message["id"] == id {
                let failure = message.get("error").map(|error| error["message"].to_string());
                return failure.map_or_else(|| Ok(message["result"].clone()), Err);
            }
        }
    }

    fn call(&mut self, tool: &str, arguments: &Value) -> Result<Value, String> {
        let result = self.request("tools/call", &json!({"name": tool, "arguments": arguments}))?;
        let answer = result["structuredContent"].clone();
        if result["isError"] == true { Err(answer["message"].to_string()) } else { Ok(answer) }
    }

    /// Closes the input and waits for the process to end.
    fn end(&mut self) -> Result<bool, String> {
        drop(self.input.take());
        let began = Instant::now();
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return Ok(status.success() && began.elapsed() < Duration::from_secs(1)),
                Ok(None) if began.elapsed() < PATIENCE => std::thread::sleep(Duration::from_millis(5)),
                Ok(None) => return Err("it is still running after ten seconds".to_owned()),
                Err(error) => return Err(error.to_string()),
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Nothing to do where it has ended, as it should have.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
