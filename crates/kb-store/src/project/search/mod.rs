//! Finding chapters: any of the words of a query, the best documents first, with the places around them.
//!
//! **Invariant:** an answer is of the files as they are now. Totals are exact; what is listed is bounded.

mod index;
mod places;

use std::cmp::Ordering;
use std::collections::BTreeMap;

use kb_core::{ChapterMatch, Knowledge, KnowledgeHit, KnowledgeSearch};
use kb_search::{Clause, ClauseKind, MatchedDocument, Occur, ParsedQuery, RankedSection, Searcher, parse};

use self::index::{ProjectIndex, damaged};
use self::places::Words;
use super::error::ProjectError;
use super::{ProjectStore, Result, document_path, knowledge_path};
use crate::index::analyzer;
use crate::knowledge_base::milliseconds;

/// Documents that are listed.
const DOCUMENTS: usize = 20;
/// Chapters of each that are.
const CHAPTERS: usize = 10;
/// Most bytes of an answer's listing, as JSON.
const BUDGET: usize = 90_000;
/// Most characters of a summary in it.
const SUMMARY: usize = 200;
/// Most words of a query.
const WORDS: usize = 64;
const CACHE: &str = ".kb";

/// The indexes of projects that were searched, by folder.
#[derive(Debug, Default)]
pub(super) struct Indexes(BTreeMap<String, ProjectIndex>);

impl ProjectStore {
    /// Finds the chapters of a project's documents in which any word of the query stands: the word, another form of it,
    /// or one that begins with it; inside a word only where nothing else matches.
    pub fn search(&self, project_id: &str, query: &str) -> Result<KnowledgeSearch> {
        let folder = self.folder(project_id)?;
        let mut typed: Vec<String> = query.split_whitespace().map(str::to_lowercase).collect();
        typed.sort_unstable();
        typed.dedup();
        typed.truncate(WORDS);
        if typed.is_empty() {
            return Err(ProjectError::MissingField { field: "query" });
        }
        let words = Words::new(&typed);
        let names = self.document_names(&folder)?;
        let path = self.home.resolve(&knowledge_path(&folder))?;
        let cache = self.home.resolve(&format!("{CACHE}/{folder}"))?;
        let mut found = {
            // A panic of another thread leaves an index that is brought up to date all the same.
            let mut indexes = self.indexes.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            let index = indexes.0.entry(folder.clone()).or_insert_with(|| ProjectIndex::open(&cache));
            let now = milliseconds((self.options.clock)()).saturating_mul(1_000_000);
            if index.refresh(&path, &names, now)? {
                index.save(&cache);
            }
            let searcher = Searcher::new(index.segments().to_vec(), analyzer());
            searcher.every_match(&any_of(&typed)).map_err(damaged)?
        };
        if found.is_empty() {
            found = self.inside_words(&folder, &names, &typed)?;
        }
        found.sort_by(best_first);
        let total_matches = found.iter().map(|document| document.sections.len() as u64).sum();
        let mut results = Vec::new();
        let mut truncated = found.len() > DOCUMENTS;
        let mut used = 0;
        for document in found.iter().take(DOCUMENTS) {
            // One that was deleted a moment ago is no hit.
            let Ok(Some(text)) = self.home.read(&document_path(&folder, &document.docid)) else { continue };
            let text = String::from_utf8_lossy(&text);
            let mut hit = hit(document, &text, &words);
            let mut length = json_length(&hit);
            while used + length > BUDGET && hit.matching_chapters.len() > 1 {
                hit.matching_chapters.pop();
                length = json_length(&hit);
            }
            if used + length > BUDGET && !results.is_empty() {
                truncated = true;
                break;
            }
            used += length;
            truncated |= (hit.matching_chapters.len() as u64) < hit.match_count;
            results.push(hit);
        }
        Ok(KnowledgeSearch { success: true, total_documents: found.len() as u64, total_matches, results, truncated })
    }

    /// Finds the words inside others, by reading every document.
    fn inside_words(&self, folder: &str, names: &[String], words: &[String]) -> Result<Vec<MatchedDocument>> {
        let mut found = Vec::new();
        for name in names {
            let Some(bytes) = self.home.read(&document_path(folder, name))? else { continue };
            let text = String::from_utf8_lossy(&bytes);
            let has_word = |text: &str| {
                let text = text.to_lowercase();
                words.iter().filter(|word| text.contains(word.as_str())).count()
            };
            if has_word(&text) == 0 {
                continue;
            }
            let read = Knowledge::parse(&text);
            let parts = parts(&read, name);
            let matching = parts.iter().enumerate().map(|(i, (_, text))| (i, has_word(text))).filter(|(_, n)| *n > 0);
            let sections: Vec<RankedSection> =
                matching.map(|(i, n)| RankedSection { position: i as u32, score: n as f64 }).collect();
            if !sections.is_empty() {
                found.push(MatchedDocument { docid: name.clone(), sections });
            }
        }
        Ok(found)
    }
}

/// Returns the query that any of these words satisfies, or one that begins with it.
fn any_of(words: &[String]) -> ParsedQuery {
    let analyzer = analyzer();
    let mut query = ParsedQuery::default();
    for word in words {
        // What would be an operator is a letter here.
        let plain = word.replace(['"', ':', '*', '+'], " ");
        let plain = plain.trim_start_matches(['-', ' ']);
        query
            .clauses
            .extend(parse(plain, &analyzer).clauses.into_iter().filter(|clause| clause.occur == Occur::Should));
        let prefix = analyzer.fold(plain.trim());
        if !prefix.is_empty() {
            let kind = ClauseKind::Prefix(prefix);
            query.clauses.push(Clause { occur: Occur::Should, field: None, kind, typed: word.clone() });
        }
    }
    query
}

/// Orders documents by their best chapter and what the others add, equals by name.
fn best_first(a: &MatchedDocument, b: &MatchedDocument) -> Ordering {
    let score = |document: &MatchedDocument| {
        let best = document.sections.iter().map(|section| section.score).fold(0.0, f64::max);
        let sum: f64 = document.sections.iter().map(|section| section.score).sum();
        best + (sum - best) * 0.1
    };
    score(b).total_cmp(&score(a)).then_with(|| a.docid.cmp(&b.docid))
}

/// Returns the texts that are searched, each with its name: title, keywords and introduction, then the chapters.
fn parts(read: &Knowledge<'_>, name: &str) -> Vec<(String, String)> {
    let entry = read.entry(name);
    let front = [entry.title, entry.keywords.join(", "), read.introduction().to_owned()].join("\n");
    let chapters = read.chapters().into_iter().map(|c| (c.title.clone(), [c.title, c.content].join("\n")));
    std::iter::once((String::new(), front)).chain(chapters).collect()
}

fn json_length(hit: &KnowledgeHit) -> usize {
    serde_json::to_vec(hit).map_or(0, |json| json.len())
}

/// Makes the hit of a document.
fn hit(document: &MatchedDocument, text: &str, words: &Words) -> KnowledgeHit {
    let read = Knowledge::parse(text);
    let parts = parts(&read, &document.docid);
    let chapters = read.chapter_entries();
    let listed = document.sections.iter().filter_map(|section| {
        let at = section.position as usize;
        let (chapter, text) = parts.get(at)?;
        let places = words.places(text);
        let summary = at.checked_sub(1).and_then(|at| chapters.get(at)).map(|chapter| shortened(&chapter.summary));
        Some(ChapterMatch {
            chapter: chapter.clone(),
            keywords_found: places.iter().map(|(word, _)| word.clone()).collect(),
            match_context: places.into_iter().collect(),
            chapter_summary: summary.unwrap_or_default(),
        })
    });
    KnowledgeHit {
        file: document.docid.clone(),
        match_count: document.sections.len() as u64,
        metadata: read.document(&document.docid).metadata,
        matching_chapters: listed.take(CHAPTERS).collect(),
        error: read.error(),
    }
}

fn shortened(summary: &str) -> String {
    match summary.char_indices().nth(SUMMARY) {
        None => summary.to_owned(),
        Some((at, _)) => format!("{}...", &summary[..at]),
    }
}
