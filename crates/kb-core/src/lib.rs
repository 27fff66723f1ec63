//! The values of a kb knowledge base: sections, documents, skills, agents, their ids, how a source is parsed into
//! them, and the structs that each operation returns.
//!
//! **Invariant:** nothing here touches files, reads the clock or the environment, or prints.

mod agent;
mod date;
mod front_matter;
mod id;
mod interpolation;
mod knowledge;
mod lines;
mod media;
mod name;
mod okf;
mod project;
mod report;
mod skill;
mod slug;
mod source_report;
mod split;

pub use agent::{Agent, AgentError};
pub use date::{DateBound, DateError, DocDate, Timestamp};
pub use front_matter::{
    FrontMatter, FrontMatterBlock, FrontMatterFormat, MAX_FRONT_MATTER_BYTES, YamlError, read_yaml, yaml_quoted,
};
pub use id::{DocId, IdError, SectionId};
pub use interpolation::lower_bound;
pub use knowledge::{ChapterError, Knowledge, NewChapter, compose_knowledge, with_updated};
pub use media::{MediaType, MediaTypeError};
pub use name::{MAX_NAME_SLUG_CHARS, NameError, agent_docid, skill_docid};
pub use okf::{okf_concept, okf_indexes, okf_path};
pub use project::*;
pub use report::*;
pub use skill::{Skill, SkillError};
pub use slug::{MAX_SLUG_BYTES, docid_from_path, docid_from_title, docid_with_suffix, is_device_name, slug};
pub use source_report::*;
pub use split::{Link, MAX_HEADING_BYTES, MAX_SECTION_BYTES, Parsed, Piece, Role, SPLITTER_VERSION, links, parse};
