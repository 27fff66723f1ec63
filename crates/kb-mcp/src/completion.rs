//! Completions: names of prompts, and what stands in resource URIs.
//!
//! **Invariant:** at most a hundred values, as the protocol has it, each one beginning as was asked.

use kb_store::{KnowledgeBase, ListFilter};
use serde_json::{Value, json};

use crate::project_resources;
use crate::prompts::names;
use crate::resources::internal;
use crate::served::Served;
use crate::wire::{Params, RpcError};

/// The most values in an answer.
const MAX_VALUES: usize = 100;

/// Answers `completion/complete`.
pub(crate) fn complete(served: &Served, params: &Params) -> Result<Value, RpcError> {
    let field = |object: &str, name: &str| params.get(object).and_then(|value| value.get(name)).and_then(Value::as_str);
    let missing = |name: &str| RpcError::params(format!("`{name}` is missing or not a string"));
    let argument = field("argument", "name").ok_or_else(|| missing("argument.name"))?;
    let value = field("argument", "value").ok_or_else(|| missing("argument.value"))?;
    let values = match field("ref", "type") {
        Some("ref/resource") => {
            let template = field("ref", "uri").ok_or_else(|| missing("ref.uri"))?;
            let found = if let Some(store) = served.projects().filter(|_| template.starts_with("knowledge://")) {
                let chosen = params.get("context").and_then(|context| context["arguments"]["project_id"].as_str());
                project_resources::complete(store, argument, value, chosen)?
            } else if let Some(base) = served.base() {
                resource_argument(base, template, argument, value)?
            } else {
                None
            };
            let unknown = || RpcError::params(format!("nothing is known of `{argument}` in `{template}`"));
            found.ok_or_else(unknown)?
        }
        Some("ref/prompt") => {
            let prompt = field("ref", "name").ok_or_else(|| missing("ref.name"))?;
            match served.base() {
                Some(base) => prompt_argument(base, prompt, argument, value)?,
                None => Vec::new(),
            }
        }
        _ => return Err(RpcError::params("`ref.type` is neither `ref/prompt` nor `ref/resource`")),
    };
    let total = values.len();
    let shown: Vec<_> = values.into_iter().take(MAX_VALUES).collect();
    Ok(json!({"completion": {"total": total, "hasMore": total > shown.len(), "values": shown}}))
}

/// Completes an argument of a URI; `None` where the URI has none of this name.
fn resource_argument(
    base: &KnowledgeBase,
    template: &str,
    argument: &str,
    value: &str,
) -> Result<Option<Vec<String>>, RpcError> {
    Ok(Some(match argument {
        "kbid" => kbids(base, value)?,
        "docid" => docids(base, value)?,
        "name" if template.starts_with("skill://") => skills(base, value)?,
        _ => return Ok(None),
    }))
}

/// Completes a value whose argument says what it is, or the name of a prompt. An unknown prompt has no values, which is
/// no error: a client asks while its user types.
fn prompt_argument(base: &KnowledgeBase, prompt: &str, argument: &str, value: &str) -> Result<Vec<String>, RpcError> {
    let is_known = || base.skill_get(prompt).is_ok() || base.agent_get(prompt.trim_start_matches("agent:")).is_ok();
    match argument {
        "docid" | "doc" | "document" => docids(base, value),
        "kbid" | "section" => kbids(base, value),
        "skill" => skills(base, value),
        "name" if !is_known() => names(base, value),
        _ => Ok(Vec::new()),
    }
}

/// Returns kbids that begin so. Of fewer than four characters there would be too many to mean one.
fn kbids(base: &KnowledgeBase, value: &str) -> Result<Vec<String>, RpcError> {
    match base.sections_by_prefix(value, MAX_VALUES + 1) {
        Ok(found) => Ok(found.iter().map(ToString::to_string).collect()),
        Err(error) if error.code() == "invalid" => Ok(Vec::new()),
        Err(error) => Err(internal(&error)),
    }
}

fn docids(base: &KnowledgeBase, value: &str) -> Result<Vec<String>, RpcError> {
    let filter = ListFilter { prefix: Some(value.to_owned()), ..ListFilter::default() };
    let documents = base.list(&filter).map_err(|error| internal(&error))?.documents;
    Ok(documents.into_iter().map(|document| document.docid.to_string()).collect())
}

fn skills(base: &KnowledgeBase, value: &str) -> Result<Vec<String>, RpcError> {
    Ok(names(base, value)?.into_iter().filter(|name| !name.starts_with("agent:")).collect())
}
