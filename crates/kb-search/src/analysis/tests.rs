//! What the analyser makes of text, by script and by kind of token.
//!
//! **Invariant:** index and query are analysed by the same calls; a table here is what both see.

use proptest::prelude::*;
use unicode_normalization::UnicodeNormalization;

use super::*;

fn analyzer() -> Analyzer {
    Analyzer::new(Language::English)
}

fn raw(text: &str, markup: Markup) -> Vec<&str> {
    let mut tokens = Vec::new();
    analyzer().tokens(text, markup, &mut |token| tokens.push(token.text));
    tokens
}

fn check_tokens(text: &str, expected: &[&str]) {
    assert_eq!(raw(text, Markup::None), expected, "{text}");
}

/// Checks the terms of a text, written `text@position`, in order.
fn check_terms(text: &str, expected: &str) {
    let terms = analyzer().terms_of(text, Markup::Markdown);
    let written: Vec<_> = terms.iter().map(|placed| format!("{}@{}", placed.term.text, placed.position)).collect();
    assert_eq!(written.join(" "), expected, "{text}");
}

#[test]
fn tokens_are_what_a_reader_would_copy() {
    check_tokens("Ruling LAW-0077, adopted.", &["Ruling", "LAW-0077", "adopted"]);
    check_tokens("(see `kb-store`): --db -n .NET", &["see", "kb-store", "--db", "-n", ".NET"]);
    check_tokens("call flush_ring_buffer()", &["call", "flush_ring_buffer"]);
    check_tokens("node.js. C++, C#; F#/G++ v1.2.3!", &["node.js", "C++", "C#", "F#/G++", "v1.2.3"]);
    check_tokens("@scope/pkg a@b.org", &["@scope/pkg", "a@b.org"]);
    check_tokens("§4 §§ § 5", &["§4", "§§", "§", "5"]);
    check_tokens("can't user's boss’s O’Reilly's 'quoted'", &["can't", "user", "boss", "O’Reilly", "quoted"]);
    check_tokens("**bold** _emph_ __init__ a...b", &["bold", "emph", "init", "a", "b"]);
    check_tokens("https://example.com/a/b?x=1&y", &["https://example.com/a/b", "x", "1", "y"]);
    check_tokens("../src/lib.rs ~/notes ./run", &["src/lib.rs", "notes", "run"]);
    check_tokens("blue-green a-b -0099 x--y", &["blue-green", "a-b", "0099", "x--y"]);
    check_tokens("a\0b\u{7}c", &["a", "b", "c"]);
    check_tokens("ok 🚀 done", &["ok", "🚀", "done"]);
    check_tokens("", &[]);
    check_tokens("... --- * _ ' @ .", &[]);
}

#[test]
fn where_a_link_leads_inside_the_collection_is_not_text() {
    for (text, expected) in [
        ("[the size](../vector-class.md#size) of", &["the", "size", "of"][..]),
        ("![plan](img/plan.png \"Harbour\")", &["plan", "Harbour"]),
        ("[up](#top) [x](y.htm)", &["up", "x"]),
        ("[docs](https://example.com/a)", &["docs", "https://example.com/a"]),
        ("[me](mailto:a@b.org)", &["me", "mailto:a@b.org"]),
        ("a[i](x) [this](int n) {}", &["a", "i", "x", "this", "int", "n"]),
        ("[open](a/b", &["open", "a/b"]),
        ("## <a name=\"push_back\"></a> push_back", &["push_back"]),
        ("<a href=\"https://example.com\">x</a>", &["a", "href", "https://example.com", "x", "a"]),
        ("<a name=", &["a", "name"]),
    ] {
        assert_eq!(raw(text, Markup::Markdown), expected, "{text}");
    }
    assert_eq!(raw("[a](b/c)", Markup::None), ["a", "b/c"]);
}

#[test]
fn scripts_without_spaces_are_cut_in_pairs() {
    check_tokens("港口夜间", &["港口", "口夜", "夜间", "间"]);
    check_tokens("港", &["港"]);
    check_tokens("用 iPhone手机", &["用", "iPhone", "手机", "机"]);
    check_tokens("貨物、列車の", &["貨物", "物", "列車", "車の", "の"]);
    check_tokens("해양연구", &["해양", "양연", "연구", "구"]);
    check_tokens("ทะเล", &["ทะ", "ะเ", "เล", "ล"]);
    assert_eq!(unspaced_units("港口"), 2);
    assert_eq!(unspaced_units("か\u{3099}"), 1);
    assert_eq!(unspaced_units("port"), 0);
    assert_eq!(unspaced_units(""), 0);
}

#[test]
fn marks_stay_inside_words() {
    check_tokens("погода в порту́", &["погода", "в", "порту́"]);
    check_tokens("किताब सूची।", &["किताब", "सूची"]);
    check_tokens("مُحَمَّد، שָׁלוֹם", &["مُحَمَّد", "שָׁלוֹם"]);
    check_tokens("re\u{301}sume\u{301} résumé", &["re\u{301}sume\u{301}", "résumé"]);
}

#[test]
fn what_is_not_for_readers_is_no_token() {
    let html = "<p class=\"a>b\">One &amp; two</p><!-- no --><script>var x = '</p>';</script>three<br/>four a < b";
    assert_eq!(raw(html, Markup::Html), ["One", "two", "three", "four", "a", "b"]);
    assert_eq!(raw("<style>p { color: red }", Markup::Html), [""; 0]);
    assert_eq!(raw("<p never closed", Markup::Html), ["p", "never", "closed"]);
    assert_eq!(raw("a <b title='it > x", Markup::Html), ["a", "x"]);
    assert_eq!(raw("<!-->a<!-- b", Markup::Html), ["a"]);
    assert_eq!(
        raw("Vec<String> &nbsp;x &#8217;y a&b <!-- note -->", Markup::Markdown),
        ["Vec", "String", "x", "y", "a", "b", "note"]
    );
    let image = "![logo](data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAUA+/AAAFCAYAAACNbyblAAAAHElEQVQI12P4==) after";
    assert_eq!(raw(image, Markup::Markdown), ["logo", "after"]);
    assert_eq!(raw("data:a data: x", Markup::None), ["data:a", "data", "x"]);
    let base64 = "MIIEowIBAAKCAQEAx7Zk3tq9vB2LmN0pQrS8tUvWxYz1A2b3C4d5E6f7G8h9I0jK";
    assert_eq!(raw(&format!("key {base64} end"), Markup::None), ["key", "end"]);
    let token = "-m236uNs2NEu-NzOCDZZbsVXvxhop-aUKRc9D-jphV5KFuC8y6mNLklfg1PpH37QeDsyzJDZy604gZ5c.eyJ1cmwiOiAi";
    assert_eq!(raw(token, Markup::None), [""; 0]);
    let name = "codesnippet/CPP/walkthrough-creating-an-image-processing-network-part-8-of-12_8.cpp";
    assert_eq!(raw(name, Markup::None), [name]);
    let path = "/usr/share/documentation/packages/development/libraries/network/readme";
    assert_eq!(raw(path, Markup::None), [&path[1..]]);
}

#[test]
fn terms_are_whole_and_by_parts() {
    check_terms("parseHTMLNode", "parsehtmlnod@0 pars@0 html@1 node@2");
    check_terms("the html node", "the@0 html@1 node@2");
    check_terms("LAW-0077 adopted", "law-0077@0 law@0 0077@1 adopt@2");
    check_terms("flush_ring_buffer()", "flush_ring_buffer@0 flush@0 ring@1 buffer@2");
    check_terms("WM\\_PAINT", "wm_paint@0 wm@0 paint@1");
    check_terms("--db x", "--db@0 db@0 x@1");
    check_terms("utf8 x86", "utf8@0 utf@0 8@1 x86@2 x@2 86@3");
    check_terms("v1.2.3", "v1.2.3@0 v1@0 v@0 1@1 2@2 3@3");
    check_terms("C++ allocators", "c++@0 c@0 alloc@1");
    check_terms("vitamin C", "vitamin@0 c@1");
    check_terms("C++17 C# .NET", "c++17@0 c++@0 c@0 17@1 c#@2 c@2 .net@3 net@3");
    check_terms("std::HashMap", "std::hashmap@0 std@0 hashmap@1 hash@1 map@2");
    check_terms("node.js @scope/pkg", "node.js@0 node@0 js@1 @scope/pkg@2 scope@2 pkg@3");
    check_terms("§4 §§", "§4@0 4@0 §§@1");
    check_terms("can’t can't", "cant@0 cant@1");
    check_terms("港口夜", "港口@0 口夜@1 夜@2");
    check_terms("Résumés résumé re\u{301}sume\u{301}", "resum@0 resum@1 resum@2");
    check_terms("किताब", "किताब@0");
}

#[test]
fn compound_words_meet_their_plain_spelling() {
    for (compound, plain) in
        [("PayrollGateway", "payrollgateway"), ("createFile", "createfile"), ("getProperty", "GETPROPERTY")]
    {
        let first = |text: &str| analyzer().terms_of(text, Markup::None).remove(0).term.text;
        assert_eq!(first(compound), first(plain), "{compound}");
    }
}

#[test]
fn what_is_too_long_is_cut() {
    let long = "x".repeat(1000);
    assert_eq!(raw(&long, Markup::None), [&long[..256]]);
    let terms = analyzer().terms_of(&long, Markup::None);
    assert_eq!(terms.iter().map(|placed| placed.term.text.len()).collect::<Vec<_>>(), [64]);
    let path = "directory/".repeat(40);
    let tokens = raw(&path, Markup::None);
    assert!(tokens.len() == 2 && tokens.iter().all(|token| token.len() <= 266), "{tokens:?}");
    assert!(analyzer().terms_of(&path, Markup::None).iter().all(|placed| placed.term.kind == TermKind::Part));
    assert_eq!(analyzer().terms_of(&path, Markup::None).last().map(|placed| placed.position), Some(39));
}

#[test]
fn a_language_without_stems_keeps_the_words() {
    let terms = Analyzer::new(Language::None).terms_of("Running tests", Markup::None);
    assert_eq!(terms.iter().map(|placed| placed.term.text.as_str()).collect::<Vec<_>>(), ["running", "tests"]);
}

#[test]
fn a_prefix_knows_the_stems_that_it_outgrew() {
    assert_eq!(analyzer().stems_before("configurat"), ["configur"]);
    assert_eq!(analyzer().stems_before("happine"), ["happi", "happin"]);
    assert_eq!(analyzer().stems_before("hap"), [""; 0]);
    assert_eq!(analyzer().stems_before("пого"), [""; 0]);
}

#[test]
fn document_and_query_are_analysed_alike() {
    for text in ["PayrollGateway", "LAW-0077", "flush_ring_buffer()", "港口夜间装卸安排表", "貨物列車の時刻", "C++ §4"]
    {
        let (document, query) = (analyzer().terms_of(text, Markup::Markdown), analyzer().terms_of(text, Markup::None));
        assert!(!document.is_empty() && document == query, "{text}");
    }
}

proptest! {
    #[test]
    fn tokens_are_in_order_and_in_the_text(text in any::<String>(), markup in markups()) {
        let mut last = 0;
        let mut tokens = Vec::new();
        analyzer().tokens(&text, markup, &mut |token| tokens.push(token));
        for token in tokens {
            prop_assert_eq!(text.get(token.start..token.start + token.text.len()), Some(token.text));
            prop_assert!(token.start >= last && !token.text.is_empty());
            last = token.start;
        }
        for placed in analyzer().terms_of(&text, markup) {
            prop_assert!(text.get(placed.range).is_some());
            prop_assert!(!placed.term.text.is_empty() && placed.term.text.len() <= MAX_TERM_BYTES);
        }
    }

    #[test]
    fn code_like_text_is_cut_in_order(text in "[a-cA-C0-2_.:/@#+'\\\\<>&;é港ก-]{0,80}", markup in markups()) {
        let mut last = None;
        for placed in analyzer().terms_of(&text, markup) {
            prop_assert!(text.get(placed.range).is_some());
            prop_assert!(last <= Some(placed.position) || placed.term.offset == 0 || placed.term.kind == TermKind::Part);
            last = Some(placed.position);
        }
    }

    #[test]
    fn a_token_by_itself_is_that_token(text in "[a-cA-C0-2_.:/@#+'é-]{0,40}") {
        let analyzer = analyzer();
        let mut tokens = Vec::new();
        analyzer.tokens(&text, Markup::None, &mut |token| tokens.push(token.text));
        for token in tokens {
            prop_assert_eq!(raw(token, Markup::None), [token], "of {}", &text);
        }
    }

    #[test]
    fn composed_and_decomposed_texts_have_the_same_terms(text in "[a-zA-Zéàöñ한글がぱ ]{0,40}") {
        let (composed, decomposed) = (text.nfc().collect::<String>(), text.nfd().collect::<String>());
        let terms = |text: &str| -> Vec<_> {
            analyzer().terms_of(text, Markup::None).into_iter().map(|placed| (placed.term, placed.position)).collect()
        };
        prop_assert_eq!(terms(&composed), terms(&decomposed));
    }
}

fn markups() -> impl Strategy<Value = Markup> {
    prop_oneof![Just(Markup::None), Just(Markup::Markdown), Just(Markup::Html)]
}
