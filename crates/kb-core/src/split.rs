//! Splitting a source into sections, by media type.
//!
//! Each splitter says where sections begin and what heads them; [`Sections`] turns that into pieces, cuts those that
//! are too long, and finds parents.
//!
//! **Invariant:** the ranges of the pieces are contiguous from 0 to the length of the source, none is empty, and every
//! one ends at a character border: joined in order, the pieces are the source byte for byte.

mod cut;
mod html;
mod links;
mod markdown;
mod plain;
mod toml;

use std::ops::Range;

use serde_json::{Map, Value};

use crate::date::DocDate;
use crate::front_matter::FrontMatter;
use crate::lines::Lines;
use crate::{MediaType, Warning};

pub use cut::MAX_SECTION_BYTES;
pub use links::{Link, links};
pub(crate) use markdown::{HeadingLine, body_start, outline};

/// The version of the rules by which sources are split. A document learned under another one is split anew.
pub const SPLITTER_VERSION: u32 = 1;

/// The longest heading, in bytes, as a section carries it; the text of the section has all of it.
pub const MAX_HEADING_BYTES: usize = 1024;

/// What a section is within its document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Front matter: its fields are indexed, itself is never a hit.
    FrontMatter,
    /// Text.
    Text,
}

/// A section of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// Its bytes in the source.
    pub range: Range<usize>,
    /// What it is.
    pub role: Role,
    /// The plain text of its heading, at most [`MAX_HEADING_BYTES`] of it; `None` before the first heading and under an empty one.
    pub heading: Option<String>,
    /// The level of its heading; 0 before the first.
    pub level: u8,
    /// The index of the section one level up.
    pub parent: Option<u32>,
    /// The line of the source where it begins, from 1.
    pub line: u32,
    /// `(n, m)` for part n (from 1) of m of a section that was too long to stay in one.
    pub part: Option<(u32, u32)>,
}

/// A source, taken apart.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Parsed {
    /// The title: of the front matter, else the first heading of level 1, else the first heading, else what the format
    /// itself calls so.
    pub title: Option<String>,
    /// The description of the front matter.
    pub description: Option<String>,
    /// The tags of the front matter.
    pub tags: Vec<String>,
    /// Other names of the document.
    pub aliases: Vec<String>,
    /// The date of the front matter.
    pub date: Option<DocDate>,
    /// The language of the front matter.
    pub language: Option<String>,
    /// Every other field of the front matter, in order.
    pub meta: Map<String, Value>,
    /// The sections in order; none for an empty source.
    pub sections: Vec<Piece>,
    /// What could not be taken as it stands.
    pub warnings: Vec<Warning>,
}

impl Parsed {
    /// Returns the headings above the section of this index and its own, outermost first.
    pub fn heading_path(&self, index: usize) -> Vec<&str> {
        let mut path = Vec::new();
        let mut at = self.sections.get(index);
        while let Some(piece) = at {
            path.extend(piece.heading.as_deref());
            at = piece.parent.and_then(|parent| self.sections.get(parent as usize));
        }
        path.reverse();
        path
    }

    fn take_front_matter(&mut self, front: FrontMatter, line_of_date: impl FnOnce() -> (u32, u32)) {
        self.title = front.title;
        self.description = front.description;
        self.tags = front.tags;
        self.aliases = front.aliases;
        self.language = front.language;
        self.meta = front.meta;
        self.warnings.extend(front.warnings);
        let Some(date) = front.date else { return };
        match date.parse() {
            Ok(date) => self.date = Some(date),
            Err(error) => {
                let (line, column) = line_of_date();
                self.warnings.push(Warning {
                    code: "front-matter-field".to_owned(),
                    message: format!("`date` in the front matter is {error}"),
                    line: Some(line),
                    column: Some(column),
                });
                self.meta.insert("date".to_owned(), Value::String(date));
            }
        }
    }
}

/// Takes a source apart. An image, or a type that kb does not split, is one section.
///
/// ```
/// use kb_core::{MediaType, parse};
///
/// let source = "---\ntitle: Lamp\n---\n# Use\n\nPress.\n\n## Twice\n\nIt dims.\n";
/// let parsed = parse(source, &MediaType::markdown());
/// assert_eq!(parsed.title.as_deref(), Some("Lamp"));
/// assert_eq!(parsed.heading_path(2), ["Use", "Twice"]);
/// let whole: String = parsed.sections.iter().map(|piece| &source[piece.range.clone()]).collect();
/// assert_eq!(whole, source);
/// ```
pub fn parse(source: &str, media_type: &MediaType) -> Parsed {
    match media_type.as_str() {
        "text/markdown" => markdown::parse(source),
        "text/html" => html::parse(source),
        "application/toml" => toml::parse(source),
        "text/plain" => plain::parse(source),
        _ => Parsed { sections: one_section(source), ..Parsed::default() },
    }
}

fn one_section(source: &str) -> Vec<Piece> {
    let piece =
        Piece { range: 0..source.len(), role: Role::Text, heading: None, level: 0, parent: None, line: 1, part: None };
    if source.is_empty() { Vec::new() } else { vec![piece] }
}

/// Collects where sections begin, and makes pieces of that.
struct Sections<'a> {
    source: &'a str,
    lines: &'a Lines,
    begun: Vec<Begun>,
}

struct Begun {
    start: usize,
    role: Role,
    heading: Option<String>,
    level: u8,
}

impl<'a> Sections<'a> {
    fn new(source: &'a str, lines: &'a Lines) -> Self {
        Self { source, lines, begun: Vec::new() }
    }

    /// Begins a section of text; offsets must not decrease. A heading's text is trimmed, its blanks made single, and
    /// what is over [`MAX_HEADING_BYTES`] left off, since every part of the section carries it.
    fn begin(&mut self, start: usize, heading: Option<&str>, level: u8) {
        let heading = heading.map(|text| {
            let mut text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            text.truncate(text[..text.floor_char_boundary(MAX_HEADING_BYTES)].trim_end().len());
            text
        });
        let heading = heading.filter(|text| !text.is_empty());
        self.begun.push(Begun { start, role: Role::Text, heading, level });
    }

    /// Begins the section of the front matter.
    fn begin_front_matter(&mut self) {
        self.begun.push(Begun { start: 0, role: Role::FrontMatter, heading: None, level: 0 });
    }

    /// Returns the first heading of level 1, or else the first.
    fn title(&self) -> Option<String> {
        let headed = || self.begun.iter().filter(|begun| begun.heading.is_some());
        headed().find(|begun| begun.level == 1).or_else(|| headed().next()).and_then(|begun| begun.heading.clone())
    }

    /// Makes the pieces. `blocks` are offsets, in order, where a long section is best cut.
    ///
    /// Blank text without a heading of its own makes no section: it goes to the front matter before it, or else to the
    /// section after it.
    fn finish(self, blocks: &[usize]) -> Vec<Piece> {
        let Self { source, lines, mut begun } = self;
        if source.is_empty() {
            return Vec::new();
        }
        for at in (0..begun.len()).rev() {
            let end = begun.get(at + 1).map_or(source.len(), |next| next.start);
            let range = begun[at].start..end;
            let is_bare = begun[at].level == 0 && begun[at].role == Role::Text && begun.len() > 1;
            if range.is_empty() || (is_bare && source[range].trim_matches(BLANK).is_empty()) {
                begun.remove(at);
            }
        }
        if let Some(first) = begun.first_mut() {
            first.start = 0;
        }
        let mut pieces: Vec<Piece> = Vec::with_capacity(begun.len());
        let mut above: Vec<(u8, u32)> = Vec::new();
        let starts: Vec<usize> = begun.iter().map(|begun| begun.start).skip(1).chain([source.len()]).collect();
        for (Begun { start, role, heading, level }, end) in begun.into_iter().zip(starts) {
            if level > 0 {
                above.truncate(above.partition_point(|&(other, _)| other < level));
            }
            let parent = if level > 0 { above.last().map(|&(_, index)| index) } else { None };
            if level > 0 {
                above.push((level, pieces.len() as u32));
            }
            let cuts = match role {
                Role::FrontMatter => Vec::new(),
                Role::Text => cut::cuts(source, start..end, lines, blocks),
            };
            let count = cuts.len() as u32 + 1;
            let mut from = start;
            for (n, to) in (1..).zip(cuts.into_iter().chain([end])) {
                pieces.push(Piece {
                    range: from..to,
                    role,
                    heading: heading.clone(),
                    level,
                    parent,
                    line: lines.line_at(from) as u32 + 1,
                    part: (count > 1).then_some((n, count)),
                });
                from = to;
            }
        }
        pieces
    }
}

const BLANK: [char; 5] = [' ', '\t', '\r', '\n', '\u{feff}'];

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TYPES: [fn() -> MediaType; 4] = [MediaType::markdown, MediaType::plain, MediaType::html, MediaType::toml];

    /// Parses and checks everything that must hold for any source.
    fn check(source: &str, media_type: &MediaType) -> Parsed {
        let parsed = parse(source, media_type);
        let mut at = 0;
        let mut line = 1;
        for (index, piece) in parsed.sections.iter().enumerate() {
            assert_eq!(piece.range.start, at, "a gap or an overlap");
            assert!(piece.range.end > at, "an empty piece");
            let text = &source[piece.range.clone()];
            assert_eq!(piece.line, line, "the line of piece {index}");
            line += Lines::of(text).position(text.len()).0 - 1;
            at = piece.range.end;
            assert!(!(text.ends_with('\r') && source[at..].starts_with('\n')), "a cut between CR and LF");
            assert!(piece.parent.is_none_or(|parent| {
                let above = &parsed.sections[parent as usize];
                (parent as usize) < index && above.level < piece.level && above.level > 0
            }));
            assert!(text.len() <= MAX_SECTION_BYTES || piece.role == Role::FrontMatter);
            assert!(piece.part.is_none_or(|(n, m)| (1..=m).contains(&n) && m > 1));
            assert!(piece.part.is_none() || text.len() >= MAX_SECTION_BYTES / 4 - 4, "a needlessly short part");
        }
        assert_eq!(at, source.len(), "the end is missing");
        parsed
    }

    fn sizes(source: &str) -> Vec<usize> {
        check(source, &MediaType::markdown()).sections.iter().map(|piece| piece.range.len()).collect()
    }

    #[test]
    fn a_long_section_is_cut_between_blocks() {
        let paragraph = format!("{}\n\n", "word word word word\n".repeat(50).trim_end());
        let source = format!("# Long\n\n{}## Next\n", paragraph.repeat(20));
        let parsed = check(&source, &MediaType::markdown());
        let parts: Vec<_> = parsed.sections.iter().map(|p| (p.part, p.level, p.parent)).collect();
        assert_eq!(
            parts,
            [(Some((1, 3)), 1, None), (Some((2, 3)), 1, None), (Some((3, 3)), 1, None), (None, 2, Some(0))]
        );
        assert!(parsed.sections[..3].iter().all(|p| source[p.range.clone()].ends_with("\n\n")));
        assert_eq!(parsed.heading_path(2), ["Long"]);
        assert_eq!(parsed.heading_path(3), ["Long", "Next"]);
        let plain = check(&source, &MediaType::plain());
        assert_eq!(plain.sections.len(), 3);
        assert!(plain.sections[..2].iter().all(|p| source[p.range.clone()].ends_with("\n\n")));
    }

    #[test]
    fn no_cut_lies_between_cr_and_lf() {
        let source = format!("{}\r\n{}", "x".repeat(MAX_SECTION_BYTES - 1), "y".repeat(3 * MAX_SECTION_BYTES));
        let parsed = check(&source, &MediaType::plain());
        assert_eq!(parsed.sections[0].range, 0..MAX_SECTION_BYTES - 1);
    }

    #[test]
    fn a_long_block_is_cut_at_lines_and_a_long_line_at_characters() {
        let fence = format!("# A\n\n```\n{}```\n", "0123456\n".repeat(1200));
        assert!(sizes(&fence).iter().all(|&size| size > 2000));
        let parsed = check(&fence, &MediaType::markdown());
        assert!(parsed.sections.iter().all(|p| fence[p.range.clone()].ends_with('\n')));
        for filler in ["’→⚠é", "x", "港", "\u{1f6a2}"] {
            for shift in 0..4 {
                let line = format!("{}{}", "a".repeat(shift), filler.repeat(9000 / filler.len()));
                let sizes = sizes(&line);
                assert_eq!(sizes.len(), 2);
                assert!(sizes[0].abs_diff(sizes[1]) < 16, "{sizes:?}");
            }
        }
    }

    #[test]
    fn a_long_heading_does_not_multiply() {
        let source = format!("# {}", "港x ".repeat(20_000));
        let parsed = check(&source, &MediaType::markdown());
        assert!(parsed.sections.len() > 9);
        let lengths = parsed.sections.iter().map(|piece| piece.heading.as_ref().map(String::len));
        assert!(lengths.clone().all(|length| length == Some(1024)), "{:?}", lengths.collect::<Vec<_>>());
    }

    #[test]
    fn hostile_shapes_take_linear_time_and_no_stack() {
        let shapes = [
            ">".repeat(50_000),
            "> ".repeat(50_000),
            "[".repeat(100_000),
            "- ".repeat(20_000),
            "*a_ ".repeat(25_000),
            "# ".repeat(50_000),
            "`".repeat(100_000),
            "<!--".repeat(25_000),
            "![".repeat(50_000),
            "\r".repeat(100_000),
            "\0".repeat(100_000),
            "<h1>".repeat(25_000),
            "<h1".repeat(25_000),
            "</".repeat(50_000),
            "&".repeat(100_000),
            "[a]\n".repeat(25_000),
            "[[a]]\n".repeat(20_000),
            "a = [".repeat(20_000),
            "a.".repeat(50_000),
            "a.".repeat(50_000) + "a = 1",
            "[a]\r\n[".repeat(20_000),
            "> - ".repeat(10_000),
            "1. ".repeat(20_000),
            (0..400).map(|n| " ".repeat(2 * n) + "- a\n").collect(),
            "[a]: b\n".repeat(10_000) + &"[a] ".repeat(10_000),
            (0..5_000).map(|n| format!("[a{n}]: b\n")).collect::<Vec<_>>().concat() + &"[c][d] ".repeat(10_000),
            "[a](".repeat(25_000),
            "[a](<b".repeat(20_000),
            "<".repeat(100_000),
            "<?".repeat(50_000),
            "<!A ".repeat(25_000),
            "<![CDATA[".repeat(10_000),
            "<a b='".repeat(20_000),
            "a**b".repeat(25_000),
            "*".repeat(100_000) + "a",
            "_a __b ".repeat(15_000),
            "``` ` ".repeat(15_000),
            "\\".repeat(100_000),
            "a\n=\n".repeat(20_000),
            "x\n".repeat(50_000) + "---\n",
            "- a\n\n".repeat(20_000),
            "\u{301}".repeat(50_000),
            "---\n".repeat(25_000),
            "--- \na: b\n".repeat(10_000),
            "<a \"' ".repeat(20_000),
            "<pre>".repeat(20_000),
            "<title>".repeat(20_000),
            "<script></".repeat(20_000),
            "<p a=".repeat(20_000) + ">",
            "\"\"\"".repeat(33_000),
            "|a".repeat(5_000) + "\n" + &"|-".repeat(5_000) + "\n" + &"|b\n".repeat(5_000),
        ];
        for shape in &shapes {
            for media_type in TYPES {
                let begun = std::time::Instant::now();
                check(shape, &media_type());
                links(shape, &media_type());
                let spent = begun.elapsed();
                assert!(spent.as_secs() < 5, "{spent:?} for {:?} as {}", &shape[..8], media_type());
            }
        }
    }

    proptest! {
        #[test]
        fn any_text_is_the_sum_of_its_sections(text in any::<String>()) {
            for media_type in TYPES {
                check(&text, &media_type());
            }
        }

        #[test]
        fn so_is_text_like_markdown(lines in proptest::collection::vec(r"(---|\+\+\+|\x{feff}|#{1,7} ?[ab#]*|===?|```|~~~|> |- |    |\t|<!--|-->|<div>|\[a\]: b|\[a\]|\| a \||\|--\||[a-c: é]{0,9}|title: x|\x0c|\x00)(\n|\r|\r\n|)", 0..40)) {
            let source = lines.concat();
            for piece in check(&source, &MediaType::markdown()).sections.iter().filter(|piece| piece.level > 0) {
                let text = source[piece.range.clone()].trim_matches(BLANK);
                let underlines = |line: &str| ["=", "-"].iter().any(|c| !line.is_empty() && line.trim_matches(BLANK).replace(c, "").is_empty());
                prop_assert!(text.starts_with('#') || text.split(['\n', '\r']).any(underlines), "{:?}", text);
            }
        }

        #[test]
        fn so_is_long_text(parts in proptest::collection::vec((r"[a-z é港\x{301}]{1,40}(\n|\n\n|\r\n|\n# )?", 1_usize..400), 1..12)) {
            let text: String = parts.into_iter().map(|(part, times)| part.repeat(times)).collect();
            for media_type in TYPES {
                check(&text, &media_type());
            }
        }

        #[test]
        fn so_is_text_like_html(parts in proptest::collection::vec(r#"(<h[1-7]( id="a>b")?>|</h[1-6]>|<!--|-->|<script>|</script>|<style|</style >|<pre>|</pre>|<title>|</title>|<p|>|&amp;|&#x41;|&|[a-c é\n]{0,9})"#, 0..40)) {
            check(&parts.concat(), &MediaType::html());
        }

        #[test]
        fn so_is_text_like_toml(parts in proptest::collection::vec(r#"(\[a\]|\[\[a."b"\]\]|a = 1|s = """|"""|'''|t = '''|# c|\[|\]|b = \[|[a-c é]{0,4})(\n|\r\n|)"#, 0..40)) {
            check(&parts.concat(), &MediaType::toml());
        }
    }
}
