//! Text to terms: one analyser for index and query.
//!
//! [`Analyzer::tokens`] cuts text into raw tokens, [`Analyzer::expand`] makes terms of one: folded (case, accents,
//! compatibility forms), whole and by parts, words of Latin letters stemmed (Snowball's English).
//!
//! ```text
//! parseHTMLNode   whole parsehtmlnod@0   parts pars@0 html@1 node@2      3 positions
//! std::HashMap    whole std::hashmap@0   parts std@0 hash@1 map@2   inner hashmap@1
//! --db            whole --db@0           part db@0                       1 position
//! C++             word c++@0             inner c@0
//! 港口夜          港口@0 口夜@1 夜@2     three tokens
//! ```
//!
//! A whole of letters alone is stemmed, so that `createFile` and `createfile` are one term; any other whole is not.
//!
//! **Invariant:** the same text gives the same terms at the same positions, on both sides; a change of that raises
//! [`Analyzer::VERSION`], and a base whose index says another version is indexed again.

mod classes;
mod fold;
mod parts;
mod tokens;

use std::ops::Range;

use frostem::{Algorithm, Stemmer};

/// Longest term in bytes. A longer part stands under its first bytes; a longer whole is found by its parts only.
pub const MAX_TERM_BYTES: usize = 64;

/// A piece of text before it is folded and stemmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawToken<'t> {
    /// The piece, as it stands.
    pub text: &'t str,
    /// Where it starts, in bytes.
    pub start: usize,
}

/// What a term is to the raw token that it was made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TermKind {
    /// The token is one word, and this is it.
    Word,
    /// The whole of a token that has parts.
    Whole,
    /// One part of such a token.
    Part,
    /// Found by it, but does not answer for the token: `hashmap` of `std::HashMap`, `c` of `C++`. In an index only;
    /// the units of a query are without.
    Inner,
}

/// A term as it stands in the dictionary.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Term {
    /// Folded and stemmed.
    pub text: String,
    /// Position relative to the token's first.
    pub offset: u32,
    /// What it is to the token.
    pub kind: TermKind,
}

/// A term with its place in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacedTerm {
    /// The term.
    pub term: Term,
    /// Position in the text.
    pub position: u32,
    /// The bytes that it was made of; not those of the token, if it is a part.
    pub range: Range<usize>,
}

/// How the text is written: what of it is markup and not words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Markup {
    /// Everything is words: plain text, TOML, a query, a title.
    None,
    /// Markdown: the names of entities are not words.
    Markdown,
    /// HTML: tags, comments, scripts, styles and the names of entities are not words.
    Html,
}

/// A language whose words are stemmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Language {
    /// English.
    #[default]
    English,
    /// No stemming.
    None,
}

/// Cuts text into tokens and makes terms of them.
#[derive(Debug, Clone)]
pub struct Analyzer {
    language: Language,
}

impl Analyzer {
    /// Raised with every change of what comes out.
    pub const VERSION: u32 = 1;

    /// Returns an analyser that stems by this language.
    pub fn new(language: Language) -> Self {
        Self { language }
    }

    /// Returns the language that words are stemmed by.
    pub fn language(&self) -> Language {
        self.language
    }

    /// Calls `sink` with each raw token in order; allocates nothing.
    ///
    /// A run of a script without spaces gives a token for each pair of neighbouring units and one for its last unit
    /// alone, so that one unit is found by the terms that begin with it. [`unspaced_units`] tells them apart.
    pub fn tokens<'t>(&self, text: &'t str, markup: Markup, sink: &mut impl FnMut(RawToken<'t>)) {
        tokens::scan(text, markup, sink);
    }

    /// Appends the terms of a raw token to `out` and returns how many positions it takes, at least 1.
    ///
    /// Depends on nothing but `raw`, so that a builder may keep the answer for each distinct token. A token of
    /// nothing but marks has no term.
    pub fn expand(&self, raw: &str, out: &mut Vec<Term>) -> u32 {
        self.each_term(raw, &mut |term, _| out.push(term))
    }

    /// Returns the terms of a text with their positions and places, in the order of the tokens.
    pub fn terms_of(&self, text: &str, markup: Markup) -> Vec<PlacedTerm> {
        let mut terms = Vec::new();
        let mut position = 0;
        self.tokens(text, markup, &mut |raw| {
            let width = self.each_term(raw.text, &mut |term, range| {
                let range = raw.start + range.start..raw.start + range.end;
                terms.push(PlacedTerm { position: position + term.offset, term, range });
            });
            position += width;
        });
        terms
    }

    /// Returns a text with its case, accents and compatibility forms folded, as in terms, but not cut or stemmed.
    pub fn fold(&self, text: &str) -> String {
        let mut folded = String::with_capacity(text.len());
        fold::fold_into(text, &mut folded);
        folded
    }

    fn each_term(&self, raw: &str, sink: &mut dyn FnMut(Term, Range<usize>)) -> u32 {
        let segments = parts::segments(raw);
        let part_count: usize = segments.iter().map(|segment| segment.parts.len()).sum();
        let whole = 0..raw.len();
        if let [segment] = segments.as_slice()
            && segment.parts.len() == 1
            && segment.range == whole
        {
            self.part(raw, segment, &segment.range, TermKind::Word, 0, sink);
            return 1;
        }
        if raw.len() <= 2 * MAX_TERM_BYTES {
            let folded = self.fold(raw);
            // In Markdown a backslash before a sign is not for the reader.
            let folded = if folded.contains('\\') { without_escapes(&folded) } else { folded };
            if folded.len() <= MAX_TERM_BYTES && !folded.is_empty() {
                let kind = if part_count == 0 { TermKind::Word } else { TermKind::Whole };
                sink(Term { text: self.stem(folded), offset: 0, kind }, whole);
            }
        }
        let mut offset = 0;
        for segment in &segments {
            if segments.len() > 1 && segment.parts.len() > 1 && segment.range.len() <= MAX_TERM_BYTES {
                let text = self.stem(self.word(&raw[segment.range.clone()]));
                sink(Term { text, offset, kind: TermKind::Inner }, segment.range.clone());
            }
            for part in &segment.parts {
                self.part(raw, segment, part, TermKind::Part, offset, sink);
                offset += 1;
            }
        }
        offset.max(1)
    }

    /// Emits a part, and the letters of a name that ends in signs.
    fn part(
        &self,
        raw: &str,
        segment: &parts::Segment,
        range: &Range<usize>,
        kind: TermKind,
        offset: u32,
        sink: &mut dyn FnMut(Term, Range<usize>),
    ) {
        let text = self.word(&raw[range.clone()]);
        if text.is_empty() {
            return;
        }
        sink(Term { text: self.stem(text), offset, kind }, range.clone());
        if let Some(letters) = &segment.signed {
            let text = self.stem(self.word(&raw[letters.clone()]));
            sink(Term { text, offset, kind: TermKind::Inner }, letters.clone());
        }
    }

    /// Returns a part folded, without apostrophes and not too long.
    fn word(&self, part: &str) -> String {
        let mut text = self.fold(truncated(part, 4 * MAX_TERM_BYTES));
        if text.contains('\'') {
            text.retain(|character| character != '\'');
        }
        text.truncate(truncated(&text, MAX_TERM_BYTES).len());
        text
    }

    fn stem(&self, word: String) -> String {
        let stems = self.language == Language::English && word.len() > 2;
        if stems && word.bytes().all(|byte| byte.is_ascii_lowercase()) {
            Stemmer::new(Algorithm::English).stem(&word).into_owned()
        } else {
            word
        }
    }
}

/// Returns how many units a raw token of a script without spaces has: 2 for a pair, 1 for one alone, 0 if the token
/// is of another script.
pub fn unspaced_units(raw: &str) -> usize {
    match raw.chars().next() {
        Some(first) if classes::class_of(first) == classes::Class::Unspaced => {
            if classes::unit_len(raw) == raw.len() {
                1
            } else {
                2
            }
        }
        _ => 0,
    }
}

/// Returns the longest beginning of `text` of at most `max` bytes that ends between characters.
fn truncated(text: &str, max: usize) -> &str {
    let mut end = text.len().min(max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

fn without_escapes(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        let escapes = character == '\\' && characters.peek().is_some_and(char::is_ascii_punctuation);
        if escapes {
            out.extend(characters.next());
        } else {
            out.push(character);
        }
    }
    out
}

#[cfg(test)]
mod tests;
