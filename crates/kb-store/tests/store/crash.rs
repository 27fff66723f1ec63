//! The power cut at every step of every operation, and the disk full from every step on.
//!
//! **Invariant:** whatever step was the last, and whatever of it reached the disk, the base is in the state before a
//! commit or in the one after, what was acknowledged is there, and the next operations go well.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::time::Duration;

use kb_core::{LearnedDocument, MediaType, SectionId, Severity};
use kb_store::{
    Gc, KnowledgeBase, ListFilter, NewAgent, NewSkill, Observer, Options, Search, Silent, StoreError, Target, Text,
    Unlearn,
};

use crate::crash_fs::CrashFs;
use crate::support::{clock, id, kbid, options, pass, text};

type Done = Result<(), StoreError>;

const SHARED: &str = "## Licence\n\nfree as in air\n";

/// Notes which documents were said to be durable.
#[derive(Default)]
struct Heard(BTreeSet<String>);

impl Observer for Heard {
    fn document(&mut self, document: &LearnedDocument) {
        self.0.extend(document.docid.iter().map(ToString::to_string));
    }
}

/// All that can be read of a base.
#[derive(Debug, Clone, PartialEq)]
struct Seen {
    /// Hashes of their bytes.
    documents: BTreeMap<String, blake3::Hash>,
    /// Revision, kbids and whether it is marked edited, the newest first.
    revisions: BTreeMap<String, Vec<(u32, Vec<SectionId>, bool)>>,
    /// Whether they can be read.
    sections: BTreeMap<SectionId, bool>,
    skills_and_agents: String,
    /// Documents that each word finds, the best first.
    found: BTreeMap<&'static str, Vec<String>>,
    /// Documents, skills, agents, bytes of their sources.
    totals: [u64; 4],
}

/// Reads a base whole, and of these sections whether they are readable.
fn see(kb: &KnowledgeBase, known: &BTreeSet<SectionId>) -> Seen {
    let list = kb.list(&ListFilter::default()).expect("listed").documents;
    let mut seen = Seen {
        documents: BTreeMap::new(),
        revisions: BTreeMap::new(),
        sections: BTreeMap::new(),
        skills_and_agents: format!(
            "{:?} {:?}",
            kb.skill_list().expect("skills are readable"),
            kb.agent_list().expect("agents are readable")
        ),
        found: BTreeMap::new(),
        totals: [0; 4],
    };
    for word in ["alpha", "beta", "licence", "air", "end", "gone", "push", "image"] {
        let hits = kb.search(&Search::new(word)).expect("every word is a query").hits;
        seen.found.insert(word, hits.iter().map(|hit| hit.docid.to_string()).collect());
    }
    for document in &list {
        let bytes = kb.document_bytes(&document.docid).expect("a listed document is readable");
        assert_eq!(bytes.len() as u64, document.bytes);
        seen.documents.insert(document.docid.to_string(), blake3::hash(&bytes));
        let revisions = kb.history(&document.docid).expect("a listed document has a history").revisions;
        let revisions = revisions.into_iter().map(|r| (r.revision, r.kbids, r.edited)).collect();
        seen.revisions.insert(document.docid.to_string(), revisions);
    }
    for section in known {
        let is_readable = match kb.section_bytes(*section) {
            Ok(_) => true,
            Err(StoreError::SectionNotFound { .. }) => false,
            Err(error) => panic!("a section is neither readable nor gone: {error}"),
        };
        seen.sections.insert(*section, is_readable);
    }
    let status = kb.status().expect("a base has a status");
    seen.totals = [status.documents, status.skills, status.agents, status.source_bytes];
    seen
}

fn png() -> MediaType {
    "image/png".parse().expect("a media type")
}

/// Every section of every revision.
fn sections_of(kb: &KnowledgeBase) -> BTreeSet<SectionId> {
    let list = kb.list(&ListFilter::default()).expect("listed").documents;
    let histories = list.iter().map(|document| kb.history(&document.docid).expect("it has one"));
    histories.flat_map(|history| history.revisions).flat_map(|revision| revision.kbids).collect()
}

fn create(fs: &CrashFs) -> Result<KnowledgeBase, StoreError> {
    let storage = fs.storage();
    storage.create_directories()?;
    KnowledgeBase::create_on(storage, options())
}

fn open(fs: &CrashFs) -> KnowledgeBase {
    KnowledgeBase::open_on(fs.storage(), options()).expect("a base opens after a crash")
}

/// Problems that `check` calls errors.
fn errors(kb: &KnowledgeBase) -> Vec<String> {
    let report = kb.check(&mut Silent).expect("checked");
    let errors = report.problems.into_iter().filter(|problem| problem.severity == Severity::Error);
    let errors: Vec<_> = errors.map(|p| format!("{}: {} {}", p.file.unwrap_or_default(), p.kind, p.detail)).collect();
    assert_eq!(report.ok, errors.is_empty());
    errors
}

/// An operation on a base that was prepared.
struct Operation<A> {
    before: CrashFs,
    act: A,
    /// The states there may be: the old one, and that after each commit.
    states: Vec<Seen>,
    known: BTreeSet<SectionId>,
    steps: u64,
    syncs: u64,
}

impl<A: Fn(&CrashFs, &mut Heard) -> Done> Operation<A> {
    /// Does the operation once with the power on.
    fn new(before: &CrashFs, act: A) -> Self {
        let fs = before.fork();
        let (taken, syncs) = (fs.taken(), fs.syncs());
        act(&fs, &mut Heard::default()).expect("it succeeds with the power on");
        let (steps, syncs) = (fs.taken() - taken, fs.syncs() - syncs);
        let disks: Vec<CrashFs> = [before.fork()].into_iter().chain(fs.commits()).collect();
        let known = disks.iter().flat_map(|disk| sections_of(&open(&disk.fork()))).collect();
        let states = disks.iter().map(|disk| see(&open(&disk.fork()), &known)).collect();
        Self { before: before.fork(), act, states, known, steps, syncs }
    }

    /// The least state that holds what was acknowledged.
    fn floor(&self, outcome: &Done, heard: &Heard) -> usize {
        if outcome.is_ok() {
            return self.states.len() - 1;
        }
        let holds = |state: &Seen| heard.0.iter().all(|docid| state.documents.contains_key(docid));
        self.states.iter().position(holds).expect("some state has what was acknowledged")
    }

    fn is_one_of(&self, kb: &KnowledgeBase, floor: usize, at: &str) -> Seen {
        let seen = see(kb, &self.known);
        assert!(self.states[floor..].contains(&seen), "{at}: neither the old state nor a new one: {seen:#?}");
        seen
    }

    /// Cuts the power after each number of steps, looks at every disk that may be found then, and goes on from there.
    fn survives_a_cut_at_every_step(&self) -> &Self {
        self.cut_at_every_step(|image, kb, seen, at| self.goes_on(image, kb, seen, at))
    }

    /// As [`Self::survives_a_cut_at_every_step`], without going on.
    fn is_whole_after_a_cut_at_every_step(&self) -> &Self {
        self.cut_at_every_step(|_, _, _, _| ())
    }

    fn cut_at_every_step(&self, then: impl Fn(&CrashFs, &KnowledgeBase, &Seen, &str)) -> &Self {
        let mut inspected = BTreeSet::new();
        for budget in 0..=self.steps {
            let fs = self.before.fork();
            fs.cut_after(budget);
            let mut heard = Heard::default();
            let outcome = (self.act)(&fs, &mut heard);
            assert_eq!(outcome.is_ok(), budget == self.steps, "with {budget} of {} steps: {outcome:?}", self.steps);
            let floor = self.floor(&outcome, &heard);
            for (i, image) in fs.images().iter().enumerate() {
                if inspected.insert((floor, i == 0, image.summary())) {
                    let at = format!("after {budget} of {} steps, disk {i}", self.steps);
                    let kb = open(image);
                    let seen = self.is_one_of(&kb, floor, &at);
                    let found = errors(&kb);
                    let only_index = found.iter().all(|error| error.starts_with("index/"));
                    assert!(only_index && (found.is_empty() || i > 0), "{at}: {found:?}");
                    then(image, &kb, &seen, &at);
                }
            }
        }
        self
    }

    /// Heals what index files a cut has torn, by a rebuild as by the next commit, and leaves nothing behind.
    fn goes_on(&self, image: &CrashFs, kb: &KnowledgeBase, seen: &Seen, at: &str) {
        if !errors(kb).is_empty() {
            let healed = open(&image.fork());
            healed.rebuild(&mut Silent).expect("it can be rebuilt");
            assert_eq!(errors(&healed), [""; 0], "{at}, rebuilt");
            assert_eq!(see(&healed, &self.known), *seen, "{at}, rebuilt");
        }
        let after = image.fork();
        let kb = open(&after);
        kb.learn(&text("zzyzx", "# Zzyzx\n\nqwyjibo\n")).expect("the next learn succeeds");
        assert_eq!(errors(&kb), [""; 0], "{at}, after the next commit");
        let mut now = see(&kb, &self.known);
        assert_eq!(now.documents.remove("zzyzx"), Some(blake3::hash(b"# Zzyzx\n\nqwyjibo\n")));
        now.revisions.remove("zzyzx");
        now.totals = seen.totals;
        assert_eq!(now, *seen, "{at}, after the next commit");
        leaves_nothing_behind(&after, at);
    }

    /// Lets the disk be full from each step on.
    fn survives_a_full_disk(&self) {
        for free in 0..self.steps {
            let fs = self.before.fork();
            fs.fill_after(free);
            let mut heard = Heard::default();
            let outcome = (self.act)(&fs, &mut heard);
            let at = format!("full after {free} of {} steps", self.steps);
            if let Err(error) = &outcome {
                let StoreError::Io { op, path, source } = error else { panic!("{at}: {error:?}") };
                assert!(source.kind() == ErrorKind::StorageFull && !op.is_empty(), "{at}: {error}");
                assert!(!path.as_os_str().is_empty(), "{at}: {error}");
            }
            let kb = open(&fs);
            self.is_one_of(&kb, self.floor(&outcome, &heard), &at);
            assert_eq!(errors(&kb), [""; 0], "{at}");
            fs.make_space();
            (self.act)(&fs, &mut heard).expect("it succeeds once there is space");
            assert_eq!(see(&kb, &self.known), *self.states.last().expect("there is one"), "{at}, done again");
            leaves_nothing_behind(&fs, &at);
        }
    }
}

/// Collects, once and again after the readers' grace, and looks that no file is left that no head names.
fn leaves_nothing_behind(fs: &CrashFs, at: &str) {
    let later = || clock() + Duration::from_secs(601);
    for clock in [clock, later] {
        let kb = KnowledgeBase::open_on(fs.storage(), Options::new(clock)).expect("it opens");
        kb.gc(&Gc::default(), &mut Silent).expect("collected");
    }
    let kb = open(fs);
    assert_eq!(errors(&kb), [""; 0], "{at}, collected");
    let status = kb.status().expect("a base has a status");
    let files = fs.files();
    let left: Vec<_> = files.keys().map(|path| path.display().to_string()).collect();
    assert!(!left.iter().any(|path| path.contains("tmp-")), "{at}: {left:?}");
    let in_folders = files.keys().filter(|path| path.extension().is_some()).count();
    assert_eq!(in_folders, status.packs + status.index.segments, "{at}: {left:?}");
}

fn prepared(prepare: impl Fn(&KnowledgeBase)) -> CrashFs {
    let fs = CrashFs::default();
    prepare(&create(&fs).expect("created"));
    fs
}

fn learn(kb: &KnowledgeBase, docid: &str, content: &str) {
    kb.learn(&text(docid, content)).expect("learned");
}

/// Two documents that share a section, one of them with an older revision.
fn two_documents(kb: &KnowledgeBase) {
    learn(kb, "a", &format!("---\ntitle: A\n---\n# A\n\nalpha\n\n{SHARED}"));
    learn(kb, "b", &format!("# B\n\nbeta\n\n{SHARED}"));
    learn(kb, "a", &format!("# A\n\nalpha again\n\n{SHARED}## More\n\nend"));
}

fn learns(docid: &'static str, content: &'static str) -> impl Fn(&CrashFs, &mut Heard) -> Done {
    move |fs, _| KnowledgeBase::open_on(fs.storage(), options())?.learn(&text(docid, content)).map(drop)
}

fn unlearns(target: Target, purge: bool) -> impl Fn(&CrashFs, &mut Heard) -> Done {
    move |fs, _| {
        let request = Unlearn { targets: vec![target.clone()], purge, dry_run: false };
        KnowledgeBase::open_on(fs.storage(), options())?.unlearn(&request).map(drop)
    }
}

#[test]
fn create_leaves_a_base_or_none() {
    let fs = CrashFs::default();
    create(&fs).expect("the power is on");
    let steps = fs.taken();
    for budget in 0..=steps {
        let fs = CrashFs::default();
        fs.cut_after(budget);
        let outcome = create(&fs);
        assert_eq!(outcome.is_ok(), budget == steps, "{budget} of {steps}");
        for image in fs.images() {
            match KnowledgeBase::open_on(image.storage(), options()) {
                Ok(kb) => {
                    learn(&kb, "a", "# A\n");
                    assert_eq!(errors(&kb), [""; 0]);
                }
                Err(StoreError::NoDatabase { .. }) if outcome.is_err() => {
                    let kb = create(&image).expect("what a crash left is no hindrance");
                    learn(&kb, "a", "# A\n");
                    leaves_nothing_behind(&image, "created again");
                }
                Err(error) => panic!("after {budget} of {steps} steps: {error}"),
            }
        }
    }
}

#[test]
fn a_first_learn_is_all_or_nothing() {
    let operation = Operation::new(&prepared(|_| ()), learns("a", "# A\n\nalpha\n\n## B\n\nbeta\n"));
    assert_eq!((operation.states.len(), operation.syncs), (2, 4));
    operation.survives_a_cut_at_every_step().survives_a_full_disk();
}

#[test]
fn a_second_revision_is_all_or_nothing() {
    let operation = Operation::new(&prepared(two_documents), learns("b", "# B\n\nnew\n"));
    assert_eq!((operation.states.len(), operation.syncs), (2, 4));
    operation.survives_a_cut_at_every_step().survives_a_full_disk();
}

#[test]
fn a_learn_that_merges_is_all_or_nothing() {
    let before = prepared(|kb| {
        two_documents(kb);
        kb.unlearn(&Unlearn { targets: vec![Target::Document(id("b"))], ..Unlearn::default() }).expect("unlearned");
        for (docid, content) in [("c", "# C\n\nc\n"), ("d", "# D\n\nd\n"), ("c", "# C\n\ncc\n")] {
            if kb.status().expect("status").packs < 3 {
                learn(kb, docid, content);
            }
        }
    });
    assert_eq!(open(&before.fork()).status().expect("status").packs, 3, "the next commit merges");
    let operation = Operation::new(&before, learns("e", "# E\n\nepsilon\n"));
    let fs = before.fork();
    (operation.act)(&fs, &mut Heard::default()).expect("learned");
    assert_eq!(open(&fs).status().expect("status").packs, 1, "it merged");
    assert_eq!((operation.states.len(), operation.syncs), (2, 4));
    operation.survives_a_cut_at_every_step().survives_a_full_disk();
}

#[test]
fn of_a_batch_whole_commits_stay() {
    // An image of 24 MB of zeros costs little to keep, and fills a commit.
    let texts = || {
        let mut texts: Vec<Text> = (0..4).map(|n| text(&format!("t{n}"), &format!("# T {n}\n\n{SHARED}"))).collect();
        let image = text("image", "");
        texts.insert(2, Text { content: vec![0; 24 << 20], media_type: Some(png()), title: Some("I".into()), ..image });
        texts.insert(1, Text { content: b"\xff".to_vec(), ..Text::default() });
        texts
    };
    let operation = Operation::new(&prepared(two_documents), move |fs, heard| {
        let kb = KnowledgeBase::open_on(fs.storage(), options())?;
        let report = kb.learn_batch(&mut texts().into_iter(), heard)?;
        assert_eq!((report.added + report.unchanged, report.failed), (5, 1));
        Ok(())
    });
    assert_eq!((operation.states.len(), operation.syncs), (3, 8), "two commits");
    operation.is_whole_after_a_cut_at_every_step();
}

#[test]
fn unlearning_a_document_is_all_or_nothing() {
    let operation = Operation::new(&prepared(two_documents), unlearns(Target::Document(id("a")), false));
    assert_eq!((operation.states.len(), operation.syncs), (2, 4));
    assert!(!operation.states[1].sections[&kbid("## More\n\nend")]);
    assert!(operation.states[1].sections[&kbid(SHARED)]);
    operation.survives_a_cut_at_every_step();
}

#[test]
fn unlearning_a_shared_section_is_all_or_nothing() {
    let operation = Operation::new(&prepared(two_documents), unlearns(Target::Section(kbid(SHARED)), false));
    assert_eq!((operation.states.len(), operation.syncs), (2, 4));
    assert!(!operation.states[1].sections[&kbid(SHARED)]);
    operation.survives_a_cut_at_every_step();
}

#[test]
fn a_purge_is_all_or_nothing_and_leaves_no_byte_once_acknowledged() {
    let before = prepared(two_documents);
    let operation = Operation::new(&before, unlearns(Target::Section(kbid(SHARED)), true));
    operation.survives_a_cut_at_every_step();
    let fs = before.fork();
    (operation.act)(&fs, &mut Heard::default()).expect("purged");
    for image in fs.images() {
        let held = image.files().into_iter().filter(|(_, bytes)| holds(bytes, SHARED.as_bytes()));
        assert_eq!(held.map(|(path, _)| path).collect::<Vec<_>>(), [""; 0].map(std::path::PathBuf::from));
    }
}

/// Says whether bytes, or what is packed in them, hold others.
fn holds(bytes: &[u8], needle: &[u8]) -> bool {
    let mut all = bytes.to_vec();
    for at in (0..bytes.len()).filter(|&at| bytes[at..].starts_with(&[0x28, 0xb5, 0x2f, 0xfd])) {
        let mut decoder = zstd::stream::read::Decoder::new(&bytes[at..]).expect("a decoder").single_frame();
        let _ = std::io::copy(&mut decoder, &mut all);
    }
    all.windows(needle.len()).any(|window| window == needle)
}

/// A base with unlearned text, old revisions, retired files, and files that nothing names.
fn with_garbage(kb: &KnowledgeBase) {
    two_documents(kb);
    learn(kb, "c", "# C\n\ngone soon\n");
    kb.unlearn(&Unlearn { targets: vec![Target::Document(id("c"))], ..Unlearn::default() }).expect("unlearned");
    kb.unlearn(&Unlearn { targets: vec![Target::Section(kbid(SHARED))], ..Unlearn::default() }).expect("unlearned");
    learn(kb, "d", "# D\n\ndelta\n");
    kb.unlearn(&Unlearn { targets: vec![Target::Document(id("d"))], ..Unlearn::default() }).expect("unlearned");
    assert!(kb.status().expect("status").retired > 0);
}

#[test]
fn a_collection_changes_nothing_that_can_be_read() {
    let before = prepared(with_garbage);
    pass(601);
    let operation = Operation::new(&before, |fs, _| {
        KnowledgeBase::open_on(fs.storage(), options())?.gc(&Gc::default(), &mut Silent).map(drop)
    });
    assert!(operation.states.iter().all(|state| *state == operation.states[0]));
    assert_eq!((operation.states.len(), operation.syncs), (2, 4));
    operation.survives_a_cut_at_every_step().survives_a_full_disk();
}

#[test]
fn a_rebuild_changes_nothing_that_can_be_read() {
    let operation = Operation::new(&prepared(with_garbage), |fs, _| {
        KnowledgeBase::open_on(fs.storage(), options())?.rebuild(&mut Silent).map(drop)
    });
    assert!(operation.states.iter().all(|state| *state == operation.states[0]));
    assert_eq!((operation.states.len(), operation.syncs), (2, 2));
    operation.survives_a_cut_at_every_step().survives_a_full_disk();
}

#[test]
fn an_index_file_that_came_back_is_kept_for_its_readers_when_it_goes_again() {
    let before = prepared(|kb| {
        learn(kb, "a", "# A\n\nalpha\n");
        learn(kb, "b", "# B\n\nbeta\n");
    });
    let kb = open(&before);
    let index_files = |fs: &CrashFs| {
        fs.files().into_keys().filter(|path| path.extension().is_some_and(|e| e == "idx")).collect::<BTreeSet<_>>()
    };
    let files = index_files(&before);
    kb.rebuild(&mut Silent).expect("rebuilt");
    pass(100);
    kb.unlearn(&Unlearn { targets: vec![Target::Document(id("b"))], ..Unlearn::default() }).expect("unlearned");
    kb.gc(&Gc::default(), &mut Silent).expect("collected");
    learn(&kb, "c", "# C\n\ngamma\n");
    pass(550);
    let operation = Operation::new(&before, |fs, _| {
        KnowledgeBase::open_on(fs.storage(), options())?.rebuild(&mut Silent).map(drop)
    });
    let fs = before.fork();
    (operation.act)(&fs, &mut Heard::default()).expect("rebuilt");
    assert_eq!(index_files(&fs).intersection(&files).count(), 1, "the segment of `a`, which is retired again");
    operation.survives_a_cut_at_every_step();
}

fn skill(body: &str) -> NewSkill {
    let [name, description] = ["Release", "How to release"].map(str::to_owned);
    NewSkill { name, description, body: body.to_owned(), arguments: Vec::new() }
}

fn agent(persona: &str) -> NewAgent {
    let [name, description] = ["Captain", "Steers"].map(str::to_owned);
    NewAgent { name, description, persona: persona.to_owned(), skills: vec!["release".to_owned()] }
}

#[test]
fn skills_and_agents_are_all_or_nothing() {
    let skill_learn = |fs: &CrashFs, _: &mut Heard| {
        KnowledgeBase::open_on(fs.storage(), options())?.skill_learn(&skill("Tag, then push.\n")).map(drop)
    };
    let agent_create = |fs: &CrashFs, _: &mut Heard| {
        KnowledgeBase::open_on(fs.storage(), options())?.agent_create(&agent("You steer.\n")).map(drop)
    };
    let before = prepared(|kb| drop(kb.skill_learn(&skill("Push.\n")).expect("learned")));
    for syncs in [
        Operation::new(&before, skill_learn).survives_a_cut_at_every_step().syncs,
        Operation::new(&before, agent_create).survives_a_cut_at_every_step().syncs,
    ] {
        assert_eq!(syncs, 4);
    }
}

#[test]
fn a_recovery_is_all_or_nothing() {
    let whole = prepared(|kb| {
        with_garbage(kb);
        kb.skill_learn(&skill("Push.\n")).expect("learned");
    });
    let expected = open(&whole.fork());
    let known: BTreeSet<SectionId> = sections_of(&expected).into_iter().chain([kbid(SHARED)]).collect();
    let expected = see(&expected, &known);
    let before = whole.fork();
    before.lose("/kb/head");
    let recover = |fs: &CrashFs| KnowledgeBase::recover_on(fs.storage(), options());
    let fs = before.fork();
    let taken = fs.taken();
    assert_eq!(see(&recover(&fs).expect("recovered"), &known), expected);
    for budget in 0..=fs.taken() - taken {
        let cut = before.fork();
        cut.cut_after(budget);
        let outcome = recover(&cut);
        for (i, image) in cut.images().into_iter().enumerate() {
            let at = format!("after {budget} steps, disk {i}");
            let kb = match KnowledgeBase::open_on(image.storage(), options()) {
                Ok(kb) => kb,
                Err(StoreError::NoDatabase { .. }) if outcome.is_err() => recover(&image).expect("recovered"),
                Err(error) => panic!("{at}: {error}"),
            };
            assert_eq!(see(&kb, &known), expected, "{at}");
            learn(&kb, "zzyzx", "# Zzyzx\n");
            assert_eq!(errors(&kb), [""; 0], "{at}");
            leaves_nothing_behind(&image, &at);
        }
    }
}
