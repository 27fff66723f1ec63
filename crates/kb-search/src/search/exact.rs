//! Looks at the texts of the best hits: the index knows stems, a text knows the words.
//!
//! **Invariant:** which texts decide the order does not hang on the page asked for, so pages follow each other.

use std::cmp::Reverse;

use super::Texts;
use super::answer::{Distinct, Ranking, Search};
use super::evaluate::SCORE_UNIT;
use super::plan::Planned;
use crate::analysis::TermKind;
use crate::matcher::{Form, Matcher};
use crate::query::{ClauseKind, Field};
use crate::ranking::RANKING;
use crate::source::Source;

/// Documents whose text is looked at for the forms of words.
const TEXTS: usize = 10;

/// What came of a look at the texts.
pub(super) struct Looked {
    /// Candidates without a quoted phrase.
    pub(super) dropped: u64,
    /// No candidate was left out, so the total is as exact as it was.
    pub(super) all: bool,
}

impl<S: Source> Search<'_, S> {
    /// Looks at the texts of the best hits: quoted phrases have to stand there as typed, and words in the form asked
    /// for count more. Where something is quoted, it stops when one more than `page_end` hits stand.
    pub(super) fn exact(&self, hits: &mut Vec<Distinct<'_>>, page_end: usize, texts: &dyn Texts) -> Looked {
        let quoted = self.plan.wanted.iter().any(|planned| planned.quoted);
        let mut looked = Looked { dropped: 0, all: true };
        if !quoted && !self.plan.wanted.iter().any(|planned| self.has_forms(planned)) {
            return looked;
        }
        let matcher = Matcher::new(self.query, &self.searcher.analyzer);
        // The same ones whatever page is asked for, so that pages follow each other and totals agree.
        let mut standing: Vec<Distinct<'_>> = Vec::new();
        let mut rest = std::mem::take(hits).into_iter();
        while standing.len() < if quoted { TEXTS.max(page_end) + 1 } else { TEXTS } {
            let Some(mut hit) = rest.next() else { break };
            match self.bonus(&hit.0, &matcher, texts) {
                Some(bonus) => {
                    if standing.len() < TEXTS {
                        hit.0.score = hit.0.score.saturating_add(bonus);
                    }
                    standing.push(hit);
                }
                None if standing.len() <= TEXTS => looked.dropped += 1,
                None => {}
            }
        }
        looked.all = !quoted || standing.len() <= TEXTS;
        let first = standing.len().min(TEXTS);
        let key = |(ranking, _, _): &Distinct<'_>| Reverse(ranking.score);
        standing[..first]
            .sort_by(|a, b| key(a).cmp(&key(b)).then_with(|| a.0.candidate.docid.0.cmp(b.0.candidate.docid.0)));
        if !quoted {
            standing.extend(rest);
        }
        *hits = standing;
        looked
    }

    /// Returns what is added to a score for words that stand in the text as typed; `None` where a quoted phrase does
    /// not.
    fn bonus(&self, ranking: &Ranking<'_>, matcher: &Matcher, texts: &dyn Texts) -> Option<u32> {
        let segment = &self.searcher.segments[ranking.candidate.segment].0;
        let (docid, section) = (ranking.candidate.docid.0, ranking.candidate.section.0);
        let Ok(position) = segment.place(ranking.candidate.ordinal, section) else { return Some(0) };
        let Some((markup, text)) = texts.text(docid, position) else { return Some(0) };
        // Stop words are wanted where they are quoted, or there are no others.
        let stop = self.plan.wanted.iter().any(|planned| planned.stop);
        let look = if stop { Matcher::look } else { Matcher::look_for_telling };
        let mut forms = look(matcher, &text, markup, Field::Body).forms;
        let in_text = |forms: &[Option<Form>], index: usize| forms[index] >= Some(Form::Folded);
        if self.plan.wanted.iter().any(|planned| planned.quoted && !in_text(&forms, planned.index))
            && let Some(title) = texts.title(docid)
        {
            let titled = look(matcher, &title, crate::Markup::None, Field::Title).forms;
            forms.iter_mut().zip(titled).for_each(|(form, titled)| *form = (*form).max(titled));
        }
        let mut bonus = 0.0;
        for planned in &self.plan.wanted {
            match forms[planned.index] {
                Some(Form::Exact) => bonus += planned.idf,
                Some(Form::Folded) => bonus += 0.8 * planned.idf,
                _ if planned.quoted => return None,
                _ => {}
            }
        }
        Some((RANKING.exact * bonus * SCORE_UNIT) as u32)
    }

    /// Says whether the dictionary knows less of a clause than was typed. A word that it does not know at all stands
    /// nowhere.
    fn has_forms(&self, planned: &Planned) -> bool {
        match self.query.clauses.get(planned.index).map(|clause| &clause.kind) {
            Some(ClauseKind::Word(_)) if !planned.near.is_empty() => false,
            Some(ClauseKind::Word(unit)) => {
                unit.terms.iter().any(|term| term.kind == TermKind::Word && term.text != unit.raw.to_lowercase())
            }
            _ => false,
        }
    }
}
