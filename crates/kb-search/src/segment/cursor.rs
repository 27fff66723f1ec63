//! Moves through the postings of one term.
//!
//! **Invariant:** sections come in strictly ascending order and are below the segment's count, whatever the bytes say.

use super::codec::{BLOCK, Bytes, get_patched, skip_patched};
use super::impact::FieldCounts;
use super::postings::{Block, LAST_POSITIONS, SKIP, Skip, TermPostings};
use super::reader::Segment;
use crate::source::{SegmentError, Source};

/// Most bytes of a head: three numbers and a bound.
const HEAD: u64 = 32;
/// Most bytes of a full block of postings or of positions.
const WIDEST: u64 = 3 * (2 + 512 + 255);

/// A place in the postings of a term.
#[derive(Debug, Clone)]
pub(crate) struct Cursor<'a, S> {
    segment: &'a Segment<S>,
    df: u32,
    /// One more than the largest section number.
    limit: u32,
    bound: Option<u16>,
    skips: &'a [u8],
    blocks: u64,
    positions: u64,
    end: u64,
    /// The block at hand, or the number of blocks at the end.
    index: usize,
    at: usize,
    block: Box<Block>,
    /// Frequencies that were not unpacked yet.
    pending: Option<&'a [u8]>,
    unpacked: Positions,
}

/// Postings that follow each other.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Run<'c> {
    pub(crate) sections: &'c [u32],
    /// How often the term stands in each body.
    pub(crate) tfs: &'c [u32],
    /// Bits of [`FieldCounts`].
    pub(crate) counts: &'c [u32],
}

/// A block of positions that was unpacked.
#[derive(Debug, Clone, Default)]
struct Positions {
    /// Where it begins, zero for none.
    start: u64,
    end: u64,
    values: Vec<u32>,
}

impl<'a, S: Source> Cursor<'a, S> {
    /// What [`Self::section`] returns at the end.
    pub(crate) const END: u32 = u32::MAX;

    /// Opens the record at this offset. `words` says that the postings are sections, not documents.
    pub(crate) fn open(segment: &'a Segment<S>, record: u64, words: bool) -> Result<Self, SegmentError> {
        let limit = if words { segment.sections() } else { segment.documents() };
        let file_end = segment.source().len();
        let head = segment.read(record..record.saturating_add(HEAD).min(file_end))?;
        let mut bytes = Bytes(head);
        let len = bytes.vint()?;
        let end = (record + (head.len() - bytes.0.len()) as u64).saturating_add(len);
        let df = bytes.vint32()?;
        if end > file_end || df == 0 || df > limit {
            return Err(SegmentError::Malformed("a list is longer than its file"));
        }
        let mut cursor = Self {
            segment,
            df,
            limit,
            bound: None,
            skips: &[],
            blocks: 0,
            positions: 0,
            end,
            index: 0,
            at: 0,
            block: Box::new(Block::new()),
            pending: None,
            unpacked: Positions::default(),
        };
        if (df as usize) < BLOCK {
            let start = record + (head.len() - bytes.0.len()) as u64;
            let all = cursor.read(start, end)?;
            let mut bytes = Bytes(all);
            cursor.block.read_short(&mut bytes, df as usize, u32::MAX)?;
            cursor.positions = end - bytes.0.len() as u64;
        } else {
            let positions = bytes.vint()?;
            cursor.bound = Some(u16::from_le_bytes(bytes.array()?));
            let start = record + (head.len() - bytes.0.len()) as u64;
            let skips = (df as usize).div_ceil(BLOCK) * SKIP;
            cursor.blocks = start + skips as u64;
            cursor.skips = cursor.read(start, cursor.blocks)?;
            cursor.positions = start.saturating_add(positions);
            if cursor.positions < cursor.blocks || cursor.positions > end {
                return Err(SegmentError::Malformed("positions lie outside their list"));
            }
            cursor.load(0)?;
        }
        cursor.check_block()?;
        Ok(cursor)
    }

    /// Returns the number of postings, dead ones included.
    pub(crate) fn df(&self) -> u32 {
        self.df
    }

    /// Returns where the record ends.
    #[cfg(test)]
    pub(crate) fn record_end(&self) -> u64 {
        self.end
    }

    /// Returns the bound of all impacts in units of [`super::impact::BOUND_UNIT`], where one is stored.
    pub(crate) fn bound(&self) -> Option<u16> {
        self.bound
    }

    /// Returns the section (of a facet: the document) at hand, or [`Self::END`].
    pub(crate) fn section(&self) -> u32 {
        if self.at < self.block.len { self.block.sections[self.at] } else { Self::END }
    }

    /// Goes to the next posting and returns its section.
    pub(crate) fn advance(&mut self) -> Result<u32, SegmentError> {
        self.pass(1)
    }

    /// Returns the postings of the block at hand from the one at hand on, those with sections before `end`.
    pub(crate) fn run(&mut self, end: u32) -> Result<Run<'_>, SegmentError> {
        self.unpack_frequencies()?;
        let at = self.at.min(self.block.len);
        let rest = &self.block.sections[at..self.block.len];
        let to = match rest.last() {
            Some(&last) if last >= end => at + rest.partition_point(|&section| section < end),
            _ => self.block.len,
        };
        let Block { sections, tfs, counts, .. } = &*self.block;
        Ok(Run { sections: &sections[at..to], tfs: &tfs[at..to], counts: &counts[at..to] })
    }

    /// Goes on by so many postings, not beyond the first of the next block, and returns the section there.
    pub(crate) fn pass(&mut self, count: usize) -> Result<u32, SegmentError> {
        self.at += count;
        if self.at >= self.block.len && self.index + 1 < self.block_count() {
            self.load(self.index + 1)?;
            self.check_block()?;
        }
        Ok(self.section())
    }

    /// Goes to the first posting whose section is `target` or larger, forward only, and returns its section.
    pub(crate) fn seek(&mut self, target: u32) -> Result<u32, SegmentError> {
        if self.section() >= target {
            return Ok(self.section());
        }
        if self.block.len > 0 && self.block.sections[self.block.len - 1] < target {
            let Some(index) = self.block_for(target) else {
                self.at = self.block.len;
                self.index = self.block_count();
                return Ok(Self::END);
            };
            self.load(index)?;
            self.check_block()?;
        }
        let rest = &self.block.sections[self.at..self.block.len];
        self.at += rest.partition_point(|&section| section < target);
        Ok(self.section())
    }

    /// Returns the bound of the block that holds the first section not below `target`, and the last section of that
    /// block; `None` past the end or for a list of one block.
    pub(crate) fn block_bound(&self, target: u32) -> Option<(u16, u32)> {
        let skip = Skip::read(self.skips, self.block_for(target)?)?;
        Some((skip.bound, skip.last))
    }

    /// Returns the largest bound of the blocks that may hold a section from `from`, which lies not before the block at
    /// hand, up to `end`; `None` if there is none. For a list of one block that is always so.
    pub(crate) fn bound_within(&self, from: u32, end: u32) -> Option<u16> {
        let first = self.block_for(from)?;
        let mut most = None;
        for index in first.. {
            let Some(skip) = Skip::read(self.skips, index) else { break };
            most = most.max(Some(skip.bound));
            if skip.last.saturating_add(1) >= end {
                break;
            }
        }
        most
    }

    /// Returns the number of postings of the record at this offset, dead ones included, and nothing else of it.
    pub(crate) fn df_at(segment: &Segment<S>, record: u64) -> Result<u32, SegmentError> {
        let end = record.saturating_add(HEAD).min(segment.source().len());
        let mut bytes = Bytes(segment.read(record..end)?);
        bytes.vint()?;
        bytes.vint32()
    }

    /// Returns how often the term stands in the body and in the other fields of the section at hand.
    pub(crate) fn frequencies(&mut self) -> Result<(u32, FieldCounts), SegmentError> {
        self.unpack_frequencies()?;
        if self.at >= self.block.len {
            return Err(SegmentError::Malformed("there is no posting at the end of a list"));
        }
        Ok((self.block.tfs[self.at], FieldCounts::from_bits(self.block.counts[self.at])))
    }

    /// Reads the positions of the section at hand, ascending; the term has to have some, see
    /// [`super::facet::has_positions`].
    pub(crate) fn positions(&mut self, out: &mut Vec<u32>) -> Result<(), SegmentError> {
        self.gaps(out)?;
        let mut last = 0_u32;
        for position in out {
            *position = last.checked_add(*position).ok_or(SegmentError::Malformed("a position is too large"))?;
            last = position.saturating_add(1);
        }
        Ok(())
    }

    /// Appends all postings from the one at hand on, with the sections that `section_of` gives; it leaves out what it
    /// gives none for. `positions` says that the term has them.
    pub(crate) fn drain(
        &mut self,
        section_of: impl Fn(u32) -> Option<u32>,
        out: &mut TermPostings,
        positions: bool,
    ) -> Result<(), SegmentError> {
        let mut gaps = Vec::new();
        while self.section() != Self::END {
            if let Some(section) = section_of(self.section()) {
                let (tf, counts) = self.frequencies()?;
                out.sections.push(section);
                out.tfs.push(tf);
                out.counts.push(counts);
                if positions {
                    self.gaps(&mut gaps)?;
                    out.positions.extend_from_slice(&gaps);
                }
            }
            self.advance()?;
        }
        Ok(())
    }

    /// Reads the positions of the section at hand as they are stored: the first, then gaps less one.
    fn gaps(&mut self, out: &mut Vec<u32>) -> Result<(), SegmentError> {
        out.clear();
        let (tf, _) = self.frequencies()?;
        let before = self.block.tfs[..self.at].iter().fold(0_usize, |sum, &tf| sum.saturating_add(tf as usize));
        let (mut start, mut skip, marked) = match Skip::read(self.skips, self.index) {
            Some(entry) => {
                let start = self.positions.saturating_add(u64::from(entry.positions));
                (start, before.saturating_add(usize::from(entry.position_index)), true)
            }
            None => (self.positions, before, false),
        };
        let mut missing = tf as usize;
        // In a list without marks, only the sum of the frequencies says where the last block of positions begins.
        let mut left = if marked {
            usize::MAX
        } else {
            self.block.tfs[..self.block.len].iter().fold(0_usize, |sum, &tf| sum.saturating_add(tf as usize))
        };
        while missing > 0 {
            if skip >= BLOCK && self.unpacked.start != start {
                let bytes = self.read(start, self.end)?;
                let last = if marked { bytes.first() == Some(&LAST_POSITIONS) } else { left < BLOCK };
                if !last {
                    let mut rest = Bytes(bytes);
                    skip_patched(&mut rest)?;
                    start += (bytes.len() - rest.0.len()) as u64;
                    skip -= BLOCK;
                    left = left.saturating_sub(BLOCK);
                    continue;
                }
            }
            if self.unpacked.start != start {
                self.unpack_positions(start, (!marked).then_some(left))?;
            }
            let held = self.unpacked.values.get(skip..).unwrap_or(&[]);
            let count = held.len().min(missing);
            out.extend_from_slice(&held[..count]);
            missing -= count;
            if self.unpacked.values.len() < BLOCK && missing > 0 {
                return Err(SegmentError::Malformed("positions are missing"));
            }
            skip = (skip + count).saturating_sub(BLOCK);
            left = left.saturating_sub(BLOCK);
            start = self.unpacked.end;
        }
        Ok(())
    }

    /// Unpacks the block of positions at `start`; `left` is the number of positions from there on, where there are no
    /// marks.
    fn unpack_positions(&mut self, start: u64, left: Option<usize>) -> Result<(), SegmentError> {
        let all = self.read(start, self.end)?;
        let mut bytes = Bytes(all);
        self.unpacked.start = 0;
        self.unpacked.values.clear();
        let last = match left {
            Some(left) => left < BLOCK,
            None if all.first() == Some(&LAST_POSITIONS) => bytes.byte().is_ok(),
            None => false,
        };
        if last {
            let count = left.unwrap_or(BLOCK - 1);
            while self.unpacked.values.len() < count && !bytes.0.is_empty() {
                self.unpacked.values.push(bytes.vint32()?);
            }
        } else {
            let mut values = [0; BLOCK];
            get_patched(&mut bytes, &mut values)?;
            self.unpacked.values.extend(values);
        }
        self.unpacked.start = start;
        self.unpacked.end = start + (all.len() - bytes.0.len()) as u64;
        Ok(())
    }

    fn block_count(&self) -> usize {
        (self.df as usize).div_ceil(BLOCK)
    }

    /// Returns the index of the first block, from the one at hand on, whose last section is not below `target`.
    fn block_for(&self, target: u32) -> Option<usize> {
        let count = self.skips.len() / SKIP;
        let last = |index: usize| Skip::read(self.skips, index).map_or(u32::MAX, |skip| skip.last);
        let (mut low, mut step) = (self.index, 1);
        while low + step < count && last(low + step) < target {
            low += step;
            step *= 2;
        }
        let mut high = (low + step).min(count);
        while low < high {
            let middle = low + (high - low) / 2;
            if last(middle) < target {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        (low < count).then_some(low)
    }

    fn load(&mut self, index: usize) -> Result<(), SegmentError> {
        const MISSING: SegmentError = SegmentError::Malformed("a block is missing");
        let skip = Skip::read(self.skips, index).ok_or(MISSING)?;
        let before = index.checked_sub(1).map(|index| Skip::read(self.skips, index).ok_or(MISSING)).transpose()?;
        let (from, last) = before.map_or((0, u32::MAX), |before| (before.end, before.last));
        let from = self.blocks + u64::from(from);
        let bytes = self.read(from, (self.blocks + u64::from(skip.end)).min(self.positions))?;
        let mut bytes = Bytes(bytes);
        self.index = index;
        self.at = 0;
        self.pending = None;
        self.block.len = 0;
        if (index + 1) * BLOCK <= self.df as usize {
            self.block.read_sections(&mut bytes, last)?;
            self.pending = Some(bytes.0);
        } else {
            self.block.read_short(&mut bytes, self.df as usize % BLOCK, last)?;
        }
        if self.block.len == 0 || self.block.sections[self.block.len - 1] != skip.last {
            self.block.len = 0;
            return Err(SegmentError::Malformed("a block does not end where its list says"));
        }
        Ok(())
    }

    /// Checks what [`Block`] leaves to the cursor: that the last, so every section is one.
    fn check_block(&mut self) -> Result<(), SegmentError> {
        let last = self.block.len.checked_sub(1).map(|last| self.block.sections[last]);
        if last.is_none_or(|last| last >= self.limit) {
            self.block.len = 0;
            return Err(SegmentError::Malformed("a list names a section that there is not"));
        }
        Ok(())
    }

    fn unpack_frequencies(&mut self) -> Result<(), SegmentError> {
        if let Some(bytes) = self.pending.take() {
            self.block.read_frequencies(&mut Bytes(bytes))?;
        }
        Ok(())
    }

    /// Reads from `start` up to `end`, but no more than the widest block takes where the list is long.
    fn read(&self, start: u64, end: u64) -> Result<&'a [u8], SegmentError> {
        if start > end {
            return Err(SegmentError::Malformed("an offset lies behind the end of its list"));
        }
        let end = if self.skips.is_empty() { end } else { end.min(start + WIDEST) };
        self.segment.read(start..end)
    }
}
