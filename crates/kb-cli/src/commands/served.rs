//! Which stores an MCP server serves: a database that was named, the home of project knowledge, or both.
//!
//! **Invariant:** neither is found from the working directory, which is the host application's choice.

use std::path::PathBuf;

use clap::ValueEnum;
use kb_mcp::{Served, Settings};
use kb_store::{KnowledgeBase, ProjectStore};

use super::Context;
use crate::failure::Failure;

/// What is served beside a database, or in its place.
#[derive(Debug, clap::Args)]
pub(crate) struct ProjectArgs {
    /// Serve project knowledge, beside the database where one is named
    #[arg(long)]
    projects: bool,
    /// Home of project knowledge; else `KNOWLEDGE_MCP_HOME`, else `~/.knowledge-mcp`; made where there is none
    #[arg(long, value_name = "DIR", requires = "projects")]
    home: Option<PathBuf>,
    /// Tools of project knowledge
    #[arg(long, value_name = "GROUP", default_value = "core", requires = "projects")]
    tools: Tools,
}

/// A group of tools.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Tools {
    /// The seven that read, search and write
    Core,
    /// Also those that list, arrange and go back in history
    All,
}

impl ProjectArgs {
    /// Opens what is to be served; it is made where there is none.
    pub(super) fn served(&self, context: &mut Context, command: &str) -> Result<Served, Failure> {
        if !self.projects {
            return base(context, command).map(Served::from);
        }
        let mut options = context.databases.options();
        // The server looks between short waits whether the call still matters.
        options.wait = Settings::LOCK_WAIT;
        let store = ProjectStore::open(context.databases.project_home(self.home.clone())?, options)?;
        let served = match context.databases.named() {
            Some(_) => Served::from((base(context, command)?, store)),
            None => Served::from(store),
        };
        Ok(match self.tools {
            Tools::Core => served,
            Tools::All => served.with_all_project_tools(),
        })
    }
}

fn base(context: &mut Context, command: &str) -> Result<KnowledgeBase, Failure> {
    let path = named_database(context, command)?;
    let (base, is_new) = context.databases.open_to_serve(&path)?;
    if is_new {
        context.output.note(format_args!("made the database `{}`", path.display()));
    }
    Ok(base)
}

/// Returns the database that was named, for a command that serves it.
pub(super) fn named_database(context: &Context, command: &str) -> Result<PathBuf, Failure> {
    context.databases.named().map(ToOwned::to_owned).ok_or_else(|| {
        Failure::new("no-database", format_args!("`{command}` was not told which database to serve")).with_hint(
            "give `--db DIR`, or set KBDB_DIR in the environment of the host application; `--projects` serves project \
             knowledge without one",
        )
    })
}
