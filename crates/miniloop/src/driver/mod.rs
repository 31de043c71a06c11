//! The driver: what the outside world did. The one seam to the kernel's readiness; nothing above knows whether it is epoll or poll(2).
//!
//! It deals in descriptors, timeouts and [`Waker`]s, and must not know tasks, timers or the queue. It never wakes: a wait collects the
//! wakers of what happened, in the order in which it happened, and its owner wakes them once the driver is free again, because a waker is
//! foreign code that may come back here. For the same reason it is given wakers that have been cloned, and hands back those that are no
//! longer needed, to be dropped outside the borrow.
//!
//! Cost: one system call a wait, one to register an I/O object and one to forget it; none for its reads and writes beyond their own. A
//! foreign descriptor costs one more for each change of what is waited for. Memory: about 200 bytes a descriptor and 3 KiB a driver. These
//! are epoll's figures; `poll.rs` has its own.
//!
//! Read `source.rs`, `epoll.rs`, `poll.rs` and `selector.rs` first. Next: `../registration.rs`, which I/O objects hold.

mod source;
#[cfg(target_os = "linux")]
mod epoll;
#[cfg(not(target_os = "linux"))]
mod no_epoll;
mod poll;
mod selector;
#[cfg(target_os = "linux")]
mod timer_fd;
#[cfg(not(target_os = "linux"))]
mod no_timer_fd;

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::task::Waker;
use std::time::Duration;

pub use self::selector::DriverKind;
pub(crate) use self::source::{Direction, Kind};
pub(crate) use self::timer_fd::TimerFd;

#[cfg(not(target_os = "linux"))]
use self::no_epoll as epoll;
#[cfg(not(target_os = "linux"))]
use self::no_timer_fd as timer_fd;
use self::selector::Selector;
use self::source::{Foreign, Interest, Owned, OwnedSide, Source};
use crate::slots::{self, Slots};
use crate::wait_queue;

/// The descriptors that one loop watches.
pub(crate) struct Driver {
    selector: Selector,
    sources: Slots<Source>,
    /// Whose each descriptor number is. An entry may outlive its file when the user closes a number without removing its callbacks; it goes
    /// when the number is used again.
    numbers: BTreeMap<RawFd, SourceId>,
}

/// The address of a descriptor in the driver's table. Goes stale when the descriptor is deregistered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SourceId(slots::Key);

/// The place of a `sock_*` call in the queue of a foreign descriptor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ForeignWait {
    source: SourceId,
    direction: Direction,
    key: wait_queue::Key,
}

/// Wakers that nobody needs any more. To be dropped after the borrow of the driver: their destructors may be foreign code.
#[must_use = "drop it after the borrow of the driver"]
#[derive(Default)]
pub(crate) struct Discarded(Option<Source>);

impl Discarded {
    /// The callbacks of a number that was closed without removing them, and that now belongs to somebody else: they will never be called
    /// again.
    pub(crate) fn callbacks(&self) -> impl Iterator<Item = &Waker> {
        let foreign = match &self.0 {
            Some(Source::Foreign(foreign)) => Some(foreign),
            _ => None,
        };
        foreign.into_iter().flat_map(|foreign| source::DIRECTIONS.iter().filter_map(|direction| foreign.side(*direction).callback.as_ref()))
    }
}

impl Driver {
    /// # Errors
    /// `Unsupported` for a kind that this system lacks; no descriptor is left.
    pub(crate) fn new(kind: DriverKind) -> io::Result<Self> {
        Ok(Self { selector: Selector::new(kind)?, sources: Slots::new(), numbers: BTreeMap::new() })
    }

    /// Lets every write to this descriptor end a wait. Nobody needs to read it, though the driver may. It wakes nobody, and counts as an
    /// event.
    pub(crate) fn add_doorbell(&mut self, fd: BorrowedFd<'_>) -> io::Result<()> {
        self.selector.add_doorbell(fd, DOORBELL)
    }

    /// How many descriptors are watched, besides the doorbell: those of I/O objects, and the user's for which somebody waits.
    pub(crate) fn len(&self) -> usize {
        self.sources.len()
    }

    /// Waits until something happens, at most `timeout` (zero: does not wait; `None`: as long as it takes), and appends the wakers to be
    /// woken to `woken`, in the order in which things happened. Returns the number of events, which may be zero before the time is over.
    ///
    /// A wait that filled its buffer is repeated with timeout zero, but never once there were as many events as there are descriptors: what
    /// floods us cannot hold us here.
    pub(crate) fn wait(&mut self, timeout: Option<Duration>, woken: &mut Vec<Waker>) -> io::Result<usize> {
        self.wait_once(timeout)?;
        let mut count = self.dispatch(woken);
        while self.selector.is_full() && count < self.sources.len() {
            self.wait_once(Some(Duration::ZERO))?;
            count += self.dispatch(woken);
        }
        Ok(count)
    }

    fn wait_once(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        let sources = &self.sources;
        self.selector.wait(timeout, |token| match sources.get(SourceId::from_token(token).0) {
            Some(Source::Owned(owned)) => owned.unready(),
            _ => Interest::default(),
        })
    }

    /// Hands the events of one wait to their sources. One whose source has gone in the meantime is dropped.
    fn dispatch(&mut self, woken: &mut Vec<Waker>) -> usize {
        let count = self.selector.event_count();
        for index in 0..count {
            let (token, readiness) = self.selector.event(index);
            if token == DOORBELL {
                continue;
            }
            let id = SourceId::from_token(token);
            match self.sources.get_mut(id.0) {
                Some(Source::Owned(owned)) => owned.on_event(readiness, woken),
                Some(Source::Foreign(foreign)) => {
                    foreign.on_event(readiness, woken);
                    self.settle(id);
                }
                None => {}
            }
        }
        count
    }

    /// A descriptor that is readable when an event waits to be collected, if there is one that stands for all.
    pub(crate) fn pollable(&self) -> Option<BorrowedFd<'_>> {
        self.selector.pollable()
    }
}

/// I/O objects of this crate.
impl Driver {
    /// Watches a descriptor from now on. `is_ready`: its first system calls are worth trying before an event has said so.
    ///
    /// # Errors
    /// `AlreadyExists` when it still has callbacks of [`Driver::set_callback`]; what else the kernel says.
    pub(crate) fn register(&mut self, fd: BorrowedFd<'_>, kind: Kind, is_ready: bool) -> io::Result<(SourceId, Discarded)> {
        let number = fd.as_raw_fd();
        let id = SourceId(self.sources.insert(Source::Owned(Owned::new(number, kind, is_ready))));
        if let Err(error) = self.selector.add_edge(fd, id.token()) {
            self.sources.remove(id.0);
            return Err(if error.kind() == io::ErrorKind::AlreadyExists { still_has_callbacks(number) } else { error });
        }
        let displaced = self.numbers.insert(number, id);
        Ok((id, Discarded(displaced.and_then(|id| self.sources.remove(id.0)))))
    }

    /// Forgets a descriptor. Must come before it is closed.
    pub(crate) fn deregister(&mut self, id: SourceId) -> Discarded {
        if let Some(Source::Owned(owned)) = self.sources.get(id.0) {
            self.selector.narrow(owned.number, id.token(), Interest::default());
            self.numbers.remove(&owned.number);
        }
        Discarded(self.sources.remove(id.0))
    }

    /// Whether the next system call in this direction may find something.
    pub(crate) fn is_ready(&self, id: SourceId, direction: Direction) -> bool {
        matches!(self.sources.get(id.0), Some(Source::Owned(owned)) if owned.side(direction).is_ready)
    }

    /// A system call found nothing: wait for the next event.
    pub(crate) fn found_nothing(&mut self, id: SourceId, direction: Direction) {
        if let Some(side) = self.owned_side(id, direction) {
            side.is_ready = false;
        }
    }

    /// A system call moved `len` bytes of the `asked` ones, which may tell that there are no more.
    pub(crate) fn moved(&mut self, id: SourceId, direction: Direction, len: usize, asked: usize) {
        if let Some(Source::Owned(owned)) = self.sources.get_mut(id.0) {
            owned.moved(direction, len, asked);
        }
    }

    /// The caller of a `poll_*` function waits. It takes the place of the one before. `waker` is exchanged for what is to be dropped after
    /// the borrow of the driver, here and below.
    pub(crate) fn wait_alone(&mut self, id: SourceId, direction: Direction, waker: &mut Waker) {
        if let Some(side) = self.owned_side(id, direction) {
            wait_queue::exchange(&mut side.poller, waker);
        }
    }

    /// The caller of a `&self` method waits, behind those who came before. `key` keeps its place.
    pub(crate) fn wait_in_line(&mut self, id: SourceId, direction: Direction, key: &mut Option<wait_queue::Key>, waker: &mut Waker) {
        if let Some(side) = self.owned_side(id, direction) {
            side.waiters.register(key, waker);
        }
    }

    /// The caller of a `&self` method no longer waits.
    #[must_use = "drop it after the borrow of the driver"]
    pub(crate) fn leave_line(&mut self, id: SourceId, direction: Direction, key: wait_queue::Key) -> Option<Waker> {
        self.owned_side(id, direction)?.waiters.remove(key)
    }

    fn owned_side(&mut self, id: SourceId, direction: Direction) -> Option<&mut OwnedSide> {
        match self.sources.get_mut(id.0) {
            Some(Source::Owned(owned)) => Some(owned.side_mut(direction)),
            _ => None,
        }
    }
}

/// Descriptors of the user's.
impl Driver {
    /// Wakes `waker` whenever the descriptor is ready, again and again for as long as it is. Returns the waker that had this place, and
    /// leaves in `discarded` the callbacks of a closed file that had this number; so also below.
    ///
    /// # Errors
    /// `AlreadyExists` when the descriptor belongs to an I/O object of this crate; what else the kernel says, `EPERM` for a regular file.
    pub(crate) fn set_callback(
        &mut self,
        fd: BorrowedFd<'_>,
        direction: Direction,
        waker: Waker,
        discarded: &mut Discarded,
    ) -> io::Result<Option<Waker>> {
        let id = self.watch(fd, direction, discarded)?;
        Ok(self.foreign(id).and_then(|foreign| foreign.side_mut(direction).callback.replace(waker)))
    }

    /// Takes the callback of a number away. `None` if it has none. The number may have been closed meanwhile.
    pub(crate) fn clear_callback(&mut self, number: RawFd, direction: Direction) -> Option<Waker> {
        let id = *self.numbers.get(&number)?;
        let waker = self.foreign(id)?.side_mut(direction).callback.take();
        self.settle(id);
        waker
    }

    /// A `sock_*` call waits for one event, behind those who came before. `wait` keeps its place.
    ///
    /// # Errors
    /// As for [`Driver::set_callback`].
    pub(crate) fn wait_foreign(
        &mut self,
        fd: BorrowedFd<'_>,
        direction: Direction,
        wait: &mut Option<ForeignWait>,
        waker: &mut Waker,
        discarded: &mut Discarded,
    ) -> io::Result<()> {
        let still_waiting = wait.filter(|wait| self.is_waiting(*wait));
        let id = match still_waiting {
            Some(wait) => wait.source,
            None => self.watch(fd, direction, discarded)?,
        };
        let mut key = still_waiting.map(|wait| wait.key);
        if let Some(foreign) = self.foreign(id) {
            foreign.side_mut(direction).waiters.register(&mut key, waker);
        }
        *wait = key.map(|key| ForeignWait { source: id, direction, key });
        Ok(())
    }

    /// Whether no event has come since [`Driver::wait_foreign`].
    pub(crate) fn is_waiting(&self, wait: ForeignWait) -> bool {
        match self.sources.get(wait.source.0) {
            Some(Source::Foreign(foreign)) => foreign.side(wait.direction).waiters.contains(wait.key),
            _ => false,
        }
    }

    /// A `sock_*` call no longer waits.
    #[must_use = "drop it after the borrow of the driver"]
    pub(crate) fn cancel_foreign(&mut self, wait: ForeignWait) -> Option<Waker> {
        let waker = self.foreign(wait.source)?.side_mut(wait.direction).waiters.remove(wait.key);
        self.settle(wait.source);
        waker
    }

    /// Has the kernel watch one more direction of a descriptor. It is told even if it should know: the number may be a new file's by now.
    fn watch(&mut self, fd: BorrowedFd<'_>, direction: Direction, discarded: &mut Discarded) -> io::Result<SourceId> {
        let number = fd.as_raw_fd();
        let id = *self.numbers.entry(number).or_insert_with(|| SourceId(self.sources.insert(Source::Foreign(Foreign::new(number)))));
        let Some(Source::Foreign(foreign)) = self.sources.get_mut(id.0) else {
            return Err(has_an_owner(number));
        };
        if !foreign.watched.is_none() {
            let interest = foreign.wanted().with(direction);
            if self.selector.modify_level(fd, id.token(), interest)? {
                foreign.watched = interest;
                return Ok(id);
            }
            *discarded = Discarded(Some(Source::Foreign(foreign.start_over())));
        }
        let interest = foreign.wanted().with(direction);
        let result = self.selector.add_level(fd, id.token(), interest);
        match result {
            Ok(()) => foreign.watched = interest,
            Err(_) => self.settle(id),
        }
        result.map(|()| id)
    }

    fn foreign(&mut self, id: SourceId) -> Option<&mut Foreign> {
        match self.sources.get_mut(id.0) {
            Some(Source::Foreign(foreign)) => Some(foreign),
            _ => None,
        }
    }

    /// Has the kernel watch a foreign descriptor no more than somebody wants to hear, and forgets one of which nobody does. What remained
    /// watched would end every wait at once, for as long as the descriptor is ready.
    fn settle(&mut self, id: SourceId) {
        let Some(foreign) = self.foreign(id) else {
            return;
        };
        let (number, wanted) = (foreign.number, foreign.wanted());
        if std::mem::replace(&mut foreign.watched, wanted) != wanted {
            self.selector.narrow(number, id.token(), wanted);
        }
        if wanted.is_none() {
            self.sources.remove(id.0);
            self.numbers.remove(&number);
        }
    }
}

impl SourceId {
    fn token(self) -> u64 {
        u64::from(self.0.generation) << 32 | u64::from(self.0.index)
    }

    fn from_token(token: u64) -> Self {
        Self(slots::Key { index: token as u32, generation: (token >> 32) as u32 })
    }
}

fn has_an_owner(number: RawFd) -> io::Error {
    let text =
        format!("descriptor {number} belongs to a miniloop I/O object: use its own methods, or duplicate the descriptor and watch that");
    io::Error::new(io::ErrorKind::AlreadyExists, text)
}

fn still_has_callbacks(number: RawFd) -> io::Error {
    let text = format!("descriptor {number} is watched already: remove its reader and its writer before an I/O object takes it over");
    io::Error::new(io::ErrorKind::AlreadyExists, text)
}

/// The token of the doorbell. No source has it: generations have fewer bits.
const DOORBELL: u64 = u64::MAX;

// Idle connections are counted in tens of thousands.
const _: () = assert!(size_of::<Source>() <= 160);

#[cfg(test)]
mod tests;
