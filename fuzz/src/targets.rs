//! One function a target: takes any bytes, and panics where the code under test breaks a promise.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, UNIX_EPOCH};

use kb_core::{Agent, DocId, FrontMatter, FrontMatterBlock, MediaType, Mode, Skill, links, parse};
use kb_store::storage::Area;
use kb_store::{
    Gc, ImportOptions, KnowledgeBase, ListFilter, NewAgent, NewSkill, Options, Search, Silent, Target, Text, Unlearn,
};

use super::memory::Memory;

/// Splits a text of any of the four types: the sections in order are the text.
pub fn splitter(data: &[u8]) {
    let Some((kind, text)) = data.split_first() else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    let types = [MediaType::markdown(), MediaType::plain(), MediaType::html(), MediaType::toml()];
    let media_type = &types[usize::from(*kind) % types.len()];
    let parsed = parse(text, media_type);
    let joined: String = parsed.sections.iter().map(|piece| &text[piece.range.clone()]).collect();
    assert_eq!(joined, text);
    for (i, piece) in parsed.sections.iter().enumerate() {
        assert!(!piece.range.is_empty() && piece.parent.is_none_or(|parent| (parent as usize) < i));
        parsed.heading_path(i);
    }
    for link in links(text, media_type) {
        assert!(link.line > 0);
    }
}

/// Reads front matter, and texts that have to begin with it.
pub fn front_matter(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let FrontMatterBlock::Found { format, fields, end } = FrontMatterBlock::find(text) {
        assert!(fields.end <= end && text.is_char_boundary(end));
        if let Err(warning) = FrontMatter::read(text, format, fields) {
            assert!(!warning.message.is_empty());
        }
    }
    if let Ok(skill) = Skill::parse(text) {
        assert!(text.ends_with(skill.body()) && skill.text() == text);
        let given = skill.arguments().into_iter().map(|argument| (argument.name, "{{x}}".to_owned())).collect();
        skill.render(&given).expect("every argument is given");
        skill.lint();
    }
    if let Ok(agent) = Agent::parse(text) {
        assert!(text.ends_with(agent.persona()));
    }
}

/// Searches for any text in any mode: there is an answer, and what it marks lies within it.
pub fn query(data: &[u8]) {
    let Some((mode, query)) = data.split_first() else { return };
    let modes = [Mode::Auto, Mode::All, Mode::Any, Mode::Phrase, Mode::Prefix, Mode::Fuzzy];
    let request = Search {
        mode: modes[usize::from(*mode) % modes.len()],
        check_sources: false,
        ..Search::new(String::from_utf8_lossy(query))
    };
    let base = open(&template().copy());
    let answer = base.search(&request).expect("every text is a query");
    assert!(answer.incomplete.is_none() && answer.total >= answer.hits.len() as u64);
    for hit in &answer.hits {
        let characters = hit.snippet.chars().count() as u32;
        assert!(hit.highlights.iter().all(|[from, to]| from < to && *to <= characters));
        assert!((0.0..=1.0).contains(&hit.confidence) && hit.score.is_finite());
    }
}

/// Reads a base of which a pack is damaged: no wrong byte, and `check` says so.
pub fn pack(data: &[u8]) {
    let storage = template().copy();
    let is_damaged = storage.damage(Area::Packs, data);
    let Ok(base) = KnowledgeBase::open_on(Arc::new(storage.clone()), options()) else {
        assert!(is_damaged);
        return;
    };
    read_everything(&base);
    let report = base.check(&mut Silent).expect("damage is no error of the check");
    assert_eq!(report.ok, !is_damaged, "{:?}", report.problems);
    // Whatever can be done with it is done or refused, and what can still be read stays as it was.
    let _ = base.learn(&Text::markdown("# New\n"));
    let _ = base.gc(&Gc::default(), &mut Silent);
    let _ = base.rebuild(&mut Silent);
    read_everything(&base);
    let _ = KnowledgeBase::recover_on(Arc::new(storage), options());
}

/// Searches a base of which an index file is damaged: the same answer in another way, and `rebuild` heals it.
pub fn segment(data: &[u8]) {
    let whole = answers(&open(&template().copy()));
    let storage = template().copy();
    let is_damaged = storage.damage(Area::Index, data);
    let base = open(&storage);
    assert_eq!(answers(&base), whole, "a damaged index gives no wrong answer");
    let report = base.check(&mut Silent).expect("damage is no error of the check");
    assert_eq!(report.ok, !is_damaged, "{:?}", report.problems);
    base.rebuild(&mut Silent).expect("the packs are whole");
    let base = open(&storage);
    assert_eq!(answers(&base), whole);
    assert!(base.check(&mut Silent).expect("checked").ok);
}

/// Imports any lines: each that is not blank gets an answer, in order, and the base is whole after it.
pub fn jsonl(data: &[u8]) {
    // A line may name a file to read, and such a file may be a device.
    if data.windows(4).any(|window| window == b"path") {
        return;
    }
    let storage = Memory::default();
    let base = KnowledgeBase::create_on(Arc::new(storage), options()).expect("it is empty");
    let mut answered = 0;
    let mut last = 0;
    let mut on_line = |line: &kb_store::ImportLine| {
        assert!(line.line > last && line.ok == line.error.is_none());
        last = line.line;
        answered += 1;
    };
    let report = base.import(&mut &data[..], &ImportOptions::default(), &mut on_line).expect("lines fail, not imports");
    let lines = data.split(|&byte| byte == b'\n').filter(|line| !line.iter().all(u8::is_ascii_whitespace)).count();
    assert_eq!((answered, report.done + report.failed), (lines, lines as u64));
    let check = base.check(&mut Silent).expect("checked");
    let is_sound = |problem: &kb_core::Problem| {
        problem.severity != kb_core::Severity::Error || problem.detail.contains("refers to the skill")
    };
    assert!(check.problems.iter().all(is_sound), "{:?}", check.problems);
}

static SECONDS: AtomicU64 = AtomicU64::new(1_900_000_000);

fn options() -> Options {
    Options::new(|| UNIX_EPOCH + Duration::from_secs(SECONDS.load(Ordering::Relaxed)))
}

fn open(storage: &Memory) -> KnowledgeBase {
    KnowledgeBase::open_on(Arc::new(storage.clone()), options()).expect("its head is whole")
}

const DOCUMENTS: usize = 9;

fn docid(i: usize) -> DocId {
    format!("d{i}").parse().expect("a docid")
}

fn content(i: usize) -> String {
    let word = ["heron", "otter", "plover"][i % 3];
    let mut text = format!("---\ntitle: Paper {i}\ntags: [t{}]\n---\n\n# Of {word} {i}\n\n", i % 2);
    for part in 0..i * 3 {
        let part = format!("## Part {part}\n\nThe {word} of part {part}, and what it eats: fish-{part}.\n\n");
        text.push_str(&part);
    }
    text.push_str("## Licence\n\nFree for all, the same everywhere.\n");
    text
}

/// A base of some size, with revisions, tombstones, dead documents, a skill and an agent.
fn template() -> &'static Memory {
    static TEMPLATE: OnceLock<Memory> = OnceLock::new();
    TEMPLATE.get_or_init(|| {
        let storage = Memory::default();
        let base = KnowledgeBase::create_on(Arc::new(storage.clone()), options()).expect("it is empty");
        let learn = |i, content: String| {
            let text = Text { docid: Some(docid(i)), ..Text::markdown(content) };
            base.learn(&text).expect("learned");
        };
        for i in 0..DOCUMENTS {
            learn(i, content(i + 1));
            learn(i, content(i));
        }
        learn(DOCUMENTS, "# Gone\n".to_owned());
        let skill = NewSkill { name: "Sum".to_owned(), body: "Sum {{it}}.\n".to_owned(), ..NewSkill::default() };
        base.skill_learn(&skill).expect("learned");
        let agent = NewAgent { name: "Reader".to_owned(), skills: vec!["Sum".to_owned()], ..NewAgent::default() };
        base.agent_create(&agent).expect("created");
        let gone = Unlearn { targets: vec![Target::Document(docid(DOCUMENTS))], ..Unlearn::default() };
        base.unlearn(&gone).expect("unlearned");
        // Files that merges replaced would be damaged without anybody minding: they go once their grace is over.
        for i in 1.. {
            SECONDS.fetch_add(700, Ordering::Relaxed);
            learn(DOCUMENTS + i, "## Licence\n\nFree for all, the same everywhere.\n".to_owned());
            if base.status().expect("it is whole").retired == 0 {
                break;
            }
        }
        storage
    })
}

/// Reads all there is. What cannot be read is an error, and never other bytes.
fn read_everything(base: &KnowledgeBase) {
    let _ = base.list(&ListFilter::default());
    let _ = base.status();
    for i in 0..DOCUMENTS {
        if let Ok(bytes) = base.document_bytes(&docid(i)) {
            let text = String::from_utf8(bytes).expect("it was text");
            assert!(text == content(i) || text == content(i + 1), "a document of other bytes");
        }
        let _ = base.history(&docid(i));
        if let Ok(info) = base.describe_document(&docid(i)) {
            for section in info.sections {
                let _ = base.retrieve_section(section.kbid);
            }
        }
    }
    let _ = base.document_bytes(&docid(DOCUMENTS));
    let _ = (base.skill_list(), base.agent_list(), base.agent_get("Reader"));
    let _ = answers(base);
    let _ = base.export(&mut |_| Ok(()));
}

/// Which sections some queries find, in order.
fn answers(base: &KnowledgeBase) -> Vec<Vec<String>> {
    let queries = ["heron", "otter part", "\"what it eats\"", "licence", "fish-3", "tag:t1", "title:paper", "plovr"];
    let found = |query: &&str| {
        let request = Search { check_sources: false, ..Search::new(*query) };
        let Ok(answer) = base.search(&request) else { return Vec::new() };
        answer.hits.into_iter().map(|hit| format!("{} in {}", hit.kbid, hit.docid)).collect()
    };
    queries.iter().map(found).collect()
}
