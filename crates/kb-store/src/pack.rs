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
//! later; a merge keeps that. What [`Pack::read`] returns was verified by page, or, out of a damaged page, by the
//! record's own hash or checksum: damage takes what it hit and nothing else.

use std::cell::RefCell;
use std::io::Write;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use crate::error::StoreError;
use crate::paged::{Damage, FileKind, PagedFile, PagedWriter};
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
const COMPRESSION: i32 = 6;

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

#[derive(Default)]
struct OpenBlock {
    bytes: Vec<u8>,
    entries: Vec<Entry>,
}

/// Writes a pack.
pub(crate) struct PackWriter {
    out: PagedWriter,
    compressor: zstd::bulk::Compressor<'static>,
    table: Vec<u8>,
    blocks: u32,
    entries: Vec<Entry>,
    sections: OpenBlock,
    others: OpenBlock,
    generations: Option<(u64, u64)>,
}

impl PackWriter {
    pub(crate) fn create(storage: &dyn Storage) -> Result<Self, StoreError> {
        Ok(Self {
            out: PagedWriter::create(storage, Area::Packs, FileKind::Pack, VERSION)?,
            compressor: zstd::bulk::Compressor::new(COMPRESSION).map_err(pack_io)?,
            table: Vec::new(),
            blocks: 0,
            entries: Vec::new(),
            sections: OpenBlock::default(),
            others: OpenBlock::default(),
            generations: None,
        })
    }

    /// Returns how many records were added.
    pub(crate) fn records(&self) -> usize {
        self.entries.len() + self.sections.entries.len() + self.others.entries.len()
    }

    pub(crate) fn add(&mut self, record: &Record) -> Result<(), StoreError> {
        if record.payload.len() > MAX_RECORD {
            let reason =
                format!("{} bytes are more than the {MAX_RECORD} that one section may have", record.payload.len());
            return Err(StoreError::Invalid { field: "content", reason });
        }
        let is_section = record.kind == Kind::SECTION;
        let limit = if is_section { BLOCK_LIMIT } else { OTHER_LIMIT };
        let size = record.payload.len() + 64;
        let open = if is_section { &self.sections } else { &self.others };
        if open.bytes.len() + size > limit {
            self.flush(is_section)?;
        }
        self.extend_generations((record.generation, record.generation));
        let open = if is_section { &mut self.sections } else { &mut self.others };
        let offset = open.bytes.len() as u16;
        let Record { kind, key, tombstone, .. } = *record;
        open.entries.push(Entry { kind, key, tombstone, block: 0, offset });
        record.encode(&mut open.bytes);
        if open.bytes.len() >= limit {
            self.flush(is_section)?;
        }
        Ok(())
    }

    /// Takes a packed block over as it is. `entries` are its records, in order.
    fn copy_block(&mut self, block: &[u8], unpacked: u32, entries: &[Entry]) -> Result<(), StoreError> {
        self.flush(true)?;
        self.flush(false)?;
        self.write_block(block, unpacked, entries.to_vec())
    }

    pub(crate) const fn extend_generations(&mut self, (from, to): (u64, u64)) {
        self.generations = Some(widened(self.generations, (from, to)));
    }

    fn flush(&mut self, sections: bool) -> Result<(), StoreError> {
        let open = std::mem::take(if sections { &mut self.sections } else { &mut self.others });
        if open.entries.is_empty() {
            return Ok(());
        }
        let packed = self.compressor.compress(&open.bytes).map_err(pack_io)?;
        let mut block = Vec::with_capacity(packed.len() + HEADER as usize);
        block.extend_from_slice(&BLOCK_MAGIC);
        block.extend_from_slice(&(packed.len() as u32).to_le_bytes());
        block.extend_from_slice(&(open.bytes.len() as u32).to_le_bytes());
        block.extend_from_slice(&crc32fast::hash(&packed).to_le_bytes());
        block.extend_from_slice(&packed);
        let unpacked = open.bytes.len() as u32;
        self.write_block(&block, unpacked, open.entries)?;
        let mut bytes = open.bytes;
        bytes.clear();
        (if sections { &mut self.sections } else { &mut self.others }).bytes = bytes;
        Ok(())
    }

    fn write_block(&mut self, block: &[u8], unpacked: u32, entries: Vec<Entry>) -> Result<(), StoreError> {
        let number = self.blocks;
        if number >= 1 << 24 {
            return Err(StoreError::Invalid { field: "content", reason: "a pack can hold no more blocks".to_owned() });
        }
        self.table.extend_from_slice(&self.out.len().to_le_bytes());
        self.table.extend_from_slice(&(block.len() as u32 - HEADER as u32).to_le_bytes());
        self.table.extend_from_slice(&unpacked.to_le_bytes());
        self.blocks += 1;
        self.entries.extend(entries.into_iter().map(|entry| Entry { block: number, ..entry }));
        self.out.write_all(block).map_err(pack_io)
    }

    /// Completes the pack. `replaces` are the packs whose place it takes.
    pub(crate) fn finish(mut self, replaces: &[[u8; 16]]) -> Result<PackRef, StoreError> {
        self.flush(true)?;
        self.flush(false)?;
        // Physical order is the order of adding; of one key the newest comes first in the directory.
        self.entries
            .sort_by(|a, b| (a.kind, a.key).cmp(&(b.kind, b.key)).then((b.block, b.offset).cmp(&(a.block, a.offset))));
        let generations = self.generations.unwrap_or((0, 0));
        let mut tail = Vec::with_capacity(self.table.len() + self.entries.len() * ENTRY as usize);
        let at = self.out.len();
        tail.extend_from_slice(&self.table);
        let directory = at + tail.len() as u64;
        self.entries.iter().for_each(|entry| entry.encode(&mut tail));
        let replaced = at + tail.len() as u64;
        tail.extend_from_slice(replaces.as_flattened());
        for value in [at, directory, replaced, generations.0, generations.1] {
            tail.extend_from_slice(&value.to_le_bytes());
        }
        for value in [self.blocks, self.entries.len() as u32, replaces.len() as u32, 0, 0, 0] {
            tail.extend_from_slice(&value.to_le_bytes());
        }
        self.out.write_all(&tail).map_err(pack_io)?;
        let (name, bytes) = self.out.finish(true)?;
        Ok(PackRef { hash: name.hash, bytes, generations })
    }
}

fn pack_io(source: std::io::Error) -> StoreError {
    StoreError::Io { op: "write", path: "packs".into(), source }
}

/// A block's records, unpacked.
pub(crate) type Block = Arc<Vec<u8>>;

#[derive(Debug)]
struct Layout {
    file: PagedFile,
    table: u64,
    directory: u64,
    blocks: u32,
    entries: u64,
    generations: (u64, u64),
    replaces: Vec<[u8; 16]>,
    /// Where the entries of each kind lie, once it was asked for.
    kinds: OnceLock<Vec<(Kind, Range<u64>)>>,
}

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
    fn read(file: PagedFile) -> Result<Self, Damage> {
        let len = file.len();
        let at = len.checked_sub(TRAILER).ok_or_else(|| file.damage(0, "it is shorter than a trailer"))?;
        let trailer = file.read(at..len)?;
        let trailer =
            Trailer::decode(trailer, at).ok_or_else(|| file.damage(at, "the trailer does not fit the file"))?;
        let Trailer { table, directory, replaced, generations, blocks, entries } = trailer;
        let replaces = file.read(replaced..at)?.as_chunks().0.to_vec();
        Ok(Self { file, table, directory, blocks, entries, generations, replaces, kinds: OnceLock::new() })
    }

    fn entry(&self, i: u64) -> Result<Entry, Damage> {
        let at = self.directory + i * ENTRY;
        Ok(Entry::decode(self.file.read(at..at + ENTRY)?))
    }

    fn lower_bound(&self, from: (Kind, Key)) -> Result<u64, Damage> {
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
    fn range_of(&self, kind: Kind) -> Result<Range<u64>, Damage> {
        let kinds = self.kinds()?;
        let at = kinds.partition_point(|&(before, _)| before < kind);
        Ok(match kinds.get(at) {
            Some((found, range)) if *found == kind => range.clone(),
            Some((_, range)) => range.start..range.start,
            None => self.entries..self.entries,
        })
    }

    /// Returns the kinds of the directory in order, and where the entries of each lie.
    fn kinds(&self) -> Result<&[(Kind, Range<u64>)], Damage> {
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
    fn block(&self, number: u32) -> Result<(Range<u64>, usize), Damage> {
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
