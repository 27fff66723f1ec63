//! `kb list`: shows which documents there are.
//!
//! **Invariant:** the order is that of the docids.

use kb_store::ListFilter;

use super::Context;
use crate::failure::{Exit, Failure};
use crate::output::{count, printable, size, write_columns};

/// List documents, skills and agents
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only with this tag (`ops/*`: any tag below); may be given again, then each is needed
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,
    /// Only of this type: a media type, a short name, `skill` or `agent`; may be given again
    #[arg(long = "type", value_name = "TYPE")]
    types: Vec<String>,
    /// Only docids that begin so
    #[arg(long)]
    prefix: Option<String>,
    /// Only from this source or from below it: a path, or the name of a source or system of `kb source`
    #[arg(long)]
    source: Option<String>,
}

pub(crate) fn run(args: Args, context: &mut Context) -> Result<Exit, Failure> {
    let base = context.databases.open_to_read()?;
    let filter = ListFilter { tags: args.tags, types: args.types, prefix: args.prefix, source: args.source };
    let list = base.list(&filter)?;
    context.output.result(&list, |out| {
        let rows: Vec<Vec<String>> = list
            .documents
            .iter()
            .map(|document| {
                vec![
                    document.docid.to_string(),
                    count(u64::from(document.sections), "section"),
                    size(document.bytes),
                    printable(&document.title),
                ]
            })
            .collect();
        write_columns(out, &rows)
    })?;
    if list.documents.is_empty() && !context.output.is_json() {
        context.output.note("no documents");
    }
    Ok(Exit::Done)
}
