//! kb-store
