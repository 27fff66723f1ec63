//! From what was gathered to a plan: the difference from what was last applied.
//!
//! **Invariant:** a document goes only where the selection is complete by nature, the run skipped nothing, no other source
//! reaches it, and not more than half would go unless that was asked for. What failed stays as it was last applied.

use std::collections::{BTreeMap, HashMap, HashSet};

use kb_core::{Change, DocId, KeptDocument, MediaType, PlannedChange, SourceFailure, SourcePlan};

use super::docid::source_docid;
use super::gather::{Gather, GatheredDocument, SelectedRow};
use super::state::{ProposalHead, Reached, SourceState, StoredProposal, TextHead};
use crate::error::StoreError;
use crate::manifest::{Manifest, Origin};
use crate::prepare::hash16;
use crate::snapshot::Snapshot;

type Result<T> = std::result::Result<T, StoreError>;

/// The longest title that is kept, in characters.
const MAX_TITLE: usize = 500;

/// How a plan is made.
#[derive(Debug, Clone, Copy, Default)]
pub struct PlanOptions {
    /// Remove documents even where more than half would go.
    pub remove_most: bool,
}

/// What is known of a document before this run.
struct Known {
    hash: [u8; 16],
    bytes: u64,
    title: String,
}

/// A document of this run, compared.
struct Compared {
    reached: Reached,
    change: Option<PlannedChange>,
    /// The text, where it is to be learned.
    text: Option<(TextHead, Vec<u8>)>,
}

/// Gathers a run, comparing each document as it comes so that unchanged texts are not kept.
pub(crate) struct Planner<'s> {
    snapshot: &'s Snapshot,
    state: SourceState,
    now: i64,
    prior: HashMap<String, usize>,
    /// What other sources reach, with what they applied.
    others: HashMap<DocId, Reached>,
    compared: BTreeMap<usize, Compared>,
    /// Which id each document of this run is.
    ids: HashMap<DocId, String>,
    skipped_ids: Vec<String>,
    failures: Vec<(usize, SourceFailure)>,
    warnings: Vec<String>,
    is_cut_off: bool,
    error: Option<StoreError>,
}

impl<'s> Planner<'s> {
    pub(crate) fn new(snapshot: &'s Snapshot, state: SourceState, now: i64) -> Result<Self> {
        let mut others = HashMap::new();
        for other in SourceState::all(snapshot)?.into_iter().filter(|other| other.name != state.name) {
            others.extend(other.reached.into_iter().map(|reached| (reached.docid.clone(), reached)));
        }
        let prior = state.reached.iter().enumerate().map(|(at, reached)| (reached.id.clone(), at)).collect();
        Ok(Self {
            snapshot,
            state,
            now,
            prior,
            others,
            compared: BTreeMap::new(),
            ids: HashMap::new(),
            skipped_ids: Vec::new(),
            failures: Vec::new(),
            warnings: Vec::new(),
            is_cut_off: false,
            error: None,
        })
    }

    fn prior(&self, id: &str) -> Option<&Reached> {
        self.prior.get(id).map(|&at| &self.state.reached[at])
    }

    fn fail(&mut self, place: usize, id: &str, code: &str, reason: String) {
        self.skipped_ids.push(id.to_owned());
        self.failures.push((place, SourceFailure { id: Some(id.to_owned()), code: code.to_owned(), reason }));
    }

    fn compare(&mut self, place: usize, document: GatheredDocument) -> Result<()> {
        let GatheredDocument { row, title: own_title, content, media_type } = document;
        let docid = source_docid(&self.state.system, &row.id);
        if let Some(other) = self.ids.insert(docid.clone(), row.id.clone()).filter(|other| *other != row.id) {
            self.fail(place, &row.id, "docid-taken", format!("its docid `{docid}` is that of `{other}`"));
            self.ids.insert(docid, other);
            return Ok(());
        }
        let manifest = self.snapshot.manifest(&docid)?;
        let is_ours = |manifest: &Manifest| {
            manifest.origin.as_ref().is_some_and(|origin| origin.system == self.state.system && origin.id == row.id)
        };
        // What a source brought stays its own, whoever wrote over it since.
        let is_reached = self.prior.contains_key(&row.id) || self.others.contains_key(&docid);
        if !is_reached && manifest.as_ref().is_some_and(|manifest| !is_ours(manifest)) {
            let reason = format!("there is a document `{docid}` that did not come from this system");
            self.fail(place, &row.id, "docid-taken", reason);
            return Ok(());
        }
        let hash = hash16(&content);
        let bytes = content.len() as u64;
        let prior = self.prior(&row.id).cloned();
        let other = self.others.get(&docid);
        let known = known(prior.as_ref().or(other), manifest.as_ref());
        let has_own_title = own_title.is_some();
        let wanted_title = title(own_title.or_else(|| row.title.clone()).as_deref(), &row.id);
        // A title that only flips between sources that reach one page is no change.
        let may_retitle = has_own_title || other.is_none();
        let (change, new_title) = match &known {
            None => (Some(Change::Added), wanted_title),
            Some(known) if known.hash != hash => (Some(Change::Modified), wanted_title),
            Some(known) if known.title != wanted_title && may_retitle => (Some(Change::Modified), wanted_title),
            Some(known) if prior.is_none() => (Some(Change::Linked), known.title.clone()),
            Some(known) => (None, known.title.clone()),
        };
        let reached = Reached {
            id: row.id.clone(),
            docid: docid.clone(),
            hash,
            bytes,
            title: new_title.clone(),
            version: row.version,
        };
        let text = matches!(change, Some(Change::Added | Change::Modified)).then(|| {
            let url = row.url.clone();
            let origin = Origin { system: self.state.system.clone(), id: row.id.clone(), url, retrieved: self.now };
            let media_type = media_type.unwrap_or_else(MediaType::markdown);
            (TextHead { docid: docid.clone(), title: new_title.clone(), media_type, origin, bytes }, content)
        });
        let change = change.map(|change| PlannedChange {
            change,
            docid,
            id: row.id,
            old_title: known.as_ref().map(|known| known.title.clone()).filter(|old| *old != new_title),
            title: new_title,
            bytes,
            old_bytes: known.map(|known| known.bytes).filter(|_| change == Change::Modified),
            url: row.url,
        });
        self.compared.insert(place, Compared { reached, change, text });
        Ok(())
    }

    /// Ends the run: what it changes, and the texts for it.
    pub(crate) fn finish(mut self, is_complete_by_nature: bool, options: PlanOptions) -> Result<StoredProposal> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        let base = self.state.fingerprint();
        self.failures.sort_by_key(|(place, _)| *place);
        let failures: Vec<SourceFailure> = std::mem::take(&mut self.failures).into_iter().map(|(_, f)| f).collect();
        let mut changes = Vec::new();
        let mut next = Vec::new();
        let mut texts = Vec::new();
        let mut unchanged = 0;
        for compared in std::mem::take(&mut self.compared).into_values() {
            unchanged += usize::from(compared.change.is_none());
            changes.extend(compared.change);
            next.push(compared.reached);
            texts.extend(compared.text);
        }
        let seen: HashSet<&str> = next.iter().map(|reached| reached.id.as_str()).collect();
        let failed: HashSet<&str> = self.skipped_ids.iter().map(String::as_str).collect();
        let absent = self.state.reached.iter().filter(|reached| !seen.contains(reached.id.as_str())).cloned();
        let (skipped, gone): (Vec<Reached>, Vec<Reached>) =
            absent.partition(|reached| failed.contains(reached.id.as_str()));
        let is_complete = failures.is_empty() && !self.is_cut_off;
        let kept_reason =
            if gone.is_empty() { None } else { self.why_kept(is_complete_by_nature, is_complete, gone.len(), options) };
        next.extend(skipped);
        let mut kept = Vec::new();
        for reached in gone {
            if kept_reason.is_some() {
                kept.push(KeptDocument {
                    docid: reached.docid.clone(),
                    id: reached.id.clone(),
                    title: reached.title.clone(),
                });
                next.push(reached);
                continue;
            }
            let stays = self.others.contains_key(&reached.docid) || self.snapshot.manifest(&reached.docid)?.is_none();
            changes.push(PlannedChange {
                change: if stays { Change::Released } else { Change::Removed },
                docid: reached.docid,
                id: reached.id,
                title: reached.title,
                old_title: None,
                bytes: reached.bytes,
                old_bytes: None,
                url: None,
            });
        }
        changes.sort_by(|a, b| (a.change, &a.docid).cmp(&(b.change, &b.docid)));
        next.sort_by(|a, b| a.id.cmp(&b.id));
        texts.sort_by(|a, b| a.0.docid.cmp(&b.0.docid));
        let count = |change| changes.iter().filter(|planned| planned.change == change).count();
        let plan = SourcePlan {
            source: self.state.name.clone(),
            system: self.state.system.clone(),
            kind: "mcp".to_owned(),
            added: count(Change::Added),
            modified: count(Change::Modified),
            removed: count(Change::Removed),
            linked: count(Change::Linked),
            released: count(Change::Released),
            unchanged,
            failed: failures.len(),
            complete: is_complete,
            failures,
            kept,
            kept_reason,
            warnings: std::mem::take(&mut self.warnings),
            changes,
        };
        let mut guards = Vec::new();
        for change in
            plan.changes.iter().filter(|c| matches!(c.change, Change::Added | Change::Modified | Change::Removed))
        {
            let revision = self.snapshot.manifest(&change.docid)?.map_or(0, |manifest| manifest.revision);
            guards.push((change.docid.clone(), revision));
        }
        let (heads, texts) = texts.into_iter().unzip();
        Ok(StoredProposal { head: ProposalHead { made: self.now, plan, next, base, guards, texts: heads }, texts })
    }

    fn why_kept(&self, by_nature: bool, is_complete: bool, gone: usize, options: PlanOptions) -> Option<String> {
        let known = self.state.reached.len();
        if !by_nature {
            return Some(
                "the selection is not declared `complete: true`, so what it leaves out may still be there".to_owned(),
            );
        }
        if !is_complete {
            return Some("the run was incomplete".to_owned());
        }
        if gone * 2 > known && !options.remove_most {
            return Some(format!("{gone} of {known} documents would go, which is more than half"));
        }
        None
    }
}

impl Gather for Planner<'_> {
    fn wants(&mut self, place: usize, row: &SelectedRow) -> bool {
        let Some(prior) = self.prior(&row.id) else { return true };
        let is_same_version = row.version.is_some() && row.version == prior.version;
        let is_same_title = row.title.as_deref().is_none_or(|new| title(Some(new), &row.id) == prior.title);
        let reached = prior.clone();
        if !is_same_version || !(is_same_title || self.others.contains_key(&reached.docid)) {
            return true;
        }
        self.ids.insert(reached.docid.clone(), row.id.clone());
        self.compared.insert(place, Compared { reached, change: None, text: None });
        false
    }

    fn document(&mut self, place: usize, document: GatheredDocument) {
        if self.error.is_none()
            && let Err(error) = self.compare(place, document)
        {
            self.error = Some(error);
        }
    }

    fn failure(&mut self, place: Option<usize>, failure: SourceFailure) {
        self.skipped_ids.extend(failure.id.clone());
        self.failures.push((place.unwrap_or(usize::MAX), failure));
    }

    fn warning(&mut self, warning: String) {
        self.warnings.push(warning);
    }

    fn cut_off(&mut self, reason: String) {
        self.is_cut_off = true;
        self.warnings.push(reason);
    }
}

/// Returns what was last applied of a document: by a source that reaches it, else what is left of one that was removed.
fn known(reached: Option<&Reached>, manifest: Option<&Manifest>) -> Option<Known> {
    if let Some(Reached { hash, bytes, title, .. }) = reached {
        return Some(Known { hash: *hash, bytes: *bytes, title: title.clone() });
    }
    let manifest = manifest?;
    let source = manifest.source.as_ref()?;
    Some(Known { hash: source.hash, bytes: source.len, title: manifest.title.clone() })
}

/// Returns a title on one line, of bounded length; the id where there is none.
fn title(given: Option<&str>, id: &str) -> String {
    let clean = |text: &str| {
        let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        line.trim().chars().take(MAX_TITLE).collect::<String>()
    };
    given.map(clean).filter(|title| !title.is_empty()).unwrap_or_else(|| {
        let id = clean(id);
        if id.is_empty() { "Untitled".to_owned() } else { id }
    })
}
