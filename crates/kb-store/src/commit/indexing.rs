//! The index files of a commit: its own segment, the dead of older ones, merges, and indexing anew.
//!
//! **Invariant:** what a head names together holds every current document exactly once. Index files are not synced: they
//! can be made again from the packs.

use std::io::{self, Write};
use std::sync::Arc;

use kb_search::{Analyzer, Dead, LiveSegment, Segment, SegmentBuilder, SegmentStats, merge};

use super::{Result, Txn, newest_to_merge};
use crate::error::StoreError;
use crate::head::{FORMAT, Head, SegmentRef};
use crate::index::{Index, IndexBytes, add_document, add_from_store, analyzer, index_error, stored_text};
use crate::manifest::Manifest;
use crate::paged::{FileKind, PagedWriter, STRETCH};
use crate::record::Kind;
use crate::snapshot::Snapshot;
use crate::storage::{Area, FileName, Storage};

/// Text indexed into one segment before the next is begun, when all is indexed anew.
const SEGMENT_TEXT: u64 = 48 << 20;

impl Txn<'_> {
    pub(super) fn update_index(&self, old: &Index, head: &mut Head, retired: &mut Vec<FileName>) -> Result<()> {
        let storage = &*self.snapshot.storage;
        let mut live: Vec<LiveSegment<IndexBytes>> = old.segments.clone();
        let mut changed = vec![false; live.len()];
        for docid in self.staged.keys() {
            for (i, (segment, dead)) in live.iter_mut().enumerate() {
                let found = segment.find(docid.as_str()).map_err(segment_error)?;
                if let Some(ordinal) = found.filter(|&ordinal| !dead.as_ref().is_some_and(|d| d.contains(ordinal))) {
                    let mut new = dead.as_deref().cloned().unwrap_or_default();
                    new.insert(segment, ordinal).map_err(segment_error)?;
                    *dead = Some(Arc::new(new));
                    changed[i] = true;
                }
            }
        }
        let fresh = self.build_segment()?;
        let sizes: Vec<u64> = head.segments.iter().map(|segment| segment.bytes).collect();
        let size = fresh.as_ref().map_or(0, |(bytes, _)| bytes.len() as u64);
        let mut merged = if fresh.is_some() { newest_to_merge(&sizes, size) } else { 0 };
        if self.purge {
            // The words of what is purged must go as well: every segment that held it is written anew.
            let first = changed.iter().position(|&changed| changed).unwrap_or(live.len());
            merged = merged.max(live.len() - first);
        }
        let kept = live.len() - merged;
        for i in 0..kept {
            if changed[i] {
                let (segment, dead) = &live[i];
                let dead = dead.as_deref().expect("it was changed");
                let reference = &mut head.segments[i];
                retired.extend(reference.dead.map(|(hash, _)| FileName { area: Area::Index, hash }));
                reference.dead = Some(write_dead(storage, dead)?);
                reference.dead_documents = dead.len() as u64;
                reference.documents = u64::from(segment.documents()) - dead.len() as u64;
                reference.sections = u64::from(segment.sections() - dead.sections());
            }
        }
        let replaced = head.segments.split_off(kept);
        for reference in &replaced {
            retired.push(reference.name());
            retired.extend(reference.dead.map(|(hash, _)| FileName { area: Area::Index, hash }));
        }
        let mut generations = (self.generation, self.generation);
        if let Some(first) = replaced.first() {
            generations.0 = first.generations.0;
        }
        if replaced.is_empty() {
            if let Some((bytes, stats)) = fresh {
                let mut writer = PagedWriter::create(storage, Area::Index, FileKind::Segment, FORMAT)?;
                writer.write_all(&bytes).map_err(|e| index_error(kb_search::BuildError::Io(e)))?;
                head.segments.push(finish_segment(writer, stats, generations)?);
            }
        } else {
            let fresh = match fresh {
                Some((bytes, _)) => Some(Segment::open(IndexBytes::Memory(bytes)).map_err(segment_error)?),
                None => None,
            };
            let mut inputs: Vec<(&Segment<IndexBytes>, Option<&Dead>)> =
                live[kept..].iter().map(|(segment, dead)| (&**segment, dead.as_deref())).collect();
            inputs.extend(fresh.iter().map(|segment| (segment, None)));
            let mut writer = PagedWriter::create(storage, Area::Index, FileKind::Segment, FORMAT)?;
            let stats = merge(&inputs, &mut writer).map_err(index_error)?;
            if stats.documents > 0 {
                head.segments.push(finish_segment(writer, stats, generations)?);
            }
        }
        // A segment whose documents are all dead is only in the way.
        head.segments.retain(|segment| {
            if segment.documents == 0 {
                retired.push(segment.name());
                retired.extend(segment.dead.map(|(hash, _)| FileName { area: Area::Index, hash }));
            }
            segment.documents > 0
        });
        head.analyzer = Analyzer::VERSION;
        Ok(())
    }

    /// Indexes the documents of this commit.
    fn build_segment(&self) -> Result<Option<(Vec<u8>, SegmentStats)>> {
        let mut builder = SegmentBuilder::new(analyzer());
        for staged in self.staged.values() {
            if let Some(manifest) = &staged.manifest {
                self.index_staged(&mut builder, manifest, staged.source.as_deref())?;
            }
        }
        if builder.documents() == 0 {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        let stats = builder.finish(&mut bytes).map_err(index_error)?;
        Ok(Some((bytes, stats)))
    }

    fn index_staged(&self, builder: &mut SegmentBuilder, manifest: &Manifest, source: Option<&[u8]>) -> Result<()> {
        let Some(source) = source.filter(|_| !manifest.edited) else {
            return add_document(builder, manifest, |i| {
                let id = manifest.sections[i].kbid;
                match self.written.get(&id.to_bytes()) {
                    Some((source, range)) => Ok(String::from_utf8_lossy(&source[range.clone()])),
                    None => stored_text(self.snapshot, id),
                }
            });
        };
        let mut starts = Vec::with_capacity(manifest.sections.len());
        let mut at = 0;
        for section in &manifest.sections {
            starts.push(at);
            at += section.bytes as usize;
        }
        add_document(builder, manifest, |i| {
            let end = starts[i] + manifest.sections[i].bytes as usize;
            Ok(String::from_utf8_lossy(source.get(starts[i]..end).unwrap_or_default()))
        })
    }

    /// Indexes every document anew, those of this commit included.
    pub(super) fn rebuild_index(&self, head: &mut Head, retired: &mut Vec<FileName>) -> Result<()> {
        retired.extend(index_files(head));
        let mut manifests = Vec::new();
        for place in self.snapshot.current(Kind::MANIFEST) {
            if let Ok(manifest) = self.snapshot.manifest_at(&place)
                && !self.staged.contains_key(&manifest.docid)
            {
                manifests.push(manifest);
            }
        }
        manifests.extend(self.staged.values().filter_map(|staged| staged.manifest.clone()));
        let snapshot = self.snapshot;
        head.segments = write_segments(snapshot, manifests, self.generation, &mut |builder, manifest| match self
            .staged
            .get(&manifest.docid)
        {
            Some(staged) => self.index_staged(builder, manifest, staged.source.as_deref()),
            None => add_from_store(builder, snapshot, manifest),
        })?;
        head.analyzer = Analyzer::VERSION;
        Ok(())
    }
}

/// Returns every index file of a head.
pub(crate) fn index_files(head: &Head) -> Vec<FileName> {
    let dead = head.segments.iter().filter_map(|segment| segment.dead);
    let dead = dead.map(|(hash, _)| FileName { area: Area::Index, hash });
    head.segments.iter().map(SegmentRef::name).chain(dead).collect()
}

/// Indexes documents into as few segments as memory allows, then merges these.
pub(crate) fn write_segments(
    snapshot: &Snapshot,
    mut manifests: Vec<Manifest>,
    generation: u64,
    add: &mut dyn FnMut(&mut SegmentBuilder, &Manifest) -> Result<()>,
) -> Result<Vec<SegmentRef>> {
    manifests.sort_by(|a, b| a.docid.cmp(&b.docid));
    let storage = &*snapshot.storage;
    let mut parts: Vec<SegmentRef> = Vec::new();
    let mut builder = SegmentBuilder::new(analyzer());
    let mut text = 0;
    let generations = (0, generation);
    for (i, manifest) in manifests.iter().enumerate() {
        add(&mut builder, manifest)?;
        text += manifest.source_bytes();
        if text >= SEGMENT_TEXT || i + 1 == manifests.len() {
            let full = std::mem::replace(&mut builder, SegmentBuilder::new(analyzer()));
            let mut writer = PagedWriter::create(storage, Area::Index, FileKind::Segment, FORMAT)?;
            let stats = full.finish(&mut writer).map_err(index_error)?;
            parts.push(finish_segment(writer, stats, generations)?);
            text = 0;
        }
    }
    if parts.len() < 2 {
        return Ok(parts);
    }
    let head = Head { segments: parts.clone(), analyzer: Analyzer::VERSION, ..Head::default() };
    let index = Index::open(storage, &head);
    if let Some(problem) = index.problem {
        return Err(StoreError::Damaged {
            file: "index".to_owned(),
            offset: 0,
            kbid: None,
            detail: problem.to_string(),
        });
    }
    let merged = merge_segments(storage, &index, generation)?;
    for part in parts {
        if merged.iter().all(|segment| segment.hash != part.hash) {
            storage.delete(part.name())?;
        }
    }
    Ok(merged)
}

/// Merges all segments of an index into one, without the dead; none where nothing is alive.
pub(crate) fn merge_segments(storage: &dyn Storage, index: &Index, generation: u64) -> Result<Vec<SegmentRef>> {
    let inputs: Vec<_> = index.segments.iter().map(|(segment, dead)| (&**segment, dead.as_deref())).collect();
    let out = PagedWriter::create(storage, Area::Index, FileKind::Segment, FORMAT)?;
    let mut writer = MergeWriter { out, inputs: &index.segments, released: 0 };
    let stats = merge(&inputs, &mut writer).map_err(index_error)?;
    if stats.documents == 0 {
        return Ok(Vec::new());
    }
    Ok(vec![finish_segment(writer.out, stats, (0, generation))?])
}

/// Writes a merged segment. A merge goes through all of its inputs once: each stretch that is written lets go of the
/// memory of what was read for it.
struct MergeWriter<'i> {
    out: PagedWriter,
    inputs: &'i [LiveSegment<IndexBytes>],
    released: u64,
}

impl Write for MergeWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.out.len() - self.released >= STRETCH {
            self.inputs.iter().for_each(|(segment, _)| segment.source().release());
            self.released = self.out.len();
        }
        self.out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

fn finish_segment(writer: PagedWriter, stats: SegmentStats, generations: (u64, u64)) -> Result<SegmentRef> {
    let (name, bytes) = writer.finish(false)?;
    Ok(SegmentRef {
        hash: name.hash,
        bytes,
        generations,
        dead: None,
        documents: stats.documents.into(),
        sections: stats.sections.into(),
        dead_documents: 0,
    })
}

fn write_dead(storage: &dyn Storage, dead: &Dead) -> Result<([u8; 16], u64)> {
    let mut writer = PagedWriter::create(storage, Area::Index, FileKind::Dead, FORMAT)?;
    writer.write_all(&dead.to_bytes()).map_err(|e| index_error(kb_search::BuildError::Io(e)))?;
    let (name, bytes) = writer.finish(false)?;
    Ok((name.hash, bytes))
}

fn segment_error(error: kb_search::SegmentError) -> StoreError {
    index_error(kb_search::BuildError::Segment(error))
}
