//! What is measured: the shapes of the workloads, and how results call them. Next: `session.rs`.

use relay_bench::{Pace, Workload};

/// Rooms, their members and senders, and how many of its own messages each sender keeps under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) case: &'static str,
    pub(crate) rooms: usize,
    pub(crate) members: usize,
    pub(crate) senders: usize,
    pub(crate) window: usize,
}

/// Messages that are passed on: what chat is.
pub(crate) const FAN_OUT: [Shape; 7] = [
    // Many messages under way: what a server can do when it may put many into one system call.
    shape("10 x 1, 1, 2,048", 10, 1, 1, 2_048),
    shape("10 x 1, 1, 256", 10, 1, 1, 256),
    // One room that is a stadium.
    shape("1 x 1,000, 1, 16", 1, 1_000, 1, 16),
    // Everybody talks.
    shape("100 x 10, 10, 16", 100, 10, 10, 16),
    shape("10 x 10, 1, 16", 10, 10, 1, 16),
    // Private conversations: nothing to share between members.
    shape("1,000 x 2, 1, 8", 1_000, 2, 1, 8),
    // One message at a time on an idle server: latency, and nothing else.
    shape("1 x 2, 1, 1", 1, 2, 1, 1),
];

/// Messages that are stored and acknowledged to those who send them.
pub(crate) const DURABLE: [Shape; 2] = [PIPELINED, shape("50 x 1, 1, 1", 50, 1, 1, 1)];

/// What half of the load is half of.
pub(crate) const PIPELINED: Shape = shape("10 x 1, 1, 256", 10, 1, 1, 256);

/// The same messages under way, ten thousand, in ever more rooms.
pub(crate) const ROOMS: [Shape; 5] = [
    shape("1 room", 1, 1, 1, 10_000),
    shape("10 rooms", 10, 1, 1, 1_000),
    shape("100 rooms", 100, 1, 1, 100),
    shape("1,000 rooms", 1_000, 1, 1, 10),
    shape("10,000 rooms", 10_000, 1, 1, 1),
];

/// How many connections do nothing.
pub(crate) const IDLE: [(&str, usize); 2] = [("1,000 connections", 1_000), ("15,000 connections", 15_000)];

/// The room that may have a member who reads nothing, at a rate that each server goes easily and that fills what the kernel holds for that
/// member within a second.
pub(crate) const SLOW: Shape = shape("", 1, 10, 1, 0);
pub(crate) const SLOW_RATE: u64 = 50_000;
pub(crate) const SLOW_CASES: [(&str, usize); 2] = [("all read", 0), ("one more reads nothing", 1)];

impl Shape {
    /// As fast as the server goes.
    pub(crate) fn closed(&self) -> Workload {
        self.workload(Pace::Window(self.window))
    }

    /// So many messages a second, whatever comes back.
    pub(crate) fn open(&self, rate: u64) -> Workload {
        self.workload(Pace::Rate(rate))
    }

    fn workload(&self, pace: Pace) -> Workload {
        let Shape { rooms, members, senders, .. } = *self;
        Workload { rooms, members, senders, pace, ..Workload::default() }
    }
}

const fn shape(case: &'static str, rooms: usize, members: usize, senders: usize, window: usize) -> Shape {
    Shape { case, rooms, members, senders, window }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_shape_is_one_that_the_engine_accepts_under_a_name_of_its_own() {
        for shapes in [&FAN_OUT[..], &DURABLE, &ROOMS] {
            for (index, shape) in shapes.iter().enumerate() {
                assert!(shape.closed().check().is_ok(), "{shape:?}");
                assert!(shapes[..index].iter().all(|other| other.case != shape.case), "{shape:?}");
            }
        }
        assert!(SLOW.open(SLOW_RATE).check().is_ok());
    }
}
