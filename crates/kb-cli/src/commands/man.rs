//! `kb man`: prints or writes the manual.
//!
//! **Invariant:** the pages are made from the tree of commands, so they say what `--help` says.

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;

use clap_mangen::Man;
use serde::Serialize;

use super::Context;
use crate::failure::{Exit, Failure};
use crate::output::count;

/// Print the manual page, or write all pages into a folder
///
/// For example: `kb man | man -l -`, or `kb man ~/.local/share/man/man1`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Folder to write a page for each command into; pages that are there are replaced
    dir: Option<PathBuf>,
}

#[derive(Debug, Serialize)]
struct Written {
    path: String,
    pages: Vec<String>,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<Exit, Failure> {
    let tree = crate::command_tree();
    let Some(dir) = &args.dir else {
        context.output.write_all(&page(&tree)?)?;
        return Ok(Exit::Done);
    };
    fs::create_dir_all(dir).map_err(|error| Failure::io("create", dir, &error))?;
    let mut pages = Vec::new();
    collect(&tree, &mut pages);
    let mut written = Written { path: dir.display().to_string(), pages: Vec::new() };
    for (name, command) in pages {
        let path = dir.join(format!("{name}.1"));
        fs::write(&path, page(command)?).map_err(|error| Failure::io("write", &path, &error))?;
        written.pages.push(name);
    }
    context.output.result(&written, |out| {
        writeln!(out, "wrote {} to {}", count(written.pages.len() as u64, "page"), written.path)
    })?;
    Ok(Exit::Done)
}

fn page(command: &clap::Command) -> io::Result<Vec<u8>> {
    let mut page = Vec::new();
    Man::new(command.clone()).render(&mut page)?;
    Ok(page)
}

/// Collects a command and all below it under the names of their pages, such as `kb-skill-list`.
fn collect<'a>(command: &'a clap::Command, pages: &mut Vec<(String, &'a clap::Command)>) {
    pages.push((command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned(), command));
    for below in command.get_subcommands().filter(|below| below.get_name() != "help") {
        collect(below, pages);
    }
}
