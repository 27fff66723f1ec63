//! Both eras of the protocol: how each is opened, what only one has, and how each hears of changes.

use serde_json::{Value, json};

use crate::client::{Client, open};

fn code(answer: &Value) -> i64 {
    answer["error"]["code"].as_i64().unwrap_or_else(|| panic!("no error: {answer}"))
}

#[test]
fn a_known_version_is_echoed_and_another_gets_the_latest() {
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        assert_eq!(Client::start().initialize(version, &json!({}))["protocolVersion"], version);
    }
    assert_eq!(Client::start().initialize("2031-01-01", &json!({}))["protocolVersion"], "2025-11-25");
    assert_eq!(code(&Client::start().request("initialize", json!({}))), -32602);
}

#[test]
fn before_initialize_only_ping_is_served() {
    let mut client = Client::start();
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    assert_eq!(client.request("ping", json!({}))["result"], json!({}));
    assert_eq!(code(&client.request("tools/list", json!({}))), -32602);
}

#[test]
fn the_newer_era_says_what_it_is_on_every_result() {
    let mut client = Client::modern(json!({}));
    let discovered = client.request("server/discover", json!({}))["result"].clone();
    assert_eq!(discovered["supportedVersions"], json!(["2026-07-28"]));
    let tools = client.request("tools/list", json!({}))["result"].clone();
    assert_eq!(
        (&tools["resultType"], &tools["ttlMs"], &tools["cacheScope"]),
        (&json!("complete"), &json!(0), &json!("private"))
    );
    let status = client.call("status", json!({}));
    assert_eq!(status["resultType"], "complete");
    assert_eq!(status["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "kb");
}

#[test]
fn what_only_one_era_has_is_unknown_to_the_other() {
    let mut modern = Client::modern(json!({}));
    for method in ["initialize", "ping", "logging/setLevel", "resources/subscribe", "roots/list"] {
        assert_eq!(code(&modern.request(method, json!({}))), -32601, "{method}");
    }
    let mut legacy = Client::legacy(&json!({}));
    for method in ["server/discover", "subscriptions/listen", "no/such"] {
        assert_eq!(code(&legacy.request(method, json!({}))), -32601, "{method}");
    }
    let uri = json!({"uri": "kbdb://document/none"});
    assert_eq!(code(&legacy.request("resources/read", uri.clone())), -32002);
    assert_eq!(code(&modern.request("resources/read", uri)), -32602);
}

#[test]
fn another_version_of_the_newer_era_is_told_which_is_served() {
    let mut client = Client::start();
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2027-03-30"});
    let answer = client.request("tools/list", json!({"_meta": meta}));
    assert_eq!(code(&answer), -32022);
    assert_eq!(answer["error"]["data"], json!({"supported": ["2026-07-28"], "requested": "2027-03-30"}));
}

#[test]
fn a_subscriber_hears_of_a_change_by_another_process() {
    let mut client = Client::legacy(&json!({}));
    let uri = "kbdb://document/guide";
    client.done("learn", json!({"content": "# One\n", "docid": "guide"}));
    assert_eq!(client.request("resources/subscribe", json!({"uri": uri}))["result"], json!({}));
    // A handle of its own shares nothing with the server but the directory.
    let other = open(&client.dir.path().join("kb"));
    let mut text = kb_store::Text::markdown("# Two\n");
    text.docid = Some("guide".parse().unwrap());
    other.learn(&text).unwrap();
    assert_eq!(client.notice("notifications/resources/updated")["params"]["uri"], uri);
    client.request("resources/unsubscribe", json!({"uri": uri}));
    text.content = b"# Three\n".to_vec();
    other.learn(&text).unwrap();
    client.done("skill-learn", json!({"name": "marker", "description": "d", "body": "b"}));
    client.notice("notifications/prompts/list_changed");
    assert!(client.end().iter().all(|message| message["method"] != "notifications/resources/updated"));
}

#[test]
fn a_stream_is_acknowledged_first_tagged_and_closed_in_the_end() {
    let mut client = Client::modern(json!({}));
    let wanted =
        json!({"promptsListChanged": true, "toolsListChanged": true, "resourceSubscriptions": ["kbdb://document/d"]});
    let id = client.post("subscriptions/listen", json!({"notifications": wanted}));
    let tag = |notice: &Value| notice["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"].clone();
    let acknowledged = client.notice("notifications/subscriptions/acknowledged");
    assert_eq!(tag(&acknowledged), json!(id));
    let served = json!({"promptsListChanged": true, "resourceSubscriptions": ["kbdb://document/d"]});
    assert_eq!(acknowledged["params"]["notifications"], served);
    client.done("skill-learn", json!({"name": "sum", "description": "d", "body": "b"}));
    assert_eq!(tag(&client.notice("notifications/prompts/list_changed")), json!(id));
    client.done("learn", json!({"content": "text", "docid": "d"}));
    assert_eq!(tag(&client.notice("notifications/resources/updated")), json!(id));
    let rest = client.end();
    let closed = rest.iter().find(|message| message["id"] == id).expect("the stream is closed with an answer");
    assert_eq!(closed["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"], id);
}

#[test]
fn the_model_is_asked_only_where_the_caller_and_the_client_want_it() {
    let answer = json!({
        "role": "assistant", "model": "m",
        "content": {"type": "text", "text": "{\"description\": \"On pumps\", \"keywords\": [\"valve\"]}"},
    });
    let arguments = json!({"content": "# Pumps\n", "docid": "pumps", "describe": true});

    let mut unable = Client::legacy(&json!({}));
    assert_eq!(unable.done("learn", arguments.clone())["described"]["done"], false);

    let mut legacy = Client::legacy(&json!({"sampling": {}}));
    let id = legacy.post("tools/call", json!({"name": "learn", "arguments": arguments}));
    let asked = legacy.notice("sampling/createMessage");
    legacy.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": answer}));
    assert_eq!(legacy.answer(&id.into())["result"]["structuredContent"]["described"]["done"], true);
    let document = legacy.done("retrieve", json!({"docid": "pumps"}));
    assert_eq!((&document["description"], &document["tags"]), (&json!("On pumps"), &json!(["valve"])));

    let mut modern = Client::modern(json!({"sampling": {}}));
    let call = json!({"name": "learn", "arguments": arguments});
    let first = modern.request("tools/call", call.clone())["result"].clone();
    assert_eq!(first["resultType"], "input_required");
    assert_eq!(first["inputRequests"]["describe"]["method"], "sampling/createMessage");
    let mut again = call;
    again["inputResponses"] = json!({"describe": answer});
    let second = modern.request("tools/call", again)["result"].clone();
    assert_eq!(second["structuredContent"]["described"]["done"], true);
}
