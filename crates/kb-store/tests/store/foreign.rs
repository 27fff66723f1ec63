//! A database that came with somebody else's folder: links and pipes where its files should be.
//!
//! **Invariant:** nothing outside the database directory is read, written or deleted through a link in it, and nothing
//! waits for a pipe.

use std::os::unix::fs::symlink;
use std::path::Path;

use kb_store::{Gc, KnowledgeBase, Silent, StoreError};

use crate::support::{Base, options, text};

const VICTIM: &[u8] = b"precious\n";

/// Every operation that touches files, one after another; returns the errors.
fn everything(database: &Path) -> Vec<StoreError> {
    let kb = match KnowledgeBase::open(database, options()) {
        Ok(kb) => kb,
        Err(error) => return vec![error],
    };
    let outcomes = [
        kb.learn(&text("b", "# B\n")).map(drop),
        kb.gc(&Gc::default(), &mut Silent).map(drop),
        kb.rebuild(&mut Silent).map(drop),
        kb.status().map(drop),
    ];
    outcomes.into_iter().filter_map(Result::err).collect()
}

fn refuses(errors: &[StoreError], name: &str) {
    assert!(!errors.is_empty(), "{name}: nothing was refused");
    for error in errors {
        let StoreError::Io { path, source, .. } = error else { panic!("{name}: {error:?}") };
        assert!(path.to_string_lossy().contains(name), "{name}: {}", path.display());
        assert_eq!(source.to_string(), "it is a link or a device, not a part of the base", "{name}");
    }
}

#[test]
fn a_linked_file_of_a_database_is_refused_and_what_it_leads_to_is_left_alone() {
    for name in ["lock", "head", "kb.toml"] {
        let base = Base::new();
        base.learn("a", "# A\n");
        let victim = base.folder().join("victim");
        std::fs::write(&victim, VICTIM).expect("writable");
        let file = base.database().join(name);
        let _ = std::fs::remove_file(&file);
        symlink(&victim, &file).expect("a link");
        let errors = everything(&base.database());
        refuses(&errors, name);
        assert_eq!(std::fs::read(&victim).expect("it is there"), VICTIM, "{name}");
    }
}

#[test]
fn a_linked_folder_of_a_database_is_refused_and_no_file_in_it_is_deleted() {
    for name in ["packs", "index"] {
        let base = Base::new();
        base.learn("a", "# A\n");
        let elsewhere = base.folder().join("elsewhere");
        let folder = base.database().join(name);
        std::fs::rename(&folder, &elsewhere).expect("it was there");
        std::fs::write(elsewhere.join("tmp-report"), VICTIM).expect("writable");
        symlink(&elsewhere, &folder).expect("a link");
        refuses(&everything(&base.database()), name);
        assert_eq!(std::fs::read(elsewhere.join("tmp-report")).expect("it is there"), VICTIM, "{name}");
    }
}

#[test]
fn a_pipe_in_place_of_a_file_keeps_nobody_waiting() {
    for name in ["lock", "head"] {
        let base = Base::new();
        base.learn("a", "# A\n");
        let file = base.database().join(name);
        std::fs::remove_file(&file).expect("it was there");
        let made = std::process::Command::new("mkfifo").arg(&file).status().expect("mkfifo is there");
        assert!(made.success());
        refuses(&everything(&base.database()), name);
    }
}

#[test]
fn a_database_directory_that_is_a_link_itself_is_one() {
    let base = Base::new();
    base.learn("a", "# A\n");
    let link = base.folder().join("link");
    symlink(base.database(), &link).expect("a link");
    assert!(everything(&link).is_empty());
}
