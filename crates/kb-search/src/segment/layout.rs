//! Head and foot of a segment file.
//!
//! ```text
//! 0    8  magic "kbindex\n"
//! 8    4  format version, u32 little-endian
//! 12   4  zero
//! 16   …  parts
//! end-320  the foot:
//!   0    4  version of the analyser
//!   4    4  language: 0 none, 1 English
//!   8    4  documents
//!   12   4  sections
//!   16   8  distinct terms, facets included
//!   24  32  sums of the lengths of body, title, headings and tags, u64 each
//!   56  16 for each part: offset, length
//!   …        zeros
//!   308  4  format version
//!   312  8  magic
//! ```
//!
//! **Invariant:** [`Foot::read`] returns only parts that lie inside the file.

use super::codec::Bytes;
use super::impact::Totals;
use crate::analysis::Language;
use crate::source::SegmentError;

/// The format that this version writes, and the newest that it reads.
pub(crate) const FORMAT: u32 = 1;

const MAGIC: [u8; 8] = *b"kbindex\n";
pub(crate) const HEAD_LEN: usize = 16;
pub(crate) const FOOT_LEN: usize = 320;

/// Returns the head of a file.
pub(crate) fn head() -> [u8; HEAD_LEN] {
    let mut head = [0; HEAD_LEN];
    head[..8].copy_from_slice(&MAGIC);
    head[8..12].copy_from_slice(&FORMAT.to_le_bytes());
    head
}

/// A part of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// Entries of 24 bytes, one for each piece of the dictionary, sorted.
    Pieces,
    /// The first keys of the pieces, one after the other.
    PieceKeys,
    /// u16 for each section: length of the body.
    BodyLengths,
    /// Three u8 for each section: lengths of title, headings, tags.
    FieldLengths,
    /// u64 for each section: the first bytes of the kbid, big-endian as a number.
    Kbids,
    /// u32 for each section: the section numbers sorted by that.
    KbidOrder,
    /// u32 for each document and one more: the number of its first section.
    FirstSections,
    /// u32 for each document: place of the first section in the document; the top bit set, an index into `Places`.
    FirstPlaces,
    /// u32 for each section of a document whose sections do not follow each other: its place.
    Places,
    /// i64 and i32 for each document.
    Dates,
    /// u32 for each document and one more: where its docid begins.
    DocidStarts,
    /// The docids, one after the other.
    Docids,
}

/// Number of parts.
pub(crate) const PARTS: usize = Part::Docids as usize + 1;

/// The foot, read.
#[derive(Debug, Clone)]
pub(crate) struct Foot {
    pub(crate) analyzer_version: u32,
    pub(crate) language: Language,
    pub(crate) documents: u32,
    pub(crate) sections: u32,
    pub(crate) terms: u64,
    pub(crate) totals: Totals,
    pub(crate) parts: [(u64, u64); PARTS],
}

impl Foot {
    pub(crate) fn part(&self, part: Part) -> (u64, u64) {
        self.parts[part as usize]
    }

    pub(crate) fn to_bytes(&self) -> [u8; FOOT_LEN] {
        let mut out = Vec::with_capacity(FOOT_LEN);
        for number in [self.analyzer_version, language_code(self.language), self.documents, self.sections] {
            out.extend(number.to_le_bytes());
        }
        let [title, headings, tags] = self.totals.fields;
        for number in [self.terms, self.totals.body, title, headings, tags] {
            out.extend(number.to_le_bytes());
        }
        for (offset, len) in self.parts {
            out.extend(offset.to_le_bytes());
            out.extend(len.to_le_bytes());
        }
        out.resize(FOOT_LEN - 12, 0);
        out.extend(FORMAT.to_le_bytes());
        out.extend(MAGIC);
        out.try_into().expect("the foot was filled up to its length")
    }

    /// Reads the foot of a file of `len` bytes.
    pub(crate) fn read(foot: &[u8], len: u64) -> Result<Self, SegmentError> {
        let mut end = Bytes(foot.last_chunk::<12>().ok_or(SegmentError::Malformed("the foot is cut short"))?);
        let found = end.u32()?;
        if end.0 != MAGIC {
            return Err(SegmentError::Malformed("it does not end as an index segment does"));
        }
        if found != FORMAT {
            return Err(SegmentError::TooNew { found, known: FORMAT });
        }
        let mut bytes = Bytes(foot);
        let analyzer_version = bytes.u32()?;
        let language = language_of(bytes.u32()?)?;
        let (documents, sections, terms) = (bytes.u32()?, bytes.u32()?, bytes.u64()?);
        let body = bytes.u64()?;
        let fields = [bytes.u64()?, bytes.u64()?, bytes.u64()?];
        let mut parts = [(0, 0); PARTS];
        for part in &mut parts {
            *part = (bytes.u64()?, bytes.u64()?);
            if part.0.checked_add(part.1).is_none_or(|end| end > len) {
                return Err(SegmentError::Malformed("a part lies outside the file"));
            }
        }
        let totals = Totals { sections: u64::from(sections), body, fields };
        let foot = Self { analyzer_version, language, documents, sections, terms, totals, parts };
        let (documents, sections) = (u64::from(documents), u64::from(sections));
        let fits = |part: Part, expected: u64| foot.part(part).1 == expected;
        if !(fits(Part::BodyLengths, 2 * sections)
            && fits(Part::FieldLengths, 3 * sections)
            && fits(Part::Kbids, 8 * sections)
            && fits(Part::KbidOrder, 4 * sections)
            && fits(Part::FirstSections, 4 * documents + 4)
            && fits(Part::FirstPlaces, 4 * documents)
            && fits(Part::Dates, 12 * documents)
            && fits(Part::DocidStarts, 4 * documents + 4)
            && foot.part(Part::Places).1.is_multiple_of(4)
            && foot.part(Part::Pieces).1.is_multiple_of(24)
            && body <= sections * u64::from(u16::MAX)
            && fields.iter().all(|&sum| sum <= sections * u64::from(u8::MAX)))
        {
            return Err(SegmentError::Malformed("the parts do not fit the counts"));
        }
        Ok(foot)
    }
}

fn language_code(language: Language) -> u32 {
    match language {
        Language::None => 0,
        Language::English => 1,
    }
}

fn language_of(code: u32) -> Result<Language, SegmentError> {
    match code {
        0 => Ok(Language::None),
        1 => Ok(Language::English),
        _ => Err(SegmentError::Malformed("it was analysed in a language that this version does not know")),
    }
}
