//! One run: connect, verify the tools, select, read.
//!
//! **Invariant:** a document that cannot be had costs itself alone; only a session that cannot be opened, a tool that must
//! not be called, or a selection that fails ends a run. Whatever the server does, the run ends within the sum of its
//! deadlines.

use std::collections::HashSet;
use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;

use kb_core::SourceFailure;
use kb_store::{Gather, GatheredDocument, Select, SelectedRow, Selection, SourceConfig, Transport};
use serde_json::Value;

use super::error::{CallError, FetchError};
use super::http::HttpPeer;
use super::mapping::{self, Row};
use super::redact::Redactor;
use super::session::{Peer, Session, Tool};
use super::stdio::StdioPeer;

/// Reads in a row that went unanswered, after which no more are tried.
const MOST_SILENT: u32 = 3;
/// Rows of one selection, above which it is cut off.
const MOST_ROWS: usize = 1_000_000;

/// What takes the lines that a server writes to its standard error.
pub type ServerLog = Arc<dyn Fn(&str) + Send + Sync>;

/// What a client needs of the machine.
#[derive(Clone)]
pub struct Machine<'m> {
    /// Gives a variable of the environment.
    pub variable: &'m dyn Fn(&str) -> Option<OsString>,
    /// Where a server is started.
    pub working_directory: &'m Path,
    /// A program and its first arguments that runs the command after them and ends it with its group once we are gone;
    /// empty where there is none. See `supervise`.
    pub supervisor: Vec<OsString>,
    /// Takes what a server writes to its standard error; without it that is dropped.
    pub server_log: Option<ServerLog>,
}

impl std::fmt::Debug for Machine<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Machine").field("supervisor", &self.supervisor).finish_non_exhaustive()
    }
}

/// What was met on the way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// The server, as it names itself.
    pub server: String,
    /// The version of the protocol.
    pub protocol: String,
}

/// Fetches what a source names, handing it to `gather` as it comes.
pub fn fetch(config: &SourceConfig, machine: &Machine<'_>, gather: &mut dyn Gather) -> Result<Fetched, FetchError> {
    let redactor = Redactor::new(&config.transport, machine.variable);
    let session = Session::open(peer(config, machine, &redactor)?, config, &redactor)?;
    session.verify()?;
    let mut run = Run {
        session: &session,
        config,
        redactor: &redactor,
        gather,
        ids: HashSet::new(),
        repeated: HashSet::new(),
        wanted: Vec::new(),
        place: 0,
    };
    match &config.selection {
        Selection::Static(ids) => {
            for id in ids {
                run.take(Ok(SelectedRow {
                    id: id.clone(),
                    argument: id.clone().into(),
                    title: None,
                    url: mapping::clickable(id),
                    version: None,
                }));
            }
        }
        Selection::Select(select) => run.select(select)?,
    }
    run.read();
    Ok(Fetched { server: session.server.clone(), protocol: session.version.clone() })
}

fn peer(config: &SourceConfig, machine: &Machine<'_>, redactor: &Redactor) -> Result<Box<dyn Peer>, FetchError> {
    Ok(match &config.transport {
        Transport::Stdio { command, args, env } => Box::new(StdioPeer::start(command, args, env, machine, redactor)?),
        Transport::Http { url, auth_env } => {
            let token = match auth_env {
                None => None,
                Some(name) => {
                    let token = (machine.variable)(name).and_then(|value| value.into_string().ok());
                    let token = token
                        .map(|token| token.trim().to_owned())
                        .filter(|token| !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic()));
                    let reason = || format!("the variable `{name}` holds nothing that can be sent as a token");
                    Some(token.ok_or_else(|| FetchError::Connect { reason: reason() })?)
                }
            };
            Box::new(HttpPeer::new(url, auth_env.as_deref(), token, config.limits.retries))
        }
    })
}

/// A run under way.
struct Run<'r, 's> {
    session: &'r Session<'s>,
    config: &'r SourceConfig,
    redactor: &'r Redactor,
    gather: &'r mut dyn Gather,
    ids: HashSet<String>,
    repeated: HashSet<String>,
    /// Rows to be read, with their places.
    wanted: Vec<(usize, SelectedRow)>,
    place: usize,
}

impl Run<'_, '_> {
    /// Reads the selection, page by page.
    fn select(&mut self, select: &Select) -> Result<(), FetchError> {
        let failed = |reason: &str| FetchError::Select { reason: self.redactor.clean(reason) };
        let mut arguments = select.args.clone();
        let mut seen: HashSet<String> = HashSet::new();
        let mut pages = 0;
        loop {
            let outcome = self.session.call(Tool::Select, &arguments);
            pages += 1;
            let page =
                outcome.map_err(|error| error.to_string()).and_then(|mut result| mapping::select(&mut result, select));
            let (rows, next) = match page {
                Ok(page) => page,
                Err(reason) if pages == 1 => return Err(failed(&reason)),
                Err(reason) => {
                    let reason = self.redactor.clean(&reason);
                    self.gather.cut_off(format!("page {pages} of the selection failed, so it is incomplete: {reason}"));
                    return Ok(());
                }
            };
            for row in rows {
                if self.place >= MOST_ROWS {
                    self.gather
                        .cut_off(format!("the selection has more than {MOST_ROWS} rows; the others are left out"));
                    return Ok(());
                }
                self.take(row);
            }
            let (Some(cursor), Some(next)) = (&select.cursor, next) else { return Ok(()) };
            if !seen.insert(next.to_string()) {
                self.gather.cut_off("the selection repeats a cursor, so it is taken for incomplete".to_owned());
                return Ok(());
            }
            if pages >= cursor.pages {
                self.gather.cut_off(format!("the selection goes on after {pages} pages (`select.cursor.pages`)"));
                return Ok(());
            }
            arguments.insert(cursor.arg.clone(), next);
        }
    }

    /// Takes a row in: to be read, known already, or of no use.
    fn take(&mut self, row: Row) {
        let place = self.place;
        self.place += 1;
        let mut row = match row {
            Ok(row) => row,
            Err((id, reason)) => {
                let id = id.filter(|id| !self.redactor.finds(id.as_bytes()));
                let failure = SourceFailure { id, code: "bad-row".to_owned(), reason: self.redactor.clean(&reason) };
                return self.gather.failure(None, failure);
            }
        };
        if self.redactor.finds(row.id.as_bytes()) {
            let reason = "the id of a row holds a credential of this source".to_owned();
            return self.gather.failure(None, SourceFailure { id: None, code: "bad-row".to_owned(), reason });
        }
        let holds_secret = |text: &String| self.redactor.finds(text.as_bytes());
        row.title = row.title.filter(|title| !holds_secret(title));
        row.url = row.url.filter(|url| !holds_secret(url));
        row.version = row.version.filter(|version| !holds_secret(version));
        if !self.ids.insert(row.id.clone()) {
            if self.repeated.insert(row.id.clone()) {
                self.gather
                    .warning(format!("`{}` is selected more than once, and counts once", self.redactor.clean(&row.id)));
            }
            return;
        }
        if self.gather.wants(place, &row) {
            self.wanted.push((place, row));
        }
    }

    /// Reads all that is wanted, some at a time.
    fn read(&mut self) {
        let wanted = std::mem::take(&mut self.wanted);
        let reader =
            Reader { session: self.session, config: self.config, redactor: self.redactor, silent: AtomicU32::new(0) };
        let concurrency = self.config.limits.concurrency.min(wanted.len());
        if concurrency <= 1 {
            for (place, row) in wanted {
                let outcome = reader.read(row);
                self.hand_over(place, outcome);
            }
            return;
        }
        let next = AtomicUsize::new(0);
        // As many as are read at a time may wait to be taken in: memory does not grow with the selection.
        let (sender, outcomes) = sync_channel(concurrency);
        std::thread::scope(|scope| {
            for _ in 0..concurrency {
                let (sender, next, reader, wanted) = (sender.clone(), &next, &reader, &wanted);
                scope.spawn(move || {
                    while let Some((place, row)) = wanted.get(next.fetch_add(1, Ordering::Relaxed)) {
                        if sender.send((*place, reader.read(row.clone()))).is_err() {
                            return;
                        }
                    }
                });
            }
            drop(sender);
            for (place, outcome) in outcomes {
                self.hand_over(place, outcome);
            }
        });
    }

    fn hand_over(&mut self, place: usize, outcome: Result<GatheredDocument, SourceFailure>) {
        match outcome {
            Ok(document) => self.gather.document(place, document),
            Err(failure) => self.gather.failure(Some(place), failure),
        }
    }
}

/// Reads documents, from any number of threads.
struct Reader<'r, 's> {
    session: &'r Session<'s>,
    config: &'r SourceConfig,
    redactor: &'r Redactor,
    /// Reads in a row that went unanswered.
    silent: AtomicU32,
}

impl Reader<'_, '_> {
    fn read(&self, row: SelectedRow) -> Result<GatheredDocument, SourceFailure> {
        let failed = |code: &str, reason: &str| SourceFailure {
            id: Some(row.id.clone()),
            code: code.to_owned(),
            reason: self.redactor.clean(reason),
        };
        let call_failed = |error: &CallError| failed(error.code(), &error.to_string());
        if self.silent.load(Ordering::Relaxed) >= MOST_SILENT {
            return Err(call_failed(&CallError::NotAsked));
        }
        let result = self.call(&row);
        match &result {
            Err(CallError::Timeout { .. }) => self.silent.fetch_add(1, Ordering::Relaxed),
            _ => self.silent.swap(0, Ordering::Relaxed),
        };
        let result = result.map_err(|error| call_failed(&error))?;
        let is_failure = result.get("isError").and_then(Value::as_bool) == Some(true);
        let code = if is_failure { "tool-error" } else { "content" };
        let text = mapping::read(result, &self.config.read).map_err(|reason| failed(code, &reason))?;
        if self.redactor.finds(text.content.as_bytes()) {
            return Err(failed("content", "its text holds a credential of this source, and is not kept"));
        }
        let title = text.title.filter(|title| !self.redactor.finds(title.as_bytes()));
        Ok(GatheredDocument { row, title, content: text.content.into_bytes(), media_type: text.media_type })
    }

    fn call(&self, row: &SelectedRow) -> Result<Value, CallError> {
        let mut arguments = self.config.read.static_args.clone();
        arguments.insert(self.config.read.id_arg.clone(), row.argument.clone());
        self.session.call(Tool::Read, &arguments)
    }
}
