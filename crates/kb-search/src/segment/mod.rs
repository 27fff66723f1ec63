//! Index segments: immutable files that say which words stand where.
//!
//! **Invariant:** a segment is a function of its live documents alone. Built from scratch, or merged from any others,
//! the same documents give the same bytes.

mod builder;
mod codec;
mod cursor;
mod dead;
pub(crate) mod dictionary;
pub(crate) mod facet;
mod impact;
mod input;
mod interner;
mod layout;
mod merge;
mod postings;
mod reader;
mod streams;
mod writer;

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

pub(crate) use cursor::Cursor;
pub(crate) use impact::{BOUND_UNIT, FieldCounts, Impacts, Lengths, MAX_IMPACT, Totals};
pub(crate) use input::kbid_prefix;
pub(crate) use layout::Part;

pub use builder::{BuildError, SegmentBuilder, SegmentStats};
pub use dead::Dead;
pub use input::{DateKey, DocumentInput, SectionInput};
pub use merge::merge;
pub use reader::{Occurrence, Segment};
