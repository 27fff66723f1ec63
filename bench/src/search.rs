//! Searching with a new process for each query: CPU time and memory of `kb` beside tantivy, `sqlite3` and `rg`.
//!
//! **Invariant:** before anything is timed, kb and tantivy are asked the same questions about made-up texts of plain
//! words, where both must find the same number of documents. Every repetition asks all sides in turn.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use crate::Result;
use crate::documents::{self, Document};
use crate::generated::Generator;
use crate::kb::{Kb, is_there};
use crate::peer::{self, Kind};
use crate::table::{Bar, Row, Table, Unit, median, say};
use crate::usage::{Usage, measure};

/// The queries: a kind and words, a line each.
const QUERIES: &str = include_str!("../queries.tsv");
/// How often `rg` is asked, which takes long.
const FEW: u32 = 3;

/// Arguments of `search`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The folder that is searched
    #[arg(long)]
    corpus: PathBuf,
    /// The program `kb`, built for release
    #[arg(long)]
    kb: PathBuf,
    /// A database that has learned the folder; else it is learned now
    #[arg(long)]
    db: Option<PathBuf>,
    /// How often each query is asked
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// The program ripgrep
    #[arg(long, default_value = "rg")]
    rg: String,
    /// Print each query's figures too
    #[arg(long)]
    each: bool,
}

/// The sides, in the order of the columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Side {
    Kb,
    Tantivy,
    Sqlite,
    Ripgrep,
}

/// One query.
#[derive(Debug, Clone)]
struct Question {
    kind: Kind,
    text: String,
}

/// Runs `search`.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let questions = questions()?;
    verify_on_plain_words(&args.kb)?;
    let work = tempfile::tempdir()?;
    let mut kb = Kb::new(&args.kb)?;
    if let Some(db) = &args.db {
        kb = kb.with_database(db)?;
    } else {
        kb.run(&["init"])?;
        kb.run(&["--quiet", "learn", &args.corpus.canonicalize()?.to_string_lossy()])?;
    }
    let (documents, _) = documents::read_folder(&args.corpus)?;
    let tantivy = work.path().join("tantivy");
    fs::create_dir(&tantivy)?;
    peer::build(&tantivy, &documents, peer::Fields::All)?;
    let sqlite = work.path().join("fts5.db");
    let mut sides = vec![Side::Kb, Side::Tantivy];
    if is_there("sqlite3") {
        build_sqlite(&sqlite, &documents)?;
        sides.push(Side::Sqlite);
    } else {
        say("`sqlite3` is not there and was left out")?;
    }
    if is_there(&args.rg) {
        sides.push(Side::Ripgrep);
    } else {
        say(&format!("`{}` is not there and was left out", args.rg))?;
    }
    drop(documents);

    let mut figures: BTreeMap<(usize, Side), Vec<Usage>> = BTreeMap::new();
    for run in 0..args.runs {
        for (number, question) in questions.iter().enumerate() {
            for &side in &sides {
                let command = match side {
                    Side::Kb => kb.command(&kb_arguments(question, &[])),
                    Side::Tantivy => tantivy_command(&tantivy, question, false)?,
                    Side::Sqlite if question.kind == Kind::Typo => continue,
                    Side::Sqlite => sqlite_command(&sqlite, question),
                    Side::Ripgrep if run >= FEW || question.kind == Kind::Typo => continue,
                    Side::Ripgrep => ripgrep_command(&args.rg, &args.corpus, question),
                };
                let ran = measure(&command)?;
                // ripgrep says by a failure that there was no match.
                if side != Side::Ripgrep {
                    ran.stdout(&format!("{side:?} asked for `{}`", question.text))?;
                }
                figures.entry((number, side)).or_default().push(ran.usage);
            }
        }
    }
    let found = totals(&kb, &tantivy, &questions)?;
    report(&questions, &figures, &found, args)
}

fn report(
    questions: &[Question],
    figures: &BTreeMap<(usize, Side), Vec<Usage>>,
    found: &[(u64, bool, u64)],
    args: &Args,
) -> Result<ExitCode> {
    let cpu = |number: usize, side: Side| -> Option<f64> {
        let usages = figures.get(&(number, side))?;
        median(&usages.iter().map(|usage| usage.cpu.as_secs_f64()).collect::<Vec<f64>>())
    };
    let pair = |kind: Option<Kind>, peer: Side| -> (Vec<f64>, Vec<f64>) {
        let of_kind = (0..questions.len()).filter(|&number| kind.is_none_or(|kind| questions[number].kind == kind));
        of_kind.filter_map(|number| Some((cpu(number, Side::Kb)?, cpu(number, peer)?))).unzip()
    };
    let heading = format!(
        "A new process for each of {} queries, {} times; medians of queries' medians, spread over queries",
        questions.len(),
        args.runs
    );
    let mut table = Table::new(heading, "peer");
    for (name, peer, bar) in
        [("tantivy", Side::Tantivy, 1.0), ("sqlite3 FTS5", Side::Sqlite, 1.0), ("rg", Side::Ripgrep, 1.0)]
    {
        let (ours, theirs) = pair(None, peer);
        if !ours.is_empty() {
            table.push(Row::new(format!("CPU beside {name}"), Unit::Seconds, ours).beside(theirs).bar(Bar::Ratio(bar)));
        }
    }
    for kind in [Kind::Words, Kind::Phrase, Kind::Prefix, Kind::Typo] {
        let (ours, theirs) = pair(Some(kind), Side::Tantivy);
        table.push(Row::new(format!("… {} beside tantivy", kind.name()), Unit::Seconds, ours).beside(theirs));
    }
    let most = |side: Side, of: &dyn Fn(&Usage) -> u64| -> Vec<f64> {
        let all = figures.iter().filter(|((_, of), _)| *of == side).flat_map(|(_, usages)| usages);
        all.map(of).max().map(|most| most as f64).into_iter().collect()
    };
    let peak = |usage: &Usage| usage.peak_bytes;
    let memory = Row::new("most memory, beside tantivy", Unit::Bytes, most(Side::Kb, &peak));
    table.push(memory.beside(most(Side::Tantivy, &peak)).bar(Bar::AtMost(30e6)));
    let faults = |usage: &Usage| usage.minor_faults;
    table
        .push(Row::new("most minor faults", Unit::Count, most(Side::Kb, &faults)).beside(most(Side::Tantivy, &faults)));
    table.print()?;
    if args.each {
        say(
            "\n| kind | query | documents kb | documents tantivy | kb ms | tantivy ms | sqlite3 ms | rg ms |\n|-|-|-|-|-|-|-|-|",
        )?;
        for (number, question) in questions.iter().enumerate() {
            let (ours, exact, theirs) = found[number];
            let mut line = format!(
                "| {} | {} | {ours}{} | {theirs} |",
                question.kind.name(),
                question.text,
                if exact { "" } else { "+" }
            );
            for side in [Side::Kb, Side::Tantivy, Side::Sqlite, Side::Ripgrep] {
                let shown = cpu(number, side).map_or_else(|| "–".to_owned(), |cpu| format!("{:.2}", cpu * 1000.0));
                let _ = write!(line, " {shown} |");
            }
            say(&line)?;
        }
    }
    Ok(table.exit_code())
}

fn questions() -> Result<Vec<Question>> {
    QUERIES
        .lines()
        .map(|line| {
            let (kind, text) = line.split_once('\t').ok_or_else(|| format!("no tab in the query `{line}`"))?;
            let kinds = [Kind::Words, Kind::Phrase, Kind::Prefix, Kind::Typo];
            let kind =
                kinds.into_iter().find(|other| other.name() == kind).ok_or_else(|| format!("no kind `{kind}`"))?;
            Ok(Question { kind, text: text.to_owned() })
        })
        .collect()
}

fn kb_arguments<'a>(question: &'a Question, more: &[&'a str]) -> Vec<&'a str> {
    let mode = match question.kind {
        Kind::Words | Kind::Typo => "auto",
        Kind::Phrase => "phrase",
        Kind::Prefix => "prefix",
    };
    let mut arguments = vec!["search", "--mode", mode];
    arguments.extend_from_slice(more);
    arguments.push(&question.text);
    arguments
}

fn tantivy_command(index: &Path, question: &Question, documents: bool) -> Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("tantivy-search").arg(index).arg(&question.text).args(["--kind", question.kind.name()]);
    if documents {
        command.arg("--documents");
    }
    Ok(command)
}

fn sqlite_command(database: &Path, question: &Question) -> Command {
    let quoted: Vec<String> = question.text.split_whitespace().map(|word| format!("\"{word}\"")).collect();
    let matched = match question.kind {
        Kind::Words | Kind::Typo => quoted.join(" "),
        Kind::Phrase => format!("\"{}\"", question.text),
        Kind::Prefix => format!("{}*", quoted.join(" ")),
    };
    let condition = format!("FROM sections WHERE sections MATCH '{matched}'");
    let sql = format!("SELECT count(*) {condition}; SELECT rank, title {condition} ORDER BY rank LIMIT 10;");
    let mut command = Command::new("sqlite3");
    command.arg("-readonly").arg(database).arg(sql);
    command
}

/// ripgrep knows no AND over lines; it is asked for the lines with any of the words, counted by file.
fn ripgrep_command(program: &str, folder: &Path, question: &Question) -> Command {
    let mut command = Command::new(program);
    command.args(["--no-config", "--ignore-case", "--count"]);
    match question.kind {
        Kind::Phrase => _ = command.args(["-e", &question.text]),
        _ => question.text.split_whitespace().for_each(|word| _ = command.args(["-e", word])),
    }
    command.arg(folder);
    command
}

/// Builds an FTS5 table through the program `sqlite3`, stemmed by Porter's rules, the texts stored.
fn build_sqlite(database: &Path, documents: &[Document]) -> Result<()> {
    let script = database.with_extension("sql");
    let quoted = |text: &str| format!("'{}'", text.replace('\'', "''").replace('\0', " "));
    let mut sql = String::from(
        "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;\n\
         CREATE VIRTUAL TABLE sections USING fts5(title, headings, body, tokenize='porter unicode61');\nBEGIN;\n",
    );
    for document in documents {
        for section in &document.sections {
            let (title, headings) = (quoted(&document.title), quoted(&section.heading_path.join("\n")));
            let _ = writeln!(
                sql,
                "INSERT INTO sections VALUES({title},{headings},{});",
                quoted(&document.body_of(section))
            );
        }
    }
    sql.push_str("COMMIT;\nINSERT INTO sections(sections) VALUES('optimize');\n");
    fs::write(&script, sql)?;
    let output = Command::new("sqlite3").arg(database).stdin(Stdio::from(fs::File::open(&script)?)).output()?;
    fs::remove_file(&script)?;
    if !output.status.success() {
        return Err(format!("sqlite3: {}", String::from_utf8_lossy(&output.stderr).trim()).into());
    }
    Ok(())
}

/// Returns for each question the documents that kb finds, whether it counted them all, and those that tantivy finds.
fn totals(kb: &Kb, tantivy: &Path, questions: &[Question]) -> Result<Vec<(u64, bool, u64)>> {
    let mut totals = Vec::new();
    for question in questions {
        let answer = kb.json(&kb_arguments(question, &["--json"]))?;
        let total = answer["total"].as_u64().ok_or("kb gives no total")?;
        let ran = measure(&tantivy_command(tantivy, question, true)?)?;
        let theirs = ran.stdout("tantivy")?.trim().parse()?;
        totals.push((total, answer["totalIsExact"].as_bool().unwrap_or(false), theirs));
    }
    Ok(totals)
}

/// Asks both sides about made-up texts of words that every tokenizer takes alike.
fn verify_on_plain_words(program: &Path) -> Result<()> {
    let work = tempfile::tempdir()?;
    let (folder, tantivy) = (work.path().join("texts"), work.path().join("tantivy"));
    fs::create_dir(&tantivy)?;
    let mut generator = Generator::new(11);
    let files: Vec<(String, String)> = (0..600).map(|number| generator.document(1 + number % 5)).collect();
    for (name, text) in &files {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap_or(&folder))?;
        fs::write(path, text)?;
    }
    let kb = Kb::new(program)?;
    kb.run(&["init"])?;
    kb.run(&["--quiet", "learn", &folder.to_string_lossy()])?;
    let (documents, _) = documents::split(files)?;
    peer::build(&tantivy, &documents, peer::Fields::All)?;
    let mut questions = Vec::new();
    for number in 0..24 {
        // Words next to each other in some text, so that there is something to be found.
        let document = &documents[number * 25];
        let words: Vec<&str> =
            document.text.split_whitespace().filter(|word| !word.starts_with('#')).skip(2 + number % 16).collect();
        let (kind, last) = if number % 4 == 3 { (Kind::Phrase, 1 + number % 2) } else { (Kind::Words, number % 3) };
        questions.push(Question { kind, text: words[..=last].join(" ") });
    }
    let found = totals(&kb, &tantivy, &questions)?;
    for (question, (ours, exact, theirs)) in questions.iter().zip(&found) {
        if !exact || ours != theirs || *ours == 0 {
            let text = &question.text;
            return Err(format!(
                "asked for `{text}` ({}), kb finds {ours} documents, tantivy {theirs}",
                question.kind.name()
            )
            .into());
        }
    }
    say(&format!("kb and tantivy find the same for {} queries over 600 made-up documents", questions.len()))
}
