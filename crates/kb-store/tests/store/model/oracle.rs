//! What a base should hold after a sequence of operations, as simply as it can be said: a map from docids to lists of
//! revisions.
//!
//! **Invariant:** a section can be read if some revision of some document lists it, and it was not unlearned from that
//! document, or altogether, since that revision was made.

use std::collections::{BTreeMap, BTreeSet};

use kb_core::{DocumentKind, Outcome, SectionId};

/// What a revision was made of: equal ones make no new revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Given {
    pub(crate) sections: Vec<SectionId>,
    pub(crate) tags: Vec<String>,
    /// Skills of an agent, with the kbids last known.
    pub(crate) skills: Vec<(String, SectionId)>,
}

#[derive(Debug, Clone)]
pub(crate) struct Revision {
    pub(crate) number: u32,
    pub(crate) sections: Vec<SectionId>,
    pub(crate) given: Given,
    pub(crate) edited: bool,
    /// What it lists and may not be read because of it any more.
    unlearned: BTreeSet<SectionId>,
}

#[derive(Debug, Clone)]
pub(crate) struct Document {
    pub(crate) kind: DocumentKind,
    pub(crate) source: Option<String>,
    /// The newest first.
    pub(crate) revisions: Vec<Revision>,
}

impl Document {
    pub(crate) fn current(&self) -> &Revision {
        &self.revisions[0]
    }

    fn push(&mut self, sections: Vec<SectionId>, given: Given, edited: bool) {
        let number = self.revisions.first().map_or(1, |newest| newest.number + 1);
        self.revisions.insert(0, Revision { number, sections, given, edited, unlearned: BTreeSet::new() });
    }
}

/// What an unlearn should say.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Unlearned {
    pub(crate) documents: Vec<String>,
    pub(crate) edited: Vec<String>,
    pub(crate) sections: BTreeSet<SectionId>,
    pub(crate) shared: BTreeSet<SectionId>,
    pub(crate) dangling: Vec<String>,
}

#[derive(Debug, Default)]
pub(crate) struct Oracle {
    pub(crate) documents: BTreeMap<String, Document>,
    /// The text of every section that was ever learned.
    pub(crate) texts: BTreeMap<SectionId, String>,
}

impl Oracle {
    pub(crate) fn is_readable(&self, id: SectionId) -> bool {
        let lists = |r: &Revision| r.sections.contains(&id) && !r.unlearned.contains(&id);
        self.documents.values().any(|document| document.revisions.iter().any(lists))
    }

    pub(crate) fn readable(&self) -> BTreeSet<SectionId> {
        self.texts.keys().copied().filter(|id| self.is_readable(*id)).collect()
    }

    /// The documents that list a section now.
    pub(crate) fn holding(&self, id: SectionId) -> Vec<String> {
        let holds = |document: &Document| document.current().sections.contains(&id);
        self.documents.iter().filter(|(_, document)| holds(document)).map(|(docid, _)| docid.clone()).collect()
    }

    pub(crate) fn text_of(&self, docid: &str) -> String {
        self.documents[docid].current().sections.iter().map(|id| self.texts[id].as_str()).collect()
    }

    /// The docids of a kind.
    pub(crate) fn of_kind(&self, kind: DocumentKind) -> impl Iterator<Item = &String> {
        self.documents.iter().filter(move |(_, document)| document.kind == kind).map(|(docid, _)| docid)
    }

    pub(crate) fn learn(
        &mut self,
        docid: &str,
        kind: DocumentKind,
        source: Option<String>,
        given: Given,
        again: bool,
    ) -> Outcome {
        let is_new = !self.documents.contains_key(docid);
        let document =
            self.documents.entry(docid.to_owned()).or_insert_with(|| Document { kind, source, revisions: Vec::new() });
        if !is_new && document.current().given == given && !(again && document.current().edited) {
            return Outcome::Unchanged;
        }
        document.push(given.sections.clone(), given, false);
        if is_new { Outcome::Added } else { Outcome::Updated }
    }

    /// Removes documents; `None` where there are none to remove.
    pub(crate) fn unlearn_documents(&mut self, wanted: impl Fn(&str, &Document) -> bool) -> Option<Unlearned> {
        let removed: Vec<String> =
            self.documents.iter().filter(|(docid, d)| wanted(docid, d)).map(|(docid, _)| docid.clone()).collect();
        (!removed.is_empty()).then(|| self.take(removed, &[], &BTreeSet::new()))
    }

    /// Takes a section out of one document.
    pub(crate) fn unlearn_occurrence(&mut self, id: SectionId, docid: &str) -> Option<Unlearned> {
        let document = self.documents.get(docid)?;
        if !document.current().sections.contains(&id) {
            return None;
        }
        if document.kind != DocumentKind::Document {
            return Some(self.take(vec![docid.to_owned()], &[], &BTreeSet::new()));
        }
        Some(self.take(Vec::new(), &[(docid.to_owned(), id)], &BTreeSet::new()))
    }

    /// Takes a section out of every document.
    pub(crate) fn unlearn_section(&mut self, id: SectionId) -> Option<Unlearned> {
        if !self.is_readable(id) {
            return None;
        }
        let (mut removed, mut edited) = (Vec::new(), Vec::new());
        for (docid, document) in &self.documents {
            if document.current().sections.contains(&id) {
                if document.kind == DocumentKind::Document {
                    edited.push((docid.clone(), id));
                } else {
                    removed.push(docid.clone());
                }
            }
        }
        Some(self.take(removed, &edited, &[id].into()))
    }

    fn take(
        &mut self,
        removed: Vec<String>,
        edited: &[(String, SectionId)],
        everywhere: &BTreeSet<SectionId>,
    ) -> Unlearned {
        let before = self.readable();
        let mut touched = everywhere.clone();
        for docid in &removed {
            let document = self.documents.remove(docid).expect("it was looked up");
            touched.extend(document.revisions.iter().flat_map(|revision| revision.sections.iter().copied()));
            if document.kind == DocumentKind::Skill {
                self.note_last_known(docid, document.current().sections[0], &removed);
            }
        }
        for (docid, id) in edited {
            touched.insert(*id);
            let document = self.documents.get_mut(docid).expect("it was looked up");
            let current = document.current().clone();
            for revision in &mut document.revisions {
                revision.unlearned.insert(*id);
            }
            let left = current.sections.into_iter().filter(|section| section != id).collect();
            document.push(left, current.given, true);
        }
        for revision in self.documents.values_mut().flat_map(|document| &mut document.revisions) {
            revision.unlearned.extend(everywhere);
        }
        let after = self.readable();
        let dangling = self.of_kind(DocumentKind::Agent).filter(|docid| {
            self.documents[*docid].current().given.skills.iter().any(|(skill, _)| removed.contains(skill))
        });
        Unlearned {
            dangling: dangling.cloned().collect(),
            sections: touched.iter().copied().filter(|id| before.contains(id) && !after.contains(id)).collect(),
            shared: touched.iter().copied().filter(|id| before.contains(id) && after.contains(id)).collect(),
            documents: removed,
            edited: edited.iter().map(|(docid, _)| docid.clone()).collect(),
        }
    }

    /// An agent keeps the kbid that its skill had when it went.
    fn note_last_known(&mut self, skill: &str, kbid: SectionId, removed: &[String]) {
        for (docid, document) in &mut self.documents {
            if document.kind != DocumentKind::Agent || removed.contains(docid) {
                continue;
            }
            let mut given = document.current().given.clone();
            for (own, known) in &mut given.skills {
                if own == skill {
                    *known = kbid;
                }
            }
            if given != document.current().given {
                document.push(given.sections.clone(), given, false);
            }
        }
    }

    /// Drops the revisions beyond these many.
    pub(crate) fn keep(&mut self, revisions: usize) {
        self.documents.values_mut().for_each(|document| document.revisions.truncate(revisions));
    }
}
