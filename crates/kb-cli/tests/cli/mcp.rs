//! `kb mcp`: the server as a process, and what sets it up.

use std::path::Path;

use serde_json::Value;

use crate::harness::Kb;

const PING: &str = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}";

#[test]
fn it_serves_the_database_that_is_named_and_no_other() {
    let kb = Kb::new();
    // There is a `.kbdb` here, and it is not taken.
    let unnamed = kb.pipe(["mcp"], PING).expect_exit(1);
    assert_eq!(unnamed.text(), "");
    assert!(unnamed.stderr.contains("--db DIR") && unnamed.stderr.contains("KBDB_DIR"), "{unnamed}");

    let made = kb.pipe(["mcp", "--db", "new.kbdb"], PING).expect_exit(0);
    assert_eq!(made.json()["result"], serde_json::json!({}));
    assert!(made.stderr.contains("new.kbdb"), "{made}");
    let by_variable = kb.run_with(["mcp"], PING.as_bytes(), &[("KBDB_DIR", Path::new("new.kbdb"))]).expect_exit(0);
    assert_eq!((by_variable.json()["id"].clone(), by_variable.stderr.as_str()), (Value::from(1), ""));
}

#[test]
fn a_folder_that_is_something_else_is_refused() {
    let kb = Kb::bare();
    kb.write("photos/cat.jpg", "not a database");
    let refused = kb.pipe(["mcp", "--db", "photos"], PING).expect_exit(1);
    assert!(refused.text().is_empty() && refused.stderr.contains("photos"), "{refused}");
    kb.pipe(["mcp", "--db", "no/such/parent"], PING).expect_exit(1);
}

#[test]
fn the_selftest_passes_and_leaves_nothing() {
    let kb = Kb::bare();
    let report = kb.run(["mcp", "--selftest", "--json"]).expect_exit(0).json();
    assert_eq!(report["ok"], true, "{report}");
    assert_eq!(report["trials"].as_array().map(Vec::len), Some(11));
    assert_eq!(std::fs::read_dir(kb.path("")).expect("a folder").count(), 0);
}

#[test]
fn installing_keeps_what_the_file_holds_and_is_done_once() {
    let kb = Kb::bare();
    kb.write(".vscode/mcp.json", "{\"inputs\": [1], \"servers\": {\"other\": {\"command\": \"x\"}}}");
    let install = ["--db", "notes.kbdb", "mcp", "install", "vscode", "--write"];
    assert!(kb.run(install).expect_exit(0).text().starts_with("written "));
    let written: Value = serde_json::from_slice(&kb.read(".vscode/mcp.json")).expect("JSON");
    assert_eq!((&written["inputs"][0], &written["servers"]["other"]["command"]), (&1.into(), &"x".into()));
    let args = &written["servers"]["kb"]["args"];
    assert!(Path::new(args[2].as_str().expect("a path")).is_absolute(), "{args}");
    assert!(kb.run(install).expect_exit(0).text().starts_with("unchanged "));
    assert_eq!(std::fs::read_dir(kb.path(".vscode")).expect("a folder").count(), 1);
}

#[test]
fn a_file_that_cannot_be_merged_into_stays_as_it_is() {
    let kb = Kb::bare();
    let text = "{\n  // mine\n  \"mcpServers\": {}\n}\n";
    kb.write(".mcp.json", text);
    let refused = kb.run(["--db", "notes.kbdb", "mcp", "install", "claude-code", "--write"]).expect_exit(1);
    assert!(refused.stderr.contains(".mcp.json") && refused.stderr.contains("nothing was changed"), "{refused}");
    assert_eq!(kb.read(".mcp.json"), text.as_bytes());
}
