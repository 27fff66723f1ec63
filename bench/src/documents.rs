//! The documents of a folder or a collection, split into sections as the store splits them.
//!
//! **Invariant:** what both sides of a comparison are given is taken from here, so that they index the same sections
//! with the same titles, heading paths and texts.

use std::collections::HashSet;
use std::fs;
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use kb_core::{MediaType, Parsed, Role, SectionId, docid_from_path, docid_with_suffix, parse};
use kb_search::{DateKey, DocumentInput, Markup, SectionInput};

use crate::Result;
use crate::usage::cpu;

/// A section of a document.
#[derive(Debug)]
pub(crate) struct Section {
    /// Place in the document, front matter counted.
    pub(crate) position: u32,
    /// The content address.
    pub(crate) kbid: SectionId,
    /// Titles of the headings above and of its own.
    pub(crate) heading_path: Vec<String>,
    /// Its bytes in the document's text.
    pub(crate) range: Range<usize>,
    /// This is the first section of text.
    pub(crate) first: bool,
}

/// A document, split.
#[derive(Debug)]
pub(crate) struct Document {
    pub(crate) docid: String,
    pub(crate) title: String,
    pub(crate) tags: Vec<String>,
    /// Description and aliases.
    pub(crate) front_text: String,
    pub(crate) source: String,
    pub(crate) text: String,
    pub(crate) sections: Vec<Section>,
}

impl Document {
    /// Returns the text of a section.
    pub(crate) fn text_of(&self, section: &Section) -> &str {
        &self.text[section.range.clone()]
    }

    /// Returns a section's text and, for the first one, what of the front matter is to be found there.
    pub(crate) fn body_of(&self, section: &Section) -> String {
        let mut body = self.text_of(section).to_owned();
        if section.first {
            for more in self.tags.iter().chain([&self.front_text]).filter(|text| !text.is_empty()) {
                body.push('\n');
                body.push_str(more);
            }
        }
        body
    }

    /// Calls with the document as an index of kb takes it.
    pub(crate) fn with_input<T>(&self, call: impl FnOnce(&DocumentInput<'_>) -> T) -> T {
        let paths: Vec<Vec<&str>> =
            self.sections.iter().map(|section| section.heading_path.iter().map(String::as_str).collect()).collect();
        let sections: Vec<SectionInput<'_>> = self
            .sections
            .iter()
            .zip(&paths)
            .map(|(section, path)| SectionInput {
                position: section.position,
                kbid: section.kbid,
                heading_path: path,
                text: self.text_of(section),
                markup: Markup::Markdown,
                first: section.first,
            })
            .collect();
        call(&DocumentInput {
            docid: &self.docid,
            title: &self.title,
            tags: &self.tags,
            front_text: &self.front_text,
            types: &["text/markdown", "document"],
            source: Some(&self.source),
            date: DateKey::default(),
            sections: &sections,
        })
    }
}

/// CPU time of what comes before indexing.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Preparation {
    pub(crate) reading: Duration,
    pub(crate) splitting: Duration,
    pub(crate) hashing: Duration,
}

/// Reads the Markdown files below a folder and splits them; the documents come in the order of their docids.
pub(crate) fn read_folder(folder: &Path) -> Result<(Vec<Document>, Preparation)> {
    let begun = cpu()?;
    let mut files: Vec<(String, String)> = Vec::new();
    for entry in ignore::WalkBuilder::new(folder).standard_filters(false).build() {
        let entry = entry?;
        let path = entry.path();
        if entry.file_type().is_some_and(|kind| kind.is_file()) && path.extension().is_some_and(|end| end == "md") {
            let bytes = fs::read(path).map_err(|error| format!("cannot read `{}`: {error}", path.display()))?;
            let name = path.strip_prefix(folder)?.to_string_lossy().into_owned();
            match String::from_utf8(bytes) {
                Ok(text) => files.push((name, text)),
                Err(_) => crate::table::complain(&format!("left out, it is not UTF-8: `{}`", path.display()))?,
            }
        }
    }
    if files.is_empty() {
        return Err(format!("no Markdown files below `{}`", folder.display()).into());
    }
    let read = cpu()?;
    let (documents, rest) = split(files)?;
    Ok((documents, Preparation { reading: read.saturating_sub(begun), ..rest }))
}

/// Splits named texts; the documents come in the order of their docids.
pub(crate) fn split(mut files: Vec<(String, String)>) -> Result<(Vec<Document>, Preparation)> {
    files.sort_unstable();
    let begun = cpu()?;
    let markdown = MediaType::markdown();
    let parsed: Vec<Parsed> = files.iter().map(|(_, text)| parse(text, &markdown)).collect();
    let split = cpu()?;
    let ids: Vec<Vec<SectionId>> = files
        .iter()
        .zip(&parsed)
        .map(|((_, text), parsed)| {
            let id = |range: &Range<usize>| SectionId::of(&markdown, &text.as_bytes()[range.clone()]);
            parsed.sections.iter().map(|piece| id(&piece.range)).collect()
        })
        .collect();
    let hashed = cpu()?;
    let mut taken = HashSet::new();
    let mut documents = Vec::with_capacity(files.len());
    for (((name, text), parsed), ids) in files.into_iter().zip(parsed).zip(ids) {
        let wanted = docid_from_path(&name);
        let mut docid = wanted.clone();
        let mut number = 2;
        while !taken.insert(docid.clone()) {
            docid = docid_with_suffix(&wanted, number);
            number += 1;
        }
        let last = name.rsplit('/').next().unwrap_or(&name).to_owned();
        documents.push(document(docid.as_str().to_owned(), name, &last, text, parsed, ids));
    }
    documents.sort_unstable_by(|a, b| a.docid.cmp(&b.docid));
    let preparation = Preparation {
        reading: Duration::ZERO,
        splitting: split.saturating_sub(begun),
        hashing: hashed.saturating_sub(split),
    };
    Ok((documents, preparation))
}

fn document(
    docid: String,
    source: String,
    fallback_title: &str,
    text: String,
    parsed: Parsed,
    ids: Vec<SectionId>,
) -> Document {
    let mut sections: Vec<Section> = Vec::with_capacity(ids.len());
    for (index, (piece, kbid)) in parsed.sections.iter().zip(ids).enumerate() {
        if piece.role == Role::Text {
            let heading_path = parsed.heading_path(index).into_iter().map(str::to_owned).collect();
            let first = sections.is_empty();
            sections.push(Section { position: index as u32, kbid, heading_path, range: piece.range.clone(), first });
        } else if parsed.sections.len() == 1 {
            // Front matter alone stands for its document, without its text.
            sections.push(Section { position: 0, kbid, heading_path: Vec::new(), range: 0..0, first: true });
        }
    }
    let front_text =
        parsed.description.iter().chain(&parsed.aliases).map(String::as_str).collect::<Vec<_>>().join("\n");
    let title = parsed.title.unwrap_or_else(|| fallback_title.to_owned());
    Document { docid, title, tags: parsed.tags, front_text, source, text, sections }
}

/// Returns the number of sections.
pub(crate) fn section_count(documents: &[Document]) -> usize {
    documents.iter().map(|document| document.sections.len()).sum()
}

/// Returns the bytes of the sections' texts.
pub(crate) fn text_bytes(documents: &[Document]) -> u64 {
    let of = |document: &Document| document.sections.iter().map(|section| section.range.len() as u64).sum::<u64>();
    documents.iter().map(of).sum()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by it")]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_split_as_the_store_does() {
        let dir = tempfile::tempdir().unwrap();
        let source =
            "---\ntitle: Lamp\ntags: [light]\ndescription: It shines\n---\n# Use\n\nPress.\n\n## Twice\n\nDims.\n";
        fs::write(dir.path().join("b.md"), source).unwrap();
        fs::write(dir.path().join("a.md"), "---\ntitle: Alone\n---\n").unwrap();
        fs::write(dir.path().join("c.txt"), "no Markdown").unwrap();
        let (documents, _) = read_folder(dir.path()).unwrap();
        let docids: Vec<&str> = documents.iter().map(|document| document.docid.as_str()).collect();
        assert_eq!(docids, ["a", "b"]);
        assert_eq!(documents[0].body_of(&documents[0].sections[0]), "");
        let lamp = &documents[1];
        assert_eq!((lamp.title.as_str(), section_count(&documents)), ("Lamp", 3));
        assert_eq!(lamp.sections[1].heading_path, ["Use", "Twice"]);
        assert_eq!(lamp.text_of(&lamp.sections[1]), "## Twice\n\nDims.\n");
        assert_eq!(lamp.body_of(&lamp.sections[0]), "# Use\n\nPress.\n\n\nlight\nIt shines");
        assert_eq!(lamp.with_input(|input| input.sections.iter().filter(|s| s.first).count()), 1);
    }
}
