//! What an agent does with the tools, from end to end.

use serde_json::{Value, json};

use crate::client::Client;

#[test]
fn text_and_structured_content_are_the_same_but_for_the_two_lists() {
    let mut client = Client::legacy(&json!({}));
    client.done("skill-learn", json!({"name": "sum", "description": "d", "body": "b"}));
    for (tool, arguments) in
        [("status", json!(null)), ("search", json!({"query": "x"})), ("retrieve", json!({"docid": "none"}))]
    {
        let result = client.call(tool, arguments);
        let text: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
        assert_eq!(text, result["structuredContent"], "{tool}");
    }
    let list = client.call("skill-list", json!({}));
    let text: Value = serde_json::from_str(list["content"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(text, list["structuredContent"]["skills"]);
    assert_eq!(text[0]["argumentCount"], 0);
}

#[test]
fn learn_search_correct_unlearn() {
    let mut client = Client::legacy(&json!({}));
    let learned = client.done("learn", json!({"content": "# Pumps\n\nThe valve opens at six.\n", "docid": "pumps"}));
    let kbid = learned["kbids"][0].clone();
    let answer = client.done("search", json!({"query": "valve", "limit": "5"}));
    assert_eq!((&answer["hits"][0]["kbid"], &answer["hits"][0]["docid"]), (&kbid, &json!("pumps")));
    let corrected = json!({"content": "# Pumps\n\nThe valve opens at seven.\n", "docid": "pumps"});
    assert_eq!(client.done("learn", corrected)["documents"][0]["outcome"], "updated");
    let found = client.done("search", json!({"query": "valve"}))["hits"][0]["kbid"].clone();
    let section = client.done("retrieve", json!({"kbid": found}));
    assert_eq!(section["content"], "# Pumps\n\nThe valve opens at seven.\n");
    client.done("unlearn", json!({"kbid": "pumps"}));
    let gone = client.failed("unlearn", json!({"kbid": "pumps"}));
    assert_eq!((&gone["code"], &gone["retryable"]), (&json!("not-found"), &json!(false)));
    assert!(gone["message"].as_str().unwrap().contains("pumps"), "{gone}");
}

#[test]
fn arguments_are_checked_by_name() {
    let mut client = Client::legacy(&json!({}));
    for (tool, arguments, field) in [
        ("search", json!({}), "`query`"),
        ("search", json!({"query": "x", "limit": 500}), "`limit`"),
        ("search", json!({"query": "x", "Mode": "any"}), "did you mean `mode`"),
        ("retrieve", json!({"kbid": null}), "`kbid`"),
        ("learn", json!({"content": "x", "type": "image/png"}), "`title`"),
        ("learn", json!({"content": "not base64!", "type": "image/png", "title": "t"}), "`content`"),
        ("agent-create", json!({"name": "a", "description": "d", "persona": "p", "skills": ["nobody"]}), "nobody"),
    ] {
        let failure = client.failed(tool, arguments);
        assert!(failure["message"].as_str().unwrap().contains(field), "{tool}: {failure}");
    }
}

#[test]
fn a_long_document_comes_in_pieces_that_make_the_whole() {
    let mut client = Client::legacy(&json!({}));
    let parts: Vec<String> =
        (0..400).map(|n| format!("## Part {n}\n\n{}\n\n", "words \"quoted\" and more ".repeat(25))).collect();
    let text = parts.concat();
    client.done("learn", json!({"content": text, "docid": "long"}));
    for (tool, arguments) in [("retrieve", json!({"docid": "long"})), ("content", json!({"ids": "long"}))] {
        let (mut whole, mut pieces, mut cursor) = (String::new(), 0, Value::Null);
        loop {
            let mut arguments = arguments.clone();
            arguments["cursor"] = cursor;
            let result = client.call(tool, arguments);
            assert!(result["content"][0]["text"].as_str().unwrap().chars().count() < 50_000, "{tool}");
            let answer = &result["structuredContent"];
            match answer["sections"].as_array() {
                Some(sections) => {
                    for section in sections {
                        whole.push_str(section["content"].as_str().unwrap());
                    }
                }
                None => whole.push_str(answer["content"].as_str().unwrap()),
            }
            // A piece ends where a section does.
            assert!(text[whole.len()..].is_empty() || text[whole.len()..].starts_with("## Part"), "{tool}");
            pieces += 1;
            cursor = answer["cursor"].clone();
            if cursor.is_null() {
                break;
            }
        }
        assert_eq!(whole, text, "{tool}");
        assert!(pieces > 3, "{tool}: {pieces}");
    }
    let small = client.call("retrieve", json!({"docid": "long", "maxTokens": 500}));
    assert!(small["content"][0]["text"].as_str().unwrap().len() < 4_000);
    let old = client.done("retrieve", json!({"docid": "long"}))["cursor"].clone();
    client.done("learn", json!({"content": "short now", "docid": "long"}));
    assert!(
        client.failed("retrieve", json!({"docid": "long", "cursor": old}))["message"]
            .as_str()
            .unwrap()
            .contains("changed")
    );
}

#[test]
fn a_skill_is_a_prompt_a_tool_and_a_resource_with_one_text() {
    let mut client = Client::legacy(&json!({}));
    let skill = json!({
        "name": "Weekly Report!", "description": "Sums a week up", "body": "Sum {{doc}} in {{n}} lines.",
        "arguments": [{"name": "n", "required": false}],
    });
    let learned = client.done("skill-learn", skill);
    assert_eq!(learned["name"], "weekly-report");
    assert!(learned["warnings"].to_string().contains("weekly-report"), "{learned}");
    let values = json!({"doc": "{{n}}", "n": 3, "other": "x"});
    let prompt = client.request("prompts/get", json!({"name": "weekly-report", "arguments": values}));
    let text = &prompt["result"]["messages"][0]["content"]["text"];
    assert_eq!(*text, "Sum {{n}} in 3 lines.");
    assert_eq!(client.done("skill-get", json!({"name": "weekly-report", "arguments": values}))["rendered"], *text);
    let missing = client.request("prompts/get", json!({"name": "weekly-report"}));
    assert_eq!(missing["error"]["code"], -32602);
    assert!(missing["error"]["message"].as_str().unwrap().contains("doc"), "{missing}");
    let listed = client.request("skills/list", json!({}))["result"]["skills"].clone();
    assert_eq!(listed[0]["uri"], "skill://weekly-report/SKILL.md");
    let read = client.request("resources/read", json!({"uri": "skill://weekly-report/SKILL.md"}));
    let file = read["result"]["contents"][0]["text"].as_str().unwrap();
    assert_eq!(listed[0]["resources"][0]["size"], file.len());
    assert_eq!(client.request("skills/get", json!({"uri": listed[0]["uri"]}))["result"]["skill"], listed[0]);
}

#[test]
fn an_agent_is_a_prompt_under_two_names() {
    let mut client = Client::legacy(&json!({}));
    client.done("skill-learn", json!({"name": "sum", "description": "Sums up", "body": "b"}));
    client.done(
        "agent-create",
        json!({"name": "Code Reviewer", "description": "d", "persona": "You review.", "skills": ["sum"]}),
    );
    let prompts = client.request("prompts/list", json!({}))["result"]["prompts"].clone();
    let names: Vec<_> =
        prompts.as_array().unwrap().iter().map(|prompt| prompt["name"].as_str().unwrap().to_owned()).collect();
    assert_eq!(names, ["sum", "agent:Code Reviewer", "agent-code-reviewer"]);
    let first = client.request("prompts/get", json!({"name": names[1]}))["result"].clone();
    assert_eq!(first["messages"][0]["role"], "assistant");
    assert_eq!(first["messages"][0]["content"]["text"], "You review.");
    assert!(first["messages"][1]["content"]["text"].as_str().unwrap().contains("`sum`: Sums up"));
    assert_eq!(client.request("prompts/get", json!({"name": names[2]}))["result"], first);
}

#[test]
fn two_servers_keep_everything() {
    let mut first = Client::legacy(&json!({}));
    let base = crate::client::open(&first.dir.path().join("kb"));
    let calls: Vec<_> = (0..40)
        .map(|n| first.post("tools/call", json!({"name": "learn", "arguments": {"content": format!("first {n}")}})))
        .collect();
    let other = std::thread::spawn(move || {
        for n in 0..40 {
            while let Err(error) = base.learn(&kb_store::Text::markdown(format!("second {n}"))) {
                assert!(error.is_retryable(), "{error}");
            }
        }
    });
    for id in calls {
        assert_eq!(first.answer(&id.into())["result"]["isError"], false);
    }
    other.join().unwrap();
    assert_eq!(first.done("status", json!({}))["documents"], 80);
}

#[test]
fn hits_that_do_not_fit_come_with_the_cursor() {
    let mut client = Client::legacy(&json!({}));
    for n in 0..12 {
        client.done(
            "learn",
            json!({"content": format!("# Note {n}\n\n{}\n", "quay ".repeat(60)), "docid": format!("note-{n}")}),
        );
    }
    let (mut seen, mut pieces, mut cursor) = (Vec::new(), 0, Value::Null);
    loop {
        let answer = client.done("search", json!({"query": "quay", "limit": 5, "maxTokens": 500, "cursor": cursor}));
        let hits = answer["hits"].as_array().unwrap();
        assert!(answer["hits"].to_string().len() < 2_000, "{answer}");
        assert_eq!(
            answer["omitted"].as_u64().unwrap_or(0) + hits.len() as u64,
            5.min(12 - seen.len() as u64),
            "{answer}"
        );
        seen.extend(hits.iter().map(|hit| hit["docid"].as_str().unwrap().to_owned()));
        pieces += 1;
        cursor = answer["cursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    seen.sort_unstable();
    let mut all: Vec<String> = (0..12).map(|n| format!("note-{n}")).collect();
    all.sort_unstable();
    assert_eq!(seen, all);
    assert!(pieces > 3, "{pieces}");
}
