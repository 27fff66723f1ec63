use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use kb_core::read_yaml;

use super::{Environment, KeyPath, Selection, SourceConfig};

fn read(yaml: &str) -> Result<SourceConfig, Vec<String>> {
    let variable = |name: &str| match name {
        "PATH" => Some(OsString::from("/usr/bin:/bin")),
        "LAB_TOKEN" => Some(OsString::from("hunter2hunter2")),
        _ => None,
    };
    let environment = Environment { variable: &variable, working_directory: Path::new("/") };
    SourceConfig::read(&read_yaml(yaml).expect("YAML"), &environment)
        .map_err(|faults| faults.into_iter().map(|fault| format!("{}: {}", fault.key, fault.message)).collect())
}

const READ: &str = "read: {tool: read, id_arg: id}\n";
const STDIO: &str = "transport: {kind: stdio, command: sh}\n";

#[cfg(unix)]
#[test]
fn a_whole_configuration_is_read() {
    let config = read(
        "system: aws_docs\ntransport:\n  kind: stdio\n  command: sh\n  args: [-c, 5]\n  env: [LAB_TOKEN]\n\
         select:\n  tool: search\n  args: {phrase: naming rules, limit: 3}\n  ids: {list: data.items, id: url, title: t}\n\
         \n  version: etag\n  complete: true\n  json_text: true\n  cursor: {arg: page, next: meta.next, pages: 4}\n\
         read: {tool: read, id_arg: url, static_args: {owner: a}, text_key: markdown, title_key: title}\n\
         timeout: {read: 2.5}\nretries: 0\nconcurrency: 3\n",
    )
    .expect("nothing is wrong with it");
    assert_eq!(config.tools(), ["search", "read"]);
    assert_eq!(config.limits.read, Duration::from_millis(2500));
    assert_eq!(
        (config.limits.connect, config.limits.retries, config.limits.concurrency),
        (Duration::from_secs(30), 0, 3)
    );
    assert!(config.is_complete());
    let Selection::Select(select) = config.selection else { panic!("a selector") };
    assert_eq!(select.args["limit"], 3);
    assert_eq!(select.ids.and_then(|ids| ids.version), Some(KeyPath("etag".to_owned())));
}

#[cfg(unix)]
#[test]
fn all_faults_are_told_at_once_and_no_secret_among_them() {
    let faults = read(
        "system: a b\ntransport: {kind: http, url: 'https://ana:pw@h/', auth_env: ghp_0123456789abcdefABCD}\n\
         static_ids: []\nread: {tool: '', title_key: t, static_args: {password: hunter2}}\nextra: 1\n",
    )
    .expect_err("much is wrong");
    let text = faults.join("\n");
    for key in [
        "system:",
        "extra:",
        "static_ids:",
        "transport.url:",
        "transport.auth_env:",
        "read.tool:",
        "read.id_arg:",
        "read.title_key:",
        "read.static_args.password:",
    ] {
        assert!(faults.iter().any(|fault| fault.starts_with(key)), "{key} in {text}");
    }
    for secret in ["pw", "ghp_", "hunter2"] {
        assert!(!text.contains(secret), "{secret} in {text}");
    }
}

#[cfg(unix)]
#[test]
fn each_rule_has_its_fault() {
    let static_ids = "static_ids: [a]\n";
    for (yaml, fault) in [
        (format!("system: x\n{STDIO}{READ}"), "select: either"),
        (format!("system: x\n{STDIO}{READ}{static_ids}select: {{tool: s}}\n"), "static_ids: it cannot"),
        (format!("system: x\n{STDIO}{READ}select: {{tool: read}}\n"), "read.tool: it is the same"),
        (format!("system: x\n{STDIO}{READ}static_ids: [a, b, a]\n"), "static_ids[2]: it is the same"),
        (
            format!("system: x\n{STDIO}{static_ids}read: {{tool: r, id_arg: i, static_args: {{i: 1}}}}\n"),
            "read.static_args: ",
        ),
        (format!("system: x\ntransport: {{kind: pipe}}\n{READ}{static_ids}"), "transport.kind: "),
        (format!("system: x\ntransport: {{command: sh}}\n{READ}{static_ids}"), "transport.kind: it is missing"),
        (
            format!("system: x\ntransport: {{kind: stdio, command: no-such-program}}\n{READ}{static_ids}"),
            "transport.command: ",
        ),
        (
            format!("system: x\ntransport: {{kind: stdio, command: sh, env: [UNSET]}}\n{READ}{static_ids}"),
            "transport.env[0]: the variable `UNSET`",
        ),
        (
            format!("system: x\ntransport: {{kind: stdio, command: sh, args: [--token=x]}}\n{READ}{static_ids}"),
            "transport.args[0]: ",
        ),
        (
            format!("system: x\ntransport: {{kind: http, url: 'ftp://h'}}\n{READ}{static_ids}"),
            "transport.url: it begins",
        ),
        (
            format!("system: x\ntransport: {{kind: http, url: 'http:///x'}}\n{READ}{static_ids}"),
            "transport.url: it has no host",
        ),
        (
            format!("system: x\ntransport: {{kind: http, url: 'http://h:x/'}}\n{READ}{static_ids}"),
            "transport.url: its port",
        ),
        (format!("system: x\n{STDIO}{READ}select: {{tool: s, ids: {{list: a}}}}\n"), "select.ids.id: it is missing"),
        (format!("system: x\n{STDIO}{READ}{static_ids}timeout: -1\n"), "timeout: "),
    ] {
        let faults = read(&yaml).expect_err(&yaml);
        assert_eq!(faults.len(), 1, "{yaml}: {faults:?}");
        assert!(faults[0].starts_with(fault), "{yaml}: {faults:?}");
    }
    read(&format!(
        "system: x\ntransport: {{kind: http, url: 'http://[::1]:80/mcp', auth_env: LAB_TOKEN}}\n{READ}{static_ids}"
    ))
    .expect("an address of the loopback");
}

#[test]
fn a_path_leads_into_a_value() {
    let value = serde_json::json!({"a": {"b": [{"c": 1}]}, "d.e": 2, "d": {"e": 3}});
    let at = |path: &str| KeyPath(path.to_owned()).find(&value).cloned();
    assert_eq!(at("a.b.0.c"), Some(1.into()));
    assert_eq!(at("d.e"), Some(2.into()));
    assert_eq!(at("."), Some(value.clone()));
    assert_eq!((at("a.x"), at("a.b.1"), at("a.b.c")), (None, None, None));
}
