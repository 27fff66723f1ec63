//! The bytes of an index file, as the caller hands them over.
//!
//! **Invariant:** what [`Source::read`] returns was verified by its owner. This crate parses it without a checksum of
//! its own, but never trusts a length or an offset in it: a wrong one is an error, not a panic.

use std::ops::Range;

/// Why bytes of an index file could not be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SegmentError {
    /// The owner of the bytes refused: damaged, truncated or gone.
    #[error("index bytes {}..{} cannot be read: {reason}", range.start, range.end)]
    Unreadable {
        /// The range asked for.
        range: Range<u64>,
        /// What the owner says.
        reason: String,
    },
    /// The bytes are whole, but they are no segment that this version reads.
    #[error("index segment is not readable by this version: {0}")]
    Malformed(&'static str),
    /// Written by a newer version of kb.
    #[error("index segment has format {found}, this version reads up to {known}")]
    TooNew {
        /// The format of the segment.
        found: u32,
        /// The newest format that can be read.
        known: u32,
    },
}

/// Verified bytes of one index file.
pub trait Source: Send + Sync {
    /// Returns the length of the file's content in bytes.
    fn len(&self) -> u64;

    /// Says whether there are no bytes.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns these bytes, verified.
    fn read(&self, range: Range<u64>) -> Result<&[u8], SegmentError>;
}

impl Source for Vec<u8> {
    fn len(&self) -> u64 {
        self.as_slice().len() as u64
    }

    fn read(&self, range: Range<u64>) -> Result<&[u8], SegmentError> {
        self.get(range.start as usize..range.end as usize)
            .ok_or_else(|| SegmentError::Unreadable { range, reason: "out of bounds".to_owned() })
    }
}
