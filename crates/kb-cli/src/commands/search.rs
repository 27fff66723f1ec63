//! `kb search`: finds sections.
//!
//! **Invariant:** any words are a query; no hit is an empty result and no failure.

mod folder;

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;

use clap::ValueEnum;
use kb_core::{DateBound, Hit, Mode, SearchReport, Stage};
use kb_store::{KnowledgeBase, Search};

use super::Context;
use crate::failure::{Exit, Failure};
use crate::output::{Output, printable, printable_path, shortened};

/// How many characters of a kbid are shown; a beginning of this length is hardly ever ambiguous.
const SHOWN_OF_KBID: usize = 8;

/// Find sections
///
/// Words, "phrases", -not, +must, prefix*, and the filters title: tag: doc: type: source: make a query; any other text
/// is a query too. Quote it, or put `--` before a query that begins with a hyphen.
///
/// With `--from` a folder is searched with no set-up: its index is kept in the user's cache folder and brought up to
/// date first.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Words to look for
    #[arg(required = true, value_name = "QUERY", allow_negative_numbers = true)]
    query: Vec<OsString>,
    /// How many hits to show, 1 to 100
    #[arg(long, short = 'n', value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u8).range(1..=100))]
    limit: u8,
    /// How to read the words: `auto`, `all`, `any`, `phrase`, `prefix` or `fuzzy`
    #[arg(long, default_value_t = Mode::Auto)]
    mode: Mode,
    /// Only documents with this tag (`ops/*`: any tag below); may be given again, then each is needed
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,
    /// Only this document (`guide/*`: any that begins so); may be given again
    #[arg(long = "doc", value_name = "DOCID")]
    docids: Vec<String>,
    /// Only this type: a media type, a short name, `skill` or `agent`; may be given again
    #[arg(long = "type", value_name = "TYPE")]
    types: Vec<String>,
    /// Only documents from this source or from below it: a path, or the name of a source or system of `kb source`; may be
    /// given again
    #[arg(long = "source", value_name = "SOURCE")]
    sources: Vec<String>,
    /// Only documents of this date or later: `2031-03-01` or RFC 3339
    #[arg(long, value_name = "DATE")]
    since: Option<DateBound>,
    /// Only documents of this date or earlier
    #[arg(long, value_name = "DATE")]
    until: Option<DateBound>,
    /// Go on where an earlier answer ended
    #[arg(long)]
    cursor: Option<String>,
    /// Count every match; else a total above 1,000 may be a lower bound
    #[arg(long)]
    count: bool,
    /// How to print
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    format: Format,
    /// Search this folder instead of a database
    #[arg(long, value_name = "DIR", conflicts_with = "db")]
    from: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people
    Text,
    /// The whole answer as one value, as with `--json`
    Json,
    /// One hit a line
    Jsonl,
    /// The path of each hit's file
    Paths,
    /// `path:line:column:text`, as editors read it
    Vimgrep,
}

pub(crate) fn run(args: Args, context: &mut Context) -> Result<Exit, Failure> {
    let format = if context.output.is_json() && args.format == Format::Text { Format::Json } else { args.format };
    let request = Search {
        query: query_text(&args.query),
        mode: args.mode,
        limit: usize::from(args.limit),
        tags: args.tags,
        types: args.types,
        sources: args.sources,
        docids: args.docids,
        since: args.since.map(|bound| bound.to_string()),
        until: args.until.map(|bound| bound.to_string()),
        cursor: args.cursor,
        count: args.count,
        check_sources: true,
        scan_bytes: Search::SCAN_BYTES,
    };
    let (base, report) = if let Some(folder) = &args.from {
        folder::search(folder, &request, context)?
    } else {
        let base = context.databases.open_to_read()?;
        let report = base.search(&request)?;
        (base, report)
    };
    let out = &mut context.output;
    match format {
        Format::Text => write_text(&report, out)?,
        Format::Json => out.json_line(&report)?,
        Format::Jsonl => report.hits.iter().try_for_each(|hit| out.json_line(hit))?,
        Format::Paths => write_paths(&report, &Paths::new(&base)?, out)?,
        Format::Vimgrep => write_vimgrep(&report, &Paths::new(&base)?, out)?,
    }
    if format != Format::Json {
        if report.hits.is_empty() && report.query.trim().is_empty() {
            out.note("the query is empty, so nothing was looked for");
        } else if report.hits.is_empty() {
            out.note(format_args!("nothing matches `{}`", shortened(&report.query)));
        }
        if let Some(reason) = &report.incomplete {
            out.warning(format_args!("the answer may lack something: {}", printable(reason)));
        }
    }
    Ok(Exit::Done)
}

/// Returns the words as one query. What is not UTF-8 stands as a replacement character, which no word has: the other
/// words are looked for all the same.
fn query_text(words: &[OsString]) -> String {
    words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

fn write_text(report: &SearchReport, out: &mut Output) -> io::Result<()> {
    if report.hits.is_empty() {
        return Ok(());
    }
    if !report.dropped.is_empty() {
        let words = report.dropped.iter().map(|word| format!("`{}`", shortened(word))).collect::<Vec<_>>();
        writeln!(out, "No section has all the words; left out: {}", words.join(", "))?;
    }
    for correction in &report.corrected {
        let words = correction.to.iter().map(|word| format!("`{}`", shortened(word))).collect::<Vec<_>>();
        writeln!(out, "`{}` was read as {}", shortened(&correction.from), words.join(", "))?;
    }
    if report.stage == Stage::Any {
        writeln!(out, "No section has most of the words; these have at least one")?;
    }
    for hit in &report.hits {
        write_hit(hit, out)?;
    }
    let about = if report.total_is_exact { "" } else { "at least " };
    let shown = report.hits.len();
    writeln!(out, "{shown} of {about}{} shown, verdict: {}", report.total, report.verdict)?;
    if let Some(cursor) = &report.cursor {
        writeln!(out, "The next page: --cursor {cursor}")?;
    }
    Ok(())
}

fn write_hit(hit: &Hit, out: &mut Output) -> io::Result<()> {
    let heading = out.bold(&title_line(hit));
    writeln!(out, "{heading}")?;
    let kbid = &hit.kbid.to_string()[..SHOWN_OF_KBID];
    let stale = hit.stale.as_ref().map_or_else(String::new, |stale| format!("  source {}", printable(stale)));
    let place = out.dim(&format!("{}:{}  {kbid}  confidence {:.2}{stale}", hit.docid, hit.line, hit.confidence));
    writeln!(out, "  {place}")?;
    let snippet = out.highlighted(&hit.snippet, &hit.highlights);
    writeln!(out, "  {snippet}")?;
    if !hit.more.is_empty() {
        let more: Vec<String> = hit
            .more
            .iter()
            .map(|other| format!("{} (line {})", printable(other.heading_path.last().map_or("", |t| t)), other.line))
            .collect();
        writeln!(out, "  more: {}", more.join(", "))?;
    }
    if !hit.also_in.is_empty() {
        let documents: Vec<String> = hit.also_in.iter().map(ToString::to_string).collect();
        writeln!(out, "  also in: {}", documents.join(", "))?;
    }
    writeln!(out)
}

/// Returns title and heading path; a first heading that is the title is not said twice.
fn title_line(hit: &Hit) -> String {
    let headings = match hit.heading_path.split_first() {
        Some((first, rest)) if *first == hit.title => rest,
        _ => &hit.heading_path[..],
    };
    let parts: Vec<String> = std::iter::once(&hit.title).chain(headings).map(|text| printable(text)).collect();
    parts.join(" › ")
}

/// Turns what the base calls a source into a path that can be opened from the working directory.
#[derive(Debug)]
struct Paths {
    /// Relative sources begin at the folder that holds the database.
    root: PathBuf,
    here: PathBuf,
}

impl Paths {
    fn new(base: &KnowledgeBase) -> Result<Self, Failure> {
        let failed = |error| Failure::io("find", base.path(), &error);
        let database = std::path::absolute(base.path()).map_err(failed)?;
        let root = database.parent().unwrap_or(&database).to_owned();
        Ok(Self { root, here: std::env::current_dir().map_err(failed)? })
    }

    /// Returns the file of a hit; the source as the base has it where that is no file, else the document's name.
    fn of(&self, hit: &Hit) -> String {
        let Some(source) = &hit.source else {
            return hit.docid.to_string();
        };
        let path = self.root.join(source);
        if !path.exists() {
            return source.clone();
        }
        path.strip_prefix(&self.here).unwrap_or(&path).display().to_string()
    }
}

fn write_paths(report: &SearchReport, paths: &Paths, out: &mut Output) -> io::Result<()> {
    report.hits.iter().try_for_each(|hit| writeln!(out, "{}", printable_path(&paths.of(hit))))
}

fn write_vimgrep(report: &SearchReport, paths: &Paths, out: &mut Output) -> io::Result<()> {
    report.hits.iter().try_for_each(|hit| {
        writeln!(out, "{}:{}:1:{}", printable_path(&paths.of(hit)), hit.line, printable(&hit.snippet))
    })
}
