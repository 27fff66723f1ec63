//! From what was typed to a source: its name and its configuration, checked.
//!
//! **Invariant:** all faults are told at once, each with its key, before anything is started or changed.

use std::env;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kb_core::{SourceFault, read_yaml};
use kb_mcp::Machine;
use kb_store::{Environment, KnowledgeBase, SourceConfig, StoreError, is_source_name};
use serde_json::{Map, Value};

use super::Which;
use crate::commands::{is_stdin, read_text};
use crate::failure::Failure;
use crate::output::{Output, printable};

/// A source as it was named.
pub(super) struct Given {
    pub(super) name: String,
    /// The configuration as it was written.
    pub(super) value: Value,
}

impl Which {
    /// Finds what was named: a file, a source of the base, settings alone, or settings over one of these.
    pub(super) fn given(&self, base: Option<&KnowledgeBase>) -> Result<Given, Failure> {
        let (mut value, own_name) = match &self.source {
            None => (Value::Object(Map::new()), None),
            Some(source) if is_file(source) => {
                let path = Path::new(source);
                let text = read_text(path)?;
                let value = read_yaml(&text).map_err(|error| {
                    Failure::configuration("source-config", format_args!("`{}`: {error}", path.display()))
                })?;
                let stem = if is_stdin(path) { None } else { path.file_stem() };
                (value, stem.map(|stem| stem.to_string_lossy().into_owned()))
            }
            Some(source) => {
                let name = source.to_string_lossy().into_owned();
                let base = base.ok_or_else(|| no_file(source))?;
                // What names no source says so, with names near to it.
                let Some(value) = base.source_config(&name)? else {
                    base.source_info(&name).map_err(|error| match error {
                        StoreError::SourceNotFound { .. } if !is_source_name(&name) => no_file(source),
                        error => error.into(),
                    })?;
                    return Err(Failure::new(
                        "not-configured",
                        format_args!("the base does not keep the configuration of `{name}`"),
                    )
                    .with_hint("name its YAML file, or keep it with `kb source add FILE`"));
                };
                (value, Some(name))
            }
        };
        if self.source.is_none() && self.settings.is_empty() {
            return Err(Failure::usage(
                "a source has to be named: one that was added, a YAML file, or `--set KEY=YAML`",
            ));
        }
        self.set(&mut value)?;
        let name = self.name.clone().or(own_name).ok_or_else(|| {
            Failure::usage("a source that is given by `--set` alone needs a name")
                .with_hint("`--name NAME` gives it one")
        })?;
        if !is_source_name(&name) {
            return Err(Failure::usage(format_args!(
                "`{}` is no name of a source: letters, digits, `_`, `-` and `.`, the first a letter or digit, at most 64",
                printable(&name.chars().take(80).collect::<String>())
            ))
            .with_hint("`--name NAME` gives it another"));
        }
        Ok(Given { name, value })
    }

    /// Puts the settings over a configuration.
    fn set(&self, value: &mut Value) -> Result<(), Failure> {
        if self.settings.is_empty() {
            return Ok(());
        }
        if value.is_null() {
            *value = Value::Object(Map::new());
        }
        let Value::Object(map) = value else { return Ok(()) };
        for setting in &self.settings {
            let malformed = |what: &str| {
                Failure::configuration("source-config", format_args!("`--set`: {what}"))
                    .with_hint("it is KEY=YAML, for example `--set 'static_ids=[a, b]'`")
            };
            let (key, text) = setting.split_once('=').ok_or_else(|| malformed("a setting has no `=`"))?;
            let setting = read_yaml(text).map_err(|error| malformed(&format!("the value of `{key}`: {error}")))?;
            map.insert(key.trim().to_owned(), setting);
        }
        Ok(())
    }
}

/// Says whether what was typed is meant as a file: it is there, it is stdin, or it looks like a path.
fn is_file(source: &OsString) -> bool {
    let path = Path::new(source);
    let is_yaml = path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml");
    is_stdin(path) || is_yaml || path.is_file() || path.components().count() > 1
}

fn no_file(source: &OsString) -> Failure {
    let path = PathBuf::from(source);
    Failure::io("read", &path, &io::ErrorKind::NotFound.into())
}

/// Checks a configuration against this machine.
pub(super) fn checked(given: &Given) -> Result<Result<SourceConfig, Vec<SourceFault>>, Failure> {
    let here = working_directory()?;
    let environment = Environment { variable: &variable, working_directory: &here };
    Ok(SourceConfig::read(&given.value, &environment))
}

/// Returns the configuration, or tells of every fault in it.
pub(super) fn config(given: &Given, output: &mut Output) -> Result<SourceConfig, Failure> {
    checked(given)?.map_err(|faults| {
        let told: Vec<String> = faults.iter().map(told).collect();
        let count = crate::output::count(faults.len() as u64, "fault");
        if output.is_json() {
            let sentence = format!("the configuration of `{}` has {count}: {}", given.name, told.join("; "));
            return Failure::configuration("source-config", sentence);
        }
        for line in &told {
            output.error(printable(line));
        }
        Failure::configuration("source-config", format_args!("the configuration of `{}` has {count}", given.name))
    })
}

pub(super) fn told(fault: &SourceFault) -> String {
    if fault.key.is_empty() { fault.message.clone() } else { format!("{}: {}", fault.key, fault.message) }
}

pub(super) fn variable(name: &str) -> Option<OsString> {
    env::var_os(name)
}

pub(super) fn working_directory() -> Result<PathBuf, Failure> {
    env::current_dir().map_err(|error| Failure::io("read", Path::new("."), &error))
}

/// Returns what a client is given of this machine.
pub(super) fn machine(here: &Path, verbose: bool) -> Machine<'_> {
    let supervisor = match env::current_exe() {
        Ok(program) if cfg!(unix) => {
            vec![
                program.into(),
                "source".into(),
                "supervise".into(),
                std::process::id().to_string().into(),
                "--".into(),
            ]
        }
        _ => Vec::new(),
    };
    let server_log: Option<kb_mcp::ServerLog> = verbose.then(|| {
        Arc::new(|line: &str| {
            use std::io::Write as _;
            // There is nobody left to tell that stderr is closed.
            let _ = writeln!(anstream::stderr().lock(), "server: {}", printable(line));
        }) as kb_mcp::ServerLog
    });
    Machine { variable: &variable, working_directory: here, supervisor, server_log }
}
