//! A server that is a child process.
//!
//! Three threads: one writes requests, one reads answers and hands each to who waits for it, one may pass on what the
//! server says on stderr. So nothing that the server does or leaves undone blocks a caller beyond its deadline.
//!
//! **Invariant:** the child and its whole group are ended when this is dropped. Of the environment it sees what every
//! program needs and the variables that were named.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io::{BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::MAX_MESSAGE_BYTES;
use super::error::{CallError, FetchError};
use super::fetch::Machine;
use super::redact::Redactor;
use super::session::{Deadline, Message, Peer, answer_to, messages, request_line};
use crate::wire::{Line, Lines, notification};

/// Variables that every program may need.
const USUAL: &[&str] = &[
    "HOME",
    "PATH",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LC_CTYPE",
    "LC_MESSAGES",
    "TZ",
    "TERM",
    "TMPDIR",
    "TMP",
    "TEMP",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
    "SYSTEMROOT",
    "SYSTEMDRIVE",
    "WINDIR",
    "COMSPEC",
    "PATHEXT",
    "USERPROFILE",
    "APPDATA",
    "LOCALAPPDATA",
    "PROGRAMFILES",
    "PROGRAMDATA",
    "HOMEDRIVE",
    "HOMEPATH",
];

/// How long a server may take to end once its input is closed.
const GRACE: Duration = Duration::from_secs(1);
/// How long the system may take to end what was killed.
const AFTER_KILL: Duration = Duration::from_secs(5);
/// How long the end of a server may come after that of its output.
const LAST_WORD: Duration = Duration::from_millis(200);
const STEP: Duration = Duration::from_millis(2);

/// A child process that is a server.
pub(crate) struct StdioPeer {
    shared: Arc<Shared>,
    outgoing: Sender<Vec<u8>>,
    next_id: AtomicI64,
    child: Mutex<Child>,
}

#[derive(Default)]
struct Shared {
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    calls: HashMap<i64, Sender<Result<Value, CallError>>>,
    /// Nothing more comes.
    is_over: bool,
}

impl Shared {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StdioPeer {
    /// Starts the server.
    pub(crate) fn start(
        command: &str,
        args: &[String],
        env: &[String],
        machine: &Machine<'_>,
        redactor: &Redactor,
    ) -> Result<Self, FetchError> {
        let mut process = prepared(command, args, machine);
        process.env_clear();
        for name in USUAL.iter().copied().chain(env.iter().map(String::as_str)) {
            if let Some(value) = (machine.variable)(name) {
                process.env(name, value);
            }
        }
        process.current_dir(machine.working_directory).stdin(Stdio::piped()).stdout(Stdio::piped());
        process.stderr(if machine.server_log.is_some() { Stdio::piped() } else { Stdio::null() });
        let mut child = process.spawn().map_err(|source| FetchError::Start { command: command.to_owned(), source })?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), stderr) = pipes else { unreachable!("both were asked for") };
        let shared = Arc::new(Shared::default());
        let (outgoing, lines) = channel();
        std::thread::spawn(move || write_lines(stdin, &lines));
        let (reader, replies) = (Arc::clone(&shared), outgoing.clone());
        std::thread::spawn(move || read_lines(stdout, &reader, &replies));
        if let (Some(stderr), Some(log)) = (stderr, &machine.server_log) {
            let (log, redactor) = (Arc::clone(log), redactor.clone());
            std::thread::spawn(move || pass_on(stderr, &redactor, &*log));
        }
        Ok(Self { shared, outgoing, next_id: AtomicI64::new(1), child: Mutex::new(child) })
    }

    fn send(&self, line: Vec<u8>) {
        // A writer that is gone is found out by who waits for an answer.
        let _ = self.outgoing.send(line);
    }

    /// Says how the server ended, where that is known by now.
    fn ended(&self) -> CallError {
        let mut child = self.child.lock().unwrap_or_else(PoisonError::into_inner);
        let how = wait(&mut child, LAST_WORD).unwrap_or_else(|| ", or closed its output".to_owned());
        CallError::Ended { how }
    }
}

/// Returns the command, run by the supervisor where there is one, at the head of a process group.
fn prepared(command: &str, args: &[String], machine: &Machine<'_>) -> Command {
    let mut words: Vec<OsString> = machine.supervisor.clone();
    words.push(command.into());
    words.extend(args.iter().map(OsString::from));
    let mut process = Command::new(&words[0]);
    process.args(&words[1..]);
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut process, 0);
    process
}

impl Peer for StdioPeer {
    fn request(&self, method: &str, params: &Value, deadline: Deadline) -> Result<Value, CallError> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let (sender, answer) = channel();
        {
            let mut waiting = self.shared.waiting();
            if waiting.is_over {
                drop(waiting);
                return Err(self.ended());
            }
            waiting.calls.insert(id, sender);
        }
        self.send(request_line(id, method, params));
        let outcome = answer.recv_timeout(deadline.left());
        self.shared.waiting().calls.remove(&id);
        match outcome {
            Ok(outcome) => outcome,
            Err(RecvTimeoutError::Disconnected) => Err(self.ended()),
            Err(RecvTimeoutError::Timeout) => {
                let params = json!({"requestId": id, "reason": "no answer in time"});
                if method != "initialize" {
                    self.notify("notifications/cancelled", &params);
                }
                Err(CallError::Timeout { allowed: deadline.allowed })
            }
        }
    }

    fn notify(&self, method: &str, params: &Value) {
        self.send((notification(method, params) + "\n").into_bytes());
    }

    fn opened(&self, _version: &str) {}
}

impl Drop for StdioPeer {
    fn drop(&mut self) {
        // An empty line ends the writer, and so closes the server's input.
        self.send(Vec::new());
        let child = self.child.get_mut().unwrap_or_else(PoisonError::into_inner);
        let has_ended = wait(child, GRACE).is_some();
        // Its group is ended in any case, for it may have left something behind; before the child is reaped, so that its
        // number cannot be another's.
        end_group(child);
        if !has_ended {
            let _ = child.kill();
            wait(child, AFTER_KILL);
        }
        let _ = child.try_wait();
    }
}

#[cfg(unix)]
fn pid(child: &Child) -> Option<rustix::process::Pid> {
    i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw)
}

#[cfg(unix)]
fn end_group(child: &Child) {
    use rustix::process::{Signal, kill_process_group};
    if let Some(group) = pid(child) {
        // There is no such group where all of it has ended.
        let _ = kill_process_group(group, Signal::KILL);
    }
}

#[cfg(not(unix))]
fn end_group(_child: &Child) {}

/// Waits until the child has ended, and says how; its number stays taken.
fn wait(child: &mut Child, patience: Duration) -> Option<String> {
    let began = Instant::now();
    loop {
        if let Some(how) = end_of(child) {
            return Some(how);
        }
        if began.elapsed() >= patience {
            return None;
        }
        std::thread::sleep(STEP);
    }
}

#[cfg(unix)]
fn end_of(child: &mut Child) -> Option<String> {
    use rustix::process::{WaitId, WaitIdOptions, waitid};
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    let status = waitid(WaitId::Pid(pid(child)?), look).ok()??;
    Some(match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => format!(" with exit code {code}"),
        (None, Some(signal)) => format!(" by signal {signal}"),
        (None, None) => String::new(),
    })
}

#[cfg(not(unix))]
fn end_of(child: &mut Child) -> Option<String> {
    let status = child.try_wait().ok()??;
    Some(status.code().map_or_else(String::new, |code| format!(" with exit code {code}")))
}

fn write_lines(mut stdin: ChildStdin, lines: &Receiver<Vec<u8>>) {
    while let Ok(line) = lines.recv() {
        if line.is_empty() || stdin.write_all(&line).and_then(|()| stdin.flush()).is_err() {
            return;
        }
    }
}

/// Hands each answer to who waits for it, until the output ends; then to all that nothing more comes.
fn read_lines(stdout: impl Read, shared: &Shared, replies: &Sender<Vec<u8>>) {
    let mut lines = Lines::new(BufReader::with_capacity(64 << 10, stdout), MAX_MESSAGE_BYTES);
    while let Ok(Some(line)) = lines.next() {
        let bytes = match line {
            Line::Whole(bytes) => bytes,
            Line::TooLong => continue,
        };
        for message in messages(&bytes) {
            match message {
                Message::Response { id, outcome } => {
                    if let Some(call) = shared.waiting().calls.remove(&id) {
                        // Who waited may have given up this very moment.
                        let _ = call.send(outcome);
                    }
                }
                Message::Request { id, method } => {
                    let _ = replies.send((answer_to(&id, &method) + "\n").into_bytes());
                }
            }
        }
    }
    let mut waiting = shared.waiting();
    waiting.is_over = true;
    waiting.calls.clear();
    // An empty line ends the writer, which nobody else may do while this thread has a sender.
    let _ = replies.send(Vec::new());
}

/// Passes on what the server says, line by line, without secrets.
fn pass_on(stderr: impl Read, redactor: &Redactor, log: &(dyn Fn(&str) + Send + Sync)) {
    let mut lines = Lines::new(BufReader::new(stderr), 64 << 10);
    while let Ok(Some(line)) = lines.next() {
        if let Line::Whole(bytes) = line {
            log(&redactor.hide(&String::from_utf8_lossy(&bytes)));
        }
    }
}
