//! `kb rebuild`: makes every index anew.
//!
//! **Invariant:** texts are only read; a lost head is found again from the packs before anything else.

use std::io::Write;

use kb_store::{KnowledgeBase, StoreError};

use super::Context;
use crate::failure::{Exit, Failure};
use crate::output::{count, printable};

/// Make every index anew from the stored texts
///
/// Where the file `head` is lost or damaged, it is made anew too. Documents that cannot be read are named, and exit 3
/// tells of them.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

pub(crate) fn run(_args: &Args, context: &mut Context) -> Result<Exit, Failure> {
    let base = match KnowledgeBase::open(context.databases.find()?, context.databases.options()) {
        Err(StoreError::NoHead { path, .. }) => {
            context.output.note("the head is not readable; it is made anew from the packs");
            KnowledgeBase::recover(path, context.databases.options())?
        }
        opened => opened?,
    };
    let report = base.rebuild(&mut context.progress())?;
    context.output.result(&report, |out| {
        writeln!(out, "indexed {} of {}", count(report.sections, "section"), count(report.documents, "document"))
    })?;
    for problem in &report.problems {
        let docid = problem.docid.as_ref().map_or_else(String::new, |docid| format!("{docid}: "));
        context.output.error(format_args!("{docid}{}", printable(&problem.detail)));
    }
    Ok(Exit::of_batch(report.documents, report.problems.len() as u64))
}
