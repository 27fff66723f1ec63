//! Walks the tables of a segment in the order of its sections: lengths, and the documents that sections belong to.
//!
//! The tables are read a window at a time, so that a candidate costs no look-up of its own.
//!
//! **Invariant:** sections are asked for in ascending order; what is answered is what the segment's own look-ups say.

use std::cmp::Reverse;

use super::collect::{Candidate, Collector};
use super::evaluate::Scope;
use crate::segment::{Lengths, Part, Segment};
use crate::source::{SegmentError, Source};

/// Sections whose scores are summed at once.
pub(super) const WINDOW: u32 = 2048;
/// Sections whose lengths are read at once.
const LENGTHS: u32 = 512;
/// Documents whose first sections are read at once.
const DOCUMENTS: u32 = 256;

/// Lengths of the sections of the window at hand.
pub(super) struct WindowLengths<'a, S> {
    segment: &'a Segment<S>,
    /// The first section of the window.
    base: u32,
    body: &'a [u8],
    /// Read when a field is first asked for.
    fields: Option<&'a [u8]>,
}

impl<'a, S: Source> WindowLengths<'a, S> {
    pub(super) fn new(segment: &'a Segment<S>) -> Self {
        Self { segment, base: 0, body: &[], fields: None }
    }

    /// Returns the length of the body of a section, and those of the other fields where `fields` asks for them.
    #[inline]
    pub(super) fn of(&mut self, section: u32, fields: bool) -> Result<Lengths, SegmentError> {
        let mut index = section.wrapping_sub(self.base) as usize;
        if index * 2 >= self.body.len() {
            self.go_to(section)?;
            index = (section - self.base) as usize;
        }
        let body = self.body.get(index * 2..).and_then(|rest| rest.first_chunk());
        let body = u16::from_le_bytes(*body.ok_or(SegmentError::Malformed("a section number is too large"))?);
        if !fields {
            return Ok(Lengths { body, fields: [0; 3] });
        }
        let table = match self.fields {
            Some(table) => table,
            None => *self.fields.insert(self.segment.part(Part::FieldLengths, self.range(3))?),
        };
        let fields = table.get(index * 3..).and_then(|rest| rest.first_chunk());
        Ok(Lengths { body, fields: fields.copied().unwrap_or_default() })
    }

    #[cold]
    fn go_to(&mut self, section: u32) -> Result<(), SegmentError> {
        self.base = section / LENGTHS * LENGTHS;
        self.body = self.segment.part(Part::BodyLengths, self.range(2))?;
        self.fields = None;
        Ok(())
    }

    /// Returns the bytes of the window in a table of entries of `size` bytes.
    fn range(&self, size: u64) -> std::ops::Range<u64> {
        let end = self.segment.sections().min(self.base.saturating_add(LENGTHS));
        u64::from(self.base.min(end)) * size..u64::from(end) * size
    }
}

/// Follows sections through the documents that they belong to, and keeps the best of each.
pub(super) struct Documents<'s, 'a, S> {
    scope: &'s Scope<'a, S>,
    ordinal: u32,
    /// End of the sections of the document at hand.
    end: u32,
    allowed: bool,
    /// Score and section.
    best: Option<(u32, u32)>,
    /// First sections of documents, from the one with the number `from` on.
    firsts: &'a [u8],
    from: u32,
}

impl<'s, 'a, S: Source> Documents<'s, 'a, S> {
    pub(super) fn new(scope: &'s Scope<'a, S>) -> Self {
        Self { scope, ordinal: 0, end: 0, allowed: false, best: None, firsts: &[], from: 0 }
    }

    /// Says whether a section's document may be returned; sections come in ascending order.
    pub(super) fn admits(&mut self, section: u32, collector: &mut Collector<'a>) -> Result<bool, SegmentError> {
        if section >= self.end {
            self.finish(collector)?;
            self.go_to(section)?;
            self.allowed = self.scope.allowed.is_none_or(|allowed| allowed.contains(self.ordinal))
                && self.scope.dead.is_none_or(|dead| !dead.contains(self.ordinal));
        }
        Ok(self.allowed)
    }

    /// Takes a matching section of a document that is admitted.
    pub(super) fn take(&mut self, section: u32, score: u32, collector: &mut Collector<'a>) {
        match &mut self.best {
            Some(best) if score > best.0 => *best = (score, section),
            Some(_) => {}
            None => {
                collector.total += 1;
                self.best = Some((score, section));
            }
        }
    }

    /// Hands the best section of the document at hand over.
    pub(super) fn finish(&mut self, collector: &mut Collector<'a>) -> Result<(), SegmentError> {
        if let Some((score, section)) = self.best.take()
            && collector.may_keep(score)
        {
            let docid = Reverse(self.scope.segment.docid(self.ordinal)?);
            let (segment, ordinal) = (self.scope.index, self.ordinal);
            collector.offer(Candidate { score, docid, section: Reverse(section), segment, ordinal });
        }
        Ok(())
    }

    /// Moves on to the document of a section that lies behind the one at hand.
    fn go_to(&mut self, section: u32) -> Result<(), SegmentError> {
        let segment = self.scope.segment;
        let last = self.firsts.len().checked_sub(4).and_then(|at| self.firsts.get(at..)?.first_chunk());
        if last.is_none_or(|last| u32::from_le_bytes(*last) <= section) {
            self.from = segment.document_within(section, self.ordinal..segment.documents())?;
            let to = (u64::from(self.from) + u64::from(DOCUMENTS)).min(u64::from(segment.documents()) + 1);
            self.firsts = segment.part(Part::FirstSections, u64::from(self.from) * 4..to * 4)?;
        }
        // The last of these lies behind the section, so the walk ends among them.
        let (entries, _) = self.firsts.as_chunks::<4>();
        let first = |index: usize| entries.get(index).map_or(u32::MAX, |entry| u32::from_le_bytes(*entry));
        let (mut low, mut step) = (self.ordinal.saturating_sub(self.from) as usize, 1);
        while first(low + step) <= section {
            low += step;
            step *= 2;
        }
        let mut high = low + step;
        while low + 1 < high {
            let middle = low + (high - low) / 2;
            if first(middle) <= section {
                low = middle;
            } else {
                high = middle;
            }
        }
        if first(low) > section || first(high) == u32::MAX {
            return Err(SegmentError::Malformed("a section belongs to no document"));
        }
        self.ordinal = self.from + low as u32;
        self.end = first(high);
        Ok(())
    }
}
