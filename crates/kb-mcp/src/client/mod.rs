//! The MCP client: fetches what a source names, and nothing else.
//!
//! ```text
//! fetch     one run: connect, verify, select, read           session  the calls that there are, in both eras
//! mapping   results of tools -> rows and documents           stdio    a child process with its group
//! redact    what must never be seen                          http     streamable HTTP, with sse
//! supervise what ends a child though we are killed
//! ```
//!
//! **Invariant:** the tools that can be called are those of the configuration: a [`session::Session`] has no call that
//! takes the name of a tool. No text that leaves this module holds a credential.

mod error;
mod fetch;
mod http;
mod mapping;
mod redact;
mod session;
mod sse;
mod stdio;
#[cfg(unix)]
mod supervise;

pub use error::FetchError;
pub use fetch::{Fetched, Machine, ServerLog, fetch};
#[cfg(unix)]
pub use supervise::supervise;

/// The longest message that is taken from a server, in bytes.
const MAX_MESSAGE_BYTES: usize = 256 << 20;
