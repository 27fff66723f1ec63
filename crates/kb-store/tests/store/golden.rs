//! A base of each format version, written once and opened by every version after it.
//!
//! With `KB_WRITE_GOLDEN` set the test of the newest version writes its base instead; that is done once, before the
//! version is released.
//!
//! **Invariant:** what is under `fixtures/bases` is never edited. A test here reads it without writing, then goes on
//! from it as from any other base.

use std::path::{Path, PathBuf};

use kb_core::Severity;
use kb_store::{Gc, KnowledgeBase, ListFilter, NewAgent, NewSkill, Search, Silent, StoreError, Target, Text};

use crate::support::{Base, id, kbid, options, pass, text};

const SHARED: &str = "## Licence\n\nfree as in air\n";
const SECRET: &str = "# Secret\n\nxyzzy plugh\n";
const GUIDE: &str = "---\ntitle: Field Guide\ntags: [ops, pumps]\n---\r\n# Pumps\r\n\r\nThe valve opens at six.\r\n\r\n~~~\n# no heading\n~~~\nTides\n=====\n\nhigh and low";
const IMAGE: &[u8] = b"\x89PNG\r\n\x1a\n not much of an image \xff\x00";

fn folder(version: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/bases").join(version)
}

fn copy_into(from: &Path, to: &Path) {
    for name in ["", "packs", "index"] {
        std::fs::create_dir_all(to.join(name)).expect("writable");
        for entry in std::fs::read_dir(from.join(name)).expect("the fixture is there") {
            let path = entry.expect("readable").path();
            let file = path.file_name().expect("a file has a name");
            if path.is_file() && file != "lock" {
                std::fs::copy(&path, to.join(name).join(file)).expect("writable");
            }
        }
    }
}

/// Two packs of which one was merged, a tombstone, segments with dead documents, files that wait to be deleted.
fn write(to: &Path) {
    let base = Base::new();
    base.learn("note", &format!("# Note\n\nold\n\n{SHARED}"));
    pass(60);
    base.learn("note", &format!("# Note\n\nnew\n\n{SHARED}"));
    let [name, description, body] = ["Release", "How to release", "Tag {{version}}, then push.\n"].map(str::to_owned);
    let version = kb_core::SkillArgument { name: "version".to_owned(), description: None, required: true };
    let skill = NewSkill { name, description, body, arguments: vec![version] };
    base.kb.skill_learn(&skill).expect("learned");
    let [name, description, persona] = ["Captain", "Steers", "You steer.\n"].map(str::to_owned);
    let agent = NewAgent { name, description, persona, skills: vec!["release".to_owned()] };
    base.kb.agent_create(&agent).expect("created");
    let source = Some("docs/guide.md".to_owned());
    let image = Text {
        content: IMAGE.to_vec(),
        media_type: Some("image/png".parse().expect("a media type")),
        title: Some("A pump".to_owned()),
        ..text("pump.png", "")
    };
    let guide = Text { source, tags: vec!["field".to_owned()], ..text("guide", GUIDE) };
    let mut texts = [guide, image, text("secret", SECRET)].into_iter();
    assert_eq!(base.kb.learn_batch(&mut texts, &mut Silent).expect("learned").added, 3);
    base.unlearn(Target::Document(id("secret")));
    if to.exists() {
        std::fs::remove_dir_all(to).expect("writable");
    }
    copy_into(&base.database(), to);
}

fn errors(kb: &KnowledgeBase) -> Vec<String> {
    let problems = kb.check(&mut Silent).expect("checked").problems;
    problems
        .into_iter()
        .filter(|p| p.severity == Severity::Error)
        .map(|p| format!("{}: {}", p.kind, p.detail))
        .collect()
}

/// Fails unless all of the base is there, and what was unlearned is not.
fn is_whole(kb: &KnowledgeBase) {
    assert_eq!(errors(kb), [""; 0]);
    let list = kb.list(&ListFilter::default()).expect("listed").documents;
    let list: Vec<_> = list.iter().map(|d| (d.docid.as_str(), d.title.as_str(), d.revision, d.sections)).collect();
    let expected = [
        ("agent-captain", "Captain", 1, 1),
        ("guide", "Field Guide", 1, 3),
        ("note", "Note", 2, 2),
        ("pump.png", "A pump", 1, 1),
        ("skill-release", "Release", 1, 1),
    ];
    assert_eq!(list, expected);
    let bytes = |docid: &str| kb.document_bytes(&id(docid)).expect("readable");
    assert_eq!(bytes("guide"), GUIDE.as_bytes());
    assert_eq!(bytes("note"), format!("# Note\n\nnew\n\n{SHARED}").as_bytes());
    assert_eq!(bytes("pump.png"), IMAGE);
    let guide = kb.describe_document(&id("guide")).expect("there");
    assert_eq!(guide.tags, ["ops", "pumps", "field"]);
    assert_eq!((guide.source.as_deref(), guide.created.as_str()), (Some("docs/guide.md"), "2030-03-17T17:47:40Z"));
    let history = kb.history(&id("note")).expect("there").revisions;
    let history: Vec<_> = history.iter().map(|r| (r.revision, r.updated.as_str())).collect();
    assert_eq!(history, [(2, "2030-03-17T17:47:40Z"), (1, "2030-03-17T17:46:40Z")]);
    assert!(kb.section_bytes(kbid("# Note\n\nold\n\n")).is_ok(), "a kept revision lists it");
    assert!(matches!(kb.section_bytes(kbid(SECRET)), Err(StoreError::SectionNotFound { .. })));
    let arguments = [("version".to_owned(), "2".to_owned())].into();
    assert_eq!(kb.skill_render("release", &arguments).expect("rendered").trim_end(), "Tag 2, then push.");
    assert_eq!(kb.agent_get("captain").expect("there").skills[0].name.as_deref(), Some("Release"));
    for (query, docid) in [
        ("valve", "guide"),
        ("\"high and low\"", "guide"),
        ("tag:ops", "guide"),
        ("licence", "note"),
        ("pump", "pump.png"),
    ] {
        let hits = kb.search(&Search::new(query)).expect("answered").hits;
        assert!(hits.iter().any(|hit| hit.docid.as_str() == docid), "{query}");
    }
    let hits = kb.search(&Search::new("+xyzzy")).expect("answered").hits;
    assert!(hits.is_empty(), "what was unlearned is found");
}

#[test]
fn version_1_opens() {
    let golden = folder("v1");
    if std::env::var_os("KB_WRITE_GOLDEN").is_some() {
        write(&golden);
    }
    let folder = tempfile::tempdir().expect("a folder for the test");
    copy_into(&golden, folder.path());
    is_whole(&KnowledgeBase::open_read_only(folder.path(), options()).expect("it opens"));
    let kb = KnowledgeBase::open(folder.path(), options()).expect("it opens");
    let index_state = || kb.status().expect("status").index.state;
    assert_eq!((kb.status().expect("status").format, index_state().as_str()), (1, "outdated"), "its analyser is older");
    kb.learn(&text("more", "# More\n")).expect("learned");
    assert_eq!(index_state(), "ok", "a commit makes the index anew");
    base_without(&kb, "more");
    kb.gc(&Gc::default(), &mut Silent).expect("collected");
    kb.rebuild(&mut Silent).expect("rebuilt");
    is_whole(&kb);
    let other = tempfile::tempdir().expect("a folder for the test");
    copy_into(&golden, other.path());
    std::fs::remove_file(other.path().join("head")).expect("it was there");
    is_whole(&KnowledgeBase::recover(other.path(), options()).expect("recovered"));
}

fn base_without(kb: &KnowledgeBase, docid: &str) {
    let request = kb_store::Unlearn { targets: vec![Target::Document(id(docid))], ..kb_store::Unlearn::default() };
    kb.unlearn(&request).expect("unlearned");
    is_whole(kb);
}
