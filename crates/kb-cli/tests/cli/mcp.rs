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

/// Project knowledge, and where its home is.
#[test]
fn it_serves_project_knowledge() {
    let kb = Kb::bare();
    let client =
        "{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},\"clientInfo\":{\"name\":\"t\",\"version\":\"1\"}}";
    let initialize = format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{client}}}\n");
    let input = format!("{initialize}{{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/list\"}}\n");
    let tools = |run: crate::harness::Run| {
        let lines = run.expect_exit(0).json_lines();
        let count = lines[1]["result"]["tools"].as_array().map_or(0, Vec::len);
        (lines[0]["result"]["serverInfo"]["name"].clone(), count)
    };
    let alone = Value::from("Knowledge MCP Server");
    assert_eq!(tools(kb.pipe(["mcp", "--projects"], &input)), (alone.clone(), 7));
    assert!(kb.path("../home/.knowledge-mcp/.git").is_dir());
    let named = ["mcp", "--projects", "--home", "given", "--tools", "all"];
    assert_eq!(tools(kb.pipe(named, &input)), (alone.clone(), 14));
    assert!(kb.path("given/.git").is_dir());
    let variable = [("KNOWLEDGE_MCP_HOME", Path::new("by-variable"))];
    assert_eq!(tools(kb.run_with(["mcp", "--projects"], input.as_bytes(), &variable)), (alone, 7));
    assert!(kb.path("by-variable/.git").is_dir());
    let both = ["mcp", "--projects", "--home", "given", "--db", "new.kbdb"];
    assert_eq!(tools(kb.pipe(both, &input)), (Value::from("kb"), 24));
    kb.pipe(["mcp", "--home", "given"], &input).expect_exit(2);
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

/// What is written is what starts the server, for every host.
#[cfg(all(unix, not(target_os = "macos")))]
#[test]
fn each_host_finds_the_server_in_its_own_file() {
    for (host, file) in [
        ("claude-code", ".mcp.json"),
        ("claude-desktop", "../home/.config/Claude/claude_desktop_config.json"),
        ("vscode", ".vscode/mcp.json"),
        ("cursor", ".cursor/mcp.json"),
        ("codex", "../home/.codex/config.toml"),
        ("gemini", "../home/.gemini/settings.json"),
    ] {
        let kb = Kb::bare();
        let printed = kb.run(["--db", "notes.kbdb", "mcp", "install", host]).expect_exit(0);
        assert!(!kb.path(file).exists(), "{host}");
        kb.run(["--db", "notes.kbdb", "mcp", "install", host, "--write"]).expect_exit(0);
        let written = String::from_utf8(kb.read(file)).expect("text");
        assert_eq!(written, printed.text(), "{host}");
        let (command, args) = if host == "codex" {
            let value = |key: &str| written.lines().find_map(|line| line.strip_prefix(key)).expect("a line").to_owned();
            // Strings and arrays of strings are written in TOML as in JSON.
            let json = |text: String| serde_json::from_str::<Value>(&text).expect("JSON");
            (json(value("command = ")), json(value("args = ")))
        } else {
            let root = if host == "vscode" { "servers" } else { "mcpServers" };
            let file: Value = serde_json::from_str(&written).expect("JSON");
            (file[root]["kb"]["command"].clone(), file[root]["kb"]["args"].clone())
        };
        assert_eq!(command, env!("CARGO_BIN_EXE_kb"), "{host}");
        let args: Vec<&str> =
            args.as_array().expect("an array").iter().map(|arg| arg.as_str().expect("text")).collect();
        assert_eq!(kb.pipe(args, PING).expect_exit(0).json()["result"], serde_json::json!({}), "{host}");
    }
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
