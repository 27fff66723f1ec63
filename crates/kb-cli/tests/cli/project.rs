//! `kb project`: instructions, documents, history.

use serde_json::Value;

use crate::harness::Kb;

/// A home with the instructions and one document of the project that is called as its folder is.
fn home() -> Kb {
    let kb = Kb::bare();
    kb.pipe(["project", "-p", "demo", "main", "--write", "-"], "# Demo\n\nRun the tests.\n").expect_exit(0);
    kb.write(
        "../home/.knowledge-mcp/projects/demo/knowledge/api.md",
        "---\ntitle: API\nkeywords: [http]\n---\n# API\n\n## Auth\n\nSend a token.\n\n## Limits\n\nTen a second.\n",
    );
    kb
}

fn printed(kb: &Kb, arguments: &[&str]) -> String {
    let run = kb.run([&["project", "-p", "demo"], arguments].concat()).expect_exit(0);
    run.text().to_owned()
}

#[test]
fn what_a_project_knows_is_printed_and_found() {
    let kb = home();
    assert_eq!(printed(&kb, &["list"]), "demo  1 document  main.md\n");
    assert_eq!(printed(&kb, &["main"]), "# Demo\n\nRun the tests.\n");
    assert_eq!(printed(&kb, &["show"]), "api.md  API  http\n");
    assert!(printed(&kb, &["show", "api"]).starts_with("---\ntitle: API\n"));
    assert_eq!(printed(&kb, &["show", "api", "Limits"]), "Ten a second.\n");
    assert_eq!(printed(&kb, &["search", "token"]), "api.md  API\n  Auth: Send a token.\n");
    assert_eq!(printed(&kb, &["search", "nowhere"]), "");
}

#[test]
fn what_was_replaced_is_restored() {
    let kb = home();
    kb.pipe(["project", "-p", "demo", "main", "--write", "-"], "Nothing.\n").expect_exit(0);
    let log = kb.run(["project", "-p", "demo", "--json", "log", "main.md"]).expect_exit(0).json();
    assert_eq!(log["count"], 2);
    let first = log["revisions"][1]["revision"].as_str().expect("an id");
    kb.run(["project", "-p", "demo", "restore", "main.md", &first[..10]]).expect_exit(0);
    assert_eq!(printed(&kb, &["main"]), "# Demo\n\nRun the tests.\n");
    assert_eq!(printed(&kb, &["log"]).lines().count(), 3);
}

#[test]
fn the_project_is_the_repository_one_stands_in() {
    let kb = Kb::bare();
    std::fs::create_dir_all(kb.path("ferry/.git")).expect("a folder");
    std::fs::create_dir_all(kb.path("ferry/src")).expect("a folder");
    kb.write("text.md", "Sail at noon.\n");
    let mut write = kb.command(["project", "main", "--write", "../../text.md"]);
    assert!(write.current_dir(kb.path("ferry/src")).status().expect("kb starts").success());
    let list = kb.run(["project", "--json", "list"]).expect_exit(0).json();
    assert_eq!(list["projects"][0]["project_id"], "ferry");
}

#[test]
fn what_needs_no_project_asks_for_none() {
    let kb = home();
    for command in ["list", "activity"] {
        let mut command = kb.command(["project", command]);
        assert!(command.current_dir("/").status().expect("kb starts").success());
    }
    let mut command = kb.command(["project", "main"]);
    assert_eq!(command.current_dir("/").status().expect("kb starts").code(), Some(1));
}

#[test]
fn of_two_chapters_of_one_title_neither_is_printed() {
    let kb = home();
    kb.write(
        "../home/.knowledge-mcp/projects/demo/knowledge/twice.md",
        "# Twice\n\n## `Run` it\n\nOnce.\n\n## Same\n\nFirst.\n\n## Same\n\nSecond.\n",
    );
    assert_eq!(printed(&kb, &["show", "twice", "Run it"]), "Once.\n");
    let run = kb.run(["--json", "project", "-p", "demo", "show", "twice", "Same"]).expect_exit(1);
    assert_eq!(run.json()["error"]["code"], "chapter-ambiguous");
}

#[test]
fn what_is_not_there_has_a_code() {
    let kb = home();
    let code = |arguments: &[&str]| -> Value {
        let run = kb.run([&["--json", "project", "-p", "demo"], arguments].concat()).expect_exit(1);
        run.json()["error"]["code"].clone()
    };
    assert_eq!(code(&["show", "other"]), "file-not-found");
    assert_eq!(code(&["show", "api", "Other"]), "chapter-not-found");
    assert_eq!(code(&["rm", "other"]), "file-not-found");
    assert_eq!(code(&["restore", "main.md", "0123456789"]), "revision-not-found");
    let nobody = kb.run(["--json", "project", "-p", "nobody", "show"]).expect_exit(1).json();
    assert_eq!(nobody["error"]["code"], "project-not-found");
}
