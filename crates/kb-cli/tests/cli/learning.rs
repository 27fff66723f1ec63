//! `learn`, `unlearn`, `list`, `history`.
//!
//! **Invariant:** sources are never changed, and a bad one costs itself alone.

use insta::assert_snapshot;
use serde_json::json;

use crate::harness::Kb;

#[test]
fn a_folder_is_learned_and_what_is_unchanged_is_left() {
    let kb = Kb::new();
    kb.write("docs/guide.md", "# Guide\n\nStart here.\n\n## Retries\n\nThree, then give up.\n");
    kb.write("docs/ops/backup.md", "---\ntitle: Backups\n---\n\nEvery night.\n");
    assert_snapshot!(kb.run(["learn", "docs"]), @r"
    exit: 0
    --- stdout
    added      guide  2 sections
    added      ops/backup  2 sections
    --- stderr
    2 added
    ");
    assert_snapshot!(kb.run(["learn", "docs"]), @r"
    exit: 0
    --- stderr
    2 unchanged
    ");
    kb.write("docs/guide.md", "# Guide\n\nStart over there.\n\n## Retries\n\nThree, then give up.\n");
    assert_snapshot!(kb.run(["learn", "docs"]), @r"
    exit: 0
    --- stdout
    updated    guide  2 sections
    --- stderr
    1 updated, 1 unchanged
    ");
    assert_snapshot!(kb.run(["list"]), @r"
    exit: 0
    --- stdout
    guide       2 sections  61 B  Guide
    ops/backup  2 sections  37 B  Backups
    ");
    assert_snapshot!(kb.run(["history", "guide"]), @r"
    exit: 0
    --- stdout
    2  [TIME]  2 sections  Guide  current
    1  [TIME]  2 sections  Guide
    ");
    assert_eq!(kb.read("docs/ops/backup.md"), b"---\ntitle: Backups\n---\n\nEvery night.\n");
}

#[test]
fn the_report_has_its_names() {
    let kb = Kb::new();
    let report = kb.pipe(["learn", "-", "--docid", "guide", "--tag", "ops", "--json"], "# Guide\n").json();
    assert_eq!(report["documents"][0]["docid"], "guide");
    assert_eq!(report["documents"][0]["outcome"], "added");
    assert_eq!(report["documents"][0]["kbids"][0].as_str().map(str::len), Some(26));
    assert_eq!(report["documents"][0]["warnings"], json!([]));
    assert_eq!((&report["added"], &report["failed"], &report["dryRun"]), (&json!(1), &json!(0), &json!(false)));
}

#[test]
fn a_bad_file_costs_itself_alone() {
    let kb = Kb::new();
    kb.write("docs/good.md", "# Good\n");
    kb.write("docs/bad.md", b"# Bad \xff\n");
    let run = kb.run(["learn", "docs"]);
    assert_eq!(run.exit, 3, "{run}");
    assert!(run.stderr.contains("bad.md"), "{run}");
    assert!(run.stderr.contains("1 added, 1 failed"), "{run}");

    kb.write("worse/bad.md", b"# Bad \xff\n");
    assert_eq!(kb.run(["learn", "worse"]).exit, 1);
}

#[test]
fn a_path_that_does_not_exist_is_named() {
    let kb = Kb::new();
    assert_snapshot!(kb.run(["learn", "D:\\docs\" --tag x"]), @r#"
    exit: 1
    --- stderr
    error: there is no file or folder `D:\docs" --tag x`
    "#);
    kb.write("docs/good.md", "# Good\n");
    let run = kb.run(["learn", "docs", "gone.md"]);
    assert_eq!(run.exit, 3, "{run}");
    assert!(run.stderr.contains("error: gone.md: there is no such file or folder\n"), "{run}");
}

#[cfg(unix)]
#[test]
fn a_pipe_with_a_name_is_stdin_or_refused() {
    let kb = Kb::new();
    let run = kb.pipe(["learn", "/dev/stdin", "--docid", "piped"], "# Piped\n").expect_exit(0);
    assert!(run.text().starts_with("added      piped  1 section"), "{run}");
    assert_eq!(kb.run(["retrieve", "piped"]).text(), "# Piped\n");
    assert_snapshot!(kb.run(["learn", "/dev/null"]), @r"
    exit: 1
    --- stderr
    error: `/dev/null` is neither a file nor a folder
    hint: `kb learn -` reads a pipe: `command | kb learn - --docid NAME`
    ");
    // As a shell names `<(command)`.
    let run = kb.pipe(["learn", "/dev/fd/0"], "# Named\n");
    assert!(run.exit == 1 && run.stderr.contains("hint: `kb learn -` reads a pipe"), "{run}");
    assert_eq!(kb.run(["status", "--json"]).json()["documents"], 1);
}

#[test]
fn no_file_at_all_is_a_failure() {
    let kb = Kb::new();
    std::fs::create_dir_all(kb.path("empty")).expect("a folder");
    assert_snapshot!(kb.run(["learn", "empty"]), @r"
    exit: 1
    --- stderr
    error: no file to learn in `empty`
    hint: a folder's ignored files, images and files of unknown kind are left out: name a file itself, or give `--type`
    ");
}

#[test]
fn a_dry_run_writes_nothing() {
    let kb = Kb::new();
    kb.write("docs/guide.md", "# Guide\n");
    for arguments in [&["learn", "docs", "--dry-run"][..], &["learn", "-", "-n"]] {
        let run = kb.pipe(arguments, "# Piped\n").expect_exit(0);
        assert!(run.stderr.contains("1 added (nothing was written)"), "{run}");
    }
    assert_eq!(kb.run(["status", "--json"]).json()["documents"], 0);
}

#[test]
fn what_was_removed_goes_with_prune_only() {
    let kb = Kb::new();
    kb.write("docs/a.md", "# A\n");
    kb.write("docs/b.md", "# B\n");
    kb.write("docs/c.md", "# C\n");
    kb.run(["learn", "docs"]).expect_exit(0);
    std::fs::remove_file(kb.path("docs/b.md")).expect("removed");
    kb.run(["learn", "docs"]).expect_exit(0);
    assert_eq!(kb.run(["status", "--json"]).json()["documents"], 3);
    assert_snapshot!(kb.run(["learn", "docs", "--prune"]), @r"
    exit: 0
    --- stdout
    removed    b
    --- stderr
    2 unchanged, 1 removed
    ");
    assert_eq!(kb.run(["status", "--json"]).json()["documents"], 2);
}

#[test]
fn flags_that_do_not_fit_are_wrong_usage() {
    let kb = Kb::new();
    for arguments in [
        &["learn", "-", "docs"][..],
        &["learn", "-", "--prune"],
        &["learn", "docs", "--source", "x"],
        &["learn", "docs", "--docid", "No Docid"],
        &["learn", "a.md", "b.md", "--title", "y"],
        &["learn", "docs", "--type", "nonsense"],
        &["unlearn"],
        &["search"],
        &["search", "x", "--limit", "0"],
        &["search", "x", "--limit", "101"],
        &["search", "x", "--mode", "guess"],
        &["search", "x", "--since", "2031-13-01"],
        &["search", "x", "--from", "docs", "--db", "base"],
        &["export"],
    ] {
        let run = kb.run(arguments);
        assert_eq!(run.exit, 2, "{arguments:?}\n{run}");
        assert!(run.stderr.starts_with("error: "), "{arguments:?}\n{run}");
    }
}

#[test]
fn a_flag_for_one_document_is_named_where_there_are_several() {
    let kb = Kb::new();
    kb.write("docs/guide.md", "# Guide\n");
    for (flag, value) in [("--title", "y"), ("--description", "y"), ("--docid", "y")] {
        let run = kb.run(["learn", "docs", flag, value]);
        let told = format!("error: `{flag}` goes with one file, and `docs` is a folder\n");
        assert_eq!((run.exit, run.stderr), (2, told));
        kb.run(["learn", "docs/guide.md", flag, value]).expect_exit(0);
    }
}

#[test]
fn an_exact_id_is_unlearned_at_once() {
    let kb = Kb::new();
    let kbids = kb.learn("guide", "# Guide\n\n## Retries\n\nThree.\n");
    kb.learn("other", "# Other\n");
    let report = kb.run(["unlearn", &kbids[1], "--json"]).expect_exit(0).json();
    assert_eq!(report["sections"], json!([kbids[1]]));
    assert_eq!(report["edited"], json!(["guide"]));
    assert_snapshot!(kb.run(["retrieve", &kbids[1]]).stderr.replace(&kbids[1], "[KBID]"), @r"
    error: Section not found: [KBID]
    hint: `kb search WORDS` lists the ids there are
    ");

    let report = kb.run(["unlearn", "other", "--json"]).expect_exit(0).json();
    assert_eq!(report["documents"], json!(["other"]));
    assert_snapshot!(kb.run(["unlearn", "other"]), @r"
    exit: 1
    --- stderr
    error: Document not found: other
    hint: `kb list` shows all documents
    ");
}

#[test]
fn one_occurrence_of_a_shared_section_goes_and_the_others_stay() {
    let kb = Kb::new();
    let shared = "## Licence\n\nDo what you want.\n";
    let a = kb.learn("a", &format!("# A\n\n{shared}"));
    let b = kb.learn("b", &format!("# B\n\n{shared}"));
    assert_eq!(a[1], b[1]);
    let report = kb.run(["unlearn", &a[1], "--doc", "a", "--json"]).expect_exit(0).json();
    assert_eq!((&report["edited"], &report["shared"]), (&json!(["a"]), &json!([a[1]])));
    assert_eq!(kb.run(["retrieve", &a[1]]).expect_exit(0).text(), shared);
    assert_eq!(kb.run(["retrieve", "a"]).expect_exit(0).text(), "# A\n\n");
}

#[test]
fn what_is_not_named_exactly_needs_a_yes() {
    let kb = Kb::new();
    kb.pipe(["learn", "-", "--docid", "plan-alpha", "--tag", "ops"], "# Alpha\n").expect_exit(0);
    let kbids = kb.learn("plan-beta", "# Beta\n");
    assert_snapshot!(kb.run(["unlearn", "--tag", "ops"]), @r"
    exit: 1
    --- stderr
    error: this would unlearn 1 document (plan-alpha) and 1 section
    hint: nothing was done; `--yes` does it, `--dry-run` shows it
    ");
    let run = kb.run(["unlearn", &kbids[0][..6]]);
    assert!(run.exit == 1 && run.stderr.contains("`--yes` does it"), "{run}");
    assert_eq!(kb.run(["status", "--json"]).json()["documents"], 2);

    let shown = kb.run(["unlearn", "--tag", "OPS", "--dry-run", "--json"]).expect_exit(0).json();
    assert_eq!((&shown["documents"], &shown["dryRun"]), (&json!(["plan-alpha"]), &json!(true)));
    assert_eq!(kb.run(["status", "--json"]).json()["documents"], 2);

    kb.run(["unlearn", "--tag", "ops", "--yes"]).expect_exit(0);
    kb.run(["unlearn", &kbids[0][..6], "--yes", "--purge"]).expect_exit(0);
    let status = kb.run(["status", "--json"]).json();
    assert_eq!((&status["documents"], &status["sections"]), (&json!(1), &json!(0)));
}

#[test]
fn a_near_name_is_told_and_never_taken() {
    let kb = Kb::new();
    kb.learn("plan-alpha", "# Plan Alpha\n");
    kb.learn("plan-beta", "# Plan Beta\n");
    for name in ["plan-gamma", "Plan Gamma"] {
        let run = kb.run(["unlearn", name, "--yes"]);
        assert_eq!(run.exit, 1, "{run}");
        assert!(run.stderr.contains(&format!("error: Document not found: {name}\n")), "{run}");
        assert!(run.stderr.contains("`plan-alpha`") && run.stderr.contains("`plan-beta`"), "{run}");
    }
    let object = kb.run(["unlearn", "plan-gamma", "--json"]).json();
    assert_eq!(object["error"]["code"], "not-found");
    assert_eq!(object["error"]["near"].as_array().map(Vec::len), Some(2));
    assert_eq!(kb.run(["status", "--json"]).json()["documents"], 2);
}
