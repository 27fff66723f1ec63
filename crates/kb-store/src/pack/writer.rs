//! Writes a pack: records into blocks, blocks into a file, and at its end where everything lies.

use std::io::Write;

use super::{BLOCK_LIMIT, BLOCK_MAGIC, ENTRY, Entry, HEADER, MAX_RECORD, OTHER_LIMIT, PackRef, VERSION, widened};
use crate::error::StoreError;
use crate::paged::{FileKind, PagedWriter};
use crate::record::{Kind, Record};
use crate::storage::{Area, Storage};

const COMPRESSION: i32 = 6;

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
    pub(super) fn copy_block(&mut self, block: &[u8], unpacked: u32, entries: &[Entry]) -> Result<(), StoreError> {
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
