//! From a text to what will be staged: parsed, split and hashed, all before the writers' lock is taken.
//!
//! **Invariant:** the sections of a prepared text, in order, are its bytes.

use std::sync::Arc;

use kb_core::{
    DocId, DocumentKind, MediaType, SPLITTER_VERSION, SectionId, Warning, docid_from_path, docid_from_title,
    docid_with_suffix, parse,
};

use crate::commit::Txn;
use crate::error::StoreError;
use crate::manifest::{Manifest, Role, SectionEntry, SourceState};
use crate::request::Text;

type Result<T> = std::result::Result<T, StoreError>;

/// Which document a text is to be.
#[derive(Debug, Clone)]
pub(crate) enum Wanted {
    /// The one that the caller named.
    Given(DocId),
    /// The one learned from this source before, else one named like this.
    Source(DocId),
    /// The one of this title and content.
    Title(DocId),
    /// The one that a source reaches under this name.
    Fetched(DocId),
}

/// A text ready to be staged.
#[derive(Debug, Clone)]
pub(crate) struct Prepared {
    pub(crate) wanted: Wanted,
    /// All but docid, times and revision, which the commit gives.
    pub(crate) manifest: Manifest,
    pub(crate) content: Arc<[u8]>,
    pub(crate) again: bool,
}

/// What is known of a source file beside its bytes.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct FileState {
    /// Modification time in nanoseconds since 1970.
    pub(crate) modified: i64,
}

/// The docid that stands in a manifest until the commit gives the right one.
fn no_docid() -> DocId {
    "-".parse().expect("a dash is a docid")
}

/// Returns the first 128 bits of the BLAKE3 of these bytes.
pub(crate) fn hash16(bytes: &[u8]) -> [u8; 16] {
    let mut hash = [0; 16];
    hash.copy_from_slice(&blake3::hash(bytes).as_bytes()[..16]);
    hash
}

/// Parses, splits and hashes a text. `path` is where it lies relative to the folder that is learned, for its docid.
pub(crate) fn prepare(text: &Text, path: Option<&str>, file: FileState) -> Result<Prepared> {
    let media_type = text.media_type.clone().unwrap_or_else(MediaType::markdown);
    let name = || text.source.clone().or_else(|| text.title.clone()).unwrap_or_else(|| "content".to_owned());
    let mut manifest = if media_type.is_image() {
        image(text, &media_type, path)?
    } else if media_type.is_text() {
        let source = std::str::from_utf8(&text.content)
            .map_err(|e| StoreError::NotUtf8 { name: name(), offset: e.valid_up_to() })?;
        split(text, source, &media_type)
    } else {
        let reason = format!("`{media_type}` is neither Markdown, plain text, HTML, TOML nor an image");
        return Err(StoreError::Invalid { field: "type", reason });
    };
    if text.content.is_empty() {
        manifest.warnings.push(warning("empty", "the source has no bytes"));
    }
    manifest.source = text.source.as_ref().map(|name| SourceState {
        name: name.clone(),
        len: text.content.len() as u64,
        modified: file.modified,
        hash: hash16(&text.content),
    });
    manifest.inputs = inputs(text, &media_type);
    let wanted = match (&text.docid, path, &text.source) {
        (Some(docid), ..) => Wanted::Given(docid.clone()),
        (None, Some(path), _) => Wanted::Source(docid_from_path(path)),
        (None, None, Some(source)) => Wanted::Source(docid_from_path(source)),
        (None, None, None) => Wanted::Title(docid_from_title(&manifest.title, &text.content)),
    };
    Ok(Prepared { wanted, manifest, content: text.content.as_slice().into(), again: text.again })
}

/// Hashes all that decides whether a text is the one learned before.
fn inputs(text: &Text, media_type: &MediaType) -> [u8; 16] {
    let mut hasher = blake3::Hasher::new();
    let mut part = |bytes: &[u8]| {
        hasher.update(&(bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
    };
    part(&SPLITTER_VERSION.to_le_bytes());
    part(media_type.as_str().as_bytes());
    for given in [&text.title, &text.description] {
        part(given.as_deref().unwrap_or_default().as_bytes());
    }
    text.tags.iter().for_each(|tag| part(tag.as_bytes()));
    part(&text.content);
    let mut hash = [0; 16];
    hash.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
    hash
}

fn warning(code: &str, message: &str) -> Warning {
    Warning { code: code.to_owned(), message: message.to_owned(), line: None, column: None }
}

fn empty_manifest(text: &Text, media_type: &MediaType, title: String) -> Manifest {
    Manifest {
        docid: no_docid(),
        kind: DocumentKind::Document,
        title,
        description: text.description.clone(),
        tags: Vec::new(),
        aliases: Vec::new(),
        meta: "{}".to_owned(),
        media_type: media_type.clone(),
        source: None,
        date: None,
        created: 0,
        updated: 0,
        revision: 0,
        edited: false,
        inputs: [0; 16],
        warnings: Vec::new(),
        sections: Vec::new(),
        origin: None,
    }
}

fn image(text: &Text, media_type: &MediaType, path: Option<&str>) -> Result<Manifest> {
    let title = match (&text.title, path) {
        (Some(title), _) if !title.trim().is_empty() => title.clone(),
        (_, Some(path)) => last_part(path).to_owned(),
        _ => {
            let reason = "an image needs a title to be found by".to_owned();
            return Err(StoreError::Invalid { field: "title", reason });
        }
    };
    let mut manifest = empty_manifest(text, media_type, title);
    merge_tags(&mut manifest.tags, &text.tags);
    manifest.sections.push(SectionEntry {
        kbid: SectionId::of(media_type, &text.content),
        role: Role::Image,
        level: 0,
        parent: None,
        heading: None,
        line: 1,
        bytes: text.content.len() as u64,
        part: None,
    });
    Ok(manifest)
}

fn split(text: &Text, source: &str, media_type: &MediaType) -> Manifest {
    let parsed = parse(source, media_type);
    let given = text.title.as_deref().map(str::trim).filter(|title| !title.is_empty()).map(str::to_owned);
    let from_name = || text.source.as_deref().map(|source| last_part(source).to_owned());
    let title = given.or(parsed.title).or_else(from_name).unwrap_or_else(|| "Untitled".to_owned());
    let mut manifest = empty_manifest(text, media_type, title);
    manifest.description = text.description.clone().or(parsed.description);
    manifest.tags = parsed.tags;
    merge_tags(&mut manifest.tags, &text.tags);
    manifest.aliases = parsed.aliases;
    manifest.meta = serde_json::to_string(&parsed.meta).unwrap_or_else(|_| "{}".to_owned());
    manifest.date = parsed.date.map(|date| date.to_string());
    manifest.warnings = parsed.warnings;
    if source.contains('\0') {
        let count = source.bytes().filter(|&byte| byte == 0).count();
        let message = format!("{count} NUL characters are kept, and taken as blanks by the index");
        manifest.warnings.push(warning("nul", &message));
    }
    for piece in parsed.sections {
        let bytes = &source[piece.range.clone()];
        manifest.sections.push(SectionEntry {
            kbid: SectionId::of(media_type, bytes.as_bytes()),
            role: match piece.role {
                kb_core::Role::FrontMatter => Role::FrontMatter,
                kb_core::Role::Text => Role::Text,
            },
            level: piece.level,
            parent: piece.parent,
            heading: piece.heading,
            line: piece.line,
            bytes: bytes.len() as u64,
            part: piece.part,
        });
    }
    manifest
}

fn last_part(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

fn merge_tags(tags: &mut Vec<String>, more: &[String]) {
    for tag in more.iter().map(|tag| tag.trim()).filter(|tag| !tag.is_empty()) {
        if !tags.iter().any(|known| known == tag) {
            tags.push(tag.to_owned());
        }
    }
}

/// Finds the document that a prepared text is, as the commit sees the base: its docid, its current revision, and
/// whether its source has to be recorded to be found again.
pub(crate) fn resolve(txn: &Txn<'_>, prepared: &Prepared) -> Result<(DocId, Option<Manifest>, bool)> {
    let source = prepared.manifest.source.as_ref().map(|source| source.name.as_str());
    // Who asks for damage to be repaired is not held up by it.
    let current = |docid: &DocId| match txn.manifest(docid) {
        Err(StoreError::Damaged { .. }) if prepared.again => txn.snapshot.readable_manifest(docid),
        other => other,
    };
    match &prepared.wanted {
        Wanted::Given(docid) => {
            let old = current(docid)?;
            // A source that was given a name of its own is found by that name the next time.
            let record = match source {
                Some(source) => txn.document_of_source(source)?.as_ref() != Some(docid),
                None => false,
            };
            Ok((docid.clone(), old, record))
        }
        Wanted::Title(docid) | Wanted::Fetched(docid) => Ok((docid.clone(), current(docid)?, false)),
        Wanted::Source(docid) => {
            let is_ours = |manifest: &Manifest| manifest.source.as_ref().map(|s| s.name.as_str()) == source;
            if let Some(source) = source
                && let Some(known) = txn.document_of_source(source)?
                && let Some(old) = current(&known)?.filter(is_ours)
            {
                return Ok((known, Some(old), false));
            }
            // From the folder of the base a source is found by its own name; under any other it has to be recorded, so
            // that it is the same document whatever folder is learned. A name that another source has gets a number.
            let own = source.map(docid_from_path);
            if let Some(own) = own.as_ref().filter(|own| *own != docid)
                && let Some(old) = current(own)?.filter(is_ours)
            {
                return Ok((own.clone(), Some(old), false));
            }
            let mut candidate = docid.clone();
            for n in 2.. {
                let record = own.as_ref() != Some(&candidate);
                match current(&candidate)? {
                    None => return Ok((candidate, None, record)),
                    Some(old) if is_ours(&old) => return Ok((candidate, Some(old), record)),
                    Some(_) => candidate = docid_with_suffix(docid, n),
                }
            }
            unreachable!("a free name is found")
        }
    }
}
