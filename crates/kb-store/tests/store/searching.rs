//! Searching through the store: places, snippets, filters, staleness, a missing index.

use kb_core::{Mode, Stage, Verdict};
use kb_store::{KnowledgeBase, LearnPaths, Search, Silent, StoreError, Target, Text};

use crate::support::{Base, id, options, pass, text};

fn guide() -> Base {
    let base = Base::new();
    base.learn("pumps", "---\ntags: [Ops, ops/db]\ndate: 2031-03-01T00:30+02:00\n---\n# Pumps\n\n## Valves\n\nThe intake valve opens at six.\n");
    base.learn("tides", "# Tides\n\nHigh water comes at noon; the valve is shut then.\n");
    base
}

#[test]
fn a_hit_says_where_it_stands() {
    let base = guide();
    let answer = base.kb.search(&Search::new("intake valve")).expect("a query");
    let hit = &answer.hits[0];
    assert_eq!((hit.docid.as_str(), hit.title.as_str(), hit.line, hit.level), ("pumps", "Pumps", 9, 2));
    assert_eq!(hit.heading_path, ["Pumps", "Valves"]);
    assert_eq!(hit.snippet, "The intake valve opens at six.");
    assert_eq!(hit.highlights, [[4, 10], [11, 16]]);
    assert_eq!(hit.matched_terms, ["intake", "valve"]);
    assert_eq!((answer.stage, answer.verdict, answer.total_is_exact), (Stage::All, Verdict::Answered, true));
    assert_eq!(base.kb.section_bytes(hit.parent.expect("Pumps is above")).expect("there"), b"# Pumps\n\n");
}

#[test]
fn a_word_that_is_not_there_is_dropped_and_one_mistyped_is_read_right() {
    let base = guide();
    let answer = base.kb.search(&Search::new("intake zeppelin")).expect("a query");
    assert_eq!((answer.dropped, answer.hits.len()), (vec!["zeppelin".to_owned()], 1));
    let answer = base.kb.search(&Search::new("vavles")).expect("a query");
    assert_eq!(answer.corrected[0].to, ["valve"], "a word, not its stem");
    assert_eq!(answer.hits[0].docid, id("pumps"));
    let answer = base.kb.search(&Search::new("xqzzyv")).expect("a query");
    assert_eq!((answer.verdict, answer.hits.len(), answer.total), (Verdict::Unanswered, 0, 0));
}

#[test]
fn filters_hold_and_wrong_ones_are_named() {
    let base = guide();
    let found = |change: &dyn Fn(&mut Search)| {
        let mut search = Search::new("valve");
        change(&mut search);
        base.kb.search(&search).map(|answer| answer.hits.iter().map(|h| h.docid.to_string()).collect::<Vec<_>>())
    };
    let only = |docid: &str| vec![docid.to_owned()];
    assert_eq!(found(&|s| s.tags = vec!["OPS".to_owned()]).expect("fine"), only("pumps"));
    assert_eq!(found(&|s| s.tags = vec!["ops/*".to_owned()]).expect("fine"), only("pumps"));
    assert_eq!(found(&|s| s.docids = vec!["ti*".to_owned()]).expect("fine"), only("tides"));
    assert_eq!(found(&|s| s.types = vec!["markdown".to_owned()]).expect("fine").len(), 2);
    assert!(found(&|s| s.types = vec!["skill".to_owned()]).expect("fine").is_empty());
    assert_eq!(found(&|s| s.since = Some("2031-03-01".to_owned())).expect("fine"), only("pumps"));
    assert!(found(&|s| s.until = Some("2019".to_owned())).expect("fine").is_empty());
    assert!(matches!(
        found(&|s| s.types = vec!["nonsense".to_owned()]),
        Err(StoreError::Invalid { field: "type", .. })
    ));
    assert!(matches!(found(&|s| s.since = Some("soon".to_owned())), Err(StoreError::Invalid { field: "since", .. })));
    assert!(matches!(found(&|s| s.limit = 0), Err(StoreError::Invalid { field: "limit", .. })));
    assert!(matches!(found(&|s| s.cursor = Some("7.x".to_owned())), Err(StoreError::Invalid { .. })));
}

#[test]
fn pages_follow_each_other_within_a_generation_only() {
    let base = Base::new();
    for n in 0..25 {
        base.learn(&format!("note-{n:02}"), &format!("# Note {n}\n\nquay number {n}\n"));
    }
    let mut search = Search::new("quay");
    let mut seen = Vec::new();
    loop {
        let answer = base.kb.search(&search).expect("a query");
        assert_eq!(answer.total, 25);
        seen.extend(answer.hits.iter().map(|hit| hit.docid.to_string()));
        match answer.cursor {
            Some(cursor) => search.cursor = Some(cursor),
            None => break,
        }
    }
    let mut all = seen.clone();
    all.sort();
    all.dedup();
    assert_eq!((seen.len(), all.len()), (25, 25));
    let first = base.kb.search(&Search::new("quay")).expect("a query").cursor.expect("there are more");
    let refused = |query: &str, cursor: &str| {
        base.kb.search(&Search { cursor: Some(cursor.to_owned()), ..Search::new(query) }).is_err()
    };
    assert!(!refused("quay", &first));
    assert!(refused("number", &first), "a cursor goes on with its own query");
    base.learn("one-more", "# More\n\nquay\n");
    assert!(refused("quay", &first), "the base has changed since");
}

#[test]
fn one_section_in_many_documents_is_one_hit() {
    let base = Base::new();
    for docid in ["a", "b", "c"] {
        base.learn(docid, "# Licence\n\nfree as in kingfisher\n");
    }
    let answer = base.kb.search(&Search::new("kingfisher")).expect("a query");
    assert_eq!(answer.hits.len(), 1);
    assert_eq!((answer.hits[0].docid.clone(), answer.hits[0].also_in.clone()), (id("a"), vec![id("b"), id("c")]));
}

#[test]
fn a_source_that_changed_or_went_is_said_to_have() {
    let base = Base::new();
    let path = base.write("docs/a.md", "# A\n\ncormorant\n");
    base.kb.learn_paths(&[base.folder().join("docs")], &LearnPaths::default(), &mut Silent).expect("learned");
    let stale = || base.kb.search(&Search::new("cormorant")).expect("a query").hits[0].stale.clone();
    assert_eq!(stale(), None);
    base.write("docs/a.md", "# A\n\ncormoranx\n");
    assert_eq!(stale().as_deref(), Some("changed"));
    std::fs::remove_file(path).expect("it was there");
    assert_eq!(stale().as_deref(), Some("gone"));
}

#[test]
fn without_an_index_the_text_is_read_and_a_rebuild_brings_it_back() {
    let base = guide();
    let before = base.kb.search(&Search::new("valve")).expect("a query");
    std::fs::remove_dir_all(base.database().join("index")).expect("it was there");
    let kb = KnowledgeBase::open(base.database(), options()).expect("the packs are whole");
    let scanned = kb.search(&Search::new("valve")).expect("a query");
    assert!(scanned.incomplete.is_some());
    assert_eq!(scanned.hits, before.hits);
    assert!(!kb.check(&mut Silent).expect("checked").ok);
    kb.rebuild(&mut Silent).expect("rebuilt");
    let after = kb.search(&Search::new("valve")).expect("a query");
    assert_eq!((after.hits, after.incomplete), (before.hits, None));
    assert!(base.problems().is_empty());
}

#[test]
fn who_serves_a_base_makes_its_index_anew_once_and_accepts_no_loss() {
    let base = guide();
    std::fs::remove_dir_all(base.database().join("index")).expect("it was there");
    let kb = KnowledgeBase::open(base.database(), options()).expect("the packs are whole");
    let few = Search { scan_bytes: 10, ..Search::new("valve") };
    let scanned = kb.search(&few).expect("a query");
    assert!(scanned.incomplete.expect("it is").contains("only"));
    assert!(!kb.reindex(scanned.generation + 1, &mut Silent).expect("another generation"));
    assert!(kb.reindex(scanned.generation, &mut Silent).expect("made anew"));
    assert!(!kb.reindex(scanned.generation, &mut Silent).expect("done before"));
    let after = kb.search(&few).expect("a query");
    assert_eq!((after.incomplete, after.hits.is_empty()), (None, false));

    for pack in std::fs::read_dir(base.database().join("packs")).expect("a folder") {
        std::fs::remove_file(pack.expect("an entry").path()).expect("it was there");
    }
    let kb = KnowledgeBase::open(base.database(), options()).expect("the head is whole");
    assert!(!kb.reindex(after.generation, &mut Silent).expect("left alone"));
}

#[test]
fn a_commit_makes_a_lost_index_anew() {
    let base = guide();
    std::fs::remove_dir_all(base.database().join("index")).expect("it was there");
    let kb = KnowledgeBase::open(base.database(), options()).expect("the packs are whole");
    kb.learn(&text("more", "# More\n\nvalve\n")).expect("learned");
    assert_eq!(base.search("valve").len(), 3);
    assert!(base.problems().is_empty());
}

#[test]
fn what_was_unlearned_is_not_found_and_what_was_learned_is() {
    let base = guide();
    base.unlearn(Target::Document(id("tides")));
    assert_eq!(base.search("valve"), ["pumps"]);
    base.learn("tides", "# Tides\n\nlow\n");
    assert_eq!((base.search("noon").len(), base.search("low")), (0, vec!["tides".to_owned()]));
    pass(1000);
    for n in 0..40 {
        base.learn("tides", &format!("# Tides\n\nlow {n}\n"));
    }
    assert_eq!(base.search("low"), ["tides"]);
    assert!(base.problems().is_empty());
}

#[test]
fn a_document_of_nothing_but_front_matter_is_found_by_it() {
    let base = Base::new();
    base.learn("bare", "---\ntitle: Otter census\ndescription: quarterly count\n---\n");
    assert_eq!((base.search("otter"), base.search("quarterly")), (vec!["bare".to_owned()], vec!["bare".to_owned()]));
}

#[test]
fn a_phrase_is_one_in_its_mode_without_quotes() {
    let base = guide();
    let search = |query: &str| Search { mode: Mode::Phrase, ..Search::new(query) };
    assert_eq!(base.kb.search(&search("valve opens")).expect("a query").hits.len(), 1);
    assert!(base.kb.search(&search("opens valve")).expect("a query").hits.is_empty());
}

#[test]
fn an_image_is_found_by_its_title() {
    let base = Base::new();
    let image = Text {
        media_type: Some("image/png".parse().expect("a type")),
        title: Some("Harbour plan".to_owned()),
        ..Text::markdown(*b"\x89PNG\r\n\x1a\n\xff")
    };
    base.kb.learn(&image).expect("learned");
    let hit = base.kb.search(&Search::new("harbour plan")).expect("a query").hits.remove(0);
    assert_eq!(base.kb.section_bytes(hit.kbid).expect("there"), b"\x89PNG\r\n\x1a\n\xff");
    assert_eq!(base.kb.retrieve_section(hit.kbid).expect("there").encoding.as_deref(), Some("base64"));
    let untitled = Text { title: None, ..image };
    assert!(matches!(base.kb.learn(&untitled), Err(StoreError::Invalid { field: "title", .. })));
}

#[test]
fn a_large_total_is_a_lower_bound_unless_all_is_to_be_counted() {
    let base = Base::new();
    let sections = "## Berth\n\nquay\n\n".repeat(20);
    let mut texts = (0..1_100).map(|n| Text::markdown(format!("# Note {n}\n\n{sections}")));
    base.kb.learn_batch(&mut texts, &mut Silent).expect("learned");
    let total = |count| {
        let answer = base.kb.search(&Search { count, ..Search::new("quay berth") }).expect("a query");
        (answer.total, answer.total_is_exact)
    };
    assert_eq!(total(true), (1_100, true));
    let (known, is_exact) = total(false);
    assert!(known >= 1_000 && !is_exact, "{known}");
}
