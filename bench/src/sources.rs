//! Documents from an MCP server by `kb source run`: a first run, and one without a change.
//!
//! **Invariant:** what the server uses is measured by itself and taken off, so that the figures are ours alone. The peak of
//! memory is the greatest of all processes, the server's too.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use serde_json::{Value, json};

use crate::Result;
use crate::kb::Kb;
use crate::table::{Bar, Row, Table, Unit};
use crate::usage::Usage;

/// Arguments of `sources`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The program `kb`, built for release
    #[arg(long)]
    kb: PathBuf,
    /// A server that takes `plain --n DOCUMENTS --size BYTES`: a program, or a script of Python
    #[arg(long)]
    server: PathBuf,
    /// How often everything is done
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
}

/// A number of documents of a size, and what they may cost: seconds of the first and the second run, and bytes.
struct Load {
    name: &'static str,
    documents: usize,
    bytes: usize,
    first: f64,
    again: Option<f64>,
    peak: Option<f64>,
}

const LOADS: [Load; 4] = [
    Load { name: "1,000 of 2 KB", documents: 1_000, bytes: 2_000, first: 0.5, again: Some(0.3), peak: Some(40e6) },
    Load { name: "5,000 of 2 KB", documents: 5_000, bytes: 2_000, first: 2.0, again: Some(1.0), peak: Some(60e6) },
    Load { name: "one of 10 MiB", documents: 1, bytes: 10 << 20, first: 0.25, again: None, peak: None },
    Load { name: "one of 40 MiB", documents: 1, bytes: 40 << 20, first: 1.0, again: None, peak: None },
];

/// Runs `sources`.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let mut table = Table::new(format!("kb source run, {} runs, without what the server uses", args.runs), "server");
    for load in &LOADS {
        let (mut first, mut again) = (Vec::new(), Vec::new());
        for _ in 0..args.runs {
            let kb = Kb::new(&args.kb)?;
            let source = write_source(&kb, &args.server, load)?;
            kb.run(&["init"])?;
            first.push(fetch(&kb, &source)?);
            again.push(fetch(&kb, &source)?);
            kb.run(&["check"])?;
        }
        let bar = |most: Option<f64>| most.map_or(Bar::None, Bar::AtMost);
        for (what, runs, most) in [("first", &first, Some(load.first)), ("no change", &again, load.again)] {
            let (ours, server): (Vec<f64>, Vec<f64>) =
                runs.iter().map(|fetched| (fetched.ours.as_secs_f64(), fetched.server.as_secs_f64())).unzip();
            table.push(
                Row::new(format!("{}, {what}, CPU", load.name), Unit::Seconds, ours).beside(server).bar(bar(most)),
            );
        }
        let peaks = first.iter().chain(&again).map(|fetched| fetched.whole.peak_bytes as f64).collect();
        table.push(Row::new(format!("{}, peak memory", load.name), Unit::Bytes, peaks).bar(bar(load.peak)));
    }
    table.print()?;
    Ok(table.exit_code())
}

/// What one run took.
struct Fetched {
    whole: Usage,
    ours: Duration,
    server: Duration,
}

/// Where the server's figures go, and the configuration of the source.
struct Source {
    figures: PathBuf,
    config: PathBuf,
}

fn write_source(kb: &Kb, server: &Path, load: &Load) -> Result<Source> {
    let server = server.canonicalize().map_err(|error| format!("no server `{}`: {error}", server.display()))?;
    let folder = kb.database().parent().ok_or("a database lies in a folder")?;
    let source = Source { figures: folder.join("server.json"), config: folder.join("lab.yaml") };
    let mut program = vec![server.display().to_string()];
    if server.extension().is_some_and(|extension| extension == "py") {
        program.insert(0, "python3".to_owned());
    }
    let size =
        ["plain".to_owned(), "--n".to_owned(), load.documents.to_string(), "--size".to_owned(), load.bytes.to_string()];
    let measured = ["measure".to_owned(), source.figures.display().to_string(), "--".to_owned()];
    let arguments: Vec<String> = measured.into_iter().chain(program).chain(size).collect();
    let config = json!({
        "system": "lab",
        "transport": {"kind": "stdio", "command": std::env::current_exe()?, "args": arguments},
        "select": {"tool": "search", "ids": {"list": "results", "id": "id", "title": "title"}, "complete": true},
        "read": {"tool": "read", "id_arg": "id"},
    });
    // JSON is YAML.
    fs::write(&source.config, config.to_string())?;
    Ok(source)
}

fn fetch(kb: &Kb, source: &Source) -> Result<Fetched> {
    let config = source.config.to_string_lossy();
    let whole = kb.run(&["--quiet", "source", "run", config.as_ref(), "--yes", "--json"])?.usage;
    let figures: Value = serde_json::from_str(&fs::read_to_string(&source.figures)?)?;
    fs::remove_file(&source.figures)?;
    let server = Duration::from_nanos(figures["cpu_ns"].as_u64().ok_or("the server was not measured")?);
    Ok(Fetched { whole, ours: whole.cpu.saturating_sub(server), server })
}
