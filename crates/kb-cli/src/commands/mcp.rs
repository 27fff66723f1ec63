//! `kb mcp`: serves the knowledge base to an agent over stdin and stdout.
//!
//! **Invariant:** while it serves, stdout carries the protocol and nothing else. The database is one that was named: the
//! working directory is the host application's choice, not the user's, and is never looked at.

mod install;
mod selftest;

use std::fs::OpenOptions;
use std::io;
use std::path::PathBuf;
use std::time::SystemTime;

use kb_mcp::{Settings, serve};

use super::Context;
use super::served::ProjectArgs;
use crate::failure::{Exit, Failure};

/// Serve the knowledge base to an agent: an MCP server over stdin and stdout
///
/// The database is the one that `--db` or `KBDB_DIR` names, never one found from the working directory; it is made
/// where there is none and its parent folder exists. With `--projects` project knowledge is served, beside a database
/// where one is named. The server ends with its input.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    /// Append one JSON line a call: time, tool, ids, outcome and milliseconds; never texts or queries
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Start the server as a client would, on a database made for it, and report what works
    #[arg(long, conflicts_with = "log")]
    selftest: bool,
    #[command(flatten)]
    projects: ProjectArgs,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Install(install::Args),
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<Exit, Failure> {
    if let Some(Command::Install(args)) = &args.command {
        return install::run(args, context);
    }
    if args.selftest {
        return selftest::run(context);
    }
    let mut settings = Settings::new(SystemTime::now);
    settings.wait = context.databases.wait();
    if let Some(log) = &args.log {
        let file = OpenOptions::new().create(true).append(true).open(log);
        settings.activity = Some(Box::new(file.map_err(|error| Failure::io("open", log, &error))?));
    }
    let served = args.projects.served(context, "kb mcp")?;
    serve(served, settings, io::stdin().lock(), io::stdout())
        .map_err(|error| Failure::new("io", format_args!("cannot read the input: {error}")))?;
    Ok(Exit::Done)
}
