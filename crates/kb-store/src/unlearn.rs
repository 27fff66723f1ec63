//! Unlearning sections and documents.
//!
//! **Invariant:** once an unlearn is durable no operation returns the text any more, kept revisions included. A section
//! that another document lists, in its current revision or in a kept one, stays readable through it.

use std::collections::BTreeSet;
use std::path::Path;

use kb_core::{DocId, DocumentKind, SectionId, UnlearnReport};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::commit::Txn;
use crate::error::StoreError;
use crate::knowledge_base::KnowledgeBase;
use crate::manifest::{Manifest, Role};
use crate::request::{Target, Unlearn};
use crate::snapshot::Snapshot;

type Result<T> = std::result::Result<T, StoreError>;

/// What an unlearn comes to, before anything is written.
#[derive(Default)]
struct Plan {
    removed: Vec<Manifest>,
    /// Documents that lose sections, with those.
    edited: Vec<(Manifest, FxHashSet<SectionId>)>,
    /// Sections whose text goes.
    gone: BTreeSet<SectionId>,
    /// Sections that other documents keep readable.
    shared: BTreeSet<SectionId>,
}

impl KnowledgeBase {
    /// Takes sections or documents away.
    ///
    /// Their text is unreadable at once, in kept revisions too. The bytes leave the disk with the next merge or `gc`
    /// after the readers' grace; with `purge` they are gone when this returns, and a reader of an older state is told
    /// so. A target that names nothing is an error, and nothing is done.
    pub fn unlearn(&self, request: &Unlearn) -> Result<UnlearnReport> {
        if request.dry_run {
            let snapshot = self.snapshot()?;
            let txn = Txn::new(&snapshot, self.now(), 0);
            let plan = plan(&txn, &request.targets)?;
            return report(&txn, &plan, snapshot.head.generation, request);
        }
        let (mut done, generation) = self.commit(0, |txn| {
            txn.purge = request.purge;
            unlearn(txn, request)
        })?;
        if request.purge
            && let Err(error) = self.purge(&done)
        {
            // The unlearn itself is durable: the caller must hear of both.
            done.purged = false;
            done.purge_error = Some(error.sentence());
        }
        done.generation = if request.purge { self.snapshot()?.head.generation } else { generation };
        Ok(done)
    }
}

/// Stages an unlearn and says what it does.
pub(crate) fn unlearn(txn: &mut Txn<'_>, request: &Unlearn) -> Result<UnlearnReport> {
    let plan = plan(txn, &request.targets)?;
    let done = report(txn, &plan, 0, request)?;
    // What is unlearned must not stay in a proposal that waits for review.
    let touched = plan.removed.iter().chain(plan.edited.iter().map(|(manifest, _)| manifest));
    crate::source::drop_proposals_of(txn, &touched.map(|manifest| &manifest.docid).collect())?;
    crate::skills::note_last_known(txn, &plan.removed, &done.dangling)?;
    apply(txn, &plan)?;
    Ok(done)
}

fn plan(txn: &Txn<'_>, targets: &[Target]) -> Result<Plan> {
    let mut removed: FxHashMap<DocId, Manifest> = FxHashMap::default();
    let mut cut: FxHashMap<DocId, (Manifest, FxHashSet<SectionId>)> = FxHashMap::default();
    let mut everywhere: FxHashSet<SectionId> = FxHashSet::default();
    for target in targets {
        match target {
            Target::Document(docid) => {
                let manifest = txn.manifest(docid)?.ok_or_else(|| not_found(txn.snapshot, docid))?;
                removed.insert(docid.clone(), manifest);
            }
            Target::Occurrence(id, docid) => {
                let manifest = txn.manifest(docid)?.ok_or_else(|| not_found(txn.snapshot, docid))?;
                if !manifest.sections.iter().any(|section| section.kbid == *id) {
                    return Err(StoreError::SectionNotFound { id: format!("{id} in {docid}") });
                }
                cut.entry(docid.clone()).or_insert_with(|| (manifest, FxHashSet::default())).1.insert(*id);
            }
            Target::Section(id) => {
                if !txn.has_section(*id) {
                    return Err(StoreError::SectionNotFound { id: id.to_string() });
                }
                everywhere.insert(*id);
            }
            Target::Tag(tag) => {
                let wanted = tag.to_lowercase();
                let has_tag = |m: &Manifest| m.tags.iter().any(|own| own.to_lowercase() == wanted);
                collect(txn, &mut removed, &format!("with the tag `{tag}`"), has_tag)?;
            }
            Target::Source(source) => {
                collect(txn, &mut removed, &format!("from `{source}`"), |m| is_from(m, source))?;
            }
        }
    }
    if !everywhere.is_empty() {
        txn.each_manifest(|manifest| {
            let hit: Vec<SectionId> =
                manifest.sections.iter().map(|s| s.kbid).filter(|id| everywhere.contains(id)).collect();
            if !hit.is_empty() {
                let docid = manifest.docid.clone();
                cut.entry(docid).or_insert_with(|| (manifest, FxHashSet::default())).1.extend(hit);
            }
            Ok(())
        })?;
    }
    let mut plan = Plan { gone: everywhere.iter().copied().collect(), ..Plan::default() };
    for (docid, (manifest, sections)) in cut {
        // A skill or an agent is one section: without it, it is not there.
        if removed.contains_key(&docid) {
            continue;
        }
        if manifest.kind == DocumentKind::Document {
            plan.edited.push((manifest, sections));
        } else {
            removed.insert(docid, manifest);
        }
    }
    plan.removed = removed.into_values().collect();
    plan.removed.sort_by(|a, b| a.docid.cmp(&b.docid));
    plan.edited.sort_by(|a, b| a.0.docid.cmp(&b.0.docid));
    sort_out_sections(txn, &mut plan)?;
    Ok(plan)
}

/// Finds out which of the sections that documents lose are still listed elsewhere.
fn sort_out_sections(txn: &Txn<'_>, plan: &mut Plan) -> Result<()> {
    let mut candidates: FxHashSet<SectionId> = FxHashSet::default();
    for manifest in &plan.removed {
        candidates.extend(manifest.sections.iter().map(|section| section.kbid));
        for (_, older) in txn.revisions(&manifest.docid)? {
            candidates.extend(older.sections.iter().map(|section| section.kbid));
        }
    }
    for (_, sections) in &plan.edited {
        candidates.extend(sections.iter().copied());
    }
    candidates.retain(|id| !plan.gone.contains(id) && txn.has_section(*id));
    if candidates.is_empty() {
        return Ok(());
    }
    let removed: FxHashSet<&DocId> = plan.removed.iter().map(|m| &m.docid).collect();
    let edited: FxHashMap<&DocId, &FxHashSet<SectionId>> =
        plan.edited.iter().map(|(m, sections)| (&m.docid, sections)).collect();
    let mut shared = BTreeSet::new();
    txn.each_revision(|kept| {
        if removed.contains(&kept.manifest.docid) {
            return;
        }
        let cut = edited.get(&kept.manifest.docid);
        for id in kept.manifest.sections.iter().map(|section| section.kbid) {
            let is_asked = candidates.contains(&id) && !shared.contains(&id);
            if is_asked && !cut.is_some_and(|cut| cut.contains(&id)) && kept.keeps(id, |id| txn.born(id)) {
                shared.insert(id);
            }
        }
    })?;
    plan.gone.extend(candidates.iter().copied().filter(|id| !shared.contains(id)));
    plan.shared = shared;
    Ok(())
}

fn apply(txn: &mut Txn<'_>, plan: &Plan) -> Result<()> {
    for manifest in &plan.removed {
        txn.take_manifest(manifest)?;
    }
    for (manifest, sections) in &plan.edited {
        let mut next = without(manifest, sections);
        for front in manifest.sections.iter().filter(|s| s.role == Role::FrontMatter && sections.contains(&s.kbid)) {
            forget_front_matter(&mut next, &txn.text(front.kbid));
        }
        next.revision += 1;
        next.updated = txn.now;
        txn.put_manifest(next, None)?;
    }
    for id in &plan.gone {
        txn.take_section(*id)?;
    }
    Ok(())
}

/// Returns a manifest without some of its sections; the others keep their lines, and their parents as far as these
/// are still there.
fn without(manifest: &Manifest, sections: &FxHashSet<SectionId>) -> Manifest {
    let mut next = manifest.clone();
    next.edited = true;
    next.sections.clear();
    let mut places: Vec<Option<u32>> = Vec::with_capacity(manifest.sections.len());
    for section in &manifest.sections {
        // A section whose parent is gone hangs on the nearest one above that is left.
        let mut parent = section.parent;
        let parent = loop {
            match parent.and_then(|p| places.get(p as usize).map(|place| (p, *place))) {
                None => break None,
                Some((_, Some(place))) => break Some(place),
                Some((p, None)) => parent = manifest.sections[p as usize].parent.filter(|&up| up < p),
            }
        };
        if sections.contains(&section.kbid) {
            places.push(None);
        } else {
            places.push(Some(next.sections.len() as u32));
            let mut kept = section.clone();
            kept.parent = parent;
            next.sections.push(kept);
        }
    }
    // A title taken from a heading goes with it.
    let is_title = |section: &crate::manifest::SectionEntry| section.heading.as_ref() == Some(&manifest.title);
    if manifest.sections.iter().any(is_title) && !next.sections.iter().any(is_title) {
        let heading = next.sections.iter().find_map(|section| section.heading.clone());
        next.title = heading.unwrap_or_else(|| next.docid.to_string());
    }
    next
}

/// Takes out of a manifest what was read from its front matter.
fn forget_front_matter(manifest: &mut Manifest, text: &str) {
    let front = kb_core::parse(text, &manifest.media_type);
    if front.title.as_ref() == Some(&manifest.title) {
        let heading = manifest.sections.iter().find_map(|section| section.heading.clone());
        manifest.title = heading.unwrap_or_else(|| manifest.docid.to_string());
    }
    if front.description == manifest.description {
        manifest.description = None;
    }
    manifest.tags.retain(|tag| !front.tags.contains(tag));
    manifest.aliases.clear();
    "{}".clone_into(&mut manifest.meta);
    manifest.date = None;
    manifest.warnings.retain(|warning| !warning.code.starts_with("front-matter"));
}

/// Adds every document that is wanted; that there is none is an error, as it is for an id.
fn collect(
    txn: &Txn<'_>,
    removed: &mut FxHashMap<DocId, Manifest>,
    which: &str,
    wanted: impl Fn(&Manifest) -> bool,
) -> Result<()> {
    let mut any = false;
    txn.each_manifest(|manifest| {
        if wanted(&manifest) {
            any = true;
            removed.insert(manifest.docid.clone(), manifest);
        }
        Ok(())
    })?;
    if any { Ok(()) } else { Err(StoreError::DocumentNotFound { id: which.to_owned(), near: Vec::new() }) }
}

/// Says whether a document comes from this source, or from below it where it is a folder.
pub(crate) fn is_from(manifest: &Manifest, source: &str) -> bool {
    let folder = source.trim_end_matches('/');
    manifest.source.as_ref().is_some_and(|own| {
        let is_below = match folder {
            "" => source == "/" && own.name.starts_with('/'),
            // The folder that holds the base: everything that is named from there.
            "." => Path::new(&own.name).is_relative() && !own.name.contains("://"),
            _ => own.name.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/') || rest.is_empty()),
        };
        is_below || own.name == source
    })
}

pub(crate) fn not_found(snapshot: &Snapshot, docid: &DocId) -> StoreError {
    StoreError::DocumentNotFound { id: docid.to_string(), near: crate::near::documents(snapshot, docid.as_str()) }
}

fn report(txn: &Txn<'_>, plan: &Plan, generation: u64, request: &Unlearn) -> Result<UnlearnReport> {
    let skills: FxHashSet<&DocId> =
        plan.removed.iter().filter(|m| m.kind == DocumentKind::Skill).map(|m| &m.docid).collect();
    let mut dangling = Vec::new();
    if !skills.is_empty() {
        txn.each_manifest(|manifest| {
            if crate::skills::references(&manifest).iter().any(|(skill, _)| skills.contains(skill)) {
                dangling.push(manifest.docid);
            }
            Ok(())
        })?;
        dangling.retain(|docid| plan.removed.iter().all(|manifest| manifest.docid != *docid));
        dangling.sort();
    }
    Ok(UnlearnReport {
        documents: plan.removed.iter().map(|m| m.docid.clone()).collect(),
        edited: plan.edited.iter().map(|(m, _)| m.docid.clone()).collect(),
        sections: plan.gone.iter().copied().collect(),
        shared: plan.shared.iter().copied().collect(),
        dangling,
        generation,
        purged: request.purge && !request.dry_run,
        purge_error: None,
        dry_run: request.dry_run,
    })
}
