//! An open segment.
//!
//! **Invariant:** opening reads a constant number of bytes; everything else is read when it is asked for, and every
//! length and offset is checked before it is used.

use std::ops::Range;

use kb_core::SectionId;

use super::codec::Bytes;
use super::dictionary;
use super::impact::{Lengths, Totals};
use super::input::{DateKey, kbid_prefix};
use super::layout::{self, FOOT_LEN, Foot, HEAD_LEN, Part};
use super::writer::EXPLICIT;
use crate::analysis::Language;
use crate::source::{SegmentError, Source};

/// Where a section stands.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Occurrence {
    /// The document.
    pub docid: String,
    /// Number of the document in the segment, as [`super::Dead`] counts.
    pub ordinal: u32,
    /// Place in the document.
    pub position: u32,
}

/// An open segment.
#[derive(Debug)]
pub struct Segment<S> {
    source: S,
    foot: Foot,
}

impl<S: Source> Segment<S> {
    /// Opens a segment: reads its foot and nothing else.
    pub fn open(source: S) -> Result<Self, SegmentError> {
        let len = source.len();
        if len < (HEAD_LEN + FOOT_LEN) as u64 {
            return Err(SegmentError::Malformed("it is too short for an index segment"));
        }
        let foot = Foot::read(source.read(len - FOOT_LEN as u64..len)?, len - FOOT_LEN as u64)?;
        Ok(Self { source, foot })
    }

    /// Returns the bytes' owner.
    pub fn source(&self) -> &S {
        &self.source
    }

    /// Returns the number of documents, dead ones included.
    pub fn documents(&self) -> u32 {
        self.foot.documents
    }

    /// Returns the number of sections, dead ones included.
    pub fn sections(&self) -> u32 {
        self.foot.sections
    }

    /// Returns the number of distinct terms, facets included.
    pub fn terms(&self) -> u64 {
        self.foot.terms
    }

    /// Returns the version of the analyser that the terms come from.
    pub fn analyzer_version(&self) -> u32 {
        self.foot.analyzer_version
    }

    /// Returns the language that the terms were stemmed by.
    pub fn language(&self) -> Language {
        self.foot.language
    }

    /// Returns the ordinal of a document.
    pub fn find(&self, docid: &str) -> Result<Option<u32>, SegmentError> {
        let ordinal = self.first_not_below(docid.as_bytes())?;
        Ok((ordinal < self.documents() && self.docid_bytes(ordinal)? == docid.as_bytes()).then_some(ordinal))
    }

    /// Returns the ordinals of the documents whose docids begin so.
    pub fn find_prefix(&self, prefix: &str) -> Result<Range<u32>, SegmentError> {
        let start = self.first_not_below(prefix.as_bytes())?;
        let end = partition(start..self.documents(), |ordinal| {
            Ok(self.docid_bytes(ordinal)?.starts_with(prefix.as_bytes()))
        })?;
        Ok(start..end)
    }

    /// Returns the docid of a document.
    pub fn docid(&self, ordinal: u32) -> Result<&str, SegmentError> {
        std::str::from_utf8(self.docid_bytes(ordinal)?).map_err(|_| SegmentError::Malformed("a docid is not UTF-8"))
    }

    /// Returns when a document was learned.
    pub fn date(&self, ordinal: u32) -> Result<DateKey, SegmentError> {
        let entry: [u8; 12] = self.entry(Part::Dates, ordinal)?;
        let mut bytes = Bytes(&entry);
        Ok(DateKey {
            utc_seconds: bytes.array().map(i64::from_le_bytes)?,
            local_day: bytes.array().map(i32::from_le_bytes)?,
        })
    }

    /// Returns the section numbers of a document.
    pub fn sections_of(&self, ordinal: u32) -> Result<Range<u32>, SegmentError> {
        let start = self.first_section(ordinal)?;
        let end = self.first_section(ordinal + 1)?;
        if start > end || end > self.sections() {
            return Err(SegmentError::Malformed("sections of a document are out of order"));
        }
        Ok(start..end)
    }

    /// Returns the document that a section belongs to.
    pub fn document_of(&self, section: u32) -> Result<u32, SegmentError> {
        self.document_within(section, 0..self.documents())
    }

    /// As [`Self::document_of`], for a section that is known to lie in one of these documents.
    pub(crate) fn document_within(&self, section: u32, documents: Range<u32>) -> Result<u32, SegmentError> {
        if section >= self.sections() {
            return Err(SegmentError::Malformed("a section number is too large"));
        }
        // Documents without sections have the same first section as the next.
        let after = partition(documents, |ordinal| Ok(self.first_section(ordinal)? <= section))?;
        after.checked_sub(1).ok_or(SegmentError::Malformed("a section belongs to no document"))
    }

    /// Returns the place of a section of this document in it.
    pub fn place(&self, ordinal: u32, section: u32) -> Result<u32, SegmentError> {
        let index = section
            .checked_sub(self.first_section(ordinal)?)
            .ok_or(SegmentError::Malformed("a section is not of its document"))?;
        let first = u32::from_le_bytes(self.entry(Part::FirstPlaces, ordinal)?);
        let place = if first & EXPLICIT == 0 {
            first.checked_add(index)
        } else {
            let entry = (first ^ EXPLICIT).checked_add(index);
            entry.map(|entry| self.entry(Part::Places, entry).map(u32::from_le_bytes)).transpose()?
        };
        place.ok_or(SegmentError::Malformed("a place is too large"))
    }

    /// Returns where a section may stand, dead documents included: the first 64 bits of its kbid agree, the caller
    /// checks the rest.
    pub fn occurrences(&self, kbid: SectionId) -> Result<Vec<Occurrence>, SegmentError> {
        let found = self.sections_with(kbid_prefix(kbid), usize::MAX)?;
        found
            .into_iter()
            .map(|section| {
                let ordinal = self.document_of(section)?;
                Ok(Occurrence {
                    docid: self.docid(ordinal)?.to_owned(),
                    ordinal,
                    position: self.place(ordinal, section)?,
                })
            })
            .collect()
    }

    /// Returns the sections whose kbid begins with these 64 bits, in order, at most `limit`.
    pub(crate) fn sections_with(&self, kbid_prefix: u64, limit: usize) -> Result<Vec<u32>, SegmentError> {
        let at = |index: u32| Ok(u32::from_le_bytes(self.entry(Part::KbidOrder, index)?));
        let value = |index: u64| self.kbid_prefix(at(index as u32)?);
        let start = kb_core::lower_bound(0..u64::from(self.sections()), kbid_prefix, value)?;
        let mut found = Vec::new();
        for index in start as u32..self.sections() {
            let section = at(index)?;
            if found.len() == limit || self.kbid_prefix(section)? != kbid_prefix {
                break;
            }
            found.push(section);
        }
        Ok(found)
    }

    /// Returns the first 64 bits of a section's kbid.
    pub fn kbid_prefix(&self, section: u32) -> Result<u64, SegmentError> {
        self.entry(Part::Kbids, section).map(u64::from_le_bytes)
    }

    /// Says whether the sections of a document are these, in order; the first 64 bits of their kbids are compared.
    pub fn consists_of(&self, ordinal: u32, kbids: &[SectionId]) -> Result<bool, SegmentError> {
        let sections = self.sections_of(ordinal)?;
        if sections.len() != kbids.len() {
            return Ok(false);
        }
        for (section, kbid) in sections.zip(kbids) {
            if self.kbid_prefix(section)? != kbid_prefix(*kbid) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Reads the whole segment and checks that it is well formed.
    pub fn check(&self) -> Result<(), SegmentError> {
        let malformed = |what| Err(SegmentError::Malformed(what));
        if self.read(0..HEAD_LEN as u64)? != layout::head() {
            return malformed("it does not begin as an index segment does");
        }
        let mut totals = Totals::default();
        for section in 0..self.sections() {
            totals.add(self.lengths(section)?);
        }
        if totals != self.foot.totals {
            return malformed("the sums of lengths are wrong");
        }
        let mut before: Option<&str> = None;
        for ordinal in 0..self.documents() {
            let docid = self.docid(ordinal)?;
            if before.is_some_and(|before| before >= docid) {
                return malformed("docids are out of order");
            }
            before = Some(docid);
            self.date(ordinal)?;
            for section in self.sections_of(ordinal)? {
                self.place(ordinal, section)?;
            }
        }
        let covered = self.documents() == 0 || self.sections_of(self.documents() - 1)?.end == self.sections();
        if !covered || (self.documents() > 0 && self.first_section(0)? != 0) {
            return malformed("sections belong to no document");
        }
        let mut last = None;
        for index in 0..self.sections() {
            let section = u32::from_le_bytes(self.entry(Part::KbidOrder, index)?);
            let key = Some((self.kbid_prefix(section)?, section));
            if key <= last {
                return malformed("kbids are out of order");
            }
            last = key;
        }
        dictionary::check(self)
    }

    pub(crate) fn foot(&self) -> &Foot {
        &self.foot
    }

    /// Reads bytes of a part.
    pub(crate) fn part(&self, part: Part, range: Range<u64>) -> Result<&[u8], SegmentError> {
        let (offset, len) = self.foot.part(part);
        if range.start > range.end || range.end > len {
            return Err(SegmentError::Malformed("an entry lies outside its part"));
        }
        self.read(offset + range.start..offset + range.end)
    }

    /// Reads bytes of the file; a range that does not lie in it is an error.
    pub(crate) fn read(&self, range: Range<u64>) -> Result<&[u8], SegmentError> {
        if range.start > range.end || range.end > self.source.len() {
            return Err(SegmentError::Malformed("an offset lies outside the file"));
        }
        let len = (range.end - range.start) as usize;
        let bytes = self.source.read(range)?;
        if bytes.len() != len {
            return Err(SegmentError::Malformed("fewer bytes were read than asked for"));
        }
        Ok(bytes)
    }

    pub(crate) fn entry<const N: usize>(&self, part: Part, index: u32) -> Result<[u8; N], SegmentError> {
        let start = u64::from(index) * N as u64;
        let bytes = self.part(part, start..start + N as u64)?;
        bytes.try_into().map_err(|_| SegmentError::Malformed("an entry is cut short"))
    }

    pub(crate) fn first_section(&self, ordinal: u32) -> Result<u32, SegmentError> {
        self.entry(Part::FirstSections, ordinal).map(u32::from_le_bytes)
    }

    pub(crate) fn lengths(&self, section: u32) -> Result<Lengths, SegmentError> {
        Ok(Lengths {
            body: self.entry(Part::BodyLengths, section).map(u16::from_le_bytes)?,
            fields: self.entry(Part::FieldLengths, section)?,
        })
    }

    fn docid_bytes(&self, ordinal: u32) -> Result<&[u8], SegmentError> {
        let start: u32 = self.entry(Part::DocidStarts, ordinal).map(u32::from_le_bytes)?;
        let end: u32 = self.entry(Part::DocidStarts, ordinal + 1).map(u32::from_le_bytes)?;
        self.part(Part::Docids, u64::from(start)..u64::from(end))
    }

    fn first_not_below(&self, docid: &[u8]) -> Result<u32, SegmentError> {
        partition(0..self.documents(), |ordinal| Ok(self.docid_bytes(ordinal)? < docid))
    }
}

/// Returns the first number of the range for which `holds` no longer does.
pub(crate) fn partition(
    range: Range<u32>,
    holds: impl Fn(u32) -> Result<bool, SegmentError>,
) -> Result<u32, SegmentError> {
    let (mut low, mut high) = (range.start, range.end);
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle)? {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    Ok(low)
}
