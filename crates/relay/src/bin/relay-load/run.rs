//! What all members of a run share: its phases, its goal, and what is counted.
//!
//! ```text
//! all have joined ---> senders send ---> their messages or their time are used up ---> each member that has seen everything leaves
//! ```

use std::cell::{Cell, RefCell};
use std::time::Duration;

use miniloop::{Abandoned, Instant, Promise, Resolver, Shared, promise};
use relay::Histogram;
use rustix::time::{ClockId, clock_gettime};

use crate::options::Options;
use crate::seen::Order;
use crate::violation::Violation;
use crate::wire::Wire;

pub(crate) struct Run {
    pub(crate) options: Options,
    pub(crate) wire: Wire,
    /// What is read. One for all members: what is read is handled before anybody else reads.
    pub(crate) buffer: RefCell<Box<[u8]>>,
    pub(crate) latency: RefCell<Histogram>,
    rooms: Box<[Room]>,
    joined: Cell<usize>,
    complete: Cell<usize>,
    left: Cell<usize>,
    delivered: Cell<u64>,
    is_time_up: Cell<bool>,
    start: Event,
    time_up: Event,
    started: Cell<Mark>,
    completed: Cell<Mark>,
    end: Cell<Option<Resolver<(), Violation>>>,
}

#[derive(Default)]
struct Room {
    sent: Cell<u64>,
    /// What the first member that was complete has seen, and which one that was.
    order: Cell<Option<(usize, Order)>>,
}

/// A moment, and the processor time used until then.
#[derive(Clone, Copy)]
pub(crate) struct Mark {
    pub(crate) at: Instant,
    pub(crate) cpu: Duration,
}

/// Something that happens once and that many wait for.
struct Event {
    resolver: Cell<Option<Resolver<(), Abandoned>>>,
    waiters: Shared<Result<(), Abandoned>>,
}

/// Waits for an [`Event`].
pub(crate) type Waiter = Shared<Result<(), Abandoned>>;

impl Run {
    /// A run, and how it ends.
    pub(crate) fn new(options: Options) -> (Run, Promise<(), Violation>) {
        let (resolver, end) = promise();
        let run = Run {
            wire: Wire::new(options.size, options.seed),
            buffer: RefCell::new(vec![0; READ_BYTES].into()),
            latency: RefCell::new(Histogram::new()),
            rooms: (0..options.rooms).map(|_| Room::default()).collect(),
            joined: Cell::new(0),
            complete: Cell::new(0),
            left: Cell::new(0),
            delivered: Cell::new(0),
            is_time_up: Cell::new(false),
            start: Event::new(),
            time_up: Event::new(),
            started: Cell::new(Mark::now()),
            completed: Cell::new(Mark::now()),
            end: Cell::new(Some(resolver)),
            options,
        };
        (run, end)
    }

    pub(crate) fn started(&self) -> Waiter {
        self.start.waiters.clone()
    }

    pub(crate) fn time_up(&self) -> Waiter {
        self.time_up.waiters.clone()
    }

    /// A member has joined; with the last one the senders begin.
    pub(crate) fn joined(&self) {
        self.joined.set(self.joined.get() + 1);
        if self.joined.get() == self.options.connections() {
            self.started.set(Mark::now());
            self.start.happen();
        }
    }

    /// From now on nobody sends.
    pub(crate) fn end_time(&self) {
        self.is_time_up.set(true);
        self.time_up.happen();
    }

    pub(crate) fn is_time_up(&self) -> bool {
        self.is_time_up.get()
    }

    pub(crate) fn sent(&self, room: usize, messages: u64) {
        let sent = &self.rooms[room].sent;
        sent.set(sent.get() + messages);
    }

    pub(crate) fn received(&self, messages: u64) {
        self.delivered.set(self.delivered.get() + messages);
    }

    /// How many messages each member of a room must see, once that is known.
    pub(crate) fn goal(&self, room: usize) -> Option<u64> {
        match self.options.messages {
            Some(messages) => Some(messages * self.options.senders as u64),
            None => self.is_time_up.get().then(|| self.rooms[room].sent.get()),
        }
    }

    /// A member has seen all messages of its room.
    pub(crate) fn complete(&self, room: usize, member: usize, order: Order) -> Result<(), Violation> {
        self.complete.set(self.complete.get() + 1);
        if self.complete.get() == self.options.connections() {
            self.completed.set(Mark::now());
        }
        let first = &self.rooms[room].order;
        match first.get() {
            Some((other, others_order)) if others_order != order => {
                Err(Violation::new(format!("it has seen the messages of its room in another order than member {other}")))
            }
            Some(_) => Ok(()),
            None => {
                first.set(Some((member, order)));
                Ok(())
            }
        }
    }

    /// A member has ended.
    pub(crate) fn left(&self, how: Result<(), Violation>) {
        self.left.set(self.left.get() + 1);
        match how {
            Err(violation) => self.fail(violation),
            Ok(()) if self.left.get() == self.options.connections() => {
                if let Some(end) = self.end.take() {
                    end.set_result(());
                }
            }
            Ok(()) => {}
        }
    }

    pub(crate) fn fail(&self, violation: Violation) {
        if let Some(end) = self.end.take() {
            end.set_error(violation);
        }
    }

    /// Changes whenever something goes on.
    pub(crate) fn progress(&self) -> impl PartialEq + use<> {
        (self.joined.get(), self.published(), self.delivered.get(), self.left.get())
    }

    /// What the members wait for, for a run in which nothing goes on.
    pub(crate) fn stall(&self) -> Violation {
        let all = self.options.connections();
        let counts = [("have joined", &self.joined), ("have seen everything", &self.complete), ("have left", &self.left)];
        let counts = counts.map(|(what, count)| format!("{} {what}", count.get())).join(", ");
        Violation::new(format!("nothing has come from the server for {} s; of {all} members {counts}", STALL_MAX.as_secs()))
    }

    pub(crate) fn published(&self) -> u64 {
        self.rooms.iter().map(|room| room.sent.get()).sum()
    }

    pub(crate) fn delivered(&self) -> u64 {
        self.delivered.get()
    }

    /// From the first message to the moment at which the last member had seen all.
    pub(crate) fn span(&self) -> (Mark, Mark) {
        (self.started.get(), self.completed.get())
    }
}

impl Mark {
    fn now() -> Mark {
        let cpu = clock_gettime(ClockId::ProcessCPUTime);
        Mark { at: miniloop::now(), cpu: Duration::new(cpu.tv_sec as u64, cpu.tv_nsec as u32) }
    }
}

impl Event {
    fn new() -> Event {
        let (resolver, promise) = promise();
        Event { resolver: Cell::new(Some(resolver)), waiters: promise.shared() }
    }

    fn happen(&self) {
        if let Some(resolver) = self.resolver.take() {
            resolver.set_result(());
        }
    }
}

/// How much a member takes with one system call.
const READ_BYTES: usize = 256 * 1024;

/// A server that says nothing for so long, while somebody waits for it, has lost something.
pub(crate) const STALL_MAX: Duration = Duration::from_secs(30);
