//! The head: the one file that changes. It says which files are the database now.
//!
//! ```text
//! magic "kbhead\0\1" · format u32 · oldest reader u32 · oldest writer u32 · body length u32 · body · CRC-32 of all before
//! ```
//!
//! **Invariant:** a head decoded is one that was encoded. Fields may be added at the end of the body; an older version
//! that may still write is told so by `oldest writer`, so it never drops what it does not know.

use crate::codec::{Malformed, Put, Reader};
use crate::pack::PackRef;
use crate::storage::{Area, FileName};

const MAGIC: [u8; 8] = *b"kbhead\0\x01";
/// The format this code writes, and the newest it reads.
pub(crate) const FORMAT: u32 = 1;

/// A segment of the search index as the head lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SegmentRef {
    pub(crate) hash: [u8; 16],
    pub(crate) bytes: u64,
    /// Generations of the manifests it indexes, from and to.
    pub(crate) generations: (u64, u64),
    /// The file that says which of its documents are dead, and how large it is.
    pub(crate) dead: Option<([u8; 16], u64)>,
    /// Live documents and sections.
    pub(crate) documents: u64,
    pub(crate) sections: u64,
    pub(crate) dead_documents: u64,
}

impl SegmentRef {
    pub(crate) const fn name(&self) -> FileName {
        FileName { area: Area::Index, hash: self.hash }
    }
}

/// A file that readers of an earlier generation may still want.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Retired {
    pub(crate) name: FileName,
    /// When it was retired, seconds since 1970.
    pub(crate) at: i64,
    /// It is a list of retired files, not one itself.
    pub(crate) is_list: bool,
}

/// What the current documents come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Totals {
    pub(crate) documents: u64,
    pub(crate) skills: u64,
    pub(crate) agents: u64,
    pub(crate) source_bytes: u64,
    /// Documents whose source could not be taken as it stands.
    pub(crate) with_warnings: u64,
}

/// The state of a database.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Head {
    /// Drawn when the database was created.
    pub(crate) id: [u8; 16],
    pub(crate) generation: u64,
    /// The oldest first; their generations do not overlap.
    pub(crate) packs: Vec<PackRef>,
    /// The oldest first; their generations do not overlap.
    pub(crate) segments: Vec<SegmentRef>,
    pub(crate) retired: Vec<Retired>,
    pub(crate) totals: Totals,
    /// The analyser that made the segments.
    pub(crate) analyzer: u32,
    /// Kept revisions of each document.
    pub(crate) history: u32,
}

/// Why bytes are no head that this version takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HeadError {
    Damaged(&'static str),
    TooNew(u32),
}

impl From<Malformed> for HeadError {
    fn from(malformed: Malformed) -> Self {
        Self::Damaged(malformed.what)
    }
}

impl Head {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut body = Vec::new();
        body.extend_from_slice(&self.id);
        body.put_varint(self.generation);
        body.put_varint(self.packs.len() as u64);
        for pack in &self.packs {
            body.extend_from_slice(&pack.hash);
            body.put_varint(pack.bytes);
            body.put_varint(pack.generations.0);
            body.put_varint(pack.generations.1);
        }
        body.put_varint(self.segments.len() as u64);
        for segment in &self.segments {
            body.extend_from_slice(&segment.hash);
            body.put_varint(segment.bytes);
            body.put_varint(segment.generations.0);
            body.put_varint(segment.generations.1);
            body.put_option(segment.dead, |b, (hash, bytes)| {
                b.extend_from_slice(&hash);
                b.put_varint(bytes);
            });
            body.put_varint(segment.documents);
            body.put_varint(segment.sections);
            body.put_varint(segment.dead_documents);
        }
        body.put_varint(self.retired.len() as u64);
        for retired in &self.retired {
            body.push(u8::from(retired.name.area == Area::Index) | u8::from(retired.is_list) << 1);
            body.extend_from_slice(&retired.name.hash);
            body.put_signed(retired.at);
        }
        let Totals { documents, skills, agents, source_bytes, with_warnings } = self.totals;
        for total in [documents, skills, agents, source_bytes, with_warnings] {
            body.put_varint(total);
        }
        body.put_varint(self.analyzer.into());
        body.put_varint(self.history.into());

        let mut bytes = Vec::with_capacity(body.len() + 28);
        bytes.extend_from_slice(&MAGIC);
        for value in [FORMAT, 1, 1, body.len() as u32] {
            bytes.extend_from_slice(&value.to_le_bytes());
        }
        bytes.extend_from_slice(&body);
        let checksum = crc32fast::hash(&bytes);
        bytes.extend_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// Decodes a head, and says whether this version may write to its database.
    pub(crate) fn decode(bytes: &[u8]) -> Result<(Self, bool), HeadError> {
        let mut reader = Reader::new(bytes);
        if reader.array::<8>()? != MAGIC {
            return Err(HeadError::Damaged("it does not begin as a head does"));
        }
        let [format, oldest_reader, oldest_writer, len] = [reader.u32()?, reader.u32()?, reader.u32()?, reader.u32()?];
        let body = reader.take(len as usize)?;
        let checksum = crc32fast::hash(&bytes[..reader.at()]);
        if reader.u32()? != checksum || !reader.is_at_end() {
            return Err(HeadError::Damaged("it does not match its checksum"));
        }
        if oldest_reader > FORMAT {
            return Err(HeadError::TooNew(format));
        }
        Ok((Self::decode_body(body)?, oldest_writer <= FORMAT))
    }

    fn decode_body(body: &[u8]) -> Result<Self, Malformed> {
        let mut r = Reader::new(body);
        let id = r.array()?;
        let generation = r.varint()?;
        let mut packs = Vec::new();
        for _ in 0..r.count(19)? {
            packs.push(PackRef { hash: r.array()?, bytes: r.varint()?, generations: (r.varint()?, r.varint()?) });
        }
        let mut segments = Vec::new();
        for _ in 0..r.count(23)? {
            segments.push(SegmentRef {
                hash: r.array()?,
                bytes: r.varint()?,
                generations: (r.varint()?, r.varint()?),
                dead: r.option(|r| Ok((r.array()?, r.varint()?)))?,
                documents: r.varint()?,
                sections: r.varint()?,
                dead_documents: r.varint()?,
            });
        }
        let mut retired = Vec::new();
        for _ in 0..r.count(18)? {
            let flags = r.byte()?;
            let area = if flags & 1 == 0 { Area::Packs } else { Area::Index };
            let name = FileName { area, hash: r.array()? };
            retired.push(Retired { name, at: r.signed()?, is_list: flags & 2 != 0 });
        }
        let totals = Totals {
            documents: r.varint()?,
            skills: r.varint()?,
            agents: r.varint()?,
            source_bytes: r.varint()?,
            with_warnings: r.varint()?,
        };
        let (analyzer, history) = (r.varint32()?, r.varint32()?);
        Ok(Self { id, generation, packs, segments, retired, totals, analyzer, history })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Head {
        let name = FileName { area: Area::Index, hash: [9; 16] };
        Head {
            id: [1; 16],
            generation: 300,
            packs: vec![PackRef { hash: [2; 16], bytes: 70_000, generations: (1, 300) }],
            segments: vec![SegmentRef {
                hash: [3; 16],
                bytes: 9,
                generations: (1, 299),
                dead: Some(([4; 16], 5)),
                documents: 6,
                sections: 7,
                dead_documents: 1,
            }],
            retired: vec![Retired { name, at: -5, is_list: true }],
            totals: Totals { documents: 6, skills: 1, agents: 2, source_bytes: 1 << 40, with_warnings: 0 },
            analyzer: 1,
            history: 10,
        }
    }

    #[test]
    fn what_is_encoded_is_decoded() {
        assert_eq!(Head::decode(&sample().encode()), Ok((sample(), true)));
        assert_eq!(Head::decode(&Head::default().encode()), Ok((Head::default(), true)));
    }

    #[test]
    fn every_flipped_bit_and_every_torn_end_is_seen() {
        let bytes = sample().encode();
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(matches!(Head::decode(&flipped), Err(HeadError::Damaged(_))), "bit {bit}");
        }
        for len in 0..bytes.len() {
            assert!(Head::decode(&bytes[..len]).is_err());
        }
    }

    #[test]
    fn a_newer_format_is_told_from_damage() {
        let mut bytes = sample().encode();
        bytes.truncate(bytes.len() - 4);
        bytes[8..12].copy_from_slice(&7_u32.to_le_bytes());
        bytes[16..20].copy_from_slice(&2_u32.to_le_bytes());
        let write = |bytes: &mut Vec<u8>| {
            let checksum = crc32fast::hash(bytes);
            bytes.extend_from_slice(&checksum.to_le_bytes());
        };
        let mut readable = bytes.clone();
        write(&mut readable);
        assert_eq!(Head::decode(&readable), Ok((sample(), false)), "may be read, not written");
        bytes[12..16].copy_from_slice(&2_u32.to_le_bytes());
        write(&mut bytes);
        assert_eq!(Head::decode(&bytes), Err(HeadError::TooNew(7)));
    }
}
