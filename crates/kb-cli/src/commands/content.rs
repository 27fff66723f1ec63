//! `kb content`: composes sections and documents into one text.
//!
//! **Invariant:** the parts come in the order they were asked for.

use std::io::Write;

use super::Context;
use crate::failure::{Exit, Failure};
use crate::ids;

/// Compose sections and documents into one Markdown text
///
/// They come in the order given. One document alone is its source byte for byte.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Kbids, beginnings of kbids (4 characters or more), and docids
    #[arg(required = true, value_name = "ID")]
    ids: Vec<String>,
    /// Add a footnote to each text that a source brought: where from, and when
    #[arg(long)]
    footnotes: bool,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<Exit, Failure> {
    let base = context.databases.open_to_read()?;
    let ids = args.ids.iter().map(|text| Ok(ids::find(&base, text)?.id())).collect::<Result<Vec<_>, Failure>>()?;
    let composed = if args.footnotes { base.content_with_footnotes(&ids)? } else { base.content(&ids)? };
    context.output.result(&composed, |out| out.write_all(composed.content.as_bytes()))?;
    Ok(Exit::Done)
}
