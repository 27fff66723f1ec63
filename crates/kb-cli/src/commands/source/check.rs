//! `kb source check`: says all that is wrong with a source, and stores nothing.
//!
//! **Invariant:** without `--online` nothing is started and nothing is connected to; with it one select and one read are all
//! that is called.

use std::io::{self, Write};

use kb_core::{MediaType, ProbedDocument, ProbedRow, SourceCheck, SourceProbe};
use kb_store::{Probe, SourceConfig, source_docid};

use super::super::Context;
use super::Which;
use super::load::{checked, machine, told, working_directory};
use crate::failure::{Exit, Failure};
use crate::output::{Output, count, printable, size};

/// Rows that are shown.
const SHOWN_ROWS: usize = 10;
/// Characters of a text that are shown.
const SHOWN_CHARS: usize = 200;

/// Check the configuration of a source, and with `--online` its server
///
/// Nothing is stored. Online the session is opened, the tools are looked up, and one selection and one read show what
/// they would become.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    which: Which,
    /// Ask the server too
    #[arg(long)]
    online: bool,
    /// Show what the server writes to its standard error
    #[arg(long, short)]
    verbose: bool,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<Exit, Failure> {
    // A file can be checked where there is no database.
    let base = context.databases.find().ok().map(|_| context.databases.open_to_read()).transpose()?;
    let given = args.which.given(base.as_ref())?;
    let (faults, online) = match checked(&given)? {
        Ok(config) if args.online => (Vec::new(), Some(probe(&config, args.verbose)?)),
        Ok(_) => (Vec::new(), None),
        Err(faults) => (faults, None),
    };
    let ok = faults.is_empty() && online.as_ref().is_none_or(|probe| probe.failures.is_empty());
    let check = SourceCheck { source: given.name, ok, faults, online };
    context.output.result(&check, |out| write_text(&check, out))?;
    Ok(match (&check.faults[..], ok) {
        ([], true) => Exit::Done,
        ([], false) => Exit::Partly,
        _ => Exit::As(2),
    })
}

fn probe(config: &SourceConfig, verbose: bool) -> Result<SourceProbe, Failure> {
    let here = working_directory()?;
    let mut probe = Probe::default();
    let fetched = kb_mcp::fetch(config, &machine(&here, verbose), &mut probe)?;
    let rows = probe.rows.iter().take(SHOWN_ROWS).map(|row| ProbedRow {
        docid: source_docid(&config.system, &row.id),
        id: row.id.clone(),
        title: row.title.clone(),
    });
    let document = probe.document.map(|document| {
        let text = String::from_utf8_lossy(&document.content);
        ProbedDocument {
            docid: source_docid(&config.system, &document.row.id),
            title: document.title.or_else(|| document.row.title.clone()).unwrap_or_else(|| document.row.id.clone()),
            bytes: document.content.len() as u64,
            media_type: document.media_type.unwrap_or_else(MediaType::markdown),
            begins: text.chars().take(SHOWN_CHARS).collect(),
            id: document.row.id,
        }
    });
    Ok(SourceProbe {
        server: fetched.server,
        protocol: fetched.protocol,
        tools: config.tools().into_iter().map(str::to_owned).collect(),
        selected: probe.rows.len(),
        rows: rows.collect(),
        document,
        failures: probe.failures,
        warnings: probe.warnings,
    })
}

fn write_text(check: &SourceCheck, out: &mut Output) -> io::Result<()> {
    for fault in &check.faults {
        writeln!(out, "fault  {}", printable(&told(fault)))?;
    }
    if check.faults.is_empty() {
        writeln!(out, "The configuration of {} is sound", check.source)?;
    }
    let Some(probe) = &check.online else { return Ok(()) };
    let tools: Vec<String> = probe.tools.iter().map(|tool| format!("`{}`", printable(tool))).collect();
    writeln!(
        out,
        "Server {}, protocol {}; a run can call {}",
        printable(&probe.server),
        probe.protocol,
        tools.join(" and ")
    )?;
    writeln!(out, "{} selected", count(probe.selected as u64, "document"))?;
    for row in &probe.rows {
        let title = row.title.as_deref().unwrap_or_default();
        writeln!(out, "  {}  {}  {}", row.docid, printable(&row.id), printable(title))?;
    }
    if probe.selected > probe.rows.len() {
        writeln!(out, "  and {} more", probe.selected - probe.rows.len())?;
    }
    if let Some(document) = &probe.document {
        let (title, bytes) = (printable(&document.title), size(document.bytes));
        writeln!(
            out,
            "{} would be {}: {title}, {bytes}, {}",
            printable(&document.id),
            document.docid,
            document.media_type
        )?;
        writeln!(out, "  {}", printable(&document.begins))?;
    }
    for failure in &probe.failures {
        let id = failure.id.as_deref().map_or_else(String::new, |id| format!("{}: ", printable(id)));
        writeln!(out, "failed  {id}{}", printable(&failure.reason))?;
    }
    for warning in &probe.warnings {
        writeln!(out, "warning  {}", printable(warning))?;
    }
    Ok(())
}
