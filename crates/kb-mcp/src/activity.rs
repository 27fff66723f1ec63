//! The activity log: one JSON line a tool call, so that people can see what agents do.
//!
//! **Invariant:** it holds times, names, ids and outcomes; never a text, a query, or an argument that is no id.

use std::fmt::Debug;
use std::io::Write;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use kb_core::{DocId, SectionId, Timestamp};
use serde_json::{Map, Value, json};

/// The arguments and fields of a result that hold ids.
const ID_FIELDS: &[&str] = &["kbid", "docid", "ids", "kbids"];
/// The most ids of one call that are written down.
const MAX_IDS: usize = 20;

/// Where calls are written down.
pub(crate) struct ActivityLog {
    output: Mutex<Box<dyn Write + Send>>,
    clock: fn() -> SystemTime,
}

impl Debug for ActivityLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ActivityLog").finish_non_exhaustive()
    }
}

impl ActivityLog {
    pub(crate) fn new(output: Box<dyn Write + Send>, clock: fn() -> SystemTime) -> Self {
        Self { output: Mutex::new(output), clock }
    }

    /// Writes down a call. A log that cannot be written is no reason to fail the call.
    pub(crate) fn call(&self, tool: &str, ids: &[String], outcome: &str, took: Duration) {
        let since = (self.clock)().duration_since(UNIX_EPOCH).unwrap_or_default();
        let time = Timestamp::new(since.as_secs() as i64, since.subsec_nanos());
        let milliseconds = (took.as_secs_f64() * 10_000.0).round() / 10.0;
        let line = json!({
            "time": time.map(|time| time.to_string()),
            "tool": tool,
            "ids": ids,
            "outcome": outcome,
            "milliseconds": milliseconds,
        });
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = output.write_all(format!("{line}\n").as_bytes()).and_then(|()| output.flush());
    }
}

/// Returns the ids that an object names. What has the shape of no id is left out.
pub(crate) fn ids(fields: &Map<String, Value>) -> Vec<String> {
    let is_id = |text: &&str| text.parse::<SectionId>().is_ok() || text.parse::<DocId>().is_ok();
    let mut ids = Vec::new();
    for field in ID_FIELDS {
        match fields.get(*field) {
            Some(Value::String(text)) => ids.extend(Some(text.as_str()).filter(is_id).map(str::to_owned)),
            Some(Value::Array(items)) => {
                ids.extend(items.iter().filter_map(Value::as_str).filter(is_id).map(str::to_owned));
            }
            _ => {}
        }
    }
    ids.truncate(MAX_IDS);
    ids
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ids_are_written_down() {
        let fields = json!({"docid": "guide", "kbid": "A secret, with blanks", "query": "salary", "ids": ["a-b", 3]});
        assert_eq!(ids(fields.as_object().unwrap()), ["guide", "a-b"]);
    }
}
