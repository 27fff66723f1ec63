//! `retrieve` and `content`: what an id stands for, and the bytes that come out.
//!
//! **Invariant:** stdout is what was learned, byte for byte.

use insta::assert_snapshot;

use crate::harness::Kb;

const GUIDE: &str =
    "\u{feff}---\r\ntitle: Guide\r\n---\r\n# Guide\r\n\r\nStart.  \r\n\r\n## Retries\r\n\r\nThree\0, then give up.";

#[test]
fn the_bytes_come_out_as_they_went_in() {
    let kb = Kb::new();
    let kbids = kb.learn("guide", GUIDE);
    assert_eq!(kb.run(["retrieve", "guide"]).expect_exit(0).stdout, GUIDE.as_bytes());
    assert_eq!(kb.run(["content", "guide"]).expect_exit(0).stdout, GUIDE.as_bytes());
    let sections: Vec<u8> = kbids.iter().flat_map(|id| kb.run(["retrieve", id]).expect_exit(0).stdout).collect();
    assert_eq!(sections, GUIDE.as_bytes());
}

#[test]
fn a_beginning_of_four_characters_serves_where_it_is_unique() {
    let kb = Kb::new();
    let kbids = kb.learn("guide", "# Guide\n");
    assert_eq!(kb.run(["retrieve", &kbids[0][..4]]).expect_exit(0).text(), "# Guide\n");
    assert_eq!(kb.run(["content", &kbids[0][..25]]).expect_exit(0).text(), "# Guide\n");
    assert_eq!(kb.run(["retrieve", &kbids[0][..3]]).exit, 1);

    // The name of a document goes before the beginning of a kbid.
    let prefix = &kbids[0][..5];
    kb.learn(prefix, "# A document of that name\n");
    assert_eq!(kb.run(["retrieve", prefix]).expect_exit(0).text(), "# A document of that name\n");
}

#[test]
fn an_unknown_id_is_not_found() {
    let kb = Kb::new();
    assert_snapshot!(kb.run(["retrieve", "00000000000000000000000000"]), @r"
    exit: 1
    --- stderr
    error: Section not found: 00000000000000000000000000
    hint: `kb search WORDS` lists the ids there are
    ");
    assert_snapshot!(kb.run(["retrieve", "../../etc/passwd"]), @r"
    exit: 1
    --- stderr
    error: Document not found: ../../etc/passwd
    hint: `kb list` shows all documents
    ");
    assert_snapshot!(kb.run(["content", "nothing", "--json"]).text(), @r#"{"error":{"code":"not-found","message":"Document not found: nothing","hint":"`kb list` shows all documents"}}"#);
}

#[test]
fn parts_are_composed_in_the_order_given() {
    let kb = Kb::new();
    let a = kb.learn("a", "# A\n\n## One\n");
    kb.learn("b", "# B\n");
    let composed = kb.run(["content", "b", &a[1][..8], "--json"]).expect_exit(0).json();
    assert_eq!(composed["ids"], serde_json::json!(["b", a[1]]));
    let content = composed["content"].as_str().expect("text");
    let places = ["# B", "## One"].map(|text| content.find(text));
    assert!(places[0].is_some() && places[0] < places[1], "{content}");
    assert!(!content.contains("# A"), "{content}");
}

#[test]
fn a_document_and_a_section_have_their_names() {
    let kb = Kb::new();
    let kbids = kb.learn("guide", "# Guide\n\n## Retries\n");
    let document = kb.run(["retrieve", "guide", "--json"]).json();
    assert_eq!(document["docid"], "guide");
    assert_eq!(document["mediaType"], "text/markdown");
    assert_eq!(document["sections"][1]["kbid"], *kbids[1]);
    assert_eq!(document["sections"][1]["level"], 2);
    assert_eq!(document["sections"][1]["content"], "## Retries\n");
    let section = kb.run(["retrieve", &kbids[1], "--json"]).json();
    assert_eq!(section["headingPath"], serde_json::json!(["Guide", "Retries"]));
    assert_eq!(section["docids"], serde_json::json!(["guide"]));
    assert_eq!(section["line"], 3);
}
