//! `kb source diff` and `kb source apply`: a proposal is looked at, and applied.
//!
//! **Invariant:** as Markdown a proposal shows titles and texts of a server as what they are: no title is markup, and no text
//! ends the block that it stands in.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use kb_core::{Proposal, SourceApplied};

use super::super::Context;
use super::run::{counts, write_plan};
use crate::failure::{Exit, Failure};
use crate::output::{Output, printable, size};

/// Show the proposal of a source: the plan, and the difference of the texts
#[derive(Debug, clap::Args)]
pub(crate) struct DiffArgs {
    /// The source
    name: String,
    /// How to print
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    format: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// The plan as a table, then the difference
    Text,
    /// A page for a review
    Md,
    /// For programs, as with `--json`
    Json,
    /// The difference alone, as `patch` reads it
    Diff,
}

/// Apply the proposal of a source, in one commit
///
/// Where none waits there is nothing to do. Fails, and applies nothing, where documents that it changes were changed since
/// it was made; they are named.
#[derive(Debug, clap::Args)]
pub(crate) struct ApplyArgs {
    /// The source
    name: String,
}

pub(super) fn diff(args: &DiffArgs, context: &mut Context) -> Result<Exit, Failure> {
    let base = context.databases.open_to_read()?;
    let proposal = base.source_proposal(&args.name)?;
    let out = &mut context.output;
    match args.format {
        Format::Json => out.json_line(&proposal)?,
        _ if out.is_json() => out.json_line(&proposal)?,
        Format::Text => write_text(&proposal, out)?,
        Format::Md => out.write_all(markdown(&proposal).as_bytes())?,
        Format::Diff => out.write_all(proposal.diff.as_bytes())?,
    }
    Ok(Exit::Done)
}

fn write_text(proposal: &Proposal, out: &mut Output) -> std::io::Result<()> {
    write_plan(&proposal.plan, out)?;
    writeln!(out, "{}, proposed {}", counts(&proposal.plan), proposal.made)?;
    if !proposal.diff.is_empty() {
        writeln!(out)?;
    }
    for line in proposal.diff.lines() {
        writeln!(out, "{}", shown(line))?;
    }
    Ok(())
}

/// Returns a line of a text without what drives a terminal; tabs stay.
fn shown(line: &str) -> String {
    line.split('\t').map(printable).collect::<Vec<_>>().join("\t")
}

pub(super) fn apply(args: &ApplyArgs, context: &mut Context) -> Result<Exit, Failure> {
    let base = context.databases.open()?;
    let applied = base.source_apply(&args.name)?;
    if applied.docids.is_empty() {
        context.output.result(&applied, |_| Ok(()))?;
        context.output.note(format_args!("`{}` has no proposal that waits: nothing to apply", args.name));
        return Ok(Exit::Done);
    }
    context.output.result(&applied, |out| writeln!(out, "{}", told(&applied)))?;
    Ok(Exit::Done)
}

fn told(applied: &SourceApplied) -> String {
    let counts = [
        (applied.added, "added"),
        (applied.modified, "modified"),
        (applied.removed, "removed"),
        (applied.linked, "linked"),
        (applied.released, "released"),
    ];
    let told: Vec<String> = counts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
    told.join(", ")
}

/// Writes the three forms of a proposal into a folder.
pub(super) fn write_files(proposal: &Proposal, dir: &Path) -> Result<(), Failure> {
    fs::create_dir_all(dir).map_err(|error| Failure::io("create", dir, &error))?;
    let json = serde_json::to_string_pretty(proposal).map_err(std::io::Error::from)? + "\n";
    let forms = [("md", markdown(proposal)), ("json", json), ("diff", proposal.diff.clone())];
    for (extension, text) in forms {
        let path: PathBuf = dir.join(format!("{}.{extension}", proposal.plan.source));
        fs::write(&path, text).map_err(|error| Failure::io("write", &path, &error))?;
    }
    Ok(())
}

/// Returns a proposal as a page.
fn markdown(proposal: &Proposal) -> String {
    let plan = &proposal.plan;
    let mut page = format!("# Proposal of {}\n\n", plan.source);
    let _ = writeln!(page, "Made {}, system {}. {}.\n", proposal.made, plan.system, counts(plan));
    if !plan.changes.is_empty() {
        page.push_str("| change | document | title | size | id |\n|---|---|---|---|---|\n");
    }
    for change in &plan.changes {
        let bytes = match change.old_bytes {
            Some(old) => format!("{} → {}", size(old), size(change.bytes)),
            None => size(change.bytes),
        };
        let title = match &change.old_title {
            Some(old) => format!("{} → {}", plain(old), plain(&change.title)),
            None => plain(&change.title),
        };
        let (what, docid, id) = (change.change.as_str(), plain(change.docid.as_str()), plain(&change.id));
        let _ = writeln!(page, "| {what} | {docid} | {title} | {bytes} | {id} |");
    }
    if !plan.failures.is_empty() {
        page.push_str("\n## Skipped\n\n");
    }
    for failure in &plan.failures {
        let id = failure.id.as_deref().map_or_else(String::new, |id| format!("{}: ", plain(id)));
        let _ = writeln!(page, "- {id}{}", plain(&failure.reason));
    }
    if let Some(reason) = &plan.kept_reason {
        let _ = writeln!(page, "\n## Gone from the source, and kept\n\nBecause {}.\n", plain(reason));
    }
    for kept in &plan.kept {
        let _ = writeln!(page, "- {}: {}", plain(kept.docid.as_str()), plain(&kept.title));
    }
    if !plan.warnings.is_empty() {
        page.push_str("\n## Warnings\n\n");
    }
    for warning in &plan.warnings {
        let _ = writeln!(page, "- {}", plain(warning));
    }
    if !proposal.diff.is_empty() {
        let fence = "`".repeat(longest_run(&proposal.diff, '`').max(2) + 1);
        let end = if proposal.diff.ends_with('\n') { "" } else { "\n" };
        let _ = writeln!(page, "\n## Difference\n\n{fence}diff\n{}{end}{fence}", proposal.diff);
    }
    page
}

/// Returns a text in which no character is markup.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for c in printable(text).chars() {
        if c.is_ascii_punctuation() && !matches!(c, '/' | '.' | ',' | ';' | ':' | '-') {
            plain.push('\\');
        }
        plain.push(c);
    }
    plain
}

fn longest_run(text: &str, wanted: char) -> usize {
    text.split(|c| c != wanted).map(str::len).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use kb_core::{Change, PlannedChange, SourcePlan};

    use super::*;

    #[test]
    fn a_page_shows_what_a_server_says_and_obeys_none_of_it() {
        let change = PlannedChange {
            change: Change::Modified,
            docid: "lab-a".parse().expect("a docid"),
            id: "a|b".to_owned(),
            title: "<img src=x> [x](y)\n# H".to_owned(),
            old_title: Some("Old".to_owned()),
            bytes: 10,
            old_bytes: Some(2048),
            url: None,
        };
        let plan = SourcePlan {
            source: "lab".to_owned(),
            system: "lab".to_owned(),
            kind: "mcp".to_owned(),
            added: 0,
            modified: 1,
            removed: 0,
            linked: 0,
            released: 0,
            unchanged: 0,
            failed: 0,
            complete: true,
            changes: vec![change],
            failures: Vec::new(),
            kept: Vec::new(),
            kept_reason: None,
            warnings: Vec::new(),
        };
        let proposal = Proposal { made: "2031-02-03T04:05:06Z".to_owned(), plan, diff: "-a\n+````\n".to_owned() };
        insta::assert_snapshot!(markdown(&proposal), @r"
        # Proposal of lab

        Made 2031-02-03T04:05:06Z, system lab. 1 modified.

        | change | document | title | size | id |
        |---|---|---|---|---|
        | modified | lab-a | Old → \<img src\=x\> \[x\]\(y\) \# H | 2.0 KiB → 10 B | a\|b |

        ## Difference

        `````diff
        -a
        +````
        `````
        ");
    }
}
