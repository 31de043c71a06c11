//! The one deadline that a connection has at a time, on a clock that the server may stop.
//!
//! ```text
//!   JOIN expected --joined--> PING due --sent--> PONG expected --PONG--> PING due
//!         |                                           |
//!       late: ERR, flushed                         late: cut            FLUSH expected: what is left is dropped
//! ```
//!
//! A client must not be closed for a `PONG` that the server chose not to read. So while the server has paused a connection, and until the
//! shell has read what the kernel holds since, the clock stands still: the deadline moves away as fast as time passes. Next: `bucket.rs`.

use crate::nanos::Nanos;

/// A deadline and whether time passes for it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Clock {
    due: Option<(Nanos, Due)>,
    stopped_at: Option<Nanos>,
}

/// What happens at the deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    Join,
    Ping,
    Pong,
    Flush,
}

impl Clock {
    /// Sets the deadline, which is counted from `now` also when the clock stands.
    pub(crate) fn set(&mut self, now: Nanos, due: Option<(Nanos, Due)>) {
        self.due = due;
        self.catch_up(now);
    }

    pub(crate) fn due(&self) -> Option<(Nanos, Due)> {
        self.due
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped_at.is_some()
    }

    pub(crate) fn stop(&mut self, now: Nanos) {
        self.stopped_at.get_or_insert(now);
    }

    pub(crate) fn start(&mut self, now: Nanos) {
        self.give_back(now);
        self.stopped_at = None;
    }

    /// Gives the time back that the clock stood still until now.
    pub(crate) fn give_back(&mut self, now: Nanos) {
        if let (Some((at, _)), Some(stopped_at)) = (&mut self.due, self.stopped_at) {
            *at = *at + now.since(stopped_at);
        }
        self.catch_up(now);
    }

    fn catch_up(&mut self, now: Nanos) {
        if let Some(stopped_at) = &mut self.stopped_at {
            *stopped_at = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stopped_clock_moves_its_deadline() {
        let mut clock = Clock::default();
        clock.set(Nanos(0), Some((Nanos(100), Due::Pong)));
        clock.stop(Nanos(10));
        clock.stop(Nanos(20));
        clock.start(Nanos(50));
        clock.start(Nanos(90));
        assert_eq!(clock.due(), Some((Nanos(140), Due::Pong)));
    }

    #[test]
    fn time_is_given_back_once() {
        let mut clock = Clock::default();
        clock.set(Nanos(0), Some((Nanos(100), Due::Pong)));
        clock.stop(Nanos(10));
        clock.give_back(Nanos(20));
        clock.give_back(Nanos(30));
        assert_eq!(clock.due(), Some((Nanos(120), Due::Pong)));
        clock.set(Nanos(40), Some((Nanos(1000), Due::Ping)));
        clock.start(Nanos(45));
        assert_eq!(clock.due(), Some((Nanos(1005), Due::Ping)));
    }
}
