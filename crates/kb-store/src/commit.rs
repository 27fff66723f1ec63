//! Commits: how anything gets into a database.
//!
//! A commit holds the writers' lock, reads the newest head, stages records, writes one pack (durable) and the index
//! files (derived, not synced), and swaps the head. Small packs and segments are merged on the way: the pack of a
//! commit takes in the small ones before it, so a commit is one file and four syncs however much it merges.
//!
//! **Invariant:** the head is swapped after every pack it names is durable. Whatever fails before leaves the old state;
//! files that no head names are removed by `gc`.

mod indexing;
mod retire;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use kb_core::{DocId, DocumentKind, SectionId};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::error::StoreError;
use crate::head::{Head, Totals};
use crate::index::Index;
use crate::manifest::Manifest;
use crate::pack::{PackRef, PackWriter};
use crate::record::{Key, Kind, Record};
use crate::revisions::{Kept, Walk};
use crate::snapshot::Snapshot;
use crate::storage::FileName;

pub(crate) use indexing::{index_files, merge_segments, write_segments};
pub(crate) use retire::{read_retired_list, retire};

type Result<T> = std::result::Result<T, StoreError>;

/// So many files of one size make one of the next.
const FANOUT: usize = 4;
/// Files up to this size are of the smallest tier.
const SMALLEST_TIER: u64 = 64 << 10;
/// A small commit merges no more than this, so that its time stays flat; `gc` and large commits do the rest.
const SMALL_MERGE: u64 = 8 << 20;
/// From so many files on a commit merges whatever it costs.
const MOST_FILES: usize = 40;
/// A document as a commit leaves it.
pub(crate) struct Staged {
    /// `None` where it is removed.
    pub(crate) manifest: Option<Manifest>,
    /// The source, where it is at hand; else its sections are read.
    pub(crate) source: Option<Arc<[u8]>>,
    /// Revisions that this commit wrote before, the oldest first.
    earlier: Vec<Manifest>,
    /// Older revisions were taken away in this commit.
    cleared: bool,
}

/// What is to be committed.
pub(crate) struct Txn<'a> {
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) generation: u64,
    /// Milliseconds since 1970.
    pub(crate) now: i64,
    /// About how many bytes will be added; decides what is merged.
    expected: u64,
    writer: Option<PackWriter>,
    /// Packs, counted from the newest, that the new one takes in.
    merged: usize,
    staged: BTreeMap<DocId, Staged>,
    /// Readable sections that were written in this commit, and those that were ever taken away in it.
    written: FxHashMap<Key, (Arc<[u8]>, Range<usize>)>,
    taken: FxHashSet<Key>,
    sources: BTreeMap<String, DocId>,
    totals: Totals,
    /// Nothing is written: only what would be done is asked.
    is_dry: bool,
    /// Bytes that must be gone now: old files get no grace.
    pub(crate) purge: bool,
}

impl<'a> Txn<'a> {
    pub(crate) fn new(snapshot: &'a Snapshot, now: i64, expected: u64) -> Self {
        Self {
            snapshot,
            generation: snapshot.head.generation + 1,
            now,
            expected,
            writer: None,
            merged: 0,
            staged: BTreeMap::new(),
            written: FxHashMap::default(),
            taken: FxHashSet::default(),
            sources: BTreeMap::new(),
            totals: snapshot.head.totals,
            is_dry: false,
            purge: false,
        }
    }

    /// A transaction that says what it would do and writes nothing; it cannot be finished.
    pub(crate) fn dry(snapshot: &'a Snapshot, now: i64) -> Self {
        Self { is_dry: true, ..Self::new(snapshot, now, 0) }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.writer.is_none()
    }

    /// Returns a document as this commit sees it.
    pub(crate) fn manifest(&self, docid: &DocId) -> Result<Option<Manifest>> {
        match self.staged.get(docid) {
            Some(staged) => Ok(staged.manifest.clone()),
            None => self.snapshot.manifest(docid),
        }
    }

    /// Calls `each` with every current manifest as this commit sees them, in no particular order.
    pub(crate) fn each_manifest(&self, mut each: impl FnMut(Manifest) -> Result<()>) -> Result<()> {
        self.snapshot.each_manifest(
            |manifest| {
                if self.staged.contains_key(&manifest.docid) { Ok(()) } else { each(manifest) }
            },
        )?;
        self.staged.values().filter_map(|staged| staged.manifest.clone()).try_for_each(each)
    }

    /// Returns the revisions of a document as this commit sees them, the newest first, with their generations.
    pub(crate) fn revisions(&self, docid: &DocId) -> Result<Vec<(u64, Manifest)>> {
        let Some(staged) = self.staged.get(docid) else { return self.snapshot.revisions(docid) };
        let own = staged.manifest.iter().chain(staged.earlier.iter().rev());
        let mut revisions: Vec<_> = own.map(|manifest| (self.generation, manifest.clone())).collect();
        if !staged.cleared {
            revisions.extend(self.snapshot.revisions(docid)?);
        }
        Ok(revisions)
    }

    /// Calls `each` with every kept revision of every document as this commit sees them.
    pub(crate) fn each_revision(&self, mut each: impl FnMut(&Kept<'_>)) -> Result<()> {
        let staged: FxHashSet<Key> = self.staged.keys().map(Manifest::key).collect();
        let groups = self.snapshot.groups(Kind::MANIFEST).filter(|group| !staged.contains(&group[0].entry.key));
        let live = groups.map(|group| group.into_iter().take_while(|place| !place.entry.tombstone).collect());
        let live = live.filter(|group: &Vec<_>| !group.is_empty()).collect();
        self.snapshot.walk_revisions(live, |_, kept| {
            each(kept);
            Ok(())
        })?;
        for docid in self.staged.keys() {
            let mut walk = Walk::default();
            for (generation, manifest) in self.revisions(docid)? {
                each(&walk.step(generation, manifest));
            }
        }
        Ok(())
    }

    /// Returns the generation since when a section can be read without a break, as this commit sees it.
    pub(crate) fn born(&self, id: SectionId) -> u64 {
        let key = id.to_bytes();
        let is_new = self.taken.contains(&key) || !self.snapshot.has(Kind::SECTION, &key);
        if is_new { self.generation } else { self.snapshot.born(id) }
    }

    /// Returns the text of a section as this commit sees it; none of what is gone or damaged.
    pub(crate) fn text(&self, id: SectionId) -> String {
        let bytes = match self.written.get(&id.to_bytes()) {
            Some((source, range)) => source[range.clone()].to_vec(),
            None => self.snapshot.section(id).ok().flatten().map(|(_, bytes)| bytes).unwrap_or_default(),
        };
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Says whether a section can be read as this commit sees it.
    pub(crate) fn has_section(&self, id: SectionId) -> bool {
        let key = id.to_bytes();
        self.written.contains_key(&key) || (!self.taken.contains(&key) && self.snapshot.has(Kind::SECTION, &key))
    }

    /// Writes a section, a part of `source`, unless it is there. With `again` a damaged one is written anew.
    pub(crate) fn put_section(
        &mut self,
        id: SectionId,
        media_type: &kb_core::MediaType,
        (source, range): (&Arc<[u8]>, Range<usize>),
        again: bool,
    ) -> Result<()> {
        let key = id.to_bytes();
        if self.written.contains_key(&key) {
            return Ok(());
        }
        let there = self.has_section(id);
        if there && !(again && self.snapshot.section(id).is_err()) {
            return Ok(());
        }
        let record = Record::section(media_type, &source[range.clone()], id, self.generation);
        self.add(&record)?;
        self.written.insert(key, (Arc::clone(source), range));
        Ok(())
    }

    /// Makes a section unreadable.
    pub(crate) fn take_section(&mut self, id: SectionId) -> Result<()> {
        let key = id.to_bytes();
        self.add(&Record::tombstone(Kind::SECTION, key, self.generation))?;
        self.written.remove(&key);
        self.taken.insert(key);
        // Revisions of this very commit do not bring it back if it is written again.
        let earlier = self.staged.values_mut().flat_map(|staged| &mut staged.earlier);
        earlier.for_each(|manifest| manifest.sections.retain(|section| section.kbid != id));
        Ok(())
    }

    /// Makes this the current revision of its document.
    pub(crate) fn put_manifest(&mut self, manifest: Manifest, source: Option<Arc<[u8]>>) -> Result<()> {
        match self.manifest(&manifest.docid) {
            Ok(Some(old)) => count(&mut self.totals, &old, false),
            Ok(None) => {}
            Err(StoreError::Damaged { .. }) => {
                // It was counted, though how many bytes it had is lost.
                let lost = Manifest { sections: Vec::new(), warnings: Vec::new(), ..manifest.clone() };
                count(&mut self.totals, &lost, false);
            }
            Err(error) => return Err(error),
        }
        count(&mut self.totals, &manifest, true);
        let record = Record::new(Kind::MANIFEST, Manifest::key(&manifest.docid), self.generation, manifest.encode());
        self.add(&record)?;
        let before = self.staged.remove(&manifest.docid);
        let (mut earlier, cleared) = (Vec::new(), before.as_ref().is_some_and(|before| before.cleared));
        if let Some(before) = before {
            earlier = before.earlier;
            earlier.extend(before.manifest);
        }
        self.staged.insert(manifest.docid.clone(), Staged { manifest: Some(manifest), source, earlier, cleared });
        Ok(())
    }

    /// Takes a document away with all its revisions.
    pub(crate) fn take_manifest(&mut self, manifest: &Manifest) -> Result<()> {
        count(&mut self.totals, manifest, false);
        self.add(&Record::tombstone(Kind::MANIFEST, Manifest::key(&manifest.docid), self.generation))?;
        let gone = Staged { manifest: None, source: None, earlier: Vec::new(), cleared: true };
        self.staged.insert(manifest.docid.clone(), gone);
        Ok(())
    }

    /// Returns the document that a source was said to be.
    pub(crate) fn document_of_source(&self, source: &str) -> Result<Option<DocId>> {
        if let Some(docid) = self.sources.get(source) {
            return Ok(Some(docid.clone()));
        }
        document_of_source(self.snapshot, source)
    }

    /// Says which document a source is.
    pub(crate) fn put_source(&mut self, source: &str, docid: &DocId) -> Result<()> {
        let payload = docid.as_str().as_bytes().to_vec();
        self.add(&Record::new(Kind::SOURCE, crate::record::key_of(source), self.generation, payload))?;
        self.sources.insert(source.to_owned(), docid.clone());
        Ok(())
    }

    /// Writes a record of a kind of which only the newest counts.
    pub(crate) fn put_record(&mut self, kind: Kind, key: Key, payload: Vec<u8>) -> Result<()> {
        self.add(&Record::new(kind, key, self.generation, payload))
    }

    /// Takes such a record away.
    pub(crate) fn take_record(&mut self, kind: Kind, key: Key) -> Result<()> {
        self.add(&Record::tombstone(kind, key, self.generation))
    }

    fn add(&mut self, record: &Record) -> Result<()> {
        if self.is_dry {
            return Ok(());
        }
        if self.writer.is_none() {
            self.writer = Some(self.begin()?);
        }
        self.writer.as_mut().expect("it was just made").add(record)
    }

    /// Begins the pack, with the small packs that it takes in.
    fn begin(&mut self) -> Result<PackWriter> {
        let storage = &*self.snapshot.storage;
        let head = &self.snapshot.head;
        let sizes: Vec<u64> = head.packs.iter().map(|pack| pack.bytes).collect();
        self.merged = newest_to_merge(&sizes, self.expected / 4);
        if self.merged > 0 && self.snapshot.missing.is_empty() {
            let mut writer = PackWriter::create(storage)?;
            match copy_packs(self.snapshot, self.merged, &mut writer, &mut |_| true) {
                Ok(_) => return Ok(writer),
                // A damaged pack is left as it is: merging must not lose what can still be read of it.
                Err(StoreError::Damaged { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        self.merged = 0;
        PackWriter::create(storage)
    }

    /// Writes pack and index files and returns the head that names them.
    pub(crate) fn finish(mut self) -> Result<Head> {
        let writer = self.writer.take().expect("only a transaction with records is finished");
        let storage = Arc::clone(&self.snapshot.storage);
        let mut head = self.snapshot.head.clone();
        let kept = head.packs.len() - self.merged;
        let replaced: Vec<PackRef> = head.packs.split_off(kept);
        let hashes: Vec<[u8; 16]> = replaced.iter().map(|pack| pack.hash).collect();
        head.packs.push(writer.finish(&hashes)?);
        let mut retired: Vec<FileName> = replaced.iter().map(PackRef::name).collect();
        head.generation = self.generation;
        head.totals = self.totals;
        let old_index = self.snapshot.index.get_or_init(|| Index::open(&*storage, &self.snapshot.head));
        let mut updated = (head.clone(), retired.clone());
        let update = match &old_index.problem {
            None => self.update_index(old_index, &mut updated.0, &mut updated.1).map(|()| true),
            Some(_) => Ok(false),
        };
        match update {
            Ok(true) => (head, retired) = updated,
            // A page that was not looked at before may turn out to be damaged: that must not keep anybody from writing.
            Ok(false) | Err(StoreError::Damaged { .. }) => self.rebuild_index(&mut head, &mut retired)?,
            Err(error) => return Err(error),
        }
        retire(&*storage, &mut head, retired, self.now.div_euclid(1000), self.purge)?;
        Ok(head)
    }
}

/// Copies the newest packs of a snapshot into a writer, the oldest of them first. Of one key what an own newer
/// tombstone hides is left out, and so is a tombstone that hides nothing any more. Returns how many were left out.
pub(crate) fn copy_packs(
    snapshot: &Snapshot,
    newest: usize,
    writer: &mut PackWriter,
    keep: &mut dyn FnMut(&crate::pack::Entry) -> bool,
) -> Result<u64> {
    let (copied, older) = snapshot.packs.split_at(newest);
    let mut dropped = 0;
    for (i, pack) in copied.iter().enumerate().rev() {
        let newer = &copied[..i];
        dropped += pack.copy_into(writer, &mut |entry| {
            let shadowed = if entry.kind.is_replaced() {
                // Copies are alike, or the newest stands for all.
                newer.iter().any(|p| p.find(entry.kind, &entry.key).is_some()) || !pack.is_newest(entry)
            } else {
                newer.iter().any(|p| p.find_all(entry.kind, &entry.key).iter().any(|e| e.tombstone))
                    || pack.is_under_tombstone(entry)
            };
            if shadowed {
                return false;
            }
            if entry.tombstone {
                return older.iter().any(|p| p.find(entry.kind, &entry.key).is_some());
            }
            keep(entry)
        })?;
    }
    Ok(dropped)
}

/// Says how many of the newest files a new one of this size shall take in.
///
/// Sizes fall into tiers by powers of [`FANOUT`]; four of one tier become one of the next. `sizes` has the oldest
/// first.
fn newest_to_merge(sizes: &[u64], new: u64) -> usize {
    let tier = |size: u64| (size / SMALLEST_TIER).checked_ilog(FANOUT as u64).map_or(0, |tier| tier + 1);
    let mut taken = 0;
    let mut total = new;
    loop {
        let at = tier(total);
        let run = sizes[..sizes.len() - taken].iter().rev().take_while(|&&size| tier(size) <= at).count();
        if run == 0 || taken + run + 1 < FANOUT {
            break;
        }
        let sum: u64 = sizes[sizes.len() - taken - run..sizes.len() - taken].iter().sum();
        if total + sum > SMALL_MERGE.max(4 * new) && sizes.len() < MOST_FILES {
            break;
        }
        taken += run;
        total += sum;
    }
    taken
}

fn count(totals: &mut Totals, manifest: &Manifest, add: bool) {
    let one = |total: &mut u64, n: u64| *total = if add { *total + n } else { total.saturating_sub(n) };
    one(
        match manifest.kind {
            DocumentKind::Document => &mut totals.documents,
            DocumentKind::Skill => &mut totals.skills,
            DocumentKind::Agent => &mut totals.agents,
        },
        1,
    );
    one(&mut totals.source_bytes, manifest.source_bytes());
    one(&mut totals.with_warnings, u64::from(!manifest.warnings.is_empty()));
}

/// Adds a document to the totals.
pub(crate) fn add_totals(totals: &mut Totals, manifest: &Manifest) {
    count(totals, manifest, true);
}

/// Returns the document that a source was said to be.
pub(crate) fn document_of_source(snapshot: &Snapshot, source: &str) -> Result<Option<DocId>> {
    match snapshot.find(Kind::SOURCE, &crate::record::key_of(source)) {
        Some(place) if !place.entry.tombstone => {
            let record = snapshot.read(&place)?;
            Ok(std::str::from_utf8(&record.payload).ok().and_then(|text| text.parse().ok()))
        }
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::newest_to_merge;

    #[test]
    fn four_of_one_size_become_one_of_the_next() {
        let mut files: Vec<u64> = Vec::new();
        let mut most = 0;
        let mut rewritten = 0;
        for _ in 0..10_000 {
            let taken = newest_to_merge(&files, 2_000);
            let merged: u64 = files.split_off(files.len() - taken).iter().sum();
            rewritten += merged;
            files.push(merged + 2_000);
            most = most.max(files.len());
        }
        assert_eq!(files.iter().sum::<u64>(), 20_000_000);
        assert!(most < 24, "{most} files at a time");
        assert!(rewritten < 20_000_000 * 40, "every byte is rewritten {} times", rewritten / 20_000_000);
    }
}
