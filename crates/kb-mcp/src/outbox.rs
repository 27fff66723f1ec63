//! What goes out: lines in the order in which they were put, written by one thread.
//!
//! **Invariant:** putting a line never waits for the reader of the output, so that a client that writes all its
//! requests before it reads the first answer is served. A reader that is gone is no error: what is left is dropped.

use std::io::Write;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;

/// Lines that wait to be written.
#[derive(Debug, Clone)]
pub(crate) struct Outbox(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    lines: Vec<u8>,
    is_closed: bool,
    is_broken: bool,
}

impl Outbox {
    /// Starts the thread that writes. It ends once the outbox is closed and empty.
    pub(crate) fn start(mut output: impl Write + Send + 'static) -> (Self, JoinHandle<()>) {
        let shared = Arc::new(Shared::default());
        let outbox = Self(Arc::clone(&shared));
        let writer = std::thread::spawn(move || {
            let mut batch = Vec::new();
            loop {
                {
                    let mut state = shared.state.lock().unwrap_or_else(PoisonError::into_inner);
                    while state.lines.is_empty() && !state.is_closed {
                        state = shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                    }
                    if state.lines.is_empty() {
                        return;
                    }
                    std::mem::swap(&mut batch, &mut state.lines);
                }
                if output.write_all(&batch).and_then(|()| output.flush()).is_err() {
                    let mut state = shared.state.lock().unwrap_or_else(PoisonError::into_inner);
                    (state.is_broken, state.lines) = (true, Vec::new());
                    return;
                }
                batch.clear();
                // A huge answer shall not keep its memory for ever.
                batch.shrink_to(1 << 16);
            }
        });
        (outbox, writer)
    }

    /// Puts a line, given without its end.
    pub(crate) fn put(&self, line: &str) {
        let mut state = self.0.state.lock().unwrap_or_else(PoisonError::into_inner);
        if !state.is_broken {
            state.lines.extend_from_slice(line.as_bytes());
            state.lines.push(b'\n');
            drop(state);
            self.0.changed.notify_one();
        }
    }

    /// Says that nothing more is put.
    pub(crate) fn close(&self) {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner).is_closed = true;
        self.0.changed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::io::{self, Read};

    use super::*;

    #[test]
    fn lines_come_out_in_order_and_none_is_lost_at_the_end() {
        let (mut reader, writer) = io::pipe().unwrap();
        let (outbox, thread) = Outbox::start(writer);
        let lines: Vec<String> = (0..100).map(|i: u32| i.to_string()).collect();
        for line in &lines {
            outbox.put(line);
        }
        outbox.close();
        thread.join().unwrap();
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, lines.join("\n") + "\n");
    }

    #[test]
    fn a_reader_that_is_gone_stops_nothing() {
        let (reader, writer) = io::pipe().unwrap();
        let (outbox, thread) = Outbox::start(writer);
        drop(reader);
        outbox.put("nobody reads this");
        thread.join().unwrap();
        outbox.put("nor this");
        assert!(outbox.0.state.lock().unwrap().lines.is_empty());
    }
}
