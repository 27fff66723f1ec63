//! `kb serve`: serves the knowledge base to agents over HTTP.
//!
//! **Invariant:** a token comes from a variable or a file, never from the command line, where other users see it, and is
//! in no output. The database is one that was named, as for `kb mcp`.

use std::fs::OpenOptions;
use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use kb_mcp::{HttpError, HttpServer, HttpSettings, Settings};
use serde_json::json;

use super::Context;
use super::served::ProjectArgs;
use crate::failure::{Exit, Failure};

/// Serve the knowledge base to agents over HTTP: an MCP server at `/mcp`
///
/// Prints the URL and serves until it is told to stop (Ctrl-C, SIGTERM): what was asked is answered, maintenance is
/// cancelled. The database is the one that `--db` or `KBDB_DIR` names; it is made where there is none and its parent
/// folder exists. With `--projects` project knowledge is served, beside a database where one is named.
///
/// Only this machine can reach an address such as `127.0.0.1:8080`. For any other a bearer token is needed, and a proxy
/// in front that speaks TLS, since the token is sent as it is.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Address and port to listen at, for example `127.0.0.1:8080`; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS")]
    http: SocketAddr,
    /// Name of the environment variable that holds the bearer token
    #[arg(long, value_name = "NAME", conflicts_with = "token_file")]
    token_env: Option<String>,
    /// File that holds the bearer token, on one line
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Name under which the server may be reached beside `localhost` and addresses; may be given more than once
    #[arg(long, value_name = "NAME")]
    allow_host: Vec<String>,
    /// Origin whose pages may send requests, for example `https://app.example`; may be given more than once
    #[arg(long, value_name = "ORIGIN")]
    allow_origin: Vec<String>,
    /// The most MiB of a request
    #[arg(long, value_name = "MIB", default_value = "64", value_parser = clap::value_parser!(u16).range(1..=1024))]
    max_body: u16,
    /// The most sessions at a time; the one that was idle longest makes room
    #[arg(long, value_name = "N", default_value = "64", value_parser = clap::value_parser!(u16).range(1..))]
    max_sessions: u16,
    /// After how many minutes without a request a session ends
    #[arg(long, value_name = "MINUTES", default_value = "30", value_parser = clap::value_parser!(u16).range(1..))]
    idle: u16,
    /// Append one JSON line a call: time, tool, ids, outcome and milliseconds; never texts or queries
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    #[command(flatten)]
    projects: ProjectArgs,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<Exit, Failure> {
    let mut settings = Settings::new(SystemTime::now);
    settings.wait = context.databases.wait();
    if let Some(log) = &args.log {
        let file = OpenOptions::new().create(true).append(true).open(log);
        settings.activity = Some(Box::new(file.map_err(|error| Failure::io("open", log, &error))?));
    }
    let mut http = HttpSettings::new(args.http);
    http.token = token(args)?;
    http.hosts.clone_from(&args.allow_host);
    http.origins.clone_from(&args.allow_origin);
    http.max_body_bytes = usize::from(args.max_body) << 20;
    http.max_sessions = usize::from(args.max_sessions);
    http.idle = Duration::from_mins(u64::from(args.idle));
    let served = args.projects.served(context, "kb serve")?;
    let server = HttpServer::bind(served, settings, http).map_err(refused)?;
    let stopper = server.stopper();
    ctrlc::set_handler(move || stopper.stop())
        .map_err(|error| Failure::new("io", format_args!("cannot listen to signals: {error}")))?;
    let url = server.url();
    context.output.result(&json!({"url": url}), |out| writeln!(out, "{url}"))?;
    // Who started this waits for the URL, and the command does not end with it.
    context.output.flush()?;
    server.run();
    Ok(Exit::Done)
}

fn token(args: &Args) -> Result<Option<String>, Failure> {
    if let Some(name) = &args.token_env {
        return match std::env::var(name) {
            Ok(token) => Ok(Some(token)),
            Err(_) => {
                Err(Failure::new("no-token", format_args!("the environment has no variable `{name}` with a text")))
            }
        };
    }
    let Some(file) = &args.token_file else { return Ok(None) };
    let text = super::read_text(file)?;
    Ok(Some(text.trim_end_matches(['\r', '\n']).to_owned()))
}

fn refused(error: HttpError) -> Failure {
    match &error {
        HttpError::NeedsToken { .. } => Failure::new("no-token", error)
            .with_hint("give `--token-env NAME` or `--token-file FILE`, or listen at 127.0.0.1"),
        HttpError::BadToken => Failure::new("invalid", error).with_hint("`openssl rand -hex 24` makes one"),
        HttpError::Listen { source, .. } => Failure::new("io", format_args!("{error}: {source}")),
        _ => Failure::new("io", error),
    }
}
