//! What the operations return that only this crate has: imports, exports, and what `doctor` finds.
//!
//! **Invariant:** as in [`kb_core`]'s results, field names are a contract; fields are added, never renamed.

use kb_core::{DocId, DocumentInfo, SectionId};

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
