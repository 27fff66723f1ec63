//! The MCP server of kb: a [`kb_store::KnowledgeBase`] as 17 tools, prompts and resources, one JSON message a line.
//!
//! ```text
//! wire       bytes <-> messages                     connection  one client: eras, threads, cancelling, the end
//! dispatch   a method -> what answers it            tools       the 17 tools: arguments in, a report of kb-core out
//! prompts, resources, completion                    watch       change notices
//! ```
//!
//! The protocol is written out here on plain threads, without an SDK: docs/decisions.md says why, with figures. Both
//! eras are served by one process: 2024-11-05 to 2025-11-25, which begin with `initialize`, and 2026-07-28, where each
//! request speaks for itself.
//!
//! **Invariant:** no rule of the knowledge base is here. Nothing is written but messages to the output that was given
//! and lines to the activity log; nothing reads the environment or knows a home directory.

mod activity;
mod budget;
mod call;
mod completion;
mod connection;
mod digest;
mod dispatch;
mod failure;
mod install;
mod lanes;
mod outbox;
mod prompts;
mod protocol;
mod resources;
mod tools;
mod watch;
mod wire;

pub use connection::{Settings, serve};
pub use install::{Entry, Host, InstallError};
