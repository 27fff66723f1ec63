//! What kept revisions keep, and that nothing which was unlearned comes back through them.

use kb_core::SectionId;
use kb_store::{Gc, ImportOptions, Silent, StoreError, Target, Text, Unlearn};

use crate::documents::files_holding;
use crate::support::{Base, id, kbid, pass, text};

const SECRET: &str = "## Secret key\n\nhunter2 xyzzy\n\n";

fn is_readable(base: &Base, id: SectionId) -> bool {
    match base.kb.section_bytes(id) {
        Ok(_) => true,
        Err(StoreError::SectionNotFound { .. }) => false,
        Err(other) => panic!("{other:?}"),
    }
}

#[test]
fn ten_revisions_are_listed_and_gc_drops_the_others() {
    let base = Base::new();
    let source = |i: usize| format!("# A\n\nrevision {i}\n");
    for i in 1..=14 {
        pass(1);
        base.learn("a", &source(i));
    }
    let history = base.kb.history(&id("a")).expect("it is there");
    let numbers: Vec<u32> = history.revisions.iter().map(|revision| revision.revision).collect();
    assert_eq!(numbers, (5..=14).rev().collect::<Vec<_>>());
    let generations: Vec<u64> = history.revisions.iter().map(|revision| revision.generation).collect();
    assert_eq!(generations, (5..=14).rev().collect::<Vec<_>>());
    assert_eq!(history.revisions[9].kbids, [kbid(&source(5))]);

    let report = base.kb.gc(&Gc::default(), &mut Silent).expect("collected");
    assert_eq!((report.revisions_removed, report.sections_removed), (4, 4));
    assert!(!is_readable(&base, kbid(&source(4))) && is_readable(&base, kbid(&source(5))));
    let report = base.kb.gc(&Gc { history: Some(1) }, &mut Silent).expect("collected");
    assert_eq!((report.revisions_removed, report.sections_removed), (9, 9));
    assert_eq!(base.kb.history(&id("a")).expect("it is there").revisions.len(), 1);
    assert_eq!(base.document("a"), Some(source(14)));
    assert!(base.problems().is_empty());
    let report = base.kb.gc(&Gc::default(), &mut Silent).expect("collected");
    assert_eq!((report.revisions_removed, report.generation), (0, 16), "nothing to do makes no generation");
}

#[test]
fn a_text_that_was_unlearned_everywhere_does_not_come_back_when_another_document_had_it_meanwhile() {
    let base = Base::new();
    base.learn("a", &format!("# A\n\n{SECRET}"));
    base.learn("a", "# A\n\n");
    base.unlearn(Target::Section(kbid(SECRET)));
    base.learn("b", SECRET);
    assert!(is_readable(&base, kbid(SECRET)));
    let done = base.unlearn(Target::Document(id("b")));
    assert_eq!((done.sections, done.shared), (vec![kbid(SECRET)], vec![]), "the old revision of `a` does not keep it");
    assert!(!is_readable(&base, kbid(SECRET)));
}

#[test]
fn a_text_that_was_unlearned_from_one_document_after_the_other_is_gone() {
    let base = Base::new();
    base.learn("a", &format!("# A\n\n{SECRET}"));
    base.learn("b", SECRET);
    let done = base.unlearn(Target::Occurrence(kbid(SECRET), id("a")));
    assert_eq!((done.sections, done.shared), (vec![], vec![kbid(SECRET)]));
    let done = base.unlearn(Target::Document(id("b")));
    assert_eq!((done.sections, done.shared), (vec![kbid(SECRET)], vec![]));
    assert!(!is_readable(&base, kbid(SECRET)));
}

#[test]
fn gc_does_not_keep_a_text_for_a_revision_that_it_was_unlearned_from() {
    let base = Base::new();
    base.learn("a", &format!("# A\n\n{SECRET}"));
    base.learn("b", SECRET);
    base.unlearn(Target::Occurrence(kbid(SECRET), id("a")));
    base.learn("b", "# B\n");
    assert!(is_readable(&base, kbid(SECRET)), "a kept revision of `b` lists it");
    base.kb.gc(&Gc { history: Some(1) }, &mut Silent).expect("collected");
    assert!(!is_readable(&base, kbid(SECRET)));

    base.learn("b", SECRET);
    base.learn("b", "# B\n");
    pass(601);
    // With all revisions kept `a` still lists it, and still does not keep it.
    base.kb.gc(&Gc { history: Some(10) }, &mut Silent).expect("collected");
    assert!(is_readable(&base, kbid(SECRET)));
    let done = base.unlearn(Target::Document(id("b")));
    assert_eq!(
        done.sections,
        [kbid("# B\n"), kbid(SECRET)]
            .into_iter()
            .collect::<std::collections::BTreeSet<_>>()
            .into_iter()
            .collect::<Vec<_>>()
    );
}

#[test]
fn what_one_batch_learns_twice_and_unlearns_is_gone() {
    let base = Base::new();
    let lines = format!(
        "{}\n{}\n{}\n{}\n",
        serde_json::json!({"op": "learn", "docid": "a", "content": SECRET}),
        serde_json::json!({"op": "learn", "docid": "a", "content": "# A\n"}),
        serde_json::json!({"op": "learn", "docid": "b", "content": "# B\n"}),
        serde_json::json!({"op": "unlearn", "docid": "a"}),
    );
    base.kb.import(&mut lines.as_bytes(), &ImportOptions::default(), &mut |line| assert!(line.ok)).expect("imported");
    assert_eq!((base.document("a"), base.document("b").as_deref()), (None, Some("# B\n")));
    assert!(!is_readable(&base, kbid(SECRET)) && !is_readable(&base, kbid("# A\n")));
    assert!(base.kb.history(&id("a")).is_err());
    assert!(base.problems().is_empty());
}

#[test]
fn a_batch_that_unlearns_and_learns_again_begins_at_the_first_revision() {
    let base = Base::new();
    base.learn("a", "# Old\n");
    base.learn("a", &format!("# Older\n\n{SECRET}"));
    let lines = format!(
        "{}\n{}\n",
        serde_json::json!({"op": "unlearn", "docid": "a"}),
        serde_json::json!({"op": "learn", "docid": "a", "content": "# New\n"}),
    );
    base.kb.import(&mut lines.as_bytes(), &ImportOptions::default(), &mut |line| assert!(line.ok)).expect("imported");
    let history = base.kb.history(&id("a")).expect("it is there");
    assert_eq!(history.revisions.iter().map(|r| r.revision).collect::<Vec<_>>(), [1]);
    assert!(!is_readable(&base, kbid(SECRET)) && !is_readable(&base, kbid("# Old\n")));
    assert!(base.problems().is_empty());
}

#[test]
fn a_purge_reaches_old_revisions_of_other_documents() {
    let base = Base::new();
    base.learn("old", &format!("# Old\n\n{SECRET}"));
    base.learn("old", "# Old\n\nwithout\n");
    base.learn("now", &format!("# Now\n\n{SECRET}"));
    base.kb
        .unlearn(&Unlearn { targets: vec![Target::Section(kbid(SECRET))], purge: true, dry_run: false })
        .expect("purged");
    for word in ["hunter2", "xyzzy", "secret key"] {
        assert_eq!(files_holding(&base, word), 0, "{word}");
    }
    assert_eq!(base.kb.history(&id("old")).expect("it is there").revisions.len(), 1);
    assert_eq!(base.document("old").as_deref(), Some("# Old\n\nwithout\n"));
    assert!(base.problems().is_empty());
}

#[test]
fn unlearned_front_matter_takes_what_was_read_from_it_along() {
    let base = Base::new();
    let front =
        "---\ntitle: Plugh plan\ndescription: plugh of it\ntags: [plugh-tag]\nowner: plugh\naliases: [plughs]\n---\n";
    let given = Text { tags: vec!["given".to_owned()], ..text("a", &format!("{front}\n# Heading\n\nbody\n")) };
    let front = base.kb.learn(&given).expect("learned").documents[0].kbids[0];
    let done = base
        .kb
        .unlearn(&Unlearn { targets: vec![Target::Section(front)], purge: true, dry_run: false })
        .expect("purged");
    assert_eq!(done.edited, [id("a")]);
    let info = base.kb.describe_document(&id("a")).expect("it is there");
    assert_eq!((info.title.as_str(), info.description, info.tags), ("Heading", None, vec!["given".to_owned()]));
    assert!(info.aliases.is_empty() && info.meta.is_empty(), "{:?} {:?}", info.aliases, info.meta);
    assert_eq!(files_holding(&base, "plugh"), 0);
    assert_eq!(base.document("a").as_deref(), Some("# Heading\n\nbody\n"));
}

#[test]
fn a_target_that_names_nothing_is_an_error_and_the_others_are_left_alone() {
    let base = Base::new();
    base.kb.learn(&Text { tags: vec!["Ops".to_owned()], ..text("a", "# A\n") }).expect("learned");
    for wrong in [
        Target::Tag("op".to_owned()),
        Target::Source("docs".to_owned()),
        Target::Document(id("b")),
        Target::Occurrence(kbid("# A\n"), id("b")),
        Target::Occurrence(kbid("# B\n"), id("a")),
        Target::Section(kbid("# B\n")),
    ] {
        let request = Unlearn { targets: vec![Target::Document(id("a")), wrong.clone()], ..Unlearn::default() };
        let error = base.kb.unlearn(&request).expect_err("there is none");
        assert_eq!(error.code(), "not-found", "{wrong:?}");
        assert!(base.document("a").is_some(), "{wrong:?}");
    }
    assert_eq!(base.unlearn(Target::Tag("oPS".to_owned())).documents, [id("a")]);
    assert_eq!(base.kb.status().expect("status").generation, 2);
}

#[test]
fn what_is_left_of_a_document_keeps_its_lines_and_hangs_on_what_is_left_above() {
    let base = Base::new();
    base.learn("a", "# Top\n\n## Middle\n\n### Leaf\n\nx\n\n## Other\n\n### Twig\n\ny\n");
    let before = base.kb.describe_document(&id("a")).expect("there").sections;
    base.unlearn(Target::Occurrence(before[1].kbid, id("a")));
    let after = base.kb.describe_document(&id("a")).expect("there").sections;
    let seen: Vec<_> = after.iter().map(|s| (s.heading_path.join(" > "), s.line, s.position, s.parent)).collect();
    let (top, other) = (Some(before[0].kbid), Some(before[3].kbid));
    assert_eq!(
        seen,
        [
            ("Top".to_owned(), 1, 0, None),
            ("Top > Leaf".to_owned(), 5, 1, top),
            ("Top > Other".to_owned(), 9, 2, top),
            ("Top > Other > Twig".to_owned(), 11, 3, other),
        ]
    );
    base.unlearn(Target::Occurrence(before[0].kbid, id("a")));
    let info = base.kb.describe_document(&id("a")).expect("there");
    assert_eq!((info.title.as_str(), info.revision, info.edited), ("Leaf", 3, true), "the title went with its heading");
    assert_eq!(info.sections[0].parent, None);
}
