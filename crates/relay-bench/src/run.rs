//! What all members of a run share: its phases, its goals, and what is counted.
//!
//! ```text
//! all have joined ---> senders send ---> their messages or their time are used up ---> each busy member that has everything leaves
//!                                                        with the last of them the slow ones begin to read, and the idle ones leave
//! ```
//!
//! Next: `member.rs`.

use std::cell::{Cell, OnceCell, RefCell};
use std::future::poll_fn;
use std::task::{Poll, Waker};
use std::time::Duration;

use hdrhistogram::Histogram;
use miniloop::{Instant, Resolver};
use rustix::time::{ClockId, clock_gettime};

use crate::codec::Codec;
use crate::error::{BenchError, Violation};
use crate::limits::{LATENCY_MAX_NS, MESSAGES_MAX, READ_BYTES, STALL_MAX};
use crate::report::{Latency, Report};
use crate::schedule::Schedule;
use crate::seen::Order;
use crate::text::Texts;
use crate::workload::{Length, Pace, Workload};

pub(crate) struct Run<C> {
    pub(crate) codec: C,
    pub(crate) workload: Workload,
    pub(crate) texts: Texts,
    /// Of an open loop.
    pub(crate) schedule: Option<Schedule>,
    /// What one member at a time works with. It is taken, not borrowed, while the codec runs.
    pub(crate) scratch: Cell<Option<Box<Scratch>>>,
    /// Everybody waits for the start, the keeper of the time too, whose place is the last; then senders wait for what is due, and in the
    /// end the others for those who have not everything.
    wakers: RefCell<Vec<Option<Waker>>>,
    rooms: Box<[Room]>,
    counts: Counts,
    /// How many messages of an open loop are due so far.
    due: Cell<u64>,
    is_time_up: Cell<bool>,
    started: Cell<Option<Mark>>,
    completed: Cell<Option<Mark>>,
    end: Cell<Option<Resolver<(), BenchError>>>,
    server_clock: OnceCell<Box<dyn Fn() -> Duration>>,
}

/// A buffer for reads, and where latencies are counted.
pub(crate) struct Scratch {
    pub(crate) buffer: Box<[u8; READ_BYTES]>,
    pub(crate) latency_ns: Histogram<u64>,
}

#[derive(Default)]
struct Counts {
    joined: Cell<usize>,
    complete: Cell<usize>,
    left: Cell<usize>,
    cut: Cell<usize>,
    confirmed: Cell<u64>,
    delivered: Cell<u64>,
}

#[derive(Default)]
struct Room {
    sent: Cell<u64>,
    /// What the first member that was complete has seen, and which one that was.
    order: Cell<Option<(usize, Order)>>,
}

/// A moment, and the processor time used until then.
#[derive(Clone, Copy)]
struct Mark {
    at: Instant,
    cpu: Duration,
    server_cpu: Option<Duration>,
}

/// How a member has left.
pub(crate) enum Departure {
    Orderly,
    /// The server has closed a connection that nobody read.
    Cut,
}

impl<C: Codec> Run<C> {
    pub(crate) fn new(codec: C, workload: Workload) -> Run<C> {
        let senders = workload.senders_in_all() as u64;
        let schedule = match (workload.pace, workload.length) {
            (Pace::Window(_), _) => None,
            (Pace::Rate(rate), Length::Messages(messages)) => Some(Schedule { rate, senders, total: messages.saturating_mul(senders) }),
            (Pace::Rate(rate), Length::Milliseconds(milliseconds)) => {
                Some(Schedule { rate, senders, total: (rate * milliseconds).div_ceil(1_000) })
            }
        };
        let latency_ns = Histogram::new_with_max(LATENCY_MAX_NS, 3).expect("these are bounds that it has");
        let scratch = Scratch { buffer: vec![0; READ_BYTES].try_into().expect("of this length"), latency_ns };
        Run {
            codec,
            texts: Texts::new(workload.text_bytes, workload.seed),
            schedule,
            scratch: Cell::new(Some(Box::new(scratch))),
            wakers: RefCell::new(vec![None; workload.everybody() + 1]),
            rooms: (0..workload.rooms).map(|_| Room::default()).collect(),
            counts: Counts::default(),
            due: Cell::new(0),
            is_time_up: Cell::new(false),
            started: Cell::new(None),
            completed: Cell::new(None),
            end: Cell::new(None),
            server_clock: OnceCell::new(),
            workload,
        }
    }

    /// How much processor time the server has used.
    pub(crate) fn set_server_clock(&self, clock: impl Fn() -> Duration + 'static) {
        let _ = self.server_clock.set(Box::new(clock));
    }

    /// Who is told how it ends.
    pub(crate) fn end_with(&self, end: Resolver<(), BenchError>) {
        self.end.set(Some(end));
    }

    /// Remembers how to wake a member.
    pub(crate) fn waits(&self, index: usize, waker: &Waker) {
        let mut wakers = self.wakers.borrow_mut();
        match &mut wakers[index] {
            Some(known) => known.clone_from(waker),
            unknown => *unknown = Some(waker.clone()),
        }
    }

    fn wake(&self, index: usize) {
        let waker = self.wakers.borrow_mut()[index].take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn wake_all(&self) {
        (0..=self.workload.everybody()).for_each(|index| self.wake(index));
    }

    /// Waits until the senders begin, and says when that was.
    pub(crate) async fn start(&self) -> Instant {
        poll_fn(|cx| match self.started_at() {
            Some(started_at) => Poll::Ready(started_at),
            None => {
                // Behind those of the members.
                self.waits(self.workload.everybody(), cx.waker());
                Poll::Pending
            }
        })
        .await
    }

    /// A member has joined; with the last one the senders begin.
    pub(crate) fn joined(&self) {
        add(&self.counts.joined, 1);
        if self.counts.joined.get() == self.workload.everybody() {
            self.started.set(Some(self.mark()));
            self.wake_all();
        }
    }

    /// When the senders have begun.
    pub(crate) fn started_at(&self) -> Option<Instant> {
        self.started.get().map(|mark| mark.at)
    }

    /// From now on so many messages of an open loop are due. Whoever has to send them is woken.
    pub(crate) fn set_due(&self, due: u64) {
        let senders = self.workload.senders_in_all() as u64;
        let before = self.due.replace(due);
        for index in before..due.min(before + senders) {
            let sender = (index % senders) as usize;
            let (member, room) = (sender / self.workload.rooms, sender % self.workload.rooms);
            self.wake(room * self.workload.members + member);
        }
    }

    /// A sender's place in the line of all senders: those of a room are far from each other.
    pub(crate) fn sender_index(&self, room: usize, member: usize) -> u64 {
        (member * self.workload.rooms + room) as u64
    }

    /// How many messages a sender may have sent by now.
    #[inline]
    pub(crate) fn allowed(&self, sender_index: u64) -> u64 {
        match (&self.schedule, self.workload.length) {
            (Some(schedule), _) => schedule.share(sender_index, self.due.get()),
            (None, Length::Messages(messages)) => messages,
            (None, Length::Milliseconds(_)) if self.is_time_up.get() => 0,
            (None, Length::Milliseconds(_)) => MESSAGES_MAX,
        }
    }

    /// From now on nothing more is due.
    pub(crate) fn end_time(&self) {
        self.is_time_up.set(true);
        if let Some(schedule) = self.schedule {
            for (index, room) in self.rooms.iter().enumerate() {
                let shares = (0..self.workload.senders).map(|member| schedule.share(self.sender_index(index, member), schedule.total));
                room.sent.set(shares.sum());
            }
        }
        self.wake_all();
    }

    /// How many messages a member of the room must have at the end, once that is known. `own`: those that it has sent itself, if it sends.
    pub(crate) fn goal(&self, room: usize, own: Option<(u64, u64)>) -> Option<u64> {
        let messages = match self.workload.length {
            Length::Messages(messages) => Some(messages),
            Length::Milliseconds(_) if self.is_time_up.get() => None,
            Length::Milliseconds(_) => return None,
        };
        if C::IS_FANNED_OUT {
            return Some(messages.map_or_else(|| self.rooms[room].sent.get(), |messages| messages * self.workload.senders as u64));
        }
        let Some((index, sent)) = own else { return Some(0) };
        Some(messages.unwrap_or_else(|| self.schedule.map_or(sent, |schedule| schedule.share(index, schedule.total))))
    }

    pub(crate) fn sent(&self, room: usize, messages: u64) {
        if self.schedule.is_none() {
            add(&self.rooms[room].sent, messages);
        }
    }

    pub(crate) fn received(&self, delivered: u64, confirmed: u64) {
        add(&self.counts.delivered, delivered);
        add(&self.counts.confirmed, confirmed);
    }

    /// A busy member has all messages of its room; with the last one the others may end.
    pub(crate) fn complete(&self) {
        add(&self.counts.complete, 1);
        if self.is_complete() {
            self.completed.set(Some(self.mark()));
            self.wake_all();
        }
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.counts.complete.get() == self.workload.busy()
    }

    /// Compares what a member of the room has seen with what the others have.
    pub(crate) fn compare(&self, room: usize, member: usize, order: Order) -> Result<(), Violation> {
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
    pub(crate) fn left(&self, how: Result<Departure, BenchError>) {
        add(&self.counts.left, 1);
        match how {
            Err(error) => return self.fail(error),
            Ok(Departure::Cut) => add(&self.counts.cut, 1),
            Ok(Departure::Orderly) => {}
        }
        if self.counts.left.get() == self.workload.everybody()
            && let Some(end) = self.end.take()
        {
            end.set_result(());
        }
    }

    pub(crate) fn fail(&self, error: BenchError) {
        if let Some(end) = self.end.take() {
            end.set_error(error);
        }
    }

    /// Changes whenever something has come from the server.
    pub(crate) fn signs_of_life(&self) -> impl PartialEq + use<C> {
        let Counts { joined, left, confirmed, delivered, .. } = &self.counts;
        (joined.get(), left.get(), confirmed.get(), delivered.get())
    }

    /// What the members wait for, for a run in which nothing goes on.
    pub(crate) fn stall(&self) -> BenchError {
        let counts =
            [("have joined", &self.counts.joined), ("have seen everything", &self.counts.complete), ("have left", &self.counts.left)];
        let counts = counts.map(|(what, count)| format!("{} {what}", count.get())).join(", ");
        let all = self.workload.everybody();
        BenchError::Server(format!("nothing has come from the server for {} s; of {all} members {counts}", STALL_MAX.as_secs()))
    }

    /// How far it is: what is being done, how much of it, and how much there is of it.
    pub(crate) fn progress(&self) -> (&'static str, u64, u64) {
        let Some(started) = self.started.get() else {
            return ("joining", self.counts.joined.get() as u64, self.workload.everybody() as u64);
        };
        match self.workload.length {
            Length::Messages(messages) => {
                ("sending", self.counts.confirmed.get(), messages.saturating_mul(self.workload.senders_in_all() as u64))
            }
            Length::Milliseconds(milliseconds) => ("sending", (miniloop::now() - started.at).as_millis() as u64, milliseconds),
        }
    }

    fn mark(&self) -> Mark {
        let cpu = clock_gettime(ClockId::ProcessCPUTime);
        let cpu = Duration::new(cpu.tv_sec as u64, cpu.tv_nsec as u32);
        Mark { at: miniloop::now(), cpu, server_cpu: self.server_clock.get().map(|clock| clock()) }
    }

    /// What it has come to so far.
    pub(crate) fn report(&self) -> Report {
        let start = self.started.get().unwrap_or_else(|| self.mark());
        let end = self.completed.get().unwrap_or_else(|| self.mark());
        let elapsed_seconds = (end.at - start.at).as_secs_f64();
        let server_cpu = start.server_cpu.zip(end.server_cpu);
        let per_second = |count: u64| if elapsed_seconds > 0.0 { count as f64 / elapsed_seconds } else { 0.0 };
        let (publishes, deliveries) = (self.counts.confirmed.get(), self.counts.delivered.get());
        let is_over = self.counts.left.get() == self.workload.everybody();
        let scratch = self.scratch.take();
        let latency_us = scratch.as_ref().map(|scratch| Latency::of(&scratch.latency_ns)).unwrap_or_default();
        self.scratch.set(scratch);
        Report {
            workload: self.workload.clone(),
            publishes,
            deliveries,
            publishes_per_second: per_second(publishes),
            deliveries_per_second: per_second(deliveries),
            elapsed_seconds,
            cpu_seconds: (end.cpu - start.cpu).as_secs_f64(),
            server_cpu_seconds: server_cpu.map(|(start, end)| end.saturating_sub(start).as_secs_f64()),
            latency_us,
            slow_cut: is_over.then(|| self.counts.cut.get()),
            is_interrupted: !self.is_complete(),
        }
    }
}

fn add<T: Copy + std::ops::Add<Output = T>>(count: &Cell<T>, more: T) {
    count.set(count.get() + more);
}
