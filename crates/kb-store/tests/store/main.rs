//! The knowledge base through its public door.

mod crash;
mod crash_fs;
mod documents;
mod support;
