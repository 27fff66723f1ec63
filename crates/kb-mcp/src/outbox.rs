//! Messages on their way to a client: who has something to say puts a line, one thread writes the lines out.
//!
//! A client on a pipe has one outbox. A client over HTTP has one for each request, which its answer and what is told of
//! it go through, and one for the stream that it may keep open.
//!
//! **Invariant:** lines come out in the order in which they were put, whole. Nobody who puts one ever waits: what an
//! unread bounded outbox cannot hold is dropped, and so is all that is put once nobody reads. The reader hears of the
//! end when it was said or every sender is gone, and has had all lines by then.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::Value;

use crate::reply::Reply;
use crate::wire::{RpcError, response};

/// Where a line may be put.
#[derive(Debug, Clone)]
pub(crate) struct Outbox {
    sender: Sender<Item>,
    waiting: Arc<AtomicUsize>,
    most: usize,
}

/// Where the lines come out.
#[derive(Debug)]
pub(crate) struct Inbox {
    receiver: Receiver<Item>,
    waiting: Arc<AtomicUsize>,
    is_over: bool,
}

#[derive(Debug)]
enum Item {
    Line(String),
    Answer(String, Option<i64>),
    End,
}

/// What a look into an inbox found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// A line, without its end: a notice, or a question of ours.
    Line(String),
    /// The answer to a request, with the code of its error.
    Answer(String, Option<i64>),
    /// None came in time.
    Nothing,
    /// None will come.
    Over,
}

impl Outbox {
    /// Makes an outbox in which any number of lines may wait.
    pub(crate) fn new() -> (Self, Inbox) {
        Self::of_at_most(usize::MAX)
    }

    /// Makes an outbox in which so many lines may wait; what is put beyond is dropped.
    pub(crate) fn of_at_most(most: usize) -> (Self, Inbox) {
        let (sender, receiver) = channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        let inbox = Inbox { receiver, waiting: Arc::clone(&waiting), is_over: false };
        (Self { sender, waiting, most }, inbox)
    }

    /// Puts a notice or a question, a line given without its end.
    pub(crate) fn put(&self, line: String) {
        self.send(Item::Line(line));
    }

    /// Puts the answer to a request.
    pub(crate) fn answer(&self, id: &Value, outcome: Result<Reply, RpcError>) {
        let code = outcome.as_ref().err().map(|error| error.code);
        self.send(Item::Answer(response(id, outcome), code));
    }

    fn send(&self, item: Item) {
        if self.waiting.fetch_add(1, Ordering::SeqCst) >= self.most || self.sender.send(item).is_err() {
            self.waiting.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// Says that nothing more is put, whoever still could.
    pub(crate) fn close(&self) {
        // Nobody may be reading any more.
        let _ = self.sender.send(Item::End);
    }
}

impl Inbox {
    /// Waits for the next line.
    pub(crate) fn next(&mut self, patience: Duration) -> Next {
        if self.is_over {
            return Next::Over;
        }
        match self.receiver.recv_timeout(patience) {
            Ok(Item::Line(line)) => {
                self.waiting.fetch_sub(1, Ordering::SeqCst);
                Next::Line(line)
            }
            Ok(Item::Answer(line, code)) => {
                self.waiting.fetch_sub(1, Ordering::SeqCst);
                Next::Answer(line, code)
            }
            Err(RecvTimeoutError::Timeout) => Next::Nothing,
            Ok(Item::End) | Err(RecvTimeoutError::Disconnected) => {
                self.is_over = true;
                Next::Over
            }
        }
    }

    /// Starts a thread that writes one line after the other. It ends with the lines, or once the output fails.
    pub(crate) fn write_to(mut self, mut output: impl Write + Send + 'static) -> JoinHandle<()> {
        std::thread::spawn(move || {
            let mut batch = Vec::new();
            while !self.is_over {
                let Ok(item) = self.receiver.recv() else { return };
                self.take(item, &mut batch);
                // What waits already goes out with it in one write.
                while !self.is_over
                    && let Ok(item) = self.receiver.try_recv()
                {
                    self.take(item, &mut batch);
                }
                if output.write_all(&batch).and_then(|()| output.flush()).is_err() {
                    return;
                }
                batch.clear();
                // A huge answer shall not keep its memory for ever.
                batch.shrink_to(1 << 16);
            }
        })
    }

    fn take(&mut self, item: Item, batch: &mut Vec<u8>) {
        match item {
            Item::Line(line) | Item::Answer(line, _) => {
                self.waiting.fetch_sub(1, Ordering::SeqCst);
                batch.extend_from_slice(line.as_bytes());
                batch.push(b'\n');
            }
            Item::End => self.is_over = true,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{self, Read};

    use super::*;

    #[test]
    fn lines_come_out_in_order_and_none_is_lost_at_the_end() {
        let (mut reader, writer) = io::pipe().unwrap();
        let (outbox, inbox) = Outbox::new();
        let thread = inbox.write_to(writer);
        let lines: Vec<String> = (0..100).map(|i: u32| i.to_string()).collect();
        for line in &lines {
            outbox.put(line.clone());
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
        let (outbox, inbox) = Outbox::new();
        let thread = inbox.write_to(writer);
        drop(reader);
        outbox.put("nobody reads this".to_owned());
        thread.join().unwrap();
        outbox.put("nor this".to_owned());
        assert!(outbox.waiting.load(Ordering::SeqCst) <= 1);
    }

    #[test]
    fn the_end_is_heard_when_every_sender_is_gone() {
        let (outbox, mut inbox) = Outbox::new();
        let other = outbox.clone();
        drop(outbox);
        other.put("last".to_owned());
        drop(other);
        let patience = Duration::from_secs(20);
        assert_eq!(inbox.next(patience), Next::Line("last".to_owned()));
        assert_eq!((inbox.next(patience), inbox.next(patience)), (Next::Over, Next::Over));
    }

    #[test]
    fn a_bounded_outbox_drops_what_it_cannot_hold() {
        let (outbox, mut inbox) = Outbox::of_at_most(2);
        for line in ["a", "b", "c"] {
            outbox.put(line.to_owned());
        }
        assert_eq!(inbox.next(Duration::ZERO), Next::Line("a".to_owned()));
        outbox.put("d".to_owned());
        drop(outbox);
        let rest: Vec<Next> = (0..3).map(|_| inbox.next(Duration::ZERO)).collect();
        assert_eq!(rest, [Next::Line("b".to_owned()), Next::Line("d".to_owned()), Next::Over]);
    }
}
