//! A file system in memory whose power can be cut, and whose disk can fill up.
//!
//! Names and data are kept apart, as file systems keep them: what a file holds is safe once the file was synced, what a
//! folder lists once the folder was. After a cut [`CrashFs::images`] gives every disk that may be found then, for each
//! folder and for unsynced data the extremes and the mixtures of them.
//!
//! **Invariant:** each create, write, sync, rename, remove and sync of a folder is one step. The first step beyond the
//! budget cuts the power: from then on every call fails and changes nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kb_store::storage::{Bytes, Fs, FsFile, FsLock, LocalStorage};

/// The folder that a database of the tests lies in; its parent `/` is always there.
pub(crate) const ROOT: &str = "/kb";

/// A handle to the file system; clones share it, [`CrashFs::fork`] copies it.
#[derive(Debug, Clone, Default)]
pub(crate) struct CrashFs(Arc<Mutex<Disk>>);

#[derive(Debug, Clone, Default)]
struct Disk {
    files: BTreeMap<u64, Data>,
    now: Names,
    durable: Names,
    /// The disk as it was after each rename over a `head`.
    commits: Vec<Disk>,
    taken: u64,
    syncs: u64,
    budget: Option<u64>,
    off: bool,
    full_after: Option<u64>,
    refuses_writes: bool,
    locked: BTreeSet<PathBuf>,
}

#[derive(Debug, Clone, Default)]
struct Names {
    folders: BTreeSet<PathBuf>,
    files: BTreeMap<PathBuf, u64>,
}

#[derive(Debug, Clone, Default)]
struct Data {
    bytes: Arc<Vec<u8>>,
    /// What was synced last.
    synced: Option<Arc<Vec<u8>>>,
}

/// Which names a folder lists after a power cut.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Listed {
    /// Those that were synced.
    Synced,
    /// All, with every rename and remove.
    Now,
    /// All, and those that were removed or renamed away too.
    Both,
}

/// What files hold that were not synced.
#[derive(Debug, Clone, Copy)]
enum Unsynced {
    Whole,
    Empty,
    Half,
    /// The right length, and the second half zeros.
    Zeros,
}

impl CrashFs {
    /// A database's storage on this file system.
    pub(crate) fn storage(&self) -> Arc<LocalStorage<Self>> {
        Arc::new(LocalStorage::new(self.clone(), ROOT))
    }

    /// Lets so many steps be done from now on, then cuts the power.
    pub(crate) fn cut_after(&self, steps: u64) {
        let mut disk = self.disk();
        disk.budget = Some(disk.taken + steps);
    }

    /// Lets so many steps be done from now on; then nothing more can be created or written.
    pub(crate) fn fill_after(&self, steps: u64) {
        let mut disk = self.disk();
        disk.full_after = Some(disk.taken + steps);
    }

    /// Gives the disk space again.
    pub(crate) fn make_space(&self) {
        self.disk().full_after = None;
    }

    /// Makes every change fail, as in a folder that may only be read.
    pub(crate) fn refuse_writes(&self) {
        self.disk().refuses_writes = true;
    }

    /// Steps taken so far.
    pub(crate) fn taken(&self) -> u64 {
        self.disk().taken
    }

    /// Syncs so far, of files and of folders.
    pub(crate) fn syncs(&self) -> u64 {
        self.disk().syncs
    }

    /// The disk as it was after each replacing of a head since the last [`CrashFs::fork`].
    pub(crate) fn commits(&self) -> Vec<Self> {
        self.disk().commits.iter().map(|disk| Self::of(disk.clone())).collect()
    }

    /// A copy, with the power on, space on it, and no lock held.
    pub(crate) fn fork(&self) -> Self {
        let mut disk = self.disk().clone();
        disk.commits.clear();
        Self::of(disk)
    }

    /// All files and their bytes.
    pub(crate) fn files(&self) -> BTreeMap<PathBuf, Arc<Vec<u8>>> {
        let disk = self.disk();
        disk.now.files.iter().map(|(path, id)| (path.clone(), Arc::clone(&disk.files[id].bytes))).collect()
    }

    /// Removes a file, as a person would.
    pub(crate) fn lose(&self, path: impl AsRef<Path>) {
        let mut disk = self.disk();
        disk.now.files.remove(path.as_ref()).expect("it is there");
        disk.durable.files.remove(path.as_ref());
    }

    /// Every disk that may be found after a power cut now, each once; the first has all that was written.
    pub(crate) fn images(&self) -> Vec<Self> {
        use Listed::{Both, Now, Synced};
        let disk = self.disk();
        let mut seen = BTreeSet::new();
        let mut images = Vec::new();
        // The folders `/`, that of the database, `packs` and `index` are synced each by itself.
        let choices = [
            [Now; 4],
            [Synced; 4],
            [Both; 4],
            [Now, Now, Synced, Synced],
            [Now, Synced, Now, Now],
            [Now, Now, Now, Synced],
        ];
        for listed in choices {
            for unsynced in [Unsynced::Whole, Unsynced::Empty, Unsynced::Half, Unsynced::Zeros] {
                let image = disk.image(listed, unsynced);
                if seen.insert(image.summary()) {
                    images.push(Self::of(image));
                }
            }
        }
        images
    }

    /// Names and hashes of all files: two disks with one summary are alike.
    pub(crate) fn summary(&self) -> Vec<u8> {
        self.disk().summary()
    }

    fn of(mut disk: Disk) -> Self {
        (disk.budget, disk.off, disk.full_after) = (None, false, None);
        disk.locked.clear();
        Self(Arc::new(Mutex::new(disk)))
    }

    fn disk(&self) -> MutexGuard<'_, Disk> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Disk {
    fn image(&self, listed: [Listed; 4], unsynced: Unsynced) -> Self {
        let of = |path: &Path| match path.parent().map(|parent| parent.strip_prefix(ROOT)) {
            Some(Ok(below)) if below == Path::new("packs") => listed[2],
            Some(Ok(below)) if below == Path::new("index") => listed[3],
            Some(Ok(_)) => listed[1],
            _ => listed[0],
        };
        let mut names = Names::default();
        for (source, wanted) in
            [(&self.durable, [Listed::Synced, Listed::Both]), (&self.now, [Listed::Now, Listed::Both])]
        {
            let survives = |path: &Path| wanted.contains(&of(path));
            names.folders.extend(source.folders.iter().filter(|path| survives(path)).cloned());
            names.files.extend(source.files.iter().filter(|(path, _)| survives(path)).map(|(p, id)| (p.clone(), *id)));
        }
        let folders = names.folders.clone();
        let is_there = |path: &Path| path.parent().is_none_or(|up| up == Path::new("/") || folders.contains(up));
        names.folders.retain(|path| is_there(path));
        let folders = names.folders.clone();
        names.files.retain(|path, _| path.parent().is_none_or(|up| folders.contains(up)));
        let mut files = BTreeMap::new();
        for id in names.files.values() {
            let data = &self.files[id];
            let is_synced = data.synced.as_ref().is_some_and(|synced| Arc::ptr_eq(synced, &data.bytes));
            let written = data.bytes.len();
            let kept = data.synced.as_ref().map_or(0, |synced| synced.len());
            let bytes = match unsynced {
                _ if is_synced => Arc::clone(&data.bytes),
                Unsynced::Whole => Arc::clone(&data.bytes),
                Unsynced::Empty => Arc::new(data.bytes[..kept].to_vec()),
                Unsynced::Half => Arc::new(data.bytes[..kept.midpoint(written)].to_vec()),
                Unsynced::Zeros => {
                    let mut bytes = data.bytes[..kept.midpoint(written)].to_vec();
                    bytes.resize(written, 0);
                    Arc::new(bytes)
                }
            };
            files.insert(*id, Data { bytes: Arc::clone(&bytes), synced: Some(bytes) });
        }
        Self { files, now: names.clone(), durable: names, taken: self.taken, syncs: self.syncs, ..Self::default() }
    }

    fn summary(&self) -> Vec<u8> {
        let mut summary = Vec::new();
        for folder in &self.now.folders {
            summary.extend_from_slice(folder.as_os_str().as_encoded_bytes());
            summary.push(0);
        }
        for (path, id) in &self.now.files {
            // The lock's note says nothing of what is in the base.
            if !path.ends_with("lock") {
                summary.extend_from_slice(path.as_os_str().as_encoded_bytes());
                summary.push(0);
                summary.extend_from_slice(blake3::hash(&self.files[id].bytes).as_bytes());
            }
        }
        summary
    }

    /// Fails once the power is off.
    fn powered(&self) -> io::Result<()> {
        if self.off { Err(io::Error::other("the power is off")) } else { Ok(()) }
    }

    /// Takes a step; `writes` needs space.
    fn step(&mut self, writes: bool) -> io::Result<()> {
        self.off |= self.budget.is_some_and(|budget| self.taken >= budget);
        self.powered()?;
        if self.refuses_writes {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        self.taken += 1;
        if writes && self.full_after.is_some_and(|after| self.taken > after) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(())
    }

    fn id(&self, path: &Path) -> io::Result<u64> {
        self.powered()?;
        self.now.files.get(path).copied().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn needs_folder(&self, path: &Path) -> io::Result<()> {
        let parent = path.parent().unwrap_or(Path::new("/"));
        if parent == Path::new("/") || self.now.folders.contains(parent) {
            Ok(())
        } else {
            Err(io::ErrorKind::NotFound.into())
        }
    }
}

#[derive(Debug)]
struct OpenFile(CrashFs, u64);

impl Write for OpenFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut disk = self.0.disk();
        let fits = disk.step(true);
        let part = if fits.is_ok() { bytes } else { &bytes[..bytes.len() / 2] };
        // On a full disk a part of what is written still has room.
        if fits.is_ok() || fits.as_ref().is_err_and(|e| e.kind() == io::ErrorKind::StorageFull) {
            Arc::make_mut(&mut disk.files.get_mut(&self.1).expect("it is open").bytes).extend_from_slice(part);
        }
        fits.map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.disk().powered()
    }
}

impl FsFile for OpenFile {
    fn sync(&mut self) -> io::Result<()> {
        let mut disk = self.0.disk();
        disk.step(false)?;
        disk.syncs += 1;
        let data = disk.files.get_mut(&self.1).expect("it is open");
        data.synced = Some(Arc::clone(&data.bytes));
        Ok(())
    }
}

#[derive(Debug)]
struct Held(CrashFs, PathBuf);

impl FsLock for Held {}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.disk().locked.remove(&self.1);
    }
}

impl Fs for CrashFs {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let disk = self.disk();
        Ok(disk.files[&disk.id(path)?].bytes.to_vec())
    }

    fn open(&self, path: &Path) -> io::Result<Bytes> {
        self.read(path).map(Bytes::Owned)
    }

    fn is_dir(&self, path: &Path) -> bool {
        self.disk().now.folders.contains(path)
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn FsFile>> {
        let mut disk = self.disk();
        disk.step(true)?;
        disk.needs_folder(path)?;
        if disk.now.files.contains_key(path) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let id = disk.files.keys().next_back().map_or(0, |last| last + 1);
        disk.files.insert(id, Data::default());
        disk.now.files.insert(path.to_owned(), id);
        Ok(Box::new(OpenFile(self.clone(), id)))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut disk = self.disk();
        disk.step(false)?;
        let id = disk.now.files.remove(from).ok_or(io::ErrorKind::NotFound)?;
        disk.now.files.insert(to.to_owned(), id);
        if to.ends_with("head") {
            let mut copy = disk.clone();
            copy.commits.clear();
            disk.commits.push(copy);
        }
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut disk = self.disk();
        disk.step(false)?;
        disk.now.files.remove(path).map(drop).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        let mut disk = self.disk();
        disk.step(true)?;
        disk.needs_folder(path)?;
        disk.now.folders.insert(path.to_owned());
        Ok(())
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        let mut disk = self.disk();
        disk.step(false)?;
        disk.syncs += 1;
        let is_in = |name: &Path| name.parent() == Some(path);
        let now = disk.now.clone();
        disk.durable.files.retain(|name, _| !is_in(name));
        disk.durable.folders.retain(|name| !is_in(name));
        disk.durable.files.extend(now.files.into_iter().filter(|(name, _)| is_in(name)));
        disk.durable.folders.extend(now.folders.into_iter().filter(|name| is_in(name)));
        Ok(())
    }

    fn list(&self, path: &Path) -> io::Result<Vec<(String, u64)>> {
        let disk = self.disk();
        disk.powered()?;
        if !disk.now.folders.contains(path) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let inside = disk.now.files.iter().filter(|(name, _)| name.parent() == Some(path));
        let name = |path: &Path| path.file_name().expect("a file has a name").to_string_lossy().into_owned();
        Ok(inside.map(|(path, id)| (name(path), disk.files[id].bytes.len() as u64)).collect())
    }

    fn try_lock(&self, path: &Path, note: &str) -> io::Result<Option<Box<dyn FsLock>>> {
        let mut disk = self.disk();
        disk.powered()?;
        if disk.refuses_writes {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        disk.needs_folder(path)?;
        if !disk.locked.insert(path.to_owned()) {
            return Ok(None);
        }
        let id = match disk.now.files.get(path) {
            Some(id) => *id,
            None => disk.files.keys().next_back().map_or(0, |last| last + 1),
        };
        disk.files.insert(id, Data { bytes: Arc::new(note.as_bytes().to_vec()), synced: None });
        disk.now.files.insert(path.to_owned(), id);
        Ok(Some(Box::new(Held(self.clone(), path.to_owned()))))
    }

    fn is_locked(&self, path: &Path) -> io::Result<bool> {
        Ok(self.disk().locked.contains(path))
    }

    fn pause(&self, _attempt: u32) {
        std::thread::yield_now();
    }
}

#[test]
fn what_was_not_synced_may_be_lost_and_what_was_stays() {
    let fs = CrashFs::default();
    let (root, file, other) = (Path::new(ROOT), Path::new("/kb/a"), Path::new("/kb/b"));
    fs.create_dir(root).expect("powered");
    fs.sync_dir(Path::new("/")).expect("powered");
    let mut open = fs.create(file).expect("powered");
    open.write_all(b"1234").expect("powered");
    let held: BTreeSet<_> = fs.images().iter().map(|image| image.read(file).ok()).collect();
    let any = |bytes: &[&[u8]]| bytes.iter().map(|bytes| Some(bytes.to_vec())).collect::<BTreeSet<_>>();
    assert_eq!(held, &any(&[b"1234", b"", b"12", b"12\0\0"]) | &BTreeSet::from([None]));
    open.sync().expect("powered");
    fs.sync_dir(root).expect("powered");
    fs.rename(file, other).expect("powered");
    let found: BTreeSet<_> = fs.images().iter().map(|image| (image.read(file).ok(), image.read(other).ok())).collect();
    let whole = Some(b"1234".to_vec());
    assert_eq!(found, BTreeSet::from([(whole.clone(), None), (None, whole.clone()), (whole.clone(), whole)]));
    assert_eq!((fs.taken(), fs.syncs()), (7, 3));
    fs.cut_after(0);
    assert!(fs.read(other).is_ok() && fs.remove(other).is_err() && fs.read(other).is_err());
    assert!(fs.fork().read(other).is_ok());
}
