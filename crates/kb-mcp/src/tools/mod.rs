//! The tools: their names, what they say of themselves, and which handler answers.
//!
//! **Invariant:** names, parameters and annotations are a contract; a parameter may be added, none is renamed. A
//! handler parses, calls one operation of [`kb_store`], and gives its result as it is.

mod agents;
pub(crate) mod arguments;
mod describe;
mod knowledge;
mod maintenance;
mod projects;
mod reading;
pub(crate) mod schema;
mod skills;

use serde_json::{Value, json};

use self::arguments::Arguments;
use self::schema::{Parameter, Shape, object, result};
use crate::call::{Call, ProjectCall};
use crate::failure::Failure;
use crate::reply::{Reply, Report};

/// Where a tool's calls are run, and what they do to the base.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Reads, and is soon done.
    Read,
    /// Adds; the same again changes nothing.
    Add,
    /// Writes over what is there; the same again changes nothing.
    Replace,
    /// Takes away; the same again changes nothing.
    Remove,
    /// Reads the whole base.
    Check,
    /// Takes away what nothing needs.
    Collect,
    /// Makes the index anew.
    Rebuild,
}

impl Kind {
    /// Says whether a call may take so long that it gets a lane of its own.
    pub(crate) const fn is_maintenance(self) -> bool {
        matches!(self, Self::Check | Self::Collect | Self::Rebuild)
    }

    /// Says whether a call may commit.
    pub(crate) const fn writes(self) -> bool {
        !matches!(self, Self::Read | Self::Check)
    }
}

/// A tool.
pub(crate) struct Tool {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) description: &'static str,
    pub(crate) kind: Kind,
    pub(crate) parameters: &'static [Parameter],
    pub(crate) result: &'static [(&'static str, Shape)],
    pub(crate) handler: Handler,
}

/// What answers the calls of a tool, by the store that it works on.
#[derive(Clone, Copy)]
pub(crate) enum Handler {
    Base(fn(&Call<'_>, &Arguments) -> Result<Answer, Failure>),
    Projects(fn(&ProjectCall<'_>, &Arguments) -> Result<Answer, Failure>),
}

/// What a tool answers.
#[derive(Debug)]
pub(crate) enum Answer {
    /// One value, as text and as structured content.
    Whole(Value),
    /// The same, written already.
    Report(Report),
    /// A list as text, and the object that holds it as structured content.
    List { items: Value, whole: Value },
    /// Not yet: the client is asked for something first.
    NeedsInput(Value),
}

/// The tools of a knowledge base, in the order in which they are listed.
pub(crate) static TOOLS: &[&Tool] = &[
    &knowledge::SEARCH,
    &knowledge::LEARN,
    &knowledge::UNLEARN,
    &reading::RETRIEVE,
    &reading::CONTENT,
    &maintenance::STATUS,
    &maintenance::CHECK,
    &maintenance::GC,
    &maintenance::REBUILD,
    &skills::LEARN,
    &skills::LIST,
    &skills::GET,
    &skills::DELETE,
    &agents::CREATE,
    &agents::LIST,
    &agents::GET,
    &agents::DELETE,
];

/// The tools of project knowledge.
pub(crate) static PROJECT_TOOLS: &[&Tool] = &[
    &projects::GET_MAIN,
    &projects::UPDATE_MAIN,
    &projects::SEARCH,
    &projects::CREATE,
    &projects::UPDATE_CHAPTER,
    &projects::GET_FILE,
    &projects::DELETE,
];

/// More of them, which are served where they are asked for.
pub(crate) static PROJECT_EXTRAS: &[&Tool] = &[
    &projects::LIST_PROJECTS,
    &projects::LIST_FILES,
    &projects::ADD_CHAPTER,
    &projects::REMOVE_CHAPTER,
    &projects::RENAME,
    &projects::HISTORY,
    &projects::RESTORE,
];

impl Tool {
    /// Returns the tool as `tools/list` shows it.
    pub(crate) fn definition(&self) -> Value {
        let hints = json!({
            "readOnlyHint": !self.kind.writes(),
            "destructiveHint": matches!(self.kind, Kind::Replace | Kind::Remove | Kind::Collect),
            "idempotentHint": !matches!(self.kind, Kind::Collect | Kind::Rebuild),
            "openWorldHint": false,
        });
        json!({
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "inputSchema": object(self.parameters),
            "outputSchema": result(self.result),
            "annotations": hints,
        })
    }
}

/// Returns the result of a call, a failure in the shape of the tool's group.
pub(crate) fn call_result(tool: &Tool, outcome: Result<Answer, Failure>) -> Reply {
    let (text, whole, is_error) = match outcome {
        Ok(Answer::Report(report)) => return report.into(),
        Ok(Answer::Whole(value)) => (value.to_string(), value, false),
        Ok(Answer::List { items, whole }) => (items.to_string(), whole, false),
        Ok(Answer::NeedsInput(requests)) => {
            return json!({"resultType": "input_required", "inputRequests": requests}).into();
        }
        Err(failure) => {
            let value = match tool.handler {
                Handler::Base(_) => failure.to_value(),
                Handler::Projects(_) => json!({"success": false, "error": failure.message}),
            };
            (value.to_string(), value, true)
        }
    };
    json!({"content": [{"type": "text", "text": text}], "structuredContent": whole, "isError": is_error}).into()
}

/// Returns a report of the base as JSON.
fn to_value(report: &impl serde::Serialize) -> Result<Value, Failure> {
    serde_json::to_value(report).map_err(|error| Failure::unshown(&error))
}
