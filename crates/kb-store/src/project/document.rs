//! Reading knowledge documents.

use kb_core::{Chapter, ChapterList, Knowledge, KnowledgeFile, KnowledgeFileEntry, KnowledgeFiles};

use super::error::ProjectError;
use super::name::{document_file, document_stem};
use super::{ProjectStore, Result, document_path, knowledge_path};
use crate::error::StoreError;

impl ProjectStore {
    /// Returns a knowledge document.
    pub fn file(&self, project_id: &str, filename: &str) -> Result<KnowledgeFile> {
        let folder = self.folder(project_id)?;
        let (file, text) = self.document(&folder, filename)?;
        Ok(KnowledgeFile { success: true, document: Knowledge::parse(&text).document(&file) })
    }

    /// Returns the one chapter of this title of a knowledge document.
    pub fn chapter(&self, project_id: &str, filename: &str, title: &str) -> Result<Chapter> {
        let folder = self.folder(project_id)?;
        let (_, text) = self.document(&folder, filename)?;
        Ok(Knowledge::parse(&text).chapter(title)?)
    }

    /// Lists the knowledge documents of a project by name. One that cannot be read is listed with what is wrong.
    pub fn files(&self, project_id: &str) -> Result<KnowledgeFiles> {
        let folder = self.folder(project_id)?;
        let mut files = Vec::new();
        for name in self.document_names(&folder)? {
            match self.home.read_text(&document_path(&folder, &name)) {
                Ok(Some(text)) => files.push(Knowledge::parse(&text).entry(&name)),
                Ok(None) => {}
                Err(error) => files.push(unreadable(&name, &error)),
            }
        }
        Ok(KnowledgeFiles { count: files.len() as u64, files })
    }

    /// Lists the chapters of a document.
    pub fn chapters(&self, project_id: &str, filename: &str) -> Result<ChapterList> {
        let folder = self.folder(project_id)?;
        let (filename, text) = self.document(&folder, filename)?;
        let read = Knowledge::parse(&text);
        let (title, chapters) = (read.entry(&filename).title, read.chapter_entries());
        Ok(ChapterList { filename, title, count: chapters.len() as u64, chapters })
    }

    /// Returns the names of the documents in a project's folder, in order.
    pub(super) fn document_names(&self, folder: &str) -> Result<Vec<String>> {
        self.home.names(&knowledge_path(folder), |name, kind| {
            kind.is_file() && !name.starts_with('.') && name.strip_suffix(".md").is_some_and(|stem| !stem.is_empty())
        })
    }

    /// Finds a document by the name it was given, or its slug, with or without `.md`, and reads it.
    pub(super) fn document(&self, folder: &str, filename: &str) -> Result<(String, String)> {
        let file = self.find_document(folder, filename)?;
        let text = self.home.read_text(&document_path(folder, &file))?;
        text.map(|text| (file, text)).ok_or_else(|| self.no_document(folder, filename))
    }

    /// Finds the file of a document that must be there.
    pub(super) fn find_document(&self, folder: &str, filename: &str) -> Result<String> {
        match self.known_document(folder, filename)? {
            Some(file) => Ok(file),
            None => Err(self.no_document(folder, filename)),
        }
    }

    /// Finds the file of a document. A file that was named by hand is known by that name as it is.
    pub(super) fn known_document(&self, folder: &str, filename: &str) -> Result<Option<String>> {
        let stem = document_stem(filename)?;
        for file in [format!("{stem}.md"), document_file(stem)] {
            let is_hidden = file.starts_with('.');
            if !is_hidden && self.home.resolve(&document_path(folder, &file))?.is_file() {
                return Ok(Some(file));
            }
        }
        Ok(None)
    }

    fn no_document(&self, folder: &str, filename: &str) -> ProjectError {
        let names = self.document_names(folder).unwrap_or_default();
        let known: Vec<&str> = names.iter().map(String::as_str).collect();
        let near = crate::near::closest(&known, filename).into_iter().map(|i| known[i].to_owned()).collect();
        ProjectError::FileNotFound { name: filename.to_owned(), near }
    }
}

/// Returns the line of a list for a file that is no text, or cannot be opened.
fn unreadable(name: &str, error: &ProjectError) -> KnowledgeFileEntry {
    let mut entry = Knowledge::parse("").entry(name);
    entry.error = Some(match error {
        ProjectError::Store(StoreError::NotUtf8 { offset, .. }) => {
            format!("it is not UTF-8 text: the first bad byte is at {offset}")
        }
        other => other.to_string(),
    });
    entry
}
