//! What the binary `kb` prints and how it exits.
//!
//! **Invariant:** these tests prove the wiring; the rules are tested where they are. Each starts in a folder and a home
//! of its own, with an empty environment.

mod harness;
mod ids;
mod learning;
mod mcp;
mod project;
mod readme;
mod searching;
mod serve;
mod skills;
mod sources;
mod transfer;
mod upkeep;
mod usage;
