//! Packs that are gone, emptied or cut: what they held is named, and the base goes on.
//!
//! **Invariant:** no document is lost without being named, and no loss keeps anybody from writing.

use std::path::PathBuf;

use kb_core::{DocId, Problem, Severity};
use kb_store::{Gc, KnowledgeBase, NewAgent, NewSkill, Silent, Text};

use crate::support::{Base, id, options, text};

const FIRST: &str = "# First\n\nThe valve opens.\n";
const SECOND: &str = "# Second\n\nThe pump stops.\n";

/// A base of two documents in a pack each, and the pack of the second.
fn two_packs() -> (Base, PathBuf) {
    let base = Base::new();
    let packs = || -> Vec<PathBuf> {
        let entries = std::fs::read_dir(base.database().join("packs")).expect("readable");
        entries.map(|entry| entry.expect("readable").path()).collect()
    };
    base.learn("first", FIRST);
    let before = packs();
    base.learn("second", SECOND);
    let new: Vec<PathBuf> = packs().into_iter().filter(|path| !before.contains(path)).collect();
    assert_eq!((before.len(), new.len()), (1, 1));
    (base, new[0].clone())
}

fn named(problems: &[Problem]) -> Vec<String> {
    let lost = problems.iter().filter(|p| p.kind == "lost-document" && p.severity == Severity::Error);
    lost.map(|p| p.docid.as_ref().expect("it names one").to_string()).collect()
}

/// Damages the second pack so that all of it is lost: `None` removes it.
fn hurt(pack: &PathBuf, len: Option<u64>) {
    let bytes = std::fs::read(pack).expect("readable");
    std::fs::remove_file(pack).expect("it was there");
    if let Some(len) = len {
        std::fs::write(pack, &bytes[..len as usize]).expect("writable");
    }
}

const HURT: [Option<u64>; 3] = [None, Some(0), Some(20)];

#[test]
fn documents_of_a_lost_pack_are_named_by_check_and_by_rebuild() {
    for len in HURT {
        let (base, pack) = two_packs();
        hurt(&pack, len);
        let kb = KnowledgeBase::open(base.database(), options()).expect("it opens");
        let report = kb.check(&mut Silent).expect("checked");
        assert!(!report.ok);
        assert_eq!(named(&report.problems), ["second"], "{len:?}");
        let denies = |p: &&Problem| p.detail.contains("nothing that it holds is lost");
        assert_eq!(report.problems.iter().find(denies), None, "{len:?}");
        let report = kb.rebuild(&mut Silent).expect("rebuilt");
        assert_eq!((report.documents, named(&report.problems)), (1, vec!["second".to_owned()]), "{len:?}");
    }
}

#[test]
fn a_base_that_lost_a_pack_is_written_again_after_a_rebuild() {
    let (base, pack) = two_packs();
    hurt(&pack, None);
    let kb = KnowledgeBase::open(base.database(), options()).expect("it opens");
    kb.rebuild(&mut Silent).expect("rebuilt");
    assert_eq!(kb.check(&mut Silent).expect("checked").problems, []);
    kb.learn(&text("third", "# Third\n")).expect("learned");
    kb.learn(&text("second", SECOND)).expect("learned");
    assert_eq!(kb.document_bytes(&id("second")).expect("it is back"), SECOND.as_bytes());
    assert_eq!(kb.status().expect("status").documents, 3);
    assert_eq!(kb.check(&mut Silent).expect("checked").problems, []);
}

#[test]
fn what_is_learned_again_is_there_before_a_rebuild() {
    for len in HURT {
        let (base, pack) = two_packs();
        hurt(&pack, len);
        let kb = KnowledgeBase::open(base.database(), options()).expect("it opens");
        let again = Text { again: true, ..text("second", SECOND) };
        kb.learn(&again).unwrap_or_else(|error| panic!("{len:?}: {error}"));
        assert_eq!(kb.document_bytes(&id("second")).expect("it is back"), SECOND.as_bytes(), "{len:?}");
        assert_eq!(named(&kb.check(&mut Silent).expect("checked").problems), [""; 0], "{len:?}");
    }
}

/// Damages the pack, without touching what others have mapped.
fn change(pack: &PathBuf, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = std::fs::read(pack).expect("readable");
    change(&mut bytes);
    std::fs::remove_file(pack).expect("it was there");
    std::fs::write(pack, bytes).expect("writable");
}

fn is_ok(kb: &KnowledgeBase) -> bool {
    kb.check(&mut Silent).expect("checked").ok
}

#[test]
fn a_collection_replaces_a_damaged_pack_of_which_all_can_be_read() {
    let changes: [fn(&mut Vec<u8>); 3] = [
        |bytes| bytes.extend_from_slice(b"appended"),
        |bytes| *bytes.last_mut().expect("it has some") ^= 1,
        |bytes| *bytes.get_mut(20).expect("it has some") ^= 4,
    ];
    for (i, damage) in changes.into_iter().enumerate() {
        let (base, pack) = two_packs();
        change(&pack, damage);
        let kb = KnowledgeBase::open(base.database(), options()).expect("it opens");
        assert!(!is_ok(&kb), "{i}");
        kb.gc(&Gc::default(), &mut Silent).expect("collected");
        assert_eq!(kb.check(&mut Silent).expect("checked").problems, [], "{i}");
        for (docid, content) in [("first", FIRST), ("second", SECOND)] {
            assert_eq!(kb.document_bytes(&id(docid)).expect("readable"), content.as_bytes(), "{i}");
            assert_eq!(kb.history(&id(docid)).expect("it has one").revisions.len(), 1, "{i}");
        }
    }
}

#[test]
fn a_collection_leaves_a_damaged_pack_until_its_texts_are_learned_again() {
    for len in [0, 20] {
        let (base, pack) = two_packs();
        hurt(&pack, Some(len));
        let kb = KnowledgeBase::open(base.database(), options()).expect("it opens");
        kb.gc(&Gc::default(), &mut Silent).expect("collected");
        assert_eq!(named(&kb.check(&mut Silent).expect("checked").problems), ["second"], "{len}");
        assert!(pack.exists(), "{len}");
        kb.learn(&Text { again: true, ..text("second", SECOND) }).expect("learned");
        assert!(!is_ok(&kb), "{len}");
        kb.gc(&Gc::default(), &mut Silent).expect("collected");
        assert_eq!(kb.check(&mut Silent).expect("checked").problems, [], "{len}");
        assert_eq!(kb.document_bytes(&id("second")).expect("readable"), SECOND.as_bytes(), "{len}");
    }
}

#[test]
fn a_collection_keeps_a_pack_whose_wanted_records_cannot_be_read_until_they_are_given_up() {
    let (base, pack) = two_packs();
    // The stream of a block, in more places than can be turned back.
    change(&pack, |bytes| bytes[18..26].iter_mut().for_each(|byte| *byte = !*byte));
    let kb = KnowledgeBase::open(base.database(), options()).expect("it opens");
    let found = kb.check(&mut Silent).expect("checked").problems;
    assert!(found.iter().any(|problem| problem.detail.ends_with("is lost")), "{found:?}");
    kb.gc(&Gc::default(), &mut Silent).expect("collected");
    assert!(pack.exists() && !is_ok(&kb));
    kb.learn(&Text { again: true, ..text("second", SECOND) }).expect("learned");
    kb.gc(&Gc { history: Some(1) }, &mut Silent).expect("collected");
    assert_eq!(kb.check(&mut Silent).expect("checked").problems, []);
    assert_eq!(kb.document_bytes(&id("second")).expect("readable"), SECOND.as_bytes());
}

#[test]
fn a_lost_revision_and_a_lost_unlearning_are_named() {
    let base = Base::new();
    base.learn("edited", FIRST);
    base.learn("edited", SECOND);
    base.learn("secret", "# Secret\n");
    base.kb.gc(&Gc::default(), &mut Silent).expect("collected");
    let packs = || -> Vec<PathBuf> {
        let entries = std::fs::read_dir(base.database().join("packs")).expect("readable");
        entries.map(|entry| entry.expect("readable").path()).collect()
    };
    let before = packs();
    base.learn("edited", "# Third\n");
    base.unlearn(kb_store::Target::Document(id("secret")));
    for new in packs().iter().filter(|path| !before.contains(path)) {
        hurt(new, None);
    }
    let kb = KnowledgeBase::open(base.database(), options()).expect("it opens");
    let expected = [("lost-revision".to_owned(), id("edited")), ("returned-document".to_owned(), id("secret"))];
    let found = |problems: Vec<Problem>| -> Vec<(String, DocId)> {
        problems.into_iter().filter_map(|problem| Some((problem.kind, problem.docid?))).collect()
    };
    assert_eq!(found(kb.check(&mut Silent).expect("checked").problems), expected);
    assert_eq!(found(kb.rebuild(&mut Silent).expect("rebuilt").problems), expected);
    assert_eq!(kb.check(&mut Silent).expect("checked").problems, []);
}

#[test]
fn a_sound_pack_in_the_place_of_another_is_damage() {
    let (base, pack) = two_packs();
    let packs = std::fs::read_dir(base.database().join("packs")).expect("readable");
    let other = packs.map(|entry| entry.expect("readable").path()).find(|path| *path != pack).expect("there are two");
    std::fs::remove_file(&pack).expect("it was there");
    std::fs::copy(other, &pack).expect("writable");
    let kb = KnowledgeBase::open(base.database(), options()).expect("it opens");
    for _ in 0..2 {
        let problems = kb.check(&mut Silent).expect("checked").problems;
        assert_eq!(named(&problems), ["second"]);
        let damage = problems.iter().find(|problem| problem.file.is_some()).expect("the file is named");
        assert!(pack.ends_with(damage.file.as_ref().expect("it was looked for")), "{damage:?}");
        assert!(!damage.detail.contains("nothing that it holds is lost"), "{damage:?}");
        kb.gc(&Gc::default(), &mut Silent).expect("collected");
    }
    kb.learn(&Text { again: true, ..text("second", SECOND) }).expect("learned");
    kb.gc(&Gc::default(), &mut Silent).expect("collected");
    assert_eq!(kb.check(&mut Silent).expect("checked").problems, []);
    assert_eq!(kb.document_bytes(&id("second")).expect("readable"), SECOND.as_bytes());
}

/// Errors and warnings of `doctor`, as topic and detail.
fn ailments(base: &Base) -> Vec<(String, String)> {
    let report = KnowledgeBase::doctor(base.database(), options()).expect("it looks");
    let ill = report.findings.into_iter().filter(|finding| finding.level != "ok");
    ill.map(|finding| (finding.topic, finding.detail)).collect()
}

#[test]
fn the_doctor_sees_a_damaged_page_of_the_index_and_a_reference_that_leads_nowhere() {
    let base = Base::new();
    let [name, description] = ["Release", "How to"].map(str::to_owned);
    let skill = NewSkill { name, description, body: "Push.\n".to_owned(), ..NewSkill::default() };
    base.kb.skill_learn(&skill).expect("learned");
    let [name, persona] = ["Captain", "You steer.\n"].map(str::to_owned);
    let agent = NewAgent { name, persona, skills: vec!["release".to_owned()], ..NewAgent::default() };
    base.kb.agent_create(&agent).expect("created");
    assert_eq!(ailments(&base), []);
    base.kb.skill_delete("release").expect("deleted");
    let detail = "`agent-captain` refers to `skill-release`, which is not there";
    assert_eq!(ailments(&base), [("agents".to_owned(), detail.to_owned())]);

    let base = Base::new();
    base.learn("first", FIRST);
    let index = std::fs::read_dir(base.database().join("index")).expect("readable");
    let file = index.map(|entry| entry.expect("readable").path()).next().expect("there is one");
    change(&file, |bytes| {
        let middle = bytes.len() / 3;
        bytes[middle] ^= 1;
    });
    let found = ailments(&base);
    assert!(found.len() == 1 && found[0].0 == "index" && found[0].1.contains("is damaged at byte"), "{found:?}");
}
