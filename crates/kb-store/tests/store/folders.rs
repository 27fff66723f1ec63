//! Folders as they are found in the world: odd names, links, rules of what to ignore, files that cannot be read.
//!
//! **Invariant:** sources are only read; a file costs itself alone; what cannot be seen is not taken for deleted.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use kb_core::{LearnReport, Outcome};
use kb_store::{KnowledgeBase, LearnPaths, ListFilter, Options, Silent, StoreError, Target, Unlearn};

use crate::support::{Base, id, options};

fn prune() -> LearnPaths {
    LearnPaths { prune: true, ..LearnPaths::default() }
}

fn learn(base: &Base, folder: &str, request: &LearnPaths) -> LearnReport {
    base.kb.learn_paths(&[base.folder().join(folder)], request, &mut Silent).expect("the folder is there")
}

/// Sources of all documents, in order.
fn sources(base: &Base) -> Vec<String> {
    let documents = base.kb.list(&ListFilter::default()).expect("listed").documents;
    let mut sources: Vec<String> = documents.into_iter().filter_map(|document| document.source).collect();
    sources.sort();
    sources
}

#[test]
fn a_bad_file_among_a_thousand_costs_itself_alone_and_is_named() {
    let base = Base::new();
    for i in 0..1000 {
        base.write(&format!("docs/{}/n{i}.md", i % 7), &format!("# Note {i}\n\ntext\n"));
    }
    std::fs::write(base.folder().join("docs/3/bad.md"), b"# Bad\n\xffno text\n").expect("writable");
    let report = learn(&base, "docs", &LearnPaths::default());
    assert_eq!((report.added, report.failed, report.documents.len()), (1000, 1, 1001));
    let failed: Vec<_> = report.documents.iter().filter(|d| d.outcome == Outcome::Failed).collect();
    assert_eq!(failed[0].source.as_deref(), Some("docs/3/bad.md"));
    assert_eq!(failed[0].warnings[0].code, "not-utf8");
    assert_eq!(failed[0].warnings[0].message, "`docs/3/bad.md` is not UTF-8 text: the first bad byte is at 6");
    assert_eq!(base.kb.status().expect("status").documents, 1000);
}

/// Everything that can be told of a tree without reading times of access.
fn fingerprint(folder: &Path) -> BTreeMap<PathBuf, (Vec<u8>, u32, i64, i64, u64)> {
    let mut found = BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder).expect("readable") {
            let path = entry.expect("readable").path();
            let about = path.symlink_metadata().expect("it is there");
            let content = if about.is_file() { std::fs::read(&path).expect("readable") } else { Vec::new() };
            found.insert(path.clone(), (content, about.mode(), about.mtime(), about.mtime_nsec(), about.ino()));
            if about.is_dir() {
                open.push(path);
            }
        }
    }
    found
}

#[test]
fn sources_are_never_modified() {
    let base = Base::new();
    base.write("docs/a.md", "---\ntitle: \"open quote\nowner: ana\n---\n\n# A\n\nx");
    base.write("docs/b.md", "\u{feff}# B\r\n\r\ny\r\n");
    base.write("docs/deep/er/c.txt", "c\0c");
    base.write("docs/.gitignore", "no.md\n");
    base.write("docs/no.md", "no");
    std::fs::write(base.folder().join("docs/bad.md"), b"\xff").expect("writable");
    let before = fingerprint(&base.folder().join("docs"));
    for request in [
        LearnPaths { dry_run: true, ..prune() },
        prune(),
        LearnPaths { again: true, tags: vec!["t".to_owned()], ..prune() },
    ] {
        let report = learn(&base, "docs", &request);
        assert_eq!((report.documents.len(), report.failed), (4, 1));
    }
    base.unlearn(Target::Source("docs".to_owned()));
    base.kb.check(&mut Silent).expect("checked");
    assert_eq!(fingerprint(&base.folder().join("docs")), before);
    assert_eq!(sources(&base), [""; 0]);
}

#[test]
fn odd_names_are_kept_as_they_are_and_make_documents_of_their_own() {
    let base = Base::new();
    let long = format!("docs/{}/{}/{}.md", "d".repeat(200), "e".repeat(200), "f".repeat(250));
    let names = [
        "docs/# 50% [draft] (v2) & more?.md",
        "docs/#.md",
        "docs/%2e%2e.md",
        "docs/-rf.md",
        "docs/CON.md",
        "docs/C:\\a\\b.md",
        "docs/a\nb.md",
        "docs/dot..md",
        "docs/nul.tar.md",
        "docs/re\u{301}sume\u{301}.md",
        "docs/r\u{e9}sum\u{e9}.md",
        "docs/\u{1112}\u{1161}\u{11ab}.md",
        "docs/港口.md",
        "docs/порт.md",
        "docs/🚢.md",
        "docs/\u{202e}dm.md",
        "docs/'; --.md",
        "docs/ .md",
        &long,
    ];
    for name in names {
        base.write(name, &format!("# Of {name:?}\n"));
    }
    let report = learn(&base, "docs", &LearnPaths::default());
    assert_eq!((report.added, report.failed), (names.len(), 0), "{report:?}");
    let mut expected: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    expected.sort();
    assert_eq!(sources(&base), expected);
    for document in &report.documents {
        let (docid, source) = (document.docid.as_ref().expect("added"), document.source.as_ref().expect("a file"));
        assert_eq!(base.document(docid.as_str()), Some(format!("# Of {source:?}\n")), "{docid}");
        let listed = base.kb.list(&ListFilter { source: Some(source.clone()), ..ListFilter::default() });
        assert_eq!(listed.expect("listed").documents.len(), 1, "{source:?}");
    }
    let again = learn(&base, "docs", &prune());
    assert_eq!((again.unchanged, again.generation), (names.len(), report.generation));
}

#[test]
fn a_name_that_is_not_utf8_is_refused_by_name_and_mixed_up_with_no_other() {
    let base = Base::new();
    base.write("docs/good.md", "# Good\n");
    for (name, text) in [(&b"caf\xe9.md"[..], "# One\n"), (b"caf\xea.md", "# Two\n")] {
        let path = base.folder().join("docs").join(std::ffi::OsStr::from_bytes(name));
        std::fs::write(path, text).expect("this file system takes any bytes");
    }
    for _ in 0..2 {
        let report = learn(&base, "docs", &prune());
        assert_eq!((report.failed, report.updated, report.removed), (2, 0, 0), "{report:?}");
        let messages: Vec<&str> =
            report.documents.iter().flat_map(|d| &d.warnings).map(|warning| warning.message.as_str()).collect();
        assert_eq!(messages.len(), 2);
        assert!(messages[0].contains(r"caf\xe9.md") && messages[1].contains(r"caf\xea.md"), "{messages:?}");
    }
    assert_eq!(sources(&base), ["docs/good.md"]);
}

#[test]
fn ignore_files_hold_where_they_lie_and_below() {
    let base = Base::new();
    for name in
        ["a/x.md", "w/a/x.md", "w/out/x.md", "w/z/out/x.md", "w/keep.md", "w/z/keep.md", "w/y/keep.md", "w/k.md"]
    {
        base.write(&format!("docs/{name}"), "# X\n");
    }
    base.write("docs/.gitignore", "a/\n");
    base.write("docs/w/.gitignore", "out/\nkeep.md\n");
    base.write("docs/w/z/.gitignore", "!keep.md\n");
    base.write("docs/w/.kbignore", "k.md\n");
    base.write("docs/.hidden/x.md", "# X\n");
    base.write("docs/picture.bin", "no type that is known");
    learn(&base, "docs", &LearnPaths::default());
    assert_eq!(sources(&base), ["docs/w/z/keep.md"]);
}

#[test]
fn links_and_pipes_are_passed_over() {
    let base = Base::new();
    base.write("docs/real.md", "# Real\n");
    let outside = base.write("outside/secret.md", "# Secret\n");
    let docs = base.folder().join("docs");
    symlink(&outside, docs.join("file.md")).expect("a link");
    symlink(base.folder().join("outside"), docs.join("folder")).expect("a link");
    symlink(&docs, docs.join("loop")).expect("a link");
    symlink("nowhere", docs.join("dangling.md")).expect("a link");
    let made = Command::new("mkfifo").arg(docs.join("pipe.md")).status().expect("mkfifo is part of every Unix");
    assert!(made.success());
    let report = learn(&base, "docs", &LearnPaths::default());
    assert_eq!((report.added, report.failed), (1, 0), "{report:?}");
    assert_eq!(sources(&base), ["docs/real.md"]);
}

#[test]
fn a_base_in_the_folder_that_is_learned_is_not_learned() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let database = folder.path().join("visible");
    let kb = KnowledgeBase::create(&database, options()).expect("an empty folder");
    std::fs::write(database.join("kb.toml"), "[kb]\n").expect("writable");
    std::fs::write(folder.path().join("own.toml"), "[own]\n").expect("writable");
    for name in [folder.path().to_owned(), folder.path().join("visible/../visible/..")] {
        let report = kb.learn_paths(&[name], &LearnPaths::default(), &mut Silent).expect("learned");
        let sources: Vec<_> = report.documents.iter().map(|document| document.source.as_deref()).collect();
        assert_eq!(sources, [Some("own.toml")]);
    }
}

#[test]
fn a_source_is_one_document_from_whatever_folder_it_is_learned() {
    let base = Base::new();
    base.write("docs/guide/a.md", "# A\n\nfirst\n");
    base.write("docs/b.md", "# B\n");
    learn(&base, "docs", &LearnPaths::default());
    for folder in ["", "docs/guide", "docs/guide/a.md", "docs"] {
        let report = learn(&base, folder, &LearnPaths::default());
        assert_eq!((report.added, report.updated), (0, 0), "{folder}: {report:?}");
    }
    base.write("docs/guide/a.md", "# A\n\nsecond\n");
    let report = learn(&base, "docs/guide", &LearnPaths::default());
    assert_eq!((report.updated, base.document("guide/a").as_deref()), (1, Some("# A\n\nsecond\n")));
    assert_eq!(base.kb.status().expect("status").documents, 2);
}

#[test]
fn prune_follows_what_is_gone_and_refuses_to_empty_a_folder() {
    let base = Base::new();
    for name in ["a.md", "sub/b.md", "sub/c.md", "other/d.md"] {
        base.write(&format!("docs/{name}"), &format!("# {name}\n"));
    }
    base.write("elsewhere/e.md", "# E\n");
    learn(&base, "docs", &prune());
    learn(&base, "elsewhere", &prune());
    base.learn("given", "# Given by hand\n");

    // A file where a folder was: what it held is gone.
    std::fs::remove_dir_all(base.folder().join("docs/sub")).expect("it was there");
    base.write("docs/sub", "no folder any more");
    let dry = learn(&base, "docs", &LearnPaths { dry_run: true, ..prune() });
    assert_eq!((dry.removed, sources(&base).len()), (2, 5), "a dry run removes nothing");
    let report = learn(&base, "docs", &prune());
    assert_eq!((report.removed, report.unchanged), (2, 2));
    assert_eq!(sources(&base), ["docs/a.md", "docs/other/d.md", "elsewhere/e.md"]);

    // An empty folder may be a disk that is not mounted.
    for name in ["docs/a.md", "docs/other/d.md"] {
        std::fs::remove_file(base.folder().join(name)).expect("it was there");
    }
    let refused = base.kb.learn_paths(&[base.folder().join("docs")], &prune(), &mut Silent);
    assert!(matches!(&refused, Err(StoreError::PruneTooMuch { gone: 2, known: 2, .. })), "{refused:?}");
    assert_eq!(sources(&base).len(), 3);
    let missing = base.kb.learn_paths(&[base.folder().join("gone")], &prune(), &mut Silent);
    assert!(matches!(&missing, Err(StoreError::Io { op: "find", .. })), "{missing:?}");
    let report = learn(&base, "docs", &LearnPaths { prune_all: true, ..prune() });
    assert_eq!((report.removed, sources(&base)), (2, vec!["elsewhere/e.md".to_owned()]));
    assert!(base.document("given").is_some());
}

#[test]
fn prune_takes_nothing_that_is_still_there_or_lies_elsewhere() {
    let base = Base::new();
    for name in ["docs/a.md", "docs/b.md", "docs/c.md", "docs/picture.png", "docs/.hidden.md", "docs/LICENSE"] {
        base.write(name, &format!("# {name}\n"));
    }
    learn(&base, "docs", &prune());
    for name in ["docs/picture.png", "docs/.hidden.md", "docs/LICENSE"] {
        assert_eq!(learn(&base, name, &LearnPaths::default()).added, 1, "what is named by itself is taken");
    }
    let elsewhere = tempfile::tempdir().expect("a folder for the test");
    std::fs::write(elsewhere.path().join("far.md"), "# Far\n").expect("writable");
    let report = base.kb.learn_paths(&[elsewhere.path().to_owned()], &prune(), &mut Silent).expect("learned");
    let far = report.documents[0].source.clone().expect("a file");
    assert!(Path::new(&far).is_absolute());
    let text = kb_store::Text { source: Some("https://example.org/x".to_owned()), ..kb_store::Text::markdown("# X\n") };
    base.kb.learn(&text).expect("learned");
    elsewhere.close().expect("it was there");

    std::fs::remove_file(base.folder().join("docs/b.md")).expect("it was there");
    base.write("docs/.gitignore", "c.md\n");
    for folder in ["docs", ""] {
        let report = learn(&base, folder, &prune());
        assert_eq!(report.removed, usize::from(folder == "docs"), "{folder}: {report:?}");
    }
    let mut left = vec!["docs/.hidden.md", "docs/LICENSE", "docs/a.md", "docs/c.md", "docs/picture.png"];
    left.insert(0, &far);
    left.push("https://example.org/x");
    assert_eq!(sources(&base), left);

    let nothing = Unlearn { targets: vec![Target::Source(String::new())], ..Unlearn::default() };
    assert!(base.kb.unlearn(&nothing).is_err(), "no name is not every name");
    assert_eq!(base.unlearn(Target::Source(".".to_owned())).documents.len(), 5);
    assert_eq!(sources(&base), [far.as_str(), "https://example.org/x"]);
}

/// Learns as a user who may not read everything: root may.
#[test]
fn worker() {
    let Ok(folder) = std::env::var("KB_STORE_UNREADABLE") else { return };
    let folder = Path::new(&folder);
    let kb = KnowledgeBase::open(folder.join(".kbdb"), Options::new(SystemTime::now)).expect("it is there");
    let report = kb.learn_paths(&[folder.join("docs")], &prune(), &mut Silent).expect("learned");
    let failed: Vec<_> = report.documents.iter().filter(|d| d.outcome == Outcome::Failed).collect();
    let named: Vec<_> = failed.iter().map(|d| d.source.as_deref().unwrap_or_default()).collect();
    assert_eq!(named, ["docs/sub", "docs/unreadable.md"], "{report:?}");
    for document in failed {
        assert_eq!(document.warnings[0].code, "io");
        assert!(document.warnings[0].message.contains("ermission denied"), "{document:?}");
    }
    assert_eq!((report.removed, report.unchanged), (1, 2));
}

#[test]
fn what_may_not_be_read_is_named_and_not_taken_for_deleted() {
    const NOBODY: u32 = 65534;
    let base = Base::new();
    for name in ["a.md", "b.md", "gone.md", "unreadable.md", "sub/c.md", "sub/deep/d.md"] {
        base.write(&format!("docs/{name}"), &format!("# {name}\n"));
    }
    assert_eq!(learn(&base, "docs", &prune()).added, 6);
    std::fs::remove_file(base.folder().join("docs/gone.md")).expect("it was there");
    let binary = base.folder().join("worker");
    std::fs::copy(std::env::current_exe().expect("a test has a binary"), &binary).expect("copied");

    let mut command = Command::new(&binary);
    command.args(["--exact", "folders::worker"]).env("KB_STORE_UNREADABLE", base.folder());
    if std::fs::metadata(base.folder()).expect("it is there").uid() == 0 {
        let mut everything: Vec<PathBuf> = fingerprint(base.folder()).into_keys().collect();
        everything.push(base.folder().to_owned());
        for path in everything {
            std::os::unix::fs::chown(path, Some(NOBODY), Some(NOBODY)).expect("root may");
        }
        std::os::unix::process::CommandExt::uid(&mut command, NOBODY);
    }
    let locked = ["docs/sub", "docs/unreadable.md"].map(|name| base.folder().join(name));
    let set = |mode| {
        for path in &locked {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("its owner may");
        }
    };
    set(0o000);
    let output = command.output().expect("it starts");
    set(0o755);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    assert_eq!(sources(&base), ["docs/a.md", "docs/b.md", "docs/sub/c.md", "docs/sub/deep/d.md", "docs/unreadable.md"]);
}

#[test]
fn an_edit_is_seen_however_soon_it_comes() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let cache_dir = Some(folder.path().join("cache"));
    let options = Options { cache_dir, ..Options::new(SystemTime::now) };
    let kb = KnowledgeBase::create(folder.path().join(".kbdb"), options).expect("an empty folder");
    let docs = folder.path().join("docs");
    std::fs::create_dir(&docs).expect("writable");
    let file = docs.join("a.md");
    let paths = [docs];
    let learn = || kb.learn_paths(&paths, &LearnPaths::default(), &mut Silent).expect("learned");
    let mut old_time = None;
    for i in 0..200 {
        let content = format!("# A\n\nedit {i:03}\n");
        std::fs::write(&file, &content).expect("writable");
        if let Some(time) = old_time.filter(|_| i % 3 == 1) {
            // An edit that puts the old time back.
            std::fs::File::options().write(true).open(&file).and_then(|f| f.set_modified(time)).expect("writable");
        }
        old_time = std::fs::metadata(&file).and_then(|about| about.modified()).ok();
        let report = learn();
        assert_eq!(report.added + report.updated, 1, "edit {i} was missed");
        assert_eq!(kb.document_bytes(&id("a")).expect("learned"), content.as_bytes());
        if i % 2 == 0 {
            assert_eq!(learn().unchanged, 1);
        }
    }
}

#[test]
fn the_cache_of_source_files_never_speaks_for_a_base_that_has_changed() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let cache_dir = Some(folder.path().join("cache"));
    // This clock is far ahead of the files' times, so every file counts as long settled.
    let options = Options { cache_dir, ..options() };
    let kb = KnowledgeBase::create(folder.path().join(".kbdb"), options).expect("an empty folder");
    std::fs::create_dir(folder.path().join("docs")).expect("writable");
    std::fs::write(folder.path().join("docs/a.md"), "# A\n\n## Key\n\nhunter2\n").expect("writable");
    let learn = |request: &LearnPaths| {
        let report = kb.learn_paths(&[folder.path().join("docs")], request, &mut Silent).expect("learned");
        report.documents[0].outcome
    };
    let plain = LearnPaths::default();
    assert_eq!((learn(&plain), learn(&plain)), (Outcome::Added, Outcome::Unchanged));
    let tagged = LearnPaths { tags: vec!["t".to_owned()], ..LearnPaths::default() };
    assert_eq!((learn(&tagged), learn(&plain), learn(&tagged)), (Outcome::Updated, Outcome::Updated, Outcome::Updated));
    let unlearn = |target| {
        kb.unlearn(&Unlearn { targets: vec![target], ..Unlearn::default() }).expect("unlearned");
    };
    let key = crate::support::kbid("## Key\n\nhunter2\n");
    unlearn(Target::Section(key));
    assert_eq!(learn(&tagged), Outcome::Unchanged, "what was taken out stays out");
    assert!(kb.section_bytes(key).is_err());
    assert_eq!(learn(&LearnPaths { again: true, ..tagged.clone() }), Outcome::Updated);
    assert!(kb.section_bytes(key).is_ok());
    unlearn(Target::Document(id("a")));
    assert_eq!((learn(&tagged), learn(&tagged)), (Outcome::Added, Outcome::Unchanged));
}
