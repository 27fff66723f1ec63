//! `kb project`: reads project knowledge, and goes back in its history.
//!
//! **Invariant:** a document goes, or becomes what it was, only where it was named; Git keeps what it is now.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Subcommand;
use kb_core::{KnowledgeSearch, ProjectDone, ProjectHistory};
use kb_store::ProjectStore;

use super::{Context, read_text};
use crate::database::current_directory;
use crate::failure::{Exit, Failure};
use crate::output::{Output, count, printable, write_columns};

/// Characters of a commit's id that are shown.
const SHOWN_OF_REVISION: usize = 12;

/// Read project knowledge, search it, and go back in its history
///
/// Project knowledge is Markdown in a Git repository of its own, which `kb mcp --projects` serves to agents. The project
/// is the one that `--project` names, else the repository, else the folder, that one stands in.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Id of the project; else the name of the repository or folder one stands in
    #[arg(long, short = 'p', value_name = "ID", global = true)]
    project: Option<String>,
    /// Home of project knowledge; else `KNOWLEDGE_MCP_HOME`, else `~/.knowledge-mcp`
    #[arg(long, value_name = "DIR", global = true)]
    home: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List the projects
    List,
    /// Print the instructions of a project, or replace them
    Main {
        /// Replace them by the text of this file, or of stdin with `-`
        #[arg(long, value_name = "FILE|-")]
        write: Option<PathBuf>,
    },
    /// List the documents of a project, or print one, or one chapter of it
    Show {
        /// Name of the document
        filename: Option<String>,
        /// Title of the chapter
        chapter: Option<String>,
    },
    /// Find the chapters in which words stand
    Search {
        /// Words to look for; each may match
        #[arg(required = true, value_name = "QUERY")]
        query: Vec<String>,
    },
    /// Delete a document; `restore` brings it back
    Rm {
        /// Name of the document
        filename: String,
    },
    /// List the commits of a project or of one document, the newest first
    Log {
        /// Name of the document; `main.md` names the instructions
        filename: Option<String>,
        /// How many to list
        #[arg(long, short = 'n', value_name = "N", default_value_t = 20)]
        limit: usize,
    },
    /// Make a document what it was as of a commit
    Restore {
        /// Name of the document; `main.md` names the instructions
        filename: String,
        /// Id of the commit, or a beginning that only one has
        revision: String,
    },
    /// Print the last lines of the activity log
    Activity {
        /// How many lines
        #[arg(long, short = 'n', value_name = "N", default_value_t = 20)]
        limit: usize,
    },
}

pub(crate) fn run(args: Args, context: &mut Context) -> Result<Exit, Failure> {
    let store = ProjectStore::open(context.databases.project_home(args.home)?, context.databases.options())?;
    let project = || args.project.clone().map_or_else(|| name_of(&current_directory()?), Ok);
    let out = &mut context.output;
    match args.command {
        Command::List => list(&store, out)?,
        Command::Main { write: None } => {
            let project = project()?;
            let main = store.main(&project)?;
            out.result(&main, |out| write_text(out, &main.content))?;
            if !main.exists && !out.is_json() {
                out.note(format_args!("`{}` has no instructions", printable(&project)));
            }
        }
        Command::Main { write: Some(file) } => done(&store.update_main(&project()?, &read_text(&file)?)?, out)?,
        Command::Show { filename: None, .. } => documents(&store, &project()?, out)?,
        Command::Show { filename: Some(filename), chapter: None } => {
            let file = store.file(&project()?, &filename)?;
            out.result(&file, |out| write_text(out, &file.document.full_content))?;
        }
        Command::Show { filename: Some(filename), chapter: Some(title) } => {
            let chapter = store.chapter(&project()?, &filename, &title)?;
            out.result(&chapter, |out| write_text(out, &chapter.content))?;
        }
        Command::Search { query } => {
            let found = store.search(&project()?, &query.join(" "))?;
            out.result(&found, |out| write_found(&found, out))?;
            if found.results.is_empty() && !out.is_json() {
                out.note("nothing matches");
            }
        }
        Command::Rm { filename } => done(&store.delete_file(&project()?, &filename)?, out)?,
        Command::Log { filename, limit } => {
            let history = store.history(&project()?, filename.as_deref(), limit)?;
            out.result(&history, |out| write_history(&history, out))?;
        }
        Command::Restore { filename, revision } => done(&store.restore(&project()?, &filename, &revision)?, out)?,
        Command::Activity { limit } => activity(&store, limit, out)?,
    }
    Ok(Exit::Done)
}

/// Returns the name of the repository that a folder lies in, else that of the folder.
fn name_of(folder: &Path) -> Result<String, Failure> {
    let root = folder.ancestors().find(|folder| folder.join(".git").exists()).unwrap_or(folder);
    root.file_name().map(|name| name.to_string_lossy().into_owned()).ok_or_else(|| {
        Failure::new("no-project", "the folder one stands in has no name to call a project by")
            .with_hint("`--project ID` names one")
    })
}

fn list(store: &ProjectStore, out: &mut Output) -> Result<(), Failure> {
    let list = store.projects()?;
    out.result(&list, |out| {
        let row = |project: &kb_core::ProjectEntry| {
            let main = if project.has_main { "main.md" } else { "" };
            vec![printable(&project.project_id), count(project.files, "document"), main.to_owned()]
        };
        write_columns(out, &list.projects.iter().map(row).collect::<Vec<_>>())
    })?;
    if list.projects.is_empty() && !out.is_json() {
        out.note(format_args!("no projects in `{}`", store.home().display()));
    }
    Ok(())
}

fn documents(store: &ProjectStore, project: &str, out: &mut Output) -> Result<(), Failure> {
    let list = store.files(project)?;
    out.result(&list, |out| {
        let row = |file: &kb_core::KnowledgeFileEntry| {
            vec![printable(&file.filename), printable(&file.title), printable(&file.keywords.join(", "))]
        };
        write_columns(out, &list.files.iter().map(row).collect::<Vec<_>>())
    })
}

fn activity(store: &ProjectStore, limit: usize, out: &mut Output) -> Result<(), Failure> {
    let log = store.activity(limit)?;
    out.result(&log, |out| {
        let row = |entry: &kb_core::ActivityEntry| {
            let text = |text: &Option<String>| printable(text.as_deref().unwrap_or_default());
            let outcome = if entry.success { "done".to_owned() } else { text(&entry.error) };
            let (project, file) = (text(&entry.project_id), text(&entry.filename));
            vec![entry.timestamp.clone(), printable(&entry.method), outcome, project, file, text(&entry.chapter_title)]
        };
        write_columns(out, &log.entries.iter().map(row).collect::<Vec<_>>())
    })
}

fn done(done: &ProjectDone, out: &mut Output) -> Result<(), Failure> {
    out.result(done, |out| {
        let revision = done.revision.as_deref().unwrap_or("unchanged");
        writeln!(out, "{}  {}", shown(revision), printable(&done.message))
    })
}

fn write_found(found: &KnowledgeSearch, out: &mut impl Write) -> io::Result<()> {
    for hit in &found.results {
        writeln!(out, "{}  {}", printable(&hit.file), printable(&hit.metadata.title))?;
        for chapter in &hit.matching_chapters {
            writeln!(out, "  {}: {}", printable(&chapter.chapter), printable(&chapter.chapter_summary))?;
        }
    }
    Ok(())
}

fn write_history(history: &ProjectHistory, out: &mut impl Write) -> io::Result<()> {
    for revision in &history.revisions {
        writeln!(out, "{}  {}  {}", shown(&revision.revision), revision.date, printable(&revision.message))?;
    }
    Ok(())
}

fn shown(revision: &str) -> &str {
    revision.get(..SHOWN_OF_REVISION).unwrap_or(revision)
}

fn write_text(out: &mut impl Write, text: &str) -> io::Result<()> {
    out.write_all(text.as_bytes())?;
    if text.is_empty() || text.ends_with('\n') { Ok(()) } else { writeln!(out) }
}
