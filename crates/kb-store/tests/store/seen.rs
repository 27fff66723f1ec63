//! All that can be read of a base, to compare what it was with what it is.
//!
//! **Invariant:** reading fails here where anything that the base lists cannot be read.

use std::collections::{BTreeMap, BTreeSet};

use kb_core::{MediaType, SectionId};
use kb_store::{KnowledgeBase, ListFilter, Search, StoreError};

/// All that can be read of a base.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Seen {
    /// Hashes of their bytes.
    pub(crate) documents: BTreeMap<String, blake3::Hash>,
    /// Revision, kbids and whether it is marked edited, the newest first.
    pub(crate) revisions: BTreeMap<String, Vec<(u32, Vec<SectionId>, bool)>>,
    /// Whether they can be read.
    pub(crate) sections: BTreeMap<SectionId, bool>,
    pub(crate) skills_and_agents: String,
    /// Documents that each word finds, the best first.
    pub(crate) found: BTreeMap<&'static str, Vec<String>>,
    /// Documents, skills, agents, bytes of their sources.
    pub(crate) totals: [u64; 4],
}

/// Reads a base whole, and of these sections whether they are readable.
pub(crate) fn see(kb: &KnowledgeBase, known: &BTreeSet<SectionId>) -> Seen {
    let list = kb.list(&ListFilter::default()).expect("listed").documents;
    let mut seen = Seen {
        documents: BTreeMap::new(),
        revisions: BTreeMap::new(),
        sections: BTreeMap::new(),
        skills_and_agents: format!(
            "{:?} {:?}",
            kb.skill_list().expect("skills are readable"),
            kb.agent_list().expect("agents are readable")
        ),
        found: BTreeMap::new(),
        totals: [0; 4],
    };
    for word in ["alpha", "beta", "licence", "air", "end", "gone", "push", "image"] {
        let hits = kb.search(&Search::new(word)).expect("every word is a query").hits;
        seen.found.insert(word, hits.iter().map(|hit| hit.docid.to_string()).collect());
    }
    for document in &list {
        let bytes = kb.document_bytes(&document.docid).expect("a listed document is readable");
        assert_eq!(bytes.len() as u64, document.bytes);
        seen.documents.insert(document.docid.to_string(), blake3::hash(&bytes));
        let revisions = kb.history(&document.docid).expect("a listed document has a history").revisions;
        let revisions = revisions.into_iter().map(|r| (r.revision, r.kbids, r.edited)).collect();
        seen.revisions.insert(document.docid.to_string(), revisions);
    }
    for section in known {
        let is_readable = match kb.section_bytes(*section) {
            Ok(_) => true,
            Err(StoreError::SectionNotFound { .. }) => false,
            Err(error) => panic!("a section is neither readable nor gone: {error}"),
        };
        seen.sections.insert(*section, is_readable);
    }
    let status = kb.status().expect("a base has a status");
    seen.totals = [status.documents, status.skills, status.agents, status.source_bytes];
    seen
}

pub(crate) fn png() -> MediaType {
    "image/png".parse().expect("a media type")
}

/// Every section of every revision.
pub(crate) fn sections_of(kb: &KnowledgeBase) -> BTreeSet<SectionId> {
    let list = kb.list(&ListFilter::default()).expect("listed").documents;
    let histories = list.iter().map(|document| kb.history(&document.docid).expect("it has one"));
    histories.flat_map(|history| history.revisions).flat_map(|revision| revision.kbids).collect()
}
