//! `KnowledgeBase`: one method an operation.

use std::collections::BTreeMap;
use std::io::BufRead;
use std::path::{Path, PathBuf};

use kb_core::{
    AgentInfo, AgentList, CheckReport, ComposedContent, DocId, DocumentInfo, DocumentList, GcReport, History,
    LearnReport, RebuildReport, SearchReport, SectionContent, SectionId, SkillInfo, SkillList, Status, UnlearnReport,
};

use crate::error::StoreError;
use crate::request::{
    Gc, ImportOptions, LearnPaths, ListFilter, NewAgent, NewSkill, Observer, Options, Search, Text, Unlearn,
};

type Result<T> = std::result::Result<T, StoreError>;

/// A knowledge base in a directory. Methods take `&self`; a handle may be shared between threads.
#[derive(Debug)]
pub struct KnowledgeBase {}

/// What became of one line of an import.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ImportLine {
    /// Line in the input, from 1.
    pub line: u64,
    /// Whether it was done.
    pub ok: bool,
    /// The operation.
    pub op: Option<String>,
    /// The document.
    pub docid: Option<DocId>,
    /// `added`, `updated`, `unchanged`, `removed` or `failed`.
    pub outcome: kb_core::Outcome,
    /// The sections.
    pub kbids: Vec<SectionId>,
    /// What to look at.
    pub warnings: Vec<kb_core::Warning>,
    /// Why it was not done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ImportError>,
}

/// Why a line of an import was not done.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct ImportError {
    /// A stable code.
    pub code: String,
    /// One sentence.
    pub message: String,
}

/// The sum of an import.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ImportReport {
    /// Lines read, blank ones not counted.
    pub lines: u64,
    /// Lines done.
    pub done: u64,
    /// Lines not done.
    pub failed: u64,
    /// The generation after the last commit.
    pub generation: u64,
    /// Nothing was written, as asked.
    pub dry_run: bool,
}

/// The writers' lock as `doctor` sees it.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LockReport {
    /// Whether a living process holds it.
    pub held: bool,
    /// The process that holds it, or held it last.
    pub pid: Option<u32>,
    /// What it said it is doing.
    pub command: Option<String>,
    /// Since when, RFC 3339 in UTC.
    pub since: Option<String>,
}

/// One finding of `doctor`.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// `ok`, `warning` or `error`.
    pub level: String,
    /// What was looked at: `lock`, `format`, `index`, `space`, …
    pub topic: String,
    /// One sentence.
    pub detail: String,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
}

/// The result of `doctor`.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DoctorReport {
    /// The database directory.
    pub path: String,
    /// The version of this code.
    pub version: String,
    /// The format of the base, where its head can be read.
    pub format: Option<u32>,
    /// The newest format this code reads and writes.
    pub supported_format: u32,
    /// The writers' lock.
    pub lock: LockReport,
    /// Everything that was looked at.
    pub findings: Vec<Finding>,
    /// No finding is an error.
    pub ok: bool,
}

/// A document with its exact bytes, as `export` hands it out.
#[derive(Debug, Clone)]
pub struct ExportedDocument {
    /// The manifest (its sections without text).
    pub info: DocumentInfo,
    /// The path it should have in a tree: from its source's name, else from the docid and the media type. Relative,
    /// with `/`, and safe to join to a folder.
    pub path: String,
    /// The source, byte for byte.
    pub content: Vec<u8>,
}

#[expect(clippy::todo, clippy::missing_const_for_fn, unused_variables, reason = "signatures first")]
impl KnowledgeBase {
    /// Creates a database in a directory that does not exist or is empty.
    pub fn create(dir: impl AsRef<Path>, options: Options) -> Result<Self> { todo!() }
    /// Opens a database.
    pub fn open(dir: impl AsRef<Path>, options: Options) -> Result<Self> { todo!() }
    /// Opens a database to read; works in a folder that cannot be written.
    pub fn open_read_only(dir: impl AsRef<Path>, options: Options) -> Result<Self> { todo!() }
    /// Returns the database directory.
    pub fn path(&self) -> &Path { todo!() }
    /// Learns one text.
    pub fn learn(&self, text: &Text) -> Result<LearnReport> { todo!() }
    /// Says what `learn` would do.
    pub fn learn_dry(&self, text: &Text) -> Result<LearnReport> { todo!() }
    /// Learns many texts in bounded commits.
    pub fn learn_batch(&self, texts: &mut dyn Iterator<Item = Text>, observer: &mut dyn Observer) -> Result<LearnReport> { todo!() }
    /// Learns files and folders. A file that cannot be taken is one `failed` entry of the report.
    pub fn learn_paths(&self, paths: &[PathBuf], request: &LearnPaths, observer: &mut dyn Observer) -> Result<LearnReport> { todo!() }
    /// Imports JSON lines; `on_line` gets each result once it is durable.
    pub fn import(&self, input: &mut dyn BufRead, request: &ImportOptions, on_line: &mut dyn FnMut(&ImportLine)) -> Result<ImportReport> { todo!() }
    /// Takes sections or documents away.
    pub fn unlearn(&self, request: &Unlearn) -> Result<UnlearnReport> { todo!() }
    /// Returns a section with its text.
    pub fn retrieve_section(&self, id: SectionId) -> Result<SectionContent> { todo!() }
    /// Returns a document with its sections' texts.
    pub fn retrieve_document(&self, id: &DocId) -> Result<DocumentInfo> { todo!() }
    /// Returns the exact bytes of a section.
    pub fn section_bytes(&self, id: SectionId) -> Result<Vec<u8>> { todo!() }
    /// Returns the exact bytes of a document's source.
    pub fn document_bytes(&self, id: &DocId) -> Result<Vec<u8>> { todo!() }
    /// Composes sections and documents into one text. Ids of 26 characters of the alphabet are kbids.
    pub fn content(&self, ids: &[String]) -> Result<ComposedContent> { todo!() }
    /// Returns the sections whose kbid begins so, at most `limit` of them, in order. At least 4 characters.
    pub fn sections_by_prefix(&self, prefix: &str, limit: usize) -> Result<Vec<SectionId>> { todo!() }
    /// Searches.
    pub fn search(&self, request: &Search) -> Result<SearchReport> { todo!() }
    /// Returns the state of the base.
    pub fn status(&self) -> Result<Status> { todo!() }
    /// Verifies every byte and every reference.
    pub fn check(&self, observer: &mut dyn Observer) -> Result<CheckReport> { todo!() }
    /// Collects what nothing refers to.
    pub fn gc(&self, request: &Gc, observer: &mut dyn Observer) -> Result<GcReport> { todo!() }
    /// Rebuilds every index from the packs; also finds a lost head again.
    pub fn rebuild(&self, observer: &mut dyn Observer) -> Result<RebuildReport> { todo!() }
    /// Opens a database whose head is lost or damaged, and writes a new head from its packs.
    pub fn recover(dir: impl AsRef<Path>, options: Options) -> Result<Self> { todo!() }
    /// Lists documents, skills and agents included.
    pub fn list(&self, filter: &ListFilter) -> Result<DocumentList> { todo!() }
    /// Lists a document's kept revisions.
    pub fn history(&self, id: &DocId) -> Result<History> { todo!() }
    /// Learns a skill.
    pub fn skill_learn(&self, skill: &NewSkill) -> Result<SkillInfo> { todo!() }
    /// Learns a skill from a whole SKILL.md.
    pub fn skill_learn_text(&self, text: &str) -> Result<SkillInfo> { todo!() }
    /// Lists the skills.
    pub fn skill_list(&self) -> Result<SkillList> { todo!() }
    /// Returns a skill by name or kbid.
    pub fn skill_get(&self, name_or_kbid: &str) -> Result<SkillInfo> { todo!() }
    /// Fills in a skill's placeholders.
    pub fn skill_render(&self, name_or_kbid: &str, arguments: &BTreeMap<String, String>) -> Result<String> { todo!() }
    /// Removes a skill.
    pub fn skill_delete(&self, name_or_kbid: &str) -> Result<UnlearnReport> { todo!() }
    /// Creates an agent.
    pub fn agent_create(&self, agent: &NewAgent) -> Result<AgentInfo> { todo!() }
    /// Lists the agents.
    pub fn agent_list(&self) -> Result<AgentList> { todo!() }
    /// Returns an agent by docid or name.
    pub fn agent_get(&self, docid_or_name: &str) -> Result<AgentInfo> { todo!() }
    /// Removes an agent; its skills stay.
    pub fn agent_delete(&self, docid_or_name: &str) -> Result<UnlearnReport> { todo!() }
    /// Hands out every current document with its exact bytes, in docid order.
    pub fn export(&self, sink: &mut dyn FnMut(ExportedDocument) -> Result<()>) -> Result<u64> { todo!() }
    /// Looks at lock, versions, index, space and problems; works on a base that does not open.
    pub fn doctor(dir: impl AsRef<Path>, options: Options) -> Result<DoctorReport> { todo!() }
}
