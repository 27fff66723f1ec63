//! Which documents of a segment are gone.
//!
//! **Invariant:** what is left after the dead is counted exactly, so that scores do not depend on what was deleted.

use super::Segment;
use crate::source::{SegmentError, Source};

/// The dead documents of one segment, with exact statistics of the live ones.
#[derive(Debug, Clone, Default)]
pub struct Dead {}

impl Dead {
    /// Returns a set without documents.
    pub fn new() -> Self {
        Self::default()
    }

    /// Marks a document as dead; returns whether it was alive.
    pub fn insert<S: Source>(&mut self, _segment: &Segment<S>, _ordinal: u32) -> Result<bool, SegmentError> {
        todo!()
    }

    /// Says whether a document is dead.
    pub fn contains(&self, _ordinal: u32) -> bool {
        todo!()
    }

    /// Returns the number of dead documents.
    pub fn len(&self) -> usize {
        todo!()
    }

    /// Says whether every document is alive.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of sections of dead documents.
    pub fn sections(&self) -> u32 {
        todo!()
    }

    /// Writes the set, a few bytes for each document.
    pub fn to_bytes(&self) -> Vec<u8> {
        todo!()
    }

    /// Reads a set that was written for this segment; what does not fit it is refused.
    pub fn from_bytes<S: Source>(_bytes: &[u8], _segment: &Segment<S>) -> Result<Self, SegmentError> {
        todo!()
    }
}
