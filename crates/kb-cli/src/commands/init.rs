//! `kb init`: makes a database.
//!
//! **Invariant:** a folder that holds anything else is never turned into a database, and an existing database is left as
//! it is; so any number of processes may run this at once.

use std::io::Write;
use std::path::Path;

use serde::Serialize;

use super::Context;
use crate::database::DIRECTORY_NAME;
use crate::failure::{Exit, Failure};
use crate::output::printable_path;

/// Make a database
///
/// It is made in `.kbdb` of the working directory, or where `--db` or `KBDB_DIR` says. Where there is one already, nothing
/// is done.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

#[derive(Debug, Serialize)]
struct Initialized {
    path: String,
    created: bool,
}

pub(crate) fn run(_args: &Args, context: &mut Context) -> Result<Exit, Failure> {
    let path = context.databases.place_to_create()?;
    let (base, created) = context.databases.open_or_create(&path)?;
    let result = Initialized { path: base.path().display().to_string(), created };
    // People read the path as they gave it, or from where they are.
    let shown = context.databases.named().unwrap_or(Path::new(DIRECTORY_NAME)).display().to_string();
    context.output.result(&result, |out| {
        let told = if created { "Made a database in" } else { "There is a database in" };
        writeln!(out, "{told} {}", printable_path(&shown))
    })?;
    Ok(Exit::Done)
}
