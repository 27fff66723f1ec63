//! `kb learn`: takes files, folders or stdin into the base.
//!
//! **Invariant:** a source is only read, never written; one that cannot be taken costs that source alone, is named, and
//! shows in the exit code.

use std::io::{self, Write};
use std::path::PathBuf;

use kb_core::{DocId, LearnReport, LearnedDocument, MediaType, Outcome, Warning};
use kb_store::{KnowledgeBase, LearnPaths, Text};

use super::{Context, is_stdin, read_input};
use crate::failure::{Exit, Failure};
use crate::output::{Output, count, placed, printable};

/// Learn files, folders or stdin
///
/// A folder is walked by the rules of its `.gitignore` and `.kbignore` files. Learning a source again makes the next
/// revision of the same document; where nothing changed, nothing is written.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "flags of a command line are independent of each other")]
pub(crate) struct Args {
    /// Files and folders, or `-` for stdin
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Media type of all of them: `markdown`, `text`, `html`, `toml`, or for example `image/png`; else by file name
    #[arg(long = "type", value_name = "TYPE")]
    media_type: Option<MediaType>,
    /// Title of the document; else the text's own
    #[arg(long)]
    title: Option<String>,
    /// Description of the document; else the text's own
    #[arg(long)]
    description: Option<String>,
    /// Name of the document; else the one it has, else made from the path or the title
    #[arg(long)]
    docid: Option<DocId>,
    /// Tag beside those in the text; may be given again
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,
    /// Unlearn documents that came from these folders and whose file is gone
    #[arg(long)]
    prune: bool,
    /// Prune even where most documents of a folder would go
    #[arg(long)]
    prune_all: bool,
    /// Say what would be done and write nothing
    #[arg(long, short = 'n')]
    dry_run: bool,
    /// Restore what was unlearned from unchanged sources, and write damaged texts anew
    #[arg(long)]
    again: bool,
    /// Where the text from stdin comes from, as the base shall name it
    #[arg(long)]
    source: Option<String>,
}

pub(crate) fn run(args: Args, context: &mut Context) -> Result<Exit, Failure> {
    let stdin = args.paths.iter().any(|path| is_stdin(path));
    if stdin && args.paths.len() > 1 {
        return Err(Failure::usage("`-` stands alone: stdin cannot be learned together with other paths"));
    }
    if stdin && (args.prune || args.prune_all) {
        return Err(Failure::usage("`--prune` is about folders, and stdin is none"));
    }
    if !stdin && args.source.is_some() {
        return Err(Failure::usage("`--source` is for stdin; a file is its own source"));
    }
    if !stdin {
        refuse_single_flags(&args)?;
        refuse_pipes(&args.paths)?;
    }
    let base = context.databases.open()?;
    let report = if stdin { learn_stdin(args, &base)? } else { learn_paths(args, &base, context)? };
    context.output.result(&report, |out| write_text(&report, out))?;
    tell(&report, &mut context.output);
    Ok(Exit::of_batch((report.documents.len() - report.failed) as u64, report.failed as u64))
}

/// Refuses flags that describe one document where there are several.
fn refuse_single_flags(args: &Args) -> Result<(), Failure> {
    let flags = [
        ("--title", args.title.is_some()),
        ("--description", args.description.is_some()),
        ("--docid", args.docid.is_some()),
    ];
    let Some((flag, _)) = flags.iter().find(|(_, given)| *given) else {
        return Ok(());
    };
    match &*args.paths {
        [path] if path.is_dir() => {
            Err(Failure::usage(format_args!("`{flag}` goes with one file, and `{}` is a folder", path.display())))
        }
        [_] => Ok(()),
        paths => Err(Failure::usage(format_args!("`{flag}` goes with one file, and {} paths were given", paths.len()))),
    }
}

/// Refuses what can be read only once, such as `<(command)` of a shell: the next learn could not find it again.
fn refuse_pipes(paths: &[PathBuf]) -> Result<(), Failure> {
    let is_odd = |path: &&PathBuf| path.metadata().is_ok_and(|found| !found.is_file() && !found.is_dir());
    match paths.iter().find(is_odd) {
        None => Ok(()),
        Some(path) => {
            Err(Failure::new("not-a-file", format_args!("`{}` is neither a file nor a folder", path.display()))
                .with_hint("`kb learn -` reads a pipe: `command | kb learn - --docid NAME`"))
        }
    }
}

fn learn_stdin(args: Args, base: &KnowledgeBase) -> Result<LearnReport, Failure> {
    let text = Text {
        content: read_input(&args.paths[0])?,
        media_type: args.media_type,
        title: args.title,
        description: args.description,
        docid: args.docid,
        tags: args.tags,
        source: args.source,
        again: args.again,
    };
    Ok(if args.dry_run { base.learn_dry(&text)? } else { base.learn(&text)? })
}

fn learn_paths(args: Args, base: &KnowledgeBase, context: &Context) -> Result<LearnReport, Failure> {
    let (paths, missing): (Vec<_>, Vec<_>) = args.paths.into_iter().partition(|path| path.symlink_metadata().is_ok());
    if let ([], Some(first)) = (&*paths, missing.first()) {
        return Err(Failure::new("no-such-file", format_args!("there is no file or folder `{}`", first.display())));
    }
    let request = LearnPaths {
        media_type: args.media_type,
        title: args.title,
        description: args.description,
        docid: args.docid,
        tags: args.tags,
        prune: args.prune || args.prune_all,
        prune_all: args.prune_all,
        dry_run: args.dry_run,
        again: args.again,
    };
    let mut report = base.learn_paths(&paths, &request, &mut context.progress())?;
    if report.documents.is_empty() && missing.is_empty() {
        let named = paths.iter().map(|path| format!("`{}`", path.display())).collect::<Vec<_>>().join(", ");
        return Err(Failure::new("nothing-to-learn", format_args!("no file to learn in {named}"))
            .with_hint("a folder's ignored files, images and files of unknown kind are left out: name a file itself, or give `--type`"));
    }
    report.failed += missing.len();
    report.documents.extend(missing.into_iter().map(|path| LearnedDocument {
        docid: None,
        source: Some(path.display().to_string()),
        outcome: Outcome::Failed,
        kbids: Vec::new(),
        warnings: vec![Warning {
            code: "no-such-file".to_owned(),
            message: "there is no such file or folder".to_owned(),
            line: None,
            column: None,
        }],
    }));
    Ok(report)
}

fn write_text(report: &LearnReport, out: &mut Output) -> io::Result<()> {
    for document in &report.documents {
        if matches!(document.outcome, Outcome::Unchanged | Outcome::Failed) {
            continue;
        }
        let docid = document.docid.as_ref().map_or_else(String::new, DocId::to_string);
        let sections = count(document.kbids.len() as u64, "section");
        match document.outcome {
            Outcome::Removed => writeln!(out, "{:<9}  {docid}", document.outcome)?,
            _ => writeln!(out, "{:<9}  {docid}  {sections}", document.outcome)?,
        }
    }
    Ok(())
}

/// Says on stderr what should be looked at, and sums up.
fn tell(report: &LearnReport, output: &mut Output) {
    for document in &report.documents {
        let name = document.source.clone().or_else(|| document.docid.as_ref().map(DocId::to_string));
        let name = name.unwrap_or_else(|| "-".to_owned());
        let failed = document.outcome == Outcome::Failed;
        if failed && document.warnings.is_empty() {
            output.error(format_args!("{}: not learned", printable(&name)));
        }
        for warning in &document.warnings {
            if failed {
                output.error(placed(warning, &name));
            } else {
                output.warning(placed(warning, &name));
            }
        }
    }
    let parts = [
        (report.added, "added"),
        (report.updated, "updated"),
        (report.unchanged, "unchanged"),
        (report.removed, "removed"),
        (report.failed, "failed"),
    ];
    let told: Vec<String> =
        parts.iter().filter(|(number, _)| *number > 0).map(|(number, word)| format!("{number} {word}")).collect();
    let dry = if report.dry_run { " (nothing was written)" } else { "" };
    output.note(format_args!("{}{dry}", told.join(", ")));
}
