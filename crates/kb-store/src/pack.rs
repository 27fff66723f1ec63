//! Packs: the records of one commit, or of a merge.
//!
//! ```text
//! blocks           header (magic, packed length, unpacked length, CRC-32 of the packed bytes), then zstd
//! block table      16 bytes a block: offset u64, packed length u32, unpacked length u32
//! directory        22 bytes a record, by kind and key, the newest first: key, block u24, offset u16, tag u8
//! replaced packs   16 bytes each
//! trailer          64 bytes
//! ```
//!
//! A block holds at most 8 KiB of records, or one larger record alone. Sections lie in blocks of their own, in the
//! order of their document, so that what is read together was packed together.
//!
//! **Invariant:** records of one kind lie in the order in which they were added, and a newer one of the same key comes
//! later; a merge keeps that. What [`Pack::record_in`] returns was verified by page, or, out of a damaged page, by the
//! record's own hash or checksum: damage takes what it hit and nothing else.

mod layout;
mod writer;

use std::cell::RefCell;
use std::sync::{Arc, OnceLock};

use self::layout::Layout;
pub(crate) use self::layout::Trailer;
pub(crate) use self::writer::PackWriter;
use crate::error::StoreError;
use crate::paged::{Damage, FileKind, PagedFile};
use crate::record::{Key, Kind, Record};
use crate::salvage::{Salvaged, unpack};
use crate::storage::{Area, FileName, Object, Storage};

const VERSION: u32 = 1;
pub(crate) const BLOCK_LIMIT: usize = 8 << 10;
/// Blocks of manifests are smaller: a search unpacks one for each hit.
const OTHER_LIMIT: usize = 4 << 10;
/// A record larger than this is refused when it is written, and not believed when it is read.
pub(crate) const MAX_RECORD: usize = 256 << 20;
pub(crate) const HEADER: u64 = 16;
pub(crate) const BLOCK_MAGIC: [u8; 4] = *b"KBLK";
pub(crate) const ENTRY: u64 = 22;
pub(crate) const TABLE_ENTRY: u64 = 16;
pub(crate) const TRAILER: u64 = 64;

thread_local! {
    /// Its tables are 160 KiB, which a search would else get and give back for each of some twenty blocks.
    static DECOMPRESSOR: RefCell<Option<zstd::bulk::Decompressor<'static>>> = const { RefCell::new(None) };
}

/// A pack as the head lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PackRef {
    pub(crate) hash: [u8; 16],
    pub(crate) bytes: u64,
    /// Generations of its records, from and to.
    pub(crate) generations: (u64, u64),
}

impl PackRef {
    pub(crate) const fn name(&self) -> FileName {
        FileName { area: Area::Packs, hash: self.hash }
    }
}

/// Where a record lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) kind: Kind,
    pub(crate) key: Key,
    pub(crate) tombstone: bool,
    pub(crate) block: u32,
    pub(crate) offset: u16,
}

impl Entry {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.key);
        out.extend_from_slice(&self.block.to_le_bytes()[..3]);
        out.extend_from_slice(&self.offset.to_le_bytes());
        out.push(self.kind.0 | if self.tombstone { 0x80 } else { 0 });
    }

    pub(crate) fn decode(bytes: &[u8]) -> Self {
        let mut key = [0; 16];
        key.copy_from_slice(&bytes[..16]);
        Self {
            kind: Kind(bytes[21] & Kind::MAX),
            key,
            tombstone: bytes[21] & 0x80 != 0,
            block: u32::from_le_bytes([bytes[16], bytes[17], bytes[18], 0]),
            offset: u16::from_le_bytes([bytes[19], bytes[20]]),
        }
    }
}

/// A block's records, unpacked.
pub(crate) type Block = Arc<Vec<u8>>;

/// A pack opened to read.
#[derive(Debug)]
pub(crate) struct Pack {
    name: FileName,
    object: Arc<dyn Object>,
    layout: Result<Layout, Damage>,
    salvaged: OnceLock<Salvaged>,
}

impl Pack {
    /// Opens a pack; a damaged one too. `Ok(None)` where there is no such file.
    pub(crate) fn open(storage: &dyn Storage, name: FileName) -> Result<Option<Self>, StoreError> {
        let Some(object) = storage.open(name)? else { return Ok(None) };
        let layout = PagedFile::over(Arc::clone(&object), name, FileKind::Pack).and_then(Layout::read);
        if let Ok(layout) = &layout
            && layout.file.version() > VERSION
        {
            let path = storage.location();
            return Err(StoreError::TooNew { path, found: layout.file.version(), supported: VERSION });
        }
        Ok(Some(Self { name, object, layout, salvaged: OnceLock::new() }))
    }

    pub(crate) const fn name(&self) -> FileName {
        self.name
    }

    pub(crate) fn len(&self) -> u64 {
        self.object.len()
    }

    pub(crate) fn generations(&self) -> (u64, u64) {
        self.layout.as_ref().map_or_else(|_| self.salvaged().generations, |layout| layout.generations)
    }

    /// Returns the packs whose place this one took.
    pub(crate) fn replaces(&self) -> &[[u8; 16]] {
        self.layout.as_ref().map_or_else(|_| &self.salvaged().replaces, |layout| &layout.replaces)
    }

    /// Returns the newest record of this key.
    pub(crate) fn find(&self, kind: Kind, key: &Key) -> Option<Entry> {
        self.from((kind, *key)).next().filter(|entry| entry.kind == kind && entry.key == *key)
    }

    /// Returns the records of this key, the newest first.
    pub(crate) fn find_all(&self, kind: Kind, key: &Key) -> Vec<Entry> {
        self.from((kind, *key)).take_while(|entry| entry.kind == kind && entry.key == *key).collect()
    }

    /// Says whether the pack tells by itself what it holds; else that was found out from its blocks.
    pub(crate) const fn has_directory(&self) -> bool {
        self.layout.is_ok()
    }

    /// Says whether not one record can be had of the pack.
    pub(crate) fn is_lost(&self) -> bool {
        !self.has_directory() && self.from((Kind(0), [0; 16])).next().is_none()
    }

    /// Says whether no newer record of its key is in this pack.
    pub(crate) fn is_newest(&self, entry: &Entry) -> bool {
        self.find(entry.kind, &entry.key).is_none_or(|newest| newest == *entry)
    }

    /// Says whether a newer tombstone in this pack hides a record.
    pub(crate) fn is_under_tombstone(&self, entry: &Entry) -> bool {
        self.find_all(entry.kind, &entry.key).iter().take_while(|newer| *newer != entry).any(|newer| newer.tombstone)
    }

    /// Returns the records of a kind, by key, the newest first.
    pub(crate) fn entries(&self, kind: Kind) -> impl Iterator<Item = Entry> + '_ {
        self.from((kind, [0; 16])).take_while(move |entry| entry.kind == kind)
    }

    /// Returns the records from this kind and key on.
    pub(crate) fn from(&self, from: (Kind, Key)) -> Box<dyn Iterator<Item = Entry> + '_> {
        if let Ok(layout) = &self.layout
            && let Ok(first) = layout.lower_bound(from)
        {
            // A damaged page further on ends the walk over the directory; what lies behind it is salvaged.
            let mut last: Option<Entry> = None;
            let mut salvage: Option<Box<dyn Iterator<Item = Entry> + '_>> = None;
            let mut next = first;
            return Box::new(std::iter::from_fn(move || {
                if let Some(rest) = &mut salvage {
                    return rest.next();
                }
                if next >= layout.entries {
                    return None;
                }
                if let Ok(entry) = layout.entry(next) {
                    next += 1;
                    last = Some(entry);
                    return Some(entry);
                }
                let rest = self.salvaged().entries.iter().copied();
                let rest: Box<dyn Iterator<Item = Entry>> = match last {
                    None => Box::new(rest.skip_while(move |e| (e.kind, e.key) < from)),
                    Some(last) => Box::new(rest.skip_while(move |e| directory_order(e) <= directory_order(&last))),
                };
                salvage.insert(rest).next()
            }));
        }
        let entries = &self.salvaged().entries;
        let first = entries.partition_point(|e| (e.kind, e.key) < from);
        Box::new(entries[first..].iter().copied())
    }

    /// Returns an unpacked block, as far as it can be had; the error says what is wrong with the whole of it.
    pub(crate) fn block(&self, number: u32) -> Result<Block, Damage> {
        let layout = self.layout.as_ref().map_err(Damage::clone)?;
        let (range, unpacked) = layout.block(number)?;
        let packed = layout.file.read(range.start + HEADER..range.end)?;
        let bytes = DECOMPRESSOR
            .with_borrow_mut(|decompressor| match decompressor {
                Some(decompressor) => decompressor.decompress(packed, unpacked),
                None => decompressor.insert(zstd::bulk::Decompressor::new()?).decompress(packed, unpacked),
            })
            .map_err(|e| layout.file.damage(range.start, format!("a block cannot be unpacked: {e}")))?;
        Ok(Arc::new(bytes))
    }

    /// Returns the record at an entry. `block` is [`Pack::block`]'s answer, from a cache or fresh.
    pub(crate) fn record_in(&self, entry: &Entry, block: &Result<Block, Damage>) -> Result<Record, Damage> {
        let found = match block {
            Ok(bytes) => Record::decode(bytes.get(usize::from(entry.offset)..).unwrap_or_default()).map_err(|e| {
                let at = self.layout.as_ref().ok().and_then(|l| l.block(entry.block).ok()).map_or(0, |(r, _)| r.start);
                Damage { file: self.name, offset: at, detail: e.to_string() }
            }),
            Err(damage) => {
                let bytes = self.unpack_leniently(entry.block);
                Record::decode(bytes.get(usize::from(entry.offset)..).unwrap_or_default()).map_err(|_| damage.clone())
            }
        };
        found.and_then(|(record, _)| {
            if record.kind == entry.kind && record.key == entry.key {
                return Ok(record);
            }
            let damage =
                |d: &Damage| Damage { detail: "a record is not the one its entry names".to_owned(), ..d.clone() };
            Err(block
                .as_ref()
                .err()
                .map_or_else(|| damage(&Damage { file: self.name, offset: 0, detail: String::new() }), damage))
        })
    }

    /// Verifies everything and returns what is wrong: each damaged page or block, with the records that are lost.
    pub(crate) fn verify(&self) -> Vec<(Damage, Vec<Entry>)> {
        let mut problems: Vec<(Damage, Vec<Entry>)> = Vec::new();
        let layout = match &self.layout {
            Ok(layout) => layout,
            Err(damage) => {
                let is_lost = |entry: &Entry| self.record_in(entry, &Err(damage.clone())).is_err();
                return vec![(damage.clone(), self.from((Kind(0), [0; 16])).filter(is_lost).collect())];
            }
        };
        let mut by_block: Vec<Entry> = self.from((Kind(0), [0; 16])).collect();
        by_block.sort_by_key(|entry| (entry.block, entry.offset));
        let mut pages = layout.file.verify();
        let mut sweep = layout.file.sweep();
        for entries in by_block.chunk_by(|a, b| a.block == b.block) {
            sweep.reach(layout.block(entries[0].block).map_or(0, |(range, _)| range.start));
            let block = self.block(entries[0].block);
            let lost: Vec<Entry> = entries.iter().filter(|e| self.record_in(e, &block).is_err()).copied().collect();
            match block {
                Err(damage) => {
                    pages.retain(|page| page.offset != damage.offset);
                    problems.push((damage, lost));
                }
                Ok(_) if !lost.is_empty() => {
                    let offset = layout.block(entries[0].block).map_or(0, |(range, _)| range.start);
                    problems.push((layout.file.damage(offset, "records do not match what the directory says"), lost));
                }
                Ok(_) => {}
            }
        }
        problems.extend(pages.into_iter().map(|damage| (damage, Vec::new())));
        problems
    }

    /// Says whether all that the pack ever held is known, be it readable or not.
    pub(crate) fn is_accounted_for(&self) -> bool {
        let is_listed = |layout: &Layout| (0..layout.entries).all(|i| layout.entry(i).is_ok());
        // Of a pack whose place another took nothing is known, however sound that other is.
        !self.layout.as_ref().is_ok_and(|layout| layout.file.is_another())
            && (self.layout.as_ref().is_ok_and(is_listed) || self.salvaged().is_accounted_for)
    }

    /// Says whether every byte is as it was written.
    pub(crate) fn is_whole(&self) -> bool {
        self.layout.as_ref().is_ok_and(|layout| layout.file.verify().is_empty())
    }

    /// Copies the records that `keep` wants into a writer, whole blocks as they are where all of a large one stays.
    ///
    /// Fails without harm at the first record that cannot be read: a pack that has lost something is not merged.
    pub(crate) fn copy_into(
        &self,
        writer: &mut PackWriter,
        keep: &mut dyn FnMut(&Entry) -> bool,
    ) -> Result<u64, StoreError> {
        let layout = self.layout.as_ref().map_err(|damage| StoreError::from(damage.clone()))?;
        let mut entries = Vec::with_capacity(layout.entries as usize);
        for i in 0..layout.entries {
            entries.push(layout.entry(i)?);
        }
        entries.sort_by_key(|entry| (entry.block, entry.offset));
        let mut dropped = 0;
        let mut sweep = layout.file.sweep();
        for in_block in entries.chunk_by(|a, b| a.block == b.block) {
            let kept: Vec<Entry> = in_block.iter().filter(|entry| keep(entry)).copied().collect();
            dropped += (in_block.len() - kept.len()) as u64;
            if kept.is_empty() {
                continue;
            }
            let (range, unpacked) = layout.block(in_block[0].block)?;
            sweep.reach(range.start);
            let is_large =
                unpacked >= if in_block[0].kind == Kind::SECTION { BLOCK_LIMIT / 2 } else { OTHER_LIMIT / 2 };
            if is_large
                && kept.len() == in_block.len()
                && let Ok(block) = layout.file.read(range)
            {
                writer.extend_generations(layout.generations);
                writer.copy_block(block, unpacked as u32, &kept)?;
                continue;
            }
            let block = self.block(in_block[0].block);
            for entry in &kept {
                writer.add(&self.record_in(entry, &block)?)?;
            }
        }
        Ok(dropped)
    }

    /// As [`Pack::copy_into`], record by record, out of a pack that is damaged.
    ///
    /// Fails without harm at the first wanted record that cannot be read.
    pub(crate) fn rescue_into(
        &self,
        writer: &mut PackWriter,
        keep: &mut dyn FnMut(&Entry) -> bool,
    ) -> Result<(), StoreError> {
        let mut entries: Vec<Entry> = self.from((Kind(0), [0; 16])).filter(keep).collect();
        entries.sort_by_key(|entry| (entry.block, entry.offset));
        for in_block in entries.chunk_by(|a, b| a.block == b.block) {
            let block = self.block(in_block[0].block);
            for entry in in_block {
                writer.add(&self.record_in(entry, &block)?)?;
            }
        }
        Ok(())
    }

    /// Lets go of the memory of what was read so far.
    pub(crate) fn release(&self) {
        self.object.release();
    }

    fn salvaged(&self) -> &Salvaged {
        self.salvaged.get_or_init(|| Salvaged::of(&*self.object))
    }

    fn unpack_leniently(&self, number: u32) -> Vec<u8> {
        let by_table = self.layout.as_ref().ok().and_then(|layout| layout.block(number).ok()).map(|(range, _)| range);
        let range = by_table.or_else(|| self.salvaged().blocks.get(number as usize).cloned());
        range.map(|range| unpack(&*self.object, &range)).unwrap_or_default()
    }
}

pub(crate) const fn widened(range: Option<(u64, u64)>, (from, to): (u64, u64)) -> (u64, u64) {
    match range {
        None => (from, to),
        Some((a, b)) => (if from < a { from } else { a }, if to > b { to } else { b }),
    }
}

pub(crate) fn directory_order(entry: &Entry) -> (Kind, Key, std::cmp::Reverse<(u32, u16)>) {
    (entry.kind, entry.key, std::cmp::Reverse((entry.block, entry.offset)))
}
