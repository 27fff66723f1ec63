//! Files that a commit replaced: listed for the grace of older readers, then deleted.
//!
//! **Invariant:** a file is deleted only once it is listed as retired and its grace is over, and never while a head names
//! it. A file that the system will not delete stays listed.

use std::io::Write;

use rustc_hash::FxHashSet;

use super::{Result, index_files};
use crate::error::StoreError;
use crate::head::{FORMAT, Head, Retired};
use crate::index::index_error;
use crate::pack::PackRef;
use crate::paged::{FileKind, PagedFile, PagedWriter};
use crate::storage::{Area, FileName, Storage};

/// How long a file that a commit replaced stays for the readers of older generations, in seconds.
pub(crate) const GRACE_SECONDS: i64 = 600;
/// How many retired files the head itself lists before they go into a list of their own.
const RETIRED_IN_HEAD: usize = 256;

/// Lists files as retired, and deletes those whose readers' grace is over.
pub(crate) fn retire(
    storage: &dyn Storage,
    head: &mut Head,
    files: Vec<FileName>,
    now: i64,
    purge: bool,
) -> Result<usize> {
    let mut in_use: FxHashSet<FileName> = head.packs.iter().map(PackRef::name).chain(index_files(head)).collect();
    let files: Vec<FileName> = files.into_iter().filter(|name| !in_use.contains(name)).collect();
    // A file that came back after it was retired, and goes again now, begins its grace anew.
    head.retired.retain(|entry| entry.is_list || !files.contains(&entry.name));
    in_use.extend(&files);
    let mut deleted = 0;
    let mut kept = Vec::new();
    for mut entry in std::mem::take(&mut head.retired) {
        // A time to come is that of another clock, or of this one before it was set back: the grace begins anew.
        entry.at = entry.at.min(now);
        if entry.at.saturating_add(GRACE_SECONDS) > now {
            kept.push(entry);
            continue;
        }
        let names = if entry.is_list { read_retired_list(storage, entry.name)? } else { Vec::new() };
        let mut all = true;
        for name in names.into_iter().chain([entry.name]) {
            // A file that was retired and came back, since the same bytes were written again, is no longer retired.
            if !in_use.contains(&name) {
                let gone = storage.delete(name)?;
                all &= gone;
                deleted += usize::from(gone);
            }
        }
        if !all {
            kept.push(entry);
        }
    }
    head.retired = kept;
    let at = if purge { i64::MIN / 2 } else { now };
    head.retired.extend(files.into_iter().map(|name| Retired { name, at, is_list: false }));
    if head.retired.len() > RETIRED_IN_HEAD {
        let (lists, singles): (Vec<_>, Vec<_>) =
            std::mem::take(&mut head.retired).into_iter().partition(|entry| entry.is_list);
        let (later, listed): (Vec<_>, Vec<_>) = singles.into_iter().partition(|entry| entry.at > now || purge);
        head.retired = lists;
        head.retired.extend(later);
        if !listed.is_empty() {
            let mut writer = PagedWriter::create(storage, Area::Index, FileKind::Retired, FORMAT)?;
            for entry in &listed {
                let area = u8::from(entry.name.area == Area::Index);
                let written = writer.write_all(&[area]).and_then(|()| writer.write_all(&entry.name.hash));
                written.map_err(|e| index_error(kb_search::BuildError::Io(e)))?;
            }
            let (name, _) = writer.finish(false)?;
            head.retired.push(Retired { name, at: now, is_list: true });
        }
    }
    Ok(deleted)
}

/// Reads a list of retired files; one that is torn or gone lists nothing, and `gc` finds what it listed.
pub(crate) fn read_retired_list(storage: &dyn Storage, name: FileName) -> Result<Vec<FileName>> {
    let file = match PagedFile::open(storage, name, FileKind::Retired) {
        Ok(Some(file)) => file,
        Ok(None) | Err(StoreError::Damaged { .. }) => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let bytes = file.read(0..file.len()).unwrap_or_default();
    Ok(bytes
        .as_chunks::<17>()
        .0
        .iter()
        .map(|entry| {
            let mut hash = [0; 16];
            hash.copy_from_slice(&entry[1..]);
            FileName { area: if entry[0] == 0 { Area::Packs } else { Area::Index }, hash }
        })
        .collect())
}
