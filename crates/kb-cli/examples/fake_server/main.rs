//! A server to be fetched from, that behaves as it is told: well, or badly in many ways. The tests of `kb source` run it.
//!
//! ```text
//! fake_server [SCENARIO,…] [--n N] [--size BYTES] [--change K] [--skip K] [--version V] [--log FILE] [--hold FILE] [--http]
//! ```
//!
//! It speaks over its standard streams, or with `--http` over a port of the loopback that it prints first. What it is asked
//! goes to the log, a line each. A process that it starts holds the lock of a file as long as it is left alive. The scenarios are those that `answer` looks for.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a tool of the tests, that may end with a trace"
)]

mod answer;
mod http;

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

use answer::{Answer, Server};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [only, path] = &arguments[..]
        && only == "--holder"
    {
        return hold(path);
    }
    let server = Server::from_arguments(arguments.into_iter());
    if server.is("stderr") {
        let tokens: Vec<String> = std::env::vars().map(|(name, value)| format!("{name}={value}")).collect();
        eprintln!("starting with {}", tokens.join(" "));
    }
    let _holder = server.hold.as_deref().map(start_holder);
    if server.over_http {
        return http::serve(&server);
    }
    if server.is("flood") {
        println!("{}", "noise without an end ".repeat(50_000));
    }
    let mut held = Vec::new();
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { return };
        let Ok(message) = serde_json::from_str(&line) else { continue };
        match server.answer(&message) {
            Answer::Nothing => {}
            Answer::Lines(lines) => {
                if server.is("reversed") && message["params"]["name"] == "read" {
                    held.extend(lines);
                    // Once as many wait as are asked at a time, the last is answered first.
                    if held.len() < 3 {
                        continue;
                    }
                    held.reverse();
                    print_lines(&std::mem::take(&mut held));
                } else {
                    print_lines(&lines);
                }
            }
            Answer::Exit => std::process::exit(3),
        }
    }
    // One that does not end when its input does.
    if server.is("stays") {
        loop {
            std::thread::park();
        }
    }
}

/// Holds the lock of a file for ever.
fn hold(path: &str) {
    let file = File::open(path).unwrap();
    file.lock().unwrap();
    println!("held");
    loop {
        std::thread::park();
    }
}

/// Starts another process that holds the lock of a file, and waits until it does.
fn start_holder(path: &str) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    let mut holder = command.args(["--holder", path]).stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(holder.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    holder
}

fn print_lines(lines: &[String]) {
    let mut out = std::io::stdout().lock();
    for line in lines {
        // Who does not listen any more is no concern of a server.
        let _ = writeln!(out, "{line}");
    }
    let _ = out.flush();
}
