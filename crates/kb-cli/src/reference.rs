//! `docs/cli.md`: the help of every command, kept true by a test.
//!
//! **Invariant:** what stands between the two marks of the document is what `--help` prints. Run the tests with
//! `KB_WRITE_DOCS=1` to bring it up to date.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

const BEGIN: &str = "<!-- begin: the help of every command -->\n";
const END: &str = "<!-- end: the help of every command -->\n";

#[test]
fn the_reference_is_the_help() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/cli.md");
    let document = fs::read_to_string(&path).expect("docs/cli.md can be read");
    let (before, rest) = document.split_once(BEGIN).expect("docs/cli.md has the mark of the beginning");
    let (written, after) = rest.split_once(END).expect("docs/cli.md has the mark of the end");

    let mut expected = String::from("\n");
    write_help("kb", &crate::command_tree(), &mut expected);
    if std::env::var_os("KB_WRITE_DOCS").is_some() {
        fs::write(&path, format!("{before}{BEGIN}{expected}{END}{after}")).expect("docs/cli.md can be written");
        return;
    }
    assert!(written == expected, "docs/cli.md is out of date: run the tests with KB_WRITE_DOCS=1");
}

fn write_help(name: &str, command: &clap::Command, out: &mut String) {
    let level = "#".repeat(2 + name.matches(' ').count());
    let help = command.clone().term_width(100).render_long_help().to_string();
    // The options that every command has are said once, at the top.
    let help = match (name, help.split_once("\nGlobal options:")) {
        ("kb", _) | (_, None) => help.as_str(),
        (_, Some((own, _))) => own,
    };
    let lines: Vec<&str> = help.trim_end().lines().map(str::trim_end).collect();
    write!(out, "{level} `{name}`\n\n```text\n{}\n```\n\n", lines.join("\n")).expect("a string takes everything");
    for below in command.get_subcommands().filter(|below| below.get_name() != "help") {
        write_help(&format!("{name} {}", below.get_name()), below, out);
    }
}
