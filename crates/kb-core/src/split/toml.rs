//! Sections of TOML: one for each table header, and one for the keys before the first.
//!
//! Headers are found by a scanner that knows strings, comments and brackets, so a file with an error in it splits too;
//! what the file says of itself (title, description, keywords) is read only if it parses.
//!
//! **Invariant:** a line inside a multi-line string or a value in brackets is never a header.

use serde_json::{Map, Value};

use super::{Parsed, Sections};
use crate::Warning;
use crate::front_matter::{FrontMatter, toml_fields};
use crate::lines::{Lines, next_line};

/// The deepest level, as of a heading.
const MAX_LEVEL: usize = 6;

pub(super) fn parse(source: &str) -> Parsed {
    let lines = Lines::of(source);
    let mut parsed = Parsed::default();
    let mut sections = Sections::new(source, &lines);
    sections.begin(0, None, 0);
    let mut items = Vec::new();
    let mut state = State::default();
    let mut at = 0;
    while at < source.len() {
        let next = next_line(source, at);
        let line = source[at..next].trim_start_matches('\u{feff}');
        if state.is_between_items() {
            if let Some((key, parts)) = header(line) {
                sections.begin(at, Some(key), parts.min(MAX_LEVEL) as u8);
                at = next;
                continue;
            }
            items.push(at);
        }
        state.pass(line);
        at = next;
    }
    match toml_fields(source.trim_start_matches('\u{feff}')) {
        Ok(fields) => {
            let front = FrontMatter::from_fields(about(fields), |_| (1, 1));
            (parsed.title, parsed.description, parsed.tags) = (front.title, front.description, front.tags);
        }
        Err(unreadable) => {
            let mark = source.len() - source.trim_start_matches('\u{feff}').len();
            let (line, column) = lines.position((mark + unreadable.offset).min(source.len()));
            parsed.warnings.push(Warning {
                code: "toml-unreadable".to_owned(),
                message: format!("this is not valid TOML: {}", unreadable.message),
                line: Some(line),
                column: Some(column),
            });
        }
    }
    if parsed.title.is_none() {
        parsed.title = sections.title();
    }
    parsed.sections = sections.finish(&items);
    parsed
}

/// Takes what a file says of itself: at the top level, else in `[package]` or `[project]`, where `name` is the title.
fn about(mut fields: Map<String, Value>) -> Map<String, Value> {
    let inner = ["package", "project"].iter().find_map(|key| match fields.remove(*key) {
        Some(Value::Object(inner)) => Some(inner),
        _ => None,
    });
    fields.retain(|key, value| ABOUT.contains(&key.as_str()) && !value.is_object());
    for (key, value) in inner.unwrap_or_default() {
        let key = if key == "name" { "title".to_owned() } else { key };
        if ABOUT.contains(&key.as_str()) && !fields.contains_key(&key) && !value.is_object() {
            fields.insert(key, value);
        }
    }
    fields
}

const ABOUT: [&str; 4] = ["title", "description", "keywords", "tags"];

/// Returns the key path between the brackets of a table header, and the number of its parts.
fn header(line: &str) -> Option<(&str, usize)> {
    let line = line.trim_matches(BLANKS);
    let inner = line.strip_prefix('[')?;
    let (inner, close) = inner.strip_prefix('[').map_or((inner, "]"), |inner| (inner, "]]"));
    let mut parts = 0;
    let mut rest = inner.trim_start_matches(BLANKS);
    loop {
        rest = match rest.chars().next()? {
            '"' => rest[1..].find('"').map(|end| &rest[end + 2..])?,
            '\'' => rest[1..].find('\'').map(|end| &rest[end + 2..])?,
            _ => {
                let after = rest.trim_start_matches(|c: char| c.is_alphanumeric() || c == '-' || c == '_');
                if after.len() == rest.len() {
                    return None;
                }
                after
            }
        };
        parts += 1;
        rest = rest.trim_start_matches(BLANKS);
        match rest.strip_prefix('.') {
            Some(next) => rest = next.trim_start_matches(BLANKS),
            None => break,
        }
    }
    let key = inner[..inner.len() - rest.len()].trim_matches(BLANKS);
    let after = rest.strip_prefix(close)?.trim_start_matches(BLANKS);
    (after.is_empty() || after.starts_with('#')).then_some((key, parts))
}

const BLANKS: [char; 4] = [' ', '\t', '\r', '\n'];

/// What is open at the end of a line.
#[derive(Default)]
struct State {
    /// The delimiter of a multi-line string.
    string: Option<&'static str>,
    /// Brackets and braces of a value.
    depth: usize,
}

impl State {
    fn is_between_items(&self) -> bool {
        self.string.is_none() && self.depth == 0
    }

    fn pass(&mut self, line: &str) {
        let mut rest = line;
        while let Some(first) = rest.bytes().next() {
            if let Some(delimiter) = self.string {
                rest = match (rest.starts_with(delimiter), first) {
                    (true, _) => {
                        self.string = None;
                        &rest[delimiter.len()..]
                    }
                    (false, b'\\') if delimiter == BASIC => rest.get(2..).unwrap_or_default(),
                    (false, _) => &rest[rest.ceil_char_boundary(1)..],
                };
                continue;
            }
            match first {
                b'#' => return,
                b'"' | b'\'' => {
                    let delimiter = if first == b'"' { BASIC } else { LITERAL };
                    if let Some(after) = rest.strip_prefix(delimiter) {
                        self.string = Some(delimiter);
                        rest = after;
                    } else {
                        rest = after_string(&rest[1..], first);
                    }
                    continue;
                }
                b'[' | b'{' => self.depth += 1,
                b']' | b'}' => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
            rest = &rest[rest.ceil_char_boundary(1)..];
        }
    }
}

const BASIC: &str = "\"\"\"";
const LITERAL: &str = "'''";

/// Returns what follows a string that ends on its line, nothing if it does not.
fn after_string(text: &str, quote: u8) -> &str {
    let mut escaped = false;
    for (i, byte) in text.bytes().enumerate() {
        if byte == quote && !escaped {
            return &text[i + 1..];
        }
        escaped = quote == b'"' && byte == b'\\' && !escaped;
    }
    ""
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headings(source: &str) -> Vec<String> {
        parse(source).sections.into_iter().filter_map(|piece| piece.heading).collect()
    }

    #[test]
    fn a_file_splits_at_its_table_headers() {
        let source = "# About\ntitle = \"Pump\"\n\n[package] # the crate\nname = 'pump'\nkeywords = [\"a\", \"b\"]\n[[ package . \"x.y\" ]]\nz = 1\n[bin]\n";
        let parsed = parse(source);
        let shown: Vec<_> = parsed.sections.iter().map(|p| (p.level, p.heading.as_deref(), p.parent, p.line)).collect();
        assert_eq!(
            shown,
            [
                (0, None, None, 1),
                (1, Some("package"), None, 4),
                (2, Some("package . \"x.y\""), Some(1), 7),
                (1, Some("bin"), None, 9)
            ]
        );
        assert_eq!(parsed.title.as_deref(), Some("Pump"));
        assert_eq!(parsed.tags, ["a", "b"]);
        assert_eq!(parsed.warnings, []);
        assert_eq!(parse("[package]\nname = \"pump\"\ndescription = \"d\"\n").title.as_deref(), Some("pump"));
        assert_eq!(parse("[servers]\nx = 1\n").title.as_deref(), Some("servers"));
    }

    #[test]
    fn what_is_inside_a_value_is_no_header() {
        for source in [
            "a = \"\"\"\n[no]\n\\\"\"\"\n[no]\n\"\"\"\n",
            "a = '''\n[no]\n\\'''\n",
            "a = [\n[1],\n  [\"b\"],\n# ]\n[c]\n]\n",
            "a = \"[\" # [\nb = ']'\n",
            "[]\n[a\n[a]]\n[a] b\n[[a]\n",
        ] {
            assert_eq!(headings(source), Vec::<String>::new(), "{source}");
            assert_eq!(
                headings(&format!("{source}\n[yes]\n")).len(),
                usize::from(!source.starts_with("[]")),
                "{source}"
            );
        }
    }

    #[test]
    fn an_error_is_reported_where_it_is() {
        let parsed = parse("\u{feff}[a]\nx = 1\n[b]\ny = = 2\n");
        assert_eq!(parsed.sections.len(), 2);
        let warning = &parsed.warnings[0];
        assert_eq!((warning.code.as_str(), warning.line, warning.column), ("toml-unreadable", Some(4), Some(5)));
    }
}
