//! What a base has lost: documents that the index knows and the packs do not, and sections that a document lists.
//!
//! **Invariant:** only what is there or was there is named. The index is the one witness of what a lost pack held, and
//! without a pack that is gone or damaged it is no witness of a loss.

use std::cell::LazyCell;

use kb_core::{DocId, Problem, SectionId, Severity};
use rustc_hash::FxHashSet;

use crate::index::{Index, live_docids};
use crate::manifest::Manifest;
use crate::record::Kind;
use crate::snapshot::Snapshot;

/// Returns the documents of the index, by docid, of which there is no manifest that can be read. `manifests` are those
/// that can.
pub(crate) fn lost_documents(snapshot: &Snapshot, index: &Index, manifests: &[Manifest]) -> Vec<DocId> {
    let known: FxHashSet<&str> = manifests.iter().map(|manifest| manifest.docid.as_str()).collect();
    let is_hurt = LazyCell::new(|| snapshot.is_hurt());
    let mut docids = live_docids(index);
    docids.dedup();
    let unknown = docids.into_iter().filter(|docid| !known.contains(docid)).filter_map(|docid| docid.parse().ok());
    unknown
        .filter(|docid| match snapshot.find(Kind::MANIFEST, &Manifest::key(docid)) {
            Some(place) => !place.entry.tombstone,
            None => *is_hurt,
        })
        .collect()
}

/// Returns the sections that a document lists and no pack has.
pub(crate) fn absent_sections(snapshot: &Snapshot, manifest: &Manifest) -> Vec<SectionId> {
    let mut absent: Vec<SectionId> = manifest.sections.iter().map(|section| section.kbid).collect();
    absent.retain(|id| !snapshot.has(Kind::SECTION, &id.to_bytes()));
    absent
}

/// Says that a document is lost.
pub(crate) fn lost_document(docid: DocId) -> Problem {
    Problem {
        kind: "lost-document".to_owned(),
        severity: Severity::Error,
        file: None,
        offset: None,
        kbid: None,
        docid: Some(docid),
        detail: "the document is lost with the pack that held it; learn it again from its source".to_owned(),
    }
}

/// Says that a document lists a section that is not there.
pub(crate) fn broken_reference(docid: &DocId, id: SectionId) -> Problem {
    Problem {
        kind: "broken-reference".to_owned(),
        severity: Severity::Error,
        file: None,
        offset: None,
        kbid: Some(id),
        docid: Some(docid.clone()),
        detail: "the document lists a section that is not in the base".to_owned(),
    }
}
