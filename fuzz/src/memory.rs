//! A database in memory, whose files can be damaged.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kb_store::storage::{Area, FileName, Listing, Object, Storage, Upload, WriterLock};
use kb_store::{LockHolder, StoreError};

/// A storage in memory. Clones are the same storage; [`Memory::copy`] makes another.
#[derive(Debug, Clone, Default)]
pub(crate) struct Memory(Arc<Mutex<Files>>);

#[derive(Debug, Clone, Default)]
struct Files {
    head: Option<Vec<u8>>,
    files: BTreeMap<FileName, Arc<Vec<u8>>>,
}

impl Memory {
    fn with<T>(&self, act: impl FnOnce(&mut Files) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns a storage of its own with the same content.
    pub(crate) fn copy(&self) -> Self {
        Self(Arc::new(Mutex::new(self.with(|files| files.clone()))))
    }

    /// Damages a file of this area as `data` says. Returns whether it differs now.
    pub(crate) fn damage(&self, area: Area, data: &[u8]) -> bool {
        let Some((&[which, how], rest)) = data.split_first_chunk() else { return false };
        self.with(|files| {
            let count = files.files.keys().filter(|name| name.area == area).count();
            let mut of_area = files.files.iter_mut().filter(|(name, _)| name.area == area);
            let Some((_, file)) = of_area.nth(usize::from(which) % count.max(1)) else { return false };
            let before = Arc::clone(file);
            let mut bytes = before.to_vec();
            match how {
                0 => bytes = rest.to_vec(),
                1 => bytes.truncate(number(rest) % (bytes.len() + 1)),
                2 => bytes.extend_from_slice(rest),
                _ => {
                    for edit in rest.as_chunks::<4>().0 {
                        let at = number(&edit[..3]) % bytes.len();
                        bytes[at] ^= edit[3];
                    }
                }
            }
            *file = Arc::new(bytes);
            *file != before
        })
    }
}

fn number(bytes: &[u8]) -> usize {
    bytes.iter().take(3).fold(0, |number, &byte| number << 8 | usize::from(byte))
}

#[derive(Debug)]
struct MemoryFile(Arc<Vec<u8>>);

impl Object for MemoryFile {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    fn bytes(&self, range: Range<u64>) -> io::Result<&[u8]> {
        let range = range.start as usize..range.end as usize;
        self.0.get(range).ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }
}

struct MemoryUpload {
    storage: Memory,
    bytes: Vec<u8>,
}

impl io::Write for MemoryUpload {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Upload for MemoryUpload {
    fn finish(self: Box<Self>, name: FileName, _durable: bool) -> Result<(), StoreError> {
        let Self { storage, bytes } = *self;
        storage.with(|files| files.files.insert(name, Arc::new(bytes)));
        Ok(())
    }
}

#[derive(Debug)]
struct MemoryLock;

impl WriterLock for MemoryLock {}

impl Storage for Memory {
    fn location(&self) -> PathBuf {
        PathBuf::from("/nowhere/.kbdb")
    }

    fn head(&self) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.with(|files| files.head.clone()))
    }

    fn swap_head(&self, expected: Option<&[u8]>, new: &[u8]) -> Result<bool, StoreError> {
        Ok(self.with(|files| {
            let is_expected = files.head.as_deref() == expected;
            if is_expected {
                files.head = Some(new.to_vec());
            }
            is_expected
        }))
    }

    fn open(&self, name: FileName) -> Result<Option<Arc<dyn Object>>, StoreError> {
        let file = self.with(|files| files.files.get(&name).cloned());
        Ok(file.map(|bytes| Arc::new(MemoryFile(bytes)) as Arc<dyn Object>))
    }

    fn upload(&self, _area: Area) -> Result<Box<dyn Upload>, StoreError> {
        Ok(Box::new(MemoryUpload { storage: self.clone(), bytes: Vec::new() }))
    }

    fn list(&self) -> Result<Listing, StoreError> {
        let files = self.with(|files| files.files.iter().map(|(name, bytes)| (*name, bytes.len() as u64)).collect());
        Ok(Listing { files, unfinished: Vec::new() })
    }

    fn delete(&self, name: FileName) -> Result<bool, StoreError> {
        self.with(|files| files.files.remove(&name));
        Ok(true)
    }

    fn sync_deletes(&self) -> Result<(), StoreError> {
        Ok(())
    }

    fn delete_unfinished(&self, _name: &str) -> Result<(), StoreError> {
        Ok(())
    }

    fn lock(&self, _wait: Duration, _holder: &LockHolder) -> Result<Box<dyn WriterLock>, StoreError> {
        Ok(Box::new(MemoryLock))
    }

    fn lock_named(
        &self,
        _name: &str,
        _wait: Duration,
        _holder: &LockHolder,
    ) -> Result<Box<dyn WriterLock>, StoreError> {
        Ok(Box::new(MemoryLock))
    }

    fn settings(&self) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(None)
    }

    fn lock_state(&self) -> Result<(Option<LockHolder>, bool), StoreError> {
        Ok((None, false))
    }
}
