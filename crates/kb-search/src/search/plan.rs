//! From the clauses of a query to what the segments are asked.
//!
//! **Invariant:** what a person marked stays: `+must`, quoted phrases and `-not` hold in every stage; only plain words
//! are dropped or read as others.

use kb_core::{Mode, Stage};

use super::evaluate::{Condition, Request, Scored, Shape};
use super::terms::Lexicon;
use crate::analysis::{Analyzer, TermKind};
use crate::query::{Clause, ClauseKind, Field, Occur, Unit};
use crate::ranking::RANKING;
use crate::source::{SegmentError, Source};

/// A clause with its terms.
#[derive(Debug)]
pub(super) struct Planned {
    /// Its place in the query.
    pub(super) index: usize,
    pub(super) typed: String,
    pub(super) occur: Occur,
    field: Option<Field>,
    pub(super) stop: bool,
    pub(super) quoted: bool,
    shape: Shape,
    /// Terms that score, and by how much each counts.
    scored: Vec<(usize, f32)>,
    /// The term whose positions say where the clause stands, if one does.
    pub(super) anchor: Option<usize>,
    /// What it is worth: the idf of its rarest term.
    pub(super) idf: f32,
    /// Some section may match.
    pub(super) known: bool,
    /// What the word was read as.
    pub(super) near: Vec<usize>,
}

impl Planned {
    /// May not be dropped.
    pub(super) fn is_fixed(&self) -> bool {
        self.occur == Occur::Must || self.quoted
    }

    pub(super) fn condition(&self) -> Condition {
        Condition { shape: self.shape.clone(), field: self.field }
    }

    /// The terms of which one, or all, show that a section matches.
    pub(super) fn shape(&self) -> &Shape {
        &self.shape
    }
}

/// A query, planned.
#[derive(Debug)]
pub(super) struct Plan {
    /// What is to be found, in the order typed, without stop words that say nothing.
    pub(super) wanted: Vec<Planned>,
    pub(super) unwanted: Vec<Planned>,
}

impl Plan {
    /// Looks up the words of a query. Near-misses are looked for where `mode` allows it.
    pub(super) fn new<S: Source>(
        clauses: &[Clause],
        mode: Mode,
        lexicon: &mut Lexicon<'_, S>,
        analyzer: &Analyzer,
    ) -> Result<Self, SegmentError> {
        let last_word = clauses.iter().rposition(|clause| {
            clause.occur != Occur::MustNot && matches!(clause.kind, ClauseKind::Word(_) | ClauseKind::Prefix(_))
        });
        let (mut wanted, mut unwanted) = (Vec::new(), Vec::new());
        for (index, clause) in clauses.iter().enumerate() {
            let prefix = mode == Mode::Prefix && last_word == Some(index);
            let mut planned = plan(index, clause, prefix, lexicon, analyzer)?;
            if clause.occur == Occur::MustNot {
                unwanted.push(planned);
                continue;
            }
            if let ClauseKind::Word(unit) = &clause.kind
                && !prefix
                && (mode == Mode::Fuzzy || (mode == Mode::Auto && !planned.known))
            {
                correct(&mut planned, unit, lexicon)?;
            }
            wanted.push(planned);
        }
        if wanted.iter().any(|planned: &Planned| !planned.stop || planned.is_fixed()) {
            wanted.retain(|planned| !planned.stop || planned.is_fixed());
        }
        Ok(Self { wanted, unwanted })
    }

    /// Returns the request that asks for all of these clauses, or, without `all`, for any and the fixed ones.
    pub(super) fn request<S: Source>(&self, lexicon: &Lexicon<'_, S>, keep: &[bool], all: bool) -> Request {
        let mut request = Request::default();
        let mut weights: Vec<(usize, f32, Option<Field>)> = Vec::new();
        for (planned, &keep) in self.wanted.iter().zip(keep) {
            if !keep {
                continue;
            }
            for &(term, weight) in &planned.scored {
                let weight = weight * lexicon.terms[term].idf;
                match weights.iter_mut().find(|(other, _, field)| *other == term && *field == planned.field) {
                    Some((_, most, _)) => *most = most.max(weight),
                    None => weights.push((term, weight, planned.field)),
                }
            }
            if all || planned.is_fixed() {
                request.required.push(planned.condition());
            }
        }
        // Where one clause is asked for and it matches by any of what scores, what scores matches.
        if let [Condition { shape: Shape::Any(terms), field }] = request.required.as_slice() {
            let held = |&(term, _, of): &(usize, f32, Option<Field>)| of == *field && terms.contains(&term);
            let scores = |term: &usize| lexicon.df(*term) == 0 || weights.iter().any(|(other, ..)| other == term);
            if weights.iter().all(held) && terms.iter().all(scores) {
                request.required.clear();
            }
        }
        request.scored = weights.into_iter().map(|(term, weight, field)| Scored { term, weight, field }).collect();
        request.excluded = self.unwanted.iter().filter(|planned| planned.known).map(Planned::condition).collect();
        request
    }

    /// Returns the words that are not kept, as typed.
    pub(super) fn dropped(&self, keep: &[bool]) -> Vec<String> {
        self.wanted.iter().zip(keep).filter(|&(_, keep)| !keep).map(|(planned, _)| planned.typed.clone()).collect()
    }

    /// Says what a stage is called where some words were read as others.
    pub(super) fn stage(&self, stage: Stage) -> Stage {
        if self.wanted.iter().any(|planned| !planned.near.is_empty()) { Stage::Fuzzy } else { stage }
    }
}

fn plan<S: Source>(
    index: usize,
    clause: &Clause,
    prefix: bool,
    lexicon: &mut Lexicon<'_, S>,
    analyzer: &Analyzer,
) -> Result<Planned, SegmentError> {
    let mut planned = Planned {
        index,
        typed: clause.typed.clone(),
        occur: clause.occur,
        field: clause.field,
        stop: false,
        quoted: false,
        shape: Shape::Any(Vec::new()),
        scored: Vec::new(),
        anchor: None,
        idf: 0.0,
        known: false,
        near: Vec::new(),
    };
    match &clause.kind {
        ClauseKind::Word(unit) if prefix => beginning(&mut planned, &analyzer.fold(&unit.raw), lexicon)?,
        ClauseKind::Prefix(text) => beginning(&mut planned, text, lexicon)?,
        ClauseKind::Word(unit) => {
            planned.stop = unit.stop;
            word(&mut planned, unit, lexicon)?;
        }
        ClauseKind::Phrase(units) => {
            planned.quoted = true;
            planned.stop = units.iter().all(|unit| unit.stop);
            phrase(&mut planned, units, lexicon)?;
        }
    }
    let idf = planned.scored.iter().map(|&(term, _)| lexicon.terms[term].idf);
    planned.idf = idf.fold(0.0, f32::max);
    if planned.scored.is_empty() {
        planned.idf = lexicon.idf(0);
    }
    Ok(planned)
}

fn beginning<S: Source>(planned: &mut Planned, text: &str, lexicon: &mut Lexicon<'_, S>) -> Result<(), SegmentError> {
    let terms = lexicon.beginning_with(text)?;
    planned.known = !terms.is_empty();
    planned.anchor =
        if let [only] = terms.as_slice() { Some(*only).filter(|&term| placed(lexicon, term)) } else { None };
    planned.scored = terms.iter().map(|&term| (term, 1.0)).collect();
    planned.shape = Shape::Any(terms);
    Ok(())
}

fn word<S: Source>(planned: &mut Planned, unit: &Unit, lexicon: &mut Lexicon<'_, S>) -> Result<(), SegmentError> {
    let (mut whole, mut parts) = (None, Vec::new());
    for term in &unit.terms {
        let number = lexicon.term(&term.text)?;
        match term.kind {
            TermKind::Word | TermKind::Whole => whole = whole.or(Some(number)),
            TermKind::Part => parts.push((number, term.offset)),
            TermKind::Inner => continue,
        }
        if lexicon.df(number) > 0 && !planned.scored.iter().any(|&(other, _)| other == number) {
            planned.scored.push((number, weight(unit, term.kind)));
        }
    }
    let stands = |number: &usize| lexicon.df(*number) > 0;
    planned.known =
        whole.as_ref().is_some_and(stands) || (!parts.is_empty() && parts.iter().all(|(part, _)| stands(part)));
    planned.anchor = parts.first().map(|&(part, _)| part).or(whole).filter(|anchor| placed(lexicon, *anchor));
    planned.shape = match whole {
        Some(whole) if parts.is_empty() => Shape::Any(vec![whole]),
        whole => Shape::Aligned { parts, whole },
    };
    Ok(())
}

/// Returns how much a term of a word counts. The whole of a compound says little that its parts do not.
fn weight(unit: &Unit, kind: TermKind) -> f32 {
    let joined = kind == TermKind::Whole
        && unit.raw.contains(|character: char| !character.is_alphanumeric())
        && unit.terms.iter().filter(|term| term.kind == TermKind::Part).count() > 1;
    let weight = if joined { RANKING.compound_weight } else { 1.0 };
    if unit.light { weight * RANKING.light_weight } else { weight }
}

fn phrase<S: Source>(planned: &mut Planned, units: &[Unit], lexicon: &mut Lexicon<'_, S>) -> Result<(), SegmentError> {
    let mut parts = Vec::new();
    let mut start = 0;
    for unit in units {
        let by_parts = unit.terms.iter().any(|term| term.kind == TermKind::Part);
        for term in &unit.terms {
            let number = lexicon.term(&term.text)?;
            let taken = if by_parts { term.kind == TermKind::Part } else { term.kind != TermKind::Inner };
            if taken {
                parts.push((number, start + term.offset));
            }
            if !unit.stop && !planned.scored.iter().any(|&(other, _)| other == number) {
                planned.scored.push((number, 1.0));
            }
        }
        start += unit.width;
    }
    if planned.scored.is_empty() {
        planned.scored = parts.iter().map(|&(part, _)| (part, 1.0)).collect();
    }
    planned.known = !parts.is_empty() && parts.iter().all(|&(part, _)| lexicon.df(part) > 0);
    planned.anchor = parts.first().map(|&(part, _)| part).filter(|anchor| placed(lexicon, *anchor));
    planned.shape = match parts.as_slice() {
        [(only, _)] => Shape::Any(vec![*only]),
        _ => Shape::Aligned { parts, whole: None },
    };
    Ok(())
}

/// Reads a word as those that are near to it. An identifier is read as one that is near, else each of its parts that
/// is unknown is; if nothing is near, the parts that are known stand for it.
fn correct<S: Source>(planned: &mut Planned, unit: &Unit, lexicon: &mut Lexicon<'_, S>) -> Result<(), SegmentError> {
    let whole = unit.terms.iter().find(|term| matches!(term.kind, TermKind::Word | TermKind::Whole));
    let mut near = whole.map_or_else(|| Ok(Vec::new()), |whole| lexicon.near(&whole.text, &unit.raw))?;
    if near.is_empty() && !planned.known {
        for part in unit.terms.iter().filter(|term| term.kind == TermKind::Part) {
            let number = lexicon.term(&part.text)?;
            if lexicon.df(number) == 0 {
                near.extend(lexicon.near(&part.text, &part.text)?);
            }
        }
    }
    let parts: Vec<usize> = planned.scored.iter().map(|&(term, _)| term).collect();
    planned.scored.extend(near.iter().map(|&term| (term, RANKING.near_weight)));
    match &mut planned.shape {
        Shape::Any(terms) => terms.extend(&near),
        Shape::Aligned { .. } if planned.known => {}
        shape @ Shape::Aligned { .. } => *shape = Shape::Any(if near.is_empty() { parts } else { near.clone() }),
    }
    if !planned.known && !planned.scored.is_empty() {
        planned.idf = planned.scored.iter().map(|&(term, weight)| weight * lexicon.terms[term].idf).fold(0.0, f32::max);
        planned.anchor = near.first().copied().filter(|&anchor| placed(lexicon, anchor));
        planned.known = true;
        planned.near = near;
    }
    Ok(())
}

/// Says whether positions are known of a term.
fn placed<S: Source>(lexicon: &Lexicon<'_, S>, term: usize) -> bool {
    lexicon.df(term) > 0 && lexicon.terms[term].is_placed()
}
