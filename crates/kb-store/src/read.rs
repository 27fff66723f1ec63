//! Reading sections and documents back.
//!
//! **Invariant:** text comes out byte for byte as it was learned; what was unlearned does not come out at all.

use base64::Engine;
use kb_core::{
    ComposedContent, DocId, DocumentInfo, DocumentList, DocumentSummary, History, Revision, SectionContent, SectionId,
    SectionInfo,
};

use crate::collect::kept_revisions;
use crate::error::StoreError;
use crate::footnotes::Footnotes;
use crate::index::Index;
use crate::knowledge_base::{KnowledgeBase, time_text};
use crate::manifest::Manifest;
use crate::record::Kind;
use crate::request::ListFilter;
use crate::snapshot::Snapshot;
use crate::source::{own_provenance, provenance, reached_by};
use crate::unlearn::{is_from, not_found};

type Result<T> = std::result::Result<T, StoreError>;

/// The fewest characters that stand for a kbid.
const SHORTEST_PREFIX: usize = 4;

impl KnowledgeBase {
    /// Returns a section with its text, and where it occurs now.
    ///
    /// A section of a kept revision is found by its kbid too; it then has no documents.
    pub fn retrieve_section(&self, id: SectionId) -> Result<SectionContent> {
        let snapshot = self.snapshot()?;
        let (media_type, bytes) = section(&snapshot, id)?;
        let occurrences = occurrences(&snapshot, id)?;
        let first = occurrences.first();
        let (content, encoding) = encode(media_type.is_text(), bytes);
        let provenance = match first {
            Some((manifest, _)) => provenance(&snapshot, manifest)?,
            None => None,
        };
        let heading_path = first.map(|(manifest, at)| owned(&manifest.heading_path(*at))).unwrap_or_default();
        Ok(SectionContent {
            kbid: id,
            content,
            encoding,
            media_type,
            docids: occurrences.iter().map(|(manifest, _)| manifest.docid.clone()).collect(),
            heading_path,
            line: first.map_or(1, |(manifest, at)| manifest.sections[*at].line),
            provenance,
        })
    }

    /// Returns a document with its sections' texts.
    pub fn retrieve_document(&self, id: &DocId) -> Result<DocumentInfo> {
        let snapshot = self.snapshot()?;
        let manifest = document(&snapshot, id)?;
        let mut info = describe(&manifest);
        info.provenance = provenance(&snapshot, &manifest)?;
        for entry in &mut info.sections {
            let (media_type, bytes) = section(&snapshot, entry.kbid)?;
            entry.content = Some(encode(media_type.is_text(), bytes).0);
        }
        Ok(info)
    }

    /// Returns a document's manifest, its sections without their texts.
    pub fn describe_document(&self, id: &DocId) -> Result<DocumentInfo> {
        let snapshot = self.snapshot()?;
        let manifest = document(&snapshot, id)?;
        Ok(DocumentInfo { provenance: provenance(&snapshot, &manifest)?, ..describe(&manifest) })
    }

    /// Returns the number of a document's current revision and when it was made, in milliseconds since 1970; `None` where
    /// there is no such document. For who asks often: of what is not there no near name is looked for.
    pub fn current_revision(&self, id: &DocId) -> Result<Option<(u32, i64)>> {
        Ok(self.snapshot()?.manifest(id)?.map(|manifest| (manifest.revision, manifest.updated)))
    }

    /// Returns the exact bytes of a section.
    pub fn section_bytes(&self, id: SectionId) -> Result<Vec<u8>> {
        let snapshot = self.snapshot()?;
        Ok(section(&snapshot, id)?.1)
    }

    /// Returns the exact bytes of a document: its source, less what was unlearned from it.
    pub fn document_bytes(&self, id: &DocId) -> Result<Vec<u8>> {
        let snapshot = self.snapshot()?;
        let manifest = document(&snapshot, id)?;
        snapshot.document_bytes(&manifest)
    }

    /// Composes sections and documents into one text, in the order given.
    ///
    /// A text of the shape of a kbid is one, anything else is a docid. One id gives exactly its bytes; between several
    /// stands a blank line. An image stands as a line that names it.
    pub fn content(&self, ids: &[String]) -> Result<ComposedContent> {
        let snapshot = self.snapshot()?;
        let mut content = String::new();
        for id in ids {
            add_paragraph(&mut content, &piece(&snapshot, id)?.0);
        }
        Ok(ComposedContent { content, ids: ids.to_vec() })
    }

    /// As [`KnowledgeBase::content`], with a footnote for each text that a source brought: where from, and when.
    pub fn content_with_footnotes(&self, ids: &[String]) -> Result<ComposedContent> {
        let snapshot = self.snapshot()?;
        let mut content = String::new();
        let mut footnotes = Footnotes::default();
        for id in ids {
            let (text, manifest) = piece(&snapshot, id)?;
            add_paragraph(&mut content, &text);
            if let Some(origin) = manifest.as_ref().and_then(own_provenance) {
                add_paragraph(&mut content, &footnotes.reference(origin));
            }
        }
        let notes = footnotes.text();
        if !notes.is_empty() {
            add_paragraph(&mut content, &notes);
        }
        Ok(ComposedContent { content, ids: ids.to_vec() })
    }

    /// Returns readable sections whose kbid begins so, in order, at most `limit` of them.
    ///
    /// Fails with [`StoreError::Invalid`] for fewer than four characters or others than a kbid has.
    pub fn sections_by_prefix(&self, prefix: &str, limit: usize) -> Result<Vec<SectionId>> {
        let invalid = |reason: &str| StoreError::Invalid { field: "kbid", reason: format!("`{prefix}` {reason}") };
        if prefix.len() < SHORTEST_PREFIX {
            return Err(invalid("is shorter than four characters"));
        }
        // The smallest id that begins so; the last character of an id has two bits of zero.
        let lowest = format!("{prefix:0<26}");
        let from: SectionId = lowest.parse().map_err(|_| invalid("is not the beginning of a kbid"))?;
        let snapshot = self.snapshot()?;
        let mut found: Vec<SectionId> = Vec::new();
        for pack in &snapshot.packs {
            for entry in pack.from((Kind::SECTION, from.to_bytes())) {
                let id = SectionId::from_bytes(entry.key);
                if entry.kind != Kind::SECTION || !id.to_string().starts_with(prefix) {
                    break;
                }
                if snapshot.has(Kind::SECTION, &entry.key) {
                    found.push(id);
                }
                if found.len() > limit.saturating_mul(4) + 16 {
                    break;
                }
            }
        }
        found.sort_unstable();
        found.dedup();
        found.truncate(limit);
        Ok(found)
    }

    /// Lists documents by docid, skills and agents included.
    pub fn list(&self, filter: &ListFilter) -> Result<DocumentList> {
        let snapshot = self.snapshot()?;
        let types = type_names(&filter.types)?;
        let reached = filter.source.as_deref().map(|source| reached_by(&snapshot, source)).transpose()?;
        let mut documents = Vec::new();
        snapshot.each_manifest(|manifest| {
            let wanted = filter.tags.iter().all(|tag| has_tag(&manifest.tags, tag))
                && (types.is_empty()
                    || types.iter().any(|t| t == manifest.media_type.as_str() || t == manifest.kind.as_str()))
                && filter.prefix.as_ref().is_none_or(|prefix| manifest.docid.as_str().starts_with(prefix.as_str()))
                && filter.source.as_ref().is_none_or(|source| {
                    is_from(&manifest, source)
                        || manifest.origin.as_ref().is_some_and(|origin| origin.system == *source)
                        || reached.as_ref().is_some_and(|reached| reached.contains(&manifest.docid))
                });
            if wanted {
                documents.push(summarize(manifest));
            }
            Ok(())
        })?;
        documents.sort_by(|a, b| a.docid.cmp(&b.docid));
        Ok(DocumentList { documents, generation: snapshot.head.generation })
    }

    /// Lists a document's kept revisions, the newest first.
    pub fn history(&self, id: &DocId) -> Result<History> {
        let snapshot = self.snapshot()?;
        let revisions = snapshot.revisions(id)?;
        if revisions.is_empty() {
            return Err(not_found(&snapshot, id));
        }
        let kept = kept_revisions(&*snapshot.storage, &snapshot.head, None)?;
        let revisions = revisions
            .into_iter()
            .take(kept)
            .enumerate()
            .map(|(i, (generation, manifest))| Revision {
                revision: manifest.revision,
                updated: time_text(manifest.updated),
                generation,
                kbids: manifest.sections.iter().map(|section| section.kbid).collect(),
                title: manifest.title,
                current: i == 0,
                edited: manifest.edited,
            })
            .collect();
        Ok(History { docid: id.clone(), revisions })
    }
}

/// Returns what stands for an id in a composed text, and the first document that it is of.
fn piece(snapshot: &Snapshot, id: &str) -> Result<(String, Option<Manifest>)> {
    if let Ok(kbid) = id.parse::<SectionId>() {
        let (media_type, bytes) = section(snapshot, kbid)?;
        let text = if media_type.is_text() {
            String::from_utf8_lossy(&bytes).into_owned()
        } else {
            format!("![{kbid}](kbdb://section/{kbid})\n")
        };
        let first = occurrences(snapshot, kbid)?.into_iter().next().map(|(manifest, _)| manifest);
        return Ok((text, first));
    }
    let near = || crate::near::documents(snapshot, id);
    let docid: DocId = id.parse().map_err(|_| StoreError::DocumentNotFound { id: id.to_owned(), near: near() })?;
    let manifest = document(snapshot, &docid)?;
    let text = if manifest.media_type.is_text() {
        String::from_utf8_lossy(&snapshot.document_bytes(&manifest)?).into_owned()
    } else {
        let kbid = manifest.sections.first().map(|s| s.kbid.to_string()).unwrap_or_default();
        format!("![{}](kbdb://section/{kbid})\n", manifest.title)
    };
    Ok((text, Some(manifest)))
}

/// Adds a text after a blank line.
fn add_paragraph(content: &mut String, text: &str) {
    if !content.is_empty() {
        let missing = match () {
            () if content.ends_with("\n\n") => "",
            () if content.ends_with('\n') => "\n",
            () => "\n\n",
        };
        content.push_str(missing);
    }
    content.push_str(text);
}

/// Returns the words by which types are looked for: short names of media types become these.
pub(crate) fn type_names(texts: &[String]) -> Result<Vec<String>> {
    let name = |text: &String| {
        let lower = text.trim().to_lowercase();
        match lower.parse::<kb_core::MediaType>() {
            Ok(media_type) => Ok(media_type.to_string()),
            Err(_) if lower.parse::<kb_core::DocumentKind>().is_ok() => Ok(lower),
            Err(error) => {
                let reason = format!("{error}, nor is it `document`, `skill` or `agent`");
                Err(StoreError::Invalid { field: "type", reason })
            }
        }
    };
    texts.iter().map(name).collect()
}

/// Says whether one of these tags is `wanted`, in any case; `a/*` is any tag below `a/`.
fn has_tag(tags: &[String], wanted: &str) -> bool {
    let wanted = wanted.to_lowercase();
    tags.iter().map(|tag| tag.to_lowercase()).any(|tag| match wanted.strip_suffix('*') {
        Some(prefix) => tag.starts_with(prefix),
        None => tag == wanted,
    })
}

pub(crate) fn section(snapshot: &Snapshot, id: SectionId) -> Result<(kb_core::MediaType, Vec<u8>)> {
    snapshot.section(id)?.ok_or_else(|| StoreError::SectionNotFound { id: id.to_string() })
}

pub(crate) fn document(snapshot: &Snapshot, id: &DocId) -> Result<Manifest> {
    snapshot.manifest(id)?.ok_or_else(|| not_found(snapshot, id))
}

/// Returns where a section occurs in current documents, by docid.
pub(crate) fn occurrences(snapshot: &Snapshot, id: SectionId) -> Result<Vec<(Manifest, usize)>> {
    let index = snapshot.index.get_or_init(|| Index::open(&*snapshot.storage, &snapshot.head));
    let mut found = Vec::new();
    if let Some(docids) = documents_by_index(index, id) {
        for docid in docids {
            if let Some(manifest) = snapshot.manifest(&docid)?
                && let Some(at) = manifest.sections.iter().position(|section| section.kbid == id)
            {
                found.push((manifest, at));
            }
        }
    }
    if found.is_empty() {
        // Front matter is not indexed, and an index may be unusable: look into every manifest.
        snapshot.each_manifest(|manifest| {
            if let Some(at) = manifest.sections.iter().position(|section| section.kbid == id) {
                found.push((manifest, at));
            }
            Ok(())
        })?;
    }
    found.sort_by(|a, b| a.0.docid.cmp(&b.0.docid));
    Ok(found)
}

/// Returns the documents that hold a section, by docid, as far as the first half of its kbid tells; `None` without an
/// index.
pub(crate) fn documents_by_index(index: &Index, id: SectionId) -> Option<Vec<DocId>> {
    if index.problem.is_some() {
        return None;
    }
    let mut docids = Vec::new();
    for (segment, dead) in &index.segments {
        for occurrence in segment.occurrences(id).ok()? {
            if !dead.as_ref().is_some_and(|dead| dead.contains(occurrence.ordinal)) {
                docids.extend(occurrence.docid.parse().ok());
            }
        }
    }
    docids.sort();
    docids.dedup();
    Some(docids)
}

fn encode(is_text: bool, bytes: Vec<u8>) -> (String, Option<String>) {
    if is_text {
        let text = String::from_utf8(bytes).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned());
        (text, None)
    } else {
        (base64::engine::general_purpose::STANDARD.encode(bytes), Some("base64".to_owned()))
    }
}

fn owned(path: &[&str]) -> Vec<String> {
    path.iter().map(|&part| part.to_owned()).collect()
}

/// Returns a manifest as the world sees it, without the texts.
pub(crate) fn describe(manifest: &Manifest) -> DocumentInfo {
    let sections = manifest
        .sections
        .iter()
        .enumerate()
        .map(|(i, section)| SectionInfo {
            kbid: section.kbid,
            position: i as u32,
            media_type: manifest.media_type.clone(),
            role: section.role.as_str().to_owned(),
            level: section.level,
            parent: section.parent.and_then(|parent| manifest.sections.get(parent as usize)).map(|s| s.kbid),
            heading_path: owned(&manifest.heading_path(i)),
            line: section.line,
            bytes: section.bytes,
            part: section.part.map(|(n, of)| [n, of]),
            content: None,
        })
        .collect();
    DocumentInfo {
        docid: manifest.docid.clone(),
        kind: manifest.kind,
        title: manifest.title.clone(),
        description: manifest.description.clone(),
        tags: manifest.tags.clone(),
        aliases: manifest.aliases.clone(),
        meta: serde_json::from_str(&manifest.meta).unwrap_or_default(),
        media_type: manifest.media_type.clone(),
        source: manifest.source.as_ref().map(|source| source.name.clone()),
        date: manifest.date.clone(),
        created: time_text(manifest.created),
        updated: time_text(manifest.updated),
        revision: manifest.revision,
        edited: manifest.edited,
        bytes: manifest.source_bytes(),
        warnings: manifest.warnings.clone(),
        provenance: own_provenance(manifest),
        sections,
    }
}

fn summarize(manifest: Manifest) -> DocumentSummary {
    DocumentSummary {
        bytes: manifest.source_bytes(),
        sections: manifest.sections.len() as u32,
        updated: time_text(manifest.updated),
        source: manifest.source.map(|source| source.name),
        docid: manifest.docid,
        kind: manifest.kind,
        title: manifest.title,
        tags: manifest.tags,
        media_type: manifest.media_type,
        revision: manifest.revision,
    }
}
