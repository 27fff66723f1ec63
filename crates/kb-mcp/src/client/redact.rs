//! Keeps credentials out of all that is shown or kept.
//!
//! **Invariant:** a text that went through [`Redactor::clean`] holds none of the secrets.

use std::ffi::OsString;

use kb_store::Transport;

/// A secret shorter than this could be any word, and is not looked for.
const SHORTEST: usize = 6;
const HIDDEN: &str = "[hidden]";
const MAX_SHOWN: usize = 300;

/// Knows the secrets of a run.
#[derive(Clone, Default)]
pub(crate) struct Redactor {
    secrets: Vec<String>,
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Redactor({})", self.secrets.len())
    }
}

impl Redactor {
    /// Reads the secrets that a transport uses.
    pub(crate) fn new(transport: &Transport, variable: &dyn Fn(&str) -> Option<OsString>) -> Self {
        let names: Vec<&String> = match transport {
            Transport::Http { auth_env, .. } => auth_env.iter().collect(),
            Transport::Stdio { env, .. } => env.iter().filter(|name| is_secret_name(name)).collect(),
        };
        let values = names.into_iter().filter_map(|name| variable(name)?.into_string().ok());
        let mut secrets: Vec<String> =
            values.map(|value| value.trim().to_owned()).filter(|value| value.len() >= SHORTEST).collect();
        // The longest first: one may be a part of another.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        Self { secrets }
    }

    /// Says whether a text holds a secret.
    pub(crate) fn finds(&self, text: &[u8]) -> bool {
        self.secrets.iter().any(|secret| contains(text, secret.as_bytes()))
    }

    /// Returns a text of the server without secrets, on one line, and short.
    pub(crate) fn clean(&self, text: &str) -> String {
        let mut text = self.hide(text);
        text = text
            .split(|c: char| c.is_whitespace() || c.is_control())
            .filter(|w| !w.is_empty())
            .collect::<Vec<_>>()
            .join(" ");
        if text.chars().count() > MAX_SHOWN {
            text = text.chars().take(MAX_SHOWN - 1).chain(['…']).collect();
        }
        text
    }

    /// Returns a text without secrets.
    pub(crate) fn hide(&self, text: &str) -> String {
        self.secrets.iter().fold(text.to_owned(), |text, secret| text.replace(secret, HIDDEN))
    }
}

/// Says whether a variable of this name holds a secret, as far as a name tells.
fn is_secret_name(name: &str) -> bool {
    ["TOKEN", "KEY", "SECRET", "PASSWORD", "PASSWD", "AUTH", "CREDENTIAL", "PAT"]
        .iter()
        .any(|part| name.split('_').any(|word| word == *part || word == format!("{part}S")) || name.ends_with(part))
}

fn contains(text: &[u8], secret: &[u8]) -> bool {
    match (std::str::from_utf8(text), std::str::from_utf8(secret)) {
        (Ok(text), Ok(secret)) => text.contains(secret),
        _ => text.windows(secret.len()).any(|window| window == secret),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_hidden_and_common_values_are_not() {
        let transport = Transport::Stdio {
            command: "x".to_owned(),
            args: Vec::new(),
            env: vec!["LAB_API_KEY".to_owned(), "AWS_PARTITION".to_owned(), "SHORT_TOKEN".to_owned()],
        };
        let variable = |name: &str| {
            Some(OsString::from(match name {
                "LAB_API_KEY" => "hunter2-hunter2",
                "AWS_PARTITION" => "aws-partition",
                _ => "abc",
            }))
        };
        let redactor = Redactor::new(&transport, &variable);
        assert_eq!(
            redactor.clean("401: bad key hunter2-hunter2\n for aws-partition abc"),
            "401: bad key [hidden] for aws-partition abc"
        );
        assert!(redactor.finds(b"x hunter2-hunter2") && redactor.finds(b"\xff hunter2-hunter2"));
        assert!(!redactor.finds(b"hunter2"));
        assert_eq!(redactor.clean(&"x".repeat(400)).chars().count(), MAX_SHOWN);
        assert!(!format!("{redactor:?}").contains("hunter2"));
    }
}
