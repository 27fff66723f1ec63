//! One line of a batch: JSON to an operation.
//!
//! **Invariant:** a line that is no operation is told why in a sentence that names the field.

use std::path::{Path, PathBuf};

use base64::Engine;
use kb_core::{DocId, MediaType, SectionId, SkillArgument};
use serde::Deserialize;

use super::{Operation, Result};
use crate::error::StoreError;
use crate::prepare::{FileState, prepare};
use crate::request::{ImportOptions, NewAgent, NewSkill, Target, Text};
use crate::skills::skill_text;
use crate::source_file;

/// Fields that are one text.
const TEXT_FIELDS: [&str; 14] = [
    "op",
    "content",
    "path",
    "encoding",
    "docid",
    "title",
    "description",
    "type",
    "source",
    "kbid",
    "tag",
    "name",
    "body",
    "persona",
];

/// One line, as JSON.
#[derive(Debug, Deserialize)]
#[serde(tag = "op", rename_all = "lowercase", deny_unknown_fields)]
enum Line {
    Learn {
        content: Option<String>,
        path: Option<PathBuf>,
        encoding: Option<String>,
        docid: Option<DocId>,
        title: Option<String>,
        description: Option<String>,
        r#type: Option<MediaType>,
        #[serde(default)]
        tags: Vec<String>,
        source: Option<String>,
        #[serde(default)]
        again: bool,
    },
    Unlearn {
        docid: Option<DocId>,
        kbid: Option<SectionId>,
        tag: Option<String>,
        source: Option<String>,
    },
    Skill {
        name: Option<String>,
        description: Option<String>,
        body: Option<String>,
        #[serde(default)]
        arguments: Vec<SkillArgument>,
        content: Option<String>,
    },
    Agent {
        name: String,
        #[serde(default)]
        description: String,
        persona: String,
        #[serde(default)]
        skills: Vec<String>,
    },
}

/// Returns what a line asks for. The file that it names is read.
pub(super) fn parse(line: &[u8], request: &ImportOptions) -> Result<Operation> {
    let invalid = |field, reason: String| StoreError::Invalid { field, reason };
    let text = std::str::from_utf8(line)
        .map_err(|e| StoreError::NotUtf8 { name: "line".to_owned(), offset: e.valid_up_to() })?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    match serde_json::from_str(text).map_err(|error| explain(text, &error))? {
        Line::Learn { content, path, encoding, docid, title, description, r#type, tags, source, again } => {
            let (content, media_type, source) = match (content, path) {
                (Some(content), None) => (decode(content, encoding.as_deref())?, r#type, source),
                (None, Some(path)) => {
                    let full = full_path(&path, request)?;
                    let name = path.to_string_lossy().replace('\\', "/");
                    let media_type = r#type.or_else(|| MediaType::of_file_name(&name));
                    (source_file::read(&full, &name)?.0, media_type, source.or(Some(name)))
                }
                (None, None) => return Err(invalid("content", "`content` or `path` is needed".to_owned())),
                (Some(_), Some(_)) => {
                    return Err(invalid("content", "`content` and `path` do not go together".to_owned()));
                }
            };
            let text = Text { content, media_type, title, description, docid, tags, source, again };
            Ok(Operation::Learn(Box::new(prepare(&text, None, FileState::default())?)))
        }
        Line::Unlearn { docid, kbid, tag, source } => Ok(Operation::Unlearn(match (kbid, docid, tag, source) {
            (Some(kbid), None, None, None) => Target::Section(kbid),
            (Some(kbid), Some(docid), None, None) => Target::Occurrence(kbid, docid),
            (None, Some(docid), None, None) => Target::Document(docid),
            (None, None, Some(tag), None) => Target::Tag(tag),
            (None, None, None, Some(source)) => Target::Source(source),
            _ => return Err(invalid("docid", "one of `docid`, `kbid`, `tag` and `source` is needed".to_owned())),
        })),
        Line::Skill { content: Some(content), name: None, description: None, body: None, .. } => {
            Ok(Operation::Skill(kb_core::Skill::parse(&content)?))
        }
        Line::Skill { name: Some(name), description, body: Some(body), arguments, content: None } => {
            let skill = NewSkill { name, description: description.unwrap_or_default(), body, arguments };
            Ok(Operation::Skill(kb_core::Skill::parse(&skill_text(&skill))?))
        }
        Line::Skill { .. } => Err(invalid("name", "`name` and `body` are needed, or `content` alone".to_owned())),
        Line::Agent { name, description, persona, skills } => {
            Ok(Operation::Agent(NewAgent { name, description, persona, skills }))
        }
    }
}

/// Says in a sentence why a line is no operation, and which field it is.
fn explain(text: &str, error: &serde_json::Error) -> StoreError {
    use serde_json::Value;
    let invalid = |field, reason: &str| StoreError::Invalid { field, reason: reason.to_owned() };
    let fields = match serde_json::from_str::<Value>(text) {
        Err(error) => return invalid("line", &format!("it is not JSON: {error}")),
        Ok(Value::Object(fields)) => fields,
        Ok(_) => return invalid("line", "it is not a JSON object like `{\"op\": \"learn\", …}`"),
    };
    if !fields.contains_key("op") {
        return invalid("op", "it is missing; it is one of `learn`, `unlearn`, `skill` and `agent`");
    }
    let is_texts = |value: &Value| value.as_array().is_some_and(|values| values.iter().all(Value::is_string));
    let given = |field: &str| fields.get(field).filter(|value| !value.is_null());
    if let Some(field) = TEXT_FIELDS.into_iter().find(|field| given(field).is_some_and(|value| !value.is_string())) {
        return invalid(field, "it is not a text");
    }
    if let Some(field) = ["tags", "skills"].into_iter().find(|field| fields.get(*field).is_some_and(|v| !is_texts(v))) {
        return invalid(field, "it is not a list of texts");
    }
    if fields.get("again").is_some_and(|value| !value.is_boolean()) {
        return invalid("again", "it is neither `true` nor `false`");
    }
    invalid("line", &error.to_string())
}

/// Returns where the file of a line lies. Lines may come from anywhere, and what is learned can be read by whoever
/// reads the base.
fn full_path(path: &Path, request: &ImportOptions) -> Result<PathBuf> {
    match &request.root {
        Some(root) if request.allow_outside => Ok(root.join(path)),
        Some(root) => source_file::inside(root, path),
        None if request.allow_outside => Ok(path.to_owned()),
        None => {
            let reason = format!("`{}` cannot be taken: the batch has no folder of its own", path.display());
            Err(StoreError::Invalid { field: "path", reason })
        }
    }
}

fn decode(content: String, encoding: Option<&str>) -> Result<Vec<u8>> {
    match encoding {
        None | Some("utf-8" | "utf8") => Ok(content.into_bytes()),
        Some("base64") => base64::engine::general_purpose::STANDARD
            .decode(content.as_bytes())
            .map_err(|e| StoreError::Invalid { field: "content", reason: format!("it is not base64: {e}") }),
        Some(other) => {
            let reason = format!("`{other}` is neither `utf-8` nor `base64`");
            Err(StoreError::Invalid { field: "encoding", reason })
        }
    }
}
