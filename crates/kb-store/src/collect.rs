//! Collecting what nothing refers to, and making the index anew.
//!
//! **Invariant:** what a current revision or a kept one lists is never collected. A damaged pack is replaced only where
//! all that is wanted of it can be read; else it is left as it is, so that what can still be read stays; `check` names it.

use std::sync::Arc;

use kb_core::{DocId, GcReport, Problem, RebuildReport, SectionId, Severity, UnlearnReport};
use kb_search::Analyzer;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::commit::{add_totals, index_files, retire, write_segments};
use crate::error::StoreError;
use crate::head::{Head, Totals};
use crate::index::{Index, add_from_store};
use crate::knowledge_base::KnowledgeBase;
use crate::losses::{absent_sections, broken_reference, difference_problem, differences};
use crate::manifest::Manifest;
use crate::pack::{Entry, Pack, PackRef, PackWriter};
use crate::record::{Key, Kind};
use crate::request::{Gc, Observer, Progress, Silent};
use crate::settings::Settings;
use crate::snapshot::{Place, Snapshot};
use crate::storage::{FileName, Storage};

type Result<T> = std::result::Result<T, StoreError>;

/// A record, by pack, block and offset.
type Spot = (usize, u32, u16);

/// What a collection leaves out.
#[derive(Default)]
struct Garbage {
    spots: FxHashSet<Spot>,
    sections: u64,
    revisions: u64,
}

impl KnowledgeBase {
    /// Collects what nothing refers to: sections of no kept revision, revisions beyond the number kept, the bytes of
    /// what was unlearned, and files that no head names. Merges packs and segments, and so replaces a damaged pack from
    /// which nothing that is wanted has been lost.
    pub fn gc(&self, request: &Gc, observer: &mut dyn Observer) -> Result<GcReport> {
        self.collect(request.history, None, observer)
    }

    /// Removes from the disk now what was unlearned, and what older revisions of documents say of it.
    pub(crate) fn purge(&self, unlearned: &UnlearnReport) -> Result<()> {
        self.collect(None, Some(unlearned), &mut Silent).map(drop)
    }

    fn collect(
        &self,
        history: Option<u32>,
        purge: Option<&UnlearnReport>,
        observer: &mut dyn Observer,
    ) -> Result<GcReport> {
        let _lock = self.lock()?;
        loop {
            let snapshot = self.writable_snapshot()?;
            let mut head = snapshot.head.clone();
            let mut replaced = Vec::new();
            step(observer, "collecting", 0)?;
            let history = kept_revisions(&*self.storage, &head, history)?;
            let garbage = garbage(&snapshot, history, purge)?;
            let mut rewrite = (head.packs.len() > 1 || !garbage.spots.is_empty() || snapshot.is_hurt())
                && snapshot.missing.is_empty();
            if rewrite {
                step(observer, "merging packs", 1)?;
                let merged = merge_packs(&snapshot, &garbage)?;
                rewrite = merged.is_some();
                if let Some(packs) = merged {
                    replaced.extend(head.packs.iter().map(PackRef::name));
                    head.packs = packs;
                }
            }
            step(observer, "merging the index", 2)?;
            let index = snapshot.index.get_or_init(|| Index::open(&*snapshot.storage, &snapshot.head));
            let dead: u64 = head.segments.iter().map(|segment| segment.dead_documents).sum();
            if index.problem.is_some() || head.segments.len() > 1 || dead > 0 {
                replaced.extend(index_files(&head));
                merge_index(&snapshot, index, &mut head)?;
            }
            let changed = !replaced.is_empty();
            head.generation += u64::from(changed);
            let now = self.now().div_euclid(1000);
            let is_purge = purge.is_some();
            if is_purge {
                // What earlier merges replaced may hold the text as well.
                head.retired.iter_mut().for_each(|retired| retired.at = i64::MIN / 2);
            }
            let before = sizes(&*snapshot.storage)?;
            retire(&*snapshot.storage, &mut head, replaced, now, is_purge)?;
            if (changed || head != snapshot.head)
                && !self.storage.swap_head(Some(&snapshot.head_bytes), &head.encode())?
            {
                continue;
            }
            if is_purge {
                self.delete_purged(&head)?;
            }
            self.delete_strays(&head)?;
            if is_purge {
                self.storage.sync_deletes()?;
            }
            let after = sizes(&*snapshot.storage)?;
            let gone = before.iter().filter(|(name, _)| !after.contains_key(*name));
            return Ok(GcReport {
                sections_removed: if rewrite { garbage.sections } else { 0 },
                revisions_removed: if rewrite { garbage.revisions } else { 0 },
                files_deleted: gone.clone().count(),
                bytes_freed: gone.map(|(_, bytes)| bytes).sum(),
                files_waiting: head.retired.iter().filter(|retired| after.contains_key(&retired.name)).count(),
                generation: head.generation,
            });
        }
    }

    /// Makes every index anew from the packs, and counts again what the head says of the documents.
    ///
    /// Searches go on meanwhile. What cannot be read is left out and named; so is what a pack held that is gone, and
    /// with that named the head lists the pack no more: what was in it is taken as lost.
    pub fn rebuild(&self, observer: &mut dyn Observer) -> Result<RebuildReport> {
        let _lock = self.lock()?;
        loop {
            let snapshot = self.writable_snapshot()?;
            let (head, report) = self.rebuilt(&snapshot, observer)?;
            if self.storage.swap_head(Some(&snapshot.head_bytes), &head.encode())? {
                return Ok(report);
            }
        }
    }

    /// Makes the index anew where the base is still at a generation whose index could not be used; says whether it did.
    ///
    /// For who serves a base for long and was told that an answer is incomplete. Unlike [`KnowledgeBase::rebuild`] it
    /// accepts no loss: a base with a pack of which nothing can be had is left to a person.
    pub fn reindex(&self, generation: u64, observer: &mut dyn Observer) -> Result<bool> {
        let _lock = self.lock()?;
        let snapshot = self.writable_snapshot()?;
        let has_lost = !snapshot.missing.is_empty() || snapshot.packs.iter().any(|pack| pack.is_lost());
        if snapshot.head.generation != generation || has_lost {
            return Ok(false);
        }
        let (head, _) = self.rebuilt(&snapshot, observer)?;
        // Who has written meanwhile has made the index anew as well.
        self.storage.swap_head(Some(&snapshot.head_bytes), &head.encode())
    }

    /// Makes the indexes of a snapshot anew, and returns the head that names them.
    pub(crate) fn rebuilt(&self, snapshot: &Snapshot, observer: &mut dyn Observer) -> Result<(Head, RebuildReport)> {
        let mut head = snapshot.head.clone();
        let (manifests, mut problems) = manifests(snapshot)?;
        let mut lost_packs = snapshot.missing.clone();
        lost_packs.extend(snapshot.packs.iter().filter(|pack| pack.is_lost()).map(|pack| pack.name()));
        problems.extend(losses(snapshot, &manifests));
        // The loss is told, and then accepted: a pack of which nothing is left would keep the base from being written.
        head.packs.retain(|pack| !lost_packs.contains(&pack.name()));
        let documents = manifests.len() as u64;
        head.totals = Totals::default();
        for manifest in &manifests {
            add_totals(&mut head.totals, manifest);
        }
        let mut replaced = index_files(&head);
        replaced.extend(lost_packs);
        let mut done = 0;
        head.generation += 1;
        head.segments = write_segments(snapshot, manifests, head.generation, &mut |builder, manifest| {
            if !observer.progress(&Progress { phase: "indexing", done: done as u64, total: Some(documents) }) {
                return Err(StoreError::Cancelled);
            }
            snapshot.release_after(done);
            done += 1;
            add_from_store(builder, snapshot, manifest)
        })?;
        head.analyzer = Analyzer::VERSION;
        retire(&*self.storage, &mut head, replaced, self.now().div_euclid(1000), false)?;
        let sections = head.segments.iter().map(|segment| segment.sections).sum();
        let report = RebuildReport { documents, sections, problems, generation: head.generation };
        Ok((head, report))
    }

    /// Deletes files that neither the head nor its list of retired files names: what a crash left. The caller holds
    /// the lock, so no other writer has files on the way.
    fn delete_strays(&self, head: &Head) -> Result<()> {
        let listing = self.storage.list()?;
        let mut named: FxHashSet<FileName> = head.packs.iter().map(PackRef::name).chain(index_files(head)).collect();
        for retired in &head.retired {
            named.insert(retired.name);
            if retired.is_list {
                named.extend(crate::commit::read_retired_list(&*self.storage, retired.name)?);
            }
        }
        for (name, _) in listing.files {
            if !named.contains(&name) {
                self.storage.delete(name)?;
            }
        }
        for name in listing.unfinished.iter().filter(|name| name.rsplit('/').next().unwrap_or(name).starts_with("tmp-"))
        {
            self.storage.delete_unfinished(name)?;
        }
        Ok(())
    }
}

fn merge_index(snapshot: &Snapshot, index: &Index, head: &mut Head) -> Result<()> {
    if index.problem.is_none() {
        match crate::commit::merge_segments(&*snapshot.storage, index, head.generation + 1) {
            Ok(segments) => {
                head.segments = segments;
                return Ok(());
            }
            // A page that was not looked at before turned out to be damaged: index anew.
            Err(StoreError::Damaged { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    let (manifests, _) = manifests(snapshot)?;
    head.segments = write_segments(snapshot, manifests, head.generation + 1, &mut |builder, manifest| {
        add_from_store(builder, snapshot, manifest)
    })?;
    head.analyzer = Analyzer::VERSION;
    Ok(())
}

/// Returns how many revisions of a document are kept: those asked for, else those of `kb.toml`, else the head's.
pub(crate) fn kept_revisions(storage: &dyn Storage, head: &Head, asked: Option<u32>) -> Result<usize> {
    let kept = match asked {
        Some(kept) => kept,
        None => Settings::read(storage)?.history.unwrap_or(head.history),
    };
    Ok(kept.max(1) as usize)
}

fn step(observer: &mut dyn Observer, phase: &str, done: u64) -> Result<()> {
    if observer.progress(&Progress { phase, done, total: Some(3) }) { Ok(()) } else { Err(StoreError::Cancelled) }
}

fn sizes(storage: &dyn Storage) -> Result<FxHashMap<FileName, u64>> {
    Ok(storage.list()?.files.into_iter().collect())
}

/// Returns the current manifests that can be read, and what is wrong with the others.
fn manifests(snapshot: &Snapshot) -> Result<(Vec<Manifest>, Vec<Problem>)> {
    let (mut manifests, mut problems) = (Vec::new(), Vec::new());
    for place in snapshot.current(Kind::MANIFEST) {
        match snapshot.manifest_at(&place) {
            Ok(manifest) => manifests.push(manifest),
            Err(StoreError::Damaged { file, offset, detail, .. }) => problems.push(Problem {
                kind: "checksum-mismatch".to_owned(),
                severity: Severity::Error,
                file: Some(file),
                offset: Some(offset),
                kbid: None,
                docid: None,
                detail: format!("a document's manifest cannot be read: {detail}"),
            }),
            Err(error) => return Err(error),
        }
    }
    Ok((manifests, problems))
}

/// Names the packs that are gone, and what the documents have lost.
fn losses(snapshot: &Snapshot, manifests: &[Manifest]) -> Vec<Problem> {
    let gone = snapshot.missing.iter().map(|name| Problem {
        kind: "checksum-mismatch".to_owned(),
        severity: Severity::Error,
        file: Some(name.to_string()),
        offset: Some(0),
        kbid: None,
        docid: None,
        detail: "the file is gone; what only it held is lost, and the base goes on without it".to_owned(),
    });
    let index = snapshot.index.get_or_init(|| Index::open(&*snapshot.storage, &snapshot.head));
    let mut problems: Vec<Problem> = gone.collect();
    if index.problem.is_none() && snapshot.is_hurt() {
        problems
            .extend(differences(snapshot, index, manifests).into_iter().map(|found| difference_problem(found, true)));
    }
    for manifest in manifests {
        let absent = absent_sections(snapshot, manifest);
        problems.extend(absent.into_iter().map(|id| broken_reference(&manifest.docid, id)));
    }
    problems
}

/// Says whether the documents that the index knows, and no others, are there with all their sections. Without an index nothing says so.
fn is_complete(snapshot: &Snapshot) -> Result<bool> {
    let index = snapshot.index.get_or_init(|| Index::open(&*snapshot.storage, &snapshot.head));
    let (manifests, _) = manifests(snapshot)?;
    Ok(index.problem.is_none()
        && differences(snapshot, index, &manifests).is_empty()
        && manifests.iter().all(|manifest| absent_sections(snapshot, manifest).is_empty()))
}

/// Finds the records that nothing needs. Of a document that lost a section to a purge, the revisions that list it go,
/// and those before them: they hold its heading.
fn garbage(snapshot: &Snapshot, history: usize, purge: Option<&UnlearnReport>) -> Result<Garbage> {
    let mut garbage = Garbage::default();
    let mut kept: Vec<Vec<Place>> = Vec::new();
    let edited: FxHashSet<Key> = purge.iter().flat_map(|done| &done.edited).map(Manifest::key).collect();
    let purged: FxHashSet<SectionId> = purge.iter().flat_map(|done| &done.sections).copied().collect();
    let spot = |place: &Place| (place.pack, place.entry.block, place.entry.offset);
    for mut group in snapshot.groups(Kind::MANIFEST) {
        let history = if edited.contains(&group[0].entry.key) { 1 } else { history };
        let live = group.iter().position(|place| place.entry.tombstone).unwrap_or(group.len());
        let keep = live.min(history);
        garbage.revisions += (live - keep) as u64;
        garbage.spots.extend(group[keep..].iter().map(spot));
        group.truncate(keep);
        if !group.is_empty() {
            kept.push(group);
        }
    }
    let mut referred: FxHashSet<Key> = FxHashSet::default();
    let mut documents: FxHashSet<DocId> = FxHashSet::default();
    let mut is_cut_off = false;
    snapshot.walk_revisions(kept, |place, kept| {
        let sections = || kept.manifest.sections.iter().map(|section| section.kbid);
        is_cut_off = !kept.is_current && (is_cut_off || sections().any(|id| purged.contains(&id)));
        if is_cut_off {
            garbage.revisions += 1;
            garbage.spots.insert(spot(place));
            return Ok(());
        }
        for id in sections().filter(|id| kept.keeps(*id, |id| snapshot.born(id))) {
            referred.insert(id.to_bytes());
        }
        documents.insert(kept.manifest.docid.clone());
        Ok(())
    })?;
    for group in snapshot.groups(Kind::SECTION) {
        let keep = usize::from(!group[0].entry.tombstone && referred.contains(&group[0].entry.key));
        garbage.sections += u64::from(keep == 0 && group.iter().any(|place| !place.entry.tombstone));
        garbage.spots.extend(group[keep..].iter().map(spot));
    }
    for group in snapshot.groups(Kind::SOURCE) {
        let keep = match snapshot.read(&group[0]) {
            Ok(record) => {
                let docid = std::str::from_utf8(&record.payload).ok().and_then(|text| text.parse::<DocId>().ok());
                usize::from(docid.is_some_and(|docid| documents.contains(&docid)))
            }
            Err(_) => 1,
        };
        garbage.spots.extend(group[keep..].iter().map(spot));
    }
    for kind in [Kind::SOURCE_STATE, Kind::PROPOSAL] {
        for group in snapshot.groups(kind) {
            let keep = usize::from(!group[0].entry.tombstone);
            garbage.spots.extend(group[keep..].iter().map(spot));
        }
    }
    Ok(garbage)
}

/// Merges all packs into one, or none where nothing is left. `None` where something wanted cannot be read.
fn merge_packs(snapshot: &Snapshot, garbage: &Garbage) -> Result<Option<Vec<PackRef>>> {
    let hurt: Vec<bool> = snapshot.packs.iter().map(|pack| !pack.is_whole()).collect();
    let is_unknown = |(pack, hurt): (&Arc<Pack>, &bool)| *hurt && !pack.is_accounted_for();
    if snapshot.packs.iter().zip(&hurt).any(is_unknown) && !is_complete(snapshot)? {
        return Ok(None);
    }
    let mut writer = PackWriter::create(&*snapshot.storage)?;
    for (i, pack) in snapshot.packs.iter().enumerate().rev() {
        let mut keep = |entry: &Entry| !garbage.spots.contains(&(i, entry.block, entry.offset));
        let copied = if hurt[i] {
            pack.rescue_into(&mut writer, &mut keep)
        } else {
            pack.copy_into(&mut writer, &mut keep).map(drop)
        };
        match copied {
            Ok(()) => {}
            Err(StoreError::Damaged { .. }) => return Ok(None),
            Err(error) => return Err(error),
        }
    }
    if writer.records() == 0 {
        return Ok(Some(Vec::new()));
    }
    let hashes: Vec<[u8; 16]> = snapshot.head.packs.iter().map(|pack| pack.hash).collect();
    Ok(Some(vec![writer.finish(&hashes)?]))
}
