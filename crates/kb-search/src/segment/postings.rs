//! The postings of one term as bytes.
//!
//! ```text
//! vint  bytes that follow
//! vint  df: sections (of a facet: documents) that hold the term
//! df < 128:   postings in the short form, then positions
//! df >= 128:  vint  where positions begin, counted from the first skip entry
//!             u16   bound of the whole list
//!             skip entries of 16 bytes, one a block: last section, end of the block (from the end of the skips),
//!                   where its positions begin (bytes from the first position) u32 each; bound u16; how many numbers
//!                   of that block of positions belong to earlier sections u8; zero u8
//!             blocks of 128 postings: gaps, frequency codes and field counts, a patched block each; the last, if
//!                   less than 128, in the short form
//!             positions
//! short form: vint (gap << 2 | frequency follows << 1 | field counts follow), vint frequency code, vint field counts
//! positions:  of each section the first, then gaps less one; patched blocks of 128, the rest as vints, in a
//!             long list after a byte 255
//! ```
//!
//! A gap is less one and the first is counted from -1. The frequency code is 0 for one, 1 for none (the term stands in
//! the title or the headings only), else the frequency.
//!
//! **Invariant:** equal postings under equal bounds give equal bytes, whoever hands them in.

use super::codec::{BLOCK, Bytes, get_patched, put_patched, put_vint, undelta};
use super::impact::{self, FieldCounts};
use crate::source::SegmentError;

/// Stands in a long list in place of a width, before the positions that fill no block.
pub(crate) const LAST_POSITIONS: u8 = 0xff;

/// Bytes of a skip entry.
pub(crate) const SKIP: usize = 16;

/// The postings of one term, in memory.
#[derive(Debug, Default)]
pub(crate) struct TermPostings {
    /// Section numbers (of a facet: ordinals of documents), ascending.
    pub(crate) sections: Vec<u32>,
    /// How often the term stands in each body.
    pub(crate) tfs: Vec<u32>,
    /// How often it stands elsewhere.
    pub(crate) counts: Vec<FieldCounts>,
    /// For each section the first position and then the gaps less one; empty for a term without positions.
    pub(crate) positions: Vec<u32>,
}

impl TermPostings {
    pub(crate) fn clear(&mut self) {
        self.sections.clear();
        self.tfs.clear();
        self.counts.clear();
        self.positions.clear();
    }

    /// Appends a posting without words, for a facet.
    pub(crate) fn push_document(&mut self, ordinal: u32) {
        self.sections.push(ordinal);
        self.tfs.push(1);
        self.counts.push(FieldCounts::default());
    }
}

/// One step of a bound: the impact of a posting.
pub(crate) type ImpactOf<'a> = &'a dyn Fn(u32, u32, FieldCounts) -> f32;

fn tf_code(tf: u32) -> u32 {
    match tf {
        0 => 1,
        1 => 0,
        more => more,
    }
}

/// Appends a term's record. `impact_of` is asked for the bounds with section, frequency and field counts.
pub(crate) fn encode(postings: &TermPostings, impact_of: ImpactOf<'_>, scratch: &mut Vec<u8>, out: &mut Vec<u8>) {
    scratch.clear();
    let df = postings.sections.len();
    put_vint(scratch, df as u64);
    if df < BLOCK {
        put_short(scratch, postings, 0);
        put_positions(scratch, &postings.positions, false);
    } else {
        put_long(scratch, postings, impact_of);
    }
    put_vint(out, scratch.len() as u64);
    out.extend_from_slice(scratch);
}

fn put_short(out: &mut Vec<u8>, postings: &TermPostings, from: usize) {
    let mut before = if from == 0 { u32::MAX } else { postings.sections[from - 1] };
    for index in from..postings.sections.len() {
        let (section, code) = (postings.sections[index], tf_code(postings.tfs[index]));
        let counts = postings.counts[index].bits();
        let gap = u64::from(section.wrapping_sub(before).wrapping_sub(1));
        put_vint(out, gap << 2 | u64::from(code != 0) << 1 | u64::from(counts != 0));
        if code != 0 {
            put_vint(out, u64::from(code));
        }
        if counts != 0 {
            put_vint(out, u64::from(counts));
        }
        before = section;
    }
}

fn put_long(out: &mut Vec<u8>, postings: &TermPostings, impact_of: ImpactOf<'_>) {
    let df = postings.sections.len();
    let mut positions = Vec::new();
    let starts = put_positions(&mut positions, &postings.positions, true);
    let mut skips = Vec::with_capacity(df.div_ceil(BLOCK) * SKIP);
    let mut blocks = Vec::new();
    let mut most = 0;
    let mut position_index = 0_usize;
    let mut before = u32::MAX;
    for from in (0..df).step_by(BLOCK) {
        let to = (from + BLOCK).min(df);
        let mut bound = 0;
        let mut occurrences = 0;
        for index in from..to {
            let (section, tf) = (postings.sections[index], postings.tfs[index]);
            bound = bound.max(impact::bound(impact_of(section, tf, postings.counts[index])));
            occurrences += tf as usize;
        }
        most = most.max(bound);
        if to - from == BLOCK {
            let gaps = std::array::from_fn(|i| {
                let previous = if i == 0 { before } else { postings.sections[from + i - 1] };
                postings.sections[from + i].wrapping_sub(previous).wrapping_sub(1)
            });
            let codes = std::array::from_fn(|i| tf_code(postings.tfs[from + i]));
            let counts = std::array::from_fn(|i| postings.counts[from + i].bits());
            for values in [gaps, codes, counts] {
                put_patched(&mut blocks, &values);
            }
        } else {
            put_short(&mut blocks, postings, from);
        }
        before = postings.sections[to - 1];
        // A list of facets, or a block whose sections hold no body word at the very end, has no positions to point at.
        let start = starts.get(position_index / BLOCK).copied().unwrap_or(positions.len() as u32);
        skips.extend(before.to_le_bytes());
        skips.extend((blocks.len() as u32).to_le_bytes());
        skips.extend(start.to_le_bytes());
        skips.extend(bound.to_le_bytes());
        skips.extend([(position_index % BLOCK) as u8, 0]);
        position_index += if postings.positions.is_empty() { 0 } else { occurrences };
    }
    put_vint(out, (skips.len() + blocks.len()) as u64);
    out.extend(most.to_le_bytes());
    out.extend(skips);
    out.extend(blocks);
    out.extend(positions);
}

/// Appends positions and returns where each block of 128 begins. `marked` puts a mark before those that fill none.
fn put_positions(out: &mut Vec<u8>, positions: &[u32], marked: bool) -> Vec<u32> {
    let base = out.len();
    let mut starts = Vec::with_capacity(positions.len() / BLOCK + 1);
    let (blocks, rest) = positions.as_chunks::<BLOCK>();
    for block in blocks {
        starts.push((out.len() - base) as u32);
        put_patched(out, block);
    }
    starts.push((out.len() - base) as u32);
    if marked && !rest.is_empty() {
        out.push(LAST_POSITIONS);
    }
    for &position in rest {
        put_vint(out, u64::from(position));
    }
    starts
}

/// One decoded block of postings.
#[derive(Debug, Clone)]
pub(crate) struct Block {
    pub(crate) len: usize,
    pub(crate) sections: [u32; BLOCK],
    pub(crate) tfs: [u32; BLOCK],
    pub(crate) counts: [u32; BLOCK],
}

impl Block {
    pub(crate) fn new() -> Self {
        Self { len: 0, sections: [0; BLOCK], tfs: [0; BLOCK], counts: [0; BLOCK] }
    }

    /// Reads `len` postings in the short form that come after the section `before`.
    pub(crate) fn read_short(&mut self, bytes: &mut Bytes<'_>, len: usize, before: u32) -> Result<(), SegmentError> {
        self.len = 0;
        for index in 0..len.min(BLOCK) {
            let head = bytes.vint()?;
            self.sections[index] =
                u32::try_from(head >> 2).map_err(|_| SegmentError::Malformed("a gap is too large"))?;
            let code = if head & 2 == 0 { 0 } else { bytes.vint32()? };
            self.tfs[index] = if code < 2 { 1 - code } else { code };
            self.counts[index] = if head & 1 == 0 { 0 } else { bytes.vint32()? };
        }
        undelta(&mut self.sections[..len], before)?;
        self.len = len;
        Ok(())
    }

    /// Reads the sections of a full block; [`Self::read_frequencies`] goes on in the same bytes.
    pub(crate) fn read_sections(&mut self, bytes: &mut Bytes<'_>, before: u32) -> Result<(), SegmentError> {
        self.len = 0;
        get_patched(bytes, &mut self.sections)?;
        undelta(&mut self.sections, before)?;
        self.len = BLOCK;
        Ok(())
    }

    /// Reads frequencies and field counts of a full block.
    pub(crate) fn read_frequencies(&mut self, bytes: &mut Bytes<'_>) -> Result<(), SegmentError> {
        get_patched(bytes, &mut self.tfs)?;
        for code in &mut self.tfs {
            *code = if *code < 2 { 1 - *code } else { *code };
        }
        get_patched(bytes, &mut self.counts)
    }
}

/// A skip entry, read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Skip {
    pub(crate) last: u32,
    pub(crate) end: u32,
    pub(crate) positions: u32,
    pub(crate) bound: u16,
    pub(crate) position_index: u8,
}

impl Skip {
    /// Reads the entry with this index of a table.
    pub(crate) fn read(table: &[u8], index: usize) -> Option<Self> {
        let entry: &[u8; SKIP] = table.get(index * SKIP..)?.first_chunk()?;
        let number = |at: usize| u32::from_le_bytes([entry[at], entry[at + 1], entry[at + 2], entry[at + 3]]);
        Some(Self {
            last: number(0),
            end: number(4),
            positions: number(8),
            bound: u16::from_le_bytes([entry[12], entry[13]]),
            position_index: entry[14],
        })
    }
}
