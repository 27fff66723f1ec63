//! Why an operation on project knowledge failed.
//!
//! **Invariant:** the messages of the cases that the contract words are its own, and [`ProjectError::code`] never
//! changes.

use std::path::PathBuf;
use std::time::Duration;

use kb_core::ChapterError;

use crate::error::{LockHolder, StoreError};

/// Why an operation on project knowledge failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProjectError {
    /// No project has this id.
    #[error("Project not found: {id}")]
    ProjectNotFound {
        /// What was asked for.
        id: String,
        /// Ids close to it.
        near: Vec<String>,
    },
    /// The project has no such document.
    #[error("File not found: {name}")]
    FileNotFound {
        /// What was asked for.
        name: String,
        /// Names close to it.
        near: Vec<String>,
    },
    /// A document of this name is there already.
    #[error("File already exists: {name}")]
    FileExists {
        /// What was given.
        name: String,
    },
    /// A chapter that is not there, there twice, or not to be written so.
    #[error(transparent)]
    Chapter(#[from] ChapterError),
    /// A text that names no project, or no document.
    #[error("`{name}` is not a name for a {what}: {reason}")]
    InvalidName {
        /// `project` or `document`.
        what: &'static str,
        /// What was given.
        name: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Something that has to be given was not.
    #[error("`{field}` is missing or empty")]
    MissingField {
        /// Which.
        field: &'static str,
    },
    /// An argument that no operation can be done with.
    #[error("`{field}`: {reason}")]
    Invalid {
        /// The argument.
        field: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// The repository does not have this revision.
    #[error("Revision not found: {revision}")]
    RevisionNotFound {
        /// What was asked for.
        revision: String,
    },
    /// The repository is in a state in which nothing is committed.
    #[error("the repository at `{}` {state}", path.display())]
    RepositoryState {
        /// Its folder.
        path: PathBuf,
        /// What is the matter.
        state: String,
    },
    /// A lock of Git's is there and is not let go.
    #[error("`{}` is there: another Git process is at work, or one died", path.display())]
    GitLocked {
        /// The lock file.
        path: PathBuf,
    },
    /// Git failed.
    #[error("Git failed to {op}: {detail}")]
    Git {
        /// What was tried.
        op: &'static str,
        /// What is the matter.
        detail: String,
    },
    /// A path that leads out of the home, or through a symbolic link.
    #[error("`{}` is a symbolic link: nothing is read or written through it", path.display())]
    Outside {
        /// The path.
        path: PathBuf,
    },
    /// Another process is writing.
    #[error("the project home is busy: {}", match holder { Some(h) => h.to_string(), None => "another process is writing".to_owned() })]
    Busy {
        /// Who, as far as it is known.
        holder: Option<LockHolder>,
        /// How long was waited.
        waited: Duration,
    },
    /// Files could not be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl ProjectError {
    /// Returns a word for programs to tell failures by; it never changes.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::ProjectNotFound { .. } => "project-not-found",
            Self::FileNotFound { .. } => "file-not-found",
            Self::FileExists { .. } => "file-exists",
            Self::Chapter(ChapterError::NotFound { .. }) => "chapter-not-found",
            Self::Chapter(ChapterError::Ambiguous { .. }) => "chapter-ambiguous",
            Self::Chapter(ChapterError::Exists { .. }) => "chapter-exists",
            Self::Chapter(ChapterError::FrontMatter) => "invalid-front-matter",
            Self::Chapter(_) => "invalid-chapter",
            Self::InvalidName { .. } => "invalid-name",
            Self::MissingField { .. } => "missing-field",
            Self::Invalid { .. } => "invalid",
            Self::RevisionNotFound { .. } => "revision-not-found",
            Self::RepositoryState { .. } => "repository-state",
            Self::GitLocked { .. } => "git-locked",
            Self::Git { .. } => "git",
            Self::Outside { .. } => "outside",
            Self::Busy { .. } => "busy",
            Self::Store(error) => error.code(),
        }
    }

    /// Says whether the same call may succeed later with nothing changed.
    pub const fn is_retryable(&self) -> bool {
        matches!(self, Self::Busy { .. } | Self::GitLocked { .. })
    }
}
