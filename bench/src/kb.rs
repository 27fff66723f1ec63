//! The program `kb` under measurement, away from the user's own files.
//!
//! **Invariant:** every run has the same empty home and cache folder of its own and a database named in full, so that
//! nothing of the machine's user is read or written.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use crate::Result;
use crate::usage::{Ran, measure};

/// The program with a home, a cache and a database.
#[derive(Debug)]
pub(crate) struct Kb {
    program: PathBuf,
    home: TempDir,
    database: PathBuf,
}

impl Kb {
    /// Returns the program with a database yet to be made.
    pub(crate) fn new(program: &Path) -> Result<Self> {
        Self::in_folder(program, &std::env::temp_dir())
    }

    /// Returns the program with a database yet to be made, below this folder.
    pub(crate) fn in_folder(program: &Path, folder: &Path) -> Result<Self> {
        let program = program.canonicalize().map_err(|error| format!("no program `{}`: {error}", program.display()))?;
        let home = tempfile::tempdir_in(folder)?;
        let database = home.path().join("base.kbdb");
        Ok(Self { program, home, database })
    }

    /// Uses a database that is there already.
    pub(crate) fn with_database(mut self, database: &Path) -> Result<Self> {
        self.database = database.canonicalize().map_err(|error| format!("no `{}`: {error}", database.display()))?;
        Ok(self)
    }

    /// Returns the directory of the database.
    pub(crate) fn database(&self) -> &Path {
        &self.database
    }

    /// Returns the command line of `kb` with these arguments.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(arguments).env_clear().env("HOME", self.home.path()).env("KBDB_DIR", &self.database);
        command.current_dir(self.home.path());
        command
    }

    /// Runs it to its end, which has to be a good one.
    pub(crate) fn run(&self, arguments: &[&str]) -> Result<Ran> {
        let ran = measure(&self.command(arguments))?;
        ran.stdout(&format!("kb {}", arguments.join(" ")))?;
        Ok(ran)
    }

    /// Runs it and reads what it printed as JSON.
    pub(crate) fn json(&self, arguments: &[&str]) -> Result<Value> {
        let ran = measure(&self.command(arguments))?;
        Ok(serde_json::from_str(&ran.stdout(&format!("kb {}", arguments.join(" ")))?)?)
    }
}

/// Returns the bytes of all files below a folder.
pub(crate) fn folder_bytes(folder: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(folder).map_err(|error| format!("cannot read `{}`: {error}", folder.display()))? {
        let entry = entry?;
        let kind = entry.file_type()?;
        bytes += if kind.is_dir() { folder_bytes(&entry.path())? } else { entry.metadata()?.len() };
    }
    Ok(bytes)
}

/// Copies a folder with all that is in it.
pub(crate) fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from).map_err(|error| format!("cannot read `{}`: {error}", from.display()))? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_folder(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), &target)?;
        }
    }
    Ok(())
}

/// Says whether a program is there to be run.
pub(crate) fn is_there(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
}
