//! Measures kb beside its peers: indexing, learning, searching, a million sections, fetching from an MCP server, and the
//! quality of ranking.
//!
//! Every figure is taken in the same run as the peer's, the sides by turns, and printed with its ratio, the spread of
//! the ratio over the runs, and the bar that it must reach.
//!
//! **Invariant:** nothing here is taken on trust: where both sides can be asked the same question, their answers are
//! compared before anything is timed. No path of a machine stands in the code; corpora and programs are arguments.

mod documents;
mod generated;
mod index;
mod kb;
mod learn;
mod mcp;
mod million;
mod peer;
mod quality;
mod search;
mod sources;
mod table;
mod usage;

use std::error::Error;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// The result of a measurement; an error is a sentence for people.
type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Measure kb beside its peers
#[derive(Debug, Parser)]
#[command(name = "kb-bench", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Index the sections of a folder, already split, beside tantivy
    Index(index::Args),
    /// Index once and print the figures as JSON; run by `index`
    #[command(hide = true)]
    IndexSide(index::SideArgs),
    /// Learn a folder with `kb`: cold, unchanged, one file changed
    Learn(learn::Args),
    /// Walk a folder and read what is in it; run by `learn`
    #[command(hide = true)]
    Walk(learn::WalkArgs),
    /// Search with a new process for each query, beside tantivy, sqlite3 and ripgrep
    Search(search::Args),
    /// Search an index of tantivy; run by `search`
    #[command(hide = true)]
    TantivySearch(peer::SearchArgs),
    /// Ask `kb mcp` over a pipe, beside other MCP servers: start, warm searches, idling, two writers
    Mcp(mcp::Args),
    /// Import, search and collect a million made-up sections
    Million(million::Args),
    /// Fetch documents from an MCP server with `kb source`: a first run, and one without a change
    Sources(sources::Args),
    /// Measure how well collections with judgements are ranked
    Quality(quality::Args),
    /// Run a program and write what it used as JSON; run by the other commands
    #[command(hide = true)]
    Measure(usage::Args),
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Index(args) => index::run(&args),
        Command::IndexSide(args) => index::run_side(&args),
        Command::Learn(args) => learn::run(&args),
        Command::Walk(args) => learn::run_walk(&args),
        Command::Search(args) => search::run(&args),
        Command::TantivySearch(args) => peer::run_search(&args),
        Command::Mcp(args) => mcp::run(&args),
        Command::Million(args) => million::run(&args),
        Command::Sources(args) => sources::run(&args),
        Command::Quality(args) => quality::run(&args),
        Command::Measure(args) => usage::run(&args),
    };
    match outcome {
        Ok(code) => code,
        Err(error) => {
            let _ = table::complain(&format!("error: {error}"));
            ExitCode::FAILURE
        }
    }
}
