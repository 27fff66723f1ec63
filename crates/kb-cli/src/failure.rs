//! What went wrong, in words for people and a code for programs.
//!
//! A failure of the library becomes a [`Failure`] in one place, the `From<StoreError>` below: there a hint is added, and
//! nowhere else.
//!
//! **Invariant:** a failure names the thing it is about, and its code never changes once released.

use std::fmt::Display;
use std::io;
use std::path::Path;

use kb_core::SkillError;
use kb_mcp::FetchError;
use kb_store::{ProjectError, StoreError};
use serde::Serialize;

/// How a command that could be run came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// All was done.
    Done,
    /// The request failed, and the result that was printed says how.
    Failed,
    /// A part was done.
    Partly,
    /// A program that was run for another ended so.
    As(u8),
}

impl Exit {
    /// Returns the code that the process ends with.
    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Partly => 3,
            Self::As(code) => code,
        }
    }

    /// Judges a batch: nothing failed, all failed, or some of each.
    pub(crate) const fn of_batch(done: u64, failed: u64) -> Self {
        match (done, failed) {
            (_, 0) => Self::Done,
            (0, _) => Self::Failed,
            _ => Self::Partly,
        }
    }
}

/// Why a command ended early.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Something that the user must hear of.
    Message(Box<Message>),
    /// The reader of the output went away: no failure at all.
    OutputClosed,
}

/// A failure in words.
#[derive(Debug, Serialize)]
pub(crate) struct Message {
    /// A stable word for programs.
    pub(crate) code: &'static str,
    /// One sentence with its causes.
    #[serde(rename = "message")]
    pub(crate) sentence: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hint: Option<String>,
    /// Names close to one that is not known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) near: Vec<String>,
    /// The code that the process ends with.
    #[serde(skip)]
    pub(crate) exit: u8,
}

impl Failure {
    /// Makes a failure of the request.
    pub(crate) fn new(code: &'static str, message: impl Display) -> Self {
        Self::message(code, message.to_string(), 1)
    }

    /// Makes a failure of the call: arguments that do not fit together.
    pub(crate) fn usage(message: impl Display) -> Self {
        Self::message("usage", message.to_string(), 2)
    }

    /// Makes a failure of a configuration.
    pub(crate) fn configuration(code: &'static str, message: impl Display) -> Self {
        Self::message(code, message.to_string(), 2)
    }

    /// Makes a failure of the system on a path that a command itself touches.
    pub(crate) fn io(op: &str, path: &Path, error: &io::Error) -> Self {
        Self::new("io", format_args!("cannot {op} `{}`: {error}", path.display())).with_io_hint(error)
    }

    /// Adds what to do about it; an earlier hint is replaced.
    #[must_use]
    pub(crate) fn with_hint(mut self, hint: impl Display) -> Self {
        if let Self::Message(message) = &mut self {
            message.hint = Some(hint.to_string());
        }
        self
    }

    fn with_io_hint(self, error: &io::Error) -> Self {
        match io_hint(error) {
            Some(hint) => self.with_hint(hint),
            None => self,
        }
    }

    fn message(code: &'static str, sentence: String, exit: u8) -> Self {
        Self::Message(Box::new(Message { code, sentence, hint: None, near: Vec::new(), exit }))
    }
}

/// A failure to write the result; every other failure of the system goes through [`Failure::io`].
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::OutputClosed;
        }
        Self::new("io", format_args!("cannot write the result: {error}")).with_io_hint(&error)
    }
}

/// A failure to fetch what a source names.
impl From<FetchError> for Failure {
    fn from(error: FetchError) -> Self {
        let (code, is_configuration) = (error.code(), error.is_configuration());
        let hint = match &error {
            FetchError::Store(_) => None,
            FetchError::Start { .. } | FetchError::Connect { .. } => {
                Some("nothing was changed; `-v` shows what the server writes to its standard error")
            }
            FetchError::NotListed { .. } => Some("no tool was called; name one of these in the configuration"),
            FetchError::NotReadOnly { .. } => Some("no tool was called; a source takes tools that read, and no others"),
            _ => Some("nothing was changed; `kb source check --online` tries the server step by step"),
        };
        if let FetchError::Store(error) = error {
            return error.into();
        }
        let failure = Self::message(code, error.to_string(), if is_configuration { 2 } else { 1 });
        match hint {
            Some(hint) => failure.with_hint(hint),
            None => failure,
        }
    }
}

impl From<ProjectError> for Failure {
    fn from(error: ProjectError) -> Self {
        match error {
            ProjectError::Store(error) => error.into(),
            other => Self::new(other.code(), other),
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let near = error.near_names();
        let hint = way_on(&error).map(|way| with_near(&near, way));
        Self::Message(Box::new(Message { code: error.code(), sentence: error.sentence(), hint, near, exit: 1 }))
    }
}

/// Says what can be done about a failure of the library, in words of the command line.
fn way_on(error: &StoreError) -> Option<&'static str> {
    Some(match error {
        StoreError::Io { source, .. } => return io_hint(source),
        StoreError::NoDatabase { .. } => "`kb init` makes one; `--db DIR` or KBDB_DIR names another",
        StoreError::CannotCreate { .. } => "name a folder that is empty or does not exist with `--db DIR`",
        StoreError::NoHead { .. } => "`kb rebuild` finds the documents again in the packs, which are still there",
        StoreError::TooNew { .. } => {
            "a newer kb wrote this base, and nothing was changed: this version may read it at most, not write to it; \
             use a newer kb to write"
        }
        StoreError::Busy { .. } => "`--wait SECONDS` waits longer; `kb doctor` says who holds the lock",
        StoreError::ReadOnly | StoreError::NotWritable { .. } => {
            "the folder or the file system does not let this user write"
        }
        StoreError::SectionNotFound { .. } => "`kb search WORDS` lists the ids there are",
        StoreError::DocumentNotFound { .. } => "`kb list` shows all documents",
        StoreError::SkillNotFound { .. } => "`kb skill list` shows all skills",
        StoreError::AgentNotFound { .. } => "`kb agent list` shows all agents",
        StoreError::AmbiguousPrefix { .. } => {
            "give more of its characters; `kb search WORDS --json` shows kbids in full"
        }
        StoreError::Damaged { .. } => {
            "`kb check` lists all damage; `kb rebuild` heals an index, `kb learn --again PATH` writes a damaged text anew"
        }
        StoreError::NotUtf8 { .. } => "convert it to UTF-8, for example with `iconv`, and learn it again",
        StoreError::SourceNotFound { .. } => "`kb source list` shows all sources",
        StoreError::SourceBusy { .. } => "wait until that run is over, or wait longer with `--wait SECONDS`",
        StoreError::NoProposal { .. } => "`kb source run NAME` makes one where something has changed",
        StoreError::SourceChanged { .. } => "nothing was applied; `kb source run NAME` makes a new proposal",
        StoreError::Skill(SkillError::MissingArgument { .. }) => "`kb skill get NAME` shows the arguments",
        StoreError::NotAtomic { .. } => {
            "the result lines say what is wrong; without `--atomic` the good lines are kept"
        }
        StoreError::PruneTooMuch { .. } => {
            "nothing was removed; is the folder mounted? `--prune-all` removes them all the same"
        }
        _ => return None,
    })
}

/// Suggests near names, and never acts on them.
fn with_near(near: &[String], way_on: &str) -> String {
    if near.is_empty() {
        return way_on.to_owned();
    }
    let list = near.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    format!("near names are {list}; {way_on}")
}

fn io_hint(error: &io::Error) -> Option<&'static str> {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            Some("free some space and run the command again; what was reported as done is kept")
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            Some("the folder or the file system does not let this user do that")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn message(failure: Failure) -> Message {
        match failure {
            Failure::Message(message) => *message,
            Failure::OutputClosed => panic!("a closed pipe has no message"),
        }
    }

    #[test]
    fn causes_follow_the_sentence() {
        let error = StoreError::Io {
            op: "read",
            path: PathBuf::from("x/head"),
            source: io::Error::new(io::ErrorKind::PermissionDenied, "no entry"),
        };
        let message = message(error.into());
        assert_eq!(message.sentence, "cannot read `x/head`: no entry");
        assert_eq!(message.hint.as_deref(), Some("the folder or the file system does not let this user do that"));
        assert_eq!((message.code, message.exit), ("io", 1));
    }

    #[test]
    fn near_names_are_a_hint_and_data() {
        let near = vec!["plan-alpha".parse().expect("a docid"), "plan-beta".parse().expect("a docid")];
        let message = message(StoreError::DocumentNotFound { id: "plan-gamma".to_owned(), near }.into());
        assert_eq!(message.sentence, "Document not found: plan-gamma");
        assert_eq!(
            message.hint.as_deref(),
            Some("near names are `plan-alpha`, `plan-beta`; `kb list` shows all documents")
        );
        assert_eq!(message.near, ["plan-alpha", "plan-beta"]);
    }

    #[test]
    fn a_closed_pipe_is_no_failure() {
        assert!(matches!(io::Error::from(io::ErrorKind::BrokenPipe).into(), Failure::OutputClosed));
        assert!(matches!(io::Error::from(io::ErrorKind::StorageFull).into(), Failure::Message(_)));
    }

    #[test]
    fn a_batch_is_judged_by_both_counts() {
        assert_eq!(Exit::of_batch(0, 0), Exit::Done);
        assert_eq!(Exit::of_batch(5, 0), Exit::Done);
        assert_eq!(Exit::of_batch(0, 5), Exit::Failed);
        assert_eq!(Exit::of_batch(5, 1), Exit::Partly);
    }
}
