//! The links of a source, for a check of where they lead.
//!
//! **Invariant:** targets are as written, references decoded; nothing is resolved or fetched here.

use comrak::nodes::NodeValue;
use comrak::{Arena, parse_document};

use super::html::{Tags, decode};
use super::markdown::{body_start, options};
use crate::MediaType;
use crate::lines::Lines;

/// A link, or an image, of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Where it leads, relative or absolute.
    pub target: String,
    /// The line of the source, from 1.
    pub line: u32,
}

/// Returns the links and images of Markdown (HTML in it included) or HTML, in order; none of other types.
///
/// ```
/// use kb_core::{MediaType, links};
///
/// let found = links("# A\n\nSee [b](../b.md#use) and <img src=\"c.png\">.\n", &MediaType::markdown());
/// let targets: Vec<_> = found.iter().map(|link| (link.target.as_str(), link.line)).collect();
/// assert_eq!(targets, [("../b.md#use", 3), ("c.png", 3)]);
/// ```
pub fn links(source: &str, media_type: &MediaType) -> Vec<Link> {
    let mut found = Vec::new();
    match media_type.as_str() {
        "text/markdown" => in_markdown(source, &mut found),
        "text/html" => in_html(source, 0, &mut found),
        _ => {}
    }
    found.retain(|link| !link.target.is_empty());
    found
}

fn in_markdown(source: &str, found: &mut Vec<Link>) {
    let (body, _) = body_start(source);
    let first_line = Lines::of(&source[..body]).line_at(body);
    let arena = Arena::new();
    for node in parse_document(&arena, &source[body..], &options()).descendants() {
        let ast = node.data();
        let line = first_line + ast.sourcepos.start.line - 1;
        match &ast.value {
            NodeValue::Link(link) | NodeValue::Image(link) => {
                found.push(Link { target: link.url.clone(), line: line as u32 + 1 });
            }
            NodeValue::HtmlBlock(block) => in_html(&block.literal, line, found),
            NodeValue::HtmlInline(tag) => in_html(tag, line, found),
            _ => {}
        }
    }
}

/// Collects `href` and `src`; `before` lines stand above this text.
fn in_html(text: &str, before: usize, found: &mut Vec<Link>) {
    let lines = Lines::of(text);
    for tag in Tags::of(text).filter(|tag| !tag.closing) {
        for target in ["href", "src"].iter().filter_map(|name| tag.attribute(name)) {
            let line = (before + lines.line_at(tag.start)) as u32 + 1;
            found.push(Link { target: decode(target.trim()).into_owned(), line });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(source: &str, media_type: &MediaType) -> Vec<(String, u32)> {
        links(source, media_type).into_iter().map(|link| (link.target, link.line)).collect()
    }

    #[test]
    fn links_are_found_with_their_lines() {
        let source = "---\r\ntitle: T\r\n---\r\nsee [x](../gone.md) cormorant\r\n\r\n![i](<a b.png>) <https://e.org>\r\n\r\n\
            [ref]\r\n\r\n<div>\r\n<a href='q.html?a&amp;b'>\r\n</div>\r\n\r\n```\r\n[no](no.md)\r\n```\r\n\r\n[ref]: r.md\r\n";
        let expected = [("../gone.md", 4), ("a b.png", 6), ("https://e.org", 6), ("r.md", 8), ("q.html?a&b", 11)];
        assert_eq!(found(source, &MediaType::markdown()), expected.map(|(target, line)| (target.to_owned(), line)));
        let page = "<p>\n<a href=x>\n<img\nalt='' src = \"y\"><!-- <a href=no> --><a>";
        assert_eq!(found(page, &MediaType::html()), [("x".to_owned(), 2), ("y".to_owned(), 3)]);
        assert_eq!(found("[x](y)", &MediaType::plain()), []);
    }
}
