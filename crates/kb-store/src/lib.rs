//! The kb knowledge base: documents and their sections in a directory, safe against any crash, and their search.
//!
//! [`KnowledgeBase`] has one method an operation; so has [`ProjectStore`], a second store of project knowledge in Git.
//!
//! **Invariant:** this crate reads no environment and no clock, knows no home directory, prints nothing. What it needs
//! of these is in [`Options`].

mod codec;
mod collect;
mod commit;
mod doctor;
mod error;
mod export;
mod footnotes;
mod head;
mod import;
mod index;
mod knowledge_base;
mod learn;
mod losses;
mod manifest;
mod near;
mod pack;
mod paged;
mod prepare;
mod project;
mod read;
mod record;
mod reports;
mod request;
mod revisions;
mod salvage;
mod search;
mod settings;
mod skills;
mod snapshot;
mod source;
mod source_file;
mod stat_cache;
mod status;
pub mod storage;
mod unlearn;
mod walk;

pub use error::{LockHolder, StoreError};
pub use knowledge_base::KnowledgeBase;
pub use project::{ChapterUpdate, NewKnowledge, ProjectError, ProjectStore};
pub use reports::{DoctorReport, ExportedDocument, Finding, ImportError, ImportLine, ImportReport, LockReport};
pub use request::{
    Gc, ImportOptions, LearnPaths, ListFilter, NewAgent, NewSkill, Observer, Options, Progress, Search, Silent, Target,
    Text, Unlearn,
};
pub use source::{
    Cursor, Environment, Gather, GatheredDocument, Ids, KeyPath, Limits, PlanOptions, Probe, Read, RemoveSource,
    Select, SelectedRow, Selection, SourceConfig, SourceGathering, Transport, is_source_name, source_docid,
};
