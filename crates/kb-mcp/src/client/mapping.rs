//! From the results of tools to rows and documents, protocol first.
//!
//! **Invariant:** a configured key that cannot be used is an error, never silently another rule. The bytes of a text are
//! those of the server.

#[cfg(test)]
mod tests;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kb_core::MediaType;
use kb_store::{Ids, KeyPath, Read, Select, SelectedRow};
use serde_json::Value;

/// Why a result is of no use, in one sentence.
type Reason = String;

/// A row, or what is wrong with it and its id as far as it has one.
pub(crate) type Row = Result<SelectedRow, (Option<String>, Reason)>;

/// A document as a reader gave it.
#[derive(Debug, PartialEq)]
pub(crate) struct ReadText {
    pub(crate) content: String,
    pub(crate) title: Option<String>,
    pub(crate) media_type: Option<MediaType>,
}

/// Returns the rows of one page of a selection, and where the next one begins.
pub(crate) fn select(result: &mut Value, select: &Select) -> Result<(Vec<Row>, Option<Value>), Reason> {
    refuse_failure(result)?;
    let Some(ids) = &select.ids else {
        let next = select.cursor.as_ref().and_then(|cursor| cursor.next.find(&result["structuredContent"]).cloned());
        return Ok((links(result)?, next.filter(goes_on)));
    };
    let value = if select.json_text {
        json_text(result)?
    } else {
        match result.get_mut("structuredContent").map(Value::take) {
            None | Some(Value::Null) => {
                return Err("`select.ids` is configured and the result has no structured content; \
                            `json_text: true` reads it from a text that is JSON"
                    .to_owned());
            }
            Some(value) => value,
        }
    };
    let list = ids.list.find(&value).ok_or_else(|| missing("select.ids.list", &ids.list, &value))?;
    let Value::Array(items) = list else {
        return Err(format!("`{}` (`select.ids.list`) is not a list", ids.list.as_str()));
    };
    let rows = items.iter().map(|item| row(item, ids)).collect();
    let next = select.cursor.as_ref().and_then(|cursor| cursor.next.find(&value).cloned());
    Ok((rows, next.filter(goes_on)))
}

/// Says whether a cursor leads anywhere.
fn goes_on(cursor: &Value) -> bool {
    match cursor {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        _ => true,
    }
}

fn row(item: &Value, ids: &Ids) -> Row {
    if !item.is_object() {
        return Err((None, "a row of the selection is no object".to_owned()));
    }
    let argument = ids.id.find(item).cloned().unwrap_or_default();
    let id = match &argument {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Null => return Err((None, format!("a row has no `{}`", ids.id.as_str()))),
        _ => return Err((None, format!("`{}` of a row is neither a text nor a number", ids.id.as_str()))),
    };
    if id.trim().is_empty() {
        return Err((Some(id), format!("`{}` of a row is blank", ids.id.as_str())));
    }
    let field = |path: &Option<KeyPath>| path.as_ref().and_then(|path| path.find(item)).and_then(scalar);
    let url = field(&ids.url).and_then(|url| clickable(&url)).or_else(|| clickable(&id));
    Ok(SelectedRow { id, argument, title: field(&ids.title), url, version: field(&ids.version) })
}

/// Returns a text or a number as text; nothing where it is blank.
fn scalar(value: &Value) -> Option<String> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => return None,
    };
    Some(text).filter(|text| !text.trim().is_empty())
}

/// Returns an address that a person can open.
pub(crate) fn clickable(text: &str) -> Option<String> {
    let is_web = text.starts_with("https://") || text.starts_with("http://");
    (is_web && !text.chars().any(|c| c.is_control() || c.is_whitespace())).then(|| text.to_owned())
}

/// Returns the rows of a selection without `ids`: its resource links and embedded resources.
fn links(result: &Value) -> Result<Vec<Row>, Reason> {
    let blocks = blocks(result)?;
    let rows: Vec<Row> = blocks
        .iter()
        .filter_map(|block| match block.get("type").and_then(Value::as_str) {
            Some("resource_link") => Some(link(block)),
            Some("resource") => Some(link(&block["resource"])),
            _ => None,
        })
        .collect();
    if !rows.is_empty() {
        return Ok(rows);
    }
    match result.get("structuredContent") {
        Some(Value::Object(map)) if !map.is_empty() => Err(format!(
            "it has structured content, and `select.ids` does not say where the ids stand; keys: {}",
            keys(map.keys())
        )),
        Some(value) if !value.is_null() && !value.as_object().is_some_and(serde_json::Map::is_empty) => {
            Err("it has structured content, and `select.ids` does not say where the ids stand".to_owned())
        }
        _ if blocks.is_empty() => Ok(Vec::new()),
        _ => Err("it is prose, from which no ids are guessed; list them under `static_ids`".to_owned()),
    }
}

fn link(resource: &Value) -> Row {
    let text = |key: &str| resource.get(key).and_then(scalar);
    let Some(id) = text("uri") else { return Err((None, "a resource of the selection has no `uri`".to_owned())) };
    let url = clickable(&id);
    Ok(SelectedRow {
        argument: id.clone().into(),
        id,
        title: text("title").or_else(|| text("name")),
        url,
        version: None,
    })
}

/// Returns the text of a document.
pub(crate) fn read(mut result: Value, read: &Read) -> Result<ReadText, Reason> {
    refuse_failure(&result)?;
    let (content, title, media_type) = if let Some(key) = &read.text_key {
        let value = result.get("structuredContent").unwrap_or(&Value::Null);
        if value.is_null() {
            return Err("`read.text_key` is configured and the result has no structured content".to_owned());
        }
        let text = key.find(value).ok_or_else(|| missing("read.text_key", key, value))?;
        let content = match text {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            _ => return Err(format!("`{}` (`read.text_key`) is neither a text nor a number", key.as_str())),
        };
        (content, read.title_key.as_ref().and_then(|key| key.find(value)).and_then(scalar), None)
    } else {
        let (content, media_type) = text_of_blocks(&mut result)?;
        (content, None, media_type)
    };
    if content.trim().is_empty() {
        return Err("its text is blank".to_owned());
    }
    Ok(ReadText { content, title, media_type })
}

/// Returns the one resource of a result, else its text blocks joined by a blank line.
fn text_of_blocks(result: &mut Value) -> Result<(String, Option<MediaType>), Reason> {
    let kinds: Vec<String> = blocks(result)?.iter().map(|b| b["type"].as_str().unwrap_or("?").to_owned()).collect();
    let Some(Value::Array(blocks)) = result.get_mut("content") else {
        return Err("the result has no content".to_owned());
    };
    let (mut resources, mut texts) = (Vec::new(), Vec::new());
    for block in blocks {
        match block.get("type").and_then(Value::as_str) {
            Some("resource") => resources.push(block["resource"].take()),
            Some("text") => match block.get_mut("text").map(Value::take) {
                Some(Value::String(text)) => texts.push(text),
                _ => return Err("a text block has no text".to_owned()),
            },
            _ => {}
        }
    }
    match (resources.len(), texts.len()) {
        (1, _) => resource(&mut resources[0]),
        (0, 0) if kinds.is_empty() => Err("the result has no content".to_owned()),
        (0, 0) => Err(format!("the result has no text, only {}", keys(kinds.iter()))),
        (0, 1) => Ok((texts.remove(0), None)),
        (0, _) => Ok((texts.join("\n\n"), None)),
        (many, _) => Err(format!("the result has {many} resources, and one was asked for")),
    }
}

fn resource(resource: &mut Value) -> Result<(String, Option<MediaType>), Reason> {
    // Of what we can split in another way than Markdown; all else is taken for that.
    let own = resource.get("mimeType").and_then(Value::as_str).and_then(|text| text.parse::<MediaType>().ok());
    let media_type = own.filter(|own| ["text/html", "text/plain"].contains(&own.as_str()));
    if let Some(Value::String(text)) = resource.get_mut("text").map(Value::take) {
        return Ok((text, media_type));
    }
    let Some(blob) = resource.get("blob").and_then(Value::as_str) else {
        return Err("the resource has neither a text nor a blob".to_owned());
    };
    let bytes = STANDARD.decode(blob.trim()).map_err(|_| "the blob of the resource is no base64".to_owned())?;
    let text = String::from_utf8(bytes).map_err(|_| "the blob of the resource is not UTF-8 text".to_owned())?;
    Ok((text, media_type))
}

fn blocks(result: &Value) -> Result<&[Value], Reason> {
    match result.get("content") {
        None | Some(Value::Null) => Ok(&[]),
        Some(Value::Array(blocks)) => Ok(blocks),
        Some(_) => Err("the content of the result is no list".to_owned()),
    }
}

/// Returns the JSON that a text block of a result is.
fn json_text(result: &Value) -> Result<Value, Reason> {
    let texts =
        blocks(result)?.iter().filter(|block| block["type"] == "text").filter_map(|block| block["text"].as_str());
    let mut any = false;
    for text in texts {
        any = true;
        if let Ok(value @ (Value::Object(_) | Value::Array(_))) = serde_json::from_str(text) {
            return Ok(value);
        }
    }
    Err(if any {
        "`select.json_text` is configured and its text is no JSON"
    } else {
        "`select.json_text` is configured and it has no text"
    }
    .to_owned())
}

/// Fails for a result that says it is a failure, or asks for something.
fn refuse_failure(result: &Value) -> Result<(), Reason> {
    if !result.is_object() {
        return Err("the result is no object".to_owned());
    }
    if result.get("resultType").and_then(Value::as_str).is_some_and(|kind| kind != "complete") {
        return Err("the tool asks for something instead of answering".to_owned());
    }
    if result.get("isError").and_then(Value::as_bool) != Some(true) {
        return Ok(());
    }
    let texts: Vec<&str> = blocks(result)?.iter().filter_map(|block| block["text"].as_str()).collect();
    Err(if texts.is_empty() { "the tool failed".to_owned() } else { format!("the tool failed: {}", texts.join(" ")) })
}

fn missing(key: &str, path: &KeyPath, value: &Value) -> Reason {
    let seen = match value {
        Value::Object(map) => format!("; keys: {}", keys(map.keys())),
        Value::Array(_) => "; it is a list".to_owned(),
        _ => String::new(),
    };
    format!("the result has no `{}` (`{key}`){seen}", path.as_str())
}

/// Names the first of some keys.
fn keys<'k>(keys: impl ExactSizeIterator<Item = &'k String>) -> String {
    const SHOWN: usize = 12;
    let more = if keys.len() > SHOWN { ", …" } else { "" };
    let names: Vec<String> = keys.take(SHOWN).map(|key| format!("`{key}`")).collect();
    format!("{}{more}", names.join(", "))
}
