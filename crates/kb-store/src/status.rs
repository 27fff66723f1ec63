//! The state of a base, and its verification.
//!
//! **Invariant:** `check` reads every byte that the head names; what it does not complain of can be read.

use std::path::Path;
use std::sync::Arc;

use kb_core::{
    CacheStatus, CheckReport, DocId, DocumentKind, IndexStatus, Link, MediaType, Problem, SectionId, Severity, Status,
    links,
};
use rustc_hash::FxHashSet;

use crate::error::StoreError;
use crate::head::FORMAT;
use crate::index::{Index, IndexProblem};
use crate::knowledge_base::KnowledgeBase;
use crate::losses::{absent_sections, broken_reference, difference_problem, differences};
use crate::manifest::Manifest;
use crate::pack::{Entry, Pack};
use crate::paged::{Damage, FileKind, PagedFile};
use crate::record::{Key, Kind};
use crate::request::{Observer, Options, Progress};
use crate::snapshot::Snapshot;
use crate::storage::{Area, Disk, FileName, LocalStorage};

type Result<T> = std::result::Result<T, StoreError>;

impl KnowledgeBase {
    /// Returns the state of the base.
    pub fn status(&self) -> Result<Status> {
        let snapshot = self.snapshot()?;
        let head = &snapshot.head;
        let index = snapshot.index.get_or_init(|| Index::open(&*snapshot.storage, head));
        let mut distinct: FxHashSet<SectionId> = FxHashSet::default();
        let mut problems = Vec::new();
        for place in snapshot.current(Kind::MANIFEST) {
            match snapshot.manifest_at(&place) {
                Ok(manifest) => {
                    distinct.extend(manifest.sections.iter().map(|section| section.kbid));
                    problems.extend(source_problems(&manifest));
                }
                Err(StoreError::Damaged { file, offset, detail, .. }) => {
                    problems.push(damage_problem(file, offset, None, format!("a manifest cannot be read: {detail}")));
                }
                Err(error) => return Err(error),
            }
        }
        problems.extend(index.problem.as_ref().map(index_problem));
        for name in &snapshot.missing {
            problems.push(damage_problem(name.to_string(), 0, None, "the file is gone".to_owned()));
        }
        let listing = self.storage.list()?;
        Ok(Status {
            path: self.path().display().to_string(),
            documents: head.totals.documents,
            sections: distinct.len() as u64,
            skills: head.totals.skills,
            agents: head.totals.agents,
            bytes: listing.files.iter().map(|(_, bytes)| bytes).sum::<u64>() + snapshot.head_bytes.len() as u64,
            source_bytes: head.totals.source_bytes,
            index: IndexStatus {
                state: match &index.problem {
                    None => "ok",
                    Some(IndexProblem::Damaged { .. }) => "damaged",
                    Some(IndexProblem::Outdated) => "outdated",
                }
                .to_owned(),
                segments: head.segments.len(),
                bytes: head.segments.iter().map(|s| s.bytes + s.dead.map_or(0, |(_, bytes)| bytes)).sum(),
                sections: head.segments.iter().map(|segment| segment.sections).sum(),
            },
            cache: CacheStatus {
                open_files: snapshot.packs.len() + index.segments.len(),
                blocks: self.cached_blocks(),
            },
            generation: head.generation,
            format: FORMAT,
            packs: head.packs.len(),
            retired: head.retired.len(),
            problems,
        })
    }

    /// Verifies the database in a directory as [`KnowledgeBase::check`] does, and one without a readable head too, which
    /// does not open.
    pub fn check_at(dir: impl AsRef<Path>, options: Options, observer: &mut dyn Observer) -> Result<CheckReport> {
        let storage = Arc::new(LocalStorage::new(Disk, dir.as_ref()));
        Self::over(storage, options, true).check(observer)
    }

    /// Verifies every byte and every reference of the base as it is now.
    pub fn check(&self, observer: &mut dyn Observer) -> Result<CheckReport> {
        let snapshot = match self.snapshot() {
            Err(StoreError::NoHead { reason, .. }) => return Ok(without_head(&reason)),
            other => other?,
        };
        let mut check = Check { snapshot: &snapshot, problems: Vec::new(), files: 1, bytes: 0 };
        check.bytes += snapshot.head_bytes.len() as u64;
        let files = snapshot.head.packs.len() as u64 + crate::commit::index_files(&snapshot.head).len() as u64;
        let mut step = |check: &Check<'_>| {
            let progress = Progress { phase: "checking", done: check.files as u64, total: Some(files + 1) };
            if observer.progress(&progress) { Ok(()) } else { Err(StoreError::Cancelled) }
        };
        let mut lost: FxHashSet<(Kind, Key)> = FxHashSet::default();
        for pack in &snapshot.packs {
            step(&check)?;
            check.files += 1;
            check.bytes += pack.len();
            for (damage, entries) in pack.verify() {
                lost.extend(entries.iter().map(|entry| (entry.kind, entry.key)));
                check.pack_damage(&damage, &entries, pack);
            }
        }
        for name in &snapshot.missing {
            check.problems.push(damage_problem(name.to_string(), 0, None, "the file is gone".to_owned()));
        }
        step(&check)?;
        let documents = check.references(&lost);
        check.index(&documents);
        check.links(self, &documents);
        check.problems.sort_by_key(|problem| problem.severity);
        Ok(CheckReport {
            ok: check.problems.iter().all(|problem| problem.severity != Severity::Error),
            problems: check.problems,
            generation: snapshot.head.generation,
            files: check.files,
            bytes: check.bytes,
        })
    }
}

struct Check<'s> {
    snapshot: &'s Snapshot,
    problems: Vec<Problem>,
    files: usize,
    bytes: u64,
}

impl Check<'_> {
    fn pack_damage(&mut self, damage: &Damage, lost: &[Entry], pack: &Pack) {
        let file = damage.file.to_string();
        if lost.is_empty() {
            let rest = if pack.is_accounted_for() {
                "nothing that it holds is lost"
            } else {
                "what its blocks still hold is used, the rest is lost"
            };
            let detail = format!("{}; {rest}", damage.detail);
            self.problems.push(damage_problem(file, damage.offset, None, detail));
            return;
        }
        for entry in lost {
            let kbid = (entry.kind == Kind::SECTION).then(|| SectionId::from_bytes(entry.key));
            let what = match entry.kind {
                Kind::SECTION => "the text of a section is lost",
                Kind::MANIFEST => "a revision of a document is lost",
                _ => "a record is lost",
            };
            self.problems.push(damage_problem(file.clone(), damage.offset, kbid, format!("{}; {what}", damage.detail)));
        }
    }

    /// Looks at what documents refer to. Returns the current ones.
    fn references(&mut self, lost: &FxHashSet<(Kind, Key)>) -> Vec<Manifest> {
        let mut documents = Vec::new();
        let mut referred: FxHashSet<SectionId> = FxHashSet::default();
        let mut kept = Vec::new();
        for group in self.snapshot.groups(Kind::MANIFEST) {
            let live = group.into_iter().take_while(|place| !place.entry.tombstone).enumerate();
            kept.extend(live.map(|(i, place)| (place, i == 0)));
        }
        kept.sort_by_key(|(place, _)| (place.pack, place.entry.block, place.entry.offset));
        for (i, (place, is_current)) in kept.iter().enumerate() {
            self.snapshot.release_after(i);
            let Ok(manifest) = self.snapshot.manifest_at(place) else { continue };
            referred.extend(manifest.sections.iter().map(|section| section.kbid));
            if *is_current {
                let mut absent = absent_sections(self.snapshot, &manifest);
                absent.retain(|id| !lost.contains(&(Kind::SECTION, id.to_bytes())));
                self.problems.extend(absent.into_iter().map(|id| broken_reference(&manifest.docid, id)));
                documents.push(manifest);
            }
        }
        let mut orphans = 0_u64;
        for group in self.snapshot.groups(Kind::SECTION) {
            let id = SectionId::from_bytes(group[0].entry.key);
            if !group[0].entry.tombstone && !referred.contains(&id) {
                orphans += 1;
                if orphans <= 100 {
                    self.problems.push(Problem {
                        kind: "orphan-section".to_owned(),
                        severity: Severity::Warning,
                        file: None,
                        offset: None,
                        kbid: Some(id),
                        docid: None,
                        detail: "no kept revision lists this section; `gc` removes it".to_owned(),
                    });
                }
            }
        }
        let skills: FxHashSet<&DocId> =
            documents.iter().filter(|m| m.kind == DocumentKind::Skill).map(|m| &m.docid).collect();
        let mut dangling = Vec::new();
        for manifest in documents.iter().filter(|m| m.kind == DocumentKind::Agent) {
            for (skill, _) in crate::skills::references(manifest) {
                if !skills.contains(&skill) {
                    let detail = format!("the agent refers to the skill `{skill}`, which is gone");
                    dangling.push((manifest.docid.clone(), detail));
                }
            }
        }
        for (docid, detail) in dangling {
            self.problem("broken-reference", Severity::Error, None, &docid, detail);
        }
        documents
    }

    fn problem(&mut self, kind: &str, severity: Severity, kbid: Option<SectionId>, docid: &DocId, detail: String) {
        let (kind, docid) = (kind.to_owned(), Some(docid.clone()));
        self.problems.push(Problem { kind, severity, file: None, offset: None, kbid, docid, detail });
    }

    /// Verifies the index files, and that they hold the current documents and no others.
    fn index(&mut self, documents: &[Manifest]) {
        let head = &self.snapshot.head;
        let storage = &*self.snapshot.storage;
        let mut damaged = false;
        let dead = head.segments.iter().filter_map(|segment| segment.dead);
        let dead = dead.map(|(hash, _)| (FileName { area: Area::Index, hash }, FileKind::Dead));
        let segments = head.segments.iter().map(|segment| (segment.name(), FileKind::Segment));
        for (name, kind) in segments.chain(dead) {
            self.files += 1;
            let found: Vec<(u64, String)> = match PagedFile::open(storage, name, kind) {
                Ok(None) => vec![(0, "the file is gone".to_owned())],
                Ok(Some(file)) => {
                    self.bytes += file.len();
                    file.verify().into_iter().map(|damage| (damage.offset, damage.detail)).collect()
                }
                Err(StoreError::Damaged { offset, detail, .. }) => vec![(offset, detail)],
                Err(error) => vec![(0, error.to_string())],
            };
            for (offset, detail) in found {
                damaged = true;
                let detail = format!("{detail}; `rebuild` makes the index anew");
                self.problems.push(damage_problem(name.to_string(), offset, None, detail));
            }
        }
        let index = Index::open(storage, head);
        match &index.problem {
            Some(IndexProblem::Outdated) => self.problems.push(index_problem(&IndexProblem::Outdated)),
            Some(problem) if !damaged => self.problems.push(index_problem(problem)),
            None if !damaged => self.compare(&index, documents),
            Some(_) | None => {}
        }
    }

    fn compare(&mut self, index: &Index, documents: &[Manifest]) {
        for (i, (segment, _)) in index.segments.iter().enumerate() {
            let name = self.snapshot.head.segments[i].name().to_string();
            if let Err(error) = segment.check() {
                self.problems.push(damage_problem(name, 0, None, error.to_string()));
                return;
            }
            segment.source().release();
        }
        let different = differences(self.snapshot, index, documents);
        let is_hurt = !different.is_empty() && self.snapshot.is_hurt();
        self.problems.extend(different.into_iter().map(|found| difference_problem(found, is_hurt)));
    }

    /// Looks for relative links to files that are neither learned nor there.
    fn links(&mut self, kb: &KnowledgeBase, documents: &[Manifest]) {
        let sources: FxHashSet<&str> =
            documents.iter().filter_map(|m| m.source.as_ref()).map(|source| source.name.as_str()).collect();
        for (i, manifest) in documents.iter().enumerate() {
            self.snapshot.release_after(i);
            let Some(source) = manifest.source.as_ref().filter(|source| source.modified != 0) else { continue };
            if !matches!(manifest.media_type.as_str(), "text/markdown" | "text/html") {
                continue;
            }
            let Ok(bytes) = self.snapshot.document_bytes(manifest) else { continue };
            let text = String::from_utf8_lossy(&bytes);
            for link in broken_links(kb, &sources, &source.name, &text, &manifest.media_type) {
                let detail = format!("line {} links to `{}`, which is not there", link.line, link.target);
                self.problem("broken-link", Severity::Warning, None, &manifest.docid, detail);
            }
        }
    }
}

fn broken_links(
    kb: &KnowledgeBase,
    sources: &FxHashSet<&str>,
    from: &str,
    text: &str,
    media_type: &MediaType,
) -> Vec<Link> {
    let mut broken = links(text, media_type);
    broken.retain(|link| {
        let Some(target) = relative_target(from, &link.target) else { return false };
        !sources.contains(target.as_str()) && !kb.source_path(&target).exists()
    });
    broken
}

/// Returns the source that a relative link leads to; `None` for links of any other kind.
fn relative_target(from: &str, link: &str) -> Option<String> {
    let path = link.split(['#', '?']).next().unwrap_or_default();
    if path.is_empty() || path.starts_with(['/', '\\']) || path.contains(':') {
        return None;
    }
    let decoded = percent_decoded(path);
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in decoded.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

fn percent_decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let pair = bytes.get(at + 1..at + 3).and_then(|pair| std::str::from_utf8(pair).ok());
        if let Some(byte) = pair.filter(|_| bytes[at] == b'%').and_then(|pair| u8::from_str_radix(pair, 16).ok()) {
            decoded.push(byte);
            at += 3;
        } else {
            decoded.push(bytes[at]);
            at += 1;
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

fn source_problems(manifest: &Manifest) -> Option<Problem> {
    let warning = manifest.warnings.iter().find(|warning| warning.code == "front-matter-unreadable")?;
    let place = match (warning.line, warning.column) {
        (Some(line), Some(column)) => format!(" (line {line}, column {column})"),
        (Some(line), None) => format!(" (line {line})"),
        _ => String::new(),
    };
    Some(Problem {
        kind: warning.code.clone(),
        severity: Severity::Warning,
        file: None,
        offset: None,
        kbid: None,
        docid: Some(manifest.docid.clone()),
        detail: format!("{}{place}", warning.message),
    })
}

fn damage_problem(file: String, offset: u64, kbid: Option<SectionId>, detail: String) -> Problem {
    Problem {
        kind: "checksum-mismatch".to_owned(),
        severity: Severity::Error,
        file: Some(file),
        offset: Some(offset),
        kbid,
        docid: None,
        detail,
    }
}

fn index_problem(problem: &IndexProblem) -> Problem {
    match problem {
        IndexProblem::Damaged { file, offset, detail } => {
            let detail = format!("{detail}; `rebuild` makes the index anew");
            damage_problem(file.clone(), *offset, None, detail)
        }
        IndexProblem::Outdated => Problem {
            kind: "index-outdated".to_owned(),
            severity: Severity::Warning,
            file: None,
            offset: None,
            kbid: None,
            docid: None,
            detail: "the index was made by another version; `rebuild` makes it anew".to_owned(),
        },
    }
}

fn without_head(reason: &str) -> CheckReport {
    let problem = damage_problem("head".to_owned(), 0, None, format!("{reason}; `rebuild` finds the packs again"));
    CheckReport { ok: false, problems: vec![problem], generation: 0, files: 1, bytes: 0 }
}
