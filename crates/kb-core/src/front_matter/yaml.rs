//! YAML fields as JSON values, scalars spelled as in the source.
//!
//! The parser types plain scalars (`0x1F` becomes 31), which loses their spelling; asked for a text it gives the
//! spelling, and does not say that `~` is null. So a block is read once for its shape and, only where a number or a
//! boolean was met, once more for the spelling, guided by the shape.
//!
//! **Invariant:** the parser sees no text that nests flow brackets deeper than [`MAX_FLOW_DEPTH`]: its time is quadratic
//! in that depth. What aliases make of a text is at most a few times its length: the parser alone lets 16 KiB become
//! ten million values.

use std::fmt;

use serde::de::{DeserializeSeed, EnumAccess, IgnoredAny, MapAccess, SeqAccess, VariantAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Number, Value};

use super::{Unreadable, as_spelled, find_key};
use crate::lines::{Lines, next_line};

const MAX_FLOW_DEPTH: usize = 64;
/// How many times its own length a block may grow to when aliases are put in place.
const MAX_GROWTH: usize = 4;
const TOO_MUCH: &str = "its aliases stand for too much";
const DUPLICATE: &str = "duplicate key ";

/// Reads a mapping of fields; blank text and comments alone are an empty one.
pub(super) fn read(text: &str) -> Result<Map<String, Value>, Unreadable> {
    if text.lines().all(|line| line.trim().is_empty() || line.starts_with('#')) {
        return Ok(Map::new());
    }
    if let Some(offset) = too_deep(text) {
        return Err(Unreadable { offset, message: format!("brackets are nested deeper than {MAX_FLOW_DEPTH}") });
    }
    let mut shape = Shape { spelling_lost: false, typed: false, budget: MAX_GROWTH * text.len() + 64 };
    let document = serde_yaml::Deserializer::from_str(text);
    let value = ShapeOf(&mut shape).deserialize(document).map_err(|error| explain(text, &error))?;
    let value = if shape.spelling_lost {
        Spelling(&value).deserialize(serde_yaml::Deserializer::from_str(text)).map_err(|error| explain(text, &error))?
    } else {
        value
    };
    match value {
        Value::Object(map) => Ok(map),
        Value::Null => Ok(Map::new()),
        _ => Err(Unreadable { offset: 0, message: "it is not a mapping of keys to values".to_owned() }),
    }
}

/// Reads a document with numbers and booleans as what they are; blank text is null.
pub(crate) fn read_typed(text: &str) -> Result<Value, Unreadable> {
    if text.lines().all(|line| line.trim().is_empty() || line.starts_with('#')) {
        return Ok(Value::Null);
    }
    if let Some(offset) = too_deep(text) {
        return Err(Unreadable { offset, message: format!("brackets are nested deeper than {MAX_FLOW_DEPTH}") });
    }
    let mut shape = Shape { spelling_lost: false, typed: true, budget: MAX_GROWTH * text.len() + 64 };
    ShapeOf(&mut shape).deserialize(serde_yaml::Deserializer::from_str(text)).map_err(|error| explain(text, &error))
}

/// Returns a text as a double-quoted scalar, which every reader of YAML 1.1 and 1.2 takes for the same text: what they
/// might take for a line break, or refuse, is escaped.
pub fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if u32::from(c) < 0xa0 && c.is_control() => out.extend(["\\x", &format!("{:02x}", u32::from(c))]),
            c if is_refused(c) || ['\u{2028}', '\u{2029}', '\u{feff}'].contains(&c) => {
                out.extend(["\\u", &format!("{:04x}", u32::from(c))]);
            }
            _ => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Returns where brackets are nested too deep, counted without regard to quotes: a text that trips over this is no
/// front matter that a person wrote.
fn too_deep(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (i, byte) in text.bytes().enumerate() {
        match byte {
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_FLOW_DEPTH {
            return Some(i);
        }
    }
    None
}

fn explain(text: &str, error: &serde_yaml::Error) -> Unreadable {
    let message = error.to_string();
    if let Some(rest) = message.find(DUPLICATE).map(|at| &message[at + DUPLICATE.len()..]) {
        let key = rest.strip_prefix('`').and_then(|rest| rest.split_once('`')).map_or("", |(key, _)| key);
        if let Some(offset) = find_key(text, key, 1) {
            return Unreadable { offset, message: format!("`{key}` is given twice") };
        }
    }
    if message.contains(TOO_MUCH) {
        return Unreadable { offset: 0, message: TOO_MUCH.to_owned() };
    }
    if message.contains("control characters")
        && let Some((offset, c)) = text.char_indices().find(|&(_, c)| is_refused(c))
    {
        return Unreadable { offset, message: format!("it has the control character U+{:04X}", u32::from(c)) };
    }
    if let Some(offset) = message.split_once(OPEN_QUOTE).and_then(|(_, place)| offset_of(text, place)) {
        return Unreadable { offset, message: "a quote is opened here and never closed".to_owned() };
    }
    // Of the location only the byte index is of use: the parser's own line breaks (NEL, U+2028) are not the source's.
    let index = error.location().map(|location| location.index());
    let offset = text.floor_char_boundary(index.unwrap_or(0));
    let bare = message.split(" at line ").next().unwrap_or(&message).to_owned();
    let hint = index.and_then(|_| hint(text, offset)).unwrap_or_default();
    Unreadable { offset, message: format!("{bare}{hint}") }
}

const OPEN_QUOTE: &str = "while scanning a quoted scalar at line ";

/// Reads `LINE column COLUMN`, both from 1, the column in characters.
fn offset_of(text: &str, place: &str) -> Option<usize> {
    let (line, column) = place.split_once(" column ")?;
    let start = Lines::of(text).start(line.parse::<usize>().ok()?.checked_sub(1)?);
    let (column, _) = text[start..].char_indices().nth(column.parse::<usize>().ok()?.checked_sub(1)?)?;
    Some(start + column)
}

/// Says what to put in quotes, where an unquoted value on the line of the error is a likely culprit.
fn hint(text: &str, offset: usize) -> Option<String> {
    let start = text[..offset].rfind(['\n', '\r']).map_or(0, |at| at + 1);
    let line = text[start..next_line(text, start)].trim_end();
    let item = line.trim_start().strip_prefix("- ").unwrap_or(line);
    match item.split_once(": ") {
        Some((key, value)) if needs_quotes(value) => Some(format!("; put the value of `{}` in quotes", key.trim())),
        None if item.len() < line.len() && needs_quotes(item) => Some(format!("; put `{item}` in quotes")),
        _ => None,
    }
}

/// Characters that YAML allows in a text only where they are escaped.
fn is_refused(c: char) -> bool {
    (c.is_control() && !['\t', '\n', '\r', '\u{85}'].contains(&c)) || c == '\u{fffe}' || c == '\u{ffff}'
}

fn needs_quotes(value: &str) -> bool {
    let value = value.trim_start();
    value.contains(": ")
        || value.ends_with(':')
        || value.starts_with(['@', '`', '%', '*', '&', '!', '|', '>', '[', '{'])
}

/// What the first reading learns besides the values.
struct Shape {
    /// Whether a scalar was typed in a way that loses its spelling.
    spelling_lost: bool,
    /// Numbers and booleans are wanted as such; their spelling is not.
    typed: bool,
    /// Values and bytes of text that may yet come.
    budget: usize,
}

impl Shape {
    fn spend<E: serde::de::Error>(&mut self, bytes: usize) -> Result<(), E> {
        let left = self.budget.checked_sub(bytes + 1);
        self.budget = left.ok_or_else(|| E::custom(TOO_MUCH))?;
        Ok(())
    }

    /// A number or a boolean; where the spelling is wanted, a stand-in that the second reading replaces.
    fn typed<E: serde::de::Error>(&mut self, value: impl Into<Value>) -> Result<Value, E> {
        self.spend(0)?;
        if self.typed {
            return Ok(value.into());
        }
        self.spelling_lost = true;
        Ok(Value::Number(Number::from(0)))
    }
}

struct ShapeOf<'a>(&'a mut Shape);

impl<'de> DeserializeSeed<'de> for ShapeOf<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ShapeOf<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any YAML value")
    }

    fn visit_bool<E: serde::de::Error>(self, value: bool) -> Result<Value, E> {
        self.0.typed(value)
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Value, E> {
        self.0.typed(value)
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Value, E> {
        self.0.typed(value)
    }

    fn visit_i128<E: serde::de::Error>(self, value: i128) -> Result<Value, E> {
        self.0.typed(value.to_string())
    }

    fn visit_u128<E: serde::de::Error>(self, value: u128) -> Result<Value, E> {
        self.0.typed(value.to_string())
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        self.0.typed(value)
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Value, E> {
        self.0.spend(text.len())?;
        Ok(Value::String(text.to_owned()))
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<Value, E> {
        self.0.spend(0)?;
        Ok(Value::Null)
    }

    fn visit_none<E: serde::de::Error>(self) -> Result<Value, E> {
        self.visit_unit()
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        self.0.spend(0)?;
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(ShapeOf(self.0))? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            self.0.spend(key.len())?;
            if map.contains_key(&key) {
                return Err(serde::de::Error::custom(format_args!("{DUPLICATE}`{key}`")));
            }
            map.insert(key, entries.next_value_seed(ShapeOf(self.0))?);
        }
        Ok(Value::Object(map))
    }

    /// A tag (`!name value`) says nothing to us: the value alone is kept.
    fn visit_enum<A: EnumAccess<'de>>(self, data: A) -> Result<Value, A::Error> {
        let (_, content) = data.variant::<IgnoredAny>()?;
        self.0.spelling_lost = true;
        content.newtype_variant_seed(self)
    }
}

/// Reads again a document of this shape, with every number and boolean as spelled.
struct Spelling<'a>(&'a Value);

impl<'de> DeserializeSeed<'de> for Spelling<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        match self.0 {
            Value::Null => IgnoredAny::deserialize(deserializer).map(|_| Value::Null),
            Value::Bool(_) | Value::Number(_) | Value::String(_) => deserializer.deserialize_str(self),
            Value::Array(_) | Value::Object(_) => deserializer.deserialize_any(self),
        }
    }
}

impl<'de> Visitor<'de> for Spelling<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the same value as before")
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(if self.0.is_string() { Value::String(text.to_owned()) } else { as_spelled(text) })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let shapes = self.0.as_array().map(Vec::as_slice).unwrap_or_default();
        let mut list = Vec::with_capacity(shapes.len());
        for shape in shapes {
            list.extend(items.next_element_seed(Spelling(shape))?);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            let shape = self.0.get(&key).unwrap_or(&Value::Null);
            let value = entries.next_value_seed(Spelling(shape))?;
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }

    fn visit_enum<A: EnumAccess<'de>>(self, data: A) -> Result<Value, A::Error> {
        let (_, content) = data.variant::<IgnoredAny>()?;
        content.newtype_variant_seed(self)
    }
}
