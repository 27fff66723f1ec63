//! The constants of ranking, in one place: docs/search.md says what each was measured to do.
//!
//! **Invariant:** the bounds that a segment stores were computed under these weights, so a change of a constant that
//! impacts depend on raises [`Analyzer::VERSION`](crate::Analyzer::VERSION).

/// How sections are ranked; one set for every base.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ranking {
    /// How soon more of the same word stops counting.
    pub(crate) k1: f32,
    /// How much the length of the body counts against it.
    pub(crate) body_b: f32,
    /// How much the lengths of title, headings and tags count against them.
    pub(crate) field_b: f32,
    /// Weights of title, headings and tags beside the body's 1.
    pub(crate) title_weight: f32,
    pub(crate) heading_weight: f32,
    pub(crate) tags_weight: f32,
    /// How much the title and the headings count on their own, beside what they add to the fields together.
    pub(crate) title_share: f32,
    pub(crate) heading_share: f32,
    /// How much a compound of words (`boundary-layer`, `kb_store`) counts as a whole, beside its parts. One that is
    /// written as one run (`HashMap`, `utf8`) counts 1.
    pub(crate) compound_weight: f32,
    /// How much a word counts that frames a question or qualifies another word.
    pub(crate) light_weight: f32,
    /// How much a word counts that stands for one typed with an error.
    pub(crate) near_weight: f32,
    /// Share of the proximity of neighbouring words.
    pub(crate) proximity: f32,
    /// How soon more of the same proximity stops counting, and how much the length of the body counts against it.
    pub(crate) proximity_k1: f32,
    pub(crate) proximity_b: f32,
    /// Two words are near within so many positions, and count so much of two next to each other.
    pub(crate) near_positions: u32,
    pub(crate) near_share: f32,
    /// What a section that holds none of the words would lose of its score, where those that hold all and those that
    /// hold some are ranked together.
    pub(crate) coverage: f64,
    /// Added for each word in the form asked for, times its idf.
    pub(crate) exact: f32,
}

/// The constants in use.
pub(crate) const RANKING: Ranking = Ranking {
    k1: 1.2,
    body_b: 0.6,
    field_b: 0.7,
    title_weight: 3.0,
    heading_weight: 2.0,
    tags_weight: 1.0,
    title_share: 0.5,
    heading_share: 0.7,
    compound_weight: 0.3,
    light_weight: 0.5,
    near_weight: 0.7,
    proximity: 0.25,
    proximity_k1: 0.6,
    proximity_b: 0.6,
    near_positions: 8,
    near_share: 0.25,
    coverage: 0.5,
    exact: 0.1,
};
