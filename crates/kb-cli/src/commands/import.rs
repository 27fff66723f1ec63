//! `kb import`: runs a batch of operations, one a line.
//!
//! **Invariant:** a result line is printed only once what it tells of is durable, and there is one for each input line.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use kb_store::ImportOptions;

use super::{Context, is_stdin};
use crate::failure::{Exit, Failure};
use crate::output::count;

/// Run a batch of operations, one JSON object a line
///
/// The operations: {"op": "learn", "content": …, "docid": …, "title": …, "type": …, "tags": […]} or with "path" for
/// "content"; {"op": "unlearn", "docid": …}; {"op": "skill", …}; {"op": "agent", …}. For each line a result line is
/// printed, once it is durable. A bad line is reported and the rest goes on: exit 3 tells of it.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// File of JSON lines, or `-` for stdin; a relative "path" in it begins at its folder, for stdin at the working
    /// directory
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// All lines or none
    #[arg(long)]
    atomic: bool,
    /// Say what would be done and write nothing
    #[arg(long, short = 'n')]
    dry_run: bool,
    /// Take files from anywhere
    ///
    /// Else a `path` that leads out of that folder, be it through a link, is refused: a batch may come from somebody else.
    #[arg(long)]
    allow_outside: bool,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<Exit, Failure> {
    let base = context.databases.open()?;
    let (mut input, root) = open(&args.file)?;
    let request = ImportOptions { atomic: args.atomic, dry_run: args.dry_run, root, allow_outside: args.allow_outside };
    let out = &mut context.output;
    let mut printed = Ok(());
    let report = base.import(&mut *input, &request, &mut |line| {
        // Whoever reads the results may leave: the batch goes on.
        if printed.is_ok() {
            printed = out.json_line(line).and_then(|()| Ok(out.flush()?));
        }
    })?;
    match printed {
        Err(Failure::OutputClosed) | Ok(()) => {}
        Err(failure) => return Err(failure),
    }
    let dry = if report.dry_run { " (nothing was written)" } else { "" };
    out.note(format_args!("{}: {} done, {} failed{dry}", count(report.lines, "line"), report.done, report.failed));
    Ok(if args.atomic && report.failed > 0 { Exit::Failed } else { Exit::of_batch(report.done, report.failed) })
}

/// Opens the lines, and returns where relative paths in them begin.
fn open(path: &Path) -> Result<(Box<dyn BufRead>, Option<PathBuf>), Failure> {
    if is_stdin(path) {
        let here = std::env::current_dir().map_err(|error| Failure::io("read", Path::new("."), &error))?;
        return Ok((Box::new(BufReader::new(io::stdin())), Some(here)));
    }
    if path.is_dir() {
        return Err(Failure::new(
            "not-a-file",
            format_args!("`{}` is a folder, not a file of JSON lines", path.display()),
        )
        .with_hint("`kb learn` takes folders"));
    }
    let file = File::open(path).map_err(|error| Failure::io("read", path, &error))?;
    let absolute = std::path::absolute(path).map_err(|error| Failure::io("read", path, &error))?;
    Ok((Box::new(BufReader::new(file)), absolute.parent().map(Path::to_owned)))
}
