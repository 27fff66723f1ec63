//! Keyword search of a kb knowledge base: analysis of text, `fst` index segments, queries, ranking, snippets.
//!
//! **Invariant:** this crate works on bytes that it is handed. It knows neither where they live nor what becomes of
//! documents.

mod analysis;
mod matcher;
mod query;
mod ranking;
mod search;
mod segment;
mod snippet;
mod source;

pub use analysis::{Analyzer, Language, MAX_TERM_BYTES, Markup, PlacedTerm, RawToken, Term, TermKind, unspaced_units};
pub use matcher::{Findings, Form, Matcher, Window};
pub use query::{Clause, ClauseKind, Field, Filters, MAX_CLAUSES, Occur, ParsedQuery, Unit, parse, parse_phrase};
pub use search::{
    DateBound, LiveSegment, MatchedDocument, Ranked, RankedHit, RankedSection, SearchOptions, Searcher, Texts,
};
pub use segment::{
    BuildError, DateKey, Dead, DocumentInput, Occurrence, SectionInput, Segment, SegmentBuilder, SegmentStats, merge,
};
pub use snippet::{Excerpt, best_line, snippet};
pub use source::{SegmentError, Source};
