//! Merges segments into one.
//!
//! **Invariant:** the result is byte for byte the segment that a builder makes of the live documents. Nothing is
//! analysed again; memory holds the tables of the sections and one term's postings.

use std::io;

use super::{BuildError, Dead, Segment, SegmentStats};
use crate::source::Source;

/// Writes one segment with the live documents of all of these, which hold each docid alive at most once.
pub fn merge<S: Source>(
    _inputs: &[(&Segment<S>, Option<&Dead>)],
    _out: &mut impl io::Write,
) -> Result<SegmentStats, BuildError> {
    todo!()
}
