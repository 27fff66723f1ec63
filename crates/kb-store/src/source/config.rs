//! The configuration of a source: what a block of YAML says, or all that is wrong with it.
//!
//! Everything that can be known without the server is checked here, before any process is started or any connection
//! opened. The environment is handed in.
//!
//! **Invariant:** a [`SourceConfig`] that exists names one system, one reader, and one selector or a list of ids; a key that
//! is not known is a fault; no fault repeats a value that may be a secret.

mod keys;
mod parse;
#[cfg(test)]
mod tests;
mod transport;

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use kb_core::SourceFault;
use serde_json::{Map, Value};

use keys::Faults;
use parse::read_config;

/// The longest name of a source or a system.
const MAX_NAME: usize = 64;

/// What is known of the machine that a source is run on.
#[derive(Clone, Copy)]
pub struct Environment<'e> {
    /// Gives a variable of the environment.
    pub variable: &'e dyn Fn(&str) -> Option<OsString>,
    /// Where relative commands begin.
    pub working_directory: &'e Path,
}

impl std::fmt::Debug for Environment<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Environment").field("working_directory", &self.working_directory).finish_non_exhaustive()
    }
}

/// How the server is reached.
#[derive(Debug, Clone, PartialEq)]
pub enum Transport {
    /// A child process that speaks over its standard streams.
    Stdio {
        /// The program.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Names of variables that it is given beside the usual ones.
        env: Vec<String>,
    },
    /// Streamable HTTP.
    Http {
        /// The endpoint.
        url: String,
        /// The variable that holds the bearer token.
        auth_env: Option<String>,
    },
}

/// A key, or a path of keys joined by dots, into a JSON value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyPath(String);

impl KeyPath {
    /// Returns what stands there. A key that has dots in itself goes before a path; a number counts the items of a list.
    pub fn find<'v>(&self, value: &'v Value) -> Option<&'v Value> {
        if self.0 == "." {
            return Some(value);
        }
        find(value, &self.0)
    }

    /// Returns the path as it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn find<'v>(value: &'v Value, path: &str) -> Option<&'v Value> {
    let step = |key: &str| match value {
        Value::Object(map) => map.get(key),
        Value::Array(items) => key.parse::<usize>().ok().and_then(|at| items.get(at)),
        _ => None,
    };
    if let Some(found) = step(path) {
        return Some(found);
    }
    // The longest key that is there, then the rest.
    path.rmatch_indices('.').find_map(|(dot, _)| step(&path[..dot]).and_then(|inner| find(inner, &path[dot + 1..])))
}

/// Where the rows of a selection stand, and what of them is read.
#[derive(Debug, Clone, PartialEq)]
pub struct Ids {
    /// The list of rows.
    pub list: KeyPath,
    /// The id of a row.
    pub id: KeyPath,
    /// The title of a row.
    pub title: Option<KeyPath>,
    /// The address of a row.
    pub url: Option<KeyPath>,
    /// What, unchanged, spares the read.
    pub version: Option<KeyPath>,
}

/// How a selection goes on.
#[derive(Debug, Clone, PartialEq)]
pub struct Cursor {
    /// The argument of the next call.
    pub arg: String,
    /// Where a result has it.
    pub next: KeyPath,
    /// At most so many pages.
    pub pages: u64,
}

/// The tool that says which documents there are.
#[derive(Debug, Clone, PartialEq)]
pub struct Select {
    /// Its name.
    pub tool: String,
    /// Its arguments.
    pub args: Map<String, Value>,
    /// Where the rows stand; without it, resource links are the rows.
    pub ids: Option<Ids>,
    /// A text block is JSON, and takes the place of structured content.
    pub json_text: bool,
    /// How to go on.
    pub cursor: Option<Cursor>,
    /// What it does not name is gone.
    pub complete: bool,
}

/// Which documents there are.
#[derive(Debug, Clone, PartialEq)]
pub enum Selection {
    /// A tool says it.
    Select(Box<Select>),
    /// These.
    Static(Vec<String>),
}

/// The tool that gives a document.
#[derive(Debug, Clone, PartialEq)]
pub struct Read {
    /// Its name.
    pub tool: String,
    /// The argument that takes the id.
    pub id_arg: String,
    /// Arguments sent with every read.
    pub static_args: Map<String, Value>,
    /// Where structured content has the text.
    pub text_key: Option<KeyPath>,
    /// Where structured content has the title.
    pub title_key: Option<KeyPath>,
}

/// How long, how often and how many at a time.
#[derive(Debug, Clone, PartialEq)]
pub struct Limits {
    /// To start the server and open the session.
    pub connect: Duration,
    /// To list its tools.
    pub list: Duration,
    /// For one call of the selector.
    pub select: Duration,
    /// For one read.
    pub read: Duration,
    /// How often a request that the network failed is sent again.
    pub retries: u32,
    /// Reads at a time.
    pub concurrency: usize,
}

/// The configuration of a source.
#[derive(Debug, Clone, PartialEq)]
pub struct SourceConfig {
    /// Prefixes every id.
    pub system: String,
    /// How the server is reached.
    pub transport: Transport,
    /// Which documents there are.
    pub selection: Selection,
    /// What gives one.
    pub read: Read,
    /// How long, how often and how many at a time.
    pub limits: Limits,
}

impl SourceConfig {
    /// Reads a configuration, and checks all that can be checked without the server. Fails with every fault there is.
    pub fn read(value: &Value, environment: &Environment<'_>) -> Result<Self, Vec<SourceFault>> {
        let mut faults = Faults::default();
        let config = if let Value::Object(map) = value {
            read_config(map, environment, &mut faults)
        } else {
            faults.add("", "a source is a mapping of keys to values");
            None
        };
        match config {
            Some(config) if faults.is_empty() => Ok(config),
            _ => Err(faults.into_list()),
        }
    }

    /// Says whether what the selection does not name is gone.
    pub fn is_complete(&self) -> bool {
        match &self.selection {
            Selection::Select(select) => select.complete,
            Selection::Static(_) => true,
        }
    }

    /// Returns the tools that a run can call: these and no others.
    pub fn tools(&self) -> Vec<&str> {
        let select = match &self.selection {
            Selection::Select(select) => Some(select.tool.as_str()),
            Selection::Static(_) => None,
        };
        select.into_iter().chain([self.read.tool.as_str()]).collect()
    }
}

/// Says whether a text can be the name of a source.
pub fn is_source_name(name: &str) -> bool {
    name.len() <= MAX_NAME
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'))
}
