//! Many clients over HTTP: the streamable transport of both eras, on one thread a connection.
//!
//! ```text
//! wire      HTTP/1.1 on a connection          guard      Host, Origin, token
//! endpoint  POST, GET and DELETE of /mcp      sessions   clients of the older era
//! ```
//!
//! TLS, authorization servers and resuming a stream are deliberately absent: what is to be reached from afar stands
//! behind a proxy that does the first, and a client that lost a stream asks again.
//!
//! **Invariant:** the number of connections and sessions and the length of a request are bounded, whoever calls. An
//! address that other machines can reach is not served without a token.

mod endpoint;
mod guard;
mod sessions;
mod wire;

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;
use std::time::{Duration, Instant};

use self::endpoint::{Endpoint, PATH};
use self::guard::{Guard, LEAST_TOKEN};
use self::sessions::Sessions;
use self::wire::{Fault, Refusal, Wire};
use crate::served::Served;
use crate::server::{Server, Settings};
use crate::wire::{INVALID_REQUEST, RpcError, response};

/// How long the last replies may take to be written.
const LAST_WORDS: Duration = Duration::from_secs(5);
/// The longest time between two looks for idle sessions.
const LOOK: Duration = Duration::from_secs(30);
/// The most connections beyond the bound that are told so at a time.
const TURNED_AWAY: usize = 16;
/// How long is waited after the system refused a connection.
const BREATH: Duration = Duration::from_millis(50);

/// How a base is served over HTTP.
#[derive(Debug, Clone)]
pub struct HttpSettings {
    /// Where to listen; port 0 takes a free one.
    pub address: SocketAddr,
    /// The bearer token that every request has to carry. Needed for an address that is not the machine's own.
    pub token: Option<String>,
    /// Names under which the server may be reached beside `localhost` and addresses.
    pub hosts: Vec<String>,
    /// Origins whose pages may send requests, beside those of this machine.
    pub origins: Vec<String>,
    /// The most bytes of a request.
    pub max_body_bytes: usize,
    /// The most connections at a time.
    pub max_connections: usize,
    /// The most sessions of the older era at a time.
    pub max_sessions: usize,
    /// How long a session may be idle.
    pub idle: Duration,
}

impl HttpSettings {
    /// Returns the usual settings: no token, bodies of 64 MiB, 128 connections, 64 sessions, idle for half an hour.
    pub fn new(address: SocketAddr) -> Self {
        Self {
            address,
            token: None,
            hosts: Vec::new(),
            origins: Vec::new(),
            max_body_bytes: 64 << 20,
            max_connections: 128,
            max_sessions: 64,
            idle: Duration::from_mins(30),
        }
    }
}

/// Why a base is not served over HTTP.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HttpError {
    /// Other machines can reach the address, and there is no token.
    #[error("`{address}` can be reached from other machines, so a bearer token is needed")]
    NeedsToken {
        /// The address.
        address: SocketAddr,
    },
    /// The token is too short or cannot be sent in a header.
    #[error("the bearer token has to be {LEAST_TOKEN} or more visible ASCII characters without blanks")]
    BadToken,
    /// The system gives no such address.
    #[error("cannot listen at `{address}`")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system says.
        source: io::Error,
    },
}

/// A server that listens.
#[derive(Debug)]
pub struct HttpServer {
    listener: TcpListener,
    address: SocketAddr,
    served: Served,
    settings: Settings,
    http: HttpSettings,
    stopper: Stopper,
}

/// What ends a server, from any thread.
#[derive(Debug, Clone)]
pub struct Stopper(Arc<Stop>);

#[derive(Debug)]
struct Stop {
    address: SocketAddr,
    is_stopped: Mutex<bool>,
    changed: Condvar,
}

/// The connections that are open.
#[derive(Debug, Default)]
struct Open {
    streams: Mutex<HashMap<u64, TcpStream>>,
    one_less: Condvar,
    /// Connections that were refused and are told why.
    refused: AtomicUsize,
}

impl HttpServer {
    /// Begins to listen; nothing is answered before [`HttpServer::run`].
    pub fn bind(served: impl Into<Served>, settings: Settings, http: HttpSettings) -> Result<Self, HttpError> {
        let address = http.address;
        match &http.token {
            None if !address.ip().is_loopback() => return Err(HttpError::NeedsToken { address }),
            Some(token) if token.len() < LEAST_TOKEN || !token.bytes().all(|byte| byte.is_ascii_graphic()) => {
                return Err(HttpError::BadToken);
            }
            _ => {}
        }
        let listen = |source| HttpError::Listen { address, source };
        let listener = TcpListener::bind(address).map_err(listen)?;
        let address = listener.local_addr().map_err(listen)?;
        let stop = Stop { address, is_stopped: Mutex::new(false), changed: Condvar::new() };
        Ok(Self { listener, address, served: served.into(), settings, http, stopper: Stopper(Arc::new(stop)) })
    }

    /// Returns the URL of the endpoint.
    pub fn url(&self) -> String {
        format!("http://{}{PATH}", self.address)
    }

    /// Returns what ends the server.
    pub fn stopper(&self) -> Stopper {
        self.stopper.clone()
    }

    /// Serves until it is stopped. Requests that were read are answered before this returns, but for maintenance, which
    /// is cancelled; streams are closed.
    pub fn run(self) {
        let guard =
            Arc::new(Guard::new(self.address, &self.http.hosts, &self.http.origins, self.http.token.as_deref()));
        let (server, _) = Server::start(self.served, self.settings);
        let endpoint = Arc::new(Endpoint {
            server: Arc::clone(&server),
            sessions: Sessions::new(self.http.max_sessions, self.http.idle),
            max_body_bytes: self.http.max_body_bytes,
        });
        let (stopper, idle) = (self.stopper.clone(), self.http.idle);
        let reaped = Arc::clone(&endpoint);
        let reaper = std::thread::spawn(move || {
            while !stopper.wait(LOOK.min(idle / 2)) {
                reaped.sessions.end_idle();
            }
        });
        let open = Arc::new(Open::default());
        loop {
            let accepted = self.listener.accept();
            if self.stopper.is_stopped() {
                break;
            }
            match accepted {
                Ok((stream, _)) => take(stream, &open, self.http.max_connections, &endpoint, &guard),
                // Out of files, or a connection that was given up before it was taken: the others go on.
                Err(_) => std::thread::sleep(BREATH),
            }
        }
        drop(self.listener);
        server.finish();
        endpoint.sessions.end_all();
        open.close();
        // The look for idle sessions ends with the stop.
        let _ = reaper.join();
    }
}

impl Stopper {
    /// Ends the server: no new connection is taken, what was asked is answered.
    pub fn stop(&self) {
        *self.lock() = true;
        self.0.changed.notify_all();
        // Whoever waits for a connection gets one, and sees that it is over.
        let mut address = self.0.address;
        if address.ip().is_unspecified() {
            address.set_ip(match address.ip() {
                IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
                IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
            });
        }
        let _ = TcpStream::connect_timeout(&address, Duration::from_secs(1));
    }

    fn is_stopped(&self) -> bool {
        *self.lock()
    }

    /// Waits; says whether the server was stopped.
    fn wait(&self, patience: Duration) -> bool {
        let state = self.lock();
        *self
            .0
            .changed
            .wait_timeout_while(state, patience, |stopped| !*stopped)
            .unwrap_or_else(PoisonError::into_inner)
            .0
    }

    fn lock(&self) -> MutexGuard<'_, bool> {
        self.0.is_stopped.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    fn lock(&self) -> MutexGuard<'_, HashMap<u64, TcpStream>> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the connections that wait for a request, and waits for those that write a reply.
    fn close(&self) {
        let mut streams = self.lock();
        for stream in streams.values() {
            // One that is gone already is as well.
            let _ = stream.shutdown(Shutdown::Read);
        }
        let began = Instant::now();
        while !streams.is_empty() && began.elapsed() < LAST_WORDS {
            streams = self.one_less.wait_timeout(streams, BREATH).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// Serves a connection on a thread of its own, if there may be one more.
fn take(stream: TcpStream, open: &Arc<Open>, most: usize, endpoint: &Arc<Endpoint>, guard: &Arc<Guard>) {
    let Ok(known) = stream.try_clone() else { return };
    let Ok(wire) = Wire::new(stream) else { return };
    let number = endpoint.server.number();
    {
        let mut streams = open.lock();
        if streams.len() >= most {
            drop(streams);
            turn_away(wire, open);
            return;
        }
        streams.insert(number, known);
    }
    let (mine, endpoint, guard) = (Arc::clone(open), Arc::clone(endpoint), Arc::clone(guard));
    let serve = move || {
        converse(wire, &endpoint, &guard);
        mine.lock().remove(&number);
        mine.one_less.notify_all();
    };
    if Builder::new().name("http".to_owned()).spawn(serve).is_err() {
        open.lock().remove(&number);
    }
}

/// Refuses a connection for which there is no room, without a word where even that is asked of too many at a time.
fn turn_away(wire: Wire, open: &Arc<Open>) {
    if open.refused.fetch_add(1, Ordering::SeqCst) < TURNED_AWAY {
        let counted = Arc::clone(open);
        let tell = move || {
            refuse_and_end(wire, &Refusal::new(503, "there are as many connections as there may be; try again later"));
            counted.refused.fetch_sub(1, Ordering::SeqCst);
        };
        if Builder::new().name("http".to_owned()).spawn(tell).is_ok() {
            return;
        }
    }
    open.refused.fetch_sub(1, Ordering::SeqCst);
}

/// Answers one request after the other, until either side ends the connection.
fn converse(mut wire: Wire, endpoint: &Endpoint, guard: &Guard) {
    loop {
        let head = match wire.head() {
            Ok(head) => head,
            Err(Fault::Gone) => return,
            Err(Fault::Refused(refusal)) => return refuse_and_end(wire, &refusal),
        };
        // Nothing of a request is looked at before it may be.
        if let Err(refusal) = guard.check(&head) {
            return refuse_and_end(wire, &refusal);
        }
        if head.path != PATH {
            return refuse_and_end(wire, &Refusal::new(404, format!("the endpoint is `{PATH}`")));
        }
        let body = match wire.body(&head, endpoint.max_body_bytes) {
            Ok(body) => body,
            Err(Fault::Gone) => return,
            Err(Fault::Refused(refusal)) => return refuse_and_end(wire, &refusal),
        };
        if endpoint.answer(&mut wire, &head, body).is_err() || head.wants_close() || endpoint.server.is_closing() {
            return;
        }
    }
}

fn refuse_and_end(mut wire: Wire, refusal: &Refusal) {
    if refuse(&mut wire, refusal).is_ok() {
        wire.linger();
    }
}

fn refuse(wire: &mut Wire, refusal: &Refusal) -> io::Result<()> {
    let body = response(&serde_json::Value::Null, Err(RpcError::new(INVALID_REQUEST, refusal.reason.as_str())));
    let mut headers = vec![("Content-Type", "application/json"), ("Connection", "close")];
    if refusal.status == 401 {
        headers.push(("WWW-Authenticate", "Bearer"));
    }
    wire.reply(refusal.status, &headers, body.as_bytes())
}
