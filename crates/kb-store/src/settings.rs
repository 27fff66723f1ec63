//! `kb.toml`: settings that a person edits.
//!
//! ```toml
//! history = 10    # revisions kept of each document
//! ```
//!
//! **Invariant:** a setting that is not understood is an error that names it, never ignored; none runs anything or leads
//! out of the base.

use serde::Deserialize;

use crate::error::StoreError;
use crate::storage::Storage;

/// The settings of a base.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Settings {
    /// Revisions kept of each document, at least 1.
    pub(crate) history: Option<u32>,
}

impl Settings {
    pub(crate) fn read(storage: &dyn Storage) -> Result<Self, StoreError> {
        let Some(bytes) = storage.settings()? else { return Ok(Self::default()) };
        let invalid = |reason: String| StoreError::Invalid { field: "kb.toml", reason };
        let text = std::str::from_utf8(&bytes).map_err(|e| invalid(e.to_string()))?;
        let settings: Self = toml::from_str(text).map_err(|e| invalid(e.to_string().trim_end().to_owned()))?;
        match settings.history {
            Some(0) => Err(invalid("`history` is at least 1".to_owned())),
            _ => Ok(settings),
        }
    }
}
