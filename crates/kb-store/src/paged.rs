//! Files of checksummed pages: the outer shape of every pack and index file.
//!
//! ```text
//! payload              what the file is for; pages of 1,024 bytes, the last one shorter
//! page checksums       CRC-32 of each page, little-endian
//! table checksums      CRC-32 of each 4,096 bytes of the page checksums
//! footer, 48 bytes     magic, kind, version, payload length, CRC-32 of the table checksums, CRC-32 of the footer
//! ```
//!
//! **Invariant:** [`PagedFile::read`] returns bytes whose pages were verified, each page when it is first touched.
//! Opening touches the footer and the table checksums alone: four bytes for every 1 MiB of payload.

use std::io::{self, Write};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use kb_search::{SegmentError, Source};

use crate::error::StoreError;
use crate::storage::{Area, FileName, Object, Storage, Upload};

/// Bytes of payload that one checksum covers: a look at a few bytes costs the hashing of this many.
pub(crate) const PAGE: u64 = 1024;
/// Bytes of page checksums that one checksum covers in turn.
const TABLE: u64 = 4096;
const FOOTER: u64 = 48;
/// Bytes after which those who read or write files from end to end let go of the memory of what is behind them.
pub(crate) const STRETCH: u64 = 8 << 20;
const MAGIC: [u8; 8] = *b"kbpaged\x01";

/// Bytes that are hashed at once.
const HASHED: usize = 1 << 20;

/// What a file is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileKind {
    Pack = 1,
    Segment = 2,
    Dead = 3,
    Retired = 4,
}

/// Bytes that are not what was written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{file}` is damaged at byte {offset}: {detail}")]
pub(crate) struct Damage {
    pub(crate) file: FileName,
    pub(crate) offset: u64,
    pub(crate) detail: String,
}

impl From<Damage> for StoreError {
    fn from(damage: Damage) -> Self {
        Self::Damaged { file: damage.file.to_string(), offset: damage.offset, kbid: None, detail: damage.detail }
    }
}

/// Returns how long the payload of a file of this length is; it follows from that alone.
pub(crate) fn payload_len(total: u64) -> Option<u64> {
    let rest = total.checked_sub(FOOTER)?;
    let tables_of = |len: u64| {
        let pages = len.div_ceil(PAGE);
        pages * 4 + (pages * 4).div_ceil(TABLE) * 4
    };
    // More payload never takes fewer checksums, so the first guess is too long and each next one is nearer.
    let mut len = rest;
    while len + tables_of(len) > rest {
        len = len.checked_sub((len + tables_of(len) - rest).div_ceil(2))?;
    }
    let candidates = len..=rest.min(len + 8);
    candidates.into_iter().find(|&len| len + tables_of(len) == rest)
}

/// Writes a paged file and names it by its hash.
pub(crate) struct PagedWriter {
    upload: io::BufWriter<Box<dyn Upload>>,
    area: Area,
    kind: FileKind,
    version: u32,
    hasher: blake3::Hasher,
    page: crc32fast::Hasher,
    in_page: u64,
    len: u64,
    checksums: Vec<u8>,
}

impl PagedWriter {
    pub(crate) fn create(storage: &dyn Storage, area: Area, kind: FileKind, version: u32) -> Result<Self, StoreError> {
        Ok(Self {
            upload: io::BufWriter::with_capacity(1 << 16, storage.upload(area)?),
            area,
            kind,
            version,
            hasher: blake3::Hasher::new(),
            page: crc32fast::Hasher::new(),
            in_page: 0,
            len: 0,
            checksums: Vec::new(),
        })
    }

    /// Returns the length of the payload so far.
    pub(crate) const fn len(&self) -> u64 {
        self.len
    }

    /// Completes the file and returns its name and length.
    pub(crate) fn finish(mut self, durable: bool) -> Result<(FileName, u64), StoreError> {
        if self.in_page > 0 {
            self.end_page();
        }
        let checksums = std::mem::take(&mut self.checksums);
        let tables: Vec<u8> =
            checksums.chunks(TABLE as usize).flat_map(|table| crc32fast::hash(table).to_le_bytes()).collect();
        let mut footer = Vec::with_capacity(FOOTER as usize);
        footer.extend_from_slice(&MAGIC);
        footer.extend_from_slice(&(self.kind as u32).to_le_bytes());
        footer.extend_from_slice(&self.version.to_le_bytes());
        footer.extend_from_slice(&self.len.to_le_bytes());
        footer.extend_from_slice(&crc32fast::hash(&tables).to_le_bytes());
        footer.resize(FOOTER as usize - 4, 0);
        let checksum = crc32fast::hash(&footer);
        footer.extend_from_slice(&checksum.to_le_bytes());

        let total = self.len + (checksums.len() + tables.len() + footer.len()) as u64;
        let path = std::path::PathBuf::from(match self.area {
            Area::Packs => "packs",
            Area::Index => "index",
        });
        let failed = |source| StoreError::Io { op: "write", path: path.clone(), source };
        for part in [checksums, tables, footer] {
            self.hasher.update(&part);
            self.upload.write_all(&part).map_err(failed)?;
        }
        let mut hash = [0; 16];
        hash.copy_from_slice(&self.hasher.finalize().as_bytes()[..16]);
        let name = FileName { area: self.area, hash };
        let upload = self.upload.into_inner().map_err(|e| failed(e.into_error()))?;
        upload.finish(name, durable)?;
        Ok((name, total))
    }

    fn end_page(&mut self) {
        let checksum = std::mem::take(&mut self.page).finalize();
        self.checksums.extend_from_slice(&checksum.to_le_bytes());
        self.in_page = 0;
    }
}

impl Write for PagedWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.upload.write_all(bytes)?;
        self.hasher.update(bytes);
        let mut rest = bytes;
        while !rest.is_empty() {
            let (now, later) = rest.split_at(rest.len().min((PAGE - self.in_page) as usize));
            self.page.update(now);
            self.in_page += now.len() as u64;
            if self.in_page == PAGE {
                self.end_page();
            }
            rest = later;
        }
        self.len += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.upload.flush()
    }
}

/// A paged file opened to read.
#[derive(Debug)]
pub(crate) struct PagedFile {
    name: FileName,
    version: u32,
    object: Arc<dyn Object>,
    len: u64,
    /// One bit a page, then one bit a table: whether it was verified.
    verified: Vec<AtomicU64>,
}

impl PagedFile {
    /// Opens a file of this kind; `Ok(None)` where there is no such file.
    pub(crate) fn open(storage: &dyn Storage, name: FileName, kind: FileKind) -> Result<Option<Self>, StoreError> {
        let Some(object) = storage.open(name)? else { return Ok(None) };
        Ok(Some(Self::over(object, name, kind)?))
    }

    /// Reads a file that was opened before.
    pub(crate) fn over(object: Arc<dyn Object>, name: FileName, kind: FileKind) -> Result<Self, Damage> {
        let total = object.len();
        let damage = |offset, detail: &str| Damage { file: name, offset, detail: detail.to_owned() };
        let at = total.checked_sub(FOOTER).ok_or_else(|| damage(0, "it is shorter than a footer"))?;
        let footer = object.bytes(at..total).map_err(|e| damage(at, &e.to_string()))?;
        let u32_at = |i: usize| u32::from_le_bytes([footer[i], footer[i + 1], footer[i + 2], footer[i + 3]]);
        if crc32fast::hash(&footer[..FOOTER as usize - 4]) != u32_at(FOOTER as usize - 4) || footer[..8] != MAGIC {
            return Err(damage(at, "the footer does not match its checksum"));
        }
        if u32_at(8) != kind as u32 {
            return Err(damage(at + 8, "it is a file of another kind"));
        }
        let len = u64::from(u32_at(16)) | u64::from(u32_at(20)) << 32;
        let pages = len.div_ceil(PAGE);
        let tables = (pages * 4).div_ceil(TABLE);
        if Some(total) != len.checked_add(pages * 4 + tables * 4 + FOOTER) {
            return Err(damage(at + 16, "its length is not what the footer says"));
        }
        let roots = object.bytes(at - tables * 4..at).map_err(|e| damage(at - tables * 4, &e.to_string()))?;
        if crc32fast::hash(roots) != u32_at(24) {
            return Err(damage(at - tables * 4, "the table checksums do not match the footer"));
        }
        let verified = (0..(pages + tables).div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        Ok(Self { name, version: u32_at(12), object, len, verified })
    }

    pub(crate) const fn version(&self) -> u32 {
        self.version
    }

    pub(crate) const fn len(&self) -> u64 {
        self.len
    }

    /// Returns these bytes of the payload, verified.
    pub(crate) fn read(&self, range: Range<u64>) -> Result<&[u8], Damage> {
        if range.start > range.end || range.end > self.len {
            return Err(self.damage(range.start, "a reference leads beyond the end"));
        }
        if range.start < range.end {
            for page in range.start / PAGE..=(range.end - 1) / PAGE {
                self.verify_page(page)?;
            }
        }
        self.raw(range)
    }

    /// Returns these bytes unverified, for salvage: the caller must hold them against something.
    pub(crate) fn raw(&self, range: Range<u64>) -> Result<&[u8], Damage> {
        let start = range.start;
        self.object.bytes(range).map_err(|e| self.damage(start, e.to_string()))
    }

    /// Verifies every page, and where all are right that the file is the one of this name. Returns what is wrong.
    pub(crate) fn verify(&self) -> Vec<Damage> {
        if self.is_another() {
            return vec![self.damage(0, "it is another file than its name says")];
        }
        self.verify_pages()
    }

    /// Says whether every page is right, but of another file than the one of this name.
    pub(crate) fn is_another(&self) -> bool {
        self.verify_pages().is_empty() && !self.is_named_right()
    }

    fn verify_pages(&self) -> Vec<Damage> {
        let mut sweep = self.sweep();
        let pages = self.len.div_ceil(PAGE);
        let verify = |page| {
            sweep.reach(page * PAGE);
            self.verify_page(page).err()
        };
        (0..pages).filter_map(verify).collect()
    }

    /// Says whether the name is the hash of the bytes.
    fn is_named_right(&self) -> bool {
        let mut sweep = self.sweep();
        let mut hasher = blake3::Hasher::new();
        let total = self.object.len();
        for start in (0..total).step_by(HASHED) {
            sweep.reach(start);
            let Ok(bytes) = self.raw(start..total.min(start + HASHED as u64)) else { return false };
            hasher.update(bytes);
        }
        hasher.finalize().as_bytes()[..16] == self.name.hash
    }

    /// Begins to read the file from end to end.
    pub(crate) const fn sweep(&self) -> Sweep<'_> {
        Sweep { file: self, released: 0 }
    }

    /// Lets go of the memory of what was read so far.
    pub(crate) fn release(&self) {
        self.object.release();
    }

    pub(crate) fn damage(&self, offset: u64, detail: impl Into<String>) -> Damage {
        Damage { file: self.name, offset, detail: detail.into() }
    }

    fn verify_page(&self, page: u64) -> Result<(), Damage> {
        if self.is_verified(page) {
            return Ok(());
        }
        let pages = self.len.div_ceil(PAGE);
        let table = page * 4 / TABLE;
        let checksums = self.len + table * TABLE..self.len + ((table + 1) * TABLE).min(pages * 4);
        let table_bytes = self.raw(checksums.clone())?;
        if !self.is_verified(pages + table) {
            let root = self.len + pages * 4 + table * 4;
            if self.raw(root..root + 4)? != crc32fast::hash(table_bytes).to_le_bytes() {
                return Err(self.damage(checksums.start, "a table of page checksums does not match its checksum"));
            }
            self.set_verified(pages + table);
        }
        let at = (page * 4 % TABLE) as usize;
        let bytes = self.raw(page * PAGE..((page + 1) * PAGE).min(self.len))?;
        if crc32fast::hash(bytes).to_le_bytes() != table_bytes[at..at + 4] {
            return Err(self.damage(page * PAGE, "a page does not match its checksum"));
        }
        self.set_verified(page);
        Ok(())
    }

    fn is_verified(&self, bit: u64) -> bool {
        self.verified[(bit / 64) as usize].load(Ordering::Relaxed) >> (bit % 64) & 1 == 1
    }

    fn set_verified(&self, bit: u64) {
        self.verified[(bit / 64) as usize].fetch_or(1 << (bit % 64), Ordering::Relaxed);
    }
}

/// Reads of a file from end to end, which keep no more than a stretch of it in memory.
pub(crate) struct Sweep<'f> {
    file: &'f PagedFile,
    released: u64,
}

impl Sweep<'_> {
    /// Says how far the reading has come.
    pub(crate) fn reach(&mut self, offset: u64) {
        if offset.saturating_sub(self.released) >= STRETCH {
            self.file.release();
            self.released = offset;
        }
    }
}

impl Drop for Sweep<'_> {
    fn drop(&mut self) {
        self.file.release();
    }
}

impl Source for PagedFile {
    fn len(&self) -> u64 {
        self.len
    }

    fn read(&self, range: Range<u64>) -> Result<&[u8], SegmentError> {
        Self::read(self, range.clone()).map_err(|damage| SegmentError::Unreadable { range, reason: damage.to_string() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::{Disk, LocalStorage};

    #[derive(Debug)]
    struct Flipped(Vec<u8>);

    impl Object for Flipped {
        fn len(&self) -> u64 {
            self.0.len() as u64
        }

        fn bytes(&self, range: Range<u64>) -> io::Result<&[u8]> {
            self.0.get(range.start as usize..range.end as usize).ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
        }
    }

    fn written(payload: &[u8]) -> (FileName, Vec<u8>) {
        let dir = tempfile::tempdir().expect("a folder for the test");
        let storage = LocalStorage::new(Disk, dir.path().join("kb"));
        storage.create_directories().expect("the folder is writable");
        let mut writer = PagedWriter::create(&storage, Area::Packs, FileKind::Pack, 1).expect("created");
        writer.write_all(payload).expect("written");
        let (name, _) = writer.finish(true).expect("finished");
        let bytes = std::fs::read(dir.path().join("kb").join(name.to_string())).expect("it is there");
        (name, bytes)
    }

    fn open(name: FileName, bytes: &[u8]) -> Result<PagedFile, Damage> {
        PagedFile::over(Arc::new(Flipped(bytes.to_vec())), name, FileKind::Pack)
    }

    #[test]
    fn every_flipped_bit_is_found_where_it_is_or_at_what_covers_it() {
        let payload: Vec<u8> = (0..9000_u32).map(|i| ((i * 31) >> 3) as u8).collect();
        let (name, bytes) = written(&payload);
        assert_eq!(open(name, &bytes).expect("whole").read(0..9000).expect("whole"), payload);
        for at in (0..bytes.len()).step_by(7).chain(9000..bytes.len()) {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << (at % 8);
            let offset = match open(name, &flipped) {
                Err(damage) => damage.offset,
                Ok(file) => {
                    let damage = file.verify();
                    assert!(!damage.is_empty(), "the flip at {at} went unseen");
                    assert!(file.read(0..9000).is_err());
                    damage[0].offset
                }
            };
            if at < 9000 {
                assert_eq!(offset, at as u64 / PAGE * PAGE);
            }
        }
    }

    #[test]
    fn what_was_let_go_of_can_be_read_again() {
        let payload: Vec<u8> = (0..2 * STRETCH as u32 / 4 + 99).flat_map(|i| (i * 31).to_le_bytes()).collect();
        let dir = tempfile::tempdir().expect("a folder for the test");
        let storage = LocalStorage::new(Disk, dir.path().join("kb"));
        storage.create_directories().expect("the folder is writable");
        let mut writer = PagedWriter::create(&storage, Area::Packs, FileKind::Pack, 1).expect("created");
        writer.write_all(&payload).expect("written");
        let (name, _) = writer.finish(false).expect("finished");
        let file = PagedFile::open(&storage, name, FileKind::Pack).expect("readable").expect("it is there");
        let before = file.read(0..file.len()).expect("whole");
        file.release();
        assert_eq!(file.verify(), []);
        assert!(before == payload && file.read(0..file.len()).expect("whole") == payload);
    }

    #[test]
    fn the_length_of_a_file_tells_that_of_its_payload() {
        for len in (0..20_000).chain(1_044_000..1_054_000).chain([1 << 40, (1 << 40) + 1]) {
            let pages = u64::div_ceil(len, PAGE);
            let total = len + pages * 4 + (pages * 4).div_ceil(TABLE) * 4 + FOOTER;
            assert_eq!(payload_len(total), Some(len));
        }
        assert_eq!(payload_len(FOOTER - 1), None);
    }

    #[test]
    fn a_torn_file_is_refused() {
        let (name, bytes) = written(&[7; 5000]);
        for len in [0, 1, 47, 48, 4096, bytes.len() - 1] {
            assert!(open(name, &bytes[..len]).is_err(), "{len}");
        }
        let empty = written(&[]);
        assert!(open(empty.0, &empty.1).expect("an empty payload is one").read(0..0).is_ok());
    }
}
