//! Prompts: every skill by its name, every agent as `agent:<name>`.
//!
//! An agent has a second name without a colon, its docid `agent-<slug>`, for clients that take none. Both are listed.
//!
//! **Invariant:** the names listed are unique, and each can be got by the name under which it is listed.

use std::hash::{DefaultHasher, Hash, Hasher};

use kb_core::{AgentInfo, DocId, SkillError, SkillInfo};
use kb_store::{KnowledgeBase, StoreError};
use serde_json::{Value, json};

use crate::resources::internal;
use crate::tools::arguments::as_texts;
use crate::wire::{Params, RpcError};

/// Prompts on one page of the list.
const PAGE: usize = 200;

/// Answers `prompts/list`.
pub(crate) fn list(base: &KnowledgeBase, params: &Params) -> Result<Value, RpcError> {
    let skills = base.skill_list().map_err(|error| internal(&error))?.skills;
    let agents = base.agent_list().map_err(|error| internal(&error))?.agents;
    let total = skills.len() + agents.len();
    let begin = page_start(params, total)?;
    let mut prompts = Vec::new();
    for skill in skills.iter().skip(begin).take(PAGE) {
        match base.skill_get(prompt_name(&skill.docid)) {
            Ok(skill) => prompts.push(skill_entry(&skill)),
            // It went away since the list was read.
            Err(StoreError::SkillNotFound { .. }) => {}
            Err(error) => return Err(internal(&error)),
        }
    }
    let rest = PAGE - (skills.len().saturating_sub(begin)).min(PAGE);
    for agent in agents.iter().skip(begin.saturating_sub(skills.len())).take(rest) {
        let entry =
            |name: &str| json!({"name": name, "title": agent.name, "description": agent.description, "arguments": []});
        prompts.push(entry(&format!("agent:{}", agent.name)));
        let alias = agent.docid.as_str();
        if skills.iter().all(|skill| prompt_name(&skill.docid) != alias) {
            prompts.push(entry(alias));
        }
    }
    let mut result = json!({"prompts": prompts});
    if begin + PAGE < total {
        result["nextCursor"] = (begin + PAGE).to_string().into();
    }
    Ok(result)
}

/// Answers `prompts/get`.
pub(crate) fn get(base: &KnowledgeBase, params: &Params) -> Result<Value, RpcError> {
    let Some(name) = params.get("name").and_then(Value::as_str) else {
        return Err(RpcError::params("`name` is missing or not a string"));
    };
    let values = match params.get("arguments") {
        None | Some(Value::Null) => std::collections::BTreeMap::new(),
        Some(Value::Object(fields)) => as_texts(fields.clone())
            .map_err(|field| RpcError::params(format!("the argument `{field}` is not a string")))?,
        Some(_) => return Err(RpcError::params("`arguments` is not an object")),
    };
    if let Some(name) = name.strip_prefix("agent:") {
        return base.agent_get(name).map(|agent| agent_messages(&agent)).map_err(|error| refusal(&error));
    }
    let skill = match base.skill_get(name) {
        Ok(skill) => skill,
        Err(StoreError::SkillNotFound { .. }) if name.starts_with("agent-") => {
            return base.agent_get(name).map(|agent| agent_messages(&agent)).map_err(|error| refusal(&error));
        }
        Err(error) => return Err(refusal(&error)),
    };
    let text = base.skill_render(name, &values).map_err(|error| refusal(&error))?;
    Ok(json!({
        "description": skill.description,
        "messages": [{"role": "user", "content": {"type": "text", "text": text}}],
    }))
}

/// Returns the names of all prompts that begin so.
pub(crate) fn names(base: &KnowledgeBase, beginning: &str) -> Result<Vec<String>, RpcError> {
    let skills = base.skill_list().map_err(|error| internal(&error))?.skills;
    let agents = base.agent_list().map_err(|error| internal(&error))?.agents;
    let skills = skills.iter().map(|skill| prompt_name(&skill.docid).to_owned());
    let names = skills.chain(agents.iter().map(|agent| format!("agent:{}", agent.name)));
    Ok(names.filter(|name| name.to_lowercase().starts_with(&beginning.to_lowercase())).collect())
}

/// Returns a number that changes when the list of prompts does.
pub(crate) fn fingerprint(base: &KnowledgeBase) -> Result<u64, StoreError> {
    let mut hasher = DefaultHasher::new();
    for skill in base.skill_list()?.skills {
        (skill.docid.as_str(), skill.kbid.to_string()).hash(&mut hasher);
    }
    for agent in base.agent_list()?.agents {
        (agent.docid.as_str(), agent.name, agent.description).hash(&mut hasher);
    }
    Ok(hasher.finish())
}

/// Returns the name of a skill that every client takes.
pub(crate) fn prompt_name(docid: &DocId) -> &str {
    docid.as_str().strip_prefix("skill-").unwrap_or(docid.as_str())
}

/// Reads the cursor of a list that is cut into pages of one length.
fn page_start(params: &Params, total: usize) -> Result<usize, RpcError> {
    match params.get("cursor") {
        None | Some(Value::Null) => Ok(0),
        Some(cursor) => cursor
            .as_str()
            .and_then(|text| text.parse().ok())
            .filter(|at| at % PAGE == 0 && *at <= total)
            .ok_or_else(|| RpcError::params("`cursor` is not one that an answer gave")),
    }
}

fn skill_entry(skill: &SkillInfo) -> Value {
    let arguments: Vec<_> = skill
        .arguments
        .iter()
        .map(|argument| {
            let mut entry = json!({"name": argument.name, "required": argument.required});
            if let Some(description) = &argument.description {
                entry["description"] = description.as_str().into();
            }
            entry
        })
        .collect();
    let name = prompt_name(&skill.docid);
    json!({"name": name, "title": skill.name, "description": skill.description, "arguments": arguments})
}

fn agent_messages(agent: &AgentInfo) -> Value {
    let mut list = String::new();
    for (i, skill) in agent.skills.iter().enumerate() {
        let line = match (&skill.name, &skill.description) {
            (Some(name), Some(description)) => format!("{}. `{name}`: {description}\n", i + 1),
            (Some(name), None) => format!("{}. `{name}`\n", i + 1),
            (None, _) => format!("{}. (a skill that was deleted, {})\n", i + 1, skill.kbid),
        };
        list.push_str(&line);
    }
    let skills = if list.is_empty() {
        "You have no skills of your own.".to_owned()
    } else {
        format!("Your skills, in order; `skill-get` reads one:\n\n{list}")
    };
    json!({
        "description": agent.description,
        "messages": [
            {"role": "assistant", "content": {"type": "text", "text": agent.persona}},
            {"role": "user", "content": {"type": "text", "text": skills}},
        ],
    })
}

fn refusal(error: &StoreError) -> RpcError {
    match error {
        StoreError::SkillNotFound { id, .. } | StoreError::AgentNotFound { id, .. } => {
            RpcError::params(format!("Prompt not found: {id}"))
        }
        StoreError::Skill(SkillError::MissingArgument { arguments, .. }) => {
            RpcError::params(error.to_string()).with_data(json!({"missing": arguments}))
        }
        StoreError::Skill(_) | StoreError::Agent(_) | StoreError::Invalid { .. } => RpcError::params(error.to_string()),
        _ => internal(error),
    }
}
