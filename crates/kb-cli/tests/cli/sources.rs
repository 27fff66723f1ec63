//! `source`: documents from other MCP servers, good ones and bad ones.
//!
//! **Invariant:** whatever a server does, a run ends, its exit code tells what came of it, and the base is what it was or what
//! was planned.

mod badly;
mod configuration;
mod processes;
mod transports;

use std::path::{Path, PathBuf};

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::harness::{Kb, Run};

const IDS: &str = "ids: {list: results, id: id, title: title}";

/// Returns the server that behaves as it is told.
pub(crate) fn fake_server() -> PathBuf {
    let tests = std::env::current_exe().expect("this test has a path");
    let target = tests.parent().and_then(Path::parent).expect("the folder of the build");
    let server = target.join("examples").join(format!("fake_server{}", std::env::consts::EXE_SUFFIX));
    assert!(server.is_file(), "`cargo build -p kb-cli --examples` builds what these tests run");
    server
}

/// Writes a source that is read from a child process of these arguments; `keys` are further lines of the configuration.
fn lab(kb: &Kb, arguments: &str, keys: &str) {
    lab_with(kb, arguments, &format!("select:\n  tool: search\n  {IDS}\n  complete: true\n{keys}"));
}

/// As [`lab`], with the whole selection.
fn lab_with(kb: &Kb, arguments: &str, keys: &str) {
    let arguments: Vec<&str> = arguments.split_whitespace().collect();
    let (command, log) = (json!(fake_server()), kb.path("log"));
    let arguments = json!([&arguments[..], &["--log", log.to_str().expect("text")]].concat());
    let mut yaml = format!("system: lab\ntransport: {{kind: stdio, command: {command}, args: {arguments}}}\n{keys}\n");
    if !keys.lines().any(|line| line.starts_with("read:")) {
        yaml.push_str("read: {tool: read, id_arg: id}\n");
    }
    kb.write("lab.yaml", yaml);
}

/// Returns what the server was asked, and forgets it.
fn asked(kb: &Kb) -> Vec<String> {
    let text = String::from_utf8(kb.read("log")).expect("text");
    std::fs::remove_file(kb.path("log")).expect("a log");
    text.lines().map(str::to_owned).collect()
}

fn docids(run: &Run) -> Vec<String> {
    let changes = run.json()["changes"].as_array().expect("changes").clone();
    changes.iter().map(|change| change["docid"].as_str().expect("a docid").to_owned()).collect()
}

/// Returns these counts of a run.
fn counts(run: &Run) -> [u64; 5] {
    let value = run.json();
    ["added", "modified", "removed", "unchanged", "failed"].map(|key| value[key].as_u64().expect("a count"))
}

#[test]
fn from_nothing_to_applied_and_away_again() {
    let kb = Kb::new();
    lab(&kb, "plain --n 3", "");
    assert_snapshot!(kb.run(["source", "add", "lab.yaml"]), @r"
    exit: 0
    --- stdout
    added lab (system lab)
    --- stderr
    `kb source run lab` fetches what it has
    ");
    assert_snapshot!(kb.run(["source", "check", "lab", "--online"]), @r"
    exit: 0
    --- stdout
    The configuration of lab is sound
    Server fake 1, protocol 2025-11-25; a run can call `search` and `read`
    3 documents selected
      lab-docs/d00000.md  docs/d00000.md  Title 0
      lab-docs/d00001.md  docs/d00001.md  Title 1
      lab-docs/d00002.md  docs/d00002.md  Title 2
    docs/d00000.md would be lab-docs/d00000.md: Title 0, 172 B, text/markdown
      # Document 0  Paragraph about topic 0.  Line for document 0: the quick brown fox jumps over the lazy dog. Line for document 0: the quick brown fox jumps over the lazy dog.
    ");
    assert_snapshot!(kb.run(["source", "run", "lab"]), @r"
    exit: 0
    --- stdout
    added  lab-docs/d00000.md  172 B  Title 0
    added  lab-docs/d00001.md  172 B  Title 1
    added  lab-docs/d00002.md  172 B  Title 2
    --- stderr
    3 added: proposed, nothing is changed yet; `kb source diff lab` shows it, `kb source apply lab` applies it
    ");
    assert_eq!(kb.run(["status", "--json"]).json()["documents"], 0);
    assert_snapshot!(kb.run(["source", "list"]), @r"
    exit: 0
    --- stdout
    lab  mcp  lab  0 documents  run [TIME]: proposed  proposal: 3 added, 0 modified, 0 removed
    ");
    assert_snapshot!(kb.run(["source", "apply", "lab"]), @r"
    exit: 0
    --- stdout
    3 added
    ");
    assert_snapshot!(kb.run(["source", "run", "lab"]), @r"
    exit: 0
    --- stderr
    3 unchanged: no change
    ");
    assert_snapshot!(kb.run(["source", "apply", "lab"]), @r"
    exit: 0
    --- stderr
    `lab` has no proposal that waits: nothing to apply
    ");
    assert_eq!(kb.run(["content", "lab-docs/d00001.md"]).text().lines().next(), Some("# Document 1"));

    lab(&kb, "plain --n 3 --change 1 --skip 0", "");
    kb.run(["source", "run", "lab.yaml"]).expect_exit(0);
    assert_snapshot!(kb.run(["source", "diff", "lab", "--format", "diff"]), @r"
    exit: 0
    --- stdout
    --- lab-docs/d00000.md
    +++ lab-docs/d00000.md
    @@ -4,3 +4,4 @@
     
     Line for document 0: the quick brown fox jumps over the lazy dog.
     Line for document 0: the quick brown fox jumps over the lazy dog.
    +changed
    ");
    assert_snapshot!(kb.run(["source", "diff", "lab"]), @r"
    exit: 0
    --- stdout
    modified  lab-docs/d00000.md  172 B → 180 B  Title 0
    1 modified, 2 unchanged, proposed [TIME]

    --- lab-docs/d00000.md
    +++ lab-docs/d00000.md
    @@ -4,3 +4,4 @@
     
     Line for document 0: the quick brown fox jumps over the lazy dog.
     Line for document 0: the quick brown fox jumps over the lazy dog.
    +changed
    ");
    kb.run(["source", "apply", "lab"]).expect_exit(0);
    assert_snapshot!(kb.run(["source", "remove", "lab", "--with-documents"]), @r"
    exit: 1
    --- stderr
    error: this would remove `lab` with up to 3 documents
    hint: nothing was done; `--yes` does it
    ");
    assert_snapshot!(kb.run(["source", "remove", "lab", "--with-documents", "--yes"]), @r"
    exit: 0
    --- stdout
    removed  lab-docs/d00000.md
    removed  lab-docs/d00001.md
    removed  lab-docs/d00002.md
    removed the source lab; 0 documents that it brought stay in the base
    ");
    assert_eq!(kb.run(["status", "--json"]).json()["documents"], 0);
    assert_snapshot!(kb.run(["source", "status", "lab"]), @r"
    exit: 1
    --- stderr
    error: Source not found: lab
    hint: `kb source list` shows all sources
    ");
    kb.run(["check"]).expect_exit(0);
}

#[test]
fn only_the_two_tools_are_ever_called() {
    let kb = Kb::new();
    lab(&kb, "plain --n 2", "");
    kb.run(["source", "run", "lab.yaml", "--yes"]).expect_exit(0);
    let expected = [
        "initialize",
        "notifications/initialized",
        "tools/list",
        "search {}",
        "read {\"id\":\"docs/d00000.md\"}",
        "read {\"id\":\"docs/d00001.md\"}",
    ];
    assert_eq!(asked(&kb), expected);
    // A second run, a check without the server, and one with it.
    kb.run(["source", "run", "lab.yaml"]).expect_exit(0);
    assert_eq!(asked(&kb), expected);
    kb.run(["source", "check", "lab.yaml"]).expect_exit(0);
    assert!(!kb.path("log").exists(), "no server is started");
    kb.run(["source", "check", "lab.yaml", "--online"]).expect_exit(0);
    assert_eq!(asked(&kb), &expected[..5]);

    lab_with(&kb, "plain", "static_ids: [docs/d00004.md]");
    kb.run(["source", "run", "lab.yaml", "--name", "picked"]).expect_exit(0);
    assert_eq!(asked(&kb)[2..], ["tools/list", "read {\"id\":\"docs/d00004.md\"}"]);
}

#[test]
fn a_run_without_change_writes_nothing_and_one_with_a_change_only_that() {
    let kb = Kb::new();
    lab(&kb, "plain", "");
    let first = kb.run(["source", "run", "lab.yaml", "--yes", "--json"]).expect_exit(0).json();
    assert_eq!((&first["outcome"], &first["added"]), (&json!("applied"), &json!(5)));
    let second = kb.run(["source", "run", "lab.yaml", "--yes", "--json"]).expect_exit(0).json();
    assert_eq!((&second["outcome"], &second["generation"]), (&json!("unchanged"), &first["generation"]));
    lab(&kb, "plain --change 2 --skip 1", "");
    let third = kb.run(["source", "run", "lab.yaml", "--yes", "--json"]).expect_exit(0);
    assert_eq!(counts(&third), [0, 1, 1, 3, 0]);
    assert_eq!(third.json()["generation"].as_u64(), first["generation"].as_u64().map(|generation| generation + 1));
    let listed = kb.run(["source", "list", "--json"]).expect_exit(0).json();
    assert_eq!(listed["sources"][0]["lastOutcome"], "applied");
}

#[test]
fn where_a_document_came_from_is_shown_and_found() {
    let kb = Kb::new();
    kb.learn("own", "# Own\n\nA fox of my own.\n");
    lab(&kb, "plain --n 2", "");
    kb.run(["source", "run", "lab.yaml", "--yes", "--name", "animals"]).expect_exit(0);
    let document = kb.run(["retrieve", "lab-docs/d00001.md", "--json"]).expect_exit(0).json();
    let provenance = &document["provenance"];
    assert_eq!(
        (&provenance["system"], &provenance["id"], &provenance["sources"]),
        (&json!("lab"), &json!("docs/d00001.md"), &json!(["animals"]))
    );
    for arguments in [&["search", "fox", "--source", "animals"][..], &["search", "fox source:lab"]] {
        let found = kb.run([arguments, &["--json"]].concat()).expect_exit(0).json();
        assert_eq!(found["total"], 2, "{arguments:?}");
        assert_eq!(found["hits"][0]["provenance"]["system"], "lab");
    }
    for name in ["lab", "animals"] {
        let listed = kb.run(["list", "--source", name, "--json"]).expect_exit(0).json();
        assert_eq!(listed["documents"].as_array().map(Vec::len), Some(2), "{name}");
    }
    let plain = kb.run(["content", "lab-docs/d00000.md"]).expect_exit(0);
    let noted = kb.run(["content", "lab-docs/d00000.md", "--footnotes"]).expect_exit(0);
    let footnotes = noted.text().strip_prefix(plain.text()).expect("the text comes first");
    assert!(footnotes.starts_with("\n[^kb-1]\n\n[^kb-1]: lab, docs/d00000.md, retrieved "), "{footnotes}");
}

#[test]
fn a_selection_is_read_as_it_is_configured() {
    let json_text = format!("select: {{tool: search, json_text: true, {IDS}}}");
    let deep = "select: {tool: search, ids: {list: 'meta.rows', id: id}}";
    let pages = "select:\n  tool: search\n  ids: {list: results, id: id}\n  cursor: {arg: page, next: meta.next}";
    for (arguments, keys, exit, added) in [
        ("links", "select: {tool: search}", 0, 5),
        ("json_text", json_text.as_str(), 0, 5),
        ("json_text", &format!("select: {{tool: search, {IDS}}}"), 1, 0),
        ("plain", "select: {tool: search}", 1, 0),
        ("plain", deep, 1, 0),
        ("prose", "select: {tool: search}", 1, 0),
        ("nothing", &format!("select: {{tool: search, {IDS}}}"), 0, 0),
        ("pages", pages, 0, 5),
        ("plain", "static_ids: [docs/d00001.md, docs/d00003.md]", 0, 2),
        (
            "plain",
            &format!(
                "select: {{tool: search, {IDS}}}\nread: {{tool: read, id_arg: id, text_key: markdown, title_key: title}}"
            ),
            0,
            5,
        ),
        ("plain", &format!("select: {{tool: search, {IDS}}}\nread: {{tool: read, id_arg: id, text_key: none}}"), 1, 0),
    ] {
        let kb = Kb::new();
        lab_with(&kb, arguments, keys);
        let run = kb.run(["source", "run", "lab.yaml", "--json"]);
        assert_eq!(run.exit, exit, "{arguments} {keys}\n{run}");
        if exit == 0 {
            assert_eq!(counts(&run)[0], added, "{arguments} {keys}\n{run}");
        }
    }
}

#[test]
fn a_version_that_is_the_same_spares_the_read() {
    let kb = Kb::new();
    let keys = "select:\n  tool: search\n  ids: {list: results, id: id, title: title, version: etag}";
    lab_with(&kb, "versions", keys);
    kb.run(["source", "run", "lab.yaml", "--yes"]).expect_exit(0);
    asked(&kb);
    let again = kb.run(["source", "run", "lab.yaml", "--yes", "--json"]).expect_exit(0);
    assert_eq!(counts(&again), [0, 0, 0, 5, 0]);
    assert_eq!(asked(&kb).last().map(String::as_str), Some("search {}"));
    lab_with(&kb, "versions --change 1", keys);
    assert_eq!(counts(&kb.run(["source", "run", "lab.yaml", "--yes", "--json"])), [0, 1, 0, 4, 0]);
    assert_eq!(asked(&kb).iter().filter(|line| line.starts_with("read ")).count(), 1);
}

#[test]
fn names_are_safe_and_shared_by_no_two() {
    let kb = Kb::new();
    for scenario in ["cases", "traversal", "long_id"] {
        lab(&kb, scenario, "");
        let run = kb.run(["source", "run", "lab.yaml", "--yes", "--json", "--name", scenario]).expect_exit(0);
        let (count, mut docids) = (counts(&run)[0], docids(&run));
        docids.dedup();
        assert_eq!(docids.len() as u64, count, "{docids:?}");
        assert!(docids.iter().all(|docid| docid.starts_with("lab-") && !docid.contains("..") && docid.len() < 200));
    }
    let list = kb.run(["list"]);
    assert!(!list.text().contains('\u{7f}'), "{list}");
    kb.run(["check"]).expect_exit(0);
}

#[test]
fn a_proposal_is_written_in_three_forms() {
    let kb = Kb::new();
    lab(&kb, "markers --n 1", "");
    kb.run(["source", "run", "lab.yaml", "--out", "review"]).expect_exit(0);
    let page = String::from_utf8(kb.read("review/lab.md")).expect("text");
    assert!(page.contains("````diff\n"), "the fence is longer than one in the text: {page}");
    let value: Value = serde_json::from_slice(&kb.read("review/lab.json")).expect("JSON");
    assert_eq!(value["plan"]["added"], 1);
    assert!(kb.read("review/lab.diff").starts_with(b"--- /dev/null\n+++ lab-docs/d00000.md\n"));
    kb.run(["source", "apply", "lab"]).expect_exit(0);
    // The bytes are the server's, whatever they look like.
    let text = kb.run(["content", "lab-docs/d00000.md"]).expect_exit(0);
    assert!(text.text().starts_with("---\ntitle: Not the title\n---\n# A docs/d00000.md\n"), "{text}");
    assert!(text.text().contains("<!-- kb:end -->\n--- a\n+++ b\n```\n~~~\n\u{1b}[2J\n"));
    let document = kb.run(["retrieve", "lab-docs/d00000.md", "--json"]).json();
    assert_eq!(document["title"], "Title 0", "front matter of a fetched text does not name it");
}

#[test]
fn what_was_changed_since_the_proposal_is_named() {
    let kb = Kb::new();
    lab(&kb, "plain --n 2", "");
    kb.run(["source", "run", "lab.yaml", "--yes"]).expect_exit(0);
    lab(&kb, "plain --n 2 --change 2", "");
    kb.run(["source", "run", "lab.yaml"]).expect_exit(0);
    kb.learn("lab-docs/d00001.md", "# Mine\n");
    assert_snapshot!(kb.run(["source", "apply", "lab"]), @r"
    exit: 1
    --- stderr
    error: the proposal of `lab` no longer fits: changed since it was made: lab-docs/d00001.md
    hint: nothing was applied; `kb source run NAME` makes a new proposal
    ");
    assert_eq!(kb.run(["content", "lab-docs/d00001.md"]).text(), "# Mine\n");
}

#[test]
fn what_a_source_brought_is_exported_and_learned_again() {
    let kb = Kb::new();
    kb.learn("own", "# Own\n");
    kb.learn("lab-docs/index", "# A page of that name\n");
    lab(&kb, "plain --n 2", "");
    kb.run(["source", "run", "lab.yaml", "--yes"]).expect_exit(0);
    let kbids = |db: &str, docid: &str| -> Vec<Value> {
        let document = kb.run(["--db", db, "retrieve", docid, "--json"]).expect_exit(0).json();
        let sections = document["sections"].as_array().expect("sections").clone();
        let texts = sections.iter().filter(|section| section["role"] != "front-matter");
        texts.map(|section| section["kbid"].clone()).collect()
    };
    for format in ["tree", "okf"] {
        kb.run(["export", format, "--format", format, "--source", "lab"]).expect_exit(0);
        kb.run(["--db", &format!("{format}.kb"), "init"]).expect_exit(0);
        kb.run(["--db", &format!("{format}.kb"), "learn", format]).expect_exit(0);
        for n in 0..2 {
            let (ours, again) = (format!("lab-docs/d0000{n}.md"), format!("lab-docs/d0000{n}"));
            assert_eq!(kbids(".kbdb", &ours), kbids(&format!("{format}.kb"), &again), "{format}");
        }
    }
    assert_eq!(kb.read("tree/lab-docs/d00001.md"), kb.run(["content", "lab-docs/d00001.md"]).stdout);
    assert!(!kb.path("tree/own.md").exists(), "only what the source brought");
    let page = String::from_utf8(kb.read("okf/lab-docs/d00001.md")).expect("text");
    assert!(page.starts_with("---\ntype: \"Document\"\ntitle: \"Title 1\"\n"), "{page}");
    assert!(page.contains("provenance: {system: \"lab\", id: \"docs/d00001.md\", "), "{page}");
    let index = String::from_utf8(kb.read("okf/index.md")).expect("text");
    assert!(index.starts_with("---\nokf_version: \"0.2\"\n---\n"), "{index}");

    // All of the base: a page of a reserved name gets another one.
    kb.run(["export", "all", "--format", "okf"]).expect_exit(0);
    assert!(kb.read("all/lab-docs/index-page.md").ends_with(b"# A page of that name\n"));
    assert!(kb.read("all/lab-docs/index.md").starts_with(b"# lab-docs\n\n- [Title 0](d00000.md)\n"));
}
