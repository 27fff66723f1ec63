//! What each operation returns: plain structs, the very values that `kb … --json` and the MCP tools print.
//!
//! **Invariant:** field names are a contract (camelCase in JSON). A field may be added; none is renamed or dropped.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{DocId, MediaType, Provenance, SectionId};

macro_rules! report {
    ($($(#[$meta:meta])* pub struct $name:ident { $($(#[$field_meta:meta])* pub $field:ident: $type:ty,)* })*) => {
        $($(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(rename_all = "camelCase")]
        pub struct $name { $($(#[$field_meta])* pub $field: $type,)* })*
    };
}

macro_rules! words {
    ($($(#[$meta:meta])* pub enum $name:ident { $($(#[$variant_meta:meta])* $variant:ident = $text:literal,)* })*) => {
        $($(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum $name { $($(#[$variant_meta])* #[serde(rename = $text)] $variant,)* }

        impl $name {
            /// Every value, in order.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// Returns the word that JSON and the command line use.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl std::str::FromStr for $name {
            type Err = UnknownWord;

            fn from_str(text: &str) -> Result<Self, UnknownWord> {
                Self::ALL.iter().copied().find(|v| v.as_str() == text).ok_or_else(|| UnknownWord {
                    given: text.to_owned(),
                    known: Self::ALL.iter().map(|v| v.as_str()).collect::<Vec<_>>().join(", "),
                })
            }
        })*
    };
}

/// A word that is none of a fixed set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{given}` is none of {known}")]
pub struct UnknownWord {
    given: String,
    known: String,
}

words! {
    /// How a query's words are to be read.
    pub enum Mode {
        /// All words, then most, then any, then near-misses by edit distance.
        Auto = "auto",
        /// Every word must match.
        All = "all",
        /// One word suffices.
        Any = "any",
        /// The words in this order, next to each other.
        Phrase = "phrase",
        /// The last word is a beginning.
        Prefix = "prefix",
        /// Words within edit distance match too.
        Fuzzy = "fuzzy",
    }

    /// Which reading of the query gave the answer.
    pub enum Stage {
        /// Every word matched.
        All = "all",
        /// All but the words listed as dropped.
        Most = "most",
        /// At least one word.
        Any = "any",
        /// The words as a phrase.
        Phrase = "phrase",
        /// Beginnings of words.
        Prefix = "prefix",
        /// Near-misses by edit distance.
        Fuzzy = "fuzzy",
        /// Nothing matched.
        None = "none",
    }

    /// Whether the base holds an answer.
    pub enum Verdict {
        /// The first hits very likely answer the query.
        Answered = "answered",
        /// Something related was found.
        Weak = "weak",
        /// Nothing in the base answers this.
        Unanswered = "unanswered",
    }

    /// What became of one input of a learn.
    pub enum Outcome {
        /// A new document.
        Added = "added",
        /// A new revision of a document.
        Updated = "updated",
        /// Equal bytes and metadata: nothing was written.
        Unchanged = "unchanged",
        /// The document was unlearned.
        Removed = "removed",
        /// Nothing was done; the warnings say why.
        Failed = "failed",
    }

    /// How bad a problem is.
    pub enum Severity {
        /// Damage, or a reference that leads nowhere inside the base.
        Error = "error",
        /// Worth knowing; the base is whole.
        Warning = "warning",
    }

    /// What a document is.
    pub enum DocumentKind {
        /// An ordinary document.
        Document = "document",
        /// A skill.
        Skill = "skill",
        /// An agent.
        Agent = "agent",
    }
}

report! {
    /// Something in a source that could not be taken as it stands; the text is kept all the same.
    pub struct Warning {
        /// A stable code, for example `front-matter-unreadable`.
        pub code: String,
        /// One sentence.
        pub message: String,
        /// Line in the source, from 1.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub line: Option<u32>,
        /// Column in bytes, from 1.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub column: Option<u32>,
    }

    /// What became of one source.
    pub struct LearnedDocument {
        /// The document; absent where nothing could be made of the source.
        pub docid: Option<DocId>,
        /// Where the text came from, as the base names it.
        pub source: Option<String>,
        /// What was done.
        pub outcome: Outcome,
        /// The sections in order.
        pub kbids: Vec<SectionId>,
        /// What a reader of the source should look at.
        pub warnings: Vec<Warning>,
    }

    /// The result of a learn, of one text or of many.
    pub struct LearnReport {
        /// One entry for each source, in the order given.
        pub documents: Vec<LearnedDocument>,
        /// Documents that are new.
        pub added: usize,
        /// Documents with a new revision.
        pub updated: usize,
        /// Documents that were as given.
        pub unchanged: usize,
        /// Documents removed because their source is gone (`--prune`).
        pub removed: usize,
        /// Sources that could not be taken.
        pub failed: usize,
        /// The generation after the last commit.
        pub generation: u64,
        /// Nothing was written, as asked.
        pub dry_run: bool,
    }

    /// The result of an unlearn.
    pub struct UnlearnReport {
        /// Documents that are gone.
        pub documents: Vec<DocId>,
        /// Documents that lost a section and have a new revision.
        pub edited: Vec<DocId>,
        /// Sections whose text can no longer be read.
        pub sections: Vec<SectionId>,
        /// Sections that stay readable, since other documents hold them.
        pub shared: Vec<SectionId>,
        /// Agents left with a reference to a skill that is gone.
        pub dangling: Vec<DocId>,
        /// The generation after the commit.
        pub generation: u64,
        /// The bytes are gone from the disk already.
        pub purged: bool,
        /// Why they are not, where a purge was asked for: the text is unreadable, its bytes are still there.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub purge_error: Option<String>,
        /// Nothing was written, as asked.
        pub dry_run: bool,
    }

    /// One section with its text.
    pub struct SectionContent {
        /// The content address.
        pub kbid: SectionId,
        /// The media type.
        pub media_type: MediaType,
        /// The text; base64 where `encoding` says so.
        pub content: String,
        /// `base64` for what is not text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub encoding: Option<String>,
        /// The documents that list it now.
        pub docids: Vec<DocId>,
        /// Titles of the headings above and of its own, outermost first, in the first of those documents.
        pub heading_path: Vec<String>,
        /// Line in that document where the section starts, from 1.
        pub line: u32,
        /// Where the first of those documents was fetched from, where a source brought it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub provenance: Option<Provenance>,
    }

    /// A section as its document lists it.
    pub struct SectionInfo {
        /// The content address.
        pub kbid: SectionId,
        /// Its place in the document, from 0.
        pub position: u32,
        /// The media type.
        pub media_type: MediaType,
        /// `front-matter` or `text`, or `image`.
        pub role: String,
        /// Heading level 1 to 6; 0 for text before the first heading.
        pub level: u8,
        /// The section one level up.
        pub parent: Option<SectionId>,
        /// Titles of the headings above and of its own, outermost first.
        pub heading_path: Vec<String>,
        /// Line in the document where it starts, from 1.
        pub line: u32,
        /// Length in bytes.
        pub bytes: u64,
        /// `[n, m]` where a long section was cut into m parts.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub part: Option<[u32; 2]>,
        /// The text, where the operation gives it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub content: Option<String>,
    }

    /// A document's manifest.
    pub struct DocumentInfo {
        /// The name.
        pub docid: DocId,
        /// What it is.
        pub kind: DocumentKind,
        /// The title.
        pub title: String,
        /// The description, if any.
        pub description: Option<String>,
        /// Tags, as written, without repeats.
        pub tags: Vec<String>,
        /// Other names of the document.
        pub aliases: Vec<String>,
        /// Every other key of the front matter.
        pub meta: Map<String, Value>,
        /// The media type of the whole.
        pub media_type: MediaType,
        /// Where it came from.
        pub source: Option<String>,
        /// The date it gives itself, RFC 3339 or a date.
        pub date: Option<String>,
        /// When its first revision was learned, RFC 3339 in UTC.
        pub created: String,
        /// When this revision was learned.
        pub updated: String,
        /// Number of this revision, from 1.
        pub revision: u32,
        /// A section was unlearned from it since the source was read.
        pub edited: bool,
        /// Length in bytes of the whole.
        pub bytes: u64,
        /// What could not be taken from the source as it stands.
        pub warnings: Vec<Warning>,
        /// Where it was fetched from, where a source brought it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub provenance: Option<Provenance>,
        /// The sections in order.
        pub sections: Vec<SectionInfo>,
    }

    /// A document as `list` shows it.
    pub struct DocumentSummary {
        /// The name.
        pub docid: DocId,
        /// What it is.
        pub kind: DocumentKind,
        /// The title.
        pub title: String,
        /// Tags.
        pub tags: Vec<String>,
        /// The media type.
        pub media_type: MediaType,
        /// Where it came from.
        pub source: Option<String>,
        /// When this revision was learned, RFC 3339 in UTC.
        pub updated: String,
        /// Number of this revision.
        pub revision: u32,
        /// Number of sections.
        pub sections: u32,
        /// Length in bytes.
        pub bytes: u64,
    }

    /// The result of `list`.
    pub struct DocumentList {
        /// The documents, by docid.
        pub documents: Vec<DocumentSummary>,
        /// The generation that was read.
        pub generation: u64,
    }

    /// One kept revision.
    pub struct Revision {
        /// Its number, from 1.
        pub revision: u32,
        /// When it was learned, RFC 3339 in UTC.
        pub updated: String,
        /// The generation of its commit.
        pub generation: u64,
        /// The title then.
        pub title: String,
        /// The sections then.
        pub kbids: Vec<SectionId>,
        /// This revision is the one that search sees.
        pub current: bool,
        /// A section was unlearned in it.
        pub edited: bool,
    }

    /// The result of `history`.
    pub struct History {
        /// The document.
        pub docid: DocId,
        /// Kept revisions, the newest first.
        pub revisions: Vec<Revision>,
    }

    /// Several sections and documents as one Markdown text.
    pub struct ComposedContent {
        /// The text.
        pub content: String,
        /// The ids it was made of, in order.
        pub ids: Vec<String>,
    }

    /// A word of the query that was read as another.
    pub struct Correction {
        /// The word as asked.
        pub from: String,
        /// What was searched instead.
        pub to: Vec<String>,
    }

    /// Another section of a hit's document that matches.
    pub struct OtherSection {
        /// The content address.
        pub kbid: SectionId,
        /// Its heading path.
        pub heading_path: Vec<String>,
        /// Line in the document.
        pub line: u32,
        /// Its score.
        pub score: f64,
    }

    /// A text with the places that matched.
    pub struct Snippet {
        /// Part of the section's text, white space folded.
        pub text: String,
        /// Pairs `[start, end)` in Unicode scalar values of `text`, in order, not overlapping.
        pub highlights: Vec<[u32; 2]>,
        /// Line in the document where the text begins, from 1.
        pub line: u32,
    }

    /// A document's best section for a query.
    pub struct Hit {
        /// The content address.
        pub kbid: SectionId,
        /// The document.
        pub docid: DocId,
        /// The document's title.
        pub title: String,
        /// Titles of the headings above and of its own, outermost first.
        pub heading_path: Vec<String>,
        /// Heading level 1 to 6; 0 for text before the first heading.
        pub level: u8,
        /// The section one level up.
        pub parent: Option<SectionId>,
        /// The document's source.
        pub source: Option<String>,
        /// Line in the document of the best match, from 1.
        pub line: u32,
        /// The ranking score; comparable within one answer.
        pub score: f64,
        /// How sure it is that this hit answers the query, 0 to 1.
        pub confidence: f64,
        /// The words of the query that this section matches.
        pub matched_terms: Vec<String>,
        /// The matching text, plain.
        pub snippet: String,
        /// Pairs `[start, end)` in Unicode scalar values of `snippet`: the words to mark.
        pub highlights: Vec<[u32; 2]>,
        /// Line in the document where the snippet begins, from 1.
        pub snippet_line: u32,
        /// Other sections of the document that match, the best first.
        pub more: Vec<OtherSection>,
        /// Other documents that hold the same section.
        pub also_in: Vec<DocId>,
        /// `changed` or `gone`, where the source file is no longer what was learned.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub stale: Option<String>,
        /// Where the document was fetched from, where a source brought it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub provenance: Option<Provenance>,
    }

    /// The answer to a query.
    pub struct SearchReport {
        /// The query as given.
        pub query: String,
        /// How it was to be read.
        pub mode: Mode,
        /// Which reading gave the answer.
        pub stage: Stage,
        /// Whether the base holds an answer.
        pub verdict: Verdict,
        /// Documents that match.
        pub total: u64,
        /// Whether `total` is exact or a lower bound.
        pub total_is_exact: bool,
        /// The generation that was searched.
        pub generation: u64,
        /// Words that no hit had to match.
        pub dropped: Vec<String>,
        /// Words that were read as others.
        pub corrected: Vec<Correction>,
        /// Where the next page begins; absent on the last.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub cursor: Option<String>,
        /// Why the answer may lack something, if it may: for example an index that has to be rebuilt.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub incomplete: Option<String>,
        /// The hits, the best first.
        pub hits: Vec<Hit>,
    }

    /// The state of the search index.
    pub struct IndexStatus {
        /// `ok`, `damaged` or `outdated`.
        pub state: String,
        /// Segments that a search reads.
        pub segments: usize,
        /// Their bytes.
        pub bytes: u64,
        /// Sections that a search sees.
        pub sections: u64,
    }

    /// What this process keeps in memory.
    pub struct CacheStatus {
        /// Files mapped now.
        pub open_files: usize,
        /// Blocks of text kept unpacked.
        pub blocks: usize,
    }

    /// The result of `status`.
    pub struct Status {
        /// The database directory.
        pub path: String,
        /// Ordinary documents.
        pub documents: u64,
        /// Distinct sections of current documents.
        pub sections: u64,
        /// Skills.
        pub skills: u64,
        /// Agents.
        pub agents: u64,
        /// Bytes on disk.
        pub bytes: u64,
        /// Bytes of the sources of all current documents.
        pub source_bytes: u64,
        /// The search index.
        pub index: IndexStatus,
        /// This process's caches.
        pub cache: CacheStatus,
        /// The generation of the last commit.
        pub generation: u64,
        /// The format version of the base.
        pub format: u32,
        /// Pack files in use.
        pub packs: usize,
        /// Files that wait for their readers' grace to end.
        pub retired: usize,
        /// What is wrong, if anything: documents with unreadable front matter, damage that was met.
        pub problems: Vec<Problem>,
    }

    /// One thing that is wrong.
    pub struct Problem {
        /// A stable word, for example `checksum-mismatch`, `orphan-section`, `broken-reference`, `broken-link`.
        pub kind: String,
        /// How bad.
        pub severity: Severity,
        /// The file, relative to the database directory.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub file: Option<String>,
        /// Byte offset in that file.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub offset: Option<u64>,
        /// The section that is hit.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub kbid: Option<SectionId>,
        /// The document that is hit.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub docid: Option<DocId>,
        /// One sentence.
        pub detail: String,
    }

    /// The result of `check`.
    pub struct CheckReport {
        /// No damage, and no reference that leads nowhere inside the base.
        pub ok: bool,
        /// All that was found, damage first.
        pub problems: Vec<Problem>,
        /// The generation that was checked.
        pub generation: u64,
        /// Files read.
        pub files: usize,
        /// Bytes read.
        pub bytes: u64,
    }

    /// The result of `gc`.
    pub struct GcReport {
        /// Sections whose bytes are no longer in any current file.
        pub sections_removed: u64,
        /// Revisions dropped because newer ones fill the number kept.
        pub revisions_removed: u64,
        /// Files deleted now.
        pub files_deleted: usize,
        /// Bytes freed now.
        pub bytes_freed: u64,
        /// Files that wait for their readers' grace to end.
        pub files_waiting: usize,
        /// The generation after the commit.
        pub generation: u64,
    }

    /// The result of `rebuild`.
    pub struct RebuildReport {
        /// Documents indexed.
        pub documents: u64,
        /// Sections indexed.
        pub sections: u64,
        /// Documents that could not be read and are not in the index.
        pub problems: Vec<Problem>,
        /// The generation after the commit.
        pub generation: u64,
    }

    /// An argument of a skill.
    pub struct SkillArgument {
        /// The name between the braces.
        pub name: String,
        /// What to give.
        #[serde(default)]
        pub description: Option<String>,
        /// Whether rendering without it is an error.
        #[serde(default)]
        pub required: bool,
    }

    /// A skill as `skill-list` shows it.
    pub struct SkillSummary {
        /// The content address of the whole skill.
        pub kbid: SectionId,
        /// Its document.
        pub docid: DocId,
        /// The name.
        pub name: String,
        /// What it is for.
        pub description: String,
        /// Number of arguments, declared or found in the body.
        pub argument_count: usize,
    }

    /// The skills of a base.
    pub struct SkillList {
        /// By name.
        pub skills: Vec<SkillSummary>,
    }

    /// A skill.
    pub struct SkillInfo {
        /// The content address of the whole skill.
        pub kbid: SectionId,
        /// Its document.
        pub docid: DocId,
        /// The name.
        pub name: String,
        /// What it is for.
        pub description: String,
        /// The arguments: the declared ones in order, then placeholders that were not declared, as required ones.
        pub arguments: Vec<SkillArgument>,
        /// The text with its placeholders.
        pub body: String,
        /// What the linter says.
        pub warnings: Vec<Warning>,
        /// What became of it, where it was just learned.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub outcome: Option<Outcome>,
    }

    /// An agent as `agent-list` shows it.
    pub struct AgentSummary {
        /// Its document.
        pub docid: DocId,
        /// The name.
        pub name: String,
        /// What it is for.
        pub description: String,
        /// Number of skills, those that are gone included.
        pub skill_count: usize,
    }

    /// The agents of a base.
    pub struct AgentList {
        /// By name.
        pub agents: Vec<AgentSummary>,
    }

    /// A skill as an agent refers to it.
    pub struct AgentSkill {
        /// The skill's content address now, or the last one known.
        pub kbid: SectionId,
        /// The skill's document.
        pub docid: DocId,
        /// The skill's name; `null` where the skill is gone.
        pub name: Option<String>,
        /// What the skill is for.
        pub description: Option<String>,
    }

    /// An agent with its skills resolved.
    pub struct AgentInfo {
        /// Its document.
        pub docid: DocId,
        /// The name.
        pub name: String,
        /// What it is for.
        pub description: String,
        /// The text that makes the assistant this agent.
        pub persona: String,
        /// The skills in order.
        pub skills: Vec<AgentSkill>,
        /// What became of it, where it was just created.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub outcome: Option<Outcome>,
    }
}
