//! Where the lines of a text begin.
//!
//! A line ends with LF, CR LF, or CR alone, as `CommonMark` has it; a form feed or U+2028 ends none.
//!
//! **Invariant:** this counts lines exactly as `comrak` does, since source positions of the syntax tree are turned into
//! byte offsets here.

/// The byte offset of the beginning of each line of a text.
pub(crate) struct Lines {
    starts: Vec<usize>,
    len: usize,
}

impl Lines {
    pub(crate) fn of(text: &str) -> Self {
        let bytes = text.as_bytes();
        let mut starts = vec![0];
        for (i, &byte) in bytes.iter().enumerate() {
            if byte == b'\n' || (byte == b'\r' && bytes.get(i + 1) != Some(&b'\n')) {
                starts.push(i + 1);
            }
        }
        Self { starts, len: bytes.len() }
    }

    /// Returns the offset where the line of this number (from 0) begins; the end of the text for one that is not there.
    pub(crate) fn start(&self, line: usize) -> usize {
        self.starts.get(line).copied().unwrap_or(self.len)
    }

    /// Returns the number (from 0) of the line that holds this offset.
    pub(crate) fn line_at(&self, offset: usize) -> usize {
        self.starts.partition_point(|&start| start <= offset).saturating_sub(1)
    }

    /// Returns line and column in bytes, both from 1, of this offset.
    pub(crate) fn position(&self, offset: usize) -> (u32, u32) {
        let line = self.line_at(offset);
        (line as u32 + 1, (offset - self.starts[line]) as u32 + 1)
    }

    /// Returns the offsets in `from..=to` where a line begins.
    pub(crate) fn starts_within(&self, from: usize, to: usize) -> &[usize] {
        let first = self.starts.partition_point(|&start| start < from);
        let last = self.starts.partition_point(|&start| start <= to);
        &self.starts[first..last.max(first)]
    }
}

/// Returns the offset just after the line that begins at `start`, its end included.
pub(crate) fn next_line(text: &str, start: usize) -> usize {
    let bytes = text.as_bytes();
    match bytes[start..].iter().position(|&b| b == b'\n' || b == b'\r') {
        None => bytes.len(),
        Some(i) if bytes[start + i] == b'\r' && bytes.get(start + i + 1) == Some(&b'\n') => start + i + 2,
        Some(i) => start + i + 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_line_end_counts_once() {
        let text = "a\nb\r\nc\rd\u{c}e\n";
        let lines = Lines::of(text);
        assert_eq!(lines.starts, [0, 2, 5, 7, 11]);
        assert_eq!(lines.position(8), (4, 2));
        assert_eq!(lines.position(text.len()), (5, 1));
        assert_eq!(lines.start(9), text.len());
        assert_eq!(lines.starts_within(2, 7), [2, 5, 7]);
        let mut at = 0;
        for &start in &lines.starts {
            assert_eq!(at, start);
            at = next_line(text, at);
        }
    }
}
