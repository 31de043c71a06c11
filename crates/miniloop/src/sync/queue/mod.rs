//! A queue of work, shared by those who put and those who get.
//!
//! Two numbers of permits and a buffer: places for those who put, items for those who get. Who waits is given a place or *one of the
//! items*, which stays in the buffer until its getter is polled. So an item is lost with nobody: when that getter goes, there is one more
//! for the next, in the order that the queue is for.
//!
//! Cost: a put and a get are one borrow and a few cells each, with priorities the logarithm of the length besides.

mod items;

use std::cell::{Cell, RefCell};
use std::cmp::Ordering;
use std::collections::VecDeque;
use std::fmt;
use std::iter;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;

use futures_core::FusedFuture;

use self::items::Items;
use super::error::{SendError, TryRecvError, TrySendError};
use super::line::{Desk, Line, Waiting, Wakes};
use super::permits::{Granted, Permits};
use crate::engine::record::WaitsFor;

/// A queue for many producers and many consumers. Clones are the same queue.
///
/// Both sides are served in the order in which they came. Where there is one consumer, a [`channel`](super::channel()) is simpler: it ends
/// by itself when the other side goes.
///
/// ```
/// use miniloop::sync::Queue;
///
/// miniloop::run(async {
///     let jobs = Queue::new(10);
///     let workers = [1, 2].map(|_| {
///         let jobs = jobs.clone();
///         miniloop::spawn(async move {
///             let mut sum = 0;
///             while let Some(number) = jobs.get().await {
///                 sum += number;
///                 jobs.task_done().unwrap();
///             }
///             sum
///         })
///     });
///     for number in 1..=20 {
///         jobs.put(number).await.unwrap();
///     }
///     jobs.join().await;
///     jobs.close();
///     let [one, two] = workers;
///     assert_eq!(one.await.unwrap() + two.await.unwrap(), 210);
/// })?;
/// # Ok::<(), miniloop::LoopError>(())
/// ```
pub struct Queue<T> {
    state: Rc<State<T>>,
}

struct State<T> {
    /// Borrowed while items are compared, which is foreign code: what that may ask for stands in cells of its own.
    items: RefCell<Items<T>>,
    len: Cell<usize>,
    /// `None`: as much as memory holds.
    capacity: Option<usize>,
    places: Permits,
    getters: Permits,
    /// Put, and not yet said to be done.
    unfinished: Cell<usize>,
    joiners: Line<()>,
    is_closed: Cell<bool>,
}

impl<T> Queue<T> {
    /// First in, first out. `capacity` is how many items it takes, `None` any number; 0 is taken for 1.
    pub fn new(capacity: impl Into<Option<usize>>) -> Queue<T> {
        Queue::with(capacity.into(), Items::FirstInFirstOut(VecDeque::new()))
    }

    /// Last in, first out.
    ///
    /// ```
    /// # use miniloop::sync::Queue;
    /// # miniloop::run(async {
    /// let stack = Queue::lifo(None);
    /// stack.put("below").await.unwrap();
    /// stack.put("on top").await.unwrap();
    /// assert_eq!(stack.get().await, Some("on top"));
    /// # }).unwrap();
    /// ```
    #[doc(alias = "LifoQueue")]
    pub fn lifo(capacity: impl Into<Option<usize>>) -> Queue<T> {
        Queue::with(capacity.into(), Items::LastInFirstOut(Vec::new()))
    }

    /// The smallest first, and of equal ones that which came first.
    ///
    /// ```
    /// # use miniloop::sync::Queue;
    /// # miniloop::run(async {
    /// let jobs = Queue::priority(None);
    /// jobs.put((2, "later")).await.unwrap();
    /// jobs.put((1, "soon")).await.unwrap();
    /// assert_eq!(jobs.get().await, Some((1, "soon")));
    /// # }).unwrap();
    /// ```
    ///
    /// # Panics
    /// Putting and getting panic when comparing does, and when comparing puts into this queue or gets from it.
    #[doc(alias = "PriorityQueue")]
    pub fn priority(capacity: impl Into<Option<usize>>) -> Queue<T>
    where
        T: Ord,
    {
        Queue::with(capacity.into(), Items::smallest_first(T::cmp))
    }

    fn with(capacity: Option<usize>, items: Items<T>) -> Queue<T> {
        let capacity = capacity.map(|capacity| capacity.max(1));
        let state = State {
            items: RefCell::new(items),
            len: Cell::new(0),
            capacity,
            places: Permits::new(capacity.unwrap_or(usize::MAX)),
            getters: Permits::new(0),
            unfinished: Cell::new(0),
            joiners: Line::new(),
            is_closed: Cell::new(false),
        };
        Queue { state: Rc::new(state) }
    }

    /// Puts an item in, as soon as there is a place and nobody waits longer for it.
    ///
    /// # Errors
    /// [`SendError`] with the item, when the queue is closed.
    ///
    /// # Cancellation
    /// Nothing has been put in; the item goes with the future. A place that it had been given goes to the next.
    pub fn put(&self, item: T) -> impl FusedFuture<Output = Result<(), SendError<T>>> + Unpin {
        Waiting::new(Put { state: &self.state, item: Some(item) })
    }

    /// Puts an item in if there is a place and nobody waits for it.
    ///
    /// # Errors
    /// Why not, with the item.
    #[doc(alias = "put_nowait")]
    pub fn try_put(&self, item: T) -> Result<(), TrySendError<T>> {
        if self.is_closed() {
            return Err(TrySendError::Closed(item));
        }
        if !self.state.places.try_take(1) {
            return Err(TrySendError::Full(item));
        }
        self.state.insert(item);
        Ok(())
    }

    /// The next item, as soon as there is one and nobody waits longer for it; `None` when the queue is closed and empty.
    ///
    /// # Cancellation
    /// Loses no item: one that it had been given goes to the next, or stays.
    pub fn get(&self) -> impl FusedFuture<Output = Option<T>> + Unpin {
        Waiting::new(Get { state: &self.state })
    }

    /// The next item, if there is one that is not for somebody who waits.
    ///
    /// # Errors
    /// Why there is none.
    #[doc(alias = "get_nowait")]
    pub fn try_get(&self) -> Result<T, TryRecvError> {
        match (Get { state: &self.state }).try_now() {
            Some(item) => item.ok_or(TryRecvError::Closed),
            None => Err(TryRecvError::Empty),
        }
    }

    /// To be told, once for each item, when the work that it stands for is done: [`join`](Queue::join) waits for that.
    ///
    /// # Errors
    /// [`TaskDoneError`] when it is told more often than items were put in.
    pub fn task_done(&self) -> Result<(), TaskDoneError> {
        if self.state.unfinished.get() == 0 {
            return Err(TaskDoneError);
        }
        let mut wakes = Wakes::default();
        self.state.count_done(1, &mut wakes);
        wakes.wake();
        Ok(())
    }

    /// Waits until [`task_done`](Queue::task_done) has been told for every item that was put in, not at all if there is none.
    ///
    /// # Cancellation
    /// Leaves no trace.
    pub fn join(&self) -> impl FusedFuture<Output = ()> + Unpin {
        Waiting::new(Join { state: &self.state })
    }

    /// Ends the queue: puts fail from now on, also those that wait; what is in it can still be got, after that gets give `None`.
    #[doc(alias = "shutdown")]
    pub fn close(&self) {
        let mut wakes = Wakes::default();
        self.state.close(&mut wakes);
        wakes.wake();
    }

    /// Ends the queue and takes out what is in it, in its order. These items count as done.
    #[doc(alias = "shutdown")]
    pub fn close_now(&self) -> Vec<T> {
        let state = &self.state;
        let mut items = state.items.try_borrow_mut().expect(COMPARING);
        let mut taken = items.take();
        drop(items);
        let len = state.len.take();
        let mut wakes = Wakes::default();
        state.close(&mut wakes);
        state.count_done(len, &mut wakes);
        wakes.wake();
        iter::from_fn(|| taken.pop()).collect()
    }

    /// Whether it was closed.
    pub fn is_closed(&self) -> bool {
        self.state.is_closed.get()
    }

    /// How many items are in it, those included that belong to somebody who waited.
    #[doc(alias = "qsize")]
    pub fn len(&self) -> usize {
        self.state.len.get()
    }

    /// Whether nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What it is like now.
    pub fn statistics(&self) -> QueueStatistics {
        let state = &self.state;
        QueueStatistics {
            len: state.len.get(),
            capacity: state.capacity,
            unfinished: state.unfinished.get(),
            putters_waiting: state.places.line().len(),
            getters_waiting: state.getters.line().len(),
            joiners_waiting: state.joiners.len(),
            is_closed: state.is_closed.get(),
        }
    }
}

impl<T> Clone for Queue<T> {
    fn clone(&self) -> Queue<T> {
        Queue { state: self.state.clone() }
    }
}

impl<T> fmt::Debug for Queue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue").field("statistics", &self.statistics()).finish()
    }
}

/// What a [`Queue`] is like at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueueStatistics {
    /// Items in it.
    pub len: usize,
    /// How many it takes.
    pub capacity: Option<usize>,
    /// Items that were put in and not yet said to be done.
    pub unfinished: usize,
    /// How many wait for a place.
    pub putters_waiting: usize,
    /// How many wait for an item.
    pub getters_waiting: usize,
    /// How many wait until all is done.
    pub joiners_waiting: usize,
    /// It was closed.
    pub is_closed: bool,
}

/// [`Queue::task_done`] was called more often than items were put in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskDoneError;

impl fmt::Display for TaskDoneError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("`task_done` was called more often than items were put into the queue")
    }
}

impl std::error::Error for TaskDoneError {}

impl<T> State<T> {
    /// Puts an item into the place that its putter has.
    fn insert(&self, item: T) {
        self.change(&self.places, |items| items.push(item));
    }

    /// Takes the item that its getter has. `None` when all were taken out meanwhile, by [`Queue::close_now`].
    fn take(&self) -> Option<T> {
        self.change(&self.getters, Items::pop)
    }

    /// Uses a permit of `permits` to change what is in the queue. Comparing may panic, and what is counted must be what is in there all the
    /// same: so the length says what has happened.
    fn change<R>(&self, permits: &Permits, change: impl FnOnce(&mut Items<T>) -> R) -> R {
        let mut wakes = Wakes::default();
        let Ok(mut items) = self.items.try_borrow_mut() else {
            permits.release(1, &mut wakes);
            wakes.wake();
            panic!("{COMPARING}");
        };
        let len_before = items.len();
        let result = catch_unwind(AssertUnwindSafe(|| change(&mut items)));
        let len = items.len();
        drop(items);
        self.len.set(len);
        match len.cmp(&len_before) {
            Ordering::Greater => {
                self.unfinished.set(self.unfinished.get() + 1);
                self.getters.release(1, &mut wakes);
            }
            Ordering::Less => self.places.release(1, &mut wakes),
            Ordering::Equal => permits.release(1, &mut wakes),
        }
        if self.is_closed.get() && len == 0 {
            self.getters.close(&mut wakes);
        }
        if result.is_err() && len < len_before {
            // The panic has taken it along: nobody will say that it is done.
            self.count_done(1, &mut wakes);
        }
        wakes.wake();
        result.unwrap_or_else(|payload| resume_unwind(payload))
    }

    fn close(&self, wakes: &mut Wakes) {
        self.is_closed.set(true);
        self.places.close(wakes);
        // What is in there is for those who have been given it, or for those who come; whoever waits is told when the last has been taken.
        if self.len.get() == 0 {
            self.getters.close(wakes);
        }
    }

    /// `count` items are done.
    fn count_done(&self, count: usize, wakes: &mut Wakes) {
        self.unfinished.set(self.unfinished.get().saturating_sub(count));
        if self.unfinished.get() == 0 {
            self.joiners.grant_all(|| (), wakes);
        }
    }
}

struct Put<'a, T> {
    state: &'a State<T>,
    /// `None` once it is in or given back.
    item: Option<T>,
}

impl<T> Put<'_, T> {
    fn insert(&mut self) -> Option<Result<(), SendError<T>>> {
        self.state.insert(self.item.take()?);
        Some(Ok(()))
    }

    fn refuse(&mut self) -> Option<Result<(), SendError<T>>> {
        self.item.take().map(|item| Err(SendError(item)))
    }
}

impl<T> Desk for Put<'_, T> {
    type Request = usize;
    type Grant = Granted;
    type Output = Result<(), SendError<T>>;
    const WAITS_FOR: WaitsFor = &"a place in a queue";

    fn line(&self) -> &Line<Granted, usize> {
        self.state.places.line()
    }

    fn request(&self) -> usize {
        1
    }

    fn try_now(&mut self) -> Option<Self::Output> {
        match self.state.is_closed.get() {
            true => self.refuse(),
            false if self.state.places.try_take(1) => self.insert(),
            false => None,
        }
    }

    fn redeem(&mut self, granted: Granted) -> Option<Self::Output> {
        match granted {
            Granted::Permits if !self.state.is_closed.get() => self.insert(),
            _ => self.refuse(),
        }
    }

    fn pass_on(&self, granted: Option<Granted>) {
        self.state.places.pass_on(1, granted);
    }
}

struct Get<'a, T> {
    state: &'a State<T>,
}

impl<T> Desk for Get<'_, T> {
    type Request = usize;
    type Grant = Granted;
    type Output = Option<T>;
    const WAITS_FOR: WaitsFor = &"an item of a queue";

    fn line(&self) -> &Line<Granted, usize> {
        self.state.getters.line()
    }

    fn request(&self) -> usize {
        1
    }

    fn try_now(&mut self) -> Option<Option<T>> {
        if self.state.getters.try_take(1) {
            return Some(self.state.take());
        }
        (self.state.is_closed.get() && self.state.len.get() == 0).then_some(None)
    }

    fn redeem(&mut self, granted: Granted) -> Option<Option<T>> {
        match granted {
            Granted::Permits => Some(self.state.take()),
            Granted::Closed => Some(None),
        }
    }

    fn pass_on(&self, granted: Option<Granted>) {
        self.state.getters.pass_on(1, granted);
    }
}

struct Join<'a, T> {
    state: &'a State<T>,
}

impl<T> Desk for Join<'_, T> {
    type Request = ();
    type Grant = ();
    type Output = ();
    const WAITS_FOR: WaitsFor = &"the work of a queue to be done";

    fn line(&self) -> &Line<()> {
        &self.state.joiners
    }

    fn request(&self) {}

    fn try_now(&mut self) -> Option<()> {
        (self.state.unfinished.get() == 0).then_some(())
    }

    fn redeem(&mut self, (): ()) -> Option<()> {
        Some(())
    }

    fn pass_on(&self, _: Option<()>) {}
}

const COMPARING: &str = "comparing the items of a queue must not put into it or get from it";
