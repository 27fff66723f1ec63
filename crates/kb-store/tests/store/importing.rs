//! Batches of JSON lines: what becomes of each line, and that a batch is what its lines say, in their order.

use base64::Engine;
use kb_core::Outcome;
use kb_store::{
    ExportedDocument, ImportLine, ImportOptions, ImportReport, KnowledgeBase, ListFilter, Silent, StoreError,
};
use serde_json::json;

use crate::support::{Base, id, kbid, options};

fn import_with(
    base: &Base,
    input: impl AsRef<[u8]>,
    request: &ImportOptions,
) -> (Result<ImportReport, StoreError>, Vec<ImportLine>) {
    let mut lines = Vec::new();
    let report = base.kb.import(&mut input.as_ref(), request, &mut |line| lines.push(line.clone()));
    (report, lines)
}

fn import(base: &Base, input: impl AsRef<[u8]>) -> (ImportReport, Vec<ImportLine>) {
    let (report, lines) = import_with(base, input, &ImportOptions::default());
    (report.expect("imported"), lines)
}

/// The result of one line: its number, and its outcome or the code of its error.
fn brief(lines: &[ImportLine]) -> Vec<(u64, &str)> {
    let word = |line: &ImportLine| line.error.as_ref().map(|error| error.code.clone());
    lines
        .iter()
        .map(|line| {
            assert_eq!(line.ok, line.error.is_none());
            assert_eq!(line.ok, line.outcome != Outcome::Failed);
            let code = word(line);
            let text = match code.as_deref() {
                None => line.outcome.as_str(),
                Some("invalid") => "invalid",
                Some("not-found") => "not-found",
                Some("not-utf8") => "not-utf8",
                Some("not-atomic") => "not-atomic",
                Some("io") => "io",
                Some(other) => panic!("an error of another kind: {other}"),
            };
            (line.line, text)
        })
        .collect()
}

fn joined(lines: &[serde_json::Value]) -> String {
    lines.iter().flat_map(|line| [line.to_string(), "\n".to_owned()]).collect()
}

#[test]
fn every_operation_is_a_line() {
    let base = Base::new();
    base.write("notes/p.html", "<h1>Page</h1><p>text</p>");
    let image = base64::engine::general_purpose::STANDARD.encode([0x89, b'P', b'N', b'G', 0, 255]);
    let input = joined(&[
        json!({"op": "learn", "content": "# A\n\nalpha\n", "docid": "a", "tags": ["t"], "description": "first"}),
        json!({"op": "learn", "content": "plain", "type": "text", "title": "Plain", "docid": "p"}),
        json!({"op": "learn", "path": "notes/p.html"}),
        json!({"op": "learn", "content": image, "encoding": "base64", "type": "image/png", "title": "Plan", "docid": "i"}),
        json!({"op": "skill", "name": "Sum", "description": "Sums", "body": "Sum {{x}}", "arguments": [{"name": "x"}]}),
        json!({"op": "skill", "content": "---\nname: Sort\n---\nSort.\n"}),
        json!({"op": "agent", "name": "Reader", "persona": "You read.", "skills": ["sum", "Sort"]}),
        json!({"op": "learn", "content": "# A\n\nalpha\n", "docid": "a", "tags": ["t"], "description": "first"}),
        json!({"op": "learn", "content": "# A\n\nbeta\n", "docid": "a"}),
        json!({"op": "unlearn", "docid": "p"}),
    ]);
    let root = Some(base.folder().to_owned());
    let (report, lines) = import_with(&base, input, &ImportOptions { root, ..ImportOptions::default() });
    let report = report.expect("imported");
    let outcomes: Vec<&str> = brief(&lines).into_iter().map(|(_, outcome)| outcome).collect();
    assert_eq!(
        outcomes,
        ["added", "added", "added", "added", "added", "added", "added", "unchanged", "updated", "removed"]
    );
    let ops: Vec<_> = lines.iter().map(|line| line.op.as_deref().expect("known")).collect();
    assert_eq!(ops[3..8], ["learn", "skill", "skill", "agent", "learn"]);
    assert_eq!((report.lines, report.done, report.failed, report.generation), (10, 10, 0, 1));
    assert_eq!(lines[0].kbids, [kbid("# A\n\nalpha\n")]);
    assert_eq!(lines[2].docid, Some(id("notes/p")));
    assert_eq!(base.kb.document_bytes(&id("i")).expect("there"), [0x89, b'P', b'N', b'G', 0, 255]);
    assert_eq!(base.kb.agent_get("reader").expect("there").skills.len(), 2);
    assert_eq!((base.document("a").as_deref(), base.document("p")), (Some("# A\n\nbeta\n"), None));
    assert_eq!(base.kb.history(&id("a")).expect("there").revisions.len(), 2);
    assert!(base.problems().is_empty());
}

#[test]
fn a_bad_line_is_reported_and_the_rest_is_done() {
    let base = Base::new();
    let bad: &[&str] = &[
        "{",
        "[]",
        "null",
        "\"learn\"",
        "{}",
        r#"{"op": "forget", "docid": "a"}"#,
        r#"{"op": "learn"}"#,
        r#"{"op": "learn", "content": "x", "path": "y"}"#,
        r#"{"op": "learn", "content": "x", "contents": "y"}"#,
        r#"{"op": "learn", "content": 5}"#,
        r#"{"op": "learn", "content": "x", "docid": "../x"}"#,
        r#"{"op": "learn", "content": "x", "type": "application/pdf"}"#,
        r#"{"op": "learn", "content": "x", "type": "no type"}"#,
        r#"{"op": "learn", "content": "?", "encoding": "base64", "type": "image/png", "title": "x"}"#,
        r#"{"op": "learn", "content": "eA==", "encoding": "rot13"}"#,
        r#"{"op": "learn", "content": "eA==", "encoding": "base64", "type": "image/png"}"#,
        r#"{"op": "unlearn"}"#,
        r#"{"op": "unlearn", "docid": "a", "tag": "t"}"#,
        r#"{"op": "unlearn", "kbid": "short"}"#,
        r#"{"op": "skill", "name": "x"}"#,
        r#"{"op": "skill", "name": "agent:x", "body": "y"}"#,
        r#"{"op": "skill", "content": "no front matter"}"#,
        r#"{"op": "agent", "name": "x"}"#,
        r#"{"op": "agent", "name": " ", "persona": "y"}"#,
    ];
    for line in bad {
        let input = format!(
            "{{\"op\":\"learn\",\"docid\":\"a\",\"content\":\"# A\"}}\n{line}\n{{\"op\":\"learn\",\"docid\":\"b\",\"content\":\"# B\"}}"
        );
        let (report, lines) = import(&base, input);
        assert_eq!((report.done, report.failed), (2, 1), "{line}");
        assert_eq!(brief(&lines)[1], (2, "invalid"), "{line}");
        let message = &lines[1].error.as_ref().expect("it failed").message;
        assert!(message.len() > 10 && !message.contains('\n'), "{line}: {message}");
    }
    let (_, lines) = import(
        &base,
        joined(&[
            json!({"op": "unlearn", "docid": "nobody"}),
            json!({"op": "unlearn", "tag": "nobody"}),
            json!({"op": "agent", "name": "x", "persona": "y", "skills": ["nobody"]}),
            json!({"op": "learn", "path": "nowhere.md"}),
        ]),
    );
    assert_eq!(brief(&lines), [(1, "not-found"), (2, "not-found"), (3, "not-found"), (4, "invalid")]);
    let mut bytes = b"{\"op\":\"learn\",\"content\":\"".to_vec();
    bytes.extend_from_slice(b"\xff\"}\n{\"op\":\"learn\",\"docid\":\"c\",\"content\":\"# C\"}\n");
    let (_, lines) = import(&base, bytes);
    assert_eq!(brief(&lines), [(1, "not-utf8"), (2, "added")]);
    assert_eq!(base.kb.status().expect("status").documents, 3);
    assert!(base.problems().is_empty());
}

#[test]
fn ends_of_lines_marks_and_blank_lines_are_taken_as_they_come() {
    let base = Base::new();
    let line = |docid: &str| json!({"op": "learn", "docid": docid, "content": format!("# {docid}\r\n")}).to_string();
    let input = format!("\u{feff}{}\r\n\r\n  \t\n{}\n\n\n{}", line("a"), line("b"), line("c"));
    let (report, lines) = import(&base, input);
    assert_eq!(brief(&lines), [(1, "added"), (4, "added"), (7, "added")], "numbers are those of the input");
    assert_eq!(report.lines, 3);
    assert_eq!(base.document("a").as_deref(), Some("# a\r\n"));
    let (report, lines) = import(&base, "\n\r\n \n");
    assert_eq!((report.lines, report.generation, lines.len()), (0, 1, 0));
    assert_eq!(import(&base, "").0.generation, 1);
}

#[test]
fn lines_see_what_the_lines_before_them_did() {
    let base = Base::new();
    let (_, lines) = import(
        &base,
        joined(&[
            json!({"op": "learn", "docid": "a", "content": "# A\n\n## S\n\ns\n"}),
            json!({"op": "learn", "docid": "b", "content": "## S\n\ns\n"}),
            json!({"op": "unlearn", "docid": "a"}),
            json!({"op": "unlearn", "docid": "a"}),
            json!({"op": "unlearn", "kbid": kbid("# A\n\n")}),
            json!({"op": "unlearn", "kbid": kbid("## S\n\ns\n"), "docid": "b"}),
            json!({"op": "learn", "docid": "a", "content": "# A\n\n## S\n\ns\n"}),
            json!({"op": "skill", "name": "Sum", "body": "x"}),
            json!({"op": "agent", "name": "R", "persona": "p", "skills": ["sum"]}),
            json!({"op": "unlearn", "docid": "skill-sum"}),
        ]),
    );
    let outcomes: Vec<&str> = brief(&lines).into_iter().map(|(_, outcome)| outcome).collect();
    assert_eq!(
        outcomes,
        ["added", "added", "removed", "not-found", "not-found", "removed", "added", "added", "added", "removed"]
    );
    assert_eq!((base.document("a").as_deref(), base.document("b").as_deref()), (Some("# A\n\n## S\n\ns\n"), Some("")));
    assert_eq!(base.kb.agent_get("r").expect("there").skills[0].name, None);
    assert_eq!(base.kb.status().expect("status").generation, 1, "all in one commit");
}

#[test]
fn a_dry_run_says_what_would_be_done_and_writes_nothing() {
    let base = Base::new();
    base.learn("old", "# Old\n");
    let input = joined(&[
        json!({"op": "learn", "docid": "a", "content": "# A\n"}),
        json!({"op": "learn", "docid": "a", "content": "# A\n"}),
        json!({"op": "unlearn", "docid": "a"}),
        json!({"op": "learn", "source": "x/a.md", "content": "# X\n"}),
        json!({"op": "learn", "source": "X/a.md", "content": "# Y\n"}),
        json!({"op": "skill", "name": "Sum", "body": "x"}),
        json!({"op": "agent", "name": "R", "persona": "p", "skills": ["sum"]}),
        json!({"op": "unlearn", "docid": "old"}),
        json!({"op": "unlearn", "docid": "old"}),
    ]);
    let before = base.kb.status().expect("status");
    let files = |area: &str| std::fs::read_dir(base.database().join(area)).expect("there").count();
    let count = (files("packs"), files("index"));
    let request = ImportOptions { dry_run: true, ..ImportOptions::default() };
    let (report, dry) = import_with(&base, &input, &request);
    assert!(report.expect("imported").dry_run);
    assert_eq!(base.kb.status().expect("status"), before);
    assert_eq!((files("packs"), files("index")), count, "not even an unfinished file");
    let (_, real) = import(&base, &input);
    assert_eq!(dry, real);
    assert_eq!(brief(&real).last(), Some(&(9, "not-found")));
}

#[test]
fn an_atomic_batch_is_done_whole_or_not_at_all() {
    let base = Base::new();
    let request = ImportOptions { atomic: true, ..ImportOptions::default() };
    let good = json!({"op": "learn", "docid": "a", "content": "# A\n"});
    for bad in [json!({"op": "unlearn", "docid": "nobody"}), json!({"op": "nothing"})] {
        let (report, lines) = import_with(&base, joined(&[good.clone(), bad, good.clone()]), &request);
        assert!(matches!(report, Err(StoreError::NotAtomic { line: 2 })), "{report:?}");
        let brief = brief(&lines);
        assert_eq!((brief[0], brief[2]), ((1, "not-atomic"), (3, "not-atomic")), "every line is answered");
        assert_ne!(brief[1].1, "not-atomic", "the one to blame says why");
        assert_eq!(base.kb.status().expect("status").generation, 0);
        assert_eq!(base.document("a"), None);
    }
    let (report, lines) = import_with(&base, joined(&[good.clone(), good]), &request);
    assert_eq!((report.expect("imported").done, brief(&lines)), (2, vec![(1, "added"), (2, "unchanged")]));
}

#[test]
fn ten_thousand_lines_are_answered_in_order_once_they_are_durable() {
    let base = Base::new();
    let input: String = (0..10_000)
        .map(|i| match i % 100 {
            50 => "not json\n".to_owned(),
            51 => format!("{}\n", json!({"op": "unlearn", "docid": format!("d{}", i - 2)})),
            _ => format!("{}\n", json!({"op": "learn", "docid": format!("d{i}"), "content": format!("# Doc {i}\n")})),
        })
        .collect();
    // Another handle looks whenever a line is answered: what is reported can be read by others already.
    let other = KnowledgeBase::open_read_only(base.database(), options()).expect("it is there");
    let mut number = 0;
    let mut answer = |line: &ImportLine| {
        number += 1;
        assert_eq!(line.line, number);
        if line.ok && line.line % 997 == 1 && line.outcome == Outcome::Added {
            let docid = line.docid.as_ref().expect("it was learned");
            assert!(other.describe_document(docid).is_ok(), "{docid} was reported and is not there");
        }
    };
    let report = base.kb.import(&mut input.as_bytes(), &ImportOptions::default(), &mut answer).expect("imported");
    assert_eq!((report.lines, report.done, report.failed, number), (10_000, 9_900, 100, 10_000));
    assert_eq!(base.kb.status().expect("status").documents, 9_700);
    assert!(base.problems().is_empty());
}

/// The line that learns a document again, as an export in JSON lines writes it.
fn line_of(document: &ExportedDocument) -> serde_json::Value {
    let text = || String::from_utf8(document.content.clone()).expect("it was text");
    match document.info.kind {
        kb_core::DocumentKind::Skill => json!({"op": "skill", "content": text()}),
        kb_core::DocumentKind::Agent => {
            let agent = kb_core::Agent::parse(&text()).expect("it was one");
            json!({
                "op": "agent",
                "name": agent.name(),
                "description": agent.description(),
                "persona": agent.persona(),
                "skills": agent.skills(),
            })
        }
        kb_core::DocumentKind::Document => {
            let info = &document.info;
            let (content, encoding) = if info.media_type.is_text() {
                (text(), "utf-8")
            } else {
                (base64::engine::general_purpose::STANDARD.encode(&document.content), "base64")
            };
            json!({
                "op": "learn",
                "docid": info.docid,
                "content": content,
                "encoding": encoding,
                "type": info.media_type,
                "title": info.title,
                "description": info.description,
                "tags": info.tags,
                "source": info.source,
            })
        }
    }
}

#[test]
fn what_is_exported_and_imported_is_an_equal_base() {
    let base = Base::new();
    base.write("docs/a.md", "\u{feff}---\r\ntitle: Lamp\r\ntags: [x, y]\r\n---\r\n# L\r\n\r\ntext\0\r\n");
    base.write("docs/b.html", "<h1>B</h1><p>b</p>");
    base.write("docs/c.toml", "[c]\nd = 1\n");
    base.write("docs/empty.md", "");
    base.kb.learn_paths(&[base.folder().join("docs")], &kb_store::LearnPaths::default(), &mut Silent).expect("learned");
    base.write("notes/A.md", "# Another A\n");
    base.kb
        .learn_paths(&[base.folder().join("notes")], &kb_store::LearnPaths::default(), &mut Silent)
        .expect("learned");
    let setup = joined(&[
        json!({"op": "learn", "content": "iVBORw0=", "encoding": "base64", "type": "image/png", "title": "Plan", "docid": "plan"}),
        json!({"op": "learn", "content": "# Tides\n\nhigh\n", "tags": ["sea"], "description": "given"}),
        json!({"op": "skill", "name": "Sum up", "description": "Sums", "body": "Sum {{x}}"}),
        json!({"op": "agent", "name": "Reader", "persona": "You read.\n", "skills": ["sum up"]}),
    ]);
    assert_eq!(import(&base, setup).0.failed, 0);
    let export = |base: &Base| {
        let mut documents = Vec::new();
        let mut sink = |document| {
            documents.push(document);
            Ok(())
        };
        base.kb.export(&mut sink).expect("exported");
        documents
    };
    let exported = export(&base);
    // Skills come first, since agents name them.
    let (skills, others): (Vec<_>, Vec<_>) =
        exported.iter().map(line_of).partition(|line: &serde_json::Value| line["op"] == "skill");
    let copy = Base::new();
    let (report, lines) = import(&copy, joined(&[skills, others].concat()));
    assert_eq!(report.failed, 0, "{lines:?}");
    assert_eq!(copy.kb.list(&ListFilter::default()).expect("listed").documents, {
        let mut documents = base.kb.list(&ListFilter::default()).expect("listed").documents;
        for document in &mut documents {
            document.revision = 1;
        }
        documents
    });
    for (old, new) in exported.iter().zip(export(&copy)) {
        let docid = &old.info.docid;
        assert_eq!(
            (&old.path, &old.content, &old.info.sections),
            (&new.path, &new.content, &new.info.sections),
            "{docid}"
        );
        assert_eq!(
            (&old.info.tags, &old.info.meta, &old.info.warnings),
            (&new.info.tags, &new.info.meta, &new.info.warnings),
            "{docid}"
        );
        assert_eq!((&old.info.title, &old.info.description), (&new.info.title, &new.info.description), "{docid}");
    }
    assert_eq!(exported.len(), 9);
    let paths: std::collections::BTreeSet<String> = exported.iter().map(|d| d.path.to_lowercase()).collect();
    assert_eq!(paths.len(), exported.len(), "no two share a path");
    assert!(copy.problems().is_empty());
}

#[test]
fn a_path_that_leads_out_of_the_root_is_refused_unless_it_is_allowed() {
    let base = Base::new();
    base.write("batch/in.md", "# In\n");
    base.write("batch/sub/x.md", "# X\n");
    let outside = base.write("secret.md", "# Secret\n");
    let paths =
        [outside.to_str().expect("UTF-8"), "../secret.md", "sub/../../secret.md", "none.md", "sub", "sub/../in.md"];
    let input = joined(&paths.map(|path| json!({"op": "learn", "path": path})));
    let request = ImportOptions { root: Some(base.folder().join("batch")), ..ImportOptions::default() };
    let (_, lines) = import_with(&base, input.clone(), &request);
    let codes: Vec<&str> = brief(&lines).into_iter().map(|(_, code)| code).collect();
    assert_eq!(codes, ["invalid", "invalid", "invalid", "io", "invalid", "added"]);
    let (_, lines) = import_with(&base, input, &ImportOptions { allow_outside: true, ..request });
    let codes: Vec<&str> = brief(&lines).into_iter().map(|(_, code)| code).collect();
    assert_eq!(codes, ["added", "added", "added", "io", "invalid", "unchanged"]);
}

#[cfg(unix)]
#[test]
fn a_link_in_the_root_does_not_lead_a_path_out_of_it() {
    let base = Base::new();
    base.write("batch/in.md", "# In\n");
    let outside = base.write("secret.md", "# Secret\n");
    std::os::unix::fs::symlink(outside, base.folder().join("batch/link.md")).expect("a link");
    let input = joined(&[json!({"op": "learn", "path": "link.md"})]);
    let request = ImportOptions { root: Some(base.folder().join("batch")), ..ImportOptions::default() };
    let (_, lines) = import_with(&base, input, &request);
    assert_eq!(brief(&lines), [(1, "invalid")]);
}

#[test]
fn a_line_that_is_no_operation_is_told_why_in_a_sentence() {
    let base = Base::new();
    for (line, message) in [
        ("null", "`line`: it is not a JSON object like `{\"op\": \"learn\", …}`"),
        ("not json", "`line`: it is not JSON: expected ident at line 1 column 2"),
        ("{}", "`op`: it is missing; it is one of `learn`, `unlearn`, `skill` and `agent`"),
        (r#"{"op": 5}"#, "`op`: it is not a text"),
        (r#"{"op": "learn", "content": 5}"#, "`content`: it is not a text"),
        (r#"{"op": "learn", "content": "x", "tags": "a"}"#, "`tags`: it is not a list of texts"),
        (r#"{"op": "learn", "content": "x", "again": 1}"#, "`again`: it is neither `true` nor `false`"),
    ] {
        let (_, lines) = import(&base, line);
        assert_eq!(lines[0].error.as_ref().expect("it failed").message, message);
    }
}
