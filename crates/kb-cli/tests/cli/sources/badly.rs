//! Servers that behave badly.

use serde_json::json;

use super::{asked, counts, lab, lab_with};
use crate::harness::Kb;

/// Nothing was applied, and nothing waits.
fn expect_untouched(kb: &Kb) {
    assert_eq!(kb.run(["status", "--json"]).json()["documents"], 0);
    kb.run(["check"]).expect_exit(0);
}

#[test]
fn a_server_that_is_silent_meets_its_deadline() {
    for (scenario, step, code) in [
        ("hang_initialize", "connect", "connect"),
        ("hang_tools/list", "list", "list-tools"),
        ("hang_tools/call", "select", "select-failed"),
    ] {
        let kb = Kb::new();
        lab(&kb, scenario, &format!("timeout: {{{step}: 0.3}}"));
        let run = kb.run(["source", "run", "lab.yaml", "--json"]);
        assert_eq!(run.exit, 1, "{scenario}\n{run}");
        assert!(run.stderr.contains("no answer within 0.3 s"), "{scenario}\n{run}");
        assert_eq!(run.json()["error"]["code"], code, "{scenario}\n{run}");
        expect_untouched(&kb);
    }
}

#[test]
fn reads_that_go_unanswered_end_after_a_few() {
    let kb = Kb::new();
    lab(&kb, "hang_read --n 50", "timeout: {read: 0.2}");
    let run = kb.run(["source", "run", "lab.yaml"]);
    assert_eq!(run.exit, 1, "{run}");
    assert!(run.stderr.contains("ReadsFailed: 50 documents selected and none could be read"), "{run}");
    assert_eq!(run.stderr.matches("no answer within 0.2 s").count(), 3, "{run}");
    assert_eq!(asked(&kb).iter().filter(|line| line.starts_with("read ")).count(), 3);
    expect_untouched(&kb);
}

#[test]
fn what_cannot_be_read_costs_itself_alone() {
    for (scenario, added, failed, reason) in [
        ("some_fail", 4, 1, "upstream 503"),
        ("tool_error", 4, 1, "the tool failed: not found"),
        ("blank_text", 4, 1, "its text is blank"),
        ("surrogate", 4, 1, "the answer cannot be read"),
        ("two_resources", 4, 1, "2 resources"),
        ("die_read", 2, 3, "the server ended with exit code 3"),
        ("bad_rows", 5, 3, "a row has no `id`"),
        ("blank_ids", 2, 2, "`id` of a row is blank"),
    ] {
        let kb = Kb::new();
        lab(&kb, scenario, "");
        let run = kb.run(["source", "run", "lab.yaml", "--json", "--yes"]);
        assert_eq!(run.exit, 3, "{scenario}\n{run}");
        let [found_added, .., found_failed] = counts(&run);
        assert_eq!((found_added, found_failed), (added, failed), "{scenario}\n{run}");
        assert_eq!(run.stderr.lines().filter(|line| line.starts_with("warning: ")).count() as u64, failed, "{run}");
        assert!(run.stderr.contains(reason), "{scenario}\n{run}");
        assert_eq!(kb.run(["status", "--json"]).json()["documents"], added);
        kb.run(["check"]).expect_exit(0);
    }
}

#[test]
fn if_all_reads_fail_nothing_is_proposed_and_nothing_goes() {
    let kb = Kb::new();
    lab(&kb, "plain", "");
    kb.run(["source", "run", "lab.yaml", "--yes"]).expect_exit(0);
    lab(&kb, "all_fail --n 4", "");
    let run = kb.run(["source", "run", "lab.yaml", "--yes", "--remove-most"]);
    assert_eq!(run.exit, 1, "{run}");
    assert!(run.stderr.contains("ReadsFailed"), "{run}");
    assert_eq!(kb.run(["source", "diff", "lab"]).exit, 1, "no proposal");
    assert_eq!(kb.run(["status", "--json"]).json()["documents"], 5);
}

#[test]
fn a_selection_that_fails_fails_the_run() {
    for (scenario, reason) in [
        ("select_fails", "the index is away"),
        ("select_is_error", "no such phrase"),
        ("object_rows", "is not a list"),
        ("prose", "no structured content"),
    ] {
        let kb = Kb::new();
        lab(&kb, scenario, "");
        let run = kb.run(["source", "run", "lab.yaml"]);
        assert!(run.exit == 1 && run.stderr.contains(reason), "{scenario}\n{run}");
        expect_untouched(&kb);
    }
}

#[test]
fn noise_and_disorder_are_seen_through() {
    for scenario in
        ["noise", "flood", "chatter", "text_ids", "no_titles", "paged_tools", "loop_tools", "no_hint", "stays"]
    {
        let kb = Kb::new();
        lab(&kb, scenario, "");
        let run = kb.run(["source", "run", "lab.yaml", "--json", "--yes"]).expect_exit(0);
        assert_eq!(counts(&run), [5, 0, 0, 0, 0], "{scenario}");
    }
    let kb = Kb::new();
    lab(&kb, "reversed --n 6", "concurrency: 3");
    let run = kb.run(["source", "run", "lab.yaml", "--json", "--yes"]).expect_exit(0);
    assert_eq!(counts(&run), [6, 0, 0, 0, 0], "{run}");
    for n in 0..6 {
        let text = kb.run(["content", &format!("lab-docs/d0000{n}.md")]);
        assert!(text.text().starts_with(&format!("# Document {n}\n")), "{text}");
    }
}

#[test]
fn a_tool_that_writes_or_is_not_there_is_never_called() {
    let kb = Kb::new();
    lab(&kb, "writes", "");
    let run = kb.run(["source", "run", "lab.yaml"]);
    assert!(run.exit == 2 && run.stderr.contains("`readOnlyHint` is false"), "{run}");
    assert_eq!(asked(&kb), ["initialize", "notifications/initialized", "tools/list"]);

    lab(&kb, "plain", "read: {tool: reed, id_arg: id}");
    let run = kb.run(["source", "run", "lab.yaml"]);
    assert!(run.exit == 2 && run.stderr.contains("the server has no tool `reed`"), "{run}");
    assert_eq!(asked(&kb).len(), 3);
}

#[test]
fn pages_without_an_end_are_cut_off_and_nothing_goes_then() {
    let keys = "select:\n  tool: search\n  ids: {list: results, id: id}\n  complete: true\n  cursor: {arg: page, next: meta.next, pages: 4}";
    for (scenario, added, reason) in [("endless", 4, "goes on after 4 pages"), ("loop_pages", 2, "repeats a cursor")] {
        let kb = Kb::new();
        lab_with(&kb, scenario, keys);
        let run = kb.run(["source", "run", "lab.yaml", "--json", "--yes"]);
        assert_eq!(run.exit, 3, "{scenario}\n{run}");
        assert!(counts(&run)[0] == added && run.stderr.contains(reason), "{scenario}\n{run}");
    }
}

#[test]
fn ids_that_come_twice_count_once() {
    let kb = Kb::new();
    lab(&kb, "twice", "");
    let run = kb.run(["source", "run", "lab.yaml", "--json"]).expect_exit(0);
    assert_eq!((counts(&run)[0], run.stderr.matches("`a` is selected more than once").count()), (2, 1), "{run}");
}

#[test]
fn what_is_gone_stays_unless_the_rule_lets_it_go() {
    let kb = Kb::new();
    lab(&kb, "plain", "");
    kb.run(["source", "run", "lab.yaml", "--yes"]).expect_exit(0);
    // More than half.
    lab(&kb, "plain --skip 3", "");
    let run = kb.run(["source", "run", "lab.yaml", "--yes", "--json"]).expect_exit(0);
    assert_eq!(counts(&run), [0, 0, 0, 2, 0]);
    assert!(run.json()["keptReason"].as_str().is_some_and(|reason| reason.contains("more than half")), "{run}");
    // A run that skipped something.
    lab(&kb, "some_fail --skip 1", "");
    assert_eq!(counts(&kb.run(["source", "run", "lab.yaml", "--yes", "--json"]).expect_exit(3))[2], 0);
    // A selection that does not say that it is complete.
    lab_with(&kb, "plain --skip 1", "select: {tool: search, ids: {list: results, id: id, title: title}}");
    assert_eq!(
        kb.run(["source", "run", "lab.yaml", "--yes", "--json"]).json()["kept"].as_array().map(Vec::len),
        Some(1)
    );
    lab(&kb, "plain --skip 3", "");
    let run = kb.run(["source", "run", "lab.yaml", "--yes", "--json", "--remove-most"]).expect_exit(0);
    assert_eq!(counts(&run), [0, 0, 3, 2, 0]);
    assert_eq!(kb.run(["source", "status", "lab", "--json"]).json()["documents"], json!(2));
}
