//! Queues and channels against a model, on random operations (see `models.rs`).

use std::cell::Cell;
use std::task::Poll;

use miniloop::sync::{Queue, TryRecvError, TrySendError, channel};
use proptest::prelude::*;

use crate::by_hand::{Boxed, Hand};
use crate::models::{Op, SLOTS, ops};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    FirstInFirstOut,
    LastInFirstOut,
    SmallestFirst,
}

/// What a put or a get has come to.
#[derive(Debug, PartialEq)]
enum Outcome {
    Put,
    Refused(usize),
    Got(usize),
    Ended,
}

trait Queueing {
    fn put(&self, item: usize) -> Boxed<'_, Outcome>;
    fn get(&self) -> Boxed<'_, Outcome>;
    fn try_put(&self, item: usize) -> Result<(), TrySendError<usize>>;
    fn try_get(&self) -> Result<usize, TryRecvError>;
    fn close(&self);
    /// What is in it, how many wait to put, how many to get.
    fn count(&self) -> (usize, usize, usize);
}

impl Queueing for Queue<usize> {
    fn put(&self, item: usize) -> Boxed<'_, Outcome> {
        Box::pin(async move { self.put(item).await.map_or_else(|error| Outcome::Refused(error.0), |()| Outcome::Put) })
    }

    fn get(&self) -> Boxed<'_, Outcome> {
        Box::pin(async move { self.get().await.map_or(Outcome::Ended, Outcome::Got) })
    }

    fn try_put(&self, item: usize) -> Result<(), TrySendError<usize>> {
        self.try_put(item)
    }

    fn try_get(&self) -> Result<usize, TryRecvError> {
        self.try_get()
    }

    fn close(&self) {
        self.close();
    }

    fn count(&self) -> (usize, usize, usize) {
        let statistics = self.statistics();
        (statistics.len, statistics.putters_waiting, statistics.getters_waiting)
    }
}

/// The receiver is lent to one who gets at a time.
struct Channel(channel::Sender<usize>, Cell<Option<channel::Receiver<usize>>>);

impl Channel {
    fn with<R>(&self, call: impl FnOnce(&mut channel::Receiver<usize>) -> R) -> R {
        let mut receiver = self.1.take().expect("nobody gets meanwhile");
        let result = call(&mut receiver);
        self.1.set(Some(receiver));
        result
    }
}

impl Queueing for Channel {
    fn put(&self, item: usize) -> Boxed<'_, Outcome> {
        Box::pin(async move { self.0.send(item).await.map_or_else(|error| Outcome::Refused(error.0), |()| Outcome::Put) })
    }

    fn get(&self) -> Boxed<'_, Outcome> {
        struct Lent<'a>(&'a Channel, Option<channel::Receiver<usize>>);
        impl Drop for Lent<'_> {
            fn drop(&mut self) {
                self.0.1.set(self.1.take());
            }
        }
        let mut lent = Lent(self, self.1.take());
        Box::pin(async move { lent.1.as_mut().unwrap().recv().await.map_or(Outcome::Ended, Outcome::Got) })
    }

    fn try_put(&self, item: usize) -> Result<(), TrySendError<usize>> {
        self.0.try_send(item)
    }

    fn try_get(&self) -> Result<usize, TryRecvError> {
        self.with(channel::Receiver::try_recv)
    }

    fn close(&self) {
        self.with(channel::Receiver::close);
    }

    fn count(&self) -> (usize, usize, usize) {
        let statistics = self.0.statistics();
        (statistics.len, statistics.senders_waiting, usize::from(statistics.is_receiver_waiting))
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    InLine,
    Given,
    TooLate,
}

struct QueueModel {
    kind: Kind,
    capacity: usize,
    items: Vec<usize>,
    putters: Vec<(usize, State)>,
    getters: Vec<(usize, State)>,
    is_closed: bool,
}

fn number_of(state: State, waiters: &[(usize, State)]) -> usize {
    waiters.iter().filter(|waiter| waiter.1 == state).count()
}

impl QueueModel {
    /// Gives what there is to those who stand first.
    fn settle(&mut self) {
        let places = self.capacity.saturating_sub(self.items.len() + number_of(State::Given, &self.putters));
        self.putters.iter_mut().filter(|waiter| waiter.1 == State::InLine).take(places).for_each(|waiter| waiter.1 = State::Given);
        let items = self.items.len().saturating_sub(number_of(State::Given, &self.getters));
        self.getters.iter_mut().filter(|waiter| waiter.1 == State::InLine).take(items).for_each(|waiter| waiter.1 = State::Given);
        if self.is_closed {
            self.putters.iter_mut().for_each(|waiter| waiter.1 = State::TooLate);
            if self.items.is_empty() {
                self.getters.iter_mut().for_each(|waiter| waiter.1 = State::TooLate);
            }
        }
    }

    fn is_room_for_newcomers(&self) -> bool {
        self.items.len() + self.putters.len() < self.capacity
    }

    fn put(&mut self, item: usize) -> Outcome {
        self.items.push(item);
        self.settle();
        Outcome::Put
    }

    fn get(&mut self) -> Outcome {
        let index = match self.kind {
            Kind::FirstInFirstOut => 0,
            Kind::LastInFirstOut => self.items.len() - 1,
            Kind::SmallestFirst => (0..self.items.len()).min_by_key(|index| self.items[*index]).unwrap(),
        };
        let item = self.items.remove(index);
        self.settle();
        Outcome::Got(item)
    }

    fn poll_put(&mut self, slot: usize, item: usize) -> Option<Outcome> {
        match self.putters.iter().position(|waiter| waiter.0 == slot) {
            None if self.is_closed => Some(Outcome::Refused(item)),
            None if self.is_room_for_newcomers() => Some(self.put(item)),
            None => {
                self.putters.push((slot, State::InLine));
                None
            }
            Some(index) if self.putters[index].1 == State::InLine => None,
            Some(index) if self.putters.remove(index).1 == State::Given => Some(self.put(item)),
            Some(_) => Some(Outcome::Refused(item)),
        }
    }

    fn poll_get(&mut self, slot: usize) -> Option<Outcome> {
        match self.getters.iter().position(|waiter| waiter.0 == slot) {
            None if self.items.len() > self.getters.len() => Some(self.get()),
            None if self.is_closed && self.items.is_empty() => Some(Outcome::Ended),
            None => {
                self.getters.push((slot, State::InLine));
                None
            }
            Some(index) if self.getters[index].1 == State::InLine => None,
            Some(index) if self.getters.remove(index).1 == State::Given => Some(self.get()),
            Some(_) => Some(Outcome::Ended),
        }
    }
}

fn compare_queues(real: &impl Queueing, kind: Kind, capacity: Option<usize>, getters_max: usize, ops: &[Op]) {
    let capacity = capacity.unwrap_or(usize::MAX);
    let mut model = QueueModel { kind, capacity, items: Vec::new(), putters: Vec::new(), getters: Vec::new(), is_closed: false };
    let mut putters: [Option<(usize, Hand<'_, Outcome>)>; SLOTS] = Default::default();
    let mut getters: [Option<Hand<'_, Outcome>>; SLOTS] = Default::default();
    let mut next_item = 0;
    for &(kind, slot, number) in ops {
        let is_lent = getters_max == 1 && getters.iter().any(Option::is_some);
        // Small and big ones, all different.
        next_item += 4;
        let item = (next_item - 4) + 1_000 * number;
        match kind {
            0..=2 => {
                let (item, putter) = putters[slot].get_or_insert_with(|| (item, Hand::new(real.put(item))));
                let polled = putter.poll();
                let expected = model.poll_put(slot, *item);
                if polled.is_ready() {
                    putters[slot] = None;
                }
                assert_eq!(polled, expected.map_or(Poll::Pending, Poll::Ready));
            }
            3..=5 => {
                let slot = slot % getters_max;
                let polled = getters[slot].get_or_insert_with(|| Hand::new(real.get())).poll();
                if polled.is_ready() {
                    getters[slot] = None;
                }
                assert_eq!(polled, model.poll_get(slot).map_or(Poll::Pending, Poll::Ready));
            }
            6 => {
                putters[slot] = None;
                model.putters.retain(|waiter| waiter.0 != slot);
                model.settle();
            }
            7 => {
                let slot = slot % getters_max;
                getters[slot] = None;
                model.getters.retain(|waiter| waiter.0 != slot);
                model.settle();
            }
            8 => {
                let expected = match () {
                    () if model.is_closed => Err(TrySendError::Closed(item)),
                    () if model.is_room_for_newcomers() => {
                        model.put(item);
                        Ok(())
                    }
                    () => Err(TrySendError::Full(item)),
                };
                assert_eq!(real.try_put(item), expected);
            }
            9 if !is_lent => {
                let expected = match () {
                    () if model.items.len() > model.getters.len() => match model.get() {
                        Outcome::Got(item) => Ok(item),
                        _ => unreachable!(),
                    },
                    () if model.is_closed && model.items.is_empty() => Err(TryRecvError::Closed),
                    () => Err(TryRecvError::Empty),
                };
                assert_eq!(real.try_get(), expected);
            }
            10 if number == 0 && slot == 0 && !is_lent => {
                real.close();
                model.is_closed = true;
                model.settle();
            }
            _ => {}
        }
        let (len, putting, getting) = real.count();
        assert_eq!((len, putting), (model.items.len(), number_of(State::InLine, &model.putters)));
        assert!(getting == number_of(State::InLine, &model.getters));
    }
}

proptest! {
    #[test]
    fn a_queue_is_two_lists_of_waiters_and_a_list_of_items_c123_c124_c125_c128(bound in 0_usize..4, ops in ops(11)) {
        let bound = Some(bound).filter(|bound| *bound > 0);
        compare_queues(&Queue::new(bound), Kind::FirstInFirstOut, bound, SLOTS, &ops);
        compare_queues(&Queue::lifo(bound), Kind::LastInFirstOut, bound, SLOTS, &ops);
        compare_queues(&Queue::priority(bound), Kind::SmallestFirst, bound, SLOTS, &ops);
    }

    #[test]
    fn a_channel_is_a_queue_with_one_who_gets(capacity in 1_usize..4, ops in ops(11)) {
        let (sender, receiver) = channel(capacity);
        compare_queues(&Channel(sender, Cell::new(Some(receiver))), Kind::FirstInFirstOut, Some(capacity), 1, &ops);
    }
}
