//! Feeds [`kb_fuzz::front_matter`].

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| kb_fuzz::front_matter(data));
