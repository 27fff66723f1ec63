//! One module a command: its arguments, what it calls, how it prints for people.
//!
//! **Invariant:** commands share nothing but the [`Context`] and the modules beside this one.

mod agent;
mod check;
mod completions;
mod content;
mod doctor;
mod export;
mod gc;
mod history;
mod import;
mod init;
mod learn;
mod list;
mod man;
mod mcp;
mod project;
mod rebuild;
mod retrieve;
mod search;
mod serve;
mod served;
mod skill;
mod source;
mod status;
mod unlearn;

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use clap::Subcommand;

use crate::database::Databases;
use crate::failure::{Exit, Failure};
use crate::lazy::Lazy;
use crate::output::Output;
use crate::progress::ProgressLine;

/// What every command is given.
#[derive(Debug)]
pub(crate) struct Context {
    /// Where the database is.
    pub(crate) databases: Databases,
    /// Where results go.
    pub(crate) output: Output,
}

impl Context {
    /// Returns a line on the terminal for an operation that may take long.
    pub(crate) fn progress(&self) -> ProgressLine {
        ProgressLine::new(self.output.is_quiet())
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Init(Lazy<init::Args>),
    Learn(Lazy<learn::Args>),
    Unlearn(Lazy<unlearn::Args>),
    Search(Lazy<search::Args>),
    Retrieve(Lazy<retrieve::Args>),
    Content(Lazy<content::Args>),
    List(Lazy<list::Args>),
    History(Lazy<history::Args>),
    Status(Lazy<status::Args>),
    Check(Lazy<check::Args>),
    Gc(Lazy<gc::Args>),
    Rebuild(Lazy<rebuild::Args>),
    Doctor(Lazy<doctor::Args>),
    Skill(Lazy<skill::Args>),
    Agent(Lazy<agent::Args>),
    Project(Lazy<project::Args>),
    Source(Lazy<source::Args>),
    Import(Lazy<import::Args>),
    Export(Lazy<export::Args>),
    Completions(Lazy<completions::Args>),
    Man(Lazy<man::Args>),
    Mcp(Lazy<mcp::Args>),
    Serve(Lazy<serve::Args>),
}

/// Runs a command.
pub(crate) fn run(command: Command, context: &mut Context) -> Result<Exit, Failure> {
    match command {
        Command::Init(Lazy(args)) => init::run(&args, context),
        Command::Learn(Lazy(args)) => learn::run(args, context),
        Command::Unlearn(Lazy(args)) => unlearn::run(&args, context),
        Command::Search(Lazy(args)) => search::run(args, context),
        Command::Retrieve(Lazy(args)) => retrieve::run(&args, context),
        Command::Content(Lazy(args)) => content::run(&args, context),
        Command::List(Lazy(args)) => list::run(args, context),
        Command::History(Lazy(args)) => history::run(&args, context),
        Command::Status(Lazy(args)) => status::run(&args, context),
        Command::Check(Lazy(args)) => check::run(&args, context),
        Command::Gc(Lazy(args)) => gc::run(&args, context),
        Command::Rebuild(Lazy(args)) => rebuild::run(&args, context),
        Command::Doctor(Lazy(args)) => doctor::run(&args, context),
        Command::Skill(Lazy(args)) => skill::run(args, context),
        Command::Agent(Lazy(args)) => agent::run(args, context),
        Command::Project(Lazy(args)) => project::run(args, context),
        Command::Source(Lazy(args)) => source::run(args, context),
        Command::Import(Lazy(args)) => import::run(&args, context),
        Command::Export(Lazy(args)) => export::run(&args, context),
        Command::Completions(Lazy(args)) => completions::run(&args, context),
        Command::Man(Lazy(args)) => man::run(&args, context),
        Command::Mcp(Lazy(args)) => mcp::run(&args, context),
        Command::Serve(Lazy(args)) => serve::run(&args, context),
    }
}

/// Says whether a path stands for stdin: `-`, or the name that Unix has for it.
fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-" || cfg!(unix) && path.as_os_str() == "/dev/stdin"
}

/// Reads a file, or stdin for `-`.
fn read_input(path: &Path) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let read = if is_stdin(path) {
        io::stdin().lock().read_to_end(&mut bytes)
    } else {
        File::open(path).and_then(|mut file| file.read_to_end(&mut bytes))
    };
    read.map_err(|error| Failure::io("read", named(path), &error))?;
    Ok(bytes)
}

/// Returns the path as messages name it.
fn named(path: &Path) -> &Path {
    if is_stdin(path) { Path::new("stdin") } else { path }
}

/// Reads a file, or stdin for `-`, that has to be UTF-8.
fn read_text(path: &Path) -> Result<String, Failure> {
    String::from_utf8(read_input(path)?).map_err(|error| {
        kb_store::StoreError::NotUtf8 {
            name: named(path).display().to_string(),
            offset: error.utf8_error().valid_up_to(),
        }
        .into()
    })
}
