//! What is wrong with a configuration is told before anything is started.

use insta::assert_snapshot;

use super::{fake_server, lab};
use crate::harness::Kb;

#[test]
fn all_faults_are_told_at_once_and_no_secret_among_them() {
    let kb = Kb::new();
    kb.write(
        "bad.yaml",
        "system: a b\ntransport: {kind: http, url: 'https://ana:hunter2@h/', auth_env: ghp_0123456789abcdefABCD}\n\
         select: {tool: s}\nstatic_ids: [a, a]\nread: {tool: '', title_key: t}\nextra: 1\n",
    );
    for command in ["run", "add", "check"] {
        let run = kb.run(["source", command, "bad.yaml"]);
        assert_eq!(run.exit, 2, "{run}");
        for secret in ["hunter2", "ghp_"] {
            assert!(!run.stderr.contains(secret) && !run.text().contains(secret), "{run}");
        }
    }
    assert_snapshot!(kb.run(["source", "check", "bad.yaml"]), @r"
    exit: 2
    --- stdout
    fault  system: it is not letters, digits, `_` and `-`, the first a letter or digit, at most 64
    fault  static_ids: it cannot be given beside `select`
    fault  extra: there is no such key; there are system, transport, select, static_ids, read, timeout, retries, concurrency
    fault  transport.url: it has a user or password before its host; put the token into a variable and name that in `transport.auth_env`
    fault  transport.auth_env: it is not the name of a variable, in capitals, digits and `_` (its value does not belong here)
    fault  read.tool: it is empty
    fault  read.id_arg: it is missing
    fault  read.title_key: it needs `read.text_key`
    fault  static_ids[1]: it is the same document as static_ids[0]
    ");
    assert_eq!(kb.run(["source", "list", "--json"]).json()["sources"].as_array().map(Vec::len), Some(0));
}

#[test]
fn a_source_can_be_typed() {
    let kb = Kb::new();
    let transport = format!("transport={{kind: stdio, command: {}, args: [plain]}}", serde_json::json!(fake_server()));
    let typed = ["source", "run", "--set", "system=lab", "--set", &transport, "--set", "static_ids=[docs/d00002.md]"];
    let read = ["--set", "read={tool: read, id_arg: id}"];
    let run = kb.run([&typed[..], &read].concat());
    assert!(run.exit == 2 && run.stderr.contains("`--name NAME`"), "{run}");
    kb.run([&typed[..], &read, &["--name", "typed", "--yes"]].concat()).expect_exit(0);
    assert_eq!(kb.run(["source", "list", "--json"]).json()["sources"][0]["name"], "typed");

    // Over a file and over one that is kept.
    lab(&kb, "plain", "");
    kb.run(["source", "add", "lab.yaml", "--name", "kept", "--set", "retries=0"]).expect_exit(0);
    assert_eq!(kb.run(["source", "status", "kept", "--json"]).json()["config"]["retries"], 0);
    let run = kb.run(["source", "run", "kept", "--set", "retries=many"]);
    assert!(run.exit == 2 && run.stderr.contains("retries: it is not a whole number"), "{run}");
    let run = kb.run(["source", "run", "typed"]);
    assert!(run.exit == 1 && run.stderr.contains("does not keep the configuration"), "{run}");
    let run = kb.run(["source", "run", "nothing"]);
    assert!(run.exit == 1 && run.stderr.contains("not found: nothing"), "{run}");
}

#[test]
fn a_name_that_is_none_is_refused() {
    let kb = Kb::new();
    lab(&kb, "plain", "");
    for name in ["", "../x", "a b", "-x"] {
        let run = kb.run(["source", "run", "lab.yaml", &format!("--name={name}")]);
        assert_eq!(run.exit, 2, "{run}");
    }
}
