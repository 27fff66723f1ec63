//! Folding: spellings that a reader takes for the same become equal.
//!
//! Compatibility forms (NFKC), case, accents of Latin, Greek and Cyrillic letters, Arabic and Hebrew points, and
//! Latin letters that Unicode does not take apart (`ø`, `ß`, `æ`). What distinguishes words elsewhere stays: the
//! voicing marks of kana, the vowel signs of Indic scripts, the breve of `й`.
//!
//! **Invariant:** folding what is folded changes nothing, and composed and decomposed spellings fold alike.

use unicode_normalization::UnicodeNormalization;

use super::classes::is_ignorable;

/// Appends `text` to `out`, folded.
pub(super) fn fold_into(text: &str, out: &mut String) {
    if text.is_ascii() {
        let from = out.len();
        out.push_str(text);
        out[from..].make_ascii_lowercase();
        return;
    }
    let decomposed = text.nfkd().flat_map(char::to_lowercase).nfkd().filter(|&c| !is_ignorable(c));
    let mut bare = String::with_capacity(text.len());
    let mut base = '\0';
    for character in decomposed {
        match character {
            // и + breve is a letter of its own.
            '\u{306}' if base == 'и' => bare.push(character),
            '\u{300}'..='\u{36f}' if is_accented_script(base) => {}
            // Arabic short vowels and the stretching line; Hebrew points.
            '\u{640}'
            | '\u{64b}'..='\u{65f}'
            | '\u{670}'
            | '\u{591}'..='\u{5bd}'
            | '\u{5bf}'
            | '\u{5c1}'
            | '\u{5c2}'
            | '\u{5c4}'
            | '\u{5c5}'
            | '\u{5c7}' => {}
            _ => {
                if !matches!(character, '\u{300}'..='\u{36f}') {
                    base = character;
                }
                match plain_latin(character) {
                    Some(letters) => bare.push_str(letters),
                    None => bare.push(character),
                }
            }
        }
    }
    out.extend(bare.nfc());
}

/// Latin, Greek and Cyrillic, and a mark without a base: their accents are a matter of care, not of meaning.
fn is_accented_script(base: char) -> bool {
    matches!(base, '\0'..='\u{52f}' | '\u{1d00}'..='\u{1eff}' | '\u{1f00}'..='\u{1fff}')
}

/// Returns the plain letters of a lower-case letter that has no decomposition.
fn plain_latin(character: char) -> Option<&'static str> {
    Some(match character {
        'ß' => "ss",
        'æ' => "ae",
        'œ' => "oe",
        'ø' => "o",
        'đ' | 'ð' => "d",
        'ħ' => "h",
        'ı' => "i",
        'ł' => "l",
        'þ' => "th",
        'ŧ' => "t",
        'ς' => "σ",
        '\u{2019}' | '\u{02bc}' => "'",
        '\u{2010}' => "-",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn fold(text: &str) -> String {
        let mut out = String::new();
        fold_into(text, &mut out);
        out
    }

    #[test]
    fn equal_to_a_reader_is_equal() {
        for (text, folded) in [
            ("Résumé", "resume"),
            ("re\u{301}sume\u{301}", "resume"),
            ("ＦＵＬＬ１２", "full12"),
            ("ﬁle", "file"),
            ("Straße", "strasse"),
            ("STRASSE", "strasse"),
            ("İstanbul", "istanbul"),
            ("Ελλάς", "ελλασ"),
            ("ЁЛКА", "елка"),
            ("Йод", "йод"),
            ("и\u{306}од", "йод"),
            ("\u{1112}\u{1161}\u{11ab}", "한"),
            ("か\u{3099}", "が"),
            ("ｶﾞ", "ガ"),
            ("किताब", "किताब"),
            ("مُحَمَّد", "محمد"),
            ("can’t", "can't"),
            ("co\u{ad}op", "coop"),
        ] {
            assert_eq!(fold(text), folded.nfc().collect::<String>(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn folding_twice_is_folding_once(text in any::<String>()) {
            let once = fold(&text);
            prop_assert_eq!(fold(&once), once);
        }

        #[test]
        fn composed_and_decomposed_fold_alike(text in any::<String>()) {
            prop_assert_eq!(fold(&text.nfc().collect::<String>()), fold(&text.nfd().collect::<String>()));
        }
    }
}
