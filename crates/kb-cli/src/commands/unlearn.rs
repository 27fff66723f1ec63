//! `kb unlearn`: takes sections or documents away.
//!
//! **Invariant:** nothing goes that was not named exactly, unless the user said yes to the list of what would go: on
//! the terminal, or with `--yes`.

use std::io::{self, Write};

use kb_core::{DocId, SectionId, UnlearnReport};
use kb_store::{KnowledgeBase, Target, Unlearn};

use super::Context;
use crate::failure::{Exit, Failure};
use crate::ids::{self, Found};
use crate::output::{Output, count};

/// Take sections or documents away
///
/// What is unlearned cannot be read from this moment on, in older revisions too; its bytes leave the disk after the next
/// `kb gc`, with `--purge` at once. A section that several documents hold goes out of each. This cannot be undone but by
/// learning the text again.
///
/// A kbid or docid in full acts at once. The beginning of a kbid, `--tag` and `--source` show what would go and ask;
/// where there is no terminal to ask on, they need `--yes`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Kbids, beginnings of kbids (4 characters or more), or docids
    #[arg(value_name = "ID", required_unless_present_any = ["docid", "tags", "sources"])]
    ids: Vec<String>,
    /// This document; with kbids: only their occurrences in this document
    #[arg(long = "doc", value_name = "DOCID")]
    docid: Option<DocId>,
    /// Every document with this tag; may be given again
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,
    /// Every document from this source or from below it; may be given again
    #[arg(long = "source", value_name = "SOURCE")]
    sources: Vec<String>,
    /// Say what would be done and write nothing
    #[arg(long, short = 'n')]
    dry_run: bool,
    /// Remove the bytes from the disk now
    #[arg(long)]
    purge: bool,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<Exit, Failure> {
    let base = if args.dry_run { context.databases.open_to_read()? } else { context.databases.open()? };
    let (targets, exact) = targets(args, &base)?;
    let request = Unlearn { targets, dry_run: args.dry_run, purge: args.purge };
    if !exact && !args.yes && !args.dry_run {
        let expected = base.unlearn(&Unlearn { dry_run: true, ..request.clone() })?;
        let question = format!("unlearn {}?", told(&expected));
        match context.output.confirm(&question) {
            Some(true) => {}
            Some(false) => return Err(Failure::new("declined", "nothing was unlearned")),
            None => {
                return Err(Failure::new("needs-yes", format_args!("this would unlearn {}", told(&expected)))
                    .with_hint("nothing was done; `--yes` does it, `--dry-run` shows it"));
            }
        }
    }
    let report = base.unlearn(&request)?;
    context.output.result(&report, |out| write_text(&report, out))?;
    for docid in &report.dangling {
        context.output.warning(format_args!("{docid} refers to a skill that is gone"));
    }
    let dry = if report.dry_run { " (nothing was written)" } else { "" };
    context.output.note(format_args!("{}{dry}", told_after(&report)));
    if let Some(error) = &report.purge_error {
        context.output.warning(format_args!("the bytes are still on the disk: {error}; `kb gc` removes them later"));
        return Ok(Exit::Partly);
    }
    Ok(Exit::Done)
}

/// Returns what to take away, and whether each of them was named exactly.
fn targets(args: &Args, base: &KnowledgeBase) -> Result<(Vec<Target>, bool), Failure> {
    let mut targets = Vec::new();
    let mut exact = args.tags.is_empty() && args.sources.is_empty();
    for text in &args.ids {
        targets.push(match (ids::find(base, text)?, &args.docid) {
            (Found::Section { id, exact: given }, docid) => {
                exact &= given;
                match docid {
                    Some(docid) => Target::Occurrence(id, docid.clone()),
                    None => Target::Section(id),
                }
            }
            (Found::Document(id), None) => Target::Document(id),
            (Found::Document(id), Some(_)) => {
                return Err(Failure::usage(format_args!("`{id}` is a document: beside `--doc` only kbids may stand")));
            }
        });
    }
    if let (true, Some(docid)) = (args.ids.is_empty(), &args.docid) {
        targets.push(Target::Document(docid.clone()));
    }
    targets.extend(args.tags.iter().cloned().map(Target::Tag));
    targets.extend(args.sources.iter().cloned().map(Target::Source));
    Ok((targets, exact))
}

fn write_text(report: &UnlearnReport, out: &mut Output) -> io::Result<()> {
    for docid in &report.documents {
        writeln!(out, "removed  {docid}")?;
    }
    for docid in &report.edited {
        writeln!(out, "edited   {docid}")?;
    }
    write_capped(out, &report.sections, |kbid| format!("section  {kbid}"))?;
    write_capped(out, &report.shared, |kbid| format!("shared   {kbid}  (stays: other documents hold it)"))
}

/// Writes a line for each of the first sections, and how many more there are; `--json` has them all.
fn write_capped(out: &mut Output, kbids: &[SectionId], line: impl Fn(&SectionId) -> String) -> io::Result<()> {
    const SHOWN: usize = 10;
    for kbid in kbids.iter().take(SHOWN) {
        writeln!(out, "{}", line(kbid))?;
    }
    if kbids.len() > SHOWN {
        writeln!(out, "         and {} more", kbids.len() - SHOWN)?;
    }
    Ok(())
}

/// Returns what would go.
fn told(report: &UnlearnReport) -> String {
    const SHOWN: usize = 5;
    let sections = count(report.sections.len() as u64, "section");
    if report.documents.is_empty() {
        return match edited(report) {
            Some((sections, documents)) => format!("{sections} from {documents}"),
            None => sections,
        };
    }
    let documents = count(report.documents.len() as u64, "document");
    let names: Vec<String> = report.documents.iter().take(SHOWN).map(ToString::to_string).collect();
    let more = if report.documents.len() > SHOWN { ", …" } else { "" };
    format!("{documents} ({}{more}) and {sections}", names.join(", "))
}

/// Returns what went.
fn told_after(report: &UnlearnReport) -> String {
    match edited(report) {
        Some((sections, documents)) if report.documents.is_empty() => format!("{sections} unlearned from {documents}"),
        _ => format!("{} unlearned", told(report)),
    }
}

/// Returns how many sections left how many documents that are still there; those that others hold count too.
fn edited(report: &UnlearnReport) -> Option<(String, String)> {
    let sections = report.sections.len() + report.shared.len();
    let documents = report.edited.len();
    (documents > 0).then(|| (count(sections as u64, "section"), count(documents as u64, "document")))
}
