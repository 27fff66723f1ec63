//! What a segment is built from: documents and sections as their owner knows them.
//!
//! **Invariant:** these types only borrow. Nothing here reads a manifest, a file or a clock.

use kb_core::SectionId;

use crate::analysis::Markup;

/// When a document was learned, as filters compare it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DateKey {
    /// Seconds since 1970-01-01T00:00:00Z.
    pub utc_seconds: i64,
    /// Days since 1970-01-01 in the time zone of the writer, for filters that name a day.
    pub local_day: i32,
}

/// A document to be indexed.
#[derive(Debug, Clone, Copy)]
pub struct DocumentInput<'a> {
    /// The document's name; at most 65,535 bytes.
    pub docid: &'a str,
    /// The title, indexed on every section.
    pub title: &'a str,
    /// Tags: facets as well as words of the first section.
    pub tags: &'a [String],
    /// Aliases, description and other front matter: words of the first section.
    pub front_text: &'a str,
    /// Values of the facet `type`: media type and kind.
    pub types: &'a [&'a str],
    /// Value of the facet `source`.
    pub source: Option<&'a str>,
    /// When it was learned.
    pub date: DateKey,
    /// The sections in order; front matter is not among them.
    pub sections: &'a [SectionInput<'a>],
}

/// A section to be indexed.
#[derive(Debug, Clone, Copy)]
pub struct SectionInput<'a> {
    /// Place in the document, as the manifest counts; ascending.
    pub position: u32,
    /// The content address.
    pub kbid: SectionId,
    /// Titles of the headings above and of its own, outermost first.
    pub heading_path: &'a [&'a str],
    /// The text; empty for an image.
    pub text: &'a str,
    /// How the text is written.
    pub markup: Markup,
    /// This is the document's first section of text: tags and front matter are found here.
    pub first: bool,
}

/// Returns the first 64 bits of a kbid.
pub(crate) fn kbid_prefix(kbid: SectionId) -> u64 {
    (u128::from_be_bytes(kbid.to_bytes()) >> 64) as u64
}
