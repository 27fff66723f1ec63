//! `kb mcp` as its clients find it: how soon it answers, what a warm search costs, what it holds while idle, and whether
//! two servers on one base keep all that they are told. Beside `server-memory` and qmd, where their commands are given.
//!
//! **Invariant:** every server is a process of its own on a pipe, asked one request after the other. Times are those
//! of the client; CPU time, memory and wake-ups are what the system counts for the server's process, all its threads.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::Result;
use crate::kb::{Kb, copy_folder};
use crate::table::{Bar, Row, Table, Unit, say};

/// Texts that each of two servers is told.
const LEARNS: u32 = 40;
/// How long an idle server is watched.
const WATCHED: Duration = Duration::from_secs(10);

/// Arguments of `mcp`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The program `kb`
    #[arg(long)]
    kb: PathBuf,
    /// A database, learned from the corpus; it is copied
    #[arg(long, value_name = "DIR")]
    database: PathBuf,
    /// What starts server-memory, as `node node_modules/.bin/mcp-server-memory`
    #[arg(long, value_name = "COMMAND")]
    server_memory: Option<String>,
    /// What starts the MCP server of qmd over the same corpus, as `qmd mcp`
    #[arg(long, value_name = "COMMAND")]
    qmd: Option<String>,
    /// The queries; those of plain words are asked
    #[arg(long, default_value = "bench/queries.tsv")]
    queries: PathBuf,
    /// Warm searches that are timed
    #[arg(long, default_value_t = 1000)]
    calls: usize,
    /// Starts that are timed
    #[arg(long, default_value_t = 20)]
    starts: usize,
}

/// A server on a pipe, that has answered `initialize`.
struct Server {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    next_id: u64,
    /// From the start of the process to that answer.
    started_in: Duration,
}

impl Server {
    fn start(mut command: Command) -> Result<Self> {
        let began = Instant::now();
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("cannot run `{}`: {error}", command.get_program().display()))?;
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().ok_or("there is no pipe")?);
        let mut server = Self { child, input, output, next_id: 1, started_in: Duration::ZERO };
        let client = json!({"name": "kb-bench", "version": "1"});
        server.request(
            "initialize",
            &json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}),
        )?;
        server.started_in = began.elapsed();
        server.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))?;
        Ok(server)
    }

    fn send(&mut self, message: &Value) -> Result<()> {
        let input = self.input.as_mut().ok_or("the input was closed")?;
        Ok(input.write_all(format!("{message}\n").as_bytes())?)
    }

    fn request(&mut self, method: &str, params: &Value) -> Result<Value> {
        let id = self.next_id;
        self.next_id += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))?;
        loop {
            let mut line = String::new();
            if self.output.read_line(&mut line)? == 0 {
                return Err(format!("the server ended before it answered `{method}`").into());
            }
            let mut message: Value = serde_json::from_str(&line)?;
            if message["id"] == id && message.get("method").is_none() {
                if let Some(error) = message.get("error") {
                    return Err(format!("`{method}`: {error}").into());
                }
                return Ok(message["result"].take());
            }
        }
    }

    /// Calls a tool, which has to succeed.
    fn call(&mut self, tool: &str, arguments: &Value) -> Result<Value> {
        let result = self.request("tools/call", &json!({"name": tool, "arguments": arguments}))?;
        if result["isError"] == true {
            return Err(format!("`{tool}`: {}", result["content"]).into());
        }
        Ok(result)
    }

    /// Returns the CPU time of all threads.
    fn cpu(&self) -> Result<Duration> {
        self.of_threads("schedstat", |text| text.split(' ').next()?.parse().ok()).map(Duration::from_nanos)
    }

    /// Returns how often the threads have gone to sleep, which is as often as they were woken.
    fn sleeps(&self) -> Result<u64> {
        self.of_threads("status", |text| field(text, "voluntary_ctxt_switches:"))
    }

    /// Returns the memory that is resident, in bytes.
    fn resident_bytes(&self) -> Result<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        Ok(field(&status, "VmRSS:").ok_or("no `VmRSS` is known")? * 1024)
    }

    fn of_threads(&self, file: &str, read: impl Fn(&str) -> Option<u64>) -> Result<u64> {
        let mut sum = 0;
        for thread in fs::read_dir(format!("/proc/{}/task", self.child.id()))? {
            let text = fs::read_to_string(thread?.path().join(file))?;
            sum += read(&text).ok_or_else(|| format!("`{file}` of a thread cannot be read: {text}"))?;
        }
        Ok(sum)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // A server ends with its input; one that does not is of no use any more.
        drop(self.input.take());
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(2) {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs `mcp`.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let work = tempfile::tempdir()?;
    let indexed = work.path().join("indexed.kbdb");
    copy_folder(&args.database, &indexed)?;
    let bare = work.path().join("bare.kbdb");
    copy_folder(&args.database, &bare)?;
    fs::remove_dir_all(bare.join("index"))?;
    let queries = words(&args.queries)?;
    let mut table = Table::new(format!("`kb mcp` on {}", documents(args, &indexed)?), "peer");

    let memory = |folder: &TempDir| args.server_memory.as_deref().map(|text| memory_command(text, folder.path()));
    let mut starts = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..args.starts {
        starts.0.push(kb(args, &indexed)?.started_in.as_secs_f64());
        starts.1.push(kb(args, &bare)?.started_in.as_secs_f64());
        let folder = tempfile::tempdir()?;
        if let Some(command) = memory(&folder) {
            starts.2.push(Server::start(command)?.started_in.as_secs_f64());
        }
    }
    let within = Bar::AtMost(0.030);
    table.push(Row::new("start to `initialize`; server-memory", Unit::Seconds, starts.0).beside(starts.2).bar(within));
    table.push(Row::new("… the index deleted", Unit::Seconds, starts.1).bar(within));

    let mut server = kb(args, &bare)?;
    let began = Instant::now();
    let first = server.call("search", &json!({"query": queries[0]}))?;
    let took = began.elapsed().as_secs_f64();
    if first["structuredContent"]["incomplete"].is_null() {
        return Err("a search without an index did not say that it is incomplete".into());
    }
    drop(server);
    table.push(Row::new("first search, the index deleted", Unit::Seconds, vec![took]));

    let mut server = kb(args, &indexed)?;
    let idle = idle(&mut server, true)?;
    let ours = warm(&mut server, &queries, args.calls, |query| ("search", json!({"query": query})))?;
    let peer = match &args.qmd {
        None => Warm::default(),
        Some(command) => {
            let mut server = Server::start(parsed(command))?;
            warm(&mut server, &queries, args.calls.min(100), |query| ("search", json!({"query": query})))?
        }
    };
    table.push(Row::new("search, warm; qmd", Unit::Seconds, ours.times).beside(peer.times).bar(Bar::AtMost(0.002)));
    table.push(Row::new("… CPU a call; qmd", Unit::Seconds, ours.cpu).beside(peer.cpu).bar(Bar::AtMost(0.0004)));
    table.push(Row::new("… memory after them", Unit::Bytes, vec![server.resident_bytes()? as f64]));
    drop(server);

    let folder = tempfile::tempdir()?;
    let peer =
        memory(&folder).map(Server::start).transpose()?.map(|mut server| self::idle(&mut server, false)).transpose()?;
    let (peer_bytes, peer_sleeps) = peer.map(|idle| (vec![idle.bytes], vec![idle.sleeps_a_second])).unwrap_or_default();
    table.push(
        Row::new("idle, memory; server-memory", Unit::Bytes, vec![idle.bytes])
            .beside(peer_bytes)
            .bar(Bar::AtMost(15e6)),
    );
    table.push(
        Row::new("idle with a subscription, wake-ups a second; server-memory", Unit::Plain, vec![idle.sleeps_a_second])
            .beside(peer_sleeps)
            .bar(Bar::AtMost(1.1)),
    );

    let kept = both_learn(args, &work.path().join("shared.kbdb"))?;
    let peer = args.server_memory.as_deref().map(both_remember).transpose()?;
    let all = f64::from(2 * LEARNS);
    table.push(
        Row::new("two servers, 40 texts each, kept; server-memory", Unit::Count, vec![kept])
            .beside(peer.into_iter().collect())
            .bar(Bar::AtLeast(all)),
    );
    for (name, command) in [("server-memory", &args.server_memory), ("qmd", &args.qmd)] {
        if command.is_none() {
            say(&format!("no command for {name} was given; it was left out"))?;
        }
    }
    table.print()?;
    Ok(table.exit_code())
}

/// Starts `kb mcp` on a database.
fn kb(args: &Args, database: &Path) -> Result<Server> {
    Server::start(Kb::new(&args.kb)?.command(&["--quiet", "--db", &database.to_string_lossy(), "mcp"]))
}

/// Says how much a database holds.
fn documents(args: &Args, database: &Path) -> Result<String> {
    let status = kb(args, database)?.call("status", &json!({}))?;
    let status = &status["structuredContent"];
    Ok(format!("{} documents, {} sections", status["documents"], status["sections"]))
}

/// What warm calls took.
#[derive(Default)]
struct Warm {
    /// Of each call.
    times: Vec<f64>,
    /// Of the mean call.
    cpu: Vec<f64>,
}

fn warm(
    server: &mut Server,
    queries: &[String],
    calls: usize,
    call: impl Fn(&str) -> (&'static str, Value),
) -> Result<Warm> {
    let mut times = Vec::with_capacity(calls);
    let mut before = Duration::ZERO;
    // The first round warms up.
    for (number, query) in queries.iter().cycle().take(queries.len() + calls).enumerate() {
        if number == queries.len() {
            before = server.cpu()?;
        }
        let (tool, arguments) = call(query);
        let began = Instant::now();
        server.call(tool, &arguments)?;
        if number >= queries.len() {
            times.push(began.elapsed().as_secs_f64());
        }
    }
    let cpu = server.cpu()?.saturating_sub(before).as_secs_f64() / calls as f64;
    Ok(Warm { times, cpu: vec![cpu] })
}

/// What a server uses of which nobody asks anything.
struct Idle {
    bytes: f64,
    sleeps_a_second: f64,
}

fn idle(server: &mut Server, subscribe: bool) -> Result<Idle> {
    server.request("tools/list", &json!({}))?;
    if subscribe {
        server.request("resources/subscribe", &json!({"uri": "kbdb://document/none"}))?;
    }
    // What it does after an answer is not idling.
    std::thread::sleep(Duration::from_secs(1));
    let before = server.sleeps()?;
    std::thread::sleep(WATCHED);
    let sleeps_a_second = (server.sleeps()? - before) as f64 / WATCHED.as_secs_f64();
    Ok(Idle { bytes: server.resident_bytes()? as f64, sleeps_a_second })
}

/// Has two servers learn into one database at once; returns how many documents it holds then.
fn both_learn(args: &Args, database: &Path) -> Result<f64> {
    // The first makes it.
    drop(kb(args, database)?);
    at_once(
        || kb(args, database),
        |server, side, number| {
            let text = format!("# Note {number} of {side}\n\nA valve opens at {number}.\n");
            server.call("learn", &json!({"content": text, "docid": format!("note-{side}-{number}")})).map(drop)
        },
    )?;
    let status = kb(args, database)?.call("status", &json!({}))?;
    Ok(status["structuredContent"]["documents"].as_f64().unwrap_or_default())
}

/// Has two servers of `server-memory` remember in one file at once; returns how many entities it holds then.
fn both_remember(command: &str) -> Result<f64> {
    let folder = tempfile::tempdir()?;
    at_once(
        || Server::start(memory_command(command, folder.path())),
        |server, side, number| {
            let entity =
                json!({"name": format!("note-{side}-{number}"), "entityType": "note", "observations": ["a valve"]});
            server.call("create_entities", &json!({"entities": [entity]})).map(drop)
        },
    )?;
    let file = fs::read_to_string(folder.path().join("memory.jsonl"))?;
    let entities = file.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    Ok(entities.filter(|entity| entity["type"] == "entity").count() as f64)
}

/// Starts two servers, and has each be told its texts at the same time.
fn at_once(
    start: impl Fn() -> Result<Server>,
    tell: impl Fn(&mut Server, char, u32) -> Result<()> + Sync,
) -> Result<()> {
    let servers = [('a', start()?), ('b', start()?)];
    let failures: Vec<String> = std::thread::scope(|scope| {
        let threads = servers.map(|(side, mut server)| {
            let tell = &tell;
            scope.spawn(move || {
                let told = (0..LEARNS).try_for_each(|number| tell(&mut server, side, number));
                told.map_err(|error| error.to_string())
            })
        });
        let ended = threads.map(|thread| thread.join().unwrap_or_else(|_| Err("a client panicked".to_owned())));
        ended.into_iter().filter_map(std::result::Result::err).collect()
    });
    failures.first().map_or(Ok(()), |failure| Err(failure.clone().into()))
}

/// Returns the queries of plain words.
fn words(file: &Path) -> Result<Vec<String>> {
    let text = fs::read_to_string(file).map_err(|error| format!("cannot read `{}`: {error}", file.display()))?;
    let queries: Vec<String> =
        text.lines().filter_map(|line| line.strip_prefix("words\t")).map(|query| query.trim().to_owned()).collect();
    if queries.is_empty() { Err(format!("`{}` has no queries of words", file.display()).into()) } else { Ok(queries) }
}

fn parsed(text: &str) -> Command {
    let mut words = text.split_whitespace();
    let mut command = Command::new(words.next().unwrap_or_default());
    command.args(words);
    command
}

fn memory_command(text: &str, folder: &Path) -> Command {
    let mut command = parsed(text);
    command.env("MEMORY_FILE_PATH", folder.join("memory.jsonl"));
    command
}

/// Returns the number behind a name in a file of `/proc`.
fn field(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().next()?.parse().ok()
}
