//! Taking a mapping apart, key by key.
//!
//! **Invariant:** a key that nobody took is a fault, and no fault repeats a value.

use std::collections::BTreeMap;
use std::time::Duration;

use kb_core::SourceFault;
use serde_json::{Map, Value};

use super::KeyPath;
use crate::source::secret;

/// The longest deadline that can be set, in seconds.
const LONGEST_TIMEOUT: f64 = 3600.0;

/// All that is wrong, each with its key.
#[derive(Default)]
pub(super) struct Faults(Vec<SourceFault>);

impl Faults {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn into_list(self) -> Vec<SourceFault> {
        self.0
    }

    pub(super) fn add(&mut self, key: &str, message: impl Into<String>) {
        self.0.push(SourceFault { key: key.to_owned(), message: message.into() });
    }
}

/// A mapping of which each key is taken out once, so that what is left is unknown.
pub(super) struct Keys<'f> {
    path: &'static str,
    left: BTreeMap<String, Value>,
    faults: &'f mut Faults,
}

impl<'f> Keys<'f> {
    pub(super) fn new(path: &'static str, map: &Map<String, Value>, faults: &'f mut Faults) -> Self {
        // A key without a value is as good as absent.
        let left = map.iter().filter(|(_, value)| !value.is_null()).map(|(key, value)| (key.clone(), value.clone()));
        Self { path, left: left.collect(), faults }
    }

    pub(super) fn of(path: &'static str, value: &Value, faults: &'f mut Faults) -> Option<Self> {
        if let Value::Object(map) = value {
            return Some(Self::new(path, map, faults));
        }
        faults.add(path, "it is not a mapping of keys to values");
        None
    }

    pub(super) fn key(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }

    pub(super) fn fault(&mut self, name: &str, message: impl Into<String>) {
        let key = self.key(name);
        self.faults.add(&key, message);
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.left.contains_key(name)
    }

    pub(super) fn take(&mut self, name: &str) -> Option<Value> {
        self.left.remove(name)
    }

    /// Takes a text that is not blank.
    pub(super) fn text(&mut self, name: &str) -> Option<String> {
        match self.take(name)? {
            Value::String(text) if !text.trim().is_empty() => Some(text),
            Value::String(_) => {
                self.fault(name, "it is empty");
                None
            }
            _ => {
                self.fault(name, "it is not a text");
                None
            }
        }
    }

    pub(super) fn required(&mut self, name: &str) -> Option<String> {
        if !self.has(name) {
            self.fault(name, "it is missing");
        }
        self.text(name)
    }

    pub(super) fn path(&mut self, name: &str) -> Option<KeyPath> {
        self.text(name).map(KeyPath)
    }

    pub(super) fn flag(&mut self, name: &str) -> bool {
        match self.take(name) {
            None => false,
            Some(Value::Bool(flag)) => flag,
            Some(_) => {
                self.fault(name, "it is neither true nor false");
                false
            }
        }
    }

    pub(super) fn number(&mut self, name: &str, range: std::ops::RangeInclusive<u64>) -> Option<u64> {
        let value = self.take(name)?;
        let number = value.as_u64().filter(|number| range.contains(number));
        if number.is_none() {
            self.fault(name, format!("it is not a whole number from {} to {}", range.start(), range.end()));
        }
        number
    }

    pub(super) fn texts(&mut self, name: &str) -> Vec<String> {
        let Some(value) = self.take(name) else { return Vec::new() };
        let texts = value.as_array().map(|items| {
            items
                .iter()
                .map(|item| match item {
                    Value::String(text) => Some(text.clone()),
                    Value::Number(number) => Some(number.to_string()),
                    Value::Bool(flag) => Some(flag.to_string()),
                    _ => None,
                })
                .collect::<Option<Vec<String>>>()
        });
        texts.flatten().unwrap_or_else(|| {
            self.fault(name, "it is not a list of texts");
            Vec::new()
        })
    }

    pub(super) fn map(&mut self, name: &str) -> Map<String, Value> {
        match self.take(name) {
            None => Map::new(),
            Some(Value::Object(map)) => map,
            Some(_) => {
                self.fault(name, "it is not a mapping of keys to values");
                Map::new()
            }
        }
    }

    pub(super) fn seconds(&mut self, name: &str) -> Option<Duration> {
        let value = self.take(name)?;
        let seconds = value.as_f64().filter(|seconds| *seconds > 0.0 && *seconds <= LONGEST_TIMEOUT);
        if seconds.is_none() {
            self.fault(name, format!("it is not a number of seconds up to {LONGEST_TIMEOUT}"));
        }
        seconds.map(Duration::from_secs_f64)
    }

    /// Complains of what nobody took.
    pub(super) fn finish(self, known: &str) {
        for key in self.left.keys() {
            let path = if self.path.is_empty() { key.clone() } else { format!("{}.{key}", self.path) };
            // A key may be a secret that was put in the wrong place.
            let path = if secret::looks_secret(&path) { format!("{}.…", self.path) } else { path };
            self.faults.add(&path, format!("there is no such key; there are {known}"));
        }
    }
}
