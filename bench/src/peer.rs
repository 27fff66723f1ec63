//! tantivy over the same sections.
//!
//! The schema does the work that kb's index does: the body stemmed with positions and its text stored, title and
//! heading path stemmed with frequencies; or the body alone.
//!
//! **Invariant:** one indexing thread, one commit, one segment, default settings else.

use std::path::Path;

use tantivy::schema::{FAST, Field, IndexRecordOption, STORED, Schema, SchemaBuilder, TextFieldIndexing, TextOptions};
use tantivy::{Index, TantivyDocument};

use crate::Result;
use crate::documents::Document;

/// Memory of the writer: enough for the corpora measured here to become one segment.
const WRITER_BYTES: usize = 2_000_000_000;

/// Which fields are indexed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fields {
    /// Title, heading path and body.
    All,
    /// The body alone.
    Body,
}

/// The fields of the schema.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Handles {
    pub(crate) title: Field,
    pub(crate) headings: Field,
    pub(crate) body: Field,
    /// The number of the section's document.
    pub(crate) document: Field,
}

fn schema(fields: Fields) -> (Schema, Handles) {
    let stemmed = |record| TextFieldIndexing::default().set_tokenizer("en_stem").set_index_option(record);
    let with_positions =
        || TextOptions::default().set_indexing_options(stemmed(IndexRecordOption::WithFreqsAndPositions));
    let with_frequencies = || TextOptions::default().set_indexing_options(stemmed(IndexRecordOption::WithFreqs));
    let mut builder = SchemaBuilder::new();
    let (title, headings) = match fields {
        Fields::All => (with_frequencies() | STORED, with_frequencies()),
        Fields::Body => (TextOptions::default() | STORED, TextOptions::default()),
    };
    let handles = Handles {
        title: builder.add_text_field("title", title),
        headings: builder.add_text_field("headings", headings),
        body: builder.add_text_field("body", with_positions() | STORED),
        document: builder.add_u64_field("document", FAST),
    };
    (builder.build(), handles)
}

/// Indexes documents in an empty folder.
pub(crate) fn build(folder: &Path, documents: &[Document], fields: Fields) -> Result<()> {
    let (schema, handles) = schema(fields);
    let index = Index::create_in_dir(folder, schema)?;
    let mut writer = index.writer_with_num_threads::<TantivyDocument>(1, WRITER_BYTES)?;
    for (number, document) in documents.iter().enumerate() {
        for section in &document.sections {
            let mut entry = TantivyDocument::default();
            entry.add_text(handles.title, &document.title);
            if fields == Fields::All {
                entry.add_text(handles.headings, section.heading_path.join("\n"));
            }
            entry.add_text(handles.body, document.body_of(section));
            entry.add_u64(handles.document, number as u64);
            writer.add_document(entry)?;
        }
    }
    writer.commit()?;
    writer.wait_merging_threads()?;
    let segments = index.searchable_segment_ids()?.len();
    if segments != 1 {
        return Err(format!("tantivy made {segments} segments where one was to be measured").into());
    }
    Ok(())
}
