//! Which documents of a segment a search looks at.
//!
//! **Invariant:** what a filter says holds of every document that is counted or returned; nothing is ranked first and
//! filtered then.

use std::ops::{ControlFlow, Range};

use fst::automaton::AlwaysMatch;

use super::{DateBound, SearchOptions};
use crate::analysis::Analyzer;
use crate::query::Filters;
use crate::segment::{Cursor, Segment, dictionary, facet};
use crate::source::{SegmentError, Source};

/// A set of documents of a segment.
#[derive(Debug, Clone)]
pub(super) struct DocumentSet {
    bits: Vec<u64>,
    documents: u32,
}

impl DocumentSet {
    fn new(documents: u32) -> Self {
        Self { bits: vec![0; documents.div_ceil(64) as usize], documents }
    }

    pub(super) fn contains(&self, ordinal: u32) -> bool {
        self.bits.get(ordinal as usize / 64).is_some_and(|bits| bits >> (ordinal % 64) & 1 == 1)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.documents).filter(|&ordinal| self.contains(ordinal))
    }

    fn insert(&mut self, ordinal: u32) {
        if let Some(bits) = self.bits.get_mut(ordinal as usize / 64) {
            *bits |= 1 << (ordinal % 64);
        }
    }

    fn keep(&mut self, other: &Self) {
        self.bits.iter_mut().zip(&other.bits).for_each(|(bits, others)| *bits &= others);
    }

    fn remove(&mut self, other: &Self) {
        self.bits.iter_mut().zip(&other.bits).for_each(|(bits, others)| *bits &= !others);
    }
}

/// Returns the documents, dead ones included, that all filters let through; `None` if that is every one.
pub(super) fn documents<S: Source>(
    segment: &Segment<S>,
    filters: [&Filters; 2],
    options: &SearchOptions,
    analyzer: &Analyzer,
) -> Result<Option<DocumentSet>, SegmentError> {
    let look = Look { segment, analyzer };
    let mut set: Option<DocumentSet> = None;
    let mut keep = |other: DocumentSet| match &mut set {
        Some(set) => set.keep(&other),
        None => set = Some(other),
    };
    for filters in filters {
        for tag in &filters.tags {
            keep(look.facets(facet::TAG, std::slice::from_ref(tag))?);
        }
        for (kind, values) in [(facet::TYPE, &filters.types), (facet::SOURCE, &filters.sources)] {
            if !values.is_empty() {
                keep(look.facets(kind, values)?);
            }
        }
        if !filters.docids.is_empty() {
            keep(look.docids(&filters.docids)?);
        }
    }
    let not = |filters: &Filters| {
        let (tags, types) = (&filters.not_tags, &filters.not_types);
        [tags, types, &filters.not_sources, &filters.not_docids].iter().any(|values| !values.is_empty())
    };
    let dated = options.since.is_some() || options.until.is_some();
    if set.is_none() && !dated && !filters.iter().any(|filters| not(filters)) {
        return Ok(None);
    }
    let mut set = set.unwrap_or_else(|| look.range(0..segment.documents()));
    for filters in filters {
        set.remove(&look.facets(facet::TAG, &filters.not_tags)?);
        set.remove(&look.facets(facet::TYPE, &filters.not_types)?);
        set.remove(&look.facets(facet::SOURCE, &filters.not_sources)?);
        set.remove(&look.docids(&filters.not_docids)?);
    }
    if dated {
        let mut others = DocumentSet::new(segment.documents());
        for ordinal in set.iter() {
            if !look.is_dated(ordinal, options)? {
                others.insert(ordinal);
            }
        }
        set.remove(&others);
    }
    Ok(Some(set))
}

struct Look<'a, S> {
    segment: &'a Segment<S>,
    analyzer: &'a Analyzer,
}

impl<S: Source> Look<'_, S> {
    fn range(&self, range: Range<u32>) -> DocumentSet {
        let mut set = DocumentSet::new(self.segment.documents());
        range.for_each(|ordinal| set.insert(ordinal));
        set
    }

    /// Returns the documents that have one of these values; a value that ends in `*` is a beginning.
    fn facets(&self, kind: u8, values: &[String]) -> Result<DocumentSet, SegmentError> {
        let mut set = DocumentSet::new(self.segment.documents());
        for value in values {
            if let Some(prefix) = value.strip_suffix('*') {
                let key = facet::key(kind, prefix, self.analyzer);
                dictionary::search(self.segment, &key, &AlwaysMatch, &mut |_, record| {
                    self.add(record, &mut set)?;
                    Ok(ControlFlow::Continue(()))
                })?;
            } else if let Some(record) = dictionary::lookup(self.segment, &facet::key(kind, value, self.analyzer))? {
                self.add(record, &mut set)?;
            }
        }
        Ok(set)
    }

    fn add(&self, record: u64, set: &mut DocumentSet) -> Result<(), SegmentError> {
        let mut cursor = Cursor::open(self.segment, record, false)?;
        while cursor.section() != Cursor::<S>::END {
            set.insert(cursor.section());
            cursor.advance()?;
        }
        Ok(())
    }

    fn docids(&self, docids: &[String]) -> Result<DocumentSet, SegmentError> {
        let mut set = DocumentSet::new(self.segment.documents());
        for docid in docids {
            match docid.strip_suffix('*') {
                Some(prefix) => self.segment.find_prefix(prefix)?.for_each(|ordinal| set.insert(ordinal)),
                None => self.segment.find(docid)?.into_iter().for_each(|ordinal| set.insert(ordinal)),
            }
        }
        Ok(set)
    }

    fn is_dated(&self, ordinal: u32, options: &SearchOptions) -> Result<bool, SegmentError> {
        let date = self.segment.date(ordinal)?;
        let after = options.since.is_none_or(|since| match since {
            DateBound::Instant(seconds) => date.utc_seconds >= seconds,
            DateBound::Day(day) => date.local_day >= day,
        });
        let before = options.until.is_none_or(|until| match until {
            DateBound::Instant(seconds) => date.utc_seconds <= seconds,
            DateBound::Day(day) => date.local_day <= day,
        });
        Ok(after && before)
    }
}
