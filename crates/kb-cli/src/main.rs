//! The command line of kb: arguments in, calls of the library, results out.
//!
//! **Invariant:** no rule of the knowledge base is here. A command parses what was typed, calls one operation of
//! [`kb_store::KnowledgeBase`], and prints the struct that it returns.

mod commands;
mod database;
mod failure;
mod ids;
mod lazy;
mod output;
mod progress;
#[cfg(test)]
mod reference;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::error::ErrorKind;
use clap::{Args, CommandFactory, FromArgMatches, Parser};

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
    /// How long to wait for another process that is writing, for example `0.5`; at most a day
    #[arg(long, global = true, value_name = "SECONDS", default_value = "30", value_parser = seconds)]
    wait: Duration,
    /// Print no notes, warnings or progress
    #[arg(long, short, global = true)]
    quiet: bool,
    /// When to use colour
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    color: Color,
}

fn main() -> ExitCode {
    let cli = match Cli::try_parse().or_else(|_| parse_by_whole_tree()) {
        Ok(cli) => cli,
        Err(error) => return refuse(&error),
    };
    cli.global.color.apply();
    let output = Output::new(cli.global.json, cli.global.quiet);
    let databases = Databases::new(cli.global.db, cli.global.wait);
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

/// Reads the arguments by the whole tree of commands, which knows what to say of each.
fn parse_by_whole_tree() -> Result<Cli, clap::Error> {
    Cli::from_arg_matches(&command_tree().try_get_matches()?)
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

/// Reads a number of seconds, which may have a fraction, of at most a day.
fn seconds(text: &str) -> Result<Duration, String> {
    const DAY: Duration = Duration::from_hours(24);
    let number: f64 = text.parse().map_err(|_| "not a number of seconds".to_owned())?;
    let wait = Duration::try_from_secs_f64(number).ok().filter(|wait| *wait <= DAY);
    wait.ok_or_else(|| "not between 0 and 86400 seconds".to_owned())
}

/// Returns the whole tree of commands, from which completions and manual pages are made.
fn command_tree() -> clap::Command {
    let mut command = Cli::command();
    command.build();
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_a_number_of_seconds_up_to_a_day() {
        for (text, milliseconds) in [("0", 0), ("0.5", 500), ("30", 30_000), ("86400", 86_400_000)] {
            assert_eq!(seconds(text), Ok(Duration::from_millis(milliseconds)), "{text}");
        }
        for bad in ["", "x", "-1", "86400.1", "1e300", "inf", "NaN"] {
            assert!(seconds(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_tree_of_commands_is_sound() {
        command_tree().debug_assert();
    }
}
