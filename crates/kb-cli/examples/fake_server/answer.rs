//! What is answered to a message, in each scenario.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

/// What comes back.
pub(crate) enum Answer {
    /// Silence.
    Nothing,
    /// These lines, one after the other.
    Lines(Vec<String>),
    /// The server ends.
    Exit,
}

/// What comes of a request: a result, an error with its code, or neither.
enum Outcome {
    Result(Value),
    Error(i64, String),
    Silence,
    End,
}

/// A server and how it behaves.
#[derive(Default)]
pub(crate) struct Server {
    scenarios: Vec<String>,
    /// Documents that there are.
    documents: usize,
    size: usize,
    /// Of so many documents the text is another one.
    changed: usize,
    /// So many documents from the first on are not selected.
    skipped: usize,
    version: Option<String>,
    log: Option<PathBuf>,
    logging: Mutex<()>,
    reads: AtomicUsize,
    /// The file of which another process holds the lock.
    pub(crate) hold: Option<String>,
    pub(crate) over_http: bool,
}

impl Server {
    pub(crate) fn from_arguments(mut arguments: impl Iterator<Item = String>) -> Self {
        let mut server = Self { documents: 5, size: 200, ..Self::default() };
        while let Some(argument) = arguments.next() {
            let mut number = || arguments.next().unwrap().parse().unwrap();
            match argument.as_str() {
                "--n" => server.documents = number(),
                "--size" => server.size = number(),
                "--change" => server.changed = number(),
                "--skip" => server.skipped = number(),
                "--version" => server.version = arguments.next(),
                "--log" => server.log = arguments.next().map(PathBuf::from),
                "--hold" => server.hold = arguments.next(),
                "--http" => server.over_http = true,
                scenarios => server.scenarios = scenarios.split(',').map(str::to_owned).collect(),
            }
        }
        server
    }

    /// Says whether it behaves so.
    pub(crate) fn is(&self, scenario: &str) -> bool {
        self.scenarios.iter().any(|told| told == scenario)
    }

    /// Notes what was asked.
    pub(crate) fn note(&self, line: &str) {
        let Some(path) = &self.log else { return };
        let _guard = self.logging.lock().unwrap();
        let mut file = OpenOptions::new().create(true).append(true).open(path).unwrap();
        writeln!(file, "{line}").unwrap();
    }

    /// Answers a message.
    pub(crate) fn answer(&self, message: &Value) -> Answer {
        let method = message["method"].as_str().unwrap_or_default();
        let params = &message["params"];
        match method {
            "tools/call" => self.note(&format!("{} {}", params["name"].as_str().unwrap(), params["arguments"])),
            _ => self.note(method),
        }
        let Some(id) = message.get("id") else { return Answer::Nothing };
        if self.is(&format!("hang_{method}")) {
            return Answer::Nothing;
        }
        let (key, value) = match self.outcome(method, params) {
            Outcome::Result(result) => ("result", result),
            Outcome::Error(code, message) => ("error", json!({"code": code, "message": message})),
            Outcome::Silence => return Answer::Nothing,
            Outcome::End => return Answer::Exit,
        };
        let id = if self.is("text_ids") { json!(id.to_string()) } else { id.clone() };
        let mut lines = Vec::new();
        if self.is("noise") {
            lines.push("log: about to answer".to_owned());
            lines.push("{\"jsonrpc\":\"2.0\",\"id\":99999,\"result\":{}}".to_owned());
        }
        if self.is("chatter") {
            lines.push(
                json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info"}}).to_string(),
            );
            lines.push(json!({"jsonrpc": "2.0", "id": "q", "method": "ping"}).to_string());
            lines.push(
                json!({"jsonrpc": "2.0", "id": "r", "method": "sampling/createMessage", "params": {}}).to_string(),
            );
        }
        let line = json!({"jsonrpc": "2.0", "id": id, key: value}).to_string();
        // Half of a surrogate pair, which no text of Rust can hold.
        lines.push(line.replace("HALF-A-PAIR", "\\ud800"));
        Answer::Lines(lines)
    }

    fn outcome(&self, method: &str, params: &Value) -> Outcome {
        let modern = self.is("modern");
        match method {
            "initialize" if !modern => {
                let asked = params["protocolVersion"].as_str().unwrap_or("2025-06-18");
                let version = self.version.as_deref().unwrap_or(asked);
                Outcome::Result(json!({
                    "protocolVersion": version, "capabilities": {"tools": {}},
                    "serverInfo": {"name": "fake", "version": "1"},
                }))
            }
            "server/discover" if modern => Outcome::Result(
                json!({"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}),
            ),
            "tools/list" => Outcome::Result(self.tools(params)),
            "ping" => Outcome::Result(json!({})),
            "tools/call" if params["name"] == "search" => self.select(params),
            "tools/call" if params["name"] == "read" => {
                let reads = self.reads.fetch_add(1, Ordering::Relaxed) + 1;
                match () {
                    () if self.is("hang_read") => Outcome::Silence,
                    () if self.is("die_read") && reads >= 3 => Outcome::End,
                    () => self.read(params["arguments"]["id"].as_str().unwrap_or_default(), reads),
                }
            }
            _ => Outcome::Error(-32601, "no such method".to_owned()),
        }
    }

    fn tools(&self, params: &Value) -> Value {
        let read_only = if self.is("writes") { json!({"readOnlyHint": false}) } else { json!({"readOnlyHint": true}) };
        let schema = json!({"type": "object"});
        let mut tools = vec![
            json!({"name": "search", "inputSchema": schema, "annotations": {"readOnlyHint": true}}),
            json!({"name": "delete_all", "inputSchema": schema}),
            json!({"name": "read", "inputSchema": schema, "annotations": read_only}),
        ];
        if self.is("no_hint") {
            for tool in &mut tools {
                tool.as_object_mut().unwrap().remove("annotations");
            }
        }
        if self.is("loop_tools") {
            return json!({"tools": tools, "nextCursor": "same"});
        }
        if self.is("paged_tools") {
            let at: usize = params["cursor"].as_str().map_or(0, |cursor| cursor.parse().unwrap());
            let next = (at + 1 < tools.len()).then(|| (at + 1).to_string());
            return json!({"tools": [tools[at]], "nextCursor": next});
        }
        json!({"tools": tools})
    }

    fn rows(&self) -> Vec<Value> {
        let ids: Option<Vec<String>> = [
            ("blank_ids", vec!["ok.md", "", "   ", ".md"]),
            ("cases", vec!["Docs/A.md", "docs/a.md", "caf\u{e9}", "cafe\u{301}"]),
            ("traversal", vec!["../../etc/passwd", "a/%2e%2e/x", "a\nb", "a\u{7f}b"]),
            ("twice", vec!["a", "b", "a", "a"]),
        ]
        .into_iter()
        .find(|(scenario, _)| self.is(scenario))
        .map(|(_, ids)| ids.into_iter().map(str::to_owned).collect());
        let ids = ids.unwrap_or_else(|| {
            if self.is("long_id") {
                vec![format!("docs/{}", "x".repeat(300))]
            } else {
                (self.skipped..self.documents).map(|n| format!("docs/d{n:05}.md")).collect()
            }
        });
        let mut rows: Vec<Value> = ids
            .iter()
            .map(|id| {
                let title = match id.rsplit_once("/d").and_then(|(_, n)| n.strip_suffix(".md")?.parse::<usize>().ok()) {
                    Some(n) => format!("Title {n}"),
                    None => format!("Title of {id}"),
                };
                let mut row = json!({"id": id, "title": title});
                if self.is("no_titles") {
                    row["title"] = Value::Null;
                }
                if self.is("versions") {
                    row["etag"] = json!(format!("v{}", usize::from(number(id) < self.changed)));
                }
                row
            })
            .collect();
        if self.is("bad_rows") {
            rows.extend([json!({"title": "no id"}), json!("a text"), json!({"id": ["a"]})]);
        }
        rows
    }

    fn select(&self, params: &Value) -> Outcome {
        let rows = self.rows();
        let text = |text: String| json!({"type": "text", "text": text});
        if self.is("select_fails") {
            return Outcome::Error(-32603, "the index is away".to_owned());
        }
        if self.is("select_is_error") {
            return Outcome::Result(json!({"isError": true, "content": [text("no such phrase".to_owned())]}));
        }
        if self.is("nothing") {
            return Outcome::Result(json!({"content": [], "structuredContent": {"results": []}}));
        }
        if self.is("prose") {
            return Outcome::Result(json!({"content": [text("I found a, b and c.".to_owned())]}));
        }
        if self.is("links") {
            let links = rows.iter().map(|row| {
                let id = row["id"].as_str().unwrap();
                json!({"type": "resource_link", "uri": format!("lab://{id}"), "name": id})
            });
            return Outcome::Result(json!({"content": links.collect::<Vec<_>>()}));
        }
        if self.is("json_text") {
            return Outcome::Result(json!({"content": [text(json!({"results": rows}).to_string())]}));
        }
        if self.is("object_rows") {
            return Outcome::Result(json!({"content": [], "structuredContent": {"results": {"id": "a"}}}));
        }
        if self.is("pages") || self.is("endless") || self.is("loop_pages") {
            let at = params["arguments"]["page"].as_str().map_or(0, |page| page.parse().unwrap());
            let page: Vec<_> = if self.is("endless") {
                vec![json!({"id": format!("page{at}")})]
            } else {
                rows.chunks(2).nth(at).map(<[_]>::to_vec).unwrap_or_default()
            };
            let next = match (self.is("endless"), self.is("loop_pages")) {
                (_, true) => Some("0".to_owned()),
                (true, _) => Some((at + 1).to_string()),
                _ => ((at + 1) * 2 < rows.len()).then(|| (at + 1).to_string()),
            };
            return Outcome::Result(
                json!({"content": [], "structuredContent": {"results": page, "meta": {"next": next}}}),
            );
        }
        Outcome::Result(
            json!({"content": [text(json!({"results": rows}).to_string())], "structuredContent": {"results": rows}}),
        )
    }

    fn read(&self, id: &str, reads: usize) -> Outcome {
        if self.is("all_fail") || (self.is("some_fail") && reads.is_multiple_of(3)) {
            return Outcome::Error(-32603, "upstream 503".to_owned());
        }
        if self.is("echo_token") {
            return Outcome::Error(-32603, format!("bad token {}", token()));
        }
        let text = match () {
            () if self.is("token_text") => format!("# Config\n\ntoken: {}\n", token()),
            () if self.is("surrogate") && reads == 1 => "bad HALF-A-PAIR char".to_owned(),
            () if self.is("blank_text") && reads == 1 => " \n".to_owned(),
            () if self.is("markers") => format!(
                "---\ntitle: Not the title\n---\n# A {id}\n\n<!-- kb:end -->\n--- a\n+++ b\n```\n~~~\n\u{1b}[2J\n"
            ),
            () => self.text(id),
        };
        if self.is("tool_error") && reads == 1 {
            return Outcome::Result(json!({"isError": true, "content": [{"type": "text", "text": "not found"}]}));
        }
        if self.is("two_resources") && reads == 1 {
            let resource = json!({"type": "resource", "resource": {"uri": "x", "text": text}});
            return Outcome::Result(json!({"content": [resource, resource]}));
        }
        Outcome::Result(
            json!({"content": [{"type": "text", "text": text}], "structuredContent": {"markdown": text, "title": "Own"}}),
        )
    }

    fn text(&self, id: &str) -> String {
        let n = number(id);
        let mut text = format!("# Document {n}\n\nParagraph about topic {}.\n\n", n % 17);
        let line = format!("Line for document {n}: the quick brown fox jumps over the lazy dog.\n");
        while text.len() + line.len() <= self.size {
            text.push_str(&line);
        }
        if n < self.changed {
            text.push_str("changed\n");
        }
        text
    }
}

fn token() -> String {
    std::env::var("FAKE_TOKEN").unwrap_or_default()
}

fn number(id: &str) -> usize {
    let digits = id.rsplit_once("/d").map_or("", |(_, rest)| rest.trim_end_matches(".md"));
    digits.parse().unwrap_or(0)
}
