//! One client on a pipe: one message a line each way.
//!
//! **Invariant:** every line that was read is answered before [`serve`] returns, also the last one where it has no end.

use std::io::{self, BufReader, Read, Write};
use std::time::{Duration, Instant};

use crate::connection::Connection;
use crate::outbox::Outbox;
use crate::served::Served;
use crate::server::{Server, Settings};
use crate::wire::{Lines, parse};

/// How long the last answers may take to be read.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// Serves a knowledge base, project knowledge, or both to one client until the input ends.
///
/// One message a line each way. Every request that was read is answered before this returns, but for maintenance, which
/// is cancelled. Fails only where the input cannot be read; an output that nobody reads is no failure.
pub fn serve(
    served: impl Into<Served>,
    settings: Settings,
    input: impl Read,
    output: impl Write + Send + 'static,
) -> io::Result<()> {
    let max_line_bytes = settings.max_line_bytes;
    let (outbox, inbox) = Outbox::new();
    let writer = inbox.write_to(output);
    let (server, watcher) = Server::start(served.into(), settings);
    let connection = Connection::new(&server, outbox.clone());
    let mut lines = Lines::new(BufReader::with_capacity(1 << 16, input), max_line_bytes);
    let outcome = loop {
        match lines.next() {
            Ok(Some(line)) => {
                if let Some(message) = parse(&line, max_line_bytes) {
                    connection.receive(message, &outbox);
                }
            }
            Ok(None) => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    server.finish();
    outbox.close();
    let closed = Instant::now();
    // A client that has stopped reading is not waited for.
    while !(writer.is_finished() && watcher.is_finished()) && closed.elapsed() < LAST_WORDS {
        std::thread::sleep(Duration::from_millis(1));
    }
    outcome
}
