//! `search`, `learn`, `unlearn`.
//!
//! **Invariant:** an id is a kbid where it has the shape of one, else a docid; nothing is guessed.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kb_core::{DocId, MediaType, Mode, SectionId};
use kb_store::{Search, Target, Text, Unlearn};
use serde_json::{Value, json};

use super::arguments::Arguments;
use super::describe::{Described, describe};
use super::schema::{MAX_TOKENS, Shape, optional, required};
use super::{Answer, Handler, Kind, Tool, to_value};
use crate::budget::Budget;
use crate::call::Call;
use crate::failure::Failure;
use crate::reply::Report;

/// Text that is read where there is no index: an agent waits for the answer, and the index is made anew meanwhile.
const SCAN_BYTES: u64 = 2 << 20;

const MODES: &[&str] = &["auto", "all", "any", "phrase", "prefix", "fuzzy"];

pub(super) static SEARCH: Tool = Tool {
    name: "search",
    title: "Search",
    description: "Find the sections that answer a query, best first. Words, \"phrases\", -not, +must, prefix*, title:, \
                  tag:, doc:. `verdict` says whether the base holds an answer. Read a hit with `retrieve`.",
    kind: Kind::Read,
    parameters: &[
        required("query", Shape::Text, "A few telling words"),
        optional("mode", Shape::Word(MODES), "`auto` loosens a query that finds nothing"),
        optional("limit", Shape::Integer(1, 100), "Hits; 10 if left out"),
        optional("tags", Shape::Texts, "Only documents with all of these"),
        optional("docid", Shape::Text, "Only this document; `guide/*` is a beginning"),
        optional("type", Shape::Text, "markdown, text, html, toml, skill, agent"),
        optional("source", Shape::Text, "Only from this file or folder"),
        optional("since", Shape::Text, "Date"),
        optional("until", Shape::Text, "Date"),
        optional("cursor", Shape::Text, ""),
        optional("maxTokens", MAX_TOKENS, ""),
    ],
    result: &[
        ("verdict", Shape::Text),
        ("total", Shape::Count),
        ("incomplete", Shape::Text),
        ("cursor", Shape::Text),
        ("hits", Shape::Objects(&[])),
    ],
    handler: Handler::Base(search),
};

pub(super) static LEARN: Tool = Tool {
    name: "learn",
    title: "Learn a text",
    description: "Keep a text: it is split into sections, indexed and findable at once. Without `docid` a new document \
                  is made; to correct one, give its docid and the whole new text. Earlier revisions are kept.",
    kind: Kind::Add,
    parameters: &[
        required("content", Shape::Text, "The text; base64 for an image"),
        optional("type", Shape::Text, "markdown (usual), text, html, toml, or image/…"),
        optional("title", Shape::Text, "An image needs one"),
        optional("description", Shape::Text, ""),
        optional("docid", Shape::Text, "Lower-case name of the document"),
        optional("tags", Shape::Texts, ""),
        optional("describe", Shape::Flag, "Ask your model for description and tags"),
    ],
    result: &[("docid", Shape::Text), ("kbids", Shape::Texts), ("documents", Shape::Objects(&[]))],
    handler: Handler::Base(learn),
};

pub(super) static UNLEARN: Tool = Tool {
    name: "unlearn",
    title: "Unlearn a section",
    description: "Take a section out of every document that holds it, or only out of `docid`; a docid as `kbid` takes \
                  a whole document. The text is unreadable at once and cannot be brought back but by learning it again.",
    kind: Kind::Remove,
    parameters: &[
        required("kbid", Shape::Text, "The section, or a docid for all of a document"),
        optional("docid", Shape::Text, "Only in this document"),
    ],
    result: &[("documents", Shape::Texts), ("edited", Shape::Texts), ("sections", Shape::Texts)],
    handler: Handler::Base(unlearn),
};

fn search(call: &Call<'_>, arguments: &Arguments) -> Result<Answer, Failure> {
    let mut request = Search::new(arguments.required_text("query")?);
    if let Some(mode) = arguments.text("mode")? {
        request.mode = mode.parse::<Mode>().map_err(|error| Failure::argument("mode", error.to_string()))?;
    }
    request.limit = arguments.integer("limit")?.map_or(10, |limit| limit as usize);
    request.tags = arguments.texts("tags")?;
    request.docids.extend(arguments.text("docid")?);
    request.types.extend(arguments.text("type")?);
    request.sources.extend(arguments.text("source")?);
    request.since = arguments.text("since")?;
    request.until = arguments.text("until")?;
    request.cursor = arguments.text("cursor")?;
    let mut budget = Budget::of(arguments.integer("maxTokens")?);
    request.scan_bytes = SCAN_BYTES;
    let report = call.base().search(&request)?;
    if report.incomplete.is_some() {
        call.connection.server.mend_index(report.generation);
    }
    let whole = Report::new(&report)?;
    if whole.len() <= budget.left() {
        return Ok(Answer::Report(whole));
    }
    let mut answer = to_value(&report)?;
    let mut hits = take_array(&mut answer, "hits");
    budget.spend(&answer);
    let omitted = budget.fit(&mut hits);
    if omitted > 0 {
        answer["omitted"] = omitted.into();
        answer["cursor"] = request.cursor_after(hits.len(), &report).into();
    }
    answer["hits"] = hits.into();
    Ok(Answer::Whole(answer))
}

fn learn(call: &Call<'_>, arguments: &Arguments) -> Result<Answer, Failure> {
    let content = arguments.required_text("content")?;
    let media_type = match arguments.text("type")? {
        None => None,
        Some(text) => Some(text.parse::<MediaType>().map_err(|error| Failure::argument("type", error.to_string()))?),
    };
    let mut text = Text {
        title: arguments.text("title")?,
        description: arguments.text("description")?,
        docid: docid(arguments, "docid")?,
        tags: arguments.texts("tags")?,
        ..Text::default()
    };
    let is_image = media_type.as_ref().is_some_and(MediaType::is_image);
    if is_image && text.title.is_none() {
        return Err(Failure::argument("title", "an image needs one, since it is found by it"));
    }
    let mut described = None;
    if arguments.flag("describe")? {
        match describe(call, if is_image { None } else { Some(&content) }) {
            Described::NeedsInput(requests) => return Ok(Answer::NeedsInput(requests)),
            Described::Done { description, keywords, by } => {
                described = Some(json!({"done": true, "by": by, "description": description, "keywords": keywords}));
                text.description = text.description.or(Some(description));
                text.tags.extend(keywords);
            }
            Described::Not(reason) => described = Some(json!({"done": false, "reason": reason})),
        }
    }
    text.content = if is_image {
        let compact: String = content.split_ascii_whitespace().collect();
        STANDARD.decode(compact).map_err(|error| Failure::argument("content", format!("is not base64: {error}")))?
    } else {
        content.into_bytes()
    };
    text.media_type = media_type;
    let report = call.write(|base| base.learn(&text))?;
    let mut answer = to_value(&report)?;
    // The one document of the report, where a caller looks first.
    if let Some(document) = report.documents.first() {
        answer["docid"] = to_value(&document.docid)?;
        answer["kbids"] = to_value(&document.kbids)?;
        if let Some(first) = document.kbids.first() {
            answer["kbid"] = to_value(first)?;
        }
    }
    if let Some(described) = described {
        answer["described"] = described;
    }
    Ok(Answer::Whole(answer))
}

fn unlearn(call: &Call<'_>, arguments: &Arguments) -> Result<Answer, Failure> {
    let id = arguments.required_text("kbid")?;
    let target = match (id.parse::<SectionId>(), docid(arguments, "docid")?) {
        (Ok(kbid), None) => Target::Section(kbid),
        (Ok(kbid), Some(docid)) => Target::Occurrence(kbid, docid),
        (Err(_), None) => Target::Document(id.parse().map_err(|_| not_found(&id))?),
        (Err(_), Some(_)) => return Err(Failure::argument("kbid", "with `docid` it is a section's kbid")),
    };
    let request = Unlearn { targets: vec![target], ..Unlearn::default() };
    to_value(&call.write(|base| base.unlearn(&request))?).map(Answer::Whole)
}

/// Returns the docid that an argument gives.
pub(super) fn docid(arguments: &Arguments, name: &'static str) -> Result<Option<DocId>, Failure> {
    match arguments.text(name)? {
        None => Ok(None),
        Some(text) => {
            text.parse().map(Some).map_err(|error: kb_core::IdError| Failure::argument(name, error.to_string()))
        }
    }
}

/// Returns the failure of an id that has the shape of neither a kbid nor a docid.
pub(super) fn not_found(id: &str) -> Failure {
    kb_store::StoreError::SectionNotFound { id: super::arguments::shown(id) }.into()
}

/// Takes an array out of a report, to be cut and put back.
pub(super) fn take_array(report: &mut Value, field: &str) -> Vec<Value> {
    match report.get_mut(field).map(Value::take) {
        Some(Value::Array(items)) => items,
        _ => Vec::new(),
    }
}
