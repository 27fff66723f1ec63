//! tantivy over the same sections.
//!
//! The schema does the work that kb's index does: the body stemmed with positions and its text stored, title and
//! heading path stemmed with frequencies; or the body alone.
//!
//! **Invariant:** one indexing thread, one commit, one segment, default settings else.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use tantivy::collector::{Count, DocSetCollector, TopDocs};
use tantivy::query::{BooleanQuery, FuzzyTermQuery, Occur, PhraseQuery, Query, TermQuery};
use tantivy::schema::{
    FAST, Field, IndexRecordOption, STORED, Schema, SchemaBuilder, TextFieldIndexing, TextOptions, Value,
};
use tantivy::tokenizer::TokenStream;
use tantivy::{Index, ReloadPolicy, TantivyDocument, Term};

use crate::Result;
use crate::documents::Document;
use crate::table::say;

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

/// How a query is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Kind {
    /// Every word has to match.
    Words,
    /// The words in this order, next to each other.
    Phrase,
    /// The last word is a beginning.
    Prefix,
    /// Each word may have one typing error.
    Typo,
}

impl Kind {
    /// Returns its name as the list of queries and the command line write it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Words => "words",
            Self::Phrase => "phrase",
            Self::Prefix => "prefix",
            Self::Typo => "typo",
        }
    }
}

/// Arguments of `tantivy-search`.
#[derive(Debug, clap::Args)]
pub(crate) struct SearchArgs {
    index: PathBuf,
    query: String,
    #[arg(long, value_enum, default_value = "words")]
    kind: Kind,
    /// Count documents, not sections, and show no hits
    #[arg(long)]
    documents: bool,
}

/// Runs `tantivy-search`: the ten best with title, and how many there are.
pub(crate) fn run_search(args: &SearchArgs) -> Result<ExitCode> {
    let index = Index::open_in_dir(&args.index)?;
    let schema = index.schema();
    let handles = Handles {
        title: schema.get_field("title")?,
        headings: schema.get_field("headings")?,
        body: schema.get_field("body")?,
        document: schema.get_field("document")?,
    };
    let reader = index.reader_builder().reload_policy(ReloadPolicy::Manual).try_into()?;
    let searcher = reader.searcher();
    let query = query(&index, handles, &args.query, args.kind)?;
    if args.documents {
        let found = searcher.search(&query, &DocSetCollector)?;
        let mut documents = HashSet::new();
        for address in found {
            let column = searcher.segment_reader(address.segment_ord).fast_fields().u64("document")?;
            documents.extend(column.first(address.doc_id));
        }
        say(&documents.len().to_string())?;
        return Ok(ExitCode::SUCCESS);
    }
    let (best, total) = searcher.search(&query, &(TopDocs::with_limit(10).order_by_score(), Count))?;
    let mut lines = format!("{total}");
    for (score, address) in best {
        let found: TantivyDocument = searcher.doc(address)?;
        let title = found.get_first(handles.title).and_then(|value| value.as_str()).unwrap_or_default();
        let _ = write!(lines, "\n{score:.3}\t{title}");
    }
    say(&lines)?;
    Ok(ExitCode::SUCCESS)
}

fn query(index: &Index, handles: Handles, text: &str, kind: Kind) -> Result<Box<dyn Query>> {
    let fields = [handles.title, handles.headings, handles.body];
    let mut analyzer = index.tokenizers().get("en_stem").ok_or("tantivy has no `en_stem`")?;
    let mut stems = Vec::new();
    analyzer.token_stream(text).process(&mut |token| stems.push(token.text.clone()));
    let any_field = |make: &dyn Fn(Field) -> Box<dyn Query>| -> Box<dyn Query> {
        Box::new(BooleanQuery::new(fields.iter().map(|&field| (Occur::Should, make(field))).collect()))
    };
    let word = |stem: &str| {
        any_field(&|field| Box::new(TermQuery::new(Term::from_field_text(field, stem), IndexRecordOption::WithFreqs)))
    };
    let all = |parts: Vec<Box<dyn Query>>| -> Box<dyn Query> {
        Box::new(BooleanQuery::new(parts.into_iter().map(|part| (Occur::Must, part)).collect()))
    };
    Ok(match kind {
        Kind::Words => all(stems.iter().map(|stem| word(stem)).collect()),
        Kind::Phrase if stems.len() < 2 => all(stems.iter().map(|stem| word(stem)).collect()),
        Kind::Phrase => {
            Box::new(PhraseQuery::new(stems.iter().map(|stem| Term::from_field_text(handles.body, stem)).collect()))
        }
        Kind::Prefix => {
            // The beginning of a word is no stem: it is taken as typed.
            let last = text.split_whitespace().next_back().unwrap_or_default().to_lowercase();
            stems.pop();
            let mut parts: Vec<Box<dyn Query>> = stems.iter().map(|stem| word(stem)).collect();
            parts.push(any_field(&|field| {
                Box::new(FuzzyTermQuery::new_prefix(Term::from_field_text(field, &last), 0, true))
            }));
            all(parts)
        }
        Kind::Typo => all(stems
            .iter()
            .map(|stem| any_field(&|field| Box::new(FuzzyTermQuery::new(Term::from_field_text(field, stem), 1, true))))
            .collect()),
    })
}
