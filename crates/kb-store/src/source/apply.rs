//! A proposal becomes what the base holds.
//!
//! **Invariant:** all of a proposal is staged, or it is refused: where the base is no longer what it was made on, the
//! documents that differ are named and nothing is staged.

use kb_core::{Change, DocId};

use super::state::{SourceState, StoredProposal, TextHead, drop_proposal, reaching, source_name};
use crate::commit::Txn;
use crate::error::StoreError;
use crate::learn::stage;
use crate::prepare::{FileState, Prepared, Wanted, prepare};
use crate::request::{Target, Text, Unlearn};
use crate::unlearn::unlearn;

type Result<T> = std::result::Result<T, StoreError>;

/// Returns the length of the texts in bytes.
pub(super) fn size(proposal: &StoredProposal) -> u64 {
    proposal.texts.iter().map(|text| text.len() as u64).sum()
}

/// Parses and splits the texts of a proposal, before any lock is taken.
pub(super) fn prepare_texts(proposal: &StoredProposal) -> Result<Vec<Prepared>> {
    proposal.head.texts.iter().zip(&proposal.texts).map(|(head, content)| prepare_text(head, content)).collect()
}

fn prepare_text(head: &TextHead, content: &[u8]) -> Result<Prepared> {
    let text = Text {
        content: content.to_vec(),
        media_type: Some(head.media_type.clone()),
        title: Some(head.title.clone()),
        source: Some(source_name(&head.origin.system, &head.origin.id)),
        docid: Some(head.docid.clone()),
        ..Text::default()
    };
    let mut prepared = prepare(&text, None, FileState::default())?;
    prepared.wanted = Wanted::Fetched(head.docid.clone());
    prepared.manifest.origin = Some(head.origin.clone());
    Ok(prepared)
}

/// Stages a proposal as one change of the base, or refuses it.
pub(super) fn stage_proposal(txn: &mut Txn<'_>, proposal: &StoredProposal, prepared: &[Prepared]) -> Result<()> {
    let head = &proposal.head;
    let name = &head.plan.source;
    let mut state = SourceState::find(txn.snapshot, name)?.unwrap_or_default();
    name.clone_into(&mut state.name);
    state.system.clone_from(&head.plan.system);
    if state.fingerprint() != head.base {
        return Err(StoreError::SourceChanged { name: name.clone(), docids: Vec::new() });
    }
    let mut changed = Vec::new();
    for (docid, revision) in &head.guards {
        if txn.manifest(docid)?.map_or(0, |manifest| manifest.revision) != *revision {
            changed.push(docid.clone());
        }
    }
    if !changed.is_empty() {
        return Err(StoreError::SourceChanged { name: name.clone(), docids: changed });
    }
    for prepared in prepared {
        stage(txn, prepared)?;
    }
    let states = SourceState::all(txn.snapshot)?;
    let names = reaching(&states);
    let mut gone = Vec::new();
    for change in head.plan.changes.iter().filter(|change| change.change == Change::Removed) {
        // Another source may have reached it since.
        if names.get(&change.docid).is_none_or(|names| names.iter().all(|other| other == name)) {
            gone.push(change.docid.clone());
        }
    }
    take_documents(txn, &gone)?;
    // Other sources that reach a document are to compare with what it is now.
    for mut other in states.clone().into_iter().filter(|other| other.name != *name) {
        let mut is_changed = false;
        for reached in &mut other.reached {
            let new = head.next.binary_search_by(|new| new.id.cmp(&reached.id)).ok().map(|at| &head.next[at]);
            if let Some(new) =
                new.filter(|new| new.docid == reached.docid && (new.hash, &new.title) != (reached.hash, &reached.title))
            {
                (reached.hash, reached.bytes) = (new.hash, new.bytes);
                reached.title.clone_from(&new.title);
                is_changed = true;
            }
        }
        if is_changed {
            other.put(txn)?;
        }
    }
    state.reached.clone_from(&head.next);
    state.applied = Some(txn.now);
    state.put(txn)?;
    drop_proposal(txn, name)
}

/// Takes away documents that are there.
pub(super) fn take_documents(txn: &mut Txn<'_>, docids: &[DocId]) -> Result<()> {
    let mut targets = Vec::new();
    for docid in docids {
        if txn.manifest(docid)?.is_some() {
            targets.push(Target::Document(docid.clone()));
        }
    }
    if targets.is_empty() {
        return Ok(());
    }
    unlearn(txn, &Unlearn { targets, ..Unlearn::default() }).map(drop)
}

pub(super) fn is_of(txn: &Txn<'_>, docid: &DocId, system: &str, id: &str) -> Result<bool> {
    let manifest = txn.manifest(docid)?;
    Ok(manifest.and_then(|manifest| manifest.origin).is_some_and(|origin| origin.system == system && origin.id == id))
}
