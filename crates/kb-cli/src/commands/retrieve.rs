//! `kb retrieve`: hands out one section or document.
//!
//! **Invariant:** without `--json` stdout carries the stored bytes and nothing else.

use std::io::Write;

use super::Context;
use crate::failure::{Exit, Failure};
use crate::ids::{self, Found};

/// Print a section or a document
///
/// Its bytes go to stdout as they were learned, with no decoration, so they can be piped. With `--json` come what is
/// known about it, and the text.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A kbid, the beginning of one (4 characters or more), or a docid
    id: String,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<Exit, Failure> {
    let base = context.databases.open_to_read()?;
    let out = &mut context.output;
    match (ids::find(&base, &args.id)?, out.is_json()) {
        (Found::Section { id, .. }, true) => out.json_line(&base.retrieve_section(id)?)?,
        (Found::Section { id, .. }, false) => out.write_all(&base.section_bytes(id)?)?,
        (Found::Document(id), true) => out.json_line(&base.retrieve_document(&id)?)?,
        (Found::Document(id), false) => out.write_all(&base.document_bytes(&id)?)?,
    }
    Ok(Exit::Done)
}
