//! Integers as bytes: fixed little-endian, variable length, and bit-packed blocks of 128.
//!
//! **Invariant:** every read is bounds-checked; bytes that do not decode are [`SegmentError::Malformed`], never a panic
//! and never an allocation that the bytes alone ask for.

use bitpacking::{BitPacker, BitPacker4x};

use crate::source::SegmentError;

/// Numbers in a packed block.
pub(crate) const BLOCK: usize = BitPacker4x::BLOCK_LEN;

const CUT_SHORT: SegmentError = SegmentError::Malformed("a part ends before its content does");

/// Reads forward through bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bytes<'a>(pub(crate) &'a [u8]);

impl<'a> Bytes<'a> {
    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8], SegmentError> {
        let (head, rest) = self.0.split_at_checked(count).ok_or(CUT_SHORT)?;
        self.0 = rest;
        Ok(head)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], SegmentError> {
        let (head, rest) = self.0.split_first_chunk().ok_or(CUT_SHORT)?;
        self.0 = rest;
        Ok(*head)
    }

    pub(crate) fn byte(&mut self) -> Result<u8, SegmentError> {
        let (&head, rest) = self.0.split_first().ok_or(CUT_SHORT)?;
        self.0 = rest;
        Ok(head)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, SegmentError> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, SegmentError> {
        self.array().map(u64::from_le_bytes)
    }

    pub(crate) fn vint(&mut self) -> Result<u64, SegmentError> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(SegmentError::Malformed("a number is too long"))
    }

    pub(crate) fn vint32(&mut self) -> Result<u32, SegmentError> {
        u32::try_from(self.vint()?).map_err(|_| SegmentError::Malformed("a number is too large"))
    }
}

/// Appends a number, seven bits a byte, the lowest first, the top bit set on all bytes but the last.
pub(crate) fn put_vint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends the lowest `width` bits of each.
fn pack(out: &mut Vec<u8>, values: &[u32; BLOCK], width: u8) {
    let start = out.len();
    out.resize(start + packed_len(width), 0);
    BitPacker4x::new().compress(values, &mut out[start..], width);
}

/// Returns the length of a packed block in bytes.
const fn packed_len(width: u8) -> usize {
    width as usize * BLOCK / 8
}

/// Reads a packed block.
fn unpack(bytes: &mut Bytes<'_>, width: u8, values: &mut [u32; BLOCK]) -> Result<(), SegmentError> {
    if width > 32 {
        return Err(SegmentError::Malformed("a block is wider than a number"));
    }
    let packed = bytes.take(packed_len(width))?;
    BitPacker4x::new().decompress(packed, values, width);
    Ok(())
}

/// Turns gaps less one into ascending numbers; the first is counted from `before`, wrapping, so that a list begins
/// with `u32::MAX`.
pub(crate) fn undelta(values: &mut [u32], before: u32) -> Result<(), SegmentError> {
    let mut last = u64::from(before.wrapping_add(1));
    for value in values {
        let number = last + u64::from(*value);
        *value = u32::try_from(number).map_err(|_| SegmentError::Malformed("a list leaves its range"))?;
        last = number + 1;
    }
    Ok(())
}

/// Appends a block whose few large numbers are kept aside: width, bytes of exceptions, the lowest `width` bits of all,
/// then index and the rest of the bits of each exception.
pub(crate) fn put_patched(out: &mut Vec<u8>, values: &[u32; BLOCK]) {
    let mut counts = [0_usize; 33];
    for value in values {
        counts[32 - value.leading_zeros() as usize] += 1;
    }
    let widest = (0..=32).rev().find(|&w| counts[w] > 0).unwrap_or(0) as u8;
    let mut best = (packed_len(widest), widest);
    for width in (0..widest).rev() {
        let extra: usize = (usize::from(width) + 1..=usize::from(widest))
            .map(|w| counts[w] * (1 + (w - usize::from(width)).div_ceil(7)))
            .sum();
        if extra > 255 {
            break;
        }
        best = best.min((packed_len(width) + extra, width));
    }
    let width = best.1;
    let mask = if width == 32 { u32::MAX } else { (1 << width) - 1 };
    let exceptions = || values.iter().enumerate().filter(|&(_, v)| v & !mask != 0);
    out.extend([width, (best.0 - packed_len(width)) as u8]);
    pack(out, &values.map(|v| v & mask), width);
    for (index, value) in exceptions() {
        out.push(index as u8);
        put_vint(out, u64::from(value >> width));
    }
}

/// Passes over a block of [`put_patched`].
pub(crate) fn skip_patched(bytes: &mut Bytes<'_>) -> Result<(), SegmentError> {
    let [width, exception_bytes] = bytes.array()?;
    bytes.take(packed_len(width) + usize::from(exception_bytes))?;
    Ok(())
}

/// Reads a block of [`put_patched`].
pub(crate) fn get_patched(bytes: &mut Bytes<'_>, values: &mut [u32; BLOCK]) -> Result<(), SegmentError> {
    let [width, exception_bytes] = bytes.array()?;
    unpack(bytes, width, values)?;
    let mut exceptions = Bytes(bytes.take(usize::from(exception_bytes))?);
    while !exceptions.0.is_empty() {
        let index = usize::from(exceptions.byte()?);
        let high = exceptions.vint32()?;
        let value = values.get_mut(index).ok_or(SegmentError::Malformed("an exception is outside its block"))?;
        *value |= high
            .checked_shl(u32::from(width))
            .ok_or(SegmentError::Malformed("an exception in a block of full width"))?;
    }
    Ok(())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by it")]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn numbers_come_back(value: u64, block in prop::collection::vec(prop_oneof![0_u32..40, any::<u32>()], BLOCK)) {
            let block: [u32; BLOCK] = block.try_into().unwrap();
            let mut out = Vec::new();
            put_vint(&mut out, value);
            put_patched(&mut out, &block);
            put_patched(&mut out, &block);
            out.push(7);
            let mut bytes = Bytes(&out);
            let mut back = [0; BLOCK];
            prop_assert_eq!(bytes.vint(), Ok(value));
            skip_patched(&mut bytes).unwrap();
            get_patched(&mut bytes, &mut back).unwrap();
            prop_assert_eq!(back, block);
            prop_assert_eq!(bytes.0, &[7]);
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
            let mut values = [0; BLOCK];
            let _ = get_patched(&mut Bytes(&bytes), &mut values);
            let _ = skip_patched(&mut Bytes(&bytes));
            let _ = Bytes(&bytes).vint32();
            let _ = undelta(&mut values, 17);
        }
    }

    #[test]
    fn a_few_large_numbers_do_not_widen_a_block() {
        let mut block = [3; BLOCK];
        block[7] = 1_000_000;
        let mut out = Vec::new();
        put_patched(&mut out, &block);
        assert!(out.len() <= 3 + 32 + 4, "{} bytes", out.len());
    }

    #[test]
    fn gaps_that_leave_the_range_are_refused() {
        let mut values = [0, 0, 5];
        undelta(&mut values, u32::MAX).unwrap();
        assert_eq!(values, [0, 1, 7]);
        assert!(undelta(&mut [u32::MAX, 0], 3).is_err());
    }
}
