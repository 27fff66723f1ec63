//! Agents: a persona, and the skills that it has.
//!
//! An agent is one Markdown text: front matter with name, description and skills (docids, in order), then the persona.
//!
//! **Invariant:** skills are docids; which skills there are, and what a name or a kbid means, is for the store to say.

use crate::front_matter::{FrontMatterBlock, fields, text_of, yaml_quoted};
use crate::name::{NameError, check};
use crate::{DocId, IdError, Warning, agent_docid};

/// Why a text is no agent.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    /// The text does not begin with front matter.
    #[error("an agent begins with front matter that names it: `---`, `name: …`, `skills: […]`, `---`")]
    NoFrontMatter,
    /// The front matter is broken.
    #[error("{}", .0.message)]
    FrontMatter(Warning),
    /// There is no `name`.
    #[error("the front matter of the agent has no `name`")]
    NoName,
    /// The name will not do.
    #[error(transparent)]
    Name(#[from] NameError),
    /// A field has the wrong shape.
    #[error("`{field}` in the front matter of the agent is not {expected}")]
    Field {
        /// Its name.
        field: &'static str,
        /// What it should be.
        expected: &'static str,
    },
    /// A skill is not a docid.
    #[error("`skills` in the front matter of the agent")]
    Skill(#[from] IdError),
}

/// An agent.
///
/// ```
/// use kb_core::Agent;
///
/// let agent = Agent::parse("---\nname: Reviewer\nskills: [skill-sum]\n---\nYou review.\n")?;
/// assert_eq!(agent.docid().as_str(), "agent-reviewer");
/// assert_eq!(agent.skills()[0].as_str(), "skill-sum");
/// # Ok::<(), kb_core::AgentError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agent {
    name: String,
    description: String,
    skills: Vec<DocId>,
    persona: String,
}

impl Agent {
    /// Reads the text of an agent.
    pub fn parse(text: &str) -> Result<Self, AgentError> {
        let FrontMatterBlock::Found { format, fields: range, end } = FrontMatterBlock::find(text) else {
            return Err(AgentError::NoFrontMatter);
        };
        let front = fields(text, format, range).map_err(AgentError::FrontMatter)?;
        let text_field = |field: &'static str| match front.get(field).filter(|value| !value.is_null()) {
            None => Ok(None),
            Some(value) => text_of(value).map(Some).ok_or(AgentError::Field { field, expected: "a text" }),
        };
        let name = text_field("name")?.ok_or(AgentError::NoName)?;
        check(&name)?;
        let wrong_skills = AgentError::Field { field: "skills", expected: "a list of docids" };
        let mut skills = Vec::new();
        match front.get("skills").filter(|value| !value.is_null()) {
            None => {}
            Some(serde_json::Value::Array(items)) => {
                for item in items {
                    skills.push(text_of(item).ok_or_else(|| wrong_skills.clone())?.parse()?);
                }
            }
            Some(_) => return Err(wrong_skills),
        }
        let description = text_field("description")?.unwrap_or_default();
        Ok(Self { name, description, skills, persona: text[end..].to_owned() })
    }

    /// Writes the text of an agent, every text in its front matter quoted.
    pub fn to_text(name: &str, description: &str, skills: &[DocId], persona: &str) -> String {
        let mut text = format!("---\nname: {}\ndescription: {}\n", yaml_quoted(name), yaml_quoted(description));
        if !skills.is_empty() {
            text.push_str("skills:\n");
        }
        for skill in skills {
            text.extend(["  - ", &yaml_quoted(skill.as_str()), "\n"]);
        }
        text.push_str("---\n");
        text.push_str(persona);
        text
    }

    /// Returns the name as written.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the description, empty if there is none.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// Returns the docids of its skills, in order, as written.
    pub fn skills(&self) -> &[DocId] {
        &self.skills
    }

    /// Returns the text that makes an assistant this agent.
    pub fn persona(&self) -> &str {
        &self.persona
    }

    /// Returns the docid, `agent-<slug of the name>`.
    pub fn docid(&self) -> DocId {
        agent_docid(&self.name).expect("the name was checked when the agent was read")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_no_agent_is_refused() {
        for (text, message) in [
            ("You review.", "begins with front matter"),
            ("---\nname: [\n---\n", "cannot be read"),
            ("---\nskills: []\n---\n", "no `name`"),
            ("---\nname: ' '\n---\n", "it is blank"),
            ("---\nname: a\nskills: b\n---\n", "not a list of docids"),
            ("---\nname: a\nskills: [~]\n---\n", "not a list of docids"),
            ("---\nname: a\ndescription: {}\n---\n", "`description` in the front matter of the agent is not a text"),
            ("---\nname: a\nskills: ['../x']\n---\n", "`skills` in the front matter"),
        ] {
            let error = Agent::parse(text).expect_err(text).to_string();
            assert!(error.contains(message), "{error}");
        }
    }

    proptest! {
        #[test]
        fn an_agent_reads_back_as_written(
            name in "[a-z][a-z :#\"']{0,20}",
            description in any::<String>(),
            skills in proptest::collection::vec("skill-[a-z0-9é港]{1,20}", 0..5),
            persona in any::<String>(),
        ) {
            prop_assume!(!name.starts_with("agent:"));
            let skills: Vec<DocId> = skills.iter().map(|skill| skill.parse().expect("a docid")).collect();
            let agent = Agent::parse(&Agent::to_text(&name, &description, &skills, &persona)).map_err(|e| TestCaseError::fail(e.to_string()))?;
            prop_assert_eq!((agent.name(), agent.description(), agent.persona()), (&*name, &*description, &*persona));
            prop_assert_eq!(agent.skills(), skills);
        }
    }
}
