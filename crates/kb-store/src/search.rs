//! Searching: from a request to an answer with titles, lines and snippets.
//!
//! **Invariant:** an answer is of one generation. Where the index cannot be used the answer comes from a scan, and says
//! so if that had to stop early.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use kb_core::{Correction, DocId, Hit, Mode, OtherSection, SearchReport, SectionId, Stage, Verdict};
use kb_search::{
    DateBound, Markup, Matcher, Ranked, RankedHit, SearchOptions, Searcher, SegmentError, Texts, parse, parse_phrase,
    snippet,
};

use crate::error::StoreError;
use crate::index::{Index, analyzer, markup_of, scan};
use crate::knowledge_base::KnowledgeBase;
use crate::manifest::{Manifest, Role, SectionEntry};
use crate::prepare::hash16;
use crate::read::{documents_by_index, type_names};
use crate::request::Search;
use crate::snapshot::Snapshot;
use crate::source::{expand_filter, own_provenance};

type Result<T> = std::result::Result<T, StoreError>;

/// The longest query, in bytes; what goes beyond is not read.
const MAX_QUERY: usize = 64 << 10;
/// Length of a snippet in characters.
const SNIPPET_CHARS: usize = 240;
/// Other documents of a hit that are named.
const ALSO_IN: usize = 10;
/// A source larger than this is not read again to see whether it changed: its time and length speak for it.
const MAX_SOURCE_CHECK: u64 = 16 << 20;

impl KnowledgeBase {
    /// Answers a query. Every text is one; only a filter, a limit or a cursor can be wrong.
    pub fn search(&self, request: &Search) -> Result<SearchReport> {
        let snapshot = self.snapshot()?;
        let mut options = options(request, snapshot.head.generation)?;
        expand_filter(&snapshot, &mut options.filters.sources)?;
        let text = cut(&request.query);
        let analyzer = analyzer();
        let mut query =
            if request.mode == Mode::Phrase { parse_phrase(text, &analyzer) } else { parse(text, &analyzer) };
        expand_filter(&snapshot, &mut query.filters.sources)?;
        expand_filter(&snapshot, &mut query.filters.not_sources)?;
        let texts = StoredTexts { snapshot: &snapshot, manifests: RefCell::default() };

        let index = snapshot.index.get_or_init(|| Index::open(&*snapshot.storage, &snapshot.head));
        let mut incomplete = None;
        let answer = match &index.problem {
            None => Searcher::new(index.segments.clone(), analyzer.clone())
                .search(&query, &options, &texts)
                .map_err(|error| error.to_string()),
            Some(problem) => Err(problem.to_string()),
        };
        let ranked = match answer {
            Ok(ranked) => ranked,
            Err(problem) => {
                let (segments, complete) = scan(&snapshot, request.scan_bytes)?;
                incomplete = Some(if complete {
                    format!("{problem}; all documents were read instead")
                } else {
                    format!("{problem}; only {} MB of text were read", request.scan_bytes >> 20)
                });
                let searcher = Searcher::new(segments, analyzer.clone());
                let mut ranked = searcher.search(&query, &options, &texts).map_err(|error| unreadable(&error))?;
                ranked.total_is_exact &= complete;
                ranked
            }
        };
        let matcher = matcher(&query, &ranked, &analyzer);
        let base = request.check_sources.then(|| self.base_folder());
        let mut hits = Vec::with_capacity(ranked.hits.len());
        for ranked in &ranked.hits {
            let Some((mut hit, manifest)) = hit(&texts, &matcher, ranked)? else { continue };
            hit.stale = base.as_deref().and_then(|base| staleness(&manifest, base));
            hits.push(hit);
        }
        let corrected =
            ranked.corrected.into_iter().map(|correction| as_written(correction, &hits, &analyzer)).collect();
        let next = options.offset + ranked.hits.len();
        Ok(SearchReport {
            query: request.query.clone(),
            mode: request.mode,
            stage: ranked.stage,
            verdict: if hits.is_empty() { Verdict::Unanswered } else { ranked.verdict },
            total: ranked.total,
            total_is_exact: ranked.total_is_exact,
            generation: snapshot.head.generation,
            dropped: ranked.dropped,
            corrected,
            cursor: ranked.has_more.then(|| cursor_at(next, snapshot.head.generation, request)),
            incomplete,
            hits,
        })
    }

    /// Returns where a source lies: names are relative to the folder that holds the database, or absolute.
    pub(crate) fn source_path(&self, name: &str) -> PathBuf {
        self.base_folder().join(name)
    }

    /// Returns the folder that holds the database.
    pub(crate) fn base_folder(&self) -> PathBuf {
        let path = std::path::absolute(self.path()).unwrap_or_else(|_| self.path().to_owned());
        let path = path.canonicalize().unwrap_or(path);
        path.parent().unwrap_or_else(|| Path::new("/")).to_owned()
    }
}

impl Search {
    /// Returns the cursor that goes on behind the first `hits` hits of the answer to this, for who passes on no more.
    pub fn cursor_after(&self, hits: usize, answer: &SearchReport) -> String {
        let read = |cursor: &String| read_cursor(cursor, answer.generation, &question(self)).ok();
        let begin = self.cursor.as_ref().and_then(read).unwrap_or(0);
        cursor_at(begin + hits, answer.generation, self)
    }
}

/// Makes a hit of what was ranked; `None` where its document cannot be read. Its source is not looked at.
fn hit(texts: &StoredTexts<'_>, matcher: &Matcher, ranked: &RankedHit) -> Result<Option<(Hit, Rc<Manifest>)>> {
    let Some(manifest) = texts.manifest(&ranked.docid) else { return Ok(None) };
    let at = ranked.position as usize;
    let Some(section) = manifest.sections.get(at) else { return Ok(None) };
    let text = match texts.snapshot.section(section.kbid) {
        Ok(Some((media_type, bytes))) if media_type.is_text() => String::from_utf8_lossy(&bytes).into_owned(),
        // A damaged section is still named; only its text cannot be shown.
        Ok(_) | Err(StoreError::Damaged { .. }) => String::new(),
        Err(error) => return Err(error),
    };
    let markup = markup_of(&manifest.media_type);
    let (body, body_line) = without_heading(&text, section, markup);
    let mut excerpt = snippet(body, markup, matcher, body_line, SNIPPET_CHARS);
    if excerpt.snippet.highlights.is_empty() {
        excerpt.match_line = section.line;
    }
    let path = |at: usize| manifest.heading_path(at).into_iter().map(str::to_owned).collect();
    let more = ranked.more.iter().filter_map(|other| {
        let at = other.position as usize;
        let section = manifest.sections.get(at)?;
        Some(OtherSection { kbid: section.kbid, heading_path: path(at), line: section.line, score: other.score })
    });
    let source = manifest.source.as_ref();
    let hit = Hit {
        kbid: section.kbid,
        docid: manifest.docid.clone(),
        title: manifest.title.clone(),
        heading_path: path(at),
        level: section.level,
        parent: section.parent.and_then(|p| manifest.sections.get(p as usize)).map(|s| s.kbid),
        source: source.map(|source| source.name.clone()),
        line: excerpt.match_line,
        score: ranked.score,
        confidence: ranked.confidence,
        matched_terms: ranked.matched.clone(),
        snippet: excerpt.snippet.text,
        highlights: excerpt.snippet.highlights,
        snippet_line: excerpt.snippet.line,
        more: more.collect(),
        also_in: same_section(texts, section.kbid, &ranked.docid, &ranked.also_in),
        stale: None,
        provenance: own_provenance(&manifest),
    };
    Ok(Some((hit, manifest)))
}

/// Says whether a document's source file, named from the folder of the base, is `changed` or `gone`; `None` where it is
/// as learned, or no file.
fn staleness(manifest: &Manifest, base: &Path) -> Option<String> {
    let source = manifest.source.as_ref().filter(|source| source.modified != 0)?;
    let path = base.join(&source.name);
    let metadata = match std::fs::metadata(&path) {
        Ok(metadata) => metadata,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Some("gone".to_owned()),
        Err(_) => return None,
    };
    if !metadata.is_file() || metadata.len() != source.len {
        return Some("changed".to_owned());
    }
    if crate::walk::modified(&metadata) == source.modified || metadata.len() > MAX_SOURCE_CHECK {
        return None;
    }
    let bytes = std::fs::read(&path).ok()?;
    (hash16(&bytes) != source.hash).then(|| "changed".to_owned())
}

/// Returns a section's text below its heading, which the hit's heading path already shows, and the line where it
/// begins. A section of nothing else keeps its heading.
fn without_heading<'t>(text: &'t str, section: &SectionEntry, markup: Markup) -> (&'t str, u32) {
    let whole = (text, section.line);
    if markup != Markup::Markdown || section.heading.is_none() || section.part.is_some_and(|(n, _)| n > 1) {
        return whole;
    }
    let blank = text.len() - text.trim_start().len();
    let heading = &text[blank..];
    let lines = if heading.starts_with('#') { 1 } else { 2 };
    let len: usize = heading.split_inclusive('\n').take(lines).map(str::len).sum();
    let (above, below) = text.split_at(blank + len);
    if below.trim().is_empty() {
        return whole;
    }
    (below, section.line + above.matches('\n').count() as u32)
}

fn options(request: &Search, generation: u64) -> Result<SearchOptions> {
    let invalid = |field, reason: String| StoreError::Invalid { field, reason };
    if request.limit == 0 || request.limit > 100 {
        return Err(invalid("limit", format!("{} is not from 1 to 100", request.limit)));
    }
    let offset = match &request.cursor {
        None => 0,
        Some(cursor) => read_cursor(cursor, generation, &question(request))?,
    };
    let bound = |field, text: &Option<String>, end: bool| -> Result<Option<DateBound>> {
        match text {
            None => Ok(None),
            Some(text) => {
                let bound: kb_core::DocDate =
                    text.parse().map_err(|error: kb_core::DateError| invalid(field, error.to_string()))?;
                Ok(Some(bound.instant().map_or_else(
                    || DateBound::Day(if end { bound.last_day() } else { bound.first_day() } as i32),
                    |instant| DateBound::Instant(instant.seconds()),
                )))
            }
        }
    };
    let mut filters = kb_search::Filters {
        tags: request.tags.iter().map(|tag| analyzer().fold(tag)).collect(),
        types: type_names(&request.types)?.iter().map(|name| analyzer().fold(name)).collect(),
        sources: request.sources.clone(),
        docids: request.docids.clone(),
        ..kb_search::Filters::default()
    };
    // A folder named as a source means everything below it.
    let below: Vec<String> = filters
        .sources
        .iter()
        .filter(|s| !s.ends_with('*'))
        .map(|s| format!("{}/*", s.trim_end_matches('/')))
        .collect();
    filters.sources.extend(below);
    Ok(SearchOptions {
        mode: request.mode,
        limit: request.limit,
        offset,
        filters,
        since: bound("since", &request.since, false)?,
        until: bound("until", &request.until, true)?,
        count: request.count,
    })
}

/// Returns what tells one question from another in a cursor: all that is asked but how many hits and from where.
fn question(request: &Search) -> String {
    let Search { query, mode, tags, types, sources, docids, since, until, .. } = request;
    let asked = format!("{query:?} {mode} {tags:?} {types:?} {sources:?} {docids:?} {since:?} {until:?}");
    blake3::hash(asked.as_bytes()).to_hex()[..8].to_owned()
}

/// Returns the cursor of a place in the answer of a generation.
fn cursor_at(offset: usize, generation: u64, request: &Search) -> String {
    format!("{generation}.{offset}.{}", question(request))
}

/// Reads a cursor, `generation.offset.question`, which goes on only with its own question in its own generation.
fn read_cursor(cursor: &str, generation: u64, question: &str) -> Result<usize> {
    let invalid = |reason: String| StoreError::Invalid { field: "cursor", reason };
    let mut parts = cursor.split('.');
    let parsed = (|| Some((parts.next()?.parse::<u64>().ok()?, parts.next()?.parse().ok()?, parts.next()?)))();
    match parsed.filter(|_| parts.next().is_none()) {
        None => Err(invalid(format!("`{cursor}` is not one that an answer gave"))),
        Some((_, _, asked)) if asked != question => Err(invalid("it goes on with another search".to_owned())),
        Some((given, _, _)) if given != generation => {
            Err(invalid("the base has changed since that answer; search again from the beginning".to_owned()))
        }
        Some((_, at, _)) => Ok(at),
    }
}

/// Returns as much of a query as is read, cut at a character.
fn cut(query: &str) -> &str {
    &query[..query.floor_char_boundary(MAX_QUERY)]
}

/// Returns what finds the words in the text of the hits: those of the query, and those that they were read as.
fn matcher(query: &kb_search::ParsedQuery, ranked: &Ranked, analyzer: &kb_search::Analyzer) -> Matcher {
    let mut matcher = Matcher::new(query, analyzer);
    if ranked.stage != Stage::None {
        for correction in &ranked.corrected {
            if let Some(clause) = query.clauses.iter().position(|clause| clause.typed == correction.from) {
                correction.to.iter().for_each(|term| matcher.also(clause, term));
            }
        }
    }
    matcher
}

/// Returns a correction in words instead of stems: as the first hit that shows such a word writes it.
fn as_written(mut correction: Correction, hits: &[Hit], analyzer: &kb_search::Analyzer) -> Correction {
    for term in &mut correction.to {
        let shown = hits.iter().flat_map(|hit| {
            [hit.snippet.as_str(), hit.title.as_str()].into_iter().chain(hit.heading_path.iter().map(String::as_str))
        });
        let word = shown.flat_map(|text| {
            let placed = analyzer.terms_of(text, Markup::None).into_iter();
            placed.filter(|placed| placed.term.text == *term).map(|placed| text[placed.range].to_lowercase())
        });
        if let Some(word) = word.min_by_key(String::len) {
            *term = word;
        }
    }
    correction
}

fn unreadable(error: &SegmentError) -> StoreError {
    StoreError::Damaged { file: "index".to_owned(), offset: 0, kbid: None, detail: error.to_string() }
}

/// Returns other documents that hold this section. The index knows only the first half of a kbid; where that does not
/// tell it from every other section, and without an index, the manifests are asked.
fn same_section(texts: &StoredTexts<'_>, id: SectionId, docid: &str, ranked: &[String]) -> Vec<DocId> {
    let known = texts.snapshot.index.get().and_then(|index| documents_by_index(index, id));
    let told = known.as_ref().is_some_and(|known| known.len() > 1) && texts.snapshot.is_told_by_half(id);
    let candidates = known.unwrap_or_else(|| ranked.iter().filter_map(|docid| docid.parse().ok()).collect());
    let holds = |other: &DocId| {
        let manifest = texts.manifest(other.as_str());
        manifest.is_some_and(|manifest| manifest.sections.iter().any(|section| section.kbid == id))
    };
    let others = candidates.into_iter().filter(|other| other.as_str() != docid);
    others.filter(|other| told || holds(other)).take(ALSO_IN).collect()
}

/// The texts of a snapshot, with the manifests that were read for one answer.
struct StoredTexts<'s> {
    snapshot: &'s Snapshot,
    manifests: RefCell<HashMap<String, Option<Rc<Manifest>>>>,
}

impl StoredTexts<'_> {
    fn manifest(&self, docid: &str) -> Option<Rc<Manifest>> {
        if let Some(known) = self.manifests.borrow().get(docid) {
            return known.clone();
        }
        let manifest = docid.parse().ok().and_then(|id| self.snapshot.manifest(&id).ok().flatten()).map(Rc::new);
        self.manifests.borrow_mut().insert(docid.to_owned(), manifest.clone());
        manifest
    }
}

impl Texts for StoredTexts<'_> {
    fn text(&self, docid: &str, position: u32) -> Option<(Markup, Cow<'_, str>)> {
        let manifest = self.manifest(docid)?;
        let section = manifest.sections.get(position as usize).filter(|section| section.role == Role::Text)?;
        let (media_type, bytes) = self.snapshot.section(section.kbid).ok().flatten()?;
        Some((markup_of(&media_type), Cow::Owned(String::from_utf8_lossy(&bytes).into_owned())))
    }

    fn title(&self, docid: &str) -> Option<Cow<'_, str>> {
        Some(Cow::Owned(self.manifest(docid)?.title.clone()))
    }
}
