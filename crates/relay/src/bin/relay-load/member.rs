//! One member of a room: its connection, what it sends, and what it checks.
//!
//! ```text
//! Joining --"OK JOIN"--> Waiting --all have--> Talking --has seen all--> Quitting --"OK QUIT", end--> done
//! ```
//!
//! A read is handled where it lies; only an unfinished line is kept, and put in front of the next read. What a read makes a sender send
//! leaves in one write.

use std::future::Future;
use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use memchr::memchr;
use miniloop::net::TcpStream;
use relay::Histogram;

use crate::run::{Run, Waiter};
use crate::seen::Seen;
use crate::sender::Sender;
use crate::violation::Violation;
use crate::wire::{self, MESSAGES_MAX};

/// A connected member. As a future it is done when the member has left, or with what was wrong.
pub(crate) struct Member {
    run: Rc<Run>,
    room: usize,
    member: usize,
    stream: TcpStream,
    phase: Phase,
    started: Waiter,
    time_up: Waiter,
    /// The line that the last read did not end.
    unfinished: Vec<u8>,
    out: Vec<u8>,
    /// How much of `out` the kernel took.
    written: usize,
    sender: Option<Sender>,
    seen: Seen,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    Joining,
    Waiting,
    Talking,
    Quitting,
    Gone,
}

impl Member {
    pub(crate) fn new(run: Rc<Run>, room: usize, member: usize, stream: TcpStream) -> Member {
        let options = &run.options;
        let sends = member < options.senders;
        let sender = sends.then(|| Sender::new(&run.wire, options.window, options.messages.unwrap_or(MESSAGES_MAX)));
        let join = format!("JOIN {} {}\n", wire::member_name(member), wire::room_name(options.seed, room));
        Member {
            room,
            member,
            stream,
            phase: Phase::Joining,
            started: run.started(),
            time_up: run.time_up(),
            unfinished: Vec::new(),
            out: join.into_bytes(),
            written: 0,
            sender,
            seen: Seen::new(options.senders),
            run,
        }
    }

    fn poll_steps(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Violation>> {
        self.go_on(cx, miniloop::now().as_nanos())?;
        for _ in 0..READS_PER_POLL {
            self.poll_write(cx)?;
            if self.phase == Phase::Gone {
                return Poll::Ready(Ok(()));
            }
            ready!(self.poll_read(cx))?;
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Does what can be done without the server: begins, sends, and leaves when everything was seen.
    fn go_on(&mut self, cx: &mut Context<'_>, now_ns: u64) -> Result<(), Violation> {
        if self.phase == Phase::Waiting && Pin::new(&mut self.started).poll(cx).is_ready() {
            self.phase = Phase::Talking;
        }
        if self.phase != Phase::Talking {
            return Ok(());
        }
        let is_time_up = self.run.is_time_up() || Pin::new(&mut self.time_up).poll(cx).is_ready();
        if let Some(sender) = &mut self.sender
            && !is_time_up
        {
            self.run.sent(self.room, sender.fill(&mut self.out, now_ns));
        }
        if self.run.goal(self.room) == Some(self.seen.order().len) {
            self.run.complete(self.room, self.member, self.seen.order())?;
            self.out.extend_from_slice(b"QUIT\n");
            self.phase = Phase::Quitting;
        }
        Ok(())
    }

    /// Reads once and answers to it.
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Violation>> {
        ready!(self.stream.poll_read_ready(cx)).map_err(|error| self.broken(&error))?;
        let run = self.run.clone();
        let mut buffer = run.buffer.borrow_mut();
        let unfinished_len = self.unfinished.len();
        buffer[..unfinished_len].copy_from_slice(&self.unfinished);
        let len = match self.stream.try_read(&mut buffer[unfinished_len..]) {
            Ok(0) => return Poll::Ready(self.end_of_input()),
            Ok(len) => len,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Poll::Ready(Ok(())),
            Err(error) => return Poll::Ready(Err(self.broken(&error))),
        };
        let now_ns = miniloop::now().as_nanos();
        let before = self.seen.order().len;
        let handled_len = self.lines(&buffer[..unfinished_len + len], now_ns, &mut run.latency.borrow_mut())?;
        let rest = &buffer[handled_len..unfinished_len + len];
        if rest.len() > LINE_LEN_MAX {
            return Poll::Ready(Err(Violation::new("a line without an end")));
        }
        self.unfinished.clear();
        self.unfinished.extend_from_slice(rest);
        run.received(self.seen.order().len - before);
        Poll::Ready(self.go_on(cx, now_ns))
    }

    /// Handles the complete lines and says how long they are together.
    fn lines(&mut self, bytes: &[u8], now_ns: u64, latency: &mut Histogram) -> Result<usize, Violation> {
        let mut handled_len = 0;
        while let Some(len) = memchr(b'\n', &bytes[handled_len..]) {
            let line = &bytes[handled_len..handled_len + len];
            handled_len += len + 1;
            let Some(message) = self.run.wire.parse(line) else {
                self.other_line(line)?;
                continue;
            };
            self.seen.message(&message)?;
            if message.sender == self.member
                && let Some(sender) = &mut self.sender
            {
                let latency_ns = sender.echo(now_ns).ok_or_else(|| Violation::new("a message came back that was not sent"))?;
                latency.add(latency_ns);
            }
        }
        Ok(handled_len)
    }

    fn other_line(&mut self, line: &[u8]) -> Result<(), Violation> {
        match (self.phase, line) {
            (_, b"PING") => self.out.extend_from_slice(b"PONG\n"),
            (Phase::Joining, line) if line.starts_with(b"OK JOIN ") => {
                self.phase = Phase::Waiting;
                self.run.joined();
            }
            (Phase::Quitting, b"OK QUIT") => self.phase = Phase::Gone,
            (phase, line) => return Err(Violation::new(format!("while {phase:?} the server says `{}`", line.escape_ascii()))),
        }
        Ok(())
    }

    fn poll_write(&mut self, cx: &mut Context<'_>) -> Result<(), Violation> {
        while self.written < self.out.len() {
            match self.stream.poll_write_ready(cx) {
                Poll::Pending => return Ok(()),
                Poll::Ready(ready) => ready.map_err(|error| self.broken(&error))?,
            }
            match self.stream.try_write(&self.out[self.written..]) {
                Ok(len) => self.written += len,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(self.broken(&error)),
            }
        }
        self.out.clear();
        self.written = 0;
        Ok(())
    }

    fn end_of_input(&self) -> Result<(), Violation> {
        Err(Violation::new(format!("the server has closed the connection while it was {:?}", self.phase)))
    }

    fn broken(&self, error: &io::Error) -> Violation {
        Violation::new(format!("the connection broke while it was {:?}: {error}", self.phase))
    }
}

impl Future for Member {
    type Output = Result<(), Violation>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Violation>> {
        let who = (self.member, self.room);
        self.poll_steps(cx).map_err(|violation| violation.of(format_args!("member {} of room {}", who.0, who.1)))
    }
}

/// How often a member is read before the others get their turn.
const READS_PER_POLL: usize = 4;

/// More than any line of the server.
const LINE_LEN_MAX: usize = 8 * 1024;
