//! Excerpts and findings in every script and at every width.
//!
//! **Invariant:** what is promised of an excerpt holds for any text and any query.

use proptest::prelude::*;

use super::*;
use crate::analysis::{Analyzer, Language};
use crate::matcher::{Findings, Window};
use crate::query::parse;

fn matcher(query: &str) -> Matcher {
    let analyzer = Analyzer::new(Language::English);
    Matcher::new(&parse(query, &analyzer), &analyzer)
}

fn look(text: &str, query: &str) -> Findings {
    matcher(query).look(text, Markup::Markdown, Field::Body)
}

fn forms(text: &str, query: &str) -> Vec<Option<Form>> {
    look(text, query).forms
}

/// Writes an excerpt with `[` and `]` around the marks.
fn marked(excerpt: &Excerpt) -> String {
    let mut written = String::new();
    let mut marks = excerpt.snippet.highlights.iter().peekable();
    for (at, character) in excerpt.snippet.text.chars().enumerate() {
        let at = at as u32;
        if marks.peek().is_some_and(|mark| mark[0] == at) {
            written.push('[');
        }
        written.push(character);
        if marks.peek().is_some_and(|mark| mark[1] == at + 1) {
            written.push(']');
            marks.next();
        }
    }
    written
}

fn check(text: &str, query: &str, max_chars: usize, expected: &str) {
    assert_eq!(marked(&snippet(text, Markup::Markdown, &matcher(query), 1, max_chars)), expected, "{query}");
}

#[test]
fn forms_tell_how_a_word_stands_there() {
    let (near, folded, exact) = (Some(Form::Near), Some(Form::Folded), Some(Form::Exact));
    assert_eq!(forms("The Résumé of résumés", "résumé"), [exact]);
    assert_eq!(forms("A resume", "résumé"), [folded]);
    assert_eq!(forms("A re\u{301}sume\u{301}", "Résumé"), [exact]);
    assert_eq!(forms("Resumes", "résumé"), [near]);
    assert_eq!(forms("nothing", "résumé"), [None]);
    assert_eq!(forms("call parseHTMLNode()", "parsehtmlnode html \"html node\""), [exact, exact, exact]);
    assert_eq!(forms("LAW 0077", "LAW-0077"), [exact]);
    assert_eq!(forms("0077 bolts of law", "LAW-0077"), [Some(Form::Scattered)]);
    assert_eq!(forms("LAW memo", "LAW-0077"), [None]);
    assert_eq!(forms("dying skies, being used", "die sky be use"), [near, near, near, near]);
    assert_eq!(forms("vitamin C", "C++"), [None]);
    assert_eq!(forms("C++ allocators", "C++ c"), [exact, exact]);
    assert_eq!(forms("call self.flush_ring_buffer()", "flush_ring_buffer flush_ring"), [exact, exact]);
    assert_eq!(forms("can't we’ll", "cant we'll"), [folded, exact]);
    assert_eq!(forms("syntax", "synt* tax*"), [exact, None]);
}

/// Cases B1, B5, B7, B8, B9, B14, B18 and B21, as far as they are about words.
#[test]
fn documents_are_found_by_what_people_type() {
    for (text, queries) in [
        ("Ruling LAW-0077 adopted", vec!["LAW-0077", "\"LAW-0077\"", "law 0077", "law-0077"]),
        ("call flush_ring_buffer()", vec!["flush_ring_buffer", "ring buffer", "flush_ring", "\"ring buffer\""]),
        ("retryWithJitter handles", vec!["jitter", "retryWithJitter", "retrywithjitter"]),
        ("parseHTMLNode", vec!["html node", "parsehtmlnode", "\"html node\""]),
        ("PayrollGateway", vec!["PayrollGateway", "payrollgateway", "payroll"]),
        ("港口夜间装卸安排表", vec!["夜间", "装卸安排", "港", "表", "\"夜间装卸\""]),
        ("貨物列車の時刻", vec!["列車", "時刻", "の"]),
        ("해양연구보고", vec!["해양", "연구", "보고", "\u{1112}\u{1162}\u{110b}\u{1163}\u{11bc}"]),
        ("погода в порту", vec!["погода", "ПОРТУ"]),
        ("किताब सूची", vec!["किताब", "सूची"]),
        ("ทะเลสาบ", vec!["ทะเล", "สาบ"]),
        ("re\u{301}sume\u{301}", vec!["résumé", "resume", "re\u{301}sume\u{301}"]),
        ("C++ C# F# .NET node.js @scope/pkg §4", vec!["C++", "c#", "F#", ".NET", "node.js", "@scope/pkg", "pkg", "§4"]),
        (
            "see https://example.com/docs/intro.html",
            vec!["example.com", "docs/intro", "https://example.com/docs/intro.html"],
        ),
        ("std::collections::HashMap", vec!["hashmap", "HashMap", "collections"]),
    ] {
        for query in queries {
            let found = forms(text, query);
            assert!(!found.is_empty() && found.iter().all(|form| *form >= Some(Form::Folded)), "{query} in {text}");
        }
    }
}

#[test]
fn phrases_are_these_words_in_this_order() {
    let found = |text: &str, query: &str| forms(text, query)[0].is_some_and(|form| form >= Form::Folded);
    assert!(found("the ring buffer is", "\"Ring Buffer\""));
    assert!(!found("the ring buffers are", "\"ring buffer\""));
    assert!(found("ring buffers, one ring buffer", "\"ring buffer\""));
    assert!(!found("buffer ring", "\"ring buffer\""));
    assert!(!found("ring of buffer", "\"ring buffer\""));
    assert!(found("港口夜间装卸安排表", "\"装卸安排\""));
    assert!(!found("装卸的安排", "\"装卸安排\""));
    assert_eq!(forms("x y", "x -\"x y\" -z"), [Some(Form::Exact), Some(Form::Exact), None]);
}

#[test]
fn windows_are_the_smallest() {
    let window = |text: &str, query: &str| look(text, query).window;
    assert_eq!(window("alpha x x x beta x alpha beta", "beta alpha"), Some(Window { clauses: 2, positions: 2 }));
    assert_eq!(window("alpha x beta", "beta gamma alpha"), Some(Window { clauses: 2, positions: 3 }));
    assert_eq!(window("the alpha", "the alpha"), Some(Window { clauses: 1, positions: 1 }));
    assert_eq!(window("to be", "to be"), Some(Window { clauses: 2, positions: 2 }));
    assert_eq!(window("none", "alpha"), None);
    assert_eq!(window("retryWithJitter x", "x jitter"), Some(Window { clauses: 2, positions: 2 }));
}

#[test]
fn corrections_and_fields_count() {
    let mut corrected = matcher("pazameters title:alpha");
    corrected.also(0, "paramet");
    corrected.also(7, "ignored");
    let findings = corrected.look("alpha parameters", Markup::None, Field::Body);
    assert_eq!(findings.forms, [Some(Form::Near), None]);
    assert_eq!(corrected.look("alpha", Markup::None, Field::Title).forms, [None, Some(Form::Exact)]);
}

#[test]
fn excerpts_show_the_words_together() {
    let far = "filler words go on and on here. ".repeat(20);
    let text = format!("# Alpha\n\n{far}\n\nNow alpha meets\nbeta at last. {far}");
    check(&text, "alpha beta", 40, "Now [alpha] meets [beta] at last. filler");
    check("Run `kb learn --db x` twice", "--db", 80, "Run `kb learn [--db] x` twice");
    check("retryWithJitter handles", "jitter", 80, "retryWith[Jitter] handles");
    check("short", "absent", 80, "short");
    check("", "absent", 80, "");
    check("| a | b |\n|---|:--|\n| alpha | c |", "alpha", 80, "| a | b | | [alpha] | c |");
    let url = format!("alpha https://example.org/{} beta", "p/".repeat(40));
    check(&url, "alpha", 200, "[alpha] https://example.org/p/p/p/p/p/… beta");
}

#[test]
fn weights_decide_between_places() {
    let far = "filler ".repeat(60);
    let text = format!("common {far} rare {far} common");
    let mut matcher = matcher("common rare");
    matcher.set_weights(&[0.1, 5.0]);
    let excerpt = snippet(&text, Markup::None, &matcher, 1, 60);
    assert!(marked(&excerpt).contains("[rare]"), "{excerpt:?}");
}

#[test]
fn lines_are_those_of_the_best_place_in_any_script() {
    let mut lines: Vec<String> = (1..=3000).map(|line| format!("第{line}行的港口记录没有别的内容。")).collect();
    lines[2710] = "夜间装卸安排表已经更新。".to_owned();
    let text = lines.join("\n");
    for query in ["夜间装卸", "装卸安排", "\"安排表\"", "港口夜间装卸安排"] {
        let excerpt = snippet(&text, Markup::Markdown, &matcher(query), 11, 60);
        assert_eq!(excerpt.match_line, 2721, "{query}: {excerpt:?}");
        assert!(excerpt.snippet.line <= 2721 && excerpt.snippet.line > 2715, "{excerpt:?}");
        assert_eq!(best_line(&text, Markup::Markdown, &matcher(query), 11), 2721, "{query}");
    }
    assert_eq!(best_line("a\nb\nc", Markup::None, &matcher("absent"), 5), 5);
}

#[test]
fn html_is_shown_as_it_reads() {
    let html = "<h1 class=\"alpha\">Title</h1>\n<p>An <b>alp</b>ha &amp; <em>beta</em></p>\n<script>beta</script>";
    let excerpt = snippet(html, Markup::Html, &matcher("beta"), 4, 80);
    assert_eq!(marked(&excerpt), "Title An alpha & [beta]");
    assert_eq!((excerpt.match_line, excerpt.snippet.line), (5, 4));
}

/// Case E6: no width cuts a character.
#[test]
fn every_width_is_cut_between_characters() {
    let text = "’→⚠é wörd 港口 ".repeat(60);
    for query in ["wörd", "港口", "é", "absent"] {
        for width in 0..=300 {
            let excerpt = snippet(&text, Markup::Markdown, &matcher(query), 1, width);
            assert_sound(&excerpt, width);
        }
    }
}

fn assert_sound(excerpt: &Excerpt, width: usize) {
    let chars = excerpt.snippet.text.chars().count();
    assert!(chars <= width, "{chars} of {width}");
    let mut last = 0;
    for &[start, end] in &excerpt.snippet.highlights {
        assert!(last <= start && start < end && end as usize <= chars, "{excerpt:?}");
        last = end;
    }
}

proptest! {
    #[test]
    fn any_text_and_query_give_a_sound_excerpt(
        text in "[a-c -.\n\té港口|<>&\\-]{0,200}",
        query in "[a-c \"+*é港口-]{0,20}",
        width in 0_usize..120,
    ) {
        for markup in [Markup::None, Markup::Markdown, Markup::Html] {
            let excerpt = snippet(&text, markup, &matcher(&query), 1, width);
            assert_sound(&excerpt, width);
            prop_assert!(excerpt.match_line as usize <= 1 + text.matches('\n').count());
        }
    }

    #[test]
    fn any_bytes_give_a_sound_excerpt(text in any::<String>(), query in any::<String>(), width in 0_usize..50) {
        assert_sound(&snippet(&text, Markup::Html, &matcher(&query), 1, width), width);
        assert_sound(&snippet(&text, Markup::Markdown, &matcher(&query), 1, width), width);
    }

    /// The quick look at how a token begins never hides a match.
    #[test]
    fn what_expansion_finds_the_matcher_finds(text in "[a-dA-C0-1_'.é港 ]{1,40}") {
        let analyzer = Analyzer::new(Language::English);
        for placed in analyzer.terms_of(&text, Markup::None) {
            let word = &text[placed.range];
            for clause in forms(&text, word) {
                prop_assert!(clause.is_some(), "{} in {}", word, &text);
            }
        }
    }
}
