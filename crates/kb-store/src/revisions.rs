//! Which sections the kept revisions of documents keep readable.
//!
//! **Invariant:** a revision keeps the sections that it lists readable, but for those that were unlearned since it was
//! made: from its document, which shows in the edited revision that came after, or altogether, which shows in a text
//! that was written anew later than the revision.

use kb_core::SectionId;
use rustc_hash::FxHashSet;

use crate::error::StoreError;
use crate::manifest::Manifest;
use crate::record::Kind;
use crate::snapshot::{Place, Snapshot, readable};

type Result<T> = std::result::Result<T, StoreError>;

/// A revision on a walk through those of its document, which goes from the newest to the oldest.
pub(crate) struct Kept<'w> {
    pub(crate) manifest: &'w Manifest,
    pub(crate) is_current: bool,
    generation: u64,
    cut: &'w FxHashSet<SectionId>,
}

impl Kept<'_> {
    /// Says whether it keeps a section that it lists readable. `born` gives the generation since when a section can
    /// be read without a break.
    pub(crate) fn keeps(&self, id: SectionId, born: impl FnOnce(SectionId) -> u64) -> bool {
        self.is_current || (!self.cut.contains(&id) && born(id) <= self.generation)
    }
}

/// Walks the revisions of one document.
#[derive(Default)]
pub(crate) struct Walk {
    newer: Option<Manifest>,
    cut: FxHashSet<SectionId>,
}

impl Walk {
    /// Takes the next older revision.
    pub(crate) fn step(&mut self, generation: u64, manifest: Manifest) -> Kept<'_> {
        let is_current = self.newer.is_none();
        if let Some(newer) = self.newer.take().filter(|newer| newer.edited) {
            let left: FxHashSet<SectionId> = newer.sections.iter().map(|section| section.kbid).collect();
            self.cut.extend(manifest.sections.iter().map(|section| section.kbid).filter(|id| !left.contains(id)));
        }
        Kept { manifest: self.newer.insert(manifest), is_current, generation, cut: &self.cut }
    }
}

impl Snapshot {
    /// Calls `each` with these revisions, given as those of each document, the newest first. Those of one document come
    /// in that order, the documents in no particular one.
    pub(crate) fn walk_revisions(
        &self,
        groups: Vec<Vec<Place>>,
        mut each: impl FnMut(&Place, &Kept<'_>) -> Result<()>,
    ) -> Result<()> {
        let (mut single, several): (Vec<_>, Vec<_>) = groups.into_iter().partition(|group| group.len() == 1);
        // Most documents have one revision; those are read in the order in which they lie.
        single.sort_by_key(|group| (group[0].pack, group[0].entry.block, group[0].entry.offset));
        for (i, group) in single.iter().chain(&several).enumerate() {
            self.release_after(i);
            let mut walk = Walk::default();
            for place in group {
                // A pack with a manifest that cannot be read is not merged, so what that one lists stays as well.
                let Some(manifest) = readable(self.manifest_at(place))? else { continue };
                let generation = self.read(place)?.generation;
                each(place, &walk.step(generation, manifest))?;
            }
        }
        Ok(())
    }

    /// Returns the generation since when a section can be read without a break; 0 where that cannot be told.
    pub(crate) fn born(&self, id: SectionId) -> u64 {
        let places = self.all(Kind::SECTION, &id.to_bytes());
        places.iter().map(|place| self.read(place).map_or(0, |record| record.generation)).min().unwrap_or(0)
    }
}
