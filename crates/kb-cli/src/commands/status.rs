//! `kb status`: shows the state of the base.
//!
//! **Invariant:** it reads a constant number of pages, however large the base is.

use std::io::Write;

use kb_core::{Severity, Status};

use super::Context;
use crate::failure::{Exit, Failure};
use crate::output::{count, printable, size, write_columns};

/// Show the state of the database
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

pub(crate) fn run(_args: &Args, context: &mut Context) -> Result<Exit, Failure> {
    let status = context.databases.open_to_read()?.status()?;
    context.output.result(&status, |out| {
        let row = |name: &str, value: String| vec![name.to_owned(), value];
        let rows = [
            row("database", printable(&status.path)),
            row("documents", status.documents.to_string()),
            row("sections", sections(&status)),
            row("skills", status.skills.to_string()),
            row("agents", status.agents.to_string()),
            row("on disk", format!("{} for {} learned", size(status.bytes), size(status.source_bytes))),
            row("index", format!("{}, {}", status.index.state, size(status.index.bytes))),
            row(
                "files",
                format!(
                    "{}, {}, {} retired",
                    count(status.packs as u64, "pack"),
                    count(status.index.segments as u64, "segment"),
                    status.retired
                ),
            ),
            row("generation", status.generation.to_string()),
            row("format", status.format.to_string()),
            row("problems", status.problems.len().to_string()),
        ];
        write_columns(out, &rows)?;
        for problem in &status.problems {
            let severity = if problem.severity == Severity::Error { "error" } else { "warning" };
            let docid = problem.docid.as_ref().map_or_else(String::new, |docid| format!("{docid}: "));
            writeln!(out, "{severity}: {docid}{}", printable(&problem.detail))?;
        }
        Ok(())
    })?;
    Ok(Exit::Done)
}

/// Returns the number of sections; where a search sees fewer of them, it is said why.
fn sections(status: &Status) -> String {
    let (all, indexed) = (status.sections, status.index.sections);
    match &*status.index.state {
        "ok" if indexed < all => format!("{all} ({indexed} indexed; front matter is not)"),
        "ok" => all.to_string(),
        _ => format!("{all} ({indexed} indexed)"),
    }
}
