//! `kb check`: verifies every byte and every reference.
//!
//! **Invariant:** damage is exit 1; a broken link in a text is a warning and no failure.

use std::io::{self, Write};

use kb_core::{CheckReport, Problem, Severity};
use kb_store::KnowledgeBase;

use super::Context;
use crate::failure::{Exit, Failure};
use crate::output::{Output, count, printable, size};

/// Verify every byte and every reference
///
/// Exit 1 says that something is damaged, or that a reference leads nowhere inside the base. Broken links in texts are
/// warnings.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

pub(crate) fn run(_args: &Args, context: &mut Context) -> Result<Exit, Failure> {
    let databases = &context.databases;
    let report = KnowledgeBase::check_at(databases.find()?, databases.options(), &mut context.progress())?;
    context.output.result(&report, |out| write_text(&report, out))?;
    Ok(if report.ok { Exit::Done } else { Exit::Failed })
}

fn write_text(report: &CheckReport, out: &mut Output) -> io::Result<()> {
    for problem in &report.problems {
        writeln!(out, "{}", line(problem))?;
    }
    let errors = report.problems.iter().filter(|problem| problem.severity == Severity::Error).count();
    let warnings = report.problems.len() - errors;
    let verdict = if report.ok { "ok" } else { "not ok" };
    writeln!(
        out,
        "{verdict}: {}, {}; {} in {} verified",
        count(errors as u64, "error"),
        count(warnings as u64, "warning"),
        size(report.bytes),
        count(report.files as u64, "file")
    )
}

fn line(problem: &Problem) -> String {
    let mut words = vec![format!("{} {}", problem.severity, printable(&problem.kind))];
    match (&problem.file, problem.offset) {
        (Some(file), Some(offset)) => words.push(format!("{}@{offset}", printable(file))),
        (Some(file), None) => words.push(printable(file)),
        _ => {}
    }
    words.extend(problem.docid.as_ref().map(ToString::to_string));
    words.extend(problem.kbid.map(|kbid| kbid.to_string()));
    format!("{}: {}", words.join("  "), printable(&problem.detail))
}
