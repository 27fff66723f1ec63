//! Where and how well the words of a query stand in a text.
//!
//! The index knows stems; the text knows whether a word stands there as asked, accents and all, and whether a quoted
//! phrase does. A [`Matcher`] is made once for a query and looks at the texts of the best candidates; it expands only
//! those tokens that begin like something in the query.
//!
//! **Invariant:** a matcher cuts and folds by the analyser that made the index, so it finds what the index found.

use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;

use rustc_hash::FxHashMap;
use unicode_normalization::UnicodeNormalization;

use crate::analysis::{Analyzer, Markup, PlainStart, TermKind, plain_start};
use crate::query::{ClauseKind, Field, Occur, ParsedQuery, Unit};

/// Most places kept of one text; those after them do not count.
const MAX_PLACES: usize = 1 << 16;
/// Most different tokens that are kept expanded.
const MAX_EXPANDED: usize = 4096;

/// How a word stands in a text, the poorest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Form {
    /// A compound's parts are all there, but not together.
    Scattered,
    /// Another form of the word, or one it was corrected to.
    Near,
    /// The word, but for case and accents.
    Folded,
    /// The word as typed, but for case.
    Exact,
}

/// The smallest stretch that holds every clause that was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// How many clauses it holds.
    pub clauses: u32,
    /// How many positions it takes, at least 1.
    pub positions: u32,
}

/// What a look at a text found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Findings {
    /// For each clause of the query, the best form in which it stands there. For a phrase that is the poorest of its
    /// words, at the place where they stand best; below [`Form::Folded`] it is not that phrase.
    pub forms: Vec<Option<Form>>,
    /// The smallest stretch, in positions of this text where what cannot match takes one; `None` if nothing was
    /// found. Clauses that exclude do not count, stop words only if there is nothing else.
    pub window: Option<Window>,
    pub(crate) places: Vec<Place>,
}

/// One place where a clause stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) clause: usize,
    pub(crate) form: Form,
    /// Bytes of the text.
    pub(crate) range: Range<usize>,
    position: u32,
    width: u32,
}

/// Looks for the clauses of a query in texts.
#[derive(Debug, Clone)]
pub struct Matcher {
    analyzer: Analyzer,
    clauses: Vec<Wanted>,
    needles: Vec<Needle>,
    /// The needles of each term.
    by_term: FxHashMap<String, Vec<usize>>,
    prefixes: Vec<(String, usize)>,
    heads: Heads,
    /// Those of clauses that are not stop words alone; empty if there are only such.
    telling: Heads,
    /// Tokens that were expanded before, in any text: the few that begin like the query come again and again.
    expanded: RefCell<FxHashMap<Box<str>, Rc<Expanded>>>,
}

/// What a token is to the needles.
#[derive(Debug, Default)]
struct Expanded {
    /// Positions that it takes.
    width: u32,
    /// Needle, offset, form, and the bytes of the token.
    seen: Vec<(usize, u32, Form, Range<usize>)>,
}

#[derive(Debug, Clone)]
struct Wanted {
    field: Option<Field>,
    excluded: bool,
    stop: bool,
    weight: f32,
    units: Vec<WantedUnit>,
    /// A needle that stands for the clause by itself: a prefix, a correction.
    direct: Vec<usize>,
}

#[derive(Debug, Clone)]
struct WantedUnit {
    /// Any of these is the unit.
    wholes: Vec<usize>,
    /// All of these at their offsets are.
    parts: Vec<(usize, u32)>,
    width: u32,
}

/// A form to look for.
#[derive(Debug, Clone)]
struct Needle {
    folded: String,
    /// As typed but for case; empty for a correction.
    typed: String,
}

#[derive(Debug, Clone)]
struct Sighting {
    position: u32,
    form: Form,
    range: Range<usize>,
}

impl Matcher {
    /// Returns a matcher for a query.
    pub fn new(query: &ParsedQuery, analyzer: &Analyzer) -> Self {
        let mut matcher = Self {
            analyzer: analyzer.clone(),
            clauses: Vec::with_capacity(query.clauses.len()),
            needles: Vec::new(),
            by_term: FxHashMap::default(),
            prefixes: Vec::new(),
            heads: Heads::default(),
            telling: Heads::default(),
            expanded: RefCell::default(),
        };
        for clause in &query.clauses {
            let (units, stop): (&[Unit], bool) = match &clause.kind {
                ClauseKind::Word(unit) => (std::slice::from_ref(unit), unit.stop),
                ClauseKind::Phrase(units) => (units, units.iter().all(|unit| unit.stop)),
                ClauseKind::Prefix(_) => (&[], false),
            };
            let units = units.iter().map(|unit| matcher.wanted_unit(&unit.raw, stop)).collect();
            let mut direct = Vec::new();
            if let ClauseKind::Prefix(prefix) = &clause.kind {
                let needle = matcher.needle(prefix.clone(), String::new());
                matcher.heads.add_prefix(prefix);
                matcher.telling.add_prefix(prefix);
                matcher.prefixes.push((prefix.clone(), needle));
                direct.push(needle);
            }
            let excluded = clause.occur == Occur::MustNot;
            matcher.clauses.push(Wanted { field: clause.field, excluded, stop, weight: 1.0, units, direct });
        }
        matcher
    }

    /// Says how much each clause of the query is worth in an excerpt, usually its idf; 1 where nothing is said.
    pub fn set_weights(&mut self, weights: &[f32]) {
        for (clause, &weight) in self.clauses.iter_mut().zip(weights) {
            clause.weight = if weight.is_finite() { weight.max(0.0) } else { 0.0 };
        }
    }

    /// Takes a term of the dictionary for a clause too: what a word was corrected to, a synonym, a prefix's stem.
    pub fn also(&mut self, clause: usize, term: &str) {
        if clause < self.clauses.len() && !term.is_empty() {
            let needle = self.needle(String::new(), String::new());
            self.expanded.get_mut().clear();
            self.heads.add(term);
            self.telling.add(term);
            self.by_term.entry(term.to_owned()).or_default().push(needle);
            self.clauses[clause].direct.push(needle);
        }
    }

    /// Looks for the clauses that may stand in this field.
    pub fn look(&self, text: &str, markup: Markup, field: Field) -> Findings {
        self.findings(&self.sightings(text, markup, &self.heads), field)
    }

    /// Looks as [`Self::look`] does, but for stop words only where nothing else is found: their forms are missing
    /// otherwise.
    pub(crate) fn look_for_telling(&self, text: &str, markup: Markup, field: Field) -> Findings {
        if !self.telling.is_empty() {
            let findings = self.findings(&self.sightings(text, markup, &self.telling), field);
            if findings.places.iter().any(|place| !self.clauses[place.clause].stop) {
                return findings;
            }
        }
        self.look(text, markup, field)
    }

    fn findings(&self, sightings: &[Vec<Sighting>], field: Field) -> Findings {
        let mut findings = Findings { forms: vec![None; self.clauses.len()], ..Findings::default() };
        for (index, clause) in self.clauses.iter().enumerate() {
            if clause.field.is_none_or(|wanted| wanted == field) {
                let places = self.places(index, sightings);
                findings.forms[index] = places.iter().map(|place| place.form).max();
                if !clause.excluded {
                    findings.places.extend(places);
                }
            }
        }
        let any_telling = findings.places.iter().any(|place| !self.clauses[place.clause].stop);
        if any_telling {
            findings.places.retain(|place| !self.clauses[place.clause].stop);
        }
        findings.places.sort_by_key(|place| (place.range.start, place.range.end, place.clause));
        findings.window = smallest_window(&findings.places, self.clauses.len());
        findings
    }

    pub(crate) fn clause_count(&self) -> usize {
        self.clauses.len()
    }

    pub(crate) fn weight(&self, clause: usize) -> f32 {
        self.clauses[clause].weight
    }

    fn needle(&mut self, folded: String, typed: String) -> usize {
        self.needles.push(Needle { folded, typed });
        self.needles.len() - 1
    }

    fn wanted_unit(&mut self, raw: &str, stop: bool) -> WantedUnit {
        let mut forms = Vec::new();
        let analyzer = self.analyzer.clone();
        let width = analyzer.each_form(raw, &mut |kind, offset, range, form| {
            if kind != TermKind::Inner {
                forms.push((kind, offset, as_typed(&raw[range]), form));
            }
        });
        let mut unit = WantedUnit { wholes: Vec::new(), parts: Vec::new(), width };
        for (kind, offset, typed, form) in forms {
            let needle = self.needle(form.clone(), typed);
            let term = analyzer.stem(form);
            self.heads.add(&term);
            if !stop {
                self.telling.add(&term);
            }
            self.by_term.entry(term).or_default().push(needle);
            match kind {
                TermKind::Part => unit.parts.push((needle, offset)),
                _ => unit.wholes.push(needle),
            }
        }
        unit
    }

    /// Returns where each needle stands, in order.
    fn sightings(&self, text: &str, markup: Markup, heads: &Heads) -> Vec<Vec<Sighting>> {
        let mut sightings: Vec<Vec<Sighting>> = vec![Vec::new(); self.needles.len()];
        let mut count = 0;
        let mut position = 0;
        self.analyzer.tokens(text, markup, &mut |raw| {
            if count >= MAX_PLACES {
                return;
            }
            if !heads.may_match(raw.text) {
                // What cannot match keeps the others apart; how far is all the same.
                position += 1;
                return;
            }
            let expanded = self.expand(raw.text);
            for (needle, offset, form, range) in &expanded.seen {
                let range = raw.start + range.start..raw.start + range.end;
                sightings[*needle].push(Sighting { position: position + offset, form: *form, range });
            }
            count += expanded.seen.len();
            position += expanded.width;
        });
        sightings
    }

    /// Returns what a token is to the needles.
    fn expand(&self, raw: &str) -> Rc<Expanded> {
        if let Some(known) = self.expanded.borrow().get(raw) {
            return Rc::clone(known);
        }
        let mut seen = Vec::new();
        let width = self.analyzer.each_form(raw, &mut |_, offset, range, form| {
            for (prefix, needle) in &self.prefixes {
                if form.starts_with(prefix.as_str()) {
                    seen.push((*needle, offset, Form::Exact, range.clone()));
                }
            }
            let term = self.analyzer.stem(form.clone());
            for &needle in self.by_term.get(&term).into_iter().flatten() {
                let wanted = &self.needles[needle];
                let how = if wanted.folded != form {
                    Form::Near
                } else if as_typed(&raw[range.clone()]) == wanted.typed {
                    Form::Exact
                } else {
                    Form::Folded
                };
                seen.push((needle, offset, how, range.clone()));
            }
        });
        let expanded = Rc::new(Expanded { width, seen });
        let mut known = self.expanded.borrow_mut();
        if known.len() < MAX_EXPANDED {
            known.insert(raw.into(), Rc::clone(&expanded));
        }
        expanded
    }

    /// Returns the places of a clause.
    fn places(&self, index: usize, sightings: &[Vec<Sighting>]) -> Vec<Place> {
        let clause = &self.clauses[index];
        let place = |sighting: &Sighting| Place {
            clause: index,
            form: sighting.form,
            range: sighting.range.clone(),
            position: sighting.position,
            width: 1,
        };
        let mut places: Vec<Place> = clause.direct.iter().flat_map(|&needle| &sightings[needle]).map(place).collect();
        let Some(first) = clause.units.first() else { return places };
        let mut starts: Vec<u32> = first
            .wholes
            .iter()
            .chain(first.parts.first().map(|(needle, _)| needle))
            .flat_map(|&needle| &sightings[needle])
            .map(|sighting| sighting.position)
            .collect();
        starts.sort_unstable();
        starts.dedup();
        let before = places.len();
        places.extend(starts.into_iter().filter_map(|start| {
            let mut position = start;
            let mut form = Form::Exact;
            let mut range: Option<Range<usize>> = None;
            for unit in &clause.units {
                let (unit_form, unit_range) = unit.at(position, sightings)?;
                form = form.min(unit_form);
                range = Some(range.map_or(unit_range.clone(), |range| joined(range, unit_range)));
                position += unit.width;
            }
            Some(Place { clause: index, form, range: range?, position: start, width: position - start })
        }));
        let everywhere = first.parts.iter().all(|&(needle, _)| !sightings[needle].is_empty());
        if places.len() == before && clause.units.len() == 1 && !first.parts.is_empty() && everywhere {
            let parts = first.parts.iter().flat_map(|&(needle, _)| &sightings[needle]);
            places.extend(parts.map(|sighting| Place { form: Form::Scattered, ..place(sighting) }));
        }
        places
    }
}

impl WantedUnit {
    /// Returns how the unit stands at a position.
    fn at(&self, position: u32, sightings: &[Vec<Sighting>]) -> Option<(Form, Range<usize>)> {
        let whole = self
            .wholes
            .iter()
            .filter_map(|&needle| sighting_at(&sightings[needle], position))
            .map(|sighting| (sighting.form, sighting.range.clone()))
            .max_by_key(|(form, _)| *form);
        if whole.as_ref().is_some_and(|(form, _)| *form == Form::Exact) {
            return whole;
        }
        let parts = self
            .parts
            .iter()
            .map(|&(needle, offset)| sighting_at(&sightings[needle], position + offset))
            .try_fold(None, |all: Option<(Form, Range<usize>)>, part| {
                let part = part?;
                Some(Some(match all {
                    None => (part.form, part.range.clone()),
                    Some((form, range)) => (form.min(part.form), joined(range, part.range.clone())),
                }))
            })
            .flatten();
        match (whole, parts) {
            (Some(whole), Some(parts)) => Some(if parts.0 > whole.0 { parts } else { whole }),
            (whole, parts) => whole.or(parts),
        }
    }
}

fn sighting_at(sightings: &[Sighting], position: u32) -> Option<&Sighting> {
    let from = sightings.partition_point(|sighting| sighting.position < position);
    sightings[from..].iter().take_while(|sighting| sighting.position == position).max_by_key(|sighting| sighting.form)
}

fn joined(left: Range<usize>, right: Range<usize>) -> Range<usize> {
    left.start.min(right.start)..left.end.max(right.end)
}

/// Returns a form with nothing folded but case, composition and the shape of apostrophes.
fn as_typed(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    text.nfc().flat_map(char::to_lowercase).map(|c| if c == '\u{2019}' { '\'' } else { c }).collect()
}

/// Finds the smallest stretch of positions with every clause that has a place, by two hands that only move on.
fn smallest_window(places: &[Place], clauses: usize) -> Option<Window> {
    let mut counts = vec![0_u32; clauses];
    let mut all = 0;
    for place in places {
        all += u32::from(counts[place.clause] == 0);
        counts[place.clause] = 1;
    }
    counts.fill(0);
    let (mut held, mut first, mut best) = (0, 0, None);
    for (last, place) in places.iter().enumerate() {
        held += u32::from(counts[place.clause] == 0);
        counts[place.clause] += 1;
        while held == all {
            let stretch = &places[first..=last];
            let end = place.position + place.width;
            let end = stretch.first().map_or(end, |first| end.max(first.position + first.width));
            let positions = end.saturating_sub(places[first].position).max(1);
            best = Some(best.map_or(positions, |best: u32| best.min(positions)));
            counts[places[first].clause] -= 1;
            held -= u32::from(counts[places[first].clause] == 0);
            first += 1;
        }
    }
    best.map(|positions| Window { clauses: all, positions })
}

/// How the terms of a query begin, to pass over most tokens without expanding them.
#[derive(Debug, Clone, Default)]
struct Heads {
    /// First bytes, at most three, of the ASCII ones.
    ascii: Vec<Vec<u8>>,
    /// Whether one begins with this byte.
    firsts: Vec<bool>,
    /// First characters of the others.
    beyond: Vec<char>,
}

impl Heads {
    /// Notes a term. A stem of four letters or more shares its first three with each word that has it, a shorter one
    /// two, but for three exceptions of Snowball's.
    fn add(&mut self, term: &str) {
        self.add_len(
            term,
            match term {
                "die" | "lie" | "tie" => 1,
                _ if term.len() > 3 => 3,
                _ => 2,
            },
        );
    }

    fn is_empty(&self) -> bool {
        self.ascii.is_empty() && self.beyond.is_empty()
    }

    fn add_prefix(&mut self, prefix: &str) {
        self.add_len(prefix, 3);
    }

    fn add_len(&mut self, term: &str, len: usize) {
        let Some(first) = term.chars().next() else { return };
        if !first.is_ascii() {
            self.beyond.push(first);
            return;
        }
        // An ASCII beginning only: what follows may be spelt in several ways.
        let head: Vec<u8> = term.bytes().take(len).take_while(u8::is_ascii).collect();
        self.firsts.resize(128, false);
        self.firsts[head[0] as usize] = true;
        self.ascii.push(head);
    }

    /// Says whether expanding a token might give one of the terms.
    fn may_match(&self, raw: &str) -> bool {
        match plain_start(raw) {
            PlainStart::Ascii => {
                let bytes = raw.as_bytes();
                self.begins(bytes)
                    || bytes.iter().any(|byte| matches!(byte, b'\'' | b'\\'))
                    || ((!bytes[0].is_ascii_alphabetic()
                        || bytes.iter().skip(1).any(|byte| !byte.is_ascii_lowercase()))
                        && (1..bytes.len()).any(|at| self.begins(&bytes[at..])))
            }
            PlainStart::Unspaced(first) => self.beyond.contains(&first),
            PlainStart::Other => true,
        }
    }

    fn begins(&self, bytes: &[u8]) -> bool {
        let first = bytes[0].to_ascii_lowercase() as usize;
        self.firsts.get(first) == Some(&true)
            && self.ascii.iter().any(|head| bytes.len() >= head.len() && bytes[..head.len()].eq_ignore_ascii_case(head))
    }
}
