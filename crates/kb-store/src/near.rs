//! Names close to one that is not there, for messages: never acted on.

use kb_core::DocId;

use crate::record::Kind;
use crate::snapshot::Snapshot;

/// How many names a message offers.
const OFFERED: usize = 3;

/// Returns docids close to this text, the closest first. A document is known by its docid, by that without the hash that
/// one made from a title ends with, and by its title.
pub(crate) fn documents(snapshot: &Snapshot, wanted: &str) -> Vec<DocId> {
    let mut names = Vec::new();
    for place in snapshot.current(Kind::MANIFEST) {
        if let Ok(manifest) = snapshot.manifest_at(&place) {
            names.push((manifest.docid, manifest.title));
        }
    }
    names.sort();
    let forms = names.iter().map(|(docid, title)| [docid.as_str(), without_hash(docid.as_str()), title]);
    closest_of(forms, wanted).into_iter().map(|i| names[i].0.clone()).collect()
}

/// Returns a docid without `-` and six characters of a hash at its end.
fn without_hash(docid: &str) -> &str {
    match docid.rsplit_once('-') {
        Some((stem, hash)) if hash.len() == 6 && hash.bytes().all(|b| b.is_ascii_alphanumeric()) => stem,
        _ => docid,
    }
}

/// Returns which of these names are close to a text, the closest first.
pub(crate) fn closest(names: &[&str], wanted: &str) -> Vec<usize> {
    let mut order: Vec<usize> = (0..names.len()).collect();
    order.sort_by_key(|&i| names[i]);
    closest_of(order.iter().map(|&i| [names[i]]), wanted).into_iter().map(|at| order[at]).collect()
}

/// Returns which of these, each known by several names, are close to a text: the closest first, else in their order.
fn closest_of<'n, const N: usize>(known: impl Iterator<Item = [&'n str; N]>, wanted: &str) -> Vec<usize> {
    let wanted = wanted.to_lowercase();
    let nearest = |names: [&str; N]| names.iter().filter_map(|name| distance(&name.to_lowercase(), &wanted)).min();
    let mut scored: Vec<(usize, usize)> =
        known.enumerate().filter_map(|(i, names)| nearest(names).map(|distance| (distance, i))).collect();
    scored.sort_unstable();
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
    let is_part = || name.contains(wanted) || wanted.contains(name);
    let similar = common > 0 && (common * 5 >= a.len() + b.len() || is_part());
    similar.then(|| a.len() + b.len() - 2 * common)
}

#[cfg(test)]
mod tests {
    use super::{closest, closest_of, without_hash};

    #[test]
    fn offers_what_is_close_and_nothing_else() {
        let names = ["plan-alpha", "plan-beta", "guide/retries", "zebra"];
        assert_eq!(closest(&names, "plan-gamma"), [1, 0]);
        assert_eq!(closest(&names, "guide/retry"), [2]);
        assert!(closest(&names, "qqq").is_empty());
        assert!(closest(&["0", "1", "a0"], "0").is_empty());
    }

    #[test]
    fn a_docid_made_from_a_title_is_close_without_its_hash() {
        let names = ["plan-alpha", "plan-beta-qvtw24", "x-1a2b3c"].map(|name| [name, without_hash(name)]);
        assert_eq!(names[1][1], "plan-beta");
        assert_eq!(closest_of(names.into_iter(), "plan-gamma"), [1, 0]);
        assert_eq!(closest_of([["a-9", "Retry policy"]].into_iter(), "retry-policy"), [0]);
    }
}
