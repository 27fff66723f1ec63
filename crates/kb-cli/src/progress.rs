//! How far a long operation is, for who watches a terminal.
//!
//! **Invariant:** nothing is shown in the first second, and never where stderr is no terminal, so that logs and
//! transcripts stay clean. The line is gone before anything else is printed.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use kb_store::{Observer, Progress};

const PATIENCE: Duration = Duration::from_secs(1);
const PACE: Duration = Duration::from_millis(100);

/// A line on the terminal that is written over as the work goes on.
#[derive(Debug)]
pub(crate) struct ProgressLine {
    enabled: bool,
    started: Instant,
    drawn: Option<Instant>,
}

impl ProgressLine {
    /// Makes a line that nobody sees where `quiet` is set or stderr is no terminal.
    pub(crate) fn new(quiet: bool) -> Self {
        Self { enabled: !quiet && io::stderr().is_terminal(), started: Instant::now(), drawn: None }
    }

    fn is_due(&self, now: Instant) -> bool {
        self.enabled
            && now.duration_since(self.started) >= PATIENCE
            && self.drawn.is_none_or(|drawn| now.duration_since(drawn) >= PACE)
    }
}

impl Observer for ProgressLine {
    fn progress(&mut self, progress: &Progress<'_>) -> bool {
        let now = Instant::now();
        if self.is_due(now) {
            self.drawn = Some(now);
            // The operation matters, the line does not.
            let _ = write!(io::stderr(), "\r\x1b[2K{}", line(progress));
        }
        true
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        if self.drawn.is_some() {
            let _ = write!(io::stderr(), "\r\x1b[2K");
        }
    }
}

fn line(progress: &Progress<'_>) -> String {
    match progress.total {
        Some(total) if total > 0 => {
            let percent = progress.done.min(total) * 100 / total;
            format!("{} {} of {total} ({percent} %)", progress.phase, progress.done)
        }
        _ => format!("{} {}", progress.phase, progress.done),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_waits_a_second_and_keeps_a_pace() {
        let started = Instant::now();
        let mut shown = ProgressLine { enabled: true, started, drawn: None };
        assert!(!shown.is_due(started + Duration::from_millis(999)));
        assert!(shown.is_due(started + PATIENCE));
        shown.drawn = Some(started + PATIENCE);
        assert!(!shown.is_due(started + PATIENCE + Duration::from_millis(99)));
        assert!(shown.is_due(started + PATIENCE + PACE));
        shown.drawn = None; // Nothing was drawn, so dropping it clears nothing.
    }

    #[test]
    fn it_is_silent_where_nobody_watches() {
        let started = Instant::now();
        let hidden = ProgressLine { enabled: false, started, drawn: None };
        assert!(!hidden.is_due(started + PATIENCE * 60));
    }

    #[test]
    fn a_share_is_told_where_the_whole_is_known() {
        let told = |done, total| line(&Progress { phase: "learning", done, total });
        assert_eq!(told(3, Some(12)), "learning 3 of 12 (25 %)");
        assert_eq!(told(3, None), "learning 3");
        assert_eq!(told(0, Some(0)), "learning 0");
    }
}
