//! Finds a hash among sorted hashes by interpolation: hashes are spread evenly, so the value says about where it
//! stands (Perl, Itai and Avni, "Interpolation Search: A Log Log N Search", 1978).
//!
//! **Invariant:** whatever the values are, at most three steps are taken for each that bisection would take.

use std::ops::Range;

/// Returns the first index of the range whose value is not below `target`, or the range's end.
///
/// `value` returns the value at an index; values ascend, or the answer is any index of the range.
///
/// # Errors
///
/// The first error of `value`.
pub fn lower_bound<E>(range: Range<u64>, target: u64, mut value: impl FnMut(u64) -> Result<u64, E>) -> Result<u64, E> {
    let (mut low, mut high) = (range.start, range.end);
    // No value at or above `low` is below the first of these, none before `high` above the second.
    let (mut least, mut most) = (0, u64::MAX);
    let mut step = 0;
    while low < high {
        step += 1;
        let middle = if step % 3 == 0 { low.midpoint(high) } else { guess(low..high, least..most, target) };
        let here = value(middle)?;
        if here < target {
            (low, least) = (middle + 1, here);
        } else {
            (high, most) = (middle, here);
        }
    }
    Ok(low)
}

/// Returns where in a range of indices, not an empty one, a value would stand if those between were spread evenly.
fn guess(indices: Range<u64>, values: Range<u64>, target: u64) -> u64 {
    let wide = u128::from(values.end.saturating_sub(values.start)).max(1);
    let share = u128::from(target.saturating_sub(values.start)) * u128::from(indices.end - indices.start) / wide;
    indices.start.saturating_add(u64::try_from(share).unwrap_or(u64::MAX)).min(indices.end - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(values: &[u64], target: u64) -> (usize, u32) {
        let mut looks = 0;
        let found = lower_bound(0..values.len() as u64, target, |index| {
            looks += 1;
            Ok::<_, ()>(values[index as usize])
        });
        (found.expect("no look fails") as usize, looks)
    }

    #[test]
    fn it_finds_what_bisection_finds() {
        let skewed: Vec<u64> = (0..64).map(|bit| 1 << bit).collect();
        let equal = vec![7; 100];
        let ends = vec![0, 0, u64::MAX, u64::MAX];
        for values in [skewed, equal, ends, Vec::new(), vec![5]] {
            let near = values.iter().flat_map(|&value| [value.saturating_sub(1), value, value.saturating_add(1)]);
            for target in near.chain([0, u64::MAX]) {
                assert_eq!(find(&values, target).0, values.partition_point(|&value| value < target), "{target}");
            }
        }
    }

    #[test]
    fn hashes_take_few_looks_and_no_values_take_many() {
        let mut spread: Vec<u64> = (0..100_000_u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
        spread.sort_unstable();
        let most = spread.iter().step_by(97).map(|&value| find(&spread, value).1).max();
        assert!(most <= Some(10), "{most:?}");
        let crowded: Vec<u64> = (0..100_000).chain([u64::MAX]).collect();
        let most = crowded.iter().step_by(97).map(|&value| find(&crowded, value).1).max();
        assert!(most <= Some(3 * 17), "{most:?}");
    }

    #[test]
    fn values_that_do_not_ascend_end_it_too() {
        let values = [9, 1, 8, 2, 7, 3, 6, 4, 5];
        for target in 0..12 {
            assert!(find(&values, target).0 <= values.len());
        }
    }
}
