//! Names close to one that is not there, for messages: never acted on.

use kb_core::DocId;

use crate::record::Kind;
use crate::snapshot::Snapshot;

/// How many names a message offers.
const OFFERED: usize = 3;

/// Returns docids close to this text, the closest first.
pub(crate) fn documents(snapshot: &Snapshot, wanted: &str) -> Vec<DocId> {
    let mut names = Vec::new();
    for place in snapshot.current(Kind::MANIFEST) {
        if let Ok(manifest) = snapshot.manifest_at(&place) {
            names.push(manifest.docid);
        }
    }
    let texts: Vec<&str> = names.iter().map(DocId::as_str).collect();
    closest(&texts, wanted).into_iter().map(|i| names[i].clone()).collect()
}

/// Returns which of these names are close to a text, the closest first.
pub(crate) fn closest(names: &[&str], wanted: &str) -> Vec<usize> {
    let wanted = wanted.to_lowercase();
    let mut scored: Vec<(usize, usize)> = names
        .iter()
        .enumerate()
        .filter_map(|(i, name)| distance(&name.to_lowercase(), &wanted).map(|distance| (distance, i)))
        .collect();
    scored.sort_by_key(|&(distance, i)| (distance, names[i]));
    scored.into_iter().take(OFFERED).map(|(_, i)| i).collect()
}

/// Returns how far apart two names are, or `None` where they have too little in common to be offered: the number of
/// character pairs that only one of them has (bigram distance, after Dice 1945).
fn distance(name: &str, wanted: &str) -> Option<usize> {
    let pairs = |text: &str| {
        let characters: Vec<char> = text.chars().take(200).collect();
        let mut pairs: Vec<(char, char)> = characters.windows(2).map(|pair| (pair[0], pair[1])).collect();
        pairs.sort_unstable();
        pairs
    };
    let (a, b) = (pairs(name), pairs(wanted));
    let (mut i, mut j, mut common) = (0, 0, 0);
    while i < a.len() && j < b.len() {
        match a[i].cmp(&b[j]) {
            std::cmp::Ordering::Less => i += 1,
            std::cmp::Ordering::Greater => j += 1,
            std::cmp::Ordering::Equal => {
                common += 1;
                i += 1;
                j += 1;
            }
        }
    }
    let similar = common * 5 >= a.len() + b.len() || (common > 0 && (name.contains(wanted) || wanted.contains(name)));
    similar.then(|| a.len() + b.len() - 2 * common)
}

#[cfg(test)]
mod tests {
    use super::closest;

    #[test]
    fn offers_what_is_close_and_nothing_else() {
        let names = ["plan-alpha", "plan-beta", "guide/retries", "zebra"];
        assert_eq!(closest(&names, "plan-gamma"), [1, 0]);
        assert_eq!(closest(&names, "guide/retry"), [2]);
        assert!(closest(&names, "qqq").is_empty());
    }
}
