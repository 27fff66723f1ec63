//! Index segments: immutable files that say which words stand where.
//!
//! **Invariant:** a segment is a function of its live documents alone. Built from scratch, or merged from any others,
//! the same documents give the same bytes.

mod builder;
mod dead;
mod input;
mod merge;
mod reader;

pub use builder::{BuildError, SegmentBuilder, SegmentStats};
pub use dead::Dead;
pub use input::{DateKey, DocumentInput, SectionInput};
pub use merge::merge;
pub use reader::{Occurrence, Segment};
