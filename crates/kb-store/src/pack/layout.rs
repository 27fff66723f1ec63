//! Where the parts of a pack lie, by its trailer and its directory.

use std::ops::Range;
use std::sync::OnceLock;

use super::{BLOCK_LIMIT, ENTRY, Entry, HEADER, MAX_RECORD, TABLE_ENTRY, TRAILER};
use crate::paged::{Damage, PagedFile};
use crate::record::{Key, Kind};

#[derive(Debug)]
pub(super) struct Layout {
    pub(super) file: PagedFile,
    pub(super) table: u64,
    pub(super) directory: u64,
    pub(super) blocks: u32,
    pub(super) entries: u64,
    pub(super) generations: (u64, u64),
    pub(super) replaces: Vec<[u8; 16]>,
    /// Where the entries of each kind lie, once it was asked for.
    pub(super) kinds: OnceLock<Vec<(Kind, Range<u64>)>>,
}

/// The last bytes of a pack: where its parts lie.
pub(crate) struct Trailer {
    pub(crate) table: u64,
    pub(crate) directory: u64,
    pub(crate) replaced: u64,
    pub(crate) generations: (u64, u64),
    pub(crate) blocks: u32,
    pub(crate) entries: u64,
}

impl Trailer {
    /// Decodes the trailer at offset `at`, where its offsets and its numbers agree about every part.
    pub(crate) fn decode(bytes: &[u8], at: u64) -> Option<Self> {
        let u64_at = |i: usize| u64::from_le_bytes(bytes[i..i + 8].try_into().expect("eight bytes"));
        let u32_at = |i: usize| u32::from_le_bytes(bytes[i..i + 4].try_into().expect("four bytes"));
        let (table, directory, replaced) = (u64_at(0), u64_at(8), u64_at(16));
        let (blocks, entries, replaces) = (u32_at(40), u64::from(u32_at(44)), u64::from(u32_at(48)));
        let fits = table.checked_add(u64::from(blocks) * TABLE_ENTRY) == Some(directory)
            && directory.checked_add(entries * ENTRY) == Some(replaced)
            && replaced.checked_add(replaces * 16) == Some(at);
        fits.then(|| Self { table, directory, replaced, generations: (u64_at(24), u64_at(32)), blocks, entries })
    }
}

impl Layout {
    pub(super) fn read(file: PagedFile) -> Result<Self, Damage> {
        let len = file.len();
        let at = len.checked_sub(TRAILER).ok_or_else(|| file.damage(0, "it is shorter than a trailer"))?;
        let trailer = file.read(at..len)?;
        let trailer =
            Trailer::decode(trailer, at).ok_or_else(|| file.damage(at, "the trailer does not fit the file"))?;
        let Trailer { table, directory, replaced, generations, blocks, entries } = trailer;
        let replaces = file.read(replaced..at)?.as_chunks().0.to_vec();
        Ok(Self { file, table, directory, blocks, entries, generations, replaces, kinds: OnceLock::new() })
    }

    pub(super) fn entry(&self, i: u64) -> Result<Entry, Damage> {
        let at = self.directory + i * ENTRY;
        Ok(Entry::decode(self.file.read(at..at + ENTRY)?))
    }

    pub(super) fn lower_bound(&self, from: (Kind, Key)) -> Result<u64, Damage> {
        let (kind, key) = from;
        let range = self.range_of(kind)?;
        let first = |key: &Key| u64::from_be_bytes(*key.first_chunk().expect("a key is longer than eight bytes"));
        let mut at = kb_core::lower_bound(range.clone(), first(&key), |i| Ok(first(&self.entry(i)?.key)))?;
        while at < range.end && self.entry(at)?.key < key {
            at += 1;
        }
        Ok(at)
    }

    /// Returns where the entries of a kind lie, or would.
    pub(super) fn range_of(&self, kind: Kind) -> Result<Range<u64>, Damage> {
        let kinds = self.kinds()?;
        let at = kinds.partition_point(|&(before, _)| before < kind);
        Ok(match kinds.get(at) {
            Some((found, range)) if *found == kind => range.clone(),
            Some((_, range)) => range.start..range.start,
            None => self.entries..self.entries,
        })
    }

    /// Returns the kinds of the directory in order, and where the entries of each lie.
    pub(super) fn kinds(&self) -> Result<&[(Kind, Range<u64>)], Damage> {
        if let Some(kinds) = self.kinds.get() {
            return Ok(kinds);
        }
        let mut kinds = Vec::new();
        let mut start = 0;
        while start < self.entries {
            let kind = self.entry(start)?.kind;
            let (mut low, mut high) = (start + 1, self.entries);
            while low < high {
                let middle = low.midpoint(high);
                if self.entry(middle)?.kind > kind {
                    high = middle;
                } else {
                    low = middle + 1;
                }
            }
            kinds.push((kind, start..low));
            start = low;
        }
        Ok(self.kinds.get_or_init(|| kinds))
    }

    /// Returns where a block lies, header and all, and its unpacked length.
    pub(super) fn block(&self, number: u32) -> Result<(Range<u64>, usize), Damage> {
        if number >= self.blocks {
            return Err(self.file.damage(self.table, "a record is said to lie in a block that is not there"));
        }
        let at = self.table + u64::from(number) * TABLE_ENTRY;
        let entry = self.file.read(at..at + TABLE_ENTRY)?;
        let offset = u64::from_le_bytes(entry[..8].try_into().expect("eight bytes"));
        let packed = u64::from(u32::from_le_bytes(entry[8..12].try_into().expect("four bytes")));
        let unpacked = u32::from_le_bytes(entry[12..].try_into().expect("four bytes")) as usize;
        match offset.checked_add(HEADER + packed).filter(|&end| end <= self.table) {
            Some(end) if unpacked <= MAX_RECORD + BLOCK_LIMIT => Ok((offset..end, unpacked)),
            _ => Err(self.file.damage(at, "a block is said to lie beyond the blocks")),
        }
    }
}
