//! A thread that says what blocks the loop while it blocks.
//!
//! A loop that is blocked cannot say so: its thread is in the callback. So it publishes what runs ([`Pulse`], a few plain stores per job,
//! only while a watchdog is attached), and a thread of the watchdog looks a few times per limit whether that is still the same. Time is
//! counted in these looks, not on a clock: a process that was stopped for a minute has not blocked its loop.

use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::config::{WATCHDOG_INTERVAL_MIN, WATCHDOG_LOOKS_PER_LIMIT};
use crate::engine::context;
use crate::engine::core::Core;
use crate::engine::probes::PULSE;
use crate::engine::pulse::{Beat, Pulse};
use crate::engine::watched::Subject;
use crate::handle::LoopHandle;
use crate::one_line::OneLine;
use crate::panic_payload::PanicPayload;
use crate::primitives::{Arc, Condvar, Mutex, lock, wait_while};
use crate::report::{log_error, log_warning};
use crate::thread::start::start;

/// Watches a loop from a thread of its own until it is dropped.
///
/// ```
/// use miniloop::diag::Watchdog;
/// use std::sync::mpsc;
/// use std::time::Duration;
///
/// let (sender, blocked) = mpsc::channel();
/// miniloop::run(async move {
///     let handle = miniloop::LoopHandle::current();
///     let _watchdog = Watchdog::start_with(&handle, Duration::from_millis(10), move |blocked| {
///         let _ = sender.send(blocked.to_string());
///     })?;
///     miniloop::spawn(async move {
///         let text = blocked.recv().unwrap(); // blocks the loop until the watchdog says so
///         assert!(text.starts_with("task `pump` (made at "));
///     })
///     .named("pump")
///     .await
///     .unwrap();
///     Ok::<(), std::io::Error>(())
/// })??;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A loop with a watchdog pays some 150 ns per job; the thread wakes four times per limit. It may be sent to and dropped on any
/// thread; dropping it waits for its callback, if that runs.
#[must_use = "the watchdog ends when it is dropped"]
pub struct Watchdog {
    pulse: Arc<Pulse>,
    end: Arc<End>,
    /// `None` only while it is being dropped.
    thread: Option<JoinHandle<()>>,
}

/// A job that blocks its loop.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Blocked {
    /// What runs: ``task `archive` ``, `callback`, `reader of descriptor 7`, as [reports](crate::Report::subject) have it; of a long name
    /// the beginning.
    pub subject: String,
    /// The line that made it.
    pub place: &'static Location<'static>,
    /// The turn in which it runs, as [`Stats::turns`](crate::diag::Stats::turns) counts them.
    pub turn: u64,
    /// How long it has been running, at least.
    pub running_for: Duration,
}

impl Watchdog {
    /// Logs a warning with `tracing` when one callback or poll of this loop has run for `limit`, once for each. Without a subscriber it is
    /// a line on standard error.
    ///
    /// # Errors
    /// The system has no thread left.
    pub fn start(handle: &LoopHandle, limit: Duration) -> io::Result<Watchdog> {
        Watchdog::start_with(handle, limit, |blocked| log_warning(&blocked.to_string()))
    }

    /// The same with a callback instead of the warning. It runs on the watchdog's thread, while the loop is blocked: it must not wait for
    /// the loop.
    ///
    /// # Errors
    /// The system has no thread left.
    pub fn start_with(handle: &LoopHandle, limit: Duration, tell: impl FnMut(&Blocked) + Send + 'static) -> io::Result<Watchdog> {
        let end = Arc::new(End::default());
        let pulse = attach(&handle.core);
        let (seen, ended) = (pulse.clone(), end.clone());
        match start("watchdog", move || watch(&seen, &ended, limit, tell)) {
            Ok(thread) => Ok(Watchdog { pulse, end, thread: Some(thread) }),
            Err(error) => {
                pulse.readers.fetch_sub(1, Ordering::Relaxed);
                Err(error)
            }
        }
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        // The loop notices at its next poll.
        self.pulse.readers.fetch_sub(1, Ordering::Relaxed);
        self.end.ask();
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != thread::current().id()
        {
            // It catches the panics of its callback.
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for Watchdog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watchdog").finish_non_exhaustive()
    }
}

impl fmt::Display for Blocked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Blocked { subject, place, turn, running_for } = self;
        write!(f, "{} (made at {place}) has been blocking the event loop for {running_for:.1?}, in turn {turn}", OneLine(subject))
    }
}

/// Has the loop publish what runs, beginning with what runs now.
fn attach(core: &Core) -> Arc<Pulse> {
    let pulse = core.probes.pulse.borrow_mut().get_or_insert_default().clone();
    pulse.readers.fetch_add(1, Ordering::Relaxed);
    core.probes.set(PULSE, true);
    if let Some((word, place)) =
        context::current_task_of(core.id).and_then(|word| core.with_record(word, |record| (word, record.origin.place)))
    {
        let subject = core.describe(word).unwrap_or_else(|| Subject::Main.to_string());
        pulse.begin(subject, place, core.probes.counters.polls.get());
    }
    pulse
}

fn watch(pulse: &Pulse, end: &End, limit: Duration, mut tell: impl FnMut(&Blocked)) {
    let mut watch = Watch::new(limit);
    while !end.wait(watch.interval) {
        if let Some(blocked) = watch.look(pulse.read())
            && let Err(payload) = catch_unwind(AssertUnwindSafe(|| tell(&blocked)))
        {
            log_error(&format!("the callback of a watchdog panicked: {}; {blocked}", PanicPayload::into_message(payload)));
        }
    }
}

/// What the watchdog has seen so far.
struct Watch {
    interval: Duration,
    limit: Duration,
    beat: u64,
    /// How often in a row it has seen this beat.
    looks: u32,
    has_told: bool,
}

impl Watch {
    fn new(limit: Duration) -> Watch {
        let interval = (limit / WATCHDOG_LOOKS_PER_LIMIT).max(WATCHDOG_INTERVAL_MIN);
        Watch { interval, limit, beat: 0, looks: 0, has_told: false }
    }

    /// Looks once. What has run since the first look at it for at least the limit is told, once.
    fn look(&mut self, beat: Option<Beat>) -> Option<Blocked> {
        let Some(beat) = beat else {
            self.looks = 0;
            return None;
        };
        if self.looks == 0 || beat.beat != self.beat {
            (self.beat, self.looks, self.has_told) = (beat.beat, 1, false);
            return None;
        }
        let running_for = self.interval * self.looks;
        self.looks = self.looks.saturating_add(1);
        if self.has_told || running_for < self.limit {
            return None;
        }
        self.has_told = true;
        Some(Blocked { subject: beat.subject, place: beat.place, turn: beat.turn, running_for })
    }
}

/// Asks the thread to end.
#[derive(Default)]
struct End {
    is_asked: Mutex<bool>,
    asked: Condvar,
}

impl End {
    fn ask(&self) {
        *lock(&self.is_asked) = true;
        self.asked.notify_all();
    }

    /// Whether it was asked for within the interval.
    fn wait(&self, interval: Duration) -> bool {
        *wait_while(&self.asked, lock(&self.is_asked), interval, |is_asked| !is_asked).0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks at these beats in turn, 0 for none, four looks per limit. When it told, and of how many milliseconds.
    #[track_caller]
    fn check(beats: &[u64], expected: &[(usize, u64)]) {
        let ms = Duration::from_millis;
        let mut watch = Watch::new(ms(100));
        let seen = |beat| Beat { beat, subject: String::new(), place: Location::caller(), turn: 0 };
        let told = beats.iter().enumerate().filter_map(|(index, beat)| {
            let blocked = watch.look((*beat > 0).then(|| seen(*beat)))?;
            Some((index, blocked.running_for.as_millis() as u64))
        });
        assert_eq!(told.collect::<Vec<_>>(), expected, "{beats:?}");
    }

    #[test]
    fn a_watchdog_looks_four_times_per_limit_and_at_most_once_a_millisecond() {
        let ms = Duration::from_millis;
        let looks = [400, 4, 3, 0].map(|limit_ms| Watch::new(ms(limit_ms)).interval);
        assert_eq!(looks, [ms(100), ms(1), ms(1), ms(1)]);
    }

    #[test]
    fn a_loop_stops_publishing_when_its_last_watchdog_has_gone() {
        let mut event_loop = crate::EventLoop::new().unwrap();
        let handle = event_loop.handle();
        let hour = Duration::from_secs(3_600);
        let (one, other) = (Watchdog::start(&handle, hour).unwrap(), Watchdog::start(&handle, hour).unwrap());
        drop(one);
        event_loop.run_ready().unwrap();
        assert!(handle.core.probes.has(PULSE));
        drop(other);
        event_loop.run_ready().unwrap();
        assert!(!handle.core.probes.is_watched());
    }

    #[test]
    fn a_watchdog_tells_once_of_what_has_run_for_the_limit_c179() {
        check(&[1, 1, 1, 1, 1], &[(4, 100)]);
        check(&[1; 50], &[(4, 100)]);
        check(&[1, 1, 1, 1, 3, 3, 3, 3, 3], &[(8, 100)]);
        check(&[1, 1, 1, 1, 0, 1, 1, 1, 1], &[]);
        check(&[1, 1, 1, 1, 1, 0, 3, 3, 3, 3, 3, 3], &[(4, 100), (10, 100)]);
        check(&[0; 9], &[]);
    }
}
