//! What a search finds in the base of the model, whatever its index went through.

use kb_core::{Agent, DocumentKind, Mode, SearchReport};
use kb_store::{Gc, ListFilter, NewAgent, Search, Silent, Text};

use super::{Pair, WORDS, section};
use crate::support::{Base, kbid};

impl Pair {
    /// A search finds the documents that hold a word, and those alone.
    pub(super) fn search(&self) {
        for (word, text) in WORDS.iter().enumerate().map(|(i, word)| (word, kbid(&section(i)))) {
            let answer = answer(&self.base, word);
            assert_eq!(answer.incomplete, None);
            let mut found: Vec<String> = Vec::new();
            for hit in &answer.hits {
                assert_eq!(hit.kbid, text, "{word}");
                found.push(hit.docid.to_string());
                found.extend(hit.also_in.iter().map(ToString::to_string));
            }
            found.sort();
            assert_eq!(found, self.oracle.holding(text), "{word}");
        }
    }

    /// An index that grew in any way and one that is made anew are alike.
    pub(super) fn rebuild(&self) {
        let grown = answers(&self.base);
        self.base.kb.rebuild(&mut Silent).expect("rebuilt");
        assert_eq!(answers(&self.base), grown);
        self.base.kb.gc(&Gc::default(), &mut Silent).expect("collected");
        assert_eq!(answers(&self.base), grown);
    }

    /// The same documents learned into an empty base, in another order, give the same answers.
    pub(super) fn begin_anew(&self) {
        let other = Base::new();
        let mut documents = self.base.kb.list(&ListFilter::default()).expect("listed").documents;
        // Skills sort after agents, so this order has them first.
        documents.reverse();
        let mut texts = Vec::new();
        for document in documents {
            let content = self.oracle.text_of(document.docid.as_str());
            match document.kind {
                DocumentKind::Document => {
                    texts.push(Text {
                        docid: Some(document.docid),
                        title: Some(document.title),
                        tags: document.tags,
                        source: document.source,
                        ..Text::markdown(content)
                    });
                }
                DocumentKind::Skill => drop(other.kb.skill_learn_text(&content).expect("learned")),
                DocumentKind::Agent => {
                    let agent = Agent::parse(&content).expect("it was one");
                    let agent = NewAgent {
                        name: agent.name().to_owned(),
                        description: agent.description().to_owned(),
                        persona: agent.persona().to_owned(),
                        skills: agent.skills().iter().map(ToString::to_string).collect(),
                    };
                    if other.kb.agent_create(&agent).is_err() {
                        // A skill of it is gone: such an agent cannot begin anew.
                        return;
                    }
                }
            }
        }
        other.kb.learn_batch(&mut texts.into_iter(), &mut Silent).expect("learned");
        // What is left of an edited document keeps the lines of its source.
        let without_lines = |base: &Base| {
            let mut answers = answers(base);
            for hit in answers.iter_mut().flat_map(|answer| &mut answer.hits) {
                (hit.line, hit.snippet_line) = (0, 0);
                hit.more.iter_mut().for_each(|other| other.line = 0);
            }
            answers
        };
        assert_eq!(without_lines(&other), without_lines(&self.base));
    }
}

fn answer(base: &Base, query: &str) -> SearchReport {
    let request = Search { mode: Mode::All, limit: 100, check_sources: false, ..Search::new(query) };
    base.kb.search(&request).expect("every text is a query")
}

/// All that an index can tell apart, scores included.
fn answers(base: &Base) -> Vec<SearchReport> {
    let queries =
        ["anchor", "bridge cinder", "length", "title:dapple", "\"the ember\"", "tag:ops", "way -you", "doc:a"];
    queries.iter().map(|query| SearchReport { generation: 0, ..answer(base, query) }).collect()
}
