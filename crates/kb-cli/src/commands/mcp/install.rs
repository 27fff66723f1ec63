//! `kb mcp install`: the configuration for a host application, printed or merged into its file.
//!
//! **Invariant:** a file is replaced whole or not at all, and only by one that holds all it held.

use std::env;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use kb_mcp::{Entry, Host};
use serde::Serialize;

use crate::commands::Context;
use crate::commands::served::named_database;
use crate::failure::{Exit, Failure};

/// Print the configuration that makes a host application start this server
///
/// With `--write` it is merged into the host's file; what else the file holds stays. The database is the one that
/// `--db` or `KBDB_DIR` names.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The host application
    host: HostName,
    /// Merge it into the host's file
    #[arg(long)]
    write: bool,
    /// The file to merge it into; else the host's own, in the working directory or the home folder
    #[arg(long, value_name = "FILE", requires = "write")]
    file: Option<PathBuf>,
    /// The name of the server in the host
    #[arg(long, default_value = "kb")]
    name: String,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum HostName {
    ClaudeCode,
    ClaudeDesktop,
    #[value(name = "vscode")]
    VsCode,
    Cursor,
    Codex,
    Gemini,
}

impl HostName {
    const fn host(self) -> Host {
        match self {
            Self::ClaudeCode => Host::ClaudeCode,
            Self::ClaudeDesktop => Host::ClaudeDesktop,
            Self::VsCode => Host::VsCode,
            Self::Cursor => Host::Cursor,
            Self::Codex => Host::Codex,
            Self::Gemini => Host::Gemini,
        }
    }

    /// Returns the host's file: of the project for those that have one, else below the home folder.
    fn file(self) -> Result<PathBuf, Failure> {
        let folder = |variable: &str| {
            env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from).ok_or_else(|| {
                Failure::new("no-home", format_args!("{variable} is not set")).with_hint("name the file with `--file`")
            })
        };
        let home = || folder(if cfg!(windows) { "USERPROFILE" } else { "HOME" });
        Ok(match self {
            Self::ClaudeCode => PathBuf::from(".mcp.json"),
            Self::VsCode => PathBuf::from(".vscode/mcp.json"),
            Self::Cursor => PathBuf::from(".cursor/mcp.json"),
            Self::Codex => home()?.join(".codex/config.toml"),
            Self::Gemini => home()?.join(".gemini/settings.json"),
            Self::ClaudeDesktop => {
                let settings = if cfg!(windows) {
                    folder("APPDATA")?
                } else if cfg!(target_os = "macos") {
                    home()?.join("Library/Application Support")
                } else {
                    home()?.join(".config")
                };
                settings.join("Claude/claude_desktop_config.json")
            }
        })
    }
}

/// What was done.
#[derive(Debug, Serialize)]
struct Installed {
    file: Option<String>,
    outcome: &'static str,
    configuration: String,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<Exit, Failure> {
    let absolute = |path: &Path| {
        std::path::absolute(path)
            .map(|path| path.to_string_lossy().into_owned())
            .map_err(|error| Failure::io("resolve", path, &error))
    };
    let database = absolute(&named_database(context, "kb mcp")?)?;
    let program = env::current_exe().map_err(|error| Failure::io("find", Path::new("kb"), &error))?;
    let args_of_server = vec!["mcp".to_owned(), "--db".to_owned(), database];
    let entry = Entry { name: args.name.clone(), command: absolute(&program)?, args: args_of_server };
    let host = args.host.host();
    let configuration = host.configuration(&entry);
    if !args.write {
        let installed = Installed { file: None, outcome: "printed", configuration };
        context.output.result(&installed, |out| write!(out, "{}", installed.configuration))?;
        return Ok(Exit::Done);
    }
    let file = args.file.clone().map_or_else(|| args.host.file(), Ok)?;
    // A link stays one: what it leads to is replaced.
    let file = file.canonicalize().unwrap_or(file);
    let existing = match fs::read_to_string(&file) {
        Ok(text) => Some(text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(Failure::io("read", &file, &error)),
    };
    let merged = host.merged(existing.as_deref().unwrap_or_default(), &entry).map_err(|error| {
        Failure::new("cannot-merge", format_args!("`{}`: {error}", file.display())).with_hint(
            "nothing was changed; without `--write` the configuration is printed, and `--name` gives it another name",
        )
    })?;
    let outcome = if existing.as_ref() == Some(&merged) { "unchanged" } else { "written" };
    if outcome == "written" {
        replace(&file, &merged)?;
    }
    let installed = Installed { file: Some(file.display().to_string()), outcome, configuration };
    context.output.result(&installed, |out| writeln!(out, "{outcome} `{}`", file.display()))?;
    Ok(Exit::Done)
}

/// Replaces a file by way of a temporary one beside it, with the rights of the old one.
fn replace(file: &Path, text: &str) -> Result<(), Failure> {
    let folder = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(folder).map_err(|error| Failure::io("create", folder, &error))?;
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(format!(".kb-{}", std::process::id()));
    let temporary = folder.join(name);
    let written = (|| {
        let mut out = fs::OpenOptions::new().write(true).create_new(true).open(&temporary)?;
        out.write_all(text.as_bytes())?;
        out.sync_all()?;
        if let Ok(metadata) = fs::metadata(file) {
            fs::set_permissions(&temporary, metadata.permissions())?;
        }
        fs::rename(&temporary, file)
    })();
    written.map_err(|error| {
        // What could not be put in place is of no use.
        let _ = fs::remove_file(&temporary);
        Failure::io("write", file, &error)
    })
}
