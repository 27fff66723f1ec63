//! What is refused, and how clearly: folders that may only be read, newer formats, what is no base, a held lock.
//!
//! **Invariant:** a refusal changes nothing, names what it is about, and says whether to try again.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use kb_store::{Gc, KnowledgeBase, Options, Silent, StoreError, Target, Unlearn};

use crate::crash_fs::CrashFs;
use crate::support::{Base, id, options, text};

type Writer = (&'static str, fn(&KnowledgeBase) -> Result<(), StoreError>);

/// Every operation that writes.
const WRITERS: [Writer; 4] = [
    ("learn", |kb| kb.learn(&text("b", "# B\n")).map(drop)),
    ("unlearn", |kb| kb.unlearn(&Unlearn { targets: vec![Target::Document(id("a"))], ..Unlearn::default() }).map(drop)),
    ("gc", |kb| kb.gc(&Gc::default(), &mut Silent).map(drop)),
    ("rebuild", |kb| kb.rebuild(&mut Silent).map(drop)),
];

fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in std::fs::read_dir(folder).expect("readable") {
        let path = entry.expect("readable").path();
        if path.is_dir() {
            files.extend(self::files(&path));
        } else {
            files.insert(path.clone(), std::fs::read(path).expect("readable"));
        }
    }
    files
}

#[test]
fn a_handle_to_read_with_writes_nothing() {
    let base = Base::new();
    base.learn("a", "# A\n");
    let before = files(&base.database());
    let kb = KnowledgeBase::open_read_only(base.database(), options()).expect("it is there");
    for (name, write) in WRITERS {
        assert!(matches!(write(&kb), Err(StoreError::ReadOnly)), "{name}");
    }
    assert_eq!(kb.document_bytes(&id("a")).expect("readable"), b"# A\n");
    assert_eq!(kb.search(&kb_store::Search::new("a")).expect("answered").total, 1);
    assert!(kb.check(&mut Silent).expect("checked").ok);
    assert!(kb.status().is_ok());
    assert_eq!(files(&base.database()), before);
}

#[test]
fn a_folder_that_cannot_be_written_can_be_read_and_says_what_it_refuses() {
    let fs = CrashFs::default();
    fs.storage().create_directories().expect("created");
    let kb = KnowledgeBase::create_on(fs.storage(), options()).expect("created");
    kb.learn(&text("a", "# A\n")).expect("learned");
    let before = fs.summary();
    fs.refuse_writes();
    for (name, write) in WRITERS {
        match write(&kb) {
            Err(error @ StoreError::NotWritable { .. }) => {
                assert_eq!(error.code(), "read-only", "{name}");
                let StoreError::NotWritable { path, source } = error else { unreachable!("it was matched") };
                assert_eq!((path, source.kind()), (PathBuf::from("/kb/lock"), ErrorKind::PermissionDenied), "{name}");
            }
            other => panic!("{name}: {other:?}"),
        }
    }
    let kb = KnowledgeBase::open_on(fs.storage(), options()).expect("it opens");
    assert_eq!(kb.document_bytes(&id("a")).expect("readable"), b"# A\n");
    assert!(kb.check(&mut Silent).expect("checked").ok);
    assert_eq!(fs.summary(), before);
}

/// Writes into the head which version may read and which may write.
fn require(base: &Base, format: u32, reader: u32, writer: u32) {
    let path = base.database().join("head");
    let mut bytes = std::fs::read(&path).expect("readable");
    bytes.truncate(bytes.len() - 4);
    for (at, value) in [(8, format), (12, reader), (16, writer)] {
        bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }
    let checksum = crc32fast::hash(&bytes);
    bytes.extend_from_slice(&checksum.to_le_bytes());
    std::fs::write(path, bytes).expect("writable");
}

#[test]
fn what_a_newer_version_wrote_is_read_where_that_version_allows_it() {
    let base = Base::new();
    base.learn("a", "# A\n");
    require(&base, 7, 1, 2);
    let before = files(&base.database());
    let kb = KnowledgeBase::open(base.database(), options()).expect("it may be read");
    assert_eq!(kb.document_bytes(&id("a")).expect("readable"), b"# A\n");
    assert!(kb.check(&mut Silent).expect("checked").ok);
    for (name, write) in WRITERS {
        assert!(matches!(write(&kb), Err(StoreError::TooNew { .. })), "{name}");
    }
    let mut after = files(&base.database());
    after.insert(base.database().join("lock"), before[&base.database().join("lock")].clone());
    assert_eq!(after, before);
}

#[test]
fn a_base_of_a_format_that_cannot_be_read_is_left_alone() {
    let base = Base::new();
    base.learn("a", "# A\n");
    require(&base, 7, 2, 2);
    let before = files(&base.database());
    let too_new = |result: Result<KnowledgeBase, StoreError>| match result {
        Err(error @ StoreError::TooNew { found: 7, supported: 1, .. }) => error.to_string(),
        other => panic!("{other:?}"),
    };
    let message = too_new(KnowledgeBase::open(base.database(), options()));
    let path = base.database().display().to_string();
    assert_eq!(message, format!("the database at `{path}` has format 7; this version reads up to 1"));
    too_new(KnowledgeBase::open_read_only(base.database(), options()));
    too_new(KnowledgeBase::recover(base.database(), options()));
    assert!(matches!(KnowledgeBase::create(base.database(), options()), Err(StoreError::CannotCreate { .. })));
    for (name, write) in WRITERS {
        assert!(matches!(write(&base.kb), Err(StoreError::TooNew { .. })), "{name}");
    }
    let mut after = files(&base.database());
    after.insert(base.database().join("lock"), before[&base.database().join("lock")].clone());
    assert_eq!(after, before);
}

#[test]
fn a_base_is_created_only_where_nothing_is() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let refused = |path: &Path| match KnowledgeBase::create(path, options()) {
        Err(StoreError::CannotCreate { path: named, reason }) if named == path => reason,
        other => panic!("{other:?}"),
    };
    let file = folder.path().join("file");
    std::fs::write(&file, "x").expect("writable");
    assert_eq!(refused(&file), "is a file");
    assert_eq!(refused(folder.path()), "is a folder with files in it");
    let base = Base::new();
    base.learn("a", "# A\n");
    assert_eq!(refused(&base.database()), "is a database already");
    assert_eq!(base.document("a").as_deref(), Some("# A\n"));
    let deep = folder.path().join("no/such/parent");
    match KnowledgeBase::create(&deep, options()) {
        Err(StoreError::Io { op: "create", path, source }) => {
            assert_eq!((path, source.kind()), (deep, ErrorKind::NotFound));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(files(folder.path()).len(), 1);
    for nothing in [folder.path().join("none"), file] {
        assert!(KnowledgeBase::open(&nothing, options()).is_err());
        assert!(KnowledgeBase::recover(&nothing, options()).is_err());
    }
    assert_eq!(files(folder.path()).len(), 1, "opening and recovering create nothing");
}

#[test]
fn of_ten_that_create_a_base_at_once_one_does() {
    for _ in 0..5 {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let path = folder.path().join(".kbdb");
        let start = Arc::new(Barrier::new(10));
        let threads: Vec<_> = (0..10)
            .map(|_| {
                let (path, start) = (path.clone(), Arc::clone(&start));
                std::thread::spawn(move || {
                    start.wait();
                    KnowledgeBase::create(path, options())
                })
            })
            .collect();
        let mut created = Vec::new();
        for thread in threads {
            match thread.join().expect("none panics") {
                Ok(kb) => created.push(kb),
                Err(StoreError::CannotCreate { .. } | StoreError::Busy { .. }) => {}
                Err(error) => panic!("{error:?}"),
            }
        }
        assert_eq!(created.len(), 1);
        created[0].learn(&text("a", "# A\n")).expect("learned");
        assert!(created[0].check(&mut Silent).expect("checked").ok);
    }
}

fn hurried() -> Options {
    Options { wait: Duration::from_millis(50), ..options() }
}

#[test]
fn a_held_lock_says_who_holds_it_and_reading_goes_on() {
    let base = Base::new();
    base.learn("a", "# A\n");
    let lock = base.database().join("lock");
    let held = OpenOptions::new().write(true).open(&lock).expect("a commit leaves it");
    held.lock().expect("nobody else has it");
    let pid = std::process::id();
    std::fs::write(&lock, format!("{pid}\t2030-03-17T17:46:40Z\tkb learn docs\n")).expect("writable");
    let kb = KnowledgeBase::open(base.database(), hurried()).expect("opening needs no lock");
    for (name, write) in WRITERS {
        let started = Instant::now();
        match write(&kb) {
            Err(error @ StoreError::Busy { .. }) => {
                assert!(error.is_retryable());
                let message =
                    format!("the database is busy: process {pid} (`kb learn docs`) since 2030-03-17T17:46:40Z");
                assert_eq!(error.to_string(), message, "{name}");
            }
            other => panic!("{name}: {other:?}"),
        }
        assert!(started.elapsed() >= Duration::from_millis(50) && started.elapsed() < Duration::from_secs(10));
    }
    assert_eq!(kb.document_bytes(&id("a")).expect("readable"), b"# A\n");
    assert_eq!(kb.search(&kb_store::Search::new("a")).expect("answered").total, 1);
    drop(held);
    kb.learn(&text("b", "# B\n")).expect("the lock is free");
    let note = std::fs::read_to_string(&lock).expect("readable");
    assert!(note.starts_with(&format!("{}\t", std::process::id())), "{note}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_dead_process_is_not_named_as_the_holder_of_a_lock() {
    let base = Base::new();
    base.learn("a", "# A\n");
    let lock = base.database().join("lock");
    let held = OpenOptions::new().write(true).open(&lock).expect("a commit leaves it");
    held.lock().expect("nobody else has it");
    // No process of Linux has this number.
    std::fs::write(&lock, format!("{}\t2030-03-17T17:46:40Z\tkb learn docs\n", u32::MAX)).expect("writable");
    let kb = KnowledgeBase::open(base.database(), hurried()).expect("opening needs no lock");
    let error = kb.learn(&text("b", "# B\n")).expect_err("the lock is held");
    assert_eq!(error.to_string(), "the database is busy: another process is writing");
    let report = KnowledgeBase::doctor(base.database(), options()).expect("it looks");
    assert_eq!((report.lock.held, report.lock.pid), (true, None));
}

#[test]
fn what_lies_below_a_file_is_no_database_and_cannot_become_one() {
    let base = Base::new();
    let below = base.write("file", "text").join("below");
    for path in [below.parent().expect("it has one").to_owned(), below] {
        let opened = KnowledgeBase::open(&path, options());
        assert!(matches!(opened, Err(StoreError::NoDatabase { .. })), "{opened:?}");
        let created = KnowledgeBase::create(&path, options());
        assert!(matches!(created, Err(StoreError::CannotCreate { .. })), "{created:?}");
    }
}

/// Where this is set, the test process holds the lock of that database until it is killed.
const HOLD: &str = "KB_STORE_TEST_HOLD";

#[test]
fn a_lock_dies_with_the_process_that_held_it() {
    if let Some(path) = std::env::var_os(HOLD) {
        let file = File::open(&path).expect("a commit leaves a lock");
        file.lock().expect("nobody else has it");
        std::fs::write(Path::new(&path).with_file_name("tmp-held"), "").expect("writable");
        loop {
            std::thread::park();
        }
    }
    let base = Base::new();
    base.learn("a", "# A\n");
    let mut holder = Command::new(std::env::current_exe().expect("this test has a file"))
        .args(["refusals::a_lock_dies_with_the_process_that_held_it", "--exact", "--nocapture"])
        .env(HOLD, base.database().join("lock"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    let sign = base.database().join("tmp-held");
    while !sign.exists() {
        assert_eq!(holder.try_wait().expect("it is ours"), None, "the holder has ended");
        std::thread::yield_now();
    }
    let kb = KnowledgeBase::open(base.database(), hurried()).expect("opening needs no lock");
    assert!(matches!(kb.learn(&text("b", "# B\n")), Err(StoreError::Busy { .. })));
    holder.kill().expect("it is ours");
    holder.wait().expect("it is ours");
    kb.learn(&text("b", "# B\n")).expect("the lock is free");
    kb.gc(&Gc::default(), &mut Silent).expect("collected");
    assert!(!sign.exists(), "what a killed writer leaves is collected");
}
