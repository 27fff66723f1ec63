//! `kb source run`: fetches, compares, and proposes or applies.
//!
//! **Invariant:** the exit code tells what came of it: 0 done or nothing to do, 1 failed, 2 a fault of the configuration, 3
//! done but incomplete.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use kb_core::{Change, SourceFailure, SourcePlan, SourceRun};
use kb_mcp::FetchError;
use kb_store::{Gather, GatheredDocument, Observer, PlanOptions, Progress, SelectedRow};
use serde_json::json;

use super::super::Context;
use super::load::{config, machine, working_directory};
use super::{Which, proposal};
use crate::failure::{Exit, Failure};
use crate::output::{Output, count, printable, size, write_columns};
use crate::progress::ProgressLine;

/// Fetch what a source has, and propose what that changes
///
/// What was fetched is compared with what was last applied. The difference waits for `kb source apply`, and replaces an
/// earlier proposal; `--yes` applies it at once. A run without a difference writes nothing.
///
/// Exit codes: 0 done or nothing to do, 1 failed, 2 a fault of the configuration, 3 done but incomplete.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    which: Which,
    /// Apply the difference at once
    #[arg(long, short)]
    yes: bool,
    /// Remove documents even where more than half would go
    #[arg(long)]
    remove_most: bool,
    /// Write the proposal into this folder too, as NAME.md, NAME.json and NAME.diff
    #[arg(long, value_name = "DIR", conflicts_with = "yes")]
    out: Option<PathBuf>,
    /// Show what the server writes to its standard error
    #[arg(long, short)]
    verbose: bool,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<Exit, Failure> {
    let base = context.databases.open()?;
    let given = args.which.given(Some(&base))?;
    let config = config(&given, &mut context.output)?;
    let here = working_directory()?;
    let machine = machine(&here, args.verbose);
    let gathering = base.source_gathering(&given.name, &config)?;
    let mut progress = context.progress();
    let fetch = |gather: &mut dyn Gather| {
        kb_mcp::fetch(&config, &machine, &mut Shown { gather, progress: &mut progress, done: 0, total: 0 }).map(drop)
    };
    let options = PlanOptions { remove_most: args.remove_most };
    let outcome: Result<SourceRun, FetchError> =
        if args.yes { gathering.apply(options, fetch) } else { gathering.propose(options, fetch) };
    drop(progress);
    let note = context.databases.run_note(base.path(), &given.name);
    let run = match outcome {
        Ok(run) => run,
        Err(error) => {
            // The time of the failure is not known to the base: it was not asked.
            keep_note(note.as_deref(), None, "failed");
            return Err(error.into());
        }
    };
    drop(gathering);
    keep_note(note.as_deref(), Some(&run.at), &run.outcome);
    for failure in &run.plan.failures {
        context.output.warning(told(failure));
    }
    for warning in &run.plan.warnings {
        context.output.warning(printable(warning));
    }
    if let Some(dir) = &args.out
        && run.outcome == "proposed"
    {
        proposal::write_files(&base.source_proposal(&given.name)?, dir)?;
    }
    context.output.result(&run, |out| write_plan(&run.plan, out))?;
    if let Some(reason) = &run.plan.kept_reason {
        let kept = count(run.plan.kept.len() as u64, "document");
        context.output.note(format_args!("{kept} gone from the source stay: {reason}"));
    }
    context.output.note(summary(&run, &given.name));
    Ok(match run.outcome.as_str() {
        "failed" => {
            let failed = count(run.plan.failed as u64, "document");
            context
                .output
                .error(format_args!("ReadsFailed: {failed} selected and none could be read; nothing was changed"));
            Exit::Failed
        }
        _ if !run.plan.complete => Exit::Partly,
        _ => Exit::Done,
    })
}

/// Passes on what is gathered, and shows how far it is.
struct Shown<'g> {
    gather: &'g mut dyn Gather,
    progress: &'g mut ProgressLine,
    done: u64,
    total: u64,
}

impl Shown<'_> {
    fn step(&mut self) {
        self.done += 1;
        let _ = self.progress.progress(&Progress { phase: "reading", done: self.done, total: Some(self.total) });
    }
}

impl Gather for Shown<'_> {
    fn wants(&mut self, place: usize, row: &SelectedRow) -> bool {
        let is_wanted = self.gather.wants(place, row);
        self.total += u64::from(is_wanted);
        is_wanted
    }

    fn document(&mut self, place: usize, document: GatheredDocument) {
        self.gather.document(place, document);
        self.step();
    }

    fn failure(&mut self, place: Option<usize>, failure: SourceFailure) {
        self.gather.failure(place, failure);
        if place.is_some() {
            self.step();
        }
    }

    fn warning(&mut self, warning: String) {
        self.gather.warning(warning);
    }

    fn cut_off(&mut self, reason: String) {
        self.gather.cut_off(reason);
    }
}

fn told(failure: &SourceFailure) -> String {
    match &failure.id {
        Some(id) => format!("{}: {}", printable(id), printable(&failure.reason)),
        None => printable(&failure.reason),
    }
}

/// Writes a plan as a table.
pub(super) fn write_plan(plan: &SourcePlan, out: &mut Output) -> io::Result<()> {
    let mut rows = Vec::new();
    for change in &plan.changes {
        let bytes = match change.old_bytes {
            Some(old) if old != change.bytes => format!("{} → {}", size(old), size(change.bytes)),
            _ => size(change.bytes),
        };
        let title = match &change.old_title {
            Some(old) if change.change == Change::Modified => {
                format!("{} → {}", printable(old), printable(&change.title))
            }
            _ => printable(&change.title),
        };
        rows.push(vec![change.change.as_str().to_owned(), change.docid.to_string(), bytes, title]);
    }
    for kept in &plan.kept {
        rows.push(vec!["kept".to_owned(), kept.docid.to_string(), String::new(), printable(&kept.title)]);
    }
    write_columns(out, &rows)
}

/// Returns the counts that are not zero.
pub(super) fn counts(plan: &SourcePlan) -> String {
    let counts = [
        (plan.added, "added"),
        (plan.modified, "modified"),
        (plan.removed, "removed"),
        (plan.linked, "linked"),
        (plan.released, "released"),
        (plan.unchanged, "unchanged"),
        (plan.failed, "failed"),
    ];
    let told: Vec<String> = counts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
    if told.is_empty() { "nothing selected".to_owned() } else { told.join(", ") }
}

fn summary(run: &SourceRun, name: &str) -> String {
    let counts = counts(&run.plan);
    match run.outcome.as_str() {
        "proposed" => format!(
            "{counts}: proposed, nothing is changed yet; `kb source diff {name}` shows it, `kb source apply {name}` applies it"
        ),
        "applied" => format!("{counts}: applied"),
        "unchanged" => format!("{counts}: no change"),
        _ => counts,
    }
}

/// Notes when a source was last run; where there is no folder for that, it is not noted.
fn keep_note(path: Option<&Path>, at: Option<&str>, outcome: &str) {
    let Some(path) = path else { return };
    let at = at.map(str::to_owned).or_else(now);
    let write = || -> io::Result<()> {
        fs::create_dir_all(path.parent().unwrap_or(path))?;
        fs::File::create(path)?.write_all(json!({"at": at, "outcome": outcome}).to_string().as_bytes())
    };
    // It is a convenience, and no reason for a run to fail.
    let _ = write();
}

fn now() -> Option<String> {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).ok()?;
    kb_core::Timestamp::new(since.as_secs() as i64, 0).map(|time| time.to_string())
}

/// Returns when a source was last run here, and what came of it.
pub(super) fn last_run(path: Option<&Path>) -> (Option<String>, Option<String>) {
    let note: Option<serde_json::Value> =
        path.and_then(|path| fs::read(path).ok()).and_then(|bytes| serde_json::from_slice(&bytes).ok());
    let text = |key: &str| note.as_ref().and_then(|note| note[key].as_str()).map(str::to_owned);
    (text("at"), text("outcome"))
}
