//! What each operation on project knowledge returns: plain structs, the very values that `kb project … --json` and the
//! MCP tools and resources print.
//!
//! **Invariant:** field names are a contract (`snake_case` in JSON). A field may be added; none is renamed or dropped.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

macro_rules! report {
    ($($(#[$meta:meta])* pub struct $name:ident { $($(#[$field_meta:meta])* pub $field:ident: $type:ty,)* })*) => {
        $($(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        pub struct $name { $($(#[$field_meta])* pub $field: $type,)* })*
    };
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "what serde calls with")]
fn is_false(value: &bool) -> bool {
    !*value
}

report! {
    /// The free-form instructions of a project.
    pub struct ProjectMain {
        /// The text of `main.md`, byte for byte; empty where there is none.
        pub content: String,
        /// Whether there is one.
        pub exists: bool,
    }

    /// What became of a write.
    pub struct ProjectDone {
        /// Always true: a write that fails is an error.
        pub success: bool,
        /// A sentence for people.
        pub message: String,
        /// The commit that holds the change; absent where nothing changed.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        pub revision: Option<String>,
    }

    /// A knowledge document that was created or renamed.
    pub struct KnowledgeFileCreated {
        /// Always true.
        pub success: bool,
        /// Its path below the folder of the project: `knowledge/<slug>.md`.
        pub filepath: String,
        /// A sentence for people.
        pub message: String,
        /// The commit that holds it.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        pub revision: Option<String>,
    }

    /// The answer to `get_knowledge_file`.
    pub struct KnowledgeFile {
        /// Always true.
        pub success: bool,
        /// The document.
        pub document: KnowledgeDocument,
    }

    /// A knowledge document.
    pub struct KnowledgeDocument {
        /// The name of its file: `<slug>.md`.
        pub filename: String,
        /// What its front matter says.
        pub metadata: KnowledgeMetadata,
        /// What stands before the first chapter.
        pub introduction: String,
        /// The chapters in order.
        pub chapters: Vec<Chapter>,
        /// The file, byte for byte.
        pub full_content: String,
        /// Where and why the front matter cannot be read.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        pub error: Option<String>,
    }

    /// The front matter of a knowledge document.
    pub struct KnowledgeMetadata {
        /// The title; without one in the front matter, the first heading of level 1, else the name of the file.
        pub title: String,
        /// The keywords.
        pub keywords: Vec<String>,
        /// When the document was created, as written.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        pub created: Option<String>,
        /// When it was last changed, as written.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        pub updated: Option<String>,
        /// All other fields, as written.
        #[serde(flatten)]
        pub other: Map<String, Value>,
    }

    /// A chapter of a knowledge document: a heading of level 2 with all below it.
    pub struct Chapter {
        /// The text of the heading.
        pub title: String,
        /// All below the heading, the summary included.
        pub content: String,
        /// Its first paragraph.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        pub summary: Option<String>,
    }

    /// The answer to `search_knowledge`.
    pub struct KnowledgeSearch {
        /// Always true.
        pub success: bool,
        /// Documents that match.
        pub total_documents: u64,
        /// Chapters that match.
        pub total_matches: u64,
        /// The best documents first.
        pub results: Vec<KnowledgeHit>,
        /// More matched than is listed.
        #[serde(skip_serializing_if = "is_false", default)]
        pub truncated: bool,
    }

    /// A document that matches.
    pub struct KnowledgeHit {
        /// The name of its file.
        pub file: String,
        /// Chapters of it that match; title, keywords and introduction are one chapter without a name.
        pub match_count: u64,
        /// What its front matter says.
        pub metadata: KnowledgeMetadata,
        /// The chapters that match, in the order of the document.
        pub matching_chapters: Vec<ChapterMatch>,
        /// Where and why the front matter cannot be read.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        pub error: Option<String>,
    }

    /// A chapter that matches.
    pub struct ChapterMatch {
        /// Its title; empty for title, keywords and introduction.
        pub chapter: String,
        /// The words of the query that stand in it.
        pub keywords_found: Vec<String>,
        /// For each of them some places, with about 50 characters on either side.
        pub match_context: std::collections::BTreeMap<String, Vec<String>>,
        /// Its first paragraph.
        pub chapter_summary: String,
    }

    /// The knowledge documents of a project.
    pub struct KnowledgeFiles {
        /// The documents, by name.
        pub files: Vec<KnowledgeFileEntry>,
        /// How many there are.
        pub count: u64,
    }

    /// A line of [`KnowledgeFiles`].
    pub struct KnowledgeFileEntry {
        /// The name of the file.
        pub filename: String,
        /// The title.
        pub title: String,
        /// The keywords.
        pub keywords: Vec<String>,
        /// When the document was created, as written.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        pub created: Option<String>,
        /// When it was last changed, as written.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        pub updated: Option<String>,
        /// Where and why the front matter cannot be read.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        pub error: Option<String>,
    }

    /// The chapters of a document.
    pub struct ChapterList {
        /// The name of the file.
        pub filename: String,
        /// The title of the document.
        pub title: String,
        /// The chapters in order.
        pub chapters: Vec<ChapterEntry>,
        /// How many there are.
        pub count: u64,
    }

    /// A line of [`ChapterList`].
    pub struct ChapterEntry {
        /// The text of the heading.
        pub title: String,
        /// The level of the heading.
        pub level: u8,
        /// The first paragraph; empty where there is none.
        pub summary: String,
    }

    /// The projects of a home.
    pub struct ProjectList {
        /// The projects, by id.
        pub projects: Vec<ProjectEntry>,
        /// How many there are.
        pub count: u64,
    }

    /// A line of [`ProjectList`].
    pub struct ProjectEntry {
        /// The id, as it was first given.
        pub project_id: String,
        /// The name of its folder.
        pub slug: String,
        /// Whether it has a `main.md`.
        pub has_main: bool,
        /// How many knowledge documents it has.
        pub files: u64,
    }

    /// The commits of a project or of one file.
    pub struct ProjectHistory {
        /// The newest first.
        pub revisions: Vec<ProjectRevision>,
        /// How many are listed.
        pub count: u64,
        /// There are older ones.
        #[serde(skip_serializing_if = "is_false", default)]
        pub truncated: bool,
    }

    /// A commit.
    pub struct ProjectRevision {
        /// Its id, in full.
        pub revision: String,
        /// When it was made, RFC 3339.
        pub date: String,
        /// Who made it.
        pub author: String,
        /// The first line of its message.
        pub message: String,
        /// What it changed, by path below the folder of the project.
        pub files: Vec<ProjectChange>,
    }

    /// A file that a commit changed.
    pub struct ProjectChange {
        /// `main.md` or `knowledge/<slug>.md`.
        pub path: String,
        /// `added`, `modified` or `deleted`.
        pub change: String,
    }

    /// Lines of the activity log.
    pub struct ActivityLog {
        /// The newest last.
        pub entries: Vec<ActivityEntry>,
        /// How many are listed.
        pub count: u64,
    }

    /// A line of the activity log. It never holds content, queries or results.
    pub struct ActivityEntry {
        /// When, RFC 3339 with milliseconds, in UTC.
        pub timestamp: String,
        /// The tool, the resource, or the command.
        pub method: String,
        /// The project, where there is one.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        pub project_id: Option<String>,
        /// The file, where there is one.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        pub filename: Option<String>,
        /// The chapter, where there is one.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        pub chapter_title: Option<String>,
        /// Whether it succeeded.
        pub success: bool,
        /// What failed; only where `success` is false.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        pub error: Option<String>,
    }
}
