//! The knowledge base through its public door.

#![expect(clippy::disallowed_methods, reason = "tests write sources, and break files on purpose")]

mod crash;
mod crash_fs;
mod damage;
mod documents;
mod refusals;
mod support;
