//! From what a user types to a section or a document.
//!
//! **Invariant:** 26 characters of the kbid alphabet are a kbid; anything else is a docid, or, where no document has
//! that name, the beginning of exactly one kbid. A text that fits nothing is not found: near names are told, never
//! taken.

use kb_core::{DocId, SectionId};
use kb_store::{KnowledgeBase, StoreError};

use crate::failure::Failure;

/// The fewest characters of a kbid that stand for it.
const SHORTEST_PREFIX: usize = 4;

/// What an id stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Found {
    /// A section.
    Section {
        /// Its kbid.
        id: SectionId,
        /// The kbid was given in full.
        exact: bool,
    },
    /// A document.
    Document(DocId),
}

impl Found {
    /// Returns the id in full, as the library takes it.
    pub(crate) fn id(&self) -> String {
        match self {
            Self::Section { id, .. } => id.to_string(),
            Self::Document(id) => id.to_string(),
        }
    }
}

/// Finds what an id stands for. A full kbid is taken as it is; whether the section is there is for the operation to say.
pub(crate) fn find(base: &KnowledgeBase, text: &str) -> Result<Found, Failure> {
    if let Ok(id) = text.parse() {
        return Ok(Found::Section { id, exact: true });
    }
    let near = match text.parse().ok().or_else(|| docid_like(text)).map(|id| base.describe_document(&id)) {
        Some(Ok(document)) if document.docid.as_str() == text => return Ok(Found::Document(document.docid)),
        Some(Ok(document)) => vec![document.docid],
        Some(Err(StoreError::DocumentNotFound { near, .. })) => near,
        Some(Err(error)) => return Err(error.into()),
        None => Vec::new(),
    };
    if is_prefix(text) {
        match *base.sections_by_prefix(text, 100)? {
            [] => {}
            [id] => return Ok(Found::Section { id, exact: false }),
            ref several => {
                return Err(StoreError::AmbiguousPrefix { prefix: text.to_owned(), count: several.len() }.into());
            }
        }
    }
    Err(StoreError::DocumentNotFound { id: text.to_owned(), near }.into())
}

fn is_prefix(text: &str) -> bool {
    let in_alphabet = |c: u8| matches!(c, b'0'..=b'9' | b'a'..=b'z') && !b"ilou".contains(&c);
    (SHORTEST_PREFIX..SectionId::LEN).contains(&text.len()) && text.bytes().all(in_alphabet)
}

/// Returns the docid that someone who typed this may have meant, to look for near names with.
fn docid_like(text: &str) -> Option<DocId> {
    let lower = text.trim().to_lowercase();
    let kept: String = lower.chars().map(|c| if c.is_alphanumeric() || "-_./".contains(c) { c } else { '-' }).collect();
    kept.trim_matches(['/', '-', '.']).parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_can_begin_a_kbid_is_a_prefix() {
        for good in ["0000", "5f2d4vkx", &"z".repeat(25)] {
            assert!(is_prefix(good), "{good}");
        }
        for bad in ["", "5f2", "5F2D", "guide", "a-bc", &"z".repeat(26), "éééé"] {
            assert!(!is_prefix(bad), "{bad}");
        }
    }

    #[test]
    fn a_title_leads_to_near_docids() {
        let like = |text| docid_like(text).map(|docid| docid.to_string());
        assert_eq!(like("Plan Gamma").as_deref(), Some("plan-gamma"));
        assert_eq!(like("/Guide/Retries.").as_deref(), Some("guide/retries"));
        assert_eq!(like("../../etc/passwd").as_deref(), Some("etc/passwd"));
        assert_eq!(like("  "), None);
    }
}
