//! Several processes on one home, and processes that are killed. A child is this test program itself, told by the
//! environment what to do.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use kb_store::ProjectStore;

use crate::support::{TestHome, git, knowledge, options};

const HOME: &str = "KB_TEST_PROJECT_HOME";
const PREFIX: &str = "KB_TEST_PROJECT_PREFIX";

/// Does nothing unless it is the child of another test: then it makes projects, or documents without end.
#[test]
fn child() {
    let (Some(home), Ok(prefix)) = (std::env::var_os(HOME), std::env::var(PREFIX)) else { return };
    let store = ProjectStore::open(PathBuf::from(home), options()).expect("opened");
    if prefix == "endless" {
        for n in 0.. {
            let _ = store.create_file("p", &knowledge(&format!("{}-{n}", std::process::id())));
        }
    }
    for n in 0..20 {
        store.update_main(&format!("{prefix} {n}"), &format!("of {prefix} {n}")).expect("written");
    }
}

fn spawn(home: &Path, prefix: &str) -> Child {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args(["--exact", "processes::child"]).env(HOME, home).env(PREFIX, prefix);
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("started")
}

#[test]
fn two_processes_make_forty_projects() {
    let folder = tempfile::tempdir().expect("a folder");
    let home = folder.path().join("home");
    let children = ["first", "second"].map(|prefix| spawn(&home, prefix));
    for mut child in children {
        assert!(child.wait().expect("ended").success());
    }
    let store = ProjectStore::open(&home, options()).expect("opened");
    assert_eq!(store.projects().expect("listed").count, 40);
    for prefix in ["first", "second"] {
        for n in 0..20 {
            let id = format!("{prefix} {n}");
            assert_eq!(store.main(&id).expect("read").content, format!("of {id}"));
        }
    }
    assert!(git(&home, &["fsck", "--strict"]).status.success());
    let log = git(&home, &["log", "--format=%s"]);
    assert_eq!(String::from_utf8_lossy(&log.stdout).lines().count(), 40);
}

#[test]
fn a_process_that_is_killed_leaves_the_old_state_or_the_new() {
    let home = TestHome::new();
    home.store.update_main("p", "x").expect("written");
    let mut seen = 0;
    for round in 0..6 {
        let mut child = spawn(&home.path(), "endless");
        // It is killed when it has written a few more, wherever it then is.
        let documents = || home.store.files("p").expect("listed").files;
        while documents().len() < seen + 2 + round {
            assert_eq!(child.try_wait().expect("asked"), None, "it goes on until it is killed");
        }
        child.kill().expect("killed");
        child.wait().expect("ended");
        let after = documents();
        assert!(after.iter().all(|entry| entry.error.is_none() && entry.title.starts_with("About")), "{after:?}");
        seen = after.len();
        home.store.update_main("p", &format!("round {round}")).expect("nothing of the dead is in the way");
        home.git(&["fsck", "--strict"]);
        // At most the last document of the dead is there without its commit.
        let left = home.git(&["status", "--porcelain"]);
        assert!(left.lines().all(|line| line.starts_with("?? projects/p/knowledge/")), "{left}");
        home.git(&["add", "projects"]);
        home.git(&["commit", "--quiet", "--allow-empty", "-m", "by hand"]);
    }
    home.is_clean();
}
