//! Records: what packs are made of.
//!
//! ```text
//! kind u8 · flags u8 · version u8 · [key, 16 bytes] · generation varint · payload (varint length, bytes) · [CRC-32]
//! ```
//!
//! A section's key is the hash of its content and is not written; every other record has its key and a checksum of
//! its own, so that each record can be trusted by itself, even out of a damaged block.
//!
//! **Invariant:** a record decoded from any bytes is one that was written, or the bytes are refused.

use kb_core::{MediaType, SectionId};

use crate::codec::{Malformed, Put, Reader};

/// The key of a record: a kbid, or the hash of a name.
pub(crate) type Key = [u8; 16];

/// What a record is. Kinds this version does not know are carried along unread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Kind(pub(crate) u8);

impl Kind {
    /// Media type and bytes of a section; the key is its kbid.
    pub(crate) const SECTION: Self = Self(1);
    /// One revision of a document; the key is the hash of its docid.
    pub(crate) const MANIFEST: Self = Self(2);
    /// Which document a source became; the key is the hash of the source.
    pub(crate) const SOURCE: Self = Self(4);
    /// What a source reaches, and its configuration; the key is the hash of its name.
    pub(crate) const SOURCE_STATE: Self = Self(5);
    /// What a run of a source would change; the key is the hash of the source's name.
    pub(crate) const PROPOSAL: Self = Self(6);
    /// The largest kind a directory entry has room for.
    pub(crate) const MAX: u8 = 0x7f;
}

impl Kind {
    /// Says whether of records with one key only the newest is of use, so that a merge leaves out the others.
    pub(crate) const fn is_replaced(self) -> bool {
        matches!(self, Self::SECTION | Self::SOURCE | Self::SOURCE_STATE | Self::PROPOSAL)
    }
}

const TOMBSTONE: u8 = 1;

/// The version of the payloads this code writes.
pub(crate) const VERSION: u8 = 1;

/// A record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) kind: Kind,
    /// Takes away all older records of its kind and key.
    pub(crate) tombstone: bool,
    pub(crate) version: u8,
    pub(crate) key: Key,
    pub(crate) generation: u64,
    pub(crate) payload: Vec<u8>,
}

/// Returns the key of a name.
pub(crate) fn key_of(name: &str) -> Key {
    let mut key = [0; 16];
    key.copy_from_slice(&blake3::hash(name.as_bytes()).as_bytes()[..16]);
    key
}

impl Record {
    pub(crate) fn section(media_type: &MediaType, bytes: &[u8], id: SectionId, generation: u64) -> Self {
        let mut payload = Vec::with_capacity(bytes.len() + 20);
        payload.put_text(media_type.as_str());
        payload.extend_from_slice(bytes);
        Self { kind: Kind::SECTION, tombstone: false, version: VERSION, key: id.to_bytes(), generation, payload }
    }

    pub(crate) const fn tombstone(kind: Kind, key: Key, generation: u64) -> Self {
        Self { kind, tombstone: true, version: VERSION, key, generation, payload: Vec::new() }
    }

    pub(crate) const fn new(kind: Kind, key: Key, generation: u64, payload: Vec<u8>) -> Self {
        Self { kind, tombstone: false, version: VERSION, key, generation, payload }
    }

    /// Returns media type and bytes of a section record.
    pub(crate) fn as_section(&self) -> Result<(MediaType, &[u8]), Malformed> {
        split_section(&self.payload)
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&[self.kind.0, if self.tombstone { TOMBSTONE } else { 0 }, self.version]);
        let hashed = self.kind == Kind::SECTION && !self.tombstone;
        if !hashed {
            out.extend_from_slice(&self.key);
        }
        out.put_varint(self.generation);
        out.put_bytes(&self.payload);
        if !hashed {
            let checksum = crc32fast::hash(&out[start..]);
            out.extend_from_slice(&checksum.to_le_bytes());
        }
    }

    /// Decodes and verifies the record at the start of these bytes; returns its length too.
    pub(crate) fn decode(bytes: &[u8]) -> Result<(Self, usize), Malformed> {
        let mut reader = Reader::new(bytes);
        let [kind, flags, version] = reader.array()?;
        let tombstone = flags & TOMBSTONE != 0;
        let hashed = kind == Kind::SECTION.0 && !tombstone;
        let key = if hashed { None } else { Some(reader.array()?) };
        let generation = reader.varint()?;
        let payload = reader.bytes()?;
        let key = if let Some(key) = key {
            let checksum = crc32fast::hash(&bytes[..reader.at()]);
            if reader.u32()? != checksum {
                return Err(reader.malformed("a record does not match its checksum"));
            }
            key
        } else {
            let (media_type, content) = split_section(payload)?;
            SectionId::of(&media_type, content).to_bytes()
        };
        let record = Self { kind: Kind(kind), tombstone, version, key, generation, payload: payload.to_vec() };
        Ok((record, reader.at()))
    }
}

fn split_section(payload: &[u8]) -> Result<(MediaType, &[u8]), Malformed> {
    let mut reader = Reader::new(payload);
    let media_type = reader.text()?.parse().map_err(|_| reader.malformed("a section has no media type"))?;
    Ok((media_type, &payload[reader.at()..]))
}
