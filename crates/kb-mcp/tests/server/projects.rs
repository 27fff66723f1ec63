//! Project knowledge as a client meets it: the contract's own JSON.

use kb_mcp::Served;
use serde_json::{Value, json};
use tempfile::tempdir;

use crate::client::{Client, open, projects};

fn client() -> Client {
    Client::of_projects(tempdir().unwrap(), |served| served)
}

fn guide() -> Value {
    json!({
        "project_id": "My Project",
        "filename": "API Guide",
        "title": "API Documentation Guide",
        "introduction": "How to call it.",
        "keywords": ["api"],
        "chapters": [{"title": "Getting Started", "content": "Brief\n\nTo begin using our API, ask for a key."}],
    })
}

fn without_revision(mut value: Value) -> Value {
    assert!(value["revision"].is_string(), "{value}");
    value.as_object_mut().unwrap().remove("revision");
    value
}

#[test]
fn it_says_who_it_is_and_has_seven_tools() {
    let dir = tempdir().unwrap();
    let served = projects(&dir.path().join("home")).into();
    let mut client = Client::serving(dir, served, |_| {});
    let opened = client.initialize("2025-11-25", &json!({}));
    assert_eq!(opened["serverInfo"]["name"], "Knowledge MCP Server");
    assert!(opened["capabilities"].get("prompts").is_none(), "{opened}");
    let instructions = opened["instructions"].as_str().unwrap();
    for said in ["CLAUDE.md only", "CLAUDE.local.md", "get_project_main comes first", "All input is checked"] {
        assert!(instructions.contains(said), "{said}");
    }
    let tools = client.request("tools/list", json!({}))["result"]["tools"].clone();
    insta::assert_json_snapshot!("project_tools", tools);
    assert_eq!(client.request("prompts/list", json!({}))["error"]["code"], -32601);
    let unknown = client.request("tools/call", json!({"name": "learn", "arguments": {}}));
    assert_eq!(unknown["error"]["code"], -32602);
}

#[test]
fn a_project_is_made_written_and_read() {
    let mut client = client();
    let project = json!({"project_id": "My Project"});
    assert_eq!(client.done("get_project_main", project.clone()), json!({"exists": false, "content": ""}));
    assert_eq!(client.request("resources/list", json!({}))["result"]["resources"], json!([]));
    let updated = client.done("update_project_main", json!({"project_id": "My Project", "content": "Test first.\n"}));
    let message = json!({"success": true, "message": "Project main instructions updated successfully"});
    assert_eq!(without_revision(updated), message);
    assert_eq!(client.done("get_project_main", project), json!({"exists": true, "content": "Test first.\n"}));
}

#[test]
fn a_document_is_made_found_changed_and_deleted() {
    let mut client = client();
    let created = without_revision(client.done("create_knowledge_file", guide()));
    let message = "Knowledge document created successfully";
    assert_eq!(created, json!({"success": true, "filepath": "knowledge/api-guide.md", "message": message}));
    let again = client.failed("create_knowledge_file", guide());
    assert_eq!(again, json!({"success": false, "error": "File already exists: API Guide"}));

    let found = client.done("search_knowledge", json!({"project_id": "My Project", "query": "API"}));
    assert_eq!((&found["total_documents"], &found["total_matches"]), (&json!(1), &json!(2)));
    let hit = &found["results"][0];
    assert_eq!((&hit["file"], &hit["match_count"]), (&json!("api-guide.md"), &json!(2)));
    assert_eq!(hit["matching_chapters"][1]["chapter"], "Getting Started");
    assert_eq!(hit["matching_chapters"][1]["chapter_summary"], "Brief");

    let at = |more: Value| {
        let mut arguments = json!({"project_id": "My Project", "filename": "api-guide"});
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        arguments
    };
    let change = at(json!({"chapter_title": "Getting Started", "new_content": "Ask.", "new_summary": "Short."}));
    let message = "Chapter 'Getting Started' updated successfully";
    let changed = without_revision(client.done("update_chapter", change));
    assert_eq!(changed, json!({"success": true, "message": message}));
    let file = client.done("get_knowledge_file", at(json!({})));
    let chapter = json!({"title": "Getting Started", "content": "Short.\n\nAsk.", "summary": "Short."});
    assert_eq!(file["document"]["chapters"], json!([chapter]));

    let deleted = without_revision(client.done("delete_knowledge_file", at(json!({}))));
    let message = "Knowledge document 'api-guide' deleted successfully";
    assert_eq!(deleted, json!({"success": true, "message": message}));
}

#[test]
fn a_failure_has_the_words_of_the_contract() {
    let mut client = client();
    client.done("create_knowledge_file", guide());
    let mut no_keywords = guide();
    no_keywords["keywords"] = json!([]);
    no_keywords["filename"] = json!("other");
    let chapter = json!({
        "project_id": "My Project", "filename": "API Guide.md", "chapter_title": "getting started", "new_content": "",
    });
    for (tool, arguments, error) in [
        ("search_knowledge", json!({"project_id": "P", "query": "x"}), "Project not found: P"),
        ("get_knowledge_file", json!({"project_id": "My Project", "filename": "F"}), "File not found: F"),
        ("update_chapter", chapter, "Chapter not found: getting started"),
        ("search_knowledge", json!({"project_id": "My Project", "query": " "}), "`query` is missing or empty"),
        ("create_knowledge_file", no_keywords, "`keywords` is missing or empty"),
        ("get_project_main", json!({}), "`project_id`: is required and was not given"),
    ] {
        assert_eq!(client.failed(tool, arguments), json!({"success": false, "error": error}), "{tool}");
    }
    for id in ["../x", "a/b", "a\u{0}b", ".hidden", " blank"] {
        let failed = client.failed("update_project_main", json!({"project_id": id, "content": "x"}));
        assert!(failed["error"].as_str().unwrap().contains("is not a name for a project"), "{id}: {failed}");
    }
    assert_eq!(client.request("resources/list", json!({}))["result"]["resources"].as_array().unwrap().len(), 1);
}

#[test]
fn resources_are_listed_read_and_completed() {
    let mut client = client();
    client.done("create_knowledge_file", guide());
    let read = |client: &mut Client, rest: &str| {
        let uri = format!("knowledge://projects/{rest}");
        client.request("resources/read", json!({"uri": uri}))
    };
    assert_eq!(read(&mut client, "My%20Project/main")["error"]["code"], -32002);
    assert_eq!(read(&mut client, "Ghost/files")["error"]["code"], -32002);
    assert_eq!(read(&mut client, "..%2Fx/files")["error"]["code"], -32002);
    client.done("update_project_main", json!({"project_id": "My Project", "content": "Hello"}));
    let main = read(&mut client, "My%20Project/main")["result"]["contents"][0].clone();
    assert_eq!((&main["mimeType"], &main["text"]), (&json!("text/markdown"), &json!("Hello")));
    let json_of = |answer: Value| -> Value {
        let content = &answer["result"]["contents"][0];
        assert_eq!(content["mimeType"], "application/json");
        serde_json::from_str(content["text"].as_str().unwrap()).unwrap()
    };
    let files = json_of(read(&mut client, "My%20Project/files"));
    assert_eq!((&files["count"], &files["files"][0]["filename"]), (&json!(1), &json!("api-guide.md")));
    let chapters = json_of(read(&mut client, "My%20Project/chapters/api-guide.md"));
    assert_eq!(chapters["chapters"], json!([{"title": "Getting Started", "level": 2, "summary": "Brief"}]));
    let listed = client.request("resources/list", json!({}))["result"]["resources"].clone();
    let uris: Vec<_> = listed.as_array().unwrap().iter().map(|resource| &resource["uri"]).collect();
    assert_eq!(uris, ["knowledge://projects/My%20Project/main", "knowledge://projects/My%20Project/files"]);
    let template = "knowledge://projects/{project_id}/chapters/{filename}";
    for (name, value, expected) in [("project_id", "my", "My Project"), ("filename", "api", "api-guide.md")] {
        let params = json!({
            "ref": {"type": "ref/resource", "uri": template},
            "argument": {"name": name, "value": value},
            "context": {"arguments": {"project_id": "My Project"}},
        });
        let values = client.request("completion/complete", params)["result"]["completion"]["values"].clone();
        assert_eq!(values, json!([expected]));
    }
}

#[test]
fn changes_are_told_to_who_listens() {
    let mut client = client();
    let uri = "knowledge://projects/P/main";
    client.request("resources/subscribe", json!({"uri": uri}));
    client.request("resources/list", json!({}));
    client.done("update_project_main", json!({"project_id": "P", "content": "one"}));
    client.notice("notifications/resources/list_changed");
    assert_eq!(client.notice("notifications/resources/updated")["params"]["uri"], uri);
    // By another process, or by hand.
    projects(&client.dir.path().join("home")).update_main("P", "two").unwrap();
    assert_eq!(client.notice("notifications/resources/updated")["params"]["uri"], uri);
}

#[test]
fn more_tools_are_served_where_they_are_asked_for() {
    let mut client = Client::of_projects(tempdir().unwrap(), Served::with_all_project_tools);
    client.done("create_knowledge_file", guide());
    let file = |name: &str| json!({"project_id": "My Project", "filename": name});
    let mut chapter = file("api-guide");
    chapter["chapter_title"] = json!("Limits");
    chapter["content"] = json!("Ten a second.");
    client.done("add_chapter", chapter.clone());
    assert_eq!(client.failed("add_chapter", chapter.clone())["success"], false);
    chapter.as_object_mut().unwrap().remove("content");
    client.done("remove_chapter", chapter);
    let mut renamed = file("api-guide");
    renamed["new_name"] = json!("Reference");
    assert_eq!(client.done("rename_knowledge_file", renamed)["filepath"], "knowledge/reference.md");
    let listed = client.done("list_knowledge_files", json!({"project_id": "My Project"}));
    assert_eq!(listed["files"][0]["filename"], "reference.md");
    client.done("delete_knowledge_file", file("reference"));
    let history = client.done("project_history", json!({"project_id": "My Project"}));
    assert_eq!(history["count"], 5);
    let mut back = file("reference");
    back["revision"] = history["revisions"][1]["revision"].clone();
    client.done("restore_revision", back);
    let projects = client.done("list_projects", json!({}));
    assert_eq!(projects["projects"][0]["files"], 1);
}

#[test]
fn both_stores_are_served_side_by_side() {
    let dir = tempdir().unwrap();
    let served = Served::from((open(&dir.path().join("kb")), projects(&dir.path().join("home"))));
    let mut client = Client::serving(dir, served, |_| {});
    let opened = client.initialize("2025-11-25", &json!({}));
    assert_eq!(opened["serverInfo"]["name"], "kb");
    assert_eq!(client.request("tools/list", json!({}))["result"]["tools"].as_array().unwrap().len(), 17 + 7);
    client.done("learn", json!({"content": "# Title\n\nSomething to know.\n"}));
    client.done("update_project_main", json!({"project_id": "P", "content": "x"}));
    assert_eq!(client.failed("retrieve", json!({"docid": "nothing-here"}))["code"], "not-found");
    let templates = client.request("resources/templates/list", json!({}));
    assert_eq!(templates["result"]["resourceTemplates"].as_array().unwrap().len(), 6);
}

#[test]
fn calls_and_reads_are_written_down_without_their_texts() {
    let mut client = client();
    let secret = "tell nobody";
    client.done("update_project_main", json!({"project_id": "P", "content": secret}));
    client.failed("search_knowledge", json!({"project_id": "Q", "query": secret}));
    client.failed("update_project_main", json!({"project_id": "P", "content": [secret]}));
    client.request("resources/read", json!({"uri": "knowledge://projects/P/main"}));
    client.end();
    let log = projects(&client.dir.path().join("home")).activity(10).unwrap();
    let lines: Vec<_> =
        log.entries.iter().map(|entry| (entry.method.as_str(), entry.success, entry.error.as_deref())).collect();
    let expected = [
        ("update_project_main", true, None),
        ("search_knowledge", false, Some("project-not-found")),
        ("update_project_main", false, Some("invalid")),
        ("resources/read main", true, None),
    ];
    assert_eq!(lines, expected);
    assert!(!serde_json::to_string(&log).unwrap().contains(secret));
}
