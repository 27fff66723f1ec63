//! Sources: what a run changes, and what it must not.
//!
//! **Invariant:** compared is with what was last applied; a document goes only by the removal rule; applying is one commit.

use std::cell::RefCell;
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use insta::assert_snapshot;
use kb_core::{Change, SourceFailure, SourceRun, read_yaml};
use kb_store::{
    Environment, Gather, GatheredDocument, Gc, KnowledgeBase, ListFilter, Options, PlanOptions, RemoveSource, Search,
    SelectedRow, Silent, SourceConfig, StoreError, Target, Unlearn,
};

use crate::crash_fs::CrashFs;
use crate::support::{Base, id, options, pass, text};

/// What a server has: id, title, text, and perhaps a version.
#[derive(Debug, Clone)]
struct Page {
    id: String,
    title: Option<String>,
    own_title: Option<String>,
    text: String,
    version: Option<String>,
}

fn page(id: &str, text: &str) -> Page {
    Page { id: id.to_owned(), title: Some(format!("Page {id}")), own_title: None, text: text.to_owned(), version: None }
}

fn pages(count: usize) -> Vec<Page> {
    (0..count).map(|n| page(&format!("p{n}"), &format!("# Page {n}\n\nText number {n}.\n"))).collect()
}

/// A server as a run meets it; counts the reads.
#[derive(Debug, Default)]
struct Server {
    pages: Vec<Page>,
    failing: Vec<String>,
    reads: RefCell<usize>,
}

impl Server {
    fn of(pages: Vec<Page>) -> Self {
        Self { pages, ..Self::default() }
    }

    fn fill(&self, gather: &mut dyn Gather) {
        for (place, page) in self.pages.iter().enumerate() {
            let row = SelectedRow {
                id: page.id.clone(),
                argument: page.id.clone().into(),
                title: page.title.clone(),
                url: Some(format!("https://lab.example/{}", page.id)),
                version: page.version.clone(),
            };
            if !gather.wants(place, &row) {
                continue;
            }
            *self.reads.borrow_mut() += 1;
            if self.failing.contains(&page.id) {
                let reason = "upstream 503".to_owned();
                gather.failure(
                    Some(place),
                    SourceFailure { id: Some(page.id.clone()), code: "rpc-error".to_owned(), reason },
                );
                continue;
            }
            let content = page.text.clone().into_bytes();
            gather.document(place, GatheredDocument { row, title: page.own_title.clone(), content, media_type: None });
        }
    }
}

fn config(system: &str, complete: bool) -> SourceConfig {
    let yaml = format!(
        "system: {system}\ntransport: {{kind: http, url: 'http://127.0.0.1:1/mcp'}}\n\
         select: {{tool: search, complete: {complete}}}\nread: {{tool: read, id_arg: id}}\n"
    );
    let variable = |_: &str| None::<OsString>;
    let environment = Environment { variable: &variable, working_directory: Path::new("/") };
    SourceConfig::read(&read_yaml(&yaml).expect("YAML"), &environment).expect("a sound configuration")
}

fn run_with(
    kb: &KnowledgeBase,
    name: &str,
    complete: bool,
    server: &Server,
    apply: bool,
    options: PlanOptions,
) -> Result<SourceRun, StoreError> {
    let gathering = kb.source_gathering(name, &config("lab", complete))?;
    let fetch = |gather: &mut dyn Gather| -> Result<(), StoreError> {
        server.fill(gather);
        Ok(())
    };
    if apply { gathering.apply(options, fetch) } else { gathering.propose(options, fetch) }
}

fn applied(kb: &KnowledgeBase, name: &str, server: &Server) -> SourceRun {
    run_with(kb, name, true, server, true, PlanOptions::default()).expect("applied")
}

fn proposed(kb: &KnowledgeBase, name: &str, server: &Server) -> SourceRun {
    run_with(kb, name, true, server, false, PlanOptions::default()).expect("proposed")
}

fn counts(run: &SourceRun) -> (usize, usize, usize, usize) {
    (run.plan.added, run.plan.modified, run.plan.removed, run.plan.unchanged)
}

#[test]
fn a_proposal_changes_nothing_until_it_is_applied_and_then_all_at_once() {
    let base = Base::new();
    let server = Server::of(pages(3));
    let run = proposed(&base.kb, "lab", &server);
    assert_eq!((run.outcome.as_str(), counts(&run)), ("proposed", (3, 0, 0, 0)));
    assert_eq!(base.document("lab-p0"), None);
    let again = proposed(&base.kb, "lab", &server);
    assert_eq!(again.generation, run.generation, "the same proposal is not written twice");

    let done = base.kb.source_apply("lab").expect("applied");
    assert_eq!((done.added, done.generation), (3, run.generation + 1));
    assert_eq!(base.document("lab-p0").as_deref(), Some("# Page 0\n\nText number 0.\n"));
    assert!(matches!(base.kb.source_proposal("lab"), Err(StoreError::NoProposal { .. })));
    let nothing = base.kb.source_apply("lab").expect("there is nothing to do");
    assert_eq!((nothing.added, nothing.generation), (0, done.generation));

    let run = proposed(&base.kb, "lab", &server);
    assert_eq!((run.outcome.as_str(), counts(&run)), ("unchanged", (0, 0, 0, 3)));
    assert_eq!(run.generation, done.generation, "a run without change writes nothing");
    assert!(base.problems().is_empty(), "{:?}", base.problems());
}

#[test]
fn provenance_is_shown_and_filters() {
    let base = Base::new();
    base.learn("hand-written", "# Number\n\nText by hand.\n");
    applied(&base.kb, "mine", &Server::of(pages(2)));
    let info = base.kb.retrieve_document(&id("lab-p1")).expect("there");
    let provenance = info.provenance.expect("it was fetched");
    assert_eq!((provenance.system.as_str(), provenance.id.as_str()), ("lab", "p1"));
    assert_eq!(provenance.url.as_deref(), Some("https://lab.example/p1"));
    assert_eq!(provenance.sources, ["mine"]);
    assert_eq!(provenance.retrieved, info.updated);
    assert!(blake3::hash(b"# Page 1\n\nText number 1.\n").to_hex().starts_with(&provenance.hash));
    let section = base.kb.retrieve_section(info.sections[0].kbid).expect("there");
    assert_eq!(section.provenance, Some(provenance));
    assert_eq!(base.kb.retrieve_document(&id("hand-written")).expect("there").provenance, None);

    let all = base.search("text");
    assert_eq!(all.len(), 3);
    for query in ["text source:lab", "text source:mine"] {
        let mut found = base.search(query);
        found.sort();
        assert_eq!(found, ["lab-p0", "lab-p1"], "{query}");
    }
    assert_eq!(base.search("text -source:lab"), ["hand-written"]);
    let filtered = Search { sources: vec!["mine".to_owned()], ..Search::new("text") };
    let answer = base.kb.search(&filtered).expect("an answer");
    assert_eq!(answer.total, 2);
    assert_eq!(answer.hits[0].provenance.as_ref().map(|p| p.system.as_str()), Some("lab"));
    assert!(base.search("text source:other").is_empty());
    for source in ["lab", "mine"] {
        let filter = ListFilter { source: Some(source.to_owned()), ..ListFilter::default() };
        let listed = base.kb.list(&filter).expect("listed").documents;
        assert_eq!(listed.iter().map(|document| document.docid.as_str()).collect::<Vec<_>>(), ["lab-p0", "lab-p1"]);
    }
    let kbid = info.sections[0].kbid.to_string();
    let ids = ["hand-written".to_owned(), kbid, "lab-p0".to_owned(), "lab-p1".to_owned()];
    let composed = base.kb.content_with_footnotes(&ids).expect("composed").content;
    let times = composed.replace(&info.updated, "[TIME]");
    assert_snapshot!(times, @r"
    # Number

    Text by hand.

    # Page 1

    Text number 1.

    [^kb-1]

    # Page 0

    Text number 0.

    [^kb-2]

    # Page 1

    Text number 1.

    [^kb-1]

    [^kb-1]: lab, <https://lab.example/p1>, retrieved [TIME]
    [^kb-2]: lab, <https://lab.example/p0>, retrieved [TIME]
    ");
}

#[test]
fn changes_are_told_and_applied() {
    let base = Base::new();
    let mut server = Server::of(pages(4));
    applied(&base.kb, "lab", &server);
    pass(60);
    server.pages[1].text = "# Page 1\n\nAnother text.\n".to_owned();
    server.pages[2].title = Some("Renamed".to_owned());
    server.pages.remove(3);
    server.pages.push(page("new", "# New\n"));
    let run = proposed(&base.kb, "lab", &server);
    assert_eq!(counts(&run), (1, 2, 1, 1));
    let told: Vec<_> = run.plan.changes.iter().map(|c| (c.change, c.id.as_str(), c.old_title.as_deref())).collect();
    assert_eq!(
        told,
        [
            (Change::Added, "new", None),
            (Change::Modified, "p1", None),
            (Change::Modified, "p2", Some("Page p2")),
            (Change::Removed, "p3", None)
        ]
    );
    let proposal = base.kb.source_proposal("lab").expect("it waits");
    assert!(proposal.diff.contains("-Text number 1.\n+Another text.\n"), "{}", proposal.diff);
    assert!(proposal.diff.contains("+++ /dev/null\n"), "{}", proposal.diff);
    base.kb.source_apply("lab").expect("applied");
    assert_eq!(base.document("lab-p3"), None);
    assert_eq!(base.kb.describe_document(&id("lab-p2")).expect("there").title, "Renamed");
    assert_eq!(base.kb.describe_document(&id("lab-p1")).expect("there").revision, 2);
    assert_eq!(base.kb.source_info("lab").expect("there").reaches.len(), 4);
}

#[test]
fn nothing_goes_but_by_the_rule() {
    let base = Base::new();
    applied(&base.kb, "lab", &Server::of(pages(6)));
    let fewer = Server::of(pages(5));

    let run = run_with(&base.kb, "lab", false, &fewer, true, PlanOptions::default()).expect("run");
    assert_eq!((run.outcome.as_str(), run.plan.removed, run.plan.kept.len()), ("unchanged", 0, 1));
    assert!(run.plan.kept_reason.expect("said").contains("complete: true"));

    let failing = Server { failing: vec!["p0".to_owned()], ..Server::of(pages(5)) };
    let run = applied(&base.kb, "lab", &failing);
    assert_eq!((run.plan.removed, run.plan.failed, run.plan.complete), (0, 1, false));
    assert_eq!(run.plan.kept_reason.as_deref(), Some("the run was incomplete"));

    let run = applied(&base.kb, "lab", &Server::of(pages(2)));
    assert_eq!((run.plan.removed, run.plan.kept.len()), (0, 4));
    let run = applied(&base.kb, "lab", &Server::default());
    assert_eq!((run.outcome.as_str(), run.plan.kept.len()), ("unchanged", 6));

    let run = applied(&base.kb, "lab", &fewer);
    assert_eq!((run.plan.removed, run.plan.kept.len()), (1, 0));
    let one = Base::new();
    applied(&one.kb, "lab", &Server::of(pages(1)));
    assert_eq!(applied(&one.kb, "lab", &Server::default()).plan.kept.len(), 1, "one of one is more than half");

    let most = PlanOptions { remove_most: true };
    let run = run_with(&base.kb, "lab", true, &Server::of(pages(1)), true, most).expect("run");
    assert_eq!(run.plan.removed, 4);
    assert!(base.document("lab-p0").is_some() && base.document("lab-p1").is_none());
}

#[test]
fn what_fails_stays_as_it_was_and_if_all_fail_nothing_is_proposed() {
    let base = Base::new();
    applied(&base.kb, "lab", &Server::of(pages(3)));
    let mut server = Server { failing: vec!["p1".to_owned()], ..Server::of(pages(3)) };
    server.pages[0].text = "# Changed\n".to_owned();
    let run = applied(&base.kb, "lab", &server);
    assert_eq!((run.outcome.as_str(), counts(&run), run.plan.failed), ("applied", (0, 1, 0, 1), 1));
    assert_eq!(base.kb.source_info("lab").expect("there").reaches.len(), 3);

    let all = Server { failing: vec!["p0".to_owned(), "p1".to_owned(), "p2".to_owned()], ..Server::of(pages(3)) };
    let generation = base.kb.generation().expect("readable");
    let run = applied(&base.kb, "lab", &all);
    assert_eq!((run.outcome.as_str(), run.generation), ("failed", generation));
}

#[test]
fn a_page_that_two_sources_reach_keeps_its_title_and_stays_until_neither_does() {
    let base = Base::new();
    applied(&base.kb, "one", &Server::of(pages(4)));
    let mut other = Server::of(pages(2));
    other.pages[0].title = Some("Flipped".to_owned());
    let run = applied(&base.kb, "two", &other);
    assert_eq!((run.plan.linked, run.plan.modified, run.plan.added), (2, 0, 0));
    assert_eq!(base.kb.describe_document(&id("lab-p0")).expect("there").title, "Page p0");
    for name in ["one", "two", "one"] {
        let server = if name == "one" { Server::of(pages(4)) } else { Server::of(other.pages.clone()) };
        assert_eq!(applied(&base.kb, name, &server).outcome, "unchanged", "{name}");
    }
    // Its own title, or another text, is a change.
    other.pages[0].own_title = Some("By itself".to_owned());
    assert_eq!(applied(&base.kb, "two", &other).plan.modified, 1);
    let provenance = base.kb.retrieve_document(&id("lab-p0")).expect("there").provenance.expect("fetched");
    assert_eq!(provenance.sources, ["one", "two"]);

    let run = applied(&base.kb, "one", &Server::of(pages(4)[1..].to_vec()));
    assert_eq!((run.plan.removed, run.plan.released), (0, 1));
    assert!(base.document("lab-p0").is_some());
    let run = applied(&base.kb, "two", &Server::of(pages(2)[1..].to_vec()));
    assert_eq!((run.plan.removed, run.plan.released), (1, 0));
    assert!(base.document("lab-p0").is_none());
}

#[test]
fn a_version_that_is_the_same_spares_the_read() {
    let base = Base::new();
    let mut server = Server::of(pages(5));
    server.pages.iter_mut().for_each(|page| page.version = Some("1".to_owned()));
    applied(&base.kb, "lab", &server);
    *server.reads.borrow_mut() = 0;
    assert_eq!(counts(&applied(&base.kb, "lab", &server)), (0, 0, 0, 5));
    assert_eq!(*server.reads.borrow(), 0);
    server.pages[3].version = Some("2".to_owned());
    server.pages[3].text = "# Newer\n".to_owned();
    assert_eq!(counts(&applied(&base.kb, "lab", &server)), (0, 1, 0, 4));
    assert_eq!(*server.reads.borrow(), 1);
}

#[test]
fn what_was_changed_since_the_proposal_is_named_and_nothing_is_applied() {
    let base = Base::new();
    let mut server = Server::of(pages(3));
    applied(&base.kb, "lab", &server);
    server.pages.iter_mut().for_each(|page| page.text.push_str("More.\n"));
    proposed(&base.kb, "lab", &server);
    base.learn("lab-p1", "# Mine now\n");
    match base.kb.source_apply("lab") {
        Err(StoreError::SourceChanged { docids, .. }) => assert_eq!(docids, [id("lab-p1")]),
        other => panic!("{other:?}"),
    }
    assert_eq!(base.document("lab-p0").as_deref(), Some("# Page 0\n\nText number 0.\n"));
    // A new run is made on what is there now.
    assert_eq!(proposed(&base.kb, "lab", &server).plan.modified, 3);
    base.kb.source_apply("lab").expect("applied");
    assert_eq!(base.document("lab-p1").as_deref(), Some("# Page 1\n\nText number 1.\nMore.\n"));
}

#[test]
fn a_document_of_another_hand_is_not_written_over() {
    let base = Base::new();
    base.learn("lab-p1", "# Mine\n");
    let run = applied(&base.kb, "lab", &Server::of(pages(3)));
    assert_eq!((run.plan.added, run.plan.failed), (2, 1));
    assert_eq!(run.plan.failures[0].code, "docid-taken");
    assert_eq!(base.document("lab-p1").as_deref(), Some("# Mine\n"));
}

#[test]
fn what_was_unlearned_stays_away_and_leaves_no_proposal() {
    let base = Base::new();
    let mut server = Server::of(pages(3));
    applied(&base.kb, "lab", &server);
    server.pages[1].text = "# Secret in a proposal\n".to_owned();
    proposed(&base.kb, "lab", &server);
    base.unlearn(Target::Document(id("lab-p1")));
    assert!(matches!(base.kb.source_proposal("lab"), Err(StoreError::NoProposal { .. })));
    assert_eq!(applied(&base.kb, "lab", &Server::of(pages(3))).outcome, "unchanged");
    assert_eq!(base.document("lab-p1"), None);
    let purge = Unlearn { targets: vec![Target::Document(id("lab-p2"))], purge: true, ..Unlearn::default() };
    base.kb.unlearn(&purge).expect("purged");
}

#[test]
fn sources_are_kept_listed_and_removed() {
    let base = Base::new();
    let value = read_yaml("{system: lab, note: kept as given}").expect("YAML");
    let summary = base.kb.source_add("lab.docs", &value, &config("lab", true)).expect("added");
    assert!(summary.configured);
    let generation = base.kb.generation().expect("readable");
    base.kb.source_add("lab.docs", &value, &config("lab", true)).expect("the same again");
    assert_eq!(base.kb.generation().expect("readable"), generation);
    assert_eq!(base.kb.source_config("lab.docs").expect("readable"), Some(value));
    for bad in ["", "a/b", "../x", "-x", "a b"] {
        assert!(base.kb.source_add(bad, &serde_json::json!({}), &config("lab", true)).is_err(), "{bad:?}");
    }
    applied(&base.kb, "lab.docs", &Server::of(pages(2)));
    proposed(&base.kb, "other", &Server::of(pages(1)));
    let list = base.kb.source_list().expect("listed").sources;
    assert_eq!(
        list.iter().map(|source| (source.name.as_str(), source.documents)).collect::<Vec<_>>(),
        [("lab.docs", 2), ("other", 0)]
    );
    assert_eq!(list[1].pending.as_ref().map(|pending| pending.added), Some(0), "it is known from its proposal on");
    assert!(
        base.kb.source_gathering("lab.docs", &config("other", true)).is_err(),
        "its documents are of another system"
    );
    assert!(
        matches!(base.kb.source_info("lab.doc"), Err(StoreError::SourceNotFound { near, .. }) if near == ["lab.docs"])
    );

    // Merges and collections carry it all along.
    for n in 0..20 {
        base.learn(&format!("note-{n}"), "# Note\n");
    }
    base.kb.gc(&Gc::default(), &mut Silent).expect("collected");
    assert_eq!(base.kb.source_info("lab.docs").expect("there").reaches.len(), 2);
    assert_eq!(base.kb.source_proposal("other").expect("there").plan.linked, 1);

    let removed = base.kb.source_remove("lab.docs", RemoveSource::default()).expect("removed");
    assert_eq!((removed.removed.len(), removed.kept), (0, 2));
    assert!(base.document("lab-p0").is_some());
    // What is left is taken up again.
    assert_eq!(applied(&base.kb, "lab.docs", &Server::of(pages(2))).plan.linked, 2);
    let removed = base.kb.source_remove("lab.docs", RemoveSource { with_documents: true }).expect("removed");
    assert_eq!(removed.removed, [id("lab-p0"), id("lab-p1")]);
    base.kb.source_remove("other", RemoveSource::default()).expect("removed");
    assert!(base.kb.source_list().expect("listed").sources.is_empty());
    assert!(base.problems().is_empty(), "{:?}", base.problems());
}

#[test]
fn one_run_at_a_time() {
    let base = Base::new();
    let second = KnowledgeBase::open(base.database(), Options { wait: Duration::ZERO, ..options() }).expect("opened");
    let first = base.kb.source_gathering("lab", &config("lab", true)).expect("nobody else runs it");
    let error = second.source_gathering("lab", &config("lab", true)).expect_err("the first is running");
    assert!(matches!(&error, StoreError::SourceBusy { name, .. } if name == "lab"), "{error}");
    assert!(second.source_gathering("other", &config("lab", true)).is_ok());
    second.learn(&text("meanwhile", "# Others write\n")).expect("the writers' lock is free");
    drop(first);
    assert!(second.source_gathering("lab", &config("lab", true)).is_ok());
}

#[test]
fn applying_is_all_or_nothing_wherever_it_stops() {
    let server = Server::of(pages(4));
    let before = CrashFs::default();
    let storage = before.storage();
    storage.create_directories().expect("an empty disk");
    let kb = KnowledgeBase::create_on(storage, options()).expect("created");
    kb.learn(&text("note", "# Note\n")).expect("learned");
    drop(kb);
    let state = |kb: &KnowledgeBase| {
        let reached = kb.source_list().expect("readable").sources.first().map_or(0, |source| source.documents);
        (kb.status().expect("readable").documents, reached)
    };
    for steps in 0.. {
        let fs = before.fork();
        let kb = KnowledgeBase::open_on(fs.storage(), options()).expect("opened");
        fs.cut_after(steps);
        let outcome = run_with(&kb, "lab", true, &server, true, PlanOptions::default());
        drop(kb);
        for image in fs.images() {
            let kb = KnowledgeBase::open_on(image.storage(), options()).expect("a base opens after a crash");
            let found = state(&kb);
            assert!(found == (1, 0) || found == (5, 4), "after {steps} steps: {found:?}");
            if outcome.is_ok() {
                assert_eq!(found, (5, 4), "what was reported is there");
            }
            run_with(&kb, "lab", true, &server, true, PlanOptions::default()).expect("a later run picks up");
            assert_eq!(state(&kb), (5, 4), "after {steps} steps");
        }
        if outcome.is_ok() {
            return;
        }
    }
}
