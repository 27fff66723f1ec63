//! Feeds [`kb_fuzz::splitter`].

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| kb_fuzz::splitter(data));
