//! Many writers at once, writers that die, and damage.

use std::sync::Barrier;

use kb_store::ProjectStore;

use crate::support::{TestHome, chapter, knowledge, options, update};

#[test]
fn ten_clients_that_update_ten_chapters_of_a_file_keep_all_ten() {
    let home = TestHome::new();
    let chapters = (0..10).map(|i| chapter(&format!("Chapter {i}"), "old")).collect();
    home.store.create_file("p", &kb_store::NewKnowledge { chapters, ..knowledge("doc") }).expect("created");
    let barrier = Barrier::new(10);
    std::thread::scope(|scope| {
        for i in 0..10 {
            let (home, barrier) = (&home, &barrier);
            scope.spawn(move || {
                let store = ProjectStore::open(home.path(), options()).expect("opened");
                barrier.wait();
                let update = update(&format!("Chapter {i}"), &format!("new {i}"));
                store.update_chapter("p", "doc", &update).expect("updated");
            });
        }
    });
    let document = home.store.file("p", "doc").expect("there").document;
    for (i, chapter) in document.chapters.iter().enumerate() {
        assert_eq!(chapter.content, format!("new {i}"));
    }
    assert_eq!(home.log().len(), 11);
    home.is_clean();
}

#[test]
fn many_clients_that_open_one_new_home_share_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("home");
    let barrier = Barrier::new(8);
    std::thread::scope(|scope| {
        for i in 0..8 {
            let (path, barrier) = (&path, &barrier);
            scope.spawn(move || {
                barrier.wait();
                let store = ProjectStore::open(path, options()).expect("opened");
                for n in 0..5 {
                    store.update_main(&format!("Project {i}.{n}"), "x").expect("written");
                }
            });
        }
    });
    let store = ProjectStore::open(&path, options()).expect("opened");
    let list = store.projects().expect("listed");
    assert_eq!(list.count, 40);
    assert!(list.projects.iter().all(|project| project.has_main));
    assert!(crate::support::git(&path, &["fsck", "--strict"]).status.success());
}

#[test]
fn a_damaged_index_is_put_together_again() {
    for damage in ["", "{", "[]", "{\"projects\": 3}", "{\"projects\": {\"a\": \"../b\"}}", "<<<<<<< HEAD\n{}\n"] {
        let home = TestHome::new();
        home.store.update_main("My Project", "mine").expect("written");
        home.store.update_main("日本語", "another").expect("written");
        home.write("index.json", damage);
        assert_eq!(home.store.main("My Project").expect("read").content, "mine", "{damage:?}");
        home.store.update_main("my project", "a third").expect("written");
        for (id, content) in [("My Project", "mine"), ("日本語", "another"), ("my project", "a third")] {
            assert_eq!(home.store.main(id).expect("read").content, content, "{damage:?}");
        }
        home.is_clean();
    }
}

#[test]
fn folders_that_came_by_another_way_are_projects() {
    let home = TestHome::new();
    home.store.update_main("a", "x").expect("written");
    home.write("projects/By Hand/main.md", "by hand");
    assert_eq!(home.store.main("By Hand").expect("read").content, "by hand");
    assert_eq!(home.store.projects().expect("listed").count, 2);
    std::fs::remove_file(home.path().join("index.json")).expect("it was there");
    assert_eq!(home.store.main("a").expect("read").content, "x");
    home.store.update_main("By Hand", "again").expect("written");
    assert_eq!(home.read("projects/By Hand/main.md"), "again");
    assert!(home.read("index.json").contains("\"By Hand\": \"By Hand\""));
}

#[test]
fn what_a_dead_process_left_of_a_commit_is_put_right() {
    let home = TestHome::new();
    home.create("p", "doc");
    let head = home.git(&["rev-parse", "HEAD"]).trim().to_owned();
    let index = std::fs::read(home.path().join(".git/index")).expect("there");
    // It died between taking the lock of the index and the commit, then between the commit and the index.
    for commit in ["00".repeat(20), head.clone()] {
        home.write(&format!(".git/kb-index-{commit}"), &index);
        home.write(".git/index.lock", &index);
        home.write(&format!(".git/kb-ref-{commit}"), format!("{commit}\n"));
        home.write(".git/refs/heads/main.lock", format!("{commit}\n"));
        assert!(home.update("p", "doc", "One", &commit).is_some());
        home.is_clean();
        let left: Vec<_> = std::fs::read_dir(home.path().join(".git"))
            .expect("listed")
            .map(|entry| entry.expect("listed").file_name().to_string_lossy().into_owned())
            .filter(|name| name.starts_with("kb-") || name == "index.lock")
            .collect();
        assert_eq!(left, Vec::<String>::new());
    }
    // A file that was put in place without its commit is committed by the next write of the same.
    let text = home.read("projects/p/knowledge/doc.md").replace(&head, "by hand");
    home.write("projects/p/knowledge/doc.md", &text);
    assert!(home.update("p", "doc", "One", "by hand").is_some(), "it was not committed yet");
    home.is_clean();
}

#[test]
fn a_document_of_ten_megabytes_is_edited() {
    let home = TestHome::new();
    let big = "A line of the big chapter.\n".repeat(400_000);
    home.store.update_main("p", "x").expect("written");
    home.write("projects/p/knowledge/big.md", format!("## Small\n\nx\n\n## Big\n\n{big}"));
    home.update("p", "big", "Small", "y");
    let text = home.read("projects/p/knowledge/big.md");
    assert!(text.starts_with("## Small\n\ny\n\n## Big\n\n") && text.ends_with(&big));
}
