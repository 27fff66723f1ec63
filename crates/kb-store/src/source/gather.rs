//! What a fetcher hands over in the course of a run.
//!
//! **Invariant:** the bytes of a document are the server's own; nothing between the server and the plan touches them.

use kb_core::{MediaType, SourceFailure};
use serde_json::Value;

/// A document that the selection names.
#[derive(Debug, Clone, PartialEq)]
pub struct SelectedRow {
    /// The id, as text.
    pub id: String,
    /// The id as the reader is to be given it: a text, or a number where the server has numbers.
    pub argument: Value,
    /// The title that the selection gives; never blank.
    pub title: Option<String>,
    /// Where a person can look at it.
    pub url: Option<String>,
    /// What, unchanged, spares the read.
    pub version: Option<String>,
}

/// A document that was read.
#[derive(Debug, Clone, PartialEq)]
pub struct GatheredDocument {
    /// What named it.
    pub row: SelectedRow,
    /// The title that the document itself has, by `title_key`; never blank.
    pub title: Option<String>,
    /// The text.
    pub content: Vec<u8>,
    /// What the server says it is; Markdown by default.
    pub media_type: Option<MediaType>,
}

/// Told of what a run meets, in any order.
pub trait Gather {
    /// Called for each row of the selection once, with its place; says whether it has to be read.
    fn wants(&mut self, place: usize, row: &SelectedRow) -> bool;

    /// Called for each document that was read.
    fn document(&mut self, place: usize, document: GatheredDocument);

    /// Called for each row that could not be used (without a place) and each document that could not be read.
    fn failure(&mut self, place: Option<usize>, failure: SourceFailure);

    /// Called for what is no failure and yet to be looked at.
    fn warning(&mut self, warning: String);

    /// Called where the selection was not read to its end.
    fn cut_off(&mut self, reason: String);
}
