//! What project knowledge needs of Git, as a trait: commit files, read one as of a revision, list revisions.
//!
//! **Invariant:** nothing but the paths that are given is committed, under an identity given with the commit. The
//! working tree is never touched here.

mod delta;
mod gix;
mod locks;
mod pack;

use std::fmt::Debug;
use std::time::Duration;

pub(super) use self::gix::GixRepository;
use super::Result;

/// A file of a commit: its content, or that it is removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Change {
    /// Relative to the home, with `/`.
    pub(super) path: String,
    pub(super) content: Option<Vec<u8>>,
}

/// A commit as history lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Revision {
    pub(super) id: String,
    pub(super) seconds: i64,
    pub(super) author: String,
    /// The first line of its message.
    pub(super) message: String,
    /// What it changed, against its first parent.
    pub(super) files: Vec<FileChange>,
}

/// A file that differs between two revisions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FileChange {
    pub(super) path: String,
    pub(super) change: ChangeKind,
}

/// How a file differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChangeKind {
    Added,
    Modified,
    Deleted,
}

impl ChangeKind {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Modified => "modified",
            Self::Deleted => "deleted",
        }
    }
}

/// The repository of a home.
pub(super) trait Repository: Debug {
    /// Refuses where a commit would be lost or would disturb what a person is doing, and puts right what a process that
    /// died within a commit left.
    fn prepare(&self) -> Result<()>;

    /// Returns those of the changes that the newest commit does not hold yet.
    fn outstanding(&self, changes: Vec<Change>) -> Result<Vec<Change>>;

    /// Commits these files, which lie in the working tree as given. Returns the commit.
    fn commit(&self, changes: &[Change], message: &str, seconds: i64, wait: Duration) -> Result<String>;

    /// Returns the newest commit.
    fn head(&self) -> Result<Option<String>>;

    /// Finds a revision by its id or the beginning of one.
    fn find(&self, revision: &str) -> Result<String>;

    /// Returns a file as of a revision.
    fn file(&self, revision: &str, path: &str) -> Result<Option<Vec<u8>>>;

    /// Lists at most `limit` commits that changed something at or below a path, the newest first, and says whether
    /// there are more.
    fn history(&self, path: &str, limit: usize) -> Result<(Vec<Revision>, bool)>;
}
