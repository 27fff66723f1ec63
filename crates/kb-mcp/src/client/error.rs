//! Why a server did not give what it was asked for.
//!
//! **Invariant:** what a server says is cut and cleaned before it becomes part of an error.

use std::time::Duration;

/// Why one request has no result.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(crate) enum CallError {
    /// No answer in time.
    #[error("no answer within {}", seconds(*allowed))]
    Timeout { allowed: Duration },
    /// The server answered with an error of the protocol.
    #[error("the server answered with error {code}: {message}")]
    Rpc { code: i64, message: String },
    /// The server is gone.
    #[error("the server ended{how}")]
    Ended { how: String },
    /// An answer that is none.
    #[error("the answer cannot be read: {reason}")]
    Unreadable { reason: String },
    /// The connection failed.
    #[error("{reason}")]
    Connection { reason: String, may_pass: bool, wait: Option<Duration> },
    /// It was not asked any more.
    #[error("it was not asked for: the server left the reads before unanswered")]
    NotAsked,
}

impl CallError {
    /// Returns a stable word.
    pub(crate) const fn code(&self) -> &'static str {
        match self {
            Self::Timeout { .. } => "timeout",
            Self::Rpc { .. } => "rpc-error",
            Self::Ended { .. } => "server-ended",
            Self::Unreadable { .. } => "unreadable",
            Self::Connection { .. } => "connection",
            Self::NotAsked => "not-asked",
        }
    }
}

pub(crate) fn seconds(duration: Duration) -> String {
    format!("{} s", duration.as_secs_f64())
}

/// Why a run could not begin, or its selection failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    /// The program could not be started.
    #[error("cannot start `{command}`: {source}")]
    Start {
        /// The program.
        command: String,
        /// What the system says.
        source: std::io::Error,
    },
    /// The session could not be opened.
    #[error("cannot open a session: {reason}")]
    Connect {
        /// Why.
        reason: String,
    },
    /// The tools could not be listed.
    #[error("cannot list the tools of the server: {reason}")]
    List {
        /// Why.
        reason: String,
    },
    /// A configured tool that the server does not have.
    #[error("the server has no tool `{tool}`{known}")]
    NotListed {
        /// The tool.
        tool: String,
        /// What it has, in words.
        known: String,
    },
    /// A configured tool that says of itself that it changes something.
    #[error("the tool `{tool}` is not read-only, by its own word (`readOnlyHint` is false), and is never called")]
    NotReadOnly {
        /// The tool.
        tool: String,
    },
    /// The selection failed.
    #[error("the selection failed: {reason}")]
    Select {
        /// Why.
        reason: String,
    },
    /// The store failed while it took in what was fetched.
    #[error(transparent)]
    Store(#[from] kb_store::StoreError),
}

impl FetchError {
    /// Returns a word for programs to tell failures by; it never changes.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Start { .. } => "start",
            Self::Connect { .. } => "connect",
            Self::List { .. } => "list-tools",
            Self::NotListed { .. } => "tool-not-listed",
            Self::NotReadOnly { .. } => "tool-not-read-only",
            Self::Select { .. } => "select-failed",
            Self::Store(error) => error.code(),
        }
    }

    /// Says whether the configuration has to be changed before another run can go better.
    pub const fn is_configuration(&self) -> bool {
        matches!(self, Self::NotListed { .. } | Self::NotReadOnly { .. })
    }
}
