//! Packing: objects that lie in files of their own, and small packs, become one pack.
//!
//! A commit into a folder of ten thousand documents writes its list of names anew, some 250 KB; in a pack it is a few
//! bytes, as a delta of the one before.
//!
//! **Invariant:** every object that was there is there afterwards, reachable or not. A file is removed only after each of
//! its objects was read back from the new pack, and that is durable.

use std::io::Write;
use std::path::{Path, PathBuf};

use gix::objs::Kind;
use gix::zlib::Compression;
use gix::zlib::stream::deflate;
use gix::{ObjectId, Repository as Gix};

use super::super::Result;
use super::super::error::ProjectError;
use super::delta::Base;
use super::gix::GitContext;
use crate::error::IoContext;
use crate::storage::{Disk, Fs};

/// Files are packed from so many on,
const MOST_FILES: usize = 1_000;
/// or from so many bytes.
const MOST_BYTES: u64 = 16 << 20;
/// Packs smaller than this are packed again, from [`MOST_PACKS`] on.
const SMALL_PACK: u64 = 64 << 20;
const MOST_PACKS: usize = 10;
/// Objects that another may be a delta of.
const WINDOW: usize = 6;
/// The longest chain of deltas.
const DEPTH: u8 = 20;
/// An object longer than this is compressed as it is, and none is made from it.
const MAX_DELTA: u64 = 8 << 20;

/// Packs what lies about, if it is enough.
pub(super) fn pack(repo: &Gix) -> Result<()> {
    let objects = repo.objects.store_ref().path().to_owned();
    let loose = loose_objects(&objects, repo.object_hash())?;
    let bytes: u64 = loose.iter().map(|(_, path)| path.metadata().map_or(0, |metadata| metadata.len())).sum();
    if loose.len() < MOST_FILES && bytes < MOST_BYTES {
        return Ok(());
    }
    let mut ids: Vec<ObjectId> = loose.iter().map(|(id, _)| *id).collect();
    let mut files: Vec<PathBuf> = loose.into_iter().map(|(_, path)| path).collect();
    let small = small_packs(&objects)?;
    if small.len() >= MOST_PACKS {
        for index in &small {
            let file = gix::odb::pack::index::File::at(index, repo.object_hash()).git("read a pack")?;
            ids.extend(file.iter().map(|entry| entry.oid));
            files.extend([index.clone(), index.with_extension("pack"), index.with_extension("rev")]);
        }
    }
    ids.sort_unstable();
    ids.dedup();
    let kept = write(repo, &objects.join("pack"), &ids)?;
    verify(repo, &kept, &ids)?;
    for file in files.iter().filter(|file| file.with_extension("idx") != kept) {
        // What the system will not remove is there twice, which harms nothing.
        let _ = Disk.remove(file);
    }
    Ok(())
}

fn loose_objects(objects: &Path, kind: gix::hash::Kind) -> Result<Vec<(ObjectId, PathBuf)>> {
    let mut found = Vec::new();
    for first in 0..=u8::MAX {
        let folder = objects.join(format!("{first:02x}"));
        for entry in std::fs::read_dir(&folder).into_iter().flatten() {
            let path = entry.io("list", &folder)?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if name.len() == kind.len_in_hex() - 2
                && let Ok(id) = ObjectId::from_hex(format!("{first:02x}{name}").as_bytes())
            {
                found.push((id, path));
            }
        }
    }
    Ok(found)
}

/// Returns the indexes of packs that may be packed again: small, and with nothing beside them that says otherwise.
fn small_packs(objects: &Path) -> Result<Vec<PathBuf>> {
    let folder = objects.join("pack");
    let mut found = Vec::new();
    for entry in std::fs::read_dir(&folder).io("list", &folder)? {
        let path = entry.io("list", &folder)?.path();
        let is_kept = ["keep", "promisor", "bitmap", "mtimes"].iter().any(|end| path.with_extension(end).exists());
        let is_small = path.with_extension("pack").metadata().is_ok_and(|metadata| metadata.len() < SMALL_PACK);
        if path.extension().is_some_and(|end| end == "idx") && is_small && !is_kept {
            found.push(path);
        }
    }
    // What a list over several packs names must stay.
    Ok(if folder.join("multi-pack-index").exists() { Vec::new() } else { found })
}

/// An object in the window.
struct Packed {
    kind: Kind,
    data: Vec<u8>,
    offset: u64,
    depth: u8,
}

/// Writes a pack of these objects with its index, durably. Returns the path of the index.
fn write(repo: &Gix, folder: &Path, ids: &[ObjectId]) -> Result<PathBuf> {
    let mut order = Vec::with_capacity(ids.len());
    for &id in ids {
        let header = repo.find_header(id).git("read an object")?;
        order.push((header.kind(), std::cmp::Reverse(header.size()), id));
    }
    // Objects of one kind and about one length are versions of each other more often than not; the longest first.
    order.sort_unstable_by_key(|&(kind, size, id)| (kind as u8, size, id));
    let mut pack = [&b"PACK"[..], &2_u32.to_be_bytes(), &(ids.len() as u32).to_be_bytes()].concat();
    let mut entries: Vec<(ObjectId, u32, u64)> = Vec::with_capacity(ids.len());
    let mut window: Vec<Packed> = Vec::new();
    for (kind, std::cmp::Reverse(size), id) in order {
        let data = repo.find_object(id).git("read an object")?.detach().data;
        let offset = pack.len() as u64;
        let mut best: Option<(Vec<u8>, u64, u8)> = None;
        for other in window.iter().filter(|other| other.kind == kind && other.depth < DEPTH && size <= MAX_DELTA) {
            let limit = best.as_ref().map_or(data.len() / 2, |(delta, ..)| delta.len());
            if let Some(delta) = Base::new(&other.data).delta(&data, limit) {
                best = Some((delta, other.offset, other.depth + 1));
            }
        }
        let depth = best.as_ref().map_or(0, |(_, _, depth)| *depth);
        if let Some((delta, base, _)) = &best {
            put_head(&mut pack, 6, delta.len());
            put_distance(&mut pack, offset - base);
            deflate(&mut pack, delta)?;
        } else {
            put_head(&mut pack, type_number(kind), data.len());
            deflate(&mut pack, &data)?;
        }
        entries.push((id, crc32fast::hash(&pack[offset as usize..]), offset));
        if size <= MAX_DELTA {
            window.push(Packed { kind, data, offset, depth });
        }
        if window.len() > WINDOW {
            window.remove(0);
        }
    }
    if pack.len() > i32::MAX as usize {
        return Err(ProjectError::Git { op: "pack objects", detail: "they are over 2 GB".to_owned() });
    }
    let checksum = hash(repo, &pack)?;
    pack.extend_from_slice(checksum.as_slice());
    entries.sort_unstable();
    let index = index_of(repo, &entries, checksum)?;
    std::fs::create_dir_all(folder).io("create", folder)?;
    let path = folder.join(format!("pack-{checksum}.idx"));
    // The pack is there before its index, without which nobody looks at it.
    super::super::home::replace(&path.with_extension("pack"), &pack)?;
    super::super::home::replace(&path, &index)?;
    Disk.sync_dir(folder).io("sync", folder)?;
    Ok(path)
}

/// Reads every object from the pack and checks that it is the one of its name.
fn verify(repo: &Gix, index: &Path, ids: &[ObjectId]) -> Result<()> {
    let bundle = gix::odb::pack::Bundle::at(index, repo.object_hash()).git("read the new pack")?;
    let (mut data, mut inflate) = (Vec::new(), gix::zlib::Inflate::default());
    for id in ids {
        let found =
            bundle.find(id, &mut data, &mut inflate, &mut gix::odb::pack::cache::Never).git("read the new pack")?;
        let is_whole = match found {
            Some((object, _)) => {
                gix::objs::compute_hash(repo.object_hash(), object.kind, object.data).git("hash an object")? == *id
            }
            None => false,
        };
        if !is_whole {
            return Err(ProjectError::Git { op: "pack objects", detail: format!("{id} is not read back") });
        }
    }
    Ok(())
}

/// Returns the index of a pack, version 2.
fn index_of(repo: &Gix, entries: &[(ObjectId, u32, u64)], checksum: ObjectId) -> Result<Vec<u8>> {
    let mut index = [&[0xff, b't', b'O', b'c'][..], &2_u32.to_be_bytes()].concat();
    for first in 0..=u8::MAX {
        let count = entries.partition_point(|(id, ..)| id.as_slice()[0] <= first) as u32;
        index.extend_from_slice(&count.to_be_bytes());
    }
    index.extend(entries.iter().flat_map(|(id, ..)| id.as_slice()));
    index.extend(entries.iter().flat_map(|(_, crc, _)| crc.to_be_bytes()));
    index.extend(entries.iter().flat_map(|(.., offset)| (*offset as u32).to_be_bytes()));
    index.extend_from_slice(checksum.as_slice());
    let own = hash(repo, &index)?;
    index.extend_from_slice(own.as_slice());
    Ok(index)
}

fn hash(repo: &Gix, bytes: &[u8]) -> Result<ObjectId> {
    let mut hasher = gix::hash::hasher(repo.object_hash());
    hasher.update(bytes);
    hasher.try_finalize().git("hash a pack")
}

const fn type_number(kind: Kind) -> u8 {
    match kind {
        Kind::Commit => 1,
        Kind::Tree => 2,
        Kind::Blob => 3,
        Kind::Tag => 4,
    }
}

/// Writes type and length: four bits of it, then seven a byte.
fn put_head(out: &mut Vec<u8>, number: u8, len: usize) {
    let mut byte = number << 4 | (len & 0x0f) as u8;
    let mut rest = len >> 4;
    while rest > 0 {
        out.push(byte | 0x80);
        byte = (rest & 0x7f) as u8;
        rest >>= 7;
    }
    out.push(byte);
}

/// Writes how far back the base of a delta is.
fn put_distance(out: &mut Vec<u8>, mut distance: u64) {
    let mut bytes = vec![(distance & 0x7f) as u8];
    distance >>= 7;
    while distance > 0 {
        distance -= 1;
        bytes.push((distance & 0x7f) as u8 | 0x80);
        distance >>= 7;
    }
    out.extend(bytes.into_iter().rev());
}

fn deflate(out: &mut Vec<u8>, bytes: &[u8]) -> Result<()> {
    let mut writer = deflate::Write::new(out, Compression::default());
    writer.write_all(bytes).and_then(|()| writer.flush()).git("compress an object")
}
