//! Sections of Markdown: one for each heading of the document itself.
//!
//! Headings are those that `CommonMark` sees at the top level, ATX and setext; `#` inside fences, HTML, quotes, lists and
//! comments heads nothing. The text is never rendered again: the syntax tree gives lines, and the source is sliced.
//!
//! **Invariant:** `comrak` gets the source without its front matter and counts lines as [`Lines`] does.

use std::ops::Range;

use comrak::nodes::{AstNode, NodeValue};
use comrak::{Arena, Options, parse_document};

use super::{Parsed, Sections};
use crate::Warning;
use crate::front_matter::{FrontMatter, FrontMatterBlock, find_key};
use crate::lines::{Lines, next_line};

pub(super) fn parse(source: &str) -> Parsed {
    let lines = Lines::of(source);
    let mut parsed = Parsed::default();
    let mut sections = Sections::new(source, &lines);
    let body = read_front_matter(source, &lines, &mut parsed, &mut sections);
    let first_line = lines.line_at(body);

    let arena = Arena::new();
    let root = parse_document(&arena, &source[body..], &options());
    sections.begin(body, None, 0);
    let mut blocks = Vec::new();
    let mut last = body;
    for block in root.children() {
        let ast = block.data();
        let start = lines.start(first_line + ast.sourcepos.start.line - 1).clamp(last, source.len());
        last = start;
        match &ast.value {
            NodeValue::Heading(heading) if !(heading.setext && has_table(&source[start..], ast.sourcepos)) => {
                sections.begin(start, Some(&plain_text(block)), heading.level);
            }
            _ => blocks.push(start),
        }
    }
    if parsed.title.is_none() {
        parsed.title = sections.title();
    }
    parsed.sections = sections.finish(&blocks);
    parsed
}

/// A heading of the document itself.
pub(crate) struct HeadingLine {
    /// Its lines, the underline of a setext heading and the last line end included.
    pub(crate) range: Range<usize>,
    pub(crate) level: u8,
    pub(crate) is_setext: bool,
    /// Its text without markup.
    pub(crate) text: String,
}

/// Headings and paragraphs of the document itself, in order.
#[derive(Default)]
pub(crate) struct Outline {
    pub(crate) headings: Vec<HeadingLine>,
    /// The lines of each paragraph, the last line end included.
    pub(crate) paragraphs: Vec<Range<usize>>,
}

/// Returns headings and paragraphs of the Markdown from `body` on.
pub(crate) fn outline(source: &str, body: usize) -> Outline {
    let lines = Lines::of(source);
    let first_line = lines.line_at(body);
    let arena = Arena::new();
    let root = parse_document(&arena, &source[body..], &options());
    let mut outline = Outline::default();
    let mut last = body;
    for block in root.children() {
        let ast = block.data();
        let start = lines.start(first_line + ast.sourcepos.start.line - 1).clamp(last, source.len());
        let end = lines.start(first_line + ast.sourcepos.end.line).clamp(start, source.len());
        match &ast.value {
            NodeValue::Heading(heading) if !(heading.setext && has_table(&source[start..], ast.sourcepos)) => {
                outline.headings.push(HeadingLine {
                    range: start..end,
                    level: heading.level,
                    is_setext: heading.setext,
                    text: plain_text(block),
                });
            }
            NodeValue::Paragraph => outline.paragraphs.push(start..end),
            _ => {}
        }
        last = end;
    }
    outline
}

/// The syntax is plain `CommonMark`.
///
/// Of the extensions only tables could change which lines are headings, and they let a few kilobytes of hostile text
/// become half a million cells: [`has_table`] sees to them.
pub(super) fn options() -> Options<'static> {
    Options::default()
}

/// Says whether these lines hold a table: then a rule right below it is a rule, and underlines nothing.
fn has_table(text: &str, position: comrak::nodes::Sourcepos) -> bool {
    let delimits_rows = |line: &str| {
        let line = line.trim();
        line.contains('|') && line.contains('-') && line.chars().all(|c| "|-: \t".contains(c))
    };
    let count = position.end.line - position.start.line;
    text.split(['\n', '\r']).filter(|line| !line.is_empty()).take(count).skip(1).any(delimits_rows)
}

/// Returns the text of a node without markup: of links their text, of code its letters, of HTML nothing.
fn plain_text<'a>(node: &'a AstNode<'a>) -> String {
    let mut text = String::new();
    for part in node.descendants() {
        match &part.data().value {
            NodeValue::Text(literal) => text.push_str(literal),
            NodeValue::Code(code) => text.push_str(&code.literal),
            NodeValue::SoftBreak | NodeValue::LineBreak => text.push(' '),
            _ => {}
        }
    }
    text
}

/// Returns where the body begins, and what is wrong with the front matter above it.
pub(crate) fn body_start(source: &str) -> (usize, Vec<Warning>) {
    let lines = Lines::of("");
    let mut parsed = Parsed::default();
    let body = read_front_matter(source, &lines, &mut parsed, &mut Sections::new("", &lines));
    (body, parsed.warnings)
}

/// Reads the front matter and returns where the body begins.
///
/// A block that cannot be read is a section of text, so that it is found all the same; one that does not even begin
/// like fields is no front matter, but Markdown below a rule.
fn read_front_matter(source: &str, lines: &Lines, parsed: &mut Parsed, sections: &mut Sections<'_>) -> usize {
    let (format, fields, end) = match FrontMatterBlock::find(source) {
        FrontMatterBlock::Absent => return 0,
        FrontMatterBlock::Unclosed => {
            if begins_with_key(&source[next_line(source, 0)..]) {
                parsed.warnings.push(Warning {
                    code: "front-matter-unclosed".to_owned(),
                    message: "the front matter has no closing line; all of it is taken as text".to_owned(),
                    line: Some(1),
                    column: Some(1),
                });
            }
            return 0;
        }
        FrontMatterBlock::Found { format, fields, end } => (format, fields, end),
    };
    let text = &source[fields.clone()];
    let starts_blank = text.starts_with(['\n', '\r']);
    match FrontMatter::read(source, format, fields.clone()) {
        Ok(front) if starts_blank && is_prose(text, &front) => 0,
        Ok(front) => {
            parsed.take_front_matter(front, || lines.position(fields.start + find_key(text, "date", 0).unwrap_or(0)));
            sections.begin_front_matter();
            end
        }
        Err(warning) => {
            let is_block = begins_with_key(text);
            if is_block || !starts_blank {
                parsed.warnings.push(warning);
            }
            if is_block {
                sections.begin(0, None, 0);
                end
            } else {
                0
            }
        }
    }
}

/// Says whether a block that begins with a blank line is rather Markdown between two rules: it has something like a
/// heading, or a sentence with a colon in it was read as a field.
fn is_prose(text: &str, front: &FrontMatter) -> bool {
    front.meta.keys().any(|key| key.contains(' ')) || text.split(['\n', '\r']).any(|line| line.starts_with('#'))
}

/// Says whether the first line looks like `key: value` or `key = value`.
fn begins_with_key(text: &str) -> bool {
    let first = text.lines().find(|line| !line.starts_with('#')).unwrap_or_default();
    let key = first.split([':', '=']).next().unwrap_or_default();
    key.len() < first.len() && !key.trim().is_empty() && !key.starts_with([' ', '\t']) && key.trim().chars().all(is_key)
}

fn is_key(c: char) -> bool {
    c.is_alphanumeric() || "-_.\"' ".contains(c)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Piece, Role};

    fn outline(source: &str) -> Vec<(u8, Option<String>, String)> {
        let piece = |piece: Piece| (piece.level, piece.heading, source[piece.range].to_owned());
        parse(source).sections.into_iter().map(piece).collect()
    }

    fn headings(source: &str) -> Vec<String> {
        parse(source).sections.into_iter().filter_map(|piece| piece.heading).collect()
    }

    #[test]
    fn a_section_for_each_heading_of_the_document() {
        let source = "Intro\n\n# A\nx\n### C ###\n> ## quoted\n\n- # item\n\nSetext *two*\nlines\n----\n<!--\n# no\n-->\n<div>\n# no\n</div>\n";
        let parsed = parse(source);
        let shown: Vec<_> = parsed.sections.iter().map(|p| (p.level, p.heading.as_deref(), p.parent, p.line)).collect();
        assert_eq!(
            shown,
            [
                (0, None, None, 1),
                (1, Some("A"), None, 3),
                (3, Some("C"), Some(1), 5),
                (2, Some("Setext two lines"), Some(1), 10)
            ]
        );
        assert_eq!(parsed.heading_path(2), ["A", "C"]);
        assert_eq!(parsed.title.as_deref(), Some("A"));
    }

    #[test]
    fn fences_follow_the_full_rules() {
        assert_eq!(headings("# Guide\n\n~~~sh\n# wipe cache\nrm x\n~~~\n\n## Next\ny"), ["Guide", "Next"]);
        assert_eq!(headings("````md\n```\n# no\n```\n````\n## F#\nz\n    # indented\n"), ["F#"]);
        assert_eq!(headings("```\n# unclosed\n"), Vec::<String>::new());
        assert_eq!(headings("| a |\n| - |\n| b |\nc\n---\n"), Vec::<String>::new());
    }

    #[test]
    fn a_byte_order_mark_hides_nothing() {
        for (source, heading) in [("\u{feff}# Only heading\nx", "Only heading"), ("\u{feff}Title\n=====\nx", "Title")] {
            assert_eq!(outline(source), [(1, Some(heading.to_owned()), source.to_owned())]);
        }
        let lamp = parse("\u{feff}---\ntitle: Lamp\n---\n# Lamp\nx");
        assert_eq!((lamp.title.as_deref(), lamp.sections.len()), (Some("Lamp"), 2));
    }

    #[test]
    fn every_kind_of_line_end_splits_alike() {
        for end in ["\n", "\r\n", "\r"] {
            let source = ["---", "title: T", "---", "", "# A", "x", "", "B", "-", "y", ""].join(end);
            let parsed = parse(&source);
            let lines: Vec<_> = parsed.sections.iter().map(|piece| (piece.level, piece.line)).collect();
            assert_eq!(lines, [(0, 1), (1, 5), (2, 8)], "{end:?}");
            assert_eq!(parsed.title.as_deref(), Some("T"));
        }
    }

    #[test]
    fn headings_are_plain_text() {
        for (line, expected) in [
            ("# [Retry](x.md) `with_jitter` *now*", "Retry with_jitter now"),
            ("# C\\# &amp; F#", "C# & F#"),
            ("# <a name=x></a>Name", "Name"),
            ("# ![logo](l.png) Kb", "logo Kb"),
            ("## C#", "C#"),
            ("# 2031-02-03", "2031-02-03"),
            ("Größe –\u{a0}Übersicht\n===", "Größe – Übersicht"),
        ] {
            assert_eq!(headings(line), [expected]);
        }
        assert_eq!(outline("#\nx"), [(1, None, "#\nx".to_owned())]);
    }

    #[test]
    fn unreadable_front_matter_stays_text() {
        let source = "---\ntitle: \"Pump rota\nowner: ana\n---\n\nValve plan\n";
        let parsed = parse(source);
        let ranges: Vec<_> = parsed.sections.iter().map(|p| (p.role, &source[p.range.clone()])).collect();
        assert_eq!(
            ranges,
            [(Role::Text, "---\ntitle: \"Pump rota\nowner: ana\n---\n"), (Role::Text, "\nValve plan\n")]
        );
        assert_eq!(parsed.warnings.len(), 1);
        assert_eq!(parsed.warnings[0].code, "front-matter-unreadable");
        assert_eq!(parsed.title, None);
    }

    #[test]
    fn a_rule_on_the_first_line_is_no_front_matter() {
        let source = "---\n\nJust prose under a rule. word: value\n\n# A\n\n---\n\n# B\n";
        let parsed = parse(source);
        assert_eq!(headings(source), ["A", "B"]);
        assert_eq!(parsed.warnings, []);
        assert_eq!(parse("---\n\nJust prose. word: value\n").warnings, []);
        let unclosed = parse("---\ntitle: Open\n\n# Text\n");
        assert_eq!(unclosed.warnings[0].code, "front-matter-unclosed");
        assert_eq!(unclosed.sections.len(), 2);
    }

    #[test]
    fn blank_text_makes_no_section_of_its_own() {
        assert_eq!(outline("\n\n# A\n").len(), 1);
        let parsed = parse("---\ntitle: T\n---\n\n\n# A\n");
        let shown: Vec<_> = parsed.sections.iter().map(|p| (p.role, p.line)).collect();
        assert_eq!(shown, [(Role::FrontMatter, 1), (Role::Text, 6)]);
        assert_eq!(parse("---\ntitle: T\n---\n\n").sections.len(), 1);
        assert_eq!(parse("\n \n").sections.len(), 1);
        assert_eq!(parse("").sections, []);
    }

    #[test]
    fn prose_is_prose() {
        let source = "- [x] ship\n- [03:11 - 03:40] intro\n- Met [[Rui]] and [[Ola]] today";
        assert_eq!(outline(source), [(0, None, source.to_owned())]);
        let parsed = parse(source);
        assert_eq!((parsed.title, parsed.meta.len(), parsed.warnings.len()), (None, 0, 0));
        assert_eq!(outline("notes\0with hole kingfisher").len(), 1);
    }

    #[test]
    fn front_matter_outranks_headings() {
        for (source, title) in [
            ("---\ntitle: 2031-02-03\n---\n# Other\n", "2031-02-03"),
            ("## Second\n# First\n", "First"),
            ("## Second\n### Third\n", "Second"),
            ("---\ntitle:\n---\n# Heading\n", "Heading"),
        ] {
            assert_eq!(parse(source).title.as_deref(), Some(title));
        }
        let dated = parse("---\ndate: 2031-03-01\n---\nx");
        assert_eq!(dated.date.map(|date| date.to_string()).as_deref(), Some("2031-03-01"));
        let undated = parse("---\ntitle: x\ndate: soon\n---\nx");
        assert_eq!((undated.date, undated.warnings[0].line), (None, Some(3)));
        assert_eq!(undated.meta.get("date").and_then(serde_json::Value::as_str), Some("soon"));
    }
}
