//! The knowledge base through its public door.

#![expect(clippy::disallowed_methods, reason = "tests write sources, and break files on purpose")]

mod concurrency;
mod crash;
mod crash_fs;
mod damage;
mod documents;
#[cfg(unix)]
mod folders;
#[cfg(unix)]
mod foreign;
mod fuzzing;
mod golden;
mod history;
mod hostile;
mod importing;
mod losses;
mod model;
mod refusals;
mod searching;
mod seen;
mod skills;
mod sources;
mod support;
