//! `retrieve` and `content`: texts as they were learned.
//!
//! **Invariant:** a text is a field of the result, whole sections at a time; what did not fit is counted, and the
//! cursor goes on exactly there.

use kb_core::{DocId, DocumentInfo, SectionId};
use serde_json::{Value, json};

use super::arguments::Arguments;
use super::knowledge::{docid, not_found, take_array};
use super::schema::{MAX_TOKENS, Shape, optional, required};
use super::{Answer, Handler, Kind, Tool, to_value};
use crate::budget::{Budget, MAX_CHARS, cursor, resume};
use crate::call::Call;
use crate::failure::Failure;

pub(super) static RETRIEVE: Tool = Tool {
    name: "retrieve",
    title: "Retrieve a section or document",
    description: "Read one section by kbid, or a document by docid: its manifest and its sections in order. `kbid` goes \
                  before `docid`. Long ones come in pieces: go on with `cursor`.",
    kind: Kind::Read,
    parameters: &[
        optional("kbid", Shape::Text, ""),
        optional("docid", Shape::Text, ""),
        optional("maxTokens", MAX_TOKENS, "Less than the usual 12,000"),
        optional("cursor", Shape::Text, ""),
    ],
    result: &[
        ("kbid", Shape::Text),
        ("docid", Shape::Text),
        ("title", Shape::Text),
        ("content", Shape::Text),
        ("sections", Shape::Objects(&[])),
        ("cursor", Shape::Text),
    ],
    handler: Handler::Base(retrieve),
};

pub(super) static CONTENT: Tool = Tool {
    name: "content",
    title: "Compose a text",
    description: "Join sections and documents, in the order given, into one Markdown text. An unknown id fails the \
                  call. Long ones come in pieces: go on with `cursor`.",
    kind: Kind::Read,
    parameters: &[
        required("ids", Shape::Texts, "kbids and docids"),
        optional("maxTokens", MAX_TOKENS, ""),
        optional("cursor", Shape::Text, ""),
    ],
    result: &[("content", Shape::Text), ("cursor", Shape::Text)],
    handler: Handler::Base(content),
};

fn retrieve(call: &Call<'_>, arguments: &Arguments) -> Result<Answer, Failure> {
    let budget = Budget::of(arguments.integer("maxTokens")?);
    let from = arguments.text("cursor")?;
    if let Some(kbid) = arguments.text("kbid")? {
        let kbid: SectionId = kbid.parse().map_err(|_| not_found(&kbid))?;
        return section(call, kbid, &budget, from.as_deref()).map(Answer::Whole);
    }
    let Some(docid) = docid(arguments, "docid")? else {
        return Err(Failure::argument("kbid", "give `kbid` or `docid`"));
    };
    document(&call.base().retrieve_document(&docid)?, budget, from.as_deref()).map(Answer::Whole)
}

fn section(call: &Call<'_>, kbid: SectionId, budget: &Budget, from: Option<&str>) -> Result<Value, Failure> {
    let section = call.base().retrieve_section(kbid)?;
    let mut answer = to_value(&section)?;
    if section.encoding.is_some() {
        // A picture cut short is none; a client reads it as a resource.
        if section.content.len() > budget.left() {
            answer["content"] = "".into();
            answer["omitted"] = section.content.len().into();
            answer["resource"] = format!("kbdb://section/{kbid}").into();
        }
        return Ok(answer);
    }
    put_piece(&mut answer, &section.content, &[], budget, from, &kbid.to_string())?;
    Ok(answer)
}

fn document(info: &DocumentInfo, mut budget: Budget, from: Option<&str>) -> Result<Value, Failure> {
    let stamp = format!("r{}", info.revision);
    let begin = resume(from, &stamp)?;
    let mut answer = to_value(info)?;
    let mut sections = take_array(&mut answer, "sections");
    if begin > 0 {
        sections.drain(..begin.min(sections.len()));
    }
    for section in &mut sections {
        let is_large_picture = section["role"] == "image"
            && section["content"].as_str().is_some_and(|content| content.len() > budget.left());
        if is_large_picture {
            section["content"] = "".into();
            section["resource"] = format!("kbdb://section/{}", section["kbid"].as_str().unwrap_or_default()).into();
        }
    }
    // Warnings and other fields of the manifest are small, but for front matter that is not.
    budget.spend(&answer);
    let omitted = budget.fit(&mut sections);
    if omitted > 0 {
        answer["omitted"] = omitted.into();
        answer["cursor"] = cursor(&stamp, begin + sections.len());
    }
    answer["sections"] = sections.into();
    Ok(answer)
}

fn content(call: &Call<'_>, arguments: &Arguments) -> Result<Answer, Failure> {
    let ids = arguments.texts("ids")?;
    if ids.is_empty() {
        return Err(Failure::argument("ids", "give at least one kbid or docid"));
    }
    let budget = Budget::of(arguments.integer("maxTokens")?);
    let composed = call.base().content(&ids)?;
    let borders = if composed.content.len() > budget.left().min(MAX_CHARS) {
        borders(call, &ids, &composed.content)?
    } else {
        Vec::new()
    };
    let mut answer = json!({"ids": composed.ids});
    let stamp = format!("c{}", composed.content.len());
    let from = arguments.text("cursor")?;
    put_piece(&mut answer, &composed.content, &borders, &budget, from.as_deref(), &stamp)?;
    Ok(Answer::Whole(answer))
}

/// Puts as much of a text into an answer as fits, cut at the last border, else at a line, else at a character.
fn put_piece(
    answer: &mut Value,
    text: &str,
    borders: &[usize],
    budget: &Budget,
    from: Option<&str>,
    stamp: &str,
) -> Result<(), Failure> {
    let begin = text.floor_char_boundary(resume(from, stamp)?.min(text.len()));
    let rest = &text[begin..];
    // JSON escapes quotes and line ends: what is shown is longer than the text.
    let mut cost = 0;
    let fits = rest.char_indices().find_map(|(at, character)| {
        cost += match character {
            '"' | '\\' | '\n' | '\r' | '\t' => 2,
            c if c.is_control() => 6,
            _ => 1,
        };
        (cost > budget.left()).then_some(at)
    });
    let Some(most) = fits else {
        answer["content"] = rest.into();
        return Ok(());
    };
    let border = borders.iter().copied().filter(|&at| at > begin && at <= begin + most).max();
    let line = || rest[..most].rfind('\n').map(|at| begin + at + 1);
    let end = border.or_else(line).unwrap_or(begin + most.max(1));
    let end = text.ceil_char_boundary(end);
    answer["content"] = text[begin..end].into();
    answer["omitted"] = text[end..].chars().count().into();
    answer["cursor"] = cursor(stamp, end);
    Ok(())
}

/// Returns where sections begin in a composed text.
fn borders(call: &Call<'_>, ids: &[String], composed: &str) -> Result<Vec<usize>, Failure> {
    let mut borders = Vec::new();
    let mut at = 0;
    for id in ids {
        let piece = call.base().content(std::slice::from_ref(id))?.content;
        // Between two pieces stand line ends only, so the piece is found where it is or right behind them.
        let Some(start) = composed.get(at..).and_then(|rest| rest.find(piece.as_str())) else { continue };
        at += start;
        borders.push(at);
        if let Some(docid) = id.parse::<DocId>().ok().filter(|_| id.parse::<SectionId>().is_err()) {
            let mut section_start = at;
            for section in call.base().describe_document(&docid)?.sections {
                section_start += section.bytes as usize;
                if composed.is_char_boundary(section_start) {
                    borders.push(section_start);
                }
            }
        }
        at += piece.len();
    }
    Ok(borders)
}
