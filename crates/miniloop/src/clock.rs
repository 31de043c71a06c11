//! Where a loop gets its time from: the system, or a test.
//!
//! This is the only file of the runtime that reads a clock. Everything else asks its loop, so a program under a [`VirtualClock`] sees the
//! same hours pass at every run, in microseconds of real time. The idea of a clock that jumps when everybody sleeps is Trio's
//! `MockClock(autojump_threshold=0)`.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use crate::instant::Instant;

/// The source of a loop's time, given to [`Builder::clock`](crate::Builder::clock).
#[derive(Clone, Debug, Default)]
pub struct Clock(Source);

#[derive(Clone, Debug, Default)]
enum Source {
    #[default]
    System,
    Virtual(VirtualClock),
}

impl Clock {
    /// The machine's monotonic clock: never set back, unaffected by changes of the wall clock.
    pub const SYSTEM: Clock = Clock(Source::System);

    pub(crate) fn now(&self) -> Instant {
        match &self.0 {
            Source::System => {
                let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
                Instant::from_nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
            }
            Source::Virtual(clock) => clock.now(),
        }
    }

    pub(crate) fn as_virtual(&self) -> Option<&VirtualClock> {
        match &self.0 {
            Source::System => None,
            Source::Virtual(clock) => Some(clock),
        }
    }
}

/// The system's time for others' interfaces, which count in it.
#[cfg(feature = "hyper")]
pub(crate) fn std_now() -> std::time::Instant {
    #[expect(clippy::disallowed_methods, reason = "this is the file that reads clocks")]
    std::time::Instant::now()
}

impl From<VirtualClock> for Clock {
    fn from(clock: VirtualClock) -> Clock {
        Clock(Source::Virtual(clock))
    }
}

/// A clock that stands still until somebody moves it.
///
/// Clones are the same clock. A loop on a virtual clock never sleeps while it could go on: it asks the system for I/O events without
/// waiting, except while another thread has work of this loop (a [`Worker`](crate::thread::Worker), the
/// [blocking pool](crate::spawn_blocking()), whoever runs an awaited [`RemoteTask`](crate::RemoteTask)) or a [`hold`](VirtualClock::hold)
/// guard lives, when it waits for real.
///
/// ```
/// use miniloop::{EventLoop, VirtualClock, sleep};
/// use std::time::Duration;
///
/// let clock = VirtualClock::jumping();
/// let mut event_loop = EventLoop::builder().clock(&clock).build()?;
/// event_loop.run_until_complete(async { sleep(Duration::from_secs(3_600)).await })?; // takes microseconds
/// assert_eq!(clock.now().as_nanos(), 3_600_000_000_000);
/// # Ok::<(), miniloop::LoopError>(())
/// ```
#[derive(Clone, Debug)]
pub struct VirtualClock(Rc<State>);

#[derive(Debug)]
struct State {
    now: Cell<Instant>,
    jumps: bool,
    holds: Cell<usize>,
}

impl VirtualClock {
    /// A clock that moves only by [`advance`](VirtualClock::advance). A loop that could only go on at a later time returns
    /// [`LoopError::Deadlock`](crate::LoopError::Deadlock) from its `run_*`, since nobody is left to advance it.
    pub fn manual() -> VirtualClock {
        VirtualClock::new(false)
    }

    /// A clock that jumps to exactly the next deadline once nothing is left to do before it. When there is no deadline either, `run_*`
    /// return [`LoopError::Deadlock`](crate::LoopError::Deadlock).
    ///
    /// Sockets between tasks of the same loop work: what the kernel has delivered is handled before the clock jumps.
    pub fn jumping() -> VirtualClock {
        VirtualClock::new(true)
    }

    fn new(jumps: bool) -> VirtualClock {
        VirtualClock(Rc::new(State { now: Cell::new(Instant::from_nanos(0)), jumps, holds: Cell::new(0) }))
    }

    /// The time that it shows.
    pub fn now(&self) -> Instant {
        self.0.now.get()
    }

    /// Moves it forward. Timers that have come due by this run at the next poll, in order of their deadlines.
    pub fn advance(&self, by: Duration) {
        self.0.now.set(self.now() + by);
    }

    /// Keeps the clock from jumping while the guard lives: something outside the loop, a peer in another process say, is about to act.
    ///
    /// ```
    /// use miniloop::process::Command;
    /// use miniloop::{EventLoop, VirtualClock, timeout};
    /// use std::time::Duration;
    ///
    /// let clock = VirtualClock::jumping();
    /// let mut event_loop = EventLoop::builder().clock(&clock).build()?;
    /// event_loop.run_until_complete(async {
    ///     let _hold = clock.hold(); // else the minute would be over at once
    ///     let status = timeout(Duration::from_secs(60), Command::new("true").status()).await??;
    ///     assert!(status.success());
    ///     Ok::<(), Box<dyn std::error::Error>>(())
    /// })??;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use = "the clock may jump again when the guard is dropped"]
    pub fn hold(&self) -> Hold {
        self.0.holds.set(self.0.holds.get() + 1);
        Hold(self.clone())
    }

    pub(crate) fn jumps(&self) -> bool {
        self.0.jumps
    }

    pub(crate) fn is_held(&self) -> bool {
        self.0.holds.get() > 0
    }

    pub(crate) fn jump_to(&self, deadline: Instant) {
        self.0.now.set(deadline.max(self.now()));
    }
}

impl From<&VirtualClock> for Clock {
    fn from(clock: &VirtualClock) -> Clock {
        clock.clone().into()
    }
}

/// Keeps a [`VirtualClock`] from jumping until it is dropped.
#[derive(Debug)]
pub struct Hold(VirtualClock);

impl Drop for Hold {
    fn drop(&mut self) {
        let holds = &self.0.0.holds;
        holds.set(holds.get() - 1);
    }
}
