//! Builds a segment from documents.
//!
//! Every occurrence of a term is appended to the term's stream of events: a new section, a field, a position.
//!
//! **Invariant:** memory is bounded by what was added: no allocation for a posting, one analysis for each distinct
//! raw token.

use std::collections::BTreeMap;
use std::io;

use super::codec::Bytes;
use super::facet;
use super::impact::{FieldCounts, Lengths};
use super::input::{DocumentInput, kbid_prefix};
use super::interner::Interner;
use super::postings::TermPostings;
use super::streams::{Stream, Streams};
use super::writer::{SegmentWriter, Tables};
use crate::analysis::{Analyzer, Markup, Term};
use crate::source::SegmentError;

/// Positions between the text of a first section and what is appended to it.
const GAP: u32 = 16;

/// Why a segment could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// Documents come in ascending order of their docids, each once.
    #[error("document `{docid}` does not come after `{after}`")]
    OutOfOrder {
        /// The document that was added.
        docid: String,
        /// The one before.
        after: String,
    },
    /// More than a segment's numbers can count.
    #[error("a segment cannot hold more {0}")]
    TooLarge(&'static str),
    /// The segments to be merged were analysed in different ways.
    #[error("segments of different analysers cannot be merged")]
    Mixed,
    /// A segment that is merged cannot be read.
    #[error(transparent)]
    Segment(#[from] SegmentError),
    /// The writer refused.
    #[error("cannot write the index segment")]
    Io(#[from] io::Error),
}

/// What a new segment holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentStats {
    /// Documents.
    pub documents: u32,
    /// Sections.
    pub sections: u32,
    /// Distinct terms, facets included.
    pub terms: u64,
    /// Bytes written.
    pub bytes: u64,
}

/// Collects documents for one segment.
#[derive(Debug)]
pub struct SegmentBuilder {
    analyzer: Analyzer,
    tables: Tables,
    facets: BTreeMap<Vec<u8>, Vec<u32>>,
    words: Words,
}

impl SegmentBuilder {
    /// Returns a builder without documents.
    pub fn new(analyzer: Analyzer) -> Self {
        Self { analyzer, tables: Tables::default(), facets: BTreeMap::new(), words: Words::new() }
    }

    /// Adds a document; docids have to come in ascending order of their bytes.
    ///
    /// After an error the builder must not be used further.
    pub fn add(&mut self, document: &DocumentInput<'_>) -> Result<(), BuildError> {
        let text_bytes: usize = document.sections.iter().map(|section| section.text.len()).sum();
        if self.words.bytes().saturating_add(text_bytes.saturating_mul(8)) > u32::MAX as usize {
            return Err(BuildError::TooLarge("text"));
        }
        let ordinal = self.tables.documents();
        self.tables.document(document.docid, document.date, document.sections.iter().map(|s| s.position))?;
        for key in facet::keys(document, &self.analyzer) {
            let documents = self.facets.entry(key).or_default();
            if documents.last() != Some(&ordinal) {
                documents.push(ordinal);
            }
        }
        for section in document.sections {
            let mut body = self.words.section(self.tables.sections(), &self.analyzer);
            let title = body.field(FieldCounts::TITLE, document.title);
            let headings = section.heading_path.iter().map(|part| body.field(FieldCounts::HEADING, part)).sum();
            let mut tags = 0;
            body.text(section.text, section.markup);
            if section.first {
                tags = document.tags.iter().map(|tag| body.field(FieldCounts::TAGS, tag)).sum::<u32>();
                tags += body.field(FieldCounts::TAGS, document.front_text);
                for text in [document.title].into_iter().chain(document.tags.iter().map(String::as_str)) {
                    body.appended(text);
                }
                body.appended(document.front_text);
            }
            let short = |length: u32| u8::try_from(length).unwrap_or(u8::MAX);
            let lengths = Lengths {
                body: u16::try_from(body.length).unwrap_or(u16::MAX),
                fields: [short(title), short(headings), short(tags)],
            };
            self.tables.section(kbid_prefix(section.kbid), lengths);
        }
        Ok(())
    }

    /// Returns about how many bytes of memory are in use.
    pub fn memory_bytes(&self) -> usize {
        let facets: usize = self.facets.iter().map(|(key, documents)| key.len() + documents.capacity() * 4 + 64).sum();
        self.words.memory_bytes() + self.tables.memory_bytes() + facets
    }

    /// Returns the number of documents added.
    pub fn documents(&self) -> u32 {
        self.tables.documents()
    }

    /// Returns the number of sections added.
    pub fn sections(&self) -> u32 {
        self.tables.sections()
    }

    /// Writes the segment.
    pub fn finish(self, out: &mut impl io::Write) -> Result<SegmentStats, BuildError> {
        let language = self.analyzer.language();
        let mut writer = SegmentWriter::new(out, &self.tables, Analyzer::VERSION, language)?;
        let mut postings = TermPostings::default();
        let mut key = Vec::new();
        for (number, text) in self.words.sorted() {
            key.clear();
            key.push(facet::WORD);
            key.extend_from_slice(text);
            self.words.postings(number, &mut postings)?;
            if !facet::has_positions(&key) {
                postings.positions.clear();
            }
            writer.term(&key, &postings, true)?;
        }
        for (key, documents) in &self.facets {
            postings.clear();
            for &ordinal in documents {
                postings.push_document(ordinal);
            }
            writer.term(key, &postings, false)?;
        }
        writer.finish()
    }
}

/// What a raw token expands to.
#[derive(Debug, Clone, Copy)]
struct Token {
    /// First of its entries in [`Words::expansions`].
    start: u32,
    count: u32,
    width: u32,
}

/// A term's stream, and where in it the last event was.
#[derive(Debug, Clone, Copy)]
struct TermState {
    stream: Stream,
    /// The last section, `u32::MAX` before the first.
    section: u32,
    /// One more than the last position in it.
    next: u32,
}

#[derive(Debug)]
struct Words {
    raw: Interner,
    tokens: Vec<Token>,
    /// Term and offset.
    expansions: Vec<(u32, u32)>,
    terms: Interner,
    states: Vec<TermState>,
    streams: Streams,
    scratch: Vec<Term>,
}

impl Words {
    fn new() -> Self {
        Self {
            raw: Interner::new(),
            tokens: Vec::new(),
            expansions: Vec::new(),
            terms: Interner::new(),
            states: Vec::new(),
            streams: Streams::default(),
            scratch: Vec::new(),
        }
    }

    fn bytes(&self) -> usize {
        self.streams.len().max(self.raw.string_bytes()).max(self.terms.string_bytes())
    }

    fn memory_bytes(&self) -> usize {
        self.raw.memory_bytes()
            + self.terms.memory_bytes()
            + self.tokens.capacity() * size_of::<Token>()
            + self.expansions.capacity() * 8
            + self.states.capacity() * size_of::<TermState>()
            + self.streams.memory_bytes()
    }

    fn section<'a>(&'a mut self, section: u32, analyzer: &'a Analyzer) -> Section<'a> {
        Section { words: self, analyzer, number: section, length: 0, next: 0 }
    }

    fn token(&mut self, raw: &str, analyzer: &Analyzer) -> Token {
        let (number, new) = self.raw.intern(raw.as_bytes());
        if !new {
            return self.tokens[number as usize];
        }
        self.scratch.clear();
        let width = analyzer.expand(raw, &mut self.scratch);
        let start = self.expansions.len();
        let mut widest = width.max(1);
        for term in &self.scratch {
            widest = widest.max(term.offset + 1);
            let (number, new) = self.terms.intern(term.text.as_bytes());
            if new {
                self.states.push(TermState { stream: Stream::default(), section: u32::MAX, next: 0 });
            }
            self.expansions.push((number, term.offset));
        }
        // One term at one place counts once, and its places ascend, whatever the analyser does.
        self.expansions[start..].sort_unstable();
        let mut seen = None;
        let mut kept = start;
        for index in start..self.expansions.len() {
            let entry = self.expansions[index];
            if seen != Some(entry) {
                self.expansions[kept] = entry;
                kept += 1;
            }
            seen = Some(entry);
        }
        self.expansions.truncate(kept);
        let token = Token { start: start as u32, count: (kept - start) as u32, width: widest };
        self.tokens.push(token);
        token
    }

    /// Returns numbers and texts of the terms in the order of the texts.
    fn sorted(&self) -> impl Iterator<Item = (u32, &[u8])> {
        let mut numbers: Vec<u32> = (0..self.terms.len() as u32).collect();
        numbers.sort_unstable_by(|&a, &b| self.terms.get(a).cmp(self.terms.get(b)));
        numbers.into_iter().map(|number| (number, self.terms.get(number)))
    }

    /// Reads a term's events into postings.
    fn postings(&self, number: u32, postings: &mut TermPostings) -> Result<(), SegmentError> {
        postings.clear();
        let mut events = Vec::new();
        self.streams.read(&self.states[number as usize].stream, &mut events);
        let mut bytes = Bytes(&events);
        let mut section = u32::MAX;
        while !bytes.0.is_empty() {
            let event = bytes.vint()?;
            if event & 1 == 0 {
                postings.positions.push((event >> 1) as u32);
                if let Some(tf) = postings.tfs.last_mut() {
                    *tf += 1;
                }
            } else if event & 2 == 0 {
                section = section.wrapping_add((event >> 2) as u32);
                postings.sections.push(section);
                postings.tfs.push(0);
                postings.counts.push(FieldCounts::default());
            } else if let Some(counts) = postings.counts.last_mut() {
                counts.add((event >> 2) as u32);
            }
        }
        Ok(())
    }
}

/// A section while its words are added.
struct Section<'a> {
    words: &'a mut Words,
    analyzer: &'a Analyzer,
    number: u32,
    /// Positions of words so far, gaps left out.
    length: u32,
    /// The next position.
    next: u32,
}

impl Section<'_> {
    /// Adds the words of a field and returns its length in positions.
    fn field(&mut self, field: u32, text: &str) -> u32 {
        let analyzer = self.analyzer;
        let mut length = 0_u32;
        analyzer.tokens(text, Markup::None, &mut |raw| {
            let token = self.words.token(raw.text, analyzer);
            for entry in token.start..token.start + token.count {
                let (term, _) = self.words.expansions[entry as usize];
                let state = self.words.states.get_mut(term as usize).expect("every term has a state");
                enter(state, &mut self.words.streams, self.number);
                self.words.streams.push(&mut state.stream, u64::from(field << 2 | 3));
            }
            length = length.saturating_add(token.width);
        });
        length
    }

    /// Adds words of the body.
    fn text(&mut self, text: &str, markup: Markup) {
        let analyzer = self.analyzer;
        analyzer.tokens(text, markup, &mut |raw| {
            let token = self.words.token(raw.text, analyzer);
            for entry in token.start..token.start + token.count {
                let (term, offset) = self.words.expansions[entry as usize];
                let state = self.words.states.get_mut(term as usize).expect("every term has a state");
                enter(state, &mut self.words.streams, self.number);
                let position = self.next + offset;
                self.words.streams.push(&mut state.stream, u64::from(position - state.next) << 1);
                state.next = position + 1;
            }
            self.next += token.width;
            self.length = self.length.saturating_add(token.width);
        });
    }

    /// Adds words that do not stand in the text, after a gap.
    fn appended(&mut self, text: &str) {
        self.next += GAP;
        self.text(text, Markup::None);
    }
}

/// Begins a section in a term's stream, unless it is the one at hand.
fn enter(state: &mut TermState, streams: &mut Streams, section: u32) {
    if state.section != section {
        streams.push(&mut state.stream, u64::from(section.wrapping_sub(state.section)) << 2 | 1);
        state.section = section;
        state.next = 0;
    }
}
