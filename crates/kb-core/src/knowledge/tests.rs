//! Documents of every make, read and edited.

use proptest::prelude::*;

use super::*;

const NOW: &str = "2031-02-03T04:05:06Z";

fn titles(source: &str) -> Vec<String> {
    Knowledge::parse(source).chapters().into_iter().map(|chapter| chapter.title).collect()
}

#[test]
fn a_chapter_is_a_heading_of_level_two_with_all_below_it() {
    let source = "---\ntitle: T\nkeywords: [a, 7, 2031-02-03]\ncreated: 2024-01-01\nowner: ana\n---\n\nIntro.\n\n\
                  ## One\n\nFirst\nparagraph.\n\n### Deeper\n\n```\n## no\n```\n<!--\n## no\n-->\n# Top\n\nTwo `x`\n---\n- list\n\ntext\n";
    let read = Knowledge::parse(source);
    let metadata = read.metadata("file");
    assert_eq!((metadata.title.as_str(), metadata.keywords.join("|").as_str()), ("T", "a|7|2031-02-03"));
    assert_eq!((metadata.created.as_deref(), metadata.updated), (Some("2024-01-01"), None));
    assert_eq!(metadata.other["owner"], "ana");
    assert_eq!(read.introduction(), "Intro.");
    let chapters = read.chapters();
    assert_eq!(chapters.iter().map(|c| c.title.as_str()).collect::<Vec<_>>(), ["One", "Two `x`"]);
    assert_eq!(chapters[0].summary.as_deref(), Some("First\nparagraph."));
    assert!(chapters[0].content.starts_with("First") && chapters[0].content.ends_with("# Top"));
    assert_eq!(chapters[1].content, "- list\n\ntext");
    assert_eq!(chapters[1].summary.as_deref(), Some("text"));
}

#[test]
fn front_matter_that_cannot_be_read_hides_nothing() {
    let source = "---\ntitle: \"Pump rota\nowner: ana\n---\n\nIntro.\n\n## Valve\n\nplan\n";
    let read = Knowledge::parse(source);
    assert_eq!(read.error().as_deref().map(|error| error.starts_with("line 2, column 8: ")), Some(true));
    assert_eq!((read.introduction(), titles(source)), ("Intro.", vec!["Valve".to_owned()]));
    assert_eq!(read.metadata("pump").title, "pump");
    let edited = read.with_chapter("Valve", "new", None).expect("only the chapter is looked at");
    assert_eq!(edited, source.replace("plan", "new"));
    assert_eq!(with_updated(source, NOW), source);
}

#[test]
fn only_the_value_of_updated_is_written() {
    for (front, expected) in [
        ("updated: 2024-01-01T12:00:00Z", "updated: NOW"),
        ("# mine\nupdated:   '2024-01-01' # by hand\ntitle: 'T'", "# mine\nupdated:   'NOW' # by hand\ntitle: 'T'"),
        ("updated:", "updated: NOW"),
        ("updated: # never", "updated: NOW # never"),
        ("title: T", "title: T\nupdated: NOW"),
        ("'updated': x", "'updated': NOW"),
        ("{title: T}", "{title: T}"),
        ("updated: >\n  folded\n  text", "updated: >\n  folded\n  text"),
        ("updated: [a]", "updated: NOW"),
    ] {
        let edited = with_updated(&format!("---\n{front}\n---\nx"), NOW);
        assert_eq!(edited, format!("---\n{}\n---\nx", expected.replace("NOW", NOW)), "{front}");
    }
    assert_eq!(with_updated("no front matter", NOW), "no front matter");
    let toml = "+++\r\ntitle = \"T\"\r\n+++\r\n";
    assert_eq!(with_updated(toml, NOW), format!("+++\r\ntitle = \"T\"\r\nupdated = {NOW}\r\n+++\r\n"));
}

#[test]
fn a_text_is_refused_that_would_change_other_chapters() {
    let read = Knowledge::parse("intro\n\n## A\n\na\n\n## B\n\nb\n");
    for text in ["```\nopen", "<!-- open", "x\n\n~~~~\n~~~"] {
        assert!(matches!(read.with_chapter("A", text, None), Err(ChapterError::Open { .. })), "{text}");
        assert!(read.with_chapter("B", text, None).is_ok(), "nothing follows the last chapter");
        assert!(matches!(read.with_new_chapter("C", text, Some("A")), Err(ChapterError::Open { .. })), "{text}");
    }
    for text in ["## A\n\nx\n\n## C\n\ny", "x\n\nC\n---\ny", "## C"] {
        let error = read.with_chapter("A", text, None).expect_err(text);
        assert!(error.to_string().contains("level 3"), "{error}");
    }
    assert_eq!(
        read.with_chapter("A", "## A\n\nx", None).as_deref(),
        Ok("intro\n\n## A\n\nx\n\n## B\n\nb\n"),
        "the chapter's own heading is dropped"
    );
    assert!(read.with_chapter("A", "```\n## fenced\n```", None).is_ok());
}

#[test]
fn titles_match_exactly_but_for_normal_forms() {
    let read = Knowledge::parse("## Gro\u{308}ße – Übersicht\n\n## Twice\n\n## Twice\n\n## C#\n\n## `code` *x*\n");
    assert_eq!(read.find("Größe – Übersicht"), Ok(0));
    assert_eq!(read.find("Twice"), Err(ChapterError::Ambiguous { title: "Twice".to_owned(), count: 2 }));
    assert_eq!((read.find("C#"), read.find("`code` *x*"), read.find("code x")), (Ok(3), Ok(4), Ok(4)));
    let Err(ChapterError::NotFound { titles, .. }) = read.find("twice") else { panic!("case counts") };
    assert_eq!(titles.len(), 5);
}

#[test]
fn a_summary_is_written_as_the_first_paragraph() {
    let source = "## A\r\n\r\nold\r\n\r\n## B\r\n";
    let read = Knowledge::parse(source);
    let edited = read.with_chapter("A", "body\nmore", Some("Brief.")).expect("edited");
    assert_eq!(edited, "## A\r\n\r\nBrief.\r\n\r\nbody\r\nmore\r\n\r\n## B\r\n");
    assert_eq!(Knowledge::parse(&edited).chapters()[0].summary.as_deref(), Some("Brief."));
    for summary in ["two\n\nparagraphs", "- list"] {
        assert_eq!(read.with_chapter("A", "- x", Some(summary)), Err(ChapterError::Summary), "{summary}");
    }
}

#[test]
fn what_is_composed_is_read_back() {
    for title in
        ["Plain", "R&D", "日本語", "😀", "true", "404", "2031-02-03", "a: b # c", "C#", "C #", "\"q\" 'r'", "-x", "#"]
    {
        let chapters = [NewChapter { title: title.to_owned(), content: format!("about {title}") }];
        let keywords = [title.to_owned(), "b, c".to_owned(), "[d]".to_owned()];
        let text = compose_knowledge(title, &keywords, "Intro.", &chapters, NOW).expect(title);
        let read = Knowledge::parse(&text);
        assert_eq!((read.error(), read.metadata("").title.as_str()), (None, title));
        assert_eq!(read.metadata("").keywords, keywords);
        assert_eq!(read.chapters()[0].title, title);
        assert_eq!(read.chapters()[0].content, chapters[0].content);
    }
    let chapter = |title: &str, content: &str| NewChapter { title: title.to_owned(), content: content.to_owned() };
    let compose =
        |intro: &str, chapters: &[NewChapter]| compose_knowledge("T", &["k".to_owned()], intro, chapters, NOW);
    assert!(matches!(compose("## x", &[]), Err(ChapterError::Heading { line: 1, .. })));
    assert!(matches!(compose("```", &[chapter("A", "")]), Err(ChapterError::Open { .. })));
    assert!(matches!(compose("", &[chapter("a\nb", "")]), Err(ChapterError::Title { .. })));
    assert!(matches!(compose("", &[chapter(" ", "")]), Err(ChapterError::Title { .. })));
    assert!(compose("", &[]).is_ok() && compose("", &[chapter("A", ""), chapter("A", "x")]).is_ok());
    let long = compose_knowledge(&"t".repeat(17_000), &["k".to_owned()], "", &[], NOW);
    assert_eq!(long, Err(ChapterError::FrontMatter));
}

/// Blocks of which documents are made; none leaves a fence or a comment open.
fn block() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[a-zé港]{1,8}( [a-z]{1,5}){0,3}",
        1 => Just("```\n## fenced\n```".to_owned()),
        1 => Just("~~~~ md\n```\n# x\n~~~~".to_owned()),
        1 => Just("<!--\n## comment\n-->".to_owned()),
        1 => Just("### deeper".to_owned()),
        1 => Just("    indented code".to_owned()),
        1 => Just("- a\n- b".to_owned()),
        1 => Just("> ## quoted".to_owned()),
        1 => Just("trailing  ".to_owned()),
    ]
}

fn text() -> impl Strategy<Value = String> {
    prop::collection::vec(block(), 1..4).prop_map(|blocks| blocks.join("\n\n"))
}

fn document() -> impl Strategy<Value = (String, usize)> {
    let front = prop_oneof![
        Just(""),
        Just("\u{feff}"),
        Just("---\ntitle: 'T' # mine\n\n# note\nzz: [1,  2]\n---\n"),
        Just("\u{feff}---\nupdated: 2024-01-01T12:00:00Z\nx: 0x1F\n---\n\n"),
        Just("---\ntitle: \"broken\n---\n"),
    ];
    let gap = || prop_oneof![Just("\n"), Just("\n\n"), Just("\n\n\n")];
    let heading = prop_oneof![Just("## T#"), Just("## T# ##"), Just("T#\n---")];
    let chapter = (heading, gap(), prop::option::weighted(0.8, text()), gap());
    let line_end = prop_oneof![Just("\n"), Just("\r\n"), Just("\r")];
    (front, prop::option::of(text()), prop::collection::vec(chapter, 1..5), any::<bool>(), line_end).prop_map(
        |(front, intro, chapters, ends, line_end)| {
            let mut source = front.to_owned();
            if let Some(intro) = intro {
                source.extend([intro.as_str(), "\n\n"]);
            }
            let count = chapters.len();
            for (i, (heading, below, content, after)) in chapters.into_iter().enumerate() {
                source.push_str(&heading.replace("T#", &format!("T{i}")));
                source.push_str(below);
                if let Some(content) = content {
                    source.push_str(&content);
                    source.push_str(if after == "\n" { "\n\n" } else { after });
                }
            }
            if !ends {
                source.truncate(source.trim_end_matches('\n').len());
            }
            (source.replace('\n', line_end), count)
        },
    )
}

proptest! {
    #[test]
    fn a_chapter_that_is_put_back_leaves_every_byte((source, count) in document(), new in text(), pick in any::<prop::sample::Index>()) {
        let read = Knowledge::parse(&source);
        prop_assert_eq!(read.chapters.len(), count, "{:?}", &source);
        let chapter = read.chapters()[pick.index(count)].clone();
        prop_assert_eq!(read.with_chapter(&chapter.title, &chapter.content, None), Ok(source.clone()));
        let edited = read.with_chapter(&chapter.title, &new, None);
        prop_assert!(edited.is_ok(), "{:?} in {:?}: {:?}", new, source, edited);
        let edited = with_updated(&edited.unwrap_or_default(), NOW);
        let back = Knowledge::parse(&edited).with_chapter(&chapter.title, &chapter.content, None);
        prop_assert_eq!(back.map(|back| with_updated(&back, NOW)), Ok(with_updated(&source, NOW)), "{:?}", edited);
    }

    #[test]
    fn a_chapter_that_is_added_and_removed_leaves_the_others((source, count) in document(), new in text(), pick in any::<prop::sample::Index>()) {
        let read = Knowledge::parse(&source);
        let before = read.chapters();
        let after = before[pick.index(count)].title.clone();
        let edited = read.with_new_chapter("Added", &new, Some(&after));
        prop_assert!(edited.is_ok(), "{:?} in {:?}: {:?}", new, source, edited);
        let edited = edited.unwrap_or_default();
        let removed = Knowledge::parse(&edited).without_chapter("Added").unwrap_or_default();
        prop_assert_eq!(Knowledge::parse(&removed).chapters(), before);
    }

    #[test]
    fn any_text_is_a_document(source in any::<String>(), marks in "[#\\-`~<>! \n\r\ta:\u{feff}]{0,60}") {
        for source in [&source, &marks, &format!("---\n{marks}\n---\n{source}")] {
            let read = Knowledge::parse(source);
            let document = read.document("x.md");
            prop_assert_eq!(&document.full_content, source);
            with_updated(source, NOW);
            for chapter in &document.chapters {
                if let Ok(edited) = read.with_chapter(&chapter.title, &chapter.content, None) {
                    prop_assert_eq!(&edited, source);
                }
            }
        }
    }
}
