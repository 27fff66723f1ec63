//! Slugs, and the docids made of them.
//!
//! Letters come from the `slug` crate, which transliterates any script to ASCII; here are the guards that it lacks:
//! a text of no letters at all, names that Windows reserves, lengths, and names told apart by their symbols (`C++`).
//!
//! **Invariant:** a slug is 1 to [`MAX_SLUG_BYTES`] bytes of `a-z0-9-`, and is a docid. A slug that was once stored is
//! never computed again to find its document: transliteration may change with a release.

use unicode_normalization::UnicodeNormalization;

use crate::{DocId, MediaType, SectionId};

/// The longest slug, in bytes.
pub const MAX_SLUG_BYTES: usize = 80;

/// Returns a name for this text that may stand in a docid and in a file name.
///
/// ```
/// use kb_core::slug;
///
/// assert_eq!(slug("Retry & back-off"), "retry-back-off");
/// assert_eq!(slug("C++"), "c-plus-plus");
/// assert_eq!(slug("港口"), "gang-kou");
/// assert_eq!(slug("---").len(), 9);
/// ```
pub fn slug(text: &str) -> String {
    let text: String = text.nfc().collect();
    let slug = shorten(slug::slugify(spell_symbols(&text)), MAX_SLUG_BYTES, &text);
    if slug.is_empty() {
        format!("x{}", hash(&[text.as_bytes()], 8))
    } else if is_device_name(&slug) || slug.parse::<DocId>().is_err() {
        format!("x-{slug}")
    } else {
        slug
    }
}

/// Returns the docid of a file, from its path relative to the root that was learned.
///
/// `/` and `\` both separate; a drive letter, empty parts, `.` and `..` are dropped, as is the extension.
///
/// ```
/// use kb_core::docid_from_path;
///
/// assert_eq!(docid_from_path("Guide/Set up.md").as_str(), "guide/set-up");
/// assert_eq!(docid_from_path(r"C:\a\CON.md").as_str(), "a/x-con");
/// ```
pub fn docid_from_path(relative: &str) -> DocId {
    let bytes = relative.as_bytes();
    let has_drive = bytes.len() >= 2 && bytes[0].is_ascii_alphabetic() && bytes[1] == b':';
    let path = if has_drive { &relative[2..] } else { relative };
    let mut parts: Vec<&str> = path.split(['/', '\\']).filter(|part| !["", ".", ".."].contains(part)).collect();
    if let Some(name) = parts.last_mut() {
        *name = without_extension(name);
    }
    let slugs: Vec<String> =
        if parts.is_empty() { vec![slug(relative)] } else { parts.into_iter().map(slug).collect() };
    docid(&shorten(slugs.join("/"), DocId::MAX_BYTES, relative))
}

/// Returns the docid of a text without a path: the slug of its title, and six characters of the hash of title and
/// content, so that the same call twice names the same document.
pub fn docid_from_title(title: &str, content: &[u8]) -> DocId {
    docid(&format!("{}-{}", slug(title), hash(&[title.as_bytes(), content], 6)))
}

/// Returns this docid with `-n` after it, for one that is taken.
pub fn docid_with_suffix(base: &DocId, n: u32) -> DocId {
    let suffix = format!("-{n}");
    let base = base.as_str();
    docid(&format!("{}{suffix}", &base[..base.floor_char_boundary(DocId::MAX_BYTES - suffix.len())]))
}

pub(crate) fn is_mark(c: char) -> bool {
    unicode_normalization::char::is_combining_mark(c)
}

fn docid(text: &str) -> DocId {
    text.parse().expect("slugs joined by `-` and `/` are a docid")
}

fn hash(parts: &[&[u8]], length: usize) -> String {
    let mut text = SectionId::of(&MediaType::plain(), &parts.join(&0)).to_string();
    text.truncate(length);
    text
}

/// Cuts a slug that is too long, and marks it with the hash of the text that it stands for.
fn shorten(mut slug: String, max: usize, text: &str) -> String {
    if slug.len() > max {
        let mark = hash(&[text.as_bytes()], 8);
        slug.truncate(max - mark.len() - 1);
        slug.truncate(slug.trim_end_matches(['-', '/']).len());
        slug.push('-');
        slug.push_str(&mark);
    }
    slug
}

/// Spells out the symbols by which names differ: `C++`, `C#`, `.NET`.
fn spell_symbols(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut before = ' ';
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        let after = rest.clone().next().unwrap_or(' ');
        match c {
            '+' if before.is_alphanumeric() && after == '+' => {
                rest.next();
                out.push_str("-plus-plus-");
            }
            '#' if before.is_alphabetic() && !after.is_alphanumeric() => out.push_str("-sharp-"),
            '.' if !before.is_alphanumeric() && before != '.' && after.is_alphabetic() => out.push_str("dot-"),
            _ => out.push(c),
        }
        before = c;
    }
    out
}

/// Says whether this, in lower case, is the name of a device, which Windows gives no file, whatever its extension.
pub fn is_device_name(slug: &str) -> bool {
    let numbered =
        |device| slug.strip_prefix(device).is_some_and(|n: &str| n.len() == 1 && n.as_bytes()[0].is_ascii_digit());
    ["con", "prn", "aux", "nul"].contains(&slug) || numbered("com") || numbered("lpt")
}

/// Drops what a reader would call the extension: not the `2 notes` of `1.2 notes`.
fn without_extension(name: &str) -> &str {
    match name.rsplit_once('.') {
        Some((stem, extension)) if !stem.is_empty() && is_extension(extension) => stem,
        _ => name,
    }
}

fn is_extension(text: &str) -> bool {
    text.len() <= 8
        && text.bytes().all(|b| b.is_ascii_alphanumeric())
        && text.bytes().next().is_none_or(|b| b.is_ascii_alphabetic())
        || MediaType::of_file_name(&format!("name.{text}")).is_some()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_keep_what_tells_them_apart() {
        for (text, expected) in [
            ("C", "c"),
            ("C++", "c-plus-plus"),
            ("C#", "c-sharp"),
            ("F#", "f-sharp"),
            (".NET", "dot-net"),
            ("ASP.NET core", "asp-net-core"),
            ("node.js", "node-js"),
            ("C++17 in depth", "c-plus-plus-17-in-depth"),
            ("# 50% [draft] (v2) & more?", "50-draft-v2-more"),
            ("Straße", "strasse"),
            ("порт", "port"),
            ("港口", "gang-kou"),
            ("my_project", "my-project"),
            ("re\u{301}sume\u{301}", "resume"),
            ("Weekly Report!", "weekly-report"),
            ("nul", "x-nul"),
            ("COM1", "x-com1"),
            ("COM10", "com10"),
            ("issue #12", "issue-12"),
            ("0123456789abcdefghjkmnpqr0", "x-0123456789abcdefghjkmnpqr0"),
        ] {
            assert_eq!(slug(text), expected, "{text}");
        }
    }

    #[test]
    fn titles_without_letters_differ() {
        let titles = ["港口", "порт", "ทะเล", "🚢", "---", "", "…", "..", "!!"];
        let slugs: BTreeSet<String> = titles.iter().map(|title| slug(title)).collect();
        assert_eq!(slugs.len(), titles.len(), "{slugs:?}");
    }

    #[test]
    fn long_texts_differ_where_they_are_cut() {
        let (a, b) = (slug(&"word ".repeat(60)), slug(&("word ".repeat(60) + "x")));
        assert!(a != b && a.len() <= MAX_SLUG_BYTES && b.len() <= MAX_SLUG_BYTES);
        let path = format!("{}.md", "deep folder/".repeat(40));
        assert!(docid_from_path(&path).as_str().len() <= DocId::MAX_BYTES);
        assert_ne!(docid_from_path(&path), docid_from_path(&path.replace(".md", "x.md")));
    }

    #[test]
    fn paths_of_every_system_give_docids() {
        for (path, expected) in [
            ("guide/retries.md", "guide/retries"),
            (r"C:\a\b.md", "a/b"),
            (r"\\srv\share\c.md", "srv/share/c"),
            ("CON.md", "x-con"),
            ("C:x", "x"),
            ("./a/../b.md", "a/b"),
            ("name.", "name"),
            ("1.2 notes.md", "1-2-notes"),
            ("release-1.2", "release-1-2"),
            (".github/ISSUE.md", "dot-github/issue"),
            (".md", "dot-md"),
            ("# 50% [draft] (v2) & more?.md", "50-draft-v2-more"),
            ("2031-02-03.md", "2031-02-03"),
        ] {
            assert_eq!(docid_from_path(path).as_str(), expected, "{path}");
        }
    }

    #[test]
    fn the_same_text_has_the_same_docid() {
        let docid = docid_from_title("Plan", b"x");
        assert_eq!(docid, docid_from_title("Plan", b"x"));
        assert_ne!(docid, docid_from_title("Plan", b"y"));
        assert!(docid.as_str().starts_with("plan-") && docid.as_str().len() == 11);
        let long: DocId = "港".repeat(66).parse().expect("198 bytes");
        assert_eq!(docid_with_suffix(&long, 12).as_str(), format!("{}-12", "港".repeat(65)));
    }

    proptest! {
        #[test]
        fn any_text_gives_a_slug_and_docids(text in any::<String>(), n in any::<u32>()) {
            let slug = slug(&text);
            prop_assert!(!slug.is_empty() && slug.len() <= MAX_SLUG_BYTES);
            prop_assert!(slug.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-'));
            prop_assert!(slug.parse::<DocId>().is_ok());
            docid_with_suffix(&docid_from_path(&text), n);
            docid_from_title(&text, text.as_bytes());
        }

        #[test]
        fn any_path_gives_a_docid(path in r"([A-Za-z]:)?([/\\]{0,2}[a-z0-9 .é港:-]{0,30}){0,20}(\.md)?") {
            docid_from_path(&path);
        }

        #[test]
        fn a_slug_is_its_own_slug(text in "[a-zA-Z0-9 _+#.-]{1,100}") {
            prop_assert_eq!(slug(&slug(&text)), slug(&text));
        }
    }
}
