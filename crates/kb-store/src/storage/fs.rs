//! The few things the store does to a file system, as a trait: a test's twin of it pulls the plug.
//!
//! **Invariant:** nothing else in this crate writes, renames or removes a file of a database.

use std::fmt;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::Path;

use super::map::Bytes;

/// A file being written.
pub trait FsFile: Write + Send {
    /// Makes what was written survive a power cut.
    fn sync(&mut self) -> io::Result<()>;
}

/// Held until dropped, or until the process dies.
pub trait FsLock: Send + fmt::Debug {}

/// What the store needs of a file system.
pub trait Fs: Send + Sync + fmt::Debug + 'static {
    /// Reads a file whole.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;

    /// Opens a file that will never change again.
    fn open(&self, path: &Path) -> io::Result<Bytes>;

    /// Creates a file that must not exist yet.
    fn create(&self, path: &Path) -> io::Result<Box<dyn FsFile>>;

    /// Renames a file over whatever has the new name.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Says whether this is a directory.
    fn is_dir(&self, path: &Path) -> bool;

    /// Says whether this leads elsewhere: a symbolic link, or something that is neither file nor directory. A base
    /// that came with somebody's folder must not make kb write or delete outside it, or wait on a pipe.
    fn leads_away(&self, path: &Path) -> bool {
        let _ = path;
        false
    }

    /// Says whether a process lives, where that can be told.
    fn is_alive(&self, pid: u32) -> Option<bool> {
        let _ = pid;
        None
    }

    /// Creates a directory; one that is there is success.
    fn create_dir(&self, path: &Path) -> io::Result<()>;

    /// Makes the names in a directory survive a power cut.
    fn sync_dir(&self, path: &Path) -> io::Result<()>;

    /// Returns names and lengths of the files in a directory, in order of name.
    fn list(&self, path: &Path) -> io::Result<Vec<(String, u64)>>;

    /// Locks a file for this process alone, without waiting, and writes `note` into it; `None` where another has it.
    fn try_lock(&self, path: &Path, note: &str) -> io::Result<Option<Box<dyn FsLock>>>;

    /// Says whether a living process holds the lock on a file.
    fn is_locked(&self, path: &Path) -> io::Result<bool>;

    /// Waits a little before a lock is tried again.
    fn pause(&self, attempt: u32);
}

/// The file system of the machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct Disk;

impl FsFile for File {
    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }
}

/// The lock on a file, given up by name and not by closing: a child that a thread of this process forks has a copy of
/// the descriptor until it runs its program, and the lock would last as long.
#[derive(Debug)]
struct HeldLock(File);

impl Drop for HeldLock {
    fn drop(&mut self) {
        // Where it cannot be given up, closing the file does it.
        let _ = self.0.unlock();
    }
}

impl FsLock for HeldLock {}

#[expect(clippy::disallowed_methods, reason = "the one place where files change")]
impl Fs for Disk {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        std::fs::read(path)
    }

    fn open(&self, path: &Path) -> io::Result<Bytes> {
        Bytes::map(&File::open(path)?)
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn FsFile>> {
        Ok(Box::new(OpenOptions::new().write(true).create_new(true).open(path)?))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_file(path)
    }

    fn is_dir(&self, path: &Path) -> bool {
        path.is_dir()
    }

    fn leads_away(&self, path: &Path) -> bool {
        path.symlink_metadata().is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir())
    }

    fn is_alive(&self, pid: u32) -> Option<bool> {
        let processes = Path::new("/proc");
        processes.join("self").exists().then(|| processes.join(pid.to_string()).exists())
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        match std::fs::create_dir(path) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
            other => other,
        }
    }

    #[cfg(unix)]
    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()
    }

    #[cfg(not(unix))]
    fn sync_dir(&self, _path: &Path) -> io::Result<()> {
        // Elsewhere a directory cannot be opened to be synced; the file system orders renames itself.
        Ok(())
    }

    fn list(&self, path: &Path) -> io::Result<Vec<(String, u64)>> {
        let mut files = Vec::new();
        for entry in std::fs::read_dir(path)? {
            let entry = entry?;
            let metadata = match entry.metadata() {
                Ok(metadata) => metadata,
                Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
                Err(e) => return Err(e),
            };
            if metadata.is_file() {
                files.push((entry.file_name().to_string_lossy().into_owned(), metadata.len()));
            }
        }
        files.sort();
        Ok(files)
    }

    fn try_lock(&self, path: &Path, note: &str) -> io::Result<Option<Box<dyn FsLock>>> {
        let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(e)) => return Err(e),
        }
        // The note is for people: a write of it that fails costs them only the name of the holder.
        let mut old = String::new();
        if file.read_to_string(&mut old).is_err() || old != note {
            let _ = file.set_len(0).and_then(|()| file.rewind()).and_then(|()| file.write_all(note.as_bytes()));
        }
        Ok(Some(Box::new(HeldLock(file))))
    }

    fn is_locked(&self, path: &Path) -> io::Result<bool> {
        match File::open(path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(e) => Err(e),
            Ok(file) => match file.try_lock_shared() {
                Ok(()) => file.unlock().map(|()| false),
                Err(TryLockError::WouldBlock) => Ok(true),
                Err(TryLockError::Error(e)) => Err(e),
            },
        }
    }

    fn pause(&self, attempt: u32) {
        let micros = 500_u64 << attempt.min(6);
        std::thread::sleep(std::time::Duration::from_micros(micros));
    }
}
