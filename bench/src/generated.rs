//! Made-up documents of any number: words of a vocabulary whose frequencies fall as those of language do.
//!
//! **Invariant:** the same seed and number make the same documents, on every machine and in every release.

use std::fmt::Write as _;

/// Distinct words.
const VOCABULARY: usize = 200_000;
/// The exponent of Zipf's law: the word of rank r is met in proportion to r to the minus this (Zipf, "Human Behavior
/// and the Principle of Least Effort", 1949, has 1).
const EXPONENT: f64 = 1.0;
const SYLLABLES: [&str; 16] =
    ["ba", "ko", "ri", "mu", "ta", "lo", "ne", "pi", "da", "fo", "gu", "hi", "ra", "so", "vu", "zo"];

/// Makes documents.
#[derive(Debug)]
pub(crate) struct Generator {
    state: u64,
    /// Sums of the frequencies up to each rank.
    sums: Vec<f64>,
    number: usize,
}

impl Generator {
    /// Returns a generator that makes the documents of this seed.
    pub(crate) fn new(seed: u64) -> Self {
        let mut sum = 0.0;
        let sums = (1..=VOCABULARY)
            .map(|rank| {
                sum += (rank as f64).powf(-EXPONENT);
                sum
            })
            .collect();
        Self { state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1, sums, number: 0 }
    }

    /// Returns the next document, with a name and so many sections.
    pub(crate) fn document(&mut self, sections: usize) -> (String, String) {
        let name = format!("part-{:03}/text-{:06}.md", self.number / 1000, self.number);
        self.number += 1;
        let mut text = String::new();
        for section in 0..sections {
            let level = if section == 0 { "#" } else { "##" };
            let _ = writeln!(text, "{level} {} {}\n", self.word(), self.word());
            let words = 20 + self.below(41);
            for position in 0..words {
                text.push_str(&self.word());
                text.push(if position % 12 == 11 || position + 1 == words { '\n' } else { ' ' });
            }
            text.push('\n');
        }
        (name, text)
    }

    /// Returns a word, met as often as its rank says.
    pub(crate) fn word(&mut self) -> String {
        let all = self.sums.last().copied().unwrap_or(1.0);
        let point = self.uniform() * all;
        let rank = self.sums.partition_point(|&sum| sum < point);
        word_of(rank.min(VOCABULARY - 1))
    }

    /// Returns a number below this one.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        (self.uniform() * limit as f64) as usize
    }

    fn uniform(&mut self) -> f64 {
        // xorshift64 (Marsaglia, "Xorshift RNGs", 2003)
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// Returns the word of a rank; distinct ranks have distinct words, and their stems differ too.
fn word_of(mut rank: usize) -> String {
    let mut word = String::new();
    loop {
        word.push_str(SYLLABLES[rank % 16]);
        rank /= 16;
        if rank == 0 {
            break;
        }
    }
    // A last consonant that no rule of the stemmer takes away.
    word.push('k');
    word
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn the_same_seed_makes_the_same_documents() {
        let of = |seed| {
            let mut generator = Generator::new(seed);
            (generator.document(3), generator.document(1))
        };
        assert_eq!(of(7), of(7));
        assert_ne!(of(7), of(8));
        let ((name, text), (other, _)) = of(7);
        assert_eq!((name.as_str(), other.as_str()), ("part-000/text-000000.md", "part-000/text-000001.md"));
        assert_eq!(text.matches("## ").count(), 2);
    }

    #[test]
    fn frequent_words_are_frequent_and_rare_ones_many() {
        let mut generator = Generator::new(1);
        let mut counts: HashMap<String, u32> = HashMap::new();
        for _ in 0..50_000 {
            *counts.entry(generator.word()).or_default() += 1;
        }
        let most = counts[&word_of(0)];
        assert!((3_000..5_000).contains(&most), "{most}");
        assert!(counts.len() > 15_000, "{}", counts.len());
    }
}
