//! The tools of project knowledge: the seven of the contract, then those that list, arrange and go back in history.
//!
//! **Invariant:** names, parameters and results are the contract's. A handler parses, calls one operation of
//! [`ProjectStore`], and gives its result as it is.

use kb_core::NewChapter;
use kb_store::{ChapterUpdate, NewKnowledge, ProjectStore};

use super::arguments::Arguments;
use super::schema::{Parameter, Shape, optional, required};
use super::{Answer, Handler, Kind, Tool};
use crate::call::ProjectCall;
use crate::failure::Failure;
use crate::reply::Report;

const PROJECT: Parameter =
    required("project_id", Shape::Text, "Name of the repository, or of the folder where there is no Git");
const FILE: Parameter = required("filename", Shape::Text, "As it was given, or as it is listed; `.md` may be left out");
const CHAPTER: Parameter = required("chapter_title", Shape::Text, "Exactly as in the document, case included");

const DONE: &[(&str, Shape)] =
    &[("success", Shape::Flag), ("message", Shape::Text), ("revision", Shape::Text), ("error", Shape::Text)];
const FILED: &[(&str, Shape)] = &[
    ("success", Shape::Flag),
    ("filepath", Shape::Text),
    ("message", Shape::Text),
    ("revision", Shape::Text),
    ("error", Shape::Text),
];

/// How many commits are listed unless more are asked for.
const COMMITS: u64 = 20;

pub(super) static GET_MAIN: Tool = Tool {
    name: "get_project_main",
    title: "Get project instructions",
    description: "Read the main instructions of a project. Call this first, before any work on it. `exists: false` \
                  means that there are none yet.",
    kind: Kind::Read,
    parameters: &[PROJECT],
    result: &[("content", Shape::Text), ("exists", Shape::Flag), ("success", Shape::Flag), ("error", Shape::Text)],
    handler: Handler::Projects(|call, arguments| read(&call.store().main(&project(arguments)?)?)),
};

pub(super) static UPDATE_MAIN: Tool = Tool {
    name: "update_project_main",
    title: "Update project instructions",
    description: "Replace the main instructions of a project as a whole; read them first. An unknown project is made.",
    kind: Kind::Replace,
    parameters: &[PROJECT, required("content", Shape::Text, "All of it, as Markdown")],
    result: DONE,
    handler: Handler::Projects(|call, arguments| {
        let (project, content) = (project(arguments)?, arguments.required_text("content")?);
        write(call, |store| store.update_main(&project, &content))
    }),
};

pub(super) static SEARCH: Tool = Tool {
    name: "search_knowledge",
    title: "Search project knowledge",
    description: "Find chapters of a project's knowledge documents that hold any of the words, the best documents \
                  first, with the places around them.",
    kind: Kind::Read,
    parameters: &[PROJECT, required("query", Shape::Text, "Words, case-insensitive")],
    result: &[
        ("success", Shape::Flag),
        ("total_documents", Shape::Count),
        ("total_matches", Shape::Count),
        ("results", Shape::Objects(&[])),
        ("truncated", Shape::Flag),
        ("error", Shape::Text),
    ],
    handler: Handler::Projects(|call, arguments| {
        read(&call.store().search(&project(arguments)?, &arguments.required_text("query")?)?)
    }),
};

pub(super) static CREATE: Tool = Tool {
    name: "create_knowledge_file",
    title: "Create a knowledge document",
    description: "Make a knowledge document with chapters. Refuses to overwrite; search first, and add to what there \
                  is. An unknown project is made.",
    kind: Kind::Add,
    parameters: &[
        PROJECT,
        required("filename", Shape::Text, "A short name; the file is named by its slug"),
        required("title", Shape::Text, ""),
        required("introduction", Shape::Text, "Two or three lines: what it is about"),
        required("keywords", Shape::Texts, "At least one"),
        required(
            "chapters",
            Shape::Objects(&[
                required("title", Shape::Text, ""),
                required(
                    "content",
                    Shape::Text,
                    "Begins with a summary of two or three lines; headings from level 3 on",
                ),
            ]),
            "In order; may be empty",
        ),
    ],
    result: FILED,
    handler: Handler::Projects(create),
};

pub(super) static UPDATE_CHAPTER: Tool = Tool {
    name: "update_chapter",
    title: "Update a chapter",
    description: "Replace the text of one chapter; all else in the document stays as it is.",
    kind: Kind::Replace,
    parameters: &[
        PROJECT,
        FILE,
        CHAPTER,
        required("new_content", Shape::Text, "All below the heading; headings from level 3 on"),
        optional("new_summary", Shape::Text, "A first paragraph, put before `new_content`"),
    ],
    result: DONE,
    handler: Handler::Projects(|call, arguments| {
        let (project, filename) = (project(arguments)?, filename(arguments)?);
        let update = ChapterUpdate {
            chapter_title: arguments.required_text("chapter_title")?,
            new_content: arguments.required_text("new_content")?,
            new_summary: arguments.text("new_summary")?,
        };
        write(call, |store| store.update_chapter(&project, &filename, &update))
    }),
};

pub(super) static GET_FILE: Tool = Tool {
    name: "get_knowledge_file",
    title: "Get a knowledge document",
    description: "Read a knowledge document: metadata, introduction, chapters, and the file as it is.",
    kind: Kind::Read,
    parameters: &[PROJECT, FILE],
    result: &[("success", Shape::Flag), ("document", Shape::Object), ("error", Shape::Text)],
    handler: Handler::Projects(|call, arguments| {
        read(&call.store().file(&project(arguments)?, &filename(arguments)?)?)
    }),
};

pub(super) static DELETE: Tool = Tool {
    name: "delete_knowledge_file",
    title: "Delete a knowledge document",
    description: "Delete a knowledge document. It stays in the history of the project.",
    kind: Kind::Remove,
    parameters: &[PROJECT, FILE],
    result: DONE,
    handler: Handler::Projects(|call, arguments| {
        let (project, filename) = (project(arguments)?, filename(arguments)?);
        write(call, |store| store.delete_file(&project, &filename))
    }),
};

pub(super) static LIST_PROJECTS: Tool = Tool {
    name: "list_projects",
    title: "List projects",
    description: "All projects, whether each has main instructions, and how many knowledge documents.",
    kind: Kind::Read,
    parameters: &[],
    result: &[
        ("projects", Shape::Objects(&[])),
        ("count", Shape::Count),
        ("success", Shape::Flag),
        ("error", Shape::Text),
    ],
    handler: Handler::Projects(|call, _| read(&call.store().projects()?)),
};

pub(super) static LIST_FILES: Tool = Tool {
    name: "list_knowledge_files",
    title: "List knowledge documents",
    description: "The knowledge documents of a project with titles and keywords.",
    kind: Kind::Read,
    parameters: &[PROJECT],
    result: &[
        ("files", Shape::Objects(&[])),
        ("count", Shape::Count),
        ("success", Shape::Flag),
        ("error", Shape::Text),
    ],
    handler: Handler::Projects(|call, arguments| read(&call.store().files(&project(arguments)?)?)),
};

pub(super) static ADD_CHAPTER: Tool = Tool {
    name: "add_chapter",
    title: "Add a chapter",
    description: "Add a chapter to a knowledge document, at the end or after another.",
    kind: Kind::Add,
    parameters: &[
        PROJECT,
        FILE,
        required("chapter_title", Shape::Text, "One that the document does not have"),
        required("content", Shape::Text, "All below the heading; headings from level 3 on"),
        optional("after", Shape::Text, "Title of the chapter that it follows"),
    ],
    result: DONE,
    handler: Handler::Projects(|call, arguments| {
        let (project, filename) = (project(arguments)?, filename(arguments)?);
        let chapter = NewChapter {
            title: arguments.required_text("chapter_title")?,
            content: arguments.required_text("content")?,
        };
        let after = arguments.text("after")?;
        write(call, |store| store.add_chapter(&project, &filename, &chapter, after.as_deref()))
    }),
};

pub(super) static REMOVE_CHAPTER: Tool = Tool {
    name: "remove_chapter",
    title: "Remove a chapter",
    description: "Remove a chapter with all below its heading. It stays in the history.",
    kind: Kind::Remove,
    parameters: &[PROJECT, FILE, CHAPTER],
    result: DONE,
    handler: Handler::Projects(|call, arguments| {
        let (project, filename) = (project(arguments)?, filename(arguments)?);
        let title = arguments.required_text("chapter_title")?;
        write(call, |store| store.remove_chapter(&project, &filename, &title))
    }),
};

pub(super) static RENAME: Tool = Tool {
    name: "rename_knowledge_file",
    title: "Rename a knowledge document",
    description: "Give the file of a knowledge document another name; its text stays. Refuses to overwrite.",
    kind: Kind::Replace,
    parameters: &[PROJECT, FILE, required("new_name", Shape::Text, "The file is named by its slug")],
    result: FILED,
    handler: Handler::Projects(|call, arguments| {
        let (project, filename) = (project(arguments)?, filename(arguments)?);
        let new_name = arguments.required_text("new_name")?;
        write(call, |store| store.rename_file(&project, &filename, &new_name))
    }),
};

pub(super) static HISTORY: Tool = Tool {
    name: "project_history",
    title: "History of a project",
    description: "The commits that changed a project or one of its files, the newest first.",
    kind: Kind::Read,
    parameters: &[
        PROJECT,
        optional("filename", Shape::Text, "`main.md` or a knowledge document"),
        optional("limit", Shape::Integer(1, 1000), "20 if left out"),
    ],
    result: &[
        ("revisions", Shape::Objects(&[])),
        ("count", Shape::Count),
        ("truncated", Shape::Flag),
        ("success", Shape::Flag),
        ("error", Shape::Text),
    ],
    handler: Handler::Projects(|call, arguments| {
        let limit = arguments.integer("limit")?.unwrap_or(COMMITS) as usize;
        read(&call.store().history(&project(arguments)?, arguments.text("filename")?.as_deref(), limit)?)
    }),
};

pub(super) static RESTORE: Tool = Tool {
    name: "restore_revision",
    title: "Restore a file",
    description: "Make `main.md` or a knowledge document what it was as of a commit, also one that was deleted. What it \
                  is now stays in the history.",
    kind: Kind::Replace,
    parameters: &[
        PROJECT,
        required("filename", Shape::Text, "`main.md` or a knowledge document"),
        required("revision", Shape::Text, "A commit that `project_history` lists"),
    ],
    result: DONE,
    handler: Handler::Projects(|call, arguments| {
        let (project, filename) = (project(arguments)?, filename(arguments)?);
        let revision = arguments.required_text("revision")?;
        write(call, |store| store.restore(&project, &filename, &revision))
    }),
};

fn create(call: &ProjectCall<'_>, arguments: &Arguments) -> Result<Answer, Failure> {
    let project = project(arguments)?;
    let chapter = |fields: &Arguments| -> Result<NewChapter, Failure> {
        Ok(NewChapter { title: fields.required_text("title")?, content: fields.required_text("content")? })
    };
    let new = NewKnowledge {
        filename: filename(arguments)?,
        title: arguments.required_text("title")?,
        introduction: arguments.required_text("introduction")?,
        keywords: arguments.texts("keywords")?,
        chapters: arguments.objects("chapters")?.iter().map(chapter).collect::<Result<_, _>>()?,
    };
    write(call, |store| store.create_file(&project, &new))
}

fn project(arguments: &Arguments) -> Result<String, Failure> {
    arguments.required_text("project_id")
}

fn filename(arguments: &Arguments) -> Result<String, Failure> {
    arguments.required_text("filename")
}

fn read(report: &impl serde::Serialize) -> Result<Answer, Failure> {
    Report::new(report).map(Answer::Report)
}

fn write<T: serde::Serialize>(
    call: &ProjectCall<'_>,
    operation: impl FnMut(&ProjectStore) -> Result<T, kb_store::ProjectError>,
) -> Result<Answer, Failure> {
    read(&call.write(operation)?)
}
