//! `agent-create`, `agent-list`, `agent-get`, `agent-delete`.
//!
//! **Invariant:** an agent names its skills; which they are is looked up anew for each answer.

use kb_store::NewAgent;

use super::arguments::Arguments;
use super::schema::{Shape, optional, required};
use super::skills::list;
use super::{Answer, Handler, Kind, Tool, to_value};
use crate::call::Call;
use crate::failure::Failure;

pub(super) static CREATE: Tool = Tool {
    name: "agent-create",
    title: "Create an agent",
    description: "Keep a persona with its skills in order; it becomes the prompt `agent:<name>`. The same name makes \
                  the next revision.",
    kind: Kind::Add,
    parameters: &[
        required("name", Shape::Text, ""),
        required("description", Shape::Text, ""),
        required("persona", Shape::Text, "Who the assistant is"),
        required("skills", Shape::Texts, "Names or kbids"),
    ],
    result: AGENT,
    handler: Handler::Base(create),
};

pub(super) static LIST: Tool = Tool {
    name: "agent-list",
    title: "List agents",
    description: "All agents by name; `cursor` goes on.",
    kind: Kind::Read,
    parameters: &[optional("cursor", Shape::Text, "")],
    result: &[("agents", Shape::Objects(&[])), ("cursor", Shape::Text)],
    handler: Handler::Base(|call, arguments| list(to_value(&call.base().agent_list()?)?, "agents", arguments)),
};

pub(super) static GET: Tool = Tool {
    name: "agent-get",
    title: "Get an agent",
    description: "Read an agent with its skills as they are now; a deleted skill has `name: null`.",
    kind: Kind::Read,
    parameters: &[required("docid", Shape::Text, "Or the name")],
    result: AGENT,
    handler: Handler::Base(get),
};

pub(super) static DELETE: Tool = Tool {
    name: "agent-delete",
    title: "Delete an agent",
    description: "Remove an agent for good. Its skills stay.",
    kind: Kind::Remove,
    parameters: &[required("docid", Shape::Text, "Or the name")],
    result: &[("documents", Shape::Texts)],
    handler: Handler::Base(delete),
};

const AGENT: &[(&str, Shape)] = &[("docid", Shape::Text), ("name", Shape::Text), ("skills", Shape::Objects(&[]))];

fn create(call: &Call<'_>, arguments: &Arguments) -> Result<Answer, Failure> {
    let agent = NewAgent {
        name: arguments.required_text("name")?,
        description: arguments.required_text("description")?,
        persona: arguments.required_text("persona")?,
        skills: arguments.texts("skills")?,
    };
    to_value(&call.write(|base| base.agent_create(&agent))?).map(Answer::Whole)
}

fn get(call: &Call<'_>, arguments: &Arguments) -> Result<Answer, Failure> {
    to_value(&call.base().agent_get(&arguments.required_text("docid")?)?).map(Answer::Whole)
}

fn delete(call: &Call<'_>, arguments: &Arguments) -> Result<Answer, Failure> {
    let id = arguments.required_text("docid")?;
    to_value(&call.write(|base| base.agent_delete(&id))?).map(Answer::Whole)
}
