//! `kb history`: shows the kept revisions of a document.
//!
//! **Invariant:** the newest comes first.

use kb_core::DocId;

use super::Context;
use crate::failure::{Exit, Failure};
use crate::ids::{self, Found};
use crate::output::{count, printable, write_columns};

/// List the kept revisions of a document, the newest first
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The document
    #[arg(value_name = "DOCID")]
    docid: String,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<Exit, Failure> {
    let base = context.databases.open_to_read()?;
    let docid: DocId = match ids::find(&base, &args.docid)? {
        Found::Document(docid) => docid,
        Found::Section { id, .. } => {
            return Err(Failure::usage(format_args!("`{id}` is a section, and a docid is meant")));
        }
    };
    let history = base.history(&docid)?;
    context.output.result(&history, |out| {
        let rows: Vec<Vec<String>> = history
            .revisions
            .iter()
            .map(|revision| {
                let marks = match (revision.current, revision.edited) {
                    (true, true) => "current, edited",
                    (true, false) => "current",
                    (false, true) => "edited",
                    (false, false) => "",
                };
                vec![
                    revision.revision.to_string(),
                    revision.updated.clone(),
                    count(revision.kbids.len() as u64, "section"),
                    printable(&revision.title),
                    marks.to_owned(),
                ]
            })
            .collect();
        write_columns(out, &rows)
    })?;
    Ok(Exit::Done)
}
