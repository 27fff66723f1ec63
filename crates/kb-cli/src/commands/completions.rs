//! `kb completions`: prints a script for the shell.
//!
//! **Invariant:** the script is made from the tree of commands, so it knows every option there is.

use std::io::Write;

use clap_complete::Shell;

use super::Context;
use crate::failure::{Exit, Failure};

/// Print the completions for a shell
///
/// For example, for bash: `kb completions bash > ~/.local/share/bash-completion/completions/kb`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The shell
    shell: Shell,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut crate::command_tree(), "kb", &mut script);
    context.output.write_all(&script)?;
    Ok(Exit::Done)
}
