//! A client over HTTP that writes requests byte by byte and reads replies as they come.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread::JoinHandle;
use std::time::SystemTime;

use kb_mcp::{HttpServer, HttpSettings, Settings, Stopper};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::client::{PATIENCE, open};

/// A server on a free port of this machine, and the folder of its base.
pub(crate) struct Http {
    pub(crate) dir: TempDir,
    pub(crate) address: SocketAddr,
    stopper: Stopper,
    thread: Option<JoinHandle<()>>,
}

/// A reply whose head was read.
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: BTreeMap<String, String>,
    reader: BufReader<TcpStream>,
}

impl Http {
    pub(crate) fn start() -> Self {
        Self::start_with(|_, _| {})
    }

    pub(crate) fn start_with(adjust: impl FnOnce(&mut Settings, &mut HttpSettings)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut settings = Settings::new(SystemTime::now);
        let mut http = HttpSettings::new("127.0.0.1:0".parse().unwrap());
        adjust(&mut settings, &mut http);
        let server = HttpServer::bind(open(&dir.path().join("kb")), settings, http).unwrap();
        let address = server.url().strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap().parse().unwrap();
        let stopper = server.stopper();
        Self { dir, address, stopper, thread: Some(std::thread::spawn(move || server.run())) }
    }

    /// Sends a request over a connection of its own, which ends with the reply.
    pub(crate) fn send(&self, method: &str, headers: &[(&str, &str)], body: &str) -> Reply {
        let mut text = format!("{method} /mcp HTTP/1.1\r\nContent-Length: {}\r\n", body.len());
        let usual = [
            ("Host", "localhost"),
            ("Connection", "close"),
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
        ];
        let is_given = |name: &str| headers.iter().any(|(given, _)| given.eq_ignore_ascii_case(name));
        for (name, value) in usual.iter().filter(|(name, _)| !is_given(name)).chain(headers) {
            text.extend([name, ": ", value, "\r\n"]);
        }
        self.raw(format!("{text}\r\n{body}").as_bytes())
    }

    /// Sends bytes, and reads the head of what comes back.
    pub(crate) fn raw(&self, bytes: &[u8]) -> Reply {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(bytes).unwrap();
        Reply::read(BufReader::new(stream))
    }

    pub(crate) fn post(&self, headers: &[(&str, &str)], message: &Value) -> Reply {
        self.send("POST", headers, &message.to_string())
    }

    /// Sends `initialize` and returns the id of the session.
    pub(crate) fn open(&self, capabilities: &Value) -> String {
        let client = json!({"name": "test", "version": "1"});
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": client});
        let reply = self.post(&[], &request("initialize", params));
        assert_eq!(reply.status, 200);
        let id = reply.headers["mcp-session-id"].clone();
        assert_eq!(reply.json()["result"]["protocolVersion"], "2025-11-25");
        id
    }

    /// Opens a session of the older era and returns its id.
    pub(crate) fn session(&self, capabilities: &Value) -> String {
        let id = self.open(capabilities);
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        assert_eq!(self.post(&[("Mcp-Session-Id", &id)], &initialized).status, 202);
        id
    }

    /// Calls a tool in a session, and returns its structured content.
    pub(crate) fn call(&self, session: &str, tool: &str, arguments: Value) -> Value {
        let call = request("tools/call", json!({"name": tool, "arguments": arguments}));
        let reply = self.post(&[("Mcp-Session-Id", session)], &call);
        assert_eq!(reply.status, 200);
        reply.json()["result"]["structuredContent"].clone()
    }

    /// Sends a request of the newer era with the headers that it has to have.
    pub(crate) fn newer(&self, method: &str, mut params: Value) -> Reply {
        params["_meta"]["io.modelcontextprotocol/protocolVersion"] = "2026-07-28".into();
        params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
        let name = params["name"].as_str().or(params["uri"].as_str()).unwrap_or_default().to_owned();
        let mut headers = vec![("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", method)];
        if !name.is_empty() {
            headers.push(("Mcp-Name", &name));
        }
        self.post(&headers, &request(method, params))
    }

    /// Stops the server and waits for its end.
    pub(crate) fn stop(&mut self) {
        self.stopper.stop();
        self.thread.take().unwrap().join().unwrap();
    }
}

impl Drop for Http {
    fn drop(&mut self) {
        if self.thread.is_some() && !std::thread::panicking() {
            self.stop();
        }
    }
}

impl Reply {
    fn read(mut reader: BufReader<TcpStream>) -> Self {
        let line = read_line(&mut reader);
        let status = line.split(' ').nth(1).and_then(|status| status.parse().ok());
        let mut headers = BTreeMap::new();
        loop {
            let line = read_line(&mut reader);
            let Some((name, value)) = line.split_once(':') else { break };
            headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
        }
        Self { status: status.unwrap_or_else(|| panic!("no status: {line:?}")), headers, reader }
    }

    /// Reads the body as JSON.
    pub(crate) fn json(mut self) -> Value {
        self.body()
    }

    /// Reads the body, and the head of the next reply on the same connection.
    pub(crate) fn next(mut self) -> Self {
        self.body();
        Self::read(self.reader)
    }

    fn body(&mut self) -> Value {
        assert_eq!(self.headers["content-type"], "application/json");
        let mut body = vec![0; self.headers["content-length"].parse().unwrap()];
        self.reader.read_exact(&mut body).unwrap();
        serde_json::from_slice(&body).unwrap()
    }

    /// Reads the next message of a stream of events; `None` at its end.
    pub(crate) fn event(&mut self) -> Option<Value> {
        assert_eq!(self.headers["content-type"], "text/event-stream");
        loop {
            let size = usize::from_str_radix(&read_line(&mut self.reader), 16).expect("the size of a chunk");
            let mut chunk = vec![0; size + 2];
            self.reader.read_exact(&mut chunk).unwrap();
            if size == 0 {
                return None;
            }
            let text = String::from_utf8(chunk).unwrap();
            if let Some(data) = text.lines().find_map(|line| line.strip_prefix("data: ")) {
                return Some(serde_json::from_str(data).unwrap());
            }
        }
    }
}

pub(crate) fn request(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}

fn read_line(reader: &mut impl BufRead) -> String {
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    line.trim_end().to_owned()
}
