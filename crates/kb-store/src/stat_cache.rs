//! What is known of source files between runs, so that unchanged ones are not read again.
//!
//! **Invariant:** a file is taken as unchanged only if length, times and inode are those of when it was last read, and
//! it was already older then than the resolution of its file system's clock: an edit within the same tick would leave
//! the times alike (the "racy" entries of Git's index). A cache that is missing, torn or of another base is empty.

use std::fs::Metadata;
use std::path::{Path, PathBuf};

use kb_core::DocId;
use rustc_hash::FxHashMap;

use crate::codec::{Malformed, Put, Reader};

const MAGIC: [u8; 8] = *b"kbstat\0\x01";
/// An edit this soon after a look may leave the time as it was: the kernel's tick, with room.
const TICK_NANOS: i64 = 50_000_000;
/// The same where times are whole seconds, or two of them as on FAT.
const COARSE_NANOS: i64 = 2_100_000_000;

/// What tells one state of a file from another without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    len: u64,
    modified: i64,
    changed: i64,
    inode: u64,
}

impl Stamp {
    pub(crate) fn of(metadata: &Metadata) -> Self {
        let (changed, inode) = change_and_inode(metadata);
        Self { len: metadata.len(), modified: crate::walk::modified(metadata), changed, inode }
    }

    pub(crate) fn put(&self, bytes: &mut Vec<u8>) {
        bytes.put_varint(self.len);
        bytes.put_signed(self.modified);
        bytes.put_signed(self.changed);
        bytes.put_varint(self.inode);
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            len: reader.varint()?,
            modified: reader.signed()?,
            changed: reader.signed()?,
            inode: reader.varint()?,
        })
    }

    /// Says whether an edit after `now` must show in the times.
    pub(crate) fn is_settled(&self, now: i64) -> bool {
        let is_coarse = self.modified % 1_000_000_000 == 0;
        let margin = if is_coarse { COARSE_NANOS } else { TICK_NANOS };
        self.modified.max(self.changed).saturating_add(margin) < now
    }
}

#[cfg(unix)]
fn change_and_inode(metadata: &Metadata) -> (i64, u64) {
    use std::os::unix::fs::MetadataExt;
    (metadata.ctime().wrapping_mul(1_000_000_000).wrapping_add(metadata.ctime_nsec()), metadata.ino())
}

#[cfg(not(unix))]
fn change_and_inode(_metadata: &Metadata) -> (i64, u64) {
    (0, 0)
}

/// What a file became when it was last read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Known {
    pub(crate) stamp: Stamp,
    pub(crate) docid: DocId,
    /// The manifest's hash of all that was given.
    pub(crate) inputs: [u8; 16],
}

/// The files of one root.
#[derive(Debug, Default)]
pub(crate) struct StatCache {
    path: Option<PathBuf>,
    known: FxHashMap<String, Known>,
    next: Vec<(String, Known)>,
}

impl StatCache {
    /// Opens the cache of a root of a base. `given` are the arguments that shape what is learned.
    pub(crate) fn open(folder: Option<&Path>, base: [u8; 16], root: &str, given: &[u8]) -> Self {
        let Some(folder) = folder else { return Self::default() };
        let mut hasher = blake3::Hasher::new();
        for part in [&base[..], root.as_bytes(), given] {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        let path = folder.join(format!("sources-{}", &hasher.finalize().to_hex()[..32]));
        let known = std::fs::read(&path).ok().and_then(|bytes| decode(&bytes).ok()).unwrap_or_default();
        Self { path: Some(path), known, next: Vec::new() }
    }

    /// Returns what a file became when it was last read, if it cannot have changed since.
    pub(crate) fn unchanged(&self, name: &str, stamp: &Stamp) -> Option<&Known> {
        self.known.get(name).filter(|known| known.stamp == *stamp)
    }

    /// Notes a file whose stamp was taken before it was read. `now` is the time, in nanoseconds since 1970, of before
    /// that.
    pub(crate) fn note(&mut self, name: &str, known: Known, now: i64) {
        if self.path.is_some() && known.stamp.is_settled(now) {
            self.next.push((name.to_owned(), known));
        }
    }

    /// Keeps a file that was taken as unchanged.
    pub(crate) fn keep(&mut self, name: &str, known: Known) {
        self.next.push((name.to_owned(), known));
    }

    /// Writes the cache. It only saves time, so what cannot be written is left.
    pub(crate) fn save(self) {
        let Some(path) = self.path else { return };
        let unchanged = self.next.len() == self.known.len()
            && self.next.iter().all(|(name, known)| self.known.get(name) == Some(known));
        if unchanged {
            return;
        }
        let bytes = encode(&self.next);
        let folder = path.parent().unwrap_or(Path::new("."));
        let temporary = path.with_extension(std::process::id().to_string());
        #[expect(clippy::disallowed_methods, reason = "a cache outside the database, which may be lost")]
        let _ = std::fs::create_dir_all(folder)
            .and_then(|()| std::fs::write(&temporary, bytes))
            .and_then(|()| std::fs::rename(&temporary, &path));
    }
}

fn encode(entries: &[(String, Known)]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(entries.len() * 96);
    bytes.extend_from_slice(&MAGIC);
    bytes.put_varint(entries.len() as u64);
    for (name, known) in entries {
        bytes.put_text(name);
        known.stamp.put(&mut bytes);
        bytes.put_text(known.docid.as_str());
        bytes.extend_from_slice(&known.inputs);
    }
    let checksum = crc32fast::hash(&bytes);
    bytes.extend_from_slice(&checksum.to_le_bytes());
    bytes
}

fn decode(bytes: &[u8]) -> Result<FxHashMap<String, Known>, Malformed> {
    let mut reader = Reader::new(bytes);
    let end = bytes.len().checked_sub(4).ok_or(reader.malformed("it is too short"))?;
    if bytes[end..] != crc32fast::hash(&bytes[..end]).to_le_bytes() || reader.array()? != MAGIC {
        return Err(reader.malformed("it does not match its checksum"));
    }
    let mut known = FxHashMap::default();
    for _ in 0..reader.count(22)? {
        let name = reader.text()?.to_owned();
        let stamp = Stamp::read(&mut reader)?;
        let docid = reader.text()?.parse().map_err(|_| reader.malformed("no docid"))?;
        known.insert(name, Known { stamp, docid, inputs: reader.array()? });
    }
    Ok(known)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(modified: i64) -> Known {
        let stamp = Stamp { len: 3, modified, changed: modified, inode: 9 };
        Known { stamp, docid: "a".parse().expect("a docid"), inputs: [7; 16] }
    }

    #[test]
    fn what_is_saved_is_known_the_next_time() {
        let dir = tempfile::tempdir().expect("a folder for the test");
        let mut cache = StatCache::open(Some(dir.path()), [1; 16], "docs", b"");
        cache.note("docs/a.md", known(1), 1_000_000_000_000);
        cache.save();
        let cache = StatCache::open(Some(dir.path()), [1; 16], "docs", b"");
        assert_eq!(cache.unchanged("docs/a.md", &known(1).stamp), Some(&known(1)));
        assert_eq!(cache.unchanged("docs/a.md", &known(2).stamp), None);
        let other = StatCache::open(Some(dir.path()), [2; 16], "docs", b"");
        assert_eq!(other.unchanged("docs/a.md", &known(1).stamp), None);
    }

    #[test]
    fn a_file_edited_within_the_tick_of_its_reading_is_read_again() {
        let dir = tempfile::tempdir().expect("a folder for the test");
        let now = 1_700_000_000_123_456_789;
        for (modified, is_kept) in [(now - TICK_NANOS - 1, true), (now - 1_000, false), (now + 5, false)] {
            let mut cache = StatCache::open(Some(dir.path()), [1; 16], &modified.to_string(), b"");
            cache.note("a", known(modified), now);
            assert_eq!(cache.next.len(), usize::from(is_kept), "{modified}");
        }
    }

    #[test]
    fn damage_makes_a_cache_empty_and_no_more() {
        let bytes = encode(&[("a".to_owned(), known(5))]);
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(decode(&flipped).is_err(), "bit {bit}");
        }
    }
}
