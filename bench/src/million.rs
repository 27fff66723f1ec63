//! A million sections: importing, searching and collecting them, and whether opening the base costs more for them.
//!
//! **Invariant:** the texts are made up by a fixed seed and streamed to a file; this process never holds them.

use std::fs;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::json;

use crate::Result;
use crate::generated::Generator;
use crate::kb::{Kb, folder_bytes};
use crate::table::{Bar, Row, Table, Unit, say};
use crate::usage::Usage;

const SEED: u64 = 20_261;
/// Sections of the small base that the large one is held against.
const SMALL: usize = 2_000;
/// Queries of each number of words.
const QUERIES: usize = 8;
/// Sections of a document, at most; on average half of that and a half.
const MOST_SECTIONS: usize = 28;

/// Arguments of `million`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The program `kb`, built for release
    #[arg(long)]
    kb: PathBuf,
    /// How many sections
    #[arg(long, default_value_t = 1_000_000)]
    sections: usize,
    /// Where to put the texts and the base, about 1 GB; else the system's place for temporary files
    #[arg(long)]
    work: Option<PathBuf>,
}

/// A base with what was measured on it.
struct Base {
    import: Usage,
    gc: Usage,
    status: Usage,
    searches: Vec<Usage>,
    sections: u64,
    documents: u64,
    text_bytes: u64,
    database_bytes: u64,
    index_bytes: u64,
}

/// Runs `million`.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let work = match &args.work {
        Some(folder) => tempfile::tempdir_in(folder)?,
        None => tempfile::tempdir()?,
    };
    let small = measure_base(args, work.path(), SMALL)?;
    let large = measure_base(args, work.path(), args.sections)?;
    let mut table = Table::new(
        format!(
            "{} sections in {} documents, {:.0} MB",
            large.sections,
            large.documents,
            large.text_bytes as f64 / 1e6
        ),
        format!("{} sections", small.sections),
    );
    let cpu = |usage: &Usage| vec![usage.cpu.as_secs_f64()];
    let peak = |usage: &Usage| vec![usage.peak_bytes as f64];
    let faults = |usage: &Usage| vec![usage.minor_faults as f64];
    table.push(Row::new("import, CPU", Unit::Seconds, cpu(&large.import)).beside(cpu(&small.import)));
    table.push(Row::new("import, wall", Unit::Seconds, vec![large.import.wall.as_secs_f64()]));
    table.push(
        Row::new("import, peak memory", Unit::Bytes, peak(&large.import))
            .beside(peak(&small.import))
            .bar(Bar::AtMost(400e6)),
    );
    table.push(Row::new("gc, CPU", Unit::Seconds, cpu(&large.gc)));
    table.push(Row::new("gc, peak memory", Unit::Bytes, peak(&large.gc)).bar(Bar::AtMost(400e6)));
    let all = |base: &Base, of: &dyn Fn(&Usage) -> f64| base.searches.iter().map(of).collect::<Vec<f64>>();
    let seconds = |usage: &Usage| usage.cpu.as_secs_f64();
    table.push(
        Row::new("search of 1 to 5 words, CPU", Unit::Seconds, all(&large, &seconds)).beside(all(&small, &seconds)),
    );
    let most = |base: &Base| vec![base.searches.iter().map(|usage| usage.peak_bytes).max().unwrap_or(0) as f64];
    table.push(Row::new("search, most memory", Unit::Bytes, most(&large)).beside(most(&small)).bar(Bar::AtMost(100e6)));
    let unknown = |base: &Base| base.searches.first().map(faults).unwrap_or_default();
    table.push(
        Row::new("search of an unknown word, minor faults", Unit::Count, unknown(&large))
            .beside(unknown(&small))
            .bar(Bar::Ratio(1.5)),
    );
    table.push(Row::new("status, minor faults", Unit::Count, faults(&large.status)).beside(faults(&small.status)));
    table.push(Row::new("status, CPU", Unit::Seconds, cpu(&large.status)).beside(cpu(&small.status)));
    let over = |base: &Base, bytes: u64| vec![bytes as f64 / base.text_bytes as f64];
    table.push(
        Row::new("database / text", Unit::Plain, over(&large, large.database_bytes))
            .beside(over(&small, small.database_bytes)),
    );
    table.push(
        Row::new("index / text", Unit::Plain, over(&large, large.index_bytes)).beside(over(&small, small.index_bytes)),
    );
    table.print()?;
    Ok(table.exit_code())
}

fn measure_base(args: &Args, work: &Path, sections: usize) -> Result<Base> {
    let lines = work.join("texts.jsonl");
    let (documents, text_bytes) = write_texts(&lines, sections)?;
    let kb = Kb::in_folder(&args.kb, work)?;
    kb.run(&["init"])?;
    let import = kb.run(&["--quiet", "import", &lines.to_string_lossy()])?.usage;
    fs::remove_file(&lines)?;
    say(&format!("imported {sections} sections in {:.1} s of CPU", import.cpu.as_secs_f64()))?;
    let database_bytes = folder_bytes(kb.database())?;
    let index_bytes = folder_bytes(&kb.database().join("index"))?;
    let report = kb.json(&["status", "--json"])?;
    let count = |name: &str| report[name].as_u64().ok_or_else(|| format!("status gives no `{name}`"));
    if count("documents")? != documents as u64 {
        return Err(format!("{} of {documents} documents were learned", count("documents")?).into());
    }
    let status = kb.run(&["status"])?.usage;
    let mut words = Generator::new(SEED + 1);
    let mut searches = vec![kb.run(&["search", "--mode", "all", "xylophonically"])?.usage];
    for number in 0..QUERIES * 5 {
        let query: Vec<String> = (0..=number / QUERIES).map(|_| words.word()).collect();
        let mut arguments = vec!["search", "--mode", "any"];
        arguments.extend(query.iter().map(String::as_str));
        searches.push(kb.run(&arguments)?.usage);
    }
    let gc = kb.run(&["gc"])?.usage;
    kb.run(&["check"])?;
    let sections = count("sections")?;
    Ok(Base {
        import,
        gc,
        status,
        searches,
        sections,
        documents: documents as u64,
        text_bytes,
        database_bytes,
        index_bytes,
    })
}

/// Writes documents as lines of an import; returns how many and the bytes of their texts.
fn write_texts(path: &Path, sections: usize) -> Result<(usize, u64)> {
    let mut out = BufWriter::new(fs::File::create(path)?);
    let mut generator = Generator::new(SEED);
    let (mut left, mut documents, mut bytes) = (sections, 0, 0);
    while left > 0 {
        let count = (1 + generator.below(MOST_SECTIONS)).min(left);
        let (name, text) = generator.document(count);
        writeln!(out, "{}", json!({"op": "learn", "docid": name.trim_end_matches(".md"), "content": text}))?;
        left -= count;
        documents += 1;
        bytes += text.len() as u64;
    }
    out.flush()?;
    Ok((documents, bytes))
}
