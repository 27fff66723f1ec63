//! Manifests: one revision of a document each.
//!
//! **Invariant:** the sections a manifest lists, in order, are the document; where `edited` is not set they are its
//! source byte for byte.

use kb_core::{DocId, DocumentKind, MediaType, SectionId, Warning};
use serde::{Deserialize, Serialize};

use crate::codec::{Malformed, Put, Reader};
use crate::record::{Key, key_of};

/// What a section is to its document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Text = 0,
    FrontMatter = 1,
    Image = 2,
}

impl Role {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::FrontMatter => "front-matter",
            Self::Image => "image",
        }
    }
}

/// A section as a manifest lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SectionEntry {
    pub(crate) kbid: SectionId,
    pub(crate) role: Role,
    pub(crate) level: u8,
    /// Index of the section one level up.
    pub(crate) parent: Option<u32>,
    pub(crate) heading: Option<String>,
    /// Line in the source, from 1.
    pub(crate) line: u32,
    pub(crate) bytes: u64,
    pub(crate) part: Option<(u32, u32)>,
}

/// Where a document came from, and how to see cheaply whether that is still the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SourceState {
    pub(crate) name: String,
    pub(crate) len: u64,
    /// Modification time in nanoseconds since 1970; 0 for what is no file.
    pub(crate) modified: i64,
    /// BLAKE3 of its bytes, first 128 bits.
    pub(crate) hash: [u8; 16],
}

/// Which document of which system this is, where it was fetched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Origin {
    pub(crate) system: String,
    /// The id that the system has for it.
    pub(crate) id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) url: Option<String>,
    /// Milliseconds since 1970.
    pub(crate) retrieved: i64,
}

/// One revision of a document.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Manifest {
    pub(crate) docid: DocId,
    pub(crate) kind: DocumentKind,
    pub(crate) title: String,
    pub(crate) description: Option<String>,
    pub(crate) tags: Vec<String>,
    pub(crate) aliases: Vec<String>,
    /// Every other key of the front matter, as a JSON object.
    pub(crate) meta: String,
    pub(crate) media_type: MediaType,
    pub(crate) source: Option<SourceState>,
    /// The date the document gives itself, as written.
    pub(crate) date: Option<String>,
    /// Milliseconds since 1970.
    pub(crate) created: i64,
    pub(crate) updated: i64,
    pub(crate) revision: u32,
    /// A section was unlearned from it since the source was read.
    pub(crate) edited: bool,
    /// Hash of all that was given: bytes, type, metadata, splitter. Equal inputs make no revision.
    pub(crate) inputs: [u8; 16],
    pub(crate) warnings: Vec<Warning>,
    pub(crate) sections: Vec<SectionEntry>,
    /// Where it was fetched from, where a source brought it.
    pub(crate) origin: Option<Origin>,
}

const KINDS: [DocumentKind; 3] = [DocumentKind::Document, DocumentKind::Skill, DocumentKind::Agent];
const ROLES: [Role; 3] = [Role::Text, Role::FrontMatter, Role::Image];

impl Manifest {
    pub(crate) fn key(docid: &DocId) -> Key {
        key_of(docid.as_str())
    }

    /// Returns titles of the headings above a section and of its own, outermost first.
    pub(crate) fn heading_path(&self, index: usize) -> Vec<&str> {
        let mut path = Vec::new();
        let mut at = Some(index);
        while let Some(section) = at.and_then(|i| self.sections.get(i)) {
            path.extend(section.heading.as_deref());
            // A parent always stands before its children; a manifest that says otherwise would lead in a circle.
            at = section.parent.map(|p| p as usize).filter(|&p| at.is_some_and(|i| p < i));
        }
        path.reverse();
        path
    }

    /// Returns the position of the first section that is text, where there is one.
    pub(crate) fn first_text(&self) -> Option<usize> {
        self.sections.iter().position(|section| section.role != Role::FrontMatter)
    }

    pub(crate) fn source_bytes(&self) -> u64 {
        self.sections.iter().map(|section| section.bytes).sum()
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(64 + self.sections.len() * 48);
        out.put_text(self.docid.as_str());
        out.push(KINDS.iter().position(|&kind| kind == self.kind).unwrap_or(0) as u8);
        out.put_text(&self.title);
        out.put_option(self.description.as_deref(), super::codec::Put::put_text);
        for texts in [&self.tags, &self.aliases] {
            out.put_varint(texts.len() as u64);
            for text in texts {
                out.put_text(text);
            }
        }
        out.put_text(&self.meta);
        out.put_text(self.media_type.as_str());
        out.put_option(self.source.as_ref(), |o, source| {
            o.put_text(&source.name);
            o.put_varint(source.len);
            o.put_signed(source.modified);
            o.extend_from_slice(&source.hash);
        });
        out.put_option(self.date.as_deref(), super::codec::Put::put_text);
        out.put_signed(self.created);
        out.put_signed(self.updated);
        out.put_varint(self.revision.into());
        out.push(u8::from(self.edited));
        out.extend_from_slice(&self.inputs);
        out.put_varint(self.warnings.len() as u64);
        for warning in &self.warnings {
            out.put_text(&warning.code);
            out.put_text(&warning.message);
            out.put_option(warning.line, |o, n| o.put_varint(n.into()));
            out.put_option(warning.column, |o, n| o.put_varint(n.into()));
        }
        out.put_varint(self.sections.len() as u64);
        let mut line = 0;
        for section in &self.sections {
            out.extend_from_slice(&section.kbid.to_bytes());
            out.push(section.role as u8 | section.level << 2);
            out.put_varint(section.parent.map_or(0, |parent| u64::from(parent) + 1));
            out.put_option(section.heading.as_deref(), super::codec::Put::put_text);
            out.put_signed(i64::from(section.line) - line);
            line = section.line.into();
            out.put_varint(section.bytes);
            out.put_option(section.part, |o, (n, of)| {
                o.put_varint(n.into());
                o.put_varint(of.into());
            });
        }
        // What the first version of manifests did not have comes last, and is left out where there is none.
        if let Some(origin) = &self.origin {
            out.put_option(Some(origin), |o, origin| {
                o.put_text(&origin.system);
                o.put_text(&origin.id);
                o.put_option(origin.url.as_deref(), super::codec::Put::put_text);
                o.put_signed(origin.retrieved);
            });
        }
        out
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut r = Reader::new(bytes);
        let docid = r.text()?.parse().map_err(|_| r.malformed("a manifest has no docid"))?;
        let kind = *KINDS.get(usize::from(r.byte()?)).ok_or(r.malformed("an unknown kind of document"))?;
        let title = r.text()?.to_owned();
        let description = r.option(Reader::text)?.map(str::to_owned);
        let mut texts =
            || -> Result<Vec<String>, Malformed> { (0..r.count(1)?).map(|_| r.text().map(str::to_owned)).collect() };
        let (tags, aliases) = (texts()?, texts()?);
        let meta = r.text()?.to_owned();
        let media_type = r.text()?.parse().map_err(|_| r.malformed("a manifest has no media type"))?;
        let source = r.option(|r| {
            Ok(SourceState { name: r.text()?.to_owned(), len: r.varint()?, modified: r.signed()?, hash: r.array()? })
        })?;
        let date = r.option(Reader::text)?.map(str::to_owned);
        let (created, updated) = (r.signed()?, r.signed()?);
        let revision = r.varint32()?;
        let edited = r.byte()? != 0;
        let inputs = r.array()?;
        let mut warnings = Vec::new();
        for _ in 0..r.count(4)? {
            warnings.push(Warning {
                code: r.text()?.to_owned(),
                message: r.text()?.to_owned(),
                line: r.option(Reader::varint32)?,
                column: r.option(Reader::varint32)?,
            });
        }
        let count = r.count(21)?;
        let mut sections = Vec::with_capacity(count);
        let mut line = 0_i64;
        for _ in 0..count {
            let kbid = SectionId::from_bytes(r.array()?);
            let flags = r.byte()?;
            let role = *ROLES.get(usize::from(flags & 3)).ok_or(r.malformed("an unknown role of a section"))?;
            let parent = r.varint32()?.checked_sub(1);
            let heading = r.option(Reader::text)?.map(str::to_owned);
            line = line.wrapping_add(r.signed()?);
            let bytes = r.varint()?;
            let part = r.option(|r| Ok((r.varint32()?, r.varint32()?)))?;
            sections.push(SectionEntry {
                kbid,
                role,
                level: flags >> 2,
                parent,
                heading,
                line: line as u32,
                bytes,
                part,
            });
        }
        let origin = if r.is_at_end() {
            None
        } else {
            r.option(|r| {
                Ok(Origin {
                    system: r.text()?.to_owned(),
                    id: r.text()?.to_owned(),
                    url: r.option(Reader::text)?.map(str::to_owned),
                    retrieved: r.signed()?,
                })
            })?
        };
        Ok(Self {
            docid,
            kind,
            title,
            description,
            tags,
            aliases,
            meta,
            media_type,
            source,
            date,
            created,
            updated,
            revision,
            edited,
            inputs,
            warnings,
            sections,
            origin,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sample() -> Manifest {
        let section = |heading: Option<&str>, parent, line| SectionEntry {
            kbid: SectionId::from_bytes([line as u8; 16]),
            role: Role::Text,
            level: 2,
            parent,
            heading: heading.map(str::to_owned),
            line,
            bytes: 10,
            part: Some((1, 2)),
        };
        Manifest {
            docid: "guide/retries".parse().expect("a docid"),
            kind: DocumentKind::Document,
            title: "Retries".to_owned(),
            description: None,
            tags: vec!["ops".to_owned()],
            aliases: Vec::new(),
            meta: "{}".to_owned(),
            media_type: MediaType::markdown(),
            source: Some(SourceState { name: "guide/retries.md".to_owned(), len: 20, modified: -1, hash: [3; 16] }),
            date: Some("2031-02-03".to_owned()),
            created: 0,
            updated: 1 << 40,
            revision: 2,
            edited: true,
            inputs: [5; 16],
            warnings: vec![Warning { code: "c".to_owned(), message: "m".to_owned(), line: Some(1), column: None }],
            sections: vec![section(Some("A"), None, 1), section(None, Some(0), 9), section(Some("C"), Some(1), 4)],
            origin: Some(Origin {
                system: "lab".to_owned(),
                id: "retries".to_owned(),
                url: Some("https://a.example/retries".to_owned()),
                retrieved: 1 << 41,
            }),
        }
    }

    #[test]
    fn what_is_encoded_is_decoded() {
        assert_eq!(Manifest::decode(&sample().encode()), Ok(sample()));
        let learned = Manifest { origin: None, ..sample() };
        assert_eq!(Manifest::decode(&learned.encode()), Ok(learned));
        assert_eq!(sample().heading_path(2), ["A", "C"]);
    }

    proptest! {
        #[test]
        fn no_bytes_make_decoding_panic(bytes: Vec<u8>, at in 0..200_usize, bit in 0..8_u32) {
            let _ = Manifest::decode(&bytes);
            let mut flipped = sample().encode();
            let at = at % flipped.len();
            flipped[at] ^= 1 << bit;
            if let Ok(manifest) = Manifest::decode(&flipped) {
                for i in 0..manifest.sections.len() { manifest.heading_path(i); }
            }
        }
    }
}
