//! Sections of plain text: one, or as many parts as its length asks for, each of whole paragraphs where that can be.
//!
//! **Invariant:** nothing in a plain text is markup; only blank lines mean anything.

use super::{Parsed, Sections};
use crate::lines::{Lines, next_line};

/// The longest first line, in characters, that is taken for a title.
const MAX_TITLE_CHARS: usize = 120;

pub(super) fn parse(source: &str) -> Parsed {
    let lines = Lines::of(source);
    let mut sections = Sections::new(source, &lines);
    sections.begin(0, None, 0);
    let mut paragraphs = Vec::new();
    let mut after_blank = false;
    let mut at = 0;
    while at < source.len() {
        let next = next_line(source, at);
        let blank = source[at..next].trim().is_empty();
        if after_blank && !blank {
            paragraphs.push(at);
        }
        after_blank = blank;
        at = next;
    }
    Parsed { title: title(source), sections: sections.finish(&paragraphs), ..Parsed::default() }
}

/// Returns the first line that is not blank, unless it is too long for a title.
fn title(source: &str) -> Option<String> {
    let trimmed = source.trim_start_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
    let line = trimmed[..next_line(trimmed, 0)].trim_end();
    (!line.is_empty() && line.chars().nth(MAX_TITLE_CHARS).is_none()).then(|| line.to_owned())
}
