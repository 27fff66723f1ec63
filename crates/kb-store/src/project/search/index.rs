//! The search index of one project: a cache of what its documents hold, brought up to date before each query.
//!
//! ```text
//! .kb/FOLDER/files         which files are indexed, as what they were seen, and the names of the segments
//! .kb/FOLDER/HASH.seg      documents; named by their hash, never rewritten
//! ```
//!
//! **Invariant:** a file is taken as unchanged only if its stamp is, and was settled when the file was read. A cache that
//! is missing, torn or of another version is an empty one.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kb_core::{Knowledge, MediaType, SectionId};
use kb_search::{
    Analyzer, BuildError, DateKey, Dead, DocumentInput, LiveSegment, Markup, SectionInput, Segment, SegmentBuilder,
    SegmentError, merge,
};

use super::super::Result;
use super::super::error::ProjectError;
use crate::codec::{Malformed, Put, Reader};
use crate::error::IoContext;
use crate::index::{analyzer, index_error};
use crate::prepare::hash16;
use crate::stat_cache::Stamp;
use crate::storage::{Disk, Fs};

const MAGIC: [u8; 8] = *b"kbproj\0\x01";
/// More segments than this become one.
const MOST_SEGMENTS: usize = 8;

/// The search index of one project.
#[derive(Debug, Default)]
pub(super) struct ProjectIndex {
    files: BTreeMap<String, Indexed>,
    segments: Vec<LiveSegment<Vec<u8>>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Indexed {
    /// `None` where the file may have changed unseen since it was read.
    stamp: Option<Stamp>,
    hash: [u8; 16],
}

impl ProjectIndex {
    /// Opens the cache in a folder.
    pub(super) fn open(cache: &Path) -> Self {
        Self::load(cache).unwrap_or_default()
    }

    pub(super) fn segments(&self) -> &[LiveSegment<Vec<u8>>] {
        &self.segments
    }

    /// Takes in what changed among these files of a folder. `now` is in nanoseconds since 1970. Says whether anything
    /// did.
    pub(super) fn refresh(&mut self, folder: &Path, names: &[String], now: i64) -> Result<bool> {
        let mut changed: Vec<(String, String)> = Vec::new();
        let mut files = BTreeMap::new();
        let mut dead: Vec<String> = Vec::new();
        let mut is_new_state = false;
        for name in names {
            let path = folder.join(name);
            let stamp = match path.symlink_metadata() {
                Ok(metadata) => Stamp::of(&metadata),
                Err(e) if e.kind() == std::io::ErrorKind::NotFound => continue,
                Err(e) => return Ok(Err(e).io("look at", &path)?),
            };
            let known = self.files.get(name);
            if let Some(known) = known.filter(|known| known.stamp == Some(stamp)) {
                files.insert(name.clone(), known.clone());
                continue;
            }
            // One that cannot be read is found by nothing until it can; lists say what is wrong.
            let bytes = std::fs::read(&path).unwrap_or_default();
            let hash = hash16(&bytes);
            let stamp = Some(stamp).filter(|stamp| stamp.is_settled(now));
            is_new_state |= stamp.is_some();
            if known.is_none_or(|known| known.hash != hash) {
                let text =
                    String::from_utf8(bytes).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned());
                changed.push((name.clone(), text));
                dead.extend(known.map(|_| name.clone()));
            }
            files.insert(name.clone(), Indexed { stamp, hash });
        }
        dead.extend(self.files.keys().filter(|name| !files.contains_key(*name)).cloned());
        self.files = files;
        for name in &dead {
            self.bury(name).map_err(damaged)?;
        }
        if !changed.is_empty() {
            let bytes = build(&changed)?;
            self.segments.push((Arc::new(Segment::open(bytes).map_err(damaged)?), None));
        }
        if self.segments.len() > MOST_SEGMENTS {
            self.merge()?;
        }
        Ok(is_new_state || !dead.is_empty() || !changed.is_empty())
    }

    fn bury(&mut self, name: &str) -> std::result::Result<(), SegmentError> {
        for (segment, dead) in &mut self.segments {
            if let Some(ordinal) = segment.find(name)? {
                let mut more = dead.as_deref().cloned().unwrap_or_default();
                more.insert(segment, ordinal)?;
                *dead = Some(Arc::new(more));
            }
        }
        Ok(())
    }

    fn merge(&mut self) -> Result<()> {
        let inputs: Vec<_> = self.segments.iter().map(|(segment, dead)| (&**segment, dead.as_deref())).collect();
        let mut bytes = Vec::new();
        merge(&inputs, &mut bytes).map_err(index_error)?;
        self.segments = vec![(Arc::new(Segment::open(bytes).map_err(damaged)?), None)];
        Ok(())
    }

    /// Writes the cache. It only saves time, so what cannot be written is left.
    pub(super) fn save(&self, cache: &Path) {
        let mut state = MAGIC.to_vec();
        state.put_varint(u64::from(Analyzer::VERSION));
        state.put_varint(self.segments.len() as u64);
        let mut keep = Vec::new();
        for (segment, dead) in &self.segments {
            let hash = hash16(segment.source());
            state.extend_from_slice(&hash);
            state.put_bytes(&dead.as_deref().map(Dead::to_bytes).unwrap_or_default());
            let path = segment_path(cache, hash);
            if !path.exists() && put(&path, segment.source()).is_err() {
                return;
            }
            keep.push(path);
        }
        state.put_varint(self.files.len() as u64);
        for (name, file) in &self.files {
            state.put_text(name);
            state.extend_from_slice(&file.hash);
            state.put_option(file.stamp, |bytes, stamp| stamp.put(bytes));
        }
        let checksum = crc32fast::hash(&state);
        state.extend_from_slice(&checksum.to_le_bytes());
        if put(&cache.join("files"), &state).is_err() {
            return;
        }
        for entry in std::fs::read_dir(cache).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.extension().is_some_and(|end| end == "seg") && !keep.contains(&path) {
                let _ = Disk.remove(&path);
            }
        }
    }

    fn load(cache: &Path) -> Option<Self> {
        let state = std::fs::read(cache.join("files")).ok()?;
        let end = state.len().checked_sub(4)?;
        if state[end..] != crc32fast::hash(&state[..end]).to_le_bytes() {
            return None;
        }
        Self::decode(&state[..end], cache).ok().flatten()
    }

    fn decode(state: &[u8], cache: &Path) -> std::result::Result<Option<Self>, Malformed> {
        let mut reader = Reader::new(state);
        if reader.array()? != MAGIC || reader.varint()? != u64::from(Analyzer::VERSION) {
            return Ok(None);
        }
        let mut index = Self::default();
        for _ in 0..reader.count(17)? {
            let hash = reader.array()?;
            let dead = reader.bytes()?;
            let bytes = std::fs::read(segment_path(cache, hash)).unwrap_or_default();
            if hash16(&bytes) != hash {
                return Ok(None);
            }
            let Ok(segment) = Segment::open(bytes) else { return Ok(None) };
            let dead = if dead.is_empty() { None } else { Dead::from_bytes(dead, &segment).ok().map(Arc::new) };
            index.segments.push((Arc::new(segment), dead));
        }
        for _ in 0..reader.count(18)? {
            let name = reader.text()?.to_owned();
            let hash = reader.array()?;
            let stamp = reader.option(Stamp::read)?;
            index.files.insert(name, Indexed { stamp, hash });
        }
        Ok(Some(index))
    }
}

/// Makes a segment of documents in the order of their names. Title, keywords and introduction are the first section of
/// a document, its chapters the others.
fn build(documents: &[(String, String)]) -> Result<Vec<u8>> {
    let mut builder = SegmentBuilder::new(analyzer());
    for (name, text) in documents {
        let read = Knowledge::parse(text);
        let entry = read.entry(name);
        let chapters = read.chapters();
        let title = [entry.title.as_str()];
        let headings: Vec<[&str; 1]> = chapters.iter().map(|chapter| [chapter.title.as_str()]).collect();
        let section = |position: usize, heading_path, text: &'_ str| (position as u32, heading_path, text.to_owned());
        let mut parts = vec![section(0, &title[..], read.introduction())];
        parts.extend(chapters.iter().zip(&headings).enumerate().map(|(i, (c, h))| section(i + 1, &h[..], &c.content)));
        let sections: Vec<SectionInput<'_>> = parts
            .iter()
            .map(|(position, heading_path, text)| SectionInput {
                position: *position,
                kbid: SectionId::of(&MediaType::markdown(), text.as_bytes()),
                heading_path,
                text,
                markup: Markup::Markdown,
                first: *position == 0,
            })
            .collect();
        let document = DocumentInput {
            docid: name,
            title: "",
            tags: &entry.keywords,
            front_text: "",
            types: &[],
            source: None,
            date: DateKey::default(),
            sections: &sections,
        };
        builder.add(&document).map_err(index_error)?;
    }
    let mut bytes = Vec::new();
    builder.finish(&mut bytes).map_err(index_error)?;
    Ok(bytes)
}

fn segment_path(cache: &Path, hash: [u8; 16]) -> PathBuf {
    cache.join(format!("{}.seg", SectionId::from_bytes(hash)))
}

/// Writes a file of the cache whole; it need not survive a power cut.
fn put(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)?;
    let temporary = folder.join(super::super::home::temporary_name());
    Disk.create(&temporary)?.write_all(bytes)?;
    Disk.rename(&temporary, path)
}

pub(super) fn damaged(error: SegmentError) -> ProjectError {
    index_error(BuildError::Segment(error)).into()
}
