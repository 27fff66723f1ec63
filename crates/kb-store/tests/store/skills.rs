//! Skills and agents, as the tools of the server and the command line need them.

use std::collections::BTreeMap;

use kb_core::{Outcome, SkillArgument};
use kb_store::{Gc, NewAgent, NewSkill, Silent, StoreError, Target, Text, Unlearn};

use crate::support::{Base, id, text};

fn skill(name: &str, body: &str) -> NewSkill {
    NewSkill { name: name.to_owned(), description: format!("About {name}"), body: body.to_owned(), arguments: vec![] }
}

fn agent(name: &str, skills: &[&str]) -> NewAgent {
    NewAgent {
        name: name.to_owned(),
        description: "Looks".to_owned(),
        persona: "You look closely.\n".to_owned(),
        skills: skills.iter().map(|&skill| skill.to_owned()).collect(),
    }
}

fn argument(name: &str, required: bool) -> SkillArgument {
    SkillArgument { name: name.to_owned(), description: None, required }
}

fn given(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect()
}

#[test]
fn a_skill_is_learned_listed_rendered_and_deleted() {
    let base = Base::new();
    let new = NewSkill { arguments: vec![argument("n", false)], ..skill("Sum", "Sum {{doc}} in {{n}} lines.\n") };
    let learned = base.kb.skill_learn(&new).expect("learned");
    assert_eq!((learned.docid.as_str(), learned.outcome), ("skill-sum", Some(Outcome::Added)));
    assert_eq!(learned.arguments, [argument("n", false), argument("doc", true)], "what is not declared is required");
    assert_eq!(learned.body, "Sum {{doc}} in {{n}} lines.\n");
    assert_eq!(base.kb.skill_learn(&new).expect("learned").outcome, Some(Outcome::Unchanged));

    let text = String::from_utf8(base.kb.section_bytes(learned.kbid).expect("one section")).expect("text");
    assert_eq!(Some(text.as_str()), base.document("skill-sum").as_deref());
    for name in ["Sum", "sum", "SUM!", "skill-sum", &learned.kbid.to_string()] {
        assert_eq!(base.kb.skill_get(name).expect(name).kbid, learned.kbid, "{name}");
        let rendered = base.kb.skill_render(name, &given(&[("doc", "{{n}}"), ("extra", "x")])).expect("all is given");
        assert_eq!(rendered, "Sum {{n}} in  lines.\n");
    }
    let done = base.kb.skill_delete(&learned.kbid.to_string()).expect("deleted");
    assert_eq!((done.documents, done.sections, done.dangling), (vec![id("skill-sum")], vec![learned.kbid], vec![]));
    assert!(base.kb.skill_list().expect("listed").skills.is_empty());
    assert!(base.problems().is_empty());
}

#[test]
fn a_missing_argument_and_an_unknown_skill_are_named() {
    let base = Base::new();
    base.kb.skill_learn(&skill("Sum", "Sum {{doc}} and {{other}}.\n")).expect("learned");
    let error = base.kb.skill_render("sum", &given(&[("other", "x")])).expect_err("`doc` is missing");
    assert_eq!(error.code(), "missing-argument");
    assert!(error.to_string().contains("`doc`") && !error.to_string().contains("`other`"), "{error}");
    for result in [
        base.kb.skill_get("summ").map(drop),
        base.kb.skill_delete("summ").map(drop),
        base.kb.skill_render("summ", &given(&[])).map(drop),
        base.kb.agent_create(&agent("Reader", &["Sum", "summ"])).map(drop),
    ] {
        match result {
            Err(StoreError::SkillNotFound { id, near }) => {
                assert_eq!((id.as_str(), near), ("summ", vec!["Sum".to_owned()]));
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(base.kb.agent_list().expect("listed").agents.is_empty(), "no agent without its skills");
    let unknown = kb_core::SectionId::from_bytes([0; 16]).to_string();
    assert!(matches!(base.kb.skill_get(&unknown), Err(StoreError::SkillNotFound { id, .. }) if id == unknown));
    assert!(matches!(base.kb.agent_get("Rider"), Err(StoreError::AgentNotFound { id, .. }) if id == "Rider"));
}

#[test]
fn names_are_compared_by_slug_and_bad_ones_are_refused() {
    let base = Base::new();
    let first = base.kb.skill_learn(&skill("Weekly Report!", "One.\n")).expect("learned");
    let second = base.kb.skill_learn(&skill("weekly report", "Two.\n")).expect("learned");
    assert_eq!((first.docid, second.outcome), (second.docid, Some(Outcome::Updated)));
    assert_eq!(base.kb.history(&id("skill-weekly-report")).expect("there").revisions.len(), 2);
    assert!(base.kb.skill_get(&first.kbid.to_string()).is_err(), "an old revision is not the skill");
    assert!(base.kb.section_bytes(first.kbid).is_ok(), "but can be read");
    for name in ["", " ", "agent:x", "a\nb"] {
        assert_eq!(base.kb.skill_learn(&skill(name, "x")).expect_err(name).code(), "invalid");
        assert_eq!(base.kb.agent_create(&agent(name, &[])).expect_err(name).code(), "invalid");
    }
    for text in ["no front matter", "---\ndescription: x\n---\n", "---\nname: [\n---\n"] {
        assert_eq!(base.kb.skill_learn_text(text).expect_err(text).code(), "invalid");
    }
    assert_eq!(base.kb.status().expect("status").generation, 2);
}

#[test]
fn lists_are_in_order_of_names_and_count_arguments_and_skills() {
    let base = Base::new();
    for (name, body) in [("Zeta", "none"), ("alpha", "{{a}} {{b}} {{a}}"), ("Beta", "{{x}}")] {
        base.kb.skill_learn(&skill(name, body)).expect("learned");
    }
    let skills = base.kb.skill_list().expect("listed").skills;
    let seen: Vec<_> = skills.iter().map(|skill| (skill.name.as_str(), skill.argument_count)).collect();
    assert_eq!(seen, [("Beta", 1), ("Zeta", 0), ("alpha", 2)]);
    base.kb.agent_create(&agent("Second", &["zeta", "Beta", "zeta"])).expect("created");
    base.kb.agent_create(&agent("First", &[])).expect("created");
    let agents = base.kb.agent_list().expect("listed").agents;
    let seen: Vec<_> = agents.iter().map(|a| (a.name.as_str(), a.docid.as_str(), a.skill_count)).collect();
    assert_eq!(seen, [("First", "agent-first", 0), ("Second", "agent-second", 3)]);
    let skills = base.kb.agent_get("second").expect("there").skills;
    let names: Vec<_> = skills.iter().map(|skill| skill.name.as_deref()).collect();
    assert_eq!(names, [Some("Zeta"), Some("Beta"), Some("Zeta")], "in the order given");
    let status = base.kb.status().expect("status");
    assert_eq!((status.documents, status.skills, status.agents), (0, 3, 2));
}

#[test]
fn an_agent_follows_its_skills_and_keeps_the_last_kbid_of_one_that_is_gone() {
    let base = Base::new();
    let first = base.kb.skill_learn(&skill("Sum", "One.\n")).expect("learned");
    base.kb.skill_learn(&skill("Sort", "Sort.\n")).expect("learned");
    let created = base.kb.agent_create(&agent("Reader", &[&first.kbid.to_string(), "Sort"])).expect("created");
    assert_eq!((created.docid.as_str(), created.outcome), ("agent-reader", Some(Outcome::Added)));
    assert_eq!((created.skills[0].kbid, created.persona.as_str()), (first.kbid, "You look closely.\n"));

    let second = base.kb.skill_learn(&skill("Sum", "Two.\n")).expect("learned");
    for name in ["Reader", "reader", "agent-reader", "agent:Reader"] {
        assert_eq!(base.kb.agent_get(name).expect(name).skills[0].kbid, second.kbid, "it follows the revision");
    }
    let done = base.kb.skill_delete("Sum").expect("deleted");
    assert_eq!(done.dangling, [id("agent-reader")]);
    let gone = &base.kb.agent_get("Reader").expect("there").skills[0];
    assert_eq!((gone.kbid, gone.name.clone(), gone.description.clone()), (second.kbid, None, None));
    assert_eq!(base.problems(), ["broken-reference: the agent refers to the skill `skill-sum`, which is gone"]);

    // A merge and gc change nothing of that; the skill coming back does.
    base.kb.gc(&Gc { history: Some(1) }, &mut Silent).expect("collected");
    assert_eq!(base.kb.agent_get("Reader").expect("there").skills[0].kbid, second.kbid);
    let third = base.kb.skill_learn(&skill("sum", "Three.\n")).expect("learned");
    let back = &base.kb.agent_get("Reader").expect("there").skills[0];
    assert_eq!((back.kbid, back.name.as_deref()), (third.kbid, Some("sum")));
    assert!(base.problems().is_empty());

    let done = base.kb.agent_delete("Reader").expect("deleted");
    assert_eq!((done.documents, base.kb.skill_list().expect("listed").skills.len()), (vec![id("agent-reader")], 2));
    assert!(matches!(base.kb.agent_delete("Reader"), Err(StoreError::AgentNotFound { .. })));
}

#[test]
fn an_agent_of_the_same_name_is_its_next_revision() {
    let base = Base::new();
    base.kb.skill_learn(&skill("Sum", "One.\n")).expect("learned");
    base.kb.agent_create(&agent("Reader", &["Sum"])).expect("created");
    assert_eq!(base.kb.agent_create(&agent("Reader", &["Sum"])).expect("same").outcome, Some(Outcome::Unchanged));
    let next = base.kb.agent_create(&agent("reader", &[])).expect("created");
    assert_eq!((next.outcome, next.skills.len(), next.name.as_str()), (Some(Outcome::Updated), 0, "reader"));
    assert_eq!(base.kb.history(&next.docid).expect("there").revisions.len(), 2);
    assert_eq!(base.kb.skill_delete("Sum").expect("deleted").dangling, [], "a former revision is no reference");
}

#[test]
fn documents_skills_and_agents_do_not_take_each_others_names() {
    let base = Base::new();
    base.kb.skill_learn(&skill("Sum", "One.\n")).expect("learned");
    base.kb.agent_create(&agent("Reader", &[])).expect("created");
    base.learn("skill-other", "# No skill\n");
    base.learn("agent-other", "# No agent\n");
    for docid in ["skill-sum", "agent-reader"] {
        let error = base.kb.learn(&text(docid, "# Mine\n")).expect_err("it is taken");
        assert!(error.to_string().contains(docid) && error.code() == "invalid", "{error}");
    }
    assert_eq!(base.kb.skill_learn(&skill("Other", "x")).expect_err("taken").code(), "invalid");
    assert_eq!(base.kb.agent_create(&agent("Other", &[])).expect_err("taken").code(), "invalid");
    assert_eq!(base.kb.agent_create(&agent("Third", &["skill-other"])).expect_err("no skill").code(), "not-found");
    assert_eq!(base.kb.agent_create(&agent("Third", &["agent-reader"])).expect_err("no skill").code(), "not-found");
    assert!(base.kb.skill_get("other").is_err() && base.kb.agent_get("other").is_err());
    assert_eq!(base.kb.skill_list().expect("listed").skills.len(), 1);
}

#[test]
fn a_whole_skill_file_is_kept_byte_for_byte_and_never_split() {
    let base = Base::new();
    let file =
        "---\r\n# mine\r\nname: Trip\r\nlicense: MIT\r\n---\r\n# Plan\r\n\r\n## One\r\n\r\n{{where}} \\{{not}}\r\n";
    let learned = base.kb.skill_learn_text(file).expect("learned");
    assert_eq!(base.document("skill-trip").as_deref(), Some(file));
    assert_eq!(base.kb.describe_document(&id("skill-trip")).expect("there").sections.len(), 1);
    assert_eq!(learned.arguments, [argument("where", true)]);
    let rendered = base.kb.skill_render("trip", &given(&[("where", "there")])).expect("all is given");
    assert_eq!(rendered, "# Plan\r\n\r\n## One\r\n\r\nthere {{not}}\r\n");
    let done = base.kb.unlearn(&Unlearn { targets: vec![Target::Section(learned.kbid)], ..Unlearn::default() });
    assert_eq!(done.expect("unlearned").documents, [id("skill-trip")], "a skill without its text is not there");
    base.kb.learn(&Text::markdown(file)).expect("as a text it is a document like any other");
    assert!(base.kb.skill_list().expect("listed").skills.is_empty());
}
