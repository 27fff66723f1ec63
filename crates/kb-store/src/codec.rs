//! The encoding of everything the store writes: little-endian fixed integers, LEB128 varints, length-prefixed text.
//!
//! **Invariant:** a [`Reader`] never panics and never allocates more than the bytes it was given can justify.

/// Bytes that end too early or say something impossible.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("malformed at byte {at}: {what}")]
pub(crate) struct Malformed {
    pub(crate) at: usize,
    pub(crate) what: &'static str,
}

type Result<T> = std::result::Result<T, Malformed>;

/// Appends values to a buffer.
pub(crate) trait Put {
    fn put_varint(&mut self, value: u64);
    fn put_bytes(&mut self, bytes: &[u8]);
    fn put_text(&mut self, text: &str) {
        self.put_bytes(text.as_bytes());
    }
    fn put_option<T>(&mut self, value: Option<T>, put: impl FnOnce(&mut Self, T))
    where
        Self: Sized;
    fn put_signed(&mut self, value: i64) {
        // ZigZag, as in Protocol Buffers: small magnitudes stay short.
        self.put_varint(((value << 1) ^ (value >> 63)) as u64);
    }
}

impl Put for Vec<u8> {
    fn put_varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.push(value as u8);
    }

    fn put_bytes(&mut self, bytes: &[u8]) {
        self.put_varint(bytes.len() as u64);
        self.extend_from_slice(bytes);
    }

    fn put_option<T>(&mut self, value: Option<T>, put: impl FnOnce(&mut Self, T)) {
        match value {
            None => self.push(0),
            Some(value) => {
                self.push(1);
                put(self, value);
            }
        }
    }
}

/// Reads values from bytes, in order.
#[derive(Debug, Clone)]
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    pub(crate) const fn at(&self) -> usize {
        self.at
    }

    pub(crate) const fn is_at_end(&self) -> bool {
        self.at == self.bytes.len()
    }

    pub(crate) const fn malformed(&self, what: &'static str) -> Malformed {
        Malformed { at: self.at, what }
    }

    pub(crate) fn take(&mut self, len: usize) -> Result<&'a [u8]> {
        let end = self.at.checked_add(len).filter(|&end| end <= self.bytes.len());
        let end = end.ok_or(self.malformed("it ends too early"))?;
        let taken = &self.bytes[self.at..end];
        self.at = end;
        Ok(taken)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    pub(crate) fn byte(&mut self) -> Result<u8> {
        Ok(self.take(1)?[0])
    }

    pub(crate) fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub(crate) fn varint(&mut self) -> Result<u64> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(self.malformed("a number is too long"))
    }

    pub(crate) fn varint32(&mut self) -> Result<u32> {
        let value = self.varint()?;
        u32::try_from(value).map_err(|_| self.malformed("a number is too large"))
    }

    pub(crate) fn signed(&mut self) -> Result<i64> {
        let value = self.varint()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// Reads a count of items that take at least `least` bytes each.
    pub(crate) fn count(&mut self, least: usize) -> Result<usize> {
        let count = self.varint()?;
        if count > ((self.bytes.len() - self.at) / least.max(1)) as u64 {
            return Err(self.malformed("a count is larger than what follows"));
        }
        Ok(count as usize)
    }

    pub(crate) fn bytes(&mut self) -> Result<&'a [u8]> {
        let len = self.count(1)?;
        self.take(len)
    }

    pub(crate) fn text(&mut self) -> Result<&'a str> {
        let bytes = self.bytes()?;
        std::str::from_utf8(bytes).map_err(|_| self.malformed("a text is not UTF-8"))
    }

    pub(crate) fn option<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<Option<T>> {
        match self.byte()? {
            0 => Ok(None),
            1 => read(self).map(Some),
            _ => Err(self.malformed("neither present nor absent")),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_put_is_read(numbers: Vec<u64>, signed: Vec<i64>, text: String, maybe: Option<u64>) {
            let mut bytes = Vec::new();
            for &n in &numbers { bytes.put_varint(n); }
            for &n in &signed { bytes.put_signed(n); }
            bytes.put_text(&text);
            bytes.put_option(maybe, super::Put::put_varint);
            let mut reader = Reader::new(&bytes);
            for &n in &numbers { prop_assert_eq!(reader.varint(), Ok(n)); }
            for &n in &signed { prop_assert_eq!(reader.signed(), Ok(n)); }
            prop_assert_eq!(reader.text(), Ok(text.as_str()));
            prop_assert_eq!(reader.option(Reader::varint), Ok(maybe));
            prop_assert!(reader.is_at_end());
        }

        #[test]
        fn no_bytes_make_a_reader_panic(bytes: Vec<u8>) {
            let mut reader = Reader::new(&bytes);
            while reader.text().is_ok() && !reader.is_at_end() {}
            let mut reader = Reader::new(&bytes);
            while reader.option(Reader::signed).is_ok() && !reader.is_at_end() {}
        }
    }
}
