//! What is wrong with a base, and what to do about it; also with one that does not open.
//!
//! **Invariant:** looking changes nothing and waits for nobody.

use std::path::Path;

use kb_core::DocumentKind;

use crate::error::StoreError;
use crate::head::{FORMAT, Head, HeadError};
use crate::index::Index;
use crate::knowledge_base::KnowledgeBase;
use crate::manifest::Manifest;
use crate::paged::{FileKind, PagedFile};
use crate::record::Kind;
use crate::reports::{DoctorReport, Finding, LockReport};
use crate::request::Options;
use crate::skills::references;
use crate::storage::{Area, FileName, Storage};

type Result<T> = std::result::Result<T, StoreError>;

impl KnowledgeBase {
    /// Looks at lock, versions, index, space and problems.
    pub fn doctor(dir: impl AsRef<Path>, options: Options) -> Result<DoctorReport> {
        let dir = dir.as_ref();
        let kb = Self::over(
            std::sync::Arc::new(crate::storage::LocalStorage::new(crate::storage::Disk, dir)),
            options,
            true,
        );
        let is_database = kb.storage.head()?.is_some() || Self::has_packs(dir);
        if !is_database {
            return Err(StoreError::NoDatabase { path: dir.to_owned() });
        }
        let mut findings = Vec::new();
        let lock = lock_report(&*kb.storage, &mut findings);
        let format = head_findings(&kb, &mut findings)?;
        if format.is_some() {
            base_findings(&kb, &mut findings)?;
        }
        space_findings(&kb, &mut findings);
        Ok(DoctorReport {
            path: dir.display().to_string(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            format,
            supported_format: FORMAT,
            lock,
            ok: findings.iter().all(|finding| finding.level != "error"),
            findings,
        })
    }
}

fn finding(level: &str, topic: &str, detail: String, advice: Option<&str>) -> Finding {
    Finding { level: level.to_owned(), topic: topic.to_owned(), detail, advice: advice.map(str::to_owned) }
}

fn lock_report(storage: &dyn Storage, findings: &mut Vec<Finding>) -> LockReport {
    let (holder, held) = match storage.lock_state() {
        Ok(state) => state,
        Err(error) => {
            findings.push(finding("warning", "lock", error.to_string(), None));
            (None, false)
        }
    };
    let detail = match (&holder, held) {
        (Some(holder), true) => format!("held by {holder}"),
        (None, true) => "held by a process that does not say who it is".to_owned(),
        (Some(holder), false) => format!("free; last held by {holder}"),
        (None, false) => "free".to_owned(),
    };
    let advice = held.then_some("wait, or end that process: its lock goes with it");
    findings.push(finding(if held { "warning" } else { "ok" }, "lock", detail, advice));
    LockReport {
        held,
        pid: holder.as_ref().map(|holder| holder.pid),
        command: holder.as_ref().map(|holder| holder.command.clone()),
        since: holder.map(|holder| holder.since),
    }
}

/// Returns the format, where the head can be read.
fn head_findings(kb: &KnowledgeBase, findings: &mut Vec<Finding>) -> Result<Option<u32>> {
    let bytes = kb.storage.head()?;
    let (level, detail, advice, format) = match bytes.as_deref().map(Head::decode) {
        None => ("error", "there is no head".to_owned(), Some("`kb rebuild` writes one from the packs"), None),
        Some(Err(HeadError::Damaged(reason))) => {
            ("error", format!("the head is damaged: {reason}"), Some("`kb rebuild` writes one from the packs"), None)
        }
        Some(Err(HeadError::TooNew(found))) => {
            let detail = format!("format {found}; this version reads up to {FORMAT}");
            ("error", detail, Some("use a newer version of kb"), None)
        }
        Some(Ok((_, false))) => {
            let detail = "a newer version wrote this base; this one may only read it".to_owned();
            ("warning", detail, Some("use a newer version of kb to write"), Some(FORMAT))
        }
        Some(Ok((head, true))) => {
            ("ok", format!("format {FORMAT}, generation {}", head.generation), None, Some(FORMAT))
        }
    };
    findings.push(finding(level, "format", detail, advice));
    Ok(format)
}

fn base_findings(kb: &KnowledgeBase, findings: &mut Vec<Finding>) -> Result<()> {
    let snapshot = kb.snapshot()?;
    let index = Index::open(&*snapshot.storage, &snapshot.head);
    findings.push(match &index.problem {
        None => finding("ok", "index", format!("{} segments", index.segments.len()), None),
        Some(problem) => finding("error", "index", problem.to_string(), Some("`kb rebuild` makes it anew")),
    });
    for segment in snapshot.head.segments.iter().filter(|_| index.problem.is_none()) {
        let dead = segment.dead.map(|(hash, _)| (FileName { area: Area::Index, hash }, FileKind::Dead));
        for (name, kind) in [(segment.name(), FileKind::Segment)].into_iter().chain(dead) {
            let file = PagedFile::open(&*snapshot.storage, name, kind)?;
            if let Some(damage) = file.and_then(|file| file.verify().into_iter().next()) {
                let advice = "`kb rebuild` makes it anew";
                findings.push(finding("error", "index", damage.to_string(), Some(advice)));
            }
        }
    }
    for name in &snapshot.missing {
        let advice = "restore it from a backup; else `kb rebuild` names what is lost with it and goes on without";
        findings.push(finding("error", "packs", format!("`{name}` is gone"), Some(advice)));
    }
    for pack in snapshot.packs.iter().filter(|pack| !pack.is_whole()) {
        let detail = format!("`{}` is damaged", pack.name());
        let advice = "`kb check` names what is hit; `kb learn --again` writes lost texts anew from their source, and `kb gc` \
                      then replaces the pack; `kb gc --history 1` gives up older revisions that cannot be read";
        findings.push(finding("error", "packs", detail, Some(advice)));
    }
    if snapshot.head.totals.agents > 0 {
        snapshot.each_manifest(|agent| {
            let skills = if agent.kind == DocumentKind::Agent { references(&agent) } else { Vec::new() };
            let gone = skills.into_iter().filter(|(skill, _)| !snapshot.has(Kind::MANIFEST, &Manifest::key(skill)));
            findings.extend(gone.map(|(skill, _)| {
                let detail = format!("`{}` refers to `{skill}`, which is not there", agent.docid);
                let advice =
                    "`kb skill learn` brings the skill back, `kb agent create` makes the agent anew without it";
                finding("warning", "agents", detail, Some(advice))
            }));
            Ok(())
        })?;
    }
    let warned = snapshot.head.totals.with_warnings;
    if warned > 0 {
        let detail = format!("{warned} documents have something that could not be taken as it stands");
        findings.push(finding("warning", "documents", detail, Some("`kb status` names them")));
    }
    Ok(())
}

fn space_findings(kb: &KnowledgeBase, findings: &mut Vec<Finding>) {
    let Ok(listing) = kb.storage.list() else { return };
    let bytes: u64 = listing.files.iter().map(|(_, bytes)| bytes).sum();
    findings.push(finding("ok", "space", format!("{bytes} bytes in {} files", listing.files.len()), None));
    let unfinished = listing.unfinished.iter().filter(|name| name.contains("tmp-")).count();
    if unfinished > 0 {
        let detail = format!("{unfinished} unfinished files were left behind");
        findings.push(finding("warning", "space", detail, Some("`kb gc` removes them")));
    }
}
