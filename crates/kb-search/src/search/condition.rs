//! Follows a clause that has to match, or must not, through a segment.
//!
//! **Invariant:** sections are asked for in ascending order; a section matches by terms that stand in the field asked
//! for, and by terms at their offsets where their positions are known.

use super::evaluate::{Condition, Scope, Shape};
use super::terms::QueryTerm;
use crate::query::Field;
use crate::segment::{Cursor, FieldCounts};
use crate::source::{SegmentError, Source};

/// A condition with cursors of its own.
pub(super) struct Conditional<'a, S> {
    field: Option<Field>,
    /// For [`Shape::Any`], each of the terms; else the parts.
    cursors: Vec<(Cursor<'a, S>, u32)>,
    whole: Option<Cursor<'a, S>>,
    aligned: bool,
    pub(super) cost: u64,
    positions: [Vec<u32>; 2],
    /// For each of the cursors, whether positions are known.
    placed: Vec<bool>,
}

impl<'a, S: Source> Conditional<'a, S> {
    pub(super) fn open(scope: &Scope<'a, S>, condition: &Condition) -> Result<Self, SegmentError> {
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

    pub(super) fn is_impossible(&self) -> bool {
        self.cursors.is_empty() && self.whole.is_none()
    }

    /// Returns the first section from `target` on that may match, without a look at positions and fields.
    pub(super) fn next(&mut self, target: u32) -> Result<u32, SegmentError> {
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
    pub(super) fn matches(&mut self, section: u32) -> Result<bool, SegmentError> {
        if let Some(whole) = &mut self.whole
            && whole.section() == section
            && holds(self.field, whole)?
        {
            return Ok(true);
        }
        if !self.aligned {
            for (cursor, _) in &mut self.cursors {
                if cursor.section() == section && holds(self.field, cursor)? {
                    return Ok(true);
                }
            }
            return Ok(false);
        }
        if self.cursors.is_empty() {
            return Ok(false);
        }
        for (cursor, _) in &mut self.cursors {
            if cursor.section() != section || !holds(self.field, cursor)? {
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

/// Says whether the posting at hand counts in a field; frequencies are not unpacked where any field will do.
fn holds<S: Source>(field: Option<Field>, cursor: &mut Cursor<'_, S>) -> Result<bool, SegmentError> {
    if field.is_none() {
        return Ok(true);
    }
    let (tf, counts) = cursor.frequencies()?;
    Ok(stands_in(field, tf, counts))
}

/// Says whether a term that stands so often in the body and elsewhere stands in a field.
pub(super) fn stands_in(field: Option<Field>, tf: u32, counts: FieldCounts) -> bool {
    match field {
        None => true,
        Some(Field::Title) => counts.get(FieldCounts::TITLE) > 0,
        Some(Field::Heading) => counts.get(FieldCounts::HEADING) > 0,
        Some(Field::Tags) => counts.get(FieldCounts::TAGS) > 0,
        Some(Field::Body) => tf > 0,
    }
}
