//! `kb doctor`: says what is wrong and what to do.
//!
//! **Invariant:** it works on a database that does not open, and changes nothing.

use std::io::{self, Write};

use kb_store::{DoctorReport, KnowledgeBase};

use super::Context;
use crate::failure::{Exit, Failure};
use crate::output::{Output, printable, write_columns};

/// Say what is wrong with the database and what to do
///
/// Looks at locks and who holds them, versions, the state of the index, space and known problems. Exit 1 says that
/// something has to be done.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

pub(crate) fn run(_args: &Args, context: &mut Context) -> Result<Exit, Failure> {
    let report = KnowledgeBase::doctor(context.databases.find()?, context.databases.options())?;
    context.output.result(&report, |out| write_text(&report, out))?;
    Ok(if report.ok { Exit::Done } else { Exit::Failed })
}

fn write_text(report: &DoctorReport, out: &mut Output) -> io::Result<()> {
    let row = |name: &str, value: String| vec![name.to_owned(), value];
    let version = format!("{}, reads formats up to {}", report.version, report.supported_format);
    let rows = [row("database", printable(&report.path)), row("kb", version)];
    write_columns(out, &rows)?;
    for finding in &report.findings {
        writeln!(out, "{:<7}  {}: {}", finding.level, finding.topic, printable(&finding.detail))?;
        if let Some(advice) = &finding.advice {
            writeln!(out, "         {}", printable(advice))?;
        }
    }
    Ok(())
}
