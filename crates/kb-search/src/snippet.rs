//! The part of a section that shows best why it was found.
//!
//! The stretch with the most different words of the query (by weight, in forms as typed) and these close together is
//! chosen, then filled up with what stands around it, to the borders of words. White space is folded, control
//! characters are left out, rules of tables and underlines too, and the middle of a long address is a `…`. Markdown
//! is kept as written; of HTML what a reader sees.
//!
//! **Invariant:** an excerpt has at most the characters asked for, is cut between characters only, and its marks lie
//! inside it, in order, not overlapping.

mod visible;

use std::ops::Range;

use kb_core::Snippet;

use crate::analysis::Markup;
use crate::matcher::{Form, Matcher, Place};
use crate::query::Field;

use self::visible::Visible;

/// Widest stretch that is looked at for words together, in characters.
const MAX_STRETCH_CHARS: usize = 1000;

/// A longer stretch without white space and marks is shortened.
const MAX_UNBROKEN_CHARS: usize = 60;

/// An excerpt of a text, and where the words are.
#[derive(Debug, Clone, PartialEq)]
pub struct Excerpt {
    /// The text with the words marked; its line is the one where it begins.
    pub snippet: Snippet,
    /// The line with the most of the words, the first of equals; that of the text if none of them is there.
    pub match_line: u32,
}

/// Returns the part of a text that shows best what the matcher looks for, of at most `max_chars` characters.
///
/// `first_line` is the line in the document where the text begins, from 1. A text without any of the words gives its
/// beginning.
///
/// ```
/// use kb_search::{Analyzer, Language, Markup, Matcher, parse, snippet};
///
/// let analyzer = Analyzer::new(Language::English);
/// let matcher = Matcher::new(&parse("retry limit", &analyzer), &analyzer);
/// let text = "# Requests\n\nThe limit of\nretries is three.\n";
/// let excerpt = snippet(text, Markup::Markdown, &matcher, 1, 30);
/// assert_eq!(excerpt.snippet.text, "The limit of retries is three.");
/// assert_eq!(excerpt.snippet.highlights, [[4, 9], [13, 20]]);
/// assert_eq!((excerpt.snippet.line, excerpt.match_line), (3, 3));
/// ```
pub fn snippet(text: &str, markup: Markup, matcher: &Matcher, first_line: u32, max_chars: usize) -> Excerpt {
    if markup == Markup::Html {
        let visible = Visible::of_html(text);
        return excerpt(&visible.text, Markup::None, matcher, max_chars, |byte| {
            line_at(text, visible.source_of(byte), first_line)
        });
    }
    excerpt(text, markup, matcher, max_chars, |byte| line_at(text, byte, first_line))
}

/// Returns the line, from `first_line`, with the most of the words, in the part that a snippet of usual length shows.
pub fn best_line(text: &str, markup: Markup, matcher: &Matcher, first_line: u32) -> u32 {
    let places = matcher.look_for_telling(text, markup, Field::Body).places;
    let stretch = best_stretch(text, &places, matcher, 200);
    stretch.map_or(first_line, |stretch| line_at(text, best_place(text, &places[stretch], matcher), first_line))
}

fn line_at(text: &str, byte: usize, first_line: u32) -> u32 {
    let before = text.as_bytes().get(..byte).unwrap_or_default();
    first_line.saturating_add(before.iter().map(|&byte| u32::from(byte == b'\n')).sum())
}

fn excerpt(text: &str, markup: Markup, matcher: &Matcher, max_chars: usize, line_of: impl Fn(usize) -> u32) -> Excerpt {
    let places = matcher.look_for_telling(text, markup, Field::Body).places;
    let stretch = best_stretch(text, &places, matcher, max_chars);
    let core = stretch.as_ref().map_or(0..0, |stretch| {
        let places = &places[stretch.clone()];
        let start = places.first().map_or(0, |place| place.range.start);
        start..places.iter().map(|place| place.range.end).max().unwrap_or(start)
    });
    let range = surroundings(text, &core, max_chars);
    let marks = merged(&places, &range);
    let mut writer = Writer { text: String::new(), chars: 0, max_chars, highlights: Vec::new() };
    let begin = writer.write(text, &range, &marks);
    let match_line = line_of(stretch.map_or(begin, |stretch| best_place(text, &places[stretch], matcher)));
    let snippet = Snippet { text: writer.text, highlights: writer.highlights, line: line_of(begin) };
    Excerpt { snippet, match_line }
}

fn form_worth(form: Form) -> f32 {
    match form {
        Form::Exact => 1.0,
        Form::Folded => 0.98,
        Form::Near => 0.9,
        Form::Scattered => 0.5,
    }
}

const FORMS: usize = 4;

/// Returns which places make the best stretch of at most so many characters; the earliest of equals.
fn best_stretch(text: &str, places: &[Place], matcher: &Matcher, max_chars: usize) -> Option<Range<usize>> {
    let first = places.first()?;
    let max_chars = max_chars.min(MAX_STRETCH_CHARS);
    let mut clauses: Vec<usize> = places.iter().map(|place| place.clause).collect();
    clauses.sort_unstable();
    clauses.dedup();
    // Where each place begins and ends, in characters from the first.
    let mut chars = Vec::with_capacity(places.len());
    let (mut byte, mut count) = (first.range.start, 0);
    for place in places {
        count += text[byte..place.range.start].chars().count();
        byte = place.range.start;
        chars.push((count, count + text[place.range.clone()].chars().count()));
    }
    let mut counts = vec![[0_u32; FORMS]; matcher.clause_count()];
    let worth_of = |counts: &[[u32; FORMS]]| -> f32 {
        let worth = |clause: &usize| {
            let best = (0..FORMS).rev().find(|&form| counts[*clause][form] > 0)?;
            let form = [Form::Scattered, Form::Near, Form::Folded, Form::Exact][best];
            Some(matcher.weight(*clause).max(f32::MIN_POSITIVE) * form_worth(form))
        };
        clauses.iter().filter_map(worth).sum()
    };
    let total: f32 = clauses.iter().map(|&clause| matcher.weight(clause)).sum();
    let mut best: Option<(f32, Range<usize>)> = None;
    let mut from = 0;
    for (to, place) in places.iter().enumerate() {
        counts[place.clause][place.form as usize] += 1;
        while from < to && chars[to].1 - chars[from].0 > max_chars {
            counts[places[from].clause][places[from].form as usize] -= 1;
            from += 1;
        }
        let worth = worth_of(&counts);
        // A shorter stretch of the same worth is closer together.
        let mut tight = from;
        while tight < to {
            let slot = &mut counts[places[tight].clause][places[tight].form as usize];
            if *slot < 2 {
                break;
            }
            *slot -= 1;
            tight += 1;
        }
        for dropped in &places[from..tight] {
            counts[dropped.clause][dropped.form as usize] += 1;
        }
        let span = (chars[to].1 - chars[tight].0) as f32 / max_chars.max(1) as f32;
        let worth = worth - 0.1 * total * span.min(1.0);
        if best.as_ref().is_none_or(|(most, _)| worth > *most) {
            best = Some((worth, tight..to + 1));
        }
    }
    best.map(|(_, range)| range)
}

/// Returns where the first word stands in the line, of those that the places are in, with the most of the words.
fn best_place(text: &str, places: &[Place], matcher: &Matcher) -> usize {
    let mut best = (0.0, places.first().map_or(0, |place| place.range.start));
    let mut line = best;
    let mut seen: Vec<usize> = Vec::new();
    let mut before = best.1;
    for place in places {
        if text[before.min(place.range.start)..place.range.start].contains('\n') {
            line = (0.0, place.range.start);
            seen.clear();
        }
        if !seen.contains(&place.clause) {
            seen.push(place.clause);
            line.0 += matcher.weight(place.clause);
        }
        if line.0 > best.0 {
            best = line;
        }
        before = place.range.start;
    }
    best.1
}

/// Returns the bytes of an excerpt around `core`: some of what stands before it, then what stands after.
fn surroundings(text: &str, core: &Range<usize>, max_chars: usize) -> Range<usize> {
    let core_chars = folded_chars(&text[core.clone()]);
    let spare = max_chars.saturating_sub(core_chars);
    let after_chars = folded_chars_up_to(text[core.end..].chars(), spare);
    // A third before, more where the text ends soon.
    let before = (spare / 3).max(spare - after_chars);
    let start = start_before(text, core.start, before);
    let spare = max_chars.saturating_sub(folded_chars(&text[start..core.end]));
    let end = end_after(text, core.end, spare);
    start..end
}

fn folded_chars(text: &str) -> usize {
    folded_chars_up_to(text.chars(), usize::MAX)
}

/// Counts characters, runs of white space as one, up to a limit.
fn folded_chars_up_to(characters: impl Iterator<Item = char>, limit: usize) -> usize {
    let mut count = 0;
    let mut space = false;
    for character in characters {
        if count >= limit {
            break;
        }
        let is_space = is_blank(character);
        count += usize::from(!(is_space && space));
        space = is_space;
    }
    count
}

fn is_blank(character: char) -> bool {
    character.is_whitespace() || character.is_control()
}

/// Returns where an excerpt begins that has at most `spare` characters before `core`: after a blank line or the end
/// of a sentence if one is there, else at a word.
fn start_before(text: &str, core: usize, spare: usize) -> usize {
    let mut count = 0;
    let mut space = false;
    let mut word = core;
    let mut sentence = None;
    let mut after: Option<(usize, char)> = None;
    let mut reached_start = true;
    for (at, character) in text[..core].char_indices().rev() {
        let is_space = is_blank(character);
        if let Some((next, following)) = after {
            let wide_end = matches!(character, '。' | '！' | '？');
            let end = matches!(character, '.' | '!' | '?' | ':') && is_blank(following);
            if wide_end || end || (character == '\n' && following == '\n') {
                // The farthest that fits.
                sentence = Some(next);
            }
            if is_space || wide_end {
                word = next;
            }
        } else if is_space {
            word = core;
        }
        if count >= spare {
            reached_start = false;
            break;
        }
        count += usize::from(!(is_space && space));
        space = is_space;
        after = Some((at, character));
    }
    if reached_start {
        return 0;
    }
    if let Some(sentence) = sentence {
        return sentence;
    }
    // One long run without a border, as in Chinese: any character will do.
    let earliest = after.map_or(core, |(at, _)| at);
    let unbroken = text[word..core].is_empty() && !text[earliest..core].contains(is_blank);
    if unbroken && text[earliest..core].chars().next().is_some_and(|c| !c.is_ascii()) { earliest } else { word }
}

/// Returns where an excerpt ends that has at most `spare` characters after `core`.
fn end_after(text: &str, core: usize, spare: usize) -> usize {
    let mut count = 0;
    let mut space = false;
    let mut word = None;
    for (at, character) in text[core..].char_indices() {
        let is_space = is_blank(character);
        if is_space {
            word = Some(core + at);
        }
        let counts = !(is_space && space);
        if counts && count >= spare {
            let word = word.unwrap_or(core);
            // A border far back is none: a script without spaces, or a very long address.
            let lost = text[word..core + at].chars().count();
            return if lost > 30 || (word == core && !character.is_ascii()) { core + at } else { word };
        }
        count += usize::from(counts);
        space = is_space;
    }
    text.len()
}

/// Returns the bytes to mark inside `range`: those of the places, joined where they touch.
fn merged(places: &[Place], range: &Range<usize>) -> Vec<Range<usize>> {
    let mut marks: Vec<Range<usize>> = Vec::new();
    for place in places {
        let (start, end) = (place.range.start.max(range.start), place.range.end.min(range.end));
        if start >= end {
            continue;
        }
        match marks.last_mut() {
            Some(last) if start <= last.end => last.end = last.end.max(end),
            _ => marks.push(start..end),
        }
    }
    marks
}

struct Writer {
    text: String,
    chars: usize,
    max_chars: usize,
    highlights: Vec<[u32; 2]>,
}

impl Writer {
    /// Writes a range of a text and returns the byte of its first character that is there.
    fn write(&mut self, text: &str, range: &Range<usize>, marks: &[Range<usize>]) -> usize {
        let mut first = None;
        let mut at = range.start;
        let mut marks = marks.iter().peekable();
        while at < range.end {
            let rest = &text[at..range.end];
            let blank = rest.find(|c: char| !is_blank(c)).unwrap_or(rest.len());
            if blank > 0 {
                at += blank;
                continue;
            }
            let end = at + rest.find(is_blank).unwrap_or(rest.len());
            while marks.peek().is_some_and(|mark| mark.end <= at) {
                marks.next();
            }
            let marked = marks.peek().is_some_and(|mark| mark.start < end);
            if !marked && is_rule(&text[at..end]) {
                at = end;
                continue;
            }
            if !self.text.is_empty() && !self.push(' ') {
                break;
            }
            first.get_or_insert(at);
            if marked {
                self.write_marked(text, at..end, &mut marks);
            } else {
                self.write_plain(&text[at..end]);
            }
            at = end;
        }
        self.text.truncate(self.text.trim_end().len());
        first.unwrap_or(range.start)
    }

    fn write_plain(&mut self, word: &str) {
        let is_long = word.is_ascii() && word.len() > MAX_UNBROKEN_CHARS;
        for character in word.chars().take(if is_long { MAX_UNBROKEN_CHARS / 2 } else { usize::MAX }) {
            if !self.push(character) {
                return;
            }
        }
        if is_long {
            self.push('…');
        }
    }

    fn write_marked<'m>(
        &mut self,
        text: &str,
        word: Range<usize>,
        marks: &mut std::iter::Peekable<impl Iterator<Item = &'m Range<usize>>>,
    ) {
        for (offset, character) in text[word.clone()].char_indices() {
            let at = word.start + offset;
            while marks.peek().is_some_and(|mark| mark.end <= at) {
                marks.next();
            }
            let mark = marks.peek().filter(|mark| mark.contains(&at));
            let continues = mark.is_some_and(|mark| mark.start < at && at != word.start);
            let begin = self.chars as u32;
            if !self.push(character) {
                return;
            }
            match (mark, self.highlights.last_mut()) {
                (Some(_), Some(last)) if continues && last[1] == begin => last[1] = begin + 1,
                (Some(_), _) => self.highlights.push([begin, begin + 1]),
                (None, _) => {}
            }
        }
    }

    /// Appends a character if there is room.
    fn push(&mut self, character: char) -> bool {
        if self.chars >= self.max_chars {
            return false;
        }
        self.text.push(character);
        self.chars += 1;
        true
    }
}

/// Says whether a word is a line drawn in signs: of a table, under a heading, between parts.
fn is_rule(word: &str) -> bool {
    word.len() >= 3
        && word.bytes().all(|byte| matches!(byte, b'|' | b'-' | b':' | b'=' | b'*' | b'_' | b'+' | b'~'))
        && (word.contains("---") || word.contains("===") || word.contains("***") || word.contains("|-"))
}

#[cfg(test)]
mod tests;
