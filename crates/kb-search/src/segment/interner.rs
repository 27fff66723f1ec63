//! Numbers for byte strings, in the order in which they are met first.
//!
//! **Invariant:** equal strings have equal numbers, and every number below [`Interner::len`] has a string.

use std::hash::Hasher;

use rustc_hash::FxHasher;

/// A set of byte strings in one buffer.
#[derive(Debug)]
pub(crate) struct Interner {
    bytes: Vec<u8>,
    starts: Vec<u32>,
    /// Upper half: of the hash. Lower half: number plus one, or zero for a free slot.
    slots: Vec<u64>,
}

impl Interner {
    pub(crate) fn new() -> Self {
        Self { bytes: Vec::new(), starts: Vec::new(), slots: vec![0; 1024] }
    }

    pub(crate) fn len(&self) -> usize {
        self.starts.len()
    }

    /// Returns the length of all strings together, in bytes.
    pub(crate) fn string_bytes(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.bytes.capacity() + self.starts.capacity() * 4 + self.slots.capacity() * 8
    }

    pub(crate) fn get(&self, number: u32) -> &[u8] {
        let index = number as usize;
        let end = self.starts.get(index + 1).map_or(self.bytes.len(), |&end| end as usize);
        &self.bytes[self.starts[index] as usize..end]
    }

    /// Returns the number of a string, and whether it is new.
    pub(crate) fn intern(&mut self, text: &[u8]) -> (u32, bool) {
        let hash = hash_of(text);
        let mask = self.slots.len() - 1;
        let mut slot = hash as usize & mask;
        loop {
            let held = self.slots[slot];
            if held as u32 == 0 {
                break;
            }
            if held >> 32 == hash >> 32 && self.get(held as u32 - 1) == text {
                return (held as u32 - 1, false);
            }
            slot = (slot + 1) & mask;
        }
        let number = self.starts.len() as u32;
        self.starts.push(self.bytes.len() as u32);
        self.bytes.extend_from_slice(text);
        self.slots[slot] = hash >> 32 << 32 | u64::from(number + 1);
        if self.starts.len() * 2 > self.slots.len() {
            self.grow();
        }
        (number, true)
    }

    fn grow(&mut self) {
        let mask = self.slots.len() * 2 - 1;
        let mut slots = vec![0; self.slots.len() * 2];
        for number in 0..self.starts.len() as u32 {
            let hash = hash_of(self.get(number));
            let mut slot = hash as usize & mask;
            while slots[slot] != 0 {
                slot = (slot + 1) & mask;
            }
            slots[slot] = hash >> 32 << 32 | u64::from(number + 1);
        }
        self.slots = slots;
    }
}

fn hash_of(text: &[u8]) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(text);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_strings_have_equal_numbers() {
        let mut interner = Interner::new();
        let texts: Vec<String> = (0..5000).map(|i| format!("word{}", i % 2500)).collect();
        for (index, text) in texts.iter().enumerate() {
            assert_eq!(interner.intern(text.as_bytes()), ((index % 2500) as u32, index < 2500));
        }
        assert_eq!(interner.intern(b""), (2500, true));
        assert_eq!(interner.get(2500), b"");
        assert_eq!(interner.get(17), b"word17");
        assert_eq!(interner.len(), 2501);
    }
}
