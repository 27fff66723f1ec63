//! Project knowledge through its public door.

#![expect(clippy::disallowed_methods, reason = "tests write files by hand, and break them on purpose")]

mod documents;
mod git;
mod names;
mod support;
mod survival;
