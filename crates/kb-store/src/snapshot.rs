//! The database as of one commit.
//!
//! **Invariant:** a snapshot never changes; everything it answers is of its generation. Of records with one key the
//! newest counts, and a tombstone hides all that is older.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use kb_core::{DocId, MediaType, SectionId};

use crate::error::StoreError;
use crate::head::Head;
use crate::index::Index;
use crate::manifest::Manifest;
use crate::pack::{Block, Entry, Pack};
use crate::paged::Damage;
use crate::record::{Key, Kind, Record};
use crate::storage::{FileName, Storage};

type Result<T> = std::result::Result<T, StoreError>;

/// Unpacked blocks that were read last, shared by all snapshots of a handle.
#[derive(Debug, Default)]
pub(crate) struct BlockCache {
    blocks: Mutex<VecDeque<([u8; 16], u32, Block)>>,
}

const CACHED_BLOCKS: usize = 48;
/// Documents after which a walk over all of them lets go of the memory of what it read.
const RELEASED: usize = 4096;

impl BlockCache {
    pub(crate) fn len(&self) -> usize {
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    fn get(&self, pack: &Pack, number: u32) -> std::result::Result<Block, Damage> {
        let hash = pack.name().hash;
        {
            let mut blocks = self.blocks.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(i) = blocks.iter().position(|(h, n, _)| *n == number && *h == hash) {
                let found = blocks.remove(i).expect("it was found there");
                let block = Arc::clone(&found.2);
                blocks.push_back(found);
                return Ok(block);
            }
        }
        let block = pack.block(number)?;
        let mut blocks = self.blocks.lock().unwrap_or_else(PoisonError::into_inner);
        if blocks.len() >= CACHED_BLOCKS {
            blocks.pop_front();
        }
        blocks.push_back((hash, number, Arc::clone(&block)));
        Ok(block)
    }
}

/// Where a record lies: which pack of the snapshot, and where in it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub(crate) pack: usize,
    pub(crate) entry: Entry,
}

/// The database as of one commit.
#[derive(Debug)]
pub(crate) struct Snapshot {
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) head: Head,
    pub(crate) head_bytes: Vec<u8>,
    /// This version may write to the base.
    pub(crate) writable: bool,
    /// The newest first.
    pub(crate) packs: Vec<Arc<Pack>>,
    /// Packs that the head names and the storage has not.
    pub(crate) missing: Vec<FileName>,
    pub(crate) cache: Arc<BlockCache>,
    pub(crate) index: OnceLock<Index>,
}

impl Snapshot {
    /// Returns where the newest record of a key lies, be it a tombstone.
    pub(crate) fn find(&self, kind: Kind, key: &Key) -> Option<Place> {
        self.packs.iter().enumerate().find_map(|(pack, p)| p.find(kind, key).map(|entry| Place { pack, entry }))
    }

    /// Says whether a readable record of this key is there.
    pub(crate) fn has(&self, kind: Kind, key: &Key) -> bool {
        self.find(kind, key).is_some_and(|place| !place.entry.tombstone)
    }

    pub(crate) fn read(&self, place: &Place) -> std::result::Result<Record, Damage> {
        let pack = &self.packs[place.pack];
        pack.record_in(&place.entry, &self.cache.get(pack, place.entry.block))
    }

    /// Returns all records of a key down to its newest tombstone, the newest first.
    pub(crate) fn all(&self, kind: Kind, key: &Key) -> Vec<Place> {
        let mut places = Vec::new();
        for (pack, p) in self.packs.iter().enumerate() {
            for entry in p.find_all(kind, key) {
                if entry.tombstone {
                    return places;
                }
                places.push(Place { pack, entry });
            }
        }
        places
    }

    /// Returns the current records of a kind in the order in which they lie, which is the cheapest to read them in.
    pub(crate) fn current(&self, kind: Kind) -> Vec<Place> {
        let mut places: Vec<Place> = self
            .groups(kind)
            .filter_map(|group| group.into_iter().next())
            .filter(|place| !place.entry.tombstone)
            .collect();
        places.sort_by_key(|place| (place.pack, place.entry.block, place.entry.offset));
        places
    }

    /// Walks the keys of a kind in order, with all records of each, the newest first, tombstones included.
    pub(crate) fn groups(&self, kind: Kind) -> impl Iterator<Item = Vec<Place>> + '_ {
        let mut walks: Vec<_> = self.packs.iter().map(|pack| pack.entries(kind).peekable()).collect();
        std::iter::from_fn(move || {
            let key = walks.iter_mut().filter_map(|walk| walk.peek().map(|entry| entry.key)).min()?;
            let mut group = Vec::new();
            for (pack, walk) in walks.iter_mut().enumerate() {
                while let Some(entry) = walk.next_if(|entry| entry.key == key) {
                    group.push(Place { pack, entry });
                }
            }
            Some(group)
        })
    }

    pub(crate) fn manifest_at(&self, place: &Place) -> Result<Manifest> {
        let record = self.read(place)?;
        Manifest::decode(&record.payload).map_err(|malformed| StoreError::Damaged {
            file: self.packs[place.pack].name().to_string(),
            offset: 0,
            kbid: None,
            detail: format!("a manifest is {malformed}"),
        })
    }

    /// Returns the current revision of a document.
    pub(crate) fn manifest(&self, docid: &DocId) -> Result<Option<Manifest>> {
        match self.find(Kind::MANIFEST, &Manifest::key(docid)) {
            Some(place) if place.entry.tombstone => Ok(None),
            Some(place) => self.manifest_at(&place).map(Some),
            None => self.absent(),
        }
    }

    /// Returns the newest revision of a document that can be read, numbered as the newest there is.
    pub(crate) fn readable_manifest(&self, docid: &DocId) -> Result<Option<Manifest>> {
        for (lost, place) in (0..).zip(self.all(Kind::MANIFEST, &Manifest::key(docid))) {
            if let Some(mut manifest) = readable(self.manifest_at(&place))? {
                manifest.revision += lost;
                return Ok(Some(manifest));
            }
        }
        Ok(None)
    }

    /// Returns the kept revisions of a document with their generations, the newest first. A damaged one is left out,
    /// but for the newest.
    pub(crate) fn revisions(&self, docid: &DocId) -> Result<Vec<(u64, Manifest)>> {
        let mut revisions = Vec::new();
        for (i, place) in self.all(Kind::MANIFEST, &Manifest::key(docid)).iter().enumerate() {
            let manifest = match self.manifest_at(place) {
                Err(StoreError::Damaged { .. }) if i > 0 => continue,
                other => other?,
            };
            revisions.push((self.read(place)?.generation, manifest));
        }
        Ok(revisions)
    }

    /// Calls `each` with every current manifest that can be read, in no particular order: `check` names the others.
    pub(crate) fn each_manifest(&self, mut each: impl FnMut(Manifest) -> Result<()>) -> Result<()> {
        for place in self.current(Kind::MANIFEST) {
            if let Some(manifest) = readable(self.manifest_at(&place))? {
                each(manifest)?;
            }
        }
        Ok(())
    }

    /// Returns media type and bytes of a readable section.
    pub(crate) fn section(&self, id: SectionId) -> Result<Option<(MediaType, Vec<u8>)>> {
        let mut damage = None;
        let places = self.all(Kind::SECTION, &id.to_bytes());
        // Every copy of a section is the same bytes: where the newest is damaged, an older one serves.
        for place in &places {
            match self.read(place) {
                Ok(record) => {
                    let (media_type, bytes) = record.as_section().expect("its hash was verified");
                    return Ok(Some((media_type, bytes.to_vec())));
                }
                Err(d) => damage = damage.or(Some(d)),
            }
        }
        match damage {
            Some(Damage { file, offset, detail }) => {
                Err(StoreError::Damaged { file: file.to_string(), offset, kbid: Some(id), detail })
            }
            None => self.absent(),
        }
    }

    /// Says whether no other section has a kbid with the same first half.
    pub(crate) fn is_told_by_half(&self, id: SectionId) -> bool {
        let key = id.to_bytes();
        let mut from = [0; 16];
        from[..8].copy_from_slice(&key[..8]);
        let mut alike = self.packs.iter().flat_map(|pack| {
            pack.from((Kind::SECTION, from)).take_while(|e| e.kind == Kind::SECTION && e.key[..8] == key[..8])
        });
        self.missing.is_empty() && alike.all(|entry| entry.key == key)
    }

    /// Lets go of the memory of what was read of the packs, now and then. A walk over all documents says for each how
    /// many came before it.
    pub(crate) fn release_after(&self, documents: usize) {
        if documents.is_multiple_of(RELEASED) {
            self.packs.iter().for_each(|pack| pack.release());
        }
    }

    /// Says whether a pack is gone or damaged. Reads every byte of the packs.
    pub(crate) fn is_hurt(&self) -> bool {
        !self.missing.is_empty() || self.packs.iter().any(|pack| !pack.is_whole())
    }

    /// Nothing was found: true if every pack could be looked into.
    fn absent<T>(&self) -> Result<Option<T>> {
        match self.missing.first() {
            None => Ok(None),
            Some(name) => Err(StoreError::Damaged {
                file: name.to_string(),
                offset: 0,
                kbid: None,
                detail: "the file is gone; what was asked for may have been in it".to_owned(),
            }),
        }
    }

    /// Returns a document's bytes: its sections in order.
    pub(crate) fn document_bytes(&self, manifest: &Manifest) -> Result<Vec<u8>> {
        let mut bytes = Vec::with_capacity(manifest.source_bytes() as usize);
        for section in &manifest.sections {
            match self.section(section.kbid)? {
                Some((_, content)) => bytes.extend_from_slice(&content),
                None => return Err(StoreError::SectionNotFound { id: section.kbid.to_string() }),
            }
        }
        Ok(bytes)
    }
}

/// Turns damage into nothing: for those who go on with what is left.
pub(crate) fn readable<T>(result: Result<T>) -> Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(StoreError::Damaged { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Packs that are open, by hash, so that the next snapshot need not open them again.
pub(crate) type OpenPacks = HashMap<[u8; 16], Arc<Pack>>;
