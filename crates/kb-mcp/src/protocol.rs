//! What the two eras of the protocol say of this server: versions, capabilities, identity, instructions, and the frame
//! of a result.
//!
//! **Invariant:** what only one era has is said to that era alone.

use serde_json::{Value, json};

use crate::call::Era;
use crate::served::Served;
use crate::tools::Tool;
use crate::wire::{Params, RpcError};

/// Versions that are opened by `initialize`, the oldest first.
pub(crate) const LEGACY_VERSIONS: &[&str] = &["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
/// The version without `initialize`.
pub(crate) const MODERN_VERSION: &str = "2026-07-28";
/// The levels of log messages, the least first.
pub(crate) const LOG_LEVELS: &[&str] =
    &["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

pub(crate) const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
pub(crate) const META_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
pub(crate) const META_LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
pub(crate) const META_SERVER: &str = "io.modelcontextprotocol/serverInfo";
pub(crate) const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
const SKILLS_EXTENSION: &str = "io.modelcontextprotocol/skills";

/// What an agent is told of how to use the tools; under 1,500 characters.
const INSTRUCTIONS: &str = "\
This server is a knowledge base: documents split into sections, found by keywords. Use it before you answer from memory, \
and keep in it what should be known next time.

1. search: two to five telling words, as they would stand in the text. Look at `verdict`: `answered` means the first hits \
very likely answer; `weak` means something related; `unanswered` means the base does not know, so say so instead of \
guessing. Nothing found: use fewer or other words.
2. retrieve: read a hit by its kbid before you rely on it; a snippet is not the whole. Give docid to read the document. \
`content` joins several. Long answers stop with a `cursor`: pass it to go on. Name the docid when you cite.
3. learn: keep what is worth knowing, as Markdown with a title and headings, one topic a document. To correct or extend a \
document, learn the whole new text again under the same docid; without docid you would make a second one. Search first, \
so that nothing is kept twice.

Ids: 26 characters are a kbid, anything else a docid. A kbid names a text, so it changes when the text does. unlearn \
cannot be undone. Never learn secrets.

Skills are instructions with placeholders: skill-list, then skill-get with `arguments` gives the filled-in text. An \
error has a `code`, and `retryable` says whether the same call may work later.";

/// The same for project knowledge.
const PROJECT_INSTRUCTIONS: &str = "\
This server holds what every project's assistant must know. It takes the place of the project's CLAUDE.md only: \
CLAUDE.local.md and the CLAUDE.md in the user's home are still read as they are.

1. get_project_main comes first, before any work on a project. `project_id` is the name of its repository, or of its \
folder where there is no Git. `exists: false` means that nothing was written yet: update_project_main begins it. That tool \
replaces the whole text.
2. search_knowledge finds chapters of the project's knowledge documents; get_knowledge_file reads one.
3. Keep what is worth knowing: create_knowledge_file makes a document of an introduction, keywords and chapters, one topic \
each; update_chapter replaces one chapter, whose title must match exactly. Search first, so that nothing is kept twice.

All input is checked: an error says what is wrong with it. Every write is a commit, so nothing is lost. Never write secrets.";

/// A book, for clients that show icons.
const ICON: &str = "data:image/svg+xml;base64,PHN2ZyB4bWxucz0iaHR0cDovL3d3dy53My5vcmcvMjAwMC9zdmciIHZpZXdCb3g9IjAgMCAyNCAyNCI+PHBhdGggZD0iTTQgM2g2YTIgMiAwIDAgMSAyIDJ2MTZhMiAyIDAgMCAwLTItMkg0ek0yMCAzaC02YTIgMiAwIDAgMC0yIDJ2MTZhMiAyIDAgMCAxIDItMmg2eiIgZmlsbD0ibm9uZSIgc3Ryb2tlPSIjMzY3IiBzdHJva2Utd2lkdGg9IjIiLz48L3N2Zz4=";

/// The name of a server of project knowledge alone.
const PROJECT_SERVER: &str = "Knowledge MCP Server";

/// Returns the name of the server.
pub(crate) const fn server_name(served: &Served) -> &'static str {
    if served.base().is_some() { "kb" } else { PROJECT_SERVER }
}

/// Returns what an agent is told of all that is served.
fn instructions(served: &Served) -> String {
    let of_base = served.base().map(|_| INSTRUCTIONS);
    let of_projects = served.projects().map(|_| PROJECT_INSTRUCTIONS);
    of_base.into_iter().chain(of_projects).collect::<Vec<_>>().join("\n\n")
}

/// Returns who this is, as far as a version can say it.
pub(crate) fn identity(served: &Served, version: &str) -> Value {
    let mut identity = json!({"name": server_name(served), "version": env!("CARGO_PKG_VERSION")});
    if version >= "2025-06-18" {
        identity["title"] = if served.base().is_some() { "kb knowledge base" } else { PROJECT_SERVER }.into();
    }
    if version >= "2025-11-25" {
        let description = if served.base().is_some() {
            "Documents in sections, found by keywords"
        } else {
            "What the assistant of every project must know, kept in Git"
        };
        identity["description"] = description.into();
        identity["icons"] = json!([{"src": ICON, "mimeType": "image/svg+xml", "sizes": ["any"]}]);
    }
    identity
}

fn capabilities(served: &Served) -> Value {
    let mut capabilities = json!({
        "tools": {},
        "resources": {"subscribe": true, "listChanged": true},
        "completions": {},
        "logging": {},
    });
    if served.base().is_some() {
        capabilities["prompts"] = json!({"listChanged": true});
        capabilities["extensions"] = json!({SKILLS_EXTENSION: {}});
    }
    capabilities
}

/// What `initialize` says of the client.
pub(crate) struct Opening {
    pub(crate) version: String,
    pub(crate) capabilities: Value,
}

/// Reads the parameters of `initialize`, and settles the version: the client's where it is known, else our latest.
pub(crate) fn opening(params: &Params) -> Result<Opening, RpcError> {
    let asked = params
        .get("protocolVersion")
        .and_then(Value::as_str)
        .ok_or_else(|| RpcError::params("`protocolVersion` is missing or not a string"))?;
    let capabilities = params.get("capabilities").cloned().unwrap_or_else(|| json!({}));
    if !capabilities.is_object() {
        return Err(RpcError::params("`capabilities` is not an object"));
    }
    let latest = LEGACY_VERSIONS[LEGACY_VERSIONS.len() - 1];
    let version = LEGACY_VERSIONS.iter().copied().find(|version| *version == asked).unwrap_or(latest);
    Ok(Opening { version: version.to_owned(), capabilities })
}

/// Returns the result of `initialize`.
pub(crate) fn initialize_result(served: &Served, version: &str) -> Value {
    json!({
        "protocolVersion": version,
        "capabilities": capabilities(served),
        "serverInfo": identity(served, version),
        "instructions": instructions(served),
    })
}

/// Returns the result of `server/discover`.
pub(crate) fn discover_result(served: &Served) -> Value {
    json!({
        "supportedVersions": [MODERN_VERSION],
        "capabilities": capabilities(served),
        "instructions": instructions(served),
    })
}

/// Returns the result of `tools/list`.
pub(crate) fn tools(served: &Served) -> Value {
    json!({"tools": served.tools().map(Tool::definition).collect::<Vec<_>>()})
}

/// Puts around a result what its era wants.
pub(crate) fn frame(mut result: Value, method: &str, era: &Era, server: &str) -> Value {
    if era.is_modern() {
        if result.get("resultType").is_none() {
            result["resultType"] = "complete".into();
        }
        let is_cacheable = matches!(
            method,
            "server/discover"
                | "tools/list"
                | "prompts/list"
                | "resources/list"
                | "resources/templates/list"
                | "resources/read"
                | "skills/list"
        );
        if is_cacheable {
            // The base may change at any moment, and is nobody else's business.
            result["ttlMs"] = 0.into();
            result["cacheScope"] = "private".into();
        }
        result["_meta"] = json!({META_SERVER: {"name": server, "version": env!("CARGO_PKG_VERSION")}});
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::{PROJECT_EXTRAS, PROJECT_TOOLS, TOOLS};

    #[test]
    fn instructions_and_tools_fit_their_readers() {
        for text in [INSTRUCTIONS, PROJECT_INSTRUCTIONS] {
            assert!(text.chars().count() < 1_500, "{}", text.chars().count());
        }
        for group in [TOOLS, PROJECT_TOOLS, PROJECT_EXTRAS] {
            let size: usize = group.iter().map(|tool| tool.definition().to_string().len()).sum();
            assert!(size < 12 * 1024, "{size} bytes");
            for tool in group {
                assert!(tool.description.len() <= 1024, "{}", tool.name);
            }
        }
    }
}
