//! One bit flipped anywhere in any file, and files that are torn or gone.
//!
//! **Invariant:** damage is seen, named by file and place, and costs what it hit and nothing else; what can be made
//! again is made again.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

use kb_core::{Problem, SectionId, Severity};
use kb_store::{Gc, KnowledgeBase, ListFilter, NewSkill, Search, Silent, StoreError, Target, Text};

use crate::support::{Base, id, kbid, options, pass, text};

const PAGE: u64 = 1024;
const SHARED: &str = "## Licence\n\nfree as in air\n";
const SECRET: &str = "# Secret\n\nxyzzy plugh\n";

/// A base with all there is, and what it holds.
struct Sound {
    base: Base,
    files: BTreeMap<String, Vec<u8>>,
    documents: BTreeMap<String, Vec<u8>>,
    sections: BTreeMap<SectionId, Vec<u8>>,
}

/// Words that compress as badly as prose does.
fn prose(seed: u32, words: usize) -> String {
    let mut state = seed;
    let mut text = String::new();
    for i in 0..words {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let end = if i % 12 == 11 { ".\n" } else { " " };
        write!(text, "w{}{end}", (state >> 12) % 900).expect("it is memory");
    }
    text
}

fn guide() -> String {
    let mut guide = "---\ntitle: Guide\ntags: [ops]\n---\n# Guide\n\nThe valve opens.\n\n".to_owned();
    for n in 0..14 {
        write!(guide, "## Part {n}\n\n{}\n", prose(n, 160)).expect("it is memory");
    }
    guide + SHARED
}

impl Sound {
    /// Three packs, of which the first was merged; two segments, of which one has dead documents.
    fn new() -> Self {
        let base = Base::new();
        let mut documents = BTreeMap::new();
        for body in ["Pull.\n", "Push.\n"] {
            let [name, description] = ["Release", "How to"].map(str::to_owned);
            let skill = NewSkill { name, description, body: body.to_owned(), ..NewSkill::default() };
            base.kb.skill_learn(&skill).expect("learned");
        }
        base.learn("guide", &format!("# Guide\n\nThe valve closes.\n\n{SHARED}"));
        base.learn("guide", &guide());
        documents.insert("guide".to_owned(), guide().into_bytes());
        assert_eq!(base.kb.status().expect("status").packs, 1, "four were merged");
        let small = text("small", "# Small\n\nbut mine\n");
        let note = text("note", &format!("# Note\n\nnew\n\n{SHARED}"));
        for text in [&small, &note] {
            documents.insert(text.docid.as_ref().expect("it has one").to_string(), text.content.clone());
        }
        base.kb.learn_batch(&mut [text("secret", SECRET), small, note].into_iter(), &mut Silent).expect("learned");
        // The next commit deletes what the merge has replaced: only files that the head names are left.
        pass(601);
        base.unlearn(Target::Document(id("secret")));
        let skill = base.document("skill-release").expect("it is there");
        documents.insert("skill-release".to_owned(), skill.into_bytes());
        let status = base.kb.status().expect("status");
        assert!(status.packs == 3 && status.index.segments >= 2 && status.retired == 0, "{status:?}");
        let mut sections = BTreeMap::new();
        for docid in documents.keys() {
            for revision in base.kb.history(&id(docid)).expect("it has one").revisions {
                for kbid in revision.kbids {
                    sections.insert(kbid, base.kb.section_bytes(kbid).expect("readable"));
                }
            }
        }
        let mut files = BTreeMap::new();
        for folder in ["", "packs", "index"] {
            for entry in std::fs::read_dir(base.database().join(folder)).expect("readable") {
                let path = entry.expect("readable").path();
                if path.is_file() && !path.ends_with("lock") {
                    let name = path.strip_prefix(base.database()).expect("it is in it").display().to_string();
                    files.insert(name, std::fs::read(path).expect("readable"));
                }
            }
        }
        let index_files = files.keys().filter(|name| name.starts_with("index/")).count();
        assert_eq!(index_files, status.index.segments + 1, "one segment has dead documents");
        Self { base, files, documents, sections }
    }

    /// A database with these files, in a folder of its own.
    fn copy(&self) -> Copy {
        let folder = tempfile::tempdir().expect("a folder for the test");
        for name in ["packs", "index"] {
            std::fs::create_dir(folder.path().join(name)).expect("writable");
        }
        for (name, bytes) in &self.files {
            std::fs::write(folder.path().join(name), bytes).expect("writable");
        }
        Copy(folder)
    }

    fn names(&self, beginning: &str) -> Vec<String> {
        self.files.keys().filter(|name| name.starts_with(beginning)).cloned().collect()
    }

    /// Names of the files whose loss or damage hits the text of the guide: the largest pack.
    fn largest(&self, beginning: &str) -> String {
        let largest = self.names(beginning).into_iter().max_by_key(|name| self.files[name].len());
        largest.expect("there is one")
    }

    /// Reads all there is. Nothing that is read is wrong, and what was unlearned is not read. Returns how many sections
    /// and how many documents cannot be read.
    fn losses(&self, kb: &KnowledgeBase, at: &str) -> (usize, usize) {
        let mut sections = 0;
        for (kbid, content) in &self.sections {
            match kb.section_bytes(*kbid) {
                Ok(bytes) => assert_eq!(&bytes, content, "{at}: {kbid}"),
                Err(StoreError::Damaged { .. }) => sections += 1,
                Err(error) => panic!("{at}: {kbid}: {error}"),
            }
        }
        let mut documents = 0;
        for (docid, content) in &self.documents {
            match kb.document_bytes(&id(docid)) {
                Ok(bytes) => assert_eq!(&bytes, content, "{at}: {docid}"),
                Err(StoreError::Damaged { .. }) => documents += 1,
                Err(error) => panic!("{at}: {docid}: {error}"),
            }
        }
        let secret = kb.section_bytes(kbid(SECRET));
        assert!(secret.is_err() && kb.document_bytes(&id("secret")).is_err(), "{at}: what was unlearned is read");
        (sections, documents)
    }

    fn is_found(&self, kb: &KnowledgeBase, query: &str, at: &str) -> BTreeSet<String> {
        let answer = kb.search(&Search::new(query)).unwrap_or_else(|error| panic!("{at}: {error}"));
        let found: BTreeSet<String> = answer.hits.iter().map(|hit| hit.docid.to_string()).collect();
        assert!(found.iter().all(|docid| self.documents.contains_key(docid)), "{at}: {found:?}");
        found
    }
}

struct Copy(tempfile::TempDir);

impl Copy {
    fn path(&self) -> &Path {
        self.0.path()
    }

    fn open(&self) -> KnowledgeBase {
        KnowledgeBase::open(self.path(), options()).expect("a damaged base opens")
    }

    /// Puts other bytes in a file's place, as damage does, and in a file of its own: others may have it mapped.
    fn put(&self, name: &str, bytes: &[u8]) {
        let path = self.path().join(name);
        std::fs::remove_file(&path).expect("it was there");
        std::fs::write(&path, bytes).expect("writable");
    }
}

fn problems(kb: &KnowledgeBase) -> Vec<Problem> {
    let report = kb.check(&mut Silent).expect("checked");
    let problems: Vec<Problem> = report.problems.into_iter().filter(|p| p.severity == Severity::Error).collect();
    assert_eq!(report.ok, problems.is_empty());
    problems
}

/// Which bytes of a file to flip a bit in: so many of them, and more of the checksums at its end.
fn places(bytes: &[u8], count: usize) -> BTreeSet<usize> {
    let (len, tail) = (bytes.len(), bytes.len().saturating_sub(120));
    let every = |from: usize, step: usize| (from..len).step_by(step.max(1));
    every(0, (tail / count) | 1).chain(every(tail, 9)).collect()
}

fn flipped(bytes: &[u8], at: usize) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[at] ^= 1 << (at % 8);
    bytes
}

/// Eight bytes turned over.
fn wiped(bytes: &[u8], at: usize) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes.iter_mut().skip(at).take(8).for_each(|byte| *byte = !*byte);
    bytes
}

/// The length of what a paged file is for, which its checksums follow.
fn payload(bytes: &[u8]) -> u64 {
    let footer = &bytes[bytes.len() - 48..];
    u64::from_le_bytes(footer[16..24].try_into().expect("eight bytes"))
}

/// Fails unless `check` names the file, at a place that covers the flipped byte.
fn is_named(kb: &KnowledgeBase, name: &str, bytes: &[u8], at: usize) {
    let problems = problems(kb);
    let at = at as u64;
    let covers = |offset: u64| if at < payload(bytes) { offset == at / PAGE * PAGE } else { offset >= payload(bytes) };
    let named = problems.iter().any(|p| p.file.as_deref() == Some(name) && p.offset.is_some_and(covers));
    assert!(named, "{name} at {at} of {}: {problems:?}", bytes.len());
}

/// What a pack's trailer, table and directory say: where each block lies, header and all, and how many records it has.
fn blocks(bytes: &[u8]) -> Vec<(std::ops::Range<usize>, usize)> {
    let u64_at = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes")) as usize;
    let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes")) as usize;
    let trailer = payload(bytes) as usize - 64;
    let (table, directory, replaced) = (u64_at(trailer), u64_at(trailer + 8), u64_at(trailer + 16));
    let entries: Vec<usize> = bytes[directory..replaced].chunks_exact(22).map(|entry| usize::from(entry[16])).collect();
    let block = |(number, at): (usize, usize)| {
        let start = u64_at(at);
        (start..start + 16 + u32_at(at + 8), entries.iter().filter(|&&block| block == number).count())
    };
    (table..directory).step_by(16).enumerate().map(block).collect()
}

#[test]
fn a_flipped_bit_in_a_pack_costs_nothing() {
    let sound = Sound::new();
    let copy = sound.copy();
    for name in sound.names("packs/") {
        let bytes = &sound.files[&name];
        let trailer = payload(bytes) as usize - 64..payload(bytes) as usize;
        for at in places(bytes, 120).into_iter().chain(trailer) {
            copy.put(&name, &flipped(bytes, at));
            let kb = copy.open();
            let place = format!("{name} at {at} of {}", bytes.len());
            is_named(&kb, &name, bytes, at);
            assert_eq!(sound.losses(&kb, &place), (0, 0), "{place}");
            assert!(sound.is_found(&kb, "valve", &place).contains("guide"), "{place}");
        }
        copy.put(&name, bytes);
    }
}

#[test]
fn collecting_mends_a_pack_with_a_flipped_bit() {
    let sound = Sound::new();
    let name = sound.largest("packs/");
    let bytes = &sound.files[&name];
    let (range, _) = blocks(bytes).remove(0);
    let copy = sound.copy();
    copy.put(&name, &flipped(bytes, range.start + 100));
    let kb = copy.open();
    assert_eq!(problems(&kb).len(), 1);
    kb.gc(&Gc::default(), &mut Silent).expect("collected");
    assert_eq!((problems(&copy.open()), sound.losses(&copy.open(), "collected")), (vec![], (0, 0)));
}

#[test]
fn a_wiped_spot_in_a_pack_costs_what_is_packed_there() {
    let sound = Sound::new();
    let copy = sound.copy();
    let mut lost = 0;
    for name in sound.names("packs/") {
        let bytes = &sound.files[&name];
        let blocks = blocks(bytes);
        // Eight bytes that lie on both sides of a border are named by the first of two places; those are left out.
        let crosses = |at: &usize| {
            [payload(bytes), (*at as u64).next_multiple_of(PAGE)]
                .iter()
                .any(|&border| (*at as u64) < border && border < *at as u64 + 8)
        };
        for at in places(bytes, 30).into_iter().filter(|at| !crosses(at)) {
            copy.put(&name, &wiped(bytes, at));
            let kb = copy.open();
            let place = format!("{name} at {at} of {}", bytes.len());
            is_named(&kb, &name, bytes, at);
            let (sections, documents) = sound.losses(&kb, &place);
            // What lies in the stream of a block may go with it; damage anywhere else costs nothing.
            let hit = blocks.iter().filter(|(range, _)| range.start + 16 < at + 8 && at < range.end);
            let most: usize = hit.map(|(_, records)| records).sum();
            assert!(sections <= most, "{place}: {sections} sections of {most} are lost");
            assert!(documents <= most.min(sound.documents.len()), "{place}: {documents} documents are lost");
            let found = sound.is_found(&kb, "valve", &place);
            assert!(documents > 0 || found.contains("guide"), "{place}");
            lost += sections;
        }
        copy.put(&name, bytes);
    }
    assert!(lost > 0, "none was lost: this damages nothing");
}

#[test]
fn learning_again_repairs_and_collecting_loses_nothing() {
    let sound = Sound::new();
    let name = sound.largest("packs/");
    let bytes = &sound.files[&name];
    for (range, _) in blocks(bytes) {
        let at = range.start.midpoint(range.end);
        let place = format!("{name} at {at} of {}", bytes.len());
        let copy = sound.copy();
        copy.put(&name, &wiped(bytes, at));
        let kb = copy.open();
        let lost = sound.losses(&kb, &place);
        assert!(lost.1 > 0, "{place}");
        kb.gc(&Gc::default(), &mut Silent).expect("collected");
        for n in 0..5 {
            kb.learn(&text("more", &format!("# More {n}\n"))).expect("learned");
        }
        assert_eq!(sound.losses(&copy.open(), &place), lost, "{place}, collected and merged");
        for (docid, content) in &sound.documents {
            if docid != "skill-release" {
                let content = String::from_utf8(content.clone()).expect("it was text");
                let again = Text { again: true, ..text(docid, &content) };
                kb.learn(&again).unwrap_or_else(|error| panic!("{place}: {docid}: {error}"));
                assert_eq!(kb.document_bytes(&id(docid)).expect("repaired"), content.as_bytes(), "{place}: {docid}");
            }
        }
        let kb = copy.open();
        let documents: Vec<_> = sound.documents.keys().filter(|docid| *docid != "skill-release").collect();
        for docid in &documents {
            assert_eq!(kb.document_bytes(&id(docid)).expect("repaired"), sound.documents[*docid], "{place}");
        }
        kb.rebuild(&mut Silent).expect("rebuilt");
        assert_eq!(sound.is_found(&kb, "valve", &place), BTreeSet::from(["guide".to_owned()]), "{place}");
    }
}

#[test]
fn a_flipped_bit_in_the_index_is_healed() {
    let sound = Sound::new();
    let copy = sound.copy();
    for name in sound.names("index/") {
        let bytes = &sound.files[&name];
        for (i, at) in places(bytes, 16).into_iter().enumerate() {
            copy.put(&name, &flipped(bytes, at));
            let place = format!("{name} at {at} of {}", bytes.len());
            let kb = copy.open();
            is_named(&kb, &name, bytes, at);
            for query in ["valve", "mine", "licence", "\"opens\"", "last*"] {
                sound.is_found(&kb, query, &place);
            }
            assert_eq!(sound.is_found(&kb, "valve", &place), BTreeSet::from(["guide".to_owned()]), "{place}");
            if i % 12 == 0 {
                assert_eq!(sound.losses(&kb, &place), (0, 0));
                let other = Sound::other(&sound, &name, at);
                other.open().rebuild(&mut Silent).expect("rebuilt");
                assert_eq!(problems(&other.open()), [], "{place}, rebuilt");
                let other = Sound::other(&sound, &name, at);
                other.open().learn(&text("note", "# Note\n\nnewer\n")).expect("learned");
                assert_eq!(sound.is_found(&other.open(), "newer", &place), BTreeSet::from(["note".to_owned()]));
                let other = Sound::other(&sound, &name, at);
                other.open().gc(&Gc::default(), &mut Silent).expect("collected");
                assert_eq!(problems(&other.open()), [], "{place}, collected");
            }
        }
        copy.put(&name, bytes);
    }
}

impl Sound {
    fn other(&self, name: &str, at: usize) -> Copy {
        let copy = self.copy();
        copy.put(name, &flipped(&self.files[name], at));
        copy
    }
}

#[test]
fn a_flipped_bit_in_the_head_is_an_error_and_is_recovered_from() {
    let sound = Sound::new();
    let bytes = &sound.files["head"];
    let copy = sound.copy();
    for at in 0..bytes.len() {
        copy.put("head", &flipped(bytes, at));
        match KnowledgeBase::open(copy.path(), options()) {
            Err(StoreError::NoHead { .. }) => {}
            other => panic!("at {at}: {other:?}"),
        }
    }
    let kb = KnowledgeBase::recover(copy.path(), options()).expect("recovered");
    assert_eq!((problems(&kb), sound.losses(&kb, "recovered")), (vec![], (0, 0)));
}

#[test]
fn a_lost_head_is_written_anew_without_what_was_unlearned() {
    let sound = Sound::new();
    let copy = sound.copy();
    std::fs::remove_file(copy.path().join("head")).expect("it was there");
    assert!(matches!(KnowledgeBase::open(copy.path(), options()), Err(StoreError::NoHead { .. })));
    assert!(matches!(KnowledgeBase::create(copy.path(), options()), Err(StoreError::NoHead { .. })));
    let kb = KnowledgeBase::recover(copy.path(), options()).expect("recovered");
    assert_eq!((problems(&kb), sound.losses(&kb, "recovered")), (vec![], (0, 0)));
    let list = |kb: &KnowledgeBase| kb.list(&ListFilter::default()).expect("listed").documents;
    assert_eq!(list(&kb), list(&sound.base.kb));
    assert_eq!(kb.status().expect("status").source_bytes, sound.base.kb.status().expect("status").source_bytes);
    assert_eq!(sound.is_found(&kb, "valve", "recovered"), BTreeSet::from(["guide".to_owned()]));
    kb.learn(&text("more", "# More\n")).expect("learned");
}

#[test]
fn torn_and_missing_files_lose_nothing_else() {
    let sound = Sound::new();
    for name in sound.names("packs/").into_iter().chain(sound.names("index/")) {
        let bytes = &sound.files[&name];
        let lens = [0, 1, 47, bytes.len() / 3, bytes.len() - 49, bytes.len() - 1];
        for len in lens.into_iter().map(Some).chain([None]) {
            let copy = sound.copy();
            match len {
                Some(len) => copy.put(&name, &bytes[..len]),
                None => std::fs::remove_file(copy.path().join(&name)).expect("it was there"),
            }
            let kb = copy.open();
            let place = format!("{name} cut at {len:?}");
            assert!(problems(&kb).iter().any(|p| p.file.as_ref() == Some(&name)), "{place}");
            if name.starts_with("index/") {
                assert_eq!(sound.losses(&kb, &place), (0, 0), "{place}");
                kb.rebuild(&mut Silent).expect("rebuilt");
                assert_eq!(problems(&kb), [], "{place}, rebuilt");
            } else if name != sound.largest("packs/") {
                // What only the newer packs say is not known without them; what they do not speak of is whole.
                assert_eq!(kb.document_bytes(&id("guide")).expect("readable"), sound.documents["guide"], "{place}");
            }
        }
    }
}

#[test]
fn a_pack_that_is_gone_costs_its_documents_which_are_named_and_then_the_base_goes_on() {
    for empty in [false, true] {
        let base = Base::new();
        base.learn("one", "# One\n\nalpha\n");
        let pack =
            std::fs::read_dir(base.database().join("packs")).expect("there").next().expect("one").expect("one").path();
        if empty {
            std::fs::write(&pack, "").expect("writable");
        } else {
            std::fs::remove_file(&pack).expect("it was there");
        }
        let kb = KnowledgeBase::open(base.database(), options()).expect("the head is there");
        let lost = |problems: &[kb_core::Problem]| {
            problems.iter().any(|problem| problem.kind == "lost-document" && problem.docid == Some(id("one")))
        };
        assert!(lost(&kb.check(&mut Silent).expect("checked").problems));
        assert!(lost(&kb.rebuild(&mut Silent).expect("rebuilt").problems));
        assert_eq!(kb.check(&mut Silent).expect("checked").problems, []);
        kb.learn(&text("one", "# One\n\nalpha\n")).expect("learned again");
        assert_eq!(base.search("alpha"), ["one"]);
    }
}
