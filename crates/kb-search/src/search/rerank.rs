//! A second look at the best documents: how near the words stand to each other, how many there are, and where.
//!
//! For each two neighbouring words of the query that both stand in the body, `n` is the number of times that they stand
//! next to each other in this order, and `near_share` times the number of times that they stand within `near_positions` positions otherwise;
//! the smaller idf times `n (k1 + 1) / (n + k1 (1 - b + b · length / average))`, times `proximity`, is added (after
//! Metzler and Croft, "A Markov Random Field Model for Term Dependencies", 2005).
//!
//! **Invariant:** only positions are read, and of the candidates alone.

use super::collect::Candidate;
use super::evaluate::{SCORE_UNIT, Scope, Shape};
use super::plan::Plan;
use crate::ranking::RANKING;
use crate::segment::{Cursor, FieldCounts};
use crate::source::{SegmentError, Source};

/// What the second look found of a candidate.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Look {
    /// A bit for each of the first 64 wanted clauses that match.
    pub(super) matched: u64,
    /// A bit for each that stands in title or headings.
    pub(super) titled: u64,
    /// A bit for each that stands next to the one before.
    pub(super) adjacent: u64,
    /// Added to the score.
    pub(super) proximity: u32,
}

/// Looks at candidates of one segment, which come by ascending sections.
pub(super) fn look<S: Source>(
    scope: &Scope<'_, S>,
    plan: &Plan,
    average: f32,
    candidates: &[Candidate<'_>],
) -> Result<Vec<Look>, SegmentError> {
    let mut clauses = Vec::new();
    for planned in plan.wanted.iter().take(64) {
        let open = |term: usize| {
            let record = scope.terms.get(term).and_then(|term| term.records[scope.index]);
            record.map(|record| Cursor::open(scope.segment, record, true)).transpose()
        };
        let (any, all) = match planned.shape() {
            Shape::Any(terms) => (terms.clone(), Vec::new()),
            Shape::Aligned { parts, whole } => {
                (whole.iter().copied().collect(), parts.iter().map(|&(part, _)| part).collect())
            }
        };
        let any = any.into_iter().filter_map(|term| open(term).transpose()).collect::<Result<Vec<_>, _>>()?;
        let parts = all.len();
        let mut all = all.into_iter().filter_map(|term| open(term).transpose()).collect::<Result<Vec<_>, _>>()?;
        if all.len() < parts {
            all.clear();
        }
        let anchor = planned.anchor.map(open).transpose()?.flatten();
        clauses.push((any, all, anchor, planned.idf));
    }
    let mut looks = Vec::with_capacity(candidates.len());
    let mut positions: Vec<Vec<u32>> = vec![Vec::new(); clauses.len()];
    for candidate in candidates {
        let section = candidate.section.0;
        let mut look = Look::default();
        for (index, (any, all, anchor, _)) in clauses.iter_mut().enumerate() {
            let (mut stands, mut titled) = (false, false);
            for cursor in &mut *any {
                if cursor.seek(section)? == section {
                    stands = true;
                    titled |= is_titled(cursor)?;
                }
            }
            let (mut all_stand, mut all_titled) = (!all.is_empty(), !all.is_empty());
            for cursor in &mut *all {
                let here = cursor.seek(section)? == section;
                all_stand &= here;
                all_titled &= here && is_titled(cursor)?;
            }
            look.matched |= u64::from(stands || all_stand) << index;
            look.titled |= u64::from(titled || all_titled) << index;
            positions[index].clear();
            if clauses_need_positions(plan)
                && let Some(cursor) = anchor
                && cursor.seek(section)? == section
            {
                cursor.positions(&mut positions[index])?;
            }
        }
        let length = f32::from(scope.segment.lengths(section)?.body);
        let norm = RANKING.proximity_k1 * (1.0 - RANKING.proximity_b + RANKING.proximity_b * length / average);
        for index in 1..clauses.len() {
            let distance = plan.wanted[index].index - plan.wanted[index - 1].index;
            let (adjacent, near) = pairs(&positions[index - 1], &positions[index], distance as u32);
            look.adjacent |= u64::from(adjacent > 0) << index;
            let count = adjacent as f32 + RANKING.near_share * near as f32;
            let weight = clauses[index].3.min(clauses[index - 1].3);
            let bonus = (RANKING.proximity * weight * count * (RANKING.proximity_k1 + 1.0) / (count + norm)
                * SCORE_UNIT) as u32;
            look.proximity = look.proximity.saturating_add(bonus);
        }
        looks.push(look);
    }
    Ok(looks)
}

fn clauses_need_positions(plan: &Plan) -> bool {
    plan.wanted.len() > 1
}

fn is_titled<S: Source>(cursor: &mut Cursor<'_, S>) -> Result<bool, SegmentError> {
    let (_, counts) = cursor.frequencies()?;
    Ok(counts.get(FieldCounts::TITLE) > 0 || counts.get(FieldCounts::HEADING) > 0)
}

/// Counts where the second word comes right after the first, or after as many words as in the query, and how often the
/// two stand near each other otherwise.
fn pairs(first: &[u32], second: &[u32], distance: u32) -> (u32, u32) {
    let (mut adjacent, mut near) = (0, 0);
    let mut from = 0;
    for &position in first {
        while second.get(from).is_some_and(|&other| other.saturating_add(RANKING.near_positions) < position) {
            from += 1;
        }
        for &other in
            second[from..].iter().take_while(|&&other| other <= position.saturating_add(RANKING.near_positions))
        {
            if other > position && (other - position == 1 || other - position == distance) {
                adjacent += 1;
            } else if other != position {
                near += 1;
            }
        }
    }
    (adjacent, near)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_and_near_words_are_told_apart() {
        assert_eq!(pairs(&[1, 50], &[2, 60], 1), (1, 0));
        assert_eq!(pairs(&[1], &[3, 8, 9, 10], 2), (1, 2));
        assert_eq!(pairs(&[9], &[0, 1, 8], 1), (0, 2));
        assert_eq!(pairs(&[], &[1], 1), (0, 0));
    }
}
