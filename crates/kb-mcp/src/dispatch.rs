//! From a method to what answers it.
//!
//! **Invariant:** a method that an era does not have is -32601 to that era; parameters that do not fit a known method
//! are -32602. What touches a store runs on a lane, so that the thread that reads never waits for it.

use std::cell::Cell;
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use kb_core::ActivityEntry;
use kb_store::{KnowledgeBase, ProjectStore};
use serde_json::{Map, Value, json};

use crate::activity::ids;
use crate::call::{Call, Era, ProjectCall, Ticket};
use crate::completion::complete;
use crate::connection::Connection;
use crate::failure::Failure;
use crate::outbox::Outbox;
use crate::project_resources::logged;
use crate::prompts;
use crate::protocol::{LOG_LEVELS, discover_result, initialize_result, opening, tools};
use crate::reply::Reply;
use crate::resources::{self, internal, no_cursor, uri_of};
use crate::served::Served;
use crate::server::LaneName;
use crate::tools::arguments::{Arguments, nearest, shown};
use crate::tools::{Answer, Handler, Kind, Tool, call_result};
use crate::wire::{METHOD_NOT_FOUND, Params, RpcError};

/// A handler that reads what is served.
type Reader = fn(&Connection, &Params, &Era) -> Result<Value, RpcError>;

/// How a method is answered.
enum Route {
    /// At once, by what is known without a look at the files.
    AtOnce(fn(&Connection, &Params) -> Result<Value, RpcError>),
    Read(Reader),
    Tool,
    Listen,
}

/// Returns the method under the name that does not go away, and how it is answered.
fn route(method: &str, is_modern: bool) -> Option<(&'static str, Route)> {
    let both: &[(&'static str, Route)] = &[
        ("tools/list", Route::AtOnce(|connection, params| no_cursor(params).map(|()| tools(connection.served())))),
        ("tools/call", Route::Tool),
        ("prompts/list", Route::Read(list_prompts)),
        ("prompts/get", Route::Read(|connection, params, _| prompts::get(base(connection, "prompts/get")?, params))),
        ("resources/list", Route::Read(list_resources)),
        (
            "resources/templates/list",
            Route::AtOnce(|connection, params| {
                no_cursor(params).map(|()| json!({"resourceTemplates": resources::templates(connection.served())}))
            }),
        ),
        (
            "resources/read",
            Route::Read(|connection, params, era| resources::read(connection.served(), params, era.is_modern())),
        ),
        ("completion/complete", Route::Read(|connection, params, _| complete(connection.served(), params))),
        (
            "skills/list",
            Route::Read(|connection, params, _| resources::list_skills(base(connection, "skills/list")?, params)),
        ),
        (
            "skills/get",
            Route::Read(|connection, params, _| resources::get_skill(base(connection, "skills/get")?, params)),
        ),
    ];
    let legacy: &[(&'static str, Route)] = &[
        ("initialize", Route::AtOnce(initialize)),
        ("ping", Route::AtOnce(|_, _| Ok(json!({})))),
        ("logging/setLevel", Route::AtOnce(set_level)),
        ("resources/subscribe", Route::Read(subscribe)),
        ("resources/unsubscribe", Route::Read(unsubscribe)),
        ("roots/list", Route::AtOnce(|connection, _| Ok(roots(connection)))),
    ];
    let modern: &[(&'static str, Route)] = &[
        ("server/discover", Route::AtOnce(|connection, _| Ok(discover_result(connection.served())))),
        ("subscriptions/listen", Route::Listen),
    ];
    let of_era = if is_modern { modern } else { legacy };
    let (name, route) = both.iter().chain(of_era).find(|(name, _)| *name == method)?;
    let route = match route {
        Route::AtOnce(handler) => Route::AtOnce(*handler),
        Route::Read(handler) => Route::Read(*handler),
        Route::Tool => Route::Tool,
        Route::Listen => Route::Listen,
    };
    Some((name, route))
}

impl Connection {
    /// Answers a request, or has it answered.
    pub(crate) fn request(self: &Arc<Self>, id: Value, method: &str, params: Params, out: &Outbox) {
        let era = match self.era(method, &params) {
            Ok(era) => era,
            Err(error) => return self.reply(out, &id, method, &Era::Legacy, Err(error)),
        };
        let Some((method, route)) = route(method, era.is_modern()) else {
            let error = RpcError::new(METHOD_NOT_FOUND, format!("there is no method `{}`", shown(method)));
            return self.reply(out, &id, method, &era, Err(error));
        };
        match route {
            Route::AtOnce(handler) => self.reply(out, &id, method, &era, handler(self, &params)),
            Route::Read(handler) => {
                let ticket = Ticket::new(id, method.to_owned(), true, self.number(), out);
                let connection = Arc::clone(self);
                self.server.run(LaneName::Read, ticket, method, era, move |_, era| {
                    handler(&connection, &params, era).map(|result| Some(result.into()))
                });
            }
            Route::Tool => self.tool(id, params, era, out),
            Route::Listen => {
                let wanted = params.get("notifications").cloned().unwrap_or_default();
                if !wanted.is_object() {
                    let error = RpcError::params("`notifications` is missing or not an object");
                    return self.reply(out, &id, method, &era, Err(error));
                }
                let ticket = Ticket::new(id, method.to_owned(), true, self.number(), out);
                let connection = Arc::clone(self);
                self.server.run(LaneName::Read, ticket, method, era, move |ticket, _| {
                    let watch = &connection.server.watch;
                    watch.listen(connection.served(), ticket, &wanted).map(|()| None)
                });
            }
        }
    }

    /// Has a tool called.
    fn tool(self: &Arc<Self>, id: Value, mut params: Params, era: Era, out: &Outbox) {
        let method = "tools/call";
        let (tool, fields) = match wanted(self.served(), &mut params) {
            Ok(wanted) => wanted,
            Err(error) => return self.reply(out, &id, method, &era, Err(error)),
        };
        let asks_client = fields.get("describe").is_some_and(|value| *value != false && !value.is_null());
        let lane = match tool.kind {
            kind if kind.is_maintenance() || asks_client => LaneName::Slow,
            Kind::Read => LaneName::Read,
            _ => LaneName::Write,
        };
        let can_be_left = !tool.kind.writes() || tool.kind.is_maintenance();
        let ticket = Ticket::new(id, tool.name.to_owned(), can_be_left, self.number(), out);
        let connection = Arc::clone(self);
        self.server.run(lane, ticket, method, era, move |ticket, era| {
            Ok(Some(connection.call(tool, ticket, era, params, fields)))
        });
    }

    /// Calls a tool, and tells of it who has to know.
    fn call(&self, tool: &Tool, ticket: &Ticket, era: &Era, mut params: Params, fields: Map<String, Value>) -> Reply {
        let began = Instant::now();
        let mut named = ids(&fields);
        let entry = matches!(tool.handler, Handler::Projects(_)).then(|| activity_entry(tool, &fields));
        let served = self.served();
        let outcome = Arguments::new(tool.parameters, fields).and_then(|arguments| {
            match (tool.handler, served.base(), served.projects()) {
                (Handler::Base(handler), Some(base), _) => {
                    let progress_token = params.get("_meta").and_then(|meta| meta.get("progressToken"));
                    let progress_token = progress_token.filter(|token| crate::wire::is_id(token)).cloned();
                    let input = match params.remove("inputResponses") {
                        Some(Value::Object(input)) => input,
                        _ => Map::new(),
                    };
                    let told = Cell::new(0);
                    handler(&Call { connection: self, base, ticket, era, progress_token, input, told }, &arguments)
                }
                (Handler::Projects(handler), _, Some(store)) => {
                    handler(&ProjectCall { connection: self, store, ticket }, &arguments)
                }
                // No tool is found whose store is not served.
                _ => Err(Failure::new("internal", format!("`{}` is not served", tool.name))),
            }
        });
        if let Some((store, entry)) = served.projects().zip(entry) {
            self.tell_of_project(tool, store, entry, &outcome);
        } else if let Ok(Answer::Whole(answer)) = &outcome {
            if tool.kind.writes() {
                self.tell_of_change(era, answer);
            }
            named.extend(answer.as_object().map(ids).unwrap_or_default());
            named.sort();
            named.dedup();
        }
        let word = outcome.as_ref().map_or_else(|failure| failure.code, |_| "ok");
        if let Some(log) = &self.server.activity {
            log.call(tool.name, &named, word, began.elapsed());
        }
        let log = |level, data: &Value| self.log(&ticket.out, era, level, data);
        match &outcome {
            Err(Failure { code, message, .. }) => {
                log("warning", &json!({"tool": tool.name, "code": code, "message": message}));
            }
            Ok(_) if tool.kind.is_maintenance() => {
                let milliseconds = began.elapsed().as_millis() as u64;
                log("info", &json!({"tool": tool.name, "milliseconds": milliseconds}));
            }
            Ok(_) => log("debug", &json!({"tool": tool.name})),
        }
        call_result(tool, outcome)
    }

    /// Writes a call of project knowledge down, and has the watch look where it may have changed something.
    fn tell_of_project(
        &self,
        tool: &Tool,
        store: &ProjectStore,
        entry: ActivityEntry,
        outcome: &Result<Answer, Failure>,
    ) {
        // The code and not the sentence, in which a part of a text may stand.
        let error = outcome.as_ref().err().map(|failure| failure.code.to_owned());
        store.record(&ActivityEntry { success: outcome.is_ok(), error, ..entry });
        if tool.kind.writes() && outcome.is_ok() && self.server.watch.has_resources() {
            self.server.watch.poke();
        }
    }

    /// Has the watch look soon, where a call may have changed what somebody listens to.
    fn tell_of_change(&self, era: &Era, answer: &Value) {
        let begins = |id: &Value| id.as_str().is_some_and(|id| id.starts_with("skill-") || id.starts_with("agent-"));
        let is_of_prompts =
            answer.get("docid").is_some_and(begins) || answer["documents"].as_array().into_iter().flatten().any(begins);
        if is_of_prompts {
            self.server.watch.touch_prompts((!era.is_modern()).then_some(self));
        } else if self.server.watch.has_resources() {
            self.server.watch.poke();
        }
    }
}

/// Returns what the activity log of a home holds of a call, but for its outcome.
fn activity_entry(tool: &Tool, fields: &Map<String, Value>) -> ActivityEntry {
    let name = |field: &str| fields.get(field).and_then(Value::as_str).map(logged);
    ActivityEntry {
        timestamp: String::new(),
        method: tool.name.to_owned(),
        project_id: name("project_id"),
        filename: name("filename"),
        chapter_title: name("chapter_title"),
        success: false,
        error: None,
    }
}

/// Returns the base, for a method that is there only where a base is served.
fn base<'c>(connection: &'c Connection, method: &str) -> Result<&'c KnowledgeBase, RpcError> {
    connection.served().base().ok_or_else(|| RpcError::new(METHOD_NOT_FOUND, format!("there is no method `{method}`")))
}

/// Returns the tool and the arguments that a call names.
fn wanted(served: &Served, params: &mut Params) -> Result<(&'static Tool, Map<String, Value>), RpcError> {
    let Some(name) = params.get("name").and_then(Value::as_str) else {
        return Err(RpcError::params("`name` is missing or not a string"));
    };
    let Some(tool) = served.tools().find(|tool| tool.name == name) else {
        let names: Vec<_> = served.tools().map(|tool| tool.name).collect();
        let hint = nearest(name, &names).map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
        return Err(RpcError::params(format!("Unknown tool: {}{hint}", shown(name))));
    };
    match params.remove("arguments") {
        None | Some(Value::Null) => Ok((tool, Map::new())),
        Some(Value::Object(fields)) => Ok((tool, fields)),
        Some(_) => Err(RpcError::params("`arguments` is not an object")),
    }
}

fn initialize(connection: &Connection, params: &Params) -> Result<Value, RpcError> {
    let opening = opening(params)?;
    let result = initialize_result(connection.served(), &opening.version);
    let mut session = connection.session();
    session.version = Some(opening.version);
    session.capabilities = opening.capabilities;
    Ok(result)
}

fn set_level(connection: &Connection, params: &Params) -> Result<Value, RpcError> {
    let level = params.get("level").and_then(Value::as_str);
    let at = level.and_then(|level| LOG_LEVELS.iter().position(|known| *known == level));
    let at = at.ok_or_else(|| RpcError::params(format!("`level` is none of {}", LOG_LEVELS.join(", "))))?;
    connection.session().log_level = Some(at);
    Ok(json!({}))
}

fn list_prompts(connection: &Connection, params: &Params, era: &Era) -> Result<Value, RpcError> {
    let base = base(connection, "prompts/list")?;
    if !era.is_modern() {
        connection.server.watch.follow_prompts(connection, base).map_err(|error| internal(&error))?;
    }
    prompts::list(base, params)
}

fn list_resources(connection: &Connection, params: &Params, era: &Era) -> Result<Value, RpcError> {
    if let (false, Some(store)) = (era.is_modern(), connection.served().projects()) {
        connection.server.watch.follow_list(connection, store).map_err(|error| internal(&error))?;
    }
    resources::list(connection.served(), params)
}

fn subscribe(connection: &Connection, params: &Params, _: &Era) -> Result<Value, RpcError> {
    let uri = uri_of(params)?;
    connection.server.watch.subscribe(connection, uri)?;
    Ok(json!({}))
}

fn unsubscribe(connection: &Connection, params: &Params, _: &Era) -> Result<Value, RpcError> {
    connection.server.watch.unsubscribe(connection.number(), uri_of(params)?);
    Ok(json!({}))
}

/// Returns the folders that are served as the roots.
fn roots(connection: &Connection) -> Value {
    let served = connection.served();
    let base = served.base().map(|base| json!({"uri": file_uri(base.path()), "name": "kb"}));
    let home = served.projects().map(|store| json!({"uri": file_uri(store.home()), "name": "projects"}));
    json!({"roots": base.into_iter().chain(home).collect::<Vec<_>>()})
}

fn file_uri(path: &Path) -> String {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut uri = "file://".to_owned();
    let text = path.to_string_lossy().replace('\\', "/");
    if !text.starts_with('/') {
        uri.push('/');
    }
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~:".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            let _ = write!(uri, "%{byte:02X}");
        }
    }
    uri
}
