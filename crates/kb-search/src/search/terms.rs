//! The terms of a query as the segments know them.
//!
//! **Invariant:** a document frequency counts live sections only, exactly; it does not depend on how the segments came
//! about.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::OnceLock;

use fst::Automaton;
use fst::automaton::AlwaysMatch;
use levenshtein_automata::{DFA, Distance, LevenshteinAutomatonBuilder, SINK_STATE};
use rustc_hash::FxHashMap;

use super::LiveSegment;
use crate::analysis::{Analyzer, Term};
use crate::segment::dictionary;
use crate::segment::facet::{self, WORD};
use crate::segment::{Cursor, Segment};
use crate::source::{SegmentError, Source};

/// Most terms that a beginning of a word stands for.
const MAX_EXPANSIONS: usize = 64;
/// Most terms of a segment that are looked at to find them.
const MAX_SCANNED: usize = 20_000;
/// Most near words that a word is read as.
const MAX_NEAR: usize = 3;

/// A term of the query, looked up in every segment.
#[derive(Debug)]
pub(super) struct QueryTerm {
    /// As the dictionary has it.
    pub(super) text: String,
    /// Where its record is, for each segment.
    pub(super) records: Vec<Option<u64>>,
    /// Live sections that hold it.
    pub(super) df: u64,
    /// `ln(1 + (N - df + 1/2) / (df + 1/2))`.
    pub(super) idf: f32,
}

impl QueryTerm {
    /// Says whether the positions of the term are known.
    pub(super) fn is_placed(&self) -> bool {
        facet::has_positions(&key(&self.text))
    }
}

/// Looks terms up, each once.
pub(super) struct Lexicon<'a, S> {
    segments: &'a [LiveSegment<S>],
    analyzer: &'a Analyzer,
    sections: u64,
    pub(super) terms: Vec<QueryTerm>,
    numbers: FxHashMap<String, usize>,
}

impl<'a, S: Source> Lexicon<'a, S> {
    pub(super) fn new(segments: &'a [LiveSegment<S>], analyzer: &'a Analyzer, sections: u64) -> Self {
        Self { segments, analyzer, sections, terms: Vec::new(), numbers: FxHashMap::default() }
    }

    /// Returns the number of a term, which may stand nowhere.
    pub(super) fn term(&mut self, text: &str) -> Result<usize, SegmentError> {
        if let Some(&number) = self.numbers.get(text) {
            return Ok(number);
        }
        let key = key(text);
        let mut records = Vec::with_capacity(self.segments.len());
        let mut df = 0;
        for segment in self.segments {
            let record = dictionary::lookup(&segment.0, &key)?;
            if let Some(record) = record {
                df += live_df(segment, record)?;
            }
            records.push(record);
        }
        Ok(self.push(text.to_owned(), records, df))
    }

    pub(super) fn df(&self, term: usize) -> u64 {
        self.terms[term].df
    }

    /// Returns the idf of a term that stands in so many live sections.
    pub(super) fn idf(&self, df: u64) -> f32 {
        let (all, df) = (self.sections as f64, df as f64);
        (1.0 + (all - df + 0.5).max(0.0) / (df + 0.5)).ln() as f32
    }

    /// Returns the terms that begin so, those in most sections first, and the term of the beginning itself.
    pub(super) fn beginning_with(&mut self, prefix: &str) -> Result<Vec<usize>, SegmentError> {
        let mut found = Found::default();
        for (index, segment) in self.segments.iter().enumerate() {
            let mut scanned = 0;
            dictionary::search(&segment.0, &key(prefix), &AlwaysMatch, &mut |key, record| {
                add(&mut found, key, index, record, segment)?;
                scanned += 1;
                Ok(if scanned < MAX_SCANNED { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
            })?;
        }
        let mut stems: Vec<Term> = Vec::new();
        self.analyzer.expand(prefix, &mut stems);
        let mut numbers = Vec::new();
        for stem in stems.iter().filter(|stem| stem.offset == 0).take(1) {
            let number = self.term(&stem.text)?;
            if self.df(number) > 0 {
                numbers.push(number);
            }
        }
        for number in self.most_frequent(found, MAX_EXPANSIONS)? {
            if !numbers.contains(&number) {
                numbers.push(number);
            }
        }
        Ok(numbers)
    }

    /// Returns the terms nearest to a word that is typed with an error, those in most sections first: within one edit
    /// (insert, delete, replace, swap) from four letters on, two from eight, the first letter being right. It is enough
    /// that `typed`, before it was stemmed, had four: `opnes` is `opens`.
    pub(super) fn near(&mut self, text: &str, typed: &str) -> Result<Vec<usize>, SegmentError> {
        let letters = text.chars().count();
        let long = letters >= 4 || letters == 3 && typed.chars().count() >= 4;
        let Some(first) = text.chars().next().filter(|_| long) else { return Ok(Vec::new()) };
        for distance in 1..=if letters < 8 { 1 } else { 2 } {
            let within = Within(automata(distance).build_dfa(text));
            let mut found = Found::default();
            for (index, segment) in self.segments.iter().enumerate() {
                dictionary::search(&segment.0, &key(first.encode_utf8(&mut [0; 4])), &&within, &mut |key, record| {
                    if key.get(1..) != Some(text.as_bytes()) {
                        add(&mut found, key, index, record, segment)?;
                    }
                    Ok(ControlFlow::Continue(()))
                })?;
            }
            let near = self.most_frequent(found, MAX_NEAR)?;
            if !near.is_empty() {
                return Ok(near);
            }
        }
        Ok(Vec::new())
    }

    /// Returns the terms in most sections, by the alphabet where they are equal.
    fn most_frequent(&mut self, found: Found, count: usize) -> Result<Vec<usize>, SegmentError> {
        let mut found: Vec<_> = found.into_iter().filter(|(_, (df, _))| *df > 0).collect();
        found.sort_by(|a, b| b.1.0.cmp(&a.1.0).then_with(|| a.0.cmp(&b.0)));
        found.truncate(count);
        let numbers = found.into_iter().map(|(text, (df, places))| {
            if self.numbers.contains_key(&text) {
                return self.term(&text);
            }
            let mut records = vec![None; self.segments.len()];
            for (segment, record) in places {
                records[segment] = Some(record);
            }
            Ok(self.push(text, records, df))
        });
        numbers.collect()
    }

    fn push(&mut self, text: String, records: Vec<Option<u64>>, df: u64) -> usize {
        let number = self.terms.len();
        self.terms.push(QueryTerm { text: text.clone(), records, df, idf: self.idf(df) });
        self.numbers.insert(text, number);
        number
    }
}

/// Terms that were come upon, each with its live sections and, by segment, its records.
type Found = BTreeMap<String, (u64, Vec<(usize, u64)>)>;

/// Returns the live sections that a list names.
fn live_df<S: Source>(segment: &LiveSegment<S>, record: u64) -> Result<u64, SegmentError> {
    let (segment, dead): (&Segment<S>, _) = (&segment.0, &segment.1);
    let Some(dead) = dead.as_ref().filter(|dead| !dead.is_empty()) else {
        return Ok(u64::from(Cursor::df_at(segment, record)?));
    };
    let mut cursor = Cursor::open(segment, record, true)?;
    let gone = dead.count(&mut cursor)?;
    Ok(u64::from(cursor.df() - gone))
}

fn key(text: &str) -> Vec<u8> {
    let mut key = Vec::with_capacity(text.len() + 1);
    key.push(WORD);
    key.extend_from_slice(text.as_bytes());
    key
}

/// Notes a term that was come upon in a segment.
fn add<S: Source>(
    found: &mut Found,
    key: &[u8],
    index: usize,
    record: u64,
    segment: &LiveSegment<S>,
) -> Result<(), SegmentError> {
    if let Some(text) = key.get(1..).and_then(|text| std::str::from_utf8(text).ok()) {
        let df = live_df(segment, record)?;
        if !found.contains_key(text) {
            found.insert(text.to_owned(), (0, Vec::new()));
        }
        if let Some((sum, records)) = found.get_mut(text) {
            *sum += df;
            records.push((index, record));
        }
    }
    Ok(())
}

/// Returns what makes automata for this distance, swaps counting as one edit; it is made once, which takes a while.
fn automata(distance: u8) -> &'static LevenshteinAutomatonBuilder {
    static ONE: OnceLock<LevenshteinAutomatonBuilder> = OnceLock::new();
    static TWO: OnceLock<LevenshteinAutomatonBuilder> = OnceLock::new();
    let made = if distance == 1 { &ONE } else { &TWO };
    made.get_or_init(|| LevenshteinAutomatonBuilder::new(distance, true))
}

/// Takes the keys of words near to a text.
struct Within(DFA);

impl Automaton for Within {
    /// `None` before the kind byte.
    type State = Option<u32>;

    fn start(&self) -> Self::State {
        None
    }

    fn is_match(&self, state: &Self::State) -> bool {
        state.is_some_and(|state| matches!(self.0.distance(state), Distance::Exact(_)))
    }

    fn can_match(&self, state: &Self::State) -> bool {
        *state != Some(SINK_STATE)
    }

    fn accept(&self, state: &Self::State, byte: u8) -> Self::State {
        match *state {
            None if byte == WORD => Some(self.0.initial_state()),
            None => Some(SINK_STATE),
            Some(state) => Some(self.0.transition(state, byte)),
        }
    }
}
