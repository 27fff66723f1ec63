//! What looks like a credential.
//!
//! **Invariant:** nothing here ever returns the text that it looked at.

/// Beginnings of tokens that services give out.
const TOKEN_PREFIXES: [&str; 22] = [
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "sk-",
    "sk_live_",
    "sk_test_",
    "rk_live_",
    "xoxb-",
    "xoxp-",
    "xoxa-",
    "xapp-",
    "akia",
    "asia",
    "aiza",
    "ya29.",
    "npm_",
    "hf_",
    "pypi-",
];

/// Names under which credentials are kept, in lower case and without `-` and `_`.
const NAMES: [&str; 22] = [
    "token",
    "accesstoken",
    "authtoken",
    "apitoken",
    "bearertoken",
    "refreshtoken",
    "idtoken",
    "sessiontoken",
    "apikey",
    "accesskey",
    "secretkey",
    "privatekey",
    "secret",
    "clientsecret",
    "password",
    "passwd",
    "pwd",
    "passphrase",
    "authorization",
    "credential",
    "credentials",
    "xapikey",
];

/// Names of parameters of a URL that carry credentials beside those.
const QUERY_NAMES: [&str; 6] = ["key", "sig", "signature", "auth", "code", "xamzsignature"];

fn folded(name: &str) -> String {
    name.trim_start_matches('-')
        .chars()
        .filter(|c| !matches!(c, '-' | '_' | '.'))
        .flat_map(char::to_lowercase)
        .collect()
}

/// Says whether something of this name is a credential.
pub(crate) fn is_secret_name(name: &str) -> bool {
    let name = folded(name);
    // Where a list goes on is no secret.
    if ["page", "next", "continuation", "cursor"].iter().any(|word| name.starts_with(word)) {
        return false;
    }
    NAMES.iter().any(|known| name == *known || (known.len() > 4 && name.ends_with(known)))
}

/// Says whether a parameter of a URL of this name is a credential.
fn is_secret_parameter(name: &str) -> bool {
    is_secret_name(name) || QUERY_NAMES.contains(&folded(name).as_str())
}

/// Says whether a text looks like a credential by itself.
pub(crate) fn looks_secret(text: &str) -> bool {
    text.split(|c: char| c.is_whitespace() || matches!(c, '=' | ':' | ',' | ';' | '"' | '\'' | '/' | '?' | '&' | '@'))
        .any(is_token)
        || bearer(text)
        || text.contains("-----BEGIN") && text.contains("PRIVATE KEY")
}

fn is_token(word: &str) -> bool {
    let lower = word.to_ascii_lowercase();
    let long = word.len() >= 16 && word.bytes().any(|b| b.is_ascii_digit() || b.is_ascii_uppercase());
    let web_token = word.starts_with("eyJ") && word.matches('.').count() == 2 && word.len() > 30;
    long && TOKEN_PREFIXES.iter().any(|prefix| lower.starts_with(prefix)) || web_token
}

/// Says whether a text has `Bearer` or `Basic` and then a word.
fn bearer(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    ["bearer ", "basic "].iter().any(|scheme| {
        lower
            .find(scheme)
            .is_some_and(|at| lower[at + scheme.len()..].split_whitespace().next().is_some_and(|word| word.len() >= 8))
    })
}

/// Returns which of a command's arguments, from 0, holds a credential.
pub(crate) fn secret_argument(arguments: &[String]) -> Option<usize> {
    (0..arguments.len()).find(|&i| {
        let argument = arguments[i].as_str();
        let assigned = argument.split_once('=').or_else(|| argument.split_once(": "));
        let named = assigned.is_some_and(|(name, value)| is_secret_name(name) && !value.trim().is_empty());
        let before = i.checked_sub(1).map(|before| arguments[before].as_str());
        let after_flag = !argument.starts_with('-')
            && before.is_some_and(|flag| flag.starts_with("--") && !flag.contains('=') && is_secret_name(flag));
        let is_url = argument.contains("://");
        named || after_flag || looks_secret(argument) || is_url && url_secret(argument).is_some()
    })
}

/// Returns where in a URL a credential stands, in words.
pub(crate) fn url_secret(url: &str) -> Option<&'static str> {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    if authority.contains('@') {
        return Some("a user or password before its host");
    }
    let query = rest.split_once('?').map_or("", |(_, query)| query);
    let parameters = query.split(['&', ';', '#']).filter_map(|pair| pair.split_once('='));
    if parameters.into_iter().any(|(name, value)| !value.is_empty() && is_secret_parameter(name)) {
        return Some("what looks like a credential in its query");
    }
    looks_secret(rest).then_some("what looks like a credential")
}

/// Returns the path of a value of these arguments that is a credential.
pub(crate) fn secret_value(path: &str, value: &serde_json::Value) -> Option<String> {
    use serde_json::Value;
    match value {
        Value::Object(map) => map.iter().find_map(|(name, value)| {
            let path = format!("{path}.{name}");
            let is_text = value.as_str().is_some_and(|text| !text.trim().is_empty());
            if is_text && is_secret_name(name) { Some(path) } else { secret_value(&path, value) }
        }),
        Value::Array(items) => items.iter().find_map(|item| secret_value(path, item)),
        Value::String(text) => {
            let is_secret = looks_secret(text) || text.contains("://") && url_secret(text).is_some();
            is_secret.then(|| path.to_owned())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_seen_and_common_arguments_are_not() {
        let found = |arguments: &[&str]| {
            secret_argument(&arguments.iter().map(|&argument| argument.to_owned()).collect::<Vec<_>>())
        };
        for (arguments, at) in [
            (&["-y", "server", "--token=abc123"][..], 2),
            (&["--api-key", "abc"][..], 1),
            (&["GITHUB_TOKEN=abc"][..], 0),
            (&["-H", "Authorization: Bearer abcdefgh"][..], 1),
            (&["x", "ghp_0123456789abcdefABCD"][..], 1),
            (&["https://ana:pw@host/x"][..], 0),
            (&["https://host/x?api_key=1"][..], 0),
        ] {
            assert_eq!(found(arguments), Some(at), "{arguments:?}");
        }
        for arguments in [
            &["awslabs.aws-documentation-mcp-server@latest"][..],
            &["-y", "@modelcontextprotocol/server-everything", "--max-tokens", "100", "--keyword=a"][..],
            &["--token-file", "/run/secret"][..],
            &["server.py", "plain", "--n", "5", "--log", "x=y"][..],
            &["https://host/x?page=2&q=how+to+sign"][..],
        ] {
            assert_eq!(found(arguments), None, "{arguments:?}");
        }
    }

    #[test]
    fn arguments_of_tools_are_looked_through() {
        let value = serde_json::json!({"owner": "a", "filter": {"access_token": "x"}, "page_token": "y"});
        assert_eq!(secret_value("select.args", &value).as_deref(), Some("select.args.filter.access_token"));
        assert_eq!(secret_value("select.args", &serde_json::json!({"q": "a token of thanks", "token": ""})), None);
    }
}
