//! Resources by URI: sections, documents, skills; and the Skills extension over the last (SEP-2640).
//!
//! **Invariant:** a URI of ours names one thing or is not found; nothing else is read by it, and no file is.

use kb_core::{DocId, FrontMatter, FrontMatterBlock, SectionId, SkillInfo, slug};
use kb_store::{KnowledgeBase, ProjectStore, StoreError};
use serde_json::{Map, Value, json};

use crate::digest::sha256;
use crate::project_resources::{self, ProjectResource};
use crate::prompts::prompt_name;
use crate::served::Served;
use crate::wire::{INTERNAL_ERROR, INVALID_PARAMS, Params, RESOURCE_NOT_FOUND, RpcError};

const SECTION: &str = "kbdb://section/";
const DOCUMENT: &str = "kbdb://document/";
const SKILL: &str = "skill://";
const SKILL_FILE: &str = "/SKILL.md";

/// What a URI names.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Resource {
    Section(SectionId),
    Document(DocId),
    Skill(String),
}

impl Resource {
    /// Reads a URI; `None` for one that names nothing here.
    pub(crate) fn parse(uri: &str) -> Option<Self> {
        if let Some(kbid) = uri.strip_prefix(SECTION) {
            return unescape(kbid)?.parse().ok().map(Self::Section);
        }
        if let Some(docid) = uri.strip_prefix(DOCUMENT) {
            return unescape(docid)?.parse().ok().map(Self::Document);
        }
        let name = unescape(uri.strip_prefix(SKILL)?.strip_suffix(SKILL_FILE)?)?;
        // Only the name as it is listed, so that one skill has one URI.
        (slug(&name) == name).then_some(Self::Skill(name))
    }

    /// Returns a text that changes when the resource does; `None` where there is none.
    pub(crate) fn fingerprint(&self, base: &KnowledgeBase) -> Result<Option<String>, StoreError> {
        let found = match self {
            Self::Section(kbid) => base.section_bytes(*kbid).map(|_| "there".to_owned()),
            Self::Document(docid) => {
                let revision = base.current_revision(docid)?;
                return Ok(revision.map(|(number, updated)| format!("{number} {updated}")));
            }
            Self::Skill(name) => base.skill_get(name).map(|skill| skill.kbid.to_string()),
        };
        match found {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.code() == "not-found" => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Returns the templates of the URIs.
pub(crate) fn templates(served: &Served) -> Value {
    let of_base = served.base().map(|_| base_templates()).unwrap_or_default();
    let of_projects = served.projects().map(|_| project_resources::templates()).unwrap_or_default();
    of_base.into_iter().chain(of_projects).collect()
}

fn base_templates() -> Vec<Value> {
    vec![
        json!({
            "uriTemplate": "kbdb://section/{kbid}",
            "name": "section",
            "title": "Section",
            "description": "The text of a section as it was learned; a picture comes base64-encoded under its own type.",
            "mimeType": "text/plain",
        }),
        json!({
            "uriTemplate": "kbdb://document/{docid}",
            "name": "document",
            "title": "Document",
            "description": "A document's manifest and all its sections in order; an agent's docid works too.",
            "mimeType": "application/json",
        }),
        json!({
            "uriTemplate": "skill://{name}/SKILL.md",
            "name": "skill",
            "title": "Skill",
            "description": "A skill with its front matter, as Agent Skills has it.",
            "mimeType": "text/markdown",
        }),
    ]
}

/// Answers `resources/list`: the sections of a base are too many to be listed.
pub(crate) fn list(served: &Served, params: &Params) -> Result<Value, RpcError> {
    no_cursor(params)?;
    let resources = served.projects().map(project_resources::list).transpose()?.unwrap_or_default();
    Ok(json!({"resources": resources}))
}

/// Answers `resources/read`.
pub(crate) fn read(served: &Served, params: &Params, is_modern: bool) -> Result<Value, RpcError> {
    let uri = uri_of(params)?;
    if let (Some(store), Some(resource)) = (served.projects(), ProjectResource::parse(uri)) {
        return read_project(store, &resource, uri, is_modern);
    }
    let (Some(base), Some(resource)) = (served.base(), Resource::parse(uri)) else {
        return Err(not_found(uri, is_modern));
    };
    let refuse = |error: StoreError| {
        if error.code() == "not-found" { not_found(uri, is_modern) } else { internal(&error) }
    };
    let content = match resource {
        Resource::Section(kbid) => {
            let section = base.retrieve_section(kbid).map_err(refuse)?;
            if section.encoding.is_some() {
                json!({"uri": uri, "mimeType": section.media_type, "blob": section.content})
            } else {
                json!({"uri": uri, "mimeType": "text/plain", "text": section.content})
            }
        }
        Resource::Document(docid) => {
            let document = base.retrieve_document(&docid).map_err(refuse)?;
            let text = serde_json::to_string(&document).map_err(|error| internal(&error))?;
            json!({"uri": uri, "mimeType": "application/json", "text": text})
        }
        Resource::Skill(name) => {
            let skill = base.skill_get(&name).map_err(refuse)?;
            let text = skill_text(base, &skill).map_err(refuse)?;
            json!({"uri": uri, "mimeType": "text/markdown", "text": text})
        }
    };
    Ok(json!({"contents": [content]}))
}

fn read_project(
    store: &ProjectStore,
    resource: &ProjectResource,
    uri: &str,
    is_modern: bool,
) -> Result<Value, RpcError> {
    let read = resource.read(store);
    store.record(&resource.activity(match &read {
        Ok(Some(_)) => Ok(()),
        Ok(None) => Err("not-found"),
        Err(error) => Err(error.code()),
    }));
    let (media_type, text) = read.map_err(|error| internal(&error))?.ok_or_else(|| not_found(uri, is_modern))?;
    Ok(json!({"contents": [{"uri": uri, "mimeType": media_type, "text": text}]}))
}

/// Answers `skills/list`: the skills that Agent Skills can name.
pub(crate) fn list_skills(base: &KnowledgeBase, params: &Params) -> Result<Value, RpcError> {
    no_cursor(params)?;
    let mut skills = Vec::new();
    for summary in base.skill_list().map_err(|error| internal(&error))?.skills {
        match base.skill_get(prompt_name(&summary.docid)).and_then(|skill| skill_entry(base, &skill)) {
            Ok(entry) => skills.extend(entry),
            Err(error) if error.code() == "not-found" => {}
            Err(error) => return Err(internal(&error)),
        }
    }
    Ok(json!({"skills": skills}))
}

/// Answers `skills/get`.
pub(crate) fn get_skill(base: &KnowledgeBase, params: &Params) -> Result<Value, RpcError> {
    let uri = uri_of(params)?;
    let Some(Resource::Skill(name)) = Resource::parse(uri) else { return Err(not_found(uri, true)) };
    match base.skill_get(&name).and_then(|skill| skill_entry(base, &skill)) {
        Ok(Some(entry)) => Ok(json!({"skill": entry})),
        Ok(None) => Err(not_found(uri, true)),
        Err(error) if error.code() == "not-found" => Err(not_found(uri, true)),
        Err(error) => Err(internal(&error)),
    }
}

/// Returns the URI that a request names.
pub(crate) fn uri_of(params: &Params) -> Result<&str, RpcError> {
    params.get("uri").and_then(Value::as_str).ok_or_else(|| RpcError::params("`uri` is missing or not a string"))
}

/// Refuses the cursor of a list that comes whole.
pub(crate) fn no_cursor(params: &Params) -> Result<(), RpcError> {
    match params.get("cursor") {
        None | Some(Value::Null) => Ok(()),
        Some(_) => Err(RpcError::params("`cursor` is not one that an answer gave")),
    }
}

/// Returns the error of a fault that is not the client's.
pub(crate) fn internal(error: &dyn std::error::Error) -> RpcError {
    RpcError::new(INTERNAL_ERROR, error.to_string())
}

fn not_found(uri: &str, is_modern: bool) -> RpcError {
    let code = if is_modern { INVALID_PARAMS } else { RESOURCE_NOT_FOUND };
    RpcError::new(code, format!("Resource not found: {}", crate::tools::arguments::shown(uri)))
        .with_data(json!({"uri": uri}))
}

fn skill_text(base: &KnowledgeBase, skill: &SkillInfo) -> Result<String, StoreError> {
    Ok(String::from_utf8_lossy(&base.section_bytes(skill.kbid)?).into_owned())
}

/// Returns the entry of a skill; `None` for a name that is no name of a directory, or no description.
fn skill_entry(base: &KnowledgeBase, skill: &SkillInfo) -> Result<Option<Value>, StoreError> {
    let name = prompt_name(&skill.docid);
    if skill.name != name || skill.description.is_empty() {
        return Ok(None);
    }
    let text = skill_text(base, skill)?;
    let uri = format!("{SKILL}{name}{SKILL_FILE}");
    let file = json!({"uri": uri, "digest": format!("sha256:{}", sha256(text.as_bytes())), "size": text.len()});
    Ok(Some(json!({"uri": uri, "frontmatter": front_matter(skill, &text), "resources": [file]})))
}

fn front_matter(skill: &SkillInfo, text: &str) -> Map<String, Value> {
    let mut fields = Map::new();
    fields.insert("name".to_owned(), skill.name.as_str().into());
    fields.insert("description".to_owned(), skill.description.as_str().into());
    if let FrontMatterBlock::Found { format, fields: range, .. } = FrontMatterBlock::find(text)
        && let Ok(front) = FrontMatter::read(text, format, range)
    {
        for (key, value) in front.meta {
            fields.entry(key).or_insert(value);
        }
    }
    fields
}

/// Resolves `%XX`; `None` where that gives no text.
pub(crate) fn unescape(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = tail;
        if *first == b'%' {
            let digits = tail.get(..2).filter(|digits| digits.iter().all(u8::is_ascii_hexdigit))?;
            bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
            rest = &tail[2..];
        } else {
            bytes.push(*first);
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uri_names_one_thing_or_nothing() {
        let kbid = "0".repeat(26);
        assert_eq!(Resource::parse(&format!("kbdb://section/{kbid}")), Some(Resource::Section(kbid.parse().unwrap())));
        let document = Some(Resource::Document("guide/setup".parse().unwrap()));
        assert_eq!(Resource::parse("kbdb://document/guide%2Fsetup"), document);
        assert_eq!(Resource::parse("skill://sum/SKILL.md"), Some(Resource::Skill("sum".to_owned())));
        for uri in ["skill://Sum/SKILL.md", "skill://sum", "kbdb://section/x", "kbdb://document/%zz", "file:///etc", ""]
        {
            assert_eq!(Resource::parse(uri), None, "{uri}");
        }
    }
}
