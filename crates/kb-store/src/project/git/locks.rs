//! Git's own locks, `index.lock` and `refs/heads/….lock`, taken so that a process that dies leaves none for ever.
//!
//! Before it takes them, a commit writes its index as `kb-index-COMMIT` and its id as `kb-ref-COMMIT`. A lock is a hard
//! link of these, so it appears whole. Whoever is the next to hold the lock of the home knows what was left by content.
//!
//! **Invariant:** a lock file of another program is never removed.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::super::Result;
use super::super::error::ProjectError;
use crate::error::IoContext;
use crate::storage::{Disk, Fs};

const INDEX: &str = "kb-index-";
const REFERENCE: &str = "kb-ref-";

/// A lock file with the content that its target is to have.
#[derive(Debug)]
pub(super) struct Lock {
    prepared: PathBuf,
    path: PathBuf,
    target: PathBuf,
    is_held: bool,
}

/// Which of the two files a lock is for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    Index,
    Reference,
}

impl Lock {
    /// Takes the lock of `target`, waiting at most this long for another program to let go.
    pub(super) fn take(
        git_dir: &Path,
        kind: Kind,
        commit: &str,
        target: &Path,
        content: &[u8],
        wait: Duration,
    ) -> Result<Self> {
        let prefix = match kind {
            Kind::Index => INDEX,
            Kind::Reference => REFERENCE,
        };
        let prepared = git_dir.join(format!("{prefix}{commit}"));
        let _ = Disk.remove(&prepared);
        if let Some(folder) = target.parent() {
            std::fs::create_dir_all(folder).io("create", folder)?;
        }
        let lock = Self { path: lock_of(target), target: target.to_owned(), prepared, is_held: false };
        let mut file = Disk.create(&lock.prepared).io("create", &lock.prepared)?;
        file.write_all(content).io("write", &lock.prepared)?;
        file.sync().io("sync", &lock.prepared)?;
        drop(file);
        lock.acquire(wait)
    }

    fn acquire(mut self, wait: Duration) -> Result<Self> {
        let started = Instant::now();
        for attempt in 0.. {
            match std::fs::hard_link(&self.prepared, &self.path) {
                Ok(()) => {
                    self.is_held = true;
                    return Ok(self);
                }
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(e).io("create", &self.path).map_err(Into::into),
            }
            if started.elapsed() >= wait {
                break;
            }
            Disk.pause(attempt);
        }
        Err(ProjectError::GitLocked { path: self.path.clone() })
    }

    /// Puts the content in place and lets go.
    pub(super) fn publish(mut self) -> Result<()> {
        Disk.rename(&self.path, &self.target).io("replace", &self.target)?;
        self.is_held = false;
        if let Some(folder) = self.target.parent() {
            Disk.sync_dir(folder).io("sync", folder)?;
        }
        Ok(())
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        if self.is_held {
            let _ = Disk.remove(&self.path);
        }
        let _ = Disk.remove(&self.prepared);
    }
}

fn lock_of(target: &Path) -> PathBuf {
    let mut name = target.as_os_str().to_owned();
    name.push(".lock");
    name.into()
}

/// Puts right what a process left that died while it committed. The caller holds the lock of the home.
///
/// Its index is put in place if its commit is the newest, else dropped.
pub(super) fn recover(git_dir: &Path, index: &Path, reference: &Path, head: Option<&str>) -> Result<()> {
    for entry in std::fs::read_dir(git_dir).io("list", git_dir)? {
        let entry = entry.io("list", git_dir)?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        let path = entry.path();
        if let Some(commit) = name.strip_prefix(INDEX) {
            let lock = lock_of(index);
            if same_content(&path, &lock) {
                if head == Some(commit) {
                    Disk.rename(&lock, index).io("replace", index)?;
                } else {
                    Disk.remove(&lock).io("remove", &lock)?;
                }
            }
        } else if name.starts_with(REFERENCE) {
            let lock = lock_of(reference);
            if same_content(&path, &lock) {
                Disk.remove(&lock).io("remove", &lock)?;
            }
        } else {
            continue;
        }
        Disk.remove(&path).io("remove", &path)?;
    }
    Ok(())
}

fn same_content(a: &Path, b: &Path) -> bool {
    match (std::fs::read(a), std::fs::read(b)) {
        (Ok(a), Ok(b)) => a == b,
        _ => false,
    }
}
