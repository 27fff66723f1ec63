//! Handing out everything, byte for byte.
//!
//! **Invariant:** an exported path is relative, has neither `..` nor an empty part, and no two documents get the same.

use rustc_hash::FxHashSet;

use crate::error::StoreError;
use crate::knowledge_base::KnowledgeBase;
use crate::manifest::Manifest;
use crate::read::describe;
use crate::record::Kind;
use crate::reports::ExportedDocument;

type Result<T> = std::result::Result<T, StoreError>;

impl KnowledgeBase {
    /// Hands out every current document with its exact bytes, by docid. Returns how many there were.
    pub fn export(&self, sink: &mut dyn FnMut(ExportedDocument) -> Result<()>) -> Result<u64> {
        let snapshot = self.snapshot()?;
        let mut docids = Vec::new();
        for place in snapshot.current(Kind::MANIFEST) {
            docids.push(snapshot.manifest_at(&place)?.docid);
        }
        docids.sort();
        let mut taken: FxHashSet<String> = FxHashSet::default();
        for docid in &docids {
            let Some(manifest) = snapshot.manifest(docid)? else { continue };
            let content = snapshot.document_bytes(&manifest)?;
            let path = free_path(&manifest, &mut taken);
            sink(ExportedDocument { info: describe(&manifest), path, content })?;
        }
        Ok(docids.len() as u64)
    }
}

fn free_path(manifest: &Manifest, taken: &mut FxHashSet<String>) -> String {
    let extension = extension(manifest);
    let stem = manifest.docid.as_str();
    // Names are compared as file systems that ignore case do; a docid that is a folder of others keeps its own name.
    let path = format!("{stem}.{extension}");
    if taken.insert(path.to_lowercase()) {
        return path;
    }
    let mut n = 2;
    loop {
        let path = format!("{stem}-{n}.{extension}");
        if taken.insert(path.to_lowercase()) {
            return path;
        }
        n += 1;
    }
}

/// Returns the extension of the source's name where it has one of the right type, else that of the type.
fn extension(manifest: &Manifest) -> String {
    let name = manifest.source.as_ref().map(|source| source.name.as_str()).unwrap_or_default();
    let own = name.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
    if let Some(own) = own
        && own.bytes().all(|b| b.is_ascii_alphanumeric())
        && kb_core::MediaType::of_file_name(name).as_ref() == Some(&manifest.media_type)
    {
        return own;
    }
    match manifest.media_type.as_str() {
        "text/markdown" => "md",
        "text/html" => "html",
        "application/toml" => "toml",
        "text/plain" => "txt",
        "image/svg+xml" => "svg",
        "image/jpeg" => "jpg",
        other => other.split_once('/').map_or("bin", |(_, sub)| sub),
    }
    .to_owned()
}
