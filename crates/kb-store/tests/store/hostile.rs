//! Texts of the kinds that broke other systems: each is kept byte for byte, is named where something is wrong with
//! it, and costs nobody else anything.

use kb_core::{DocId, MediaType, Severity};
use kb_store::{Gc, LearnPaths, Search, Silent, StoreError, Text};
use proptest::prelude::*;

use crate::support::{Base, id, text};

fn learn_paths(base: &Base, name: &str) -> kb_core::LearnReport {
    base.kb.learn_paths(&[base.folder().join(name)], &LearnPaths::default(), &mut Silent).expect("it is there")
}

/// Learns a file and returns its document's title; the bytes must come back as they are.
fn title_of(base: &Base, name: &str, content: &str) -> String {
    base.write(name, content);
    let report = learn_paths(base, name);
    let docid: &DocId = report.documents[0].docid.as_ref().expect("no text is refused");
    assert_eq!(base.document(docid.as_str()).as_deref(), Some(content));
    base.kb.describe_document(docid).expect("it was learned").title
}

#[test]
fn front_matter_that_cannot_be_read_is_reported_and_the_text_kept() {
    let base = Base::new();
    let source = "---\ntitle: \"Pump rota\nowner: ana\n---\n\nValve plan\n";
    let path = base.write("pump.md", source);
    for tags in [vec![], vec![], vec!["new".to_owned()]] {
        let request = LearnPaths { tags, ..LearnPaths::default() };
        let report = base.kb.learn_paths(std::slice::from_ref(&path), &request, &mut Silent).expect("learned");
        let warning = &report.documents[0].warnings[0];
        assert!(warning.line.is_some() && warning.column.is_some(), "{warning:?}");
    }
    assert_eq!(std::fs::read_to_string(&path).expect("there"), source, "the source is never written to");
    assert_eq!(base.document("pump").as_deref(), Some(source));
    assert_eq!(base.kb.describe_document(&id("pump")).expect("there").tags, ["new"]);
}

#[test]
fn a_note_that_stops_parsing_stays_and_is_named_by_status() {
    let base = Base::new();
    base.write("a.md", "---\ntitle: Fine\n---\n\nkingfisher\n");
    learn_paths(&base, "a.md");
    assert!(base.kb.status().expect("status").problems.is_empty());
    base.write("a.md", "---\ntitle: [\n---\n\nkingfisher\n");
    learn_paths(&base, "a.md");
    let problems = base.kb.status().expect("status").problems;
    assert_eq!((problems.len(), problems[0].severity), (1, Severity::Warning));
    assert_eq!(problems[0].docid, Some(id("a")));
    assert!(base.document("a").expect("it stays").contains("kingfisher"));
    base.write("a.md", "---\ntitle: Fine\n---\n\nkingfisher\n");
    learn_paths(&base, "a.md");
    assert!(base.kb.status().expect("status").problems.is_empty());
}

#[test]
fn titles_are_text_exactly_as_written() {
    let base = Base::new();
    for (i, title) in ["404", "true", "20310203_1", "1e3", "0x1F", "2031-02-03", "no", "1.10"].into_iter().enumerate() {
        assert_eq!(title_of(&base, &format!("t{i}.md"), &format!("---\ntitle: {title}\n---\nx")), title);
    }
    for (i, absent) in ["null", "~", ""].into_iter().enumerate() {
        let title = title_of(&base, &format!("n{i}.md"), &format!("---\ntitle: {absent}\n---\n# Heading\n"));
        assert_eq!(title, "Heading", "{absent:?}");
    }
    assert_eq!(title_of(&base, "2031-02-03.md", "# 2031-02-03\n\nstandup\n"), "2031-02-03");
    assert_eq!(title_of(&base, "colon.md", "---\ntitle: 'Sync: A & B | C #4'\n---\nx"), "Sync: A & B | C #4");
    assert_eq!(title_of(&base, "kind.md", "---\ntype:\ntitle: Empty kind\n---\nhi"), "Empty kind");
    assert_eq!(title_of(&base, "end.md", "---\ntitle: End\n---"), "End");
    assert_eq!(title_of(&base, "win.md", "---\r\ntitle: Win\r\n---\r\nbody"), "Win");
    assert_eq!(title_of(&base, "blank.md", "--- \ntitle: Blank\n---\t\nx"), "Blank");
    assert_eq!(title_of(&base, "rule.md", "---\n\nJust prose under a rule. word: value\n"), "rule.md");
    assert_eq!(title_of(&base, "bom.md", "\u{feff}---\ntitle: Lamp\n---\n# L\nx"), "Lamp");
    assert_eq!(title_of(&base, "bom2.md", "\u{feff}# Only heading\nx"), "Only heading");
    assert_eq!(title_of(&base, "bom3.md", "\u{feff}Title\n=====\nx"), "Title");
    assert_eq!(title_of(&base, "sharp.md", "## F#\nz\n"), "F#");
}

#[test]
fn tags_of_any_type_are_text_and_one_document_never_fails_a_commit() {
    let base = Base::new();
    for i in 0..50 {
        base.write(&format!("docs/{i}.md"), &format!("# Good {i}\n"));
    }
    base.write("docs/tags.md", "---\ntags: [2031-02-03, 7, true, ops]\n---\nx");
    assert_eq!(learn_paths(&base, "docs").added, 51);
    assert_eq!(base.kb.describe_document(&id("tags")).expect("there").tags, ["2031-02-03", "7", "true", "ops"]);
    assert_eq!(base.kb.rebuild(&mut Silent).expect("rebuilt").documents, 51);
}

#[test]
fn fences_hold_no_headings() {
    let base = Base::new();
    let sections = |docid: &str, content: &str| {
        base.learn(docid, content);
        base.kb.describe_document(&id(docid)).expect("there").sections.len()
    };
    assert_eq!(sections("guide", "# Guide\n\n~~~sh\n# wipe cache\nrm x\n~~~\n\n## Next\ny"), 2);
    assert_eq!(sections("ticks", "````md\n```\n# no\n```\n````\n## F#\nz\n    # indented\n"), 2);
    assert_eq!(sections("boxes", "- [x] ship\n- [03:11 - 03:40] intro\n- Met [[Rui]] and [[Ola]] today"), 1);
}

#[test]
fn a_nul_is_kept_and_counted() {
    let base = Base::new();
    let report = base.learn("n", "notes\0with hole\0 kingfisher");
    let warning = &report.documents[0].warnings[0];
    assert!(warning.code == "nul" && warning.message.starts_with("2 NUL"), "{warning:?}");
    assert_eq!(base.document("n").as_deref(), Some("notes\0with hole\0 kingfisher"));
}

#[test]
fn a_broken_link_is_reported_by_check_and_excludes_nothing() {
    let base = Base::new();
    base.write("docs/a.md", "see [x](../gone.md) cormorant, [y](b.md) and [z](https://example.org/none.md)");
    base.write("docs/b.md", "# B\n");
    learn_paths(&base, "docs");
    let report = base.kb.check(&mut Silent).expect("checked");
    assert!(report.ok);
    assert_eq!(base.problems(), ["broken-link: line 1 links to `../gone.md`, which is not there"]);
    assert_eq!(report.problems[0].severity, Severity::Warning);
}

#[test]
fn titles_in_any_script_make_documents_of_their_own() {
    let base = Base::new();
    let titles = ["港口", "порт", "ทะเล", "🚢", "---", "!!!", "é", "e\u{301}", "Łódź", ""];
    let mut docids = std::collections::BTreeSet::new();
    for title in titles {
        let new = Text { title: Some(title.to_owned()), ..Text::markdown(format!("of {title}\n")) };
        let report = base.kb.learn(&new).expect("learned");
        assert_eq!(report.added, 1, "{title:?}");
        docids.extend(report.documents[0].docid.clone());
        assert_eq!(base.kb.learn(&new).expect("learned").unchanged, 1, "{title:?}");
    }
    assert_eq!(docids.len(), titles.len());
}

#[test]
fn sources_from_other_systems_are_names_and_nothing_more() {
    let base = Base::new();
    for source in
        ["C:\\a\\b.md", "\\\\srv\\share\\c.md", "../../etc/passwd", "/etc/x.md", "a/../../b.md", "x\0y.md", ""]
    {
        let new = Text { source: Some(source.to_owned()), ..Text::markdown(format!("# Of {source:?}\n")) };
        let report = base.kb.learn(&new).expect("learned");
        let docid = report.documents[0].docid.clone().expect("added");
        assert!(!docid.as_str().contains(['\\', ':', '.', '\0']), "{docid}");
        assert_eq!(base.kb.describe_document(&docid).expect("there").source.as_deref(), Some(source));
        assert_eq!(base.kb.learn(&new).expect("learned").unchanged, 1, "{source:?}");
    }
    let mut paths = Vec::new();
    let mut sink = |document: kb_store::ExportedDocument| {
        paths.push(document.path);
        Ok(())
    };
    base.kb.export(&mut sink).expect("exported");
    assert_eq!(paths.len(), 7);
    for path in paths {
        assert!(!path.starts_with('/') && path.split('/').all(|part| !["", ".", ".."].contains(&part)), "{path}");
    }
}

#[test]
fn enormous_texts_are_taken_whole() {
    let base = Base::new();
    let line = "no end in sight ".repeat((20 << 20) / 16);
    let headings: String = (0..100_000).flat_map(|i| ["## H".to_owned(), i.to_string(), "\n".to_owned()]).collect();
    let deep: String = (0..20_000).flat_map(|i| [&"######"[i % 6..], " d\n"]).collect();
    let nested = format!("{}x{}\n", "> ".repeat(5_000), "*".repeat(5_000));
    for (docid, content, fewest) in
        [("line", &line, 20), ("headings", &headings, 100_000), ("deep", &deep, 20_000), ("nested", &nested, 1)]
    {
        base.learn(docid, content);
        assert!(base.document(docid).as_ref() == Some(content), "{docid} comes back as it was");
        let sections = base.kb.describe_document(&id(docid)).expect("there").sections;
        assert!(sections.len() >= fewest, "{docid}: {} sections", sections.len());
    }
    base.kb.gc(&Gc::default(), &mut Silent).expect("collected");
    base.kb.rebuild(&mut Silent).expect("rebuilt");
    assert!(base.document("line").as_ref() == Some(&line));
    assert!(base.problems().is_empty());
}

#[test]
fn empty_texts_are_documents() {
    let base = Base::new();
    for (docid, content) in
        [("empty", ""), ("blank", " \n\t\n"), ("front", "---\ntitle: Only front\n---\n"), ("bom", "\u{feff}")]
    {
        assert_eq!(base.learn(docid, content).added, 1, "{docid}");
        assert_eq!(base.document(docid).as_deref(), Some(content));
        assert_eq!(base.learn(docid, content).unchanged, 1, "{docid}");
    }
    assert_eq!(base.kb.describe_document(&id("front")).expect("there").title, "Only front");
    assert!(base.problems().is_empty());
    assert_eq!(base.kb.rebuild(&mut Silent).expect("rebuilt").documents, 4);
    assert!(base.problems().is_empty());
}

#[test]
fn what_is_no_text_is_refused_by_name() {
    let base = Base::new();
    let new = Text { source: Some("x.md".to_owned()), ..Text::markdown(b"ok \xc3\x28".to_vec()) };
    assert!(matches!(base.kb.learn(&new), Err(StoreError::NotUtf8 { name, offset: 3 }) if name == "x.md"));
    let pdf: MediaType = "application/pdf".parse().expect("a type");
    let error = base.kb.learn(&Text { media_type: Some(pdf), ..text("p", "x") }).expect_err("no text");
    assert!(error.code() == "invalid" && error.to_string().contains("application/pdf"), "{error}");
    let png: MediaType = "image/png".parse().expect("a type");
    let error = base.kb.learn(&Text { media_type: Some(png), ..text("p", "x") }).expect_err("no title");
    assert!(error.to_string().contains("title"), "{error}");
    let status = base.kb.status().expect("status");
    assert_eq!((status.documents, status.generation), (0, 0));
}

/// Every pattern of this list is searched for in a base of these documents; the docids that it must find, in order.
fn finds(documents: &[(&str, &str)], queries: &[(&str, &[&str])]) {
    let base = Base::new();
    for (docid, content) in documents {
        base.learn(docid, content);
    }
    for (query, expected) in queries {
        assert_eq!(base.search(query), *expected, "{query}");
    }
}

#[test]
fn what_is_learned_is_found_by_another_handle_at_once() {
    let base = Base::new();
    let other = kb_store::KnowledgeBase::open_read_only(base.database(), crate::support::options()).expect("there");
    for i in 0..20 {
        base.learn(&format!("d{i}"), &format!("# D{i}\n\nkingfisher{i}\n"));
        let answer = other.search(&Search::new(format!("kingfisher{i}"))).expect("searched");
        assert_eq!((answer.hits[0].docid.clone(), answer.generation), (id(&format!("d{i}")), i + 1));
    }
}

#[test]
fn hidden_words_are_found() {
    finds(
        &[
            ("nul", "notes\0with hole kingfisher"),
            ("front", "---\ndescription: quarterly otter census\ntags: [mill]\naliases: [weir]\n---\nbody"),
            ("only", "---\ntitle: Heron ledger\n---\n"),
            ("broken", "---\ntitle: \"Pump rota\nowner: ana\n---\n\nValve plan\n"),
            ("unclosed", "---\n\nJust prose under a rule. cormorant: value\n"),
            ("bom", "\u{feff}# Lamp oil\nx"),
            ("crlf", "---\r\ntitle: Win\r\n---\r\nsluice gate"),
            ("boxes", "- [x] ship\n- [03:11 - 03:40] intro\n- Met [[Rui]] and [[Ola]] today"),
        ],
        &[
            ("kingfisher", &["nul"]),
            ("hole", &["nul"]),
            ("otter", &["front"]),
            ("weir", &["front"]),
            ("tag:mill", &["front"]),
            ("heron", &["only"]),
            ("valve", &["broken"]),
            ("rota", &["broken"]),
            ("cormorant", &["unclosed"]),
            ("lamp", &["bom"]),
            ("sluice", &["crlf"]),
            ("win", &["crlf"]),
            ("rui ola", &["boxes"]),
            ("intro", &["boxes"]),
        ],
    );
}

#[test]
fn a_snippet_is_cut_at_characters_wherever_it_is_cut() {
    let base = Base::new();
    for (i, lead) in ["", "x", "xy", "xyz"].into_iter().enumerate() {
        base.learn(&format!("d{i}"), &format!("{lead}{}needle {i}{}", "’→⚠é ".repeat(700), " ’→⚠é".repeat(700)));
    }
    let answer = base.kb.search(&Search::new("needle")).expect("searched");
    assert_eq!(answer.hits.len(), 4);
    for hit in answer.hits {
        assert!(hit.snippet.contains("needle"), "{}", hit.snippet);
        for [from, to] in hit.highlights {
            let marked: String = hit.snippet.chars().take(to as usize).skip(from as usize).collect();
            assert_eq!(marked, "needle");
        }
    }
}

#[test]
fn what_was_unlearned_is_found_no_more_and_what_is_shared_still_is() {
    let base = Base::new();
    let licence = "## Licence\n\nfree as a gannet\n";
    base.learn("a", &format!("# A\n\nalpha\n\n{licence}"));
    base.learn("b", &format!("# B\n\nbeta\n\n{licence}"));
    let answer = base.kb.search(&Search::new("gannet")).expect("searched");
    assert_eq!((answer.hits.len(), answer.hits[0].also_in.len()), (1, 1), "a text is listed once");
    base.unlearn(kb_store::Target::Document(id("a")));
    assert_eq!((base.search("gannet"), base.search("alpha")), (vec!["b".to_owned()], vec![]));
    base.learn("b", "# B\n\nbeta\n");
    assert_eq!(base.search("gannet"), [""; 0], "a former revision is not found");
}

#[test]
fn a_source_that_changed_or_is_gone_is_said_to_be() {
    let base = Base::new();
    base.write("docs/a.md", "# A\n\npelican\n");
    base.write("docs/b.md", "# B\n\npuffin\n");
    learn_paths(&base, "docs");
    let stale = |query: &str| base.kb.search(&Search::new(query)).expect("searched").hits[0].stale.clone();
    assert_eq!((stale("pelican"), stale("puffin")), (None, None));
    base.write("docs/a.md", "# A\n\nplover!\n");
    std::fs::remove_file(base.folder().join("docs/b.md")).expect("it was there");
    assert_eq!((stale("pelican").as_deref(), stale("puffin").as_deref()), (Some("changed"), Some("gone")));
    learn_paths(&base, "docs");
    assert_eq!((base.search("pelican"), stale("plover")), (vec![], None));
}

#[test]
fn no_query_is_an_error() {
    let base = Base::new();
    base.learn("a", "# A\n\nblue-green can't tmp/out\n");
    let quotes = "\"".repeat(10_000);
    for query in [
        "",
        " ",
        "can't",
        "tmp/out",
        "\"open",
        "(",
        "a AND",
        "NEAR(",
        "*",
        "^x",
        "title:",
        "NOT",
        "OR OR",
        "{",
        "\\",
        "'; --",
        "🚢",
        "\0",
        "-",
        "+",
        "--",
        "-a",
        "tag:",
        "doc:*",
        "blue-green",
        "-0099",
        "x--y",
        &quotes,
    ] {
        let answer = base.kb.search(&Search::new(query)).expect("every text is a query");
        assert_eq!(answer.query, query);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_text_of_any_type_comes_back_and_is_found_whole(
        content in prop_oneof![any::<String>(), "(# |## |---\n|```\n|<p>|\r\n|\n|- |x|\u{feff}|\0|é|’→⚠|title: |\\[|\t){0,60}"],
        kind in 0..4_usize,
    ) {
        let base = Base::new();
        let media_type = [MediaType::markdown(), MediaType::plain(), MediaType::html(), MediaType::toml()][kind].clone();
        let new = Text { media_type: Some(media_type), ..text("x", &content) };
        base.kb.learn(&new).expect("every text is taken");
        prop_assert_eq!(base.document("x"), Some(content));
        prop_assert!(base.kb.check(&mut Silent).expect("checked").ok);
        prop_assert_eq!(base.kb.learn(&new).expect("every text is taken").unchanged, 1);
    }
}
