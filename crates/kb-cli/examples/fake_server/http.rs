//! The same over HTTP: one request a connection, as little of HTTP as a client needs.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;

use crate::answer::{Answer, Server};

/// Serves until it is ended. The address is the first line of the output.
pub(crate) fn serve(server: &Server) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    println!("http://{}/mcp", listener.local_addr().unwrap());
    let requests = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for stream in listener.incoming().flatten() {
            let requests = &requests;
            scope.spawn(move || {
                // A client that goes away in the middle is no concern of a server.
                let _ = handle(server, &stream, requests.fetch_add(1, Ordering::Relaxed));
            });
        }
    });
}

/// A request, as far as it matters here.
struct Request {
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Request {
    fn read(stream: &TcpStream) -> std::io::Result<Self> {
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let mut words = line.split_whitespace().map(str::to_owned);
        let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let mut headers = Vec::new();
        loop {
            let mut line = String::new();
            reader.read_line(&mut line)?;
            match line.trim_end().split_once(':') {
                Some((name, value)) => headers.push((name.to_lowercase(), value.trim().to_owned())),
                None => break,
            }
        }
        let length =
            headers.iter().find(|(name, _)| name == "content-length").and_then(|(_, value)| value.parse().ok());
        let mut body = vec![0; length.unwrap_or(0)];
        reader.read_exact(&mut body)?;
        Ok(Self { method, path, headers, body })
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

fn handle(server: &Server, stream: &TcpStream, nth: usize) -> std::io::Result<()> {
    let request = Request::read(stream)?;
    let respond = |status: &str, headers: &str, body: &str| {
        let mut stream = stream;
        write!(
            stream,
            "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n{headers}\r\n{body}",
            body.len()
        )
    };
    let authorization = request.header("authorization").unwrap_or("none").to_owned();
    server.note(&format!("{} {} authorization: {authorization}", request.method, request.path));
    if request.method == "DELETE" {
        return respond("200 OK", "", "");
    }
    if server.is("401") {
        return respond("401 Unauthorized", "", &format!("bad token: {authorization}"));
    }
    if server.is("redirect") && request.path == "/mcp" {
        return respond("307 Temporary Redirect", "Location: /there\r\n", "");
    }
    if server.is("redirect_away") {
        return respond("307 Temporary Redirect", "Location: http://elsewhere.example/mcp\r\n", "");
    }
    if server.is("busy") && nth.is_multiple_of(2) {
        return respond("503 Service Unavailable", "Retry-After: 0\r\n", "");
    }
    if server.is("session_needed") && nth > 0 && request.header("mcp-session-id") != Some("s-1") {
        return respond("400 Bad Request", "", "no session");
    }
    let Ok(message) = serde_json::from_slice::<Value>(&request.body) else {
        return respond("400 Bad Request", "", "");
    };
    match server.answer(&message) {
        Answer::Exit => std::process::exit(3),
        Answer::Nothing if message.get("id").is_some() => loop {
            // Silence, for as long as the client likes.
            std::thread::park();
        },
        Answer::Nothing => respond("202 Accepted", "", ""),
        Answer::Lines(lines) if server.is("events") => {
            let events = format!("event: message\r\ndata: {}\r\n\r\n", lines.join("\r\n\r\ndata: "));
            respond("200 OK", "Content-Type: text/event-stream\r\nMcp-Session-Id: s-1\r\n", &events)
        }
        Answer::Lines(lines) => {
            let headers = "Content-Type: application/json\r\nMcp-Session-Id: s-1\r\n";
            respond("200 OK", headers, lines.last().map_or("", String::as_str))
        }
    }
}
