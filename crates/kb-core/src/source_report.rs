//! What the operations on sources return: plain structs, the very values that `kb source … --json` prints.
//!
//! A *source* is a configured MCP server that brings documents; a *system* is the name that prefixes the ids of one or
//! several sources.
//!
//! **Invariant:** as in the other results, field names are a contract; a field may be added, none is renamed or dropped.
//! No credential is ever in one of these values.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{DocId, MediaType};

/// Where a document was fetched from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Provenance {
    /// The system.
    pub system: String,
    /// The id that the system itself has for it.
    pub id: String,
    /// Where a person can look at it, if anywhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// When this text was fetched, RFC 3339 in UTC.
    pub retrieved: String,
    /// The first 128 bits of the BLAKE3 of the bytes that the server gave, in hexadecimal.
    pub hash: String,
    /// The sources that reach it now, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<String>,
}

/// Something wrong with a configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceFault {
    /// The key, for example `read.id_arg`.
    pub key: String,
    /// What is wrong with it; never repeats a value that may be a secret.
    pub message: String,
}

/// What a plan does with a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Change {
    /// It is new.
    Added,
    /// Its text or its title is another.
    Modified,
    /// It is gone from the source, and no other source reaches it.
    Removed,
    /// Another source has brought it already; this one reaches it too.
    Linked,
    /// This source reaches it no more; it stays, for another does, or is gone from the base already.
    Released,
}

impl Change {
    /// Returns the word that JSON and people see.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Modified => "modified",
            Self::Removed => "removed",
            Self::Linked => "linked",
            Self::Released => "released",
        }
    }
}

/// A document that a plan changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlannedChange {
    /// What becomes of it.
    pub change: Change,
    /// The document.
    pub docid: DocId,
    /// The id that the source has for it.
    pub id: String,
    /// The title it will have, or has.
    pub title: String,
    /// The title it has now, where that changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old_title: Option<String>,
    /// Length of the text in bytes.
    pub bytes: u64,
    /// Length of the text that was last applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old_bytes: Option<u64>,
    /// Where a person can look at it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

/// A document or a row of a selection that was skipped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceFailure {
    /// The id, where there is one.
    pub id: Option<String>,
    /// A stable word: `timeout`, `rpc-error`, `tool-error`, `server-ended`, `content`, `bad-row`, …
    pub code: String,
    /// One sentence.
    pub reason: String,
}

/// A document that the source no longer names and that stays.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptDocument {
    /// The document.
    pub docid: DocId,
    /// The id that the source had for it.
    pub id: String,
    /// Its title.
    pub title: String,
}

/// What a run of a source would change: the difference from what was last applied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SourcePlan {
    /// The source.
    pub source: String,
    /// Its system.
    pub system: String,
    /// What it is: `mcp`.
    pub kind: String,
    /// New documents.
    pub added: usize,
    /// Documents with another text or title.
    pub modified: usize,
    /// Documents that go.
    pub removed: usize,
    /// Documents that another source has brought already.
    pub linked: usize,
    /// Documents that this source reaches no more and that stay for others.
    pub released: usize,
    /// Documents as they were last applied.
    pub unchanged: usize,
    /// Documents and rows that were skipped.
    pub failed: usize,
    /// Nothing was skipped and the selection was read to its end.
    pub complete: bool,
    /// Each change, by kind, then docid.
    pub changes: Vec<PlannedChange>,
    /// What was skipped, in the order of the selection.
    pub failures: Vec<SourceFailure>,
    /// Documents that are gone from the source and stay.
    pub kept: Vec<KeptDocument>,
    /// Why they stay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept_reason: Option<String>,
    /// What else to look at: duplicate ids, a selection that was cut off.
    pub warnings: Vec<String>,
}

impl SourcePlan {
    /// Says whether there is nothing to apply.
    pub const fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Says whether documents were selected and not one could be read.
    pub const fn has_only_failures(&self) -> bool {
        self.failed > 0 && self.unchanged == 0 && self.added + self.modified + self.linked == 0
    }
}

/// What came of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SourceRun {
    /// `unchanged`, `proposed`, `applied`, or `failed`.
    pub outcome: String,
    /// When, RFC 3339 in UTC.
    pub at: String,
    /// The generation of the base afterwards.
    pub generation: u64,
    /// What was found.
    #[serde(flatten)]
    pub plan: SourcePlan,
}

/// What applying a proposal did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SourceApplied {
    /// The source.
    pub source: String,
    /// Documents that are new.
    pub added: usize,
    /// Documents that have another text or title.
    pub modified: usize,
    /// Documents that are gone.
    pub removed: usize,
    /// Documents that this source reaches as well from now on.
    pub linked: usize,
    /// Documents that it reaches no more.
    pub released: usize,
    /// The documents that were changed.
    pub docids: Vec<DocId>,
    /// The generation after the commit.
    pub generation: u64,
}

/// A proposal that waits to be applied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingProposal {
    /// When it was made, RFC 3339 in UTC.
    pub made: String,
    /// Documents to add.
    pub added: usize,
    /// Documents to change.
    pub modified: usize,
    /// Documents to remove.
    pub removed: usize,
}

/// A proposal with the texts it brings, to be reviewed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proposal {
    /// When it was made, RFC 3339 in UTC.
    pub made: String,
    /// What it changes.
    pub plan: SourcePlan,
    /// The whole difference of the texts, as a unified diff.
    pub diff: String,
}

/// A source as `source list` shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SourceSummary {
    /// Its name.
    pub name: String,
    /// What it is: `mcp`.
    pub kind: String,
    /// The system that prefixes its ids.
    pub system: String,
    /// Its configuration is kept in the base.
    pub configured: bool,
    /// Documents it reaches, as last applied.
    pub documents: usize,
    /// When something of it was last applied.
    pub applied: Option<String>,
    /// When it was last run on this machine.
    pub last_run: Option<String>,
    /// What came of that: `unchanged`, `proposed`, `applied`, or `failed`.
    pub last_outcome: Option<String>,
    /// The proposal that waits.
    pub pending: Option<PendingProposal>,
}

/// The sources of a base.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceList {
    /// By name.
    pub sources: Vec<SourceSummary>,
}

/// A document as a source reaches it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceDocument {
    /// The document.
    pub docid: DocId,
    /// The id that the source has for it.
    pub id: String,
    /// Its title as last applied.
    pub title: String,
    /// Length of its text in bytes.
    pub bytes: u64,
}

/// A source with all that is known of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceInfo {
    /// As in the list.
    #[serde(flatten)]
    pub summary: SourceSummary,
    /// The configuration that is kept in the base.
    pub config: Option<Value>,
    /// The documents it reaches, by id.
    pub reaches: Vec<SourceDocument>,
}

/// What removing a source did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceRemoved {
    /// The source.
    pub source: String,
    /// Documents that went with it.
    pub removed: Vec<DocId>,
    /// Documents that it reached and that stay.
    pub kept: usize,
    /// The generation after the commit.
    pub generation: u64,
}

/// A row of a selection, and the document it would become.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProbedRow {
    /// The id that the source has for it.
    pub id: String,
    /// The document it would be.
    pub docid: DocId,
    /// The title that the selection gives.
    pub title: Option<String>,
}

/// The one document that an online check reads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProbedDocument {
    /// The id that the source has for it.
    pub id: String,
    /// The document it would be.
    pub docid: DocId,
    /// The title it would have.
    pub title: String,
    /// Length of its text in bytes.
    pub bytes: u64,
    /// What the text is taken for.
    pub media_type: MediaType,
    /// How the text begins.
    pub begins: String,
}

/// What a server is found to be by an online check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SourceProbe {
    /// The server, as it names itself.
    pub server: String,
    /// The revision of the protocol that is spoken.
    pub protocol: String,
    /// The tools that a run can call.
    pub tools: Vec<String>,
    /// Rows of the selection.
    pub selected: usize,
    /// The first of them.
    pub rows: Vec<ProbedRow>,
    /// The first document that could be read.
    pub document: Option<ProbedDocument>,
    /// What was skipped.
    pub failures: Vec<SourceFailure>,
    /// What else to look at.
    pub warnings: Vec<String>,
}

/// The result of `source check`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceCheck {
    /// The source.
    pub source: String,
    /// Nothing is wrong.
    pub ok: bool,
    /// All that is wrong with the configuration.
    pub faults: Vec<SourceFault>,
    /// What the server was found to be, where it was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub online: Option<SourceProbe>,
}
