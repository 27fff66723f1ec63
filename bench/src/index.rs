//! Indexing the sections of a folder, already split: CPU time, memory and size beside tantivy's.
//!
//! Each side runs in a process of its own, which reads and splits the folder first and then takes the time of
//! indexing alone; the sides take turns.
//!
//! **Invariant:** all sides index the same sections; reading, splitting, hashing and packing are no part of the time
//! that is compared.

use std::collections::HashSet;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use kb_search::{Analyzer, Language, SegmentBuilder};
use serde_json::{Value, json};

use crate::documents::{Document, read_folder, section_count, text_bytes};
use crate::table::{Bar, Row, Table, Unit, say};
use crate::{Result, peer, usage};

/// Text that the store packs at once, and how hard.
const BLOCK_BYTES: usize = 64 << 10;
const COMPRESSION: i32 = 6;

/// Arguments of `index`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The folder whose Markdown files are indexed
    #[arg(long)]
    corpus: PathBuf,
    /// How often each side runs
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// The most that kb's CPU time may be of tantivy's
    #[arg(long, default_value_t = 0.5)]
    bar: f64,
}

/// Arguments of `index-side`.
#[derive(Debug, clap::Args)]
pub(crate) struct SideArgs {
    #[arg(long)]
    corpus: PathBuf,
    /// Who indexes
    #[arg(long, value_enum)]
    side: Side,
    /// An empty folder for the index
    #[arg(long)]
    out: PathBuf,
}

/// Who indexes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Side {
    /// kb
    Kb,
    /// tantivy, all fields
    Tantivy,
    /// tantivy, the body alone
    TantivyBody,
}

impl Side {
    const fn name(self) -> &'static str {
        match self {
            Self::Kb => "kb",
            Self::Tantivy => "tantivy",
            Self::TantivyBody => "tantivy-body",
        }
    }
}

/// The figures of one run of one side.
#[derive(Debug, Clone)]
struct Figures(Value);

impl Figures {
    fn get(&self, name: &str) -> Result<f64> {
        self.0[name].as_f64().ok_or_else(|| format!("no figure `{name}` in {}", self.0).into())
    }
}

/// Runs `index`.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let sides = [Side::Kb, Side::Tantivy, Side::TantivyBody];
    let mut taken: Vec<[Figures; 3]> = Vec::new();
    for _ in 0..args.runs {
        let [kb, all, body] = sides.map(|side| take(args, side));
        taken.push([kb?, all?, body?]);
    }
    let of = |side: usize, name: &str| -> Result<Vec<f64>> { taken.iter().map(|run| run[side].get(name)).collect() };
    let first = &taken[0][0];
    say(&format!(
        "{} documents, {} sections, {:.1} MB of text; {} runs of each side",
        first.get("documents")?,
        first.get("sections")?,
        first.get("text_bytes")? / 1e6,
        args.runs
    ))?;
    for name in ["documents", "sections", "text_bytes"] {
        let same = |run: &[Figures; 3]| run.iter().all(|side| side.0[name] == first.0[name]);
        if !taken.iter().all(same) {
            return Err(format!("the sides did not index the same: `{name}` differs").into());
        }
    }

    let mut table = Table::new("Indexing sections that are already split, one thread", "tantivy");
    let cpu = of(0, "indexing")?;
    table.push(Row::new("CPU", Unit::Seconds, cpu.clone()).beside(of(1, "indexing")?).bar(Bar::Ratio(args.bar)));
    table.push(Row::new("… beside body alone", Unit::Seconds, cpu.clone()).beside(of(2, "indexing")?));
    let packed: Vec<f64> = cpu.iter().zip(of(0, "packing")?).map(|(indexing, packing)| indexing + packing).collect();
    table.push(Row::new("… analysis and postings in memory", Unit::Seconds, of(0, "adding")?));
    table.push(Row::new("… with packing of the text", Unit::Seconds, packed).beside(of(1, "indexing")?));
    let memory = of(0, "memory_bytes")?;
    table.push(
        Row::new("memory beyond the texts", Unit::Bytes, memory).beside(of(1, "memory_bytes")?).bar(Bar::Ratio(1.2)),
    );
    let index_over_text = |side| -> Result<Vec<f64>> {
        Ok(of(side, "index_bytes")?.iter().zip(of(side, "text_bytes")?).map(|(index, text)| index / text).collect())
    };
    let (ours, theirs) = (index_over_text(0)?, index_over_text(1)?);
    table.push(Row::new("index / text", Unit::Plain, ours).beside(theirs).bar(Bar::AtMost(0.35)));
    table.push(
        Row::new("stored text / text", Unit::Plain, over_text(&of(0, "packed_bytes")?, first)?)
            .beside(over_text(&of(1, "stored_bytes")?, first)?),
    );
    table.print()?;

    let mut apart = Table::new("What comes before, in the same runs (no peer)", "–");
    for name in ["reading", "splitting", "hashing", "packing"] {
        apart.push(Row::new(name, Unit::Seconds, of(0, name)?));
    }
    apart.print()?;
    Ok(table.exit_code())
}

fn over_text(bytes: &[f64], first: &Figures) -> Result<Vec<f64>> {
    let text = first.get("text_bytes")?;
    Ok(bytes.iter().map(|bytes| bytes / text).collect())
}

fn take(args: &Args, side: Side) -> Result<Figures> {
    let out = tempfile::tempdir()?;
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["index-side", "--side", side.name(), "--corpus"]).arg(&args.corpus).arg("--out").arg(out.path());
    let output = command.output()?;
    if !output.status.success() {
        return Err(format!("{}: {}", side.name(), String::from_utf8_lossy(&output.stderr).trim()).into());
    }
    Ok(Figures(serde_json::from_slice(&output.stdout)?))
}

/// Runs `index-side`.
pub(crate) fn run_side(args: &SideArgs) -> Result<ExitCode> {
    let (documents, preparation) = read_folder(&args.corpus)?;
    let mut figures = json!({
        "documents": documents.len(),
        "sections": section_count(&documents),
        "text_bytes": text_bytes(&documents),
        "reading": preparation.reading.as_secs_f64(),
        "splitting": preparation.splitting.as_secs_f64(),
        "hashing": preparation.hashing.as_secs_f64(),
    });
    usage::reset_peak()?;
    let resident = usage::resident_bytes()?;
    let begun = usage::cpu()?;
    match args.side {
        Side::Kb => {
            figures["adding"] = json!(index_with_kb(&documents, &args.out)?.saturating_sub(begun).as_secs_f64());
        }
        Side::Tantivy => peer::build(&args.out, &documents, peer::Fields::All)?,
        Side::TantivyBody => peer::build(&args.out, &documents, peer::Fields::Body)?,
    }
    figures["indexing"] = json!(usage::cpu()?.saturating_sub(begun).as_secs_f64());
    figures["memory_bytes"] = json!(usage::peak_bytes()?.saturating_sub(resident));
    let (index_bytes, stored_bytes) = sizes(&args.out)?;
    figures["index_bytes"] = json!(index_bytes);
    figures["stored_bytes"] = json!(stored_bytes);
    if args.side == Side::Kb {
        let (packing, packed_bytes) = pack(&documents)?;
        figures["packing"] = json!(packing.as_secs_f64());
        figures["packed_bytes"] = json!(packed_bytes);
    }
    say(&figures.to_string())?;
    Ok(ExitCode::SUCCESS)
}

/// Indexes documents into one segment file; returns the CPU time at which all were added and none was written.
fn index_with_kb(documents: &[Document], folder: &Path) -> Result<Duration> {
    let mut builder = SegmentBuilder::new(Analyzer::new(Language::English));
    for document in documents {
        document.with_input(|input| builder.add(input))?;
    }
    let added = usage::cpu()?;
    let mut out = BufWriter::new(File::create(folder.join("segment"))?);
    builder.finish(&mut out)?;
    out.flush()?;
    Ok(added)
}

/// Returns the bytes of the index proper and of the stored texts, which tantivy keeps in `.store` files.
fn sizes(folder: &Path) -> Result<(u64, u64)> {
    let (mut index, mut stored) = (0, 0);
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let bytes = entry.metadata()?.len();
        let is_store = entry.path().extension().is_some_and(|end| end == "store");
        *(if is_store { &mut stored } else { &mut index }) += bytes;
    }
    Ok((index, stored))
}

/// Compresses each distinct section once, in blocks as the store does, and returns the CPU time and the bytes.
fn pack(documents: &[Document]) -> Result<(Duration, u64)> {
    let begun = usage::cpu()?;
    let mut compressor = zstd::bulk::Compressor::new(COMPRESSION)?;
    let mut seen = HashSet::new();
    let mut block = Vec::with_capacity(BLOCK_BYTES);
    let mut bytes = 0;
    for document in documents {
        for section in &document.sections {
            if !seen.insert(section.kbid) {
                continue;
            }
            let text = document.text_of(section).as_bytes();
            if !block.is_empty() && block.len() + text.len() > BLOCK_BYTES {
                bytes += compressor.compress(&block)?.len() as u64;
                block.clear();
            }
            block.extend_from_slice(text);
        }
    }
    bytes += compressor.compress(&block)?.len() as u64;
    Ok((usage::cpu()?.saturating_sub(begun), bytes))
}
