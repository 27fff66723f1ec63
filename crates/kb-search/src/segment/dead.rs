//! Which documents of a segment are gone.
//!
//! ```text
//! 4     magic "kbd" and 1, the format
//! vint  documents, then for each: ordinal less the one before less one, first section less the end of the sections
//!       of the one before, sections; vint each
//! vint  sums of the lengths of the dead sections: body, title, headings, tags
//! ```
//!
//! **Invariant:** what is left after the dead is counted exactly, so that scores do not depend on what was deleted.

use super::codec::{Bytes, put_vint};
use super::cursor::Cursor;
use super::impact::Totals;
use super::reader::Segment;
use crate::source::{SegmentError, Source};

const MAGIC: [u8; 4] = *b"kbd\x01";

/// The dead documents of one segment, with the statistics that they take away.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dead {
    documents: Vec<DeadDocument>,
    /// A bit for each section of the segment, up to the last dead one.
    sections: Vec<u64>,
    totals: Totals,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct DeadDocument {
    ordinal: u32,
    first: u32,
    end: u32,
}

impl Dead {
    /// Returns a set without documents.
    pub fn new() -> Self {
        Self::default()
    }

    /// Marks a document as dead; returns whether it was alive.
    pub fn insert<S: Source>(&mut self, segment: &Segment<S>, ordinal: u32) -> Result<bool, SegmentError> {
        let Err(place) = self.documents.binary_search_by_key(&ordinal, |document| document.ordinal) else {
            return Ok(false);
        };
        let sections = segment.sections_of(ordinal)?;
        let mut totals = self.totals;
        for section in sections.clone() {
            totals.add(segment.lengths(section)?);
        }
        self.totals = totals;
        let document = DeadDocument { ordinal, first: sections.start, end: sections.end };
        self.mark(document);
        self.documents.insert(place, document);
        Ok(true)
    }

    /// Says whether a document is dead.
    pub fn contains(&self, ordinal: u32) -> bool {
        self.documents.binary_search_by_key(&ordinal, |document| document.ordinal).is_ok()
    }

    /// Returns the number of dead documents.
    pub fn len(&self) -> usize {
        self.documents.len()
    }

    /// Says whether every document is alive.
    pub fn is_empty(&self) -> bool {
        self.documents.is_empty()
    }

    /// Returns the number of sections of dead documents.
    pub fn sections(&self) -> u32 {
        self.totals.sections as u32
    }

    /// Writes the set, a few bytes for each document.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        put_vint(&mut out, self.documents.len() as u64);
        let (mut ordinal, mut end) = (0, 0);
        for document in &self.documents {
            put_vint(&mut out, u64::from(document.ordinal - ordinal));
            put_vint(&mut out, u64::from(document.first - end));
            put_vint(&mut out, u64::from(document.end - document.first));
            (ordinal, end) = (document.ordinal + 1, document.end);
        }
        for sum in [self.totals.body, self.totals.fields[0], self.totals.fields[1], self.totals.fields[2]] {
            put_vint(&mut out, sum);
        }
        out
    }

    /// Reads a set that was written for this segment; what does not fit it is refused.
    pub fn from_bytes<S: Source>(bytes: &[u8], segment: &Segment<S>) -> Result<Self, SegmentError> {
        const UNFIT: SegmentError = SegmentError::Malformed("the set of dead documents does not fit its segment");
        let mut bytes = Bytes(bytes);
        if bytes.array()? != MAGIC {
            return Err(SegmentError::Malformed("it does not begin as a set of dead documents does"));
        }
        let count = bytes.vint32()?;
        let mut dead = Self::default();
        let (mut next, mut end) = (0_u32, 0_u32);
        for _ in 0..count {
            let ordinal = next.checked_add(bytes.vint32()?).filter(|&o| o < segment.documents()).ok_or(UNFIT)?;
            let first = end.checked_add(bytes.vint32()?).ok_or(UNFIT)?;
            end = first.checked_add(bytes.vint32()?).filter(|&end| end <= segment.sections()).ok_or(UNFIT)?;
            let document = DeadDocument { ordinal, first, end };
            dead.mark(document);
            dead.documents.push(document);
            dead.totals.sections += u64::from(end - first);
            next = ordinal + 1;
        }
        dead.totals.body = bytes.vint()?;
        for sum in &mut dead.totals.fields {
            *sum = bytes.vint()?;
        }
        if !bytes.0.is_empty() || segment.foot().totals.minus(&dead.totals).is_none() {
            return Err(UNFIT);
        }
        Ok(dead)
    }

    pub(crate) fn totals(&self) -> &Totals {
        &self.totals
    }

    pub(crate) fn contains_section(&self, section: u32) -> bool {
        self.sections.get(section as usize / 64).is_some_and(|bits| bits >> (section % 64) & 1 == 1)
    }

    /// Counts the postings of a fresh cursor that are dead.
    pub(crate) fn count<S: Source>(&self, cursor: &mut Cursor<'_, S>) -> Result<u32, SegmentError> {
        let mut count = 0;
        if u64::from(cursor.df()) <= 4 * self.totals.sections {
            let mut section = cursor.section();
            while section != Cursor::<S>::END {
                count += u32::from(self.contains_section(section));
                section = cursor.advance()?;
            }
            return Ok(count);
        }
        for document in &self.documents {
            let mut section = cursor.seek(document.first)?;
            while section < document.end {
                count += 1;
                section = cursor.advance()?;
            }
        }
        Ok(count)
    }

    fn mark(&mut self, document: DeadDocument) {
        let words = (document.end as usize).div_ceil(64);
        if self.sections.len() < words {
            self.sections.resize(words, 0);
        }
        for section in document.first..document.end {
            self.sections[section as usize / 64] |= 1 << (section % 64);
        }
    }
}
