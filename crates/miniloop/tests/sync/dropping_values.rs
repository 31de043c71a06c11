//! What carries values, with every waiting operation dropped at every moment (see `dropping.rs`).

use std::cell::{Cell, RefCell};

use miniloop::sync::{Queue, broadcast, channel, watch};

use crate::dropping::{STEPS_MAX, Scene, WAITERS, Wait, check, sum};

/// Those who put wait for places: a full queue or channel, from which items are taken.
struct Places<P: Fn(usize) -> Wait<'static>, T: Fn() -> Option<usize>, W: Fn() -> (usize, usize)> {
    put: P,
    take: T,
    /// How many are in there, and how many wait.
    count: W,
    taken: RefCell<Vec<usize>>,
}

impl<P: Fn(usize) -> Wait<'static>, T: Fn() -> Option<usize>, W: Fn() -> (usize, usize)> Scene for Places<P, T, W> {
    fn wait(&self, who: usize) -> Wait<'_> {
        (self.put)(who)
    }

    fn give(&self) {
        self.taken.borrow_mut().extend((self.take)());
    }

    fn check_settled(&self, _: &[usize; WAITERS], waiting: usize) {
        let (len, counted) = (self.count)();
        assert_eq!(counted, waiting);
        assert!(len <= 1 && (waiting == 0 || len == 1), "there is room, and {waiting} wait for it");
    }

    fn check_nobody(&self, got: &[usize; WAITERS]) {
        assert_eq!((self.count)().1, 0);
        self.taken.borrow_mut().extend((self.take)());
        for (who, got) in got.iter().enumerate() {
            assert_eq!(self.taken.borrow().iter().filter(|item| **item == who).count(), *got, "what {who} has put");
        }
    }
}

const FIRST: usize = 9;

#[test]
fn putting_into_a_queue_is_dropped_at_every_moment_c125() {
    for make in [|| Queue::new(1), || Queue::lifo(1), || Queue::priority(1)] {
        check(|| {
            let queue = make();
            queue.try_put(FIRST).unwrap();
            let (putting, counted) = (queue.clone(), queue.clone());
            Places {
                put: move |who| {
                    let queue = putting.clone();
                    Box::pin(async move { queue.put(who).await.unwrap() })
                },
                take: move || queue.try_get().ok(),
                count: move || (counted.len(), counted.statistics().putters_waiting),
                taken: RefCell::default(),
            }
        });
    }
}

#[test]
fn sending_into_a_channel_is_dropped_at_every_moment() {
    check(|| {
        let (sender, receiver) = channel(1);
        let receiver = RefCell::new(receiver);
        sender.try_send(FIRST).unwrap();
        let counted = sender.clone();
        Places {
            put: move |who| {
                let sender = sender.clone();
                Box::pin(async move { sender.send(who).await.unwrap() })
            },
            take: move || receiver.borrow_mut().try_recv().ok(),
            count: move || (counted.statistics().len, counted.statistics().senders_waiting),
            taken: RefCell::default(),
        }
    });
}

/// Those who get wait for items.
struct Items {
    queue: Queue<usize>,
    given: Cell<usize>,
    got: RefCell<Vec<usize>>,
}

impl Scene for Items {
    fn wait(&self, _: usize) -> Wait<'_> {
        Box::pin(async {
            let item = self.queue.get().await.unwrap();
            self.got.borrow_mut().push(item);
        })
    }

    fn give(&self) {
        self.queue.try_put(self.given.get()).unwrap();
        self.given.set(self.given.get() + 1);
    }

    fn check_settled(&self, got: &[usize; WAITERS], waiting: usize) {
        let statistics = self.queue.statistics();
        assert_eq!((statistics.len, statistics.getters_waiting), (self.given.get() - sum(got), waiting));
        assert!(waiting == 0 || statistics.len == 0, "there is an item, and {waiting} wait for one");
    }

    fn check_nobody(&self, _: &[usize; WAITERS]) {
        while let Ok(item) = self.queue.try_get() {
            self.got.borrow_mut().push(item);
        }
        self.got.borrow_mut().sort_unstable();
        assert_eq!(*self.got.borrow(), (0..self.given.get()).collect::<Vec<_>>());
        (0..self.given.get()).for_each(|_| self.queue.task_done().unwrap());
        assert_eq!(self.queue.statistics(), Queue::<usize>::new(None).statistics());
    }
}

#[test]
fn getting_from_a_queue_is_dropped_at_every_moment_c124() {
    for make in [|| Queue::new(None), || Queue::lifo(None), || Queue::priority(None)] {
        check(|| Items { queue: make(), given: Cell::new(0), got: RefCell::default() });
    }
}

/// Those who join wait until nothing is to be done; giving is doing one of three things.
struct Work(Queue<()>);

impl Scene for Work {
    fn wait(&self, _: usize) -> Wait<'_> {
        Box::pin(self.0.join())
    }

    fn give(&self) {
        let _ = self.0.task_done();
    }

    fn check_settled(&self, _: &[usize; WAITERS], waiting: usize) {
        let statistics = self.0.statistics();
        assert_eq!(statistics.joiners_waiting, waiting);
        assert!(waiting == 0 || statistics.unfinished > 0);
    }

    fn check_nobody(&self, _: &[usize; WAITERS]) {
        assert_eq!(self.0.statistics().joiners_waiting, 0);
    }
}

#[test]
fn joining_a_queue_is_dropped_at_every_moment_c127() {
    check(|| {
        let queue = Queue::new(None);
        (0..3).for_each(|_| queue.try_put(()).unwrap());
        Work(queue)
    });
}

/// A receiver that is lent to one wait at a time and comes back when that is over, whatever its end.
struct Lent<'a, R>(&'a Cell<Option<R>>, Option<R>);

impl<'a, R> Lent<'a, R> {
    fn new(cell: &'a Cell<Option<R>>) -> Self {
        Lent(cell, cell.take())
    }

    fn get(&mut self) -> &mut R {
        self.1.as_mut().expect("one wait at a time")
    }
}

impl<R> Drop for Lent<'_, R> {
    fn drop(&mut self) {
        self.0.set(self.1.take());
    }
}

/// Each waiter has a receiver of its own, and misses nothing.
struct Heard {
    sender: broadcast::Sender<usize>,
    receivers: [Cell<Option<broadcast::Receiver<usize>>>; WAITERS],
    given: Cell<usize>,
}

impl Scene for Heard {
    fn wait(&self, who: usize) -> Wait<'_> {
        Box::pin(async move { _ = Lent::new(&self.receivers[who]).get().recv().await.unwrap() })
    }

    fn give(&self) {
        self.sender.send(self.given.get()).unwrap();
        self.given.set(self.given.get() + 1);
    }

    fn check_settled(&self, got: &[usize; WAITERS], waiting: usize) {
        let statistics = self.sender.statistics();
        let slowest = *got.iter().min().unwrap();
        assert_eq!((statistics.waiting, statistics.len), (waiting, self.given.get() - slowest));
    }

    fn check_nobody(&self, got: &[usize; WAITERS]) {
        assert_eq!(self.sender.statistics().waiting, 0);
        for (receiver, got) in self.receivers.iter().zip(got) {
            let mut receiver = Lent::new(receiver);
            let rest: Vec<usize> = std::iter::from_fn(|| receiver.get().try_recv().ok()).collect();
            assert_eq!(rest, (*got..self.given.get()).collect::<Vec<_>>());
        }
        assert_eq!(self.sender.statistics().len, 0);
    }
}

#[test]
fn receiving_a_broadcast_is_dropped_at_every_moment() {
    check(|| {
        let (sender, receiver) = broadcast(STEPS_MAX);
        drop(receiver);
        let receivers = [(); WAITERS].map(|()| Cell::new(Some(sender.subscribe())));
        Heard { sender, receivers, given: Cell::new(0) }
    });
}

/// The same for changes, of which only the last is seen.
struct Watched {
    sender: watch::Sender<usize>,
    receivers: [Cell<Option<watch::Receiver<usize>>>; WAITERS],
    seen: [Cell<usize>; WAITERS],
}

impl Scene for Watched {
    fn wait(&self, who: usize) -> Wait<'_> {
        Box::pin(async move {
            let mut receiver = Lent::new(&self.receivers[who]);
            receiver.get().changed().await.unwrap();
            let value = *receiver.get().borrow();
            assert!(self.seen[who].replace(value) < value, "told twice of one change");
        })
    }

    fn give(&self) {
        self.sender.send_modify(|value| *value += 1);
    }

    fn check_settled(&self, _: &[usize; WAITERS], waiting: usize) {
        assert_eq!(self.sender.statistics().waiting, waiting);
    }

    fn check_nobody(&self, _: &[usize; WAITERS]) {
        assert_eq!(self.sender.statistics().waiting, 0);
        let latest = *self.sender.borrow();
        for (receiver, seen) in self.receivers.iter().zip(&self.seen) {
            assert_eq!(Lent::new(receiver).get().has_changed(), seen.get() != latest, "a change was lost");
        }
    }
}

#[test]
fn waiting_for_a_change_is_dropped_at_every_moment() {
    check(|| {
        let (sender, receiver) = watch(0);
        Watched { sender, receivers: [(); WAITERS].map(|()| Cell::new(Some(receiver.clone()))), seen: Default::default() }
    });
}

/// A channel has one receiver: whoever of the three is polled first borrows it, until it is over.
struct Received {
    sender: channel::Sender<usize>,
    receiver: Cell<Option<channel::Receiver<usize>>>,
    given: Cell<usize>,
}

impl Scene for Received {
    fn wait(&self, _: usize) -> Wait<'_> {
        Box::pin(async {
            let mut receiver = Lent::new(&self.receiver);
            match &mut receiver.1 {
                Some(receiver) => drop(receiver.recv().await.unwrap()),
                // Somebody else has it.
                None => {
                    std::mem::forget(receiver);
                    std::future::pending().await
                }
            }
        })
    }

    fn give(&self) {
        self.sender.try_send(self.given.get()).unwrap();
        self.given.set(self.given.get() + 1);
    }

    fn check_settled(&self, got: &[usize; WAITERS], _: usize) {
        let statistics = self.sender.statistics();
        assert_eq!(statistics.len, self.given.get() - sum(got));
        assert!(!statistics.is_receiver_waiting || statistics.len == 0, "there is a value, and the receiver waits");
    }

    fn check_nobody(&self, got: &[usize; WAITERS]) {
        assert!(!self.sender.statistics().is_receiver_waiting);
        let mut receiver = self.receiver.take().unwrap();
        let rest: Vec<usize> = std::iter::from_fn(|| receiver.try_recv().ok()).collect();
        assert_eq!(rest, (sum(got)..self.given.get()).collect::<Vec<_>>());
    }
}

#[test]
fn receiving_from_a_channel_is_dropped_at_every_moment() {
    check(|| {
        let (sender, receiver) = channel(STEPS_MAX);
        Received { sender, receiver: Cell::new(Some(receiver)), given: Cell::new(0) }
    });
}
