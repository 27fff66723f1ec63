//! How much of an answer is given at once.
//!
//! Clients cut an answer of more than some 25,000 tokens, or put it into a file where the model does not see it. So an
//! answer is kept below [`MAX_CHARS`] characters of JSON; what is left out is counted, and a cursor goes on from there.
//!
//! **Invariant:** an answer is cut between whole items (hits, sections, skills), and holds at least one, so that
//! following cursors always comes to the end.

use serde_json::Value;

use crate::failure::Failure;

/// The most characters of JSON in an answer.
pub(crate) const MAX_CHARS: usize = 48_000;
/// Characters that a token is taken to be.
const CHARS_PER_TOKEN: u64 = 4;

/// Characters that an answer may still have.
#[derive(Debug)]
pub(crate) struct Budget {
    left: usize,
}

impl Budget {
    /// Returns the usual budget, lowered to so many tokens.
    pub(crate) fn of(max_tokens: Option<u64>) -> Self {
        let asked = max_tokens
            .map_or(MAX_CHARS, |tokens| usize::try_from(tokens.saturating_mul(CHARS_PER_TOKEN)).unwrap_or(usize::MAX));
        Self { left: asked.min(MAX_CHARS) }
    }

    /// Returns the characters left.
    pub(crate) const fn left(&self) -> usize {
        self.left
    }

    /// Takes what a value needs, whether or not there is so much.
    pub(crate) fn spend(&mut self, value: &Value) {
        self.left = self.left.saturating_sub(chars(value));
    }

    /// Keeps as many items from the front as fit, one at least; returns how many were left out.
    pub(crate) fn fit(&mut self, items: &mut Vec<Value>) -> usize {
        let mut kept = 0;
        for item in items.iter() {
            let needed = chars(item) + 1;
            if kept > 0 && needed > self.left {
                break;
            }
            self.left = self.left.saturating_sub(needed);
            kept += 1;
        }
        let omitted = items.len() - kept;
        items.truncate(kept);
        omitted
    }
}

fn chars(value: &Value) -> usize {
    value.to_string().chars().count()
}

/// Returns where an answer goes on: the position behind the stamp that the cursor has to carry.
///
/// The stamp names the state that was being read, so that a cursor of another is refused and no item is lost or told
/// twice.
pub(crate) fn resume(cursor: Option<&str>, stamp: &str) -> Result<usize, Failure> {
    let Some(cursor) = cursor else { return Ok(0) };
    match cursor.rsplit_once('.').map(|(stamp, at)| (stamp, at.parse())) {
        Some((given, Ok(at))) if given == stamp => Ok(at),
        Some((_, Ok(_))) => Err(Failure::argument(
            "cursor",
            "what it goes on in has changed; call again without it, from the beginning",
        )),
        _ => Err(Failure::argument("cursor", "is not one that an answer gave")),
    }
}

/// Returns the cursor for a position.
pub(crate) fn cursor(stamp: &str, at: usize) -> Value {
    format!("{stamp}.{at}").into()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_answer_is_cut_between_items_and_never_empty() {
        let mut items = vec![json!("x".repeat(100)), json!("y".repeat(500)), json!("z")];
        assert_eq!(Budget::of(Some(100)).fit(&mut items), 2);
        assert_eq!(items.len(), 1);
        let mut items = vec![json!("x".repeat(1000)), json!("y")];
        assert_eq!(Budget::of(Some(100)).fit(&mut items), 1);
        assert_eq!(Budget::of(Some(u64::MAX)).left(), MAX_CHARS);
    }

    #[test]
    fn a_cursor_of_another_state_is_refused() {
        assert_eq!(resume(None, "r1").unwrap(), 0);
        assert_eq!(resume(cursor("r1", 12).as_str(), "r1").unwrap(), 12);
        assert!(resume(Some("r1.12"), "r2").unwrap_err().message.contains("has changed"));
        assert!(resume(Some("nonsense"), "r2").unwrap_err().message.contains("not one that an answer gave"));
    }
}
