//! What ends a child with its whole group though the process that wants it is killed.
//!
//! A process that is killed can do nothing, so another one watches it: the program is started by this small one, in whose
//! process group it is. Once the process that wants it is no longer its parent, the whole group is ended.
//!
//! **Invariant:** the group outlives the process that wants it by no more than a moment. A program that leaves the group
//! by itself is out of reach.

use std::ffi::OsString;
use std::io;
use std::process::{Command, ExitStatus};
use std::time::Duration;

use rustix::process::{Pid, Signal, getpgrp, getpid, getppid, kill_process_group};

/// How often it is looked whether the parent is still there.
const PACE: Duration = Duration::from_millis(100);

/// Runs a program to its end, unless `parent` ends before. This process has to lead a process group of its own.
///
/// Returns how the program ended. Where the parent ended, this process is ended with the group and nothing returns.
pub fn supervise(parent: u32, program: &OsString, arguments: &[OsString]) -> io::Result<ExitStatus> {
    let parent = i32::try_from(parent).ok().and_then(Pid::from_raw);
    if parent.is_none() || getpgrp() != getpid() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "this is run by kb itself, to watch a child"));
    }
    let is_orphan = move || getppid() != parent;
    if is_orphan() {
        return Err(io::Error::new(io::ErrorKind::NotFound, "the process that asked for it is gone"));
    }
    std::thread::spawn(move || {
        while !is_orphan() {
            std::thread::sleep(PACE);
        }
        end_own_group();
    });
    let status = Command::new(program).args(arguments).status()?;
    // What it started and left behind goes with it.
    if is_orphan() {
        end_own_group();
    }
    Ok(status)
}

fn end_own_group() {
    // This ends the caller as well; were it refused, there would be nothing left to try.
    let _ = kill_process_group(getpgrp(), Signal::KILL);
}
