//! Batches of JSON lines: one operation a line.
//!
//! ```text
//! {"op": "learn", "content": "# A\n", "docid": "a", "title": …, "description": …, "type": …, "tags": […], "source": …}
//! {"op": "learn", "path": "docs/a.md"}            the file's bytes, from below the batch's folder
//! {"op": "learn", "content": "iVBOR…", "encoding": "base64", "type": "image/png", "title": "Plan"}
//! {"op": "unlearn", "docid": "a"}                 or "kbid", "tag", "source"
//! {"op": "skill", "name": …, "description": …, "body": …, "arguments": […]}     or "content": a whole SKILL.md
//! {"op": "agent", "name": …, "description": …, "persona": …, "skills": […]}
//! ```
//!
//! **Invariant:** a line's result is handed out once its commit is durable, in the order of the lines. A line that fails
//! leaves nothing behind and costs no other, unless the batch is atomic: then nothing of it is done.

use std::io::BufRead;
use std::path::Path;

use kb_core::{DocId, LearnedDocument, MediaType, Outcome, SectionId};

use crate::commit::Txn;
use crate::error::{IoContext, StoreError};
use crate::knowledge_base::KnowledgeBase;
use crate::learn::{CHUNK_BYTES, CHUNK_DOCUMENTS, stage};
use crate::prepare::Prepared;
use crate::reports::{ImportError, ImportLine, ImportReport};
use crate::request::{ImportOptions, NewAgent, Target, Unlearn};
use crate::skills::{stage_agent, stage_skill};

mod line;

use line::parse;

type Result<T> = std::result::Result<T, StoreError>;

/// The longest line, in bytes.
const MAX_LINE: u64 = 512 << 20;

/// One line, ready to be staged.
enum Operation {
    Learn(Box<Prepared>),
    Unlearn(Target),
    Skill(kb_core::Skill),
    Agent(NewAgent),
}

impl Operation {
    const fn name(&self) -> &'static str {
        match self {
            Self::Learn(_) => "learn",
            Self::Unlearn(_) => "unlearn",
            Self::Skill(_) => "skill",
            Self::Agent(_) => "agent",
        }
    }

    fn bytes(&self) -> u64 {
        match self {
            Self::Learn(prepared) => prepared.content.len() as u64,
            Self::Unlearn(_) => 0,
            Self::Skill(skill) => skill.text().len() as u64,
            Self::Agent(agent) => agent.persona.len() as u64,
        }
    }
}

impl KnowledgeBase {
    /// Imports JSON lines; `on_line` gets each result once it is durable. Blank lines are passed over.
    ///
    /// An atomic batch with a line that fails is [`StoreError::NotAtomic`], after `on_line` was told of every line.
    /// Its content has to fit in memory; otherwise memory is bounded by the size of a commit.
    pub fn import(
        &self,
        input: &mut dyn BufRead,
        request: &ImportOptions,
        on_line: &mut dyn FnMut(&ImportLine),
    ) -> Result<ImportReport> {
        let mut total = ImportReport { lines: 0, done: 0, failed: 0, generation: 0, dry_run: request.dry_run };
        let mut waiting: Vec<(u64, Result<Operation>)> = Vec::new();
        let mut bytes = 0;
        let mut number = 0;
        loop {
            let line = read_line(input)?;
            if let Some(line) = &line {
                number += 1;
                if line.iter().all(u8::is_ascii_whitespace) {
                    continue;
                }
                let operation = parse(line, request);
                bytes += operation.as_ref().map_or(0, Operation::bytes);
                waiting.push((number, operation));
            }
            let is_full = bytes >= CHUNK_BYTES || waiting.len() >= CHUNK_DOCUMENTS;
            if line.is_none() || (is_full && !request.atomic) {
                self.import_chunk(&std::mem::take(&mut waiting), bytes, request, &mut total, on_line)?;
                bytes = 0;
            }
            if line.is_none() {
                return Ok(total);
            }
        }
    }

    fn import_chunk(
        &self,
        chunk: &[(u64, Result<Operation>)],
        bytes: u64,
        request: &ImportOptions,
        total: &mut ImportReport,
        on_line: &mut dyn FnMut(&ImportLine),
    ) -> Result<()> {
        let mut first_failed = None;
        let committed = self.commit_or_not(bytes, request.dry_run, |txn| {
            let results: Vec<ImportLine> = chunk
                .iter()
                .map(|(line, operation)| match operation {
                    Ok(operation) => match apply(txn, operation, request.dry_run) {
                        Ok(document) => done(*line, operation.name(), document),
                        Err(error) => not_done(*line, Some(operation.name()), &error),
                    },
                    Err(error) => not_done(*line, None, error),
                })
                .collect();
            first_failed = results.iter().find(|result| !result.ok).map(|result| result.line);
            if request.atomic && first_failed.is_some() {
                return Err(Abort::Atomic(results));
            }
            Ok(results)
        });
        let (results, generation) = match committed {
            Ok(committed) => committed,
            Err(Abort::Store(error)) => return Err(error),
            Err(Abort::Atomic(mut results)) => {
                let line = first_failed.unwrap_or_default();
                for result in results.iter_mut().filter(|result| result.ok) {
                    let error = StoreError::NotAtomic { line };
                    *result = not_done(result.line, result.op.as_deref(), &error);
                }
                results.iter().for_each(on_line);
                return Err(StoreError::NotAtomic { line });
            }
        };
        for result in &results {
            total.lines += 1;
            if result.ok {
                total.done += 1;
            } else {
                total.failed += 1;
            }
            on_line(result);
        }
        total.generation = generation;
        Ok(())
    }

    /// Commits, or, for a dry run, stages and throws it away.
    fn commit_or_not<T>(
        &self,
        bytes: u64,
        dry_run: bool,
        mut stage: impl FnMut(&mut Txn<'_>) -> std::result::Result<T, Abort<T>>,
    ) -> std::result::Result<(T, u64), Abort<T>> {
        if dry_run {
            let snapshot = self.snapshot().map_err(Abort::Store)?;
            let mut txn = Txn::dry(&snapshot, self.now());
            return Ok((stage(&mut txn)?, snapshot.head.generation));
        }
        let mut aborted = None;
        let result = self.commit(bytes, |txn| {
            stage(txn).map_err(|abort| match abort {
                Abort::Store(error) => error,
                Abort::Atomic(results) => {
                    aborted = Some(results);
                    StoreError::Cancelled
                }
            })
        });
        match (result, aborted) {
            (Err(_), Some(results)) => Err(Abort::Atomic(results)),
            (Err(error), None) => Err(Abort::Store(error)),
            (Ok(done), _) => Ok(done),
        }
    }
}

/// Why a chunk was not committed.
enum Abort<T> {
    Store(StoreError),
    Atomic(T),
}

/// Reads a line without its end; `None` after the last.
fn read_line(input: &mut dyn BufRead) -> Result<Option<Vec<u8>>> {
    use std::io::Read;
    let mut line = Vec::new();
    let read = input.take(MAX_LINE).read_until(b'\n', &mut line).io("read", Path::new("the input"))?;
    if read == 0 {
        return Ok(None);
    }
    if read as u64 == MAX_LINE && line.last() != Some(&b'\n') {
        let reason = format!("a line is longer than {} MiB", MAX_LINE >> 20);
        return Err(StoreError::Invalid { field: "input", reason });
    }
    Ok(Some(line))
}

fn apply(txn: &mut Txn<'_>, operation: &Operation, dry_run: bool) -> Result<LearnedDocument> {
    let document = |docid: Option<DocId>, outcome, kbids| LearnedDocument {
        docid,
        source: None,
        outcome,
        kbids,
        warnings: Vec::new(),
    };
    match operation {
        Operation::Learn(prepared) => stage(txn, prepared),
        Operation::Unlearn(target) => {
            let request = Unlearn { targets: vec![target.clone()], dry_run, purge: false };
            let done = crate::unlearn::unlearn(txn, &request)?;
            let docid = done.documents.first().or(done.edited.first()).cloned();
            Ok(document(docid, Outcome::Removed, done.sections))
        }
        Operation::Skill(skill) => {
            let outcome = stage_skill(txn, skill)?;
            let kbid = SectionId::of(&MediaType::markdown(), skill.text().as_bytes());
            Ok(LearnedDocument { warnings: skill.lint(), ..document(Some(skill.docid()), outcome, vec![kbid]) })
        }
        Operation::Agent(agent) => {
            let (docid, outcome) = stage_agent(txn, agent)?;
            Ok(document(Some(docid), outcome, Vec::new()))
        }
    }
}

fn done(line: u64, op: &str, document: LearnedDocument) -> ImportLine {
    ImportLine {
        line,
        ok: true,
        op: Some(op.to_owned()),
        docid: document.docid,
        outcome: document.outcome,
        kbids: document.kbids,
        warnings: document.warnings,
        error: None,
    }
}

fn not_done(line: u64, op: Option<&str>, error: &StoreError) -> ImportLine {
    let message = error.sentence();
    ImportLine {
        line,
        ok: false,
        op: op.map(str::to_owned),
        docid: None,
        outcome: Outcome::Failed,
        kbids: Vec::new(),
        warnings: Vec::new(),
        error: Some(ImportError { code: error.code().to_owned(), message }),
    }
}
