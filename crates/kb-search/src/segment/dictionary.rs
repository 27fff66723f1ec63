//! Looks terms up in the pieces of the dictionary.
//!
//! **Invariant:** `fst` sees a piece only after the owner of the bytes has verified it; a lookup reads one piece.

use std::ops::ControlFlow;

use fst::{Automaton, IntoStreamer, Map, Streamer};

use super::codec::Bytes;
use super::cursor::Cursor;
use super::facet;
use super::layout::Part;
use super::reader::{Segment, partition};
use crate::source::{SegmentError, Source};

const ENTRY: usize = 24;

/// An entry of the sparse index.
#[derive(Debug, Clone, Copy)]
struct Piece {
    /// Where the records of its terms begin.
    records: u64,
    key_start: u32,
    offset: u64,
    len: u32,
}

fn pieces<S: Source>(segment: &Segment<S>) -> u32 {
    (segment.foot().part(Part::Pieces).1 / ENTRY as u64) as u32
}

fn piece<S: Source>(segment: &Segment<S>, index: u32) -> Result<Piece, SegmentError> {
    let entry: [u8; ENTRY] = segment.entry(Part::Pieces, index)?;
    let mut bytes = Bytes(&entry);
    Ok(Piece { records: bytes.u64()?, key_start: bytes.u32()?, offset: bytes.u64()?, len: bytes.u32()? })
}

fn first_key<S: Source>(segment: &Segment<S>, index: u32) -> Result<&[u8], SegmentError> {
    let start = piece(segment, index)?.key_start;
    let end = if index + 1 < pieces(segment) {
        u64::from(piece(segment, index + 1)?.key_start)
    } else {
        segment.foot().part(Part::PieceKeys).1
    };
    segment.part(Part::PieceKeys, u64::from(start)..end)
}

fn map<'a, S: Source>(segment: &'a Segment<S>, piece: &Piece) -> Result<Map<&'a [u8]>, SegmentError> {
    let end = piece.offset.checked_add(u64::from(piece.len));
    let bytes = segment.read(piece.offset..end.ok_or(SegmentError::Malformed("a piece lies outside the file"))?)?;
    Map::new(bytes).map_err(|_| SegmentError::Malformed("a piece of the dictionary is no fst"))
}

/// Returns the piece that holds the key, if any does.
fn piece_of<S: Source>(segment: &Segment<S>, key: &[u8]) -> Result<Option<u32>, SegmentError> {
    let after = partition(0..pieces(segment), |index| Ok(first_key(segment, index)? <= key))?;
    Ok(after.checked_sub(1))
}

/// Returns where the record of a term is.
pub(crate) fn lookup<S: Source>(segment: &Segment<S>, key: &[u8]) -> Result<Option<u64>, SegmentError> {
    let Some(index) = piece_of(segment, key)? else { return Ok(None) };
    let piece = piece(segment, index)?;
    Ok(map(segment, &piece)?.get(key).map(|place| piece.records.saturating_add(place)))
}

/// Takes a key and where its record is, and says whether to go on.
pub(crate) type Sink<'a> = &'a mut dyn FnMut(&[u8], u64) -> Result<ControlFlow<()>, SegmentError>;

/// Calls `sink` with the keys that begin with `prefix` and that the automaton takes, in order, and where their records
/// are, until it breaks off.
pub(crate) fn search<S: Source, A: Automaton + Clone>(
    segment: &Segment<S>,
    prefix: &[u8],
    automaton: &A,
    sink: Sink<'_>,
) -> Result<(), SegmentError> {
    let first = piece_of(segment, prefix)?.unwrap_or(0);
    for index in first..pieces(segment) {
        let key = first_key(segment, index)?;
        if key > prefix && !key.starts_with(prefix) {
            break;
        }
        let piece = piece(segment, index)?;
        let map = map(segment, &piece)?;
        let mut stream = map.search(automaton.clone()).ge(prefix).into_stream();
        while let Some((key, place)) = stream.next() {
            if !key.starts_with(prefix) {
                break;
            }
            if sink(key, piece.records.saturating_add(place))?.is_break() {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Goes through all terms in order, holding one piece at a time.
pub(crate) struct Terms<'a, S> {
    segment: &'a Segment<S>,
    next_piece: u32,
    keys: Vec<u8>,
    /// End of the key in `keys`, and place of the record.
    entries: Vec<(u32, u64)>,
    at: usize,
}

impl<'a, S: Source> Terms<'a, S> {
    pub(crate) fn new(segment: &'a Segment<S>) -> Result<Self, SegmentError> {
        let mut terms = Self { segment, next_piece: 0, keys: Vec::new(), entries: Vec::new(), at: 0 };
        terms.fill()?;
        Ok(terms)
    }

    /// Returns the term at hand.
    pub(crate) fn current(&self) -> Option<(&[u8], u64)> {
        let (end, record) = *self.entries.get(self.at)?;
        let start = if self.at == 0 { 0 } else { self.entries[self.at - 1].0 };
        Some((&self.keys[start as usize..end as usize], record))
    }

    pub(crate) fn advance(&mut self) -> Result<(), SegmentError> {
        self.at += 1;
        if self.at >= self.entries.len() { self.fill() } else { Ok(()) }
    }

    fn fill(&mut self) -> Result<(), SegmentError> {
        self.keys.clear();
        self.entries.clear();
        self.at = 0;
        while self.entries.is_empty() && self.next_piece < pieces(self.segment) {
            let piece = piece(self.segment, self.next_piece)?;
            let map = map(self.segment, &piece)?;
            let mut stream = map.stream();
            while let Some((key, place)) = stream.next() {
                self.keys.extend_from_slice(key);
                self.entries.push((self.keys.len() as u32, piece.records.saturating_add(place)));
            }
            self.next_piece += 1;
        }
        Ok(())
    }
}

/// Reads every term with its postings.
pub(crate) fn check<S: Source>(segment: &Segment<S>) -> Result<(), SegmentError> {
    let mut terms = Terms::new(segment)?;
    let mut before: Vec<u8> = Vec::new();
    let mut count = 0;
    while let Some((key, record)) = terms.current() {
        if before.as_slice() >= key {
            return Err(SegmentError::Malformed("terms are out of order"));
        }
        before.clear();
        before.extend_from_slice(key);
        let words = key.first() == Some(&facet::WORD);
        let placed = facet::has_positions(key);
        let mut cursor = Cursor::open(segment, record, words)?;
        let (mut postings, mut positions) = (0_u64, Vec::new());
        while cursor.section() != Cursor::<S>::END {
            if placed {
                cursor.positions(&mut positions)?;
            }
            postings += 1;
            cursor.advance()?;
        }
        if postings != u64::from(cursor.df()) {
            return Err(SegmentError::Malformed("a term has fewer postings than it says"));
        }
        count += 1;
        terms.advance()?;
    }
    if count == segment.terms() { Ok(()) } else { Err(SegmentError::Malformed("terms are missing")) }
}
