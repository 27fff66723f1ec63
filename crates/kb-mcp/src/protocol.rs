//! What the two eras of the protocol say of this server: versions, capabilities, identity, instructions, and the frame
//! of a result.
//!
//! **Invariant:** what only one era has is said to that era alone.

use serde_json::{Value, json};

use crate::call::Era;
use crate::tools::TOOLS;
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

/// A book, for clients that show icons.
const ICON: &str = "data:image/svg+xml;base64,PHN2ZyB4bWxucz0iaHR0cDovL3d3dy53My5vcmcvMjAwMC9zdmciIHZpZXdCb3g9IjAgMCAyNCAyNCI+PHBhdGggZD0iTTQgM2g2YTIgMiAwIDAgMSAyIDJ2MTZhMiAyIDAgMCAwLTItMkg0ek0yMCAzaC02YTIgMiAwIDAgMC0yIDJ2MTZhMiAyIDAgMCAxIDItMmg2eiIgZmlsbD0ibm9uZSIgc3Ryb2tlPSIjMzY3IiBzdHJva2Utd2lkdGg9IjIiLz48L3N2Zz4=";

/// Returns who this is, as far as a version can say it.
pub(crate) fn identity(version: &str) -> Value {
    let mut identity = json!({"name": "kb", "version": env!("CARGO_PKG_VERSION")});
    if version >= "2025-06-18" {
        identity["title"] = "kb knowledge base".into();
    }
    if version >= "2025-11-25" {
        identity["description"] = "Documents in sections, found by keywords".into();
        identity["icons"] = json!([{"src": ICON, "mimeType": "image/svg+xml", "sizes": ["any"]}]);
    }
    identity
}

fn capabilities() -> Value {
    json!({
        "tools": {},
        "resources": {"subscribe": true, "listChanged": true},
        "prompts": {"listChanged": true},
        "completions": {},
        "logging": {},
        "extensions": {SKILLS_EXTENSION: {}},
    })
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
pub(crate) fn initialize_result(version: &str) -> Value {
    json!({
        "protocolVersion": version,
        "capabilities": capabilities(),
        "serverInfo": identity(version),
        "instructions": INSTRUCTIONS,
    })
}

/// Returns the result of `server/discover`.
pub(crate) fn discover_result() -> Value {
    json!({
        "supportedVersions": [MODERN_VERSION],
        "capabilities": capabilities(),
        "instructions": INSTRUCTIONS,
    })
}

/// Returns the result of `tools/list`.
pub(crate) fn tools() -> Value {
    json!({"tools": TOOLS.iter().map(|tool| tool.definition()).collect::<Vec<_>>()})
}

/// Puts around a result what its era wants.
pub(crate) fn frame(mut result: Value, method: &str, era: &Era) -> Value {
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
        result["_meta"] = json!({META_SERVER: {"name": "kb", "version": env!("CARGO_PKG_VERSION")}});
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_and_tools_fit_their_readers() {
        assert!(INSTRUCTIONS.chars().count() < 1_500, "{}", INSTRUCTIONS.chars().count());
        let size = tools().to_string().len();
        assert!(size < 12 * 1024, "{size} bytes");
        for tool in TOOLS {
            assert!(tool.description.len() <= 1024, "{}", tool.name);
        }
    }
}
