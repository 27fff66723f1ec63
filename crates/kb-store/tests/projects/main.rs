//! Project knowledge through its public door.

#![expect(clippy::disallowed_methods, reason = "tests write files by hand, and break them on purpose")]

mod activity;
mod documents;
mod git;
mod names;
mod processes;
mod searching;
mod support;
mod survival;
