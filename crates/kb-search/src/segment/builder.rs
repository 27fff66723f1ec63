//! Builds a segment from documents.
//!
//! **Invariant:** memory is bounded by what was added: no allocation for a posting, one analysis for each distinct
//! raw token.

use std::io;

use super::DocumentInput;
use crate::analysis::Analyzer;
use crate::source::SegmentError;

/// Why a segment could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// Documents come in ascending order of their docids, each once.
    #[error("document `{docid}` does not come after `{after}`")]
    OutOfOrder {
        /// The document that was added.
        docid: String,
        /// The one before.
        after: String,
    },
    /// More than a segment's numbers can count.
    #[error("a segment cannot hold more {0}")]
    TooLarge(&'static str),
    /// A segment that is merged cannot be read.
    #[error(transparent)]
    Segment(#[from] SegmentError),
    /// The writer refused.
    #[error("cannot write the index segment")]
    Io(#[from] io::Error),
}

/// What a new segment holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentStats {
    /// Documents.
    pub documents: u32,
    /// Sections.
    pub sections: u32,
    /// Distinct terms, facets included.
    pub terms: u64,
    /// Bytes written.
    pub bytes: u64,
}

/// Collects documents for one segment.
#[derive(Debug)]
pub struct SegmentBuilder {
    _analyzer: Analyzer,
}

impl SegmentBuilder {
    /// Returns a builder without documents.
    pub fn new(analyzer: Analyzer) -> Self {
        Self { _analyzer: analyzer }
    }

    /// Adds a document; docids have to come in ascending order of their bytes.
    pub fn add(&mut self, _document: &DocumentInput<'_>) -> Result<(), BuildError> {
        todo!()
    }

    /// Returns about how many bytes of memory are in use.
    pub fn memory_bytes(&self) -> usize {
        todo!()
    }

    /// Returns the number of documents added.
    pub fn documents(&self) -> u32 {
        todo!()
    }

    /// Writes the segment.
    pub fn finish(self, _out: &mut impl io::Write) -> Result<SegmentStats, BuildError> {
        todo!()
    }
}
