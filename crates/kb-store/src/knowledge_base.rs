//! `KnowledgeBase`: a database in a directory, with one method an operation.
//!
//! This file opens databases, takes snapshots and commits. The operations stand in the files named for them, each in
//! an `impl KnowledgeBase` of its own.
//!
//! **Invariant:** an operation reads one snapshot from beginning to end. A commit runs under the writers' lock on the
//! newest head, and its result is returned only once it is durable.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use kb_core::Timestamp;
use kb_search::Analyzer;

use crate::commit::Txn;
use crate::error::{IoContext, LockHolder, StoreError};
use crate::head::{FORMAT, Head, HeadError};
use crate::pack::{Pack, PackRef};
use crate::request::Options;
use crate::snapshot::{BlockCache, OpenPacks, Snapshot};
use crate::storage::{Area, Disk, LocalStorage, Storage, WriterLock};

type Result<T> = std::result::Result<T, StoreError>;

/// Kept revisions of each document, unless the base says otherwise.
const DEFAULT_HISTORY: u32 = 10;

/// A knowledge base. Methods take `&self`; a handle may be shared between threads, and any number of processes may
/// have the same directory open.
///
/// ```
/// use std::time::SystemTime;
/// use kb_store::{KnowledgeBase, Options, Search, Text};
///
/// # let dir = tempfile::tempdir()?;
/// # let dir = dir.path().join("notes.kbdb");
/// let kb = KnowledgeBase::create(&dir, Options::new(SystemTime::now))?;
/// kb.learn(&Text::markdown("# Pumps\n\nThe valve opens at six.\n"))?;
/// let answer = kb.search(&Search::new("valve"))?;
/// assert_eq!(answer.hits[0].heading_path, ["Pumps"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct KnowledgeBase {
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) options: Options,
    path: PathBuf,
    read_only: bool,
    state: Mutex<State>,
    cache: Arc<BlockCache>,
}

#[derive(Debug, Default)]
struct State {
    snapshot: Option<Arc<Snapshot>>,
}

impl KnowledgeBase {
    /// Creates a database in a directory that does not exist or is empty.
    ///
    /// The parent directory has to exist. Of several processes that create one at the same time, one does and the
    /// others fail with [`StoreError::CannotCreate`].
    pub fn create(dir: impl AsRef<Path>, options: Options) -> Result<Self> {
        let dir = dir.as_ref();
        match std::fs::read_dir(dir) {
            Ok(mut entries) => {
                if dir.join("head").exists() {
                    return Err(StoreError::CannotCreate { path: dir.to_owned(), reason: "is a database already" });
                }
                let ours = ["packs", "index", "lock", "kb.toml"];
                let foreign = entries.any(|entry| {
                    entry.is_ok_and(|e| {
                        let name = e.file_name();
                        !ours.iter().any(|own| name == *own) && !name.to_string_lossy().starts_with("tmp-")
                    })
                });
                if foreign {
                    return Err(StoreError::CannotCreate {
                        path: dir.to_owned(),
                        reason: "is a folder with files in it",
                    });
                }
                if Self::has_packs(dir) && !dir.join("head").exists() {
                    let reason = "it is missing, but packs are there; `recover` finds what they hold".to_owned();
                    return Err(StoreError::NoHead { path: dir.to_owned(), reason });
                }
            }
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
            Err(e) if e.kind() == std::io::ErrorKind::NotADirectory => {
                let reason = if dir.symlink_metadata().is_ok() { "is a file" } else { "would lie in a file" };
                return Err(StoreError::CannotCreate { path: dir.to_owned(), reason });
            }
            Err(e) => return Err(e).io("read", dir),
        }
        let storage = LocalStorage::new(Disk, dir);
        storage.create_directories()?;
        Self::create_on(Arc::new(storage), options)
    }

    /// Opens a database.
    pub fn open(dir: impl AsRef<Path>, options: Options) -> Result<Self> {
        Self::open_local(dir.as_ref(), options, false)
    }

    /// Opens a database to read; works in a folder that cannot be written.
    pub fn open_read_only(dir: impl AsRef<Path>, options: Options) -> Result<Self> {
        Self::open_local(dir.as_ref(), options, true)
    }

    /// Creates a database on any storage that has none.
    pub fn create_on(storage: Arc<dyn Storage>, options: Options) -> Result<Self> {
        let kb = Self::over(storage, options, false);
        let lock = kb.lock()?;
        let path = kb.path.clone();
        if kb.storage.head()?.is_some() {
            return Err(StoreError::CannotCreate { path, reason: "is a database already" });
        }
        // The id tells one base from another; it need not be unguessable.
        let seed = format!("{}\0{}\0{:?}", path.display(), std::process::id(), (kb.options.clock)());
        let id = crate::record::key_of(&seed);
        let head = Head { id, analyzer: Analyzer::VERSION, history: DEFAULT_HISTORY, ..Head::default() };
        if !kb.storage.swap_head(None, &head.encode())? {
            return Err(StoreError::CannotCreate { path, reason: "is a database already" });
        }
        drop(lock);
        Ok(kb)
    }

    /// Opens a database on any storage.
    pub fn open_on(storage: Arc<dyn Storage>, options: Options) -> Result<Self> {
        let kb = Self::over(storage, options, false);
        kb.snapshot()?;
        Ok(kb)
    }

    fn open_local(dir: &Path, options: Options, read_only: bool) -> Result<Self> {
        let kb = Self::over(Arc::new(LocalStorage::new(Disk, dir)), options, read_only);
        kb.snapshot()?;
        Ok(kb)
    }

    pub(crate) fn over(storage: Arc<dyn Storage>, options: Options, read_only: bool) -> Self {
        let path = storage.location();
        Self { storage, options, path, read_only, state: Mutex::default(), cache: Arc::default() }
    }

    /// Returns the database directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the generation of the last commit, of this process or another. Costs one read of a small file while
    /// nothing was committed, so it may be asked every second.
    pub fn generation(&self) -> Result<u64> {
        Ok(self.snapshot()?.head.generation)
    }

    /// Returns the database as of now. One that was taken before is taken again while nothing was committed.
    pub(crate) fn snapshot(&self) -> Result<Arc<Snapshot>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        // A pack may go between reading the head that names it and opening it; then the head has changed as well.
        for attempt in 0.. {
            let Some(bytes) = self.storage.head()? else {
                let error = self.no_head();
                // Between the two looks another process may have created the base and written to it.
                if attempt < 4 && matches!(error, StoreError::NoHead { .. }) && self.storage.head()?.is_some() {
                    continue;
                }
                return Err(error);
            };
            if let Some(snapshot) = &state.snapshot
                && snapshot.head_bytes == bytes
            {
                return Ok(Arc::clone(snapshot));
            }
            let snapshot = self.open_snapshot(bytes, state.snapshot.as_deref())?;
            if !snapshot.missing.is_empty()
                && attempt < 4
                && self.storage.head()?.as_deref() != Some(&snapshot.head_bytes)
            {
                continue;
            }
            let snapshot = Arc::new(snapshot);
            state.snapshot = Some(Arc::clone(&snapshot));
            return Ok(snapshot);
        }
        unreachable!("the loop returns")
    }

    /// Returns the database as of now, to write the next head on.
    ///
    /// Fails with [`StoreError::TooNew`] where a newer version has made it something that this one may only read.
    pub(crate) fn writable_snapshot(&self) -> Result<Arc<Snapshot>> {
        let snapshot = self.snapshot()?;
        if !snapshot.writable {
            let path = self.path.clone();
            return Err(StoreError::TooNew { path, found: FORMAT + 1, supported: FORMAT });
        }
        Ok(snapshot)
    }

    fn open_snapshot(&self, head_bytes: Vec<u8>, before: Option<&Snapshot>) -> Result<Snapshot> {
        let (head, writable) = Head::decode(&head_bytes).map_err(|error| match error {
            HeadError::Damaged(reason) => StoreError::NoHead { path: self.path.clone(), reason: reason.to_owned() },
            HeadError::TooNew(found) => StoreError::TooNew { path: self.path.clone(), found, supported: FORMAT },
        })?;
        let open: OpenPacks = before
            .map(|snapshot| snapshot.packs.iter().map(|pack| (pack.name().hash, Arc::clone(pack))).collect())
            .unwrap_or_default();
        let (mut packs, mut missing) = (Vec::new(), Vec::new());
        for reference in head.packs.iter().rev() {
            match open.get(&reference.hash) {
                Some(pack) => packs.push(Arc::clone(pack)),
                None => match Pack::open(&*self.storage, reference.name())? {
                    Some(pack) => packs.push(Arc::new(pack)),
                    None => missing.push(reference.name()),
                },
            }
        }
        let storage = Arc::clone(&self.storage);
        let cache = Arc::clone(&self.cache);
        Ok(Snapshot { storage, head, head_bytes, writable, packs, missing, cache, index: OnceLock::new() })
    }

    fn no_head(&self) -> StoreError {
        if Self::has_packs(&self.path) {
            let reason = "it is missing, but packs are there".to_owned();
            return StoreError::NoHead { path: self.path.clone(), reason };
        }
        StoreError::NoDatabase { path: self.path.clone() }
    }

    pub(crate) fn has_packs(dir: &Path) -> bool {
        std::fs::read_dir(dir.join("packs")).is_ok_and(|mut entries| {
            entries.any(|entry| entry.is_ok_and(|e| e.file_name().to_string_lossy().ends_with(".pack")))
        })
    }

    /// Returns the time, in milliseconds since 1970.
    pub(crate) fn now(&self) -> i64 {
        milliseconds((self.options.clock)())
    }

    pub(crate) fn refuse_read_only(&self) -> Result<()> {
        if self.read_only { Err(StoreError::ReadOnly) } else { Ok(()) }
    }

    pub(crate) fn lock(&self) -> Result<Box<dyn WriterLock>> {
        self.refuse_read_only()?;
        let holder =
            LockHolder { pid: std::process::id(), command: self.options.command.clone(), since: time_text(self.now()) };
        self.storage.lock(self.options.wait, &holder)
    }

    /// Stages and commits. `expected` is about how many bytes will be written; `stage` is run again where another
    /// writer was first. Nothing staged is no commit. Returns the generation after it.
    pub(crate) fn commit<T>(
        &self,
        expected: u64,
        mut stage: impl FnMut(&mut Txn<'_>) -> Result<T>,
    ) -> Result<(T, u64)> {
        let _lock = self.lock()?;
        loop {
            let snapshot = self.writable_snapshot()?;
            let mut txn = Txn::new(&snapshot, self.now(), expected);
            let result = stage(&mut txn)?;
            if txn.is_empty() {
                return Ok((result, snapshot.head.generation));
            }
            let purge = txn.purge;
            let head = txn.finish()?;
            if self.storage.swap_head(Some(&snapshot.head_bytes), &head.encode())? {
                if purge {
                    self.delete_purged(&head)?;
                }
                return Ok((result, head.generation));
            }
        }
    }

    /// Deletes what a purge has retired without grace. The head goes on listing what the system will not delete yet.
    pub(crate) fn delete_purged(&self, head: &Head) -> Result<()> {
        for retired in head.retired.iter().filter(|retired| retired.at < 0) {
            self.storage.delete(retired.name)?;
        }
        Ok(())
    }

    pub(crate) fn cached_blocks(&self) -> usize {
        self.cache.len()
    }

    /// Opens a database whose head is lost or damaged, and writes a new head from its packs.
    ///
    /// Packs that a merge replaced are known by the one that took their place, so nothing that was unlearned comes
    /// back. What had been written and not committed may. The index is made anew.
    pub fn recover(dir: impl AsRef<Path>, options: Options) -> Result<Self> {
        Self::recover_on(Arc::new(LocalStorage::new(Disk, dir.as_ref())), options)
    }

    /// As [`KnowledgeBase::recover`], on any storage.
    pub fn recover_on(storage: Arc<dyn Storage>, options: Options) -> Result<Self> {
        let kb = Self::over(storage, options, false);
        let _lock = kb.lock()?;
        let old = kb.storage.head()?;
        match old.as_deref().map(Head::decode) {
            Some(Ok(_)) => return Ok(kb),
            Some(Err(HeadError::TooNew(found))) => {
                return Err(StoreError::TooNew { path: kb.path, found, supported: FORMAT });
            }
            Some(Err(HeadError::Damaged(_))) | None => {}
        }
        // The first head there is again has an index and totals: without these it would be no better than none.
        let snapshot = kb.open_snapshot(kb.head_from_packs()?.encode(), None)?;
        let (head, _) = kb.rebuilt(&snapshot, &mut crate::request::Silent)?;
        if !kb.storage.swap_head(old.as_deref(), &head.encode())? {
            return Err(StoreError::CannotCreate { path: kb.path, reason: "was recovered by another process" });
        }
        Ok(kb)
    }

    fn head_from_packs(&self) -> Result<Head> {
        let mut packs: Vec<(PackRef, Vec<[u8; 16]>)> = Vec::new();
        for (name, bytes) in self.storage.list()?.files {
            if name.area == Area::Packs
                && let Some(pack) = Pack::open(&*self.storage, name)?
            {
                let reference = PackRef { hash: name.hash, bytes, generations: pack.generations() };
                packs.push((reference, pack.replaces().to_vec()));
            }
        }
        if packs.is_empty() {
            return Err(StoreError::NoDatabase { path: self.path.clone() });
        }
        let replaced: Vec<[u8; 16]> = packs.iter().flat_map(|(_, replaces)| replaces.iter().copied()).collect();
        let mut live: Vec<PackRef> =
            packs.into_iter().map(|(pack, _)| pack).filter(|pack| !replaced.contains(&pack.hash)).collect();
        live.sort_by_key(|pack| (pack.generations.1, pack.generations.0, pack.hash));
        let generation = live.iter().map(|pack| pack.generations.1).max().unwrap_or(0);
        let id = crate::record::key_of(&format!("{}\0recovered\0{generation}", self.path.display()));
        Ok(Head {
            id,
            generation,
            packs: live,
            analyzer: Analyzer::VERSION,
            history: DEFAULT_HISTORY,
            ..Head::default()
        })
    }
}

/// Returns milliseconds since 1970.
pub(crate) fn milliseconds(time: SystemTime) -> i64 {
    match time.duration_since(UNIX_EPOCH) {
        Ok(after) => after.as_millis() as i64,
        Err(before) => -(before.duration().as_millis() as i64),
    }
}

/// Writes a time as RFC 3339 in UTC, to the second.
pub(crate) fn time_text(milliseconds: i64) -> String {
    Timestamp::new(milliseconds.div_euclid(1000), 0).map_or_else(String::new, |time| time.to_string())
}
