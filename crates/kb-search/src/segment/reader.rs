//! An open segment.
//!
//! **Invariant:** opening reads a constant number of bytes; everything else is read when it is asked for, and every
//! length and offset is checked before it is used.

use std::ops::Range;

use kb_core::SectionId;

use super::DateKey;
use crate::analysis::Language;
use crate::source::{SegmentError, Source};

/// Where a section stands.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Occurrence {
    /// The document.
    pub docid: String,
    /// Number of the document in the segment, as [`super::Dead`] counts.
    pub ordinal: u32,
    /// Place in the document.
    pub position: u32,
}

/// An open segment.
#[derive(Debug)]
pub struct Segment<S> {
    source: S,
}

impl<S: Source> Segment<S> {
    /// Opens a segment: reads its head and nothing else.
    pub fn open(source: S) -> Result<Self, SegmentError> {
        Ok(Self { source })
    }

    /// Returns the bytes' owner.
    pub fn source(&self) -> &S {
        &self.source
    }

    /// Returns the number of documents, dead ones included.
    pub fn documents(&self) -> u32 {
        todo!()
    }

    /// Returns the number of sections, dead ones included.
    pub fn sections(&self) -> u32 {
        todo!()
    }

    /// Returns the version of the analyser that the terms come from.
    pub fn analyzer_version(&self) -> u32 {
        todo!()
    }

    /// Returns the language that the terms were stemmed by.
    pub fn language(&self) -> Language {
        todo!()
    }

    /// Returns the ordinal of a document.
    pub fn find(&self, _docid: &str) -> Result<Option<u32>, SegmentError> {
        todo!()
    }

    /// Returns the ordinals of the documents whose docids begin so.
    pub fn find_prefix(&self, _prefix: &str) -> Result<Range<u32>, SegmentError> {
        todo!()
    }

    /// Returns the docid of a document.
    pub fn docid(&self, _ordinal: u32) -> Result<&str, SegmentError> {
        todo!()
    }

    /// Returns when a document was learned.
    pub fn date(&self, _ordinal: u32) -> Result<DateKey, SegmentError> {
        todo!()
    }

    /// Returns the section numbers of a document.
    pub fn sections_of(&self, _ordinal: u32) -> Result<Range<u32>, SegmentError> {
        todo!()
    }

    /// Returns where a section may stand, dead documents included: the first 64 bits of its kbid agree, the caller
    /// checks the rest.
    pub fn occurrences(&self, _kbid: SectionId) -> Result<Vec<Occurrence>, SegmentError> {
        todo!()
    }

    /// Reads the whole segment and checks that it is well formed.
    pub fn check(&self) -> Result<(), SegmentError> {
        todo!()
    }
}
