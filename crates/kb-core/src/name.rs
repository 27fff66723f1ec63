//! Names of skills and agents.
//!
//! **Invariant:** a name that passed [`check`] has a slug that tells it from other names, and `skill-<slug>` and
//! `agent-<slug>` are docids.

use crate::{DocId, slug};

/// The longest slug of a name, in characters: what MCP clients take for the name of a prompt.
pub const MAX_NAME_SLUG_CHARS: usize = 64;

/// Why a text cannot name a skill or an agent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a name for a skill or an agent ({reason}): `{name}`")]
pub struct NameError {
    name: String,
    reason: &'static str,
}

/// Returns the slug under which this name is known; names of one slug are the same name.
pub(crate) fn check(name: &str) -> Result<String, NameError> {
    let bad = |reason| NameError { name: name.chars().take(80).collect(), reason };
    if name.trim().is_empty() {
        return Err(bad("it is blank"));
    }
    if name.chars().any(char::is_control) {
        return Err(bad("it has a control character"));
    }
    if name.trim_start().get(..6).is_some_and(|start| start.eq_ignore_ascii_case("agent:")) {
        return Err(bad("it begins with `agent:`"));
    }
    let slug = slug(name);
    if slug.len() > MAX_NAME_SLUG_CHARS {
        return Err(bad("its slug is over 64 characters"));
    }
    Ok(slug)
}

/// Returns the docid of the skill of this name: `skill-<slug>`.
///
/// ```
/// use kb_core::skill_docid;
///
/// assert_eq!(skill_docid("Weekly Report!")?.as_str(), "skill-weekly-report");
/// assert!(skill_docid("agent:reviewer").is_err());
/// # Ok::<(), kb_core::NameError>(())
/// ```
pub fn skill_docid(name: &str) -> Result<DocId, NameError> {
    docid("skill", name)
}

/// Returns the docid of the agent of this name: `agent-<slug>`.
pub fn agent_docid(name: &str) -> Result<DocId, NameError> {
    docid("agent", name)
}

fn docid(kind: &str, name: &str) -> Result<DocId, NameError> {
    let slug = check(name)?;
    Ok(format!("{kind}-{slug}").parse().expect("a slug after a word and `-` is a docid"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_needs_a_slug_of_its_own() {
        for (name, reason) in
            [("", "blank"), (" \t", "blank"), ("a\nb", "control"), ("Agent:x", "agent:"), (&"long ".repeat(20), "64")]
        {
            let error = check(name).expect_err(name);
            assert!(error.to_string().contains(reason), "{error}");
        }
        assert_eq!(check("Weekly Report!").as_deref(), Ok("weekly-report"));
        assert_eq!(check("agent smith").as_deref(), Ok("agent-smith"));
        assert!(check("🚢").is_ok() && check("---").is_ok());
        assert_eq!(agent_docid("港口").map(|id| id.to_string()).as_deref(), Ok("agent-gang-kou"));
    }
}
