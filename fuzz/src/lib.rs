//! The functions that the fuzz targets feed. The tests of kb-store call the same ones, so that they are kept true.

mod memory;
mod targets;

pub use targets::{front_matter, jsonl, pack, query, segment, splitter};
