//! Server-sent events: the `data` of each, as the HTML standard has it.
//!
//! **Invariant:** lines of any end and pieces of any size give the same events; memory is bounded by the longest message
//! that is taken.

use std::io::{self, BufRead};

use crate::wire::{Line, Lines};

/// Reads events.
pub(crate) struct Events<R> {
    lines: Lines<R>,
    max_bytes: usize,
}

impl<R: BufRead> Events<R> {
    pub(crate) fn new(input: R, max_bytes: usize) -> Self {
        Self { lines: Lines::new(input, max_bytes), max_bytes }
    }

    /// Returns the data of the next event that has any; `None` at the end.
    pub(crate) fn next(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut data: Option<Vec<u8>> = None;
        loop {
            let mut line = match self.lines.next()? {
                None => return Ok(None),
                Some(Line::TooLong) => return Err(io::Error::new(io::ErrorKind::InvalidData, "an event is too long")),
                Some(Line::Whole(line)) => line,
            };
            if line.last() == Some(&b'\r') {
                line.pop();
            }
            if line.is_empty() {
                if data.is_some() {
                    return Ok(data);
                }
                continue;
            }
            let Some(value) = line.strip_prefix(b"data:") else { continue };
            let value = value.strip_prefix(b" ").unwrap_or(value);
            match &mut data {
                None => data = Some(value.to_vec()),
                Some(data) if data.len() + value.len() < self.max_bytes => {
                    data.push(b'\n');
                    data.extend_from_slice(value);
                }
                Some(_) => return Err(io::Error::new(io::ErrorKind::InvalidData, "an event is too long")),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_what_stands_between_blank_lines() {
        let text = ": hello\r\n\r\nevent: message\r\nid: 1\r\ndata: {\"a\":\r\ndata: 1}\r\n\r\nretry: 5\n\ndata:x\n\ndata: cut off";
        let mut events = Events::new(io::BufReader::with_capacity(3, text.as_bytes()), 100);
        assert_eq!(events.next().unwrap().as_deref(), Some(&b"{\"a\":\n1}"[..]));
        assert_eq!(events.next().unwrap().as_deref(), Some(&b"x"[..]));
        assert_eq!(events.next().unwrap(), None);
        let long = "data: 0123456789\ndata: 0123456789\n\n";
        assert!(Events::new(long.as_bytes(), 18).next().is_err());
    }
}
