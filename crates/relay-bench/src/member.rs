//! One member of a room: its connection, what it sends, and what it checks.
//!
//! ```text
//! Joining --"Done"--> Waiting --all have--> Talking --has everything--> Leaving --"Done", end--> done
//! ```
//!
//! An idle member has everything when all others have; a slow one reads nothing until then. What a read makes a sender send leaves in one
//! write. Next: `bench.rs`.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use hdrhistogram::Histogram;
use miniloop::net::TcpStream;

use crate::codec::{self, Codec, Event};
use crate::connection::Connection;
use crate::error::{BenchError, Violation};
use crate::limits::{EVENT_LEN_MAX_BYTES, IDLE_ROOM_MEMBERS, READS_PER_POLL};
use crate::run::{Departure, Run};
use crate::seen::Seen;
use crate::sender::{Sender, Since};
use crate::text;
use crate::workload::Pace;

/// A connected member. As a future it is done when the member has left, or with what was wrong.
pub(crate) struct Member<C> {
    run: Rc<Run<C>>,
    place: Place,
    phase: Phase,
    connection: Connection,
    /// The server has not answered what it was asked: to let somebody in, or go.
    is_asking: bool,
    sender: Option<(u64, Sender)>,
    seen: Seen,
}

/// Who a member is.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub(crate) kind: Kind,
    /// Of the busy rooms, or of the idle ones.
    pub(crate) room: usize,
    pub(crate) member: usize,
    /// Among all members.
    pub(crate) index: usize,
}

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Kind {
    Busy,
    Idle,
    Slow,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    Joining,
    Waiting,
    Talking,
    Leaving,
    Gone,
}

impl<C: Codec> Member<C> {
    pub(crate) fn new(run: Rc<Run<C>>, place: Place, stream: TcpStream) -> Result<Member<C>, BenchError> {
        let name = text::member_name(place.member);
        let room = match place.kind {
            Kind::Busy | Kind::Slow => format!("bench-{}-{}", run.workload.seed, place.room),
            Kind::Idle => format!("bench-{}-idle-{}", run.workload.seed, place.room),
        };
        let who = codec::Member { name: &name, room: &room };
        let mut connection = Connection::new(stream);
        run.codec.hello(&who, &mut connection.out);
        let is_asking = !connection.out.is_empty();
        let sender = place.sends(&run).then(|| sender(&run, &who, place)).transpose();
        let sender = sender.map_err(|violation| violation.of(place))?;
        let senders = if place.kind == Kind::Idle { 0 } else { run.workload.senders };
        let mut member = Member { place, phase: Phase::Joining, connection, is_asking, sender, seen: Seen::new(senders), run };
        if !is_asking {
            member.answered();
        }
        Ok(member)
    }

    fn answered(&mut self) {
        self.is_asking = false;
        match self.phase {
            Phase::Joining => {
                self.phase = Phase::Waiting;
                self.run.joined();
            }
            _ => self.phase = Phase::Gone,
        }
    }

    fn poll_steps(&mut self, cx: &mut Context<'_>) -> Poll<Result<Departure, Violation>> {
        self.run.waits(self.place.index, cx.waker());
        self.go_on(miniloop::now().as_nanos())?;
        for _ in 0..READS_PER_POLL {
            if let Err(error) = self.connection.poll_write(cx) {
                return Poll::Ready(self.broken(&error));
            }
            if self.phase == Phase::Gone {
                return Poll::Ready(Ok(Departure::Orderly));
            }
            match self.poll_read(cx) {
                Poll::Ready(Ok(Some(departure))) => return Poll::Ready(Ok(departure)),
                Poll::Ready(Ok(None)) => {}
                Poll::Ready(Err(violation)) => return Poll::Ready(Err(violation)),
                Poll::Pending if self.has_more_to_write() => {}
                Poll::Pending => return Poll::Pending,
            }
            self.go_on(miniloop::now().as_nanos())?;
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Whether the kernel has taken everything, and there is more.
    fn has_more_to_write(&self) -> bool {
        let may_send = |(index, sender): &(u64, Sender)| sender.may_send(self.run.allowed(*index));
        self.connection.out.is_empty() && self.phase == Phase::Talking && self.sender.as_ref().is_some_and(may_send)
    }

    /// Does what can be done without the server: begins, sends, and leaves when it has everything.
    fn go_on(&mut self, now_ns: u64) -> Result<(), Violation> {
        if self.phase == Phase::Waiting
            && let Some(started_at) = self.run.started_at()
        {
            self.phase = Phase::Talking;
            if let Some((_, sender)) = &mut self.sender {
                sender.start(started_at.as_nanos());
            }
        }
        if self.phase != Phase::Talking {
            return Ok(());
        }
        if let Some((index, sender)) = &mut self.sender {
            self.run.sent(self.place.room, sender.fill(&mut self.connection.out, now_ns, self.run.allowed(*index)));
        }
        if self.has_everything()? {
            self.phase = Phase::Leaving;
            // The answer to a ping may stand there, which nobody answers.
            let before_len = self.connection.out.len();
            self.run.codec.goodbye(&mut self.connection.out);
            self.is_asking = self.connection.out.len() > before_len;
            if !self.is_asking {
                self.answered();
            }
        }
        Ok(())
    }

    fn has_everything(&self) -> Result<bool, Violation> {
        let Place { kind, room, member, .. } = self.place;
        if kind != Kind::Busy && !self.run.is_complete() {
            return Ok(false);
        }
        if kind == Kind::Idle {
            return Ok(true);
        }
        let own = self.sender.as_ref();
        let len = if C::IS_FANNED_OUT { self.seen.order().len } else { own.map_or(0, |(_, sender)| sender.confirmed) };
        if self.run.goal(room, own.map(|(index, sender)| (*index, sender.sent))) != Some(len) {
            return Ok(false);
        }
        self.run.compare(room, member, self.seen.order())?;
        if kind == Kind::Busy {
            self.run.complete();
        }
        Ok(true)
    }

    /// Reads once and handles what has come. `Some`: the server has ended it, and may.
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Departure>, Violation>> {
        if self.place.kind == Kind::Slow && matches!(self.phase, Phase::Waiting | Phase::Talking) && !self.run.is_complete() {
            return Poll::Pending;
        }
        let run = self.run.clone();
        let Some(mut scratch) = run.scratch.take() else { return Poll::Pending };
        let polled = match self.connection.poll_read(cx, &mut scratch.buffer) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Ok(0)) => Poll::Ready(self.ended().map(Some)),
            Poll::Ready(Err(error)) => Poll::Ready(self.broken(&error).map(Some)),
            Poll::Ready(Ok(len)) => Poll::Ready(self.events(&scratch.buffer[..len], &mut scratch.latency_ns).map(|()| None)),
        };
        run.scratch.set(Some(scratch));
        polled
    }

    /// Handles what is complete, and keeps the rest.
    fn events(&mut self, bytes: &[u8], latency_ns: &mut Histogram<u64>) -> Result<(), Violation> {
        let now_ns = miniloop::now().as_nanos();
        let confirmed = |member: &Self| member.sender.as_ref().map_or(0, |(_, sender)| sender.confirmed);
        let before = (self.seen.order().len, confirmed(self));
        let run = self.run.clone();
        let mut rest = bytes;
        while !rest.is_empty()
            && let Some((event, len)) = run.codec.cut(rest)
        {
            let (whole, behind) = rest.split_at(len);
            self.event(event, whole, now_ns, latency_ns)?;
            rest = behind;
        }
        if rest.len() > EVENT_LEN_MAX_BYTES {
            return Err(Violation::new(format!("the server says more than {EVENT_LEN_MAX_BYTES} bytes without an end")));
        }
        self.connection.keep(rest);
        if self.place.kind == Kind::Busy {
            run.received(self.seen.order().len - before.0, confirmed(self) - before.1);
        }
        Ok(())
    }

    #[inline]
    fn event(&mut self, event: Event<'_>, whole: &[u8], now_ns: u64, latency_ns: &mut Histogram<u64>) -> Result<(), Violation> {
        match event {
            Event::Message(text) => {
                let Some(said) = self.run.texts.parse(text) else { return Err(self.unexpected(whole)) };
                self.seen.message(&said)?;
                if said.sender == self.place.member { self.confirm(now_ns, latency_ns) } else { Ok(()) }
            }
            Event::Acknowledged => match &self.sender {
                Some(_) => self.confirm(now_ns, latency_ns),
                None => Err(self.unexpected(whole)),
            },
            Event::Answer(answer) => {
                self.connection.out.extend_from_slice(answer);
                Ok(())
            }
            Event::Done if self.is_asking => {
                self.answered();
                Ok(())
            }
            Event::Nothing => Ok(()),
            Event::Done | Event::Error(_) => Err(self.unexpected(whole)),
        }
    }

    /// The oldest of one's own messages has come back, or was acknowledged.
    #[inline]
    fn confirm(&mut self, now_ns: u64, latency_ns: &mut Histogram<u64>) -> Result<(), Violation> {
        let Some((_, sender)) = &mut self.sender else { return Ok(()) };
        let ns = sender.confirm(now_ns).ok_or_else(|| Violation::new("a message is confirmed that was not sent"))?;
        latency_ns.saturating_record(ns);
        Ok(())
    }

    #[cold]
    fn unexpected(&self, whole: &[u8]) -> Violation {
        let said = whole.trim_ascii_end().escape_ascii();
        Violation::new(format!("while {:?} the server says `{said}`", self.phase))
    }

    fn ended(&self) -> Result<Departure, Violation> {
        if self.may_be_cut() {
            return Ok(Departure::Cut);
        }
        Err(Violation::new(format!("the server has closed the connection while it was {:?}", self.phase)))
    }

    fn broken(&self, error: &io::Error) -> Result<Departure, Violation> {
        if self.may_be_cut() {
            return Ok(Departure::Cut);
        }
        Err(Violation::new(format!("the connection broke while it was {:?}: {error}", self.phase)))
    }

    fn may_be_cut(&self) -> bool {
        self.place.kind == Kind::Slow && self.phase != Phase::Joining
    }
}

impl Place {
    pub(crate) fn sends<C>(&self, run: &Run<C>) -> bool {
        self.kind == Kind::Busy && self.member < run.workload.senders
    }

    /// All members of a run: idle ones, slow ones, and in the end those who begin to talk when they are there.
    pub(crate) fn all<C>(run: &Run<C>) -> impl Iterator<Item = Place> + use<C> {
        let (rooms, members, idle, slow) = (run.workload.rooms, run.workload.members, run.workload.idle, run.workload.slow);
        let busy = rooms * members;
        let idle_members = (0..idle).map(move |number| Place {
            kind: Kind::Idle,
            room: number / IDLE_ROOM_MEMBERS,
            member: number % IDLE_ROOM_MEMBERS,
            index: busy + number,
        });
        let slow_members = (0..slow).map(move |number| Place {
            kind: Kind::Slow,
            room: number % rooms,
            member: members + number / rooms,
            index: busy + idle + number,
        });
        let busy_members = (0..busy).map(move |index| Place { kind: Kind::Busy, room: index / members, member: index % members, index });
        idle_members.chain(slow_members).chain(busy_members)
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kind = match self.kind {
            Kind::Busy => "",
            Kind::Idle => "idle ",
            Kind::Slow => "slow ",
        };
        write!(f, "{kind}member {} of {kind}room {}", self.member, self.room)
    }
}

fn sender<C: Codec>(run: &Run<C>, who: &codec::Member<'_>, place: Place) -> Result<(u64, Sender), Violation> {
    let text = run.texts.first(place.member);
    let mut publish = Vec::new();
    run.codec.publish(who, &text, &mut publish);
    let index = run.sender_index(place.room, place.member);
    let since = match (run.schedule, run.workload.pace) {
        (Some(schedule), _) => Since::Due(schedule, index, 0),
        (None, Pace::Window(window)) => Since::Sent(vec![0; window].into(), 0),
        (None, Pace::Rate(_)) => unreachable!("a rate has a schedule"),
    };
    Ok((index, Sender::new(publish, &text, since)?))
}

impl<C> Unpin for Member<C> {}

impl<C: Codec> Future for Member<C> {
    type Output = Result<Departure, BenchError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<Departure, BenchError>> {
        let place = self.place;
        self.poll_steps(cx).map_err(|violation| violation.of(place))
    }
}
