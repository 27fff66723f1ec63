//! A file of which a few small pieces are wanted.
//!
//! Packs are read a block here and there. Mapped, each touch brings a stretch of the file into the process: 20 blocks of
//! 6 KB made 25 MB resident. So pieces are read, and kept while the file is open; whoever is about to read most of
//! the file says so, and it is mapped.
//!
//! **Invariant:** the file never changes, so a piece that was read once stays true.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::OnceLock;

use super::map::Bytes;

/// Where pieces begin, in bytes. A piece is twice as long, so that whatever is no longer than this lies in one.
const STEP: u64 = 16 << 10;

/// A file opened to be read here and there.
#[derive(Debug)]
pub struct Scattered {
    file: File,
    len: u64,
    pieces: Box<[OnceLock<Box<[u8]>>]>,
    whole: OnceLock<Bytes>,
}

impl Scattered {
    pub(super) fn open(file: File) -> io::Result<Self> {
        let len = file.metadata()?.len();
        let pieces = (0..len.div_ceil(STEP)).map(|_| OnceLock::new()).collect();
        Ok(Self { file, len, pieces, whole: OnceLock::new() })
    }

    pub(super) const fn len(&self) -> u64 {
        self.len
    }

    /// Maps the file, for most of it is about to be read.
    pub(super) fn map(&self) -> io::Result<&Bytes> {
        if let Some(whole) = self.whole.get() {
            return Ok(whole);
        }
        let mapped = Bytes::map(&self.file)?;
        Ok(self.whole.get_or_init(|| mapped))
    }

    pub(super) fn slice(&self, range: Range<u64>) -> io::Result<&[u8]> {
        let ends = || io::Error::new(io::ErrorKind::UnexpectedEof, "the file ends too early");
        if range.start > range.end || range.end > self.len {
            return Err(ends());
        }
        if self.whole.get().is_some() || range.end - range.start > STEP {
            return self.map()?.slice(range);
        }
        let number = range.start / STEP;
        let Some(cell) = self.pieces.get(number as usize) else { return Ok(&[]) };
        let start = number * STEP;
        let piece = if let Some(piece) = cell.get() {
            piece
        } else {
            let mut bytes = vec![0; (self.len - start).min(2 * STEP) as usize];
            read_at(&self.file, &mut bytes, start)?;
            cell.get_or_init(|| bytes.into_boxed_slice())
        };
        piece.get((range.start - start) as usize..(range.end - start) as usize).ok_or_else(ends)
    }
}

#[cfg(unix)]
fn read_at(file: &File, bytes: &mut [u8], at: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, at)
}

#[cfg(windows)]
fn read_at(file: &File, mut bytes: &mut [u8], mut at: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match std::os::windows::fs::FileExt::seek_read(file, bytes, at)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            n => {
                bytes = &mut bytes[n..];
                at += n as u64;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_piece_is_that_of_the_file() {
        let bytes: Vec<u8> = (0..5 * STEP as usize + 77).map(|i| ((i * 7) >> 3) as u8).collect();
        let mut file = tempfile::tempfile().expect("a file for the test");
        io::Write::write_all(&mut file, &bytes).expect("written");
        let scattered = Scattered::open(file).expect("opened");
        let len = bytes.len() as u64;
        for (start, end) in
            [(0, 0), (0, 1), (STEP - 1, STEP + 5), (STEP, 2 * STEP), (len - 9, len), (len, len), (3, 2 * STEP)]
        {
            assert_eq!(scattered.slice(start..end).expect("inside"), &bytes[start as usize..end as usize]);
        }
        assert!(scattered.slice(len - 1..len + 1).is_err());
        #[expect(clippy::reversed_empty_ranges, reason = "a wrong range is refused")]
        let reversed = scattered.slice(5..4);
        assert!(reversed.is_err());
        scattered.map().expect("mapped");
        assert_eq!(scattered.slice(9..4000).expect("inside"), &bytes[9..4000]);
    }
}
