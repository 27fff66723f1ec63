//! The arguments of a call, checked by the shapes that the tool declares.
//!
//! Clients send numbers, arrays and flags as strings, and `null` for what they leave out; both are taken. A name that
//! the tool does not have is refused with the nearest one it has, since a dropped argument is a wrong answer.
//!
//! **Invariant:** what is returned fits the declared shape; every refusal names the field.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::schema::{Parameter, Shape};
use crate::failure::Failure;

/// The arguments of one call.
#[derive(Debug)]
pub(crate) struct Arguments {
    parameters: &'static [Parameter],
    values: Map<String, Value>,
}

impl Arguments {
    /// Checks names; a value that is `null` counts as left out.
    pub(crate) fn new(parameters: &'static [Parameter], mut values: Map<String, Value>) -> Result<Self, Failure> {
        values.retain(|_, value| !value.is_null());
        check_names(parameters, &values)?;
        for parameter in parameters.iter().filter(|parameter| parameter.is_required) {
            if !values.contains_key(parameter.name) {
                return Err(Failure::argument(parameter.name, "is required and was not given"));
            }
        }
        Ok(Self { parameters, values })
    }

    /// Returns a text.
    pub(crate) fn text(&self, name: &'static str) -> Result<Option<String>, Failure> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => match self.shape(name) {
                Shape::Word(words) if !words.contains(&text.as_str()) => {
                    Err(Failure::argument(name, format!("`{}` is none of {}", shown(text), words.join(", "))))
                }
                _ => Ok(Some(text.clone())),
            },
            Some(other) => Err(wrong(name, "a string", other)),
        }
    }

    /// Returns a text that the tool requires.
    pub(crate) fn required_text(&self, name: &'static str) -> Result<String, Failure> {
        self.text(name)?.ok_or_else(|| Failure::argument(name, "is required and was not given"))
    }

    /// Returns a whole number within the declared bounds.
    pub(crate) fn integer(&self, name: &'static str) -> Result<Option<u64>, Failure> {
        let Some(value) = self.get(name) else { return Ok(None) };
        let Shape::Integer(from, to) = self.shape(name) else { return Err(wrong(name, "what the tool takes", value)) };
        let number = match value {
            Value::Number(number) => number.as_f64(),
            Value::String(text) => text.trim().parse().ok(),
            _ => None,
        };
        // Every bound is far below the numbers that a float cannot tell apart.
        match number {
            Some(number) if number.fract() == 0.0 && number >= from as f64 && number <= to as f64 => {
                Ok(Some(number as u64))
            }
            _ => Err(wrong(name, &format!("a whole number from {from} to {to}"), value)),
        }
    }

    /// Returns a flag; left out is no.
    pub(crate) fn flag(&self, name: &'static str) -> Result<bool, Failure> {
        match self.get(name) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(Value::String(text)) if text == "true" => Ok(true),
            Some(Value::String(text)) if text == "false" => Ok(false),
            Some(other) => Err(wrong(name, "true or false", other)),
        }
    }

    /// Returns texts: an array, the same as JSON in a string, or one text by itself.
    pub(crate) fn texts(&self, name: &'static str) -> Result<Vec<String>, Failure> {
        let Some(value) = self.get(name) else { return Ok(Vec::new()) };
        let items = match value {
            Value::String(text) => {
                array_in(text).unwrap_or_else(|| if text.is_empty() { Vec::new() } else { vec![value.clone()] })
            }
            Value::Array(items) => items.clone(),
            other => return Err(wrong(name, "an array of strings", other)),
        };
        let text = |item| match item {
            Value::String(text) => Ok(text),
            other => Err(wrong(name, "an array of strings", &other)),
        };
        items.into_iter().map(text).collect()
    }

    /// Returns objects, each checked by the shapes declared for them; a string is an object with its first field.
    pub(crate) fn objects(&self, name: &'static str) -> Result<Vec<Arguments>, Failure> {
        let Some(value) = self.get(name) else { return Ok(Vec::new()) };
        let Shape::Objects(parameters) = self.shape(name) else { return Err(wrong(name, "an array", value)) };
        let items = match value {
            Value::Array(items) => items.clone(),
            Value::String(text) => array_in(text).ok_or_else(|| wrong(name, "an array of objects", value))?,
            other => return Err(wrong(name, "an array of objects", other)),
        };
        let mut objects = Vec::with_capacity(items.len());
        for item in items {
            let fields = match (item, parameters.first()) {
                (Value::Object(fields), _) => fields,
                (Value::String(text), Some(first)) => Map::from_iter([(first.name.to_owned(), Value::String(text))]),
                (other, _) => return Err(wrong(name, "an array of objects", &other)),
            };
            objects.push(Self::new(parameters, fields)?);
        }
        Ok(objects)
    }

    /// Returns an object of texts by name; numbers and flags are taken as they are written, `null` as left out.
    pub(crate) fn values(&self, name: &'static str) -> Result<Option<BTreeMap<String, String>>, Failure> {
        let fields = match self.get(name) {
            None => return Ok(None),
            Some(Value::Object(fields)) => fields.clone(),
            Some(other @ Value::String(text)) => {
                serde_json::from_str(text).map_err(|_| wrong(name, "an object of strings", other))?
            }
            Some(other) => return Err(wrong(name, "an object of strings", other)),
        };
        as_texts(fields).map(Some).map_err(|field| Failure::argument(name, format!("`{field}` is not a string")))
    }

    fn get(&self, name: &str) -> Option<&Value> {
        self.values.get(name)
    }

    fn shape(&self, name: &str) -> Shape {
        self.parameters.iter().find(|p| p.name == name).map_or(Shape::Text, |p| p.shape)
    }
}

/// Returns values as texts, or the name of one that has none.
pub(crate) fn as_texts(fields: Map<String, Value>) -> Result<BTreeMap<String, String>, String> {
    let mut texts = BTreeMap::new();
    for (name, value) in fields {
        match value {
            Value::Null => {}
            Value::String(text) => drop(texts.insert(name, text)),
            Value::Number(_) | Value::Bool(_) => drop(texts.insert(name, value.to_string())),
            Value::Array(_) | Value::Object(_) => return Err(name),
        }
    }
    Ok(texts)
}

fn check_names(parameters: &[Parameter], values: &Map<String, Value>) -> Result<(), Failure> {
    let Some(unknown) = values.keys().find(|key| parameters.iter().all(|p| p.name != key.as_str())) else {
        return Ok(());
    };
    let names: Vec<_> = parameters.iter().map(|p| p.name).collect();
    let reason = match nearest(unknown, &names) {
        _ if names.is_empty() => "is not known; there are no arguments".to_owned(),
        Some(near) => format!("is not known; did you mean `{near}`? The arguments are {}", names.join(", ")),
        None => format!("is not known; the arguments are {}", names.join(", ")),
    };
    Err(Failure::argument(&shown(unknown), reason))
}

fn wrong(name: &str, expected: &str, found: &Value) -> Failure {
    let found = match found {
        Value::Null => "null".to_owned(),
        Value::Bool(_) | Value::Number(_) => found.to_string(),
        Value::String(text) => format!("`{}`", shown(text)),
        Value::Array(_) => "an array".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    };
    Failure::argument(name, format!("expected {expected}, got {found}"))
}

fn array_in(text: &str) -> Option<Vec<Value>> {
    if text.trim_start().starts_with('[') { serde_json::from_str(text).ok() } else { None }
}

/// Returns so much of a text as a message shows.
pub(crate) fn shown(text: &str) -> String {
    let mut shown: String = text.chars().take(80).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}

/// Returns the name nearest to a wrong one, if it is near enough to be meant.
pub(crate) fn nearest<'n>(wrong: &str, names: &[&'n str]) -> Option<&'n str> {
    let wrong: Vec<char> = wrong.chars().take(64).flat_map(char::to_lowercase).collect();
    let near = names.iter().map(|name| (distance(&wrong, name), *name)).min()?;
    (near.0 <= wrong.len().min(near.1.len()) / 2).then_some(near.1)
}

/// The Levenshtein distance.
fn distance(a: &[char], b: &str) -> usize {
    let b: Vec<char> = b.chars().flat_map(char::to_lowercase).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, &from) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, &to) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(from != to);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::schema::{optional, required};
    use super::*;

    const PARAMETERS: &[Parameter] = &[
        required("query", Shape::Text, ""),
        optional("mode", Shape::Word(&["auto", "any"]), ""),
        optional("limit", Shape::Integer(1, 100), ""),
        optional("tags", Shape::Texts, ""),
        optional("describe", Shape::Flag, ""),
        optional("values", Shape::Object, ""),
    ];

    fn arguments(values: &Value) -> Result<Arguments, Failure> {
        Arguments::new(PARAMETERS, values.as_object().unwrap().clone())
    }

    fn message<T: std::fmt::Debug>(result: Result<T, Failure>) -> String {
        result.unwrap_err().message
    }

    #[test]
    fn strings_stand_for_numbers_arrays_and_flags() {
        let given = json!({"query": "q", "limit": "7", "tags": "[\"a\", \"b\"]", "describe": "true", "mode": null});
        let given = arguments(&given).unwrap();
        assert_eq!(given.integer("limit").unwrap(), Some(7));
        assert_eq!(given.texts("tags").unwrap(), ["a", "b"]);
        assert!(given.flag("describe").unwrap());
        assert_eq!(given.text("mode").unwrap(), None);
        assert_eq!(arguments(&json!({"query": "q", "tags": "solo"})).unwrap().texts("tags").unwrap(), ["solo"]);
        assert_eq!(arguments(&json!({"query": "q", "limit": 7.0})).unwrap().integer("limit").unwrap(), Some(7));
    }

    #[test]
    fn what_does_not_fit_is_refused_by_name() {
        assert_eq!(message(arguments(&json!({}))), "`query`: is required and was not given");
        assert_eq!(message(arguments(&json!({"query": null}))), "`query`: is required and was not given");
        let unknown = message(arguments(&json!({"query": "q", "limti": 3})));
        assert!(unknown.starts_with("`limti`: is not known; did you mean `limit`?"), "{unknown}");
        let given = arguments(&json!({"query": 5, "mode": "loud", "limit": 1.5, "tags": [1], "describe": 1})).unwrap();
        assert_eq!(message(given.required_text("query")), "`query`: expected a string, got 5");
        assert_eq!(message(given.text("mode")), "`mode`: `loud` is none of auto, any");
        assert_eq!(message(given.integer("limit")), "`limit`: expected a whole number from 1 to 100, got 1.5");
        assert_eq!(message(given.texts("tags")), "`tags`: expected an array of strings, got 1");
        assert_eq!(message(given.flag("describe")), "`describe`: expected true or false, got 1");
    }

    #[test]
    fn values_by_name_are_texts() {
        let given = arguments(&json!({"query": "q", "values": {"n": 3, "doc": "x", "gone": null}})).unwrap();
        let values = given.values("values").unwrap().unwrap();
        assert_eq!(values, [("doc", "x"), ("n", "3")].map(|(k, v)| (k.to_owned(), v.to_owned())).into());
        let nested = arguments(&json!({"query": "q", "values": {"n": []}})).unwrap();
        assert_eq!(message(nested.values("values")), "`values`: `n` is not a string");
    }
}
