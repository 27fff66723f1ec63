use std::ffi::OsString;
use std::path::Path;

use kb_store::{Environment, Selection, SourceConfig};
use proptest::prelude::*;
use serde_json::json;

use super::*;

fn config(select: &Value, read: &Value) -> SourceConfig {
    let mut whole = json!({"system": "x", "transport": {"kind": "http", "url": "http://127.0.0.1/"}});
    whole["select"] = select.clone();
    whole["select"]["tool"] = "search".into();
    whole["read"] = read.clone();
    whole["read"]["tool"] = "read".into();
    whole["read"]["id_arg"] = "id".into();
    let variable = |_: &str| None::<OsString>;
    SourceConfig::read(&whole, &Environment { variable: &variable, working_directory: Path::new("/") }).unwrap()
}

fn selected(given: &Value, mut result: Value) -> Result<Vec<String>, String> {
    let config = config(given, &json!({}));
    let Selection::Select(config) = config.selection else { panic!("a selector") };
    let (rows, _) = select(&mut result, &config)?;
    Ok(rows
        .into_iter()
        .map(|row| match row {
            Ok(row) => format!("{}={}", row.id, row.title.unwrap_or_default()),
            Err((_, reason)) => format!("! {reason}"),
        })
        .collect())
}

#[test]
fn rows_are_read_by_the_first_rule_that_is_configured() {
    let ids = json!({"ids": {"list": "results", "id": "id", "title": "title"}});
    let rows = json!([{"id": "a", "title": "A"}, {"id": 7, "title": null}, {"id": " "}, {"title": "x"}, 3, {"id": []}]);
    let expected = [
        "a=A",
        "7=",
        "! `id` of a row is blank",
        "! a row has no `id`",
        "! a row of the selection is no object",
        "! `id` of a row is neither a text nor a number",
    ];
    assert_eq!(selected(&ids, json!({"structuredContent": {"results": rows}})).unwrap(), expected);

    let text = json!({"content": [{"type": "text", "text": "{\"results\": [{\"id\": \"a\"}]}"}]});
    let error = selected(&ids, text.clone()).unwrap_err();
    assert!(error.contains("json_text"), "{error}");
    let mut lenient = ids.clone();
    lenient["json_text"] = true.into();
    assert_eq!(selected(&lenient, text.clone()).unwrap(), ["a="]);
    assert!(selected(&lenient, json!({"content": [{"type": "text", "text": "prose"}]})).is_err());
    assert!(selected(&lenient, json!({"content": []})).is_err());
    assert!(selected(&ids, json!({"structuredContent": [1]})).is_err());
    assert!(selected(&ids, json!({"structuredContent": {"results": {"id": "a"}}})).unwrap_err().contains("not a list"));
    assert!(selected(&ids, json!({"structuredContent": {"other": 1}})).unwrap_err().contains("`other`"));
    assert!(selected(&ids, json!([])).is_err());

    let deep = json!({"ids": {"list": "data.items", "id": "meta.id"}});
    assert_eq!(
        selected(&deep, json!({"structuredContent": {"data": {"items": [{"meta": {"id": "a"}}]}}})).unwrap(),
        ["a="]
    );
}

#[test]
fn without_ids_only_links_are_rows() {
    let none = json!({});
    let link = json!({"type": "resource_link", "uri": "lab://a", "name": "a", "title": "A"});
    let embedded = json!({"type": "resource", "resource": {"uri": "lab://b", "name": "b", "text": "x"}});
    let both = json!({"content": [link, embedded, {"type": "text", "text": "two"}], "structuredContent": {"x": 1}});
    assert_eq!(selected(&none, both).unwrap(), ["lab://a=A", "lab://b=b"]);
    assert!(selected(&none, json!({"content": []})).unwrap().is_empty());
    assert!(selected(&none, json!({})).unwrap().is_empty());
    let error = selected(&none, json!({"content": [], "structuredContent": {"results": []}})).unwrap_err();
    assert!(error.contains("`results`"), "{error}");
    let error = selected(&none, json!({"content": [{"type": "text", "text": "a, b"}]})).unwrap_err();
    assert!(error.contains("static_ids"), "{error}");
    assert!(selected(&none, json!({"content": {"type": "text"}})).is_err());
    assert!(
        selected(&none, json!({"isError": true, "content": [{"type": "text", "text": "no"}]}))
            .unwrap_err()
            .ends_with("failed: no")
    );
}

fn text(read_keys: &Value, result: Value) -> Result<(String, Option<String>), String> {
    let config = config(&json!({}), read_keys);
    read(result, &config.read).map(|text| (text.content, text.title))
}

#[test]
fn texts_are_read_by_the_first_rule_that_is_configured() {
    let keys = json!({"text_key": "doc.markdown", "title_key": "title"});
    let result = |text: Value, title: Value| json!({"structuredContent": {"doc": {"markdown": text}, "title": title}});
    assert_eq!(
        text(&keys, result("# A\r\n ".into(), "A".into())).unwrap(),
        ("# A\r\n ".to_owned(), Some("A".to_owned()))
    );
    assert_eq!(text(&keys, result(7.into(), " ".into())).unwrap(), ("7".to_owned(), None));
    for bad in [json!(" \n"), json!(null), json!([1]), json!({})] {
        assert!(text(&keys, result(bad.clone(), json!("t"))).is_err(), "{bad}");
    }
    assert!(text(&keys, json!({"content": [{"type": "text", "text": "x"}]})).is_err());

    let none = json!({});
    let block = |text: &str| json!({"type": "text", "text": text});
    let resource = |text: &str| json!({"type": "resource", "resource": {"uri": "x", "text": text}});
    let of = |blocks: Value| text(&none, json!({"content": blocks})).map(|(text, _)| text);
    assert_eq!(of(json!([block("a"), block("b")])).unwrap(), "a\n\nb");
    assert_eq!(of(json!([block("a"), resource("whole")])).unwrap(), "whole");
    assert!(of(json!([resource("a"), resource("b")])).unwrap_err().contains("2 resources"));
    assert_eq!(of(json!([{"type": "resource", "resource": {"blob": "w6Q="}}])).unwrap(), "ä");
    assert!(of(json!([{"type": "resource", "resource": {"blob": "/w=="}}])).unwrap_err().contains("UTF-8"));
    assert!(of(json!([{"type": "resource", "resource": {"blob": "%"}}])).is_err());
    assert!(of(json!([{"type": "resource", "resource": {"uri": "x"}}])).is_err());
    assert!(of(json!([{"type": "image", "data": "x"}])).unwrap_err().contains("`image`"));
    assert!(of(json!([{"type": "text"}])).is_err());
    assert!(of(json!([])).is_err());
    assert!(of(json!([block(" \n\t")])).unwrap_err().contains("blank"));
    assert!(of(json!({"type": "text", "text": "a"})).is_err());
}

/// Makes values that look like results, and some that do not.
fn results() -> impl Strategy<Value = Value> {
    let word = prop::sample::select(vec!["text", "resource", "resource_link", "id", "uri", "blob", "a", " ", "w6Q="]);
    let key = prop::sample::select(vec![
        "content",
        "structuredContent",
        "results",
        "type",
        "text",
        "resource",
        "uri",
        "blob",
        "id",
        "title",
        "isError",
        "next",
        "meta",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        word.prop_map(Value::from),
        "\\PC{0,8}".prop_map(Value::from)
    ];
    leaf.prop_recursive(5, 60, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((key.clone(), inner), 0..5).prop_map(|fields| {
                Value::Object(fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
            }),
        ]
    })
}

proptest! {
    #[test]
    fn whatever_a_tool_returns_is_mapped_or_refused(result in results()) {
        let ids = json!({"list": "results", "id": "id", "title": "title"});
        for given in [json!({}), json!({"ids": ids}), json!({"ids": ids, "json_text": true})] {
            let config = config(&given, &json!({}));
            let Selection::Select(config) = config.selection else { panic!("a selector") };
            if let Ok((rows, _)) = select(&mut result.clone(), &config) {
                for row in rows.into_iter().flatten() {
                    prop_assert!(!row.id.trim().is_empty(), "{row:?}");
                    prop_assert!(row.title.is_none_or(|title| !title.trim().is_empty()));
                }
            }
        }
        for given in [json!({}), json!({"text_key": "text", "title_key": "title"})] {
            if let Ok(text) = read(result.clone(), &config(&json!({}), &given).read) {
                prop_assert!(!text.content.trim().is_empty());
            }
        }
    }
}
