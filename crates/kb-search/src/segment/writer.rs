//! Writes the parts of a segment in one pass, for the builder and the merge alike.
//!
//! ```text
//! head | postings of some terms, their piece of the dictionary | … | sparse index | tables | foot
//! ```
//!
//! A piece is an `fst` map from keys to places of records, counted from the first record of the piece; it is closed once
//! its keys take some 8 KiB and at least a term. A key is a kind byte and the text of the term.
//!
//! **Invariant:** what is written depends on the tables and the sequence of terms alone.

use std::io::{self, Write};

use super::builder::{BuildError, SegmentStats};
use super::impact::{Impacts, Lengths, Totals};
use super::input::DateKey;
use super::layout::{self, Foot, PARTS, Part};
use super::postings::{self, TermPostings};
use crate::analysis::Language;

/// Bytes of keys after which a piece of the dictionary is closed.
const PIECE_KEY_BYTES: usize = 8 << 10;

/// The tables of documents and sections, in memory.
#[derive(Debug, Default)]
pub(crate) struct Tables {
    pub(crate) body_lengths: Vec<u16>,
    pub(crate) field_lengths: Vec<[u8; 3]>,
    pub(crate) kbids: Vec<u64>,
    pub(crate) first_sections: Vec<u32>,
    pub(crate) first_places: Vec<u32>,
    pub(crate) places: Vec<u32>,
    pub(crate) dates: Vec<DateKey>,
    pub(crate) docid_starts: Vec<u32>,
    pub(crate) docids: Vec<u8>,
    pub(crate) totals: Totals,
}

impl Tables {
    pub(crate) fn documents(&self) -> u32 {
        self.dates.len() as u32
    }

    pub(crate) fn sections(&self) -> u32 {
        self.body_lengths.len() as u32
    }

    pub(crate) fn last_docid(&self) -> Option<&[u8]> {
        self.docid_starts.last().and_then(|&start| self.docids.get(start as usize..))
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.body_lengths.capacity() * 2
            + self.field_lengths.capacity() * 3
            + self.kbids.capacity() * 8
            + (self.first_sections.capacity() + self.first_places.capacity() + self.docid_starts.capacity()) * 4
            + self.places.capacity() * 4
            + self.dates.capacity() * size_of::<DateKey>()
            + self.docids.capacity()
    }

    /// Begins a document; its sections follow by [`Self::section`]. `places` are those of its sections.
    pub(crate) fn document(
        &mut self,
        docid: &str,
        date: DateKey,
        places: impl ExactSizeIterator<Item = u32> + Clone,
    ) -> Result<(), BuildError> {
        if let Some(after) = self.last_docid()
            && after >= docid.as_bytes()
        {
            let after = String::from_utf8_lossy(after).into_owned();
            return Err(BuildError::OutOfOrder { docid: docid.to_owned(), after });
        }
        let fits = |held: usize, more: usize| held.checked_add(more).is_some_and(|all| all < EXPLICIT as usize);
        if !fits(self.docids.len(), docid.len()) {
            return Err(BuildError::TooLarge("bytes of docids"));
        }
        if !fits(self.body_lengths.len(), places.len()) || !fits(self.dates.len(), 1) {
            return Err(BuildError::TooLarge("sections"));
        }
        let first = places.clone().next().unwrap_or(0);
        let consecutive = first < EXPLICIT && places.clone().enumerate().all(|(i, place)| place == first + i as u32);
        self.first_sections.push(self.sections());
        self.first_places.push(if consecutive { first } else { EXPLICIT | self.places.len() as u32 });
        if !consecutive {
            self.places.extend(places);
        }
        self.dates.push(date);
        self.docid_starts.push(self.docids.len() as u32);
        self.docids.extend_from_slice(docid.as_bytes());
        Ok(())
    }

    pub(crate) fn section(&mut self, kbid: u64, lengths: Lengths) {
        self.body_lengths.push(lengths.body);
        self.field_lengths.push(lengths.fields);
        self.kbids.push(kbid);
        self.totals.add(lengths);
    }

    fn lengths(&self, section: u32) -> Lengths {
        let index = section as usize;
        Lengths { body: self.body_lengths[index], fields: self.field_lengths[index] }
    }
}

/// Marks a first place as an index into the list of places.
pub(crate) const EXPLICIT: u32 = 1 << 31;

/// Writes a segment term by term.
pub(crate) struct SegmentWriter<'a, W> {
    out: Counting<W>,
    tables: &'a Tables,
    impacts: Impacts,
    analyzer_version: u32,
    language: Language,
    piece: fst::MapBuilder<Vec<u8>>,
    piece_start: u64,
    piece_keys: usize,
    pieces: Vec<u8>,
    first_keys: Vec<u8>,
    record: Vec<u8>,
    scratch: Vec<u8>,
    terms: u64,
}

impl<'a, W: Write> SegmentWriter<'a, W> {
    pub(crate) fn new(
        out: W,
        tables: &'a Tables,
        analyzer_version: u32,
        language: Language,
    ) -> Result<Self, BuildError> {
        let mut out = Counting { out, bytes: 0 };
        out.write_all(&layout::head())?;
        Ok(Self {
            piece_start: out.bytes,
            out,
            tables,
            impacts: Impacts::new(&tables.totals),
            analyzer_version,
            language,
            piece: fst::MapBuilder::memory(),
            piece_keys: 0,
            pieces: Vec::new(),
            first_keys: Vec::new(),
            record: Vec::new(),
            scratch: Vec::new(),
            terms: 0,
        })
    }

    /// Writes a term; keys come in ascending order. `words` says that the postings are sections and need bounds.
    pub(crate) fn term(&mut self, key: &[u8], postings: &TermPostings, words: bool) -> Result<(), BuildError> {
        if self.piece_keys == 0 {
            self.piece_start = self.out.bytes;
            self.pieces.extend(self.piece_start.to_le_bytes());
            self.pieces.extend((self.first_keys.len() as u32).to_le_bytes());
            self.first_keys.extend_from_slice(key);
        }
        let impact_of = |section, tf, counts| {
            if words { self.impacts.of(tf, counts, self.tables.lengths(section)) } else { 0.0 }
        };
        self.record.clear();
        postings::encode(postings, &impact_of, &mut self.scratch, &mut self.record);
        self.piece
            .insert(key, self.out.bytes - self.piece_start)
            .map_err(|_| BuildError::TooLarge("unsorted terms"))?;
        self.out.write_all(&self.record)?;
        self.terms += 1;
        self.piece_keys += key.len();
        if self.piece_keys >= PIECE_KEY_BYTES {
            self.close_piece()?;
        }
        Ok(())
    }

    fn close_piece(&mut self) -> Result<(), BuildError> {
        let piece = std::mem::replace(&mut self.piece, fst::MapBuilder::memory());
        let bytes = piece.into_inner().map_err(|_| BuildError::TooLarge("unsorted terms"))?;
        self.pieces.extend(self.out.bytes.to_le_bytes());
        self.pieces.extend((bytes.len() as u32).to_le_bytes());
        self.out.write_all(&bytes)?;
        self.piece_keys = 0;
        Ok(())
    }

    /// Writes what comes after the terms.
    pub(crate) fn finish(mut self) -> Result<SegmentStats, BuildError> {
        if self.piece_keys > 0 {
            self.close_piece()?;
        }
        let tables = self.tables;
        let mut order: Vec<u32> = (0..tables.sections()).collect();
        order.sort_unstable_by_key(|&section| (tables.kbids[section as usize], section));
        let ends = |starts: &[u32], end: usize| starts.iter().copied().chain([end as u32]).collect::<Vec<u32>>();
        let first_sections = ends(&tables.first_sections, tables.body_lengths.len());
        let docid_starts = ends(&tables.docid_starts, tables.docids.len());

        let mut parts = [(0, 0); PARTS];
        let pieces = std::mem::take(&mut self.pieces);
        let first_keys = std::mem::take(&mut self.first_keys);
        let mut part = |part: Part, bytes: &mut dyn FnMut(&mut Counting<W>) -> io::Result<()>| {
            let start = self.out.bytes;
            bytes(&mut self.out)?;
            parts[part as usize] = (start, self.out.bytes - start);
            io::Result::Ok(())
        };
        part(Part::Pieces, &mut |out| out.write_all(&pieces))?;
        part(Part::PieceKeys, &mut |out| out.write_all(&first_keys))?;
        part(Part::BodyLengths, &mut |out| put_all(out, &tables.body_lengths, |v| v.to_le_bytes()))?;
        part(Part::FieldLengths, &mut |out| put_all(out, &tables.field_lengths, |&v| v))?;
        part(Part::Kbids, &mut |out| put_all(out, &tables.kbids, |v| v.to_le_bytes()))?;
        part(Part::KbidOrder, &mut |out| put_all(out, &order, |v| v.to_le_bytes()))?;
        part(Part::FirstSections, &mut |out| put_all(out, &first_sections, |v| v.to_le_bytes()))?;
        part(Part::FirstPlaces, &mut |out| put_all(out, &tables.first_places, |v| v.to_le_bytes()))?;
        part(Part::Places, &mut |out| put_all(out, &tables.places, |v| v.to_le_bytes()))?;
        part(Part::Dates, &mut |out| put_all(out, &tables.dates, date_bytes))?;
        part(Part::DocidStarts, &mut |out| put_all(out, &docid_starts, |v| v.to_le_bytes()))?;
        part(Part::Docids, &mut |out| out.write_all(&tables.docids))?;

        let foot = Foot {
            analyzer_version: self.analyzer_version,
            language: self.language,
            documents: tables.documents(),
            sections: tables.sections(),
            terms: self.terms,
            totals: tables.totals,
            parts,
        };
        self.out.write_all(&foot.to_bytes())?;
        self.out.flush()?;
        Ok(SegmentStats {
            documents: tables.documents(),
            sections: tables.sections(),
            terms: self.terms,
            bytes: self.out.bytes,
        })
    }
}

fn date_bytes(date: &DateKey) -> [u8; 12] {
    let mut out = [0; 12];
    out[..8].copy_from_slice(&date.utc_seconds.to_le_bytes());
    out[8..].copy_from_slice(&date.local_day.to_le_bytes());
    out
}

/// Writes a table piecewise, so that no second copy of it is held.
fn put_all<T, const N: usize>(out: &mut impl Write, values: &[T], bytes: impl Fn(&T) -> [u8; N]) -> io::Result<()> {
    let mut buffer = Vec::with_capacity(4096 * N);
    for values in values.chunks(4096) {
        buffer.clear();
        for value in values {
            buffer.extend(bytes(value));
        }
        out.write_all(&buffer)?;
    }
    Ok(())
}

/// Counts what is written.
struct Counting<W> {
    out: W,
    bytes: u64,
}

impl<W: Write> Write for Counting<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
