//! What the server says of itself: reviewed like a public API.

use kb_mcp::Served;
use serde_json::{Value, json};

use crate::client::Client;

#[test]
fn the_tools_are_as_they_were() {
    let mut client = Client::legacy(&json!({}));
    let tools = client.request("tools/list", json!({}));
    insta::assert_json_snapshot!("tools", tools["result"]["tools"]);
    let templates = client.request("resources/templates/list", json!({}));
    insta::assert_json_snapshot!("templates", templates["result"]["resourceTemplates"]);
}

/// Clients drop a tool, or a whole server, over any of these.
#[test]
fn schemas_are_plain() {
    let mut client = Client::legacy(&json!({}));
    let mut tools = client.request("tools/list", json!({}))["result"]["tools"].as_array().unwrap().clone();
    assert_eq!(tools.len(), 17);
    let mut client = Client::of_projects(tempfile::tempdir().unwrap(), Served::with_all_project_tools);
    tools.extend(client.request("tools/list", json!({}))["result"]["tools"].as_array().unwrap().clone());
    assert_eq!(tools.len(), 17 + 14);
    for tool in &tools {
        let name = tool["name"].as_str().unwrap();
        assert!(name.len() <= 40 && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b)), "{name}");
        for schema in ["inputSchema", "outputSchema"] {
            assert_eq!(tool[schema]["type"], "object", "{name}");
            assert!(tool[schema]["properties"].is_object(), "{name}");
            assert_plain(name, &tool[schema]);
        }
    }
}

fn assert_plain(tool: &str, schema: &Value) {
    let object = schema.as_object().unwrap();
    for key in ["anyOf", "oneOf", "allOf", "not", "$ref", "$defs", "$schema", "format"] {
        assert!(!object.contains_key(key), "{tool}: {key}");
    }
    assert!(schema["type"].is_string(), "{tool}: {schema}");
    assert!(schema["type"] != "array" || schema["items"]["type"].is_string(), "{tool}: {schema}");
    let properties = schema.get("properties").and_then(Value::as_object);
    for property in properties.into_iter().flat_map(|properties| properties.values()).chain(schema.get("items")) {
        assert_plain(tool, property);
    }
}
