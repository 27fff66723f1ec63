//! Files as memory: the one module with `unsafe`.
//!
//! **Soundness:** a map is undefined behaviour if the file changes under it. Only immutable files are mapped: each is
//! written under a temporary name, then renamed to the hash of its bytes, and from then on only ever unlinked, which
//! leaves a map whole. Another program that writes into the database directory breaks that promise, as it would break
//! any database's. What is read from a map is verified by page before it is used, and no reference is handed out as
//! `str` without a check.

use std::fs::File;
use std::io;
use std::ops::Range;

use super::scattered::Scattered;

/// The bytes of a file: mapped, read whole, or read by the piece.
#[derive(Debug)]
pub enum Bytes {
    /// Mapped.
    Mapped(memmap2::Mmap),
    /// Read.
    Owned(Vec<u8>),
    /// Read a piece at a time.
    Scattered(Box<Scattered>),
}

impl Bytes {
    /// Maps an immutable file.
    pub(super) fn map(file: &File) -> io::Result<Self> {
        if file.metadata()?.len() == 0 {
            return Ok(Self::Owned(Vec::new()));
        }
        #[expect(unsafe_code, reason = "see the module: only immutable files are mapped")]
        // SAFETY: the caller maps only files that are never written again, see the module.
        let map = unsafe { memmap2::Mmap::map(file)? };
        Ok(Self::Mapped(map))
    }
}

impl Bytes {
    pub(super) fn len(&self) -> u64 {
        match self {
            Self::Mapped(map) => map.len() as u64,
            Self::Owned(bytes) => bytes.len() as u64,
            Self::Scattered(file) => file.len(),
        }
    }

    pub(super) fn slice(&self, range: Range<u64>) -> io::Result<&[u8]> {
        let whole: &[u8] = match self {
            Self::Mapped(map) => map,
            Self::Owned(bytes) => bytes,
            Self::Scattered(file) => return file.slice(range),
        };
        let start = usize::try_from(range.start).ok();
        let end = usize::try_from(range.end).ok();
        start
            .zip(end)
            .and_then(|(start, end)| whole.get(start..end))
            .ok_or_else(|| io::Error::new(io::ErrorKind::UnexpectedEof, "the file ends too early"))
    }
}
