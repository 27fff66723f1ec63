//! `kb gc`: collects what nothing refers to.
//!
//! **Invariant:** what a current document or a kept revision refers to stays.

use std::io::Write;

use kb_store::Gc;

use super::Context;
use crate::failure::{Exit, Failure};
use crate::output::{count, size};

/// Remove what nothing refers to any more
///
/// Texts of current documents and of kept revisions stay. Files that a reader may still use wait for ten minutes.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Revisions to keep of each document, this once; else the database's setting
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    history: Option<u32>,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<Exit, Failure> {
    let base = context.databases.open()?;
    let report = base.gc(&Gc { history: args.history }, &mut context.progress())?;
    context.output.result(&report, |out| {
        writeln!(
            out,
            "removed {} and {}; freed {} in {}",
            count(report.sections_removed, "section"),
            count(report.revisions_removed, "revision"),
            size(report.bytes_freed),
            count(report.files_deleted as u64, "file")
        )?;
        if report.files_waiting > 0 {
            writeln!(out, "{} waiting for readers", count(report.files_waiting as u64, "file"))?;
        }
        Ok(())
    })?;
    Ok(Exit::Done)
}
