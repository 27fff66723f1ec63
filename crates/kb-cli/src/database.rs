//! Which database a command works on, and how it is opened.
//!
//! The environment, the working directory and the user's cache folder are read here, once, and handed to the library.
//!
//! **Invariant:** only `kb init` creates a database (and `--from` one in the user's cache folder); any other command on
//! a place without one fails and leaves no file behind.

use std::env;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use kb_store::{KnowledgeBase, Options, StoreError};

use crate::failure::Failure;

/// The name of a database directory that is found by looking upwards.
pub(crate) const DIRECTORY_NAME: &str = ".kbdb";

/// How often a create and an open that race with another process are tried.
const ATTEMPTS: u32 = 20;
const PAUSE: Duration = Duration::from_millis(50);

/// Where databases are found and how they are opened.
#[derive(Debug, Clone)]
pub(crate) struct Databases {
    named: Option<PathBuf>,
    wait: Duration,
    cache: Option<PathBuf>,
    project_home: Option<PathBuf>,
    command: String,
}

impl Databases {
    /// Reads the environment; `--db` goes before `KBDB_DIR`.
    pub(crate) fn new(flag: Option<PathBuf>, wait: Duration) -> Self {
        let variable = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
        Self {
            named: flag.or_else(|| variable("KBDB_DIR").map(PathBuf::from)),
            wait,
            cache: cache_folder(variable),
            project_home: variable("KNOWLEDGE_MCP_HOME")
                .map(PathBuf::from)
                .or_else(|| Some(env::home_dir()?.join(".knowledge-mcp"))),
            command: command_line(env::args_os()),
        }
    }

    /// Returns the directory of the database: the named one, else the nearest `.kbdb` upwards.
    pub(crate) fn find(&self) -> Result<PathBuf, Failure> {
        if let Some(path) = &self.named {
            return Ok(path.clone());
        }
        let start = current_directory()?;
        start.ancestors().map(|folder| folder.join(DIRECTORY_NAME)).find(|path| path.is_dir()).ok_or_else(|| {
            Failure::new(
                "no-database",
                format_args!("no database: there is no `{DIRECTORY_NAME}` in `{}` or above it", start.display()),
            )
            .with_hint("`kb init` makes one here; `--db DIR` or KBDB_DIR names another")
        })
    }

    /// Returns the directory that `--db` or `KBDB_DIR` names.
    pub(crate) fn named(&self) -> Option<&Path> {
        self.named.as_deref()
    }

    /// Returns where `kb init` makes a database: the named place, else `.kbdb` in the working directory.
    pub(crate) fn place_to_create(&self) -> Result<PathBuf, Failure> {
        match &self.named {
            Some(path) => Ok(path.clone()),
            None => Ok(current_directory()?.join(DIRECTORY_NAME)),
        }
    }

    /// Opens the database to read; works where nothing can be written.
    pub(crate) fn open_to_read(&self) -> Result<KnowledgeBase, Failure> {
        Ok(KnowledgeBase::open_read_only(self.find()?, self.options())?)
    }

    /// Opens the database to read and write.
    pub(crate) fn open(&self) -> Result<KnowledgeBase, Failure> {
        Ok(KnowledgeBase::open(self.find()?, self.options())?)
    }

    /// Opens the database at a path, or makes it where there is none; says whether it was made.
    ///
    /// Safe to be called by many processes at once: one of them makes it, the others open it.
    pub(crate) fn open_or_create(&self, path: &Path) -> Result<(KnowledgeBase, bool), StoreError> {
        let mut attempt = 1;
        loop {
            // A process that loses the race sees a database that is not whole yet, for an instant.
            let error = match KnowledgeBase::open(path, self.options()) {
                Ok(base) => return Ok((base, false)),
                Err(error) if may_be_made(&error) => match KnowledgeBase::create(path, self.options()) {
                    Ok(base) => return Ok((base, true)),
                    Err(error) => error,
                },
                Err(error) => error,
            };
            let may_pass = matches!(error, StoreError::CannotCreate { .. } | StoreError::NoHead { .. });
            if !may_pass || attempt == ATTEMPTS || !path.join("head").exists() && !path.join("lock").exists() {
                return Err(error);
            }
            attempt += 1;
            std::thread::sleep(PAUSE);
        }
    }

    /// Opens or makes the database that an MCP server serves. It waits for other writers in short steps, between which
    /// the server looks whether the call still matters.
    pub(crate) fn open_to_serve(&self, path: &Path) -> Result<(KnowledgeBase, bool), StoreError> {
        let serving = Self { wait: kb_mcp::Settings::LOCK_WAIT, ..self.clone() };
        serving.open_or_create(path)
    }

    /// Returns how long a writer waits for others.
    pub(crate) fn wait(&self) -> Duration {
        self.wait
    }

    /// Returns where the database for a folder that is searched without set-up lies: in the user's cache folder.
    pub(crate) fn cached_for(&self, folder: &Path) -> Result<PathBuf, Failure> {
        let cache = self.cache.as_ref().ok_or_else(|| {
            Failure::new("no-cache", "there is no cache folder to keep the index of `--from` in")
                .with_hint("set HOME or XDG_CACHE_HOME, or use `kb init` and `kb learn`")
        })?;
        let key = blake3::hash(folder.as_os_str().as_encoded_bytes()).to_hex();
        Ok(cache.join("from").join(&key[..32]))
    }

    /// Returns where it is noted when a source of a database was last run here; `None` without a cache folder.
    pub(crate) fn run_note(&self, database: &Path, source: &str) -> Option<PathBuf> {
        let place = std::path::absolute(database).ok()?;
        let place = place.canonicalize().unwrap_or(place);
        let mut hasher = blake3::Hasher::new();
        hasher.update(place.as_os_str().as_encoded_bytes()).update(&[0]).update(source.as_bytes());
        Some(self.cache.as_ref()?.join("source-runs").join(&hasher.finalize().to_hex()[..32]))
    }

    /// Returns the home of project knowledge: the one that is given, else the one of the environment, else the usual one.
    pub(crate) fn project_home(&self, flag: Option<PathBuf>) -> Result<PathBuf, Failure> {
        flag.or_else(|| self.project_home.clone()).ok_or_else(|| {
            Failure::new("no-home", "there is no home of project knowledge")
                .with_hint("give `--home DIR`, or set KNOWLEDGE_MCP_HOME or HOME")
        })
    }

    /// Returns how a database is opened.
    pub(crate) fn options(&self) -> Options {
        let mut options = Options::new(SystemTime::now);
        options.wait = self.wait;
        options.cache_dir.clone_from(&self.cache);
        options.command.clone_from(&self.command);
        options
    }
}

/// Says whether there is no database, or a file where its folder would be; which of the two, creating tells.
fn may_be_made(error: &StoreError) -> bool {
    match error {
        StoreError::NoDatabase { .. } => true,
        StoreError::Io { source, .. } => source.kind() == io::ErrorKind::NotADirectory,
        _ => false,
    }
}

pub(crate) fn current_directory() -> Result<PathBuf, Failure> {
    env::current_dir().map_err(|error| Failure::io("read", Path::new("."), &error))
}

/// Returns the folder for what can be made anew, by the conventions of the system; `None` where none is set.
fn cache_folder(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    // The XDG base directory specification: a relative path is to be ignored.
    let absolute = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    if let Some(cache) = absolute("XDG_CACHE_HOME") {
        return Some(cache.join("kb"));
    }
    if cfg!(windows) {
        return Some(absolute("LOCALAPPDATA")?.join("kb").join("cache"));
    }
    let home = absolute("HOME")?;
    let caches = if cfg!(target_os = "macos") { "Library/Caches" } else { ".cache" };
    Some(home.join(caches).join("kb"))
}

/// Returns what others are told that this process is doing: program name, then arguments, at most 200 characters.
fn command_line(arguments: impl Iterator<Item = OsString>) -> String {
    let mut words = vec!["kb".to_owned()];
    let mut is_setting = false;
    for word in arguments.skip(1) {
        let word = word.to_string_lossy().replace(char::is_control, " ");
        // What a source is set to may be a secret that has no place there.
        words.push(match (is_setting, word.starts_with("--set=")) {
            (true, _) => "…".to_owned(),
            (_, true) => "--set=…".to_owned(),
            _ => word.clone(),
        });
        is_setting = word == "--set";
    }
    words.join(" ").chars().take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(all(unix, not(target_os = "macos")))]
    #[test]
    fn the_cache_folder_follows_the_conventions() {
        let with = |home: Option<&str>, cache: Option<&str>| {
            cache_folder(|name| match name {
                "HOME" => home.map(OsString::from),
                "XDG_CACHE_HOME" => cache.map(OsString::from),
                _ => None,
            })
        };
        assert_eq!(with(Some("/home/ana"), None), Some(PathBuf::from("/home/ana/.cache/kb")));
        assert_eq!(with(Some("/home/ana"), Some("/var/ana")), Some(PathBuf::from("/var/ana/kb")));
        assert_eq!(with(Some("/home/ana"), Some("relative")), Some(PathBuf::from("/home/ana/.cache/kb")));
        assert_eq!(with(None, None), None);
    }

    #[test]
    fn a_command_line_is_short_and_on_one_line() {
        let words = ["target/debug/kb", "learn", "a\nb", &"x".repeat(300)].map(OsString::from);
        let told = command_line(words.into_iter());
        assert!(told.starts_with("kb learn a b xxx"), "{told}");
        assert_eq!(told.chars().count(), 200);
    }
}
