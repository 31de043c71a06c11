//! Semaphores and mutexes against a model, on random operations (see `models.rs`).

use std::any::Any;
use std::rc::Rc;
use std::task::Poll;

use miniloop::sync::{Mutex, Semaphore};
use proptest::prelude::*;

use crate::by_hand::{Boxed, Hand};
use crate::models::{Op, SLOTS, ops};

/// A semaphore or a mutex, which is one with one permit.
enum Lockable {
    Semaphore(Rc<Semaphore>),
    Mutex(Rc<Mutex<()>>),
}

impl Lockable {
    fn acquire(&self, count: usize) -> Boxed<'static, Box<dyn Any>> {
        match self {
            Lockable::Semaphore(semaphore) => {
                let acquire = semaphore.clone().acquire_many_owned(count);
                Box::pin(async move { Box::new(acquire.await) as Box<dyn Any> })
            }
            Lockable::Mutex(mutex) => {
                let lock = mutex.clone().lock_owned();
                Box::pin(async move { Box::new(lock.await) as Box<dyn Any> })
            }
        }
    }

    fn try_acquire(&self, count: usize) -> Option<Box<dyn Any>> {
        match self {
            Lockable::Semaphore(semaphore) => {
                semaphore.clone().try_acquire_many_owned(count).map(|permit| Box::new(permit) as Box<dyn Any>)
            }
            Lockable::Mutex(mutex) => mutex.clone().try_lock_owned().map(|guard| Box::new(guard) as Box<dyn Any>),
        }
    }

    /// How many permits there are, and how many wait.
    fn count(&self) -> (usize, usize) {
        match self {
            Lockable::Semaphore(semaphore) => (semaphore.statistics().available, semaphore.statistics().waiting),
            Lockable::Mutex(mutex) => (usize::from(!mutex.is_locked()), mutex.statistics().waiting),
        }
    }
}

#[derive(Default)]
struct PermitsModel {
    available: usize,
    /// Slot, count, whether it has been given them.
    waiters: Vec<(usize, usize, bool)>,
}

impl PermitsModel {
    fn nobody_in_line(&self) -> bool {
        self.waiters.iter().all(|waiter| waiter.2)
    }

    fn try_acquire(&mut self, count: usize) -> bool {
        let is_there = self.nobody_in_line() && self.available >= count;
        self.available -= if is_there { count } else { 0 };
        is_there
    }

    /// Whether a poll of the slot gives the permits.
    fn poll(&mut self, slot: usize, count: usize) -> bool {
        match self.waiters.iter().position(|waiter| waiter.0 == slot) {
            Some(index) if self.waiters[index].2 => {
                self.waiters.remove(index);
                true
            }
            Some(_) => false,
            None if self.try_acquire(count) => true,
            None => {
                self.waiters.push((slot, count, false));
                false
            }
        }
    }

    fn leave(&mut self, slot: usize) {
        if let Some(index) = self.waiters.iter().position(|waiter| waiter.0 == slot) {
            let (_, count, is_given) = self.waiters.remove(index);
            self.release(if is_given { count } else { 0 });
        }
    }

    fn release(&mut self, count: usize) {
        self.available += count;
        for (_, count, is_given) in self.waiters.iter_mut().filter(|waiter| !waiter.2) {
            if *count > self.available {
                break;
            }
            self.available -= *count;
            *is_given = true;
        }
    }
}

fn compare_permits(real: &Lockable, permits: usize, ops: &[Op]) {
    let is_mutex = matches!(real, Lockable::Mutex(_));
    let mut model = PermitsModel { available: permits, ..PermitsModel::default() };
    let mut waiters: [Option<Hand<'_, Box<dyn Any>>>; SLOTS] = Default::default();
    let mut counts = [0; SLOTS];
    let mut held: Vec<(usize, Box<dyn Any>)> = Vec::new();
    for &(kind, slot, number) in ops {
        let count = if is_mutex { 1 } else { number };
        match kind {
            0..=2 => {
                let waiter = waiters[slot].get_or_insert_with(|| {
                    counts[slot] = count;
                    Hand::new(real.acquire(count))
                });
                let polled = waiter.poll();
                assert_eq!(polled.is_ready(), model.poll(slot, counts[slot]));
                if let Poll::Ready(permit) = polled {
                    waiters[slot] = None;
                    held.push((counts[slot], permit));
                }
            }
            3 => {
                waiters[slot] = None;
                model.leave(slot);
            }
            4 => {
                if let Some((count, permit)) = held.pop() {
                    drop(permit);
                    model.release(count);
                }
            }
            5 => {
                let permit = real.try_acquire(count);
                assert_eq!(permit.is_some(), model.try_acquire(count));
                held.extend(permit.map(|permit| (count, permit)));
            }
            _ => {
                if let Lockable::Semaphore(semaphore) = real {
                    semaphore.add_permits(number);
                    model.release(number);
                }
            }
        }
        assert_eq!(real.count(), (model.available, model.waiters.iter().filter(|waiter| !waiter.2).count()));
    }
}

proptest! {
    #[test]
    fn a_semaphore_is_a_list_of_waiters_and_a_number_c132_c133(permits in 0_usize..4, ops in ops(7)) {
        compare_permits(&Lockable::Semaphore(Rc::new(Semaphore::new(permits))), permits, &ops);
    }

    #[test]
    fn a_mutex_is_a_semaphore_with_one_permit_c129(ops in ops(6)) {
        compare_permits(&Lockable::Mutex(Rc::new(Mutex::new(()))), 1, &ops);
    }
}
