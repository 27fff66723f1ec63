//! Feeds [`kb_fuzz::jsonl`].

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| kb_fuzz::jsonl(data));
