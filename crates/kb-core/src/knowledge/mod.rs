//! Knowledge documents: front matter, an introduction, and chapters, each a heading of level 2 with all below it.
//!
//! A document is read by byte ranges and edited by them, so that what an edit is not about stays as it was: other
//! chapters, comments and quoting in the front matter, line ends, a byte order mark, a missing final newline.
//!
//! **Invariant:** an edit is read back before it is returned. It is refused where the chapters would not be the ones
//! meant: a fence left open, a heading in the new text, a title that is none.

mod compose;
mod edit;
#[cfg(test)]
mod tests;

use std::ops::Range;

use serde_json::{Map, Value};
use unicode_normalization::UnicodeNormalization;

pub use compose::{NewChapter, compose_knowledge};
pub use edit::with_updated;

use crate::front_matter::{FrontMatterBlock, FrontMatterFormat, fields, text_of};
use crate::lines::next_line;
use crate::split::{HeadingLine, body_start, outline};
use crate::{Chapter, ChapterEntry, KnowledgeDocument, KnowledgeFileEntry, KnowledgeMetadata, Warning};

/// Why a document cannot be edited as asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChapterError {
    /// No chapter has this title.
    #[error("Chapter not found: {title}")]
    NotFound {
        /// What was asked for.
        title: String,
        /// The titles there are.
        titles: Vec<String>,
    },
    /// Several chapters have this title.
    #[error("{count} chapters have the title `{title}`: rename all but one of them in the file first")]
    Ambiguous {
        /// The title.
        title: String,
        /// How many have it.
        count: usize,
    },
    /// A chapter of this title is there already.
    #[error("Chapter already exists: {title}")]
    Exists {
        /// The title.
        title: String,
    },
    /// A text that begins a chapter of its own.
    #[error(
        "`{heading}` on line {line} of the text is a heading of level 2, which would begin another chapter: \
         use level 3 (`###`), or add a chapter"
    )]
    Heading {
        /// The heading.
        heading: String,
        /// Its line in the text, from 1.
        line: usize,
    },
    /// A title that no heading can have.
    #[error("`{title}` cannot be the title of a chapter: {reason}")]
    Title {
        /// The title.
        title: String,
        /// Why not.
        reason: &'static str,
    },
    /// A text that would change what other chapters are.
    #[error("the text of {place} would swallow what follows it: it leaves a code fence or a comment open")]
    Open {
        /// Which text.
        place: String,
    },
    /// A summary of more than one paragraph.
    #[error("the summary is not one paragraph")]
    Summary,
    /// A title or keywords that the front matter cannot hold.
    #[error("title and keywords do not fit into the front matter, which holds 16 KiB")]
    FrontMatter,
}

/// A knowledge document, read.
#[derive(Debug, Clone)]
pub struct Knowledge<'a> {
    source: &'a str,
    /// Where the text below the front matter begins.
    body: usize,
    front: Option<(FrontMatterFormat, Range<usize>)>,
    fields: Map<String, Value>,
    error: Option<Warning>,
    heading: Option<String>,
    chapters: Vec<Span>,
}

/// A chapter by byte ranges.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Span {
    /// The title as written, markup and all.
    title: String,
    /// The title without markup.
    plain: String,
    is_setext: bool,
    /// The lines of the heading.
    heading: Range<usize>,
    /// All below it.
    body: Range<usize>,
    summary: Option<Range<usize>>,
}

impl<'a> Knowledge<'a> {
    /// Reads a document. Every text is one.
    ///
    /// ```
    /// use kb_core::Knowledge;
    ///
    /// let document = Knowledge::parse("---\ntitle: Lamps\n---\n\nAll of them.\n\n## Desk\n\nIt dims.\n");
    /// assert_eq!(document.introduction(), "All of them.");
    /// assert_eq!(document.chapters()[0].content, "It dims.");
    /// ```
    pub fn parse(source: &'a str) -> Self {
        let (body, warnings) = body_start(source);
        let mut error = warnings.into_iter().find(|warning| warning.code != "front-matter-field");
        let mut map = Map::new();
        let mut front = None;
        if let FrontMatterBlock::Found { format, fields: range, end } = FrontMatterBlock::find(source)
            && end == body
        {
            match fields(source, format, range.clone()) {
                Ok(read) => {
                    map = read;
                    front = Some((format, range));
                }
                Err(warning) => error = Some(warning),
            }
        }
        let outline = outline(source, body);
        let heading = outline.headings.iter().find(|heading| heading.level == 1).map(|heading| heading.text.clone());
        let starts: Vec<&HeadingLine> = outline.headings.iter().filter(|heading| heading.level == 2).collect();
        let chapters = starts
            .iter()
            .enumerate()
            .map(|(i, heading)| {
                let end = starts.get(i + 1).map_or(source.len(), |next| next.range.start);
                let below = heading.range.end..end;
                let first = outline.paragraphs.partition_point(|paragraph| paragraph.start < below.start);
                let summary = outline.paragraphs.get(first).filter(|paragraph| paragraph.start < end).cloned();
                Span {
                    title: title_as_written(source, heading),
                    plain: heading.text.clone(),
                    is_setext: heading.is_setext,
                    heading: heading.range.clone(),
                    body: below,
                    summary,
                }
            })
            .collect();
        Self { source, body, front, fields: map, error, heading, chapters }
    }

    /// Returns where and why the front matter cannot be read.
    pub fn error(&self) -> Option<String> {
        let warning = self.error.as_ref()?;
        let (line, column) = (warning.line.unwrap_or(1), warning.column.unwrap_or(1));
        Some(format!("line {line}, column {column}: {}", warning.message))
    }

    /// Returns what the front matter says. Without a title there it is the first heading of level 1, else `name`.
    pub fn metadata(&self, name: &str) -> KnowledgeMetadata {
        let mut other = self.fields.clone();
        let mut take = |key: &str| {
            let value = other.get(key).and_then(text_of).map(|text| text.trim().to_owned());
            let is_scalar = other.get(key).is_some_and(|value| value.is_null() || text_of(value).is_some());
            if is_scalar {
                other.shift_remove(key);
            }
            value.filter(|text| !text.is_empty())
        };
        let title = take("title").or_else(|| self.heading.clone()).unwrap_or_else(|| name.to_owned());
        let (created, updated) = (take("created"), take("updated"));
        let keywords = match other.get("keywords") {
            Some(Value::Array(items)) => items.iter().filter_map(text_of).collect(),
            Some(value) => text_of(value).map(|text| split_keywords(&text)).unwrap_or_default(),
            None => Vec::new(),
        };
        other.shift_remove("keywords");
        KnowledgeMetadata { title, keywords, created, updated, other }
    }

    /// Returns what stands before the first chapter, without the blank lines around it.
    pub fn introduction(&self) -> &'a str {
        let end = self.chapters.first().map_or(self.source.len(), |chapter| chapter.heading.start);
        let text = &self.source[self.body..end];
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        &text[trimmed(text)]
    }

    /// Returns the chapters in order.
    pub fn chapters(&self) -> Vec<Chapter> {
        self.chapters.iter().map(|span| self.shown(span)).collect()
    }

    /// Returns the one chapter of this title, as edits find it.
    ///
    /// # Errors
    ///
    /// None has this title, or several have.
    pub fn chapter(&self, title: &str) -> Result<Chapter, ChapterError> {
        Ok(self.shown(&self.chapters[self.find(title)?]))
    }

    /// Returns the chapters without their text.
    pub fn chapter_entries(&self) -> Vec<ChapterEntry> {
        let entry = |span: &Span| ChapterEntry {
            title: span.title.clone(),
            level: 2,
            summary: self.summary(span).unwrap_or_default().to_owned(),
        };
        self.chapters.iter().map(entry).collect()
    }

    /// Returns the document whole, as the file `filename`.
    pub fn document(&self, filename: &str) -> KnowledgeDocument {
        KnowledgeDocument {
            filename: filename.to_owned(),
            metadata: self.metadata(stem(filename)),
            introduction: self.introduction().to_owned(),
            chapters: self.chapters(),
            full_content: self.source.to_owned(),
            error: self.error(),
        }
    }

    /// Returns the line of a list for the file `filename`.
    pub fn entry(&self, filename: &str) -> KnowledgeFileEntry {
        let KnowledgeMetadata { title, keywords, created, updated, .. } = self.metadata(stem(filename));
        KnowledgeFileEntry { filename: filename.to_owned(), title, keywords, created, updated, error: self.error() }
    }

    fn shown(&self, span: &Span) -> Chapter {
        Chapter {
            title: span.title.clone(),
            content: self.content(span).to_owned(),
            summary: self.summary(span).map(str::to_owned),
        }
    }

    fn content(&self, span: &Span) -> &'a str {
        let text = &self.source[span.body.clone()];
        &text[trimmed(text)]
    }

    fn summary(&self, span: &Span) -> Option<&'a str> {
        span.summary.clone().map(|range| self.source[range].trim())
    }

    /// Finds the one chapter of this title: as written or without its markup, case included.
    fn find(&self, title: &str) -> Result<usize, ChapterError> {
        let wanted: String = title.trim().nfc().collect();
        let is_wanted = |text: &str| text.nfc().eq(wanted.chars());
        let mut found: Vec<usize> = (0..self.chapters.len()).filter(|&i| is_wanted(&self.chapters[i].title)).collect();
        if found.is_empty() {
            found = (0..self.chapters.len()).filter(|&i| is_wanted(&self.chapters[i].plain)).collect();
        }
        match found[..] {
            [one] => Ok(one),
            [] => Err(ChapterError::NotFound {
                title: title.to_owned(),
                titles: self.chapters.iter().map(|span| span.title.clone()).collect(),
            }),
            _ => Err(ChapterError::Ambiguous { title: title.to_owned(), count: found.len() }),
        }
    }
}

/// Returns the name of a file without `.md`.
fn stem(filename: &str) -> &str {
    filename.strip_suffix(".md").unwrap_or(filename)
}

fn split_keywords(text: &str) -> Vec<String> {
    text.split(',').map(str::trim).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// Returns a heading's text as it is written: without the marks of its level, and on one line.
fn title_as_written(source: &str, heading: &HeadingLine) -> String {
    let text = source[heading.range.clone()].trim_start_matches('\u{feff}').trim();
    if heading.is_setext {
        let above = text.rfind(['\n', '\r']).map_or("", |at| &text[..at]);
        return above.split(['\n', '\r']).map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
    }
    let text = text.trim_start_matches('#').trim();
    let bare = text.trim_end_matches('#');
    let title = if bare.is_empty() || bare.ends_with([' ', '\t']) { bare.trim_end() } else { text };
    // The one mark that a title needs to keep a `#` at its end, see `compose::heading_line`.
    match title.trim_end_matches('#').strip_suffix('\\') {
        Some(start) if title.ends_with('#') && (start.is_empty() || start.ends_with([' ', '\t'])) => {
            format!("{start}{}", &title[start.len() + 1..])
        }
        _ => title.to_owned(),
    }
}

/// Returns the range of a text without the blank lines at its ends and without its last line end.
fn trimmed(text: &str) -> Range<usize> {
    let mut start = 0;
    while start < text.len() {
        let next = next_line(text, start);
        if !text[start..next].trim_matches([' ', '\t', '\r', '\n']).is_empty() {
            break;
        }
        start = next;
    }
    if start == text.len() {
        return 0..0;
    }
    let visible = text.trim_end_matches([' ', '\t', '\r', '\n']).len();
    let line_end = text[visible..].find(['\r', '\n']).map_or(text.len(), |at| visible + at);
    start..line_end
}
