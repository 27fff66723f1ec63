//! The activity log: a line of JSON for every tool call, resource read and command.
//!
//! A thread of its own appends, so that no call waits for it. At [`MAX_BYTES`] the log becomes `activity.log.1`, in the
//! place of an older one.
//!
//! **Invariant:** a line is appended in one write, so lines of several processes do not mix. Its fields are those of
//! [`ActivityEntry`]: there is no place for content, queries or results. A log that cannot be written stops nothing.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use kb_core::{ActivityEntry, ActivityLog};

use super::home::lock;
use super::{ProjectStore, Result};
use crate::error::LockHolder;
use crate::knowledge_base::{milliseconds, time_text};
use crate::storage::{Disk, Fs};

const LOG: &str = "activity.log";
const OLD_LOG: &str = "activity.log.1";
/// The length at which a log is put aside.
const MAX_BYTES: u64 = 8 << 20;

impl ProjectStore {
    /// Appends a line to the activity log, with the time of now. It is written in the background, at the latest when the
    /// store is dropped.
    pub fn record(&self, entry: &ActivityEntry) {
        let now = milliseconds((self.options.clock)());
        let seconds = time_text(now);
        let timestamp = format!("{}.{:03}Z", seconds.trim_end_matches('Z'), now.rem_euclid(1000));
        let error = entry.error.clone().filter(|_| !entry.success);
        if let Ok(mut line) = serde_json::to_vec(&ActivityEntry { timestamp, error, ..entry.clone() }) {
            line.push(b'\n');
            self.recorder.append(&self.home.root().join(LOG), line);
        }
    }

    /// Returns the last lines of the activity log, the newest last.
    pub fn activity(&self, limit: usize) -> Result<ActivityLog> {
        self.recorder.flush();
        let mut entries: Vec<ActivityEntry> = Vec::new();
        for log in [OLD_LOG, LOG] {
            let bytes = self.home.read(log)?.unwrap_or_default();
            // A line that was cut by a full disk is no entry.
            entries.extend(bytes.split(|&byte| byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()));
        }
        entries.drain(..entries.len().saturating_sub(limit));
        Ok(ActivityLog { count: entries.len() as u64, entries })
    }
}

type Running = (Sender<Vec<u8>>, JoinHandle<()>);

/// Appends lines in the background.
#[derive(Debug, Default)]
pub(super) struct Recorder {
    running: Mutex<Option<Running>>,
}

impl Recorder {
    fn append(&self, log: &Path, line: Vec<u8>) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let (sender, _) = running.get_or_insert_with(|| {
            let (sender, lines) = channel::<Vec<u8>>();
            let log = log.to_owned();
            let write = move || lines.into_iter().for_each(|line| append(&log, &line));
            (sender, std::thread::spawn(write))
        });
        // The thread lives as long as its sender does.
        let _ = sender.send(line);
    }

    /// Waits until all lines so far are written.
    fn flush(&self) {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((sender, thread)) = running {
            drop(sender);
            let _ = thread.join();
        }
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.flush();
    }
}

fn append(log: &Path, line: &[u8]) {
    if log.symlink_metadata().is_ok_and(|metadata| metadata.is_symlink()) {
        return;
    }
    if is_full(log) {
        rotate(log);
    }
    let file = std::fs::OpenOptions::new().append(true).create(true).open(log);
    let _ = file.and_then(|mut file| file.write_all(line));
}

fn is_full(log: &Path) -> bool {
    log.metadata().is_ok_and(|metadata| metadata.len() >= MAX_BYTES)
}

/// Puts a full log aside, unless another process does so.
fn rotate(log: &Path) {
    let mut path = log.as_os_str().to_owned();
    path.push(".lock");
    let holder = LockHolder { pid: std::process::id(), command: "rotate".to_owned(), since: String::new() };
    if let Ok(_lock) = lock(&PathBuf::from(path), Duration::ZERO, &holder)
        && is_full(log)
    {
        let _ = Disk.rename(log, &log.with_file_name(OLD_LOG));
    }
}
