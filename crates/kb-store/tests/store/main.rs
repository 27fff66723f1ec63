//! The knowledge base through its public door.

mod documents;
mod support;
