//! Feeds [`kb_fuzz::pack`].

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| kb_fuzz::pack(data));
