//! What a process used: CPU time, memory, page faults, wall time.
//!
//! A program is measured by a small copy of this one that starts it, waits, and asks the system about its children:
//! the peak memory of a child counts from the pages of the process that started it, which must therefore be few.
//!
//! **Invariant:** figures are the system's own (`getrusage`), of one program with all its threads, nothing else.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Output, Stdio};
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use serde_json::{Value, json};

use crate::Result;

/// Arguments of `measure`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Where to write the figures
    out: PathBuf,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    program: Vec<OsString>,
}

/// What a program used.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Usage {
    /// User and system time of all threads.
    pub(crate) cpu: Duration,
    /// Most memory resident at once, in bytes.
    pub(crate) peak_bytes: u64,
    /// Pages that were mapped without reading the disk.
    pub(crate) minor_faults: u64,
    /// From start to end.
    pub(crate) wall: Duration,
}

/// A program that has ended.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) usage: Usage,
    pub(crate) output: Output,
}

impl Ran {
    /// Returns what it printed, or says how it failed.
    pub(crate) fn stdout(&self, what: &str) -> Result<String> {
        if !self.output.status.success() {
            let said = String::from_utf8_lossy(&self.output.stderr);
            return Err(format!("{what} failed with {}: {}", self.output.status, said.trim()).into());
        }
        Ok(String::from_utf8_lossy(&self.output.stdout).into_owned())
    }
}

/// Returns the CPU time that this process has used.
pub(crate) fn cpu() -> Result<Duration> {
    cpu_of(UsageWho::RUSAGE_SELF)
}

/// Returns the memory of this process that is resident, in bytes.
pub(crate) fn resident_bytes() -> Result<u64> {
    status_field("VmRSS:")
}

/// Returns the most memory that was resident since [`reset_peak`], in bytes.
pub(crate) fn peak_bytes() -> Result<u64> {
    status_field("VmHWM:")
}

/// Begins to count the peak of memory anew.
pub(crate) fn reset_peak() -> Result<()> {
    let mut file = fs::OpenOptions::new().write(true).open("/proc/self/clear_refs")?;
    std::io::Write::write_all(&mut file, b"5")?;
    Ok(())
}

/// Runs a program to its end with its output captured.
pub(crate) fn measure(program: &Command) -> Result<Ran> {
    let figures = tempfile::NamedTempFile::new()?;
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("measure").arg(figures.path()).arg("--").arg(program.get_program()).args(program.get_args());
    for (name, value) in program.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    if let Some(dir) = program.get_current_dir() {
        command.current_dir(dir);
    }
    let output = command.stdin(Stdio::null()).output()?;
    let text = fs::read_to_string(figures.path())?;
    if text.is_empty() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("`{}` was not run: {}", program.get_program().display(), said.trim()).into());
    }
    let figures: Value = serde_json::from_str(&text)?;
    let number = |name: &str| figures[name].as_u64().ok_or_else(|| format!("no figure `{name}` in {text}"));
    let usage = Usage {
        cpu: Duration::from_nanos(number("cpu_ns")?),
        peak_bytes: number("peak_bytes")?,
        minor_faults: number("minor_faults")?,
        wall: Duration::from_nanos(number("wall_ns")?),
    };
    Ok(Ran { usage, output })
}

/// Runs `measure`.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let (program, rest) = args.program.split_first().ok_or("no program is given")?;
    let started = Instant::now();
    let status = Command::new(program)
        .args(rest)
        .status()
        .map_err(|error| format!("cannot run `{}`: {error}", program.display()))?;
    let wall = started.elapsed();
    let children = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let figures = json!({
        "cpu_ns": cpu_of(UsageWho::RUSAGE_CHILDREN)?.as_nanos() as u64,
        "peak_bytes": children.max_rss() * 1024,
        "minor_faults": children.minor_page_faults(),
        "wall_ns": wall.as_nanos() as u64,
    });
    fs::write(&args.out, figures.to_string())?;
    Ok(ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(255)))
}

fn cpu_of(who: UsageWho) -> Result<Duration> {
    let usage = getrusage(who)?;
    let micros = |time: nix::sys::time::TimeVal| {
        Duration::from_secs(time.tv_sec() as u64) + Duration::from_micros(time.tv_usec() as u64)
    };
    Ok(micros(usage.user_time()) + micros(usage.system_time()))
}

fn status_field(name: &str) -> Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with(name)).ok_or_else(|| format!("no `{name}` is known"))?;
    let kib: u64 = line[name.len()..].trim().trim_end_matches("kB").trim().parse()?;
    Ok(kib * 1024)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by it")]
mod tests {
    use super::*;

    #[test]
    fn the_peak_of_memory_begins_anew_and_follows_what_is_used() {
        let large = vec![1_u8; 64 << 20];
        assert!(peak_bytes().unwrap() > 64 << 20, "{}", large.len());
        drop(large);
        reset_peak().unwrap();
        let before = peak_bytes().unwrap();
        let again = vec![1_u8; 32 << 20];
        let grown = peak_bytes().unwrap() - before;
        assert!(grown >= 31 << 20, "{grown} after {} bytes", again.len());
    }

    #[test]
    fn cpu_time_grows_with_work() {
        let before = cpu().unwrap();
        let started = Instant::now();
        let mut hash = blake3::hash(b"");
        while started.elapsed() < Duration::from_millis(50) {
            hash = blake3::hash(hash.as_bytes());
        }
        let used = cpu().unwrap().checked_sub(before).unwrap();
        assert!(used > Duration::from_millis(2), "{used:?} for {hash}");
    }
}
