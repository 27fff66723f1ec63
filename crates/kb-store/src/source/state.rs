//! What the base keeps of a source: one record of its state, and at most one proposal.
//!
//! Both are JSON, a proposal followed by the texts that it brings. Readers of other fields than they know ignore them.
//!
//! **Invariant:** the state says what was last applied and nothing later; a proposal is of the state that it was made on,
//! and says so.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use kb_core::{DocId, MediaType, PendingProposal, Provenance, SourcePlan};
use rustc_hash::FxHashSet;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::config::is_source_name;
use crate::codec::{Put, Reader};
use crate::commit::Txn;
use crate::error::StoreError;
use crate::knowledge_base::time_text;
use crate::manifest::{Manifest, Origin};
use crate::pack::MAX_RECORD;
use crate::prepare::hash16;
use crate::record::{Key, Kind, key_of};
use crate::snapshot::Snapshot;

type Result<T> = std::result::Result<T, StoreError>;

/// A document as a source reaches it, as last applied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Reached {
    pub(crate) id: String,
    pub(crate) docid: DocId,
    /// First 128 bits of the BLAKE3 of its bytes.
    #[serde(with = "hex")]
    pub(crate) hash: [u8; 16],
    pub(crate) bytes: u64,
    pub(crate) title: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) version: Option<String>,
}

/// The state of a source.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct SourceState {
    pub(crate) name: String,
    pub(crate) system: String,
    /// The configuration, where it is kept in the base.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) config: Option<Value>,
    /// When something was last applied, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) applied: Option<i64>,
    /// By id.
    #[serde(default)]
    pub(crate) reached: Vec<Reached>,
}

/// What an applied proposal changes, and on what.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ProposalHead {
    /// Milliseconds since 1970.
    pub(crate) made: i64,
    pub(crate) plan: SourcePlan,
    /// What the source reaches afterwards.
    pub(crate) next: Vec<Reached>,
    /// Hash of what the source reached before.
    #[serde(with = "hex")]
    pub(crate) base: [u8; 16],
    /// Revision of each document that is changed; 0 where there is none.
    pub(crate) guards: Vec<(DocId, u32)>,
    pub(crate) texts: Vec<TextHead>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct TextHead {
    pub(crate) docid: DocId,
    pub(crate) title: String,
    pub(crate) media_type: MediaType,
    pub(crate) origin: Origin,
    pub(crate) bytes: u64,
}

/// A proposal with its texts, in the order of their heads.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StoredProposal {
    pub(crate) head: ProposalHead,
    pub(crate) texts: Vec<Vec<u8>>,
}

mod hex {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(hash: &[u8; 16], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&super::hex_of(hash))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<[u8; 16], D::Error> {
        let text = String::deserialize(deserializer)?;
        let number = u128::from_str_radix(&text, 16).map_err(D::Error::custom)?;
        Ok(number.to_be_bytes())
    }
}

pub(crate) fn hex_of(hash: &[u8; 16]) -> String {
    format!("{:032x}", u128::from_be_bytes(*hash))
}

fn encode_json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("texts, numbers and lists are JSON")
}

fn damaged(what: &str, error: impl std::fmt::Display) -> StoreError {
    let detail = format!("{what} cannot be read: {error}");
    StoreError::Damaged { file: "packs".to_owned(), offset: 0, kbid: None, detail }
}

impl SourceState {
    /// Returns the state of a source; `None` where there is none of that name.
    pub(crate) fn find(snapshot: &Snapshot, name: &str) -> Result<Option<Self>> {
        match snapshot.find(Kind::SOURCE_STATE, &key_of(name)) {
            Some(place) if !place.entry.tombstone => Self::decode(&snapshot.read(&place)?.payload).map(Some),
            _ => Ok(None),
        }
    }

    /// Returns all sources by name.
    pub(crate) fn all(snapshot: &Snapshot) -> Result<Vec<Self>> {
        let places = snapshot.current(Kind::SOURCE_STATE);
        let mut states =
            places.iter().map(|place| Self::decode(&snapshot.read(place)?.payload)).collect::<Result<Vec<_>>>()?;
        states.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(states)
    }

    fn decode(payload: &[u8]) -> Result<Self> {
        serde_json::from_slice(payload).map_err(|error| damaged("the state of a source", error))
    }

    /// Hashes what a plan depends on.
    pub(crate) fn fingerprint(&self) -> [u8; 16] {
        hash16(&encode_json(&(&self.system, &self.reached)))
    }

    pub(crate) fn put(&self, txn: &mut Txn<'_>) -> Result<()> {
        txn.put_record(Kind::SOURCE_STATE, key_of(&self.name), encode_json(self))
    }
}

impl StoredProposal {
    pub(crate) fn find(snapshot: &Snapshot, name: &str) -> Result<Option<Self>> {
        match snapshot.find(Kind::PROPOSAL, &key_of(name)) {
            Some(place) if !place.entry.tombstone => Self::decode(&snapshot.read(&place)?.payload).map(Some),
            _ => Ok(None),
        }
    }

    fn decode(payload: &[u8]) -> Result<Self> {
        let mut reader = Reader::new(payload);
        let malformed = |error: &dyn std::fmt::Display| damaged("a proposal", error);
        let head: ProposalHead =
            serde_json::from_slice(reader.bytes().map_err(|e| malformed(&e))?).map_err(|e| malformed(&e))?;
        let mut texts = Vec::with_capacity(head.texts.len().min(payload.len()));
        for text in &head.texts {
            texts.push(reader.take(text.bytes as usize).map_err(|e| malformed(&e))?.to_vec());
        }
        Ok(Self { head, texts })
    }

    /// Hashes what the proposal changes: not when it was made, nor when its texts were fetched.
    pub(crate) fn fingerprint(&self) -> [u8; 16] {
        let mut hasher = blake3::Hasher::new();
        let ProposalHead { plan, next, base, guards, .. } = &self.head;
        hasher.update(&encode_json(&(plan, next, hex_of(base), guards)));
        self.texts.iter().for_each(|text| {
            hasher.update(&hash16(text));
        });
        let mut hash = [0; 16];
        hash.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
        hash
    }

    /// Fails with [`StoreError::Invalid`] where it is too large for one record.
    pub(crate) fn put(&self, txn: &mut Txn<'_>) -> Result<()> {
        let mut payload = Vec::new();
        payload.put_bytes(&encode_json(&self.head));
        let total: usize = self.texts.iter().map(Vec::len).sum();
        if payload.len() + total > MAX_RECORD - 1024 {
            let reason = format!("its texts have {total} bytes, which is too much to be kept for review");
            return Err(StoreError::Invalid { field: "proposal", reason });
        }
        self.texts.iter().for_each(|text| payload.extend_from_slice(text));
        txn.put_record(Kind::PROPOSAL, key_of(&self.head.plan.source), payload)
    }

    pub(crate) fn pending(&self) -> PendingProposal {
        let plan = &self.head.plan;
        PendingProposal {
            made: time_text(self.head.made),
            added: plan.added,
            modified: plan.modified,
            removed: plan.removed,
        }
    }
}

/// Takes a source's proposal away, where there is one.
pub(crate) fn drop_proposal(txn: &mut Txn<'_>, name: &str) -> Result<()> {
    let key: Key = key_of(name);
    if txn.snapshot.has(Kind::PROPOSAL, &key) { txn.take_record(Kind::PROPOSAL, key) } else { Ok(()) }
}

/// Takes away the proposals that bring a text of one of these documents: what was unlearned must not stay in them.
pub(crate) fn drop_proposals_of(txn: &mut Txn<'_>, docids: &FxHashSet<&DocId>) -> Result<()> {
    for place in txn.snapshot.current(Kind::PROPOSAL) {
        let proposal = StoredProposal::decode(&txn.snapshot.read(&place)?.payload)?;
        if proposal.head.guards.iter().any(|(docid, _)| docids.contains(docid)) {
            txn.take_record(Kind::PROPOSAL, place.entry.key)?;
        }
    }
    Ok(())
}

/// Returns the names of the sources that reach each document, by docid.
pub(crate) fn reaching(states: &[SourceState]) -> BTreeMap<&DocId, Vec<&str>> {
    let mut names: BTreeMap<&DocId, Vec<&str>> = BTreeMap::new();
    for state in states {
        for reached in &state.reached {
            names.entry(&reached.docid).or_default().push(&state.name);
        }
    }
    names
}

/// Returns where a document was fetched from, without the sources that reach it.
pub(crate) fn own_provenance(manifest: &Manifest) -> Option<Provenance> {
    let origin = manifest.origin.as_ref()?;
    Some(Provenance {
        system: origin.system.clone(),
        id: origin.id.clone(),
        url: origin.url.clone(),
        retrieved: time_text(origin.retrieved),
        hash: hex_of(&manifest.source.as_ref().map_or([0; 16], |source| source.hash)),
        sources: Vec::new(),
    })
}

/// Returns where a document was fetched from, and the sources that reach it.
pub(crate) fn provenance(snapshot: &Snapshot, manifest: &Manifest) -> Result<Option<Provenance>> {
    let Some(own) = own_provenance(manifest) else { return Ok(None) };
    let states = SourceState::all(snapshot)?;
    let reaches = |state: &&SourceState| {
        state.system == own.system && state.reached.iter().any(|reached| reached.docid == manifest.docid)
    };
    let sources = states.iter().filter(reaches).map(|state| state.name.clone()).collect();
    Ok(Some(Provenance { sources, ..own }))
}

/// Returns the beginning of the names that documents of a system have as sources.
fn system_prefix(system: &str) -> String {
    format!("{SCHEME}{system}/")
}

const SCHEME: &str = "mcp://";

/// Returns what a document's source is called: the system, and the id without what could be taken for a pattern or drive
/// a terminal.
pub(crate) fn source_name(system: &str, id: &str) -> String {
    let mut name = system_prefix(system);
    for c in id.chars() {
        if c.is_control() || matches!(c, '%' | '*') {
            let mut bytes = [0; 4];
            for byte in c.encode_utf8(&mut bytes).bytes() {
                let _ = write!(name, "%{byte:02X}");
            }
        } else {
            name.push(c);
        }
    }
    name
}

/// Adds to a filter by source what the name of a system or of a source stands for: the documents that it reaches.
pub(crate) fn expand_filter(snapshot: &Snapshot, sources: &mut Vec<String>) -> Result<()> {
    let mut more = Vec::new();
    for name in sources.iter().filter(|name| is_source_name(name)) {
        more.push(format!("{}*", system_prefix(name)));
        if let Some(state) = SourceState::find(snapshot, name)?.filter(|state| state.system != *name) {
            more.extend(state.reached.iter().map(|reached| source_name(&state.system, &reached.id)));
        }
    }
    sources.extend(more);
    Ok(())
}

/// Returns the documents that a source reaches; none where there is no source of this name.
pub(crate) fn reached_by(snapshot: &Snapshot, name: &str) -> Result<FxHashSet<DocId>> {
    let state = if is_source_name(name) { SourceState::find(snapshot, name)? } else { None };
    Ok(state.map(|state| state.reached.into_iter().map(|reached| reached.docid).collect()).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_a_source_is_no_pattern_and_is_told_apart() {
        assert_eq!(source_name("lab", "https://a.example/x?y=1"), "mcp://lab/https://a.example/x?y=1");
        assert_eq!(source_name("lab", "a*"), "mcp://lab/a%2A");
        assert_ne!(source_name("lab", "a%2A"), source_name("lab", "a*"));
        assert_eq!(source_name("lab", "a\nb"), "mcp://lab/a%0Ab");
    }

    #[test]
    fn no_bytes_make_a_proposal_that_panics() {
        for payload in [&b""[..], b"\x05{}", b"\x02{}", b"\xff\xff\xff\xff\x7f", b"\x04null"] {
            assert!(StoredProposal::decode(payload).is_err());
        }
    }
}
