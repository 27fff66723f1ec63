//! Text to terms: one analyser for index and query.
//!
//! **Invariant:** the same text gives the same terms at the same positions, on both sides; a change of that raises
//! [`Analyzer::VERSION`], and a base whose index says another version is indexed again.

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

/// How the text is written: what of it is markup and not words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Markup {
    /// Everything is words: plain text, TOML, a query, a title.
    None,
    /// Markdown.
    Markdown,
    /// HTML: tags, comments, scripts and styles are not words.
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

    /// Calls `sink` with each raw token in order; allocates nothing.
    pub fn tokens<'t>(&self, text: &'t str, _markup: Markup, sink: &mut impl FnMut(RawToken<'t>)) {
        for word in text.split_whitespace() {
            let start = word.as_ptr() as usize - text.as_ptr() as usize;
            sink(RawToken { text: word, start });
        }
    }

    /// Appends the terms of a raw token to `out` and returns how many positions it takes, at least 1.
    ///
    /// Depends on nothing but `raw`, so that a builder may keep the answer for each distinct token.
    pub fn expand(&self, raw: &str, out: &mut Vec<Term>) -> u32 {
        let _ = self.language;
        out.push(Term { text: raw.to_lowercase(), offset: 0, kind: TermKind::Word });
        1
    }
}
