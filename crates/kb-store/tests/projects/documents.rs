//! The contract's operations on instructions and documents.

use kb_store::{ChapterUpdate, NewKnowledge};

use crate::support::{TestHome, chapter, knowledge, pass, update};

#[test]
fn a_document_is_written_as_the_contract_shows_it() {
    let home = TestHome::new();
    let created = home.store.create_file("My Project", &knowledge("API Guide.md")).expect("created");
    assert_eq!(created.filepath, "knowledge/api-guide.md");
    assert_eq!(created.message, "Knowledge document created successfully");
    insta::assert_snapshot!(home.read("projects/my-project/knowledge/api-guide.md"), @r"
    ---
    title: About API Guide.md
    keywords: [first, second]
    created: 2030-03-17T17:46:40Z
    updated: 2030-03-17T17:46:40Z
    ---

    An introduction.

    ## One

    The first text.

    ## Two

    The second text.
    ");
    insta::assert_snapshot!(home.read("index.json"), @r#"
    {
      "projects": {
        "My Project": "my-project"
      }
    }
    "#);
    assert_eq!(home.log(), ["Update knowledge for My Project: Created api-guide.md"]);
    home.is_clean();
}

#[test]
fn a_document_is_found_by_every_name_it_has() {
    let home = TestHome::new();
    home.create("p", "API Guide.md");
    for name in ["API Guide.md", "API Guide", "api-guide", "api-guide.md", "api guide.MD"] {
        let file = home.store.file("p", name).expect(name);
        assert_eq!(file.document.filename, "api-guide.md", "{name}");
        let again = home.store.create_file("p", &knowledge(name)).expect_err(name);
        assert_eq!((again.code(), again.to_string()), ("file-exists", format!("File already exists: {name}")));
    }
    home.write("projects/p/knowledge/By Hand.md", "## A\n\nx\n");
    assert_eq!(home.store.file("p", "By Hand").expect("found").document.filename, "By Hand.md");
    home.update("p", "By Hand", "A", "y");
    assert_eq!(home.read("projects/p/knowledge/By Hand.md"), "## A\n\ny\n");
}

#[test]
fn an_update_touches_its_chapter_and_the_time() {
    let home = TestHome::new();
    home.create("p", "doc");
    let before = home.read("projects/p/knowledge/doc.md");
    pass(60);
    let done = home.store.update_chapter("p", "doc", &update("Two", "Another text.")).expect("updated");
    assert_eq!(done.message, "Chapter 'Two' updated successfully");
    let expected = before
        .replace("The second text.", "Another text.")
        .replace("updated: 2030-03-17T17:46:40Z", "updated: 2030-03-17T17:47:40Z");
    assert_eq!(home.read("projects/p/knowledge/doc.md"), expected);

    pass(60);
    let nothing = home.store.update_chapter("p", "doc", &update("Two", "Another text.")).expect("nothing to do");
    assert_eq!((nothing.success, nothing.revision), (true, None));
    assert_eq!(home.read("projects/p/knowledge/doc.md"), expected, "where nothing changes, the time does not");
    assert_eq!(home.log().len(), 2);

    let summary = ChapterUpdate { new_summary: Some("In short.".to_owned()), ..update("Two", "At length.") };
    home.store.update_chapter("p", "doc", &summary).expect("updated");
    let document = home.store.file("p", "doc").expect("there").document;
    assert_eq!(document.chapters[1].summary.as_deref(), Some("In short."));
    assert_eq!(document.chapters[1].content, "In short.\n\nAt length.");
    assert_eq!(document.full_content, home.read("projects/p/knowledge/doc.md"));
}

#[test]
fn chapters_are_added_and_removed() {
    let home = TestHome::new();
    home.create("p", "doc");
    home.store.add_chapter("p", "doc", &chapter("Between", "x"), Some("One")).expect("added");
    home.store.add_chapter("p", "doc", &chapter("Last", "y"), None).expect("added");
    let titles = |home: &TestHome| {
        let list = home.store.chapters("p", "doc").expect("there");
        assert_eq!(list.count, list.chapters.len() as u64);
        list.chapters.into_iter().map(|chapter| chapter.title).collect::<Vec<_>>()
    };
    assert_eq!(titles(&home), ["One", "Between", "Two", "Last"]);
    home.store.remove_chapter("p", "doc", "One").expect("removed");
    assert_eq!(titles(&home), ["Between", "Two", "Last"]);
    let twice = home.store.add_chapter("p", "doc", &chapter("Last", "z"), None).expect_err("there");
    assert_eq!(twice.code(), "chapter-exists");
    home.is_clean();
}

#[test]
fn a_document_is_renamed_and_deleted() {
    let home = TestHome::new();
    home.create("p", "doc");
    home.create("p", "other");
    let text = home.read("projects/p/knowledge/doc.md");
    let renamed = home.store.rename_file("p", "doc", "New Name").expect("renamed");
    assert_eq!(renamed.filepath, "knowledge/new-name.md");
    assert_eq!(home.read("projects/p/knowledge/new-name.md"), text);
    assert_eq!(home.store.rename_file("p", "other", "new name").expect_err("taken").code(), "file-exists");
    let done = home.store.delete_file("p", "new-name").expect("deleted");
    assert_eq!(done.message, "Knowledge document 'new-name' deleted successfully");
    let gone = home.store.file("p", "new-name").expect_err("gone");
    assert_eq!(gone.to_string(), "File not found: new-name");
    assert_eq!(home.log()[0], "Update knowledge for p: Deleted new-name.md");
    home.is_clean();
}

#[test]
fn what_is_not_there_is_said_and_not_made() {
    let home = TestHome::new();
    home.create("Known", "doc");
    let main = home.store.main("Ghost").expect("an answer");
    assert_eq!((main.exists, main.content.as_str()), (false, ""));
    for error in [
        home.store.files("Ghost").expect_err("none"),
        home.store.file("Ghost", "doc").expect_err("none"),
        home.store.chapters("Ghost", "doc").expect_err("none"),
        home.store.delete_file("Ghost", "doc").expect_err("none"),
        home.store.update_chapter("Ghost", "doc", &update("One", "x")).expect_err("none"),
        home.store.history("Ghost", None, 5).expect_err("none"),
    ] {
        assert_eq!((error.code(), error.to_string().as_str()), ("project-not-found", "Project not found: Ghost"));
    }
    let chapter = home.store.update_chapter("Known", "doc", &update("one", "x")).expect_err("case counts");
    assert_eq!((chapter.code(), chapter.to_string().as_str()), ("chapter-not-found", "Chapter not found: one"));
    let list = home.store.projects().expect("listed");
    assert_eq!(list.projects.iter().map(|p| p.project_id.as_str()).collect::<Vec<_>>(), ["Known"]);
    assert!(!home.path().join("projects/ghost").exists());
}

#[test]
fn what_is_missing_is_named() {
    let home = TestHome::new();
    let cases = [
        (NewKnowledge { keywords: vec![" ".to_owned()], ..knowledge("a") }, "keywords"),
        (NewKnowledge { keywords: Vec::new(), ..knowledge("a") }, "keywords"),
        (NewKnowledge { title: " ".to_owned(), ..knowledge("a") }, "title"),
        (NewKnowledge { filename: String::new(), ..knowledge("a") }, "filename"),
    ];
    for (new, field) in cases {
        let error = home.store.create_file("p", &new).expect_err(field);
        assert_eq!((error.code(), error.to_string()), ("missing-field", format!("`{field}` is missing or empty")));
    }
    assert!(!home.path().join("projects").exists());
    home.store.create_file("p", &NewKnowledge { chapters: Vec::new(), ..knowledge("a") }).expect("no chapter is fine");
}

#[test]
fn instructions_are_any_text() {
    let home = TestHome::new();
    for text in ["# Rules\r\n\r\n## x\n", "", "---\nbroken: [\n", "\u{feff}no newline"] {
        home.store.update_main("p", text).expect("written");
        let main = home.store.main("p").expect("read");
        assert_eq!((main.content.as_str(), main.exists), (text, true));
    }
    assert_eq!(home.log()[0], "Update knowledge for p: Updated main.md");
    home.is_clean();
}

#[test]
fn documents_of_every_make_are_listed_and_returned() {
    let home = TestHome::new();
    home.store.update_main("p", "x").expect("written");
    for (name, content) in [
        ("crlf.md", &b"---\r\ntitle: Win\r\n---\r\n\r\n## A\r\n\r\nx\r\n"[..]),
        ("bom.md", b"\xef\xbb\xbf---\ntitle: Lamp\n---\n## A\nx"),
        ("bare.md", b"just text"),
        ("broken.md", b"---\ntitle: \"Pump rota\nowner: ana\n---\n\n## A\n\nplan\n"),
        ("latin.md", b"caf\xe9"),
        ("empty.md", b""),
    ] {
        home.write(&format!("projects/p/knowledge/{name}"), content);
    }
    let files = home.store.files("p").expect("listed");
    let shown: Vec<_> = files
        .files
        .iter()
        .map(|f| format!("{} | {} | {}", f.filename, f.title, f.error.as_deref().unwrap_or("-")))
        .collect();
    insta::assert_snapshot!(shown.join("\n"), @r"
    bare.md | bare | -
    bom.md | Lamp | -
    broken.md | broken | line 2, column 8: the front matter cannot be read: a quote is opened here and never closed
    crlf.md | Win | -
    empty.md | empty | -
    latin.md | latin | it is not UTF-8 text: the first bad byte is at 3
    ");
    for name in ["crlf", "bom", "bare", "broken", "empty"] {
        let file = home.store.file("p", name).expect(name);
        assert_eq!(file.document.full_content, home.read(&format!("projects/p/knowledge/{name}.md")));
    }
    assert_eq!(home.store.file("p", "latin").expect_err("no text").code(), "not-utf8");
    for name in ["crlf", "bom", "broken"] {
        let before = home.read(&format!("projects/p/knowledge/{name}.md"));
        home.update("p", name, "A", "new");
        home.update("p", name, "A", if name == "broken" { "plan" } else { "x" });
        let after = home.read(&format!("projects/p/knowledge/{name}.md"));
        let without_time: String = after.split_inclusive('\n').filter(|line| !line.starts_with("updated:")).collect();
        assert_eq!(without_time, before, "{name}");
    }
}
