//! Many processes on one base: writers wait their turn, readers see whole commits, and a dead writer is in nobody's way.
//!
//! A process is this test binary started again: it runs [`worker`] alone, with the job in its environment.
//!
//! **Invariant:** what a worker said it had learned is in the base, whatever became of the worker.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use kb_store::{
    ImportOptions, KnowledgeBase, ListFilter, LockReport, Observer, Options, Progress, Search, Silent, StoreError, Text,
};

use crate::support::{Base, id, options, pass, text};

const WRITERS: usize = 8;
const TEXTS: usize = 200;
/// Every so many texts a writer writes the two documents that always go together.
const PAIR_EVERY: usize = 20;

fn real_options(command: &str) -> Options {
    Options { wait: Duration::from_mins(2), command: command.to_owned(), ..Options::new(SystemTime::now) }
}

/// Starts this binary again as a worker. It begins once its standard input is closed or written to.
fn start(job: &str, name: &str, database: &Path) -> Child {
    Command::new(std::env::current_exe().expect("a test has a binary"))
        .args(["--exact", "concurrency::worker", "--nocapture", "--quiet"])
        .env("KB_STORE_JOB", job)
        .env("KB_STORE_NAME", name)
        .env("KB_STORE_DATABASE", database)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts")
}

/// Lets workers begin.
fn let_go(workers: &mut [Child]) {
    for worker in workers {
        drop(worker.stdin.take());
    }
}

/// What a worker says, line by line.
struct Said(BufReader<ChildStdout>);

impl Said {
    fn by(child: &mut Child) -> Self {
        Self(BufReader::new(child.stdout.take().expect("it is piped")))
    }
}

impl Iterator for Said {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        let mut line = String::new();
        loop {
            line.clear();
            if self.0.read_line(&mut line).ok()? == 0 {
                return None;
            }
            // The test harness writes to the same stream.
            if let Some((_, said)) = line.trim_end().split_once("worker: ") {
                return Some(said.to_owned());
            }
        }
    }
}

fn say(what: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "worker: {what}").and_then(|()| out.flush()).expect("the parent listens");
}

fn await_start() {
    let mut one = [0];
    let _ = std::io::stdin().read(&mut one).expect("a pipe");
}

#[test]
fn worker() {
    let Ok(job) = std::env::var("KB_STORE_JOB") else { return };
    let name = std::env::var("KB_STORE_NAME").expect("the parent gives it");
    let database = std::env::var_os("KB_STORE_DATABASE").expect("the parent gives it");
    let database = Path::new(&database);
    match job.as_str() {
        "learn" => learn_texts(database, &name),
        "read" => read_whole_commits(database),
        "learn-on" => learn_until_killed(database, &name),
        "begin" => begin(database, &name),
        "hold" => hold_the_lock(database),
        "none" => {}
        other => panic!("no job is called `{other}`"),
    }
}

fn learn_texts(database: &Path, name: &str) {
    let kb = KnowledgeBase::open(database, real_options(name)).expect("it is there");
    await_start();
    for i in 0..TEXTS {
        let report = kb.learn(&text(&format!("{name}-{i}"), &unique(name, i))).expect("learned");
        assert_eq!(report.added, 1);
        if i % PAIR_EVERY == 0 {
            let number = format!("{name}{i}");
            let lines = format!(
                "{{\"op\":\"learn\",\"docid\":\"left\",\"content\":\"# Number {number}\\n\"}}\n\
                 {{\"op\":\"learn\",\"docid\":\"right\",\"content\":\"# Number {number}\\n\"}}\n"
            );
            let report = kb.import(&mut lines.as_bytes(), &ImportOptions::default(), &mut |_| {}).expect("imported");
            assert_eq!(report.done, 2);
        }
    }
    say("done");
}

fn unique(name: &str, i: usize) -> String {
    format!("# Text {i} of {name}\n\nOnly {name} wrote {i}.\n")
}

/// Reads until told to stop, and fails on anything that is not one commit.
fn read_whole_commits(database: &Path) {
    let kb = KnowledgeBase::open_read_only(database, real_options("reader")).expect("it is there");
    say("reading");
    let stop = std::thread::spawn(await_start);
    let (mut rounds, mut before, mut generation) = (0, 0, 0);
    let mut has_pair = false;
    while !stop.is_finished() || rounds == 0 {
        match kb.content(&["left".to_owned(), "right".to_owned()]) {
            Ok(both) => {
                let (left, right) = both.content.split_once("\n\n").expect("a blank line stands between");
                assert_eq!(left, right.trim_end(), "two commits in one answer");
            }
            Err(StoreError::DocumentNotFound { .. }) if !has_pair => {}
            Err(other) => panic!("a reader sees no error: {other:?}"),
        }
        let answer = kb.search(&Search::new("number")).expect("a reader sees no error");
        assert_eq!(answer.incomplete, None, "the index is always whole");
        let titles: BTreeSet<&str> = answer.hits.iter().map(|hit| hit.title.as_str()).collect();
        assert!(titles.len() <= 1, "two commits in one answer: {titles:?}");
        // What reads the whole base is done now and then.
        if rounds % 16 == 0 {
            let list = kb.list(&ListFilter::default()).expect("a reader sees no error");
            let title = |id: &str| list.documents.iter().find(|d| d.docid.as_str() == id).map(|d| d.title.clone());
            assert_eq!(title("left"), title("right"), "two commits in one list");
            assert!(list.documents.len() >= before, "a commit is gone again");
            assert!(list.generation >= generation, "time went back");
            (before, generation, has_pair) = (list.documents.len(), list.generation, title("left").is_some());
        }
        if rounds % 64 == 0 {
            let report = kb.check(&mut Silent).expect("a reader sees no error");
            assert!(report.ok && report.problems.is_empty(), "{:?}", report.problems);
        }
        rounds += 1;
        // A reader that never rests would take the processors that the writers need.
        std::thread::sleep(Duration::from_millis(5));
    }
    say(&format!("rounds {rounds}"));
}

#[test]
fn eight_writers_keep_all_that_they_learn_and_readers_see_whole_commits() {
    let base = Base::new();
    let mut readers: Vec<Child> = (0..2).map(|i| start("read", &format!("r{i}"), &base.database())).collect();
    let mut said: Vec<Said> = readers.iter_mut().map(Said::by).collect();
    for said in &mut said {
        assert_eq!(said.next().as_deref(), Some("reading"));
    }

    let mut writers: Vec<Child> = (0..WRITERS).map(|i| start("learn", &format!("w{i}"), &base.database())).collect();
    let_go(&mut writers);
    for mut writer in writers {
        assert_eq!(Said::by(&mut writer).last().as_deref(), Some("done"));
        assert!(writer.wait().expect("it ran").success());
    }
    for (mut reader, mut said) in readers.into_iter().zip(said) {
        drop(reader.stdin.take());
        let rounds = said.next().expect("a reader that failed says nothing");
        assert!(rounds.starts_with("rounds ") && rounds != "rounds 0", "{rounds}");
        assert!(reader.wait().expect("it ran").success());
    }

    let listed = base.kb.list(&ListFilter::default()).expect("listed");
    let docids: BTreeSet<&str> = listed.documents.iter().map(|d| d.docid.as_str()).collect();
    for writer in (0..WRITERS).map(|i| format!("w{i}")) {
        for i in 0..TEXTS {
            let docid = format!("{writer}-{i}");
            assert!(docids.contains(docid.as_str()), "{docid} is lost");
            assert_eq!(base.document(&docid), Some(unique(&writer, i)));
        }
    }
    assert_eq!(docids.len(), WRITERS * TEXTS + 2);
    assert_eq!(listed.generation as usize, WRITERS * (TEXTS + TEXTS / PAIR_EVERY), "one generation for each commit");
    assert!(base.problems().is_empty());
}

fn learn_until_killed(database: &Path, name: &str) {
    let kb = KnowledgeBase::open(database, real_options(name)).expect("it is there");
    for i in 0.. {
        let docid = format!("{name}-{i}");
        kb.learn(&text(&docid, &unique(name, i).repeat(200))).expect("learned");
        say(&docid);
    }
}

#[test]
fn the_lock_of_a_killed_writer_dies_with_it_and_nothing_acknowledged_is_lost() {
    let base = Base::new();
    let mut acknowledged: Vec<String> = Vec::new();
    for round in 0..5 {
        let mut writer = start("learn-on", &format!("k{round}"), &base.database());
        let mut said = Said::by(&mut writer);
        acknowledged.extend(said.by_ref().take(3 + 4 * round));
        writer.kill().expect("it runs");
        writer.wait().expect("it ran");
        acknowledged.extend(said);

        let impatient = Options { wait: Duration::ZERO, ..real_options("next") };
        let kb = KnowledgeBase::open(base.database(), impatient).expect("it is there");
        kb.learn(&text(&format!("after-{round}"), "# After\n")).expect("nobody holds the lock");
        for docid in &acknowledged {
            assert!(base.document(docid).is_some(), "{docid} was acknowledged");
        }
    }
    assert!(acknowledged.len() > 5 * 3, "{acknowledged:?}");
    assert!(base.problems().is_empty());
    base.kb.gc(&kb_store::Gc::default(), &mut Silent).expect("collected");
    let left = std::fs::read_dir(base.database().join("packs")).expect("it is there");
    let unfinished = left.filter(|e| e.as_ref().is_ok_and(|e| e.file_name().to_string_lossy().starts_with("tmp-")));
    assert_eq!(unfinished.count(), 0, "gc removes what the killed ones left");
}

fn begin(database: &Path, name: &str) {
    await_start();
    let kb = match KnowledgeBase::create(database, real_options(name)) {
        Ok(kb) => {
            say("created");
            kb
        }
        Err(StoreError::CannotCreate { .. }) => {
            say("found");
            KnowledgeBase::open(database, real_options(name)).expect("another has created it")
        }
        Err(other) => panic!("{other:?}"),
    };
    kb.learn(&text(name, &unique(name, 0))).expect("learned");
    say("learned");
}

#[test]
fn ten_processes_begin_a_base_at_once_and_one_creates_it() {
    for _ in 0..4 {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let database = folder.path().join(".kbdb");
        let mut workers: Vec<Child> = (0..10).map(|i| start("begin", &format!("p{i}"), &database)).collect();
        let_go(&mut workers);
        // Meanwhile the base is there or not, and nothing between.
        let mut opened = None;
        while opened.is_none() {
            match KnowledgeBase::open(&database, real_options("reader")) {
                Ok(kb) => opened = Some(kb),
                Err(StoreError::NoDatabase { .. }) => {}
                Err(other) => panic!("{other:?}"),
            }
        }
        let mut created = 0;
        for mut worker in workers {
            let said: Vec<String> = Said::by(&mut worker).collect();
            assert_eq!(said.last().map(String::as_str), Some("learned"), "{said:?}");
            created += said.iter().filter(|line| *line == "created").count();
            assert!(worker.wait().expect("it ran").success());
        }
        let kb = opened.expect("the loop ends with one");
        assert_eq!((created, kb.status().expect("status").documents), (1, 10));
        assert!(kb.check(&mut Silent).expect("checked").problems.is_empty());
    }
}

/// Says that it holds the lock, and holds it until it is told to let go.
struct Holder;

impl Observer for Holder {
    fn progress(&mut self, _: &Progress<'_>) -> bool {
        say("holding");
        await_start();
        true
    }
}

fn hold_the_lock(database: &Path) {
    let kb = KnowledgeBase::open(database, real_options("kb rebuild")).expect("it is there");
    kb.rebuild(&mut Holder).expect("rebuilt");
}

#[test]
fn a_held_lock_is_busy_with_its_holder_and_keeps_no_reader_waiting() {
    let base = Base::new();
    base.learn("a", "# A\n\nkingfisher\n");
    let mut holder = start("hold", "holder", &base.database());
    assert_eq!(Said::by(&mut holder).next().as_deref(), Some("holding"));

    let wait = Duration::from_millis(20);
    let kb = KnowledgeBase::open(base.database(), Options { wait, ..real_options("me") }).expect("it is there");
    let error = kb.learn(&text("b", "# B\n")).expect_err("another holds the lock");
    assert!(error.is_retryable() && error.code() == "busy", "{error:?}");
    let StoreError::Busy { holder: Some(named), waited } = &error else { panic!("{error:?}") };
    assert_eq!((named.pid, named.command.as_str()), (holder.id(), "kb rebuild"));
    assert!(*waited >= wait && named.since.ends_with('Z'), "{error:?}");
    assert_eq!(kb.document_bytes(&id("a")).expect("readers do not wait"), b"# A\n\nkingfisher\n");
    assert!(kb.check(&mut Silent).expect("nor does check").ok);
    let LockReport { held, pid, .. } =
        KnowledgeBase::doctor(base.database(), real_options("doctor")).expect("looked at").lock;
    assert_eq!((held, pid), (true, Some(holder.id())));

    holder.kill().expect("it runs");
    holder.wait().expect("it ran");
    let impatient = Options { wait: Duration::ZERO, ..real_options("me") };
    let kb = KnowledgeBase::open(base.database(), impatient).expect("it is there");
    assert_eq!(kb.learn(&text("b", "# B\n")).expect("the lock went with its holder").added, 1);
    let lock = KnowledgeBase::doctor(base.database(), real_options("doctor")).expect("looked at").lock;
    assert!(!lock.held);
}

/// A child has a copy of each descriptor of its parent until it runs its program, the lock's too.
#[test]
fn a_child_that_is_started_meanwhile_does_not_keep_the_lock() {
    let base = Base::new();
    let impatient = Options { wait: Duration::ZERO, ..real_options("me") };
    let kb = KnowledgeBase::open(base.database(), impatient).expect("it is there");
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    let mut child = start("none", "child", &base.database());
                    child.wait().expect("it ran");
                }
            });
        }
        let busy = (0..100).filter(|i| kb.learn(&text("a", &format!("# A\n\n{i}\n"))).is_err()).count();
        done.store(true, Ordering::Relaxed);
        assert_eq!(busy, 0, "times that the lock outlived its holder");
    });
}

#[test]
fn threads_share_a_handle_or_have_their_own() {
    let base = Base::new();
    let database = base.database();
    std::thread::scope(|scope| {
        for thread in 0..6 {
            let (shared, database) = (&base.kb, &database);
            scope.spawn(move || {
                let own = KnowledgeBase::open(database, real_options("thread")).expect("it is there");
                let kb = if thread % 2 == 0 { shared } else { &own };
                for i in 0..10 {
                    // The same text from everywhere is one document, whoever was first.
                    kb.learn(&Text::markdown(format!("# Same {i}\n"))).expect("learned");
                    kb.learn(&text(&format!("t{thread}-{i}"), &format!("# T{thread}\n\n{i}\n"))).expect("learned");
                    assert!(kb.document_bytes(&id(&format!("t{thread}-{i}"))).is_ok(), "what is learned is there");
                }
            });
        }
    });
    let status = base.kb.status().expect("status");
    assert_eq!((status.documents, status.generation), (70, 70));
    assert!(base.problems().is_empty());
}

#[test]
fn a_clock_that_is_set_back_leaves_readers_their_grace() {
    let base = Base::new();
    let files = || -> BTreeSet<_> {
        let folders =
            ["packs", "index"].map(|area| std::fs::read_dir(base.database().join(area)).expect("it is there"));
        folders.into_iter().flatten().map(|entry| entry.expect("readable").path()).collect()
    };
    for i in 0..6 {
        base.learn(&format!("d{i}"), &format!("# D{i}\n"));
    }
    assert!(base.kb.status().expect("status").retired > 0, "commits were merged");
    let reader = KnowledgeBase::open_read_only(base.database(), options()).expect("it is there");
    reader.status().expect("it has opened its files");
    let before = files();
    let earlier = || crate::support::clock() - Duration::from_secs(5);
    let early = KnowledgeBase::open(base.database(), Options::new(earlier)).expect("it is there");
    early.learn(&text("late", "# Late\n")).expect("learned");
    assert!(files().is_superset(&before), "no file goes before the grace is over");
    pass(700);
    early.learn(&text("later", "# Later\n")).expect("learned");
    assert!(!files().is_superset(&before), "then it does");
    assert!(base.problems().is_empty());
}

/// Stops at the first chance.
struct Stop;

impl Observer for Stop {
    fn progress(&mut self, _: &Progress<'_>) -> bool {
        false
    }
}

#[test]
fn what_is_cancelled_leaves_a_whole_base_and_no_lock() {
    let base = Base::new();
    for i in 0..3 {
        base.learn(&format!("d{i}"), &format!("# D{i}\n"));
        base.learn(&format!("d{i}"), &format!("# D{i} again\n"));
    }
    let before = base.kb.status().expect("status");
    let results = [
        base.kb.rebuild(&mut Stop).map(drop),
        base.kb.gc(&kb_store::Gc { history: Some(1) }, &mut Stop).map(drop),
        base.kb.check(&mut Stop).map(drop),
    ];
    for result in results {
        assert!(matches!(result, Err(StoreError::Cancelled)), "{result:?}");
    }
    assert_eq!(base.kb.status().expect("status"), before);
    let mut texts = (0..3).map(|i| text(&format!("new{i}"), "# New\n"));
    let result = base.kb.learn_batch(&mut texts, &mut Stop);
    assert!(matches!(result, Err(StoreError::Cancelled)), "{result:?}");
    let other = KnowledgeBase::open(base.database(), Options { wait: Duration::ZERO, ..real_options("other") });
    other.expect("it is there").learn(&text("last", "# Last\n")).expect("nobody holds the lock");
    assert!(base.problems().is_empty());
}
