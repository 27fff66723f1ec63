//! Any sequence of operations leaves what a simple model of a base says it leaves.
//!
//! **Invariant:** after every step everything that can be asked for is compared: the list, each document's bytes and
//! history, whether each section that ever was can be read, and the counts of `status`.

mod oracle;
mod searching;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use kb_core::{DocumentKind, Outcome, SectionId, UnlearnReport};
use kb_store::{
    Gc, ImportLine, ImportOptions, KnowledgeBase, ListFilter, NewAgent, NewSkill, Silent, StoreError, Target, Text,
    Unlearn,
};
use proptest::prelude::*;

use crate::support::{Base, id, kbid, options, pass};
use oracle::{Given, Oracle, Revision, Unlearned};

/// Texts are made of these; each has a word of its own.
const WORDS: [&str; 8] = ["anchor", "bridge", "cinder", "dapple", "ember", "fathom", "gantry", "hollow"];
const DOCIDS: [&str; 6] = ["a", "b", "c", "d", "e", "f"];
const SKILLS: [&str; 3] = ["sum", "sort", "split"];
const AGENTS: [&str; 2] = ["reader", "writer"];
const TAGS: [&str; 3] = ["Ops", "home", "ops"];

#[derive(Debug, Clone)]
enum Op {
    Learn { document: usize, words: Vec<usize>, tag: Option<usize>, again: bool },
    UnlearnDocument { document: usize, purge: bool },
    UnlearnSection { word: usize, purge: bool },
    UnlearnOccurrence { word: usize, document: usize, purge: bool },
    UnlearnTag(usize),
    UnlearnSource(bool),
    Skill { skill: usize, variant: usize },
    SkillDelete(usize),
    Agent { agent: usize, skills: Vec<usize> },
    AgentDelete(usize),
    Import(Vec<Op>),
    Gc(Option<u32>),
    Rebuild,
    Reopen,
    Pass(u64),
}

fn learn() -> impl Strategy<Value = Op> {
    let words = prop::collection::vec(0..WORDS.len(), 0..5);
    (0..DOCIDS.len(), words, prop::option::of(0..TAGS.len()), prop::bool::weighted(0.2))
        .prop_map(|(document, words, tag, again)| Op::Learn { document, words, tag, again })
}

/// What may stand in an import as well.
fn line() -> impl Strategy<Value = Op> {
    prop_oneof![
        8 => learn(),
        2 => (0..DOCIDS.len()).prop_map(|document| Op::UnlearnDocument { document, purge: false }),
        2 => (0..WORDS.len()).prop_map(|word| Op::UnlearnSection { word, purge: false }),
        2 => (0..WORDS.len(), 0..DOCIDS.len())
            .prop_map(|(word, document)| Op::UnlearnOccurrence { word, document, purge: false }),
        1 => (0..TAGS.len()).prop_map(Op::UnlearnTag),
        2 => (0..SKILLS.len(), 0..2_usize).prop_map(|(skill, variant)| Op::Skill { skill, variant }),
        2 => (0..AGENTS.len(), prop::collection::vec(0..SKILLS.len(), 0..3))
            .prop_map(|(agent, skills)| Op::Agent { agent, skills }),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        12 => line(),
        1 => (0..DOCIDS.len()).prop_map(|document| Op::UnlearnDocument { document, purge: true }),
        1 => (0..WORDS.len()).prop_map(|word| Op::UnlearnSection { word, purge: true }),
        1 => (0..WORDS.len(), 0..DOCIDS.len())
            .prop_map(|(word, document)| Op::UnlearnOccurrence { word, document, purge: true }),
        1 => any::<bool>().prop_map(Op::UnlearnSource),
        1 => (0..SKILLS.len()).prop_map(Op::SkillDelete),
        1 => (0..AGENTS.len()).prop_map(Op::AgentDelete),
        3 => prop::collection::vec(line(), 1..8).prop_map(Op::Import),
        1 => prop::option::of(1..4_u32).prop_map(Op::Gc),
        1 => Just(Op::Rebuild),
        1 => Just(Op::Reopen),
        1 => prop_oneof![Just(1_u64), Just(599), Just(601), Just(90_000)].prop_map(Op::Pass),
    ]
}

fn section(word: usize) -> String {
    format!("## The {0}\n\nAbout a {0}, at some length.\n\n", WORDS[word])
}

fn source(document: usize) -> Option<String> {
    // Half of the documents have a source, in one of two folders.
    ["one", "two", "one"].get(document).map(|folder| format!("{folder}/{}.md", DOCIDS[document]))
}

/// The base under test, and what it should be.
struct Pair {
    base: Base,
    oracle: Oracle,
}

impl Pair {
    fn new() -> Self {
        Self { base: Base::new(), oracle: Oracle::default() }
    }

    fn run(&mut self, op: &Op) {
        match op {
            Op::Learn { document, words, tag, again } => {
                let text = Text {
                    docid: Some(id(DOCIDS[*document])),
                    tags: tag.map(|tag| TAGS[tag].to_owned()).into_iter().collect(),
                    source: source(*document),
                    again: *again,
                    ..Text::markdown(words.iter().copied().map(section).collect::<String>())
                };
                let report = self.base.kb.learn(&text).expect("learned");
                let outcome = self.expect_learned(op);
                assert_eq!(report.documents[0].outcome, outcome);
                let current = self.oracle.documents[DOCIDS[*document]].current();
                assert_eq!(report.documents[0].kbids, current.sections);
            }
            Op::Skill { skill, variant } => {
                let learned = self.base.kb.skill_learn(&new_skill(*skill, *variant)).expect("learned");
                assert_eq!(learned.outcome, Some(self.expect_learned(op)));
            }
            Op::Agent { agent, skills } => match self.base.kb.agent_create(&new_agent(*agent, skills)) {
                Ok(info) => {
                    assert_eq!(info.outcome, Some(self.expect_learned(op)));
                    assert_eq!(info.skills.len(), skills.len());
                }
                Err(StoreError::SkillNotFound { id, .. }) => {
                    let missing = skills.iter().find(|&&skill| !self.has_skill(skill)).expect("all are there");
                    assert_eq!(id, SKILLS[*missing]);
                }
                Err(other) => panic!("{other:?}"),
            },
            Op::Import(lines) => self.import(lines),
            Op::Gc(history) => {
                self.base.kb.gc(&Gc { history: *history }, &mut Silent).expect("collected");
                self.oracle.keep(history.unwrap_or(10) as usize);
            }
            Op::Rebuild => {
                let report = self.base.kb.rebuild(&mut Silent).expect("rebuilt");
                assert_eq!(report.documents, self.oracle.documents.len() as u64);
            }
            Op::Reopen => {
                self.base.kb = KnowledgeBase::open(self.base.database(), options()).expect("it is there");
                self.check();
                self.search();
            }
            Op::Pass(seconds) => pass(*seconds),
            unlearn => {
                let purge = matches!(
                    unlearn,
                    Op::UnlearnDocument { purge: true, .. }
                        | Op::UnlearnSection { purge: true, .. }
                        | Op::UnlearnOccurrence { purge: true, .. }
                );
                let targets = vec![target(unlearn)];
                let dry = Unlearn { targets: targets.clone(), dry_run: true, purge };
                let foreseen = self.base.kb.unlearn(&dry).ok().map(|report| said(&report));
                let done = self.base.kb.unlearn(&Unlearn { targets, dry_run: false, purge });
                let expected = self.expect_unlearned(unlearn);
                assert_eq!(done.as_ref().ok().map(said), expected, "{done:?}");
                assert_eq!(foreseen, expected);
                if let (true, Some(expected)) = (purge, expected) {
                    self.after_purge(&expected);
                }
            }
        }
    }

    fn import(&mut self, lines: &[Op]) {
        let mut input = String::new();
        for line in lines {
            writeln!(input, "{}", json(line)).expect("a string takes it");
        }
        let mut results: Vec<ImportLine> = Vec::new();
        let mut bytes = input.as_bytes();
        let report = self
            .base
            .kb
            .import(&mut bytes, &ImportOptions::default(), &mut |line| results.push(line.clone()))
            .expect("imported");
        assert_eq!((report.lines, results.len()), (lines.len() as u64, lines.len()));
        for (line, result) in lines.iter().zip(&results) {
            let expected = match line {
                Op::Agent { skills, .. } if skills.iter().any(|&skill| !self.has_skill(skill)) => None,
                Op::Learn { .. } | Op::Skill { .. } | Op::Agent { .. } => Some(self.expect_learned(line)),
                unlearn => self.expect_unlearned(unlearn).map(|_| Outcome::Removed),
            };
            assert_eq!((result.ok, result.outcome), (expected.is_some(), expected.unwrap_or(Outcome::Failed)));
        }
    }

    fn has_skill(&self, skill: usize) -> bool {
        self.oracle.documents.contains_key(&skill_docid(skill))
    }

    fn expect_learned(&mut self, op: &Op) -> Outcome {
        match op {
            Op::Learn { document, words, tag, again } => {
                let sections = words.iter().map(|&word| self.text(section(word))).collect();
                let tags = tag.map(|tag| TAGS[tag].to_owned()).into_iter().collect();
                let given = Given { sections, tags, skills: Vec::new() };
                self.oracle.learn(DOCIDS[*document], DocumentKind::Document, source(*document), given, *again)
            }
            Op::Skill { skill, variant } => {
                let new = new_skill(*skill, *variant);
                let text = kb_core::Skill::to_text(&new.name, &new.description, &new.arguments, &new.body);
                let given = Given { sections: vec![self.text(text)], tags: Vec::new(), skills: Vec::new() };
                self.oracle.learn(&skill_docid(*skill), DocumentKind::Skill, None, given, false)
            }
            Op::Agent { agent, skills } => {
                let new = new_agent(*agent, skills);
                let docids: Vec<_> = skills.iter().map(|&skill| id(&skill_docid(skill))).collect();
                let text = kb_core::Agent::to_text(&new.name, &new.description, &docids, &new.persona);
                let current = |skill: &usize| {
                    let docid = skill_docid(*skill);
                    let kbid = self.oracle.documents[&docid].current().sections[0];
                    (docid, kbid)
                };
                let skills = skills.iter().map(current).collect();
                let given = Given { sections: vec![self.text(text)], tags: Vec::new(), skills };
                self.oracle.learn(&agent_docid(*agent), DocumentKind::Agent, None, given, false)
            }
            other => panic!("{other:?} learns nothing"),
        }
    }

    fn text(&mut self, text: String) -> SectionId {
        let id = kbid(&text);
        self.oracle.texts.insert(id, text);
        id
    }

    fn expect_unlearned(&mut self, op: &Op) -> Option<Unlearned> {
        let word_kbid = |word: usize| kbid(&section(word));
        match op {
            Op::UnlearnDocument { document, .. } => {
                self.oracle.unlearn_documents(|docid, _| docid == DOCIDS[*document])
            }
            Op::UnlearnSection { word, .. } => self.oracle.unlearn_section(word_kbid(*word)),
            Op::UnlearnOccurrence { word, document, .. } => {
                self.oracle.unlearn_occurrence(word_kbid(*word), DOCIDS[*document])
            }
            Op::UnlearnTag(tag) => {
                let tag = TAGS[*tag].to_lowercase();
                self.oracle.unlearn_documents(|_, document| {
                    document.current().given.tags.iter().any(|own| own.to_lowercase() == tag)
                })
            }
            Op::UnlearnSource(is_one) => {
                let folder = if *is_one { "one/" } else { "two/" };
                self.oracle.unlearn_documents(|_, document| {
                    document.source.as_ref().is_some_and(|source| source.starts_with(folder))
                })
            }
            Op::SkillDelete(skill) => {
                let wanted = skill_docid(*skill);
                self.oracle.unlearn_documents(|docid, _| docid == wanted)
            }
            Op::AgentDelete(agent) => {
                let wanted = agent_docid(*agent);
                self.oracle.unlearn_documents(|docid, _| docid == wanted)
            }
            other => panic!("{other:?} unlearns nothing"),
        }
    }

    /// A purge drops the kept revisions of edited documents, and those that list what was purged, and collects.
    fn after_purge(&mut self, done: &Unlearned) {
        self.oracle.keep(10);
        for (docid, document) in &mut self.oracle.documents {
            if done.edited.contains(docid) {
                document.revisions.truncate(1);
            }
            let lists = |r: &Revision| r.sections.iter().any(|id| done.sections.contains(id));
            if let Some(first) = document.revisions.iter().skip(1).position(lists) {
                document.revisions.truncate(first + 1);
            }
        }
    }

    fn compare(&self) {
        let kb = &self.base.kb;
        let listed = kb.list(&ListFilter::default()).expect("listed");
        let expected: Vec<&str> = self.oracle.documents.keys().map(String::as_str).collect();
        assert_eq!(listed.documents.iter().map(|d| d.docid.as_str()).collect::<Vec<_>>(), expected);
        for summary in &listed.documents {
            let docid = summary.docid.as_str();
            let document = &self.oracle.documents[docid];
            assert_eq!((summary.kind, summary.revision), (document.kind, document.current().number), "{docid}");
            assert_eq!(summary.tags, document.current().given.tags, "{docid}");
            assert_eq!(summary.source, document.source, "{docid}");
            assert_eq!(self.base.document(docid), Some(self.oracle.text_of(docid)), "{docid}");
            let history = kb.history(&summary.docid).expect("it is listed");
            let revisions: Vec<_> =
                history.revisions.iter().map(|r| (r.revision, r.kbids.clone(), r.edited, r.current)).collect();
            let expected: Vec<_> = document.revisions[..document.revisions.len().min(10)]
                .iter()
                .enumerate()
                .map(|(i, r)| (r.number, r.sections.clone(), r.edited, i == 0))
                .collect();
            assert_eq!(revisions, expected, "{docid}");
        }
        let readable = self.oracle.readable();
        for (id, text) in &self.oracle.texts {
            let prefix = &id.to_string()[..8];
            let begin_so = kb.sections_by_prefix(prefix, 9).expect("eight characters are enough");
            assert_eq!(begin_so.contains(id), readable.contains(id), "{text:?}");
            if let Ok(section) = kb.retrieve_section(*id) {
                let docids: Vec<String> = section.docids.iter().map(ToString::to_string).collect();
                assert_eq!(docids, self.oracle.holding(*id), "{text:?}");
            }
            match kb.section_bytes(*id) {
                Ok(bytes) => {
                    assert!(readable.contains(id), "{text:?} should not be readable");
                    assert_eq!(bytes, text.as_bytes());
                }
                Err(StoreError::SectionNotFound { .. }) => assert!(!readable.contains(id), "{text:?} is gone"),
                Err(other) => panic!("{other:?}"),
            }
        }
        let status = kb.status().expect("status");
        let count = |kind| self.oracle.of_kind(kind).count() as u64;
        let current = || self.oracle.documents.values().flat_map(|document| &document.current().sections);
        assert_eq!(
            (status.documents, status.skills, status.agents),
            (count(DocumentKind::Document), count(DocumentKind::Skill), count(DocumentKind::Agent))
        );
        assert_eq!(status.sections, current().collect::<BTreeSet<_>>().len() as u64);
        assert_eq!(status.source_bytes, current().map(|id| self.oracle.texts[id].len() as u64).sum::<u64>());
        assert_eq!(status.index.sections, current().count() as u64);
        assert_eq!((status.index.state.as_str(), status.problems.as_slice()), ("ok", [].as_slice()));
    }

    /// Nothing is wrong but references of agents to skills that were deleted.
    fn check(&self) {
        let report = self.base.kb.check(&mut Silent).expect("checked");
        let mut found: BTreeMap<String, usize> = BTreeMap::new();
        for problem in report.problems.iter().filter(|problem| problem.severity == kb_core::Severity::Error) {
            assert_eq!(problem.kind, "broken-reference", "{problem:?}");
            *found.entry(problem.docid.as_ref().expect("it is an agent's").to_string()).or_default() += 1;
        }
        let mut expected = BTreeMap::new();
        for docid in self.oracle.of_kind(DocumentKind::Agent) {
            let skills = &self.oracle.documents[docid].current().given.skills;
            let dangling = skills.iter().filter(|(skill, _)| !self.oracle.documents.contains_key(skill)).count();
            if dangling > 0 {
                expected.insert(docid.clone(), dangling);
            }
        }
        assert_eq!(found, expected);
    }
}

fn said(report: &UnlearnReport) -> Unlearned {
    let names = |ids: &[kb_core::DocId]| ids.iter().map(ToString::to_string).collect();
    Unlearned {
        documents: names(&report.documents),
        edited: names(&report.edited),
        sections: report.sections.iter().copied().collect(),
        shared: report.shared.iter().copied().collect(),
        dangling: names(&report.dangling),
    }
}

fn target(op: &Op) -> Target {
    match op {
        Op::UnlearnDocument { document, .. } => Target::Document(id(DOCIDS[*document])),
        Op::UnlearnSection { word, .. } => Target::Section(kbid(&section(*word))),
        Op::UnlearnOccurrence { word, document, .. } => {
            Target::Occurrence(kbid(&section(*word)), id(DOCIDS[*document]))
        }
        Op::UnlearnTag(tag) => Target::Tag(TAGS[*tag].to_owned()),
        Op::UnlearnSource(is_one) => Target::Source(if *is_one { "one" } else { "two/" }.to_owned()),
        Op::SkillDelete(skill) => Target::Document(id(&skill_docid(*skill))),
        Op::AgentDelete(agent) => Target::Document(id(&agent_docid(*agent))),
        other => panic!("{other:?} unlearns nothing"),
    }
}

fn json(op: &Op) -> serde_json::Value {
    match op {
        Op::Learn { document, words, tag, again } => serde_json::json!({
            "op": "learn",
            "docid": DOCIDS[*document],
            "content": words.iter().copied().map(section).collect::<String>(),
            "tags": tag.map(|tag| TAGS[tag]).into_iter().collect::<Vec<_>>(),
            "source": source(*document),
            "again": again,
        }),
        Op::Skill { skill, variant } => {
            let new = new_skill(*skill, *variant);
            serde_json::json!({"op": "skill", "name": new.name, "description": new.description, "body": new.body})
        }
        Op::Agent { agent, skills } => {
            let new = new_agent(*agent, skills);
            serde_json::json!({"op": "agent", "name": new.name, "persona": new.persona, "skills": new.skills})
        }
        unlearn => match target(unlearn) {
            Target::Document(docid) => serde_json::json!({"op": "unlearn", "docid": docid}),
            Target::Section(kbid) => serde_json::json!({"op": "unlearn", "kbid": kbid}),
            Target::Occurrence(kbid, docid) => serde_json::json!({"op": "unlearn", "kbid": kbid, "docid": docid}),
            Target::Tag(tag) => serde_json::json!({"op": "unlearn", "tag": tag}),
            Target::Source(source) => serde_json::json!({"op": "unlearn", "source": source}),
        },
    }
}

fn skill_docid(skill: usize) -> String {
    format!("skill-{}", SKILLS[skill])
}

fn agent_docid(agent: usize) -> String {
    format!("agent-{}", AGENTS[agent])
}

fn new_skill(skill: usize, variant: usize) -> NewSkill {
    NewSkill { name: SKILLS[skill].to_owned(), body: format!("Way {variant} of {{{{it}}}}.\n"), ..NewSkill::default() }
}

fn new_agent(agent: usize, skills: &[usize]) -> NewAgent {
    NewAgent {
        name: AGENTS[agent].to_owned(),
        persona: "You do.\n".to_owned(),
        skills: skills.iter().map(|&skill| SKILLS[skill].to_owned()).collect(),
        ..NewAgent::default()
    }
}

proptest! {
    // A case takes a third of a second: an eighth of the usual number, which PROPTEST_CASES raises.
    #![proptest_config(ProptestConfig {
        cases: ProptestConfig::default().cases / 8,
        max_shrink_iters: 400,
        ..ProptestConfig::default()
    })]

    #[test]
    fn any_sequence_of_operations_equals_the_model(ops in prop::collection::vec(op(), 1..48)) {
        let mut pair = Pair::new();
        for op in &ops {
            pair.run(op);
            pair.compare();
        }
        pair.check();
        pair.search();
        pair.rebuild();
        pair.begin_anew();
    }
}
