//! A client that writes lines and waits for answers.

use std::io::{self, BufRead, BufReader, PipeWriter, Write};
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use kb_mcp::{Served, Settings, serve};
use kb_store::{KnowledgeBase, Options, ProjectStore};
use serde_json::{Value, json};
use tempfile::TempDir;

/// How long an answer may take before the test fails.
pub(crate) const PATIENCE: Duration = Duration::from_mins(3);

pub(crate) fn open(dir: &Path) -> KnowledgeBase {
    let mut options = Options::new(SystemTime::now);
    options.wait = Settings::LOCK_WAIT;
    match KnowledgeBase::open(dir, options.clone()) {
        Ok(base) => base,
        Err(_) => KnowledgeBase::create(dir, options).unwrap(),
    }
}

pub(crate) fn projects(home: &Path) -> ProjectStore {
    let mut options = Options::new(SystemTime::now);
    options.wait = Settings::LOCK_WAIT;
    ProjectStore::open(home, options).unwrap()
}

pub(crate) struct Client {
    pub(crate) dir: TempDir,
    input: Option<PipeWriter>,
    messages: Receiver<Value>,
    server: Option<JoinHandle<io::Result<()>>>,
    next_id: i64,
    is_modern: bool,
    capabilities: Value,
    /// Messages without an id that came while an answer was waited for.
    pub(crate) notices: Vec<Value>,
}

impl Client {
    /// Starts a server; nothing is sent yet.
    pub(crate) fn start() -> Self {
        Self::start_with(|_| {})
    }

    pub(crate) fn start_with(adjust: impl FnOnce(&mut Settings)) -> Self {
        Self::start_in(tempfile::tempdir().unwrap(), adjust)
    }

    /// Starts a server on the base `kb` in a folder.
    pub(crate) fn start_in(dir: TempDir, adjust: impl FnOnce(&mut Settings)) -> Self {
        let served = open(&dir.path().join("kb")).into();
        Self::serving(dir, served, adjust)
    }

    /// Starts a server of project knowledge alone, whose home is `home` in a folder, and opens the older era.
    pub(crate) fn of_projects(dir: TempDir, adjust: impl FnOnce(Served) -> Served) -> Self {
        let served = adjust(projects(&dir.path().join("home")).into());
        let mut client = Self::serving(dir, served, |_| {});
        client.initialize("2025-11-25", &json!({}));
        client
    }

    /// Starts a server of what is given.
    pub(crate) fn serving(dir: TempDir, served: Served, adjust: impl FnOnce(&mut Settings)) -> Self {
        let mut settings = Settings::new(SystemTime::now);
        adjust(&mut settings);
        let (input, client_input) = io::pipe().unwrap();
        let (client_output, output) = io::pipe().unwrap();
        let server = std::thread::spawn(move || serve(served, settings, input, output));
        let (sender, messages) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(client_output).lines() {
                let message = serde_json::from_str(&line.unwrap()).expect("every line is JSON");
                if sender.send(message).is_err() {
                    break;
                }
            }
        });
        Self {
            dir,
            input: Some(client_input),
            messages,
            server: Some(server),
            next_id: 1,
            is_modern: false,
            capabilities: json!({}),
            notices: Vec::new(),
        }
    }

    /// Starts a server and opens the older era.
    pub(crate) fn legacy(capabilities: &Value) -> Self {
        let mut client = Self::start();
        client.initialize("2025-11-25", capabilities);
        client
    }

    /// Starts a server to be spoken to in the newer era.
    pub(crate) fn modern(capabilities: Value) -> Self {
        Self { is_modern: true, capabilities, ..Self::start() }
    }

    pub(crate) fn initialize(&mut self, version: &str, capabilities: &Value) -> Value {
        let client = json!({"name": "test", "version": "1"});
        let params = json!({"protocolVersion": version, "capabilities": capabilities, "clientInfo": client});
        let result = self.request("initialize", params);
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        result["result"].clone()
    }

    pub(crate) fn send(&mut self, message: &Value) {
        self.send_raw(format!("{message}\n").as_bytes());
    }

    pub(crate) fn send_raw(&mut self, bytes: &[u8]) {
        self.input.as_mut().unwrap().write_all(bytes).unwrap();
    }

    /// Sends a request and returns its id.
    pub(crate) fn post(&mut self, method: &str, mut params: Value) -> i64 {
        let id = self.next_id;
        self.next_id += 1;
        if self.is_modern {
            params["_meta"]["io.modelcontextprotocol/protocolVersion"] = "2026-07-28".into();
            params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = self.capabilities.clone();
        }
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    /// Sends a request and returns the whole answer.
    pub(crate) fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.post(method, params);
        self.answer(&id.into())
    }

    /// Calls a tool and returns its result.
    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let answer = self.request("tools/call", json!({"name": tool, "arguments": arguments}));
        assert!(answer.get("result").is_some(), "{answer}");
        answer["result"].clone()
    }

    /// Calls a tool that has to succeed, and returns its structured content.
    pub(crate) fn done(&mut self, tool: &str, arguments: Value) -> Value {
        let result = self.call(tool, arguments);
        assert_eq!(result["isError"], false, "{tool}: {result}");
        result["structuredContent"].clone()
    }

    /// Calls a tool that has to fail, and returns what it says.
    pub(crate) fn failed(&mut self, tool: &str, arguments: Value) -> Value {
        let result = self.call(tool, arguments);
        assert_eq!(result["isError"], true, "{tool}: {result}");
        result["structuredContent"].clone()
    }

    /// Waits for the answer to an id.
    pub(crate) fn answer(&mut self, id: &Value) -> Value {
        loop {
            let message = self.next();
            if message.get("method").is_none() && message["id"] == *id {
                return message;
            }
            self.notices.push(message);
        }
    }

    /// Waits for a message with this method, or finds it among those that came.
    pub(crate) fn notice(&mut self, method: &str) -> Value {
        if let Some(at) = self.notices.iter().position(|message| message["method"] == method) {
            return self.notices.remove(at);
        }
        loop {
            let message = self.next();
            if message["method"] == method {
                return message;
            }
            self.notices.push(message);
        }
    }

    pub(crate) fn next(&mut self) -> Value {
        self.messages.recv_timeout(PATIENCE).expect("a message comes")
    }

    /// Ends the input and returns all that still came, once the server has ended.
    pub(crate) fn end(&mut self) -> Vec<Value> {
        drop(self.input.take());
        self.server.take().unwrap().join().unwrap().unwrap();
        let mut rest = std::mem::take(&mut self.notices);
        rest.extend(self.messages.iter());
        rest
    }
}

/// A log that can be read while it is written.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<(Mutex<Vec<u8>>, Condvar)>);

impl Log {
    /// Makes a log: one end to be written, one to be read.
    pub(crate) fn pair() -> (Self, Self) {
        let log = Self::default();
        (log.clone(), log)
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.0.0.lock().unwrap().clone()).unwrap()
    }

    /// Waits for the first line.
    pub(crate) fn wait(&self) {
        let (text, changed) = &*self.0;
        let waited = changed.wait_timeout_while(text.lock().unwrap(), PATIENCE, |text| !text.ends_with(b"\n")).unwrap();
        assert!(!waited.1.timed_out(), "no call was written down");
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.0.lock().unwrap().extend_from_slice(bytes);
        self.0.1.notify_all();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
