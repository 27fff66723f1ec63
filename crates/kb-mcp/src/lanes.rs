//! Threads on which requests are answered, in lanes that do not wait for each other.
//!
//! **Invariant:** a job in one lane never keeps a job of another from starting, so a writer that waits for the lock
//! and a long `rebuild` leave `search` alone. A thread is made when there is work for it and kept; an idle one sleeps
//! without ever waking by itself.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

type Job = Box<dyn FnOnce() + Send>;

/// Threads that take jobs in order.
#[derive(Clone)]
pub(crate) struct Lane(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    waiting: Condvar,
    max_threads: usize,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    threads: usize,
    idle: usize,
    is_closed: bool,
}

impl std::fmt::Debug for Lane {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lane").field("max_threads", &self.0.max_threads).finish_non_exhaustive()
    }
}

impl Lane {
    /// Makes a lane of at most this many threads; there is none as yet.
    pub(crate) fn new(max_threads: usize) -> Self {
        Self(Arc::new(Shared { state: Mutex::default(), waiting: Condvar::new(), max_threads }))
    }

    /// Has a job done when its turn comes. A job must not panic.
    pub(crate) fn run(&self, job: impl FnOnce() + Send + 'static) {
        let mut state = self.0.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.jobs.push_back(Box::new(job));
        if state.idle < state.jobs.len() && state.threads < self.0.max_threads {
            state.threads += 1;
            let shared = Arc::clone(&self.0);
            std::thread::spawn(move || work(&shared));
        } else {
            self.0.waiting.notify_one();
        }
    }

    /// Ends the idle threads; those at work end after it.
    pub(crate) fn close(&self) {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner).is_closed = true;
        self.0.waiting.notify_all();
    }
}

fn work(shared: &Shared) {
    let mut state = shared.state.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        if let Some(job) = state.jobs.pop_front() {
            drop(state);
            job();
            state = shared.state.lock().unwrap_or_else(PoisonError::into_inner);
        } else if state.is_closed {
            state.threads -= 1;
            return;
        } else {
            state.idle += 1;
            state = shared.waiting.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.idle -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn a_lane_of_two_does_two_jobs_at_once_and_the_others_after() {
        let lane = Lane::new(2);
        let (first, second) = (channel::<()>(), channel::<()>());
        let (done, all) = channel();
        // Each of the two waits for the other: one thread could not do both.
        let (tell, hear) = (first.0, second.1);
        lane.run(move || {
            tell.send(()).unwrap();
            hear.recv().unwrap();
        });
        let (tell, hear) = (second.0, first.1);
        lane.run(move || {
            tell.send(()).unwrap();
            hear.recv().unwrap();
        });
        for i in 0..20 {
            let done = done.clone();
            lane.run(move || done.send(i).unwrap());
        }
        let mut got: Vec<i32> = all.iter().take(20).collect();
        got.sort_unstable();
        assert_eq!(got, (0..20).collect::<Vec<_>>());
        assert!(lane.0.state.lock().unwrap().threads <= 2);
        lane.close();
    }
}
