//! A base in a folder that goes away, with a clock that stands still until it is told to move.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use kb_core::{DocId, LearnReport, SectionId};
use kb_store::{KnowledgeBase, Options, Search, Target, Text, Unlearn};

thread_local! {
    static SECONDS: Cell<u64> = const { Cell::new(1_900_000_000) };
}

pub(crate) fn clock() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(SECONDS.get())
}

/// Lets time pass.
pub(crate) fn pass(seconds: u64) {
    SECONDS.set(SECONDS.get() + seconds);
}

pub(crate) struct Base {
    pub kb: KnowledgeBase,
    folder: tempfile::TempDir,
}

impl Base {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let kb = KnowledgeBase::create(folder.path().join(".kbdb"), options()).expect("an empty folder");
        Self { kb, folder }
    }

    /// The folder that holds the database.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.folder.path().join(".kbdb")
    }

    pub(crate) fn write(&self, name: &str, content: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::create_dir_all(path.parent().expect("it is in the folder")).expect("writable");
        std::fs::write(&path, content).expect("writable");
        path
    }

    pub(crate) fn learn(&self, docid: &str, content: &str) -> LearnReport {
        self.kb.learn(&text(docid, content)).expect("learned")
    }

    pub(crate) fn unlearn(&self, target: Target) -> kb_core::UnlearnReport {
        self.kb.unlearn(&Unlearn { targets: vec![target], ..Unlearn::default() }).expect("unlearned")
    }

    pub(crate) fn document(&self, docid: &str) -> Option<String> {
        let bytes = self.kb.document_bytes(&id(docid)).ok()?;
        Some(String::from_utf8(bytes).expect("it was text"))
    }

    /// Docids that a query finds, the best first.
    pub(crate) fn search(&self, query: &str) -> Vec<String> {
        let answer = self.kb.search(&Search::new(query)).expect("every text is a query");
        answer.hits.iter().map(|hit| hit.docid.to_string()).collect()
    }

    /// Kinds of problems that `check` finds.
    pub(crate) fn problems(&self) -> Vec<String> {
        let report = self.kb.check(&mut kb_store::Silent).expect("checked");
        report.problems.into_iter().map(|problem| format!("{}: {}", problem.kind, problem.detail)).collect()
    }
}

pub(crate) fn options() -> Options {
    Options::new(clock)
}

pub(crate) fn text(docid: &str, content: &str) -> Text {
    Text { docid: Some(id(docid)), ..Text::markdown(content) }
}

pub(crate) fn id(docid: &str) -> DocId {
    docid.parse().expect("a docid")
}

pub(crate) fn kbid(content: &str) -> SectionId {
    SectionId::of(&kb_core::MediaType::markdown(), content.as_bytes())
}
