//! Ids and names of every kind, and the folders they get.

use std::collections::BTreeSet;

use crate::support::{TestHome, knowledge};

#[test]
fn ids_keep_their_spelling_and_get_folders_of_their_own() {
    let home = TestHome::new();
    let long = "x".repeat(100);
    let ids = [
        "constructor",
        "__proto__",
        "R&D",
        "R D",
        "r-d",
        "日本語",
        "😀",
        "---",
        "nul",
        "CON",
        "con",
        "a.b",
        "é",
        "ê",
        &long,
        "C++",
        "C#",
    ];
    for id in ids {
        home.store.update_main(id, id).expect(id);
    }
    let list = home.store.projects().expect("listed");
    assert_eq!(list.count, ids.len() as u64);
    let folders: BTreeSet<String> = list.projects.iter().map(|project| project.slug.to_lowercase()).collect();
    assert_eq!(folders.len(), ids.len(), "{folders:?}");
    for id in ids {
        assert_eq!(home.store.main(id).expect(id).content, id);
    }
    home.store.update_main("e\u{301}", "the same id in another normal form").expect("written");
    assert_eq!(home.store.projects().expect("listed").count, ids.len() as u64);
    assert_eq!(home.store.main("é").expect("there").content, "the same id in another normal form");
    home.is_clean();
}

#[test]
fn what_names_nothing_is_refused_with_the_reason() {
    let home = TestHome::new();
    let long = "x".repeat(101);
    for (id, reason) in [
        ("a/b", "`/`"),
        (r"a\b", r"`\`"),
        ("..", "`..`"),
        ("a..b", "`..`"),
        (".git", "dot"),
        ("a.", "dot"),
        (" a", "blank"),
        ("a\u{a0}", "blank"),
        ("a\nb", "U+000A"),
        ("a\0b", "U+0000"),
        ("C:x", "`:`"),
        ("a?", "`?`"),
        (&long, "100"),
    ] {
        let error = home.store.update_main(id, "x").expect_err(id);
        assert_eq!(error.code(), "invalid-name", "{id:?}");
        assert!(error.to_string().contains(reason), "{id:?}: {error}");
        assert_eq!(home.store.main(id).expect_err(id).code(), "invalid-name");
    }
    assert_eq!(home.store.update_main("", "x").expect_err("empty").code(), "missing-field");
    let long = "x".repeat(201);
    for (name, reason) in [
        ("../../x.md", "`/`"),
        ("/etc/x", "`/`"),
        ("a/../../b", "`/`"),
        ("x\0y", "U+0000"),
        ("..", "`..`"),
        (".md", "before"),
        ("a\nb", "U+000A"),
        (&long, "200"),
    ] {
        let error = home.store.create_file("p", &knowledge(name)).expect_err(name);
        assert_eq!(error.code(), "invalid-name", "{name:?}");
        assert!(error.to_string().contains(reason), "{name:?}: {error}");
    }
    assert!(!home.path().join("projects").exists(), "nothing was made");
}

#[test]
fn documents_have_slugs_whatever_they_are_called() {
    let home = TestHome::new();
    let names =
        ["%2e%2e", "日本語", "😀", "---", "CON", "nul.md", "a b", "# 50% [draft] (v2) & more?", "C++", "C#", "name."];
    let mut paths = BTreeSet::new();
    for name in names {
        let created = home.store.create_file("p", &knowledge(name)).expect(name);
        assert!(home.path().join("projects/p").join(&created.filepath).is_file());
        assert_eq!(home.store.file("p", name).expect(name).document.metadata.title, format!("About {name}"));
        paths.insert(created.filepath);
    }
    assert_eq!(paths.len(), names.len(), "{paths:?}");
    home.is_clean();
}

#[cfg(unix)]
#[test]
fn nothing_is_read_or_written_through_a_link() {
    let home = TestHome::new();
    home.create("p", "doc");
    let outside = tempfile::tempdir().expect("a folder");
    std::fs::write(outside.path().join("main.md"), "secret").expect("writable");
    std::fs::create_dir(outside.path().join("knowledge")).expect("writable");
    std::fs::write(outside.path().join("knowledge/a.md"), "secret").expect("writable");
    let link = |from: &std::path::Path, name: &str| {
        std::os::unix::fs::symlink(from, home.path().join(name)).expect("a link");
    };
    link(outside.path(), "projects/linked");
    link(&outside.path().join("main.md"), "projects/p/main.md");
    link(&outside.path().join("missing.md"), "projects/p/knowledge/new.md");
    assert_eq!(home.store.main("p").expect_err("a link").code(), "outside");
    assert_eq!(home.store.update_main("p", "x").expect_err("a link").code(), "outside");
    assert_eq!(home.store.create_file("p", &knowledge("new")).expect_err("a link").code(), "outside");
    assert!(!home.store.main("linked").expect("no project").exists, "a linked folder is no project");
    home.store.update_main("linked", "mine").expect("a folder of its own");
    assert_eq!(std::fs::read_to_string(outside.path().join("main.md")).expect("there"), "secret");
    assert!(!outside.path().join("missing.md").exists());
}
