//! The values of a kb knowledge base: sections, documents, skills, agents, their ids, how a source is parsed into
//! them, and the structs that each operation returns.
//!
//! **Invariant:** nothing here touches files, reads the clock or the environment, or prints.

mod id;
mod media;
mod report;
mod slug;

pub use id::{DocId, IdError, SectionId};
pub use media::{MediaType, MediaTypeError};
pub use report::*;
