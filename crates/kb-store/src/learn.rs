//! Learning texts, one or many.
//!
//! **Invariant:** what a report says was added or updated is durable. A batch commits in bounded chunks; a document is
//! whole or not there, and one that cannot be taken costs itself alone.

use std::sync::Arc;

use kb_core::{LearnReport, LearnedDocument, Outcome, SectionId, Warning};

use crate::commit::Txn;
use crate::error::StoreError;
use crate::knowledge_base::KnowledgeBase;
use crate::prepare::{FileState, Prepared, prepare, resolve};
use crate::record::Kind;
use crate::request::{Observer, Progress, Text};

type Result<T> = std::result::Result<T, StoreError>;

/// Text that is committed at once, in bytes; bounds the memory of a batch.
pub(crate) const CHUNK_BYTES: u64 = 24 << 20;
/// Documents that are committed at once.
pub(crate) const CHUNK_DOCUMENTS: usize = 20_000;

impl KnowledgeBase {
    /// Learns one text: a new document, or the next revision of the one it is.
    ///
    /// Equal bytes and metadata make no revision. Fails with [`StoreError::NotUtf8`] or [`StoreError::Invalid`] where
    /// nothing can be made of the text.
    pub fn learn(&self, text: &Text) -> Result<LearnReport> {
        let prepared = prepare(text, None, FileState::default())?;
        let (document, generation) = self.commit(text.content.len() as u64, |txn| stage(txn, &prepared))?;
        Ok(report([document], generation, false))
    }

    /// Says what [`KnowledgeBase::learn`] would do, and writes nothing.
    pub fn learn_dry(&self, text: &Text) -> Result<LearnReport> {
        let prepared = prepare(text, None, FileState::default())?;
        let snapshot = self.snapshot()?;
        let mut txn = Txn::dry(&snapshot, self.now());
        Ok(report([stage(&mut txn, &prepared)?], snapshot.head.generation, true))
    }

    /// Learns many texts in bounded commits. A text that cannot be taken is one `failed` entry of the report; the
    /// observer hears of each document once it is durable.
    pub fn learn_batch(
        &self,
        texts: &mut dyn Iterator<Item = Text>,
        observer: &mut dyn Observer,
    ) -> Result<LearnReport> {
        let mut batch = Batch::new(self, false);
        for text in texts {
            let prepared = prepare(&text, None, FileState::default());
            batch.push(prepared, text.source.clone(), observer)?;
        }
        batch.finish(observer)
    }
}

/// Documents on their way into the base, committed whenever there are enough of them.
pub(crate) struct Batch<'kb> {
    kb: &'kb KnowledgeBase,
    dry_run: bool,
    /// Entries of the report in order; those still to be committed have their place already.
    documents: Vec<LearnedDocument>,
    waiting: Vec<(usize, Prepared)>,
    waiting_bytes: u64,
    reported: usize,
    generation: u64,
    pub(crate) total: Option<u64>,
}

impl<'kb> Batch<'kb> {
    pub(crate) const fn new(kb: &'kb KnowledgeBase, dry_run: bool) -> Self {
        Self {
            kb,
            dry_run,
            documents: Vec::new(),
            waiting: Vec::new(),
            waiting_bytes: 0,
            reported: 0,
            generation: 0,
            total: None,
        }
    }

    /// Takes a document in. Only what keeps the base from being written to is an error.
    pub(crate) fn push(
        &mut self,
        prepared: Result<Prepared>,
        source: Option<String>,
        observer: &mut dyn Observer,
    ) -> Result<()> {
        match prepared {
            Err(error) => self.documents.push(failed(source, &error)),
            Ok(prepared) => {
                self.waiting_bytes += prepared.content.len() as u64;
                self.waiting.push((self.documents.len(), prepared));
                self.documents.push(entry(None, source, Outcome::Unchanged, Vec::new(), Vec::new()));
            }
        }
        if self.waiting_bytes >= CHUNK_BYTES || self.waiting.len() >= CHUNK_DOCUMENTS {
            self.flush(observer)?;
        }
        Ok(())
    }

    /// Notes a document that needs no commit.
    pub(crate) fn note(&mut self, document: LearnedDocument) {
        self.documents.push(document);
    }

    pub(crate) fn flush(&mut self, observer: &mut dyn Observer) -> Result<()> {
        let waiting = std::mem::take(&mut self.waiting);
        let bytes = std::mem::take(&mut self.waiting_bytes);
        if !waiting.is_empty() {
            let done = if self.dry_run {
                let snapshot = self.kb.snapshot()?;
                let mut txn = Txn::dry(&snapshot, self.kb.now());
                let done: Result<Vec<_>> = waiting.iter().map(|(_, prepared)| stage(&mut txn, prepared)).collect();
                (done?, snapshot.head.generation)
            } else {
                self.kb.commit(bytes, |txn| waiting.iter().map(|(_, prepared)| stage(txn, prepared)).collect())?
            };
            self.generation = done.1;
            for ((place, _), document) in waiting.iter().zip(done.0) {
                self.documents[*place] = document;
            }
        }
        for document in &self.documents[self.reported..] {
            observer.document(document);
        }
        self.reported = self.documents.len();
        let progress = Progress { phase: "learning", done: self.documents.len() as u64, total: self.total };
        if observer.progress(&progress) { Ok(()) } else { Err(StoreError::Cancelled) }
    }

    pub(crate) fn finish(mut self, observer: &mut dyn Observer) -> Result<LearnReport> {
        self.flush(observer)?;
        if self.generation == 0 {
            self.generation = self.kb.snapshot()?.head.generation;
        }
        Ok(report(self.documents, self.generation, self.dry_run))
    }
}

/// Stages a prepared text and says what becomes of it.
pub(crate) fn stage(txn: &mut Txn<'_>, prepared: &Prepared) -> Result<LearnedDocument> {
    let (docid, old, record_source) = resolve(txn, prepared)?;
    refuse_other_kind(&docid, old.as_ref())?;
    let source = prepared.manifest.source.as_ref();
    if let Some(old) = &old
        && is_unchanged(old, prepared)
        && !(prepared.again && needs_repair(txn, old))
    {
        return Ok(unchanged(old));
    }
    let mut manifest = prepared.manifest.clone();
    manifest.docid = docid.clone();
    manifest.updated = txn.now;
    manifest.created = old.as_ref().map_or(txn.now, |old| old.created);
    manifest.revision = old.as_ref().map_or(1, |old| old.revision + 1);
    let mut at = 0;
    for section in &manifest.sections {
        let end = at + section.bytes as usize;
        txn.put_section(section.kbid, &manifest.media_type, (&prepared.content, at..end), prepared.again)?;
        at = end;
    }
    if record_source && let Some(source) = source {
        txn.put_source(&source.name, &docid)?;
    }
    let outcome = if old.is_some() { Outcome::Updated } else { Outcome::Added };
    let learned = learned(&manifest, outcome);
    txn.put_manifest(manifest, Some(Arc::clone(&prepared.content)))?;
    Ok(learned)
}

/// Skills and agents are learned by operations of their own; a text does not take their place.
fn refuse_other_kind(docid: &kb_core::DocId, old: Option<&crate::manifest::Manifest>) -> Result<()> {
    match old {
        Some(old) if old.kind != kb_core::DocumentKind::Document => {
            let reason = format!("`{docid}` is the name of {} {}", article(old.kind), old.kind);
            Err(StoreError::Invalid { field: "docid", reason })
        }
        _ => Ok(()),
    }
}

const fn article(kind: kb_core::DocumentKind) -> &'static str {
    match kind {
        kb_core::DocumentKind::Agent => "an",
        _ => "a",
    }
}

fn is_unchanged(old: &crate::manifest::Manifest, prepared: &Prepared) -> bool {
    let source = |m: &crate::manifest::Manifest| m.source.as_ref().map(|source| source.name.clone());
    old.inputs == prepared.manifest.inputs
        && old.kind == prepared.manifest.kind
        && source(old) == source(&prepared.manifest)
}

/// Says whether a document has lost something that its source has.
fn needs_repair(txn: &Txn<'_>, old: &crate::manifest::Manifest) -> bool {
    old.edited
        || old.sections.iter().any(|section| {
            !txn.has_section(section.kbid)
                || (txn.snapshot.has(Kind::SECTION, &section.kbid.to_bytes())
                    && txn.snapshot.section(section.kbid).is_err())
        })
}

fn unchanged(manifest: &crate::manifest::Manifest) -> LearnedDocument {
    learned(manifest, Outcome::Unchanged)
}

pub(crate) fn learned(manifest: &crate::manifest::Manifest, outcome: Outcome) -> LearnedDocument {
    entry(
        Some(manifest.docid.clone()),
        manifest.source.as_ref().map(|source| source.name.clone()),
        outcome,
        manifest.sections.iter().map(|section| section.kbid).collect(),
        manifest.warnings.clone(),
    )
}

/// Returns the entry of a source that could not be taken.
pub(crate) fn failed(source: Option<String>, error: &StoreError) -> LearnedDocument {
    let message = error.sentence();
    let warning = Warning { code: error.code().to_owned(), message, line: None, column: None };
    entry(None, source, Outcome::Failed, Vec::new(), vec![warning])
}

const fn entry(
    docid: Option<kb_core::DocId>,
    source: Option<String>,
    outcome: Outcome,
    kbids: Vec<SectionId>,
    warnings: Vec<Warning>,
) -> LearnedDocument {
    LearnedDocument { docid, source, outcome, kbids, warnings }
}

pub(crate) fn report(
    documents: impl IntoIterator<Item = LearnedDocument>,
    generation: u64,
    dry_run: bool,
) -> LearnReport {
    let documents: Vec<LearnedDocument> = documents.into_iter().collect();
    let count = |outcome| documents.iter().filter(|document| document.outcome == outcome).count();
    LearnReport {
        added: count(Outcome::Added),
        updated: count(Outcome::Updated),
        unchanged: count(Outcome::Unchanged),
        removed: count(Outcome::Removed),
        failed: count(Outcome::Failed),
        documents,
        generation,
        dry_run,
    }
}
