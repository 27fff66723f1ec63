//! `skill` and `agent`.
//!
//! **Invariant:** `render` prints the text and nothing else.

use insta::assert_snapshot;
use serde_json::json;

use crate::harness::Kb;

fn with_skill() -> Kb {
    let kb = Kb::new();
    kb.run([
        "skill",
        "learn",
        "--name",
        "summary",
        "--description",
        "Sums up a text",
        "--body",
        "Sum {{doc}} up in {{n}} lines.\n",
        "--argument",
        "doc=The text!",
        "--argument",
        "n",
    ])
    .expect_exit(0);
    kb
}

#[test]
fn a_skill_is_learned_listed_and_shown() {
    let kb = with_skill();
    assert_snapshot!(kb.run(["skill", "list"]), @r"
    exit: 0
    --- stdout
    summary  2 arguments  Sums up a text
    ");
    let list = kb.run(["skill", "list", "--json"]).json();
    assert_eq!(list["skills"][0]["argumentCount"], 2);
    let skill = kb.run(["skill", "get", "Summary", "--json"]).json();
    assert_eq!(skill["docid"], "skill-summary");
    assert_eq!(skill["arguments"][0], json!({"name": "doc", "description": "The text", "required": true}));
    let shown = kb.run(["skill", "get", "Summary"]).expect_exit(0);
    assert!(shown.text().ends_with("\nSum {{doc}} up in {{n}} lines.\n"), "{shown}");
}

#[test]
fn a_whole_skill_file_is_learned() {
    let kb = Kb::new();
    let text = "---\nname: review\ndescription: Reviews a change\narguments:\n  - name: diff\n    required: true\n---\nRead {{diff}}.\n";
    kb.write("SKILL.md", text);
    kb.run(["skill", "learn", "SKILL.md"]).expect_exit(0);
    let skill = kb.run(["skill", "get", "review", "--json"]).json();
    assert_eq!(kb.run(["retrieve", skill["kbid"].as_str().expect("a kbid")]).text(), text);
    let again = kb.pipe(["skill", "learn", "-", "--json"], text).json();
    assert_eq!((&again["outcome"], &again["kbid"]), (&json!("unchanged"), &skill["kbid"]));
}

#[test]
fn placeholders_are_filled_in_once() {
    let kb = with_skill();
    assert_eq!(kb.run(["skill", "render", "summary", "doc={{n}}=x", "n=2"]).text(), "Sum {{n}}=x up in 2 lines.\n");
    assert_eq!(kb.run(["skill", "render", "summary", "doc=it"]).text(), "Sum it up in  lines.\n");
    let run = kb.run(["skill", "render", "summary", "n=2"]);
    assert!(run.exit == 1 && run.text().is_empty() && run.stderr.contains("doc"), "{run}");
    assert_eq!(kb.run(["skill", "render", "summary", "doc"]).exit, 2);
    assert_eq!(kb.run(["skill", "render", "summary", "doc=a", "doc=b"]).exit, 2);
}

#[test]
fn the_linter_names_what_does_not_match() {
    let kb = with_skill();
    assert_snapshot!(kb.run(["skill", "lint", "summary"]), @r"
    exit: 0
    --- stdout
    summary: ok
    ");
    kb.run([
        "skill",
        "learn",
        "--name",
        "loose",
        "--description",
        "Does not match",
        "--body",
        "Use {{this}}.",
        "--argument",
        "that",
    ])
    .expect_exit(0);
    let run = kb.run(["skill", "lint", "loose"]);
    assert!(run.exit == 1 && run.text().contains("this") && run.text().contains("that"), "{run}");
    let text = "---\nname: loose\ndescription: Does not match\n---\nUse {{this}}.\n";
    let run = Kb::bare().pipe(["skill", "lint", "--file", "-", "--json"], text);
    assert_snapshot!(Kb::bare().pipe(["skill", "lint", "--file", "-"], b"\xff"), @r"
    exit: 1
    --- stderr
    error: `stdin` is not UTF-8 text: the first bad byte is at 0
    hint: convert it to UTF-8, for example with `iconv`, and learn it again
    ");
    assert_eq!((run.exit, &run.json()["name"], &run.json()["ok"]), (1, &json!("loose"), &json!(false)), "{run}");
}

#[test]
fn an_unknown_skill_is_not_found_with_near_names() {
    let kb = with_skill();
    let run = kb.run(["skill", "get", "sumary"]);
    assert_eq!(run.exit, 1, "{run}");
    assert!(run.stderr.starts_with("error: Skill not found: sumary\n"), "{run}");
    assert!(run.stderr.contains("`summary`"), "{run}");
}

#[test]
fn an_agent_has_its_skills_in_order() {
    let kb = with_skill();
    kb.write("persona.md", "You read with care.\n");
    let arguments =
        ["agent", "create", "Reader", "--description", "Reads", "--persona", "@persona.md", "--skill", "summary"];
    assert_snapshot!(kb.run(arguments), @r"
    exit: 0
    --- stdout
    added      agent-reader  1 skill
    ");
    assert_snapshot!(kb.run(["agent", "list"]), @r"
    exit: 0
    --- stdout
    Reader  agent-reader  1 skill  Reads
    ");
    let agent = kb.run(["agent", "get", "agent-reader", "--json"]).json();
    assert_eq!((&agent["persona"], &agent["skills"][0]["name"]), (&json!("You read with care.\n"), &json!("summary")));

    let run = kb.run(["skill", "delete", "summary"]).expect_exit(0);
    assert!(run.stderr.contains("warning: agent-reader refers to a skill that is gone"), "{run}");
    let agent = kb.run(["agent", "get", "reader", "--json"]).json();
    assert_eq!(agent["skills"][0]["name"], json!(null));
    kb.run(["agent", "delete", "reader"]).expect_exit(0);
    assert_eq!(kb.run(["agent", "list", "--json"]).json(), json!({"agents": []}));
}

#[test]
fn an_agent_with_an_unknown_skill_is_refused() {
    let kb = Kb::new();
    let run = kb.run(["agent", "create", "Reader", "--description", "Reads", "--persona", "x", "--skill", "nothing"]);
    assert!(run.exit == 1 && run.stderr.contains("nothing"), "{run}");
    assert_eq!(kb.run(["agent", "list", "--json"]).json(), json!({"agents": []}));
}
