//! Project knowledge: one home for what the assistant of every project must know, as plain Markdown in Git.
//!
//! [`ProjectStore`] has one method an operation. A project has one free-form `main.md` and any number of knowledge
//! documents with chapters; each write is one commit of the paths that it wrote.
//!
//! **Invariant:** a write that is reported as done is durable and committed; one that fails leaves the files as they
//! were. Files are the truth: what a person, `git pull` or another process changed is what the next call reads.

mod activity;
mod document;
mod edit;
mod error;
mod git;
mod history;
mod home;
mod name;
mod registry;
mod search;
mod transaction;

use std::path::Path;
use std::sync::Mutex;

use kb_core::{ProjectEntry, ProjectList, ProjectMain};

pub use edit::{ChapterUpdate, NewKnowledge};
pub use error::ProjectError;

use self::git::{GixRepository, Repository};
use self::home::Home;
use self::name::check_project;
use self::registry::Registry;
use crate::knowledge_base::{milliseconds, time_text};
use crate::request::Options;

/// The result of an operation on project knowledge.
pub(crate) type Result<T> = std::result::Result<T, ProjectError>;

const REGISTRY: &str = "index.json";
const PROJECTS: &str = "projects";
const MAIN: &str = "main.md";
const KNOWLEDGE: &str = "knowledge";

/// The knowledge of all projects, in a home.
///
/// ```
/// use kb_store::{Options, ProjectStore};
///
/// # let folder = tempfile::tempdir().expect("a folder");
/// # let home = folder.path().join("home");
/// let store = ProjectStore::open(&home, Options::new(std::time::SystemTime::now))?;
/// store.update_main("My Project", "Run the tests before you commit.\n")?;
/// assert_eq!(store.main("My Project")?.content, "Run the tests before you commit.\n");
/// # Ok::<(), kb_store::ProjectError>(())
/// ```
#[derive(Debug)]
pub struct ProjectStore {
    home: Home,
    options: Options,
    indexes: Mutex<search::Indexes>,
    recorder: activity::Recorder,
}

impl ProjectStore {
    /// Opens a home, made first where there is none, as a Git repository.
    ///
    /// Of the options the folder for caches is not used: the home has its own.
    pub fn open(home: impl AsRef<Path>, options: Options) -> Result<Self> {
        let home = Home::open(home.as_ref())?;
        if !home.root().join(".git").exists() {
            GixRepository::create(home.root())?;
        }
        // Where it fails, as in a home that is read only, Git shows two files more.
        let _ = ignore_own_files(&home);
        Ok(Self { home, options, indexes: Mutex::default(), recorder: activity::Recorder::default() })
    }

    /// Returns the home, links resolved.
    pub fn home(&self) -> &Path {
        self.home.root()
    }

    /// Lists the projects by id.
    pub fn projects(&self) -> Result<ProjectList> {
        let registry = self.registry()?;
        let mut projects = Vec::new();
        for (id, folder) in registry.all() {
            projects.push(ProjectEntry {
                project_id: id.to_owned(),
                slug: folder.to_owned(),
                has_main: self.home.resolve(&main_path(folder)).is_ok_and(|path| path.is_file()),
                files: self.document_names(folder)?.len() as u64,
            });
        }
        Ok(ProjectList { count: projects.len() as u64, projects })
    }

    /// Returns the instructions of a project. One that is not there is no error, and is not made.
    pub fn main(&self, project_id: &str) -> Result<ProjectMain> {
        check_project(project_id)?;
        let registry = self.registry()?;
        let content = match registry.folder(project_id) {
            Some(folder) => self.home.read_text(&main_path(folder))?,
            None => None,
        };
        Ok(ProjectMain { exists: content.is_some(), content: content.unwrap_or_default() })
    }

    /// Returns the folder of a project that must be there.
    fn folder(&self, project_id: &str) -> Result<String> {
        check_project(project_id)?;
        let registry = self.registry()?;
        registry.folder(project_id).map(str::to_owned).ok_or_else(|| not_found(&registry, project_id))
    }

    /// Reads `index.json`, or puts it together again where it is damaged or missing.
    fn registry(&self) -> Result<Registry> {
        let names = self.home.names(PROJECTS, |name, _| !name.starts_with('.'))?;
        let read = self.home.read(REGISTRY)?.as_deref().and_then(Registry::read);
        let registry = match read {
            Some(registry) => registry,
            None if names.is_empty() => Registry::default(),
            None => self.committed_registry().unwrap_or_default(),
        };
        Ok(registry.with_folders(names, |name| self.is_project_folder(name)))
    }

    /// Says whether a folder that no id is listed for is one of a project all the same.
    fn is_project_folder(&self, name: &str) -> bool {
        let has_main = || self.home.resolve(&main_path(name)).is_ok_and(|path| path.is_file());
        let has_documents = || self.document_names(name).is_ok_and(|names| !names.is_empty());
        check_project(name).is_ok() && (has_main() || has_documents())
    }

    fn committed_registry(&self) -> Option<Registry> {
        let repository = GixRepository::open(self.home.root()).ok()?;
        let head = repository.head().ok()??;
        Registry::read(&repository.file(&head, REGISTRY).ok()??)
    }

    /// Returns the time as RFC 3339 in UTC, to the second.
    fn now(&self) -> String {
        time_text(milliseconds((self.options.clock)()))
    }
}

/// Has Git ignore caches and the log. A `.gitignore` that is there is a person's: then the repository's own list is
/// added to.
fn ignore_own_files(home: &Home) -> Result<()> {
    match home.read(".gitignore")?.as_deref() {
        None => return home.put(".gitignore", Some(home::IGNORED.as_bytes())),
        Some(list) if list == home::IGNORED.as_bytes() => return Ok(()),
        Some(_) => {}
    }
    let path = ".git/info/exclude";
    let mut list = home.read(path)?.unwrap_or_default();
    if !String::from_utf8_lossy(&list).contains(home::IGNORED) {
        list.extend_from_slice(home::IGNORED.as_bytes());
        home.put(path, Some(&list))?;
    }
    Ok(())
}

fn not_found(registry: &Registry, id: &str) -> ProjectError {
    let known: Vec<&str> = registry.all().into_iter().map(|(id, _)| id).collect();
    let near = crate::near::closest(&known, id).into_iter().map(|i| known[i].to_owned()).collect();
    ProjectError::ProjectNotFound { id: id.to_owned(), near }
}

fn project_path(folder: &str) -> String {
    format!("{PROJECTS}/{folder}")
}

fn main_path(folder: &str) -> String {
    format!("{PROJECTS}/{folder}/{MAIN}")
}

fn knowledge_path(folder: &str) -> String {
    format!("{PROJECTS}/{folder}/{KNOWLEDGE}")
}

fn document_path(folder: &str, file: &str) -> String {
    format!("{PROJECTS}/{folder}/{KNOWLEDGE}/{file}")
}
