//! A new knowledge document, written out.
//!
//! **Invariant:** what is composed is read back as what was given, or refused.

use super::{ChapterError, Knowledge, trimmed};
use crate::front_matter::yaml_quoted;
use crate::split::outline;

/// A chapter to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewChapter {
    /// Its title.
    pub title: String,
    /// All below the heading.
    pub content: String,
}

/// Writes out a new document. `now` is an RFC 3339 time.
///
/// ```
/// use kb_core::{NewChapter, compose_knowledge};
///
/// let chapter = NewChapter { title: "Desk".to_owned(), content: "It dims.".to_owned() };
/// let text = compose_knowledge("Lamps", &["light".to_owned()], "All.", &[chapter], "2031-02-03T04:05:06Z")?;
/// assert!(text.ends_with("\n---\n\nAll.\n\n## Desk\n\nIt dims.\n"));
/// # Ok::<(), kb_core::ChapterError>(())
/// ```
pub fn compose_knowledge(
    title: &str,
    keywords: &[String],
    introduction: &str,
    chapters: &[NewChapter],
    now: &str,
) -> Result<String, ChapterError> {
    let keywords: Vec<&str> = keywords.iter().map(|keyword| keyword.trim()).collect();
    let listed: Vec<String> = keywords.iter().map(|keyword| scalar(keyword)).collect();
    let (quoted, listed) = (scalar(title.trim()), listed.join(", "));
    let mut text = format!("---\ntitle: {quoted}\nkeywords: [{listed}]\ncreated: {now}\nupdated: {now}\n---\n");
    let introduction = &introduction[trimmed(introduction)];
    refuse_heading(introduction)?;
    if !introduction.is_empty() {
        text.extend(["\n", introduction, "\n"]);
    }
    for chapter in chapters {
        let content = &chapter.content[trimmed(&chapter.content)];
        refuse_heading(content)?;
        text.extend(["\n", &heading_line(&chapter.title)?, "\n"]);
        if !content.is_empty() {
            text.extend(["\n", content, "\n"]);
        }
    }
    let read = Knowledge::parse(&text);
    let metadata = read.metadata("");
    if read.error.is_some() || metadata.title != title.trim() || metadata.keywords != keywords {
        return Err(ChapterError::FrontMatter);
    }
    if read.introduction() != introduction {
        return Err(ChapterError::Open { place: "the introduction".to_owned() });
    }
    let found = read.chapters();
    for (i, chapter) in chapters.iter().enumerate() {
        let content = &chapter.content[trimmed(&chapter.content)];
        if found.get(i).is_none_or(|found| found.content != content) {
            return Err(ChapterError::Open { place: format!("chapter `{}`", chapter.title) });
        }
    }
    Ok(text)
}

/// Returns the heading of a chapter, without a line end.
pub(super) fn heading_line(title: &str) -> Result<String, ChapterError> {
    let trimmed = title.trim();
    let refuse = |reason| Err(ChapterError::Title { title: title.to_owned(), reason });
    if trimmed.is_empty() {
        return refuse("it is blank");
    }
    if trimmed.chars().any(|c| c.is_control() || c == '\u{feff}') {
        return refuse("it has a line break or another control character");
    }
    // Marks at the end of a heading are not part of it, unless the first is escaped.
    let bare = trimmed.trim_end_matches('#');
    let line = if bare.len() < trimmed.len() && (bare.is_empty() || bare.ends_with([' ', '\t'])) {
        format!("## {bare}\\{}", &trimmed[bare.len()..])
    } else {
        format!("## {trimmed}")
    };
    match &Knowledge::parse(&line).chapters[..] {
        [one] if one.title == trimmed => Ok(line),
        _ => refuse("it is not read back as written"),
    }
}

/// Refuses a text that holds a heading of level 2.
pub(super) fn refuse_heading(text: &str) -> Result<(), ChapterError> {
    match outline(text, 0).headings.into_iter().find(|heading| heading.level == 2) {
        None => Ok(()),
        Some(heading) => Err(ChapterError::Heading {
            line: text[..heading.range.start].split('\n').count(),
            heading: text[heading.range].trim().to_owned(),
        }),
    }
}

/// Writes a text as a YAML scalar: plain where every reader takes it for the same text.
fn scalar(text: &str) -> String {
    let is_word = |c: char| c.is_alphanumeric() || " -_./()'+".contains(c);
    let typed = ["true", "false", "yes", "no", "on", "off", "null", "y", "n"];
    let is_plain = text.starts_with(char::is_alphabetic)
        && text.chars().all(is_word)
        && !text.ends_with(' ')
        && !typed.contains(&text.to_lowercase().as_str());
    if is_plain { text.to_owned() } else { yaml_quoted(text) }
}
