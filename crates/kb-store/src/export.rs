//! Handing out everything, byte for byte.
//!
//! **Invariant:** an exported path is relative, each of its parts is a name that every file system takes and none hides,
//! no two documents get the same, and none is a folder of another.

use kb_core::DocId;
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
        let mut taken = Taken::with_folders_of(&docids);
        for docid in &docids {
            let Some(manifest) = snapshot.manifest(docid)? else { continue };
            let content = snapshot.document_bytes(&manifest)?;
            let path = taken.free_path(&manifest);
            sink(ExportedDocument { info: describe(&manifest), path, content })?;
        }
        Ok(docids.len() as u64)
    }
}

/// Paths that are taken, as file systems that ignore case compare them.
struct Taken {
    files: FxHashSet<String>,
    /// Folders that some document lies in: no file may have such a name.
    folders: FxHashSet<String>,
}

impl Taken {
    fn with_folders_of(docids: &[DocId]) -> Self {
        let mut folders = FxHashSet::default();
        for docid in docids {
            let path = safe_path(docid);
            folders.extend(path.match_indices('/').map(|(end, _)| path[..end].to_lowercase()));
        }
        Self { files: FxHashSet::default(), folders }
    }

    /// Takes a path for a document: its docid, with a number where that is taken.
    fn free_path(&mut self, manifest: &Manifest) -> String {
        let (stem, extension) = (safe_path(&manifest.docid), extension(manifest));
        // A docid may have the extension already.
        let stem = stem.strip_suffix(&format!(".{extension}")).filter(|stem| !stem.ends_with('/')).unwrap_or(&stem);
        let mut path = format!("{stem}.{extension}");
        let mut n = 2;
        while self.folders.contains(&path.to_lowercase()) || !self.files.insert(path.to_lowercase()) {
            path = format!("{stem}-{n}.{extension}");
            n += 1;
        }
        path
    }
}

/// Returns a docid as a path of which no part is hidden, ends as Windows does not keep it, or is the name of a device.
fn safe_path(docid: &DocId) -> String {
    let parts: Vec<String> = docid.as_str().split('/').map(safe_name).collect();
    parts.join("/")
}

fn safe_name(name: &str) -> String {
    let stem = name.split('.').next().unwrap_or(name).trim_end().to_ascii_lowercase();
    let end = if name.ends_with(['.', ' ']) { "-" } else { "" };
    let begin = if name.starts_with('.') || kb_core::is_device_name(&stem) { "x-" } else { "" };
    format!("{begin}{name}{end}")
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

#[cfg(test)]
mod tests {
    use super::safe_path;

    #[test]
    fn every_part_of_a_path_is_a_name_that_can_be_written_and_seen() {
        for (docid, expected) in [
            ("guide/set-up", "guide/set-up"),
            (".git/hooks/x", "x-.git/hooks/x"),
            ("con", "x-con"),
            ("a/nul", "a/x-nul"),
            ("a/nul.d/b", "a/x-nul.d/b"),
            ("com1.md", "x-com1.md"),
            ("console", "console"),
        ] {
            assert_eq!(safe_path(&docid.parse().expect("a docid")), expected);
        }
    }
}
