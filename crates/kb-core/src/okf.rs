//! The Open Knowledge Format, version 0.2: a bundle is a tree of Markdown files, each with front matter that has a `type`;
//! `index.md` and `log.md` are reserved at every level.
//!
//! **Invariant:** what follows the front matter of a concept is the document byte for byte, less the front matter that it
//! had itself, whose fields are in the new one. So its sections are the same, but for blank lines at the very top: after
//! front matter they are a part of that.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::Value;

use crate::{DocumentInfo, DocumentKind, FrontMatter, FrontMatterBlock, yaml_quoted};

/// File names, in lower case, that are no concepts.
const RESERVED: [&str; 2] = ["index.md", "log.md"];

/// Returns a document as a concept.
pub fn okf_concept(info: &DocumentInfo, content: &str) -> String {
    // What looks like a block may be text below a rule: the splitter has decided that.
    let has_front_matter = info.sections.first().is_some_and(|first| first.role == "front-matter");
    let (own, body) = match FrontMatterBlock::find(content) {
        _ if !has_front_matter => (FrontMatter::default(), content),
        FrontMatterBlock::Found { format, fields, end } => match FrontMatter::read(content, format, fields) {
            Ok(own) => (own, &content[end..]),
            Err(_) => (FrontMatter::default(), content),
        },
        _ => (FrontMatter::default(), content),
    };
    let own_type = own.meta.get("type").and_then(Value::as_str).filter(|own| !own.trim().is_empty());
    let kind = match info.kind {
        DocumentKind::Document => "Document",
        DocumentKind::Skill => "Skill",
        DocumentKind::Agent => "Agent",
    };
    let mut page = String::from("---\n");
    let mut field = |key: &str, value: &str| {
        let _ = writeln!(page, "{key}: {value}");
    };
    field("type", &yaml_quoted(own_type.unwrap_or(kind)));
    field("title", &yaml_quoted(&info.title));
    if let Some(description) = &info.description {
        field("description", &yaml_quoted(description));
    }
    let provenance = info.provenance.as_ref();
    let resource = provenance.and_then(|provenance| provenance.url.as_ref()).or(info.source.as_ref());
    if let Some(resource) = resource.filter(|_| !own.meta.contains_key("resource")) {
        field("resource", &yaml_quoted(resource));
    }
    for (key, texts) in [("tags", &info.tags), ("aliases", &info.aliases)] {
        if !texts.is_empty() {
            field(key, &list(texts.iter().map(|text| yaml_quoted(text))));
        }
    }
    for (key, text) in [("date", &own.date), ("language", &own.language)] {
        if let Some(text) = text {
            field(key, &yaml_quoted(text));
        }
    }
    if !own.meta.contains_key("generated") {
        let at = provenance.map_or(&info.updated, |provenance| &provenance.retrieved);
        let by = concat!("kb/", env!("CARGO_PKG_VERSION"));
        field("generated", &format!("{{by: {}, at: {}}}", yaml_quoted(by), yaml_quoted(at)));
    }
    if let Some(provenance) = provenance {
        let of = [("system", &provenance.system), ("id", &provenance.id), ("hash", &provenance.hash)];
        let fields = of.iter().map(|(key, text)| format!("{key}: {}", yaml_quoted(text)));
        field("provenance", &format!("{{{}}}", fields.collect::<Vec<_>>().join(", ")));
    }
    let is_ours = |key: &str| key == "type" && own_type.is_some() || key == "provenance" && provenance.is_some();
    for (key, value) in own.meta.iter().filter(|(key, _)| !is_ours(key)) {
        field(&yaml_quoted(key), &flow(value));
    }
    page.push_str("---\n");
    page.push_str(body);
    page
}

/// Returns a path that is not reserved.
///
/// ```
/// assert_eq!(kb_core::okf_path("docs/Index.md"), "docs/Index-page.md");
/// assert_eq!(kb_core::okf_path("docs/indexes.md"), "docs/indexes.md");
/// ```
pub fn okf_path(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or(path);
    if RESERVED.contains(&name.to_lowercase().as_str()) {
        format!("{}-page.md", &path[..path.len() - ".md".len()])
    } else {
        path.to_owned()
    }
}

/// Returns the `index.md` of each folder of a bundle, by path: what lies in it, and the folders in it. The one of the bundle
/// itself says by which version it is written.
pub fn okf_indexes(concepts: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let mut folders: BTreeMap<&str, Vec<String>> = BTreeMap::from([("", Vec::new())]);
    for (path, title) in concepts {
        let mut below = path.as_str();
        let mut entry = format!("- [{}]({})", plain(title), address(name_of(path)));
        // Each folder above is listed once, in the one above that.
        while let Some(folder) = parent(below) {
            let is_new = !folders.contains_key(folder);
            folders.entry(folder).or_default().push(entry);
            if !is_new {
                break;
            }
            entry = format!("- [{}/]({}/index.md)", plain(name_of(folder)), address(name_of(folder)));
            below = folder;
        }
    }
    let index = |(folder, entries): (&str, Vec<String>)| {
        let (path, top) = match folder {
            "" => ("index.md".to_owned(), "---\nokf_version: \"0.2\"\n---\n# Documents\n".to_owned()),
            _ => (format!("{folder}/index.md"), format!("# {}\n", plain(name_of(folder)))),
        };
        (path, format!("{top}\n{}\n", entries.join("\n")))
    };
    folders.into_iter().map(index).collect()
}

/// Returns the folder that a path lies in: empty for the bundle, nothing above that.
fn parent(path: &str) -> Option<&str> {
    match path.rfind('/') {
        Some(at) => Some(&path[..at]),
        None if path.is_empty() => None,
        None => Some(""),
    }
}

fn name_of(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Returns a value as YAML on one line.
fn flow(value: &Value) -> String {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(text) => yaml_quoted(text),
        Value::Array(items) => list(items.iter().map(flow)),
        Value::Object(map) => {
            let fields = map.iter().map(|(key, value)| format!("{}: {}", yaml_quoted(key), flow(value)));
            format!("{{{}}}", fields.collect::<Vec<_>>().join(", "))
        }
    }
}

fn list(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(", "))
}

/// Returns a text on one line in which no character is markup.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_ascii_punctuation() && !matches!(c, '/' | '.' | ',' | ':' | '-') {
            plain.push('\\');
        }
        plain.push(if c.is_control() { ' ' } else { c });
    }
    plain
}

/// Returns a file name as an address in a link.
fn address(name: &str) -> String {
    let mut address = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-') {
            address.push(char::from(byte));
        } else {
            let _ = write!(address, "%{byte:02X}");
        }
    }
    address
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{MediaType, Parsed, Role, SectionId, SectionInfo, parse};

    fn info(content: &str) -> DocumentInfo {
        let parsed = parsed(content);
        DocumentInfo {
            docid: "a".parse().expect("a docid"),
            kind: DocumentKind::Document,
            title: "A: \"title\"".to_owned(),
            description: parsed.description,
            tags: parsed.tags,
            aliases: parsed.aliases,
            meta: parsed.meta,
            media_type: MediaType::markdown(),
            source: Some("docs/a.md".to_owned()),
            date: None,
            created: "2031-02-03T04:05:06Z".to_owned(),
            updated: "2031-02-03T04:05:06Z".to_owned(),
            revision: 1,
            edited: false,
            bytes: content.len() as u64,
            warnings: Vec::new(),
            provenance: None,
            sections: parsed.sections.iter().map(|piece| section(piece.role)).collect(),
        }
    }

    fn section(role: Role) -> SectionInfo {
        SectionInfo {
            kbid: SectionId::of(&MediaType::markdown(), b""),
            position: 0,
            media_type: MediaType::markdown(),
            role: if role == Role::FrontMatter { "front-matter" } else { "text" }.to_owned(),
            level: 0,
            parent: None,
            heading_path: Vec::new(),
            line: 1,
            bytes: 0,
            part: None,
            content: None,
        }
    }

    fn parsed(content: &str) -> Parsed {
        parse(content, &MediaType::markdown())
    }

    /// Returns the texts of the sections but for front matter.
    fn texts(content: &str) -> Vec<String> {
        let pieces = parsed(content).sections;
        pieces
            .iter()
            .filter(|piece| piece.role != Role::FrontMatter)
            .map(|piece| content[piece.range.clone()].to_owned())
            .collect()
    }

    #[test]
    fn front_matter_is_taken_over() {
        let content = "---\ntype: Guide\ntags: [x]\nversion: 1.10\ndeep: {a: [1, no]}\n---\n\n# A\n";
        let concept = okf_concept(&info(content), content);
        let version = env!("CARGO_PKG_VERSION");
        assert_eq!(
            concept,
            format!(
                "---\ntype: \"Guide\"\ntitle: \"A: \\\"title\\\"\"\nresource: \"docs/a.md\"\ntags: [\"x\"]\n\
                 generated: {{by: \"kb/{version}\", at: \"2031-02-03T04:05:06Z\"}}\n\"version\": \"1.10\"\n\
                 \"deep\": {{\"a\": [1, \"no\"]}}\n---\n\n# A\n"
            )
        );
    }

    #[test]
    fn folders_have_an_index_each() {
        let concepts = BTreeMap::from(
            [("a.md", "A [x]"), ("d/b c.md", "B"), ("d/e/f/g.md", "G")]
                .map(|(path, title)| (path.to_owned(), title.to_owned())),
        );
        let indexes: Vec<_> = okf_indexes(&concepts).into_iter().collect();
        let expected = [
            ("d/e/f/index.md", "# f\n\n- [G](g.md)\n"),
            ("d/e/index.md", "# e\n\n- [f/](f/index.md)\n"),
            ("d/index.md", "# d\n\n- [B](b%20c.md)\n- [e/](e/index.md)\n"),
            ("index.md", "---\nokf_version: \"0.2\"\n---\n# Documents\n\n- [A \\[x\\]](a.md)\n- [d/](d/index.md)\n"),
        ];
        let mut expected = expected.map(|(path, text)| (path.to_owned(), text.to_owned()));
        expected.sort();
        let mut found = indexes;
        found.sort();
        assert_eq!(found, expected);
        assert_eq!(okf_indexes(&BTreeMap::new()).len(), 1);
    }

    proptest! {
        #[test]
        fn a_concept_has_the_same_sections(front in prop::option::of("[a-c:{}\n -]{0,20}"), text in "(# |---|```|\n|a|\\PC){0,40}") {
            let content =
                front.map_or_else(|| text.trim_start().to_owned(), |front| format!("---\n{front}\n---\n{text}"));
            let concept = okf_concept(&info(&content), &content);
            prop_assert!(parsed(&concept).meta.contains_key("type"), "{concept}");
            // A block that cannot be read is a section by itself, and joins the text that follows it.
            let is_readable = !parsed(&content).warnings.iter().any(|warning| warning.code == "front-matter-unreadable");
            prop_assert!(!is_readable || texts(&concept) == texts(&content), "{concept}");
        }
    }
}
