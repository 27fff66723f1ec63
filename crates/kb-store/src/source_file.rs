//! Reading the files that documents are learned from.
//!
//! **Invariant:** only regular files are read, and never more of one than is allowed: no pipe keeps a batch waiting, and
//! no file that grows meanwhile takes memory without bound.

use std::fs::{File, Metadata};
use std::io::Read;
use std::path::{Component, Path, PathBuf};

use crate::error::{IoContext, StoreError};

/// The largest file, in bytes.
pub(crate) const MAX_FILE: u64 = crate::pack::MAX_RECORD as u64;

/// Returns what the system says of a regular file that is not too large. `name` is how messages call it.
pub(crate) fn look(path: &Path, name: &str) -> Result<Metadata, StoreError> {
    let metadata = std::fs::metadata(path).io("read", path)?;
    if !metadata.is_file() {
        let what = if metadata.is_dir() { "a folder" } else { "a pipe or a device" };
        return Err(StoreError::Invalid { field: "path", reason: format!("`{name}` is {what}, not a file") });
    }
    if metadata.len() > MAX_FILE {
        return Err(too_large(name));
    }
    Ok(metadata)
}

/// Reads a regular file whole, with what the system said of it before.
pub(crate) fn read(path: &Path, name: &str) -> Result<(Vec<u8>, Metadata), StoreError> {
    let metadata = look(path, name)?;
    let mut content = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or(0));
    let file = File::open(path).io("read", path)?;
    file.take(MAX_FILE + 1).read_to_end(&mut content).io("read", path)?;
    if content.len() as u64 > MAX_FILE { Err(too_large(name)) } else { Ok((content, metadata)) }
}

fn too_large(name: &str) -> StoreError {
    let reason = format!("`{name}` is larger than {} MiB", MAX_FILE >> 20);
    StoreError::Invalid { field: "content", reason }
}

/// Returns a path below `root`; one that leads out of it, by `..`, from the top or by a link, is an error.
pub(crate) fn inside(root: &Path, path: &Path) -> Result<PathBuf, StoreError> {
    let outside = || {
        let reason = format!("`{}` leads out of `{}`", path.display(), root.display());
        StoreError::Invalid { field: "path", reason }
    };
    let mut depth = 0_usize;
    for part in path.strip_prefix(root).unwrap_or(path).components() {
        depth = match part {
            Component::Normal(_) => depth + 1,
            Component::CurDir => depth,
            Component::ParentDir => depth.checked_sub(1).ok_or_else(outside)?,
            Component::RootDir | Component::Prefix(_) => return Err(outside()),
        };
    }
    let full = root.join(path);
    let real = full.canonicalize().io("read", &full)?;
    let root = root.canonicalize().io("read", root)?;
    if real.starts_with(root) { Ok(full) } else { Err(outside()) }
}
