//! A home of its own for each test, and what a run of `kb` came to.
//!
//! **Invariant:** a run sees nothing of the machine: empty environment, no terminal, its own home and folder. What
//! differs between runs (paths, times, versions) is replaced before it is compared.

use std::ffi::OsStr;
use std::fmt;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

/// A folder to work in and the binary.
pub(crate) struct Kb {
    folder: tempfile::TempDir,
}

/// What a run came to.
pub(crate) struct Run {
    pub(crate) exit: i32,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
    folder: PathBuf,
}

impl Kb {
    /// Makes an empty folder without a database.
    pub(crate) fn bare() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        std::fs::create_dir_all(folder.path().join("home")).expect("a home");
        std::fs::create_dir_all(folder.path().join("work")).expect("a folder to work in");
        Self { folder }
    }

    /// Makes a folder with an empty database.
    pub(crate) fn new() -> Self {
        let kb = Self::bare();
        kb.run(["init"]).expect_exit(0);
        kb
    }

    /// Returns the folder that commands run in.
    pub(crate) fn path(&self, relative: &str) -> PathBuf {
        self.folder.path().join("work").join(relative)
    }

    /// Writes a file and the folders above it.
    pub(crate) fn write(&self, relative: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(relative);
        std::fs::create_dir_all(path.parent().expect("a file has a folder")).expect("folders");
        std::fs::write(&path, content).expect("a file");
        path
    }

    /// Reads a file.
    pub(crate) fn read(&self, relative: &str) -> Vec<u8> {
        std::fs::read(self.path(relative)).expect("a file that can be read")
    }

    /// Runs `kb` with these arguments.
    pub(crate) fn run<I: IntoIterator<Item = S>, S: AsRef<OsStr>>(&self, arguments: I) -> Run {
        self.run_with(arguments, b"", &[])
    }

    /// Runs `kb` with bytes on stdin.
    pub(crate) fn pipe<I: IntoIterator<Item = S>, S: AsRef<OsStr>>(
        &self,
        arguments: I,
        input: impl AsRef<[u8]>,
    ) -> Run {
        self.run_with(arguments, input.as_ref(), &[])
    }

    /// Runs `kb` with bytes on stdin and variables in its environment.
    pub(crate) fn run_with<I: IntoIterator<Item = S>, S: AsRef<OsStr>>(
        &self,
        arguments: I,
        input: &[u8],
        variables: &[(&str, &Path)],
    ) -> Run {
        let mut child = self
            .command(arguments)
            .envs(variables.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("kb starts");
        // A command that does not read its input may be gone before all of it is written.
        let _ = child.stdin.take().expect("a pipe").write_all(input);
        let output = child.wait_with_output().expect("kb ends");
        Run {
            exit: output.status.code().expect("kb is not killed"),
            stdout: output.stdout,
            stderr: String::from_utf8(output.stderr).expect("messages are text"),
            folder: self.folder.path().to_owned(),
        }
    }

    /// Returns the command, to be run in another way.
    pub(crate) fn command<I: IntoIterator<Item = S>, S: AsRef<OsStr>>(&self, arguments: I) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kb"));
        command.args(arguments).current_dir(self.path("")).env_clear().env("HOME", self.folder.path().join("home"));
        command
    }

    /// Learns a text under a docid, and returns the kbids of its sections.
    pub(crate) fn learn(&self, docid: &str, text: &str) -> Vec<String> {
        let report = self.pipe(["learn", "-", "--docid", docid, "--json"], text).json();
        let kbids = report["documents"][0]["kbids"].as_array().expect("kbids").clone();
        kbids.iter().map(|kbid| kbid.as_str().expect("text").to_owned()).collect()
    }
}

impl Run {
    /// Returns the one JSON value that stdout carries.
    pub(crate) fn json(&self) -> Value {
        match serde_json::from_slice(&self.stdout) {
            Ok(value) => value,
            Err(error) => panic!("stdout is no JSON value: {error}\n{self}"),
        }
    }

    /// Returns the JSON values that stdout carries, one a line.
    pub(crate) fn json_lines(&self) -> Vec<Value> {
        let text = std::str::from_utf8(&self.stdout).expect("JSON is text");
        text.lines().map(|line| serde_json::from_str(line).expect("a JSON value on each line")).collect()
    }

    /// Returns stdout as text.
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.stdout).expect("text")
    }

    /// Says what happened where the exit code is another.
    pub(crate) fn expect_exit(self, exit: i32) -> Self {
        assert!(self.exit == exit, "exit {exit} was expected\n{self}");
        self
    }
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let folder = self.folder.display().to_string();
        let shown = |text: &str| mask_times(&text.replace(&folder, "[DIR]"));
        writeln!(f, "exit: {}", self.exit)?;
        for (name, text) in [("stdout", String::from_utf8_lossy(&self.stdout)), ("stderr", self.stderr.as_str().into())]
        {
            if !text.is_empty() {
                write!(f, "--- {name}\n{}", shown(&text))?;
            }
        }
        Ok(())
    }
}

/// Replaces times such as `2031-02-03T04:05:06Z`, which are those of the run.
fn mask_times(text: &str) -> String {
    const SHAPE: &[u8] = b"0000-00-00T00:00:00";
    let fits = |at: &[u8]| {
        at.len() >= SHAPE.len()
            && at.iter().zip(SHAPE).all(|(c, shape)| if *shape == b'0' { c.is_ascii_digit() } else { c == shape })
    };
    let mut masked = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if fits(rest.as_bytes()) {
            masked.push_str("[TIME]");
            let after = &rest[SHAPE.len()..];
            rest = after.trim_start_matches(|c: char| c == '.' || c.is_ascii_digit()).trim_start_matches('Z');
        } else {
            masked.push(c);
            rest = &rest[c.len_utf8()..];
        }
    }
    masked
}
