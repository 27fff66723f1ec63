//! English words that say little in a question. They are indexed like any other; a query weighs them less.
//!
//! **Invariant:** sorted, folded, without apostrophes, as the analyser gives them before stemming.

/// Function words and those that questions begin with.
const WORDS: [&str; 88] = [
    "a", "about", "am", "an", "and", "any", "are", "as", "at", "be", "been", "being", "but", "by", "can", "cannot",
    "cant", "could", "did", "do", "does", "doing", "done", "dont", "each", "for", "from", "had", "has", "have", "he",
    "her", "his", "how", "i", "if", "im", "in", "into", "is", "it", "its", "ive", "may", "me", "might", "must", "my",
    "no", "not", "of", "on", "or", "our", "please", "shall", "she", "should", "so", "some", "such", "than", "that",
    "the", "their", "them", "then", "there", "these", "they", "this", "those", "to", "was", "we", "were", "what",
    "when", "where", "which", "who", "whom", "why", "will", "with", "would", "you", "your",
];

/// Says whether a folded word without apostrophes is one.
pub(super) fn is_stop_word(word: &str) -> bool {
    WORDS.binary_search(&word).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_can_be_searched() {
        assert!(WORDS.is_sorted());
        assert!(is_stop_word("the") && is_stop_word("your") && is_stop_word("a") && !is_stop_word("kernel"));
    }
}
