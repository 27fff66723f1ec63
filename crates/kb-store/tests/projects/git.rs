//! What Git sees: commits of the paths that were written, and nothing of the user's.

use crate::support::{TestHome, git, knowledge, options, update};
use kb_store::ProjectStore;

#[test]
fn a_commit_is_by_the_server_and_of_its_paths_alone() {
    let home = TestHome::new();
    home.write("notes.txt", "the user's own");
    home.write("staged.txt", "staged by the user");
    home.store.update_main("R&D \"x\" 'y' $HOME".replace('"', "").as_str(), "x").expect("written");
    home.git(&["add", "staged.txt"]);
    home.create("p", "doc");
    home.update("p", "doc", "One", "new");
    let shown = home.git(&["log", "-1", "--format=%an <%ae>|%cn <%ce>|%ct|%s", "--name-only"]);
    let who = "Knowledge MCP Server <knowledge-mcp@localhost>";
    assert_eq!(
        shown,
        format!(
            "{who}|{who}|1900000000|Update knowledge for p: Updated chapter 'One' in doc.md\n\nprojects/p/knowledge/doc.md\n"
        )
    );
    assert_eq!(home.git(&["status", "--porcelain"]), "A  staged.txt\n?? notes.txt\n");
    assert!(!home.read(".git/config").contains("Knowledge"), "the identity is given a commit, not a configuration");
    home.git(&["fsck", "--strict"]);
    assert!(home.git(&["reflog"]).contains("Updated chapter"), "a person finds it where Git notes it");
}

#[test]
fn nothing_of_the_users_git_reaches_a_commit() {
    let home = TestHome::new();
    home.create("p", "doc");
    let hook = home.path().join(".git/hooks/pre-commit");
    home.write(".git/hooks/pre-commit", "#!/bin/sh\nexit 1\n");
    #[cfg(unix)]
    std::fs::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("its own file");
    home.git(&["config", "commit.gpgsign", "true"]);
    home.git(&["config", "gpg.program", "/bin/false"]);
    home.git(&["config", "user.name", "Somebody"]);
    home.git(&["config", "core.hooksPath", "/nowhere"]);
    home.git(&["config", "core.autocrlf", "true"]);
    home.update("p", "doc", "One", "new");
    assert_eq!(home.git(&["log", "-1", "--format=%an"]), "Knowledge MCP Server\n");
    assert!(hook.exists());
}

#[test]
fn a_revision_is_listed_compared_and_restored() {
    let home = TestHome::new();
    home.create("other", "doc");
    home.create("p", "doc");
    let first = home.store.history("p", None, 10).expect("listed").revisions[0].revision.clone();
    let original = home.read("projects/p/knowledge/doc.md");
    home.update("p", "doc", "One", "new");
    home.store.update_main("p", "main").expect("written");
    home.store.delete_file("p", "doc").expect("deleted");

    let all = home.store.history("p", None, 10).expect("listed");
    let shown: Vec<String> = all
        .revisions
        .iter()
        .map(|r| {
            format!(
                "{} | {}",
                r.message,
                r.files.iter().map(|f| format!("{} {}", f.change, f.path)).collect::<Vec<_>>().join(", ")
            )
        })
        .collect();
    insta::assert_snapshot!(shown.join("\n"), @r"
    Update knowledge for p: Deleted doc.md | deleted knowledge/doc.md
    Update knowledge for p: Updated main.md | added main.md
    Update knowledge for p: Updated chapter 'One' in doc.md | modified knowledge/doc.md
    Update knowledge for p: Created doc.md | added knowledge/doc.md
    ");
    assert!(!all.truncated && home.store.history("p", None, 2).expect("listed").truncated);
    assert_eq!(home.store.history("p", Some("doc"), 10).expect("listed").count, 3);
    assert_eq!(home.store.history("p", Some("main.md"), 10).expect("listed").count, 1);
    assert_eq!(home.store.history("p", Some("never"), 10).expect_err("none").code(), "file-not-found");

    assert_eq!(home.store.file_at("p", "doc", &first[..10]).expect("there").document.full_content, original);
    home.store.restore("p", "doc", &first).expect("restored");
    assert_eq!(home.read("projects/p/knowledge/doc.md"), original);
    assert_eq!(home.store.restore("p", "main.md", &first).expect_err("not there then").code(), "file-not-found");
    for revision in ["", "zz", "0000000000", "HEAD~1", "--all"] {
        assert_eq!(home.store.restore("p", "doc", revision).expect_err(revision).code(), "revision-not-found");
    }
    home.is_clean();
}

#[test]
fn a_commit_that_fails_is_reported_and_leaves_the_files() {
    let home = TestHome::new();
    home.create("p", "doc");
    let before = home.read("projects/p/knowledge/doc.md");
    home.write(".git/index.lock", "");
    let hurried = ProjectStore::open(home.path(), kb_store::Options { wait: std::time::Duration::ZERO, ..options() })
        .expect("open");
    let error = hurried.update_chapter("p", "doc", &update("One", "new")).expect_err("Git is locked");
    assert_eq!((error.code(), error.is_retryable()), ("git-locked", true));
    assert_eq!(home.read("projects/p/knowledge/doc.md"), before);
    let error = hurried.create_file("fresh", &knowledge("doc")).expect_err("Git is locked");
    assert_eq!(error.code(), "git-locked");
    assert_eq!(home.store.projects().expect("listed").count, 1);
    std::fs::remove_file(home.path().join(".git/index.lock")).expect("it is there");
    home.create("fresh", "doc");
    assert!(home.path().join("projects/fresh/knowledge/doc.md").is_file(), "its folder is as if it had never failed");
    home.update("p", "doc", "One", "new");
    home.is_clean();
}

#[test]
fn packing_bounds_the_growth_and_loses_nothing() {
    let home = TestHome::new();
    home.create("p", "doc");
    // An object that nothing names, as after a commit that was amended.
    home.write("lost.txt", "nothing names this");
    let lost = home.git(&["hash-object", "-w", "lost.txt"]);
    let text = "A line of the text that stays as it was.\n".repeat(100);
    let mut revisions = Vec::new();
    for n in 0..300 {
        revisions.extend(home.update("p", "doc", "One", &format!("{text}\n{n}")));
    }
    assert_eq!(revisions.len(), 300);
    let count = home.git(&["count-objects", "-v"]);
    let number = |key: &str| -> u64 {
        let line = count.lines().find_map(|line| line.strip_prefix(key)).expect(key);
        line.trim_start_matches(':').trim().parse().expect("a number")
    };
    assert!(number("count") < 1_000 && number("packs") >= 1 && number("in-pack") >= 1_000, "{count}");
    assert!(number("size-pack") < 300, "versions of one text are deltas: {count}");
    assert_eq!(number("garbage"), 0, "{count}");
    home.git(&["fsck", "--strict", "--full"]);
    for pack in std::fs::read_dir(home.path().join(".git/objects/pack")).expect("listed") {
        let path = pack.expect("listed").path();
        if path.extension().is_some_and(|end| end == "idx") {
            home.git(&["verify-pack", path.to_str().expect("text")]);
        }
    }
    assert_eq!(home.git(&["cat-file", "-p", lost.trim()]), "nothing names this");
    let first = home.store.text_at("p", "doc", &revisions[0]).expect("there");
    assert!(first.contains("\n0\n"), "{first}");
    assert_eq!(home.store.history("p", Some("doc"), 1_000).expect("listed").count, 301);
    std::fs::remove_file(home.path().join("lost.txt")).expect("it is there");
    home.is_clean();
}

#[test]
fn nothing_is_committed_where_it_would_be_lost_or_in_the_way() {
    let home = TestHome::new();
    home.create("p", "doc");
    home.update("p", "doc", "One", "new");
    home.git(&["checkout", "--quiet", "--detach"]);
    let error = home.store.update_main("p", "x").expect_err("no branch");
    assert_eq!(error.code(), "repository-state");
    assert!(error.to_string().contains("detached"), "{error}");
    home.git(&["checkout", "--quiet", "main"]);

    home.git(&["checkout", "--quiet", "-b", "side", "HEAD~1"]);
    home.update("p", "doc", "One", "other");
    home.git(&["checkout", "--quiet", "main"]);
    assert!(!git(&home.path(), &["merge", "side"]).status.success(), "a conflict");
    let error = home.store.update_main("p", "x").expect_err("a merge is on");
    assert!(error.to_string().contains("middle of a merge"), "{error}");
    assert!(!home.path().join("projects/p/main.md").exists());
    assert!(home.store.file("p", "doc").expect("still read").document.full_content.contains("<<<<<<<"));
    home.git(&["merge", "--abort"]);
    home.store.update_main("p", "x").expect("written");
    home.is_clean();
}

#[test]
fn a_home_may_lie_in_a_bigger_repository_or_be_a_persons_own() {
    let folder = tempfile::tempdir().expect("a folder");
    git(folder.path(), &["init", "--quiet"]);
    std::fs::write(folder.path().join("outer.txt"), "x").expect("writable");
    let store = ProjectStore::open(folder.path().join("home"), options()).expect("opened");
    store.update_main("p", "x").expect("written");
    let log = git(folder.path(), &["log"]);
    assert!(!log.status.success(), "the outer repository has no commit: {}", String::from_utf8_lossy(&log.stdout));

    let own = tempfile::tempdir().expect("a folder");
    git(own.path(), &["init", "--quiet", "-b", "trunk"]);
    std::fs::write(own.path().join(".gitignore"), "target\n").expect("writable");
    let store = ProjectStore::open(own.path(), options()).expect("opened");
    store.update_main("p", "x").expect("written");
    assert_eq!(std::fs::read_to_string(own.path().join(".gitignore")).expect("there"), "target\n");
    let log = git(own.path(), &["log", "--format=%s", "trunk", "--name-only"]);
    let expected = "Update knowledge for p: Updated main.md\n\nindex.json\nprojects/p/main.md\n";
    assert_eq!(String::from_utf8_lossy(&log.stdout), expected);
    store.search("p", "x").expect("searched");
    let status = git(own.path(), &["status", "--porcelain"]);
    assert_eq!(String::from_utf8_lossy(&status.stdout), "?? .gitignore\n", "its own list of what to ignore is theirs");
}

#[test]
fn what_was_edited_by_hand_is_committed_before_it_is_replaced() {
    let home = TestHome::new();
    home.store.update_main("p", "by a tool").expect("written");
    home.write("projects/p/main.md", "by hand");
    home.store.update_main("p", "by a tool again").expect("written");
    home.write("projects/p/knowledge/note.md", "# Note\n\nnever committed\n");
    home.store.delete_file("p", "note").expect("deleted");
    let expected = [
        "Update knowledge for p: Deleted note.md",
        "Keep what was edited by hand: projects/p/knowledge/note.md",
        "Update knowledge for p: Updated main.md",
        "Keep what was edited by hand: projects/p/main.md",
        "Update knowledge for p: Updated main.md",
    ];
    assert_eq!(home.log(), expected);
    assert_eq!(home.git(&["show", "HEAD~2^:projects/p/main.md"]), "by hand");
    assert_eq!(home.git(&["show", "HEAD^:projects/p/knowledge/note.md"]), "# Note\n\nnever committed\n");
    home.is_clean();
}
