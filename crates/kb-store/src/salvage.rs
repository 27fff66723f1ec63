//! What can still be had of a damaged pack.
//!
//! Every record can be trusted by itself, so it is enough to find it. Where the checksums of the pages say that the
//! directory or the table of blocks is damaged, the blocks are found and read one after another; where a block is, the
//! directory says what was in it. Of two parts that describe each other one damage hits one.
//!
//! **Invariant:** nothing here is verified but what was decoded as a record; who reads by it verifies.

use std::ops::Range;

use crate::pack::{
    BLOCK_LIMIT, BLOCK_MAGIC, ENTRY, Entry, HEADER, MAX_RECORD, TABLE_ENTRY, TRAILER, Trailer, directory_order, widened,
};
use crate::record::Record;
use crate::storage::Object;

/// Packed bytes in which a flipped bit is looked for; beyond that it takes too long.
const MEND_LIMIT: usize = 4 << 20;

/// What was found by reading all blocks, where the directory cannot be trusted.
#[derive(Debug, Default)]
pub(crate) struct Salvaged {
    pub(crate) entries: Vec<Entry>,
    pub(crate) blocks: Vec<Range<u64>>,
    pub(crate) generations: (u64, u64),
    /// Unverified.
    pub(crate) replaces: Vec<[u8; 16]>,
    /// The pack's own account of what was in it was found, and every block that it speaks of.
    pub(crate) is_accounted_for: bool,
}

impl Salvaged {
    /// Finds the blocks, and the records by reading every block.
    ///
    /// Of a block that is damaged the directory is believed, unverified, as to what else was in it: a record that
    /// cannot be read is still known to be there, and what a lost tombstone took away does not come back.
    pub(crate) fn of(object: &dyn Object) -> Self {
        let claims = Claims::read(object);
        let mut claimed = claims.as_ref().map(|claims| claims.entries(object)).unwrap_or_default();
        claimed.sort_by_key(|entry| (entry.block, entry.offset));
        let blocks = find_blocks(object, claims.as_ref());
        let is_accounted_for = claims.is_some() && claimed.iter().all(|entry| (entry.block as usize) < blocks.len());
        let mut found = Self { blocks, is_accounted_for, ..Self::default() };
        let mut generations = None;
        for (number, range) in found.blocks.iter().enumerate() {
            let number = number as u32;
            let first = claimed.partition_point(|entry| entry.block < number);
            let claimed = claimed[first..].iter().take_while(|entry| entry.block == number);
            if !is_sound(object, range) && claimed.clone().next().is_some() {
                found.entries.extend(claimed);
                generations =
                    Some(widened(generations, claims.as_ref().map_or((0, 0), |claims| claims.trailer.generations)));
                continue;
            }
            let bytes = unpack(object, range);
            let mut offset = 0;
            while let Ok(at) = u16::try_from(offset)
                && let Ok((record, len)) = Record::decode(&bytes[offset..])
            {
                let Record { kind, key, tombstone, generation, .. } = record;
                found.entries.push(Entry { kind, key, tombstone, block: number, offset: at });
                generations = Some(widened(generations, (generation, generation)));
                offset += len;
            }
        }
        found.entries.sort_by_key(directory_order);
        found.generations = generations.unwrap_or((0, 0));
        found.replaces = claims.map(|claims| claims.replaces(object)).unwrap_or_default();
        found
    }
}

/// Returns the packed bytes of a block, unverified, and the checksum that its header gives for them.
fn packed<'o>(object: &'o dyn Object, range: &Range<u64>) -> Option<(&'o [u8], u32)> {
    let header = object.bytes(range.start..range.start + HEADER).ok()?;
    let checksum = u32::from_le_bytes([header[12], header[13], header[14], header[15]]);
    Some((object.bytes(range.start + HEADER..range.end).ok()?, checksum))
}

/// Says whether a block matches the checksum in its header.
fn is_sound(object: &dyn Object, range: &Range<u64>) -> bool {
    packed(object, range).is_some_and(|(packed, checksum)| crc32fast::hash(packed) == checksum)
}

/// Returns where the blocks lie, by number: one after another from the beginning, each as long as its header says
/// or, where that leads nowhere, as the table says.
fn find_blocks(object: &dyn Object, claims: Option<&Claims>) -> Vec<Range<u64>> {
    let end = claims.map_or(object.len(), |claims| claims.trailer.table);
    let leads_on = |at: u64| at == end || header_at(object, at, end).is_some();
    let mut blocks: Vec<Range<u64>> = Vec::new();
    let mut at = 0;
    while at + HEADER <= end {
        let by_header = header_at(object, at, end);
        let by_table =
            claims.and_then(|claims| claims.block(object, blocks.len() as u32)).filter(|range| range.start == at);
        let range = match (by_header, by_table) {
            (Some(header), Some(table)) if header != table => {
                if leads_on(table.end) {
                    table
                } else {
                    header
                }
            }
            (Some(range), _) | (None, Some(range)) => range,
            (None, None) => {
                at += 1;
                continue;
            }
        };
        at = range.end;
        blocks.push(range);
    }
    blocks
}

fn header_at(object: &dyn Object, at: u64, end: u64) -> Option<Range<u64>> {
    let header = object.bytes(at..at.checked_add(HEADER)?).ok()?;
    if header[..4] != BLOCK_MAGIC {
        return None;
    }
    let packed = u64::from(u32::from_le_bytes([header[4], header[5], header[6], header[7]]));
    let stop = at + HEADER + packed;
    (stop <= end).then_some(at..stop)
}

/// Unpacks as much of a block as comes out, unverified; where one bit has flipped, that is all of it.
pub(crate) fn unpack(object: &dyn Object, range: &Range<u64>) -> Vec<u8> {
    use std::io::Read;
    let mut bytes = Vec::new();
    let Some((packed, checksum)) = packed(object, range) else { return bytes };
    let mended = mend(packed, checksum);
    if let Ok(decoder) = zstd::stream::read::Decoder::new(mended.as_deref().unwrap_or(packed)) {
        let mut decoder = decoder.take(MAX_RECORD as u64 + (BLOCK_LIMIT as u64));
        let mut piece = [0; 4096];
        while let Ok(n) = decoder.read(&mut piece) {
            if n == 0 {
                break;
            }
            bytes.extend_from_slice(&piece[..n]);
        }
    }
    bytes
}

/// Returns these bytes with the one bit turned back that makes them match their CRC-32, if there is one.
///
/// The polynomial of CRC-32 is primitive, so in up to 512 MB each single flipped bit changes the checksum in a way of
/// its own. What comes out is still held against the hash or checksum of each record.
fn mend(bytes: &[u8], checksum: u32) -> Option<Vec<u8>> {
    const POLYNOMIAL: u32 = 0xedb8_8320;
    let difference = crc32fast::hash(bytes) ^ checksum;
    if difference == 0 || bytes.len() > MEND_LIMIT {
        return None;
    }
    // What the last bit changes, then the one before it, and so on.
    let mut change = 1_u32;
    for bit in (0..bytes.len() * 8).rev() {
        change = (change >> 1) ^ if change & 1 == 1 { POLYNOMIAL } else { 0 };
        if change == difference {
            let mut mended = bytes.to_vec();
            mended[bit / 8] ^= 1 << (bit % 8);
            return Some(mended);
        }
    }
    None
}

/// What a pack says of its own parts, unverified: the trailer at least fits the file.
struct Claims {
    trailer: Trailer,
    end: u64,
}

impl Claims {
    fn read(object: &dyn Object) -> Option<Self> {
        let len = crate::paged::payload_len(object.len())?;
        let end = len.checked_sub(TRAILER)?;
        let trailer = Trailer::decode(object.bytes(end..len).ok()?, end)?;
        Some(Self { trailer, end })
    }

    fn block(&self, object: &dyn Object, number: u32) -> Option<Range<u64>> {
        let at = self.trailer.table + u64::from(number) * TABLE_ENTRY;
        let entry = object.bytes(at..at + TABLE_ENTRY).ok().filter(|_| at + TABLE_ENTRY <= self.trailer.directory)?;
        let start = u64::from_le_bytes(entry[..8].try_into().expect("eight bytes"));
        let packed = u64::from(u32::from_le_bytes(entry[8..12].try_into().expect("four bytes")));
        let stop = start.checked_add(HEADER + packed)?;
        (stop <= self.trailer.table).then_some(start..stop)
    }

    fn entries(&self, object: &dyn Object) -> Vec<Entry> {
        let bytes = object.bytes(self.trailer.directory..self.trailer.replaced).unwrap_or_default();
        bytes.chunks_exact(ENTRY as usize).map(Entry::decode).collect()
    }

    fn replaces(&self, object: &dyn Object) -> Vec<[u8; 16]> {
        object.bytes(self.trailer.replaced..self.end).unwrap_or_default().as_chunks().0.to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::mend;

    #[test]
    fn any_one_flipped_bit_is_turned_back_and_no_more() {
        let bytes: Vec<u8> = (0..3000_u32).map(|i| ((i * i) >> 5) as u8).collect();
        let checksum = crc32fast::hash(&bytes);
        assert_eq!(mend(&bytes, checksum), None);
        for bit in (0..bytes.len() * 8).step_by(101) {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(mend(&flipped, checksum).as_ref(), Some(&bytes), "bit {bit}");
            flipped[(bit / 8 + 1) % bytes.len()] ^= 0x11;
            assert_ne!(mend(&flipped, checksum).as_ref(), Some(&bytes), "bit {bit} and others");
        }
    }
}
