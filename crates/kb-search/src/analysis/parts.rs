//! Where a raw token comes apart: at separators, at changes of case, between letters and digits.
//!
//! **Invariant:** parts are cut on the text as it stands, so that each has its place in it; they are in order, do not
//! overlap, and none is empty.

use std::ops::Range;

use unicode_normalization::char::is_combining_mark;

use super::classes::{Class, class_of, is_ignorable};

/// Suffixes that make one word with what stands before the apostrophe (`can't`, `we'll`).
const CONTRACTIONS: [&str; 6] = ["t", "re", "ve", "ll", "d", "m"];

/// A stretch between separators.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Segment {
    /// Where, in bytes of the token.
    pub range: Range<usize>,
    /// The name of a language, tool or the like that ends in signs (`C++`, `F#`): where its letters are.
    pub signed: Option<Range<usize>>,
    /// Its parts; one if it does not come apart.
    pub parts: Vec<Range<usize>>,
}

/// Returns the segments of a raw token.
pub(super) fn segments(raw: &str) -> Vec<Segment> {
    let mut segments = Vec::new();
    let mut start = None;
    let mut characters = raw.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        let continues = match class_of(character) {
            Class::Apostrophe => start.is_some() && joins_contraction(&raw[at + character.len_utf8()..]),
            Class::Word => character != '_',
            Class::Unspaced => true,
            _ => false,
        };
        match (start, continues) {
            (None, true) => start = Some(at),
            (Some(from), false) => {
                start = None;
                let letters = from..at;
                let signs = signs_after(&raw[letters.clone()], &raw[at..]);
                for _ in 1..signs {
                    characters.next();
                }
                segments.push(segment(raw, letters, signs));
            }
            _ => {}
        }
    }
    if let Some(from) = start {
        segments.push(segment(raw, from..raw.len(), 0));
    }
    segments
}

/// Returns how many bytes of `rest` belong to the name before it: `++` after a letter, `#` after a single letter.
pub(super) fn signs_after(name: &str, rest: &str) -> usize {
    let last = name.bytes().next_back();
    if !last.is_some_and(|byte| byte.is_ascii_alphabetic()) {
        0
    } else if rest.starts_with("++") {
        2
    } else {
        usize::from(name.len() == 1 && rest.starts_with('#'))
    }
}

fn joins_contraction(rest: &str) -> bool {
    let end = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
    CONTRACTIONS.iter().any(|suffix| suffix.eq_ignore_ascii_case(&rest[..end]))
}

fn segment(raw: &str, letters: Range<usize>, signs: usize) -> Segment {
    if signs > 0 {
        let range = letters.start..letters.end + signs;
        return Segment { parts: vec![range.clone()], range, signed: Some(letters) };
    }
    let parts = split_case(&raw[letters.clone()]);
    let parts = parts.into_iter().map(|part| letters.start + part.start..letters.start + part.end).collect();
    Segment { range: letters, signed: None, parts }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    Upper,
    Lower,
    Digit,
}

/// Cuts `parseHTMLNode` and `utf8` into parts. What would come to crumbs, as a hash does, stays whole.
fn split_case(text: &str) -> Vec<Range<usize>> {
    let mut cuts: Vec<usize> = vec![0];
    let mut before: Option<Shape> = None;
    let mut upper_run = 0;
    let mut upper_at = 0;
    let mut count = 0;
    for (at, character) in text.char_indices() {
        let shape =
            if is_combining_mark(character) || is_ignorable(character) || class_of(character) == Class::Apostrophe {
                continue;
            } else if character.is_numeric() {
                Shape::Digit
            } else if character.is_uppercase() {
                Shape::Upper
            } else {
                Shape::Lower
            };
        match (before, shape) {
            (Some(Shape::Lower), Shape::Upper)
            | (Some(Shape::Digit), Shape::Upper | Shape::Lower)
            | (Some(Shape::Upper | Shape::Lower), Shape::Digit) => cuts.push(at),
            // The last capital of a row begins the next word, but the plural of an acronym (`URLs`) is one word.
            (Some(Shape::Upper), Shape::Lower) if upper_run > 1 && !is_plural_end(&text[at..]) => cuts.push(upper_at),
            _ => {}
        }
        upper_run = if shape == Shape::Upper { upper_run + 1 } else { 0 };
        upper_at = at;
        count += 1;
        before = Some(shape);
    }
    if cuts.len() >= 5 && count < 3 * cuts.len() {
        cuts.truncate(1);
    }
    let ends = cuts.iter().skip(1).copied().chain([text.len()]);
    cuts.iter().zip(ends).map(|(&start, end)| start..end).collect()
}

fn is_plural_end(rest: &str) -> bool {
    let mut characters = rest.chars();
    characters.next() == Some('s') && !characters.next().is_some_and(char::is_lowercase)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(raw: &str) -> Vec<&str> {
        segments(raw).into_iter().flat_map(|segment| segment.parts).map(|part| &raw[part]).collect()
    }

    #[test]
    fn tokens_come_apart_where_a_reader_sees_it() {
        for (raw, expected) in [
            ("parseHTMLNode", vec!["parse", "HTML", "Node"]),
            ("retryWithJitter", vec!["retry", "With", "Jitter"]),
            ("flush_ring_buffer", vec!["flush", "ring", "buffer"]),
            ("LAW-0077", vec!["LAW", "0077"]),
            ("--db", vec!["db"]),
            ("v1.2.3", vec!["v", "1", "2", "3"]),
            ("utf8", vec!["utf", "8"]),
            ("URLs", vec!["URLs"]),
            ("APIsAndIDs", vec!["APIs", "And", "IDs"]),
            ("C++", vec!["C++"]),
            ("C++17", vec!["C++", "17"]),
            ("C#", vec!["C#"]),
            ("page#top", vec!["page", "top"]),
            ("can't", vec!["can't"]),
            ("l'heure", vec!["l", "heure"]),
            ("@scope/pkg", vec!["scope", "pkg"]),
            ("std::HashMap", vec!["std", "Hash", "Map"]),
            ("E\u{301}cole", vec!["E\u{301}cole"]),
            ("d41d8cd98f00b204", vec!["d41d8cd98f00b204"]),
            ("a.b", vec!["a", "b"]),
        ] {
            assert_eq!(parts(raw), expected, "{raw}");
        }
    }
}
