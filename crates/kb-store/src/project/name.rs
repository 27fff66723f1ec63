//! Names of projects and documents, and the slugs of their folders and files.
//!
//! **Invariant:** a name that passed has no separator, no `..` and no control character, and what is made of it is one
//! component of a path.

use kb_core::slug;

use super::Result;
use super::error::ProjectError;

const MAX_PROJECT_CHARS: usize = 100;
const MAX_DOCUMENT_BYTES: usize = 200;

/// Refuses a text that is no project id.
pub(super) fn check_project(id: &str) -> Result<()> {
    let refuse = |reason: String| Err(ProjectError::InvalidName { what: "project", name: shown(id), reason });
    if id.is_empty() {
        return Err(ProjectError::MissingField { field: "project_id" });
    }
    if let Some(reason) = forbidden(id, r#"/\:*?"<>|"#) {
        return refuse(reason);
    }
    if id.chars().count() > MAX_PROJECT_CHARS {
        return refuse(format!("it has over {MAX_PROJECT_CHARS} characters"));
    }
    for (place, c) in [("begins", id.chars().next()), ("ends", id.chars().next_back())] {
        match c {
            Some('.') => return refuse(format!("it {place} with a dot")),
            Some(c) if c.is_whitespace() => return refuse(format!("it {place} with a blank")),
            _ => {}
        }
    }
    Ok(())
}

/// Returns the name of a document as it was given, without `.md`.
pub(super) fn document_stem(name: &str) -> Result<&str> {
    let refuse = |reason: String| Err(ProjectError::InvalidName { what: "document", name: shown(name), reason });
    if name.trim().is_empty() {
        return Err(ProjectError::MissingField { field: "filename" });
    }
    if let Some(reason) = forbidden(name, r"/\") {
        return refuse(reason);
    }
    if name.len() > MAX_DOCUMENT_BYTES {
        return refuse(format!("it has over {MAX_DOCUMENT_BYTES} bytes"));
    }
    let stem = match name.len().checked_sub(3).map(|at| (name.get(..at), name.get(at..))) {
        Some((Some(stem), Some(end))) if end.eq_ignore_ascii_case(".md") => stem,
        _ => name,
    };
    if stem.trim().is_empty() { refuse("there is nothing before `.md`".to_owned()) } else { Ok(stem) }
}

/// Returns the name of the file of a new document.
pub(super) fn document_file(stem: &str) -> String {
    slug(stem) + ".md"
}

/// Returns a folder for a project that none of these is, in any case.
pub(super) fn project_folder(id: &str, is_taken: impl Fn(&str) -> bool) -> String {
    let base = slug(id);
    if !is_taken(&base) {
        return base;
    }
    let numbered = (1_u32..).map(|n| format!("{base}-{n}"));
    numbered.into_iter().find(|name| !is_taken(name)).unwrap_or(base)
}

fn forbidden(name: &str, characters: &str) -> Option<String> {
    if let Some(c) = name.chars().find(|&c| characters.contains(c)) {
        return Some(format!("`{c}` is not allowed"));
    }
    if let Some(c) = name.chars().find(|c| c.is_control()) {
        return Some(format!("the control character U+{:04X} is not allowed", u32::from(c)));
    }
    name.contains("..").then(|| "`..` is not allowed".to_owned())
}

/// Returns a name as an error shows it.
fn shown(name: &str) -> String {
    name.chars().take(120).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}
