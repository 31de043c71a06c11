//! Every value for everybody: a ring of the last values, and receivers who each read at their own pace.
//!
//! Sending never waits. Who is too slow loses the oldest values and is told how many: lag is a result, not an error that ends things.
//! A value leaves memory when the last receiver has read it, who gets it itself; the others get clones, made while nothing is borrowed.
//!
//! ```text
//!              overwritten │ read by some               │ not sent yet
//! sequence:    .. 41 42 43 │ 44 45 46 47 48 49 50 51    │ 52 ..
//!                 ^        │ ^ first        ^            │ ^ next
//!                 a receiver that has       another receiver
//!                 lost 2                    with 3 to read
//! ```
//!
//! Cost: a send wakes those who wait, a receive clones the value.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fmt;
use std::rc::Rc;

use futures_core::FusedFuture;

use super::error::SendError;
use super::line::{Desk, Line, Waiting, Wakes};
use crate::engine::record::WaitsFor;

/// Makes a channel in which every receiver gets every value, and which keeps the last `capacity` of them for those who are slow; none is
/// taken for one.
///
/// ```
/// use miniloop::sync::broadcast::{self, RecvError};
///
/// miniloop::run(async {
///     let (sender, mut slow) = broadcast::broadcast(2);
///     let mut fast = sender.subscribe();
///     for number in 1..=3 {
///         sender.send(number).unwrap();
///         assert_eq!(fast.recv().await, Ok(number));
///     }
///     assert_eq!(slow.recv().await, Err(RecvError::Lagged(1)));
///     assert_eq!(slow.recv().await, Ok(2));
///     drop(sender);
///     assert_eq!(slow.recv().await, Ok(3));
///     assert_eq!(slow.recv().await, Err(RecvError::Closed));
/// })?;
/// # Ok::<(), miniloop::LoopError>(())
/// ```
pub fn broadcast<T>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    let channel = Rc::new(Channel {
        ring: RefCell::new(VecDeque::new()),
        first: Cell::new(0),
        capacity: capacity.max(1),
        senders: Cell::new(1),
        receivers: Cell::new(0),
        line: Line::new(),
    });
    let receiver = Receiver::new(&channel);
    (Sender { channel }, receiver)
}

struct Channel<T> {
    ring: RefCell<VecDeque<Slot<T>>>,
    /// The sequence number of the first in the ring.
    first: Cell<u64>,
    capacity: usize,
    senders: Cell<usize>,
    receivers: Cell<usize>,
    line: Line<()>,
}

struct Slot<T> {
    value: Rc<T>,
    /// How many have not read it. Who has read one has read or lost all before it, so this is 0 at the front first.
    unread: usize,
}

impl<T> Channel<T> {
    /// The sequence number of the next value.
    fn next(&self) -> u64 {
        self.first.get() + self.ring.borrow().len() as u64
    }

    fn wake_all(&self) {
        let mut wakes = Wakes::default();
        self.line.grant_all(|| (), &mut wakes);
        wakes.wake();
    }

    /// One receiver less will read what stands from `position` on. Returns what nobody will read, to be dropped with nothing borrowed.
    fn read_from(&self, position: u64, count: usize) -> Vec<Slot<T>> {
        let mut ring = self.ring.borrow_mut();
        let start = usize::try_from(position - self.first.get()).unwrap_or(usize::MAX);
        ring.iter_mut().skip(start).take(count).for_each(|slot| slot.unread -= 1);
        let read = ring.iter().take_while(|slot| slot.unread == 0).count();
        self.first.set(self.first.get() + read as u64);
        ring.drain(..read).collect()
    }

    fn statistics(&self) -> BroadcastStatistics {
        BroadcastStatistics {
            len: self.ring.borrow().len(),
            capacity: self.capacity,
            senders: self.senders.get(),
            receivers: self.receivers.get(),
            waiting: self.line.len(),
        }
    }
}

/// What a [`broadcast`] is like at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BroadcastStatistics {
    /// Values that somebody has still to read.
    pub len: usize,
    /// How many of them are kept.
    pub capacity: usize,
    /// How many senders there are.
    pub senders: usize,
    /// How many receivers there are.
    pub receivers: usize,
    /// How many of them wait for a value.
    pub waiting: usize,
}

/// The side of a [`broadcast`] that values go into. The channel ends when the last clone is dropped.
pub struct Sender<T> {
    channel: Rc<Channel<T>>,
}

impl<T> Sender<T> {
    /// Sends a value to all receivers that there are now, and returns how many that is. Never waits: when the ring is full its oldest value
    /// goes, and whoever has not read it will be told.
    ///
    /// # Errors
    /// [`SendError`] with the value, when there is no receiver.
    pub fn send(&self, value: T) -> Result<usize, SendError<T>> {
        let channel = &self.channel;
        let unread = channel.receivers.get();
        if unread == 0 {
            return Err(SendError(value));
        }
        let mut ring = channel.ring.borrow_mut();
        let _overwritten_dropped_last = if ring.len() == channel.capacity {
            channel.first.set(channel.first.get() + 1);
            ring.pop_front()
        } else {
            None
        };
        ring.push_back(Slot { value: Rc::new(value), unread });
        drop(ring);
        channel.wake_all();
        Ok(unread)
    }

    /// A receiver of what is sent from now on.
    pub fn subscribe(&self) -> Receiver<T> {
        Receiver::new(&self.channel)
    }

    /// What the channel is like now.
    pub fn statistics(&self) -> BroadcastStatistics {
        self.channel.statistics()
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Sender<T> {
        self.channel.senders.set(self.channel.senders.get() + 1);
        Sender { channel: self.channel.clone() }
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        let senders = self.channel.senders.get() - 1;
        self.channel.senders.set(senders);
        if senders == 0 {
            self.channel.wake_all();
        }
    }
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender").field("statistics", &self.statistics()).finish()
    }
}

/// A side of a [`broadcast`] that every value comes out of.
pub struct Receiver<T> {
    channel: Rc<Channel<T>>,
    /// The sequence number of what it reads next.
    position: u64,
}

impl<T> Receiver<T> {
    fn new(channel: &Rc<Channel<T>>) -> Receiver<T> {
        channel.receivers.set(channel.receivers.get() + 1);
        Receiver { channel: channel.clone(), position: channel.next() }
    }

    /// A receiver of what is sent from now on.
    pub fn resubscribe(&self) -> Receiver<T> {
        Receiver::new(&self.channel)
    }

    /// How many values it has still to read, those included that it has lost.
    pub fn len(&self) -> usize {
        usize::try_from(self.channel.next() - self.position).unwrap_or(usize::MAX)
    }

    /// Whether it has read everything.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What the channel is like now.
    pub fn statistics(&self) -> BroadcastStatistics {
        self.channel.statistics()
    }

    /// What it has lost, if anything; it is told once.
    fn take_lag(&mut self) -> Option<u64> {
        let first = self.channel.first.get();
        let lost = first.checked_sub(self.position).filter(|lost| *lost > 0)?;
        self.position = first;
        Some(lost)
    }
}

impl<T: Clone> Receiver<T> {
    /// The next value.
    ///
    /// # Errors
    /// [`RecvError::Lagged`] with the number of values that were lost since the last one, after which it goes on with the oldest that is
    /// kept; [`RecvError::Closed`] when all senders have gone and everything is read.
    ///
    /// # Cancellation
    /// Loses nothing.
    pub fn recv(&mut self) -> impl FusedFuture<Output = Result<T, RecvError>> + Unpin {
        Waiting::new(Recv { receiver: self })
    }

    /// The next value, if there is one now.
    ///
    /// # Errors
    /// As [`recv`](Receiver::recv), and [`TryRecvError::Empty`].
    pub fn try_recv(&mut self) -> Result<T, TryRecvError> {
        if let Some(lost) = self.take_lag() {
            return Err(TryRecvError::Lagged(lost));
        }
        let channel = &self.channel;
        let index = usize::try_from(self.position - channel.first.get()).unwrap_or(usize::MAX);
        let value = channel.ring.borrow().get(index).map(|slot| slot.value.clone());
        let Some(value) = value else {
            return Err(if channel.senders.get() == 0 { TryRecvError::Closed } else { TryRecvError::Empty });
        };
        let read = channel.read_from(self.position, 1);
        self.position += 1;
        drop(read);
        Ok(Rc::try_unwrap(value).unwrap_or_else(|value| T::clone(&value)))
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        self.take_lag();
        self.channel.receivers.set(self.channel.receivers.get() - 1);
        drop(self.channel.read_from(self.position, usize::MAX));
    }
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver").field("len", &self.len()).field("statistics", &self.statistics()).finish()
    }
}

/// Why [`Receiver::recv`] gives no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecvError {
    /// So many values were overwritten before this receiver read them. It goes on with the oldest that is kept.
    Lagged(u64),
    /// All senders have gone, and everything is read.
    Closed,
}

/// Why [`Receiver::try_recv`] gives no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TryRecvError {
    /// It has read everything.
    Empty,
    /// So many values were overwritten before this receiver read them. It goes on with the oldest that is kept.
    Lagged(u64),
    /// All senders have gone, and everything is read.
    Closed,
}

impl fmt::Display for RecvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        TryRecvError::from(*self).fmt(f)
    }
}

impl fmt::Display for TryRecvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TryRecvError::Empty => f.write_str("there is no value now; `recv` waits for one"),
            TryRecvError::Lagged(count) => write!(f, "this receiver was too slow and has lost {count} values"),
            TryRecvError::Closed => f.write_str("there will be no more values: all senders have gone"),
        }
    }
}

impl std::error::Error for RecvError {}

impl std::error::Error for TryRecvError {}

impl From<RecvError> for TryRecvError {
    fn from(error: RecvError) -> TryRecvError {
        match error {
            RecvError::Lagged(count) => TryRecvError::Lagged(count),
            RecvError::Closed => TryRecvError::Closed,
        }
    }
}

struct Recv<'a, T> {
    receiver: &'a mut Receiver<T>,
}

impl<T: Clone> Desk for Recv<'_, T> {
    type Request = ();
    type Grant = ();
    type Output = Result<T, RecvError>;
    const WAITS_FOR: WaitsFor = &"a value of a broadcast";

    fn line(&self) -> &Line<()> {
        &self.receiver.channel.line
    }

    fn request(&self) {}

    fn try_now(&mut self) -> Option<Result<T, RecvError>> {
        match self.receiver.try_recv() {
            Ok(value) => Some(Ok(value)),
            Err(TryRecvError::Lagged(count)) => Some(Err(RecvError::Lagged(count))),
            Err(TryRecvError::Closed) => Some(Err(RecvError::Closed)),
            Err(TryRecvError::Empty) => None,
        }
    }

    fn redeem(&mut self, (): ()) -> Option<Result<T, RecvError>> {
        self.try_now()
    }

    /// The others have been told themselves.
    fn pass_on(&self, _: Option<()>) {}
}
