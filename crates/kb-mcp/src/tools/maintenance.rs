//! `status`, `check`, `gc`, `rebuild`.
//!
//! **Invariant:** the long ones tell how far they are and stop when they are cancelled, leaving the base as it was.

use kb_store::Gc;
use serde_json::Value;

use super::arguments::Arguments;
use super::knowledge::take_array;
use super::schema::Shape;
use super::{Answer, Handler, Kind, Tool, to_value};
use crate::budget::Budget;
use crate::call::Call;
use crate::failure::Failure;

pub(super) static STATUS: Tool = Tool {
    name: "status",
    title: "Status",
    description: "How much the base holds, the state of its index, and what is wrong with it.",
    kind: Kind::Read,
    parameters: &[],
    result: &[
        ("documents", Shape::Count),
        ("sections", Shape::Count),
        ("skills", Shape::Count),
        ("agents", Shape::Count),
        ("index", Shape::Object),
        ("problems", Shape::Objects(&[])),
    ],
    handler: Handler::Base(|call, _| to_value(&call.base().status()?).map(bounded)),
};

pub(super) static CHECK: Tool = Tool {
    name: "check",
    title: "Check integrity",
    description: "Verify every byte and reference. `ok` is false for damage and broken references; broken links are \
                  warnings. Reads everything: can take seconds.",
    kind: Kind::Check,
    parameters: &[],
    result: &[("ok", Shape::Flag), ("problems", Shape::Objects(&[]))],
    handler: Handler::Base(|call, _| to_value(&call.base().check(&mut call.observer())?).map(bounded)),
};

pub(super) static GC: Tool = Tool {
    name: "gc",
    title: "Collect garbage",
    description: "Remove for good what no kept revision refers to: unlearned bytes and old revisions. Cannot be undone. \
                  Current documents are never touched.",
    kind: Kind::Collect,
    parameters: &[],
    result: &[("sectionsRemoved", Shape::Count), ("bytesFreed", Shape::Count)],
    handler: Handler::Base(gc),
};

pub(super) static REBUILD: Tool = Tool {
    name: "rebuild",
    title: "Rebuild the index",
    description: "Make the search index anew from the stored texts. `search` answers meanwhile; needed only where \
                  `status` or `check` says so.",
    kind: Kind::Rebuild,
    parameters: &[],
    result: &[("documents", Shape::Count), ("sections", Shape::Count), ("problems", Shape::Objects(&[]))],
    handler: Handler::Base(rebuild),
};

fn gc(call: &Call<'_>, _: &Arguments) -> Result<Answer, Failure> {
    to_value(&call.write(|base| base.gc(&Gc::default(), &mut call.observer()))?).map(Answer::Whole)
}

fn rebuild(call: &Call<'_>, _: &Arguments) -> Result<Answer, Failure> {
    to_value(&call.write(|base| base.rebuild(&mut call.observer()))?).map(bounded)
}

/// Cuts a list of problems that no reader could take in; errors stand first in it.
fn bounded(mut report: Value) -> Answer {
    let mut problems = take_array(&mut report, "problems");
    let omitted = Budget::of(None).fit(&mut problems);
    report["problems"] = problems.into();
    if omitted > 0 {
        report["omitted"] = omitted.into();
    }
    Answer::Whole(report)
}
