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

pub(crate) use tokens::Tags;

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
    /// Raised with every change of what comes out, and of the weights that stored bounds were computed under.
    pub const VERSION: u32 = 2;

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
    ///
    /// ```
    /// use kb_search::{Analyzer, Language, Markup};
    ///
    /// let terms = Analyzer::new(Language::English).terms_of("Running `kb-store`", Markup::Markdown);
    /// let written: Vec<_> = terms.iter().map(|placed| (placed.term.text.as_str(), placed.position)).collect();
    /// assert_eq!(written, [("run", 0), ("kb-store", 1), ("kb", 1), ("store", 2)]);
    /// ```
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

    /// Returns the stems that words beginning with a folded `prefix` may have without beginning with it themselves:
    /// `configurat` finds `configur`, the stem of `configuration`. Empty for other scripts and very short prefixes.
    pub fn stems_before(&self, prefix: &str) -> Vec<String> {
        const ENDINGS: [&str; 25] = [
            "", "al", "e", "ed", "ement", "ence", "er", "es", "ful", "ic", "ies", "ing", "ion", "ional", "ions", "ive",
            "ization", "ly", "ment", "n", "ness", "on", "s", "ss", "y",
        ];
        if prefix.len() < 4 || !prefix.bytes().all(|byte| byte.is_ascii_lowercase()) {
            return Vec::new();
        }
        let mut stems: Vec<String> = ENDINGS
            .iter()
            .map(|ending| self.stem(format!("{prefix}{ending}")))
            .filter(|stem| !stem.starts_with(prefix))
            .collect();
        stems.sort_unstable();
        stems.dedup();
        stems
    }

    fn each_term(&self, raw: &str, sink: &mut dyn FnMut(Term, Range<usize>)) -> u32 {
        self.each_form(raw, &mut |kind, offset, range, form| {
            sink(Term { text: self.stem(form), offset, kind }, range);
        })
    }

    /// Calls `sink` with each term before it is stemmed: what it is, where it stands in the token, its bytes and its
    /// folded form. Returns how many positions the token takes.
    pub(crate) fn each_form(&self, raw: &str, sink: &mut dyn FnMut(TermKind, u32, Range<usize>, String)) -> u32 {
        if is_plain_word(raw) {
            sink(TermKind::Word, 0, 0..raw.len(), raw.to_ascii_lowercase());
            return 1;
        }
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
                sink(if part_count == 0 { TermKind::Word } else { TermKind::Whole }, 0, whole, folded);
            }
        }
        let mut offset = 0;
        for segment in &segments {
            if segments.len() > 1 && segment.parts.len() > 1 && segment.range.len() <= MAX_TERM_BYTES {
                sink(TermKind::Inner, offset, segment.range.clone(), self.word(&raw[segment.range.clone()]));
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
        sink: &mut dyn FnMut(TermKind, u32, Range<usize>, String),
    ) {
        let form = self.word(&raw[range.clone()]);
        if form.is_empty() {
            return;
        }
        sink(kind, offset, range.clone(), form);
        if let Some(letters) = &segment.signed {
            sink(TermKind::Inner, offset, letters.clone(), self.word(&raw[letters.clone()]));
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

    /// Returns a folded form as the dictionary holds it.
    pub(crate) fn stem(&self, word: String) -> String {
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

/// Says whether a token is one word of plain letters, at most the first a capital; most are.
fn is_plain_word(raw: &str) -> bool {
    let bytes = raw.as_bytes();
    bytes.len() <= MAX_TERM_BYTES
        && bytes.first().is_some_and(u8::is_ascii_alphabetic)
        && bytes[1..].iter().all(u8::is_ascii_lowercase)
}

/// How a raw token begins, as far as that says how its terms do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PlainStart {
    /// It is all ASCII: so are its terms, and each is a stretch of it but for case, apostrophes and backslashes.
    Ascii,
    /// A unit of an unspaced script that folding leaves alone: its only term begins with this character.
    Unspaced(char),
    /// Folding may change how it begins.
    Other,
}

/// Says how a raw token begins.
pub(crate) fn plain_start(raw: &str) -> PlainStart {
    if raw.is_ascii() {
        return PlainStart::Ascii;
    }
    let mut characters = raw.chars();
    let stable = |c| {
        matches!(c, '\u{4e00}'..='\u{9fff}' | '\u{3041}'..='\u{3096}' | '\u{30a1}'..='\u{30fa}' | '\u{30fc}'
            | '\u{ac00}'..='\u{d7a3}')
    };
    match (characters.next(), characters.next()) {
        (Some(first), None) if stable(first) => PlainStart::Unspaced(first),
        (Some(first), Some(second)) if stable(first) && stable(second) => PlainStart::Unspaced(first),
        _ => PlainStart::Other,
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
