//! What a base has lost: documents and revisions that the index knows and the packs do not, and sections that are listed.
//!
//! **Invariant:** only what is there or was there is named. The index is the one witness of what a lost pack held, and
//! without a pack that is gone or damaged it is no witness of a loss.

use kb_core::{DocId, Problem, SectionId, Severity};
use rustc_hash::FxHashMap;

use crate::index::{Index, date_key, indexed_sections, live_documents};
use crate::manifest::Manifest;
use crate::record::Kind;
use crate::snapshot::Snapshot;

/// How the index and the packs differ in a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Difference {
    /// The index knows it; no manifest of it can be read.
    OnlyIndexed,
    /// The index does not know it.
    NotIndexed,
    /// The index knows another revision of it.
    OtherRevision,
    /// The index has it twice, or though it was unlearned.
    Misplaced,
}

/// Returns the documents in which the index and the packs differ. `manifests` are those that can be read.
pub(crate) fn differences(snapshot: &Snapshot, index: &Index, manifests: &[Manifest]) -> Vec<(DocId, Difference)> {
    let indexed = live_documents(index);
    let mut different = Vec::new();
    let mut left: FxHashMap<&str, &Manifest> = manifests.iter().map(|m| (m.docid.as_str(), m)).collect();
    for same in indexed.chunk_by(|a, b| a.0 == b.0) {
        let (docid, segment, ordinal) = same[0];
        let difference = match left.remove(docid) {
            Some(_) if same.len() > 1 => Difference::Misplaced,
            Some(manifest) => {
                let places = indexed_sections(manifest);
                let kbids: Vec<SectionId> = places.into_iter().map(|i| manifest.sections[i].kbid).collect();
                let is_same = segment.consists_of(ordinal, &kbids).unwrap_or(false)
                    && segment.date(ordinal).is_ok_and(|date| date == date_key(manifest));
                if is_same {
                    continue;
                }
                Difference::OtherRevision
            }
            None => Difference::OnlyIndexed,
        };
        let Ok(docid) = docid.parse::<DocId>() else { continue };
        let place = snapshot.find(Kind::MANIFEST, &Manifest::key(&docid));
        let is_unlearned = place.is_some_and(|place| place.entry.tombstone);
        different.push((docid, if is_unlearned { Difference::Misplaced } else { difference }));
    }
    different.extend(left.into_values().map(|manifest| (manifest.docid.clone(), Difference::NotIndexed)));
    different.sort_by(|a, b| a.0.cmp(&b.0));
    different
}

/// Says what a difference means: a loss where a pack is gone or damaged, else a wrong index.
pub(crate) fn difference_problem((docid, difference): (DocId, Difference), is_hurt: bool) -> Problem {
    let (kind, detail) = match (difference, is_hurt) {
        (Difference::OnlyIndexed, true) => {
            ("lost-document", "the document is lost with the pack that held it; learn it again from its source")
        }
        (Difference::NotIndexed, true) => (
            "returned-document",
            "the document is there again: what said that it was unlearned is lost; unlearn it again",
        ),
        (Difference::OtherRevision, true) => {
            ("lost-revision", "the newest revision is lost; an older one is there; learn it again from its source")
        }
        (Difference::OnlyIndexed, false) => {
            ("index-mismatch", "the index holds a document that is not there; `rebuild` makes it anew")
        }
        (Difference::OtherRevision, false) => {
            ("index-mismatch", "the index holds another revision of the document; `rebuild` makes it anew")
        }
        (Difference::NotIndexed, false) | (Difference::Misplaced, _) => {
            ("index-mismatch", "the index does not hold the document exactly once; `rebuild` makes it anew")
        }
    };
    Problem {
        kind: kind.to_owned(),
        severity: Severity::Error,
        file: None,
        offset: None,
        kbid: None,
        docid: Some(docid),
        detail: detail.to_owned(),
    }
}

/// Returns the sections that a document lists and no pack has.
pub(crate) fn absent_sections(snapshot: &Snapshot, manifest: &Manifest) -> Vec<SectionId> {
    let mut absent: Vec<SectionId> = manifest.sections.iter().map(|section| section.kbid).collect();
    absent.retain(|id| !snapshot.has(Kind::SECTION, &id.to_bytes()));
    absent
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
