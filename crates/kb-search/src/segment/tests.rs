//! What a segment holds against a simple model, under merges, deletes and damage.

#![expect(clippy::unwrap_used, reason = "a test fails by it")]

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::cursor::Cursor;
use super::dictionary::{self, Terms};
use super::impact::FieldCounts;
use super::testing::{TestDocument, Verified, analyzer, build, documents, open};
use super::*;
use crate::analysis::{Markup, Term};
use crate::source::SegmentError;

/// Body positions and counts of title, headings and tags.
type Entry = (Vec<u32>, [u32; 3]);
type Model = BTreeMap<String, BTreeMap<u32, Entry>>;

fn place_words(text: &str, markup: Markup, next: &mut u32, mut sink: impl FnMut(String, u32)) {
    analyzer().tokens(text, markup, &mut |raw| {
        let mut terms: Vec<Term> = Vec::new();
        let width = analyzer().expand(raw.text, &mut terms);
        for term in terms {
            sink(term.text, *next + term.offset);
        }
        *next += width;
    });
}

/// The postings of all words, as the documentation says they are.
fn model(documents: &[TestDocument]) -> Model {
    let mut model = Model::new();
    let mut number = 0;
    for document in documents {
        for (index, (heading, text)) in document.sections.iter().enumerate() {
            let mut fields = vec![(0, document.title.clone()), (1, heading.clone())];
            let mut bodies = vec![(text.clone(), Markup::Markdown)];
            if index == 0 {
                let tags = document.tags.iter().chain([&document.front]);
                fields.extend(tags.clone().map(|tag| (2, tag.clone())));
                bodies.extend([&document.title].into_iter().chain(tags).map(|text| (text.clone(), Markup::None)));
            }
            for (field, text) in fields {
                place_words(&text, Markup::None, &mut 0, |term, _| {
                    model.entry(term).or_default().entry(number).or_default().1[field] += 1;
                });
            }
            let mut next = 0;
            for (part, (text, markup)) in bodies.iter().enumerate() {
                next += if part == 0 { 0 } else { 16 };
                place_words(text, *markup, &mut next, |term, position| {
                    model.entry(term).or_default().entry(number).or_default().0.push(position);
                });
            }
            number += 1;
        }
    }
    let placed = |term: &str| facet::has_positions(&[b"\x01", term.as_bytes()].concat());
    for (term, entries) in &mut model {
        for (positions, counts) in entries.values_mut() {
            positions.sort_unstable();
            positions.dedup();
            if !placed(term) {
                positions.fill(0);
            }
            *counts = counts.map(|count| count.min(7));
        }
    }
    model
}

fn read_back(segment: &Segment<Vec<u8>>) -> Model {
    let mut model = Model::new();
    let mut terms = Terms::new(segment).unwrap();
    while let Some((key, record)) = terms.current() {
        if let Some(word) = key.strip_prefix(&[facet::WORD]) {
            let mut cursor = Cursor::open(segment, record, true).unwrap();
            let entries = model.entry(String::from_utf8(word.to_vec()).unwrap()).or_default();
            let mut section = cursor.section();
            while section != Cursor::<Vec<u8>>::END {
                let (tf, counts) = cursor.frequencies().unwrap();
                let mut positions = Vec::new();
                if facet::has_positions(key) {
                    cursor.positions(&mut positions).unwrap();
                } else {
                    positions.resize(tf as usize, 0);
                }
                assert_eq!(tf as usize, positions.len());
                let fields = [FieldCounts::TITLE, FieldCounts::HEADING, FieldCounts::TAGS].map(|f| counts.get(f));
                entries.insert(section, (positions, fields));
                section = cursor.advance().unwrap();
            }
        }
        terms.advance().unwrap();
    }
    model
}

fn many(count: usize) -> Vec<TestDocument> {
    let texts: Vec<String> = (0..count)
        .map(|i| {
            let mut text = "common ".repeat(i % 5 + 1);
            text += &format!("word{} ", i % 50).repeat(i % 3);
            if i % 400 == 7 {
                text += &"long ".repeat(300);
                text += &"filler ".repeat(5000);
                text += "common";
            }
            text
        })
        .collect();
    let document = |i: usize| TestDocument::new(&format!("d{i:05}"), "Common title", &[("heading", &texts[i])]);
    (0..count).map(document).collect()
}

#[test]
fn long_lists_are_read_back_and_sought_in() {
    let documents = many(1500);
    let segment = open(build(&documents));
    assert_eq!(read_back(&segment), model(&documents));
    segment.check().unwrap();
    let record = dictionary::lookup(&segment, b"\x01word7").unwrap().unwrap();
    let sections: Vec<u32> = (0..1500).filter(|i| i % 50 == 7 && i % 3 > 0).collect();
    for target in 0..1500 {
        let mut cursor = Cursor::open(&segment, record, true).unwrap();
        let expected = sections.iter().copied().find(|&s| s >= target).unwrap_or(u32::MAX);
        assert_eq!(cursor.seek(target).unwrap(), expected);
    }
    let record = dictionary::lookup(&segment, b"\x01common").unwrap().unwrap();
    let mut cursor = Cursor::open(&segment, record, true).unwrap();
    let mut positions = Vec::new();
    for target in (0..1500).step_by(137).chain([1499]) {
        assert_eq!(cursor.seek(target).unwrap(), target);
        cursor.positions(&mut positions).unwrap();
        assert_eq!(positions.len(), target as usize % 5 + 2 + usize::from(target % 400 == 7));
    }
    assert_eq!(cursor.seek(1500).unwrap(), u32::MAX);
    assert_eq!(cursor.advance().unwrap(), u32::MAX);
}

#[test]
fn documents_are_found_by_docid_prefix_and_kbid() {
    let documents = [
        TestDocument { first_place: 1, ..TestDocument::new("a", "A", &[("", "same"), ("", "own")]) },
        TestDocument::new("guide/one", "One", &[]),
        TestDocument::new("guide/two", "Two", &[("", "same")]),
        TestDocument::new("z", "Z", &[("", "other")]),
    ];
    let segment = open(build(&documents));
    assert_eq!(segment.find("guide/two"), Ok(Some(2)));
    assert_eq!(segment.find("guide"), Ok(None));
    assert_eq!(segment.find_prefix("guide/"), Ok(1..3));
    assert_eq!(segment.find_prefix(""), Ok(0..4));
    assert_eq!(segment.find_prefix("zz"), Ok(4..4));
    assert_eq!(segment.sections_of(1), Ok(2..2));
    assert_eq!([0, 1, 2, 3].map(|s| segment.document_of(s).unwrap()), [0, 0, 2, 3]);
    let kbid = documents[0].with(|input| input.sections[0].kbid);
    let found: Vec<_> =
        segment.occurrences(kbid).unwrap().into_iter().map(|o| (o.docid, o.ordinal, o.position)).collect();
    assert_eq!(found, [("a".to_owned(), 0, 1), ("guide/two".to_owned(), 2, 0)]);
}

#[test]
fn documents_out_of_order_are_refused() {
    let mut builder = SegmentBuilder::new(analyzer());
    TestDocument::new("b", "", &[]).with(|input| builder.add(input)).unwrap();
    for docid in ["a", "b"] {
        let refused = TestDocument::new(docid, "", &[]).with(|input| builder.add(input));
        assert!(matches!(refused, Err(BuildError::OutOfOrder { .. })), "{docid}");
    }
}

#[test]
fn a_newer_format_is_refused_by_its_number() {
    let mut bytes = build(&many(3));
    let len = bytes.len();
    bytes[len - 12..len - 8].copy_from_slice(&7_u32.to_le_bytes());
    assert_eq!(Segment::open(bytes).err(), Some(SegmentError::TooNew { found: 7, known: 1 }));
}

#[test]
fn a_set_of_the_dead_that_does_not_fit_is_refused() {
    let segment = open(build(&many(20)));
    let mut dead = Dead::new();
    for ordinal in [19, 3, 4] {
        assert_eq!(dead.insert(&segment, ordinal), Ok(true));
    }
    assert_eq!(dead.insert(&segment, 3), Ok(false));
    let bytes = dead.to_bytes();
    assert_eq!(Dead::from_bytes(&bytes, &segment).as_ref(), Ok(&dead));
    assert!(Dead::from_bytes(&bytes, &open(build(&many(19)))).is_err());
    for len in 0..bytes.len() {
        assert!(Dead::from_bytes(&bytes[..len], &segment).is_err(), "{len}");
    }
}

#[test]
fn merging_nothing_or_segments_of_two_analysers_is_refused() {
    assert!(matches!(merge::<Vec<u8>>(&[], &mut Vec::new()), Err(BuildError::Mixed)));
    let mut bytes = Vec::new();
    SegmentBuilder::new(crate::Analyzer::new(crate::Language::None)).finish(&mut bytes).unwrap();
    let (other, own) = (open(bytes), open(build(&many(2))));
    assert!(matches!(merge(&[(&own, None), (&other, None)], &mut Vec::new()), Err(BuildError::Mixed)));
}

/// Everything that reads a segment.
fn exercise<S: crate::Source>(segment: &Segment<S>) {
    let _ = segment.check();
    for ordinal in 0..segment.documents().min(300) {
        let _ = (segment.docid(ordinal), segment.date(ordinal), segment.sections_of(ordinal));
    }
    let _ = segment.find("d00003");
    let _ = segment.find_prefix("d");
    for key in [&b"\x01common"[..], b"\x01word7", b"\x02a"] {
        if let Ok(Some(record)) = dictionary::lookup(segment, key)
            && let Ok(mut cursor) = Cursor::open(segment, record, true)
        {
            while cursor.seek(cursor.section().saturating_add(3)).is_ok_and(|section| section != u32::MAX) {
                if cursor.positions(&mut Vec::new()).is_err() {
                    break;
                }
            }
        }
    }
    let mut dead = Dead::new();
    let _ = dead.insert(segment, 0);
    let _ = merge(&[(segment, Some(&dead))], &mut Vec::new());
}

#[test]
fn a_flipped_bit_is_an_error_or_nothing() {
    let bytes = build(&many(300));
    for at in 0..150 {
        let mut source = Verified::new(bytes.clone());
        let bit = at * 7919 * 8 % (bytes.len() * 8) + at % 8;
        source.bytes[bit / 8] ^= 1 << (bit % 8);
        if let Ok(segment) = Segment::open(source) {
            assert!(segment.check().is_err(), "bit {bit}");
            exercise(&segment);
        }
    }
    for len in (0..bytes.len()).step_by(997) {
        let mut source = Verified::new(bytes.clone());
        source.bytes.truncate(len);
        assert!(Segment::open(source).is_err(), "{len}");
        let _ = Segment::open(bytes[..len].to_vec()).map(|segment| exercise(&segment));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn a_segment_holds_what_was_added(documents in documents(12)) {
        let segment = open(build(&documents));
        segment.check().unwrap();
        prop_assert_eq!(read_back(&segment), model(&documents));
        prop_assert_eq!(segment.documents() as usize, documents.len());
        for (ordinal, document) in documents.iter().enumerate() {
            prop_assert_eq!(segment.docid(ordinal as u32).unwrap(), &document.docid);
            prop_assert_eq!(segment.date(ordinal as u32).unwrap(), document.date);
            for (index, section) in segment.sections_of(ordinal as u32).unwrap().enumerate() {
                prop_assert_eq!(segment.place(ordinal as u32, section).unwrap(), document.first_place + index as u32);
                prop_assert_eq!(segment.document_of(section).unwrap(), ordinal as u32);
            }
        }
    }

    #[test]
    fn a_merge_is_the_segment_of_the_live_documents(
        documents in documents(24), homes in prop::collection::vec(0_usize..4, 24), dead in prop::collection::vec(any::<bool>(), 24),
    ) {
        let groups: Vec<Vec<&TestDocument>> = (0..3)
            .map(|group| documents.iter().zip(&homes).filter(|(_, home)| **home % 3 == group).map(|(d, _)| d).collect())
            .collect();
        let segments: Vec<_> = groups.iter().map(|group| open(build(group.iter().copied()))).collect();
        let mut sets = vec![Dead::new(); 3];
        let mut live = Vec::new();
        for (index, document) in documents.iter().enumerate() {
            let home = homes[index] % 3;
            if dead[index] {
                let ordinal = segments[home].find(&document.docid).unwrap().unwrap();
                sets[home].insert(&segments[home], ordinal).unwrap();
            } else {
                live.push(document);
            }
        }
        let inputs: Vec<_> = segments.iter().zip(&sets).map(|(segment, dead)| (segment, Some(dead))).collect();
        let mut merged = Vec::new();
        let stats = merge(&inputs, &mut merged).unwrap();
        prop_assert_eq!(stats.bytes, merged.len() as u64);
        prop_assert!(merged == build(live), "the merge differs from a fresh build");
        for (segment, dead) in segments.iter().zip(&sets) {
            let back = Dead::from_bytes(&dead.to_bytes(), segment);
            prop_assert_eq!(back.as_ref(), Ok(dead));
        }
    }

    #[test]
    fn any_bytes_after_a_foot_are_read_or_refused(
        noise in prop::collection::vec(any::<u8>(), 1..40), at in any::<prop::sample::Index>(),
    ) {
        let mut bytes = build(&many(200));
        // The dictionary's pieces are `fst`s, which are handed verified bytes only: leave them and their index whole.
        let foot = open(bytes.clone()).foot().clone();
        let start = foot.part(layout::Part::BodyLengths).0 as usize;
        let at = start + at.index(bytes.len() - 320 - start);
        let end = (at + noise.len()).min(bytes.len() - 320);
        bytes[at..end].copy_from_slice(&noise[..end - at]);
        exercise(&open(bytes));
    }

    #[test]
    fn any_bytes_as_a_list_are_read_or_refused(
        noise in prop::collection::vec(any::<u8>(), 1..60), at in any::<prop::sample::Index>(), word in 0_usize..2,
    ) {
        let mut bytes = build(&many(700));
        let segment = open(bytes.clone());
        let key = [&b"\x01common"[..], b"\x01word7"][word];
        let record = dictionary::lookup(&segment, key).unwrap().unwrap();
        let cursor = Cursor::open(&segment, record, true).unwrap();
        let len = cursor.record_end() - record;
        let at = record as usize + at.index(len as usize);
        let end = (at + noise.len()).min((record + len) as usize);
        bytes[at..end].copy_from_slice(&noise[..end - at]);
        let segment = open(bytes);
        if let Ok(mut cursor) = Cursor::open(&segment, record, true) {
            let mut last = None;
            while cursor.section() != u32::MAX {
                prop_assert!(Some(cursor.section()) > last && cursor.section() < segment.sections());
                last = Some(cursor.section());
                if cursor.positions(&mut Vec::new()).is_err() || cursor.advance().is_err() {
                    break;
                }
            }
        }
    }
}
