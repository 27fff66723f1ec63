//! MCP: the server of kb, and the client that fetches documents for its sources.
//!
//! The server is a [`kb_store::KnowledgeBase`], a [`kb_store::ProjectStore`], or both, as tools, prompts and resources.
//!
//! ```text
//! wire       bytes <-> messages                     stdio, http one client on a pipe, many over HTTP
//! server     what all clients share: threads,       connection  one client: its era, what it was asked
//!            requests under way, the end            watch       change notices
//! dispatch   a method -> what answers it            tools       arguments in, a report of kb-core out
//! served     which stores, and so which tools
//! prompts, resources, completion
//! client     fetches from other servers what a source names
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
mod client;
mod completion;
mod connection;
mod digest;
mod dispatch;
mod failure;
mod http;
mod install;
mod lanes;
mod outbox;
mod project_resources;
mod prompts;
mod protocol;
mod reply;
mod resources;
mod served;
mod server;
mod stdio;
mod tools;
mod watch;
mod wire;

#[cfg(unix)]
pub use client::supervise;
pub use client::{FetchError, Fetched, Machine, ServerLog, fetch};
pub use http::{HttpError, HttpServer, HttpSettings, Stopper};
pub use install::{Entry, Host, InstallError};
pub use served::Served;
pub use server::Settings;
pub use stdio::serve;
