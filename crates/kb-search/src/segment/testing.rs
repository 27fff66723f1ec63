//! Documents to test with, and bytes that are verified as a store verifies them.
//!
//! **Invariant:** the same documents give the same segment, so a failing case can be run again.

#![expect(clippy::unwrap_used, reason = "a test fails by it")]

use std::ops::Range;

use kb_core::{MediaType, SectionId};
use proptest::prelude::*;

use super::{DateKey, DocumentInput, SectionInput, Segment, SegmentBuilder};
use crate::analysis::{Analyzer, Language, Markup};
use crate::source::{SegmentError, Source};

/// A document that owns its text.
#[derive(Debug, Clone, Default)]
pub(crate) struct TestDocument {
    pub(crate) docid: String,
    pub(crate) title: String,
    pub(crate) tags: Vec<String>,
    pub(crate) front: String,
    pub(crate) source: Option<String>,
    pub(crate) date: DateKey,
    /// Heading and text.
    pub(crate) sections: Vec<(String, String)>,
    pub(crate) first_place: u32,
}

impl TestDocument {
    pub(crate) fn new(docid: &str, title: &str, sections: &[(&str, &str)]) -> Self {
        Self {
            docid: docid.to_owned(),
            title: title.to_owned(),
            sections: sections.iter().map(|&(heading, text)| (heading.to_owned(), text.to_owned())).collect(),
            ..Self::default()
        }
    }

    pub(crate) fn with<R>(&self, use_it: impl FnOnce(&DocumentInput<'_>) -> R) -> R {
        let headings: Vec<[&str; 1]> = self.sections.iter().map(|(heading, _)| [heading.as_str()]).collect();
        let sections: Vec<SectionInput<'_>> = self
            .sections
            .iter()
            .enumerate()
            .map(|(index, (_, text))| SectionInput {
                position: self.first_place + index as u32,
                kbid: SectionId::of(&MediaType::markdown(), text.as_bytes()),
                heading_path: &headings[index],
                text,
                markup: Markup::Markdown,
                first: index == 0,
            })
            .collect();
        use_it(&DocumentInput {
            docid: &self.docid,
            title: &self.title,
            tags: &self.tags,
            front_text: &self.front,
            types: &["text/markdown", "document"],
            source: self.source.as_deref(),
            date: self.date,
            sections: &sections,
        })
    }
}

pub(crate) fn analyzer() -> Analyzer {
    Analyzer::new(Language::English)
}

pub(crate) fn build<'a>(documents: impl IntoIterator<Item = &'a TestDocument>) -> Vec<u8> {
    let mut builder = SegmentBuilder::new(analyzer());
    for document in documents {
        document.with(|input| builder.add(input)).unwrap();
    }
    let mut bytes = Vec::new();
    builder.finish(&mut bytes).unwrap();
    bytes
}

pub(crate) fn open(bytes: Vec<u8>) -> Segment<Vec<u8>> {
    Segment::open(bytes).unwrap()
}

/// Words of few letters, so that they meet; some common, some rare.
fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => Just("the".to_owned()),
        3 => (0_usize..6).prop_map(|i| ["alpha", "beta", "gamma", "delta", "tables", "table"][i].to_owned()),
        1 => (0_usize..5).prop_map(|i| ["parseHTMLNode", "ring_buffer", "v1.2.3", "node.js", "港口夜"][i].to_owned()),
        1 => "[a-d]{1,3}",
    ]
}

fn words(most: usize) -> impl Strategy<Value = String> {
    prop::collection::vec(word(), 0..most).prop_map(|words| words.join(" "))
}

/// A set of documents in the order of their docids.
pub(crate) fn documents(most: usize) -> impl Strategy<Value = Vec<TestDocument>> {
    let document = (words(4), prop::collection::vec("[a-c]/?[a-b]", 0..3), words(4), any::<i16>(), 0_u32..3)
        .prop_flat_map(|(title, tags, front, date, first_place)| {
            prop::collection::vec((words(3), words(24)), 0..5).prop_map(move |sections| TestDocument {
                docid: String::new(),
                title: title.clone(),
                tags: tags.clone(),
                front: front.clone(),
                source: tags.first().cloned(),
                date: DateKey { utc_seconds: i64::from(date) * 1000, local_day: i32::from(date) / 86 },
                sections,
                first_place,
            })
        });
    prop::collection::vec(document, 0..most).prop_map(|mut documents| {
        for (index, document) in documents.iter_mut().enumerate() {
            document.docid = format!("{}/{index:03}", ["a", "b", "c"][index * 3 / 64 % 3]);
        }
        documents.sort_by(|a, b| a.docid.cmp(&b.docid));
        documents
    })
}

/// Bytes whose pages carry a checksum, as the owner of an index file keeps them.
#[derive(Debug)]
pub(crate) struct Verified {
    pub(crate) bytes: Vec<u8>,
    sums: Vec<u64>,
    len: u64,
}

impl Verified {
    const PAGE: usize = 256;

    pub(crate) fn new(bytes: Vec<u8>) -> Self {
        Self { sums: bytes.chunks(Self::PAGE).map(sum).collect(), len: bytes.len() as u64, bytes }
    }
}

fn sum(page: &[u8]) -> u64 {
    page.iter().fold(page.len() as u64, |sum, &byte| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

impl Source for Verified {
    fn len(&self) -> u64 {
        self.len
    }

    fn read(&self, range: Range<u64>) -> Result<&[u8], SegmentError> {
        let refused = |reason: &str| SegmentError::Unreadable { range: range.clone(), reason: reason.to_owned() };
        let pages = range.start as usize / Self::PAGE..(range.end as usize).div_ceil(Self::PAGE);
        for page in pages {
            let start = page * Self::PAGE;
            let bytes = self.bytes.get(start..(start + Self::PAGE).min(self.bytes.len()));
            if bytes.is_none_or(|bytes| self.sums.get(page) != Some(&sum(bytes))) {
                return Err(refused("damaged"));
            }
        }
        self.bytes.get(range.start as usize..range.end as usize).ok_or_else(|| refused("out of bounds"))
    }
}
