//! Learning, reading, unlearning.

use kb_core::{Outcome, SectionId};
use kb_store::{Gc, KnowledgeBase, LearnPaths, Silent, StoreError, Target, Text, Unlearn};

use crate::support::{Base, id, kbid, options, pass, text};

#[test]
fn what_is_learned_comes_back_byte_for_byte() {
    let base = Base::new();
    let source = "\u{feff}---\r\ntitle: Pump\r\n---\r\n\r\n# One  \r\n\r\ntext\0\r\n\r\n~~~\n# no\n~~~\nTwo\n===\nend";
    let report = base.learn("pump", source);
    assert_eq!((report.added, report.generation), (1, 1));
    assert_eq!(base.document("pump").as_deref(), Some(source));
    let mut joined = Vec::new();
    for kbid in &report.documents[0].kbids {
        joined.extend(base.kb.section_bytes(*kbid).expect("it is there"));
    }
    assert_eq!(joined, source.as_bytes());
    assert_eq!(base.kb.retrieve_document(&id("pump")).expect("it is there").title, "Pump");
    assert!(base.problems().is_empty());
}

#[test]
fn equal_bytes_make_no_revision_and_others_make_the_next() {
    let base = Base::new();
    base.learn("a", "# A\n\nfirst\n");
    let same = base.learn("a", "# A\n\nfirst\n");
    assert_eq!((same.unchanged, same.generation), (1, 1));
    pass(60);
    assert_eq!(base.learn("a", "# A\n\nsecond\n").documents[0].outcome, Outcome::Updated);
    let history = base.kb.history(&id("a")).expect("it is there");
    assert_eq!(history.revisions.iter().map(|r| (r.revision, r.current)).collect::<Vec<_>>(), [(2, true), (1, false)]);
    let old = kbid("# A\n\nfirst\n");
    assert_eq!(base.kb.section_bytes(old).expect("a kept revision lists it"), b"# A\n\nfirst\n");
    assert!(base.kb.retrieve_section(old).expect("readable").docids.is_empty());
}

#[test]
fn a_text_without_a_name_is_one_document_however_often_it_is_learned() {
    let base = Base::new();
    let first = base.kb.learn(&Text::markdown("# Tides\n\nhigh\n")).expect("learned");
    let again = base.kb.learn(&Text::markdown("# Tides\n\nhigh\n")).expect("learned");
    assert_eq!(first.documents[0].docid, again.documents[0].docid);
    assert_eq!(again.unchanged, 1);
    let other = base.kb.learn(&Text::markdown("# Tides\n\nlow\n")).expect("learned");
    assert_ne!(first.documents[0].docid, other.documents[0].docid);
}

#[test]
fn two_documents_share_a_section_and_unlearning_one_leaves_the_other_whole() {
    let base = Base::new();
    let shared = "## Licence\n\nfree\n";
    base.learn("a", &format!("# A\n\nalpha\n\n{shared}"));
    base.learn("b", &format!("# B\n\nbeta\n\n{shared}"));
    let done = base.unlearn(Target::Document(id("a")));
    assert_eq!((done.sections.len(), done.shared.clone()), (1, vec![kbid(shared)]));
    assert_eq!(base.document("a"), None);
    assert_eq!(base.document("b"), Some(format!("# B\n\nbeta\n\n{shared}")));
    assert!(matches!(base.kb.section_bytes(kbid("# A\n\nalpha\n\n")), Err(StoreError::SectionNotFound { .. })));
    assert!(base.problems().is_empty());
    let again = base.learn("a", &format!("# A\n\nalpha\n\n{shared}"));
    assert_eq!((again.added, base.document("a").is_some()), (1, true));
}

#[test]
fn a_section_that_a_kept_revision_of_another_document_lists_stays() {
    let base = Base::new();
    base.learn("a", "# Same\n");
    base.learn("b", "# Same\n");
    base.learn("b", "# Other\n");
    let done = base.unlearn(Target::Document(id("a")));
    assert_eq!(done.shared, [kbid("# Same\n")]);
    assert!(base.kb.section_bytes(kbid("# Same\n")).is_ok());
}

#[test]
fn a_section_is_taken_out_of_every_document_until_its_source_changes() {
    let base = Base::new();
    let secret = "## Key\n\nhunter2\n\n";
    let source = format!("# A\n\nalpha\n\n{secret}## Rest\n\nx\n");
    base.learn("a", &source);
    base.learn("b", secret);
    let done = base.unlearn(Target::Section(kbid(secret)));
    assert_eq!((done.edited, done.documents), (vec![id("a"), id("b")], vec![]));
    assert_eq!(base.document("a").as_deref(), Some("# A\n\nalpha\n\n## Rest\n\nx\n"));
    assert!(base.kb.section_bytes(kbid(secret)).is_err());
    assert_eq!(base.learn("a", &source).unchanged, 1, "the same source leaves it taken out");
    let again = Text { again: true, ..text("a", &source) };
    assert_eq!(base.kb.learn(&again).expect("learned").updated, 1);
    assert_eq!(base.document("a"), Some(source));
    let twice = base.kb.unlearn(&Unlearn { targets: vec![Target::Section(kbid("# no"))], ..Unlearn::default() });
    assert!(matches!(twice, Err(StoreError::SectionNotFound { .. })));
}

#[test]
fn what_was_unlearned_leaves_the_disk_after_gc_and_the_grace() {
    let base = Base::new();
    base.learn("keep", "# Keep\n\nthis\n");
    let secret = "# Secret\n\nxyzzy plugh\n";
    base.learn("a", secret);
    base.unlearn(Target::Document(id("a")));
    let report = base.kb.gc(&Gc::default(), &mut Silent).expect("collected");
    assert!(report.sections_removed == 1 && report.files_waiting > 0, "{report:?}");
    pass(601);
    let report = base.kb.gc(&Gc::default(), &mut Silent).expect("collected");
    assert_eq!(report.files_waiting, 0);
    assert_eq!(packs_holding(&base, secret), 0);
    assert_eq!(base.document("keep").as_deref(), Some("# Keep\n\nthis\n"));
    assert!(base.problems().is_empty());
}

#[test]
fn a_purge_leaves_nothing_on_the_disk() {
    let base = Base::new();
    base.learn("keep", "# Keep\n\nthis\n");
    let secret = "## Secret key\n\nxyzzy plugh\n";
    base.learn("a", &format!("# A\n\n{secret}"));
    base.learn("a", &format!("# A\n\nmore\n\n{secret}"));
    assert!(packs_holding(&base, secret) > 0);
    let done = base
        .kb
        .unlearn(&Unlearn { targets: vec![Target::Section(kbid(secret))], purge: true, dry_run: false })
        .expect("purged");
    assert!(done.purged);
    assert_eq!(packs_holding(&base, secret), 0);
    for word in ["xyzzy", "plugh", "Secret key"] {
        assert_eq!(files_holding(&base, word), 0, "{word}");
    }
    assert_eq!(base.document("a").as_deref(), Some("# A\n\nmore\n\n"));
    assert!(base.problems().is_empty());
}

/// How many pack files hold this section, unpacked.
fn packs_holding(base: &Base, content: &str) -> usize {
    let needle = content.as_bytes();
    files(base).filter(|bytes| unpacked(bytes).windows(needle.len()).any(|window| window == needle)).count()
}

pub(crate) fn files_holding(base: &Base, word: &str) -> usize {
    let holds = |bytes: &[u8]| {
        let lower = bytes.to_ascii_lowercase();
        lower.windows(word.len()).any(|window| window == word.to_ascii_lowercase().as_bytes())
    };
    files(base).filter(|bytes| holds(bytes) || holds(&unpacked(bytes))).count()
}

fn files(base: &Base) -> impl Iterator<Item = Vec<u8>> {
    let mut paths = vec![base.database().join("head")];
    for folder in ["packs", "index"] {
        let entries = std::fs::read_dir(base.database().join(folder)).expect("it is there");
        paths.extend(entries.map(|entry| entry.expect("readable").path()));
    }
    paths.into_iter().map(|path| std::fs::read(path).expect("readable"))
}

/// The content of every zstd frame in these bytes.
fn unpacked(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for at in (0..bytes.len()).filter(|&at| bytes[at..].starts_with(&[0x28, 0xb5, 0x2f, 0xfd])) {
        let mut decoder = zstd::stream::read::Decoder::new(&bytes[at..]).expect("a decoder").single_frame();
        let _ = std::io::copy(&mut decoder, &mut out);
    }
    out
}

#[test]
fn content_joins_what_it_is_asked_for_in_that_order() {
    let base = Base::new();
    base.learn("a", "# A\n\nalpha");
    base.learn("b", "# B\n\nbeta\n");
    let section = kbid("# B\n\nbeta\n").to_string();
    let joined = base.kb.content(&[section.clone(), "a".to_owned(), "b".to_owned()]).expect("all are there");
    assert_eq!(joined.content, "# B\n\nbeta\n\n# A\n\nalpha\n\n# B\n\nbeta\n");
    assert_eq!(base.kb.content(&["a".to_owned()]).expect("there").content, "# A\n\nalpha");
    let missing = base.kb.content(&["nothing".to_owned()]);
    assert!(matches!(missing, Err(StoreError::DocumentNotFound { .. })));
}

#[test]
fn a_destructive_call_never_guesses() {
    let base = Base::new();
    base.learn("plan-alpha", "# Plan Alpha\n");
    base.learn("plan-beta", "# Plan Beta\n");
    let request = Unlearn { targets: vec![Target::Document(id("plan-gamma"))], ..Unlearn::default() };
    match base.kb.unlearn(&request) {
        Err(StoreError::DocumentNotFound { near, .. }) => assert_eq!(near, [id("plan-beta"), id("plan-alpha")]),
        other => panic!("{other:?}"),
    }
    assert!(base.document("plan-alpha").is_some() && base.document("plan-beta").is_some());
}

#[test]
fn prefixes_find_the_sections_that_begin_so() {
    let base = Base::new();
    base.learn("a", "# A\n");
    let full = kbid("# A\n").to_string();
    assert_eq!(base.kb.sections_by_prefix(&full[..4], 10).expect("four are enough"), [kbid("# A\n")]);
    assert_eq!(base.kb.sections_by_prefix(&full, 10).expect("all are too"), [kbid("# A\n")]);
    assert!(base.kb.sections_by_prefix(&full[..3], 10).is_err());
    assert!(base.kb.sections_by_prefix("UPPER", 10).is_err());
    let other = SectionId::from_bytes([0; 16]).to_string();
    assert!(base.kb.sections_by_prefix(&other[..8], 10).expect("well formed").is_empty());
}

#[test]
fn a_folder_is_learned_and_learned_again() {
    let base = Base::new();
    base.write("docs/guide.md", "# Guide\n\none\n");
    base.write("docs/sub/Deep Note.md", "deep\n");
    base.write("docs/skip.md", "no\n");
    base.write("docs/.kbignore", "skip.md\n");
    base.write("docs/bad.md", "x");
    std::fs::write(base.folder().join("docs/bad.md"), b"\xff\xfe").expect("writable");
    let docs = [base.folder().join("docs")];
    let report = base.kb.learn_paths(&docs, &LearnPaths::default(), &mut Silent).expect("learned");
    assert_eq!((report.added, report.failed), (2, 1), "{report:?}");
    let names: Vec<_> = report.documents.iter().map(|d| d.docid.as_ref().map(ToString::to_string)).collect();
    assert_eq!(names, [None, Some("guide".to_owned()), Some("sub/deep-note".to_owned())]);
    assert_eq!(report.documents[1].source.as_deref(), Some("docs/guide.md"));
    let report = base.kb.learn_paths(&docs, &LearnPaths::default(), &mut Silent).expect("learned");
    assert_eq!((report.unchanged, report.failed, report.generation), (2, 1, 1));

    std::fs::remove_file(base.folder().join("docs/guide.md")).expect("it was there");
    let prune = LearnPaths { prune: true, ..LearnPaths::default() };
    let report = base.kb.learn_paths(&docs, &prune, &mut Silent).expect("learned");
    assert_eq!((report.removed, report.unchanged), (1, 1));
    assert_eq!(base.document("guide"), None);
    std::fs::remove_file(base.folder().join("docs/sub/Deep Note.md")).expect("it was there");
    let refused = base.kb.learn_paths(&docs, &prune, &mut Silent);
    assert!(matches!(refused, Err(StoreError::PruneTooMuch { gone: 1, known: 1, .. })), "{refused:?}");
    assert!(base.document("sub/deep-note").is_some());
}

#[test]
fn names_that_collide_get_a_number_and_keep_it() {
    let base = Base::new();
    base.write("one/a.md", "# From one\n");
    base.write("two/a.md", "# From two\n");
    for _ in 0..2 {
        for folder in ["one", "two"] {
            let paths = [base.folder().join(folder)];
            base.kb.learn_paths(&paths, &LearnPaths::default(), &mut Silent).expect("learned");
        }
    }
    assert_eq!(base.document("a").as_deref(), Some("# From one\n"));
    assert_eq!(base.document("a-2").as_deref(), Some("# From two\n"));
    assert_eq!(base.kb.status().expect("status").documents, 2);
}

#[test]
fn a_base_is_opened_as_it_was_left() {
    let base = Base::new();
    base.learn("a", "# A\n");
    let other = KnowledgeBase::open_read_only(base.database(), options()).expect("it is there");
    assert_eq!(other.document_bytes(&id("a")).expect("it is there"), b"# A\n");
    base.learn("a", "# A2\n");
    assert_eq!(other.document_bytes(&id("a")).expect("the next call sees it"), b"# A2\n");
    assert!(matches!(other.learn(&text("b", "x")), Err(StoreError::ReadOnly)));
}

#[test]
fn revisions_beyond_those_kept_go_with_gc_and_kb_toml_says_how_many_are() {
    let base = Base::new();
    for n in 0..13 {
        base.learn("a", &format!("# A\n\nnumber {n}\n"));
    }
    assert_eq!(base.kb.history(&id("a")).expect("there").revisions.len(), 10);
    std::fs::write(base.database().join("kb.toml"), "history = 3\n").expect("writable");
    assert_eq!(base.kb.history(&id("a")).expect("there").revisions.len(), 3);
    let report = base.kb.gc(&Gc::default(), &mut Silent).expect("collected");
    assert_eq!((report.revisions_removed, report.sections_removed), (10, 10));
    assert!(base.kb.section_bytes(kbid("# A\n\nnumber 9\n")).is_err());
    assert!(base.kb.section_bytes(kbid("# A\n\nnumber 10\n")).is_ok());
    std::fs::write(base.database().join("kb.toml"), "histroy = 3\n").expect("writable");
    assert!(matches!(base.kb.history(&id("a")), Err(StoreError::Invalid { field: "kb.toml", .. })));
    assert!(base.problems().is_empty());
}
