//! Skills and agents: documents of one section each, with operations of their own.
//!
//! **Invariant:** an agent holds its skills by docid, so it follows their revisions; beside each it keeps the kbid that
//! was last known, which is all that is left to show of a skill that is gone.

use std::collections::BTreeMap;
use std::sync::Arc;

use kb_core::{
    Agent, AgentInfo, AgentList, AgentSkill, AgentSummary, DocId, DocumentKind, MediaType, Outcome, SectionId, Skill,
    SkillInfo, SkillList, SkillSummary, UnlearnReport, agent_docid, skill_docid,
};
use serde::{Deserialize, Serialize};

use crate::commit::Txn;
use crate::error::StoreError;
use crate::knowledge_base::KnowledgeBase;
use crate::manifest::{Manifest, Role, SectionEntry};
use crate::near::closest;
use crate::prepare::hash16;
use crate::request::{NewAgent, NewSkill, Target, Unlearn};
use crate::snapshot::Snapshot;

type Result<T> = std::result::Result<T, StoreError>;

/// What an agent's manifest keeps of its skills, as the `skills` of its other fields.
#[derive(Debug, Default, Serialize, Deserialize)]
struct AgentMeta {
    skills: Vec<Reference>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Reference {
    docid: DocId,
    kbid: SectionId,
}

impl KnowledgeBase {
    /// Learns a skill; under a name that exists it is the next revision. Names are compared by slug.
    pub fn skill_learn(&self, skill: &NewSkill) -> Result<SkillInfo> {
        self.skill_learn_text(&skill_text(skill))
    }

    /// Learns a skill from a whole SKILL.md.
    pub fn skill_learn_text(&self, text: &str) -> Result<SkillInfo> {
        let skill = Skill::parse(text)?;
        let (outcome, _) = self.commit(text.len() as u64, |txn| stage_skill(txn, &skill))?;
        Ok(skill_info(&skill, Some(outcome)))
    }

    /// Lists the skills by name.
    pub fn skill_list(&self) -> Result<SkillList> {
        let snapshot = self.snapshot()?;
        let mut skills = Vec::new();
        for manifest in of_kind(&snapshot, DocumentKind::Skill)? {
            let skill = read_skill(&snapshot, &manifest)?;
            skills.push(SkillSummary {
                kbid: whole(&manifest),
                docid: manifest.docid,
                name: skill.name().to_owned(),
                description: skill.description().to_owned(),
                argument_count: skill.arguments().len(),
            });
        }
        skills.sort_by(|a, b| a.name.cmp(&b.name).then_with(|| a.docid.cmp(&b.docid)));
        Ok(SkillList { skills })
    }

    /// Returns a skill by name or kbid.
    pub fn skill_get(&self, name_or_kbid: &str) -> Result<SkillInfo> {
        let snapshot = self.snapshot()?;
        let (_, skill) = find_skill(&snapshot, name_or_kbid)?;
        Ok(skill_info(&skill, None))
    }

    /// Fills in a skill's placeholders, in one pass. An optional argument that is absent becomes empty; a key that the
    /// skill does not know is ignored.
    pub fn skill_render(&self, name_or_kbid: &str, arguments: &BTreeMap<String, String>) -> Result<String> {
        let snapshot = self.snapshot()?;
        let (_, skill) = find_skill(&snapshot, name_or_kbid)?;
        Ok(skill.render(arguments)?)
    }

    /// Removes a skill. Agents that refer to it keep a reference that leads nowhere, and are named in the result.
    pub fn skill_delete(&self, name_or_kbid: &str) -> Result<UnlearnReport> {
        let snapshot = self.snapshot()?;
        let (manifest, _) = find_skill(&snapshot, name_or_kbid)?;
        self.unlearn(&Unlearn { targets: vec![Target::Document(manifest.docid)], ..Unlearn::default() })
    }

    /// Creates an agent; under a name that exists it is the next revision.
    ///
    /// A skill that is not there is an error that names it.
    pub fn agent_create(&self, agent: &NewAgent) -> Result<AgentInfo> {
        let expected = agent.persona.len() as u64;
        let ((docid, outcome), _) = self.commit(expected, |txn| stage_agent(txn, agent))?;
        let mut info = self.agent_get(docid.as_str())?;
        info.outcome = Some(outcome);
        Ok(info)
    }

    /// Lists the agents by name.
    pub fn agent_list(&self) -> Result<AgentList> {
        let snapshot = self.snapshot()?;
        let mut agents = Vec::new();
        for manifest in of_kind(&snapshot, DocumentKind::Agent)? {
            let agent = read_agent(&snapshot, &manifest)?;
            agents.push(AgentSummary {
                docid: manifest.docid,
                name: agent.name().to_owned(),
                description: agent.description().to_owned(),
                skill_count: agent.skills().len(),
            });
        }
        agents.sort_by(|a, b| a.name.cmp(&b.name).then_with(|| a.docid.cmp(&b.docid)));
        Ok(AgentList { agents })
    }

    /// Returns an agent by docid or name, with its skills as they are now.
    pub fn agent_get(&self, docid_or_name: &str) -> Result<AgentInfo> {
        let snapshot = self.snapshot()?;
        let manifest = find_agent(&snapshot, docid_or_name)?;
        let agent = read_agent(&snapshot, &manifest)?;
        let mut skills = Vec::new();
        for (docid, last_known) in references(&manifest) {
            skills.push(match snapshot.manifest(&docid)?.filter(|m| m.kind == DocumentKind::Skill) {
                Some(found) => {
                    AgentSkill { kbid: whole(&found), docid, name: Some(found.title), description: found.description }
                }
                None => AgentSkill { kbid: last_known, docid, name: None, description: None },
            });
        }
        Ok(AgentInfo {
            docid: manifest.docid,
            name: agent.name().to_owned(),
            description: agent.description().to_owned(),
            persona: agent.persona().to_owned(),
            skills,
            outcome: None,
        })
    }

    /// Removes an agent; its skills stay.
    pub fn agent_delete(&self, docid_or_name: &str) -> Result<UnlearnReport> {
        let snapshot = self.snapshot()?;
        let docid = find_agent(&snapshot, docid_or_name)?.docid;
        self.unlearn(&Unlearn { targets: vec![Target::Document(docid)], ..Unlearn::default() })
    }
}

/// Returns the SKILL.md of a skill given in parts.
pub(crate) fn skill_text(skill: &NewSkill) -> String {
    Skill::to_text(&skill.name, &skill.description, &skill.arguments, &skill.body)
}

/// Stages a skill.
pub(crate) fn stage_skill(txn: &mut Txn<'_>, skill: &Skill) -> Result<Outcome> {
    let manifest = whole_text(skill.docid(), DocumentKind::Skill, skill.name(), skill.description(), skill.text());
    stage_whole(txn, manifest, skill.text())
}

/// Stages an agent.
pub(crate) fn stage_agent(txn: &mut Txn<'_>, agent: &NewAgent) -> Result<(DocId, Outcome)> {
    let mut meta = AgentMeta::default();
    for wanted in &agent.skills {
        let manifest = staged_skill(txn, wanted)?;
        meta.skills.push(Reference { kbid: whole(&manifest), docid: manifest.docid });
    }
    let docids: Vec<DocId> = meta.skills.iter().map(|reference| reference.docid.clone()).collect();
    let text = Agent::to_text(&agent.name, &agent.description, &docids, &agent.persona);
    let parsed = Agent::parse(&text)?;
    let mut manifest = whole_text(parsed.docid(), DocumentKind::Agent, parsed.name(), parsed.description(), &text);
    manifest.meta = serde_json::to_string(&meta).unwrap_or_else(|_| "{}".to_owned());
    let docid = manifest.docid.clone();
    Ok((docid, stage_whole(txn, manifest, &text)?))
}

/// Returns the skills that an agent refers to, with the kbids that were last known; none of any other document.
pub(crate) fn references(manifest: &Manifest) -> Vec<(DocId, SectionId)> {
    if manifest.kind != DocumentKind::Agent {
        return Vec::new();
    }
    let meta: AgentMeta = serde_json::from_str(&manifest.meta).unwrap_or_default();
    meta.skills.into_iter().map(|reference| (reference.docid, reference.kbid)).collect()
}

/// Notes in these agents the kbids of skills that are about to go.
pub(crate) fn note_last_known(txn: &mut Txn<'_>, removed: &[Manifest], agents: &[DocId]) -> Result<()> {
    for docid in agents {
        let Some(mut agent) = txn.manifest(docid)? else { continue };
        let mut meta = AgentMeta::default();
        let mut changed = false;
        for (docid, last_known) in references(&agent) {
            let kbid = removed.iter().find(|skill| skill.docid == docid).map_or(last_known, whole);
            changed |= kbid != last_known;
            meta.skills.push(Reference { docid, kbid });
        }
        if changed {
            agent.meta = serde_json::to_string(&meta).unwrap_or_else(|_| "{}".to_owned());
            agent.revision += 1;
            agent.updated = txn.now;
            txn.put_manifest(agent, None)?;
        }
    }
    Ok(())
}

/// Returns the content address of a document of one section.
fn whole(manifest: &Manifest) -> SectionId {
    manifest.sections.first().map_or_else(|| SectionId::of(&MediaType::markdown(), b""), |section| section.kbid)
}

fn whole_text(docid: DocId, kind: DocumentKind, name: &str, description: &str, text: &str) -> Manifest {
    let media_type = MediaType::markdown();
    let section = SectionEntry {
        kbid: SectionId::of(&media_type, text.as_bytes()),
        role: Role::Text,
        level: 0,
        parent: None,
        heading: None,
        line: 1,
        bytes: text.len() as u64,
        part: None,
    };
    Manifest {
        docid,
        kind,
        title: name.to_owned(),
        description: Some(description.to_owned()),
        tags: Vec::new(),
        aliases: Vec::new(),
        meta: "{}".to_owned(),
        media_type,
        source: None,
        date: None,
        created: 0,
        updated: 0,
        revision: 0,
        edited: false,
        inputs: hash16(text.as_bytes()),
        warnings: Vec::new(),
        sections: vec![section],
        origin: None,
    }
}

fn stage_whole(txn: &mut Txn<'_>, mut manifest: Manifest, text: &str) -> Result<Outcome> {
    let old = txn.manifest(&manifest.docid)?;
    if let Some(old) = &old {
        if old.kind != manifest.kind {
            let reason = format!("`{}` is an ordinary document; unlearn it first", old.docid);
            return Err(StoreError::Invalid { field: "name", reason });
        }
        if old.inputs == manifest.inputs && old.meta == manifest.meta {
            return Ok(Outcome::Unchanged);
        }
    }
    manifest.updated = txn.now;
    manifest.created = old.as_ref().map_or(txn.now, |old| old.created);
    manifest.revision = old.as_ref().map_or(1, |old| old.revision + 1);
    let source: Arc<[u8]> = text.as_bytes().into();
    let section = &manifest.sections[0];
    txn.put_section(section.kbid, &manifest.media_type, (&source, 0..source.len()), false)?;
    txn.put_manifest(manifest, Some(source))?;
    Ok(if old.is_some() { Outcome::Updated } else { Outcome::Added })
}

fn of_kind(snapshot: &Snapshot, kind: DocumentKind) -> Result<Vec<Manifest>> {
    let totals = snapshot.head.totals;
    let mut found = Vec::new();
    if (kind == DocumentKind::Skill && totals.skills == 0) || (kind == DocumentKind::Agent && totals.agents == 0) {
        return Ok(found);
    }
    snapshot.each_manifest(|manifest| {
        if manifest.kind == kind {
            found.push(manifest);
        }
        Ok(())
    })?;
    Ok(found)
}

fn text_of(snapshot: &Snapshot, manifest: &Manifest) -> Result<String> {
    let bytes = snapshot.document_bytes(manifest)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn read_skill(snapshot: &Snapshot, manifest: &Manifest) -> Result<Skill> {
    Ok(Skill::parse(&text_of(snapshot, manifest)?)?)
}

fn read_agent(snapshot: &Snapshot, manifest: &Manifest) -> Result<Agent> {
    Ok(Agent::parse(&text_of(snapshot, manifest)?)?)
}

fn find_skill(snapshot: &Snapshot, name_or_kbid: &str) -> Result<(Manifest, Skill)> {
    let found = if let Ok(kbid) = name_or_kbid.parse::<SectionId>() {
        of_kind(snapshot, DocumentKind::Skill)?.into_iter().find(|manifest| whole(manifest) == kbid)
    } else {
        by_name(name_or_kbid, "skill-", |name| skill_docid(name).ok(), |docid| snapshot.manifest(docid))?
            .filter(|manifest| manifest.kind == DocumentKind::Skill)
    };
    let manifest = found.ok_or_else(|| skill_not_found(snapshot, name_or_kbid))?;
    let skill = read_skill(snapshot, &manifest)?;
    Ok((manifest, skill))
}

/// Finds a skill as a commit sees it.
fn staged_skill(txn: &Txn<'_>, name_or_kbid: &str) -> Result<Manifest> {
    let found = if let Ok(kbid) = name_or_kbid.parse::<SectionId>() {
        let mut found = None;
        txn.each_manifest(|manifest| {
            if manifest.kind == DocumentKind::Skill && whole(&manifest) == kbid {
                found = Some(manifest);
            }
            Ok(())
        })?;
        found
    } else {
        by_name(name_or_kbid, "skill-", |name| skill_docid(name).ok(), |docid| txn.manifest(docid))?
            .filter(|manifest| manifest.kind == DocumentKind::Skill)
    };
    found.ok_or_else(|| skill_not_found(txn.snapshot, name_or_kbid))
}

fn find_agent(snapshot: &Snapshot, docid_or_name: &str) -> Result<Manifest> {
    let name = docid_or_name.strip_prefix("agent:").unwrap_or(docid_or_name);
    by_name(name, "agent-", |name| agent_docid(name).ok(), |docid| snapshot.manifest(docid))?
        .filter(|manifest| manifest.kind == DocumentKind::Agent)
        .ok_or_else(|| {
            let names = names(snapshot, DocumentKind::Agent);
            StoreError::AgentNotFound { id: docid_or_name.to_owned(), near: near(&names, name) }
        })
}

/// Finds a document by its docid, where the text has the docid's form, else by the docid of the name.
fn by_name(
    text: &str,
    prefix: &str,
    docid_of: impl Fn(&str) -> Option<DocId>,
    get: impl Fn(&DocId) -> Result<Option<Manifest>>,
) -> Result<Option<Manifest>> {
    if text.starts_with(prefix)
        && let Ok(docid) = text.parse()
        && let Some(found) = get(&docid)?
    {
        return Ok(Some(found));
    }
    docid_of(text).map_or(Ok(None), |docid| get(&docid))
}

fn skill_not_found(snapshot: &Snapshot, wanted: &str) -> StoreError {
    let names = names(snapshot, DocumentKind::Skill);
    StoreError::SkillNotFound { id: wanted.to_owned(), near: near(&names, wanted) }
}

fn names(snapshot: &Snapshot, kind: DocumentKind) -> Vec<String> {
    of_kind(snapshot, kind).unwrap_or_default().into_iter().map(|manifest| manifest.title).collect()
}

fn near(names: &[String], wanted: &str) -> Vec<String> {
    let texts: Vec<&str> = names.iter().map(String::as_str).collect();
    closest(&texts, wanted).into_iter().map(|i| names[i].clone()).collect()
}

fn skill_info(skill: &Skill, outcome: Option<Outcome>) -> SkillInfo {
    SkillInfo {
        kbid: SectionId::of(&MediaType::markdown(), skill.text().as_bytes()),
        docid: skill.docid(),
        name: skill.name().to_owned(),
        description: skill.description().to_owned(),
        arguments: skill.arguments(),
        body: skill.body().to_owned(),
        warnings: skill.lint(),
        outcome,
    }
}
