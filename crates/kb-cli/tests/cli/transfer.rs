//! `import` and `export`.
//!
//! **Invariant:** what is exported and imported again is the same base.

use insta::assert_snapshot;
use serde_json::json;

use crate::harness::Kb;

#[test]
fn each_line_has_its_result_and_a_bad_one_costs_itself_alone() {
    let kb = Kb::new();
    kb.write("batch/text.md", "# From a file\n");
    let lines = [
        r##"{"op": "learn", "docid": "a", "content": "# A\n", "tags": ["x"]}"##,
        "no json",
        r#"{"op": "learn", "docid": "b", "path": "text.md"}"#,
        r#"{"op": "unlearn", "docid": "nothing"}"#,
        r#"{"op": "unlearn", "docid": "a"}"#,
    ];
    kb.write("batch/lines.jsonl", lines.join("\n"));
    let run = kb.run(["import", "batch/lines.jsonl"]);
    assert_eq!(run.exit, 3, "{run}");
    let results = run.json_lines();
    let told: Vec<_> = results.iter().map(|line| (line["line"].clone(), line["ok"].clone())).collect();
    let expected = [(1, true), (2, false), (3, true), (4, false), (5, true)].map(|(n, ok)| (json!(n), json!(ok)));
    assert_eq!(told, expected);
    assert_eq!(results[0]["outcome"], "added");
    assert_eq!(results[3]["error"]["code"], "not-found");
    assert_eq!(results[4]["outcome"], "removed");
    assert_eq!(run.stderr, "5 lines: 3 done, 2 failed\n");
    assert_eq!(kb.run(["retrieve", "b"]).text(), "# From a file\n");
}

#[test]
fn atomic_is_all_or_nothing_and_a_dry_run_nothing() {
    let kb = Kb::new();
    let good = "{\"op\": \"learn\", \"docid\": \"a\", \"content\": \"# A\\n\"}\n";
    let run = kb.pipe(["import", "-", "--atomic"], format!("{good}no json\n"));
    assert_eq!(run.exit, 1, "{run}");
    kb.pipe(["import", "-", "--dry-run"], good).expect_exit(0);
    assert_eq!(kb.run(["status", "--json"]).json()["documents"], 0);
    kb.pipe(["import", "-", "--atomic"], good).expect_exit(0);
    assert_eq!(kb.run(["status", "--json"]).json()["documents"], 1);
    assert_eq!(kb.pipe(["import", "-"], "no json\n").exit, 1);
    assert_eq!(kb.run(["import", "gone.jsonl"]).exit, 1);
}

#[test]
fn a_folder_is_no_batch() {
    let kb = Kb::new();
    assert_snapshot!(kb.run(["import", "."]), @r"
    exit: 1
    --- stderr
    error: `.` is a folder, not a file of JSON lines
    hint: `kb learn` takes folders
    ");
}

fn filled() -> Kb {
    let kb = Kb::new();
    kb.write("docs/guide.md", "\u{feff}# Guide\r\n\r\nText.");
    kb.write("docs/ops/backup.md", "---\ntitle: Backups\ntags: [ops]\n---\nEvery night.\n");
    kb.write("docs/dot.png", b"\x89PNG\r\n\x1a\n\x00\xff");
    kb.write("docs/page.html", "<h1>Page</h1>\n<p>Text.</p>\n");
    kb.run(["learn", "docs", "docs/dot.png"]).expect_exit(0);
    kb.run([
        "skill",
        "learn",
        "--name",
        "Sum",
        "--description",
        "Sums",
        "--body",
        "Sum {{doc}}.\n",
        "--argument",
        "doc!",
    ])
    .expect_exit(0);
    kb.run(["agent", "create", "Reader", "--description", "Reads", "--persona", "Read.\n", "--skill", "Sum"])
        .expect_exit(0);
    kb
}

#[test]
fn a_tree_is_written_byte_for_byte() {
    let kb = filled();
    assert_snapshot!(kb.run(["export", "out"]), @r"
    exit: 0
    --- stdout
    exported 6 documents to out
    ");
    assert_eq!(kb.read("out/guide.md"), "\u{feff}# Guide\r\n\r\nText.".as_bytes());
    assert_eq!(kb.read("out/dot.png"), b"\x89PNG\r\n\x1a\n\x00\xff");
    assert_eq!(kb.read("out/ops/backup.md"), kb.read("docs/ops/backup.md"));

    assert_snapshot!(kb.run(["export", "out"]), @r"
    exit: 1
    --- stderr
    error: `out` is not empty
    hint: name another folder, or write over what is there with `--force`
    ");
    kb.write("out/guide.md", "changed");
    kb.run(["export", "out", "--force"]).expect_exit(0);
    assert_eq!(kb.read("out/guide.md"), kb.read("docs/guide.md"));
}

#[test]
fn lines_that_are_exported_make_the_same_base() {
    let kb = filled();
    let lines = kb.run(["export", "--jsonl", "-"]).expect_exit(0);
    kb.run(["init", "--db", "copy"]).expect_exit(0);
    let run = kb.pipe(["--db", "copy", "import", "-"], &lines.stdout);
    assert_eq!(run.exit, 0, "{run}");
    let again = kb.run(["--db", "copy", "export", "--jsonl", "-"]).expect_exit(0);
    assert_eq!(again.text(), lines.text());

    let kbids = |db: &str, docid: &str| {
        let document = kb.run(["--db", db, "retrieve", docid, "--json"]).expect_exit(0).json();
        document["sections"].as_array().expect("sections").iter().map(|s| s["kbid"].clone()).collect::<Vec<_>>()
    };
    for docid in ["guide", "ops/backup", "page", "skill-sum", "agent-reader"] {
        assert_eq!(kbids(".kbdb", docid), kbids("copy", docid), "{docid}");
    }

    kb.run(["export", "--jsonl", "lines.jsonl"]).expect_exit(0);
    assert_eq!(kb.read("lines.jsonl"), lines.stdout);
    let taken = kb.run(["export", "--jsonl", "lines.jsonl"]);
    assert!(taken.exit == 1 && taken.stderr.contains("`--force`"), "{taken}");
}

#[test]
fn a_placeholder_that_is_not_declared_is_not_after_an_export_and_an_import() {
    let kb = Kb::new();
    let skill = "---\nname: Sum\narguments: [lines]\nlicense: MIT\n---\nSum up {{doc}} in {{lines}} lines.\n";
    let line = json!({"op": "skill", "content": skill});
    kb.pipe(["import", "-"], format!("{line}\n")).expect_exit(0);
    let lines = kb.run(["export", "--jsonl", "-"]).expect_exit(0);
    kb.run(["init", "--db", "copy"]).expect_exit(0);
    kb.pipe(["--db", "copy", "import", "-"], &lines.stdout).expect_exit(0);
    assert_eq!(kb.run(["--db", "copy", "content", "skill-sum"]).text(), skill);
}

#[test]
fn a_line_takes_no_file_from_outside_its_folder_unless_that_is_allowed() {
    let kb = Kb::new();
    kb.write("secret.md", "# Secret\n");
    kb.write("batch/lines.jsonl", "{\"op\": \"learn\", \"docid\": \"s\", \"path\": \"../secret.md\"}\n");
    let run = kb.run(["import", "batch/lines.jsonl"]);
    assert_eq!((run.exit, run.json_lines()[0]["error"]["code"].clone()), (1, json!("invalid")), "{run}");
    kb.run(["import", "batch/lines.jsonl", "--allow-outside"]).expect_exit(0);
    assert_eq!(kb.run(["content", "s"]).text(), "# Secret\n");
}
