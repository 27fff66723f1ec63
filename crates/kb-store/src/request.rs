//! What an operation is asked to do.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use kb_core::{DocId, LearnedDocument, MediaType, Mode, SectionId, SkillArgument};

/// How a database is opened.
#[derive(Debug, Clone)]
pub struct Options {
    /// Gives the time; the library reads no clock of its own.
    pub clock: fn() -> SystemTime,
    /// How long a writer waits for another to finish.
    pub wait: Duration,
    /// Where facts about source files are kept between runs, so that unchanged files are not read again.
    pub cache_dir: Option<PathBuf>,
    /// What to tell those who wait for this process.
    pub command: String,
}

impl Options {
    /// Returns the usual options with this clock: a wait of 30 seconds, no cache of source files.
    pub fn new(clock: fn() -> SystemTime) -> Self {
        Self { clock, wait: Duration::from_secs(30), cache_dir: None, command: "kb".to_owned() }
    }
}

/// A text to learn.
#[derive(Debug, Clone, Default)]
pub struct Text {
    /// The bytes: UTF-8 for the four text types, the decoded bytes for an image.
    pub content: Vec<u8>,
    /// The media type; Markdown by default.
    pub media_type: Option<MediaType>,
    /// The title; else the text's own.
    pub title: Option<String>,
    /// The description; else the text's own.
    pub description: Option<String>,
    /// The document; else the one learned from this source before, else a new one.
    pub docid: Option<DocId>,
    /// Tags beside those in the text.
    pub tags: Vec<String>,
    /// Where the text comes from, as the base shall name it.
    pub source: Option<String>,
    /// Restore what was unlearned from this source, and write anew what is damaged.
    pub again: bool,
}

impl Text {
    /// Returns a Markdown text with nothing else said of it.
    pub fn markdown(content: impl Into<Vec<u8>>) -> Self {
        Self { content: content.into(), ..Self::default() }
    }
}

/// How files and folders are learned.
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own, as on a command line")]
#[derive(Debug, Clone, Default)]
pub struct LearnPaths {
    /// The media type of all; else by file name.
    pub media_type: Option<MediaType>,
    /// The title; one file only.
    pub title: Option<String>,
    /// The description; one file only.
    pub description: Option<String>,
    /// The document; one file only.
    pub docid: Option<DocId>,
    /// Tags beside those in the texts.
    pub tags: Vec<String>,
    /// Remove documents learned from these folders whose file is gone.
    pub prune: bool,
    /// Prune even where most documents of a folder would go.
    pub prune_all: bool,
    /// Say what would be done and write nothing.
    pub dry_run: bool,
    /// Restore what was unlearned from unchanged sources, and write anew what is damaged.
    pub again: bool,
}

/// How a batch of JSON lines is imported.
#[derive(Debug, Clone, Default)]
pub struct ImportOptions {
    /// All lines or none.
    pub atomic: bool,
    /// Say what would be done and write nothing.
    pub dry_run: bool,
    /// The folder where relative `path`s begin and which none may leave; without one no `path` is taken.
    pub root: Option<PathBuf>,
    /// Take `path`s that lead out of the root too: the lines are trusted.
    pub allow_outside: bool,
}

/// What an unlearn takes away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// This section, wherever it occurs.
    Section(SectionId),
    /// This section, in one document only.
    Occurrence(SectionId, DocId),
    /// This document.
    Document(DocId),
    /// Every document with this tag, in any case.
    Tag(String),
    /// Every document from this source, or from below it where it is a folder.
    Source(String),
}

/// How something is unlearned.
#[derive(Debug, Clone, Default)]
pub struct Unlearn {
    /// What.
    pub targets: Vec<Target>,
    /// Say what would be done and write nothing.
    pub dry_run: bool,
    /// Remove the bytes from the disk now, without the readers' grace.
    pub purge: bool,
}

/// A query with its options.
#[derive(Debug, Clone)]
pub struct Search {
    /// The query.
    pub query: String,
    /// How it is read.
    pub mode: Mode,
    /// How many hits; 1 to 100.
    pub limit: usize,
    /// Only documents with each of these tags, in any case; `a/*` is any tag below `a/`.
    pub tags: Vec<String>,
    /// Only documents of one of these types: media types, short names, or `skill` and `agent`.
    pub types: Vec<String>,
    /// Only documents from one of these sources, or from below them.
    pub sources: Vec<String>,
    /// Only these documents; `guide/*` is any docid that begins so.
    pub docids: Vec<String>,
    /// Only documents of this date or later: a date or RFC 3339.
    pub since: Option<String>,
    /// Only documents of this date or earlier.
    pub until: Option<String>,
    /// Where to go on, from an earlier answer.
    pub cursor: Option<String>,
    /// Count every matching document; else a total above 1,000 may be a lower bound.
    pub count: bool,
    /// Look whether the source files of the hits are still what was learned.
    pub check_sources: bool,
    /// How much text is read where there is no index, in bytes.
    pub scan_bytes: u64,
}

impl Search {
    /// Text that is usually read where there is no index, in bytes; about a second's work.
    pub const SCAN_BYTES: u64 = 32 << 20;

    /// Returns a query with the usual options: `auto`, ten hits, no filter.
    pub fn new(query: impl Into<String>) -> Self {
        Self {
            query: query.into(),
            mode: Mode::Auto,
            limit: 10,
            tags: Vec::new(),
            types: Vec::new(),
            sources: Vec::new(),
            docids: Vec::new(),
            since: None,
            until: None,
            cursor: None,
            count: false,
            check_sources: true,
            scan_bytes: Self::SCAN_BYTES,
        }
    }
}

/// Which documents to list.
#[derive(Debug, Clone, Default)]
pub struct ListFilter {
    /// Only with each of these tags, in any case; `a/*` is any tag below `a/`.
    pub tags: Vec<String>,
    /// Only of one of these types.
    pub types: Vec<String>,
    /// Only docids that begin so.
    pub prefix: Option<String>,
    /// Only from this source or from below it; the name of a source or a system: what was fetched by it.
    pub source: Option<String>,
}

/// A skill to learn.
#[derive(Debug, Clone, Default)]
pub struct NewSkill {
    /// The name.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// The text with `{{placeholders}}`.
    pub body: String,
    /// The declared arguments.
    pub arguments: Vec<SkillArgument>,
}

/// An agent to create.
#[derive(Debug, Clone, Default)]
pub struct NewAgent {
    /// The name.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// The text that makes the assistant this agent.
    pub persona: String,
    /// Skills in order, by name or kbid.
    pub skills: Vec<String>,
}

/// How old revisions and retired files are collected.
#[derive(Debug, Clone, Default)]
pub struct Gc {
    /// Revisions to keep of each document, for this once; else the base's setting.
    pub history: Option<u32>,
}

/// Told how a long operation goes on; says whether it shall.
pub trait Observer {
    /// Called now and then. Returning `false` cancels the operation at the next safe point.
    fn progress(&mut self, progress: &Progress<'_>) -> bool {
        let _ = progress;
        true
    }

    /// Called for each document of a batch once its commit is durable.
    fn document(&mut self, document: &LearnedDocument) {
        let _ = document;
    }
}

/// Hears nothing and stops nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Observer for Silent {}

/// How far a long operation is.
#[derive(Debug, Clone, Copy)]
pub struct Progress<'a> {
    /// What is being done: `learning`, `indexing`, `merging`, `checking`, …
    pub phase: &'a str,
    /// How much is done, in documents or files.
    pub done: u64,
    /// Of how many, where that is known.
    pub total: Option<u64>,
}
