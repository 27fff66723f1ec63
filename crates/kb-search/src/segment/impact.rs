//! How much an occurrence of a term in a section counts: BM25F with a share of its own for title and headings.
//!
//! `sat(f) = f (k1 + 1) / (f + k1)`; over the fields, `f = Σ weight · tf / (1 - b + b · length / average)`
//! (Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009, section 3.6). The impact is
//! `sat(f)` plus `title_share` · `sat` of the title alone plus `heading_share` · `sat` of the headings alone.
//!
//! **Invariant:** the impact grows at most by the factor `s` when no average grows by more than the factor `s` (each
//! normalised frequency does, and `sat(s f) ≤ s sat(f)` for `s ≥ 1`), so a bound stored in a segment holds under other
//! statistics after it was multiplied by `s`.

use crate::ranking::RANKING;

/// No impact is larger.
pub(crate) const MAX_IMPACT: f32 = (RANKING.k1 + 1.0) * (1.0 + RANKING.title_share + RANKING.heading_share);

/// One unit of a stored bound.
pub(crate) const BOUND_UNIT: f32 = 1.0 / 8192.0;

// A bound that did not fit its 16 bits would be too low, and what ranks first be passed over.
const _: () = assert!(MAX_IMPACT / BOUND_UNIT < (u16::MAX - 1) as f32);

/// How often a term stands in title, headings and tags, each at most 7, in nine bits.
///
/// The lowest bits of the three counts come first, so that blocks of small counts pack into few bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct FieldCounts(u16);

impl FieldCounts {
    pub(crate) const TITLE: u32 = 0;
    pub(crate) const HEADING: u32 = 1;
    pub(crate) const TAGS: u32 = 2;

    pub(crate) fn from_bits(bits: u32) -> Self {
        Self((bits & 0x1ff) as u16)
    }

    pub(crate) const fn bits(self) -> u32 {
        self.0 as u32
    }

    pub(crate) const fn get(self, field: u32) -> u32 {
        let bits = self.0 as u32 >> field;
        (bits & 1) | (bits >> 2 & 2) | (bits >> 4 & 4)
    }

    /// Counts one more, up to 7.
    pub(crate) fn add(&mut self, field: u32) {
        let count = (self.get(field) + 1).min(7);
        let spread = (count & 1) | (count & 2) << 2 | (count & 4) << 4;
        self.0 = self.0 & !(0b100_1001 << field) | (spread << field) as u16;
    }
}

/// Lengths of the fields of a section, in positions, saturating.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Lengths {
    pub(crate) body: u16,
    /// Title, headings, tags.
    pub(crate) fields: [u8; 3],
}

/// Sums that averages are taken from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Totals {
    pub(crate) sections: u64,
    pub(crate) body: u64,
    /// Title, headings, tags.
    pub(crate) fields: [u64; 3],
}

impl Totals {
    pub(crate) fn add(&mut self, lengths: Lengths) {
        self.sections += 1;
        self.body += u64::from(lengths.body);
        for (sum, length) in self.fields.iter_mut().zip(lengths.fields) {
            *sum += u64::from(length);
        }
    }

    pub(crate) fn plus(mut self, other: &Self) -> Self {
        self.sections += other.sections;
        self.body += other.body;
        for (sum, more) in self.fields.iter_mut().zip(other.fields) {
            *sum += more;
        }
        self
    }

    /// Takes a part of the sums away; `None` where the part is more than the whole.
    pub(crate) fn minus(mut self, other: &Self) -> Option<Self> {
        self.sections = self.sections.checked_sub(other.sections)?;
        self.body = self.body.checked_sub(other.body)?;
        for (sum, less) in self.fields.iter_mut().zip(other.fields) {
            *sum = sum.checked_sub(less)?;
        }
        Some(self)
    }

    /// Returns the average length of a body in positions; 1 if there is none.
    pub(crate) fn average_body(&self) -> f32 {
        self.averages()[0]
    }

    fn averages(&self) -> [f32; 4] {
        let average = |sum: u64| if sum == 0 { 1.0 } else { (sum as f64 / self.sections.max(1) as f64) as f32 };
        [average(self.body), average(self.fields[0]), average(self.fields[1]), average(self.fields[2])]
    }

    /// Returns the factor by which bounds under `self` have to be multiplied to hold under `now`.
    pub(crate) fn growth(&self, now: &Self) -> f32 {
        self.averages().iter().zip(now.averages()).fold(1.0_f32, |most, (then, now)| most.max(now / then)) * 1.000_01
    }
}

/// Computes impacts under fixed statistics.
#[derive(Debug, Clone)]
pub(crate) struct Impacts {
    body_base: f32,
    body_slope: f32,
    /// Weight over normalised length, by field and length.
    fields: [[f32; 256]; 3],
}

impl Impacts {
    pub(crate) fn new(totals: &Totals) -> Self {
        let [body, title, heading, tags] = totals.averages();
        let table = |weight: f32, average: f32| {
            std::array::from_fn(|length| weight / (1.0 - RANKING.field_b + RANKING.field_b * length as f32 / average))
        };
        Self {
            body_base: 1.0 - RANKING.body_b,
            body_slope: RANKING.body_b / body,
            fields: [
                table(RANKING.title_weight, title),
                table(RANKING.heading_weight, heading),
                table(RANKING.tags_weight, tags),
            ],
        }
    }

    /// Returns the impact of a term that stands `tf` times in the body and `counts` times elsewhere.
    #[inline]
    pub(crate) fn of(&self, tf: u32, counts: FieldCounts, lengths: Lengths) -> f32 {
        let body = tf as f32 / (self.body_base + self.body_slope * f32::from(lengths.body));
        if counts.bits() == 0 {
            return saturate(body);
        }
        let field = |field: u32| {
            let index = field as usize;
            counts.get(field) as f32 * self.fields[index][usize::from(lengths.fields[index])]
        };
        let title = field(FieldCounts::TITLE);
        let heading = field(FieldCounts::HEADING);
        saturate(body + title + heading + field(FieldCounts::TAGS))
            + RANKING.title_share * saturate(title / RANKING.title_weight)
            + RANKING.heading_share * saturate(heading / RANKING.heading_weight)
    }
}

/// Returns the impact as a bound that is stored: rounded up, in units of [`BOUND_UNIT`].
pub(crate) fn bound(impact: f32) -> u16 {
    ((impact / BOUND_UNIT).ceil() as u16).saturating_add(1)
}

fn saturate(frequency: f32) -> f32 {
    frequency * (RANKING.k1 + 1.0) / (frequency + RANKING.k1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn counts_saturate_at_seven_and_small_ones_take_few_bits() {
        let mut counts = FieldCounts::default();
        for _ in 0..9 {
            counts.add(FieldCounts::HEADING);
        }
        counts.add(FieldCounts::TAGS);
        counts.add(FieldCounts::TAGS);
        assert_eq!([0, 1, 2].map(|field| counts.get(field)), [0, 7, 2]);
        let mut once = FieldCounts::default();
        for field in 0..3 {
            once.add(field);
        }
        assert_eq!(once.bits(), 7);
    }

    fn totals() -> impl Strategy<Value = Totals> {
        (1_u64..1000, 0_u64..100_000, prop::array::uniform3(0_u64..5000)).prop_map(|(sections, body, fields)| Totals {
            sections,
            body,
            fields,
        })
    }

    proptest! {
        #[test]
        fn a_bound_holds_under_other_statistics(
            then in totals(), now in totals(), tf in 0_u32..100, bits in 0_u32..512,
            body in 0_u16..2000, fields: [u8; 3],
        ) {
            // A field without any length holds no words.
            let counts = FieldCounts::from_bits(bits);
            let empty = |field: usize| then.fields[field] == 0 || now.fields[field] == 0;
            prop_assume!((0..3).all(|f| counts.get(f as u32) == 0 || !empty(f)));
            prop_assume!(then.body > 0 && now.body > 0);
            let lengths = Lengths { body, fields };
            let stored = f32::from(bound(Impacts::new(&then).of(tf, counts, lengths))) * BOUND_UNIT;
            let impact = Impacts::new(&now).of(tf, counts, lengths);
            prop_assert!(impact <= stored * then.growth(&now), "{impact} > {stored} * {}", then.growth(&now));
            prop_assert!(impact <= MAX_IMPACT);
        }
    }
}
