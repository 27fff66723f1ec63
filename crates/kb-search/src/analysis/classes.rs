//! What each character is to the scanner: part of a word, something between parts, a script without spaces, nothing.
//!
//! **Invariant:** a class depends on the character alone, so composed and decomposed spellings of a text, whose marks
//! follow their base, are cut at the same places.

use unicode_normalization::char::is_combining_mark;

/// What a character is to the scanner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// Separates words: white space, control characters, most punctuation.
    Gap,
    /// Letters, digits, `_`, and the marks on them.
    Word,
    /// Holds parts of one token together when a word follows: `-`, `.`, `/`, `:` and so on.
    Joiner,
    /// `'` and its typographic form, inside a word.
    Apostrophe,
    /// Of a script that writes no spaces: cut into pairs.
    Unspaced,
    /// A word by itself: `§` (which also leads `§4`), emoji.
    Symbol,
    /// `<`: may open a tag.
    Angle,
    /// `&`: may open an entity.
    Ampersand,
    /// The first byte of a character beyond ASCII; never the class of a character.
    Beyond,
}

/// The class of each byte as the first of a character.
pub(super) static BYTES: [Class; 256] = byte_classes();

const fn byte_classes() -> [Class; 256] {
    let mut classes = [Class::Gap; 256];
    let mut byte = 0;
    while byte < 256 {
        classes[byte] = match byte as u8 {
            b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'_' => Class::Word,
            b'-' | b'.' | b'/' | b':' | b'@' | b'#' | b'+' | b'\\' => Class::Joiner,
            b'\'' => Class::Apostrophe,
            b'<' => Class::Angle,
            b'&' => Class::Ampersand,
            0x80.. => Class::Beyond,
            _ => Class::Gap,
        };
        byte += 1;
    }
    classes
}

/// Returns the class of a character.
pub(super) fn class_of(character: char) -> Class {
    if character.is_ascii() {
        return BYTES[character as usize];
    }
    match character {
        // Letters of Latin and Cyrillic, ahead of the tables: most of what is not ASCII.
        '\u{c0}'..='\u{d6}' | '\u{d8}'..='\u{f6}' | '\u{f8}'..='\u{24f}' | '\u{400}'..='\u{481}' => Class::Word,
        '\u{2019}' | '\u{02bc}' | '\u{ff07}' => Class::Apostrophe,
        '\u{2010}' | '\u{2011}' => Class::Joiner,
        '§' | '\u{2600}'..='\u{27bf}' | '\u{1f000}'..='\u{1faff}' => Class::Symbol,
        // The middle dot and the wave dash of Japanese stand between words.
        '\u{30fb}' | '\u{30a0}' | '\u{ff65}' => Class::Gap,
        // Soft hyphen, joiners and variation selectors are inside words and mean nothing there.
        _ if is_ignorable(character) => Class::Word,
        _ if is_unspaced(character) => Class::Unspaced,
        _ if character.is_alphanumeric() || is_combining_mark(character) => Class::Word,
        _ => Class::Gap,
    }
}

/// Says whether a character inside a word changes nothing about what the word is.
pub(super) fn is_ignorable(character: char) -> bool {
    matches!(character, '\u{ad}' | '\u{200c}' | '\u{200d}' | '\u{2060}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}')
}

/// Says whether a character belongs to a script that writes no spaces between words, or, for Hangul, builds words
/// that are not found by their parts otherwise.
fn is_unspaced(character: char) -> bool {
    matches!(character,
        // Thai and Lao with their digits left to be words
        '\u{0e01}'..='\u{0e4e}' | '\u{0e81}'..='\u{0ece}' | '\u{0edc}'..='\u{0edf}'
        // Myanmar, Khmer
        | '\u{1000}'..='\u{103f}' | '\u{1050}'..='\u{108f}' | '\u{109a}'..='\u{109f}' | '\u{aa60}'..='\u{aa7f}'
        | '\u{1780}'..='\u{17d3}' | '\u{17dc}' | '\u{17dd}'
        // Hangul: conjoining, compatibility and extended letters, syllables, halfwidth
        | '\u{1100}'..='\u{11ff}' | '\u{3131}'..='\u{318e}' | '\u{a960}'..='\u{a97f}' | '\u{ac00}'..='\u{d7ff}'
        | '\u{ffa0}'..='\u{ffdc}'
        // Kana with their iteration and length marks, halfwidth, extensions
        | '\u{3041}'..='\u{30ff}' | '\u{31f0}'..='\u{31ff}' | '\u{ff66}'..='\u{ff9f}' | '\u{1b000}'..='\u{1b16f}'
        // Han with its iteration mark and zero, radicals, compatibility forms, extensions; Bopomofo
        | '\u{3005}'..='\u{3007}' | '\u{2e80}'..='\u{2fdf}' | '\u{3105}'..='\u{312f}' | '\u{3400}'..='\u{4dbf}'
        | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

/// Returns the length in bytes of the first written unit of a text that starts with a character of an unspaced
/// script: the character and all that attaches to it (marks, voicing signs, stacked consonants, Hangul letters of
/// the same syllable). 0 if the text is empty.
pub(super) fn unit_len(text: &str) -> usize {
    let mut characters = text.char_indices();
    let Some((_, first)) = characters.next() else { return 0 };
    let mut before = first;
    for (at, character) in characters {
        if !attaches(before, character) {
            return at;
        }
        before = character;
    }
    text.len()
}

fn attaches(before: char, character: char) -> bool {
    if matches!(character, '\u{4e00}'..='\u{9fff}' | '\u{3041}'..='\u{3096}' | '\u{30a1}'..='\u{30fa}') {
        return false;
    }
    let leading = |c| matches!(c, '\u{1100}'..='\u{115f}' | '\u{a960}'..='\u{a97c}');
    let vowel = |c| matches!(c, '\u{1160}'..='\u{11a7}' | '\u{d7b0}'..='\u{d7c6}');
    let trailing = |c| matches!(c, '\u{11a8}'..='\u{11ff}' | '\u{d7cb}'..='\u{d7fb}');
    let syllable = |c| matches!(c, '\u{ac00}'..='\u{d7a3}');
    is_combining_mark(character)
        || is_ignorable(character)
        // The halfwidth voicing marks compose with what is before them.
        || matches!(character, '\u{ff9e}' | '\u{ff9f}' | '\u{0e33}' | '\u{0eb3}')
        // A consonant below another, after the Khmer coeng or the Myanmar virama.
        || (matches!(before, '\u{17d2}' | '\u{1039}') && is_unspaced(character))
        || (leading(before) && (vowel(character) || syllable(character)))
        || ((vowel(before) || syllable(before)) && (vowel(character) || trailing(character)))
        || (trailing(before) && trailing(character))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn units(mut text: &str) -> Vec<&str> {
        let mut units = Vec::new();
        while !text.is_empty() {
            let (unit, rest) = text.split_at(unit_len(text));
            units.push(unit);
            text = rest;
        }
        units
    }

    #[test]
    fn units_are_what_a_reader_counts() {
        assert_eq!(units("港口"), ["港", "口"]);
        assert_eq!(units("か\u{3099}き"), ["か\u{3099}", "き"]);
        assert_eq!(
            units("\u{1112}\u{1161}\u{11ab}\u{1100}\u{1173}\u{11af}"),
            ["\u{1112}\u{1161}\u{11ab}", "\u{1100}\u{1173}\u{11af}"]
        );
        assert_eq!(units("한글"), ["한", "글"]);
        assert_eq!(units("ที่นี่"), ["ที่", "นี่"]);
        assert_eq!(units("ខ្មែរ"), ["ខ្មែ", "រ"]);
        assert_eq!(units(""), [""; 0]);
    }
}
