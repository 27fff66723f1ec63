//! From a mapping to a [`SourceConfig`].
//!
//! **Invariant:** every fault is told, not the first alone; what is not configured has the default that the documentation
//! gives.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value};

use super::keys::{Faults, Keys};
use super::transport::read_transport;
use super::{
    Cursor, Environment, Ids, KeyPath, Limits, MAX_NAME, Read, Select, Selection, SourceConfig, Transport,
    is_source_name,
};
use crate::source::docid::source_docid;
use crate::source::secret;

const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);
const DEFAULT_RETRIES: u32 = 2;
const MOST_RETRIES: u64 = 10;
const MOST_CONCURRENT: u64 = 64;
const DEFAULT_PAGES: u64 = 100;
const MOST_PAGES: u64 = 10_000;

/// Reads the whole of a configuration; where that is not possible, the faults say why.
pub(super) fn read_config(
    map: &Map<String, Value>,
    environment: &Environment<'_>,
    faults: &mut Faults,
) -> Option<SourceConfig> {
    let mut keys = Keys::new("", map, faults);
    let system = keys.required("system");
    if system.as_ref().is_some_and(|system| !is_system(system)) {
        let message =
            format!("it is not letters, digits, `_` and `-`, the first a letter or digit, at most {MAX_NAME}");
        keys.fault("system", message);
    }
    let (transport, select, read) = (keys.take("transport"), keys.take("select"), keys.take("read"));
    let static_ids = keys.has("static_ids").then(|| keys.texts("static_ids"));
    let timeout = keys.take("timeout");
    let retries = keys.number("retries", 0..=MOST_RETRIES);
    let concurrency = keys.number("concurrency", 1..=MOST_CONCURRENT);
    for (name, value) in [("transport", &transport), ("read", &read)] {
        if value.is_none() {
            keys.fault(name, "it is missing");
        }
    }
    match (&select, &static_ids) {
        (None, None) => keys.fault("select", "either `select` or `static_ids` has to say which documents there are"),
        (Some(_), Some(_)) => keys.fault("static_ids", "it cannot be given beside `select`"),
        _ => {}
    }
    keys.finish("system, transport, select, static_ids, read, timeout, retries, concurrency");

    let transport = transport.and_then(|value| read_transport(&value, environment, faults));
    let select = select.and_then(|value| read_select(&value, faults));
    let read = read.and_then(|value| read_read(&value, faults));
    let limits = read_limits(timeout.as_ref(), retries, concurrency, transport.as_ref(), faults);
    if let (Some(select), Some(read)) = (&select, &read)
        && select.tool == read.tool
    {
        faults.add("read.tool", "it is the same tool as `select.tool`");
    }
    if let Some(ids) = &static_ids {
        check_static_ids(ids, system.as_deref().unwrap_or("x"), faults);
    }
    let selection = match (select, static_ids) {
        (Some(select), None) => Selection::Select(Box::new(select)),
        (None, Some(ids)) => Selection::Static(ids),
        _ => return None,
    };
    Some(SourceConfig { system: system?, transport: transport?, selection, read: read?, limits })
}

fn check_static_ids(ids: &[String], system: &str, faults: &mut Faults) {
    if ids.is_empty() {
        faults.add("static_ids", "it is empty");
    }
    let mut known = BTreeMap::new();
    for (n, id) in ids.iter().enumerate() {
        let key = format!("static_ids[{n}]");
        if id.trim().is_empty() {
            faults.add(&key, "it is empty");
        } else if let Some(before) = known.insert(source_docid(system, id), n) {
            faults.add(&key, format!("it is the same document as static_ids[{before}]"));
        }
    }
}

fn read_select(value: &Value, faults: &mut Faults) -> Option<Select> {
    let mut keys = Keys::of("select", value, faults)?;
    let tool = keys.required("tool");
    let args = keys.map("args");
    if let Some(path) = secret::secret_value("args", &Value::Object(args.clone())) {
        keys.fault(&path, "it looks like a credential; let the server have it from a variable");
    }
    let (json_text, complete) = (keys.flag("json_text"), keys.flag("complete"));
    let (ids, cursor, version) = (keys.take("ids"), keys.take("cursor"), keys.path("version"));
    if ids.is_none() && version.is_some() {
        keys.fault("version", "it needs `select.ids`, whose rows it is read from");
    }
    if ids.is_none() && json_text {
        keys.fault("json_text", "it needs `select.ids`, which says where the rows stand");
    }
    keys.finish("tool, args, ids, json_text, cursor, version, complete");
    let ids = ids.and_then(|value| read_ids(&value, version, faults));
    let cursor = cursor.and_then(|value| {
        let mut keys = Keys::of("select.cursor", &value, faults)?;
        let (arg, next) = (keys.required("arg"), keys.required("next"));
        let pages = keys.number("pages", 1..=MOST_PAGES).unwrap_or(DEFAULT_PAGES);
        keys.finish("arg, next, pages");
        Some(Cursor { arg: arg?, next: KeyPath(next?), pages })
    });
    Some(Select { tool: tool?, args, ids, json_text, cursor, complete })
}

fn read_ids(value: &Value, version: Option<KeyPath>, faults: &mut Faults) -> Option<Ids> {
    let mut keys = Keys::of("select.ids", value, faults)?;
    let (list, id) = (keys.required("list"), keys.required("id"));
    let (title, url) = (keys.path("title"), keys.path("url"));
    let version = keys.path("version").or(version);
    keys.finish("list, id, title, url, version");
    Some(Ids { list: KeyPath(list?), id: KeyPath(id?), title, url, version })
}

fn read_read(value: &Value, faults: &mut Faults) -> Option<Read> {
    let mut keys = Keys::of("read", value, faults)?;
    let (tool, id_arg) = (keys.required("tool"), keys.required("id_arg"));
    let static_args = keys.map("static_args");
    if id_arg.as_ref().is_some_and(|id_arg| static_args.contains_key(id_arg)) {
        keys.fault("static_args", "it has the `id_arg` in it, which each read gives");
    }
    if let Some(path) = secret::secret_value("static_args", &Value::Object(static_args.clone())) {
        keys.fault(&path, "it looks like a credential; let the server have it from a variable");
    }
    let (text_key, title_key) = (keys.path("text_key"), keys.path("title_key"));
    if title_key.is_some() && text_key.is_none() {
        keys.fault("title_key", "it needs `read.text_key`");
    }
    keys.finish("tool, id_arg, static_args, text_key, title_key");
    Some(Read { tool: tool?, id_arg: id_arg?, static_args, text_key, title_key })
}

fn read_limits(
    timeout: Option<&Value>,
    retries: Option<u64>,
    concurrency: Option<u64>,
    transport: Option<&Transport>,
    faults: &mut Faults,
) -> Limits {
    let by_transport = if matches!(transport, Some(Transport::Http { .. })) { 4 } else { 1 };
    let mut limits = Limits {
        connect: DEFAULT_TIMEOUT,
        list: DEFAULT_TIMEOUT,
        select: DEFAULT_TIMEOUT,
        read: DEFAULT_TIMEOUT,
        retries: retries.map_or(DEFAULT_RETRIES, |retries| retries as u32),
        concurrency: concurrency.map_or(by_transport, |concurrency| concurrency as usize),
    };
    match timeout {
        None => {}
        Some(value @ Value::Object(_)) => {
            if let Some(mut keys) = Keys::of("timeout", value, faults) {
                limits.connect = keys.seconds("connect").unwrap_or(limits.connect);
                limits.list = keys.seconds("list").unwrap_or(limits.list);
                limits.select = keys.seconds("select").unwrap_or(limits.select);
                limits.read = keys.seconds("read").unwrap_or(limits.read);
                keys.finish("connect, list, select, read");
            }
        }
        Some(value) => {
            let mut map = Map::new();
            map.insert("timeout".to_owned(), value.clone());
            let mut keys = Keys::new("", &map, faults);
            if let Some(all) = keys.seconds("timeout") {
                (limits.connect, limits.list, limits.select, limits.read) = (all, all, all, all);
            }
        }
    }
    limits
}

fn is_system(name: &str) -> bool {
    is_source_name(name) && !name.contains('.')
}
