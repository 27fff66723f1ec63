//! Takes a query through its stages and makes the answer.
//!
//! **Invariant:** a later stage speaks only where the earlier ones found little, and ranks lower what holds less; what
//! was dropped or read otherwise stands in the answer.

use std::cmp::Reverse;

use kb_core::{Correction, Mode, Stage, Verdict};
use rustc_hash::{FxHashMap, FxHashSet};

use super::collect::{Candidate, Collector};
use super::evaluate::{Matches, Request, SCORE_UNIT, Scope};
use super::exact::Looked;
use super::filter::{self, DocumentSet};
use super::plan::Plan;
use super::rerank::{self, Look};
use super::terms::Lexicon;
use super::{Ranked, RankedHit, RankedSection, SearchOptions, Searcher, Texts};
use crate::query::{Clause, ClauseKind, Occur, ParsedQuery, Unit};
use crate::ranking::RANKING;
use crate::segment::Impacts;
use crate::source::{SegmentError, Source};

/// Documents that get a second look.
const RERANKED: usize = 64;
/// Documents that are counted whatever it costs.
const COUNTED: u64 = 1000;
/// Where the lists are no longer than this together, all documents are counted.
const CHEAP: u64 = 20_000;
/// Most candidates whose text is looked at for quoted phrases.
const QUOTED_TEXTS: usize = 800;
/// Where fewer documents than this hold all words, those that hold some are ranked among them. It does not hang on the page asked for,
/// so that totals and pages agree.
const FEW: usize = 10;
/// Other sections of a hit.
const MORE: usize = 5;
/// Other documents of a hit.
const ALSO_IN: usize = 10;
/// A hit this sure answers the query.
const ANSWERED: f64 = 0.6;

pub(super) fn answer<S: Source>(
    searcher: &Searcher<S>,
    query: &ParsedQuery,
    options: &SearchOptions,
    texts: &dyn Texts,
) -> Result<Ranked, SegmentError> {
    let merged = (options.mode == Mode::Phrase).then(|| as_phrase(query));
    let search = Search::new(searcher, merged.as_ref().unwrap_or(query), options)?;
    if search.plan.wanted.is_empty() { search.listing() } else { search.run(texts) }
}

/// Reads all words of a query as one phrase.
fn as_phrase(query: &ParsedQuery) -> ParsedQuery {
    let mut units: Vec<Unit> = Vec::new();
    let mut typed: Vec<&str> = Vec::new();
    let mut merged = ParsedQuery { clauses: Vec::new(), ..query.clone() };
    for clause in &query.clauses {
        match &clause.kind {
            _ if clause.occur == Occur::MustNot || clause.field.is_some() => merged.clauses.push(clause.clone()),
            ClauseKind::Word(unit) => units.push(unit.clone()),
            ClauseKind::Phrase(more) => units.extend(more.iter().cloned()),
            ClauseKind::Prefix(_) => {
                merged.clauses.push(clause.clone());
                continue;
            }
        }
        typed.push(&clause.typed);
    }
    if !units.is_empty() {
        let typed = typed.join(" ");
        merged.clauses.push(Clause { occur: Occur::Should, field: None, kind: ClauseKind::Phrase(units), typed });
    }
    merged
}

pub(super) struct Search<'a, S> {
    pub(super) searcher: &'a Searcher<S>,
    pub(super) query: &'a ParsedQuery,
    options: &'a SearchOptions,
    lexicon: Lexicon<'a, S>,
    pub(super) plan: Plan,
    allowed: Vec<Option<DocumentSet>>,
    impacts: Impacts,
}

/// What a stage found.
struct Found<'s> {
    stage: Stage,
    /// Every word that is kept has to match.
    all: bool,
    keep: Vec<bool>,
    request: Request,
    candidates: Vec<Candidate<'s>>,
    total: u64,
    exact: bool,
    full: bool,
}

/// A hit to be: its rank, the first bits of its kbid, and the other documents that hold the section.
pub(super) type Distinct<'s> = (Ranking<'s>, u64, Vec<String>);

/// A candidate after the second look.
pub(super) struct Ranking<'s> {
    pub(super) candidate: Candidate<'s>,
    look: Look,
    pub(super) score: u32,
}

impl<'a, S: Source> Search<'a, S> {
    pub(super) fn new(
        searcher: &'a Searcher<S>,
        query: &'a ParsedQuery,
        options: &'a SearchOptions,
    ) -> Result<Self, SegmentError> {
        let mut lexicon = Lexicon::new(&searcher.segments, &searcher.analyzer, searcher.totals.sections);
        let plan = Plan::new(&query.clauses, options.mode, &mut lexicon, &searcher.analyzer)?;
        let mut allowed = Vec::with_capacity(searcher.segments.len());
        for (segment, _) in &searcher.segments {
            let filters = [&query.filters, &options.filters];
            allowed.push(filter::documents(segment, filters, options, &searcher.analyzer)?);
        }
        let impacts = Impacts::new(&searcher.totals);
        Ok(Self { searcher, query, options, lexicon, plan, allowed, impacts })
    }

    /// Returns for each segment every live section in which any clause matches, with the sum of their scores.
    pub(super) fn every_section(&self) -> Result<Vec<Matches>, SegmentError> {
        let clauses = self.plan.wanted.len();
        // Asked for one by one: together, a part of a compound would do for the whole.
        let one = |clause: usize| (0..clauses).map(|other| other == clause).collect::<Vec<bool>>();
        let requests: Vec<Request> =
            (0..clauses).map(|clause| self.plan.request(&self.lexicon, &one(clause), true)).collect();
        let every = |index: usize| {
            let scope = self.scope(index);
            let all = 0..scope.segment.sections();
            let mut found = Matches::new();
            for request in &requests {
                found.extend(scope.sections(request, std::slice::from_ref(&all))?.into_iter().flatten());
            }
            found.sort_by_key(|&(section, _)| section);
            found.dedup_by(|next, first| {
                let is_same = next.0 == first.0;
                first.1 = if is_same { first.1.saturating_add(next.1) } else { first.1 };
                is_same
            });
            if let Some(dead) = scope.dead {
                found.retain(|&(section, _)| !dead.contains_section(section));
            }
            Ok(found)
        };
        (0..self.searcher.segments.len()).map(every).collect()
    }
}

impl<S: Source> Search<'_, S> {
    fn scope(&self, index: usize) -> Scope<'_, S> {
        let (segment, dead) = &self.searcher.segments[index];
        Scope {
            index,
            segment,
            dead: dead.as_deref().filter(|dead| !dead.is_empty()),
            allowed: self.allowed[index].as_ref(),
            terms: &self.lexicon.terms,
            impacts: &self.impacts,
            growth: segment.foot().totals.growth(&self.searcher.totals),
        }
    }

    /// Lists the documents that the filters let through, where nothing else is asked for.
    fn listing(&self) -> Result<Ranked, SegmentError> {
        let mut found: Vec<(&str, usize, u32)> = Vec::new();
        let filtered = self.allowed.iter().any(Option::is_some) && self.plan.unwanted.is_empty();
        for (index, allowed) in self.allowed.iter().enumerate().filter(|_| filtered) {
            let (segment, dead) = &self.searcher.segments[index];
            for ordinal in allowed.iter().flat_map(DocumentSet::iter) {
                if dead.as_ref().is_none_or(|dead| !dead.contains(ordinal)) && !segment.sections_of(ordinal)?.is_empty()
                {
                    found.push((segment.docid(ordinal)?, index, ordinal));
                }
            }
        }
        found.sort_unstable();
        let total = found.len() as u64;
        let page = found.iter().skip(self.options.offset).take(self.options.limit);
        let hits = page.map(|&(docid, index, ordinal)| {
            let segment = &self.searcher.segments[index].0;
            let section = segment.sections_of(ordinal)?.start;
            Ok(RankedHit {
                docid: docid.to_owned(),
                position: segment.place(ordinal, section)?,
                kbid_prefix: segment.kbid_prefix(section)?,
                score: 0.0,
                confidence: 1.0,
                matched: Vec::new(),
                more: Vec::new(),
                also_in: Vec::new(),
            })
        });
        let hits = hits.collect::<Result<Vec<_>, SegmentError>>()?;
        Ok(Ranked {
            has_more: total > (self.options.offset + hits.len()) as u64,
            hits,
            total,
            total_is_exact: true,
            stage: if total > 0 { Stage::All } else { Stage::None },
            verdict: if total > 0 { Verdict::Answered } else { Verdict::Unanswered },
            dropped: Vec::new(),
            corrected: Vec::new(),
        })
    }

    fn run(&self, texts: &dyn Texts) -> Result<Ranked, SegmentError> {
        let page_end = self.options.offset.saturating_add(self.options.limit);
        let mut keep = RERANKED.max(page_end.saturating_add(1));
        loop {
            let mut found = self.stages(keep)?;
            let (mut hits, mut duplicates) = self.collapse(self.rank(&found)?)?;
            // Without required clauses, all is any.
            let narrow = found.all && !found.request.required.is_empty();
            if self.options.mode == Mode::Auto && narrow && !found.full && hits.len() < FEW {
                let mut ranking = self.rank(&found)?;
                self.fill(&mut found, &mut ranking, keep)?;
                (hits, duplicates) = self.collapse(ranking)?;
            }
            let looked = self.exact(&mut hits, page_end, texts);
            let again = duplicates > 0 && keep < 1 << 20 || looked.dropped > 0 && keep < QUOTED_TEXTS;
            if hits.len() <= page_end && found.full && again {
                keep *= 4;
                continue;
            }
            return self.answer(&found, hits, &looked);
        }
    }

    /// Adds the documents that hold some of the words to the few that hold all. Of both the best are ordered by score
    /// times [`Self::coverage`], the others follow.
    fn fill<'s>(
        &'s self,
        found: &mut Found<'s>,
        ranking: &mut Vec<Ranking<'s>>,
        limit: usize,
    ) -> Result<(), SegmentError> {
        let known = self.plan.wanted.iter().map(|planned| planned.known).collect();
        let rest = self.collect(found.stage, known, false, limit)?;
        let held: FxHashSet<&str> = ranking.iter().map(|ranking| ranking.candidate.docid.0).collect();
        let mut others = self.rank(&rest)?;
        let far = others.split_off(others.len().min(RERANKED));
        let behind = ranking.split_off(ranking.len().min(RERANKED));
        let is_new = |other: &Ranking<'_>| !held.contains(other.candidate.docid.0);
        ranking.extend(others.into_iter().filter(is_new));
        for ranking in &mut *ranking {
            ranking.score = (f64::from(ranking.score) * self.coverage(&ranking.look)) as u32;
        }
        ranking.sort_unstable_by_key(|ranking| (Reverse(ranking.score), ranking.candidate.docid.0));
        ranking.extend(behind);
        ranking.extend(far.into_iter().filter(is_new));
        (found.total, found.exact, found.full) = (rest.total, rest.exact, rest.full);
        found.request = rest.request;
        Ok(())
    }

    /// Returns 1 for a section that holds all known words, less by up to `coverage` for one that holds a part of them
    /// by idf.
    fn coverage(&self, look: &Look) -> f64 {
        let (mut held, mut all) = (0.0, 0.0);
        for (index, planned) in self.plan.wanted.iter().enumerate().take(64).filter(|(_, planned)| planned.known) {
            let weight = f64::from(planned.idf.max(0.01));
            all += weight;
            held += if look.matched >> index & 1 == 1 { weight } else { 0.0 };
        }
        1.0 - RANKING.coverage * (1.0 - held / f64::max(all, 0.01))
    }

    /// Goes through the stages until one finds something.
    fn stages(&self, limit: usize) -> Result<Found<'_>, SegmentError> {
        let wanted = &self.plan.wanted;
        let all = vec![true; wanted.len()];
        let nothing = |keep: Vec<bool>| Found {
            stage: Stage::None,
            all: false,
            keep,
            request: Request::default(),
            candidates: Vec::new(),
            total: 0,
            exact: true,
            full: false,
        };
        let stage = match self.options.mode {
            Mode::Auto | Mode::All => Stage::All,
            Mode::Any => Stage::Any,
            Mode::Phrase => Stage::Phrase,
            Mode::Prefix => Stage::Prefix,
            Mode::Fuzzy => Stage::Fuzzy,
        };
        if wanted.iter().any(|planned| planned.is_fixed() && !planned.known) {
            return Ok(nothing(all));
        }
        let mut keep: Vec<bool> = wanted.iter().map(|planned| planned.known).collect();
        let relaxed = matches!(self.options.mode, Mode::Auto | Mode::Any | Mode::Fuzzy);
        if keep.contains(&false) && !relaxed || !keep.contains(&true) {
            return Ok(nothing(keep));
        }
        if self.options.mode != Mode::Any {
            let mut left = keep.iter().filter(|&&keep| keep).count();
            while left * 2 > wanted.len() {
                let stage = if left == wanted.len() { self.plan.stage(stage) } else { self.plan.stage(Stage::Most) };
                let found = self.collect(stage, keep.clone(), true, limit)?;
                if found.total > 0 || !relaxed {
                    return Ok(found);
                }
                // The word that says least goes first.
                let droppable = (0..wanted.len()).filter(|&index| keep[index] && !wanted[index].is_fixed());
                let Some(least) = droppable.min_by(|&a, &b| wanted[a].idf.total_cmp(&wanted[b].idf)) else { break };
                keep[least] = false;
                left -= 1;
            }
            keep = wanted.iter().map(|planned| planned.known).collect();
        }
        self.collect(self.plan.stage(Stage::Any), keep, false, limit)
    }

    fn collect(&self, stage: Stage, keep: Vec<bool>, all: bool, limit: usize) -> Result<Found<'_>, SegmentError> {
        let request = self.plan.request(&self.lexicon, &keep, all);
        let sum: u64 = request.scored.iter().map(|scored| self.lexicon.df(scored.term)).sum();
        let count = if self.options.count || sum <= CHEAP { u64::MAX } else { COUNTED };
        let mut collector = Collector::new(limit, count);
        for index in 0..self.searcher.segments.len() {
            collect_segment(self, index, &request, &mut collector)?;
        }
        let (total, exact, full) = (collector.total, collector.is_exact(), collector.is_full());
        let candidates = collector.into_sorted();
        Ok(Found { stage, all, keep, request, candidates, total: total.min(count), exact, full })
    }

    /// Looks at the best candidates again, and orders them by the sum of both scores.
    fn rank<'s>(&self, found: &Found<'s>) -> Result<Vec<Ranking<'s>>, SegmentError> {
        let average = self.searcher.totals.average_body();
        let mut ranking: Vec<Ranking<'s>> = found
            .candidates
            .iter()
            .map(|&candidate| Ranking { candidate, look: Look::default(), score: candidate.score })
            .collect();
        let best = ranking.len().min(RERANKED);
        let (best, _) = ranking.split_at_mut(best);
        best.sort_unstable_by_key(|ranking| (ranking.candidate.segment, ranking.candidate.section.0));
        for group in best.chunk_by_mut(|a, b| a.candidate.segment == b.candidate.segment) {
            let scope = self.scope(group[0].candidate.segment);
            let candidates: Vec<Candidate<'_>> = group.iter().map(|ranking| ranking.candidate).collect();
            for (ranking, look) in group.iter_mut().zip(rerank::look(&scope, &self.plan, average, &candidates)?) {
                ranking.look = look;
                ranking.score = ranking.candidate.score.saturating_add(look.proximity);
            }
        }
        best.sort_unstable_by_key(|ranking| (Reverse(ranking.score), ranking.candidate.docid.0));
        Ok(ranking)
    }

    /// Makes one hit of equal sections; returns how many were left out.
    fn collapse<'s>(&self, ranking: Vec<Ranking<'s>>) -> Result<(Vec<Distinct<'s>>, usize), SegmentError> {
        let mut places: FxHashMap<u64, usize> = FxHashMap::default();
        let mut hits: Vec<Distinct<'s>> = Vec::with_capacity(ranking.len());
        let mut duplicates = 0;
        for ranking in ranking {
            let segment = &self.searcher.segments[ranking.candidate.segment].0;
            let prefix = segment.kbid_prefix(ranking.candidate.section.0)?;
            if let Some(&place) = places.get(&prefix) {
                duplicates += 1;
                let also_in = &mut hits[place].2;
                if also_in.len() < ALSO_IN {
                    also_in.push(ranking.candidate.docid.0.to_owned());
                }
                continue;
            }
            places.insert(prefix, hits.len());
            hits.push((ranking, prefix, Vec::new()));
        }
        Ok((hits, duplicates))
    }

    fn answer(&self, found: &Found<'_>, hits: Vec<Distinct<'_>>, looked: &Looked) -> Result<Ranked, SegmentError> {
        let page_end = self.options.offset.saturating_add(self.options.limit);
        let has_more = hits.len() > page_end;
        let gone = hits.is_empty() && looked.dropped > 0;
        let best = hits.first().map_or(0.0, |(ranking, _, _)| self.confidence(&ranking.look));
        let page: Vec<Distinct<'_>> = hits.into_iter().skip(self.options.offset).take(self.options.limit).collect();
        let others = self.others(found, &page)?;
        let hits = page.into_iter().zip(others).map(|(hit, others)| self.hit(hit, others));
        let hits = hits.collect::<Result<Vec<_>, _>>()?;
        let verdict = match () {
            () if found.total == 0 || gone => Verdict::Unanswered,
            () if best >= ANSWERED => Verdict::Answered,
            () => Verdict::Weak,
        };
        let near = self.plan.wanted.iter().filter(|planned| !planned.near.is_empty());
        let corrected = near.map(|planned| Correction {
            from: planned.typed.clone(),
            to: planned.near.iter().map(|&term| self.lexicon.terms[term].text.clone()).collect(),
        });
        Ok(Ranked {
            has_more,
            total: if gone { 0 } else { found.total.saturating_sub(looked.dropped) },
            total_is_exact: found.exact && looked.all,
            stage: if gone { Stage::None } else { found.stage },
            verdict,
            dropped: self.plan.dropped(&found.keep),
            corrected: corrected.collect(),
            hits,
        })
    }

    /// Returns for each hit the sections of its document that match, its own among them.
    fn others(&self, found: &Found<'_>, page: &[Distinct<'_>]) -> Result<Vec<Matches>, SegmentError> {
        let mut others = vec![Matches::new(); page.len()];
        let mut order: Vec<usize> = (0..page.len()).collect();
        let place = |index: usize| (page[index].0.candidate.segment, page[index].0.candidate.ordinal);
        order.sort_unstable_by_key(|&index| place(index));
        for group in order.chunk_by(|&a, &b| place(a).0 == place(b).0) {
            let scope = self.scope(place(group[0]).0);
            let ranges = group.iter().map(|&index| scope.segment.sections_of(place(index).1));
            let ranges = ranges.collect::<Result<Vec<_>, _>>()?;
            let matches = scope.sections(&found.request, &ranges)?;
            group.iter().zip(matches).for_each(|(&index, matches)| others[index] = matches);
        }
        Ok(others)
    }

    fn hit(
        &self,
        (ranking, kbid_prefix, also_in): Distinct<'_>,
        mut others: Matches,
    ) -> Result<RankedHit, SegmentError> {
        let candidate = &ranking.candidate;
        let segment = &self.searcher.segments[candidate.segment].0;
        others.retain(|&(section, _)| section != candidate.section.0);
        others.sort_by_key(|&(section, score)| (Reverse(score), section));
        others.truncate(MORE);
        let more = others.into_iter().map(|(section, score)| {
            Ok(RankedSection { position: segment.place(candidate.ordinal, section)?, score: as_float(score) })
        });
        let matched = self.plan.wanted.iter().enumerate().filter(|&(index, _)| ranking.look.matched >> index & 1 == 1);
        Ok(RankedHit {
            docid: candidate.docid.0.to_owned(),
            position: segment.place(candidate.ordinal, candidate.section.0)?,
            kbid_prefix,
            score: as_float(ranking.score),
            confidence: self.confidence(&ranking.look),
            matched: matched.map(|(_, planned)| planned.typed.clone()).collect(),
            more: more.collect::<Result<_, SegmentError>>()?,
            also_in,
        })
    }

    /// Returns how sure it is that a section answers the query: the share of the words, by idf, that it holds, squared;
    /// half of that for certain, the rest by what of them stands in title and headings, and next to each other.
    fn confidence(&self, look: &Look) -> f64 {
        let wanted = &self.plan.wanted;
        let share = |bits: u64| {
            let (mut held, mut all) = (0.0, 0.0);
            for (index, planned) in wanted.iter().enumerate().take(64) {
                let weight = f64::from(planned.idf.max(0.01));
                all += weight;
                held += if bits >> index & 1 == 1 { weight } else { 0.0 };
            }
            held / f64::max(all, 0.01)
        };
        let covered = share(look.matched);
        let titled = share(look.titled);
        let together = if wanted.len() == 1 { covered } else { share(look.adjacent | look.adjacent >> 1) };
        covered * covered * (0.5 + 0.3 * titled + 0.2 * f64::max(together, titled))
    }
}

fn collect_segment<'s, S: Source>(
    search: &'s Search<'_, S>,
    index: usize,
    request: &Request,
    collector: &mut Collector<'s>,
) -> Result<(), SegmentError> {
    search.scope(index).collect(request, collector)
}

fn as_float(score: u32) -> f64 {
    f64::from(score) / f64::from(SCORE_UNIT)
}

/// Score, docid, section.
#[cfg(test)]
pub(super) type Scored = (u32, String, u32);

/// Returns the best documents of one request with score, docid and section, and how many there are.
#[cfg(test)]
pub(super) fn candidates<S: Source>(
    searcher: &Searcher<S>,
    query: &str,
    all: bool,
    limit: usize,
    count: u64,
) -> Result<(Vec<Scored>, u64), SegmentError> {
    let query = crate::query::parse(query, &searcher.analyzer);
    let mut lexicon = Lexicon::new(&searcher.segments, &searcher.analyzer, searcher.totals.sections);
    let plan = Plan::new(&query.clauses, Mode::All, &mut lexicon, &searcher.analyzer)?;
    let request = plan.request(&lexicon, &vec![true; plan.wanted.len()], all);
    let impacts = Impacts::new(&searcher.totals);
    let options = &SearchOptions::default();
    let allowed = vec![None; searcher.segments.len()];
    let search = Search { searcher, query: &query, options, lexicon, plan, allowed, impacts };
    let mut collector = Collector::new(limit, count);
    for index in 0..searcher.segments.len() {
        collect_segment(&search, index, &request, &mut collector)?;
    }
    let total = collector.total;
    let sorted = collector.into_sorted();
    Ok((sorted.into_iter().map(|c| (c.score, c.docid.0.to_owned(), c.section.0)).collect(), total))
}
