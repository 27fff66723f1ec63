//! A database in a directory.
//!
//! ```text
//! head                    replaced by rename
//! lock                    held by the one writer, and says who that is
//! packs/HASH.pack         durable before the head names it
//! index/HASH.idx          not synced: torn or missing, it is made again
//! source-HASH.lock        held by the one run of a source
//! kb.toml                 settings, only ever read
//! packs/tmp-…, index/tmp-…, tmp-…    unfinished
//! ```
//!
//! **Invariant:** a durable file costs two syncs (itself, its folder), a swap of the head two more; so a commit of one
//! pack costs four.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::{Area, Bytes, FileName, Fs, FsFile, FsLock, Listing, Object, Storage, Upload, WriterLock};
use crate::error::{IoContext, LockHolder, StoreError};

/// Bytes handed to the system at once. Linux caches what is written together in folios as large, and maps a folio whole
/// where one byte of it is looked at: a search would hold megabytes of an index of which it reads a few pages.
const WRITE: usize = 64 << 10;

/// A database directory on a file system.
#[derive(Debug)]
pub struct LocalStorage<F> {
    fs: Arc<F>,
    root: PathBuf,
    counter: AtomicU64,
}

impl<F: Fs> LocalStorage<F> {
    /// Returns the storage in this directory, which need not exist yet.
    pub fn new(fs: F, root: impl Into<PathBuf>) -> Self {
        Self { fs: Arc::new(fs), root: root.into(), counter: AtomicU64::new(0) }
    }

    /// Creates the directories of a new database; those that are there stay.
    pub fn create_directories(&self) -> Result<(), StoreError> {
        for dir in [self.root.clone(), self.dir(Area::Packs), self.dir(Area::Index)] {
            self.fs.create_dir(&dir).io("create", &dir)?;
        }
        self.fs.sync_dir(&self.root).io("sync", &self.root)?;
        // The new directory is itself a name in another; without it the base would be gone after a power cut.
        let parent = match self.root.parent() {
            Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
            Some(parent) => parent,
            None => return Ok(()),
        };
        self.fs.sync_dir(parent).io("sync", parent)
    }

    fn dir(&self, area: Area) -> PathBuf {
        self.root.join(match area {
            Area::Packs => "packs",
            Area::Index => "index",
        })
    }

    fn path(&self, name: FileName) -> PathBuf {
        self.root.join(name.to_string())
    }

    fn temporary(&self, dir: &Path) -> PathBuf {
        let n = self.counter.fetch_add(1, Ordering::Relaxed);
        dir.join(format!("tmp-{}-{n}", std::process::id()))
    }

    /// Creates a temporary file, over one that a dead process of the same number left.
    fn create_temporary(&self, dir: &Path) -> Result<(PathBuf, Box<dyn FsFile>), StoreError> {
        loop {
            let path = self.temporary(dir);
            match self.fs.create(&path) {
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                // The folder of derived files may be deleted whole.
                Err(e) if e.kind() == io::ErrorKind::NotFound && dir != self.root && self.fs.is_dir(&self.root) => {
                    self.fs.create_dir(dir).io("create", dir)?;
                }
                other => return Ok((path.clone(), other.io("create", &path)?)),
            }
        }
    }

    /// Refuses what is not a plain file or folder of the base itself.
    fn refuse_link(&self, path: &Path) -> Result<(), StoreError> {
        if self.fs.leads_away(path) {
            let source =
                io::Error::new(io::ErrorKind::InvalidInput, "it is a link or a device, not a part of the base");
            return Err(StoreError::Io { op: "use", path: path.to_owned(), source });
        }
        Ok(())
    }

    fn read_if_there(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let path = self.root.join(name);
        self.refuse_link(&path)?;
        match self.fs.read(&path) {
            Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
            other => other.io("read", &path).map(Some),
        }
    }

    /// Returns who holds the lock, as far as the note tells: a note of a process that is no more is not the holder's.
    fn holder(&self, lock: &str) -> Option<LockHolder> {
        self.read_lock_note(lock).filter(|holder| self.fs.is_alive(holder.pid) != Some(false))
    }

    fn take_lock(&self, name: &str, wait: Duration, holder: &LockHolder) -> Result<Box<dyn WriterLock>, StoreError> {
        let path = self.root.join(name);
        let command = holder.command.replace(['\t', '\n'], " ");
        let note = format!("{}\t{}\t{command}\n", holder.pid, holder.since);
        let started = std::time::Instant::now();
        for attempt in 0.. {
            if let Some(lock) = self.fs.try_lock(&path, &note).map_err(|source| not_locked(&path, source))? {
                return Ok(Box::new(LocalLock(lock)));
            }
            if started.elapsed() >= wait {
                break;
            }
            self.fs.pause(attempt);
        }
        Err(StoreError::Busy { holder: self.holder(name), waited: started.elapsed() })
    }

    fn read_lock_note(&self, lock: &str) -> Option<LockHolder> {
        let text = String::from_utf8(self.fs.read(&self.root.join(lock)).ok()?).ok()?;
        let mut parts = text.trim_end().splitn(3, '\t');
        Some(LockHolder {
            pid: parts.next()?.parse().ok()?,
            since: parts.next()?.to_owned(),
            command: parts.next()?.to_owned(),
        })
    }
}

impl<F: Fs> Storage for LocalStorage<F> {
    fn location(&self) -> PathBuf {
        self.root.clone()
    }

    fn head(&self) -> Result<Option<Vec<u8>>, StoreError> {
        self.read_if_there("head")
    }

    fn settings(&self) -> Result<Option<Vec<u8>>, StoreError> {
        self.read_if_there("kb.toml")
    }

    fn swap_head(&self, expected: Option<&[u8]>, new: &[u8]) -> Result<bool, StoreError> {
        if self.head()?.as_deref() != expected {
            return Ok(false);
        }
        let head = self.root.join("head");
        let (temporary, mut file) = self.create_temporary(&self.root)?;
        let written = file.write_all(new).io("write", &temporary).and_then(|()| file.sync().io("sync", &temporary));
        if let Err(error) = written {
            drop(file);
            let _ = self.fs.remove(&temporary);
            return Err(error);
        }
        drop(file);
        self.fs.rename(&temporary, &head).io("replace", &head)?;
        self.fs.sync_dir(&self.root).io("sync", &self.root)?;
        Ok(true)
    }

    fn open(&self, name: FileName) -> Result<Option<Arc<dyn Object>>, StoreError> {
        let path = self.path(name);
        self.refuse_link(&path)?;
        match self.fs.open(&path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            other => Ok(Some(Arc::new(LocalObject(other.io("open", &path)?)))),
        }
    }

    fn upload(&self, area: Area) -> Result<Box<dyn Upload>, StoreError> {
        let dir = self.dir(area);
        let (temporary, file) = self.create_temporary(&dir)?;
        Ok(Box::new(LocalUpload {
            fs: Arc::clone(&self.fs),
            root: self.root.clone(),
            dir,
            temporary,
            file: Some(file),
        }))
    }

    fn list(&self) -> Result<Listing, StoreError> {
        let mut listing = Listing::default();
        for area in [Area::Packs, Area::Index] {
            let dir = self.dir(area);
            let names = match self.fs.list(&dir) {
                Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
                other => other.io("list", &dir)?,
            };
            for (name, len) in names {
                let full = format!("{}/{name}", if area == Area::Packs { "packs" } else { "index" });
                match FileName::parse(&full) {
                    Some(name) => listing.files.push((name, len)),
                    None => listing.unfinished.push(full),
                }
            }
        }
        let names = self.fs.list(&self.root).io("list", &self.root)?;
        listing.unfinished.extend(names.into_iter().map(|(name, _)| name).filter(|name| name.starts_with("tmp-")));
        Ok(listing)
    }

    fn delete(&self, name: FileName) -> Result<bool, StoreError> {
        let path = self.path(name);
        match self.fs.remove(&path) {
            Ok(()) => Ok(true),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(true),
            // A system that does not delete open files: the file stays listed and is tried again.
            Err(e) if e.kind() == io::ErrorKind::PermissionDenied && cfg!(windows) => Ok(false),
            Err(e) => Err(e).io("delete", &path),
        }
    }

    fn sync_deletes(&self) -> Result<(), StoreError> {
        for dir in [self.dir(Area::Packs), self.dir(Area::Index)] {
            self.fs.sync_dir(&dir).io("sync", &dir)?;
        }
        Ok(())
    }

    fn delete_unfinished(&self, name: &str) -> Result<(), StoreError> {
        let path = self.root.join(name);
        match self.fs.remove(&path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other.io("delete", &path),
        }
    }

    fn lock(&self, wait: Duration, holder: &LockHolder) -> Result<Box<dyn WriterLock>, StoreError> {
        for part in [self.root.join("lock"), self.dir(Area::Packs), self.dir(Area::Index)] {
            self.refuse_link(&part)?;
        }
        self.take_lock("lock", wait, holder)
    }

    fn lock_named(&self, name: &str, wait: Duration, holder: &LockHolder) -> Result<Box<dyn WriterLock>, StoreError> {
        self.refuse_link(&self.root.join(name))?;
        self.take_lock(name, wait, holder)
    }

    fn lock_state(&self) -> Result<(Option<LockHolder>, bool), StoreError> {
        let path = self.root.join("lock");
        self.refuse_link(&path)?;
        let held = self.fs.is_locked(&path).io("look at the lock of", &path)?;
        Ok((if held { self.holder("lock") } else { self.read_lock_note("lock") }, held))
    }
}

fn not_locked(path: &Path, source: io::Error) -> StoreError {
    let path = path.to_owned();
    match source.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => StoreError::NotWritable { path, source },
        _ => StoreError::Io { op: "lock", path, source },
    }
}

#[derive(Debug)]
struct LocalObject(Bytes);

impl Object for LocalObject {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    fn bytes(&self, range: Range<u64>) -> io::Result<&[u8]> {
        let start = usize::try_from(range.start).ok();
        let end = usize::try_from(range.end).ok();
        start
            .zip(end)
            .and_then(|(start, end)| self.0.get(start..end))
            .ok_or_else(|| io::Error::new(io::ErrorKind::UnexpectedEof, "the file ends too early"))
    }

    fn release(&self) {
        self.0.release();
    }
}

#[derive(Debug)]
struct LocalLock(#[expect(dead_code, reason = "held, not used")] Box<dyn FsLock>);

impl WriterLock for LocalLock {}

struct LocalUpload<F: Fs> {
    fs: Arc<F>,
    root: PathBuf,
    dir: PathBuf,
    temporary: PathBuf,
    file: Option<Box<dyn FsFile>>,
}

impl<F: Fs> io::Write for LocalUpload<F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let bytes = &bytes[..bytes.len().min(WRITE)];
        self.file.as_mut().map_or_else(|| Err(io::ErrorKind::NotConnected.into()), |file| file.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.as_mut().map_or(Ok(()), std::io::Write::flush)
    }
}

impl<F: Fs> Upload for LocalUpload<F> {
    fn finish(mut self: Box<Self>, name: FileName, durable: bool) -> Result<(), StoreError> {
        let path = self.root.join(name.to_string());
        if let Some(mut file) = self.file.take() {
            file.flush().io("write", &self.temporary)?;
            if durable {
                file.sync().io("sync", &self.temporary)?;
            }
        }
        self.fs.rename(&self.temporary, &path).io("name", &path)?;
        if durable {
            self.fs.sync_dir(&self.dir).io("sync", &self.dir)?;
        }
        // The temporary name is free again: nothing is left for `drop` to remove.
        self.temporary = PathBuf::new();
        Ok(())
    }
}

impl<F: Fs> Drop for LocalUpload<F> {
    fn drop(&mut self) {
        self.file = None;
        if !self.temporary.as_os_str().is_empty() {
            let _ = self.fs.remove(&self.temporary);
        }
    }
}
