//! The configuration of a source: what a block of YAML says, or all that is wrong with it.
//!
//! Everything that can be known without the server is checked here, before any process is started or any connection
//! opened. The environment is handed in.
//!
//! **Invariant:** a [`SourceConfig`] that exists names one system, one reader, and one selector or a list of ids; a key that
//! is not known is a fault; no fault repeats a value that may be a secret.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kb_core::SourceFault;
use serde_json::{Map, Value};

use super::docid::source_docid;
use super::secret;

/// The longest name of a source or a system.
const MAX_NAME: usize = 64;
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);
const LONGEST_TIMEOUT: f64 = 3600.0;
const DEFAULT_RETRIES: u32 = 2;
const MOST_RETRIES: u64 = 10;
const MOST_CONCURRENT: u64 = 64;
const DEFAULT_PAGES: u64 = 100;
const MOST_PAGES: u64 = 10_000;

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
            Some(config) if faults.0.is_empty() => Ok(config),
            _ => Err(faults.0),
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

fn is_system(name: &str) -> bool {
    is_source_name(name) && !name.contains('.')
}

fn is_variable(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_uppercase() || c == '_')
        && name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
}

#[derive(Default)]
struct Faults(Vec<SourceFault>);

impl Faults {
    fn add(&mut self, key: &str, message: impl Into<String>) {
        self.0.push(SourceFault { key: key.to_owned(), message: message.into() });
    }
}

/// A mapping of which each key is taken out once, so that what is left is unknown.
struct Keys<'f> {
    path: &'static str,
    left: BTreeMap<String, Value>,
    faults: &'f mut Faults,
}

impl<'f> Keys<'f> {
    fn new(path: &'static str, map: &Map<String, Value>, faults: &'f mut Faults) -> Self {
        // A key without a value is as good as absent.
        let left = map.iter().filter(|(_, value)| !value.is_null()).map(|(key, value)| (key.clone(), value.clone()));
        Self { path, left: left.collect(), faults }
    }

    fn of(path: &'static str, value: &Value, faults: &'f mut Faults) -> Option<Self> {
        if let Value::Object(map) = value {
            return Some(Self::new(path, map, faults));
        }
        faults.add(path, "it is not a mapping of keys to values");
        None
    }

    fn key(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }

    fn fault(&mut self, name: &str, message: impl Into<String>) {
        let key = self.key(name);
        self.faults.add(&key, message);
    }

    fn take(&mut self, name: &str) -> Option<Value> {
        self.left.remove(name)
    }

    /// Takes a text that is not blank.
    fn text(&mut self, name: &str) -> Option<String> {
        match self.take(name)? {
            Value::String(text) if !text.trim().is_empty() => Some(text),
            Value::String(_) => {
                self.fault(name, "it is empty");
                None
            }
            _ => {
                self.fault(name, "it is not a text");
                None
            }
        }
    }

    fn required(&mut self, name: &str) -> Option<String> {
        if !self.left.contains_key(name) {
            self.fault(name, "it is missing");
        }
        self.text(name)
    }

    fn path(&mut self, name: &str) -> Option<KeyPath> {
        self.text(name).map(KeyPath)
    }

    fn flag(&mut self, name: &str) -> bool {
        match self.take(name) {
            None => false,
            Some(Value::Bool(flag)) => flag,
            Some(_) => {
                self.fault(name, "it is neither true nor false");
                false
            }
        }
    }

    fn number(&mut self, name: &str, range: std::ops::RangeInclusive<u64>) -> Option<u64> {
        let value = self.take(name)?;
        let number = value.as_u64().filter(|number| range.contains(number));
        if number.is_none() {
            self.fault(name, format!("it is not a whole number from {} to {}", range.start(), range.end()));
        }
        number
    }

    fn texts(&mut self, name: &str) -> Vec<String> {
        let Some(value) = self.take(name) else { return Vec::new() };
        let texts = value.as_array().map(|items| {
            items
                .iter()
                .map(|item| match item {
                    Value::String(text) => Some(text.clone()),
                    Value::Number(number) => Some(number.to_string()),
                    Value::Bool(flag) => Some(flag.to_string()),
                    _ => None,
                })
                .collect::<Option<Vec<String>>>()
        });
        texts.flatten().unwrap_or_else(|| {
            self.fault(name, "it is not a list of texts");
            Vec::new()
        })
    }

    fn map(&mut self, name: &str) -> Map<String, Value> {
        match self.take(name) {
            None => Map::new(),
            Some(Value::Object(map)) => map,
            Some(_) => {
                self.fault(name, "it is not a mapping of keys to values");
                Map::new()
            }
        }
    }

    fn seconds(&mut self, name: &str) -> Option<Duration> {
        let value = self.take(name)?;
        let seconds = value.as_f64().filter(|seconds| *seconds > 0.0 && *seconds <= LONGEST_TIMEOUT);
        if seconds.is_none() {
            self.fault(name, format!("it is not a number of seconds up to {LONGEST_TIMEOUT}"));
        }
        seconds.map(Duration::from_secs_f64)
    }

    /// Complains of what nobody took.
    fn finish(self, known: &str) {
        for key in self.left.keys() {
            let path = if self.path.is_empty() { key.clone() } else { format!("{}.{key}", self.path) };
            // A key may be a secret that was put in the wrong place.
            let path = if secret::looks_secret(&path) { format!("{}.…", self.path) } else { path };
            self.faults.add(&path, format!("there is no such key; there are {known}"));
        }
    }
}

fn read_config(map: &Map<String, Value>, environment: &Environment<'_>, faults: &mut Faults) -> Option<SourceConfig> {
    let mut keys = Keys::new("", map, faults);
    let system = keys.required("system");
    if system.as_ref().is_some_and(|system| !is_system(system)) {
        let message =
            format!("it is not letters, digits, `_` and `-`, the first a letter or digit, at most {MAX_NAME}");
        keys.fault("system", message);
    }
    let (transport, select, read) = (keys.take("transport"), keys.take("select"), keys.take("read"));
    let static_ids = keys.left.contains_key("static_ids").then(|| keys.texts("static_ids"));
    let timeout = keys.take("timeout");
    let retries = keys.number("retries", 0..=MOST_RETRIES);
    let concurrency = keys.number("concurrency", 1..=MOST_CONCURRENT);
    for (name, value) in [("transport", &transport), ("read", &read)] {
        if value.is_none() {
            keys.fault(name, "it is missing");
        }
    }
    match (&select, &static_ids) {
        (None, None) => keys.fault("select", "either `select` or `static_ids` has to say which documents there are"),
        (Some(_), Some(_)) => keys.fault("static_ids", "it cannot be given beside `select`"),
        _ => {}
    }
    keys.finish("system, transport, select, static_ids, read, timeout, retries, concurrency");

    let transport = transport.and_then(|value| read_transport(&value, environment, faults));
    let select = select.and_then(|value| read_select(&value, faults));
    let read = read.and_then(|value| read_read(&value, faults));
    let limits = read_limits(timeout.as_ref(), retries, concurrency, transport.as_ref(), faults);
    if let (Some(select), Some(read)) = (&select, &read)
        && select.tool == read.tool
    {
        faults.add("read.tool", "it is the same tool as `select.tool`");
    }
    if let Some(ids) = &static_ids {
        check_static_ids(ids, system.as_deref().unwrap_or("x"), faults);
    }
    let selection = match (select, static_ids) {
        (Some(select), None) => Selection::Select(Box::new(select)),
        (None, Some(ids)) => Selection::Static(ids),
        _ => return None,
    };
    Some(SourceConfig { system: system?, transport: transport?, selection, read: read?, limits })
}

fn check_static_ids(ids: &[String], system: &str, faults: &mut Faults) {
    if ids.is_empty() {
        faults.add("static_ids", "it is empty");
    }
    let mut known = BTreeMap::new();
    for (n, id) in ids.iter().enumerate() {
        let key = format!("static_ids[{n}]");
        if id.trim().is_empty() {
            faults.add(&key, "it is empty");
        } else if let Some(before) = known.insert(source_docid(system, id), n) {
            faults.add(&key, format!("it is the same document as static_ids[{before}]"));
        }
    }
}

fn read_transport(value: &Value, environment: &Environment<'_>, faults: &mut Faults) -> Option<Transport> {
    let mut keys = Keys::of("transport", value, faults)?;
    match keys.required("kind").as_deref() {
        Some("stdio") => {
            let command = keys.required("command");
            let (args, env) = (keys.texts("args"), keys.texts("env"));
            if let Some(command) = &command {
                if secret::looks_secret(command) {
                    keys.fault("command", "it looks like a credential");
                } else if find_program(command, environment).is_none() {
                    keys.fault("command", format!("there is no program `{command}` that can be run"));
                }
            }
            if let Some(at) = secret::secret_argument(&args) {
                let message = "it looks like a credential, which every process of this machine could see; \
                               put it into a variable and name that in `transport.env`";
                keys.fault(&format!("args[{at}]"), message);
            }
            for (n, name) in env.iter().enumerate() {
                check_variable(&mut keys, &format!("env[{n}]"), name, environment);
            }
            keys.finish("kind, command, args, env");
            Some(Transport::Stdio { command: command?, args, env })
        }
        Some("http") => {
            let url = keys.required("url");
            let auth_env = keys.text("auth_env");
            if let Some(fault) = url.as_deref().and_then(url_fault) {
                keys.fault("url", fault);
            }
            if let Some(name) = &auth_env {
                check_variable(&mut keys, "auth_env", name, environment);
            }
            keys.finish("kind, url, auth_env");
            Some(Transport::Http { url: url?, auth_env })
        }
        Some(_) => {
            keys.fault("kind", "it is neither `stdio` nor `http`");
            None
        }
        None => None,
    }
}

fn check_variable(keys: &mut Keys<'_>, key: &str, name: &str, environment: &Environment<'_>) {
    if !is_variable(name) || secret::looks_secret(name) {
        keys.fault(
            key,
            "it is not the name of a variable, in capitals, digits and `_` (its value does not belong here)",
        );
    } else if (environment.variable)(name).is_none_or(|value| value.is_empty()) {
        keys.fault(key, format!("the variable `{name}` is not set"));
    }
}

/// Says what is wrong with the address of a server.
fn url_fault(url: &str) -> Option<String> {
    let Some(rest) = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://")) else {
        return Some("it begins with neither `https://` nor `http://`".to_owned());
    };
    if url.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return Some("it has a blank or a control character in it".to_owned());
    }
    if let Some(what) = secret::url_secret(url) {
        return Some(format!("it has {what}; put the token into a variable and name that in `transport.auth_env`"));
    }
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let (name, port) = match host.strip_prefix('[').and_then(|inner| inner.split_once(']')) {
        Some((name, port)) => (name, port),
        None => host.split_once(':').map_or((host, ""), |(name, _)| (name, &host[name.len()..])),
    };
    if name.is_empty() {
        return Some("it has no host".to_owned());
    }
    let port = port.strip_prefix(':').unwrap_or(if port.is_empty() { "80" } else { "x" });
    if port.parse::<u16>().is_err() {
        return Some("its port is not a number up to 65535".to_owned());
    }
    None
}

/// Finds a program as the system would: by its path, or in the folders of `PATH`.
fn find_program(command: &str, environment: &Environment<'_>) -> Option<PathBuf> {
    let names: Vec<String> = if cfg!(windows) {
        ["", ".exe", ".cmd", ".bat"].iter().map(|extension| format!("{command}{extension}")).collect()
    } else {
        vec![command.to_owned()]
    };
    let in_folder = |folder: &Path| names.iter().map(|name| folder.join(name)).find(|path| is_program(path));
    if command.contains('/') || (cfg!(windows) && command.contains('\\')) {
        return in_folder(environment.working_directory);
    }
    std::env::split_paths(&(environment.variable)("PATH")?).find_map(|folder| in_folder(&folder))
}

fn is_program(path: &Path) -> bool {
    let Ok(found) = std::fs::metadata(path) else { return false };
    #[cfg(unix)]
    let may_run = std::os::unix::fs::PermissionsExt::mode(&found.permissions()) & 0o111 != 0;
    #[cfg(not(unix))]
    let may_run = true;
    found.is_file() && may_run
}

fn read_select(value: &Value, faults: &mut Faults) -> Option<Select> {
    let mut keys = Keys::of("select", value, faults)?;
    let tool = keys.required("tool");
    let args = keys.map("args");
    if let Some(path) = secret::secret_value("args", &Value::Object(args.clone())) {
        keys.fault(&path, "it looks like a credential; let the server have it from a variable");
    }
    let (json_text, complete) = (keys.flag("json_text"), keys.flag("complete"));
    let (ids, cursor, version) = (keys.take("ids"), keys.take("cursor"), keys.path("version"));
    if ids.is_none() && version.is_some() {
        keys.fault("version", "it needs `select.ids`, whose rows it is read from");
    }
    if ids.is_none() && json_text {
        keys.fault("json_text", "it needs `select.ids`, which says where the rows stand");
    }
    keys.finish("tool, args, ids, json_text, cursor, version, complete");
    let ids = ids.and_then(|value| read_ids(&value, version, faults));
    let cursor = cursor.and_then(|value| {
        let mut keys = Keys::of("select.cursor", &value, faults)?;
        let (arg, next) = (keys.required("arg"), keys.required("next"));
        let pages = keys.number("pages", 1..=MOST_PAGES).unwrap_or(DEFAULT_PAGES);
        keys.finish("arg, next, pages");
        Some(Cursor { arg: arg?, next: KeyPath(next?), pages })
    });
    Some(Select { tool: tool?, args, ids, json_text, cursor, complete })
}

fn read_ids(value: &Value, version: Option<KeyPath>, faults: &mut Faults) -> Option<Ids> {
    let mut keys = Keys::of("select.ids", value, faults)?;
    let (list, id) = (keys.required("list"), keys.required("id"));
    let (title, url) = (keys.path("title"), keys.path("url"));
    let version = keys.path("version").or(version);
    keys.finish("list, id, title, url, version");
    Some(Ids { list: KeyPath(list?), id: KeyPath(id?), title, url, version })
}

fn read_read(value: &Value, faults: &mut Faults) -> Option<Read> {
    let mut keys = Keys::of("read", value, faults)?;
    let (tool, id_arg) = (keys.required("tool"), keys.required("id_arg"));
    let static_args = keys.map("static_args");
    if id_arg.as_ref().is_some_and(|id_arg| static_args.contains_key(id_arg)) {
        keys.fault("static_args", "it has the `id_arg` in it, which each read gives");
    }
    if let Some(path) = secret::secret_value("static_args", &Value::Object(static_args.clone())) {
        keys.fault(&path, "it looks like a credential; let the server have it from a variable");
    }
    let (text_key, title_key) = (keys.path("text_key"), keys.path("title_key"));
    if title_key.is_some() && text_key.is_none() {
        keys.fault("title_key", "it needs `read.text_key`");
    }
    keys.finish("tool, id_arg, static_args, text_key, title_key");
    Some(Read { tool: tool?, id_arg: id_arg?, static_args, text_key, title_key })
}

fn read_limits(
    timeout: Option<&Value>,
    retries: Option<u64>,
    concurrency: Option<u64>,
    transport: Option<&Transport>,
    faults: &mut Faults,
) -> Limits {
    let by_transport = if matches!(transport, Some(Transport::Http { .. })) { 4 } else { 1 };
    let mut limits = Limits {
        connect: DEFAULT_TIMEOUT,
        list: DEFAULT_TIMEOUT,
        select: DEFAULT_TIMEOUT,
        read: DEFAULT_TIMEOUT,
        retries: retries.map_or(DEFAULT_RETRIES, |retries| retries as u32),
        concurrency: concurrency.map_or(by_transport, |concurrency| concurrency as usize),
    };
    match timeout {
        None => {}
        Some(value @ Value::Object(_)) => {
            if let Some(mut keys) = Keys::of("timeout", value, faults) {
                limits.connect = keys.seconds("connect").unwrap_or(limits.connect);
                limits.list = keys.seconds("list").unwrap_or(limits.list);
                limits.select = keys.seconds("select").unwrap_or(limits.select);
                limits.read = keys.seconds("read").unwrap_or(limits.read);
                keys.finish("connect, list, select, read");
            }
        }
        Some(value) => {
            let mut map = Map::new();
            map.insert("timeout".to_owned(), value.clone());
            let mut keys = Keys::new("", &map, faults);
            if let Some(all) = keys.seconds("timeout") {
                (limits.connect, limits.list, limits.select, limits.read) = (all, all, all, all);
            }
        }
    }
    limits
}

#[cfg(test)]
mod tests {
    use kb_core::read_yaml;

    use super::*;

    fn read(yaml: &str) -> Result<SourceConfig, Vec<String>> {
        let variable = |name: &str| match name {
            "PATH" => Some(OsString::from("/usr/bin:/bin")),
            "LAB_TOKEN" => Some(OsString::from("hunter2hunter2")),
            _ => None,
        };
        let environment = Environment { variable: &variable, working_directory: Path::new("/") };
        SourceConfig::read(&read_yaml(yaml).expect("YAML"), &environment)
            .map_err(|faults| faults.into_iter().map(|fault| format!("{}: {}", fault.key, fault.message)).collect())
    }

    const READ: &str = "read: {tool: read, id_arg: id}\n";
    const STDIO: &str = "transport: {kind: stdio, command: sh}\n";

    #[cfg(unix)]
    #[test]
    fn a_whole_configuration_is_read() {
        let config = read(
            "system: aws_docs\ntransport:\n  kind: stdio\n  command: sh\n  args: [-c, 5]\n  env: [LAB_TOKEN]\n\
             select:\n  tool: search\n  args: {phrase: naming rules, limit: 3}\n  ids: {list: data.items, id: url, title: t}\n\
             \n  version: etag\n  complete: true\n  json_text: true\n  cursor: {arg: page, next: meta.next, pages: 4}\n\
             read: {tool: read, id_arg: url, static_args: {owner: a}, text_key: markdown, title_key: title}\n\
             timeout: {read: 2.5}\nretries: 0\nconcurrency: 3\n",
        )
        .expect("nothing is wrong with it");
        assert_eq!(config.tools(), ["search", "read"]);
        assert_eq!(config.limits.read, Duration::from_millis(2500));
        assert_eq!((config.limits.connect, config.limits.retries, config.limits.concurrency), (DEFAULT_TIMEOUT, 0, 3));
        assert!(config.is_complete());
        let Selection::Select(select) = config.selection else { panic!("a selector") };
        assert_eq!(select.args["limit"], 3);
        assert_eq!(select.ids.and_then(|ids| ids.version), Some(KeyPath("etag".to_owned())));
    }

    #[cfg(unix)]
    #[test]
    fn all_faults_are_told_at_once_and_no_secret_among_them() {
        let faults = read(
            "system: a b\ntransport: {kind: http, url: 'https://ana:pw@h/', auth_env: ghp_0123456789abcdefABCD}\n\
             static_ids: []\nread: {tool: '', title_key: t, static_args: {password: hunter2}}\nextra: 1\n",
        )
        .expect_err("much is wrong");
        let text = faults.join("\n");
        for key in [
            "system:",
            "extra:",
            "static_ids:",
            "transport.url:",
            "transport.auth_env:",
            "read.tool:",
            "read.id_arg:",
            "read.title_key:",
            "read.static_args.password:",
        ] {
            assert!(faults.iter().any(|fault| fault.starts_with(key)), "{key} in {text}");
        }
        for secret in ["pw", "ghp_", "hunter2"] {
            assert!(!text.contains(secret), "{secret} in {text}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn each_rule_has_its_fault() {
        let static_ids = "static_ids: [a]\n";
        for (yaml, fault) in [
            (format!("system: x\n{STDIO}{READ}"), "select: either"),
            (format!("system: x\n{STDIO}{READ}{static_ids}select: {{tool: s}}\n"), "static_ids: it cannot"),
            (format!("system: x\n{STDIO}{READ}select: {{tool: read}}\n"), "read.tool: it is the same"),
            (format!("system: x\n{STDIO}{READ}static_ids: [a, b, a]\n"), "static_ids[2]: it is the same"),
            (
                format!("system: x\n{STDIO}{static_ids}read: {{tool: r, id_arg: i, static_args: {{i: 1}}}}\n"),
                "read.static_args: ",
            ),
            (format!("system: x\ntransport: {{kind: pipe}}\n{READ}{static_ids}"), "transport.kind: "),
            (format!("system: x\ntransport: {{command: sh}}\n{READ}{static_ids}"), "transport.kind: it is missing"),
            (
                format!("system: x\ntransport: {{kind: stdio, command: no-such-program}}\n{READ}{static_ids}"),
                "transport.command: ",
            ),
            (
                format!("system: x\ntransport: {{kind: stdio, command: sh, env: [UNSET]}}\n{READ}{static_ids}"),
                "transport.env[0]: the variable `UNSET`",
            ),
            (
                format!("system: x\ntransport: {{kind: stdio, command: sh, args: [--token=x]}}\n{READ}{static_ids}"),
                "transport.args[0]: ",
            ),
            (
                format!("system: x\ntransport: {{kind: http, url: 'ftp://h'}}\n{READ}{static_ids}"),
                "transport.url: it begins",
            ),
            (
                format!("system: x\ntransport: {{kind: http, url: 'http:///x'}}\n{READ}{static_ids}"),
                "transport.url: it has no host",
            ),
            (
                format!("system: x\ntransport: {{kind: http, url: 'http://h:x/'}}\n{READ}{static_ids}"),
                "transport.url: its port",
            ),
            (
                format!("system: x\n{STDIO}{READ}select: {{tool: s, ids: {{list: a}}}}\n"),
                "select.ids.id: it is missing",
            ),
            (format!("system: x\n{STDIO}{READ}{static_ids}timeout: -1\n"), "timeout: "),
        ] {
            let faults = read(&yaml).expect_err(&yaml);
            assert_eq!(faults.len(), 1, "{yaml}: {faults:?}");
            assert!(faults[0].starts_with(fault), "{yaml}: {faults:?}");
        }
        read(&format!(
            "system: x\ntransport: {{kind: http, url: 'http://[::1]:80/mcp', auth_env: LAB_TOKEN}}\n{READ}{static_ids}"
        ))
        .expect("an address of the loopback");
    }

    #[test]
    fn a_path_leads_into_a_value() {
        let value = serde_json::json!({"a": {"b": [{"c": 1}]}, "d.e": 2, "d": {"e": 3}});
        let at = |path: &str| KeyPath(path.to_owned()).find(&value).cloned();
        assert_eq!(at("a.b.0.c"), Some(1.into()));
        assert_eq!(at("d.e"), Some(2.into()));
        assert_eq!(at("."), Some(value.clone()));
        assert_eq!((at("a.x"), at("a.b.1"), at("a.b.c")), (None, None, None));
    }
}
