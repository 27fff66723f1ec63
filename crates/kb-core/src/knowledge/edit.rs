//! Edits of one chapter, or of the time in the front matter, by byte range.
//!
//! **Invariant:** an edit touches the bytes of its chapter alone. Blank lines around a chapter's text stay, so a text
//! that is replaced and put back leaves the document as it was.

use std::ops::Range;

use super::compose::{heading_line, refuse_heading};
use super::{ChapterError, Knowledge, Span, trimmed};
use crate::front_matter::{FrontMatterFormat, fields, find_key};
use crate::lines::next_line;

impl Knowledge<'_> {
    /// Returns the document with another text below a chapter's heading: `summary` as its first paragraph, if there is
    /// one, then `content`. A first line that repeats the heading is dropped.
    pub fn with_chapter(&self, title: &str, content: &str, summary: Option<&str>) -> Result<String, ChapterError> {
        let index = self.find(title)?;
        let span = &self.chapters[index];
        let content = without_own_heading(content, span);
        let content = self.in_own_line_ends(&content[trimmed(content)]);
        refuse_heading(&content)?;
        let summary =
            summary.map(str::trim).filter(|summary| !summary.is_empty()).map(|text| self.in_own_line_ends(text));
        let text = match &summary {
            None => content,
            Some(summary) if content.is_empty() => summary.clone(),
            Some(summary) => [summary.as_str(), self.line_end(), self.line_end(), &content].concat(),
        };
        let edited = self.replaced(index, &text);
        let read = Knowledge::parse(&edited);
        self.expect_chapters(&read, Some(index), &text)?;
        if summary.is_some() && read.summary(&read.chapters[index]) != summary.as_deref() {
            return Err(ChapterError::Summary);
        }
        Ok(edited)
    }

    /// Returns the document with one chapter more: after the chapter `after`, else at the end.
    pub fn with_new_chapter(&self, title: &str, content: &str, after: Option<&str>) -> Result<String, ChapterError> {
        match self.find(title) {
            Err(ChapterError::NotFound { .. }) => {}
            _ => return Err(ChapterError::Exists { title: title.to_owned() }),
        }
        let index = match after {
            Some(after) => self.find(after)? + 1,
            None => self.chapters.len(),
        };
        let at = self.chapters.get(index).map_or(self.source.len(), |next| next.heading.start);
        let end = self.line_end();
        let content = self.in_own_line_ends(&content[trimmed(content)]);
        refuse_heading(&content)?;
        let mut text = heading_line(title)? + end;
        if !content.is_empty() {
            text = [&text, end, &content, end].concat();
        }
        let (before, rest) = self.source.split_at(at);
        let mut edited = before.to_owned();
        if !before.trim_start_matches('\u{feff}').is_empty() {
            if !before.ends_with(['\n', '\r']) {
                edited.push_str(end);
            }
            if !ends_with_blank_line(&edited) {
                edited.push_str(end);
            }
        }
        edited.push_str(&text);
        if !rest.is_empty() {
            edited.push_str(end);
        }
        edited.push_str(rest);
        let read = Knowledge::parse(&edited);
        let is_as_meant = read.chapters.len() == self.chapters.len() + 1
            && read.chapters[index].title == title.trim()
            && read.content(&read.chapters[index]) == content
            && read.introduction() == self.introduction()
            && (0..self.chapters.len()).all(|i| {
                let span = &read.chapters[if i < index { i } else { i + 1 }];
                span.title == self.chapters[i].title && read.content(span) == self.content(&self.chapters[i])
            });
        if is_as_meant { Ok(edited) } else { Err(ChapterError::Open { place: format!("chapter `{title}`") }) }
    }

    /// Returns the document without this chapter.
    pub fn without_chapter(&self, title: &str) -> Result<String, ChapterError> {
        let span = &self.chapters[self.find(title)?];
        Ok([&self.source[..span.heading.start], &self.source[span.body.end..]].concat())
    }

    /// Puts a text in the place of a chapter's own, with the blank lines around it left alone.
    fn replaced(&self, index: usize, text: &str) -> String {
        let span = &self.chapters[index];
        let body = &self.source[span.body.clone()];
        let own = trimmed(body);
        let (before, after) = (&self.source[..span.body.start], &self.source[span.body.end..]);
        let end = self.line_end();
        let next_is_setext = self.chapters.get(index + 1).is_some_and(|next| next.is_setext);
        if !own.is_empty() {
            let (lead, mut trail) = (&body[..own.start], &body[own.end..]);
            if text.is_empty() && lead.is_empty() && trail.is_empty() {
                return before.trim_end_matches(['\n', '\r']).to_owned();
            }
            if text.is_empty() {
                // The line goes with its end, and with the blank one that keeps it apart from a setext heading.
                for _ in 0..=usize::from(next_is_setext) {
                    trail = &trail[next_line(trail, 0)..];
                }
            }
            return [before, lead, text, trail, after].concat();
        }
        if text.is_empty() {
            return self.source.to_owned();
        }
        if !before.ends_with(['\n', '\r']) {
            return [before, end, text].concat();
        }
        let lead = if self.puts_blank_below_headings() { &body[..next_line(body, 0)] } else { "" };
        let rest = &body[lead.len()..];
        let gap = if next_is_setext { end } else { "" };
        [before, lead, text, end, gap, rest, after].concat()
    }

    /// Says whether the chapters of this document begin with a blank line; where none tells, they do.
    fn puts_blank_below_headings(&self) -> bool {
        let mut bodies = self.chapters.iter().map(|span| &self.source[span.body.clone()]);
        bodies.find_map(|body| Some(trimmed(body)).filter(|own| !own.is_empty())).is_none_or(|own| own.start > 0)
    }

    /// Refuses an edit that changed more than the text of one chapter.
    fn expect_chapters(&self, read: &Knowledge<'_>, edited: Option<usize>, text: &str) -> Result<(), ChapterError> {
        let is_same = read.chapters.len() == self.chapters.len()
            && read.introduction() == self.introduction()
            && self.chapters.iter().zip(&read.chapters).enumerate().all(|(i, (old, new))| {
                let expected = if edited == Some(i) { text } else { self.content(old) };
                old.title == new.title && read.content(new) == expected
            });
        if is_same { Ok(()) } else { Err(ChapterError::Open { place: "the chapter".to_owned() }) }
    }

    fn line_end(&self) -> &'static str {
        match self.source.find(['\n', '\r']) {
            Some(at) if self.source[at..].starts_with("\r\n") => "\r\n",
            Some(at) if self.source[at..].starts_with('\r') => "\r",
            _ => "\n",
        }
    }

    /// Returns a text with the line ends of this document, where all of these are of one kind.
    fn in_own_line_ends(&self, text: &str) -> String {
        let plain = || text.replace("\r\n", "\n").replace('\r', "\n");
        let without_crlf = || self.source.replace("\r\n", "");
        match self.line_end() {
            "\r\n" if !without_crlf().contains(['\r', '\n']) => plain().replace('\n', "\r\n"),
            "\n" if !self.source.contains('\r') => plain(),
            "\r" if !self.source.contains('\n') => plain().replace('\n', "\r"),
            _ => text.to_owned(),
        }
    }
}

/// Drops a first line that is the chapter's own heading.
fn without_own_heading<'t>(content: &'t str, span: &Span) -> &'t str {
    let start = trimmed(content).start;
    let line = &content[start..next_line(content, start)];
    let own = Knowledge::parse(line);
    match &own.chapters[..] {
        [one] if one.title == span.title => &content[start + line.len()..],
        _ => content,
    }
}

fn ends_with_blank_line(text: &str) -> bool {
    let without_end = |text: &'_ str| {
        let end = if text.ends_with("\r\n") { 2 } else { usize::from(text.ends_with(['\n', '\r'])) };
        text.len() - end
    };
    let line = &text[..without_end(text)];
    line.is_empty() || line.trim_end_matches([' ', '\t']).ends_with(['\n', '\r'])
}

/// Returns a document with this time as `updated` in its front matter, or as it is where there is none to be read.
///
/// The rest of the line stays, quotes and comment too; a missing line is added below the others.
pub fn with_updated(source: &str, now: &str) -> String {
    let read = Knowledge::parse(source);
    let Some((format, range)) = read.front.clone() else { return source.to_owned() };
    let text = &source[range.clone()];
    let edited = if let Some(line) = find_key(text, "updated", 0) {
        let value = value_range(text, line, format);
        let at = range.start + value.start;
        let rest = &source[range.start + value.end..];
        let gap = if value.is_empty() && !source[..at].ends_with([' ', '\t']) { " " } else { "" };
        let gap_after = if value.is_empty() && rest.starts_with('#') { " " } else { "" };
        [&source[..at], gap, now, gap_after, rest].concat()
    } else {
        let assign = if format == FrontMatterFormat::Yaml { "updated: " } else { "updated = " };
        [&source[..range.end], assign, now, read.line_end(), &source[range.end..]].concat()
    };
    // Written in another way than this expects, the time stays as it was: nothing else may change.
    let again = Knowledge::parse(&edited);
    let Some((format, range)) = again.front.clone() else { return source.to_owned() };
    let mut expected = read.fields.clone();
    expected.insert("updated".to_owned(), now.into());
    if fields(&edited, format, range).is_ok_and(|fields| fields == expected) { edited } else { source.to_owned() }
}

/// Returns the range of a scalar on a line `key: value`, without its quotes and without a comment after it.
fn value_range(text: &str, line: usize, format: FrontMatterFormat) -> Range<usize> {
    let end = next_line(text, line);
    let sign = if format == FrontMatterFormat::Yaml { ':' } else { '=' };
    let after = text[line..end].find(sign).map_or(end, |at| line + at + 1);
    let start = after + text[after..end].len() - text[after..end].trim_start_matches([' ', '\t']).len();
    let value = text[start..end].trim_end();
    match value.chars().next() {
        Some(quote @ ('"' | '\'')) => {
            let close = value[1..].find(quote).map_or(value.len(), |at| at + 1);
            start + 1..start + close
        }
        Some('#') => start..start,
        _ => start..start + value.split(" #").next().unwrap_or_default().trim_end().len(),
    }
}
