//! Answers against a naive scorer, under any history, and for the cases of real queries.

#![expect(clippy::unwrap_used, reason = "a test fails by it")]

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use kb_core::{Mode, Stage, Verdict};
use proptest::prelude::*;

use super::evaluate::SCORE_UNIT;
use super::{LiveSegment, Ranked, RankedHit, SearchOptions, Searcher, Texts};
use crate::analysis::{Markup, TermKind};
use crate::query::{ClauseKind, parse};
use crate::segment::testing::{TestDocument, analyzer, build, documents, open};
use crate::segment::{Dead, FieldCounts, Impacts, Lengths, Totals, merge};

mod words;

struct Library<'a>(&'a [TestDocument]);

impl Texts for Library<'_> {
    fn text(&self, docid: &str, position: u32) -> Option<(Markup, Cow<'_, str>)> {
        let document = self.0.iter().find(|document| document.docid == docid)?;
        let text = &document.sections.get((position - document.first_place) as usize)?.1;
        Some((Markup::Markdown, Cow::Borrowed(text)))
    }

    fn title(&self, docid: &str) -> Option<Cow<'_, str>> {
        self.0.iter().find(|document| document.docid == docid).map(|document| Cow::Borrowed(document.title.as_str()))
    }
}

fn searcher(documents: &[TestDocument]) -> Searcher<Vec<u8>> {
    let mut sorted: Vec<&TestDocument> = documents.iter().collect();
    sorted.sort_by(|a, b| a.docid.cmp(&b.docid));
    Searcher::new(vec![(Arc::new(open(build(sorted))), None)], analyzer())
}

fn ask(documents: &[TestDocument], query: &str, mode: Mode) -> Ranked {
    let options = SearchOptions { mode, ..SearchOptions::default() };
    searcher(documents).search(&parse(query, &analyzer()), &options, &Library(documents)).unwrap()
}

fn docids(ranked: &Ranked) -> Vec<&str> {
    ranked.hits.iter().map(|hit| hit.docid.as_str()).collect()
}

/// Documents of one section, named `d0`, `d1` and so on.
fn texts(texts: &[&str]) -> Vec<TestDocument> {
    texts.iter().enumerate().map(|(i, text)| TestDocument::new(&format!("d{i}"), "", &[("", text)])).collect()
}

#[test]
fn an_identifier_is_found_whole_first_and_by_its_parts() {
    let documents = texts(&["Ruling LAW-0077 adopted", "LAW memo", "0077 bolts", "call flush_ring_buffer()"]);
    assert_eq!(docids(&ask(&documents, "LAW-0077", Mode::Auto)), ["d0", "d1", "d2"]);
    assert_eq!(docids(&ask(&documents, "LAW-0077", Mode::All)), ["d0"]);
    assert_eq!(docids(&ask(&documents, "\"LAW-0077\"", Mode::Auto)), ["d0"]);
    assert_eq!(docids(&ask(&documents, "law 0077", Mode::Auto))[0], "d0");
    for query in ["flush_ring_buffer", "ring buffer", "flush_ring", "\"ring buffer\""] {
        assert_eq!(docids(&ask(&documents, query, Mode::Auto)), ["d3"], "{query}");
    }
}

#[test]
fn an_absent_word_is_dropped_and_named() {
    let documents = texts(&["qv7719 ledger of the harbour", "another harbour"]);
    let ranked = ask(&documents, "please find qv7719 zeppelin", Mode::Auto);
    assert_eq!(docids(&ranked), ["d0"]);
    assert!(ranked.dropped.contains(&"zeppelin".to_owned()), "{:?}", ranked.dropped);
    assert!(ranked.verdict != Verdict::Answered);
    let ranked = ask(&documents, "xqzzyv", Mode::Auto);
    assert_eq!((ranked.hits.len(), ranked.stage, ranked.verdict), (0, Stage::None, Verdict::Unanswered));
    assert_eq!(ask(&documents, "qv7719 zeppelin", Mode::All).total, 0);
}

#[test]
fn a_mistyped_word_is_read_as_the_nearest() {
    let documents = texts(&["the parameters of a function", "a diameter"]);
    let ranked = ask(&documents, "pazameters", Mode::Auto);
    assert_eq!((docids(&ranked), ranked.stage), (vec!["d0"], Stage::Fuzzy));
    assert_eq!(ranked.corrected[0].from, "pazameters");
    assert_eq!(ask(&documents, "pazameters", Mode::All).total, 0);
    let documents = texts(&["it opens a file", "an option"]);
    assert_eq!(docids(&ask(&documents, "opnes", Mode::Auto)), ["d0"]);
}

#[test]
fn marked_words_hold_in_every_stage() {
    let documents = texts(&["red apple pie", "green apple", "red pear", "pie of apples, red"]);
    assert_eq!(docids(&ask(&documents, "apple -red", Mode::Auto)), ["d1"]);
    assert_eq!(docids(&ask(&documents, "+pear apple", Mode::Any)), ["d2"]);
    assert_eq!(docids(&ask(&documents, "\"apple pie\"", Mode::Auto)), ["d0"]);
    assert_eq!(docids(&ask(&documents, "apple pie", Mode::Phrase)), ["d0"]);
    // The stems agree, the words do not.
    assert_eq!(ask(&documents, "\"of apple\"", Mode::Auto).total, 0);
    assert_eq!(docids(&ask(&documents, "gre*", Mode::Auto)), ["d1"]);
    assert_eq!(docids(&ask(&documents, "red pe", Mode::Prefix)), ["d2"]);
}

#[test]
fn the_title_weighs_more_than_a_heading_and_that_more_than_the_text() {
    let long = format!("{} {}", "lighthouse ".repeat(10), "word and more ".repeat(1700));
    let documents = [
        TestDocument::new("a", "The lighthouse", &[("", "text of some length about the coast")]),
        TestDocument::new("b", "Coast", &[("Lighthouse", "Lighthouse: text of some length about it")]),
        TestDocument::new("c", "Coast", &[("", &long)]),
    ];
    assert_eq!(docids(&ask(&documents, "lighthouse", Mode::Auto)), ["a", "b", "c"]);
    assert_eq!(docids(&ask(&documents, "title:lighthouse", Mode::Auto)), ["a"]);
    assert_eq!(docids(&ask(&documents, "heading:lighthouse", Mode::Auto)), ["b"]);
    assert_eq!(ask(&documents, "the lighthouse", Mode::Auto).verdict, Verdict::Answered);
}

#[test]
fn a_document_is_one_hit_and_a_repeated_section_too() {
    let quay = [("", "quay one"), ("", "quay two"), ("", "quay three"), ("", "quay three")];
    let documents = [
        TestDocument::new("a", "", &quay),
        TestDocument::new("b", "", &[("", "a quay of its own with more words around")]),
        TestDocument::new("c", "", &[("", "quay one")]),
    ];
    let ranked = ask(&documents, "quay", Mode::Auto);
    assert_eq!(docids(&ranked), ["a", "b"]);
    assert_eq!(ranked.hits[0].more.len(), 3);
    assert_eq!(ranked.hits[0].also_in, ["c"]);
    assert_eq!((ranked.total, ranked.total_is_exact), (3, true));
}

#[test]
fn filters_fold_case_and_take_beginnings() {
    let mut documents = texts(&["same text", "same text too", "same text three"]);
    documents[0].tags = vec!["Ops".to_owned()];
    documents[1].tags = vec!["ops/db".to_owned()];
    documents[2].source = Some("notes/x.md".to_owned());
    for (query, expected) in [
        ("text tag:OPS", vec!["d0"]),
        ("text tag:ops/*", vec!["d1"]),
        ("tag:ops*", vec!["d0", "d1"]),
        ("text -tag:ops*", vec!["d2"]),
        ("text source:notes/*", vec!["d2"]),
        ("text doc:d1", vec!["d1"]),
        ("text type:html", vec![]),
        ("text type:document doc:d*", vec!["d0", "d1", "d2"]),
    ] {
        let ranked = ask(&documents, query, Mode::Auto);
        let mut found = docids(&ranked);
        found.sort_unstable();
        assert_eq!(found, expected, "{query}");
        assert_eq!(ranked.total, expected.len() as u64);
    }
}

#[test]
fn characters_of_scripts_without_spaces_are_found() {
    let documents = texts(&["港口夜间装卸安排表", "貨物列車の時刻", "해양연구보고", "погода в порту"]);
    for (query, expected) in
        [("夜间", "d0"), ("装卸安排", "d0"), ("港", "d0"), ("時刻", "d1"), ("연구", "d2"), ("погода", "d3")]
    {
        assert_eq!(docids(&ask(&documents, query, Mode::Auto)), [expected], "{query}");
    }
}

#[test]
fn a_beginning_that_only_an_identifier_has_ranks_without_positions() {
    let documents = texts(&["panic-prone state machine", "state of the union"]);
    for query in ["panic-pron* state", "panic-pron*"] {
        assert_eq!(docids(&ask(&documents, query, Mode::Auto))[0], "d0", "{query}");
    }
}

#[test]
fn pages_follow_each_other_without_gaps() {
    let all: Vec<String> =
        (0..57).map(|i| format!("{} {}", ["harbour", "harbours"][i % 2], "pier ".repeat(i % 7))).collect();
    let documents = texts(&all.iter().map(String::as_str).collect::<Vec<_>>());
    let query = parse("harbour pier", &analyzer());
    let whole = SearchOptions { limit: 100, ..SearchOptions::default() };
    let whole = searcher(&documents).search(&query, &whole, &Library(&documents)).unwrap();
    let mut paged = Vec::new();
    loop {
        let options = SearchOptions { limit: 3, offset: paged.len(), ..SearchOptions::default() };
        let page = searcher(&documents).search(&query, &options, &Library(&documents)).unwrap();
        assert_eq!(page.total, whole.total);
        paged.extend(page.hits);
        if !page.has_more {
            break;
        }
    }
    assert_eq!(paged, whole.hits);
    // Twelve different texts hold both words: enough that those with one do not follow.
    assert_eq!((whole.hits.len(), whole.total), (12, 48));
    let few = &documents[..8];
    let options = SearchOptions { limit: 2, ..SearchOptions::default() };
    let page = searcher(few).search(&query, &options, &Library(few)).unwrap();
    assert_eq!((page.total, page.has_more), (8, true), "the two without a pier follow");
}

#[test]
fn common_words_without_positions_hold_their_place_in_a_phrase() {
    let documents = texts(&[
        "the state of the art",
        "the art of the state",
        "state, of which the art is",
        "to be or not to be",
        "or not to be; be to",
        "call is_a(x)",
        "a fish is",
    ]);
    for (query, expected) in [
        ("\"state of the art\"", vec!["d0"]),
        ("\"the art\"", vec!["d0", "d1", "d2"]),
        ("\"to be or not to be\"", vec!["d3"]),
        ("\"not to be\"", vec!["d3", "d4"]),
        ("\"be to\"", vec!["d4"]),
        ("\"is_a\"", vec!["d5"]),
    ] {
        let ranked = ask(&documents, query, Mode::Auto);
        let mut found = docids(&ranked);
        found.sort_unstable();
        assert_eq!(found, expected, "{query}");
    }
    assert_eq!(docids(&ask(&documents, "is_a", Mode::Auto))[0], "d5");
}

#[test]
fn every_page_of_a_quoted_phrase_holds_it_as_typed() {
    let all: Vec<String> = (0..90)
        .map(|i| format!("{} no. {i} {}", ["move constructors", "move constructor"][i % 2], "pier ".repeat(i % 7)))
        .collect();
    let documents = texts(&all.iter().map(String::as_str).collect::<Vec<_>>());
    let query = parse("\"move constructor\"", &analyzer());
    let mut paged: Vec<RankedHit> = Vec::new();
    let mut totals = Vec::new();
    loop {
        let options = SearchOptions { limit: 7, offset: paged.len(), ..SearchOptions::default() };
        let page = searcher(&documents).search(&query, &options, &Library(&documents)).unwrap();
        totals.push((page.total, page.total_is_exact));
        paged.extend(page.hits);
        if !page.has_more {
            break;
        }
    }
    let mut found: Vec<usize> = paged.iter().map(|hit| hit.docid[1..].parse().unwrap()).collect();
    found.sort_unstable();
    assert_eq!(found, (0..90).filter(|i| i % 2 == 1).collect::<Vec<_>>());
    totals.dedup();
    assert_eq!(totals.len(), 1, "{totals:?}");
    assert!(totals[0].0 >= 45 && !totals[0].1, "{totals:?}");
}

/// What a section holds of a term.
#[derive(Default, Clone)]
struct Held {
    tf: u32,
    counts: FieldCounts,
}

struct NaiveSection {
    docid: String,
    number: u32,
    lengths: Lengths,
    held: BTreeMap<String, Held>,
}

/// Reads documents without any index.
fn naive(documents: &[TestDocument]) -> Vec<NaiveSection> {
    let mut sections = Vec::new();
    let analyzer = analyzer();
    for document in documents {
        for (number, (heading, text)) in document.sections.iter().enumerate() {
            let mut held: BTreeMap<String, Held> = BTreeMap::new();
            let mut add = |text: &str, markup, field: Option<u32>| {
                let mut length = 0;
                analyzer.tokens(text, markup, &mut |raw| {
                    let mut terms = Vec::new();
                    length += analyzer.expand(raw.text, &mut terms);
                    terms.sort_by(|a, b| (&a.text, a.offset).cmp(&(&b.text, b.offset)));
                    terms.dedup_by(|a, b| (&a.text, a.offset) == (&b.text, b.offset));
                    for term in terms {
                        let held = held.entry(term.text).or_default();
                        match field {
                            Some(field) => held.counts.add(field),
                            None => held.tf += 1,
                        }
                    }
                });
                length
            };
            let title = add(&document.title, Markup::None, Some(FieldCounts::TITLE));
            let headings = add(heading, Markup::None, Some(FieldCounts::HEADING));
            let (mut tags, mut body) = (0, add(text, Markup::Markdown, None));
            if number == 0 {
                for text in document.tags.iter().chain([&document.front]) {
                    tags += add(text, Markup::None, Some(FieldCounts::TAGS));
                    body += add(text, Markup::None, None);
                }
                body += add(&document.title, Markup::None, None);
            }
            sections.push(NaiveSection {
                docid: document.docid.clone(),
                number: sections.len() as u32,
                lengths: Lengths { body: body as u16, fields: [title as u8, headings as u8, tags as u8] },
                held,
            });
        }
    }
    sections
}

/// Scores every section by the formula, and keeps each document's best.
fn naive_scores(documents: &[TestDocument], query: &str, all: bool) -> Vec<(u32, String, u32)> {
    let sections = naive(documents);
    let mut totals = Totals::default();
    for section in &sections {
        totals.add(section.lengths);
    }
    let impacts = Impacts::new(&totals);
    let mut words: Vec<String> = Vec::new();
    for clause in parse(query, &analyzer()).clauses {
        let ClauseKind::Word(unit) = clause.kind else { panic!("{query} is not plain words") };
        words.extend(unit.terms.into_iter().filter(|t| t.kind != TermKind::Inner && !unit.stop).map(|term| term.text));
    }
    words.sort_unstable();
    words.dedup();
    let mut best: BTreeMap<String, (u32, u32)> = BTreeMap::new();
    for section in &sections {
        let (mut score, mut found) = (0, 0);
        for word in &words {
            let df = sections.iter().filter(|section| section.held.contains_key(word)).count() as f64;
            let idf = (1.0 + (sections.len() as f64 - df + 0.5) / (df + 0.5)).ln() as f32;
            if let Some(held) = section.held.get(word) {
                score += (idf * impacts.of(held.tf, held.counts, section.lengths) * SCORE_UNIT) as u32;
                found += 1;
            }
        }
        if found > 0 && (!all || found == words.len()) {
            let entry = best.entry(section.docid.clone()).or_insert((score, section.number));
            if score > entry.0 {
                *entry = (score, section.number);
            }
        }
    }
    let mut scores: Vec<_> = best.into_iter().map(|(docid, (score, number))| (score, docid, number)).collect();
    scores.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    scores
}

const QUERIES: [&str; 6] =
    ["alpha", "alpha beta", "gamma table delta alpha", "a b c d", "tables ab", "alpha the delta bb cc dd aa"];

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn ids_and_scores_are_those_of_a_naive_scorer(
        documents in documents(30), query in 0..QUERIES.len(), all: bool, limit in 1_usize..8, pruned: bool,
    ) {
        let expected = naive_scores(&documents, QUERIES[query], all);
        let searcher = searcher(&documents);
        let counted = if pruned { 0 } else { u64::MAX };
        let found = super::answer::candidates(&searcher, QUERIES[query], all, limit, counted).unwrap();
        let first: Vec<_> = expected.iter().take(limit).cloned().collect();
        prop_assert_eq!(found.0, first);
        if !pruned {
            prop_assert_eq!(found.1, expected.len() as u64);
        }
    }

    #[test]
    fn any_history_gives_the_answers_of_a_fresh_index(
        documents in documents(24), homes in prop::collection::vec(0_usize..3, 24),
        old in prop::collection::vec(any::<bool>(), 24), query in 0..QUERIES.len(), fold: bool,
    ) {
        // A third of the segments hold an older text of some documents, which is dead.
        let mut sets: Vec<Vec<TestDocument>> = vec![Vec::new(); 3];
        for (index, document) in documents.iter().enumerate() {
            sets[homes[index]].push(document.clone());
            if old[index] {
                let sections = vec![(String::new(), "alpha beta gamma old text alpha".to_owned()); 3];
                let older = TestDocument { sections, title: "alpha old".to_owned(), ..document.clone() };
                sets[(homes[index] + 1) % 3].push(older);
            }
        }
        let mut segments: Vec<LiveSegment<Vec<u8>>> = Vec::new();
        for (home, set) in sets.iter_mut().enumerate() {
            set.sort_by(|a, b| a.docid.cmp(&b.docid));
            let segment = open(build(set.iter()));
            let mut dead = Dead::new();
            for ordinal in 0..segment.documents() {
                let index = documents.iter().position(|d| d.docid == segment.docid(ordinal).unwrap()).unwrap();
                if homes[index] != home {
                    dead.insert(&segment, ordinal).unwrap();
                }
            }
            segments.push((Arc::new(segment), Some(Arc::new(dead))));
        }
        if fold {
            let inputs: Vec<_> = segments[..2].iter().map(|(s, dead)| (&**s, dead.as_deref())).collect();
            let mut merged = Vec::new();
            merge(&inputs, &mut merged).unwrap();
            segments.splice(..2, [(Arc::new(open(merged)), None)]);
        }
        let grown = Searcher::new(segments, analyzer());
        let fresh = searcher(&documents);
        prop_assert_eq!((grown.documents(), grown.sections()), (fresh.documents(), fresh.sections()));
        for mode in Mode::ALL {
            let options = SearchOptions { mode: *mode, limit: 5, ..SearchOptions::default() };
            let query = parse(QUERIES[query], &analyzer());
            let answers = [&grown, &fresh].map(|searcher| searcher.search(&query, &options, &Library(&documents)));
            prop_assert_eq!(&answers[0], &answers[1]);
        }
    }

    #[test]
    fn every_query_is_answered(query in "\\PC{0,40}", mode in 0..Mode::ALL.len()) {
        let documents = texts(&["alpha beta", "C++ code_of `parseHTMLNode`", "港口夜"]);
        ask(&documents, &query, Mode::ALL[mode]);
    }
}
