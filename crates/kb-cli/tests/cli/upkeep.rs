//! `status`, `check`, `gc`, `rebuild`, `doctor`.
//!
//! **Invariant:** what is wrong is named, and shows in the exit code.

use std::path::PathBuf;

use crate::harness::Kb;

fn pack(kb: &Kb) -> PathBuf {
    let packs = std::fs::read_dir(kb.path(".kbdb/packs")).expect("packs");
    let largest =
        packs.map(|entry| entry.expect("an entry").path()).max_by_key(|path| path.metadata().map(|m| m.len()).ok());
    largest.expect("a pack")
}

#[test]
fn status_has_its_names() {
    let kb = Kb::new();
    kb.learn("guide", "# Guide\n");
    let status = kb.run(["status", "--json"]).expect_exit(0).json();
    for name in ["documents", "sections", "skills", "agents", "bytes", "index", "cache", "generation", "problems"] {
        assert!(status.get(name).is_some(), "{name} in {status}");
    }
    assert_eq!((&status["documents"], &status["sections"]), (&1.into(), &1.into()));
    let text = kb.run(["status"]).expect_exit(0);
    assert!(text.text().contains("\ndocuments   1\nsections    1\n"), "{text}");
    assert!(text.text().contains("\nfiles       1 pack, 1 segment, 0 retired\n"), "{text}");

    kb.learn("dated", "---\ndate: 2031-03-01\n---\n# Dated\n");
    let text = kb.run(["status"]).expect_exit(0);
    assert!(text.text().contains("\nsections    3 (2 indexed; front matter is not)\n"), "{text}");
}

#[test]
fn damage_is_found_and_is_a_failure() {
    let kb = Kb::new();
    kb.learn("guide", "# Guide\n\nA heron.\n");
    let sound = kb.run(["check", "--json"]).expect_exit(0).json();
    assert_eq!((&sound["ok"], &sound["problems"]), (&true.into(), &serde_json::json!([])));

    let path = pack(&kb);
    let mut bytes = std::fs::read(&path).expect("a pack");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&path, bytes).expect("damaged");

    let run = kb.run(["check"]);
    assert_eq!(run.exit, 1, "{run}");
    assert!(run.text().contains("\nnot ok: "), "{run}");
    let report = kb.run(["check", "--json"]).json();
    assert_eq!(report["ok"], false);
    let name = path.file_name().expect("a name").to_string_lossy().into_owned();
    let file = report["problems"][0]["file"].as_str().expect("a file");
    assert!(file.ends_with(&name), "{report}");
    assert_eq!(kb.run(["doctor"]).exit, 1);
}

#[test]
fn a_damaged_or_missing_head_is_damage_that_check_names() {
    let kb = Kb::new();
    kb.learn("guide", "# Guide\n");
    let head = kb.path(".kbdb/head");
    let sound = std::fs::read(&head).expect("a head");
    for bytes in [Some([&sound[..40], b"~", &sound[41..]].concat()), None] {
        match bytes {
            Some(bytes) => std::fs::write(&head, bytes).expect("damaged"),
            None => std::fs::remove_file(&head).expect("there was one"),
        }
        let report = kb.run(["check", "--json"]).expect_exit(1).json();
        assert_eq!((&report["ok"], &report["problems"][0]["file"]), (&false.into(), &"head".into()), "{report}");
        kb.run(["rebuild"]).expect_exit(0);
        kb.run(["check"]).expect_exit(0);
        assert_eq!(kb.run(["content", "guide"]).expect_exit(0).stdout, b"# Guide\n");
    }
}

#[test]
fn a_reference_that_leads_nowhere_is_not_called_damage() {
    let kb = Kb::new();
    kb.run(["skill", "learn", "--name", "Sum", "--description", "Sums", "--body", "Sum.\n"]).expect_exit(0);
    kb.run(["agent", "create", "Reader", "--description", "Reads", "--persona", "Read.\n", "--skill", "Sum"])
        .expect_exit(0);
    kb.run(["skill", "delete", "Sum"]).expect_exit(0);
    let run = kb.run(["check"]);
    assert_eq!(run.exit, 1, "{run}");
    assert!(run.text().contains("\nnot ok: 1 error, 0 warnings; "), "{run}");
    assert!(!run.text().contains("damage"), "{run}");
}

#[test]
fn a_base_that_only_a_newer_version_may_write_is_read() {
    let kb = Kb::new();
    kb.learn("guide", "# Guide\n\nA heron.\n");
    let mut head = kb.read(".kbdb/head");
    let body = head.len() - 4;
    // The oldest version that may write.
    head[16] = 9;
    let checksum = crc32fast::hash(&head[..body]);
    head[body..].copy_from_slice(&checksum.to_le_bytes());
    kb.write(".kbdb/head", head);

    assert_eq!(kb.run(["retrieve", "guide"]).expect_exit(0).text(), "# Guide\n\nA heron.\n");
    let run = kb.pipe(["learn", "-", "--json"], "# More\n");
    assert_eq!((run.exit, &run.json()["error"]["code"]), (1, &"too-new".into()), "{run}");
    assert!(run.stderr.contains("use a newer kb to write"), "{run}");
}

#[test]
fn a_lost_head_is_told_and_found_again() {
    let kb = Kb::new();
    kb.learn("guide", "# Guide\n\nA heron.\n");
    std::fs::remove_file(kb.path(".kbdb/head")).expect("removed");
    let run = kb.run(["status", "--json"]);
    assert_eq!((run.exit, &run.json()["error"]["code"]), (1, &"no-head".into()), "{run}");
    assert!(run.stderr.contains("`kb rebuild`"), "{run}");
    kb.run(["rebuild"]).expect_exit(0);
    assert_eq!(kb.run(["retrieve", "guide"]).expect_exit(0).text(), "# Guide\n\nA heron.\n");
}

#[test]
fn an_index_that_is_gone_is_made_anew() {
    let kb = Kb::new();
    kb.learn("guide", "# Guide\n\nA heron.\n");
    for entry in std::fs::read_dir(kb.path(".kbdb/index")).expect("a folder") {
        std::fs::remove_file(entry.expect("an entry").path()).expect("removed");
    }
    let run = kb.run(["rebuild"]).expect_exit(0);
    assert_eq!(run.text(), "indexed 1 section of 1 document\n");
    assert_eq!(kb.run(["search", "heron", "--json"]).json()["hits"][0]["docid"], "guide");
}

#[test]
fn gc_keeps_what_is_there() {
    let kb = Kb::new();
    kb.learn("guide", "# Guide\n");
    kb.learn("gone", "# Gone\n");
    kb.run(["unlearn", "gone"]).expect_exit(0);
    let report = kb.run(["gc", "--json"]).expect_exit(0).json();
    assert_eq!(report["sectionsRemoved"], 1);
    assert_eq!(kb.run(["retrieve", "guide"]).text(), "# Guide\n");
}

#[test]
fn a_writer_that_waits_in_vain_says_who_holds_the_lock() {
    let kb = Kb::new();
    kb.learn("guide", "# Guide\n");
    let lock = std::fs::OpenOptions::new().read(true).write(true).open(kb.path(".kbdb/lock")).expect("a lock");
    lock.lock().expect("nobody holds it");
    let run = kb.pipe(["learn", "-", "--docid", "x", "--wait", "0.05", "--json"], "# X\n");
    assert_eq!((run.exit, &run.json()["error"]["code"]), (1, &"busy".into()), "{run}");
    assert!(run.stderr.starts_with("error: the database is busy: "), "{run}");
    assert_eq!(kb.run(["retrieve", "guide"]).expect_exit(0).text(), "# Guide\n");
    assert_eq!(kb.run(["doctor", "--json"]).json()["lock"]["held"], true);
    lock.unlock().expect("released");
    kb.pipe(["learn", "-", "--docid", "x", "--wait", "0"], "# X\n").expect_exit(0);
}

#[test]
fn commands_work_where_nothing_can_be_written() {
    let kb = Kb::new();
    kb.learn("guide", "# Guide\n\nA heron.\n");
    let mut permissions = std::fs::metadata(kb.path(".kbdb")).expect("a folder").permissions();
    permissions.set_readonly(true);
    std::fs::set_permissions(kb.path(".kbdb"), permissions.clone()).expect("read only");
    for arguments in [&["search", "heron"][..], &["retrieve", "guide"], &["status"], &["list"], &["check"]] {
        let run = kb.run(arguments);
        assert_eq!(run.exit, 0, "{arguments:?}\n{run}");
    }
    #[expect(clippy::permissions_set_readonly_false, reason = "a temporary folder that is about to be removed")]
    permissions.set_readonly(false);
    std::fs::set_permissions(kb.path(".kbdb"), permissions).expect("as before");
}
