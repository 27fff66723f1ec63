//! The kb knowledge base: documents and their sections in a directory, safe against any crash, and their search.
//!
//! [`KnowledgeBase`] has one method an operation.
//!
//! **Invariant:** this crate reads no environment and no clock, knows no home directory, prints nothing. What it needs
//! of these is in [`Options`].

mod error;
mod knowledge_base;
mod request;

pub use error::{LockHolder, StoreError};
pub use knowledge_base::{
    DoctorReport, ExportedDocument, Finding, ImportError, ImportLine, ImportReport, KnowledgeBase, LockReport,
};
pub use request::{
    Gc, ImportOptions, LearnPaths, ListFilter, NewAgent, NewSkill, Observer, Options, Progress, Search, Silent, Target,
    Text, Unlearn,
};
