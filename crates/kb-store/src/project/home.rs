//! The folder of all projects: paths in it, the lock, and writes that survive a power cut.
//!
//! ```text
//! .git/  .gitignore  index.json  activity.log
//! .git/kb.lock                       held by the one writer, and says who that is
//! .kb/                               caches; may be deleted at any time
//! projects/FOLDER/main.md
//! projects/FOLDER/knowledge/SLUG.md
//! ```
//!
//! **Invariant:** nothing is read or written through a symbolic link below the home, and a file that is replaced is the
//! old one or the new one, whenever the power goes.

use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::Result;
use super::error::ProjectError;
use crate::error::{IoContext, LockHolder, StoreError};
use crate::storage::{Disk, Fs, FsLock};

const TEMPORARY: &str = ".kb-tmp-";
pub(super) const IGNORED: &str = ".kb/\n.kb-tmp-*\nactivity.log*\n";

static COUNTER: AtomicU64 = AtomicU64::new(0);

/// The folder of all projects.
#[derive(Debug, Clone)]
pub(super) struct Home {
    root: PathBuf,
}

impl Home {
    /// Opens a home, made first where there is none.
    pub(super) fn open(path: &Path) -> Result<Self> {
        if !path.is_dir() {
            std::fs::create_dir_all(path).io("create", path)?;
        }
        // The home itself may be a link; nothing below it may.
        let root = path.canonicalize().io("open", path)?;
        Ok(Self { root })
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// Returns where a path relative to the home lies, if no link is on the way.
    pub(super) fn resolve(&self, relative: &str) -> Result<PathBuf> {
        let mut path = self.root.clone();
        for part in Path::new(relative).components() {
            let Component::Normal(part) = part else {
                return Err(ProjectError::Outside { path: self.root.join(relative) });
            };
            path.push(part);
            match path.symlink_metadata() {
                Ok(metadata) if metadata.is_symlink() => return Err(ProjectError::Outside { path }),
                Err(e) if e.kind() != io::ErrorKind::NotFound => {
                    return Err(StoreError::Io { op: "open", path, source: e }.into());
                }
                _ => {}
            }
        }
        Ok(path)
    }

    /// Reads a file; `None` where there is none.
    pub(super) fn read(&self, relative: &str) -> Result<Option<Vec<u8>>> {
        let path = self.resolve(relative)?;
        match std::fs::read(&path) {
            Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
            other => Ok(Some(other.io("read", &path)?)),
        }
    }

    /// Reads a text; `None` where there is none.
    pub(super) fn read_text(&self, relative: &str) -> Result<Option<String>> {
        let Some(bytes) = self.read(relative)? else { return Ok(None) };
        match String::from_utf8(bytes) {
            Ok(text) => Ok(Some(text)),
            Err(error) => {
                let offset = error.utf8_error().valid_up_to();
                Err(StoreError::NotUtf8 { name: relative.to_owned(), offset }.into())
            }
        }
    }

    /// Returns the names in a folder for which `keep` holds, in order; none where there is no folder.
    pub(super) fn names(&self, relative: &str, keep: impl Fn(&str, &std::fs::FileType) -> bool) -> Result<Vec<String>> {
        let path = self.resolve(relative)?;
        let entries = match std::fs::read_dir(&path) {
            Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return Ok(Vec::new());
            }
            other => other.io("list", &path)?,
        };
        let mut names = Vec::new();
        for entry in entries {
            let entry = entry.io("list", &path)?;
            let kind = entry.file_type().io("list", &path)?;
            if let Ok(name) = entry.file_name().into_string()
                && keep(&name, &kind)
            {
                names.push(name);
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    /// Replaces a file, or removes it, durably.
    pub(super) fn put(&self, relative: &str, content: Option<&[u8]>) -> Result<()> {
        let path = self.resolve(relative)?;
        let folder = path.parent().unwrap_or(&self.root).to_owned();
        match content {
            Some(content) => {
                self.make_folders(&folder)?;
                replace(&path, content)?;
            }
            None => match Disk.remove(&path) {
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                other => other.io("remove", &path)?,
            },
        }
        Disk.sync_dir(&folder).io("sync", &folder)?;
        Ok(())
    }

    /// Removes the folders above a path, below the home, that hold nothing.
    pub(super) fn remove_empty_folders(&self, relative: &str) {
        let mut path = Path::new(relative);
        while let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            if std::fs::remove_dir(self.root.join(parent)).is_err() {
                return;
            }
            path = parent;
        }
    }

    fn make_folders(&self, folder: &Path) -> Result<()> {
        if folder.is_dir() || !folder.starts_with(&self.root) {
            return Ok(());
        }
        if let Some(parent) = folder.parent() {
            self.make_folders(parent)?;
            Disk.create_dir(folder).io("create", folder)?;
            Disk.sync_dir(parent).io("sync", parent)?;
        }
        Ok(())
    }
}

/// Returns a name that no other thread or living process uses.
pub(super) fn temporary_name() -> String {
    format!("{TEMPORARY}{}-{}", std::process::id(), COUNTER.fetch_add(1, Ordering::Relaxed))
}

/// Replaces a file by one with this content, durable but for its name.
pub(super) fn replace(path: &Path, content: &[u8]) -> Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let temporary = folder.join(temporary_name());
    let _ = Disk.remove(&temporary);
    let written = (|| {
        let mut file = Disk.create(&temporary).io("create", &temporary)?;
        file.write_all(content).io("write", &temporary)?;
        file.sync().io("sync", &temporary)?;
        if let Ok(metadata) = path.metadata() {
            // A file keeps its mode; a system that has none, or will not, costs nothing.
            let _ = std::fs::set_permissions(&temporary, metadata.permissions());
        }
        Disk.rename(&temporary, path).io("replace", path)
    })();
    if written.is_err() {
        let _ = Disk.remove(&temporary);
    }
    Ok(written?)
}

/// Becomes the one writer, or says who is after `wait`.
pub(super) fn lock(path: &Path, wait: Duration, holder: &LockHolder) -> Result<Box<dyn FsLock>> {
    let note = format!("{}\t{}\t{}\n", holder.pid, holder.since, holder.command.replace(['\t', '\n'], " "));
    let started = std::time::Instant::now();
    for attempt in 0.. {
        if let Some(lock) = Disk.try_lock(path, &note).io("lock", path)? {
            return Ok(lock);
        }
        if started.elapsed() >= wait {
            break;
        }
        Disk.pause(attempt);
    }
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let mut parts = text.trim_end().splitn(3, '\t');
    let holder = (|| {
        Some(LockHolder {
            pid: parts.next()?.parse().ok()?,
            since: parts.next()?.to_owned(),
            command: parts.next()?.to_owned(),
        })
    })();
    Err(ProjectError::Busy {
        holder: holder.filter(|h| Disk.is_alive(h.pid) != Some(false)),
        waited: started.elapsed(),
    })
}
