//! kb-cli
