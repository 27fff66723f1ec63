//! Slugs.

pub(crate) fn is_mark(c: char) -> bool {
    unicode_normalization::char::is_combining_mark(c)
}
