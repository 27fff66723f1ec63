//! The processes of a run: its child, other runs, and its own end at a bad moment.

use std::fs::File;
use std::process::Stdio;
use std::time::{Duration, Instant};

use super::lab;
use crate::harness::Kb;

/// Longer than any machine needs; a test that waits so long has failed.
const PATIENCE: Duration = Duration::from_mins(2);

/// Waits until something is so.
fn until(what: &str, is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Says whether no process holds this file any more.
fn is_released(kb: &Kb, name: &str) -> bool {
    File::open(kb.path(name)).is_ok_and(|file| file.try_lock().is_ok())
}

#[cfg(unix)]
#[test]
fn a_child_is_ended_with_all_that_it_started() {
    let kb = Kb::new();
    let hold = kb.write("held", "");
    lab(&kb, &format!("stays --hold {}", hold.display()), "");
    kb.run(["source", "run", "lab.yaml"]).expect_exit(0);
    until("what the server started is ended with it", || is_released(&kb, "held"));
}

#[cfg(unix)]
#[test]
fn a_run_that_is_killed_leaves_no_child_and_the_next_one_picks_up() {
    let kb = Kb::new();
    let hold = kb.write("held", "");
    lab(&kb, &format!("hang_read,stays --hold {}", hold.display()), "timeout: {read: 3000}");
    let mut running =
        kb.command(["source", "run", "lab.yaml", "--yes"]).stdin(Stdio::null()).spawn().expect("it starts");
    until("the server is asked", || std::fs::read_to_string(kb.path("log")).is_ok_and(|log| log.contains("read ")));

    // Another run says that this one is running.
    let second = kb.run(["source", "run", "lab.yaml", "--wait", "0"]);
    assert!(second.exit == 1 && second.stderr.contains("`lab`") && second.stderr.contains("--wait"), "{second}");
    // Others are in nobody's way.
    kb.learn("meanwhile", "# Meanwhile\n");

    running.kill().expect("it is running");
    running.wait().expect("it ends");
    until("the server is ended with who started it", || is_released(&kb, "held"));
    assert_eq!(kb.run(["status", "--json"]).json()["documents"], 1);
    lab(&kb, "plain", "");
    kb.run(["source", "run", "lab.yaml", "--yes"]).expect_exit(0);
    assert_eq!(kb.run(["status", "--json"]).json()["documents"], 6);
    kb.run(["check"]).expect_exit(0);
}

#[test]
fn a_server_sees_the_variables_that_were_named_and_says_so_only_when_asked() {
    let kb = Kb::new();
    let secret = std::path::Path::new("hunter2hunter2");
    let variables = [("FAKE_TOKEN", secret), ("OTHER_TOKEN", std::path::Path::new("other-secret"))];
    lab(&kb, "stderr,echo_token", "");
    let yaml =
        String::from_utf8(kb.read("lab.yaml")).expect("text").replace("kind: stdio", "kind: stdio, env: [FAKE_TOKEN]");
    kb.write("lab.yaml", yaml);

    let quiet = kb.run_with(["source", "run", "lab.yaml"], b"", &variables);
    assert!(quiet.exit == 1 && !quiet.stderr.contains("starting with"), "{quiet}");
    assert!(quiet.stderr.contains("bad token [hidden]"), "{quiet}");
    let loud = kb.run_with(["source", "run", "lab.yaml", "-v"], b"", &variables);
    assert!(loud.stderr.contains("FAKE_TOKEN=[hidden]") && loud.stderr.contains("HOME="), "{loud}");
    for run in [quiet, loud] {
        for hidden in ["hunter2hunter2", "other-secret", "OTHER_TOKEN"] {
            assert!(!run.stderr.contains(hidden) && !run.text().contains(hidden), "{run}");
        }
    }
    let unset = kb.run(["source", "run", "lab.yaml"]);
    assert!(unset.exit == 2 && unset.stderr.contains("the variable `FAKE_TOKEN` is not set"), "{unset}");
}

#[test]
fn a_text_with_a_credential_is_not_kept() {
    let kb = Kb::new();
    lab(&kb, "token_text", "");
    let yaml =
        String::from_utf8(kb.read("lab.yaml")).expect("text").replace("kind: stdio", "kind: stdio, env: [FAKE_TOKEN]");
    kb.write("lab.yaml", yaml);
    let variables = [("FAKE_TOKEN", std::path::Path::new("hunter2hunter2"))];
    let run = kb.run_with(["source", "run", "lab.yaml", "--yes"], b"", &variables);
    assert!(run.exit == 1 && run.stderr.contains("holds a credential"), "{run}");
    assert!(!run.stderr.contains("hunter2"), "{run}");
}
