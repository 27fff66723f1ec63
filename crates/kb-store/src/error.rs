//! Why an operation of the store failed.
//!
//! **Invariant:** every error names the path or id it is about, and has a stable [`StoreError::code`], so that both
//! facades say the same of the same failure.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kb_core::{DocId, SectionId};

/// Who holds the writers' lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockHolder {
    /// Its process.
    pub pid: u32,
    /// What it said it is doing.
    pub command: String,
    /// Since when, RFC 3339 in UTC.
    pub since: String,
}

impl fmt::Display for LockHolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} (`{}`) since {}", self.pid, self.command, self.since)
    }
}

/// Why an operation of the store failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The operating system refused.
    #[error("cannot {op} `{}`", path.display())]
    Io {
        /// What was tried: `read`, `write`, `sync`, …
        op: &'static str,
        /// On which file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// There is no database where one was named.
    #[error("no database at `{}`", path.display())]
    NoDatabase {
        /// The directory.
        path: PathBuf,
    },
    /// A database was to be created where something is.
    #[error("`{}` {reason}", path.display())]
    CannotCreate {
        /// The directory.
        path: PathBuf,
        /// What is in the way.
        reason: &'static str,
    },
    /// The `head` file is gone or damaged; the packs are still there.
    #[error("the database at `{}` has no readable head: {reason}", path.display())]
    NoHead {
        /// The database directory.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// Written by a newer version.
    #[error("the database at `{}` has format {found}; this version reads up to {supported}", path.display())]
    TooNew {
        /// The database directory.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// The newest version this code knows.
        supported: u32,
    },
    /// Another process is writing.
    #[error("the database is busy: {}", match holder { Some(h) => h.to_string(), None => "another process is writing".to_owned() })]
    Busy {
        /// Who, as far as it is known.
        holder: Option<LockHolder>,
        /// How long was waited.
        waited: Duration,
    },
    /// A write through a handle that only reads.
    #[error("the database was opened to read only")]
    ReadOnly,
    /// The folder or the file system does not let this process write.
    #[error("the database cannot be written: `{}`", path.display())]
    NotWritable {
        /// The file that was to be written.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// No readable section has this id.
    #[error("Section not found: {id}")]
    SectionNotFound {
        /// What was asked for.
        id: String,
    },
    /// No document has this id.
    #[error("Document not found: {id}")]
    DocumentNotFound {
        /// What was asked for.
        id: String,
        /// Names close to it.
        near: Vec<DocId>,
    },
    /// No skill has this name or id.
    #[error("Skill not found: {id}")]
    SkillNotFound {
        /// What was asked for.
        id: String,
        /// Names close to it.
        near: Vec<String>,
    },
    /// No agent has this name or id.
    #[error("Agent not found: {id}")]
    AgentNotFound {
        /// What was asked for.
        id: String,
        /// Names close to it.
        near: Vec<String>,
    },
    /// A beginning of a kbid that fits several sections, or none.
    #[error("`{prefix}` is the beginning of {count} kbids")]
    AmbiguousPrefix {
        /// What was given.
        prefix: String,
        /// How many there are.
        count: usize,
    },
    /// Stored bytes are not what was written.
    #[error("`{file}` is damaged at byte {offset}: {detail}")]
    Damaged {
        /// The file, relative to the database directory.
        file: String,
        /// Where in it.
        offset: u64,
        /// The section that is hit, where it is known.
        kbid: Option<SectionId>,
        /// What is wrong.
        detail: String,
    },
    /// A source is not text.
    #[error("`{name}` is not UTF-8 text: the first bad byte is at {offset}")]
    NotUtf8 {
        /// The source.
        name: String,
        /// Where the first bad byte is.
        offset: usize,
    },
    /// An argument that no operation can be done with.
    #[error("`{field}`: {reason}")]
    Invalid {
        /// The argument.
        field: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// A prune that would take away too much to be meant.
    #[error("{gone} of {known} documents learned from `{root}` would be removed")]
    PruneTooMuch {
        /// The root that was learned.
        root: String,
        /// Documents whose source is gone.
        gone: usize,
        /// Documents of that root.
        known: usize,
    },
    /// A skill that is none, or was not given what it needs.
    #[error(transparent)]
    Skill(#[from] kb_core::SkillError),
    /// An agent that is none.
    #[error(transparent)]
    Agent(#[from] kb_core::AgentError),
    /// No source has this name.
    #[error("Source not found: {name}")]
    SourceNotFound {
        /// What was asked for.
        name: String,
        /// Names close to it.
        near: Vec<String>,
    },
    /// Another process runs or changes this source.
    #[error("the source `{name}` is busy: {}", match holder { Some(h) => h.to_string(), None => "another process runs it".to_owned() })]
    SourceBusy {
        /// The source.
        name: String,
        /// Who, as far as it is known.
        holder: Option<LockHolder>,
        /// How long was waited.
        waited: Duration,
    },
    /// There is no proposal to look at or to apply.
    #[error("the source `{name}` has no proposal that waits")]
    NoProposal {
        /// The source.
        name: String,
    },
    /// The base is no longer what a proposal was made on.
    #[error("the proposal of `{name}` no longer fits: {}", changed_since(docids))]
    SourceChanged {
        /// The source.
        name: String,
        /// Documents that were changed since; none where the source itself was.
        docids: Vec<DocId>,
    },
    /// A batch that was to be done whole or not at all was not done.
    #[error("line {line} failed, so nothing of the batch was done")]
    NotAtomic {
        /// The first line that failed, from 1.
        line: u64,
    },
    /// The caller asked to stop.
    #[error("cancelled")]
    Cancelled,
}

impl StoreError {
    /// Returns a word for programs to tell failures by; it never changes.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Io { .. } => "io",
            Self::NoDatabase { .. } => "no-database",
            Self::CannotCreate { .. } => "cannot-create",
            Self::NoHead { .. } => "no-head",
            Self::TooNew { .. } => "too-new",
            Self::Busy { .. } => "busy",
            Self::ReadOnly | Self::NotWritable { .. } => "read-only",
            Self::SectionNotFound { .. }
            | Self::DocumentNotFound { .. }
            | Self::SkillNotFound { .. }
            | Self::AgentNotFound { .. }
            | Self::SourceNotFound { .. } => "not-found",
            Self::SourceBusy { .. } => "source-busy",
            Self::NoProposal { .. } => "no-proposal",
            Self::SourceChanged { .. } => "source-changed",
            Self::AmbiguousPrefix { .. } => "ambiguous",
            Self::Damaged { .. } => "damaged",
            Self::NotUtf8 { .. } => "not-utf8",
            Self::PruneTooMuch { .. } => "prune-too-much",
            Self::Skill(kb_core::SkillError::MissingArgument { .. }) => "missing-argument",
            Self::Invalid { .. } | Self::Skill(_) | Self::Agent(_) => "invalid",
            Self::NotAtomic { .. } => "not-atomic",
            Self::Cancelled => "cancelled",
        }
    }

    /// Returns the message with those of its causes, in one line.
    pub fn sentence(&self) -> String {
        let causes = std::iter::successors(std::error::Error::source(self), |cause| cause.source());
        causes.fold(self.to_string(), |sentence, cause| format!("{sentence}: {cause}"))
    }

    /// Returns the names near to one that is not known.
    pub fn near_names(&self) -> Vec<String> {
        match self {
            Self::DocumentNotFound { near, .. } => near.iter().map(ToString::to_string).collect(),
            Self::SkillNotFound { near, .. } | Self::AgentNotFound { near, .. } | Self::SourceNotFound { near, .. } => {
                near.clone()
            }
            _ => Vec::new(),
        }
    }

    /// Says whether the same call may succeed later with nothing changed.
    pub const fn is_retryable(&self) -> bool {
        matches!(self, Self::Busy { .. } | Self::SourceBusy { .. })
    }
}

/// Names the first of the documents that were changed.
fn changed_since(docids: &[DocId]) -> String {
    const SHOWN: usize = 20;
    if docids.is_empty() {
        return "something else was applied since it was made".to_owned();
    }
    let names: Vec<&str> = docids.iter().take(SHOWN).map(DocId::as_str).collect();
    let more = if docids.len() > SHOWN { format!(" and {} more", docids.len() - SHOWN) } else { String::new() };
    format!("changed since it was made: {}{more}", names.join(", "))
}

/// Adds verb and path to an error of the system.
pub(crate) trait IoContext<T> {
    fn io(self, op: &'static str, path: &Path) -> Result<T, StoreError>;
}

impl<T> IoContext<T> for io::Result<T> {
    fn io(self, op: &'static str, path: &Path) -> Result<T, StoreError> {
        self.map_err(|source| StoreError::Io { op, path: path.to_owned(), source })
    }
}
