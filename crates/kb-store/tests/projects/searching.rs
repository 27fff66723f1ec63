//! What a query finds, and that it is of the files as they are now.

use kb_store::{NewKnowledge, ProjectStore};

use crate::support::{TestHome, chapter, knowledge, options};

fn files(home: &TestHome, query: &str) -> Vec<String> {
    found_by(&home.store, query)
}

fn found_by(store: &ProjectStore, query: &str) -> Vec<String> {
    let answer = store.search("p", query).expect("every text with a word is a query");
    assert_eq!(answer.total_documents as usize, answer.results.len());
    answer.results.into_iter().map(|hit| hit.file).collect()
}

fn guides() -> TestHome {
    let home = TestHome::new();
    let new = NewKnowledge {
        filename: "API Guide".to_owned(),
        title: "Service Documentation".to_owned(),
        keywords: vec!["api".to_owned(), "rest".to_owned()],
        introduction: "How to talk to it.".to_owned(),
        chapters: vec![
            chapter(
                "Getting Started",
                "Brief.\n\nTo begin using our API you need a key, which the operators hand out.",
            ),
            chapter("Retries", "Retrying is cheap.\n\n```sh\ncurl api.example.org\n```"),
            chapter("Limits", "None."),
        ],
    };
    home.store.create_file("p", &new).expect("created");
    home.create("p", "Other");
    home
}

#[test]
fn chapters_are_found_with_their_context() {
    let home = guides();
    let answer = home.store.search("p", "API").expect("found");
    assert_eq!((answer.total_documents, answer.total_matches, answer.truncated), (1, 3, false));
    insta::assert_json_snapshot!(answer.results[0].matching_chapters, @r#"
    [
      {
        "chapter": "",
        "keywords_found": [
          "api"
        ],
        "match_context": {
          "api": [
            "Service Documentation api, rest How to talk to it."
          ]
        },
        "chapter_summary": ""
      },
      {
        "chapter": "Getting Started",
        "keywords_found": [
          "api"
        ],
        "match_context": {
          "api": [
            "Getting Started Brief. To begin using our API you need a key, which the operators hand out."
          ]
        },
        "chapter_summary": "Brief."
      },
      {
        "chapter": "Retries",
        "keywords_found": [
          "api"
        ],
        "match_context": {
          "api": [
            "Retries Retrying is cheap. ```sh curl api.example.org ```"
          ]
        },
        "chapter_summary": "Retrying is cheap."
      }
    ]
    "#);
}

#[test]
fn a_word_is_found_by_its_forms_and_beginnings_and_inside_others_last() {
    let home = guides();
    for (query, expected) in [
        ("retry", &["api-guide.md"][..]),
        ("RETRIES", &["api-guide.md"]),
        ("oper", &["api-guide.md"]),
        ("perator", &["api-guide.md"]),
        ("zzz retry", &["api-guide.md"]),
        ("documentation", &["api-guide.md"]),
        ("second", &["other.md"]),
        ("xyzzy", &[]),
        ("-retry", &["api-guide.md"]),
        ("title:retry", &["api-guide.md"]),
        ("\"retry", &["api-guide.md"]),
    ] {
        assert_eq!(files(&home, query), expected, "{query}");
    }
    for query in ["", " \t\n"] {
        assert_eq!(home.store.search("p", query).expect_err("no word").code(), "missing-field");
    }
    for query in ["(", "*", "^x", "OR OR", "{", r"\", "'; --", "😀", &"\"".repeat(10_000), "a\0b", &"w ".repeat(5_000)]
    {
        home.store.search("p", query).expect("no text is an error");
    }
}

#[test]
fn totals_are_exact_and_the_listing_is_bounded() {
    let home = TestHome::new();
    let text = "common ".repeat(2_000);
    let chapters: Vec<String> = (0..12).map(|i| format!("## Chapter {i}\n\n{text}\n\n")).collect();
    let chapters = chapters.concat();
    home.store.update_main("p", "x").expect("written");
    for i in 0..25 {
        home.write(&format!("projects/p/knowledge/doc-{i:02}.md"), &chapters);
    }
    for query in ["common", "co", "ommo"] {
        let answer = home.store.search("p", query).expect("found");
        assert_eq!((answer.total_documents, answer.total_matches, answer.truncated), (25, 300, true), "{query}");
        assert!((1..=20).contains(&answer.results.len()));
        assert!(answer.results.iter().all(|hit| hit.match_count == 12 && hit.matching_chapters.len() <= 10));
        assert!(serde_json::to_string(&answer).expect("JSON").len() < 100_000);
    }
}

#[test]
fn the_next_query_sees_every_change() {
    let home = guides();
    assert_eq!(files(&home, "kingfisher"), Vec::<String>::new());
    home.write("projects/p/knowledge/hand.md", "## Birds\n\nA kingfisher.\n");
    assert_eq!(files(&home, "kingfisher"), ["hand.md"]);
    home.write("projects/p/knowledge/hand.md", "## Birds\n\nA cormorants.\n");
    assert_eq!(files(&home, "kingfisher"), Vec::<String>::new());
    assert_eq!(files(&home, "cormorant"), ["hand.md"]);

    let other = ProjectStore::open(home.path(), options()).expect("opened");
    assert_eq!(found_by(&other, "cormorant"), ["hand.md"], "from the cache");
    other
        .create_file("p", &NewKnowledge { introduction: "An otter.".to_owned(), ..knowledge("new") })
        .expect("created");
    assert_eq!(files(&home, "otter"), ["new.md"]);
    home.git(&["checkout", "--quiet", "HEAD~1"]);
    assert_eq!(files(&home, "otter"), Vec::<String>::new());
    home.git(&["checkout", "--quiet", "main"]);
    assert_eq!(files(&home, "otter"), ["new.md"]);
    std::fs::remove_file(home.path().join("projects/p/knowledge/hand.md")).expect("it is there");
    assert_eq!(files(&home, "cormorant"), Vec::<String>::new());
}

#[test]
fn the_cache_may_be_lost_or_damaged_at_any_time() {
    let home = guides();
    for round in 0..20 {
        home.write(&format!("projects/p/knowledge/doc-{round}.md"), format!("## A\n\nword{round} shared\n"));
        assert_eq!(files(&home, &format!("word{round}")), [format!("doc-{round}.md")]);
    }
    let folder = home.path().join(".kb/p");
    let expected = files(&home, "shared");
    assert_eq!(expected.len(), 20);
    let reopened = || ProjectStore::open(home.path(), options()).expect("opened");
    assert_eq!(found_by(&reopened(), "shared"), expected);
    let read = |entry: std::io::Result<std::fs::DirEntry>| {
        let path = entry.expect("listed").path();
        (path.clone(), std::fs::read(path).expect("read"))
    };
    let whole: Vec<_> = std::fs::read_dir(&folder).expect("listed").map(read).collect();
    for (damaged, bytes) in &whole {
        for at in [0, bytes.len() / 2, bytes.len() - 1] {
            for (path, bytes) in &whole {
                std::fs::write(path, bytes).expect("writable");
            }
            let mut flipped = bytes.clone();
            flipped[at] ^= 0x10;
            std::fs::write(damaged, &flipped).expect("writable");
            assert_eq!(found_by(&reopened(), "shared"), expected, "{} at {at}", damaged.display());
        }
    }
    std::fs::remove_dir_all(home.path().join(".kb")).expect("it is there");
    assert_eq!(found_by(&reopened(), "shared"), expected);
    assert_eq!(files(&home, "shared"), expected);
    home.git(&["status", "--porcelain", "--ignored"]);
}
