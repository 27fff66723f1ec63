//! Where the words of a query stand in a text, with what is around them.
//!
//! **Invariant:** a context is cut between characters, and has at most [`AROUND`] of them on either side of the word.

use std::ops::Range;

use kb_search::{Analyzer, Markup, Term};

use crate::index::analyzer;

/// Characters on either side of a word.
const AROUND: usize = 50;
/// Contexts of a word in a chapter.
const CONTEXTS: usize = 3;

/// The words of a query.
pub(super) struct Words {
    analyzer: Analyzer,
    words: Vec<Word>,
}

struct Word {
    typed: String,
    folded: String,
    terms: Vec<String>,
}

impl Words {
    pub(super) fn new(typed: &[String]) -> Self {
        let analyzer = analyzer();
        let word = |typed: &String| {
            let bare = typed.trim_matches(['"', '*', '+', '-', ':']);
            Word { typed: typed.clone(), folded: analyzer.fold(bare), terms: terms(&analyzer, bare) }
        };
        Self { words: typed.iter().map(word).collect(), analyzer: analyzer.clone() }
    }

    /// Returns the words that stand in a text, each with its first few contexts.
    pub(super) fn places(&self, text: &str) -> Vec<(String, Vec<String>)> {
        let mut found: Vec<Vec<Range<usize>>> = vec![Vec::new(); self.words.len()];
        self.analyzer.tokens(text, Markup::Markdown, &mut |token| {
            let folded = self.analyzer.fold(token.text);
            let mut own: Option<Vec<String>> = None;
            for (word, places) in self.words.iter().zip(&mut found).filter(|(_, places)| places.len() < CONTEXTS) {
                let begins = !word.folded.is_empty() && folded.starts_with(&word.folded);
                let mut is_form = || {
                    let own = own.get_or_insert_with(|| terms(&self.analyzer, token.text));
                    word.terms.iter().any(|term| own.contains(term))
                };
                if begins || is_form() {
                    places.push(token.start..token.start + token.text.len());
                }
            }
        });
        let mut listed = Vec::new();
        for (word, places) in self.words.iter().zip(found) {
            let places = if places.is_empty() { inside(text, &word.typed) } else { places };
            if !places.is_empty() {
                listed.push((word.typed.clone(), places.into_iter().map(|place| context(text, place)).collect()));
            }
        }
        listed
    }
}

fn terms(analyzer: &Analyzer, text: &str) -> Vec<String> {
    let mut terms: Vec<Term> = Vec::new();
    analyzer.expand(text, &mut terms);
    terms.into_iter().map(|term| term.text).collect()
}

/// Returns the first places where a word, in lower case, stands as it is.
fn inside(text: &str, word: &str) -> Vec<Range<usize>> {
    let is_here = |at: usize| {
        let mut rest = text[at..].char_indices();
        let mut wanted = word.chars();
        loop {
            let Some(expected) = wanted.next() else { return Some(at..at + rest.offset()) };
            let (_, c) = rest.next()?;
            if !c.to_lowercase().eq(std::iter::once(expected)) {
                return None;
            }
        }
    };
    text.char_indices().filter_map(|(at, _)| is_here(at)).take(CONTEXTS).collect()
}

fn context(text: &str, place: Range<usize>) -> String {
    let start = text[..place.start].char_indices().rev().nth(AROUND - 1).map_or(0, |(at, _)| at);
    let end = text[place.end..].char_indices().nth(AROUND).map_or(text.len(), |(at, _)| place.end + at);
    let inner: Vec<&str> = text[start..end].split_whitespace().collect();
    let (before, after) = (if start > 0 { "..." } else { "" }, if end < text.len() { "..." } else { "" });
    [before, &inner.join(" "), after].concat()
}
