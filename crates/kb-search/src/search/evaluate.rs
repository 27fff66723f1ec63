//! Finds and scores the sections of a segment that match.
//!
//! Without required clauses: `MaxScore` over windows of sections. The lists whose bounds together cannot reach the
//! threshold are looked up only; the others are summed densely, window by window (Turtle and Flood, "Query Evaluation:
//! Strategies and Optimizations", 1995; the windows follow the notes of Lucene's `MaxScoreBulkScorer`). With required
//! clauses: the rarest leads, the others are sought, and blocks whose bounds cannot reach the threshold are skipped
//! (Ding and Suel, "Faster Top-k Document Retrieval Using Block-Max Indexes", 2011).
//!
//! **Invariant:** scores are sums of integers, one for each term, so neither the order of the sum nor what was skipped
//! changes them; what is skipped could not have been kept.

use std::ops::Range;

use super::collect::Collector;
use super::condition::{Conditional, stands_in};
use super::filter::DocumentSet;
use super::terms::QueryTerm;
use super::window::{Documents, WINDOW, WindowLengths};
use crate::query::Field;
use crate::segment::{BOUND_UNIT, Cursor, Dead, FieldCounts, Impacts, MAX_IMPACT, Segment};
use crate::source::{SegmentError, Source};

/// Units of a score in one.
pub(super) const SCORE_UNIT: f32 = 65_536.0;

/// A term that scores.
#[derive(Debug, Clone)]
pub(super) struct Scored {
    pub(super) term: usize,
    /// By how much its impact is multiplied: its idf and more.
    pub(super) weight: f32,
    /// The only field in which it counts.
    pub(super) field: Option<Field>,
}

/// How a clause is matched.
#[derive(Debug, Clone)]
pub(super) enum Shape {
    /// By any of these terms.
    Any(Vec<usize>),
    /// By these terms at these offsets from one place in the body, or by one term instead.
    Aligned {
        /// Term and offset.
        parts: Vec<(usize, u32)>,
        /// What stands for all of them.
        whole: Option<usize>,
    },
}

/// A clause that has to match, or must not.
#[derive(Debug, Clone)]
pub(super) struct Condition {
    pub(super) shape: Shape,
    pub(super) field: Option<Field>,
}

/// What is asked of a segment.
#[derive(Debug, Clone, Default)]
pub(super) struct Request {
    pub(super) scored: Vec<Scored>,
    pub(super) required: Vec<Condition>,
    pub(super) excluded: Vec<Condition>,
}

/// Sections with their scores.
pub(super) type Matches = Vec<(u32, u32)>;

/// A segment with what is needed to evaluate a request.
pub(super) struct Scope<'a, S> {
    pub(super) index: usize,
    pub(super) segment: &'a Segment<S>,
    pub(super) dead: Option<&'a Dead>,
    pub(super) allowed: Option<&'a DocumentSet>,
    pub(super) terms: &'a [QueryTerm],
    pub(super) impacts: &'a Impacts,
    /// Factor that makes stored bounds hold.
    pub(super) growth: f32,
}

impl<'a, S: Source> Scope<'a, S> {
    /// Offers every document with a matching section to the collector.
    pub(super) fn collect(&self, request: &Request, collector: &mut Collector<'a>) -> Result<(), SegmentError> {
        let mut run = Run::new(self, request)?;
        let mut documents = Documents::new(self);
        if run.required.iter().any(Conditional::is_impossible) {
            return Ok(());
        }
        if run.required.is_empty() {
            run.any(&mut documents, collector)?;
        } else {
            run.all(&mut documents, collector)?;
        }
        documents.finish(collector)
    }

    /// Returns for each of these ranges, which ascend, the matching sections with their scores, in order.
    pub(super) fn sections(&self, request: &Request, ranges: &[Range<u32>]) -> Result<Vec<Matches>, SegmentError> {
        let mut run = Run::new(self, request)?;
        let mut found = vec![Matches::new(); ranges.len()];
        if run.required.iter().any(Conditional::is_impossible) {
            return Ok(found);
        }
        for (range, found) in ranges.iter().zip(&mut found) {
            let mut next = range.start;
            while next < range.end {
                let section = run.next_candidate(next)?;
                if section >= range.end {
                    break;
                }
                if let Some(score) = run.score_at(section)? {
                    found.push((section, score));
                }
                next = section + 1;
            }
        }
        Ok(found)
    }
}

/// A scoring term's list.
struct List<'a, S> {
    cursor: Cursor<'a, S>,
    weight: f32,
    field: Option<Field>,
    /// No section scores more.
    bound: u32,
    stored_bound: bool,
}

impl<S: Source> List<'_, S> {
    /// Returns the score of the section at hand; `None` if the term does not stand in the field asked for.
    fn score(
        &mut self,
        section: u32,
        impacts: &Impacts,
        lengths: &mut WindowLengths<'_, S>,
    ) -> Result<Option<u32>, SegmentError> {
        let (tf, counts) = self.cursor.frequencies()?;
        if !stands_in(self.field, tf, counts) {
            return Ok(None);
        }
        let lengths = lengths.of(section, counts != FieldCounts::default())?;
        Ok(Some((self.weight * impacts.of(tf, counts, lengths) * SCORE_UNIT) as u32))
    }

    /// Adds the scores of the sections before `end`, of the block at hand only, to those of the window that begins at
    /// `base`, and marks them as seen; returns the section that follows.
    fn sum_up(
        &mut self,
        base: u32,
        end: u32,
        impacts: &Impacts,
        lengths: &mut WindowLengths<'_, S>,
        scores: &mut [u32],
        seen: &mut [u64],
    ) -> Result<u32, SegmentError> {
        let (field, weight) = (self.field, self.weight);
        let run = self.cursor.run(end)?;
        for ((&section, &tf), &counts) in run.sections.iter().zip(run.tfs).zip(run.counts) {
            let counts = FieldCounts::from_bits(counts);
            if !stands_in(field, tf, counts) {
                continue;
            }
            let lengths = lengths.of(section, counts != FieldCounts::default())?;
            let score = (weight * impacts.of(tf, counts, lengths) * SCORE_UNIT) as u32;
            let index = (section - base) as usize;
            if let (Some(sum), Some(seen)) = (scores.get_mut(index), seen.get_mut(index / 64)) {
                *sum = sum.saturating_add(score);
                *seen |= 1 << (index % 64);
            }
        }
        let count = run.sections.len();
        self.cursor.pass(count)
    }

    /// Returns the most that a section can score by this list from `from` up to `end`.
    fn bound_within(&self, from: u32, end: u32, growth: f32) -> u32 {
        if self.stored_bound {
            self.cursor.bound_within(from, end).map_or(0, |most| self.reach(most, growth))
        } else {
            self.bound
        }
    }

    /// Returns the score that a stored bound stands for.
    fn reach(&self, stored: u16, growth: f32) -> u32 {
        bound(self.weight, (f32::from(stored) * BOUND_UNIT * growth).min(MAX_IMPACT))
    }
}

struct Run<'s, 'a, S> {
    scope: &'s Scope<'a, S>,
    /// By ascending bounds.
    lists: Vec<List<'a, S>>,
    /// The rarest first.
    required: Vec<Conditional<'a, S>>,
    excluded: Vec<Conditional<'a, S>>,
    /// Every list is required and nothing else is: the lists are asked themselves, in this order, the rarest first.
    conjunction: Vec<usize>,
    lengths: WindowLengths<'a, S>,
}

impl<'s, 'a, S: Source> Run<'s, 'a, S> {
    fn new(scope: &'s Scope<'a, S>, request: &Request) -> Result<Self, SegmentError> {
        let mut lists = Vec::with_capacity(request.scored.len());
        for scored in &request.scored {
            let Some(record) = scope.terms.get(scored.term).and_then(|term| term.records[scope.index]) else {
                continue;
            };
            let cursor = Cursor::open(scope.segment, record, true)?;
            let impact = match cursor.bound() {
                Some(bound) => (f32::from(bound) * BOUND_UNIT * scope.growth).min(MAX_IMPACT),
                None => MAX_IMPACT,
            };
            lists.push(List {
                stored_bound: cursor.bound().is_some(),
                cursor,
                weight: scored.weight,
                field: scored.field,
                bound: bound(scored.weight, impact),
            });
        }
        lists.sort_by_key(|list| list.bound);
        let open = |conditions: &[Condition]| {
            conditions.iter().map(|condition| Conditional::open(scope, condition)).collect::<Result<Vec<_>, _>>()
        };
        let mut required = open(&request.required)?;
        required.sort_by_key(|condition| condition.cost);
        let lengths = WindowLengths::new(scope.segment);
        let mut conjunction = Vec::new();
        if lists.len() > 1 && lists.len() == request.scored.len() && is_conjunction(request) {
            conjunction.extend(0..lists.len());
            conjunction.sort_by_key(|&index| lists[index].cursor.df());
        }
        Ok(Self { scope, lists, required, excluded: open(&request.excluded)?, conjunction, lengths })
    }

    /// Finds sections that hold any of the scoring terms.
    fn any(&mut self, documents: &mut Documents<'_, 'a, S>, collector: &mut Collector<'a>) -> Result<(), SegmentError> {
        let sums: Vec<u32> = self
            .lists
            .iter()
            .scan(0_u32, |sum, list| {
                *sum = sum.saturating_add(list.bound);
                Some(*sum)
            })
            .collect();
        let mut scores = vec![0_u32; WINDOW as usize];
        let mut seen = [0_u64; WINDOW as usize / 64];
        let growth = self.scope.growth;
        loop {
            let threshold = collector.threshold();
            let first = sums.partition_point(|&sum| sum < threshold);
            let essential = self.lists.get_mut(first..).unwrap_or(&mut []);
            let Some(next) = essential.iter().map(|list| list.cursor.section()).min() else { return Ok(()) };
            if next == Cursor::<S>::END {
                return Ok(());
            }
            let base = next / WINDOW * WINDOW;
            let end = base.saturating_add(WINDOW);
            // What the lists can reach in this window, and together with those that are looked up only.
            let mut reach = first.checked_sub(1).map_or(0, |last| sums[last]);
            if threshold > 0 {
                let bounds = essential.iter().map(|list| list.bound_within(next, end, growth));
                reach = bounds.fold(reach, u32::saturating_add);
                if reach < threshold {
                    for list in essential {
                        list.cursor.seek(end)?;
                    }
                    continue;
                }
            }
            for list in essential {
                let others = if threshold > 0 { reach - list.bound_within(next, end, growth) } else { 0 };
                let mut section = list.cursor.section();
                // Up to where the block at hand is known to be worth a look.
                let mut until = if threshold > 0 && list.stored_bound { section } else { end };
                while section < end {
                    if section >= until {
                        match list.cursor.block_bound(section) {
                            Some((stored, last)) if others.saturating_add(list.reach(stored, growth)) < threshold => {
                                section = list.cursor.seek(last.saturating_add(1))?;
                                continue;
                            }
                            Some((_, last)) => until = last.saturating_add(1),
                            None => until = end,
                        }
                    }
                    section = list.sum_up(
                        base,
                        until.min(end),
                        self.scope.impacts,
                        &mut self.lengths,
                        &mut scores,
                        &mut seen,
                    )?;
                }
            }
            for (word, seen) in seen.iter_mut().enumerate() {
                let mut bits = std::mem::take(seen);
                while bits != 0 {
                    let index = word * 64 + bits.trailing_zeros() as usize;
                    bits &= bits - 1;
                    let mut score = std::mem::take(&mut scores[index]);
                    let section = base + index as u32;
                    let threshold = collector.threshold();
                    if first > 0 && score.saturating_add(sums[first - 1]) < threshold {
                        continue;
                    }
                    for other in (0..first).rev() {
                        if score.saturating_add(sums[other]) < threshold {
                            break;
                        }
                        let list = &mut self.lists[other];
                        if list.cursor.seek(section)? == section {
                            let more = list.score(section, self.scope.impacts, &mut self.lengths)?.unwrap_or(0);
                            score = score.saturating_add(more);
                        }
                    }
                    if score >= threshold && documents.admits(section, collector)? && !self.is_excluded(section)? {
                        documents.take(section, score, collector);
                    }
                }
            }
        }
    }

    /// Finds sections that match every required clause.
    fn all(&mut self, documents: &mut Documents<'_, 'a, S>, collector: &mut Collector<'a>) -> Result<(), SegmentError> {
        let mut target = 0;
        let mut safe = 0;
        loop {
            let threshold = collector.threshold();
            if threshold > 0 && target >= safe {
                let (most, last) = self.block_bounds(target);
                if most < threshold {
                    if last == Cursor::<S>::END {
                        return Ok(());
                    }
                    target = last + 1;
                    continue;
                }
                safe = last.saturating_add(1);
            }
            let section = self.next_candidate(target)?;
            if section == Cursor::<S>::END {
                return Ok(());
            }
            if threshold > 0 && section >= safe {
                target = section;
                continue;
            }
            if documents.admits(section, collector)?
                && let Some(score) = self.score_at(section)?
                && score >= threshold
            {
                documents.take(section, score, collector);
            }
            target = section + 1;
        }
    }

    /// Returns the most that a section from `target` on can score, and up to which section that holds.
    fn block_bounds(&self, target: u32) -> (u32, u32) {
        let mut most = 0_u32;
        let mut until = Cursor::<S>::END;
        for list in &self.lists {
            let block = if list.stored_bound { list.cursor.block_bound(target) } else { None };
            most = most.saturating_add(match block {
                Some((stored, last)) => {
                    until = until.min(last);
                    list.reach(stored, self.scope.growth)
                }
                // Past the end of a long list there is nothing; a short one has one bound.
                None if list.stored_bound => 0,
                None => list.bound,
            });
        }
        (most, until)
    }

    /// Returns the first section from `target` on that may match every required clause, or, if there is none, hold a
    /// scoring term.
    fn next_candidate(&mut self, target: u32) -> Result<u32, SegmentError> {
        let mut section = target;
        if self.required.is_empty() {
            let mut found = Cursor::<S>::END;
            for list in &mut self.lists {
                found = found.min(list.cursor.seek(section)?);
            }
            return Ok(found);
        }
        if !self.conjunction.is_empty() {
            'next: loop {
                for &index in &self.conjunction {
                    let next = self.lists[index].cursor.seek(section)?;
                    if next > section {
                        if next == Cursor::<S>::END {
                            return Ok(next);
                        }
                        section = next;
                        continue 'next;
                    }
                }
                return Ok(section);
            }
        }
        'next: loop {
            for condition in &mut self.required {
                let next = condition.next(section)?;
                if next > section {
                    if next == Cursor::<S>::END {
                        return Ok(next);
                    }
                    section = next;
                    continue 'next;
                }
            }
            return Ok(section);
        }
    }

    /// Returns the score of a section that [`Self::next_candidate`] gave, if it matches.
    fn score_at(&mut self, section: u32) -> Result<Option<u32>, SegmentError> {
        if self.conjunction.is_empty() {
            for condition in &mut self.required {
                if !condition.matches(section)? {
                    return Ok(None);
                }
            }
        }
        if self.is_excluded(section)? {
            return Ok(None);
        }
        let mut sum = None;
        for list in &mut self.lists {
            if list.cursor.seek(section)? == section
                && let Some(score) = list.score(section, self.scope.impacts, &mut self.lengths)?
            {
                sum = Some(score.saturating_add(sum.unwrap_or(0)));
            }
        }
        Ok(sum.or((!self.required.is_empty()).then_some(0)))
    }

    fn is_excluded(&mut self, section: u32) -> Result<bool, SegmentError> {
        for condition in &mut self.excluded {
            if condition.next(section)? == section && condition.matches(section)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Says whether each required clause is one of the terms that score, wherever it stands, and each of these is required.
fn is_conjunction(request: &Request) -> bool {
    let terms = request.required.iter().map(|condition| match (&condition.shape, condition.field) {
        (Shape::Any(terms), None) if terms.len() == 1 => terms.first().copied(),
        _ => None,
    });
    let Some(terms) = terms.collect::<Option<Vec<usize>>>() else { return false };
    let scored = &request.scored;
    scored.iter().all(|scored| scored.field.is_none() && terms.contains(&scored.term))
        && terms.iter().all(|term| scored.iter().any(|scored| scored.term == *term))
}

/// Returns a score that no impact up to this one exceeds.
fn bound(weight: f32, impact: f32) -> u32 {
    ((weight * impact * SCORE_UNIT) * 1.000_001) as u32 + 2
}
