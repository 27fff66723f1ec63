//! Feeds [`kb_fuzz::query`].

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| kb_fuzz::query(data));
