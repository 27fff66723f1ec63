//! The server as a client meets it: lines in, lines out, over in-memory pipes.
//!
//! **Invariant:** nothing here waits for a time to pass; a test waits for a message, and fails if it does not come.

#![expect(clippy::unwrap_used, reason = "a test says by panicking what went wrong")]
#![expect(clippy::needless_pass_by_value, reason = "JSON is written where it is passed")]

mod client;
mod eras;
mod http;
mod http_client;
mod knowledge;
mod projects;
mod robustness;
mod surface;
