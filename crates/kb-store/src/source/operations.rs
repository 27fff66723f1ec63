//! The operations on sources.
//!
//! **Invariant:** one run of a source at a time, by a lock of its own that dies with its process; the writers' lock is held
//! only to commit. A run that is cut short at any instant has changed nothing, or all of it.

use std::sync::Arc;

use kb_core::{
    Change, Proposal, SourceApplied, SourceDocument, SourceInfo, SourceList, SourcePlan, SourceRemoved, SourceRun,
    SourceSummary,
};
use serde_json::Value;

use super::apply::{is_of, prepare_texts, size, stage_proposal, take_documents};
use super::config::{SourceConfig, is_source_name};
use super::diff::unified;
use super::gather::Gather;
use super::plan::{PlanOptions, Planner};
use super::state::{SourceState, StoredProposal, drop_proposal, reaching};
use crate::error::{LockHolder, StoreError};
use crate::knowledge_base::{KnowledgeBase, time_text};
use crate::record::{Kind, key_of};
use crate::snapshot::Snapshot;
use crate::storage::WriterLock;

type Result<T> = std::result::Result<T, StoreError>;

/// How a source is removed.
#[derive(Debug, Clone, Copy, Default)]
pub struct RemoveSource {
    /// Remove the documents too that no other source reaches.
    pub with_documents: bool,
}

/// A run under way: a [`Gather`] to be filled, then made a proposal or applied.
pub struct SourceGathering<'kb> {
    kb: &'kb KnowledgeBase,
    snapshot: Arc<Snapshot>,
    state: SourceState,
    now: i64,
    is_complete_by_nature: bool,
    _lock: Box<dyn WriterLock>,
}

impl std::fmt::Debug for SourceGathering<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SourceGathering").field("source", &self.state.name).finish_non_exhaustive()
    }
}

/// What to do with what a run found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Then {
    Propose,
    Apply,
}

impl SourceGathering<'_> {
    /// Runs `fetch`, which fills a [`Gather`], and keeps the difference from what was last applied as a proposal; an
    /// earlier one is replaced. Nothing else changes. Without a difference nothing is written.
    ///
    /// What `fetch` fails with comes back as it is, with nothing done.
    pub fn propose<E: From<StoreError>>(
        &self,
        options: PlanOptions,
        fetch: impl FnOnce(&mut dyn Gather) -> std::result::Result<(), E>,
    ) -> std::result::Result<SourceRun, E> {
        self.run(options, Then::Propose, fetch)
    }

    /// As [`SourceGathering::propose`], but the difference is applied at once, in one commit.
    pub fn apply<E: From<StoreError>>(
        &self,
        options: PlanOptions,
        fetch: impl FnOnce(&mut dyn Gather) -> std::result::Result<(), E>,
    ) -> std::result::Result<SourceRun, E> {
        self.run(options, Then::Apply, fetch)
    }

    fn run<E: From<StoreError>>(
        &self,
        options: PlanOptions,
        then: Then,
        fetch: impl FnOnce(&mut dyn Gather) -> std::result::Result<(), E>,
    ) -> std::result::Result<SourceRun, E> {
        let mut planner = Planner::new(&self.snapshot, self.state.clone(), self.now)?;
        fetch(&mut planner)?;
        let proposal = planner.finish(self.is_complete_by_nature, options)?;
        Ok(self.conclude(&proposal, then)?)
    }

    fn conclude(&self, proposal: &StoredProposal, then: Then) -> Result<SourceRun> {
        let name = &self.state.name;
        let done = |outcome: &str, generation, plan: SourcePlan| SourceRun {
            outcome: outcome.to_owned(),
            at: time_text(self.now),
            generation,
            plan,
        };
        let plan = proposal.head.plan.clone();
        if plan.has_only_failures() {
            // Nothing is known of the source: what waits for review stays.
            return Ok(done("failed", self.kb.generation()?, plan));
        }
        let pending = StoredProposal::find(&self.snapshot, name)?;
        if plan.is_empty() {
            let generation = match pending {
                None => self.kb.generation()?,
                Some(_) => self.kb.commit(0, |txn| drop_proposal(txn, name))?.1,
            };
            return Ok(done("unchanged", generation, plan));
        }
        if then == Then::Apply {
            let prepared = prepare_texts(proposal)?;
            let ((), generation) = self.kb.commit(size(proposal), |txn| stage_proposal(txn, proposal, &prepared))?;
            return Ok(done("applied", generation, plan));
        }
        if pending.is_some_and(|pending| pending.fingerprint() == proposal.fingerprint()) {
            return Ok(done("proposed", self.kb.generation()?, plan));
        }
        let ((), generation) = self.kb.commit(size(proposal), |txn| {
            // A source that was never added is known from its first proposal on.
            if SourceState::find(txn.snapshot, name)?.is_none() {
                self.state.put(txn)?;
            }
            proposal.put(txn)
        })?;
        Ok(done("proposed", generation, plan))
    }
}

impl KnowledgeBase {
    /// Keeps the configuration of a source in the base, in place of an earlier one of its name.
    ///
    /// Fails with [`StoreError::Invalid`] for a name that is none, and where documents of another system were applied
    /// under it.
    pub fn source_add(&self, name: &str, value: &Value, config: &SourceConfig) -> Result<SourceSummary> {
        check_name(name)?;
        let _lock = self.lock_source(name)?;
        self.commit(0, |txn| {
            let mut state = SourceState::find(txn.snapshot, name)?.unwrap_or_default();
            check_system(&state, name, &config.system)?;
            if state.name == name && state.system == config.system && state.config.as_ref() == Some(value) {
                return Ok(());
            }
            name.clone_into(&mut state.name);
            state.system.clone_from(&config.system);
            state.config = Some(value.clone());
            state.put(txn)
        })?;
        Ok(self.source_info(name)?.summary)
    }

    /// Lists the sources by name. When each was last run is not known here: that is no state of the base.
    pub fn source_list(&self) -> Result<SourceList> {
        let snapshot = self.snapshot()?;
        let states = SourceState::all(&snapshot)?;
        let sources = states.iter().map(|state| summary(&snapshot, state)).collect::<Result<_>>()?;
        Ok(SourceList { sources })
    }

    /// Returns all that is known of a source.
    pub fn source_info(&self, name: &str) -> Result<SourceInfo> {
        let snapshot = self.snapshot()?;
        let state = find(&snapshot, name)?;
        let reaches = state.reached.iter().map(|reached| SourceDocument {
            docid: reached.docid.clone(),
            id: reached.id.clone(),
            title: reached.title.clone(),
            bytes: reached.bytes,
        });
        Ok(SourceInfo {
            summary: summary(&snapshot, &state)?,
            config: state.config.clone(),
            reaches: reaches.collect(),
        })
    }

    /// Returns the configuration that is kept under this name; `None` where there is none.
    pub fn source_config(&self, name: &str) -> Result<Option<Value>> {
        Ok(SourceState::find(&*self.snapshot()?, name)?.and_then(|state| state.config))
    }

    /// Begins a run. Until what it returns is dropped, no other run of this source begins: one that was begun before is
    /// waited for as other writers are, then it fails with [`StoreError::SourceBusy`].
    pub fn source_gathering(&self, name: &str, config: &SourceConfig) -> Result<SourceGathering<'_>> {
        check_name(name)?;
        let lock = self.lock_source(name)?;
        let snapshot = self.writable_snapshot()?;
        let mut state = SourceState::find(&snapshot, name)?.unwrap_or_default();
        check_system(&state, name, &config.system)?;
        name.clone_into(&mut state.name);
        state.system.clone_from(&config.system);
        let is_complete_by_nature = config.is_complete();
        Ok(SourceGathering { kb: self, snapshot, state, now: self.now(), is_complete_by_nature, _lock: lock })
    }

    /// Returns the proposal that waits, with the whole difference of the texts.
    pub fn source_proposal(&self, name: &str) -> Result<Proposal> {
        let snapshot = self.snapshot()?;
        find(&snapshot, name)?;
        let proposal =
            StoredProposal::find(&snapshot, name)?.ok_or_else(|| StoreError::NoProposal { name: name.to_owned() })?;
        let mut diff = String::new();
        for change in &proposal.head.plan.changes {
            if matches!(change.change, Change::Linked | Change::Released) {
                continue;
            }
            let docid = change.docid.as_str();
            let new = proposal.head.texts.iter().position(|text| text.docid == change.docid);
            let new = new.map(|at| String::from_utf8_lossy(&proposal.texts[at]).into_owned());
            let old = match snapshot.manifest(&change.docid)? {
                Some(manifest) => Some(String::from_utf8_lossy(&snapshot.document_bytes(&manifest)?).into_owned()),
                None => None,
            };
            diff.push_str(&unified(old.as_deref().map(|text| (docid, text)), new.as_deref().map(|text| (docid, text))));
        }
        Ok(Proposal { made: time_text(proposal.head.made), plan: proposal.head.plan, diff })
    }

    /// Applies the proposal that waits, in one commit; where none does, there is nothing to do.
    ///
    /// Fails with [`StoreError::SourceChanged`], naming them, where documents it changes were changed since it was made;
    /// nothing is applied then.
    pub fn source_apply(&self, name: &str) -> Result<SourceApplied> {
        let _lock = self.lock_source(name)?;
        let snapshot = self.snapshot()?;
        find(&snapshot, name)?;
        let Some(proposal) = StoredProposal::find(&snapshot, name)? else {
            let generation = snapshot.head.generation;
            return Ok(SourceApplied { source: name.to_owned(), generation, ..SourceApplied::default() });
        };
        let prepared = prepare_texts(&proposal)?;
        let ((), generation) = self.commit(size(&proposal), |txn| stage_proposal(txn, &proposal, &prepared))?;
        let plan = proposal.head.plan;
        Ok(SourceApplied {
            source: plan.source,
            added: plan.added,
            modified: plan.modified,
            removed: plan.removed,
            linked: plan.linked,
            released: plan.released,
            docids: plan.changes.into_iter().map(|change| change.docid).collect(),
            generation,
        })
    }

    /// Removes a source with its proposal. Its documents stay, or go where no other source reaches them.
    pub fn source_remove(&self, name: &str, request: RemoveSource) -> Result<SourceRemoved> {
        let _lock = self.lock_source(name)?;
        let ((removed, kept), generation) = self.commit(0, |txn| {
            let state = find(txn.snapshot, name)?;
            let mut removed = Vec::new();
            if request.with_documents {
                let states = SourceState::all(txn.snapshot)?;
                let names = reaching(&states);
                for reached in &state.reached {
                    let is_alone =
                        names.get(&reached.docid).is_none_or(|names| names.iter().all(|other| *other == name));
                    if is_alone && is_of(txn, &reached.docid, &state.system, &reached.id)? {
                        removed.push(reached.docid.clone());
                    }
                }
                take_documents(txn, &removed)?;
            }
            drop_proposal(txn, name)?;
            txn.take_record(Kind::SOURCE_STATE, key_of(name))?;
            let kept = state.reached.len() - removed.len();
            Ok((removed, kept))
        })?;
        Ok(SourceRemoved { source: name.to_owned(), removed, kept, generation })
    }

    fn lock_source(&self, name: &str) -> Result<Box<dyn WriterLock>> {
        let (pid, since) = (std::process::id(), time_text(self.now()));
        let holder = LockHolder { pid, command: self.options.command.clone(), since };
        let file = format!("source-{}.lock", kb_core::SectionId::from_bytes(key_of(name)));
        self.refuse_read_only()?;
        self.storage.lock_named(&file, self.options.wait, &holder).map_err(|error| match error {
            StoreError::Busy { holder, waited } => StoreError::SourceBusy { name: name.to_owned(), holder, waited },
            error => error,
        })
    }
}

fn check_name(name: &str) -> Result<()> {
    if is_source_name(name) {
        return Ok(());
    }
    let shown: String = name.chars().take(80).collect();
    let reason =
        format!("`{shown}` is not letters, digits, `_`, `-` and `.`, the first a letter or digit; `--name` gives one");
    Err(StoreError::Invalid { field: "name", reason })
}

fn check_system(state: &SourceState, name: &str, system: &str) -> Result<()> {
    if state.reached.is_empty() || state.system == system {
        return Ok(());
    }
    let reason = format!(
        "`{name}` has brought documents of the system `{}`; remove that source first, or give this one another name",
        state.system
    );
    Err(StoreError::Invalid { field: "system", reason })
}

fn find(snapshot: &Snapshot, name: &str) -> Result<SourceState> {
    SourceState::find(snapshot, name)?.ok_or_else(|| not_found(snapshot, name))
}

fn not_found(snapshot: &Snapshot, name: &str) -> StoreError {
    let states = SourceState::all(snapshot).unwrap_or_default();
    let names: Vec<&str> = states.iter().map(|state| state.name.as_str()).collect();
    let near = crate::near::closest(&names, name).into_iter().map(|at| names[at].to_owned()).collect();
    StoreError::SourceNotFound { name: name.to_owned(), near }
}

fn summary(snapshot: &Snapshot, state: &SourceState) -> Result<SourceSummary> {
    Ok(SourceSummary {
        name: state.name.clone(),
        kind: "mcp".to_owned(),
        system: state.system.clone(),
        configured: state.config.is_some(),
        documents: state.reached.len(),
        applied: state.applied.map(time_text),
        last_run: None,
        last_outcome: None,
        pending: StoredProposal::find(snapshot, &state.name)?.map(|proposal| proposal.pending()),
    })
}
