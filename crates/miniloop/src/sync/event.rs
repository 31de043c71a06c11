//! A flag that can be waited for.

use std::cell::Cell;
use std::fmt;

use futures_core::FusedFuture;

use super::line::{Desk, Line, Waiting, Wakes};
use crate::engine::record::WaitsFor;

/// A flag: unset, those who [wait](Event::wait) for it wait; [setting](Event::set) it lets them all go on.
///
/// ```
/// use miniloop::sync::Event;
/// use std::rc::Rc;
///
/// miniloop::run(async {
///     let is_open = Rc::new(Event::new());
///     let guest = miniloop::spawn({
///         let is_open = is_open.clone();
///         async move { is_open.wait().await }
///     });
///     is_open.set();
///     guest.await.unwrap();
/// })?;
/// # Ok::<(), miniloop::LoopError>(())
/// ```
#[derive(Default)]
pub struct Event {
    is_set: Cell<bool>,
    line: Line<()>,
}

impl Event {
    /// An event that is not set.
    pub const fn new() -> Event {
        Event { is_set: Cell::new(false), line: Line::new() }
    }

    /// Sets it: all who wait go on, in the order in which they came, even if it is cleared before they run.
    pub fn set(&self) {
        self.is_set.set(true);
        let mut wakes = Wakes::default();
        self.line.grant_all(|| (), &mut wakes);
        wakes.wake();
    }

    /// Whoever waits from now on waits for the next [`set`](Event::set).
    pub fn clear(&self) {
        self.is_set.set(false);
    }

    /// Whether it is set.
    pub fn is_set(&self) -> bool {
        self.is_set.get()
    }

    /// Waits until it is set, not at all if it is.
    ///
    /// # Cancellation
    /// Leaves no trace.
    pub fn wait(&self) -> impl FusedFuture<Output = ()> + Unpin {
        Waiting::new(Wait { event: self })
    }

    /// What it is like now.
    pub fn statistics(&self) -> EventStatistics {
        EventStatistics { is_set: self.is_set(), waiting: self.line.len() }
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Event").field("statistics", &self.statistics()).finish()
    }
}

/// What an [`Event`] is like at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EventStatistics {
    /// Nobody needs to wait.
    pub is_set: bool,
    /// How many wait in line.
    pub waiting: usize,
}

struct Wait<'a> {
    event: &'a Event,
}

impl Desk for Wait<'_> {
    type Request = ();
    type Grant = ();
    type Output = ();
    const WAITS_FOR: WaitsFor = &"an event to be set";

    fn line(&self) -> &Line<()> {
        &self.event.line
    }

    fn request(&self) {}

    fn try_now(&mut self) -> Option<()> {
        self.event.is_set().then_some(())
    }

    fn redeem(&mut self, (): ()) -> Option<()> {
        Some(())
    }

    fn pass_on(&self, _: Option<()>) {}
}
