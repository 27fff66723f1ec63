//! The activity log.

use kb_core::ActivityEntry;
use kb_store::ProjectStore;

use crate::support::{TestHome, options};

fn entry(method: &str, success: bool) -> ActivityEntry {
    ActivityEntry {
        timestamp: String::new(),
        method: method.to_owned(),
        project_id: Some("R&D".to_owned()),
        filename: None,
        chapter_title: None,
        success,
        error: Some("went wrong".to_owned()),
    }
}

#[test]
fn every_call_is_a_line_with_the_fields_of_the_contract() {
    let home = TestHome::new();
    home.store.update_main("p", "x").expect("written");
    home.store.record(&entry("get_project_main", true));
    home.store.record(&entry("search_knowledge", false));
    assert_eq!(home.store.activity(10).expect("read").count, 2);
    insta::assert_snapshot!(home.read("activity.log"), @r#"
    {"timestamp":"2030-03-17T17:46:40.000Z","method":"get_project_main","project_id":"R&D","success":true}
    {"timestamp":"2030-03-17T17:46:40.000Z","method":"search_knowledge","project_id":"R&D","success":false,"error":"went wrong"}
    "#);
    let again = ProjectStore::open(home.path(), options()).expect("opened");
    again.record(&entry("third", true));
    let last = again.activity(2).expect("read").entries;
    assert_eq!(last.iter().map(|e| e.method.as_str()).collect::<Vec<_>>(), ["search_knowledge", "third"]);
    home.is_clean();
}

#[test]
fn a_full_log_is_put_aside_and_nothing_is_lost_to_a_reader() {
    let home = TestHome::new();
    let line = "{\"timestamp\":\"t\",\"method\":\"old\",\"success\":true}\n";
    home.write("activity.log", line.repeat((8 << 20) / line.len() + 1));
    home.store.record(&entry("new", true));
    let entries = home.store.activity(2).expect("read").entries;
    assert_eq!(entries.iter().map(|e| e.method.as_str()).collect::<Vec<_>>(), ["old", "new"]);
    assert_eq!(home.read("activity.log").lines().count(), 1);
    assert!(home.path().join("activity.log.1").metadata().expect("there").len() >= 8 << 20);
}

#[test]
fn lines_of_many_writers_do_not_mix() {
    let home = TestHome::new();
    std::thread::scope(|scope| {
        for writer in 0..8 {
            let path = home.path();
            scope.spawn(move || {
                let store = ProjectStore::open(path, options()).expect("opened");
                (0..50).for_each(|n| store.record(&entry(&format!("{writer}-{n}"), true)));
            });
        }
    });
    let entries = home.store.activity(1_000).expect("read").entries;
    let methods: std::collections::BTreeSet<_> = entries.into_iter().map(|entry| entry.method).collect();
    assert_eq!(methods.len(), 400);
}

#[test]
fn a_log_that_cannot_be_written_stops_nothing() {
    let home = TestHome::new();
    std::fs::create_dir(home.path().join("activity.log")).expect("a folder in the way");
    home.store.record(&entry("lost", true));
    home.store.update_main("p", "x").expect("written");
}
