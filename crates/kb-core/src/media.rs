//! Media types, in the one spelling that ids are made from.
//!
//! **Invariant:** a [`MediaType`] is lower case, has no parameters, and is at most 127 bytes; the kbid of a section
//! hangs on it.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The media type of a section: `type/subtype`, lower case, without parameters.
///
/// ```
/// use kb_core::MediaType;
///
/// let given: MediaType = "Text/Markdown; charset=utf-8".parse()?;
/// assert_eq!(given, MediaType::markdown());
/// assert_eq!("html".parse::<MediaType>()?.as_str(), "text/html");
/// # Ok::<(), kb_core::MediaTypeError>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MediaType(Cow<'static, str>);

/// The text is no media type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a media type: `{0}`")]
pub struct MediaTypeError(String);

impl MediaType {
    /// `text/markdown`
    pub const fn markdown() -> Self {
        Self(Cow::Borrowed("text/markdown"))
    }

    /// `text/plain`
    pub const fn plain() -> Self {
        Self(Cow::Borrowed("text/plain"))
    }

    /// `text/html`
    pub const fn html() -> Self {
        Self(Cow::Borrowed("text/html"))
    }

    /// `application/toml`
    pub const fn toml() -> Self {
        Self(Cow::Borrowed("application/toml"))
    }

    /// Returns the type as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Says whether this is an `image/*`.
    pub fn is_image(&self) -> bool {
        self.0.starts_with("image/")
    }

    /// Says whether sections of this type hold text: one of the four types that are split.
    pub fn is_text(&self) -> bool {
        matches!(self.as_str(), "text/markdown" | "text/plain" | "text/html" | "application/toml")
    }

    /// Returns the type that a file of this name is taken for, by its extension; `None` for a name kb does not read.
    pub fn of_file_name(name: &str) -> Option<Self> {
        let extension = name.rsplit_once('.')?.1.to_ascii_lowercase();
        Some(match extension.as_str() {
            "md" | "markdown" | "mdown" | "mkd" | "mdx" => Self::markdown(),
            "txt" | "text" | "rst" | "adoc" | "asciidoc" | "org" => Self::plain(),
            "html" | "htm" | "xhtml" => Self::html(),
            "toml" => Self::toml(),
            "png" => Self(Cow::Borrowed("image/png")),
            "jpg" | "jpeg" => Self(Cow::Borrowed("image/jpeg")),
            "gif" => Self(Cow::Borrowed("image/gif")),
            "webp" => Self(Cow::Borrowed("image/webp")),
            "svg" => Self(Cow::Borrowed("image/svg+xml")),
            _ => return None,
        })
    }
}

impl FromStr for MediaType {
    type Err = MediaTypeError;

    fn from_str(text: &str) -> Result<Self, MediaTypeError> {
        let bare = text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        match bare.as_str() {
            "markdown" | "md" | "text/markdown" | "text/x-markdown" => return Ok(Self::markdown()),
            "text" | "plain" | "txt" | "text/plain" => return Ok(Self::plain()),
            "html" | "text/html" | "application/xhtml+xml" => return Ok(Self::html()),
            "toml" | "application/toml" | "text/toml" | "text/x-toml" => return Ok(Self::toml()),
            _ => {}
        }
        let token = |part: &str| {
            !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&b))
        };
        match bare.split_once('/') {
            Some((kind, sub)) if bare.len() <= 127 && token(kind) && token(sub) => Ok(Self(Cow::Owned(bare))),
            _ => Err(MediaTypeError(text.chars().take(80).collect())),
        }
    }
}

impl fmt::Display for MediaType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Debug for MediaType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MediaType({self})")
    }
}

impl Serialize for MediaType {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for MediaType {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_spelling_per_type() {
        for (given, expected) in [
            ("markdown", "text/markdown"),
            ("TEXT/HTML;charset=latin-1", "text/html"),
            ("toml", "application/toml"),
            ("image/PNG", "image/png"),
        ] {
            assert_eq!(given.parse::<MediaType>().map(|t| t.to_string()).as_deref(), Ok(expected));
        }
        for bad in ["", "nonsense", "a/", "/b", "a b/c", "a/b/c"] {
            assert!(bad.parse::<MediaType>().is_err(), "{bad}");
        }
    }
}
