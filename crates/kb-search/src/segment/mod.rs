//! Index segments: immutable files that say which words stand where.
//!
//! **Invariant:** a segment is a function of its live documents alone. Built from scratch, or merged from any others,
//! the same documents give the same bytes.

mod builder;
mod codec;
mod cursor;
mod dead;
mod dictionary;
mod facet;
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

pub use builder::{BuildError, SegmentBuilder, SegmentStats};
pub use dead::Dead;
pub use input::{DateKey, DocumentInput, SectionInput};
pub use merge::merge;
pub use reader::{Occurrence, Segment};
