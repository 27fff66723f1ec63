//! Every match of a query, for a caller that counts and groups by itself.
//!
//! **Invariant:** what is returned is what any of the query's clauses matches, no more and no less; nothing is dropped,
//! corrected or left to a page.

use super::answer::Search;
use super::evaluate::SCORE_UNIT;
use super::{RankedSection, SearchOptions, Searcher};
use crate::query::ParsedQuery;
use crate::source::{SegmentError, Source};
use kb_core::Mode;

/// A document with every section of it that matches.
#[derive(Debug, Clone, PartialEq)]
pub struct MatchedDocument {
    /// The document.
    pub docid: String,
    /// Its sections that match, in order.
    pub sections: Vec<RankedSection>,
}

impl<S: Source> Searcher<S> {
    /// Returns every document in which any clause of the query matches, in no order that means anything.
    pub fn every_match(&self, query: &ParsedQuery) -> Result<Vec<MatchedDocument>, SegmentError> {
        let options = SearchOptions { mode: Mode::Any, ..SearchOptions::default() };
        let search = Search::new(self, query, &options)?;
        let mut documents = Vec::new();
        for (index, matches) in search.every_section()?.into_iter().enumerate() {
            let segment = &self.segments[index].0;
            let mut last = None;
            for (section, score) in matches {
                let ordinal = segment.document_of(section)?;
                if last != Some(ordinal) {
                    last = Some(ordinal);
                    let docid = segment.docid(ordinal)?.to_owned();
                    documents.push(MatchedDocument { docid, sections: Vec::new() });
                }
                if let Some(document) = documents.last_mut() {
                    let position = segment.place(ordinal, section)?;
                    document.sections.push(RankedSection { position, score: f64::from(score) / f64::from(SCORE_UNIT) });
                }
            }
        }
        Ok(documents)
    }
}
