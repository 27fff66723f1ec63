//! What a project was like: its commits, what they changed, and a file as of one.

use kb_core::{KnowledgeFile, ProjectChange, ProjectDone, ProjectHistory, ProjectRevision, Timestamp};

use super::edit::done;
use super::error::ProjectError;
use super::git::{FileChange, GixRepository, Repository, Revision};
use super::name::{document_file, document_stem};
use super::{MAIN, ProjectStore, Result, document_path, main_path, project_path};

impl ProjectStore {
    /// Lists the commits that changed a project, or one document of it (`main.md` names the instructions), the newest
    /// first.
    pub fn history(&self, project_id: &str, filename: Option<&str>, limit: usize) -> Result<ProjectHistory> {
        let folder = self.folder(project_id)?;
        let repository = GixRepository::open(self.home.root())?;
        let path = match filename {
            Some(filename) => self.path_in_history(&folder, filename)?,
            None => project_path(&folder),
        };
        let (revisions, truncated) = repository.history(&path, limit)?;
        if let (Some(filename), true) = (filename, revisions.is_empty()) {
            return Err(ProjectError::FileNotFound { name: filename.to_owned(), near: Vec::new() });
        }
        let revisions: Vec<ProjectRevision> =
            revisions.into_iter().map(|revision| listed(revision, &project_path(&folder))).collect();
        Ok(ProjectHistory { count: revisions.len() as u64, revisions, truncated })
    }

    /// Returns the text of a document as of a revision; `main.md` names the instructions.
    pub fn text_at(&self, project_id: &str, filename: &str, revision: &str) -> Result<String> {
        let folder = self.folder(project_id)?;
        let repository = GixRepository::open(self.home.root())?;
        let path = self.path_in_history(&folder, filename)?;
        let bytes = repository.file(&repository.find(revision)?, &path)?;
        let bytes = bytes.ok_or_else(|| ProjectError::FileNotFound { name: filename.to_owned(), near: Vec::new() })?;
        String::from_utf8(bytes).map_err(|error| {
            let offset = error.utf8_error().valid_up_to();
            crate::error::StoreError::NotUtf8 { name: path, offset }.into()
        })
    }

    /// Returns a knowledge document as of a revision.
    pub fn file_at(&self, project_id: &str, filename: &str, revision: &str) -> Result<KnowledgeFile> {
        let text = self.text_at(project_id, filename, revision)?;
        let path = self.path_in_history(&self.folder(project_id)?, filename)?;
        let file = path.rsplit('/').next().unwrap_or(filename);
        Ok(KnowledgeFile { success: true, document: kb_core::Knowledge::parse(&text).document(file) })
    }

    /// Makes a document, or the instructions (`main.md`), what it was as of a revision, as a commit of its own. What it
    /// is now stays in the history; one that was deleted is there again.
    pub fn restore(&self, project_id: &str, filename: &str, revision: &str) -> Result<ProjectDone> {
        let text = self.text_at(project_id, filename, revision)?;
        let committed = self.transact(project_id, false, |work| {
            let path = self.path_in_history(&work.folder, filename)?;
            let file = path.rsplit('/').next().unwrap_or(filename).to_owned();
            work.put(path, text.into_bytes());
            Ok(format!("Restored {file} as of {}", revision.get(..12).unwrap_or(revision)))
        })?;
        Ok(done(committed, &format!("'{filename}' restored successfully")))
    }

    /// Returns where a document is, or was before it was deleted.
    fn path_in_history(&self, folder: &str, filename: &str) -> Result<String> {
        if filename == MAIN {
            return Ok(main_path(folder));
        }
        let file = match self.known_document(folder, filename)? {
            Some(file) => file,
            None => document_file(document_stem(filename)?),
        };
        Ok(document_path(folder, &file))
    }
}

fn listed(revision: Revision, project: &str) -> ProjectRevision {
    let Revision { id, seconds, author, message, files } = revision;
    let change = |FileChange { path, change }: FileChange| ProjectChange {
        path: path.strip_prefix(project).map_or(&*path, |path| path.trim_start_matches('/')).to_owned(),
        change: change.as_str().to_owned(),
    };
    let date = Timestamp::new(seconds, 0).map_or_else(String::new, |time| time.to_string());
    ProjectRevision { revision: id, date, author, message, files: files.into_iter().map(change).collect() }
}
