//! HTTP/1.1 on one connection: requests in, replies and event streams out.
//!
//! Request lines, headers and chunk sizes are parsed by `httparse`. What a message means is not known here. HTTP/1.0,
//! trailers with a meaning, upgrades and transfer codings other than `chunked` are deliberately absent.
//!
//! **Invariant:** nothing is read beyond its bound or its deadline, and where two readers could disagree on the end of
//! a body (two lengths, a length beside chunks) the request is refused and the connection closed.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use httparse::{EMPTY_HEADER, Status};

/// The most bytes of a request line with its headers.
const MAX_HEAD: usize = 32 << 10;
const MAX_HEADERS: usize = 100;
/// How long a connection may stay open without a request.
const KEEP: Duration = Duration::from_secs(90);
/// How long the head of a request may take once it has begun.
const HEAD_TIME: Duration = Duration::from_secs(15);
/// How long a body may take, and for each further MiB of it.
const BODY_TIME: Duration = Duration::from_secs(30);
/// How long a reply may wait for its reader.
const WRITE_TIME: Duration = Duration::from_secs(30);
/// What is read and thrown away of a refused request, so that the reply is not lost with the connection.
const LINGER_BYTES: usize = 4 << 20;
const LINGER_TIME: Duration = Duration::from_secs(2);

/// The first part of a request.
#[derive(Debug)]
pub(super) struct Head {
    pub(super) method: String,
    /// Without a query.
    pub(super) path: String,
    /// Names in lower case.
    headers: Vec<(String, Vec<u8>)>,
    body: BodyKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BodyKind {
    Length(u64),
    Chunked,
}

/// Why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) status: u16,
    pub(super) reason: String,
}

impl Refusal {
    pub(super) fn new(status: u16, reason: impl Into<String>) -> Self {
        Self { status, reason: reason.into() }
    }
}

/// Why there is no request to answer.
#[derive(Debug)]
pub(super) enum Fault {
    /// The connection is over, or silent for too long.
    Gone,
    /// What came is no request that is served.
    Refused(Refusal),
}

impl From<io::Error> for Fault {
    fn from(_: io::Error) -> Self {
        Self::Gone
    }
}

/// One connection.
#[derive(Debug)]
pub(super) struct Wire {
    stream: TcpStream,
    /// Bytes that were read and not used yet.
    buffer: Vec<u8>,
}

impl Head {
    /// Returns the one value of a header; an error where it is given more than once or is no text.
    pub(super) fn header(&self, name: &str) -> Result<Option<&str>, Refusal> {
        let mut values = self.headers.iter().filter(|(known, _)| known == name).map(|(_, value)| value);
        let Some(value) = values.next() else { return Ok(None) };
        if values.next().is_some() {
            return Err(Refusal::new(400, format!("the header `{name}` is given more than once")));
        }
        let is_text = |byte: &u8| *byte == b'\t' || (0x20..0x7f).contains(byte);
        match std::str::from_utf8(value) {
            Ok(text) if value.iter().all(is_text) => Ok(Some(text.trim())),
            _ => Err(Refusal::new(400, format!("the header `{name}` holds what is no visible ASCII"))),
        }
    }

    /// Says whether a header with a list of words holds one of these, in any case.
    pub(super) fn lists(&self, name: &str, wanted: &[&str]) -> bool {
        let values = self.headers.iter().filter(|(known, _)| known == name);
        let words = values.flat_map(|(_, value)| value.split(|byte| *byte == b','));
        words
            .map(|word| word.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii())
            .any(|word| wanted.iter().any(|wanted| word.eq_ignore_ascii_case(wanted.as_bytes())))
    }

    /// Says whether the client wants the connection to end with the reply.
    pub(super) fn wants_close(&self) -> bool {
        self.lists("connection", &["close"])
    }
}

impl Wire {
    pub(super) fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(WRITE_TIME))?;
        Ok(Self { stream, buffer: Vec::new() })
    }

    /// Reads the next request up to its body.
    pub(super) fn head(&mut self) -> Result<Head, Fault> {
        let mut deadline = Instant::now() + KEEP;
        let mut has_begun = false;
        loop {
            if !self.buffer.is_empty() {
                if !has_begun {
                    (has_begun, deadline) = (true, Instant::now() + HEAD_TIME);
                }
                if let Some((head, used)) = parse_head(&self.buffer).map_err(Fault::Refused)? {
                    self.buffer.drain(..used);
                    return Ok(head);
                }
                if self.buffer.len() >= MAX_HEAD {
                    return Err(Fault::Refused(Refusal::new(431, format!("the headers exceed {MAX_HEAD} bytes"))));
                }
            }
            self.fill(deadline)?;
        }
    }

    /// Reads the body of a request.
    pub(super) fn body(&mut self, head: &Head, max_bytes: usize) -> Result<Vec<u8>, Fault> {
        let too_large = || Fault::Refused(Refusal::new(413, format!("the body is longer than {max_bytes} bytes")));
        if let BodyKind::Length(len) = head.body
            && len > max_bytes as u64
        {
            return Err(too_large());
        }
        if head.lists("expect", &["100-continue"]) && self.buffer.is_empty() {
            self.stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
        }
        let began = Instant::now();
        let deadline = |read: usize| began + BODY_TIME * (1 + (read >> 20) as u32);
        match head.body {
            BodyKind::Length(len) => {
                let len = len as usize;
                while self.buffer.len() < len {
                    self.fill(deadline(self.buffer.len()))?;
                }
                let rest = self.buffer.split_off(len);
                Ok(std::mem::replace(&mut self.buffer, rest))
            }
            BodyKind::Chunked => {
                let mut body = Vec::new();
                loop {
                    let size = self.chunk_size(deadline(body.len()))?;
                    if size > (max_bytes - body.len()) as u64 {
                        return Err(too_large());
                    }
                    let size = size as usize;
                    if size == 0 {
                        break;
                    }
                    while self.buffer.len() < size + 2 {
                        self.fill(deadline(body.len() + self.buffer.len()))?;
                    }
                    if &self.buffer[size..size + 2] != b"\r\n" {
                        return Err(Fault::Refused(Refusal::new(400, "a chunk does not end where it says")));
                    }
                    body.extend_from_slice(&self.buffer[..size]);
                    self.buffer.drain(..size + 2);
                }
                // What stands after the last chunk is read and not looked at.
                while !self.line(deadline(body.len()))?.is_empty() {}
                Ok(body)
            }
        }
    }

    fn chunk_size(&mut self, deadline: Instant) -> Result<u64, Fault> {
        loop {
            match httparse::parse_chunk_size(&self.buffer) {
                Ok(Status::Complete((used, size))) => {
                    self.buffer.drain(..used);
                    return Ok(size);
                }
                Ok(Status::Partial) if self.buffer.len() < MAX_HEAD => self.fill(deadline)?,
                _ => return Err(Fault::Refused(Refusal::new(400, "the size of a chunk cannot be read"))),
            }
        }
    }

    /// Reads up to the next line end; returns the line without it.
    fn line(&mut self, deadline: Instant) -> Result<Vec<u8>, Fault> {
        loop {
            if let Some(at) = self.buffer.windows(2).position(|pair| pair == b"\r\n") {
                let mut line: Vec<u8> = self.buffer.drain(..at + 2).collect();
                line.truncate(at);
                return Ok(line);
            }
            if self.buffer.len() >= MAX_HEAD {
                return Err(Fault::Refused(Refusal::new(431, format!("the trailers exceed {MAX_HEAD} bytes"))));
            }
            self.fill(deadline)?;
        }
    }

    fn fill(&mut self, deadline: Instant) -> Result<(), Fault> {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(Fault::Gone);
        }
        self.stream.set_read_timeout(Some(left))?;
        let before = self.buffer.len();
        self.buffer.resize(before + (16 << 10), 0);
        let read = loop {
            match self.stream.read(&mut self.buffer[before..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other,
            }
        };
        self.buffer.truncate(before + read.as_ref().copied().unwrap_or(0));
        match read {
            Ok(0) | Err(_) => Err(Fault::Gone),
            Ok(_) => Ok(()),
        }
    }

    /// Says whether the client has closed the connection.
    pub(super) fn is_gone(&self) -> bool {
        if self.stream.set_nonblocking(true).is_err() {
            return true;
        }
        let peeked = self.stream.peek(&mut [0]);
        let restored = self.stream.set_nonblocking(false);
        let is_open = match peeked {
            Ok(0) => false,
            Ok(_) => true,
            Err(error) => matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted),
        };
        !is_open || restored.is_err()
    }

    /// Writes a whole reply.
    pub(super) fn reply(&mut self, status: u16, headers: &[(&str, &str)], body: &[u8]) -> io::Result<()> {
        let mut bytes = start(status, headers);
        // A reply of 204 has no length either.
        if status != 204 {
            bytes.extend_from_slice(format!("Content-Length: {}\r\n", body.len()).as_bytes());
        }
        bytes.extend_from_slice(b"\r\n");
        bytes.extend_from_slice(body);
        self.stream.write_all(&bytes)
    }

    /// Begins a stream of events.
    pub(super) fn begin_events(&mut self, headers: &[(&str, &str)]) -> io::Result<()> {
        let mut bytes = start(200, headers);
        bytes.extend_from_slice(
            b"Content-Type: text/event-stream\r\nCache-Control: no-store\r\nX-Accel-Buffering: no\r\n\
              Transfer-Encoding: chunked\r\n\r\n",
        );
        self.stream.write_all(&bytes)
    }

    /// Writes a message as an event.
    pub(super) fn event(&mut self, message: &str) -> io::Result<()> {
        // A message has no line ends of its own.
        self.chunk(&format!("event: message\ndata: {message}\n\n"))
    }

    /// Writes what no client looks at, so that nobody on the way takes the stream for dead.
    pub(super) fn keep_alive(&mut self) -> io::Result<()> {
        self.chunk(":\n\n")
    }

    fn chunk(&mut self, text: &str) -> io::Result<()> {
        self.stream.write_all(format!("{:x}\r\n{text}\r\n", text.len()).as_bytes())
    }

    /// Ends a stream of events; the connection goes on.
    pub(super) fn end_events(&mut self) -> io::Result<()> {
        self.stream.write_all(b"0\r\n\r\n")
    }

    /// Ends a connection on which more may be coming than was read.
    pub(super) fn linger(mut self) {
        // Where the other side is gone there is nothing to be saved.
        let _ = self.stream.shutdown(Shutdown::Write);
        let deadline = Instant::now() + LINGER_TIME;
        let mut read = 0;
        while read < LINGER_BYTES {
            self.buffer.clear();
            if self.fill(deadline).is_err() {
                return;
            }
            read += self.buffer.len();
        }
    }
}

fn start(status: u16, headers: &[(&str, &str)]) -> Vec<u8> {
    let mut text = format!("HTTP/1.1 {status} {}\r\n", reason(status));
    for (name, value) in headers {
        text.extend([name, ": ", value, "\r\n"]);
    }
    text.into_bytes()
}

const fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        202 => "Accepted",
        204 => "No Content",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        406 => "Not Acceptable",
        409 => "Conflict",
        413 => "Content Too Large",
        415 => "Unsupported Media Type",
        417 => "Expectation Failed",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        503 => "Service Unavailable",
        505 => "HTTP Version Not Supported",
        _ => "Bad Request",
    }
}

/// Reads the head of a request; `None` where it is not all there.
fn parse_head(bytes: &[u8]) -> Result<Option<(Head, usize)>, Refusal> {
    let mut headers = [EMPTY_HEADER; MAX_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    let used = match request.parse(bytes) {
        Ok(Status::Partial) => return Ok(None),
        Ok(Status::Complete(used)) => used,
        Err(httparse::Error::TooManyHeaders) => {
            return Err(Refusal::new(431, format!("there are more than {MAX_HEADERS} headers")));
        }
        Err(httparse::Error::Version) => return Err(Refusal::new(505, "only HTTP/1.1 is served")),
        Err(error) => return Err(Refusal::new(400, format!("this is no HTTP request: {error}"))),
    };
    if request.version != Some(1) {
        return Err(Refusal::new(505, "only HTTP/1.1 is served"));
    }
    let path = request.path.unwrap_or_default().split('?').next().unwrap_or_default().to_owned();
    let headers = request.headers.iter().map(|header| (header.name.to_ascii_lowercase(), header.value.to_vec()));
    let method = request.method.unwrap_or_default().to_owned();
    let mut head = Head { method, path, headers: headers.collect(), body: BodyKind::Length(0) };
    let length = match head.header("content-length")? {
        None => None,
        Some(text) if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) => {
            Some(text.parse().map_err(|_| Refusal::new(413, "the body is longer than can be counted"))?)
        }
        Some(_) => return Err(Refusal::new(400, "`Content-Length` is not a number")),
    };
    head.body = match (length, head.header("transfer-encoding")?) {
        (Some(_), Some(_)) => return Err(Refusal::new(400, "`Content-Length` stands beside `Transfer-Encoding`")),
        (length, None) => BodyKind::Length(length.unwrap_or(0)),
        (None, Some(coding)) if coding.eq_ignore_ascii_case("chunked") => BodyKind::Chunked,
        (None, Some(_)) => return Err(Refusal::new(501, "only the transfer coding `chunked` is served")),
    };
    Ok(Some((head, used)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(request: &str) -> Option<u16> {
        parse_head(request.as_bytes()).err().map(|refusal| refusal.status)
    }

    #[test]
    fn what_two_readers_could_read_in_two_ways_is_refused() {
        let post = |headers: &str| format!("POST /mcp HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n");
        assert_eq!(status(&post("Content-Length: 3\r\nContent-Length: 4\r\n")), Some(400));
        assert_eq!(status(&post("Content-Length: 3\r\nTransfer-Encoding: chunked\r\n")), Some(400));
        assert_eq!(status(&post("Transfer-Encoding: gzip, chunked\r\n")), Some(501));
        for length in ["+3", "0x3", "3, 3", "", "-1"] {
            assert_eq!(status(&post(&format!("Content-Length: {length}\r\n"))), Some(400), "{length}");
        }
        assert_eq!(status(&post("Content-Length: 99999999999999999999\r\n")), Some(413));
        assert_eq!(status("POST /mcp HTTP/1.0\r\n\r\n"), Some(505));
        assert_eq!(status("\u{0} /\r\n\r\n"), Some(400));
        assert_eq!(status(&post("Content-Length: 3\r\n")), None);
    }

    #[test]
    fn a_head_is_read_once_it_is_all_there() {
        let text = "POST /mcp?x=1 HTTP/1.1\r\nACCEPT: application/json;q=1,\ttext/Event-Stream\r\n\r\nbody";
        for cut in 0..text.len() - "body".len() {
            assert!(parse_head(&text.as_bytes()[..cut]).unwrap().is_none(), "{cut}");
        }
        let (head, used) = parse_head(text.as_bytes()).unwrap().unwrap();
        assert_eq!((head.method.as_str(), head.path.as_str(), &text[used..]), ("POST", "/mcp", "body"));
        assert!(head.lists("accept", &["text/event-stream"]) && head.lists("accept", &["application/json"]));
        assert!(!head.lists("accept", &["application/xml"]));
    }
}
