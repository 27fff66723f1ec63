//! Files as memory: the one module with `unsafe`.
//!
//! **Soundness:** a map is undefined behaviour if the file changes under it. Only immutable files are mapped: each is
//! written under a temporary name, then renamed to the hash of its bytes, and from then on only ever unlinked, which
//! leaves a map whole. Another program that writes into the database directory breaks that promise, as it would break
//! any database's. What is read from a map is verified by page before it is used, and no reference is handed out as
//! `str` without a check.

use std::fs::File;
use std::io;
use std::ops::Deref;

/// The bytes of a file: mapped, or read whole.
#[derive(Debug)]
pub enum Bytes {
    /// Mapped.
    Mapped(memmap2::Mmap),
    /// Read.
    Owned(Vec<u8>),
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

    /// Lets go of the memory of what was read so far; the system reads it again when it is next touched.
    pub(super) fn release(&self) {
        #[cfg(unix)]
        if let Self::Mapped(map) = self {
            #[expect(unsafe_code, reason = "see the module: only immutable files are mapped")]
            // SAFETY: nobody writes into the map or the file, so what is dropped comes back as it was.
            let released = unsafe { map.unchecked_advise(memmap2::UncheckedAdvice::DontNeed) };
            // Where the system does not take the advice, the memory stays in use until it wants it back.
            drop(released);
        }
    }
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Mapped(map) => map,
            Self::Owned(bytes) => bytes,
        }
    }
}
