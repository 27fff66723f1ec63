//! Where the files of a database live.
//!
//! [`Storage`] is what an object store can do: get a range, put if absent, list, delete, and swap one small object,
//! the head. [`LocalStorage`] does it in a directory, over the [`Fs`] trait that a test can pull the plug of.
//!
//! **Invariant:** all but the head is immutable and named by the hash of its bytes. A put that was told to be durable
//! is durable when it returns; the head is never swapped before.

mod fs;
mod local;
mod map;

use std::fmt;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

pub use fs::{Disk, Fs, FsFile, FsLock};
pub use local::LocalStorage;
pub use map::Bytes;

use crate::error::{LockHolder, StoreError};

/// Which of the two folders a file lies in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Area {
    /// `packs`: what cannot be made again.
    Packs,
    /// `index`: what is derived from the packs.
    Index,
}

/// The name of an immutable file: the first 128 bits of the BLAKE3 of its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileName {
    /// Its folder.
    pub area: Area,
    /// Its hash.
    pub hash: [u8; 16],
}

impl fmt::Display for FileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hash = kb_core::SectionId::from_bytes(self.hash);
        match self.area {
            Area::Packs => write!(f, "packs/{hash}.pack"),
            Area::Index => write!(f, "index/{hash}.idx"),
        }
    }
}

impl FileName {
    /// Reads a name as `Display` writes it; `None` for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        let (area, rest) = match text.strip_prefix("packs/") {
            Some(rest) => (Area::Packs, rest.strip_suffix(".pack")?),
            None => (Area::Index, text.strip_prefix("index/")?.strip_suffix(".idx")?),
        };
        let id: kb_core::SectionId = rest.parse().ok()?;
        Some(Self { area, hash: id.to_bytes() })
    }
}

/// A file opened to read.
pub trait Object: Send + Sync + fmt::Debug {
    /// Returns its length in bytes.
    fn len(&self) -> u64;

    /// Says whether it has no bytes.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns these bytes; an error where they lie beyond the end or cannot be had.
    fn bytes(&self, range: Range<u64>) -> io::Result<&[u8]>;

    /// Says that what was read so far is not needed for now: who reads a large file from end to end need not hold all
    /// of it in memory. It can be read again.
    fn release(&self) {}
}

/// A file being written, without a name until it is whole.
pub trait Upload: io::Write + Send {
    /// Gives the file its name. With `durable` it survives a power cut once this returns; without, it may be torn or
    /// gone after one. A file of that name that is there already is success.
    fn finish(self: Box<Self>, name: FileName, durable: bool) -> Result<(), StoreError>;
}

/// Held by the one writer; let go when dropped or when the process dies.
pub trait WriterLock: Send + fmt::Debug {}

/// Where the files of a database live.
pub trait Storage: Send + Sync + fmt::Debug {
    /// Returns how to name this place in messages.
    fn location(&self) -> std::path::PathBuf;

    /// Returns the head, or `None` where there is none.
    fn head(&self) -> Result<Option<Vec<u8>>, StoreError>;

    /// Replaces the head if it still is `expected` (`None`: absent), durably. `false` where another writer was first.
    fn swap_head(&self, expected: Option<&[u8]>, new: &[u8]) -> Result<bool, StoreError>;

    /// Returns what a person wrote into `kb.toml`, or `None` where there is none.
    fn settings(&self) -> Result<Option<Vec<u8>>, StoreError>;

    /// Opens a file; `None` where there is none of that name.
    fn open(&self, name: FileName) -> Result<Option<Arc<dyn Object>>, StoreError>;

    /// Begins a file.
    fn upload(&self, area: Area) -> Result<Box<dyn Upload>, StoreError>;

    /// Returns every file with its length, and the unfinished ones nobody will finish.
    fn list(&self) -> Result<Listing, StoreError>;

    /// Deletes a file. `false` where the system refuses for now; a file that is gone already is success.
    fn delete(&self, name: FileName) -> Result<bool, StoreError>;

    /// Makes the deletes so far survive a power cut.
    fn sync_deletes(&self) -> Result<(), StoreError>;

    /// Deletes an unfinished file as [`Listing::unfinished`] names it.
    fn delete_unfinished(&self, name: &str) -> Result<(), StoreError>;

    /// Becomes the one writer, or says who is after `wait`.
    fn lock(&self, wait: Duration, holder: &LockHolder) -> Result<Box<dyn WriterLock>, StoreError>;

    /// Takes a lock of another purpose than writing, kept in a file of this name; else as [`Storage::lock`].
    fn lock_named(&self, name: &str, wait: Duration, holder: &LockHolder) -> Result<Box<dyn WriterLock>, StoreError>;

    /// Returns who wrote the lock last and whether it is held now.
    fn lock_state(&self) -> Result<(Option<LockHolder>, bool), StoreError>;
}

/// The files of a storage.
#[derive(Debug, Default)]
pub struct Listing {
    /// Whole files with their lengths, in order of name.
    pub files: Vec<(FileName, u64)>,
    /// Unfinished ones, and others that kb did not name.
    pub unfinished: Vec<String>,
}
