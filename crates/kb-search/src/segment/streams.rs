//! Many growing byte streams in one buffer.
//!
//! A stream is a chain of pieces that double in size; the last four bytes of a piece say where the next begins.
//!
//! **Invariant:** the buffer holds at most about twice the bytes pushed, and eight more for each stream.

const FIRST: u32 = 8;
const LARGEST: u32 = 4096;
const LINK: u32 = 4;

/// A stream of bytes in [`Streams`]; the default is empty.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Stream {
    first: u32,
    at: u32,
    /// Where the link of the last piece begins; zero before the first piece.
    end: u32,
    /// Bytes of content of the last piece.
    size: u32,
}

/// The buffer of all streams.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    bytes: Vec<u8>,
}

impl Streams {
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.bytes.capacity()
    }

    /// Appends a number, as [`super::codec::put_vint`] writes it.
    #[inline]
    pub(crate) fn push(&mut self, stream: &mut Stream, mut value: u64) {
        while value >= 0x80 {
            self.byte(stream, value as u8 | 0x80);
            value >>= 7;
        }
        self.byte(stream, value as u8);
    }

    #[inline]
    fn byte(&mut self, stream: &mut Stream, byte: u8) {
        if stream.at == stream.end {
            self.piece(stream);
        }
        self.bytes[stream.at as usize] = byte;
        stream.at += 1;
    }

    #[cold]
    fn piece(&mut self, stream: &mut Stream) {
        let start = self.bytes.len() as u32;
        let size = if stream.size == 0 { FIRST } else { (stream.size * 2).min(LARGEST) };
        self.bytes.resize(self.bytes.len() + (size + LINK) as usize, 0);
        if stream.size == 0 {
            stream.first = start;
        } else {
            let link = stream.end as usize;
            self.bytes[link..link + LINK as usize].copy_from_slice(&start.to_le_bytes());
        }
        *stream = Stream { first: stream.first, at: start, end: start + size, size };
    }

    /// Appends all bytes of a stream to `out`.
    pub(crate) fn read(&self, stream: &Stream, out: &mut Vec<u8>) {
        if stream.size == 0 {
            return;
        }
        let (mut at, mut size) = (stream.first, FIRST);
        loop {
            let link = at + size;
            if link == stream.end {
                out.extend_from_slice(&self.bytes[at as usize..stream.at as usize]);
                return;
            }
            out.extend_from_slice(&self.bytes[at as usize..link as usize]);
            let next = &self.bytes[link as usize..(link + LINK) as usize];
            at = u32::from_le_bytes([next[0], next[1], next[2], next[3]]);
            size = (size * 2).min(LARGEST);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::codec::put_vint;
    use super::*;

    #[test]
    fn interleaved_streams_keep_their_bytes() {
        let mut streams = Streams::default();
        let mut handles = [Stream::default(); 3];
        let mut expected = [const { Vec::new() }; 3];
        for value in 0..20_000_u64 {
            let which = (value * value % 7 % 3) as usize;
            streams.push(&mut handles[which], value * 31);
            put_vint(&mut expected[which], value * 31);
        }
        for (handle, expected) in handles.iter().zip(&expected) {
            let mut bytes = Vec::new();
            streams.read(handle, &mut bytes);
            assert_eq!(&bytes, expected);
        }
        let mut bytes = Vec::new();
        streams.read(&Stream::default(), &mut bytes);
        assert!(bytes.is_empty());
    }
}
