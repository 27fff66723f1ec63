//! From the id that a server has to the name of a document.
//!
//! ```text
//! system-id              where the id is fit to be a name as it stands
//! system-slug--hash      else: the hash of system and id tells apart what the slug does not
//! ```
//!
//! **Invariant:** the name depends on system and id alone, and two of these pairs never share one, whatever their case or
//! Unicode form: names of the first kind hold no `--`, and say by their first `-` where the system ends.

use kb_core::{DocId, MediaType, SectionId, slug};

/// The longest id that stands in a name as it is.
const MAX_PLAIN_BYTES: usize = 120;
const HASH_CHARS: usize = 12;

/// Returns the docid of what this system calls `id`.
///
/// ```
/// use kb_store::source_docid;
///
/// assert_eq!(source_docid("aws", "docs/a.md").as_str(), "aws-docs/a.md");
/// assert!(source_docid("aws", "Docs/A.md").as_str().starts_with("aws-docs-a-md--"));
/// ```
pub fn source_docid(system: &str, id: &str) -> DocId {
    if let Some(docid) = plain(system, id) {
        return docid;
    }
    let mut hash = SectionId::of(&MediaType::plain(), format!("{system}\0{id}").as_bytes()).to_string();
    hash.truncate(HASH_CHARS);
    let system: String =
        system.to_lowercase().chars().filter(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-')).collect();
    let name = format!("{}-{}--{hash}", &system[..system.floor_char_boundary(64)], slug(id));
    name.parse().expect("letters, digits and dashes are a docid")
}

fn plain(system: &str, id: &str) -> Option<DocId> {
    let fits = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'.' | b'_' | b'-' | b'/');
    let is_system = !system.is_empty() && system.bytes().all(|b| fits(b) && !matches!(b, b'-' | b'.' | b'/'));
    let is_id = !id.is_empty()
        && id.len() <= MAX_PLAIN_BYTES
        && id.bytes().all(fits)
        && !id.contains("--")
        && id.starts_with(|c: char| c.is_ascii_alphanumeric())
        && id.ends_with(|c: char| c.is_ascii_alphanumeric())
        && id.split('/').all(|part| !part.starts_with('.') && !part.ends_with('.'));
    if is_system && is_id { format!("{system}-{id}").parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_are_readable_and_never_shared() {
        let long = format!("docs/{}", "x".repeat(300));
        let pairs = [
            ("lab", "docs/d00001.md"),
            ("lab", "Docs/D00001.md"),
            ("LAB", "docs/d00001.md"),
            ("lab", "docs-d00001.md"),
            ("lab", "docs/d00001"),
            ("lab", "https://a.example/x"),
            ("lab", "https://a.example/X"),
            ("lab", "caf\u{e9}"),
            ("lab", "cafe\u{301}"),
            ("lab", "cafe"),
            ("a", "b-c"),
            ("a-b", "c"),
            ("lab", "../../etc/passwd"),
            ("lab", "a/%2e%2e/x"),
            ("lab", "a\nb"),
            ("lab", "a\tb"),
            ("lab", "a\u{7f}b"),
            ("lab", "a b"),
            ("lab", ".md"),
            ("lab", "CON"),
            ("lab", "a--b"),
            ("lab", "\u{1f6a2}"),
            ("lab", long.as_str()),
        ];
        let docids: BTreeSet<DocId> = pairs.iter().map(|(system, id)| source_docid(system, id)).collect();
        assert_eq!(docids.len(), pairs.len(), "{docids:#?}");
        assert_eq!(source_docid("lab", "docs/d00001.md").as_str(), "lab-docs/d00001.md");
        assert!(source_docid("lab", "../../etc/passwd").as_str().starts_with("lab-etc-passwd--"));
        assert!(source_docid("lab", &long).as_str().len() < 170);
    }

    proptest! {
        #[test]
        fn any_id_has_a_name_of_its_own(system in "[A-Za-z0-9][A-Za-z0-9_-]{0,63}", a in ".{0,60}", b in ".{0,60}") {
            prop_assert_eq!(source_docid(&system, &a) == source_docid(&system, &b), a == b);
        }

        #[test]
        fn near_ids_have_different_names(a in "[ab./-]{1,6}", b in "[ab./-]{1,6}", s in "[ab-]{1,3}", t in "[ab-]{1,3}") {
            let same = (s == t) && (a == b);
            prop_assert_eq!(source_docid(&s, &a) == source_docid(&t, &b), same);
        }
    }
}
