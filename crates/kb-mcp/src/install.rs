//! The configuration that makes a host application start the server, alone or merged into what its file holds.
//!
//! **Invariant:** a merge keeps every other entry and key of the file; where that cannot be promised (a file that does
//! not parse, an entry of the same name that is not ours) it fails and says so. Nothing is read or written here.

use serde_json::{Map, Value, json};

/// A host application.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Host {
    /// Claude Code, by the `.mcp.json` of a project.
    ClaudeCode,
    /// Claude Desktop.
    ClaudeDesktop,
    /// Visual Studio Code, by the `.vscode/mcp.json` of a project.
    VsCode,
    /// Cursor, by the `.cursor/mcp.json` of a project.
    Cursor,
    /// Codex, which keeps TOML.
    Codex,
    /// The Gemini CLI.
    Gemini,
}

/// What a host has to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The name of the server in the host.
    pub name: String,
    /// The path of the program, absolute.
    pub command: String,
    /// Its arguments; the first is `mcp`.
    pub args: Vec<String>,
}

/// Why a configuration cannot be merged into a file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InstallError {
    /// The file is not what the host writes; comments in JSON are among the reasons.
    #[error("the file cannot be read as {format}, so what it holds could be lost: {reason}")]
    Unreadable {
        /// `JSON` or `TOML`.
        format: &'static str,
        /// What the parser says.
        reason: String,
    },
    /// Something of this name is there that kb did not write.
    #[error("the file has a server `{name}` already that is not kb's")]
    Taken {
        /// The name.
        name: String,
    },
    /// A TOML entry of this name is there with other values; its comments would be lost.
    #[error("the file has a server `{name}` already with other values")]
    Differs {
        /// The name.
        name: String,
    },
}

impl Host {
    const fn key(self) -> &'static str {
        match self {
            Self::VsCode => "servers",
            Self::Codex => "mcp_servers",
            _ => "mcpServers",
        }
    }

    /// Returns the configuration by itself, as the file would hold it.
    pub fn configuration(self, entry: &Entry) -> String {
        if self == Self::Codex {
            return table(entry);
        }
        pretty(&json!({self.key(): {entry.name.as_str(): self.value(entry)}}))
    }

    /// Returns the text of a file with the configuration in it. Equal to what was given where it is there already.
    pub fn merged(self, existing: &str, entry: &Entry) -> Result<String, InstallError> {
        if existing.trim().is_empty() {
            return Ok(self.configuration(entry));
        }
        if self == Self::Codex {
            return merged_toml(existing, entry);
        }
        let unreadable = |reason: String| InstallError::Unreadable { format: "JSON", reason };
        let mut file: Map<String, Value> = serde_json::from_str(existing.trim_start_matches('\u{feff}'))
            .map_err(|error| unreadable(error.to_string()))?;
        let before = file.clone();
        let servers = file.entry(self.key()).or_insert_with(|| json!({}));
        let Some(servers) = servers.as_object_mut() else {
            return Err(unreadable(format!("`{}` is not an object", self.key())));
        };
        let wanted = self.value(entry);
        match servers.get_mut(&entry.name) {
            None => drop(servers.insert(entry.name.clone(), wanted.into())),
            Some(Value::Object(there)) if there.get("args").and_then(|args| args.get(0)) == Some(&json!("mcp")) => {
                // Other keys, as `env`, stay.
                there.extend(wanted);
            }
            Some(_) => return Err(InstallError::Taken { name: entry.name.clone() }),
        }
        if file == before { Ok(existing.to_owned()) } else { Ok(pretty(&Value::Object(file))) }
    }

    fn value(self, entry: &Entry) -> Map<String, Value> {
        let mut value = Map::new();
        if self == Self::VsCode {
            value.insert("type".to_owned(), "stdio".into());
        }
        value.insert("command".to_owned(), entry.command.as_str().into());
        value.insert("args".to_owned(), entry.args.clone().into());
        value
    }
}

fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}

fn table(entry: &Entry) -> String {
    // A string of JSON is a basic string of TOML.
    let text = |text: &str| Value::from(text).to_string();
    let args: Vec<String> = entry.args.iter().map(|arg| text(arg)).collect();
    let name = if entry.name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_') {
        entry.name.clone()
    } else {
        text(&entry.name)
    };
    format!("[mcp_servers.{name}]\ncommand = {}\nargs = [{}]\n", text(&entry.command), args.join(", "))
}

/// Appends the table, so that comments and order of the file stay as they are.
fn merged_toml(existing: &str, entry: &Entry) -> Result<String, InstallError> {
    let parse = |text: &str| {
        text.parse::<toml::Table>()
            .map_err(|error| InstallError::Unreadable { format: "TOML", reason: error.message().to_owned() })
    };
    let file = parse(existing)?;
    if let Some(there) = file.get("mcp_servers").and_then(|servers| servers.get(&entry.name)) {
        let args: Option<Vec<&str>> = there
            .get("args")
            .and_then(toml::Value::as_array)
            .map(|args| args.iter().filter_map(toml::Value::as_str).collect());
        let is_same = there.get("command").and_then(toml::Value::as_str) == Some(&entry.command)
            && args.as_deref() == Some(&entry.args.iter().map(String::as_str).collect::<Vec<_>>());
        let name = entry.name.clone();
        return if is_same { Ok(existing.to_owned()) } else { Err(InstallError::Differs { name }) };
    }
    let line_end = if existing.ends_with('\n') { "" } else { "\n" };
    let text = format!("{existing}{line_end}\n{}", table(entry));
    // A file whose servers stand in an inline table cannot be added to by a new one.
    parse(&text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(db: &str) -> Entry {
        let args = ["mcp", "--db", db].map(str::to_owned).to_vec();
        Entry { name: "kb".to_owned(), command: "/bin/kb".to_owned(), args }
    }

    #[test]
    fn a_merge_keeps_what_is_there() {
        let existing = r#"{"theme": "dark", "mcpServers": {"other": {"command": "x"}, "kb": {"command": "/old/kb", "args": ["mcp"], "env": {"A": "b"}}}}"#;
        let merged = Host::ClaudeDesktop.merged(existing, &entry("/db")).unwrap();
        let value: Value = serde_json::from_str(&merged).unwrap();
        assert_eq!(value["theme"], "dark");
        assert_eq!(value["mcpServers"]["other"]["command"], "x");
        let expected = json!({"command": "/bin/kb", "args": ["mcp", "--db", "/db"], "env": {"A": "b"}});
        assert_eq!(value["mcpServers"]["kb"], expected);
        assert_eq!(Host::ClaudeDesktop.merged(&merged, &entry("/db")).unwrap(), merged);
    }

    #[test]
    fn what_could_be_lost_is_refused() {
        let commented = "{\n  // mine\n  \"servers\": {}\n}";
        assert!(matches!(Host::VsCode.merged(commented, &entry("/db")), Err(InstallError::Unreadable { .. })));
        let taken = r#"{"mcpServers": {"kb": {"command": "keyboard"}}}"#;
        assert_eq!(Host::Cursor.merged(taken, &entry("/db")), Err(InstallError::Taken { name: "kb".to_owned() }));
        let inline = "mcp_servers = { other = { command = \"x\" } }\n";
        assert!(matches!(Host::Codex.merged(inline, &entry("/db")), Err(InstallError::Unreadable { .. })));
    }

    #[test]
    fn toml_is_added_to_and_its_comments_stay() {
        let existing = "# mine\nmodel = \"m\"\n[mcp_servers.other]\ncommand = \"x\" # keep";
        let merged = Host::Codex.merged(existing, &entry("C:\\my \"kb\"")).unwrap();
        assert!(merged.starts_with(existing), "{merged}");
        let table: toml::Table = merged.parse().unwrap();
        assert_eq!(table["mcp_servers"]["kb"]["args"][2].as_str(), Some("C:\\my \"kb\""));
        assert_eq!(Host::Codex.merged(&merged, &entry("C:\\my \"kb\"")).unwrap(), merged);
        assert!(matches!(Host::Codex.merged(&merged, &entry("/else")), Err(InstallError::Differs { .. })));
    }

    #[test]
    fn each_host_has_its_key() {
        assert!(Host::VsCode.configuration(&entry("/db")).contains("\"servers\""));
        assert!(Host::ClaudeCode.merged("", &entry("/db")).unwrap().contains("\"mcpServers\""));
        assert!(Host::Codex.configuration(&entry("/db")).starts_with("[mcp_servers.kb]\n"));
    }
}
