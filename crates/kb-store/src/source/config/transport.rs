//! How a server is reached: the program to start, or the address to connect to.
//!
//! **Invariant:** neither is accepted with a credential in it; variables that are named are set.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::keys::{Faults, Keys};
use super::{Environment, Transport};
use crate::source::secret;

/// Reads how the server is reached.
pub(super) fn read_transport(value: &Value, environment: &Environment<'_>, faults: &mut Faults) -> Option<Transport> {
    let mut keys = Keys::of("transport", value, faults)?;
    match keys.required("kind").as_deref() {
        Some("stdio") => {
            let command = keys.required("command");
            let (args, env) = (keys.texts("args"), keys.texts("env"));
            if let Some(command) = &command {
                if secret::looks_secret(command) {
                    keys.fault("command", "it looks like a credential");
                } else if find_program(command, environment).is_none() {
                    keys.fault("command", format!("there is no program `{command}` that can be run"));
                }
            }
            if let Some(at) = secret::secret_argument(&args) {
                let message = "it looks like a credential, which every process of this machine could see; \
                               put it into a variable and name that in `transport.env`";
                keys.fault(&format!("args[{at}]"), message);
            }
            for (n, name) in env.iter().enumerate() {
                check_variable(&mut keys, &format!("env[{n}]"), name, environment);
            }
            keys.finish("kind, command, args, env");
            Some(Transport::Stdio { command: command?, args, env })
        }
        Some("http") => {
            let url = keys.required("url");
            let auth_env = keys.text("auth_env");
            if let Some(fault) = url.as_deref().and_then(url_fault) {
                keys.fault("url", fault);
            }
            if let Some(name) = &auth_env {
                check_variable(&mut keys, "auth_env", name, environment);
            }
            keys.finish("kind, url, auth_env");
            Some(Transport::Http { url: url?, auth_env })
        }
        Some(_) => {
            keys.fault("kind", "it is neither `stdio` nor `http`");
            None
        }
        None => None,
    }
}

fn check_variable(keys: &mut Keys<'_>, key: &str, name: &str, environment: &Environment<'_>) {
    if !is_variable(name) || secret::looks_secret(name) {
        keys.fault(
            key,
            "it is not the name of a variable, in capitals, digits and `_` (its value does not belong here)",
        );
    } else if (environment.variable)(name).is_none_or(|value| value.is_empty()) {
        keys.fault(key, format!("the variable `{name}` is not set"));
    }
}

/// Says what is wrong with the address of a server.
fn url_fault(url: &str) -> Option<String> {
    let Some(rest) = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://")) else {
        return Some("it begins with neither `https://` nor `http://`".to_owned());
    };
    if url.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return Some("it has a blank or a control character in it".to_owned());
    }
    if let Some(what) = secret::url_secret(url) {
        return Some(format!("it has {what}; put the token into a variable and name that in `transport.auth_env`"));
    }
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let (name, port) = match host.strip_prefix('[').and_then(|inner| inner.split_once(']')) {
        Some((name, port)) => (name, port),
        None => host.split_once(':').map_or((host, ""), |(name, _)| (name, &host[name.len()..])),
    };
    if name.is_empty() {
        return Some("it has no host".to_owned());
    }
    let port = port.strip_prefix(':').unwrap_or(if port.is_empty() { "80" } else { "x" });
    if port.parse::<u16>().is_err() {
        return Some("its port is not a number up to 65535".to_owned());
    }
    None
}

/// Finds a program as the system would: by its path, or in the folders of `PATH`.
fn find_program(command: &str, environment: &Environment<'_>) -> Option<PathBuf> {
    let names: Vec<String> = if cfg!(windows) {
        ["", ".exe", ".cmd", ".bat"].iter().map(|extension| format!("{command}{extension}")).collect()
    } else {
        vec![command.to_owned()]
    };
    let in_folder = |folder: &Path| names.iter().map(|name| folder.join(name)).find(|path| is_program(path));
    if command.contains('/') || (cfg!(windows) && command.contains('\\')) {
        return in_folder(environment.working_directory);
    }
    std::env::split_paths(&(environment.variable)("PATH")?).find_map(|folder| in_folder(&folder))
}

fn is_program(path: &Path) -> bool {
    let Ok(found) = std::fs::metadata(path) else { return false };
    #[cfg(unix)]
    let may_run = std::os::unix::fs::PermissionsExt::mode(&found.permissions()) & 0o111 != 0;
    #[cfg(not(unix))]
    let may_run = true;
    found.is_file() && may_run
}

fn is_variable(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_uppercase() || c == '_')
        && name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
}
