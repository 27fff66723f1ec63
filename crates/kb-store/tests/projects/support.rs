//! A home in a folder that goes away, with a clock that each test moves by itself.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use kb_core::NewChapter;
use kb_store::{ChapterUpdate, NewKnowledge, Options, ProjectStore};

thread_local! {
    static SECONDS: Cell<u64> = const { Cell::new(1_900_000_000) };
}

fn clock() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(SECONDS.get())
}

/// Lets time pass.
pub(crate) fn pass(seconds: u64) {
    SECONDS.set(SECONDS.get() + seconds);
}

pub(crate) fn options() -> Options {
    Options { wait: Duration::from_mins(2), ..Options::new(clock) }
}

pub(crate) struct TestHome {
    pub(crate) store: ProjectStore,
    folder: tempfile::TempDir,
}

impl TestHome {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let store = ProjectStore::open(folder.path().join("home"), options()).expect("an empty folder");
        Self { store, folder }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().expect("it is in the home")).expect("writable");
        std::fs::write(path, content).expect("writable");
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path().join(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
    }

    /// Makes a document with two chapters.
    pub(crate) fn create(&self, project: &str, name: &str) {
        self.store.create_file(project, &knowledge(name)).expect("created");
    }

    pub(crate) fn update(&self, project: &str, name: &str, chapter: &str, content: &str) -> Option<String> {
        self.store.update_chapter(project, name, &update(chapter, content)).expect("updated").revision
    }

    /// Runs the `git` program in the home, as a person would.
    pub(crate) fn git(&self, args: &[&str]) -> String {
        let output = git(&self.path(), args);
        assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    }

    /// Subjects of all commits, the newest first.
    pub(crate) fn log(&self) -> Vec<String> {
        self.git(&["log", "--format=%s"]).lines().map(str::to_owned).collect()
    }

    /// What Git says of the repository and the working tree: nothing is wrong, nothing is left.
    pub(crate) fn is_clean(&self) {
        self.git(&["fsck", "--strict"]);
        assert_eq!(self.git(&["status", "--porcelain"]), "");
    }
}

pub(crate) fn git(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new("git");
    command.current_dir(folder).args(["-c", "user.name=Ana", "-c", "user.email=ana@example.org"]).args(args);
    for (key, _) in std::env::vars_os() {
        if key.to_string_lossy().starts_with("GIT_") {
            command.env_remove(key);
        }
    }
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
    command.output().expect("the git program")
}

pub(crate) fn knowledge(name: &str) -> NewKnowledge {
    NewKnowledge {
        filename: name.to_owned(),
        title: format!("About {name}"),
        introduction: "An introduction.".to_owned(),
        keywords: vec!["first".to_owned(), "second".to_owned()],
        chapters: vec![chapter("One", "The first text."), chapter("Two", "The second text.")],
    }
}

pub(crate) fn chapter(title: &str, content: &str) -> NewChapter {
    NewChapter { title: title.to_owned(), content: content.to_owned() }
}

pub(crate) fn update(title: &str, content: &str) -> ChapterUpdate {
    ChapterUpdate { chapter_title: title.to_owned(), new_content: content.to_owned(), new_summary: None }
}
