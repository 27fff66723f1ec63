//! `kb export`: hands out everything, as a tree of files or as lines that `kb import` takes back.
//!
//! **Invariant:** nothing is written outside the folder named: a path of the base is joined only if all its parts are
//! plain names, and no symbolic link is followed on the way. A file that is there is replaced only with `--force`.

use std::collections::{BTreeMap, HashSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Component, Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::ValueEnum;
use kb_core::{DocId, DocumentKind, MediaType, okf_concept, okf_indexes, okf_path};
use kb_store::{ExportedDocument, KnowledgeBase, ListFilter, StoreError};
use serde::Serialize;
use serde_json::{Value, json};

use super::Context;
use crate::failure::{Exit, Failure};
use crate::output::{count, printable_path};

/// Write all documents to a folder, or as JSON lines
///
/// The folder gets a tree of files, each byte for byte what was learned, or with `--format okf` a bundle of the Open
/// Knowledge Format: the same texts, with front matter that says what each is and where it came from. The JSON lines are
/// what `kb import` takes back.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Folder to write into; it has to be empty or not to exist
    #[arg(value_name = "DIR", required_unless_present = "jsonl", conflicts_with = "jsonl")]
    dir: Option<PathBuf>,
    /// File for JSON lines, or `-` for stdout
    #[arg(long, value_name = "FILE")]
    jsonl: Option<PathBuf>,
    /// What the folder gets
    #[arg(long, value_name = "FORMAT", default_value = "tree", conflicts_with = "jsonl")]
    format: Format,
    /// Only what came from this source or from below it: a path, or the name of a source or system of `kb source`
    #[arg(long, conflicts_with = "jsonl")]
    source: Option<String>,
    /// Write into a folder that is not empty, over files that are there
    #[arg(long)]
    force: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Files, byte for byte
    Tree,
    /// A bundle of the Open Knowledge Format 0.2
    Okf,
}

#[derive(Debug, Serialize)]
struct Exported {
    path: String,
    documents: u64,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<Exit, Failure> {
    let base = context.databases.open_to_read()?;
    let (path, documents) = match (&args.dir, &args.jsonl) {
        (_, Some(file)) if file.as_os_str() == "-" => {
            let documents = write_lines(&base, context, None)?;
            context.output.note(format_args!("exported {}", count(documents, "document")));
            return Ok(Exit::Done);
        }
        (_, Some(file)) => (file, write_lines(&base, context, Some((file, args.force)))?),
        (Some(dir), None) => (dir, write_tree(&base, dir, args)?),
        (None, None) => return Err(Failure::usage("a folder or `--jsonl FILE` has to be named")),
    };
    let result = Exported { path: path.display().to_string(), documents };
    context.output.result(&result, |out| {
        writeln!(out, "exported {} to {}", count(result.documents, "document"), printable_path(&result.path))
    })?;
    Ok(Exit::Done)
}

fn write_tree(base: &KnowledgeBase, dir: &Path, args: &Args) -> Result<u64, Failure> {
    fs::create_dir_all(dir).map_err(|error| Failure::io("create", dir, &error))?;
    let mut entries = fs::read_dir(dir).map_err(|error| Failure::io("read", dir, &error))?;
    if !args.force && entries.next().is_some() {
        return Err(Failure::new("not-empty", format_args!("`{}` is not empty", dir.display()))
            .with_hint("name another folder, or write over what is there with `--force`"));
    }
    let wanted = wanted(base, args.source.as_deref())?;
    let mut tree = Tree { dir, force: args.force, written: HashSet::new() };
    let mut documents = 0;
    let mut concepts = BTreeMap::new();
    through(base, |document| {
        if wanted.as_ref().is_some_and(|wanted| !wanted.contains(&document.info.docid)) {
            return Ok(());
        }
        documents += 1;
        match (args.format, std::str::from_utf8(&document.content)) {
            (Format::Okf, Ok(text)) if document.info.media_type == MediaType::markdown() => {
                let path = tree.free(okf_path(&document.path));
                tree.write(&path, okf_concept(&document.info, text).as_bytes())?;
                concepts.insert(path, document.info.title);
                Ok(())
            }
            _ => tree.write(&document.path, &document.content),
        }
    })?;
    if args.format == Format::Okf {
        for (path, text) in okf_indexes(&concepts) {
            tree.write(&path, text.as_bytes())?;
        }
    }
    Ok(documents)
}

/// Returns the documents that came from a source; nothing where all are wanted.
fn wanted(base: &KnowledgeBase, source: Option<&str>) -> Result<Option<HashSet<DocId>>, Failure> {
    let Some(source) = source else { return Ok(None) };
    let list = base.list(&ListFilter { source: Some(source.to_owned()), ..ListFilter::default() })?;
    Ok(Some(list.documents.into_iter().map(|document| document.docid).collect()))
}

/// A folder that is written into.
struct Tree<'d> {
    dir: &'d Path,
    force: bool,
    /// In lower case, for file systems that ignore case.
    written: HashSet<String>,
}

impl Tree<'_> {
    /// Returns the path of a page, or another one where that is taken.
    fn free(&self, mut path: String) -> String {
        while self.written.contains(&path.to_lowercase()) {
            path = format!("{}-page.md", path.strip_suffix(".md").unwrap_or(&path));
        }
        path
    }

    fn write(&mut self, relative: &str, content: &[u8]) -> Result<(), Failure> {
        let path = place(self.dir, relative)?;
        if !self.written.insert(relative.to_lowercase()) {
            return Err(Failure::new("path-taken", format_args!("two documents want the path `{}`", path.display())));
        }
        write_file(&path, content, self.force)
    }
}

/// Returns where a file of the tree goes, and makes the folders above it.
fn place(dir: &Path, relative: &str) -> Result<PathBuf, Failure> {
    let refused = |reason: &str| Failure::new("unsafe-path", format_args!("cannot write `{relative}`: {reason}"));
    let parts: Vec<_> = Path::new(relative).components().collect();
    if parts.is_empty() || !parts.iter().all(|part| matches!(part, Component::Normal(_))) {
        return Err(refused("it would lead out of the folder"));
    }
    let mut path = dir.to_owned();
    for part in &parts[..parts.len() - 1] {
        path.push(part);
        match path.symlink_metadata() {
            Ok(found) if found.is_dir() => {}
            Ok(_) => return Err(refused("something that is no folder is in the way")),
            Err(_) => fs::create_dir(&path).map_err(|error| Failure::io("create", &path, &error))?,
        }
    }
    path.push(parts[parts.len() - 1]);
    Ok(path)
}

/// Writes a file that is new, or with `force` in place of one that is there; a link is replaced, not followed.
fn write_file(path: &Path, content: &[u8], force: bool) -> Result<(), Failure> {
    if force && path.symlink_metadata().is_ok_and(|found| !found.is_dir()) {
        fs::remove_file(path).map_err(|error| Failure::io("replace", path, &error))?;
    }
    let write = || create_new(path)?.write_all(content);
    write().map_err(|error| Failure::io("write", path, &error))
}

fn create_new(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).open(path)
}

/// Writes JSON lines to stdout or to a file. Skills come after documents and agents last, since they refer to skills.
fn write_lines(base: &KnowledgeBase, context: &mut Context, file: Option<(&Path, bool)>) -> Result<u64, Failure> {
    let Some((path, force)) = file else {
        let lines = |line: &Value| context.output.json_line(line);
        return each_line(base, lines);
    };
    if force && path.symlink_metadata().is_ok_and(|found| !found.is_dir()) {
        fs::remove_file(path).map_err(|error| Failure::io("replace", path, &error))?;
    }
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::AlreadyExists => Failure::io("write", path, &error).with_hint("`--force` writes over it"),
        _ => Failure::io("write", path, &error),
    };
    let mut out = BufWriter::new(create_new(path).map_err(failed)?);
    let documents = each_line(base, |line| writeln!(out, "{line}").map_err(failed))?;
    out.flush().map_err(failed)?;
    Ok(documents)
}

fn each_line(base: &KnowledgeBase, mut write: impl FnMut(&Value) -> Result<(), Failure>) -> Result<u64, Failure> {
    let mut skills: Vec<String> = Vec::new();
    let mut agents = Vec::new();
    let documents = through(base, |document| match document.info.kind {
        DocumentKind::Document => write(&learn_line(&document)),
        DocumentKind::Skill => {
            skills.push(String::from_utf8_lossy(&document.content).into_owned());
            Ok(())
        }
        DocumentKind::Agent => {
            agents.push(document.info.docid);
            Ok(())
        }
    })?;
    for text in skills {
        // Whole: written from its parts, a placeholder that is not declared would become a declared argument.
        write(&json!({ "op": "skill", "content": text }))?;
    }
    for docid in agents {
        let agent = base.agent_get(docid.as_str())?;
        // A skill that is gone cannot be named again.
        let names: Vec<&str> = agent.skills.iter().filter_map(|skill| skill.name.as_deref()).collect();
        write(&json!({
            "op": "agent", "name": agent.name, "description": agent.description, "persona": agent.persona,
            "skills": names,
        }))?;
    }
    Ok(documents)
}

fn learn_line(document: &ExportedDocument) -> Value {
    let info = &document.info;
    let mut line = json!({ "op": "learn", "docid": info.docid, "title": info.title });
    if let Some(description) = &info.description {
        line["description"] = json!(description);
    }
    if !info.tags.is_empty() {
        line["tags"] = json!(info.tags);
    }
    line["type"] = json!(info.media_type);
    if let Some(source) = &info.source {
        line["source"] = json!(source);
    }
    match std::str::from_utf8(&document.content) {
        Ok(text) if info.media_type.is_text() => line["content"] = json!(text),
        _ => {
            line["content"] = json!(STANDARD.encode(&document.content));
            line["encoding"] = json!("base64");
        }
    }
    line
}

/// Hands every document to `each`, and stops at its first failure.
fn through(
    base: &KnowledgeBase,
    mut each: impl FnMut(ExportedDocument) -> Result<(), Failure>,
) -> Result<u64, Failure> {
    let mut failure = None;
    let outcome = base.export(&mut |document| {
        each(document).map_err(|error| {
            failure = Some(error);
            StoreError::Cancelled
        })
    });
    match (failure, outcome) {
        (Some(failure), _) => Err(failure),
        (None, outcome) => Ok(outcome?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_path_leads_out_of_the_folder() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        for bad in ["", "..", "../x.md", "a/../../x.md", "/etc/x"] {
            assert!(place(dir.path(), bad).is_err(), "{bad:?}");
        }
        assert_eq!(place(dir.path(), "a/b/c.md").ok(), Some(dir.path().join("a/b/c.md")));
        assert!(dir.path().join("a/b").is_dir());
    }

    #[cfg(unix)]
    #[test]
    fn no_link_is_followed() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let outside = tempfile::tempdir().expect("a temporary folder");
        std::os::unix::fs::symlink(outside.path(), dir.path().join("a")).expect("a link");
        assert!(place(dir.path(), "a/x.md").is_err());

        let target = outside.path().join("kept.md");
        fs::write(&target, "kept").expect("a file");
        let link = dir.path().join("x.md");
        std::os::unix::fs::symlink(&target, &link).expect("a link");
        assert!(write_file(&link, b"new", false).is_err());
        write_file(&link, b"new", true).expect("the link is replaced");
        assert_eq!(fs::read(&target).expect("still there"), b"kept");
        assert_eq!(fs::read(&link).expect("written"), b"new");
    }
}
