//! `kb mcp`: serves the knowledge base to an agent over stdin and stdout.
//!
//! **Invariant:** stdout carries the protocol and nothing else. The database is one that was named: the working
//! directory is the host application's choice, not the user's, and is never looked at.

use std::fs::OpenOptions;
use std::io;
use std::path::PathBuf;
use std::time::SystemTime;

use kb_mcp::{Settings, serve};

use super::Context;
use crate::failure::{Exit, Failure};

/// Serve the knowledge base to an agent: an MCP server over stdin and stdout
///
/// The database is the one that `--db` or `KBDB_DIR` names, never one found from the working directory; it is made
/// where there is none and its parent folder exists. The server ends with its input.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Append one JSON line a call: time, tool, ids, outcome and milliseconds; never texts or queries
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<Exit, Failure> {
    let Some(path) = context.databases.named().map(ToOwned::to_owned) else {
        return Err(Failure::new("no-database", "`kb mcp` was not told which database to serve")
            .with_hint("give `--db DIR`, or set KBDB_DIR in the environment of the host application"));
    };
    let mut settings = Settings::new(SystemTime::now);
    settings.wait = context.databases.wait();
    if let Some(log) = &args.log {
        let file = OpenOptions::new().create(true).append(true).open(log);
        settings.activity = Some(Box::new(file.map_err(|error| Failure::io("open", log, &error))?));
    }
    let (base, is_new) = context.databases.open_to_serve(&path)?;
    if is_new {
        context.output.note(format_args!("made the database `{}`", path.display()));
    }
    // The thread that answers writes to stdout, so it must not be locked here.
    serve(base, settings, io::stdin().lock(), io::stdout())
        .map_err(|error| Failure::new("io", format_args!("cannot read the input: {error}")))?;
    Ok(Exit::Done)
}
