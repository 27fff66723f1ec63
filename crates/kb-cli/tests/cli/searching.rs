//! `search` in its formats, and `--from`.
//!
//! **Invariant:** any words are a query, and no hit is no failure.

use std::path::{Path, PathBuf};

use insta::assert_snapshot;

use crate::harness::{Kb, Run};

const GUIDE: &str = "# Guide\n\nStart here.\n\n## Retries\n\nThe kingfisher retries three times, then gives up.\n";

fn base() -> Kb {
    let kb = Kb::new();
    kb.write("docs/guide.md", GUIDE);
    kb.write("docs/backup.md", "---\ndate: 2031-03-01\ntags: [ops]\n---\n# Backups\n\nA heron every night.\n");
    kb.run(["learn", "docs"]).expect_exit(0);
    kb
}

/// Replaces what the ranking and the hash decide.
fn masked(run: &Run) -> String {
    let mut shown = String::new();
    for line in run.to_string().lines() {
        let line = match line.split_once("  confidence ") {
            Some((place, rest)) => {
                let (place, _kbid) = place.rsplit_once("  ").expect("a kbid");
                format!("{place}  [KBID]  confidence [N]{}", &rest[4..])
            }
            None => line.to_owned(),
        };
        shown.push_str(&line);
        shown.push('\n');
    }
    shown
}

#[test]
fn a_hit_is_shown_with_its_place_and_its_words() {
    let kb = base();
    assert_snapshot!(masked(&kb.run(["search", "kingfisher", "retries"])), @"
    exit: 0
    --- stdout
    Guide › Retries
      guide:7  [KBID]  confidence [N]
      The kingfisher retries three times, then gives up.

    1 of 1 shown, verdict: answered
    ");
    let colour = kb.run(["search", "kingfisher", "--color", "always"]);
    assert!(colour.text().contains("\u{1b}[1mkingfisher\u{1b}[0m"), "{colour}");
}

#[test]
fn words_that_are_left_out_are_told() {
    let kb = base();
    let run = kb.run(["search", "kingfisher", "zeppelin"]);
    assert!(run.text().contains("left out: `zeppelin`"), "{run}");
    assert!(run.text().contains("Guide › Retries"), "{run}");
}

#[test]
fn no_hit_is_an_empty_result_and_no_failure() {
    let kb = base();
    assert_snapshot!(kb.run(["search", "xqzzyv"]), @r"
    exit: 0
    --- stderr
    nothing matches `xqzzyv`
    ");
    let answer = kb.run(["search", "xqzzyv", "--json"]).expect_exit(0).json();
    assert_eq!((&answer["verdict"], &answer["hits"]), (&"unanswered".into(), &serde_json::json!([])));
}

#[test]
fn a_long_query_is_cut_in_messages_and_not_in_data() {
    let kb = base();
    let query = "xqzzyv".repeat(100);
    let run = kb.run(["search", &query]).expect_exit(0);
    assert_eq!(run.stderr.chars().count(), "nothing matches ``\n".len() + 80, "{run}");
    assert_eq!(kb.run(["search", &query, "--json"]).json()["query"], query);
}

#[cfg(unix)]
#[test]
fn a_name_stays_on_its_line_and_turns_no_writing() {
    let kb = Kb::new();
    kb.write("docs/a\nb\u{202e}c.md", GUIDE);
    kb.run(["learn", "docs"]).expect_exit(0);
    let shown = "docs/a\u{fffd}b\u{fffd}c.md";
    assert_eq!(kb.run(["search", "kingfisher", "--format", "paths"]).text(), format!("{shown}\n"));
    let vimgrep = kb.run(["search", "kingfisher", "--format", "vimgrep"]);
    assert!(vimgrep.text().starts_with(&format!("{shown}:7:1:")), "{vimgrep}");
    for arguments in
        [&["search", "kingfisher"][..], &["list"], &["learn", "docs", "--again"], &["unlearn", "gone\u{202e}"]]
    {
        let run = kb.run(arguments);
        assert!(!format!("{}{}", run.text(), run.stderr).contains('\u{202e}'), "{run}");
    }
    let hit = &kb.run(["search", "kingfisher", "--json"]).json()["hits"][0];
    assert_eq!(hit["source"], "docs/a\nb\u{202e}c.md");
}

#[test]
fn any_text_is_a_query() {
    let kb = base();
    for query in
        ["can't", "tmp/out", "\"open", "(", "a AND", "NEAR(", "*", "^x", "title:", "NOT", "OR OR", "{", "\\", "", " "]
    {
        let run = kb.run(["search", "--json", "--", query]);
        assert_eq!(run.exit, 0, "{query:?}\n{run}");
        assert_eq!(run.json()["query"], query);
    }
    assert_eq!(kb.run(["search", "-0099"]).exit, 0);
    assert_eq!(kb.run(["search", "--", "heron", "-kingfisher"]).expect_exit(0).exit, 0);
}

#[test]
fn the_answer_has_its_names() {
    let kb = base();
    let answer = kb.run(["search", "kingfisher", "--json"]).expect_exit(0).json();
    for name in ["query", "mode", "stage", "verdict", "total", "totalIsExact", "generation", "hits"] {
        assert!(!answer[name].is_null(), "{name} in {answer}");
    }
    let hit = &answer["hits"][0];
    let names = [
        "kbid",
        "docid",
        "title",
        "headingPath",
        "level",
        "parent",
        "line",
        "score",
        "confidence",
        "matchedTerms",
        "snippet",
        "more",
        "alsoIn",
    ];
    for name in names {
        assert!(hit.get(name).is_some(), "{name} in {hit}");
    }
    assert_eq!((&hit["docid"], &hit["line"]), (&"guide".into(), &7.into()));
    assert_eq!(hit["matchedTerms"], serde_json::json!(["kingfisher"]));
}

#[test]
fn formats_for_programs_and_editors() {
    let kb = base();
    let lines = kb.run(["search", "kingfisher", "heron", "--mode", "any", "--format", "jsonl"]).json_lines();
    let mut docids: Vec<_> = lines.iter().map(|hit| hit["docid"].as_str().expect("text")).collect();
    docids.sort_unstable();
    assert_eq!(docids, ["backup", "guide"]);
    assert_eq!(
        kb.run(["search", "kingfisher", "--format", "json"]).stdout,
        kb.run(["search", "kingfisher", "--json"]).stdout
    );

    let paths = kb.run(["search", "kingfisher", "--format", "paths"]);
    let path = paths.text().trim_end();
    assert_eq!(std::fs::read(kb.path(path)).expect("a path that can be opened from here"), GUIDE.as_bytes());
    let vimgrep = kb.run(["search", "kingfisher", "--format", "vimgrep"]);
    assert!(vimgrep.text().starts_with(&format!("{path}:7:1:")), "{vimgrep}");
}

#[test]
fn filters_narrow_the_answer() {
    let kb = base();
    let found = |extra: &[&str]| {
        let arguments = ["search", "kingfisher heron", "--mode", "any", "--json"];
        let answer = kb.run(arguments.iter().chain(extra)).expect_exit(0).json();
        let hits = answer["hits"].as_array().expect("hits").clone();
        let mut docids: Vec<String> = hits.iter().map(|hit| hit["docid"].as_str().expect("text").to_owned()).collect();
        docids.sort();
        docids.join(" ")
    };
    assert_eq!(found(&[]), "backup guide");
    assert_eq!(found(&["--tag", "OPS"]), "backup");
    assert_eq!(found(&["--doc", "gui*"]), "guide");
    assert_eq!(found(&["--type", "html"]), "");
    assert_eq!(found(&["--since", "2031-03-01", "--until", "2031-03-01"]), "backup");
    assert_eq!(found(&["--limit", "1"]).split(' ').count(), 1);
}

#[test]
fn pages_follow_each_other_and_do_not_overlap() {
    let kb = Kb::new();
    for n in 0..5 {
        kb.learn(&format!("note-{n}"), &format!("# Note {n}\n\nA heron.\n"));
    }
    let first = kb.run(["search", "heron", "-n", "3", "--json"]).json();
    let cursor = first["cursor"].as_str().expect("a next page");
    let second = kb.run(["search", "heron", "-n", "3", "--cursor", cursor, "--json"]).json();
    let mut docids: Vec<_> = [&first, &second]
        .iter()
        .flat_map(|page| page["hits"].as_array().expect("hits"))
        .map(|hit| hit["docid"].as_str().expect("text"))
        .collect();
    docids.sort_unstable();
    assert_eq!(docids, ["note-0", "note-1", "note-2", "note-3", "note-4"]);
    assert!(second.get("cursor").is_none(), "{second}");
    assert!(kb.run(["search", "heron", "-n", "3"]).text().contains(&format!("--cursor {cursor}\n")));
}

#[test]
fn a_folder_is_searched_with_no_set_up_and_left_as_it_is() {
    let kb = Kb::bare();
    kb.write("docs/guide.md", GUIDE);
    let search = || kb.run(["search", "--from", "docs", "kingfisher", "--format", "paths"]).expect_exit(0);
    assert_eq!(std::fs::read(kb.path(search().text().trim_end())).expect("a path"), GUIDE.as_bytes());
    kb.write("docs/more.md", "# More\n\nA second kingfisher.\n");
    assert_eq!(search().text().lines().count(), 2);
    std::fs::remove_file(kb.path("docs/guide.md")).expect("removed");
    assert_eq!(search().text().lines().count(), 1);

    let mut names: Vec<_> = std::fs::read_dir(kb.path("docs"))
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name())
        .collect();
    names.sort();
    assert_eq!(names, ["more.md"]);
    assert!(!kb.path(".kbdb").exists());
    assert!(kb.path("../home/.cache/kb").is_dir() || kb.path("../home/Library/Caches/kb").is_dir());
    assert_eq!(kb.run(["search", "--from", "gone", "x"]).exit, 1);
    assert_eq!(kb.run(["search", "--from", "docs/more.md", "x"]).exit, 1);
}

/// Returns the files of the one database in the cache folder whose names end so.
fn cached(kb: &Kb, end: &str) -> Vec<PathBuf> {
    let mut folders = vec![kb.path("../home")];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.file_name().is_some_and(|name| name.to_string_lossy().ends_with(end)) {
                found.push(path);
            }
        }
    }
    found
}

#[test]
fn a_cache_that_is_damaged_is_made_anew_in_silence() {
    let damage: [fn(&Path); 3] = [
        |file| std::fs::remove_file(file).expect("removed"),
        |file| std::fs::write(file, "").expect("emptied"),
        |file| {
            let bytes = std::fs::read(file).expect("bytes");
            std::fs::write(file, bytes.iter().map(|byte| byte ^ 0x55).collect::<Vec<u8>>()).expect("damaged");
        },
    ];
    for part in ["head", ".pack", ".idx"] {
        for (number, damage) in damage.iter().enumerate() {
            let kb = Kb::bare();
            kb.write("docs/guide.md", GUIDE);
            let search = || kb.run(["search", "--from", "docs", "kingfisher"]);
            let before = search().expect_exit(0);
            let files = cached(&kb, part);
            assert!(!files.is_empty(), "{part}");
            for file in &files {
                damage(file);
            }
            let after = search();
            assert_eq!(after.to_string(), before.to_string(), "{part} {number}");
            assert_eq!(search().to_string(), before.to_string(), "{part} {number}");
        }
    }
}

#[test]
fn a_source_that_is_gone_is_said_to_be_so() {
    let kb = base();
    std::fs::remove_file(kb.path("docs/guide.md")).expect("removed");
    let run = kb.run(["search", "kingfisher"]);
    assert!(run.text().contains("source gone"), "{run}");
}
