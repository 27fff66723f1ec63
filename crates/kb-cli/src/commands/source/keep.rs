//! `kb source add`, `list`, `status` and `remove`: the sources that a base keeps.
//!
//! **Invariant:** what is kept was checked. Removing a source leaves its documents, unless they are to go with it.

use std::io::{self, Write};

use kb_core::{SourceInfo, SourceSummary};
use kb_store::{KnowledgeBase, RemoveSource};

use super::super::Context;
use super::Which;
use super::load::config;
use super::run::last_run;
use crate::failure::{Exit, Failure};
use crate::output::{Output, count, printable, size, write_columns};

/// Keep a source in the base, so that it can be run by its name
///
/// The configuration is checked first. A source of the same name is replaced; what it has brought stays known.
#[derive(Debug, clap::Args)]
pub(crate) struct AddArgs {
    #[command(flatten)]
    which: Which,
}

/// List the sources, with their last run and the proposal that waits
#[derive(Debug, clap::Args)]
pub(crate) struct ListArgs {}

/// Show a source: its configuration, its state, and the documents it reaches
#[derive(Debug, clap::Args)]
pub(crate) struct StatusArgs {
    /// The source
    name: String,
}

/// Remove a source; its documents stay unless they are to go too
#[derive(Debug, clap::Args)]
pub(crate) struct RemoveArgs {
    /// The source
    name: String,
    /// Remove the documents too that no other source reaches
    #[arg(long)]
    with_documents: bool,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
}

pub(super) fn add(args: &AddArgs, context: &mut Context) -> Result<Exit, Failure> {
    let base = context.databases.open()?;
    let given = args.which.given(Some(&base))?;
    let config = config(&given, &mut context.output)?;
    let summary = base.source_add(&given.name, &given.value, &config)?;
    context.output.result(&summary, |out| writeln!(out, "added {} (system {})", summary.name, summary.system))?;
    context.output.note(format_args!("`kb source run {}` fetches what it has", summary.name));
    Ok(Exit::Done)
}

/// Adds what only this machine knows.
fn with_last_run(mut summary: SourceSummary, base: &KnowledgeBase, context: &Context) -> SourceSummary {
    let note = context.databases.run_note(base.path(), &summary.name);
    (summary.last_run, summary.last_outcome) = last_run(note.as_deref());
    summary
}

pub(super) fn list(_: &ListArgs, context: &mut Context) -> Result<Exit, Failure> {
    let base = context.databases.open_to_read()?;
    let mut list = base.source_list()?;
    list.sources = list.sources.into_iter().map(|source| with_last_run(source, &base, context)).collect();
    context.output.result(&list, |out| {
        let rows: Vec<Vec<String>> = list.sources.iter().map(row).collect();
        write_columns(out, &rows)
    })?;
    if list.sources.is_empty() {
        context.output.note("there are no sources; `kb source add FILE` keeps one");
    }
    Ok(Exit::Done)
}

fn row(source: &SourceSummary) -> Vec<String> {
    let last = match (&source.last_run, &source.last_outcome) {
        (Some(at), Some(outcome)) => format!("run {at}: {outcome}"),
        _ => "not run here".to_owned(),
    };
    let pending = source.pending.as_ref().map_or_else(String::new, |pending| {
        format!("proposal: {} added, {} modified, {} removed", pending.added, pending.modified, pending.removed)
    });
    let documents = count(source.documents as u64, "document");
    vec![source.name.clone(), source.kind.clone(), source.system.clone(), documents, last, pending]
}

pub(super) fn status(args: &StatusArgs, context: &mut Context) -> Result<Exit, Failure> {
    let base = context.databases.open_to_read()?;
    let mut info = base.source_info(&args.name)?;
    info.summary = with_last_run(info.summary, &base, context);
    context.output.result(&info, |out| write_status(&info, out))?;
    Ok(Exit::Done)
}

fn write_status(info: &SourceInfo, out: &mut Output) -> io::Result<()> {
    let source = &info.summary;
    writeln!(out, "{}", row(source).into_iter().filter(|cell| !cell.is_empty()).collect::<Vec<_>>().join("  "))?;
    writeln!(out, "last applied: {}", source.applied.as_deref().unwrap_or("never"))?;
    match &info.config {
        Some(config) => {
            let text = serde_json::to_string_pretty(config).map_err(io::Error::from)?;
            writeln!(out, "configuration:")?;
            text.lines().try_for_each(|line| writeln!(out, "  {}", printable(line)))?;
        }
        None => writeln!(out, "configuration: not kept here; it was run from a file")?,
    }
    let rows: Vec<Vec<String>> = info
        .reaches
        .iter()
        .map(|document| vec![document.docid.to_string(), size(document.bytes), printable(&document.title)])
        .collect();
    write_columns(out, &rows)
}

pub(super) fn remove(args: &RemoveArgs, context: &mut Context) -> Result<Exit, Failure> {
    let base = context.databases.open()?;
    if args.with_documents && !args.yes {
        let info = base.source_info(&args.name)?;
        let documents = count(info.reaches.len() as u64, "document");
        let question = format!("remove {} and the {documents} it reaches, as far as no other source does?", args.name);
        match context.output.confirm(&question) {
            Some(true) => {}
            Some(false) => return Err(Failure::new("declined", "nothing was removed")),
            None => {
                let told = format!("this would remove `{}` with up to {documents}", args.name);
                return Err(Failure::new("needs-yes", told).with_hint("nothing was done; `--yes` does it"));
            }
        }
    }
    let removed = base.source_remove(&args.name, RemoveSource { with_documents: args.with_documents })?;
    context.output.result(&removed, |out| {
        for docid in &removed.removed {
            writeln!(out, "removed  {docid}")?;
        }
        let stay = count(removed.kept as u64, "document");
        writeln!(
            out,
            "removed the source {}; {stay} that it brought {} in the base",
            removed.source,
            if removed.kept == 1 { "stays" } else { "stay" }
        )
    })?;
    Ok(Exit::Done)
}
