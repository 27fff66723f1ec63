//! Sections of HTML: one for each `h1` to `h6`, found by a small tolerant scanner.
//!
//! The scanner knows tags, quoted attributes, comments and the elements whose content is no markup; it builds no tree,
//! so that broken pages split as well as sound ones. Headings inside comments, scripts, styles and `pre` head nothing.
//!
//! **Invariant:** one pass, linear in the length of the source, whatever is left open.

use std::borrow::Cow;

use super::{MAX_HEADING_BYTES, Parsed, Sections};
use crate::lines::Lines;

/// Elements at which a long section is best cut.
const BLOCKS: [&str; 14] =
    ["p", "div", "ul", "ol", "li", "dl", "table", "tr", "pre", "blockquote", "section", "article", "figure", "hr"];

/// Elements whose content is no markup; the first three swallow the rest of the source if they are not closed.
const OPAQUE: [&str; 5] = ["script", "style", "textarea", "pre", "title"];
const SWALLOWING: usize = 3;

pub(super) fn parse(source: &str) -> Parsed {
    let lines = Lines::of(source);
    let mut parsed = Parsed::default();
    let mut sections = Sections::new(source, &lines);
    sections.begin(0, None, 0);
    let mut blocks = Vec::new();
    let mut page_title = None;
    let mut heading: Option<Open> = None;
    let mut at = 0;
    for tag in Tags::of(source) {
        let level = heading_level(tag.name);
        if let Some(open) = &mut heading {
            open.add(&source[at..tag.start], &tag);
            if level.is_some() || tag.start - open.start > MAX_HEADING_BYTES {
                open.close(&mut sections);
                heading = None;
            }
        } else if tag.closing && tag.is("title") && page_title.is_none() {
            page_title = Some(clean(&source[at..tag.start])).filter(|title| !title.is_empty());
        }
        if !tag.closing {
            if let Some(level) = level {
                heading = Some(Open { start: tag.start, level, text: String::new() });
            } else if BLOCKS.iter().any(|block| tag.is(block)) {
                blocks.push(tag.start);
            } else if tag.is("meta") {
                read_meta(&tag, &mut parsed);
            } else if tag.is("html") {
                parsed.language = tag.attribute("lang").map(|lang| decode(lang).into_owned());
            }
        }
        at = tag.end;
    }
    if let Some(mut open) = heading {
        let rest = &source[at..source.floor_char_boundary((open.start + MAX_HEADING_BYTES).max(at))];
        open.text.push_str(rest);
        open.close(&mut sections);
    }
    parsed.title = sections.title().or(page_title);
    parsed.sections = sections.finish(&blocks);
    parsed
}

/// A heading that is being read; one that is not closed within [`MAX_HEADING_BYTES`] ends there.
struct Open {
    start: usize,
    level: u8,
    text: String,
}

impl Open {
    fn add(&mut self, text: &str, next: &Tag<'_>) {
        if self.text.len() <= MAX_HEADING_BYTES {
            self.text.push_str(&text[..text.floor_char_boundary(MAX_HEADING_BYTES)]);
            if next.is("br") {
                self.text.push(' ');
            }
        }
    }

    fn close(&mut self, sections: &mut Sections<'_>) {
        sections.begin(self.start, Some(&decode(&self.text)), self.level);
    }
}

fn heading_level(name: &str) -> Option<u8> {
    match name.as_bytes() {
        [b'h' | b'H', digit @ b'1'..=b'6'] => Some(digit - b'0'),
        _ => None,
    }
}

fn read_meta(tag: &Tag<'_>, parsed: &mut Parsed) {
    let (Some(name), Some(content)) = (tag.attribute("name"), tag.attribute("content")) else { return };
    let content = clean(content);
    if name.eq_ignore_ascii_case("description") && parsed.description.is_none() && !content.is_empty() {
        parsed.description = Some(content);
    } else if name.eq_ignore_ascii_case("keywords") && parsed.tags.is_empty() {
        for tag in content.split(',').map(str::trim).filter(|tag| !tag.is_empty()) {
            if !parsed.tags.iter().any(|known| known == tag) {
                parsed.tags.push(tag.to_owned());
            }
        }
    }
}

/// Decodes references and makes blanks single.
fn clean(text: &str) -> String {
    decode(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A tag of a source.
pub(super) struct Tag<'a> {
    /// The offset of its `<`.
    pub(super) start: usize,
    /// The offset after its `>`.
    pub(super) end: usize,
    /// Its name as written.
    pub(super) name: &'a str,
    /// Whether it is `</name>`.
    pub(super) closing: bool,
    attributes: &'a str,
}

impl<'a> Tag<'a> {
    pub(super) fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }

    /// Returns the value of the first attribute of this name, references not decoded.
    pub(super) fn attribute(&self, wanted: &str) -> Option<&'a str> {
        let mut rest = self.attributes;
        loop {
            rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '/');
            if rest.is_empty() {
                return None;
            }
            let name_end = rest.find(|c: char| c.is_ascii_whitespace() || c == '=' || c == '/').unwrap_or(rest.len());
            let (name, after) = rest.split_at(name_end);
            let after = after.trim_start();
            let Some(value) = after.strip_prefix('=') else {
                rest = after;
                continue;
            };
            let value = value.trim_start();
            let (value, after) = match value.chars().next() {
                Some(quote @ ('"' | '\'')) => value[1..].split_once(quote).unwrap_or((&value[1..], "")),
                _ => value.split_at(value.find(|c: char| c.is_ascii_whitespace()).unwrap_or(value.len())),
            };
            if name.eq_ignore_ascii_case(wanted) {
                return Some(value);
            }
            rest = after;
        }
    }
}

/// The tags of a source in order, but for those inside comments and opaque elements.
pub(super) struct Tags<'a> {
    source: &'a str,
    at: usize,
    /// Opaque elements that are known not to be closed any more.
    unclosed: [bool; OPAQUE.len()],
}

impl<'a> Tags<'a> {
    pub(super) fn of(source: &'a str) -> Self {
        Self { source, at: 0, unclosed: [false; OPAQUE.len()] }
    }

    /// Returns the offset after the next `text` at or after `from`, or the end.
    fn after(&self, from: usize, text: &str) -> usize {
        self.source[from..].find(text).map_or(self.source.len(), |found| from + found + text.len())
    }

    /// Returns the offset of the `>` that ends a tag, quoted ones passed over unless a quote is never closed.
    fn tag_end(&self, from: usize) -> Option<usize> {
        let mut quote = None;
        for (i, byte) in self.source.as_bytes()[from..].iter().enumerate() {
            match (quote, byte) {
                (None, b'>') => return Some(from + i),
                (None, b'"' | b'\'') => quote = Some(byte),
                (Some(open), byte) if open == byte => quote = None,
                _ => {}
            }
        }
        quote.and_then(|_| self.source[from..].find('>').map(|i| from + i))
    }

    /// Passes over the content of an opaque element that was just opened.
    fn skip_content(&mut self, element: usize) {
        let name = OPAQUE[element];
        if self.unclosed[element] {
            return;
        }
        let mut from = self.at;
        while let Some(found) = self.source[from..].find("</") {
            let start = from + found;
            let rest = &self.source.as_bytes()[start + 2..];
            let named = rest.len() >= name.len() && rest[..name.len()].eq_ignore_ascii_case(name.as_bytes());
            if named && rest.get(name.len()).is_none_or(|b| !b.is_ascii_alphanumeric()) {
                self.at = start;
                return;
            }
            from = start + 2;
        }
        self.unclosed[element] = true;
        if element < SWALLOWING {
            self.at = self.source.len();
        }
    }
}

impl<'a> Iterator for Tags<'a> {
    type Item = Tag<'a>;

    fn next(&mut self) -> Option<Tag<'a>> {
        loop {
            let start = self.at + self.source[self.at..].find('<')?;
            let rest = &self.source[start + 1..];
            if rest.starts_with("!--") {
                self.at = self.after(start + 2, "-->");
                continue;
            }
            if rest.starts_with(['!', '?']) {
                self.at = self.after(start, ">");
                continue;
            }
            let closing = rest.starts_with('/');
            let name_start = start + 1 + usize::from(closing);
            let after_name = &self.source[name_start..];
            let length = after_name.bytes().take_while(|b| b.is_ascii_alphanumeric() || b"-:_".contains(b)).count();
            if !after_name.starts_with(|c: char| c.is_ascii_alphabetic()) {
                self.at = start + 1;
                continue;
            }
            let Some(close) = self.tag_end(name_start + length) else {
                self.at = self.source.len();
                return None;
            };
            self.at = close + 1;
            let name = &after_name[..length];
            let tag =
                Tag { start, end: close + 1, name, closing, attributes: &self.source[name_start + length..close] };
            if let Some(element) = OPAQUE.iter().position(|opaque| tag.is(opaque))
                && !closing
            {
                self.skip_content(element);
            }
            return Some(tag);
        }
    }
}

/// Decodes numeric references and the named ones that prose uses; any other stays as it is.
pub(super) fn decode(text: &str) -> Cow<'_, str> {
    if !text.contains('&') {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let name_length = rest[1..].bytes().take(32).take_while(|b| b.is_ascii_alphanumeric() || *b == b'#').count();
        let decoded = if rest[1 + name_length..].starts_with(';') { reference(&rest[1..=name_length]) } else { None };
        out.push(decoded.unwrap_or('&'));
        rest = &rest[if decoded.is_some() { name_length + 2 } else { 1 }..];
    }
    out.push_str(rest);
    Cow::Owned(out)
}

fn reference(name: &str) -> Option<char> {
    if let Some(number) = name.strip_prefix('#') {
        let code = match number.strip_prefix(['x', 'X']) {
            Some(hex) => u32::from_str_radix(hex, 16).ok()?,
            None => number.parse().ok()?,
        };
        return char::from_u32(code).filter(|&c| c != '\0');
    }
    Some(match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        "nbsp" => '\u{a0}',
        "copy" => '©',
        "reg" => '®',
        "trade" => '™',
        "deg" => '°',
        "sect" => '§',
        "para" => '¶',
        "middot" => '·',
        "bull" => '•',
        "hellip" => '…',
        "ndash" => '–',
        "mdash" => '—',
        "lsquo" => '‘',
        "rsquo" => '’',
        "ldquo" => '“',
        "rdquo" => '”',
        "laquo" => '«',
        "raquo" => '»',
        "times" => '×',
        "minus" => '−',
        "plusmn" => '±',
        "larr" => '←',
        "rarr" => '→',
        "auml" => 'ä',
        "ouml" => 'ö',
        "uuml" => 'ü',
        "Auml" => 'Ä',
        "Ouml" => 'Ö',
        "Uuml" => 'Ü',
        "szlig" => 'ß',
        "eacute" => 'é',
        "egrave" => 'è',
        "agrave" => 'à',
        "ccedil" => 'ç',
        "ntilde" => 'ñ',
        "euro" => '€',
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outline(source: &str) -> Vec<(u8, Option<String>)> {
        parse(source).sections.into_iter().map(|piece| (piece.level, piece.heading)).collect()
    }

    fn headings(source: &str) -> Vec<String> {
        outline(source).into_iter().filter_map(|(_, heading)| heading).collect()
    }

    #[test]
    fn a_page_splits_at_its_headings() {
        let source = "<!doctype html><html lang=de><head><title>Page &amp; title</title>\
            <meta name='description' content='What it is'><meta content=\"a, b,a\" name=keywords></head>\n\
            <body><H1 id=\"a>b\">Ret<b>ri</b>es<br>&mdash; now</H1>\n<p>x\n<h3>Deep</h3>y<h2>\n  Flat\n</h2></body>";
        let parsed = parse(source);
        let shown: Vec<_> = parsed.sections.iter().map(|p| (p.level, p.heading.as_deref(), p.parent, p.line)).collect();
        assert_eq!(
            shown,
            [
                (0, None, None, 1),
                (1, Some("Retries — now"), None, 2),
                (3, Some("Deep"), Some(1), 4),
                (2, Some("Flat"), Some(1), 4)
            ]
        );
        assert_eq!(parsed.title.as_deref(), Some("Retries — now"));
        assert_eq!(parsed.description.as_deref(), Some("What it is"));
        assert_eq!((parsed.tags, parsed.language.as_deref()), (vec!["a".to_owned(), "b".to_owned()], Some("de")));
        assert_eq!(parse("<title>\n Only &lt;this&gt; </title><p>x").title.as_deref(), Some("Only <this>"));
    }

    #[test]
    fn what_is_no_markup_heads_nothing() {
        for source in [
            "<!-- a > b <h1>no</h1> -->",
            "<script>s = '<h1>no</h1>'</script>",
            "<STYLE>/* <h1>no</h1> */</style>",
            "<pre><h1>no</h1></pre>",
            "<title><h1>no</h1></title>",
            "<p title='<h1>no</h1>'>",
            "<header><h7>no</h7><hr><h1x>",
            "<script><h1>no</h1>",
            "a < b <h1",
        ] {
            assert_eq!(headings(source), Vec::<String>::new(), "{source}");
        }
    }

    #[test]
    fn broken_pages_split_all_the_same() {
        assert_eq!(headings("<h1>A<h2>B</h3>x<h2>C"), ["A", "B", "C"]);
        assert_eq!(headings("<p class=\"open><h1>A</h1>"), ["A"]);
        assert_eq!(headings("<pre><h1>A</h1>"), ["A"]);
        assert_eq!(headings("<!--> <h1>A</h1>"), ["A"]);
        assert_eq!(headings("<h1><img alt=x></h1><h2>B</h2>"), ["B"]);
        let long = format!("<h1>{}", "港 ".repeat(3000));
        assert!(headings(&long)[0].len() <= MAX_HEADING_BYTES);
    }

    #[test]
    fn references_are_decoded_once() {
        for (text, expected) in [
            ("&amp;lt; &#65;&#x1F6A2; &nosuch; & &#0; &#xD800; &amp", "&lt; A🚢 &nosuch; & &#0; &#xD800; &amp"),
            ("C&#43;&#43;", "C++"),
            ("&é;", "&é;"),
        ] {
            assert_eq!(decode(text), expected);
        }
    }
}
