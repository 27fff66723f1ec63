//! Keeps the best documents while sections are scored.
//!
//! **Invariant:** what is kept does not depend on the order of segments: documents compare by score, then docid.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A document with its best section.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Candidate<'a> {
    /// In units of 2⁻¹⁶.
    pub(super) score: u32,
    /// The smaller, the better.
    pub(super) docid: Reverse<&'a str>,
    /// Number of the section in its segment; of equal ones the first is kept.
    pub(super) section: Reverse<u32>,
    pub(super) segment: usize,
    pub(super) ordinal: u32,
}

/// The best documents so far.
#[derive(Debug)]
pub(super) struct Collector<'a> {
    limit: usize,
    /// The worst first.
    heap: BinaryHeap<Reverse<Candidate<'a>>>,
    /// Documents that matched.
    pub(super) total: u64,
    /// Documents that have to be counted before any may be passed over.
    count: u64,
}

impl<'a> Collector<'a> {
    pub(super) fn new(limit: usize, count: u64) -> Self {
        Self { limit: limit.max(1), heap: BinaryHeap::new(), total: 0, count }
    }

    /// Returns the score below which a section need not be looked at.
    pub(super) fn threshold(&self) -> u32 {
        match self.heap.peek() {
            Some(Reverse(worst)) if self.heap.len() == self.limit && self.total > self.count => worst.score,
            _ => 0,
        }
    }

    /// Returns whether every matching document was counted.
    pub(super) fn is_exact(&self) -> bool {
        self.total <= self.count
    }

    /// Returns whether more documents were offered than are kept.
    pub(super) fn is_full(&self) -> bool {
        self.heap.len() == self.limit
    }

    /// Says whether a document with this score may be among the best; on a tie its docid decides.
    pub(super) fn may_keep(&self, score: u32) -> bool {
        self.heap.len() < self.limit || self.heap.peek().is_none_or(|Reverse(worst)| score >= worst.score)
    }

    /// Takes a document with its best section. It was counted already.
    pub(super) fn offer(&mut self, candidate: Candidate<'a>) {
        if self.heap.len() < self.limit {
            self.heap.push(Reverse(candidate));
        } else if let Some(mut worst) = self.heap.peek_mut()
            && worst.0 < candidate
        {
            *worst = Reverse(candidate);
        }
    }

    /// Returns the best first.
    pub(super) fn into_sorted(self) -> Vec<Candidate<'a>> {
        self.heap.into_sorted_vec().into_iter().map(|Reverse(candidate)| candidate).collect()
    }
}
