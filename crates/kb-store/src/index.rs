//! The search index of a snapshot: its segments opened, or why they cannot be.
//!
//! **Invariant:** an index is used whole or not at all. Where a file of it is missing, torn, damaged, or of another
//! analyser, the answer comes from the packs, and the next commit or `rebuild` makes the index anew.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use kb_core::{DocDate, MediaType, SectionId};
use kb_search::{
    Analyzer, DateKey, Dead, DocumentInput, Language, LiveSegment, Markup, SectionInput, Segment, SegmentBuilder,
    SegmentError, Source,
};

use crate::error::StoreError;
use crate::head::{Head, SegmentRef};
use crate::manifest::{Manifest, Role};
use crate::paged::{FileKind, PagedFile};
use crate::snapshot::Snapshot;
use crate::storage::{Area, FileName, Storage};

/// Bytes of a segment: a file, or made a moment ago.
#[derive(Debug)]
pub(crate) enum IndexBytes {
    File(PagedFile),
    Memory(Vec<u8>),
}

impl IndexBytes {
    /// Lets go of the memory of what was read so far of a file.
    pub(crate) fn release(&self) {
        if let Self::File(file) = self {
            file.release();
        }
    }
}

impl Source for IndexBytes {
    fn len(&self) -> u64 {
        match self {
            Self::File(file) => file.len(),
            Self::Memory(bytes) => bytes.len() as u64,
        }
    }

    fn read(&self, range: Range<u64>) -> Result<&[u8], SegmentError> {
        match self {
            Self::File(file) => Source::read(file, range),
            Self::Memory(bytes) => bytes.read(range),
        }
    }
}

/// The index of a snapshot.
#[derive(Debug)]
pub(crate) struct Index {
    /// The oldest first, as in the head; empty where there is a problem.
    pub(crate) segments: Vec<LiveSegment<IndexBytes>>,
    /// Why the index cannot be used.
    pub(crate) problem: Option<IndexProblem>,
}

/// Why an index cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum IndexProblem {
    /// A file is missing, torn or damaged.
    Damaged { file: String, offset: u64, detail: String },
    /// Made by an analyser that this version does not have.
    Outdated,
}

impl std::fmt::Display for IndexProblem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Damaged { file, offset, detail } => write!(f, "`{file}` is damaged at byte {offset}: {detail}"),
            Self::Outdated => f.write_str("the index was made by another version"),
        }
    }
}

pub(crate) fn analyzer() -> Analyzer {
    Analyzer::new(Language::English)
}

impl Index {
    pub(crate) fn open(storage: &dyn Storage, head: &Head) -> Self {
        if head.analyzer != Analyzer::VERSION && !head.segments.is_empty() {
            return Self { segments: Vec::new(), problem: Some(IndexProblem::Outdated) };
        }
        let segments: Result<_, IndexProblem> =
            head.segments.iter().map(|segment| open_segment(storage, segment)).collect();
        match segments {
            Ok(segments) => Self { segments, problem: None },
            Err(problem) => Self { segments: Vec::new(), problem: Some(problem) },
        }
    }
}

fn open_segment(storage: &dyn Storage, segment: &SegmentRef) -> Result<LiveSegment<IndexBytes>, IndexProblem> {
    let file = open_file(storage, segment.name(), FileKind::Segment)?;
    let opened = Segment::open(IndexBytes::File(file)).map_err(|error| damaged(segment.name(), &error))?;
    let dead = match segment.dead {
        None => None,
        Some((hash, _)) => {
            let name = FileName { area: Area::Index, hash };
            let file = open_file(storage, name, FileKind::Dead)?;
            let bytes = file.read(0..file.len()).map_err(|damage| IndexProblem::Damaged {
                file: name.to_string(),
                offset: damage.offset,
                detail: damage.detail,
            })?;
            Some(Arc::new(Dead::from_bytes(bytes, &opened).map_err(|error| damaged(name, &error))?))
        }
    };
    Ok((Arc::new(opened), dead))
}

fn open_file(storage: &dyn Storage, name: FileName, kind: FileKind) -> Result<PagedFile, IndexProblem> {
    match PagedFile::open(storage, name, kind) {
        Ok(Some(file)) => Ok(file),
        Ok(None) => {
            Err(IndexProblem::Damaged { file: name.to_string(), offset: 0, detail: "the file is gone".to_owned() })
        }
        Err(StoreError::Damaged { file, offset, detail, .. }) => Err(IndexProblem::Damaged { file, offset, detail }),
        Err(error) => Err(IndexProblem::Damaged { file: name.to_string(), offset: 0, detail: error.to_string() }),
    }
}

pub(crate) fn damaged(name: FileName, error: &SegmentError) -> IndexProblem {
    let offset = match error {
        SegmentError::Unreadable { range, .. } => range.start,
        _ => 0,
    };
    IndexProblem::Damaged { file: name.to_string(), offset, detail: error.to_string() }
}

/// Returns how the text of a type is written.
pub(crate) fn markup_of(media_type: &MediaType) -> Markup {
    match media_type.as_str() {
        "text/markdown" => Markup::Markdown,
        "text/html" => Markup::Html,
        _ => Markup::None,
    }
}

/// Returns the date by which a document is found: the one it gives itself, else when it was learned.
pub(crate) fn date_key(manifest: &Manifest) -> DateKey {
    let own = manifest.date.as_deref().and_then(|text| text.parse::<DocDate>().ok());
    if let Some(date) = own {
        let day = date.first_day();
        let seconds = date.instant().map_or(day * 86_400, kb_core::Timestamp::seconds);
        DateKey { utc_seconds: seconds, local_day: day as i32 }
    } else {
        let seconds = manifest.updated.div_euclid(1000);
        DateKey { utc_seconds: seconds, local_day: seconds.div_euclid(86_400) as i32 }
    }
}

/// Returns the places of the sections by which a document is found.
pub(crate) fn indexed_sections(manifest: &Manifest) -> Vec<usize> {
    let is_indexed = |i: &usize| matches!(manifest.sections[*i].role, Role::Text | Role::Image);
    let mut places: Vec<usize> = (0..manifest.sections.len()).filter(is_indexed).collect();
    if places.is_empty() && !manifest.sections.is_empty() {
        // Nothing but front matter: it stands for the document, found by title, tags and description.
        places.push(0);
    }
    places
}

/// Adds a document to a segment. `text_of` gives a section's text by its place.
pub(crate) fn add_document<'t>(
    builder: &mut SegmentBuilder,
    manifest: &Manifest,
    mut text_of: impl FnMut(usize) -> Result<Cow<'t, str>, StoreError>,
) -> Result<(), StoreError> {
    let front_text = front_text(manifest);
    let first = manifest.first_text();
    let mut texts = Vec::with_capacity(manifest.sections.len());
    for i in indexed_sections(manifest) {
        let is_text = manifest.sections[i].role == Role::Text;
        texts.push((i, if is_text { text_of(i)? } else { Cow::Borrowed("") }));
    }
    let paths: Vec<Vec<&str>> = texts.iter().map(|(i, _)| manifest.heading_path(*i)).collect();
    let markup = markup_of(&manifest.media_type);
    let sections: Vec<SectionInput<'_>> = texts
        .iter()
        .zip(&paths)
        .map(|((i, text), path)| SectionInput {
            position: *i as u32,
            kbid: manifest.sections[*i].kbid,
            heading_path: path,
            text,
            markup,
            first: first.unwrap_or(0) == *i,
        })
        .collect();
    let types = [manifest.media_type.as_str(), manifest.kind.as_str()];
    let input = DocumentInput {
        docid: manifest.docid.as_str(),
        title: &manifest.title,
        tags: &manifest.tags,
        front_text: &front_text,
        types: &types,
        source: manifest.source.as_ref().map(|source| source.name.as_str()),
        date: date_key(manifest),
        sections: &sections,
    };
    builder.add(&input).map_err(index_error)
}

/// Returns the words of the front matter beside title and tags. Its other fields are not indexed; a block that could
/// not be read is text.
fn front_text(manifest: &Manifest) -> String {
    let mut text = manifest.description.clone().unwrap_or_default();
    for alias in &manifest.aliases {
        text.push('\n');
        text.push_str(alias);
    }
    text
}

/// Returns the live documents of an index, by docid, each with its segment and its number there.
pub(crate) fn live_documents(index: &Index) -> Vec<(&str, &Segment<IndexBytes>, u32)> {
    let mut documents = Vec::new();
    for (segment, dead) in &index.segments {
        let live = (0..segment.documents()).filter(|&o| !dead.as_ref().is_some_and(|dead| dead.contains(o)));
        documents.extend(live.filter_map(|ordinal| Some((segment.docid(ordinal).ok()?, &**segment, ordinal))));
    }
    documents.sort_by_key(|(docid, ..)| *docid);
    documents
}

/// Turns an error of the index into one of the store.
pub(crate) fn index_error(error: kb_search::BuildError) -> StoreError {
    match error {
        kb_search::BuildError::Io(source) => StoreError::Io { op: "write", path: "index".into(), source },
        other => StoreError::Damaged { file: "index".to_owned(), offset: 0, kbid: None, detail: other.to_string() },
    }
}

/// Makes an index in memory of as many documents as `budget` bytes of text allow, those learned last before others.
/// Returns whether these are all.
pub(crate) fn scan(snapshot: &Snapshot, budget: u64) -> Result<(Vec<LiveSegment<IndexBytes>>, bool), StoreError> {
    let mut manifests = Vec::new();
    let mut left = budget;
    let mut complete = true;
    for place in snapshot.current(crate::record::Kind::MANIFEST) {
        // What is left is too little to look on for a document that still fits.
        if left < budget / 16 {
            complete = false;
            break;
        }
        // A damaged manifest costs its document; `check` says which.
        let Ok(manifest) = snapshot.manifest_at(&place) else { continue };
        let bytes = manifest.source_bytes();
        if bytes > left {
            complete = false;
            continue;
        }
        left -= bytes;
        manifests.push(manifest);
    }
    manifests.sort_by(|a, b| a.docid.cmp(&b.docid));
    let mut builder = SegmentBuilder::new(analyzer());
    for manifest in &manifests {
        add_from_store(&mut builder, snapshot, manifest)?;
    }
    let mut bytes = Vec::new();
    builder.finish(&mut bytes).map_err(index_error)?;
    let segment =
        Segment::open(IndexBytes::Memory(bytes)).map_err(|error| index_error(kb_search::BuildError::Segment(error)))?;
    Ok((vec![(Arc::new(segment), None)], complete))
}

/// Adds a document whose text lies in the packs.
pub(crate) fn add_from_store(
    builder: &mut SegmentBuilder,
    snapshot: &Snapshot,
    manifest: &Manifest,
) -> Result<(), StoreError> {
    add_document(builder, manifest, |i| stored_text(snapshot, manifest.sections[i].kbid))
}

/// Returns the text of a stored section; a damaged one is indexed as empty.
pub(crate) fn stored_text<'t>(snapshot: &Snapshot, id: SectionId) -> Result<Cow<'t, str>, StoreError> {
    let bytes = match snapshot.section(id) {
        Ok(Some((_, bytes))) => bytes,
        Ok(None) | Err(StoreError::Damaged { .. }) => Vec::new(),
        Err(error) => return Err(error),
    };
    let text = String::from_utf8(bytes).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned());
    Ok(Cow::Owned(text))
}
