//! Learning files and folders.
//!
//! **Invariant:** sources are only ever read. A file or folder that cannot be read costs itself alone, is named, and is
//! not taken for deleted.

use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use ignore::WalkBuilder;
use kb_core::{DocId, LearnReport, LearnedDocument, MediaType, Outcome};
use rustc_hash::FxHashSet;

use crate::error::{IoContext, StoreError};
use crate::knowledge_base::{KnowledgeBase, milliseconds};
use crate::learn::{Batch, CHUNK_BYTES, failed, learned, report};
use crate::manifest::Manifest;
use crate::prepare::{FileState, Prepared, prepare};
use crate::request::{LearnPaths, Observer, Target, Text, Unlearn};
use crate::snapshot::Snapshot;
use crate::source_file;
use crate::stat_cache::{Known, Stamp, StatCache};
use crate::unlearn::is_from;

type Result<T> = std::result::Result<T, StoreError>;

/// A prune that would take this many documents and more than half of a folder is refused.
const MANY: usize = 5;

/// A file to be learned.
#[derive(Debug)]
struct Found {
    path: PathBuf,
    /// Relative to the root, with `/`.
    relative: String,
    /// As the base names it.
    source: String,
    media_type: Option<MediaType>,
}

impl KnowledgeBase {
    /// Learns files and folders.
    ///
    /// In a folder `.gitignore` and `.kbignore` hold, hidden files and links are passed over, and files of the text
    /// types are taken. A file named by itself is taken whatever it is called. Sources are named by their path from
    /// the folder that holds the database, or by their absolute path where they lie elsewhere. A file that cannot be
    /// taken is one `failed` entry of the report.
    pub fn learn_paths(
        &self,
        paths: &[PathBuf],
        request: &LearnPaths,
        observer: &mut dyn Observer,
    ) -> Result<LearnReport> {
        let single = request.title.is_some() || request.description.is_some() || request.docid.is_some();
        if single && (paths.len() != 1 || paths[0].is_dir()) {
            let reason = "a title, a description or a docid goes with one file".to_owned();
            return Err(StoreError::Invalid { field: "docid", reason });
        }
        let mut all: Vec<LearnedDocument> = Vec::new();
        let mut generation = 0;
        for path in paths {
            let done = self.learn_root(path, request, observer)?;
            generation = done.generation;
            all.extend(done.documents);
        }
        Ok(report(all, generation, request.dry_run))
    }

    fn learn_root(&self, path: &Path, request: &LearnPaths, observer: &mut dyn Observer) -> Result<LearnReport> {
        let root = path.canonicalize().io("find", path)?;
        if !root.is_dir() && !root.is_file() {
            let reason = format!("`{}` is neither a file nor a folder; `-` reads a pipe", path.display());
            return Err(StoreError::Invalid { field: "path", reason });
        }
        let base = self.base_folder();
        let mut batch = Batch::new(self, request.dry_run);
        let mut unreadable: Vec<String> = Vec::new();
        let found = if root.is_dir() {
            walk(&root, &base, self.path(), request, &mut |source, error| {
                batch.note(failed(Some(source.clone()), &error));
                unreadable.push(source);
            })
        } else {
            let name = root.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            let media_type = request.media_type.clone().or_else(|| MediaType::of_file_name(&name));
            let media_type = media_type.or(Some(MediaType::plain()));
            vec![Found { source: source_name(&root, &base), path: root.clone(), relative: name, media_type }]
        };
        batch.total = Some(found.len() as u64);
        let snapshot = self.snapshot()?;
        let root_source = source_name(&root, &base);
        let given = given(request);
        let mut cache = StatCache::open(self.options.cache_dir.as_deref(), snapshot.head.id, &root_source, &given);
        // What a prune would take is settled first: one that is refused leaves everything as it is.
        let gone = if request.prune && root.is_dir() {
            let seen = found.iter().map(|file| file.source.as_str()).chain(unreadable.iter().map(String::as_str));
            self.gone_from(&snapshot, &root_source, &seen.collect(), &unreadable, request.prune_all)?
        } else {
            Vec::new()
        };
        let mut read: Vec<(String, Stamp, i64, [u8; 16])> = Vec::new();
        for chunk in chunks(&found) {
            let mut changed = Vec::new();
            for file in chunk {
                match self.look(file, request, &snapshot, &cache) {
                    Ok(Look::Unchanged(known, document)) => {
                        cache.keep(&file.source, known);
                        batch.note(document);
                    }
                    Ok(Look::Read(stamp, now)) => changed.push((file, stamp, now)),
                    Err(error) => batch.push(Err(error), Some(file.source.clone()), observer)?,
                }
            }
            let prepared = in_parallel(&changed, |(file, stamp, _)| prepare_file(file, request, stamp));
            for ((file, stamp, now), prepared) in changed.iter().zip(prepared) {
                if let Ok(prepared) = &prepared {
                    read.push((file.source.clone(), *stamp, *now, prepared.manifest.inputs));
                }
                batch.push(prepared, Some(file.source.clone()), observer)?;
            }
        }
        let mut done = batch.finish(observer)?;
        if !gone.is_empty() {
            let removed = self.prune(&gone, request.dry_run)?;
            done.generation = self.snapshot()?.head.generation;
            done.removed = removed.len();
            for document in &removed {
                observer.document(document);
            }
            done.documents.extend(removed);
        }
        if !request.dry_run {
            remember(cache, &read, &done);
        }
        Ok(done)
    }

    /// Looks at a file without reading it: is it surely as it was learned?
    fn look(&self, file: &Found, request: &LearnPaths, snapshot: &Snapshot, cache: &StatCache) -> Result<Look> {
        // The time comes first: an edit after it shows in the stamp, or is known to be too close to tell.
        let now = milliseconds((self.options.clock)()).saturating_mul(1_000_000);
        let base = if file.path.to_str().is_none() { self.base_folder() } else { PathBuf::new() };
        let name = file.path.strip_prefix(&base).unwrap_or(&file.path);
        if name.to_str().is_none() {
            // As text it might be the name of another file, which would become its revision.
            let reason = format!("the name `{}` is not UTF-8", name.as_os_str().as_encoded_bytes().escape_ascii());
            return Err(StoreError::Invalid { field: "path", reason });
        }
        let metadata = source_file::look(&file.path, &file.source)?;
        let stamp = Stamp::of(&metadata);
        if !request.again
            && let Some(known) = cache.unchanged(&file.source, &stamp)
            && let Some(manifest) = snapshot.manifest(&known.docid)?
            && manifest.inputs == known.inputs
            && manifest.source.as_ref().is_some_and(|source| source.name == file.source)
        {
            return Ok(Look::Unchanged(known.clone(), learned(&manifest, Outcome::Unchanged)));
        }
        Ok(Look::Read(stamp, now))
    }

    /// Finds the documents learned from below a root whose file is gone.
    fn gone_from(
        &self,
        snapshot: &Snapshot,
        root: &str,
        seen: &FxHashSet<&str>,
        unreadable: &[String],
        prune_all: bool,
    ) -> Result<Vec<Manifest>> {
        let base = self.base_folder();
        let mut gone: Vec<Manifest> = Vec::new();
        let mut known = 0;
        snapshot.each_manifest(|manifest| {
            let is_file = manifest.source.as_ref().is_some_and(|source| source.modified != 0);
            if is_file && is_from(&manifest, root) {
                known += 1;
                let name = &manifest.source.as_ref().expect("it was just looked at").name;
                let is_unreadable = || unreadable.iter().any(|folder| is_from(&manifest, folder));
                // What the walk passed over may be there all the same: an image, a hidden file, an ignored one.
                if !seen.contains(name.as_str()) && !is_unreadable() && is_gone(&base.join(name)) {
                    gone.push(manifest);
                }
            }
            Ok(())
        })?;
        let too_much = gone.len() == known || (gone.len() >= MANY && gone.len() * 2 > known);
        if !gone.is_empty() && too_much && !prune_all {
            return Err(StoreError::PruneTooMuch { root: root.to_owned(), gone: gone.len(), known });
        }
        gone.sort_by(|a, b| a.docid.cmp(&b.docid));
        Ok(gone)
    }

    fn prune(&self, gone: &[Manifest], dry_run: bool) -> Result<Vec<LearnedDocument>> {
        let targets = gone.iter().map(|manifest| Target::Document(manifest.docid.clone())).collect();
        self.unlearn(&Unlearn { targets, dry_run, purge: false })?;
        Ok(gone.iter().map(|manifest| learned(manifest, Outcome::Removed)).collect())
    }
}

/// Says whether a file is certainly not there, which no other error of the system says.
fn is_gone(path: &Path) -> bool {
    let error = path.symlink_metadata().err().map(|error| error.kind());
    matches!(error, Some(std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory))
}

enum Look {
    Unchanged(Known, LearnedDocument),
    /// To be read; with the stamp and the time of before that.
    Read(Stamp, i64),
}

/// Returns a file's modification time in nanoseconds since 1970; 1 for a time that cannot be told.
pub(crate) fn modified(metadata: &Metadata) -> i64 {
    let since = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    since.map_or(1, |since| since.as_nanos() as i64)
}

/// Returns the name of a source: its path from the folder that holds the database, or its absolute path.
fn source_name(path: &Path, base: &Path) -> String {
    let relative = path.strip_prefix(base).ok().filter(|relative| !relative.as_os_str().is_empty());
    let text = relative.unwrap_or(path).to_string_lossy().into_owned();
    if path == base { ".".to_owned() } else { with_slashes(text) }
}

#[cfg(windows)]
fn with_slashes(path: String) -> String {
    path.replace('\\', "/")
}

#[cfg(not(windows))]
const fn with_slashes(path: String) -> String {
    path
}

fn walk(
    root: &Path,
    base: &Path,
    database: &Path,
    request: &LearnPaths,
    unreadable: &mut dyn FnMut(String, StoreError),
) -> Vec<Found> {
    let database = database.canonicalize().unwrap_or_else(|_| database.to_owned());
    let walk = WalkBuilder::new(root)
        .require_git(false)
        .git_global(false)
        .add_custom_ignore_filename(".kbignore")
        .sort_by_file_name(Ord::cmp)
        .filter_entry(move |entry| entry.path() != database)
        .build();
    let mut found = Vec::new();
    for entry in walk {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                let path = path_of(&error).unwrap_or_else(|| root.to_owned());
                // The error of the walk says the path and the cause once more: its kind is what is new.
                let kind = error.io_error().map_or(std::io::ErrorKind::Other, std::io::Error::kind);
                let source = kind.into();
                let name = source_name(&path, base);
                unreadable(name, StoreError::Io { op: "read", path, source });
                continue;
            }
        };
        if !entry.file_type().is_some_and(|file_type| file_type.is_file()) {
            continue;
        }
        let name = entry.file_name().to_string_lossy();
        let by_name = MediaType::of_file_name(&name);
        let media_type = match &request.media_type {
            Some(given) => Some(given.clone()),
            None => by_name.filter(MediaType::is_text),
        };
        if let Some(media_type) = media_type {
            let path = entry.into_path();
            let relative = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned();
            found.push(Found {
                source: source_name(&path, base),
                relative: with_slashes(relative),
                path,
                media_type: Some(media_type),
            });
        }
    }
    found
}

fn path_of(error: &ignore::Error) -> Option<PathBuf> {
    match error {
        ignore::Error::WithPath { path, .. } => Some(path.clone()),
        ignore::Error::WithDepth { err, .. } | ignore::Error::WithLineNumber { err, .. } => path_of(err),
        _ => None,
    }
}

/// Cuts the files into runs that are read together; what they hold bounds the memory that reading takes.
fn chunks(found: &[Found]) -> impl Iterator<Item = &[Found]> {
    let mut rest = found;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let mut bytes = 0;
        let end = rest.iter().take(512).take_while(|file| {
            let fits = bytes < CHUNK_BYTES / 4;
            bytes += std::fs::metadata(&file.path).map_or(0, |metadata| metadata.len());
            fits
        });
        let (now, later) = rest.split_at(end.count().max(1));
        rest = later;
        Some(now)
    })
}

fn prepare_file(file: &Found, request: &LearnPaths, _stamp: &Stamp) -> Result<Prepared> {
    let (content, metadata) = source_file::read(&file.path, &file.source)?;
    let text = Text {
        content,
        media_type: file.media_type.clone(),
        title: request.title.clone(),
        description: request.description.clone(),
        docid: request.docid.clone(),
        tags: request.tags.clone(),
        source: Some(file.source.clone()),
        again: request.again,
    };
    prepare(&text, Some(&file.relative), FileState { modified: modified(&metadata) })
}

/// Maps a slice on as many threads as there are cores, in order.
fn in_parallel<T: Sync, R: Send>(items: &[T], map: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(8);
    if threads == 1 || items.len() < 16 {
        return items.iter().map(map).collect();
    }
    let parts: Vec<&[T]> = items.chunks(items.len().div_ceil(threads)).collect();
    std::thread::scope(|scope| {
        let map = &map;
        let workers: Vec<_> =
            parts.into_iter().map(|part| scope.spawn(move || part.iter().map(map).collect::<Vec<R>>())).collect();
        workers
            .into_iter()
            .flat_map(|worker| worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    })
}

/// Returns the arguments that shape what is learned of a file, for the cache to tell one call from another.
fn given(request: &LearnPaths) -> Vec<u8> {
    let docid = request.docid.as_ref().map(DocId::as_str);
    let media_type = request.media_type.as_ref().map(MediaType::as_str);
    format!("{media_type:?} {:?} {:?} {docid:?} {:?}", request.title, request.description, request.tags).into_bytes()
}

/// Notes what each file that was read became.
fn remember(mut cache: StatCache, read: &[(String, Stamp, i64, [u8; 16])], done: &LearnReport) {
    let docids: rustc_hash::FxHashMap<&str, &DocId> = done
        .documents
        .iter()
        .filter(|document| document.outcome != Outcome::Removed)
        .filter_map(|document| Some((document.source.as_deref()?, document.docid.as_ref()?)))
        .collect();
    for (source, stamp, now, inputs) in read {
        if let Some(&docid) = docids.get(source.as_str()) {
            cache.note(source, Known { stamp: *stamp, docid: docid.clone(), inputs: *inputs }, *now);
        }
    }
    cache.save();
}
