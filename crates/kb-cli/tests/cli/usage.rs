//! Arguments, exit codes, the place of the database, and what goes to which stream.
//!
//! **Invariant:** none of these needs anything in the base.

use std::io::Read;
use std::process::Stdio;

use insta::assert_snapshot;

use crate::harness::Kb;

#[test]
fn learn_without_a_path_is_wrong_usage() {
    assert_snapshot!(Kb::bare().run(["learn"]), @r"
    exit: 2
    --- stderr
    error: the following required arguments were not provided:
      <PATH>...

    Usage: kb learn <PATH>...

    For more information, try '--help'.
    ");
}

#[test]
fn an_unknown_flag_is_wrong_usage_and_an_object_for_programs() {
    let run = Kb::bare().run(["learn", ".", "--golb", "*.md", "--json"]);
    assert_eq!(run.exit, 2);
    assert_snapshot!(run.text(), @r#"{"error":{"code":"usage","message":"unexpected argument '--golb' found","hint":"`kb help` shows the usage"}}"#);
    // What comes after `--` is no flag of ours.
    assert_eq!(Kb::bare().run(["learn", "--golb", "--", "--json"]).text(), "");
}

#[test]
fn without_a_database_nothing_is_made() {
    let kb = Kb::bare();
    assert_snapshot!(kb.run(["status"]), @r"
    exit: 1
    --- stderr
    error: no database: there is no `.kbdb` in `[DIR]/work` or above it
    hint: `kb init` makes one here; `--db DIR` or KBDB_DIR names another
    ");
    assert_snapshot!(kb.run(["learn", ".", "--json"]), @r#"
    exit: 1
    --- stdout
    {"error":{"code":"no-database","message":"no database: there is no `.kbdb` in `[DIR]/work` or above it","hint":"`kb init` makes one here; `--db DIR` or KBDB_DIR names another"}}
    --- stderr
    error: no database: there is no `.kbdb` in `[DIR]/work` or above it
    hint: `kb init` makes one here; `--db DIR` or KBDB_DIR names another
    "#);
    let named = kb.run(["--db", "elsewhere", "status"]);
    assert_snapshot!(named, @r"
    exit: 1
    --- stderr
    error: no database at `elsewhere`
    hint: `kb init` makes one; `--db DIR` or KBDB_DIR names another
    ");
    assert_eq!(std::fs::read_dir(kb.path("")).expect("a folder").count(), 0);
    assert_eq!(std::fs::read_dir(kb.path("../home")).expect("a folder").count(), 0);
}

#[test]
fn init_makes_a_database_once() {
    let kb = Kb::bare();
    assert_snapshot!(kb.run(["init"]), @r"
    exit: 0
    --- stdout
    Made a database in [DIR]/work/.kbdb
    ");
    assert_snapshot!(kb.run(["init"]), @r"
    exit: 0
    --- stdout
    There is a database in [DIR]/work/.kbdb
    ");
    assert_eq!(kb.run(["init", "--json"]).json()["created"], false);
    assert!(kb.path(".kbdb/head").is_file());
}

#[test]
fn init_leaves_a_folder_with_other_things_alone() {
    let kb = Kb::bare();
    kb.write("notes/a.md", "# A\n");
    let run = kb.run(["init", "--db", "notes"]);
    assert_eq!(run.exit, 1);
    assert_snapshot!(run, @r"
    exit: 1
    --- stderr
    error: `notes` is a folder with files in it
    hint: name a folder that is empty or does not exist with `--db DIR`
    ");
    assert_eq!(std::fs::read_dir(kb.path("notes")).expect("a folder").count(), 1);
    let file = kb.run(["init", "--db", "notes/a.md", "--json"]);
    assert_eq!((file.exit, &file.json()["error"]["code"]), (1, &"cannot-create".into()), "{file}");
    assert!(file.stderr.starts_with("error: `notes/a.md` is a file\n"), "{file}");
    assert_eq!(kb.read("notes/a.md"), b"# A\n");
}

#[test]
fn ten_processes_may_init_at_once() {
    let kb = Kb::bare();
    let children: Vec<_> = (0..10)
        .map(|_| kb.command(["init", "--json"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts"))
        .collect();
    let outputs: Vec<_> = children.into_iter().map(|child| child.wait_with_output().expect("ends")).collect();
    for output in &outputs {
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let made = outputs.iter().filter(|output| String::from_utf8_lossy(&output.stdout).contains("\"created\":true"));
    assert_eq!(made.count(), 1);
    kb.run(["check"]).expect_exit(0);
}

#[test]
fn the_nearest_database_upwards_is_taken_unless_one_is_named() {
    let kb = Kb::new();
    kb.run(["init", "--db", "other"]).expect_exit(0);
    kb.learn("here", "# Here\n");
    std::fs::create_dir_all(kb.path("deep/down")).expect("folders");

    let down = kb.command(["list"]).current_dir(kb.path("deep/down")).output().expect("runs");
    assert!(String::from_utf8_lossy(&down.stdout).starts_with("here "), "{down:?}");

    let other = kb.path("other");
    let by_variable = kb.run_with(["status", "--json"], b"", &[("KBDB_DIR", &other)]).json();
    assert_eq!(by_variable["documents"], 0);
    let by_flag = kb.run_with(["--db", ".kbdb", "status", "--json"], b"", &[("KBDB_DIR", &other)]).json();
    assert_eq!(by_flag["documents"], 1);
    let empty = kb.run_with(["status", "--json"], b"", &[("KBDB_DIR", "".as_ref())]).json();
    assert_eq!(empty["documents"], 1);
}

#[test]
fn a_pipe_gets_no_colour_and_no_progress_unless_colour_is_asked_for() {
    let kb = Kb::new();
    kb.learn("guide", "# Retries\n\nBack off between retries.\n");
    for arguments in [&["search", "retries"][..], &["list"], &["status"], &["check"], &["rebuild"], &["doctor"]] {
        let run = kb.run(arguments);
        assert_eq!(run.exit, 0, "{run}");
        assert!(!run.text().contains(['\u{1b}', '\r']), "{run}");
        assert!(!run.stderr.contains(['\u{1b}', '\r']), "{run}");
    }
    assert!(kb.run(["search", "retries", "--color", "always"]).text().contains("\u{1b}[1m"));
    let no_color = kb.run_with(["search", "retries"], b"", &[("NO_COLOR", "1".as_ref())]);
    assert!(!no_color.text().contains('\u{1b}'));
}

#[test]
fn a_closed_pipe_is_success() {
    let kb = Kb::new();
    let text = format!("# Long\n\n{}", "A line of text that fills the pipe.\n".repeat(20_000));
    kb.learn("long", &text);
    let mut child =
        kb.command(["retrieve", "long"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("kb starts");
    let mut stdout = child.stdout.take().expect("a pipe");
    let mut first = [0; 6];
    stdout.read_exact(&mut first).expect("the beginning");
    assert_eq!(&first, b"# Long");
    drop(stdout);
    let output = child.wait_with_output().expect("kb ends");
    assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stderr).as_ref()), (Some(0), ""));
}

#[cfg(target_os = "linux")]
#[test]
fn a_result_that_cannot_be_written_is_a_failure() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("a device that is always full");
    let output = Kb::bare().command(["completions", "bash"]).stdout(full).output().expect("kb ends");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr.starts_with("error: cannot write the result: "), "{stderr}");
    assert!(stderr.contains("\nhint: free some space"), "{stderr}");
}

#[test]
fn help_and_version_are_results() {
    let kb = Kb::bare();
    let version = kb.run(["--version"]);
    assert_eq!((version.exit, version.text()), (0, concat!("kb ", env!("CARGO_PKG_VERSION"), "\n")));
    let help = kb.run(["help", "learn"]);
    assert_eq!((help.exit, help.stderr.as_str()), (0, ""));
    assert!(help.text().starts_with("Learn files, folders or stdin\n"), "{help}");
    let nothing = kb.run::<[&str; 0], _>([]);
    assert_eq!((nothing.exit, nothing.text()), (2, ""));
}

#[test]
fn completions_and_manual_know_the_commands() {
    let kb = Kb::bare();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = kb.run(["completions", shell]).expect_exit(0);
        assert!(script.text().contains("unlearn"), "{shell}");
        assert!(script.text().contains("prune-all"), "{shell}");
    }
    let page = kb.run(["man"]).expect_exit(0);
    assert!(page.text().contains(".TH kb 1"), "{page}");

    let written = kb.run(["man", "pages", "--json"]).expect_exit(0).json();
    let pages = written["pages"].as_array().expect("pages");
    assert!(pages.iter().any(|page| page == "kb-skill-render"), "{written}");
    for page in pages {
        let name = page.as_str().expect("text");
        let content = kb.read(&format!("pages/{name}.1"));
        assert!(String::from_utf8_lossy(&content).contains(&format!(".TH {name} 1")), "{name}");
    }
}
