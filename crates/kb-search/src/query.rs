//! What a person typed, read as a query. Every byte sequence is one; none is an error.

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
    /// As the analyser expands it.
    pub terms: Vec<Term>,
    /// How many positions it takes.
    pub width: u32,
    /// A word that says little; it weighs less and is the first to be dropped.
    pub stop: bool,
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

/// What a document has to be, whatever it says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filters {
    /// Tags, all of which it has to have; `ops/*` is a prefix.
    pub tags: Vec<String>,
    /// Types, one of which it has to be.
    pub types: Vec<String>,
    /// Sources, one of which it has to come from; `x*` is a prefix.
    pub sources: Vec<String>,
    /// Docids, one of which it has to have; `x*` is a prefix.
    pub docids: Vec<String>,
    /// Tags that it must not have.
    pub not_tags: Vec<String>,
    /// Types that it must not be.
    pub not_types: Vec<String>,
    /// Sources that it must not come from.
    pub not_sources: Vec<String>,
    /// Docids that it must not have.
    pub not_docids: Vec<String>,
}

/// A query, read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ParsedQuery {
    /// What is to be found, in the order typed.
    pub clauses: Vec<Clause>,
    /// What the document has to be.
    pub filters: Filters,
}
