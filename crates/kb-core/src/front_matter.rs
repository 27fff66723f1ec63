//! Front matter: the block of YAML (`---`) or TOML (`+++`) that may stand at the top of a Markdown source.
//!
//! The block is found by byte ranges, never by rewriting lines, so that a source can be put together again exactly.
//! YAML is read behind guards: a block over 16 KiB or nested deeper than 64 brackets is not handed to the parser, and a
//! key given twice is an error. Front matter that stands in a source is never written anew.
//!
//! **Invariant:** a scalar is text spelled exactly as in the source (`1.10`, `0x1F`, `2031-02-03`), and what cannot be
//! read yields a [`Warning`] with line and column in the source, never a panic and never a silent loss.

mod yaml;

pub use yaml::quoted as yaml_quoted;

use std::ops::Range;

use serde_json::{Map, Value};

use crate::Warning;
use crate::lines::{Lines, next_line};

/// Why a text is no YAML that is read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
pub struct YamlError {
    /// Line in the text, from 1.
    pub line: u32,
    /// Column in bytes, from 1.
    pub column: u32,
    /// What is wrong.
    pub message: String,
}

/// Reads one YAML document as JSON, behind the guards that front matter is read behind: a key given twice is an error, and
/// so are brackets nested deeper than 64, a text over 256 KiB, and aliases that stand for much more than the text.
///
/// ```
/// let value = kb_core::read_yaml("args: {limit: 3, all: true, mode: no}")?;
/// assert_eq!(value, serde_json::json!({"args": {"limit": 3, "all": true, "mode": "no"}}));
/// # Ok::<(), kb_core::YamlError>(())
/// ```
pub fn read_yaml(text: &str) -> Result<Value, YamlError> {
    const MAX_BYTES: usize = 256 << 10;
    if text.len() > MAX_BYTES {
        return Err(YamlError { line: 1, column: 1, message: format!("it is longer than {MAX_BYTES} bytes") });
    }
    yaml::read_typed(text).map_err(|Unreadable { offset, message }| {
        let (line, column) = Lines::of(text).position(offset.min(text.len()));
        YamlError { line, column, message }
    })
}

/// The longest block that is read, in bytes.
pub const MAX_FRONT_MATTER_BYTES: usize = 16 * 1024;

/// The language of a front matter block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrontMatterFormat {
    /// Between `---` and `---` or `...`.
    Yaml,
    /// Between `+++` and `+++`.
    Toml,
}

/// What stands at the top of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FrontMatterBlock {
    /// No fence on the first line.
    Absent,
    /// A fence on the first line and no closing one: all of the source is body.
    Unclosed,
    /// A block.
    Found {
        /// The language, as the fence says.
        format: FrontMatterFormat,
        /// The bytes between the fences.
        fields: Range<usize>,
        /// The offset of the first byte after the closing fence's line.
        end: usize,
    },
}

impl FrontMatterBlock {
    /// Finds the block at the top of a source: after a byte order mark, with any line ends, with trailing blanks after
    /// the fences, empty or not, and with or without a line end after the closing fence.
    ///
    /// ```
    /// use kb_core::FrontMatterBlock;
    ///
    /// let source = "---\ntitle: Lamp\n---\nText\n";
    /// let FrontMatterBlock::Found { fields, end, .. } = FrontMatterBlock::find(source) else { panic!() };
    /// assert_eq!((&source[fields], &source[end..]), ("title: Lamp\n", "Text\n"));
    /// ```
    pub fn find(source: &str) -> Self {
        let start = if source.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
        let first = next_line(source, start);
        let fence = source[start..first].trim_end_matches(BLANKS);
        let format = match fence {
            "---" => FrontMatterFormat::Yaml,
            "+++" => FrontMatterFormat::Toml,
            _ => return Self::Absent,
        };
        let mut at = first;
        while at < source.len() {
            let next = next_line(source, at);
            let line = source[at..next].trim_end_matches(BLANKS);
            if line == fence || (line == "..." && format == FrontMatterFormat::Yaml) {
                return Self::Found { format, fields: first..at, end: next };
            }
            at = next;
        }
        Self::Unclosed
    }
}

const BLANKS: [char; 4] = [' ', '\t', '\r', '\n'];

/// The fields of a front matter block.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FrontMatter {
    /// `title`; absent if null or blank.
    pub title: Option<String>,
    /// `description`.
    pub description: Option<String>,
    /// `tags`, `keywords`, `tag` and `keyword` in this order, each once; a list, or a text separated by commas (or by
    /// blanks, if there is no comma).
    pub tags: Vec<String>,
    /// `aliases` or `alias`; a list, or one text.
    pub aliases: Vec<String>,
    /// `date` as written.
    pub date: Option<String>,
    /// `language` or `lang`.
    pub language: Option<String>,
    /// Every other key, and every one whose value has the wrong shape, in the order of the source.
    pub meta: Map<String, Value>,
    /// Fields that were readable and yet of no use.
    pub warnings: Vec<Warning>,
}

impl FrontMatter {
    /// Reads the fields of a block that [`FrontMatterBlock::find`] found in this source.
    ///
    /// Fails with a warning `front-matter-unreadable` that says where in the source and why.
    pub fn read(source: &str, format: FrontMatterFormat, fields: Range<usize>) -> Result<Self, Warning> {
        let map = self::fields(source, format, fields.clone())?;
        Ok(Self::from_fields(map, |key| key_position(source, &fields, key)))
    }

    /// Sorts fields into the known ones and the rest.
    pub(crate) fn from_fields(fields: Map<String, Value>, position: impl Fn(&str) -> (u32, u32)) -> Self {
        let mut known = Self::default();
        let mut tags: [Vec<String>; TAG_KEYS.len()] = Default::default();
        for (key, value) in fields {
            let name = key.to_ascii_lowercase();
            let text = match name.as_str() {
                "title" => Some(&mut known.title),
                "description" => Some(&mut known.description),
                "date" => Some(&mut known.date),
                "language" | "lang" => Some(&mut known.language),
                _ => None,
            };
            let place = TAG_KEYS.iter().position(|&tag| tag == name);
            let (read, expected) = if let Some(text) = text {
                (take_text(&value, text), "a text, given once")
            } else if let Some(place) = place {
                (take_list(&value, true, &mut tags[place]), "a text or a list of texts")
            } else if name == "aliases" || name == "alias" {
                (take_list(&value, false, &mut known.aliases), "a text or a list of texts")
            } else {
                known.meta.insert(key, value);
                continue;
            };
            if !read {
                let (line, column) = position(&key);
                known.warnings.push(Warning {
                    code: "front-matter-field".to_owned(),
                    message: format!("`{key}` in the front matter is not {expected}"),
                    line: Some(line),
                    column: Some(column),
                });
                known.meta.insert(key, value);
            }
        }
        for tag in tags.iter().flatten() {
            add(tag, &mut known.tags);
        }
        known
    }
}

/// The keys that give tags, in the order in which they are put together.
const TAG_KEYS: [&str; 4] = ["tags", "keywords", "tag", "keyword"];

/// Reads all fields of a block, as [`FrontMatter::read`] does, and sorts nothing.
pub(crate) fn fields(
    source: &str,
    format: FrontMatterFormat,
    range: Range<usize>,
) -> Result<Map<String, Value>, Warning> {
    let text = &source[range.clone()];
    let read = match format {
        _ if text.len() > MAX_FRONT_MATTER_BYTES => {
            Err(Unreadable { offset: 0, message: format!("it is over {} KiB", MAX_FRONT_MATTER_BYTES / 1024) })
        }
        FrontMatterFormat::Yaml => yaml::read(text),
        FrontMatterFormat::Toml => toml_fields(text),
    };
    read.map_err(|Unreadable { offset, message }| {
        let (line, column) = Lines::of(source).position((range.start + offset).min(source.len()));
        Warning {
            code: "front-matter-unreadable".to_owned(),
            message: format!("the front matter cannot be read: {message}"),
            line: Some(line),
            column: Some(column),
        }
    })
}

/// Returns a scalar as text, `None` for null, lists and maps.
pub(crate) fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Why a block is unreadable, and where in its text.
pub(crate) struct Unreadable {
    pub(crate) offset: usize,
    pub(crate) message: String,
}

/// Reads the top level of a TOML text, keys in the order of the text, scalars as spelled there.
pub(crate) fn toml_fields(text: &str) -> Result<Map<String, Value>, Unreadable> {
    let table = toml::de::DeTable::parse(text).map_err(|error| Unreadable {
        offset: error.span().map_or(0, |span| span.start.min(text.len())),
        message: error.message().to_owned(),
    })?;
    Ok(toml_table(text, table.into_inner()))
}

fn toml_table(text: &str, table: toml::de::DeTable<'_>) -> Map<String, Value> {
    let mut entries: Vec<_> = table.into_iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    entries.into_iter().map(|(key, value)| (key.into_inner().into_owned(), toml_value(text, value))).collect()
}

fn toml_value(text: &str, value: toml::Spanned<toml::de::DeValue<'_>>) -> Value {
    use toml::de::DeValue;
    let spelled = text.get(value.span()).unwrap_or_default().trim();
    match value.into_inner() {
        DeValue::String(string) => Value::String(string.into_owned()),
        DeValue::Array(items) => items.into_iter().map(|item| toml_value(text, item)).collect(),
        DeValue::Table(table) => Value::Object(toml_table(text, table)),
        DeValue::Integer(_) | DeValue::Float(_) | DeValue::Boolean(_) | DeValue::Datetime(_) => as_spelled(spelled),
    }
}

/// Returns a number or a boolean only if JSON spells it the same; any other scalar as text.
fn as_spelled(text: &str) -> Value {
    match serde_json::from_str::<Value>(text) {
        Ok(value @ (Value::Number(_) | Value::Bool(_))) if text_of(&value).as_deref() == Some(text) => value,
        _ => Value::String(text.to_owned()),
    }
}

/// Takes a scalar; says no to a list, a map, and a second value. Null and blank are no value.
fn take_text(value: &Value, slot: &mut Option<String>) -> bool {
    let text = text_of(value).map(|text| text.trim().to_owned());
    match text {
        None => value.is_null(),
        Some(_) if slot.is_some() => false,
        Some(text) => {
            *slot = Some(text).filter(|text| !text.is_empty());
            true
        }
    }
}

/// Appends the texts of a list, however nested, or of one text; says no if there is a map in it.
fn take_list(value: &Value, split: bool, out: &mut Vec<String>) -> bool {
    match (value, text_of(value)) {
        (Value::Array(items), _) => items.iter().filter(|item| !take_list(item, false, out)).count() == 0,
        (_, None) => value.is_null(),
        (_, Some(text)) => {
            if !split {
                add(&text, out);
            } else if text.contains(',') {
                text.split(',').for_each(|text| add(text, out));
            } else {
                text.split_whitespace().for_each(|text| add(text, out));
            }
            true
        }
    }
}

/// Appends a text that is not blank and not there yet.
fn add(text: &str, out: &mut Vec<String>) {
    let text = text.trim();
    if !text.is_empty() && !out.iter().any(|known| known == text) {
        out.push(text.to_owned());
    }
}

/// Returns line and column in the source of a top-level key, or of the block if it is spelled in another way.
fn key_position(source: &str, fields: &Range<usize>, key: &str) -> (u32, u32) {
    Lines::of(source).position(fields.start + find_key(&source[fields.clone()], key, 0).unwrap_or(0))
}

/// Returns the offset of the line that gives this top-level key, `skip` of them passed over.
pub(crate) fn find_key(text: &str, key: &str, skip: usize) -> Option<usize> {
    let mut at = 0;
    let mut seen = 0;
    while at < text.len() {
        let next = next_line(text, at);
        let line = &text[at..next];
        let bare = line.strip_prefix(['"', '\'']).unwrap_or(line);
        if bare
            .strip_prefix(key)
            .is_some_and(|rest| rest.trim_start_matches(['"', '\'', ' ', '\t']).starts_with([':', '=']))
        {
            if seen == skip {
                return Some(at);
            }
            seen += 1;
        }
        at = next;
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn read(source: &str) -> Result<FrontMatter, Warning> {
        match FrontMatterBlock::find(source) {
            FrontMatterBlock::Found { format, fields, .. } => FrontMatter::read(source, format, fields),
            other => panic!("no block in {source:?}: {other:?}"),
        }
    }

    #[test]
    fn a_block_is_found_however_its_lines_end() {
        for (source, fields, body) in [
            ("---\ntitle: End\n---", "title: End\n", ""),
            ("---\r\ntitle: Win\r\n---\r\nbody", "title: Win\r\n", "body"),
            ("---\rtitle: Mac\r---\rbody", "title: Mac\r", "body"),
            ("\u{feff}---\ntitle: Lamp\n---\n# Lamp\n", "title: Lamp\n", "# Lamp\n"),
            ("--- \ntitle: Blank\n---\t\nx", "title: Blank\n", "x"),
            ("---\n---\nx\n---\ny", "", "x\n---\ny"),
            ("---\ntitle: Dots\n...\nx", "title: Dots\n", "x"),
            ("+++\ntitle = \"Hugo\"\n+++\nx", "title = \"Hugo\"\n", "x"),
            ("---\na: |\n  --- \n  x\n---\ny", "a: |\n  --- \n  x\n", "y"),
        ] {
            let FrontMatterBlock::Found { fields: found, end, .. } = FrontMatterBlock::find(source) else {
                panic!("{source:?}");
            };
            assert_eq!((&source[found], &source[end..]), (fields, body), "{source:?}");
        }
        for source in ["", "-", "----\na\n---\n", " ---\na\n---\n", "\n---\na: b\n---\n", "text", "\u{feff}"] {
            assert_eq!(FrontMatterBlock::find(source), FrontMatterBlock::Absent, "{source:?}");
        }
        for source in ["---", "---\n", "---\n\nJust prose. word: value\n", "+++\na = 1\n---\n"] {
            assert_eq!(FrontMatterBlock::find(source), FrontMatterBlock::Unclosed, "{source:?}");
        }
    }

    #[test]
    fn a_title_is_text_as_written() {
        for (written, expected) in [
            ("404", Some("404")),
            ("true", Some("true")),
            ("20310203_1", Some("20310203_1")),
            ("1e3", Some("1e3")),
            ("0x1F", Some("0x1F")),
            ("1.10", Some("1.10")),
            ("2031-02-03", Some("2031-02-03")),
            ("123456789012345678901234567890", Some("123456789012345678901234567890")),
            (".inf", Some(".inf")),
            ("no", Some("no")),
            ("012", Some("012")),
            ("null", None),
            ("~", None),
            ("", None),
            ("'  '", None),
            (">\n  folded\n  text\n", Some("folded text")),
            ("\"null\"", Some("null")),
            ("'~'", Some("~")),
            ("!!str 0x1F", Some("0x1F")),
            ("!mine 1.10", Some("1.10")),
            ("\"Sync: A & B | C #4\"", Some("Sync: A & B | C #4")),
        ] {
            let source = format!("---\ntitle: {written}\nn: 1\n---\nx");
            let front = read(&source).unwrap_or_else(|warning| panic!("{written}: {warning:?}"));
            assert_eq!(front.title.as_deref(), expected, "{written}");
        }
    }

    #[test]
    fn tags_are_a_list_or_a_text() {
        for (written, expected) in [
            ("tags: [2031-02-03, 7, true, ops, ~]", &["2031-02-03", "7", "true", "ops"][..]),
            ("tags: rust, data base , ,rust", &["rust", "data base"]),
            ("keywords: one two", &["one", "two"]),
            ("keyword: one\ntags: [two, one]", &["two", "one"]),
            ("tags:\n- [a, b c]\n- d", &["a", "b c", "d"]),
            ("Tags:", &[]),
        ] {
            let front = read(&format!("---\n{written}\n---\n")).unwrap_or_else(|warning| panic!("{warning:?}"));
            assert_eq!(front.tags, expected, "{written}");
        }
    }

    #[test]
    fn what_is_not_known_is_kept_in_order() {
        let kept = |source: &str| serde_json::to_string(&read(source).expect("readable").meta).expect("a map");
        assert_eq!(
            kept("---\nzeta: 1.10\nalpha: {b: 7, a: [x, ~, 2031-02-03]}\ntype:\nms.date: 02/03/2031\n---\n"),
            r#"{"zeta":"1.10","alpha":{"b":7,"a":["x",null,"2031-02-03"]},"type":null,"ms.date":"02/03/2031"}"#
        );
        let source = "+++\ntitle = \"T\"\ndate = 2031-02-03T10:00:00Z\nweight = 0x1F\n[extra]\nz = 1\na = 2.50\n+++\n";
        assert_eq!(kept(source), r#"{"weight":"0x1F","extra":{"z":1,"a":"2.50"}}"#);
        let front = read(source).expect("readable");
        assert_eq!((front.title.as_deref(), front.date.as_deref()), (Some("T"), Some("2031-02-03T10:00:00Z")));
    }

    #[test]
    fn a_field_of_the_wrong_shape_is_reported_and_kept() {
        let front = read("---\nn: 1\ntitle: [a, b]\ntags: [x, {a: 1}, y]\n---\n").expect("readable");
        assert_eq!(front.tags, ["x", "y"]);
        assert_eq!(front.title, None);
        assert_eq!(front.meta.get("title"), Some(&json!(["a", "b"])));
        assert_eq!(front.meta.get("tags"), Some(&json!(["x", {"a": 1}, "y"])));
        let places: Vec<_> = front.warnings.iter().map(|w| (w.code.as_str(), w.line, w.column)).collect();
        assert_eq!(places, [("front-matter-field", Some(3), Some(1)), ("front-matter-field", Some(4), Some(1))]);
        let twice = read("---\ntitle: One\nTitle: Two\n---\n").expect("readable");
        assert_eq!((twice.title.as_deref(), twice.meta.get("Title")), (Some("One"), Some(&json!("Two"))));
        assert_eq!(twice.warnings[0].line, Some(3));
    }

    #[test]
    fn what_cannot_be_read_says_where_and_why() {
        for (source, line, column, message) in [
            ("---\nowner: ana\ntitle: Sync: A & B | C #4\n---\nx", 3, 12, "put the value of `title` in quotes"),
            ("\u{feff}---\r\n\r\né: a\r\ntitle: é: b\r\n---\r\n", 4, 10, "put the value of `title` in quotes"),
            ("---\na: 1\nb: 2\na: 3\n---\n", 4, 1, "`a` is given twice"),
            ("---\n- a\n- b\n---\n", 2, 1, "not a mapping"),
            ("---\na: [1\n---\n", 3, 1, "did not find expected"),
            ("---\naliases:\n  - %\n  - b\n---\n", 3, 5, "put `%` in quotes"),
            ("+++\na = 1\nb = = 2\n+++\n", 3, 5, "cannot be read"),
        ] {
            let warning = read(source).expect_err(source);
            assert_eq!(warning.code, "front-matter-unreadable");
            assert_eq!((warning.line, warning.column), (Some(line), Some(column)), "{}", warning.message);
            assert!(warning.message.contains(message), "{}", warning.message);
        }
    }

    #[test]
    fn hostile_blocks_cost_little() {
        let deep = format!("---\nv: {}\n---\n", "[".repeat(16_000));
        assert!(read(&deep).expect_err("too deep").message.contains("nested deeper than 64"));
        let long = format!("---\nv: {}\n---\n", "x".repeat(MAX_FRONT_MATTER_BYTES));
        assert!(read(&long).expect_err("too long").message.contains("over 16 KiB"));
        let mut bomb = "---\na0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
        for n in 1..10 {
            let aliases = vec![format!("*a{}", n - 1); 9].join(", ");
            bomb.extend(["a", &n.to_string(), ": &a", &n.to_string(), " [", &aliases, "]\n"]);
        }
        bomb += "---\n";
        let wide = format!("---\na: &a [{}]\nb: [{}]\n---\n", "x,".repeat(4000), "*a,".repeat(2500));
        let heavy = format!("---\na: &a {}\nb: [{}]\n---\n", "x".repeat(8000), "*a,".repeat(2500));
        for source in [bomb, wide, heavy] {
            assert!(read(&source).expect_err("a bomb").message.contains("its aliases stand for too much"));
        }
        let fair = read("---\na: &a [x, y]\nb: *a\nc: *a\n---\n").expect("readable");
        assert_eq!(fair.meta.get("c"), Some(&json!(["x", "y"])));
        assert_eq!(read("---\n# only\n\n# comments\n---\n"), Ok(FrontMatter::default()));
    }

    proptest! {
        #[test]
        fn no_block_panics(text in r"\PC{0,80}") {
            for source in [format!("---\n{text}\n---\n"), format!("+++\n{text}\n+++\n")] {
                let _ = read(&source);
            }
        }

        #[test]
        fn nothing_like_yaml_panics(text in r#"[-a:\[\]{}&*!|>'"%@,?# ~\t\n\r0-9é\x00\x{85}\x{2028}]{0,80}"#) {
            let source = format!("---\n{text}\n---\n");
            if let FrontMatterBlock::Found { format, fields, .. } = FrontMatterBlock::find(&source)
                && let Err(warning) = FrontMatter::read(&source, format, fields)
            {
                let lines = source.split(['\n', '\r']).count();
                prop_assert!(warning.line.is_some_and(|line| line as usize <= lines));
            }
        }
    }
}
