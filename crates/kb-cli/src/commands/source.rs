//! `kb source`: documents from other MCP servers.
//!
//! **Invariant:** a source that is named by a path or by `--set` is run and never kept, unless it is added. No value of the
//! environment and nothing that was refused is ever printed.

mod check;
mod keep;
mod load;
mod proposal;
mod run;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Subcommand;

use super::Context;
use crate::failure::{Exit, Failure};

/// Bring in documents from other MCP servers
///
/// A source is a block of YAML that names a server, the tool that says which documents there are, and the tool that
/// reads one. `run` compares what the server has with what was last applied and proposes the difference; `apply`
/// applies it. docs/sources.md begins at the beginning.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: SourceCommand,
}

#[derive(Debug, Subcommand)]
enum SourceCommand {
    Add(keep::AddArgs),
    List(keep::ListArgs),
    Check(check::Args),
    Run(run::Args),
    Diff(proposal::DiffArgs),
    Apply(proposal::ApplyArgs),
    Status(keep::StatusArgs),
    Remove(keep::RemoveArgs),
    #[command(hide = true)]
    Supervise(SuperviseArgs),
}

/// Run a program until it ends or the process that wants it does
#[derive(Debug, clap::Args)]
struct SuperviseArgs {
    parent: u32,
    program: OsString,
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

/// Which source is meant.
#[derive(Debug, clap::Args)]
struct Which {
    /// The name of a source that was added, or a YAML file
    #[arg(value_name = "SOURCE")]
    source: Option<OsString>,
    /// Set one top-level key of the configuration, over or instead of a file
    #[arg(long = "set", value_name = "KEY=YAML")]
    settings: Vec<String>,
    /// The name of the source; else that of the file without its extension
    #[arg(long)]
    name: Option<String>,
}

pub(crate) fn run(args: Args, context: &mut Context) -> Result<Exit, Failure> {
    match args.command {
        SourceCommand::Add(args) => keep::add(&args, context),
        SourceCommand::List(args) => keep::list(&args, context),
        SourceCommand::Check(args) => check::run(&args, context),
        SourceCommand::Run(args) => run::run(&args, context),
        SourceCommand::Diff(args) => proposal::diff(&args, context),
        SourceCommand::Apply(args) => proposal::apply(&args, context),
        SourceCommand::Status(args) => keep::status(&args, context),
        SourceCommand::Remove(args) => keep::remove(&args, context),
        SourceCommand::Supervise(args) => supervise(&args),
    }
}

#[cfg(unix)]
fn supervise(args: &SuperviseArgs) -> Result<Exit, Failure> {
    let status = kb_mcp::supervise(args.parent, &args.program, &args.arguments)
        .map_err(|error| Failure::io("run", &PathBuf::from(&args.program), &error))?;
    Ok(Exit::As(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(255)))
}

#[cfg(not(unix))]
fn supervise(args: &SuperviseArgs) -> Result<Exit, Failure> {
    let _ = (&args.parent, &args.arguments);
    Err(Failure::usage(format_args!("`{}` is not watched on this system", PathBuf::from(&args.program).display())))
}
