//! The threads that one loop has for work that would block it: the loop's side.
//!
//! A pool belongs to its loop and ends with it: no thread is shared behind the back of two loops, none is left when a loop has been closed
//! in time, and a program that never blocks has none. The engine knows the pool only to end it (O9); `thread/pool.rs` gives it jobs.

use std::cell::{OnceCell, RefCell};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use crate::config::{BLOCKING_GRACE, BLOCKING_IDLE, BLOCKING_THREADS};
use crate::engine::pool_jobs::{PoolJobs, Unfinished};

/// The settings of a pool.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PoolSettings {
    pub(crate) threads_max: usize,
    /// How long closing waits for jobs.
    pub(crate) grace: Duration,
}

impl Default for PoolSettings {
    fn default() -> PoolSettings {
        PoolSettings { threads_max: BLOCKING_THREADS, grace: BLOCKING_GRACE }
    }
}

pub(crate) struct Pool {
    settings: PoolSettings,
    /// Nothing before the first job.
    jobs: OnceCell<Arc<PoolJobs>>,
    /// The threads that have been started, and perhaps some that have ended meanwhile.
    threads: RefCell<Vec<JoinHandle<()>>>,
}

impl Pool {
    pub(crate) fn new(settings: PoolSettings) -> Pool {
        Pool { settings, jobs: OnceCell::new(), threads: RefCell::default() }
    }

    pub(crate) fn jobs(&self) -> &Arc<PoolJobs> {
        self.jobs.get_or_init(|| Arc::new(PoolJobs::new(self.settings.threads_max.max(1), BLOCKING_IDLE)))
    }

    /// The same if there was a job.
    pub(crate) fn started_jobs(&self) -> Option<&Arc<PoolJobs>> {
        self.jobs.get()
    }

    /// Takes in a thread that works on [`jobs`](Pool::jobs).
    pub(crate) fn adopt(&self, thread: JoinHandle<()>) {
        let mut threads = self.threads.borrow_mut();
        threads.retain(|thread| !thread.is_finished());
        threads.push(thread);
    }

    /// Has the threads finish what waits, and waits for that.
    ///
    /// # Errors
    /// It takes too long. The threads end by themselves, later, and find nobody to tell.
    pub(crate) fn end(&self) -> Result<(), Unfinished> {
        let Some(jobs) = self.jobs.get() else { return Ok(()) };
        jobs.close();
        jobs.wait_ended(self.settings.grace)?;
        for thread in self.threads.take() {
            // Jobs catch their panics. The thread is past its last job: this waits for its last few instructions.
            let _ = thread.join();
        }
        Ok(())
    }

    pub(crate) fn grace(&self) -> Duration {
        self.settings.grace
    }
}
