//! Learning a folder with `kb`: cold, again unchanged, and after one file was changed; and what the base then takes.
//!
//! **Invariant:** the folder is copied first, so that the one given is only read; the copy has rested before it is
//! learned, for files changed a moment ago are read again by any stat cache that is safe.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use kb_core::{MediaType, parse};

use crate::Result;
use crate::kb::{Kb, copy_folder, folder_bytes, is_there};
use crate::table::{Bar, Row, Table, Unit, say};
use crate::usage::{Usage, measure};

/// How long the copy rests.
const REST: Duration = Duration::from_secs(3);

/// Arguments of `learn`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The folder to learn
    #[arg(long)]
    corpus: PathBuf,
    /// The program `kb`, built for release
    #[arg(long)]
    kb: PathBuf,
    /// How often everything is done
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
}

/// Arguments of `walk`.
#[derive(Debug, clap::Args)]
pub(crate) struct WalkArgs {
    folder: PathBuf,
    /// What is done with each file
    #[arg(long, value_enum)]
    each: Each,
}

/// What is done with each file of a walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Each {
    /// Read and hash it
    Hash,
    /// Read and split it
    Split,
}

/// Runs `learn`.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let work = tempfile::tempdir()?;
    let folder = work.path().join("corpus");
    copy_folder(&args.corpus, &folder)?;
    let victim = middle_file(&folder)?;
    std::thread::sleep(REST);

    let (mut cold, mut again, mut changed, mut syncs) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (mut hash, mut split) = (Vec::new(), Vec::new());
    let (mut database_bytes, mut index_bytes, mut learned_bytes) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..args.runs {
        let kb = Kb::new(&args.kb)?;
        let folder_name = folder.to_string_lossy();
        let learn = ["--quiet", "learn", folder_name.as_ref()];
        kb.run(&["init"])?;
        split.push(walk(&folder, "split")?);
        cold.push(kb.run(&learn)?.usage);
        database_bytes.push(folder_bytes(kb.database())? as f64);
        index_bytes.push(folder_bytes(&kb.database().join("index"))? as f64);
        learned_bytes.push(folder_bytes(&folder)? as f64);
        hash.push(walk(&folder, "hash")?);
        again.push(kb.run(&learn)?.usage);
        append(&victim, "\nOne more line.\n")?;
        changed.push(kb.run(&learn)?.usage);
        if is_there("strace") {
            append(&victim, "\nAnd another.\n")?;
            syncs.push(count_syncs(&kb, &learn, work.path())?);
        }
        kb.run(&["check"])?;
    }
    report(&cold, &again, &changed, &syncs, &split, &hash, args.runs)?;
    let ratio = |bytes: &[f64]| bytes.iter().zip(&learned_bytes).map(|(part, whole)| part / whole).collect();
    let mut size = Table::new("Size after the cold run", "–");
    size.push(Row::new("bytes learned", Unit::Bytes, learned_bytes.clone()));
    size.push(Row::new("database / learned", Unit::Plain, ratio(&database_bytes)).bar(Bar::AtMost(0.75)));
    size.push(Row::new("index / learned", Unit::Plain, ratio(&index_bytes)).bar(Bar::AtMost(0.35)));
    size.print()?;
    Ok(size.exit_code())
}

fn report(
    cold: &[Usage],
    again: &[Usage],
    changed: &[Usage],
    syncs: &[f64],
    split: &[Usage],
    hash: &[Usage],
    runs: u32,
) -> Result<()> {
    let cpu = |usages: &[Usage]| usages.iter().map(|usage| usage.cpu.as_secs_f64()).collect::<Vec<f64>>();
    let peak = |usages: &[Usage]| usages.iter().map(|usage| usage.peak_bytes as f64).collect::<Vec<f64>>();
    let wall = |usages: &[Usage]| usages.iter().map(|usage| usage.wall.as_secs_f64()).collect::<Vec<f64>>();
    let beyond = cpu(changed).iter().zip(cpu(again)).map(|(changed, again)| changed - again).collect();
    let mut table = Table::new(format!("kb learn of a folder, {runs} runs"), "walk alone");
    table.push(
        Row::new("cold, CPU (beside read and split)", Unit::Seconds, cpu(cold))
            .beside(cpu(split))
            .bar(Bar::AtMost(10.0)),
    );
    table.push(Row::new("cold, wall", Unit::Seconds, wall(cold)).beside(wall(split)));
    table.push(Row::new("cold, peak memory", Unit::Bytes, peak(cold)).bar(Bar::AtMost(250e6)));
    table.push(
        Row::new("again, CPU (beside read and hash)", Unit::Seconds, cpu(again))
            .beside(cpu(hash))
            .bar(Bar::AtMost(0.3)),
    );
    table.push(Row::new("again, peak memory", Unit::Bytes, peak(again)));
    table.push(Row::new("one file changed, CPU beyond the walk", Unit::Seconds, beyond).bar(Bar::AtMost(0.015)));
    if syncs.is_empty() {
        say("syncs were not counted: `strace` is not there")?;
    } else {
        table.push(Row::new("one file changed, syncs", Unit::Count, syncs.to_vec()).bar(Bar::AtMost(4.0)));
    }
    table.print()
}

/// Runs `walk`: what any learning of a folder has to do at least.
pub(crate) fn run_walk(args: &WalkArgs) -> Result<ExitCode> {
    let markdown = MediaType::markdown();
    let (mut files, mut sum) = (0_u64, 0_u64);
    for entry in ignore::WalkBuilder::new(&args.folder).build() {
        let entry = entry?;
        if entry.file_type().is_some_and(|kind| kind.is_file()) {
            let bytes = fs::read(entry.path())?;
            files += 1;
            sum += match args.each {
                Each::Hash => u64::from(blake3::hash(&bytes).as_bytes()[0]),
                Each::Split => parse(&String::from_utf8_lossy(&bytes), &markdown).sections.len() as u64,
            };
        }
    }
    say(&format!("{files} {sum}"))?;
    Ok(ExitCode::SUCCESS)
}

fn walk(folder: &Path, each: &str) -> Result<Usage> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["walk", "--each", each]).arg(folder);
    let ran = measure(&command)?;
    ran.stdout("the walk")?;
    Ok(ran.usage)
}

/// Counts the system calls of one `kb` that make something durable.
fn count_syncs(kb: &Kb, arguments: &[&str], work: &Path) -> Result<f64> {
    let trace = work.join("syncs");
    let traced = kb.command(arguments);
    let mut command = Command::new("strace");
    command.args(["-f", "-e", "trace=fsync,fdatasync,sync_file_range,syncfs,sync,msync", "-o"]).arg(&trace);
    command.arg(traced.get_program()).args(traced.get_args()).env_clear();
    command.envs(traced.get_envs().filter_map(|(name, value)| value.map(|value| (name, value))));
    if let Some(dir) = traced.get_current_dir() {
        command.current_dir(dir);
    }
    let output = command.output()?;
    if !output.status.success() {
        return Err(format!("under strace: {}", String::from_utf8_lossy(&output.stderr).trim()).into());
    }
    let calls = fs::read_to_string(&trace)?;
    Ok(calls.lines().filter(|line| line.contains("sync") && line.contains('(')).count() as f64)
}

fn append(file: &Path, text: &str) -> Result<()> {
    Ok(fs::OpenOptions::new().append(true).open(file)?.write_all(text.as_bytes())?)
}

/// Returns a Markdown file of a common size: the one in the middle.
fn middle_file(folder: &Path) -> Result<PathBuf> {
    let mut files = Vec::new();
    for entry in ignore::WalkBuilder::new(folder).build() {
        let entry = entry?;
        if entry.path().extension().is_some_and(|end| end == "md") {
            files.push((entry.metadata()?.len(), entry.into_path()));
        }
    }
    files.sort_unstable();
    let middle = files.len() / 2;
    files.into_iter().nth(middle).map(|(_, path)| path).ok_or_else(|| "the folder has no Markdown file".into())
}
