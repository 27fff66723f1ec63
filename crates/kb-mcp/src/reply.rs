//! The result of a request on its way to a line of JSON.
//!
//! The result of a tool shows its report twice, as text and as structured content. A report that needs no cutting is
//! written as JSON once, straight from its struct, and that text stands in both places.
//!
//! **Invariant:** what is written is one JSON object, the same as if it had been put together from values.

use std::fmt::Write;

use serde::Serialize;
use serde_json::{Value, json};

use crate::call::Era;
use crate::failure::Failure;
use crate::protocol::frame;

/// The result of a request.
#[derive(Debug, PartialEq)]
pub(crate) struct Reply {
    /// The object, but for what the report gives.
    fields: Value,
    report: Option<Report>,
}

/// A report of the base as the text of a JSON object.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Report(String);

impl Report {
    pub(crate) fn new(report: &impl Serialize) -> Result<Self, Failure> {
        serde_json::to_string(report).map(Self).map_err(|error| Failure::unshown(&error))
    }

    /// Returns its length in bytes; it has no more characters than that.
    pub(crate) const fn len(&self) -> usize {
        self.0.len()
    }
}

impl From<Value> for Reply {
    fn from(fields: Value) -> Self {
        Self { fields, report: None }
    }
}

impl From<Report> for Reply {
    /// Returns the result of a tool that succeeded.
    fn from(report: Report) -> Self {
        Self { fields: json!({"isError": false}), report: Some(report) }
    }
}

impl Reply {
    /// Puts around it what its era wants.
    pub(crate) fn framed(self, method: &str, era: &Era, server: &str) -> Self {
        Self { fields: frame(self.fields, method, era, server), report: self.report }
    }

    /// Writes it as JSON.
    pub(crate) fn into_json(self) -> String {
        let Some(Report(report)) = self.report else { return self.fields.to_string() };
        let quoted = |text: &str| Value::from(text).to_string();
        let text = quoted(&report);
        let mut json = format!("{{\"content\":[{{\"type\":\"text\",\"text\":{text}}}],\"structuredContent\":{report}");
        for (name, value) in self.fields.as_object().into_iter().flatten() {
            // A string takes all that is written to it.
            let _ = write!(json, ",{}:{value}", quoted(name));
        }
        json.push('}');
        json
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_written_as_if_it_had_been_put_together() {
        let value = json!({"title": "a \"quoted\" \\ title\n\u{1}é", "hits": [1, {"x": null}]});
        let era = Era::Modern { capabilities: json!({}), log_level: None };
        let whole = json!({
            "content": [{"type": "text", "text": value.to_string()}],
            "structuredContent": value,
            "isError": false,
        });
        for era in [Era::Legacy, era] {
            let written = Reply::from(Report::new(&value).unwrap()).framed("tools/call", &era, "kb").into_json();
            assert_eq!(written, Reply::from(whole.clone()).framed("tools/call", &era, "kb").into_json());
        }
    }
}
