//! Writing instructions and knowledge documents.

use kb_core::{Knowledge, KnowledgeFileCreated, NewChapter, ProjectDone, compose_knowledge, with_updated};

use super::error::ProjectError;
use super::git::Change;
use super::name::{document_file, document_stem};
use super::transaction::Work;
use super::{KNOWLEDGE, MAIN, ProjectStore, Result, document_path, main_path};

/// A knowledge document to be made.
#[derive(Debug, Clone, Default)]
pub struct NewKnowledge {
    /// The name of its file, of which a slug is made.
    pub filename: String,
    /// The title.
    pub title: String,
    /// What stands before the first chapter.
    pub introduction: String,
    /// At least one.
    pub keywords: Vec<String>,
    /// The chapters in order.
    pub chapters: Vec<NewChapter>,
}

/// Another text for a chapter.
#[derive(Debug, Clone, Default)]
pub struct ChapterUpdate {
    /// The title of the chapter, case included.
    pub chapter_title: String,
    /// All below its heading, or all below the summary.
    pub new_content: String,
    /// A first paragraph.
    pub new_summary: Option<String>,
}

impl ProjectStore {
    /// Replaces the instructions of a project, which is made if it is not there.
    pub fn update_main(&self, project_id: &str, content: &str) -> Result<ProjectDone> {
        let revision = self.transact(project_id, true, |work| {
            work.put(main_path(&work.folder), content.as_bytes().to_vec());
            Ok(format!("Updated {MAIN}"))
        })?;
        Ok(done(revision, "Project main instructions updated successfully"))
    }

    /// Makes a knowledge document, and its project if that is not there. Refuses to overwrite.
    pub fn create_file(&self, project_id: &str, new: &NewKnowledge) -> Result<KnowledgeFileCreated> {
        let stem = document_stem(&new.filename)?;
        if new.title.trim().is_empty() {
            return Err(ProjectError::MissingField { field: "title" });
        }
        if new.keywords.iter().all(|keyword| keyword.trim().is_empty()) {
            return Err(ProjectError::MissingField { field: "keywords" });
        }
        let keywords: Vec<String> = new.keywords.iter().filter(|word| !word.trim().is_empty()).cloned().collect();
        let text = compose_knowledge(&new.title, &keywords, &new.introduction, &new.chapters, &self.now())?;
        let file = document_file(stem);
        let revision = self.transact(project_id, true, |work| {
            if self.known_document(&work.folder, &new.filename)?.is_some() {
                return Err(ProjectError::FileExists { name: new.filename.clone() });
            }
            work.put(document_path(&work.folder, &file), text.into_bytes());
            Ok(format!("Created {file}"))
        })?;
        let message = "Knowledge document created successfully".to_owned();
        Ok(KnowledgeFileCreated { success: true, filepath: format!("{KNOWLEDGE}/{file}"), message, revision })
    }

    /// Replaces the text of a chapter. Nothing else changes but `updated` in the front matter.
    pub fn update_chapter(&self, project_id: &str, filename: &str, update: &ChapterUpdate) -> Result<ProjectDone> {
        let title = required("chapter_title", &update.chapter_title)?;
        let revision = self.edit_document(project_id, filename, |file, document| {
            let text = document.with_chapter(title, &update.new_content, update.new_summary.as_deref())?;
            Ok((text, format!("Updated chapter '{title}' in {file}")))
        })?;
        Ok(done(revision, &format!("Chapter '{title}' updated successfully")))
    }

    /// Adds a chapter after another, or at the end.
    pub fn add_chapter(
        &self,
        project_id: &str,
        filename: &str,
        chapter: &NewChapter,
        after: Option<&str>,
    ) -> Result<ProjectDone> {
        let title = required("chapter_title", &chapter.title)?;
        let revision = self.edit_document(project_id, filename, |file, document| {
            let text = document.with_new_chapter(title, &chapter.content, after)?;
            Ok((text, format!("Added chapter '{title}' to {file}")))
        })?;
        Ok(done(revision, &format!("Chapter '{title}' added successfully")))
    }

    /// Removes a chapter.
    pub fn remove_chapter(&self, project_id: &str, filename: &str, title: &str) -> Result<ProjectDone> {
        let title = required("chapter_title", title)?;
        let revision = self.edit_document(project_id, filename, |file, document| {
            Ok((document.without_chapter(title)?, format!("Removed chapter '{title}' from {file}")))
        })?;
        Ok(done(revision, &format!("Chapter '{title}' removed successfully")))
    }

    /// Replaces a document whole, if it still is `expected`: for an editor.
    pub fn replace_file(&self, project_id: &str, filename: &str, expected: &str, content: &str) -> Result<ProjectDone> {
        let revision = self.transact(project_id, false, |work| {
            let (file, text) = self.document(&work.folder, filename)?;
            if text != expected {
                let reason = "it was changed by another in the meantime; nothing was written".to_owned();
                return Err(ProjectError::Invalid { field: "filename", reason });
            }
            work.put(document_path(&work.folder, &file), content.as_bytes().to_vec());
            Ok(format!("Updated {file}"))
        })?;
        Ok(done(revision, &format!("Knowledge document '{filename}' updated successfully")))
    }

    /// Deletes a knowledge document; its history stays.
    pub fn delete_file(&self, project_id: &str, filename: &str) -> Result<ProjectDone> {
        let revision = self.transact(project_id, false, |work| {
            let file = self.find_document(&work.folder, filename)?;
            work.remove(document_path(&work.folder, &file));
            Ok(format!("Deleted {file}"))
        })?;
        Ok(done(revision, &format!("Knowledge document '{filename}' deleted successfully")))
    }

    /// Gives the file of a document another name.
    pub fn rename_file(&self, project_id: &str, filename: &str, new_name: &str) -> Result<KnowledgeFileCreated> {
        let new_file = document_file(document_stem(new_name)?);
        let revision = self.transact(project_id, false, |work| {
            let file = self.find_document(&work.folder, filename)?;
            let taken = self.known_document(&work.folder, new_name)?;
            if taken.is_some_and(|taken| taken != file) {
                return Err(ProjectError::FileExists { name: new_name.to_owned() });
            }
            let path = document_path(&work.folder, &file);
            let content = self.home.read(&path)?.unwrap_or_default();
            if file != new_file {
                work.remove(path);
                work.put(document_path(&work.folder, &new_file), content);
            }
            Ok(format!("Renamed {file} to {new_file}"))
        })?;
        let message = format!("Knowledge document '{filename}' renamed successfully");
        Ok(KnowledgeFileCreated { success: true, filepath: format!("{KNOWLEDGE}/{new_file}"), message, revision })
    }

    fn edit_document(
        &self,
        project_id: &str,
        filename: &str,
        edit: impl FnOnce(&str, &Knowledge<'_>) -> Result<(String, String)>,
    ) -> Result<Option<String>> {
        let now = self.now();
        self.transact(project_id, false, |work: &mut Work| {
            let (file, text) = self.document(&work.folder, filename)?;
            let (edited, operation) = edit(&file, &Knowledge::parse(&text))?;
            let edited = if edited == text { text } else { with_updated(&edited, &now) };
            work.changes.push(Change { path: document_path(&work.folder, &file), content: Some(edited.into_bytes()) });
            Ok(operation)
        })
    }
}

pub(super) fn done(revision: Option<String>, message: &str) -> ProjectDone {
    ProjectDone { success: true, message: message.to_owned(), revision }
}

fn required<'a>(field: &'static str, value: &'a str) -> Result<&'a str> {
    if value.trim().is_empty() { Err(ProjectError::MissingField { field }) } else { Ok(value) }
}
