//! A write: one lock, files put in place, one commit.
//!
//! **Invariant:** files are read and written under the lock of the home, so two writers never overwrite each other. A
//! commit that fails puts the files back. What a person wrote and did not commit is committed before it is replaced.

use super::error::ProjectError;
use super::git::{Change, GixRepository, Repository};
use super::home::{self, lock};
use super::name::check_project;
use super::{ProjectStore, REGISTRY, Result, not_found};
use crate::error::LockHolder;
use crate::knowledge_base::milliseconds;
use crate::storage::FsLock;

/// What a write is to change.
#[derive(Debug, Default)]
pub(super) struct Work {
    /// The folder of the project.
    pub(super) folder: String,
    pub(super) changes: Vec<Change>,
}

impl Work {
    pub(super) fn put(&mut self, path: String, content: Vec<u8>) {
        self.changes.push(Change { path, content: Some(content) });
    }

    pub(super) fn remove(&mut self, path: String) {
        self.changes.push(Change { path, content: None });
    }
}

impl ProjectStore {
    /// Becomes the one writer of this home.
    pub(super) fn lock(&self) -> Result<Box<dyn FsLock>> {
        let git_dir = self.home.root().join(".git");
        // Of a linked working tree `.git` is a file; then its neighbour is the lock.
        let path = if git_dir.is_dir() { git_dir.join("kb.lock") } else { self.home.root().join(".kb.lock") };
        let holder = LockHolder { pid: std::process::id(), command: self.options.command.clone(), since: self.now() };
        lock(&path, self.options.wait, &holder)
    }

    /// Runs a write on a project: `stage` says what to change and what the commit's message says of it. Returns the
    /// commit, or none where nothing changed.
    pub(super) fn transact(
        &self,
        project_id: &str,
        create: bool,
        stage: impl FnOnce(&mut Work) -> Result<String>,
    ) -> Result<Option<String>> {
        check_project(project_id)?;
        let _lock = self.lock()?;
        let mut registry = self.registry()?;
        let folder = match registry.folder(project_id) {
            Some(folder) => folder.to_owned(),
            None if create => registry.add(project_id),
            None => return Err(not_found(&registry, project_id)),
        };
        let repository = GixRepository::open(self.home.root())?;
        repository.prepare()?;
        let mut work = Work { folder, changes: Vec::new() };
        let operation = stage(&mut work)?;
        registry.adopt();
        work.put(REGISTRY.to_owned(), registry.to_bytes());
        let message = format!("Update knowledge for {}: {operation}", registry.spelling(project_id));
        self.apply(&repository, work.changes, &message)
    }

    /// Puts files in place and commits them.
    pub(super) fn apply(
        &self,
        repository: &dyn Repository,
        mut changes: Vec<Change>,
        message: &str,
    ) -> Result<Option<String>> {
        if self.home.read(".gitignore")?.as_deref() == Some(home::IGNORED.as_bytes()) {
            changes.push(Change { path: ".gitignore".to_owned(), content: Some(home::IGNORED.into()) });
        }
        let seconds = milliseconds((self.options.clock)()).div_euclid(1000);
        let unsaved = repository.outstanding(self.replaced_by(&changes)?)?;
        if !unsaved.is_empty() {
            let paths: Vec<&str> = unsaved.iter().map(|change| change.path.as_str()).collect();
            let message = format!("Keep what was edited by hand: {}", paths.join(", "));
            repository.commit(&unsaved, &message, seconds, self.options.wait)?;
        }
        let mut replaced = Vec::new();
        let result = self.put_all(&changes, &mut replaced).and_then(|()| {
            let outstanding = repository.outstanding(changes)?;
            if outstanding.is_empty() {
                return Ok(None);
            }
            repository.commit(&outstanding, message, seconds, self.options.wait).map(Some)
        });
        match result {
            Ok(revision) => Ok(revision),
            Err(error) => Err(self.put_back(replaced, error)),
        }
    }

    /// Returns the texts that these changes replace, as they are now. The list of projects is none: it is made anew from
    /// what is there.
    fn replaced_by(&self, changes: &[Change]) -> Result<Vec<Change>> {
        let mut now = Vec::new();
        for change in changes.iter().filter(|change| change.path != REGISTRY) {
            let content = self.home.read(&change.path)?;
            if content.is_some() && content != change.content {
                now.push(Change { path: change.path.clone(), content });
            }
        }
        Ok(now)
    }

    fn put_all(&self, changes: &[Change], replaced: &mut Vec<Change>) -> Result<()> {
        for change in changes {
            let old = self.home.read(&change.path)?;
            if old != change.content {
                replaced.push(Change { path: change.path.clone(), content: old });
                self.home.put(&change.path, change.content.as_deref())?;
            }
        }
        Ok(())
    }

    /// Puts back what was there before a write that failed.
    fn put_back(&self, replaced: Vec<Change>, error: ProjectError) -> ProjectError {
        for change in replaced.into_iter().rev() {
            // What cannot be put back is a file with the new text, which the next write commits.
            let _ = self.home.put(&change.path, change.content.as_deref());
            if change.content.is_none() {
                self.home.remove_empty_folders(&change.path);
            }
        }
        error
    }
}
