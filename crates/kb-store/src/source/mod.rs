//! Sources: documents from other MCP servers, by a block of YAML.
//!
//! ```text
//! config     the block of YAML -> what it says, or every fault in it at once     secret  what looks like a credential
//! docid      the id that a server has -> the name of the document                gather  what a fetcher hands over
//! plan       what was gathered, beside what was last applied                     state   records of sources and proposals
//! operations add, list, run, apply, remove: the methods of `KnowledgeBase`       apply   a proposal -> a commit
//! probe      what an online check finds                                          diff    two texts -> a unified diff
//! ```
//!
//! Who fetches is not known here: a run is a [`Gather`] that is handed rows, documents and failures.
//!
//! **Invariant:** what a source changes in a base is one commit, of a plan that was made from a whole run. Compared is
//! with what was last applied, never with what was last seen.

mod apply;
mod config;
mod diff;
mod docid;
mod gather;
mod operations;
mod plan;
mod probe;
mod secret;
mod state;

pub use config::{
    Cursor, Environment, Ids, KeyPath, Limits, Read, Select, Selection, SourceConfig, Transport, is_source_name,
};
pub use docid::source_docid;
pub use gather::{Gather, GatheredDocument, SelectedRow};
pub use operations::{RemoveSource, SourceGathering};
pub use plan::PlanOptions;
pub use probe::Probe;

pub(crate) use state::{drop_proposals_of, expand_filter, own_provenance, provenance, reached_by};
