//! Merges segments into one.
//!
//! **Invariant:** the result is byte for byte the segment that a builder makes of the live documents. Nothing is
//! analysed again; memory holds the tables of the sections and one term's postings.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;

use super::builder::{BuildError, SegmentStats};
use super::cursor::Cursor;
use super::dead::Dead;
use super::dictionary::Terms;
use super::facet;
use super::postings::TermPostings;
use super::reader::Segment;
use super::writer::{SegmentWriter, Tables};
use crate::source::{SegmentError, Source};

/// Marks what has no place in the result.
const GONE: u32 = u32::MAX;

/// Writes one segment with the live documents of all of these, which hold each docid alive at most once.
///
/// There has to be at least one, and all have to come from the same analyser.
pub fn merge<S: Source>(
    inputs: &[(&Segment<S>, Option<&Dead>)],
    out: &mut impl io::Write,
) -> Result<SegmentStats, BuildError> {
    let [(first, _), ..] = inputs else { return Err(BuildError::Mixed) };
    let (version, language) = (first.analyzer_version(), first.language());
    if inputs.iter().any(|(segment, _)| segment.analyzer_version() != version || segment.language() != language) {
        return Err(BuildError::Mixed);
    }
    let (tables, maps) = documents(inputs)?;
    let mut writer = SegmentWriter::new(out, &tables, version, language)?;

    let mut streams = inputs.iter().map(|(segment, _)| Terms::new(segment)).collect::<Result<Vec<_>, _>>()?;
    let mut heads = BinaryHeap::with_capacity(streams.len());
    for (index, stream) in streams.iter().enumerate() {
        if let Some((key, record)) = stream.current() {
            heads.push(Reverse((key.to_vec(), index, record)));
        }
    }
    let mut key = Vec::new();
    let (mut postings, mut sorted) = (TermPostings::default(), TermPostings::default());
    while let Some(Reverse((least, _, _))) = heads.peek() {
        key.clone_from(least);
        postings.clear();
        let words = key.first() == Some(&facet::WORD);
        let positions = facet::has_positions(&key);
        while let Some(Reverse((head, index, record))) = pop_if(&mut heads, &key) {
            let mut cursor = Cursor::open(inputs[index].0, record, words)?;
            let map = if words { &maps[index].sections } else { &maps[index].documents };
            cursor.drain(|old| map.get(old as usize).copied().filter(|&new| new != GONE), &mut postings, positions)?;
            streams[index].advance()?;
            if let Some((next, record)) = streams[index].current() {
                let mut head = head;
                head.clear();
                head.extend_from_slice(next);
                heads.push(Reverse((head, index, record)));
            }
        }
        if postings.sections.is_empty() {
            continue;
        }
        if postings.sections.is_sorted() {
            writer.term(&key, &postings, words)?;
        } else {
            sort(&postings, &mut sorted)?;
            writer.term(&key, &sorted, words)?;
        }
    }
    writer.finish()
}

type Head = Reverse<(Vec<u8>, usize, u64)>;

fn pop_if(heads: &mut BinaryHeap<Head>, key: &[u8]) -> Option<Head> {
    let Reverse((head, _, _)) = heads.peek()?;
    if head == key { heads.pop() } else { None }
}

/// New numbers of the documents and sections of an input.
struct Maps {
    documents: Vec<u32>,
    sections: Vec<u32>,
}

fn documents<S: Source>(inputs: &[(&Segment<S>, Option<&Dead>)]) -> Result<(Tables, Vec<Maps>), BuildError> {
    let mut tables = Tables::default();
    let mut maps: Vec<Maps> = inputs
        .iter()
        .map(|(segment, _)| Maps {
            documents: vec![GONE; segment.documents() as usize],
            sections: vec![GONE; segment.sections() as usize],
        })
        .collect();
    let next_alive = |index: usize, from: u32| -> Result<_, SegmentError> {
        let (segment, dead) = inputs[index];
        let alive = (from..segment.documents()).find(|&ordinal| dead.is_none_or(|dead| !dead.contains(ordinal)));
        alive.map(|ordinal| Ok(Reverse((segment.docid(ordinal)?, index, ordinal)))).transpose()
    };
    let mut heads = BinaryHeap::with_capacity(inputs.len());
    for index in 0..inputs.len() {
        heads.extend(next_alive(index, 0)?);
    }
    while let Some(Reverse((docid, index, ordinal))) = heads.pop() {
        let (segment, _) = inputs[index];
        let sections = segment.sections_of(ordinal)?;
        let places = sections.clone().map(|section| segment.place(ordinal, section)).collect::<Result<Vec<_>, _>>()?;
        maps[index].documents[ordinal as usize] = tables.documents();
        tables.document(docid, segment.date(ordinal)?, places.iter().copied())?;
        for section in sections {
            maps[index].sections[section as usize] = tables.sections();
            tables.section(segment.kbid_prefix(section)?, segment.lengths(section)?);
        }
        heads.extend(next_alive(index, ordinal + 1)?);
    }
    Ok((tables, maps))
}

/// Copies postings in the order of their sections.
fn sort(postings: &TermPostings, sorted: &mut TermPostings) -> Result<(), SegmentError> {
    sorted.clear();
    let mut order: Vec<(u32, usize, usize)> = Vec::with_capacity(postings.sections.len());
    let mut start = 0;
    for (index, &section) in postings.sections.iter().enumerate() {
        order.push((section, index, start));
        if !postings.positions.is_empty() {
            start += postings.tfs[index] as usize;
        }
    }
    order.sort_unstable();
    for (section, index, start) in order {
        let tf = postings.tfs[index];
        sorted.sections.push(section);
        sorted.tfs.push(tf);
        sorted.counts.push(postings.counts[index]);
        if !postings.positions.is_empty() {
            let positions = postings.positions.get(start..start + tf as usize);
            sorted.positions.extend_from_slice(positions.ok_or(SegmentError::Malformed("positions are missing"))?);
        }
    }
    Ok(())
}
