//! The command line of kb: arguments in, calls of the library, results out.
//!
//! **Invariant:** no rule of the knowledge base is here. A command parses what was typed, calls one operation of
//! [`kb_store::KnowledgeBase`], and prints the struct that it returns.

mod commands;
mod database;
mod failure;
mod ids;
mod output;
mod progress;
#[cfg(test)]
mod reference;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::error::ErrorKind;
use clap::{Args, CommandFactory, Parser};

use crate::commands::{Command, Context};
use crate::database::Databases;
use crate::failure::{Failure, Message};
use crate::output::{Color, Output};

/// A knowledge base in a folder: learn Markdown, keep it safe, find it again
///
/// The database is the one that `--db` or the environment variable `KBDB_DIR` names, else the nearest `.kbdb` in the
/// working directory or above it.
///
/// Results go to stdout, everything else to stderr. Exit codes: 0 done, 1 the request failed, 2 wrong usage, 3 done in
/// part. A search without a hit is done.
#[derive(Debug, Parser)]
#[command(name = "kb", version, max_term_width = 100)]
struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Global options")]
struct Global {
    /// Directory of the database; else `KBDB_DIR`, else the nearest `.kbdb` upwards
    #[arg(long, global = true, value_name = "DIR")]
    db: Option<PathBuf>,
    /// Print the result as JSON; a failure is `{"error": …}` on the last line
    #[arg(long, global = true)]
    json: bool,
    /// How long to wait for another process that is writing
    #[arg(long, global = true, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(..=86_400))]
    wait: u64,
    /// Print no notes, warnings or progress
    #[arg(long, short, global = true)]
    quiet: bool,
    /// When to use colour
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    color: Color,
}

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return refuse(&error),
    };
    cli.global.color.apply();
    let output = Output::new(cli.global.json, cli.global.quiet);
    let databases = Databases::new(cli.global.db, Duration::from_secs(cli.global.wait));
    let mut context = Context { databases, output };
    let outcome = commands::run(cli.command, &mut context).and_then(|exit| context.output.finish(exit));
    match outcome {
        Ok(exit) => ExitCode::from(exit.code()),
        Err(Failure::OutputClosed) => ExitCode::SUCCESS,
        Err(Failure::Message(message)) => {
            context.output.failure(&message);
            ExitCode::from(message.exit)
        }
    }
}

/// Prints help, or says what is wrong with the arguments; with `--json` among them also as an object.
fn refuse(error: &clap::Error) -> ExitCode {
    // A closed pipe is success, and there is nowhere else to say that help cannot be printed.
    let _ = error.print();
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        return ExitCode::SUCCESS;
    }
    let before_operands = std::env::args_os().skip(1).take_while(|word| word != "--");
    if before_operands.into_iter().any(|word: OsString| word == "--json") {
        // What is wrong stands before the first empty line; the usage follows.
        let text = error.render().to_string();
        let first = text.lines().take_while(|line| !line.is_empty()).map(str::trim).collect::<Vec<_>>().join(" ");
        let message = Message {
            code: "usage",
            sentence: first.strip_prefix("error: ").unwrap_or(&first).to_owned(),
            hint: Some("`kb help` shows the usage".to_owned()),
            near: Vec::new(),
            exit: 2,
        };
        Output::new(true, true).json_failure(&message);
    }
    ExitCode::from(2)
}

/// Returns the whole tree of commands, from which completions and manual pages are made.
fn command_tree() -> clap::Command {
    let mut command = Cli::command();
    command.build();
    command
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_tree_of_commands_is_sound() {
        super::command_tree().debug_assert();
    }
}
