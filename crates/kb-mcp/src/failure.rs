//! A tool call that failed: what is said of it, and the code that programs tell it by.
//!
//! **Invariant:** a failure is one sentence that names the id or field and the way on; its code never changes once
//! released. The way on is added here and nowhere else.

use kb_core::SkillError;
use kb_store::{ProjectError, StoreError};
use serde::Serialize;
use serde_json::Value;

/// Why a tool call failed, as its result says.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Failure {
    /// A stable word.
    pub(crate) code: &'static str,
    /// One sentence.
    pub(crate) message: String,
    /// Whether the same call may succeed later with nothing changed.
    pub(crate) retryable: bool,
    /// Names close to one that is not known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) near: Vec<String>,
}

impl Failure {
    pub(crate) fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), retryable: false, near: Vec::new() }
    }

    /// Returns the failure of a report that cannot be written as JSON.
    pub(crate) fn unshown(error: &serde_json::Error) -> Self {
        Self::new("internal", format!("the result cannot be shown: {error}"))
    }

    /// Returns the failure of an argument.
    pub(crate) fn argument(name: &str, reason: impl AsRef<str>) -> Self {
        Self::new("invalid", format!("`{name}`: {}", reason.as_ref()))
    }

    /// Returns the object that a result shows.
    pub(crate) fn to_value(&self) -> Value {
        serde_json::to_value(self).expect("a failure is made of texts and a flag")
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let mut message = error.sentence();
        let near = error.near_names();
        if !near.is_empty() {
            let names = near.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
            message = format!("{message}; near names are {names}");
        } else if let Some(way) = way_on(&error) {
            message = format!("{message}; {way}");
        }
        Self { code: error.code(), message, retryable: error.is_retryable(), near }
    }
}

impl From<ProjectError> for Failure {
    /// The sentence is the contract's, with nothing added.
    fn from(error: ProjectError) -> Self {
        let (code, retryable) = (error.code(), error.is_retryable());
        let near = match &error {
            ProjectError::ProjectNotFound { near, .. } | ProjectError::FileNotFound { near, .. } => near.clone(),
            _ => Vec::new(),
        };
        let message = match error {
            ProjectError::Store(error) => error.sentence(),
            other => other.to_string(),
        };
        Self { code, message, retryable, near }
    }
}

/// Says what can be done about a failure, in the words of the tools.
fn way_on(error: &StoreError) -> Option<&'static str> {
    Some(match error {
        StoreError::SectionNotFound { .. } | StoreError::DocumentNotFound { .. } => "`search` finds the ids there are",
        StoreError::SkillNotFound { .. } => "`skill-list` shows the skills there are",
        StoreError::AgentNotFound { .. } => "`agent-list` shows the agents there are",
        StoreError::Skill(SkillError::MissingArgument { .. }) => "`skill-get` shows its arguments",
        StoreError::Busy { .. } => "try again in a moment",
        StoreError::Damaged { .. } => "`check` lists all damage and `rebuild` heals an index",
        StoreError::NoHead { .. } => "`kb rebuild` on the command line finds the documents again",
        StoreError::TooNew { .. } => "update kb",
        StoreError::ReadOnly | StoreError::NotWritable { .. } => "the folder or the file system cannot be written",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_failure_names_the_id_and_the_way_on() {
        let error = StoreError::SectionNotFound { id: "abc123".to_owned() };
        let value = Failure::from(error).to_value();
        assert_eq!(value["code"], "not-found");
        assert_eq!(value["message"], "Section not found: abc123; `search` finds the ids there are");
    }

    #[test]
    fn busy_can_be_tried_again() {
        let failure = Failure::from(StoreError::Busy { holder: None, waited: Duration::from_secs(1) });
        assert_eq!((failure.code, failure.retryable), ("busy", true));
    }

    #[test]
    fn near_names_stand_in_the_sentence_and_beside_it() {
        let near = vec!["plan-a".parse().unwrap()];
        let failure = Failure::from(StoreError::DocumentNotFound { id: "plan".to_owned(), near });
        assert_eq!(failure.message, "Document not found: plan; near names are `plan-a`");
        assert_eq!(failure.near, ["plan-a"]);
    }
}
