//! `kb search --from`: a folder is searched through a database in the user's cache folder.
//!
//! **Invariant:** that database holds nothing that is not in the folder, so one that cannot be read is deleted and made
//! anew, once a call. Only what lies under the name that [`Databases::cached_for`] gives is ever deleted, and only by
//! the process that holds the lock file beside it.
//!
//! [`Databases::cached_for`]: crate::database::Databases::cached_for

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use kb_core::{LearnReport, Outcome, SearchReport};
use kb_store::{KnowledgeBase, LearnPaths, Search, StoreError};

use crate::commands::Context;
use crate::failure::Failure;
use crate::output::{Output, placed};

/// What a try to answer came to.
struct Answer {
    base: KnowledgeBase,
    learned: LearnReport,
    found: SearchReport,
}

/// Brings the database of a folder up to date and searches it.
pub(super) fn search(
    folder: &Path,
    request: &Search,
    context: &mut Context,
) -> Result<(KnowledgeBase, SearchReport), Failure> {
    let folder = folder.canonicalize().map_err(|error| Failure::io("read", folder, &error))?;
    if !folder.is_dir() {
        return Err(Failure::new("not-a-folder", format_args!("`{}` is not a folder", folder.display())));
    }
    let path = context.databases.cached_for(&folder)?;
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(|error| Failure::io("create", parent, &error))?;
    }
    let mut outcome = answer(&folder, &path, request, context);
    if is_unsound(&outcome) {
        outcome = answer_anew(&folder, &path, request, context)?;
    }
    let answer = outcome.map_err(|error| {
        let hint = format!("the index is only a cache: delete `{}` to have it made anew", path.display());
        if is_damage(error.code()) { Failure::from(error).with_hint(hint) } else { Failure::from(error) }
    })?;
    tell_failed(&answer.learned, &mut context.output);
    Ok((answer.base, answer.found))
}

fn answer(folder: &Path, path: &Path, request: &Search, context: &Context) -> Result<Answer, StoreError> {
    let (base, _) = context.databases.open_or_create(path)?;
    // What is in the cache mirrors the folder, so nothing is lost where most of it goes.
    let mirror = LearnPaths { prune: true, prune_all: true, ..LearnPaths::default() };
    let learned = base.learn_paths(&[folder.to_owned()], &mirror, &mut context.progress())?;
    let found = base.search(request)?;
    Ok(Answer { base, learned, found })
}

/// Tries again with the lock held, and on a new database if it is still needed then.
fn answer_anew(
    folder: &Path,
    path: &Path,
    request: &Search,
    context: &Context,
) -> Result<Result<Answer, StoreError>, Failure> {
    let lock_path: PathBuf = path.with_extension("lock");
    let lock = File::create(&lock_path).map_err(|error| Failure::io("create", &lock_path, &error))?;
    lock.lock().map_err(|error| Failure::io("lock", &lock_path, &error))?;
    // Another process may have made it anew while this one waited.
    let mut outcome = answer(folder, path, request, context);
    if is_unsound(&outcome) {
        // Nothing of the old one may be open where a system refuses to delete open files.
        drop(outcome);
        remove(path).map_err(|error| Failure::io("delete", path, &error))?;
        outcome = answer(folder, path, request, context);
    }
    Ok(outcome)
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Says whether the database, not the folder or the question, is what stands in the way.
fn is_unsound(outcome: &Result<Answer, StoreError>) -> bool {
    match outcome {
        Ok(answer) => {
            let mut failed = answer.learned.documents.iter().filter(|document| document.outcome == Outcome::Failed);
            answer.found.incomplete.is_some()
                || failed.any(|document| document.warnings.iter().any(|warning| is_damage(&warning.code)))
        }
        Err(error) => is_damage(error.code()),
    }
}

fn is_damage(code: &str) -> bool {
    matches!(code, "no-head" | "no-database" | "damaged" | "too-new")
}

fn tell_failed(report: &LearnReport, output: &mut Output) {
    for document in report.documents.iter().filter(|document| document.outcome == Outcome::Failed) {
        let name = document.source.as_deref().unwrap_or("-");
        for warning in &document.warnings {
            output.warning(format_args!("not searched: {}", placed(warning, name)));
        }
    }
}
