//! What an online check finds.
//!
//! **Invariant:** no more is read than the first document that can be read.

use kb_core::SourceFailure;

use super::gather::{Gather, GatheredDocument, SelectedRow};

/// Collects what an online check finds, and reads no more than the first document that can be read.
#[derive(Debug, Default)]
pub struct Probe {
    /// The rows, in order.
    pub rows: Vec<SelectedRow>,
    /// The first document that could be read.
    pub document: Option<GatheredDocument>,
    /// What was skipped.
    pub failures: Vec<SourceFailure>,
    /// What else to look at.
    pub warnings: Vec<String>,
}

impl Gather for Probe {
    fn wants(&mut self, _: usize, row: &SelectedRow) -> bool {
        self.rows.push(row.clone());
        self.rows.len() == 1
    }

    fn document(&mut self, _: usize, document: GatheredDocument) {
        self.document.get_or_insert(document);
    }

    fn failure(&mut self, _: Option<usize>, failure: SourceFailure) {
        self.failures.push(failure);
    }

    fn warning(&mut self, warning: String) {
        self.warnings.push(warning);
    }

    fn cut_off(&mut self, reason: String) {
        self.warnings.push(reason);
    }
}
