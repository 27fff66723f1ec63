//! From a parsed query to ranked documents.
//!
//! **Invariant:** ids and scores depend on the live documents and the query alone, not on how the segments came about.

mod answer;
mod collect;
mod condition;
mod evaluate;
mod every;
mod exact;
mod filter;
mod plan;
mod rerank;
mod terms;
#[cfg(test)]
mod tests;
mod window;

pub use every::MatchedDocument;

use std::borrow::Cow;
use std::sync::Arc;

use kb_core::{Correction, Mode, SectionId, Stage, Verdict};

use crate::analysis::{Analyzer, Markup};
use crate::query::{Filters, ParsedQuery};
use crate::segment::{Dead, Segment, Totals, kbid_prefix};
use crate::source::{SegmentError, Source};

/// A bound of time, inclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DateBound {
    /// Seconds since 1970-01-01T00:00:00Z.
    Instant(i64),
    /// Days since 1970-01-01 in the writer's time zone.
    Day(i32),
}

/// How to search.
#[derive(Debug, Clone)]
pub struct SearchOptions {
    /// How the words are to be read.
    pub mode: Mode,
    /// Hits wanted, at most.
    pub limit: usize,
    /// Hits of earlier pages, which are left out.
    pub offset: usize,
    /// What a document has to be, beside what the query itself says.
    pub filters: Filters,
    /// The earliest date.
    pub since: Option<DateBound>,
    /// The latest date.
    pub until: Option<DateBound>,
    /// Count every matching document, whatever it costs.
    pub count: bool,
}

impl Default for SearchOptions {
    fn default() -> Self {
        Self {
            mode: Mode::Auto,
            limit: 10,
            offset: 0,
            filters: Filters::default(),
            since: None,
            until: None,
            count: false,
        }
    }
}

/// Gives the text of sections, asked for a few candidates of a query.
pub trait Texts {
    /// Returns a section's text; `None` where it cannot be had, which costs the section its bonus for exactness.
    fn text(&self, docid: &str, position: u32) -> Option<(Markup, Cow<'_, str>)>;

    /// Returns a document's title.
    fn title(&self, docid: &str) -> Option<Cow<'_, str>>;
}

/// Another matching section of a hit's document.
#[derive(Debug, Clone, PartialEq)]
pub struct RankedSection {
    /// Place in the document.
    pub position: u32,
    /// The ranking score.
    pub score: f64,
}

/// A document's best section.
#[derive(Debug, Clone, PartialEq)]
pub struct RankedHit {
    /// The document.
    pub docid: String,
    /// Place in the document.
    pub position: u32,
    /// First 64 bits of the section's kbid.
    pub kbid_prefix: u64,
    /// The ranking score, comparable within one answer.
    pub score: f64,
    /// How sure it is that this answers the query, 0 to 1.
    pub confidence: f64,
    /// The words of the query, as typed, that the section matches.
    pub matched: Vec<String>,
    /// Other sections of the document that match, the best first, at most 5.
    pub more: Vec<RankedSection>,
    /// Other documents that hold the same section, at most 10.
    pub also_in: Vec<String>,
}

/// The answer to a query.
#[derive(Debug, Clone, PartialEq)]
pub struct Ranked {
    /// The hits of this page, the best first.
    pub hits: Vec<RankedHit>,
    /// Documents that match.
    pub total: u64,
    /// Whether `total` is exact or a lower bound.
    pub total_is_exact: bool,
    /// More hits follow.
    pub has_more: bool,
    /// Which reading of the query gave the answer.
    pub stage: Stage,
    /// Whether the base holds an answer.
    pub verdict: Verdict,
    /// Words that no hit had to match.
    pub dropped: Vec<String>,
    /// Words that were read as others.
    pub corrected: Vec<Correction>,
}

/// A segment with what of it is dead.
pub type LiveSegment<S> = (Arc<Segment<S>>, Option<Arc<Dead>>);

/// A set of segments that is searched as one.
#[derive(Debug)]
pub struct Searcher<S> {
    segments: Vec<LiveSegment<S>>,
    analyzer: Analyzer,
    /// Of live sections.
    totals: Totals,
}

impl<S: Source> Searcher<S> {
    /// Returns a searcher over these segments; a docid is alive in at most one of them.
    pub fn new(segments: Vec<LiveSegment<S>>, analyzer: Analyzer) -> Self {
        let totals = segments.iter().fold(Totals::default(), |sum, (segment, dead)| {
            let all = segment.foot().totals;
            // A set of the dead was checked against its segment when it was made.
            let live = dead.as_ref().and_then(|dead| all.minus(dead.totals())).unwrap_or(all);
            sum.plus(&live)
        });
        Self { segments, analyzer, totals }
    }

    /// Returns the number of live documents.
    pub fn documents(&self) -> u64 {
        let live = |(segment, dead): &LiveSegment<S>| {
            u64::from(segment.documents()) - dead.as_ref().map_or(0, |dead| dead.len() as u64)
        };
        self.segments.iter().map(live).sum()
    }

    /// Returns the number of live sections.
    pub fn sections(&self) -> u64 {
        self.totals.sections
    }

    /// Returns all live occurrences of a section as docid and position, in order; the caller checks that the kbid
    /// agrees beyond its first 64 bits.
    pub fn occurrences(&self, kbid: SectionId) -> Result<Vec<(String, u32)>, SegmentError> {
        let mut found = Vec::new();
        for (segment, dead) in &self.segments {
            for section in segment.sections_with(kbid_prefix(kbid), usize::MAX)? {
                let ordinal = segment.document_of(section)?;
                if dead.as_ref().is_none_or(|dead| !dead.contains(ordinal)) {
                    found.push((segment.docid(ordinal)?.to_owned(), segment.place(ordinal, section)?));
                }
            }
        }
        found.sort_unstable();
        Ok(found)
    }

    /// Answers a query.
    pub fn search(
        &self,
        query: &ParsedQuery,
        options: &SearchOptions,
        texts: &dyn Texts,
    ) -> Result<Ranked, SegmentError> {
        answer::answer(self, query, options, texts)
    }
}
