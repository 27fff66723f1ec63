//! How well kb ranks, on collections with relevance judgements.
//!
//! ```text
//! corpus.jsonl    {"_id", "title", "text"}      queries.jsonl   {"_id", "text"}      qrels.tsv   query, document, grade
//! ```
//!
//! Each page is learned as a Markdown document with its title; a document's best hit counts. nDCG takes the grade as
//! the gain and the logarithm of the rank plus one as the discount (Järvelin and Kekäläinen, "Cumulated Gain-Based
//! Evaluation of IR Techniques", 2002, in the form of `trec_eval`); queries without an answer count as zero.
//!
//! **Invariant:** kb runs with its defaults, the same for every collection.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Instant, SystemTime};

use kb_core::LearnReport;
use kb_store::{KnowledgeBase, Options, Search, Silent, Text};
use serde_json::Value;

use crate::Result;
use crate::table::{Bar, Row, Table, Unit, complain, say};

/// Hits that are asked for.
const DEPTH: usize = 100;

/// nDCG@10 of the best of `SQLite` FTS5, bm25s and tantivy 0.27, each set up at its best for the collection, as it was
/// measured when the collections were put together, and what kb has to reach.
const REFERENCES: [(&str, f64, f64); 4] = [
    ("scifact", 0.692, 0.710),
    ("cranfield", 0.371, 0.400),
    ("docs-anchor", 0.659, 0.730),
    ("docs-typo", 0.510, 0.690),
];

/// Arguments of `quality`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Folder of a collection; may be given again, for collections over the same pages
    #[arg(long = "collection", required = true, value_name = "DIR")]
    collections: Vec<PathBuf>,
    /// The pages, where the folder has no `corpus.jsonl`
    #[arg(long, value_name = "FILE")]
    corpus_file: Option<PathBuf>,
    /// Write the answers of each collection to `NAME.tsv` in this folder: query, document, rank, score
    #[arg(long, value_name = "DIR")]
    runs: Option<PathBuf>,
}

/// Means over the queries of a collection.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Scores {
    ndcg_at_10: f64,
    reciprocal_rank: f64,
    recall_at_100: f64,
}

/// Runs `quality`.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let work = tempfile::tempdir()?;
    let mut bases: HashMap<PathBuf, (KnowledgeBase, HashMap<String, String>)> = HashMap::new();
    let mut table = Table::new("Ranking (the peer's figures are kept ones, not of this run)", "best peer");
    for collection in &args.collections {
        let own = collection.join("corpus.jsonl");
        let corpus = match &args.corpus_file {
            _ if own.is_file() => own,
            Some(file) => file.clone(),
            None => {
                return Err(format!("`{}` has no corpus.jsonl; --corpus-file names one", collection.display()).into());
            }
        };
        if !bases.contains_key(&corpus) {
            let dir = work.path().join(format!("base-{}.kbdb", bases.len()));
            bases.insert(corpus.clone(), learn(&corpus, &dir)?);
        }
        let (base, names) = bases.get(&corpus).ok_or("the base was made above")?;
        let name = collection.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        let answers = ask(base, names, &collection.join("queries.jsonl"), &name)?;
        if let Some(folder) = &args.runs {
            write_run(&folder.join(format!("{name}.tsv")), &answers)?;
        }
        let grades = read_grades(&collection.join("qrels.tsv"))?;
        let scores = score(&answers, &grades);
        let mut row = Row::new(format!("{name}, nDCG@10"), Unit::Plain, vec![scores.ndcg_at_10]);
        if let Some((_, peer, bar)) = REFERENCES.iter().find(|(other, ..)| *other == name) {
            row = row.beside(vec![*peer]).bar(Bar::AtLeast(*bar));
        }
        table.push(row);
        table.push(Row::new(format!("{name}, mean reciprocal rank"), Unit::Plain, vec![scores.reciprocal_rank]));
        table.push(Row::new(format!("{name}, recall@100"), Unit::Plain, vec![scores.recall_at_100]));
    }
    table.print()?;
    Ok(table.exit_code())
}

/// Learns the pages of a file; returns the base and the pages' names by docid.
fn learn(corpus: &Path, dir: &Path) -> Result<(KnowledgeBase, HashMap<String, String>)> {
    let base = KnowledgeBase::create(dir, Options::new(SystemTime::now))?;
    let mut names = HashMap::new();
    let mut failure = None;
    let mut number = 0_u32;
    let mut pages = lines(corpus)?.map_while(|line| {
        let page = line.and_then(|line| {
            let docid = format!("p{number:07}");
            number += 1;
            names.insert(docid.clone(), field(&line, "_id")?);
            let title = Some(field(&line, "title")?).filter(|title| !title.is_empty());
            Ok(Text { title, docid: Some(docid.parse()?), ..Text::markdown(field(&line, "text")?) })
        });
        page.map_err(|error| failure = Some(error)).ok()
    });
    let report: LearnReport = base.learn_batch(&mut pages, &mut Silent)?;
    if let Some(error) = failure {
        return Err(format!("`{}`: {error}", corpus.display()).into());
    }
    if report.failed > 0 || report.documents.is_empty() {
        return Err(format!("{} pages of `{}` could not be learned", report.failed, corpus.display()).into());
    }
    say(&format!("learned {} pages", report.documents.len()))?;
    Ok((base, names))
}

/// The answers to a query: pages and scores, the best first.
type Answers = Vec<(String, Vec<(String, f64)>)>;

fn ask(base: &KnowledgeBase, names: &HashMap<String, String>, queries: &Path, name: &str) -> Result<Answers> {
    let mut answers = Answers::new();
    let mut stages: HashMap<String, u32> = HashMap::new();
    let begun = Instant::now();
    for line in lines(queries)? {
        let line = line?;
        let search = Search { limit: DEPTH, check_sources: false, ..Search::new(field(&line, "text")?) };
        // One query that fails counts as unanswered; the others are still worth knowing.
        let report = match base.search(&search) {
            Ok(report) => report,
            Err(error) => {
                complain(&format!("{name}: `{}` failed: {error}", search.query))?;
                continue;
            }
        };
        *stages.entry(report.stage.to_string()).or_default() += 1;
        let hits = report.hits.iter().filter_map(|hit| Some((names.get(hit.docid.as_str())?.clone(), hit.score)));
        answers.push((field(&line, "_id")?, hits.collect()));
    }
    let each = begun.elapsed().as_secs_f64() * 1000.0 / answers.len().max(1) as f64;
    let mut stages: Vec<(String, u32)> = stages.into_iter().collect();
    stages.sort_unstable();
    let stages: Vec<String> = stages.iter().map(|(stage, count)| format!("{stage} {count}")).collect();
    say(&format!("{name}: {} queries, {each:.2} ms each; answered by stage: {}", answers.len(), stages.join(", ")))?;
    Ok(answers)
}

fn score(answers: &Answers, grades: &HashMap<String, HashMap<String, f64>>) -> Scores {
    let by_query: HashMap<&str, &[(String, f64)]> =
        answers.iter().map(|(query, hits)| (query.as_str(), hits.as_slice())).collect();
    let mut sums = Scores::default();
    for (query, relevant) in grades {
        let hits = by_query.get(query.as_str()).copied().unwrap_or_default();
        let grade = |page: &String| relevant.get(page).copied().unwrap_or(0.0);
        let gain = |grades: &mut dyn Iterator<Item = f64>| -> f64 {
            grades.take(10).enumerate().map(|(rank, grade)| grade / (rank as f64 + 2.0).log2()).sum()
        };
        let mut best: Vec<f64> = relevant.values().copied().filter(|&grade| grade > 0.0).collect();
        best.sort_unstable_by(|a, b| b.total_cmp(a));
        let ideal = gain(&mut best.iter().copied());
        if ideal > 0.0 {
            sums.ndcg_at_10 += gain(&mut hits.iter().map(|(page, _)| grade(page))) / ideal;
            let found = hits.iter().take(DEPTH).filter(|(page, _)| grade(page) > 0.0).count();
            sums.recall_at_100 += found as f64 / best.len() as f64;
        }
        if let Some(rank) = hits.iter().position(|(page, _)| grade(page) > 0.0) {
            sums.reciprocal_rank += 1.0 / (rank as f64 + 1.0);
        }
    }
    let count = grades.len().max(1) as f64;
    Scores {
        ndcg_at_10: sums.ndcg_at_10 / count,
        reciprocal_rank: sums.reciprocal_rank / count,
        recall_at_100: sums.recall_at_100 / count,
    }
}

fn write_run(path: &Path, answers: &Answers) -> Result<()> {
    let mut text = String::new();
    for (query, hits) in answers {
        for (rank, (page, score)) in hits.iter().enumerate() {
            let _ = writeln!(text, "{query}\t{page}\t{}\t{score}", rank + 1);
        }
    }
    fs::write(path, text).map_err(|error| format!("cannot write `{}`: {error}", path.display()))?;
    Ok(())
}

fn read_grades(path: &Path) -> Result<HashMap<String, HashMap<String, f64>>> {
    let text = fs::read_to_string(path).map_err(|error| format!("cannot read `{}`: {error}", path.display()))?;
    let mut grades: HashMap<String, HashMap<String, f64>> = HashMap::new();
    for line in text.lines() {
        let mut fields = line.split('\t');
        let (Some(query), Some(page), Some(grade)) = (fields.next(), fields.next(), fields.next()) else { continue };
        // A line of names heads some of the files.
        let Ok(grade) = grade.trim().parse() else { continue };
        grades.entry(query.to_owned()).or_default().insert(page.to_owned(), grade);
    }
    Ok(grades)
}

fn lines(path: &Path) -> Result<impl Iterator<Item = Result<Value>>> {
    let file = File::open(path).map_err(|error| format!("cannot read `{}`: {error}", path.display()))?;
    Ok(BufReader::new(file).lines().map(|line| Ok(serde_json::from_str(&line?)?)))
}

fn field(line: &Value, name: &str) -> Result<String> {
    Ok(line[name].as_str().ok_or_else(|| format!("a line without `{name}`"))?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measures_follow_their_definitions() {
        let answers: Answers = vec![
            ("1".to_owned(), vec![("b".to_owned(), 2.0), ("a".to_owned(), 1.0)]),
            ("2".to_owned(), vec![("x".to_owned(), 1.0)]),
        ];
        let of = |pairs: &[(&str, f64)]| pairs.iter().map(|(page, grade)| ((*page).to_owned(), *grade)).collect();
        let grades: HashMap<String, HashMap<String, f64>> =
            [("1".to_owned(), of(&[("a", 2.0), ("c", 1.0), ("d", 0.0)])), ("2".to_owned(), of(&[("x", 1.0)]))].into();
        let scores = score(&answers, &grades);
        let discount = |rank: f64| 1.0 / (rank + 1.0).log2();
        let first = 2.0 * discount(2.0) / (2.0 * discount(1.0) + discount(2.0));
        assert!((scores.ndcg_at_10 - first.midpoint(1.0)).abs() < 1e-12);
        assert!((scores.reciprocal_rank - 0.75).abs() < 1e-12);
        assert!((scores.recall_at_100 - 0.75).abs() < 1e-12);
    }

    #[test]
    fn a_query_without_an_answer_counts_as_zero() {
        let grades = HashMap::from([("1".to_owned(), HashMap::from([("a".to_owned(), 1.0)]))]);
        assert_eq!(score(&Vec::new(), &grades), Scores::default());
    }
}
