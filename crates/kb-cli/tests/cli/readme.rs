//! The README shows what the binary prints.
//!
//! **Invariant:** every command of the README is run, in order, in one folder that holds the fixtures. Run the tests
//! with `KB_WRITE_DOCS=1` to write what they print now.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use crate::harness::Kb;

/// What builds kb and runs it, in front of its arguments.
const BUILD_AND_RUN: &str = "cargo run --release -- ";

#[test]
fn the_readme_shows_what_is_printed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let kb = Kb::bare();
    for entry in fs::read_dir(root.join("fixtures/guide")).expect("the fixtures") {
        let entry = entry.expect("an entry");
        let name = entry.file_name().into_string().expect("a plain name");
        kb.write(&format!("fixtures/guide/{name}"), fs::read(entry.path()).expect("a fixture"));
    }

    let written = fs::read_to_string(root.join("README.md")).expect("the README");
    let shown = with_outputs(&written, &kb);
    if std::env::var_os("KB_WRITE_DOCS").is_some() {
        fs::write(root.join("README.md"), shown).expect("the README can be written");
        return;
    }
    assert_eq!(written, shown, "README.md is out of date: run the tests with KB_WRITE_DOCS=1");
}

/// Returns the README with the output of each command as it is now.
fn with_outputs(readme: &str, kb: &Kb) -> String {
    let mut shown = String::new();
    let mut block = None;
    let mut first_command = None;
    for line in readme.lines() {
        match (block, line) {
            (Some(_), "```") => block = None,
            (None, line) if line.starts_with("```") => {
                block = Some(line);
                writeln!(shown, "{line}").expect("a string takes everything");
                if let ("```text", Some(command)) = (line, first_command.take()) {
                    shown.push_str(&output(command, kb));
                }
                continue;
            }
            (Some("```text"), _) => continue,
            (Some("```console"), line) => {
                if let Some(command) = line.strip_prefix("$ kb ") {
                    write!(shown, "{line}\n{}", output(command, kb)).expect("a string takes everything");
                }
                continue;
            }
            (Some("```sh"), line) if line.starts_with(BUILD_AND_RUN) => {
                first_command = line.strip_prefix(BUILD_AND_RUN);
            }
            _ => {}
        }
        writeln!(shown, "{line}").expect("a string takes everything");
    }
    shown
}

/// Returns what a command prints on a terminal, the folder it runs in left out.
fn output(command: &str, kb: &Kb) -> String {
    let run = kb.run(words(command)).expect_exit(0);
    let folder = kb.path("").canonicalize().expect("the folder");
    let given = kb.path("").display().to_string();
    let printed = format!("{}{}", run.text(), run.stderr);
    printed.replace(&format!("{}/", folder.display()), "").replace(given.trim_end_matches('/'), "…")
}

/// Splits a command at blanks that are not between double quotes.
fn words(command: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (index, part) in command.split('"').enumerate() {
        if index % 2 == 1 {
            words.push(part.to_owned());
        } else {
            words.extend(part.split_whitespace().map(str::to_owned));
        }
    }
    words
}
