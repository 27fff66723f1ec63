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
    let found = report.format.map_or_else(|| "unknown".to_owned(), |format| format.to_string());
    let rows = [
        row("database", printable(&report.path)),
        row("kb", report.version.clone()),
        row("format", format!("{found} (this kb reads and writes up to {})", report.supported_format)),
        row("lock", lock(report)),
    ];
    write_columns(out, &rows)?;
    for finding in &report.findings {
        writeln!(out, "{:<7}  {}: {}", finding.level, finding.topic, printable(&finding.detail))?;
        if let Some(advice) = &finding.advice {
            writeln!(out, "         {}", printable(advice))?;
        }
    }
    Ok(())
}

fn lock(report: &DoctorReport) -> String {
    let lock = &report.lock;
    let (state, by) = if lock.held { ("held", " by") } else { ("free", ", last held by") };
    let Some(pid) = lock.pid else {
        return state.to_owned();
    };
    let command = lock.command.as_ref().map(|command| format!(" (`{}`)", printable(command))).unwrap_or_default();
    let since = lock.since.as_ref().map(|since| format!(" since {}", printable(since))).unwrap_or_default();
    format!("{state}{by} process {pid}{command}{since}")
}
