//! Where to cut a section that is too long to be a useful answer.
//!
//! **Invariant:** every part is at most [`MAX_SECTION_BYTES`] long and, but for the width of a character, at least a
//! quarter of that; no cut lies inside a character or between CR and LF.

use std::ops::Range;

use crate::lines::Lines;

/// The longest section, in bytes; a longer one is cut into parts.
pub const MAX_SECTION_BYTES: usize = 8 * 1024;

const LEAST: usize = MAX_SECTION_BYTES / 4;

/// Returns the offsets, in order, at which to cut this range: at the borders of blocks where parts of a fair length can
/// be had, else at the beginning of a line, else between characters.
pub(super) fn cuts(source: &str, range: Range<usize>, lines: &Lines, blocks: &[usize]) -> Vec<usize> {
    let mut cuts = Vec::new();
    let mut at = range.start;
    while range.end - at > MAX_SECTION_BYTES {
        let rest = range.end - at;
        // As long as possible, but the last two share what is left evenly.
        let wanted = at + if rest <= 2 * MAX_SECTION_BYTES { rest / 2 } else { MAX_SECTION_BYTES };
        let (from, to) = (at + LEAST, at + MAX_SECTION_BYTES.min(rest - LEAST));
        let first = blocks.partition_point(|&block| block < from);
        let last = blocks.partition_point(|&block| block <= to);
        let cut = nearest(&blocks[first..last.max(first)], wanted)
            .or_else(|| nearest(lines.starts_within(from, to), wanted))
            .unwrap_or_else(|| character_border(source, wanted.min(to)));
        cuts.push(cut);
        at = cut;
    }
    cuts
}

fn nearest(borders: &[usize], wanted: usize) -> Option<usize> {
    borders.iter().copied().min_by_key(|border| border.abs_diff(wanted))
}

fn character_border(source: &str, offset: usize) -> usize {
    let border = source.floor_char_boundary(offset);
    let splits_line_end = source[..border].ends_with('\r') && source[border..].starts_with('\n');
    if splits_line_end { border - 1 } else { border }
}
