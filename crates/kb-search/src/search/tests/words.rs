//! Names of software and words of many scripts, asked for as people type them.

use unicode_normalization::UnicodeNormalization;

use super::*;

/// Checks that a name is found whole, before what holds a part of it alone, and by each of these parts.
fn check_name(name: &str, parts: &[&str]) {
    let mut written: Vec<String> = parts.iter().map(|part| format!("a page about {part} alone")).collect();
    written.push(format!("a page about {name} here"));
    written.push("another page".to_owned());
    let documents = texts(&written.iter().map(String::as_str).collect::<Vec<_>>());
    let named = format!("d{}", parts.len());
    assert_eq!(docids(&ask(&documents, name, Mode::Auto)).first(), Some(&named.as_str()), "`{name}`");
    for part in parts {
        let found = ask(&documents, part, Mode::All);
        assert!(docids(&found).contains(&named.as_str()), "`{part}` of `{name}`");
    }
}

#[test]
fn names_are_found_whole_first_and_by_their_parts() {
    for (name, parts) in [
        ("parseHTTPHeader", &["parse", "http", "header"][..]),
        ("HttpServerConfig", &["http", "server", "config"]),
        ("flush_ring_buffer", &["flush", "ring buffer"]),
        ("kb-store", &["kb", "store"]),
        ("os.path.join", &["os", "path", "join"]),
        ("std::collections::HashMap", &["collections", "HashMap", "hash map"]),
        ("src/search/plan.rs", &["src", "plan", "plan.rs"]),
        ("v1.2.3", &["1.2.3"]),
        ("--no-verify", &["verify", "no-verify"]),
        ("C++", &[]),
        ("C#", &[]),
        (".NET", &["net"]),
        ("§4", &["4"]),
        ("@scope/pkg", &["scope", "pkg"]),
        ("ops@example.org", &["ops", "example.org"]),
        ("https://example.org/guide/start", &["example.org", "guide"]),
        ("KB_WRITE_DOCS", &["write", "docs"]),
        ("x86_64", &["x86", "64"]),
        ("URLs", &["url"]),
    ] {
        check_name(name, parts);
    }
}

#[test]
fn signs_tell_languages_apart() {
    let documents = texts(&["allocators in C++", "allocators in C#", "allocators in C", "allocators in F#"]);
    for (query, first) in [("C++ allocators", "d0"), ("C# allocators", "d1"), ("F# allocators", "d3")] {
        assert_eq!(docids(&ask(&documents, query, Mode::Auto))[0], first, "{query}");
    }
}

#[test]
fn a_word_is_found_however_it_is_composed_and_in_any_case() {
    for word in ["Résumé", "naïve", "Ångström", "Ёлка", "が", "한글"] {
        let (composed, decomposed): (String, String) = (word.nfc().collect(), word.nfd().collect());
        for (text, query) in [(&composed, &decomposed), (&decomposed, &composed)] {
            let documents = texts(&[&format!("one {text} two"), "three"]);
            assert_eq!(docids(&ask(&documents, query, Mode::All)), ["d0"], "{word}");
            assert_eq!(docids(&ask(&documents, &query.to_lowercase(), Mode::All)), ["d0"], "{word}");
        }
    }
    let documents = texts(&["the resume of a thread", "the résumé of a person"]);
    assert_eq!(docids(&ask(&documents, "résumé", Mode::All)), ["d1", "d0"], "the form asked for comes first");
    assert_eq!(docids(&ask(&documents, "resume", Mode::All)), ["d0", "d1"], "the form asked for comes first");
}

#[test]
fn words_of_many_scripts_are_found() {
    for (text, queries) in [
        ("港口夜间装卸安排表", &["夜间", "装卸安排", "港"][..]),
        ("貨物列車の時刻をカタカナで書く", &["列車", "カタカナ", "時刻を"]),
        ("해양 연구선의 장비 목록", &["연구선", "장비"]),
        ("ทะเลสีฟ้าและเรือ", &["ทะเล", "เรือ"]),
        ("किताब की सूची यहाँ है", &["किताब", "सूची"]),
        ("قائمة الكتب في المكتبة", &["الكتب", "المكتبة"]),
        ("расписание погрузки в порту", &["погрузки", "ПОРТУ"]),
    ] {
        let documents = texts(&[text, "another page", "別の文書"]);
        for query in queries {
            assert_eq!(docids(&ask(&documents, query, Mode::All)), ["d0"], "{query}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    /// A tokenizer that takes a run for a word finds 2.7 % of such queries.
    #[test]
    fn any_two_characters_of_a_script_without_spaces_are_found(
        written in prop::collection::vec("[港口夜间装卸安排表貨物列車時刻のをがカタナ]{2,12}", 1..6),
    ) {
        let documents = texts(&written.iter().map(String::as_str).collect::<Vec<_>>());
        let searcher = searcher(&documents);
        for text in &written {
            let characters: Vec<char> = text.chars().collect();
            for pair in characters.windows(2) {
                let pair: String = pair.iter().collect();
                let query = parse(&pair, &analyzer());
                let ranked = searcher.search(&query, &SearchOptions::default(), &Library(&documents)).unwrap();
                let mut found: Vec<usize> =
                    ranked.hits.iter().flat_map(|hit| hit.also_in.iter().chain([&hit.docid]))
                        .map(|docid| docid[1..].parse().unwrap()).collect();
                found.sort_unstable();
                let holders: Vec<usize> = (0..written.len()).filter(|&i| written[i].contains(&pair)).collect();
                prop_assert_eq!(found, holders, "{}", pair);
            }
        }
    }
}
