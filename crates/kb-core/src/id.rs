//! Ids: the content address of a section (kbid) and the name of a document (docid).
//!
//! **Invariant:** an id that exists is well formed. Both types are made only by a constructor that checks, and both
//! deserialize through it. Whether what an id names exists is for the store to say.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::media::MediaType;

const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// The content address of a section: its kbid.
///
/// The first 128 bits of BLAKE3 over the media type, a NUL, and the bytes. Two sections of one media type with the
/// same bytes have the same id, on every machine and in every release. Written as 26 characters of lower-case
/// Crockford base 32, the bits left-aligned, so the last character carries two zero bits.
///
/// ```
/// use kb_core::{MediaType, SectionId};
///
/// let id = SectionId::of(&MediaType::markdown(), b"# Retries\n");
/// assert_eq!(id.to_string().len(), 26);
/// assert_eq!(id.to_string().parse(), Ok(id));
/// assert!("../../etc/passwd".parse::<SectionId>().is_err());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SectionId(u128);

impl SectionId {
    /// The number of characters of an id as text.
    pub const LEN: usize = 26;

    /// Returns the id of these bytes under this media type.
    pub fn of(media_type: &MediaType, bytes: &[u8]) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(media_type.as_str().as_bytes());
        hasher.update(&[0]);
        hasher.update(bytes);
        let mut first = [0; 16];
        first.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
        Self::from_bytes(first)
    }

    /// Returns the id with these 16 bytes, big-endian, as the store keeps it.
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(u128::from_be_bytes(bytes))
    }

    /// Returns the 16 bytes of the id; ids sort alike as bytes, as values and as text.
    pub const fn to_bytes(self) -> [u8; 16] {
        self.0.to_be_bytes()
    }
}

impl fmt::Display for SectionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = [0; Self::LEN];
        for (i, c) in text.iter_mut().enumerate() {
            let shift = 123_i32 - 5 * i as i32;
            let bits = if shift >= 0 { self.0 >> shift } else { self.0 << -shift };
            *c = ALPHABET[(bits & 31) as usize];
        }
        f.pad(std::str::from_utf8(&text).expect("the alphabet is ASCII"))
    }
}

impl fmt::Debug for SectionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SectionId({self})")
    }
}

/// Why a text is not an id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IdError {
    /// Not 26 characters of the alphabet with the last two bits zero.
    #[error("not a kbid (26 characters of 0-9 and a-z without i, l, o, u): `{0}`")]
    SectionId(String),
    /// Empty, too long, or with a character that no docid may have.
    #[error("not a docid ({reason}): `{text}`")]
    DocId {
        /// What was given.
        text: String,
        /// Which rule it breaks.
        reason: &'static str,
    },
}

impl FromStr for SectionId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let bad = || IdError::SectionId(text.chars().take(80).collect());
        if text.len() != Self::LEN {
            return Err(bad());
        }
        let mut value = 0_u128;
        for (i, c) in text.bytes().enumerate() {
            let digit = ALPHABET.iter().position(|&a| a == c).ok_or_else(bad)? as u128;
            if i == Self::LEN - 1 {
                if digit & 3 != 0 {
                    return Err(bad());
                }
                value = (value << 3) | (digit >> 2);
            } else {
                value = (value << 5) | digit;
            }
        }
        Ok(Self(value))
    }
}

impl Serialize for SectionId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for SectionId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// The name of a document: a stable slug.
///
/// Lower-case letters and digits of any script, `-`, `_`, `.` and `/` between parts; 1 to 200 bytes; no part is empty,
/// `.` or `..`. A text of the shape of a kbid is refused, so that an id says by itself what it is.
///
/// ```
/// use kb_core::DocId;
///
/// assert!("guide/retries".parse::<DocId>().is_ok());
/// assert!("../guide".parse::<DocId>().is_err());
/// assert!("Guide".parse::<DocId>().is_err());
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DocId(Box<str>);

impl DocId {
    /// The longest docid, in bytes.
    pub const MAX_BYTES: usize = 200;

    /// Returns the docid as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for DocId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Debug for DocId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DocId({self})")
    }
}

impl AsRef<str> for DocId {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl FromStr for DocId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let bad = |reason| IdError::DocId { text: text.chars().take(80).collect(), reason };
        if text.is_empty() {
            return Err(bad("it is empty"));
        }
        if text.len() > Self::MAX_BYTES {
            return Err(bad("it is over 200 bytes"));
        }
        if text.parse::<SectionId>().is_ok() {
            return Err(bad("it has the shape of a kbid"));
        }
        if text.split('/').any(|part| part.is_empty() || part == "." || part == "..") {
            return Err(bad("a part between slashes is empty, `.` or `..`"));
        }
        let allowed =
            |c: char| "-_./".contains(c) || (!c.is_uppercase() && (c.is_alphanumeric() || crate::slug::is_mark(c)));
        if !text.chars().all(allowed) {
            return Err(bad("only lower-case letters, digits, `-`, `_`, `.` and `/` may stand in it"));
        }
        Ok(Self(text.into()))
    }
}

impl Serialize for DocId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for DocId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kbid_is_the_left_aligned_base32_of_the_hash() {
        let id = SectionId::from_bytes([0xff; 16]);
        assert_eq!(id.to_string(), "zzzzzzzzzzzzzzzzzzzzzzzzzw");
        assert_eq!(SectionId::from_bytes([0; 16]).to_string(), "0".repeat(26));
        let id = SectionId::from_bytes(*b"0123456789abcdef");
        assert_eq!(id.to_string().parse(), Ok(id));
    }

    #[test]
    fn only_the_canonical_spelling_is_an_id() {
        for bad in ["", "abc", "zzzzzzzzzzzzzzzzzzzzzzzzzz", "ZZZZZZZZZZZZZZZZZZZZZZZZZW", "ilouilouilouilouilouilouil"]
        {
            assert!(bad.parse::<SectionId>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_docid_cannot_leave_its_place() {
        for bad in ["", "/a", "a//b", "a/..", ".", "A", "a b", "a\\b", "a\0", &"a".repeat(201), &"0".repeat(26)] {
            assert!(bad.parse::<DocId>().is_err(), "{bad:?}");
        }
        for good in ["a", "a/b.c", "skill-x", "港口", "agent-code-reviewer", "ทะเล"] {
            assert!(good.parse::<DocId>().is_ok(), "{good:?}");
        }
    }
}
