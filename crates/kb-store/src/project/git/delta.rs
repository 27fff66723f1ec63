//! Deltas as Git's packs hold them: an object as copies from another and what is new.
//!
//! **Invariant:** a delta applied to its base is the object; which copies are found only decides how long it is.

use rustc_hash::FxHashMap;

/// The shortest stretch of the base that is looked up.
const BLOCK: usize = 16;
/// The longest copy of one instruction.
const MAX_COPY: usize = 0x00ff_ffff;
/// The longest insert of one instruction.
const MAX_INSERT: usize = 127;

/// The blocks of an object that others are to be made from.
pub(super) struct Base<'b> {
    bytes: &'b [u8],
    blocks: FxHashMap<&'b [u8], usize>,
}

impl<'b> Base<'b> {
    pub(super) fn new(bytes: &'b [u8]) -> Self {
        let mut blocks = FxHashMap::default();
        for (i, block) in bytes.chunks_exact(BLOCK).enumerate() {
            blocks.entry(block).or_insert(i * BLOCK);
        }
        Self { bytes, blocks }
    }

    /// Returns the delta that makes `target`; `None` where it would not be shorter than `limit`.
    pub(super) fn delta(&self, target: &[u8], limit: usize) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        put_size(&mut out, self.bytes.len());
        put_size(&mut out, target.len());
        let mut at = common(self.bytes, target);
        put_copy(&mut out, 0, at);
        let mut start = at;
        while at < target.len() {
            let found = target.get(at..at + BLOCK).and_then(|block| self.blocks.get(block));
            let Some(&from) = found else {
                at += 1;
                continue;
            };
            let back = common_end(&self.bytes[..from], &target[start..at]);
            let len = common(&self.bytes[from..], &target[at..]);
            put_insert(&mut out, &target[start..at - back]);
            put_copy(&mut out, from - back, len + back);
            at += len;
            start = at;
            if out.len() >= limit {
                return None;
            }
        }
        put_insert(&mut out, &target[start..]);
        (out.len() < limit).then_some(out)
    }
}

fn common(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

fn common_end(a: &[u8], b: &[u8]) -> usize {
    a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a == b).count()
}

fn put_size(out: &mut Vec<u8>, mut size: usize) {
    while size >= 0x80 {
        out.push(size as u8 | 0x80);
        size >>= 7;
    }
    out.push(size as u8);
}

fn put_insert(out: &mut Vec<u8>, bytes: &[u8]) {
    for piece in bytes.chunks(MAX_INSERT) {
        out.push(piece.len() as u8);
        out.extend_from_slice(piece);
    }
}

fn put_copy(out: &mut Vec<u8>, mut from: usize, mut len: usize) {
    while len > 0 {
        let count = len.min(MAX_COPY);
        let place = out.len();
        out.push(0x80);
        for (i, byte) in (from as u32).to_le_bytes().into_iter().chain((count as u32).to_le_bytes()).enumerate().take(7)
        {
            if byte != 0 {
                out[place] |= 1 << i;
                out.push(byte);
            }
        }
        from += count;
        len -= count;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Applies a delta, as the format's documentation says.
    fn apply(base: &[u8], delta: &[u8]) -> Vec<u8> {
        let mut rest = delta.iter().copied();
        let size = |rest: &mut dyn Iterator<Item = u8>| {
            let (mut size, mut shift) = (0_usize, 0);
            for byte in rest {
                size |= usize::from(byte & 0x7f) << shift;
                shift += 7;
                if byte < 0x80 {
                    break;
                }
            }
            size
        };
        assert_eq!(size(&mut rest), base.len());
        let target_len = size(&mut rest);
        let mut out = Vec::new();
        while let Some(op) = rest.next() {
            if op < 0x80 {
                out.extend((0..op).map(|_| rest.next().expect("inserted")));
                continue;
            }
            let mut number = |bits: std::ops::Range<u8>| {
                let first = bits.start;
                bits.filter(|bit| op >> bit & 1 == 1)
                    .map(|bit| usize::from(rest.next().expect("a byte")) << (8 * (bit - first)))
                    .sum::<usize>()
            };
            let (from, count) = (number(0..4), number(4..7));
            out.extend_from_slice(&base[from..from + if count == 0 { 0x10000 } else { count }]);
        }
        assert_eq!(out.len(), target_len);
        out
    }

    proptest! {
        #[test]
        fn a_delta_makes_its_target(parts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..60), 1..8), order in prop::collection::vec(0_usize..8, 0..12)) {
            let base = parts.concat();
            let target: Vec<u8> = order.iter().flat_map(|&i| parts[i % parts.len()].clone()).collect();
            let delta = Base::new(&base).delta(&target, usize::MAX).expect("no limit");
            prop_assert_eq!(apply(&base, &delta), target);
        }
    }

    #[test]
    fn long_copies_and_inserts_are_taken_apart() {
        let base: Vec<u8> = (0..200_000_u32).flat_map(u32::to_le_bytes).collect();
        let mut target = base.clone();
        target.splice(300_000..300_010, [7; 500]);
        let delta = Base::new(&base).delta(&target, 2_000).expect("it is short");
        assert_eq!(apply(&base, &delta), target);
        assert_eq!(Base::new(&base).delta(&target, 100), None);
        assert_eq!(Base::new(b"").delta(b"", 10).map(|delta| apply(b"", &delta)).as_deref(), Some(&b""[..]));
    }
}
