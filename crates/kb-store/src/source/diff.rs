//! Two texts as a unified diff.
//!
//! Lines are compared by Myers' greedy algorithm ("An O(ND) Difference Algorithm and Its Variations"), with a bound on
//! the number of differences beyond which all of the middle is shown as replaced.
//!
//! **Invariant:** the new text can be made from the old one and the diff. Time is bounded by the length of the texts
//! times a constant, whatever they are.

use std::fmt::Write as _;

/// Lines of context around a difference.
const CONTEXT: usize = 3;
/// Differences up to which the shortest script is looked for.
const MOST_DIFFERENCES: usize = 600;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Edit {
    Keep,
    Delete,
    Insert,
}

/// Writes the difference of two texts; nothing where they are equal. A name of `None` is a text that is not there.
pub(crate) fn unified(old: Option<(&str, &str)>, new: Option<(&str, &str)>) -> String {
    let name = |side: Option<(&str, &str)>| side.map_or_else(|| "/dev/null".to_owned(), |(name, _)| printable(name));
    let lines = |side: Option<(&str, &str)>| -> Vec<String> {
        side.map(|(_, text)| text.split_inclusive('\n').map(str::to_owned).collect()).unwrap_or_default()
    };
    let (old_lines, new_lines) = (lines(old), lines(new));
    let edits = script(&old_lines, &new_lines);
    let mut out = String::new();
    for (from, to) in hunks(&edits) {
        if out.is_empty() {
            let _ = write!(out, "--- {}\n+++ {}\n", name(old), name(new));
        }
        let before = &edits[..from];
        let count = |edits: &[Edit], not: Edit| edits.iter().filter(|&&edit| edit != not).count();
        let (mut at_old, mut at_new) = (count(before, Edit::Insert), count(before, Edit::Delete));
        let shown = &edits[from..to];
        let (old_range, new_range) =
            (range(at_old, count(shown, Edit::Insert)), range(at_new, count(shown, Edit::Delete)));
        let _ = writeln!(out, "@@ -{old_range} +{new_range} @@");
        for edit in shown {
            let (sign, line) = match edit {
                Edit::Keep => (' ', &old_lines[at_old]),
                Edit::Delete => ('-', &old_lines[at_old]),
                Edit::Insert => ('+', &new_lines[at_new]),
            };
            at_old += usize::from(*edit != Edit::Insert);
            at_new += usize::from(*edit != Edit::Delete);
            out.push(sign);
            out.push_str(line);
            if !line.ends_with('\n') {
                out.push_str("\n\\ No newline at end of file\n");
            }
        }
    }
    out
}

/// Returns a name on one line.
fn printable(name: &str) -> String {
    name.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

fn range(start: usize, count: usize) -> String {
    match count {
        0 => format!("{start},0"),
        1 => format!("{}", start + 1),
        _ => format!("{},{count}", start + 1),
    }
}

/// Returns the parts of a script that are shown: each difference with its context.
fn hunks(edits: &[Edit]) -> Vec<(usize, usize)> {
    let mut hunks: Vec<(usize, usize)> = Vec::new();
    for (at, _) in edits.iter().enumerate().filter(|(_, edit)| **edit != Edit::Keep) {
        let (from, to) = (at.saturating_sub(CONTEXT), (at + 1 + CONTEXT).min(edits.len()));
        match hunks.last_mut() {
            Some((_, end)) if from <= *end => *end = to,
            _ => hunks.push((from, to)),
        }
    }
    hunks
}

fn script(a: &[String], b: &[String]) -> Vec<Edit> {
    let first = a.iter().zip(b).take_while(|(x, y)| x == y).count();
    let (rest_a, rest_b) = (&a[first..], &b[first..]);
    let last = rest_a.iter().rev().zip(rest_b.iter().rev()).take_while(|(x, y)| x == y).count();
    let (middle_a, middle_b) = (&rest_a[..rest_a.len() - last], &rest_b[..rest_b.len() - last]);
    let mut edits = vec![Edit::Keep; first];
    edits.extend(middle(middle_a, middle_b).unwrap_or_else(|| {
        let mut all = vec![Edit::Delete; middle_a.len()];
        all.resize(middle_a.len() + middle_b.len(), Edit::Insert);
        all
    }));
    edits.resize(edits.len() + last, Edit::Keep);
    edits
}

/// Returns the shortest script, or `None` beyond the bound.
fn middle(a: &[String], b: &[String]) -> Option<Vec<Edit>> {
    let bound = MOST_DIFFERENCES.min(a.len() + b.len());
    let offset = bound + 1;
    // The furthest row reached on each diagonal, and what it was before each step.
    let mut furthest = vec![0_usize; 2 * offset + 1];
    let mut steps: Vec<Vec<usize>> = Vec::new();
    for d in 0..=bound {
        steps.push(furthest[offset - d..=offset + d].to_vec());
        for k in (0..=2 * d).step_by(2) {
            let at = offset + k - d;
            let down = k == 0 || (k != 2 * d && furthest[at - 1] < furthest[at + 1]);
            let mut x = if d == 0 {
                0
            } else if down {
                furthest[at + 1]
            } else {
                furthest[at - 1] + 1
            };
            // x - y is the diagonal; one that lies outside of the texts is not followed.
            let Some(mut y) = (x + offset).checked_sub(at) else { continue };
            while x < a.len() && y < b.len() && a[x] == b[y] {
                x += 1;
                y += 1;
            }
            furthest[at] = x;
            if x >= a.len() && y >= b.len() {
                return Some(backtrack(&steps, a.len(), b.len(), d));
            }
        }
    }
    None
}

fn backtrack(steps: &[Vec<usize>], mut x: usize, mut y: usize, mut d: usize) -> Vec<Edit> {
    let mut edits = Vec::new();
    while d > 0 {
        // Step d was taken from what step d - 1 had reached, kept at the beginning of step d.
        let before = &steps[d];
        let center = d as isize;
        let k = x as isize - y as isize;
        let get = |diagonal: isize| before.get((center + diagonal) as usize).copied().unwrap_or(0);
        let down = k == -center || (k != center && get(k - 1) < get(k + 1));
        let previous = if down { k + 1 } else { k - 1 };
        let from_x = get(previous);
        let from_y = (from_x as isize - previous) as usize;
        let (to_x, to_y) = if down { (from_x, from_y + 1) } else { (from_x + 1, from_y) };
        while x > to_x && y > to_y {
            edits.push(Edit::Keep);
            x -= 1;
            y -= 1;
        }
        edits.push(if down { Edit::Insert } else { Edit::Delete });
        (x, y) = (from_x, from_y);
        d -= 1;
    }
    edits.resize(edits.len() + x.min(y), Edit::Keep);
    edits.reverse();
    edits
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn differences_have_their_context() {
        let old = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
        let new = "1\n2\n3\n4\nfive\n6\n7\n8\n9\n10";
        let expected =
            "--- a\n+++ a\n@@ -2,8 +2,9 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n 9\n+10\n\\ No newline at end of file\n";
        assert_eq!(unified(Some(("a", old)), Some(("a", new))), expected);
        assert_eq!(unified(None, Some(("a", "x\n"))), "--- /dev/null\n+++ a\n@@ -0,0 +1 @@\n+x\n");
        assert_eq!(unified(Some(("a", "x\n")), None), "--- a\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n");
        assert_eq!(unified(Some(("a", old)), Some(("a", old))), "");
    }

    #[test]
    fn what_differs_everywhere_takes_no_longer_than_its_length() {
        let side = |word: &str| {
            (0..200_000).fold(String::new(), |mut text, n| {
                let _ = writeln!(text, "{word}{n}");
                text
            })
        };
        let diff = unified(Some(("a", &side("x"))), Some(("a", &side("y"))));
        assert_eq!(diff.lines().count(), 400_003);
    }

    fn lines(text: &str) -> Vec<String> {
        text.split_inclusive('\n').map(str::to_owned).collect()
    }

    proptest! {
        #[test]
        fn a_script_makes_the_new_text_of_the_old(a in "[ab\n]{0,40}", b in "[ab\n]{0,40}") {
            let (a, b) = (lines(&a), lines(&b));
            let (mut i, mut j) = (0, 0);
            for edit in script(&a, &b) {
                match edit {
                    Edit::Keep => { prop_assert_eq!(&a[i], &b[j]); i += 1; j += 1; }
                    Edit::Delete => i += 1,
                    Edit::Insert => j += 1,
                }
            }
            prop_assert_eq!((i, j), (a.len(), b.len()));
        }
    }
}
