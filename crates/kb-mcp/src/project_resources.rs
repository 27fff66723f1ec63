//! Resources of project knowledge, and what completes their URIs.
//!
//! **Invariant:** a read makes nothing: what is not there is not found. Ids in a URI are percent-decoded once, and are
//! checked by the store like those of any call.

use std::fmt::Write;
use std::hash::{DefaultHasher, Hash, Hasher};

use kb_core::ActivityEntry;
use kb_store::{ProjectError, ProjectStore};
use serde_json::{Value, json};

use crate::resources::{internal, unescape};
use crate::wire::RpcError;

const PROJECTS: &str = "knowledge://projects/";
const MARKDOWN: &str = "text/markdown";
const JSON: &str = "application/json";

/// What a URI names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ProjectResource {
    Main { project: String },
    Files { project: String },
    Chapters { project: String, filename: String },
}

impl ProjectResource {
    /// Reads a URI; `None` for one that names nothing here.
    pub(crate) fn parse(uri: &str) -> Option<Self> {
        let (project, rest) = uri.strip_prefix(PROJECTS)?.split_once('/')?;
        let project = unescape(project)?;
        match (rest, rest.strip_prefix("chapters/")) {
            ("main", _) => Some(Self::Main { project }),
            ("files", _) => Some(Self::Files { project }),
            (_, Some(filename)) if !filename.contains('/') => {
                Some(Self::Chapters { project, filename: unescape(filename)? })
            }
            _ => None,
        }
    }

    /// Returns its type and its text; `None` where it is not there.
    pub(crate) fn read(&self, store: &ProjectStore) -> Result<Option<(&'static str, String)>, ProjectError> {
        let text = |value: Result<String, serde_json::Error>| {
            let invalid = |error: serde_json::Error| ProjectError::Invalid { field: "uri", reason: error.to_string() };
            value.map_err(invalid)
        };
        let read = match self {
            Self::Main { project } => store.main(project).map(|main| main.exists.then_some((MARKDOWN, main.content))),
            Self::Files { project } => store
                .files(project)
                .and_then(|files| text(serde_json::to_string(&files)))
                .map(|text| Some((JSON, text))),
            Self::Chapters { project, filename } => store
                .chapters(project, filename)
                .and_then(|chapters| text(serde_json::to_string(&chapters)))
                .map(|text| Some((JSON, text))),
        };
        match read {
            // A text that can be no name names nothing.
            Err(error) if matches!(error.code(), "invalid-name" | "missing-field") => Ok(None),
            Err(ProjectError::ProjectNotFound { .. } | ProjectError::FileNotFound { .. }) => Ok(None),
            other => other,
        }
    }

    /// Returns a text that changes when the resource does; `None` where there is none.
    pub(crate) fn fingerprint(&self, store: &ProjectStore) -> Result<Option<String>, ProjectError> {
        Ok(self.read(store)?.map(|(_, text)| {
            let mut hasher = DefaultHasher::new();
            text.hash(&mut hasher);
            format!("{:x}", hasher.finish())
        }))
    }

    /// Returns the line of the activity log for a read.
    pub(crate) fn activity(&self, outcome: Result<(), &'static str>) -> ActivityEntry {
        let (method, project, filename) = match self {
            Self::Main { project } => ("resources/read main", project, None),
            Self::Files { project } => ("resources/read files", project, None),
            Self::Chapters { project, filename } => ("resources/read chapters", project, Some(filename)),
        };
        ActivityEntry {
            timestamp: String::new(),
            method: method.to_owned(),
            project_id: Some(logged(project)),
            filename: filename.map(|name| logged(name)),
            chapter_title: None,
            success: outcome.is_ok(),
            error: outcome.err().map(str::to_owned),
        }
    }
}

/// Returns a name as the activity log holds it: no longer than a name can be.
pub(crate) fn logged(name: &str) -> String {
    name.chars().take(200).collect()
}

/// Returns the templates of the URIs.
pub(crate) fn templates() -> Vec<Value> {
    vec![
        json!({
            "uriTemplate": "knowledge://projects/{project_id}/main",
            "name": "project-main",
            "title": "Project instructions",
            "description": "The main instructions of a project.",
            "mimeType": MARKDOWN,
        }),
        json!({
            "uriTemplate": "knowledge://projects/{project_id}/files",
            "name": "project-files",
            "title": "Knowledge documents",
            "description": "The knowledge documents of a project with titles and keywords.",
            "mimeType": JSON,
        }),
        json!({
            "uriTemplate": "knowledge://projects/{project_id}/chapters/{filename}",
            "name": "project-chapters",
            "title": "Chapters",
            "description": "The chapters of a knowledge document with their summaries.",
            "mimeType": JSON,
        }),
    ]
}

/// Lists what there is: the instructions of each project that has some, and its list of documents.
pub(crate) fn list(store: &ProjectStore) -> Result<Vec<Value>, RpcError> {
    let mut resources = Vec::new();
    for project in store.projects().map_err(|error| internal(&error))?.projects {
        let id = &project.project_id;
        let uri = |kind: &str| format!("{PROJECTS}{}/{kind}", escape(id));
        if project.has_main {
            let title = format!("Instructions of {id}");
            resources
                .push(json!({"uri": uri("main"), "name": format!("{id}/main"), "title": title, "mimeType": MARKDOWN}));
        }
        let title = format!("Knowledge documents of {id}");
        resources.push(json!({"uri": uri("files"), "name": format!("{id}/files"), "title": title, "mimeType": JSON}));
    }
    Ok(resources)
}

/// Returns a number that changes when [`list`] does.
pub(crate) fn list_fingerprint(store: &ProjectStore) -> Result<u64, ProjectError> {
    let mut hasher = DefaultHasher::new();
    for project in store.projects()?.projects {
        (project.project_id, project.has_main).hash(&mut hasher);
    }
    Ok(hasher.finish())
}

/// Completes an argument of a template; `project` is the one that was chosen before.
pub(crate) fn complete(
    store: &ProjectStore,
    argument: &str,
    value: &str,
    project: Option<&str>,
) -> Result<Option<Vec<String>>, RpcError> {
    let names: Vec<String> = match (argument, project) {
        ("project_id", _) => {
            let projects = store.projects().map_err(|error| internal(&error))?.projects;
            projects.into_iter().map(|project| project.project_id).collect()
        }
        ("filename", Some(project)) => match store.files(project) {
            Ok(files) => files.files.into_iter().map(|file| file.filename).collect(),
            // A client asks while its user types.
            Err(_) => Vec::new(),
        },
        ("filename", None) => Vec::new(),
        _ => return Ok(None),
    };
    let beginning = value.to_lowercase();
    Ok(Some(names.into_iter().filter(|name| name.to_lowercase().starts_with(&beginning)).collect()))
}

/// Writes a name so that it is one segment of a URI.
fn escape(name: &str) -> String {
    let mut escaped = String::new();
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            escaped.push(char::from(byte));
        } else {
            // A string takes all that is written to it.
            let _ = write!(escaped, "%{byte:02X}");
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uri_names_one_thing_or_nothing() {
        let project = "My Project".to_owned();
        let main = ProjectResource::Main { project: project.clone() };
        assert_eq!(ProjectResource::parse("knowledge://projects/My%20Project/main"), Some(main));
        let chapters = ProjectResource::Chapters { project, filename: "a b.md".to_owned() };
        assert_eq!(ProjectResource::parse("knowledge://projects/My%20Project/chapters/a%20b.md"), Some(chapters));
        for uri in ["knowledge://projects/x", "knowledge://projects/x/", "knowledge://projects/%zz/main", "kbdb://x"] {
            assert_eq!(ProjectResource::parse(uri), None, "{uri}");
        }
    }

    #[test]
    fn what_is_escaped_is_read_back() {
        for name in ["R&D", "日本語", "100%", "a/b", "😀 x"] {
            assert_eq!(unescape(&escape(name)).as_deref(), Some(name));
        }
    }
}
