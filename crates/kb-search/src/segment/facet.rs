//! Keys of the dictionary, and what of a document is a facet.
//!
//! **Invariant:** a facet is folded in one way on both sides, as words are. A source is kept as it stands.

use super::input::DocumentInput;
use crate::analysis::Analyzer;

/// First byte of the key of a word.
pub(crate) const WORD: u8 = 1;
/// First byte of the key of a tag.
pub(crate) const TAG: u8 = 2;
/// First byte of the key of a type.
pub(crate) const TYPE: u8 = 3;
/// First byte of the key of a source.
pub(crate) const SOURCE: u8 = 4;

/// The words that stand most often and say least, sorted. Where one stands in a quoted phrase, the text is asked.
const UNPLACED: [&str; 22] = [
    "a", "an", "and", "are", "as", "at", "be", "by", "for", "from", "if", "in", "is", "it", "of", "on", "or", "that",
    "the", "this", "to", "with",
];

/// Says whether positions are kept for the term with this key: not for facets, not for a word with a sign inside,
/// such as `std::vector`, whose parts stand where it does, and not for the commonest words.
///
/// Depends on the key alone, so that segments with and without such words merge alike.
pub(crate) fn has_positions(key: &[u8]) -> bool {
    let Some((&WORD, text)) = key.split_first() else { return false };
    if UNPLACED.binary_search_by(|word| word.as_bytes().cmp(text)).is_ok() {
        return false;
    }
    let sign = |byte: u8| byte.is_ascii() && !byte.is_ascii_alphanumeric();
    !text.windows(3).any(|window| !sign(window[0]) && sign(window[1]) && !sign(window[2]))
        && !text.windows(4).any(|window| !sign(window[0]) && sign(window[1]) && sign(window[2]) && !sign(window[3]))
}

/// Returns the key of a facet's value.
pub(crate) fn key(kind: u8, value: &str, analyzer: &Analyzer) -> Vec<u8> {
    let mut key = vec![kind];
    if kind == SOURCE {
        key.extend_from_slice(value.as_bytes());
    } else {
        key.extend(analyzer.fold(value.trim()).into_bytes());
    }
    key
}

/// Returns the keys of all facets of a document; one may come twice.
pub(crate) fn keys<'a>(document: &'a DocumentInput<'_>, analyzer: &'a Analyzer) -> impl Iterator<Item = Vec<u8>> + 'a {
    let tags = document.tags.iter().map(|tag| key(TAG, tag, analyzer));
    let types = document.types.iter().map(|kind| key(TYPE, kind, analyzer));
    tags.chain(types).chain(document.source.map(|source| key(SOURCE, source, analyzer)))
}
