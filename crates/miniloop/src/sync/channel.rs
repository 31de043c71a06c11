//! A bounded channel: many senders, one receiver, both of whom notice when the other side goes.
//!
//! Room is a number of permits. A sender that waits is given *room*, not rid of its value: the value goes into the channel when the sender
//! is polled, so a send that is cancelled has surely not been sent, and its room goes to the next. The receiver is alone, so nobody can
//! take its values away: one place for its waker is all that it needs.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fmt;
use std::mem;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};

use futures_core::{FusedFuture, FusedStream, Stream};

use super::error::{SendError, TryRecvError, TrySendError};
use super::line::{Desk, Line, WHAT, Waiting, Wakes};
use super::permits::{Granted, Permits};
use crate::engine::context::{self, Home};
use crate::engine::record::WaitsFor;
use crate::wait_queue::{exchange, wake_all};

/// Makes a channel with room for `capacity` values; none is taken for one. It costs memory for the values that are in it, not for its room.
///
/// ```
/// miniloop::run(async {
///     let (sender, mut receiver) = miniloop::sync::channel(2);
///     let producer = miniloop::spawn(async move {
///         for number in 0..5 {
///             sender.send(number).await.unwrap();
///         }
///     });
///     let mut sum = 0;
///     while let Some(number) = receiver.recv().await {
///         sum += number;
///     }
///     assert_eq!(sum, 10);
///     producer.await.unwrap();
/// })?;
/// # Ok::<(), miniloop::LoopError>(())
/// ```
#[doc(alias = "mpsc")]
#[doc(alias = "open_memory_channel")]
pub fn channel<T>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    let capacity = capacity.max(1);
    let channel = Rc::new(Channel {
        values: RefCell::new(VecDeque::new()),
        capacity,
        room: Permits::new(capacity),
        senders: Cell::new(1),
        is_closed: Cell::new(false),
        receiver: RefCell::new(None),
    });
    (Sender { channel: channel.clone() }, Receiver { channel, is_over: false })
}

struct Channel<T> {
    values: RefCell<VecDeque<T>>,
    capacity: usize,
    room: Permits,
    senders: Cell<usize>,
    /// By the receiver: nothing more comes in.
    is_closed: Cell<bool>,
    /// The receiver, waiting for a value.
    receiver: RefCell<Option<Waker>>,
}

impl<T> Channel<T> {
    /// Puts a value into the room that its sender has.
    fn push(&self, value: T) {
        self.values.borrow_mut().push_back(value);
        self.wake_receiver();
    }

    fn wake_receiver(&self) {
        let waker = self.receiver.borrow_mut().take();
        wake_all(waker);
    }

    fn try_recv(&self) -> Result<T, TryRecvError> {
        let value = self.values.borrow_mut().pop_front();
        let Some(value) = value else { return Err(if self.is_ended() { TryRecvError::Closed } else { TryRecvError::Empty }) };
        let mut wakes = Wakes::default();
        self.room.release(1, &mut wakes);
        wakes.wake();
        Ok(value)
    }

    /// Nothing more comes in.
    fn is_ended(&self) -> bool {
        self.senders.get() == 0 || self.is_closed.get()
    }

    fn close(&self, wakes: &mut Wakes) {
        self.is_closed.set(true);
        self.room.close(wakes);
    }

    fn statistics(&self) -> ChannelStatistics {
        ChannelStatistics {
            len: self.values.borrow().len(),
            capacity: self.capacity,
            senders: self.senders.get(),
            senders_waiting: self.room.line().len(),
            is_receiver_waiting: self.receiver.borrow().is_some(),
            is_closed: self.is_closed.get(),
        }
    }
}

/// What a [`channel`] is like at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChannelStatistics {
    /// Values in the channel.
    pub len: usize,
    /// How many there is room for.
    pub capacity: usize,
    /// How many senders there are.
    pub senders: usize,
    /// How many of them wait for room.
    pub senders_waiting: usize,
    /// The receiver waits for a value.
    pub is_receiver_waiting: bool,
    /// The receiver has closed it, or has gone.
    pub is_closed: bool,
}

/// The side of a [`channel`] that values go into. The channel ends when the last clone is dropped.
#[doc(alias = "MemorySendChannel")]
pub struct Sender<T> {
    channel: Rc<Channel<T>>,
}

impl<T> Sender<T> {
    /// Sends a value, as soon as there is room and nobody waits longer for it.
    ///
    /// # Errors
    /// [`SendError`] with the value, when the receiver has gone or closed the channel.
    ///
    /// # Cancellation
    /// Nothing has been sent; the value goes with the future. Room that it had been given goes to the next.
    pub fn send(&self, value: T) -> impl FusedFuture<Output = Result<(), SendError<T>>> + Unpin {
        Waiting::new(Send { channel: &self.channel, value: Some(value) })
    }

    /// Sends a value if there is room and nobody waits for it.
    ///
    /// # Errors
    /// Why not, with the value.
    #[doc(alias = "send_nowait")]
    pub fn try_send(&self, value: T) -> Result<(), TrySendError<T>> {
        if self.is_closed() {
            return Err(TrySendError::Closed(value));
        }
        if !self.channel.room.try_take(1) {
            return Err(TrySendError::Full(value));
        }
        self.channel.push(value);
        Ok(())
    }

    /// Whether the receiver has gone or closed the channel.
    pub fn is_closed(&self) -> bool {
        self.channel.is_closed.get()
    }

    /// What the channel is like now.
    pub fn statistics(&self) -> ChannelStatistics {
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
            self.channel.wake_receiver();
        }
    }
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender").field("statistics", &self.statistics()).finish()
    }
}

struct Send<'a, T> {
    channel: &'a Channel<T>,
    /// `None` once it is sent or given back.
    value: Option<T>,
}

impl<T> Send<'_, T> {
    fn push(&mut self) -> Option<Result<(), SendError<T>>> {
        let value = self.value.take()?;
        self.channel.push(value);
        Some(Ok(()))
    }

    fn refuse(&mut self) -> Option<Result<(), SendError<T>>> {
        self.value.take().map(|value| Err(SendError(value)))
    }
}

impl<T> Desk for Send<'_, T> {
    type Request = usize;
    type Grant = Granted;
    type Output = Result<(), SendError<T>>;
    const WAITS_FOR: WaitsFor = &"room in a channel";

    fn line(&self) -> &Line<Granted, usize> {
        self.channel.room.line()
    }

    fn request(&self) -> usize {
        1
    }

    fn try_now(&mut self) -> Option<Self::Output> {
        match self.channel.is_closed.get() {
            true => self.refuse(),
            false if self.channel.room.try_take(1) => self.push(),
            false => None,
        }
    }

    fn redeem(&mut self, granted: Granted) -> Option<Self::Output> {
        match granted {
            Granted::Permits if !self.channel.is_closed.get() => self.push(),
            _ => self.refuse(),
        }
    }

    fn pass_on(&self, granted: Option<Granted>) {
        self.channel.room.pass_on(1, granted);
    }
}

/// The side of a [`channel`] that values come out of: with [`recv`](Receiver::recv), or as a [`Stream`].
///
/// Dropping it drops what is in the channel; senders get their values back.
#[doc(alias = "MemoryReceiveChannel")]
pub struct Receiver<T> {
    channel: Rc<Channel<T>>,
    /// As a stream it has said so.
    is_over: bool,
}

impl<T> Receiver<T> {
    /// The next value; `None` when all senders have gone, or the channel was [closed](Receiver::close), and it is empty.
    ///
    /// # Cancellation
    /// Loses nothing: what has come in is still there.
    pub fn recv(&mut self) -> impl FusedFuture<Output = Option<T>> + Unpin {
        Recv { receiver: self, home: Home::default(), is_over: false }
    }

    /// The next value, if there is one now.
    ///
    /// # Errors
    /// Why there is none.
    #[doc(alias = "receive_nowait")]
    pub fn try_recv(&mut self) -> Result<T, TryRecvError> {
        self.channel.try_recv()
    }

    /// Lets nothing more in. Senders get their values back, what is in the channel can still be received.
    pub fn close(&mut self) {
        let mut wakes = Wakes::default();
        self.channel.close(&mut wakes);
        wakes.wake();
    }

    /// What the channel is like now.
    pub fn statistics(&self) -> ChannelStatistics {
        self.channel.statistics()
    }

    fn poll_recv(&mut self, cx: &mut Context<'_>, home: &Home) -> Poll<Option<T>> {
        ready!(context::poll_budget(cx));
        let mut received = self.try_recv();
        if matches!(received, Err(TryRecvError::Empty)) {
            home.check(WHAT);
            // Foreign code, which may send: so look again before waiting.
            let mut waker = cx.waker().clone();
            received = self.try_recv();
            if matches!(received, Err(TryRecvError::Empty)) {
                exchange(&mut self.channel.receiver.borrow_mut(), &mut waker);
                drop(waker);
                context::waits_for(WAITS_FOR);
                return Poll::Pending;
            }
        }
        context::spend_operation();
        Poll::Ready(received.ok())
    }

    /// Waits no more.
    fn leave(&self) {
        let waker = self.channel.receiver.borrow_mut().take();
        drop(waker);
    }
}

impl<T> Stream for Receiver<T> {
    type Item = T;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let received = ready!(self.poll_recv(cx, &Home::default()));
        self.is_over = received.is_none();
        Poll::Ready(received)
    }
}

impl<T> FusedStream for Receiver<T> {
    fn is_terminated(&self) -> bool {
        self.is_over
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        let mut wakes = Wakes::default();
        self.channel.close(&mut wakes);
        // They are dropped last: it may be foreign code that panics.
        let _values = mem::take(&mut *self.channel.values.borrow_mut());
        self.leave();
        wakes.wake();
    }
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver").field("statistics", &self.statistics()).finish()
    }
}

struct Recv<'a, T> {
    receiver: &'a mut Receiver<T>,
    home: Home,
    is_over: bool,
}

impl<T> Future for Recv<'_, T> {
    type Output = Option<T>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let this = self.get_mut();
        assert!(!this.is_over, "a future that waited for {WAITS_FOR} was polled after it was done");
        let received = ready!(this.receiver.poll_recv(cx, &this.home));
        this.is_over = true;
        Poll::Ready(received)
    }
}

impl<T> FusedFuture for Recv<'_, T> {
    fn is_terminated(&self) -> bool {
        self.is_over
    }
}

impl<T> Drop for Recv<'_, T> {
    fn drop(&mut self) {
        self.receiver.leave();
    }
}

const WAITS_FOR: WaitsFor = &"a value of a channel";
