//! What a person typed, read as a query.
//!
//! **Invariant:** every text is a query; none is an error. What a clause asks for is analysed as documents are.

mod light_words;
mod parser;
mod stop_words;

pub use parser::{MAX_CLAUSES, parse, parse_phrase};

use crate::analysis::Term;

/// Whether a clause has to match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Occur {
    /// Counts towards the score; how many must match is for the mode to say.
    Should,
    /// `+word`: has to match.
    Must,
    /// `-word`: must not match.
    MustNot,
}

/// A part of a section that a word can be asked for in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Field {
    /// The document's title.
    Title,
    /// The heading path.
    Heading,
    /// Tags, aliases, description and other front matter.
    Tags,
    /// The section's text.
    Body,
}

/// One raw token of the query with its terms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unit {
    /// As typed.
    pub raw: String,
    /// As the analyser expands it, without [`TermKind::Inner`](crate::TermKind::Inner): it matches if its word or whole does, or all its
    /// parts do at their offsets.
    pub terms: Vec<Term>,
    /// How many positions it takes.
    pub width: u32,
    /// A word that says little; it weighs less and is the first to be dropped.
    pub stop: bool,
    /// A word that qualifies others or frames the question; it weighs less, but is looked for.
    pub light: bool,
}

/// What has to be found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClauseKind {
    /// A word.
    Word(Unit),
    /// Words next to each other, in this order, in these very forms.
    Phrase(Vec<Unit>),
    /// A beginning of a word, folded, not stemmed.
    Prefix(String),
}

/// One part of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clause {
    /// Whether it has to match.
    pub occur: Occur,
    /// Where; `None` is anywhere.
    pub field: Option<Field>,
    /// What.
    pub kind: ClauseKind,
    /// As typed, for messages.
    pub typed: String,
}

/// Which documents are looked at. A value that ends in `*` is a beginning.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filters {
    /// Tags, folded: a document has each of them.
    pub tags: Vec<String>,
    /// Tags that it has none of, folded.
    pub not_tags: Vec<String>,
    /// Media types or kinds, folded: it is of one of them.
    pub types: Vec<String>,
    /// Those that it is not of, folded.
    pub not_types: Vec<String>,
    /// Sources, as typed: it comes from one of them.
    pub sources: Vec<String>,
    /// Those that it does not come from.
    pub not_sources: Vec<String>,
    /// Docids, as typed: it is one of them.
    pub docids: Vec<String>,
    /// Those that it is not.
    pub not_docids: Vec<String>,
}

/// A query as it was understood.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ParsedQuery {
    /// What to find, in the order typed, without repeats.
    pub clauses: Vec<Clause>,
    /// Where to look.
    pub filters: Filters,
    /// More was typed than [`MAX_CLAUSES`].
    pub truncated: bool,
}
