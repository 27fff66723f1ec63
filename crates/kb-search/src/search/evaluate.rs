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

use std::cmp::Reverse;

use super::collect::{Candidate, Collector};
use super::filter::DocumentSet;
use super::terms::QueryTerm;
use crate::query::Field;
use crate::segment::{BOUND_UNIT, Cursor, Dead, FieldCounts, Impacts, Lengths, MAX_IMPACT, Part, Segment};
use crate::source::{SegmentError, Source};

/// Sections in a window.
const WINDOW: u32 = 2048;

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
        documents.finish(collector);
        Ok(())
    }

    /// Returns the matching sections among these with their scores, in order.
    pub(super) fn sections(
        &self,
        request: &Request,
        sections: std::ops::Range<u32>,
    ) -> Result<Vec<(u32, u32)>, SegmentError> {
        let mut run = Run::new(self, request)?;
        if run.required.iter().any(Conditional::is_impossible) {
            return Ok(Vec::new());
        }
        let mut found = Vec::new();
        let mut next = sections.start;
        while next < sections.end {
            let section = run.next_candidate(next)?;
            if section >= sections.end {
                break;
            }
            if let Some(score) = run.score_at(section)? {
                found.push((section, score));
            }
            next = section + 1;
        }
        Ok(found)
    }
}

/// Follows sections through the documents that they belong to, and keeps the best of each.
struct Documents<'s, 'a, S> {
    scope: &'s Scope<'a, S>,
    ordinal: u32,
    /// End of the sections of the document at hand.
    end: u32,
    allowed: bool,
    best: Option<Candidate<'a>>,
}

impl<'s, 'a, S: Source> Documents<'s, 'a, S> {
    fn new(scope: &'s Scope<'a, S>) -> Self {
        Self { scope, ordinal: 0, end: 0, allowed: false, best: None }
    }

    /// Says whether a section's document may be returned; sections come in ascending order.
    fn admits(&mut self, section: u32, collector: &mut Collector<'a>) -> Result<bool, SegmentError> {
        if section >= self.end {
            self.finish(collector);
            let segment = self.scope.segment;
            self.ordinal = segment.document_within(section, self.ordinal..segment.documents())?;
            self.end = segment.first_section(self.ordinal + 1)?;
            self.allowed = self.scope.allowed.is_none_or(|allowed| allowed.contains(self.ordinal))
                && self.scope.dead.is_none_or(|dead| !dead.contains(self.ordinal));
        }
        Ok(self.allowed)
    }

    /// Takes a matching section of a document that is admitted.
    fn take(&mut self, section: u32, score: u32, collector: &mut Collector<'a>) -> Result<(), SegmentError> {
        if let Some(best) = &mut self.best {
            if score > best.score {
                best.score = score;
                best.section = Reverse(section);
            }
        } else {
            collector.total += 1;
            self.best = Some(Candidate {
                score,
                docid: Reverse(self.scope.segment.docid(self.ordinal)?),
                section: Reverse(section),
                segment: self.scope.index,
                ordinal: self.ordinal,
            });
        }
        Ok(())
    }

    fn finish(&mut self, collector: &mut Collector<'a>) {
        if let Some(best) = self.best.take() {
            collector.offer(best);
        }
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
    fn score(&mut self, impacts: &Impacts, lengths: Lengths) -> Result<Option<u32>, SegmentError> {
        let (tf, counts) = self.cursor.frequencies()?;
        if !stands_in(self.field, tf, counts) {
            return Ok(None);
        }
        Ok(Some((self.weight * impacts.of(tf, counts, lengths) * SCORE_UNIT) as u32))
    }
}

fn stands_in(field: Option<Field>, tf: u32, counts: FieldCounts) -> bool {
    match field {
        None => true,
        Some(Field::Title) => counts.get(FieldCounts::TITLE) > 0,
        Some(Field::Heading) => counts.get(FieldCounts::HEADING) > 0,
        Some(Field::Tags) => counts.get(FieldCounts::TAGS) > 0,
        Some(Field::Body) => tf > 0,
    }
}

/// A condition with cursors of its own.
struct Conditional<'a, S> {
    field: Option<Field>,
    /// For [`Shape::Any`], each of the terms; else the parts.
    cursors: Vec<(Cursor<'a, S>, u32)>,
    whole: Option<Cursor<'a, S>>,
    aligned: bool,
    cost: u64,
    positions: [Vec<u32>; 2],
    /// For each of the cursors, whether positions are known.
    placed: Vec<bool>,
}

impl<'a, S: Source> Conditional<'a, S> {
    fn open(scope: &Scope<'a, S>, condition: &Condition) -> Result<Self, SegmentError> {
        let cursor = |term: usize| {
            let record = scope.terms.get(term).and_then(|term| term.records[scope.index]);
            record.map(|record| Cursor::open(scope.segment, record, true)).transpose()
        };
        let mut cursors = Vec::new();
        let (mut whole, mut aligned, mut placed) = (None, false, Vec::new());
        match &condition.shape {
            Shape::Any(terms) => {
                for &term in terms {
                    cursors.extend(cursor(term)?.map(|cursor| (cursor, 0)));
                }
            }
            Shape::Aligned { parts, whole: one } => {
                aligned = true;
                for &(term, offset) in parts {
                    cursors.extend(cursor(term)?.map(|cursor| (cursor, offset)));
                    placed.push(scope.terms.get(term).is_some_and(QueryTerm::is_placed));
                }
                if cursors.len() < parts.len() {
                    cursors.clear();
                }
                whole = one.map(cursor).transpose()?.flatten();
            }
        }
        let dfs = || cursors.iter().map(|(cursor, _)| u64::from(cursor.df()));
        let cost = if aligned { dfs().min().unwrap_or(0) } else { dfs().sum() };
        let cost = cost + whole.as_ref().map_or(0, |whole| u64::from(whole.df()));
        Ok(Self { field: condition.field, cursors, whole, aligned, cost, positions: [Vec::new(), Vec::new()], placed })
    }

    fn is_impossible(&self) -> bool {
        self.cursors.is_empty() && self.whole.is_none()
    }

    /// Returns the first section from `target` on that may match, without a look at positions and fields.
    fn next(&mut self, target: u32) -> Result<u32, SegmentError> {
        let mut found = Cursor::<S>::END;
        if let Some(whole) = &mut self.whole {
            found = whole.seek(target)?;
        }
        if !self.aligned {
            for (cursor, _) in &mut self.cursors {
                found = found.min(cursor.seek(target)?);
            }
            return Ok(found);
        }
        let Some((lead, others)) = self.cursors.split_first_mut() else { return Ok(found) };
        let mut section = lead.0.seek(target)?;
        'next: while section < found {
            for (cursor, _) in &mut *others {
                let other = cursor.seek(section)?;
                if other > section {
                    section = if other == Cursor::<S>::END { other } else { lead.0.seek(other)? };
                    continue 'next;
                }
            }
            return Ok(section);
        }
        Ok(found)
    }

    /// Says whether a section matches for which [`Self::next`] was asked.
    fn matches(&mut self, section: u32) -> Result<bool, SegmentError> {
        if let Some(whole) = &mut self.whole
            && whole.section() == section
        {
            let (tf, counts) = whole.frequencies()?;
            if stands_in(self.field, tf, counts) {
                return Ok(true);
            }
        }
        if !self.aligned {
            for (cursor, _) in &mut self.cursors {
                if cursor.section() == section {
                    let (tf, counts) = cursor.frequencies()?;
                    if stands_in(self.field, tf, counts) {
                        return Ok(true);
                    }
                }
            }
            return Ok(false);
        }
        if self.cursors.is_empty() {
            return Ok(false);
        }
        for (cursor, _) in &mut self.cursors {
            if cursor.section() != section {
                return Ok(false);
            }
            let (tf, counts) = cursor.frequencies()?;
            if !stands_in(self.field, tf, counts) {
                return Ok(false);
            }
        }
        // Positions are known of the body only: in another field it is enough that all parts stand there.
        if !matches!(self.field, None | Some(Field::Body)) {
            return Ok(true);
        }
        let [starts, others] = &mut self.positions;
        let mut first = true;
        for ((cursor, offset), &placed) in self.cursors.iter_mut().zip(&self.placed) {
            if !placed {
                continue;
            }
            if std::mem::take(&mut first) {
                cursor.positions(starts)?;
                starts.retain_mut(|position| position.checked_sub(*offset).map(|start| *position = start).is_some());
            } else {
                cursor.positions(others)?;
                let mut at = 0;
                starts.retain(|&start| {
                    let wanted = start.saturating_add(*offset);
                    while others.get(at).is_some_and(|&other| other < wanted) {
                        at += 1;
                    }
                    others.get(at) == Some(&wanted)
                });
            }
            if starts.is_empty() {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

struct Run<'s, 'a, S> {
    scope: &'s Scope<'a, S>,
    /// By ascending bounds.
    lists: Vec<List<'a, S>>,
    /// The rarest first.
    required: Vec<Conditional<'a, S>>,
    excluded: Vec<Conditional<'a, S>>,
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
        Ok(Self { scope, lists, required, excluded: open(&request.excluded)? })
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
        loop {
            let threshold = collector.threshold();
            let first = sums.partition_point(|&sum| sum < threshold);
            let essential = self.lists.get_mut(first..).unwrap_or(&mut []);
            let Some(base) = essential.iter().map(|list| list.cursor.section()).min() else { return Ok(()) };
            if base == Cursor::<S>::END {
                return Ok(());
            }
            let lengths = WindowLengths::read(self.scope.segment, base)?;
            for list in essential {
                let mut section = list.cursor.section();
                while section - base < WINDOW && section != Cursor::<S>::END {
                    let index = (section - base) as usize;
                    if let Some(score) = list.score(self.scope.impacts, lengths.get(index))? {
                        scores[index] = scores[index].saturating_add(score);
                        seen[index / 64] |= 1 << (index % 64);
                    }
                    section = list.cursor.advance()?;
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
                            let more = list.score(self.scope.impacts, lengths.get(index))?.unwrap_or(0);
                            score = score.saturating_add(more);
                        }
                    }
                    if score >= threshold && documents.admits(section, collector)? && !self.is_excluded(section)? {
                        documents.take(section, score, collector)?;
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
                documents.take(section, score, collector)?;
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
                    let impact = f32::from(stored) * BOUND_UNIT * self.scope.growth;
                    bound(list.weight, impact.min(MAX_IMPACT))
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
        for condition in &mut self.required {
            if !condition.matches(section)? {
                return Ok(None);
            }
        }
        if self.is_excluded(section)? {
            return Ok(None);
        }
        let lengths = self.scope.segment.lengths(section)?;
        let mut sum = None;
        for list in &mut self.lists {
            if list.cursor.seek(section)? == section
                && let Some(score) = list.score(self.scope.impacts, lengths)?
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

/// Lengths of the sections of a window.
struct WindowLengths<'a> {
    body: &'a [u8],
    fields: &'a [u8],
}

impl<'a> WindowLengths<'a> {
    fn read<S: Source>(segment: &'a Segment<S>, base: u32) -> Result<Self, SegmentError> {
        let (base, end) = (u64::from(base), u64::from(segment.sections()).min(u64::from(base) + u64::from(WINDOW)));
        Ok(Self {
            body: segment.part(Part::BodyLengths, base * 2..end * 2)?,
            fields: segment.part(Part::FieldLengths, base * 3..end * 3)?,
        })
    }

    fn get(&self, index: usize) -> Lengths {
        let body = self.body.get(index * 2..).and_then(|rest| rest.first_chunk());
        let fields = self.fields.get(index * 3..).and_then(|rest| rest.first_chunk());
        Lengths {
            body: body.map_or(0, |bytes| u16::from_le_bytes(*bytes)),
            fields: fields.copied().unwrap_or_default(),
        }
    }
}

/// Returns a score that no impact up to this one exceeds.
fn bound(weight: f32, impact: f32) -> u32 {
    ((weight * impact * SCORE_UNIT) * 1.000_001) as u32 + 2
}
