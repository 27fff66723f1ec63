//! The functions of the fuzz targets, fed with what proptest makes up: they stay true, and find the shallow faults.

use proptest::prelude::*;

#[path = "../../../../fuzz/src/memory.rs"]
mod memory;
#[expect(unreachable_pub, reason = "the fuzz targets reach it")]
#[path = "../../../../fuzz/src/targets.rs"]
mod targets;

/// Bytes as a fuzzer begins with them, and pieces of what the parsers look for.
fn bytes(pieces: &'static str) -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..200),
        (any::<u8>(), pieces).prop_map(|(first, text)| [&[first], text.as_bytes()].concat()),
    ]
}

/// Which file is damaged, how, and with what; most often a few flipped bits.
fn damage() -> impl Strategy<Value = Vec<u8>> {
    let how = prop_oneof![Just(0_u8), Just(1), Just(2), 3..=255_u8];
    (any::<u8>(), how, prop::collection::vec(any::<u8>(), 0..40))
        .prop_map(|(which, how, rest)| [&[which, how], rest.as_slice()].concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn texts_are_split(data in bytes("(#{1,7} |---\n|```|~~~|<!--|-->|<pre>|</h1>|<h2>|\\[\\[a\\]\\]|= 1|\n|\r\n|\t|é|x | ){0,80}")) {
        targets::splitter(&data);
    }

    #[test]
    fn front_matter_is_read(data in "(---|\\+\\+\\+|\\.\\.\\.)?\r?\n((name|title|tags|arguments|date|skills): ?|[-a-z\\[\\]{}&*!|>'\"#:,~0-9 ]{0,9}|\r?\n|\\{\\{a\\}\\}){0,30}(---\n)?.{0,40}") {
        targets::front_matter(data.as_bytes());
    }

    #[test]
    fn queries_are_answered(data in bytes("(\"|-|\\+|\\*|title:|tag:|doc:|type:|source:|heron|otter|fish-3|part|the|plovr|\u{301}|港| ){0,30}")) {
        targets::query(&data);
    }

    #[test]
    fn imports_answer_every_line(data in "(\\{\"op\":\"(learn|unlearn|skill|agent)\"(,\"(docid|content|name|persona|tag|kbid|type|source)\":(\"(a|b|# A|text|html)?\"|1|null|\\[\\])){0,4}\\}|[{}\\[\\]\",:a-z \u{feff}]{0,12}|\r?\n){0,20}") {
        targets::jsonl(data.as_bytes());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn a_damaged_pack_gives_no_wrong_byte_and_is_named(data in damage()) {
        targets::pack(&data);
    }

    #[test]
    fn a_damaged_index_file_gives_no_wrong_answer_and_is_healed(data in damage()) {
        targets::segment(&data);
    }
}
