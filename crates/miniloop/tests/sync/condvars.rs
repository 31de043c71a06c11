//! Condition variables (C135 to C137).

use std::rc::Rc;

use miniloop::sync::{Condvar, Event, Mutex};
use miniloop::yield_now;

use crate::by_hand::{Bells, Hand, Mortal, now};
use crate::support::manual;

#[test]
fn waiting_gives_the_lock_back_and_returns_with_it_c135() {
    let (mutex, condvar) = (Mutex::new(0), Condvar::new());
    let mut waiter = Hand::new(condvar.wait(now(mutex.lock())));
    assert!(mutex.is_locked(), "it has not begun to wait");
    assert!(waiter.poll().is_pending() && !mutex.is_locked());
    let mut guard = now(mutex.lock());
    condvar.notify_one();
    assert!(waiter.is_woken() && waiter.poll().is_pending(), "it waits for the lock now");
    *guard = 1;
    drop(guard);
    assert!(waiter.is_woken());
    let guard = waiter.ready();
    assert!(*guard == 1 && mutex.is_locked());
}

#[test]
fn a_wait_that_has_no_share_of_its_poll_left_keeps_the_lock_until_it_stands_in_line_o10() {
    let (mut event_loop, ..) = manual();
    let shared = Rc::new((Mutex::new(()), Condvar::new()));
    let waiting = shared.clone();
    let task = event_loop.handle().spawn(async move {
        let guard = waiting.0.lock().await;
        let event = Event::new();
        event.set();
        for _ in 1..64 {
            event.wait().await;
        }
        drop(waiting.1.wait(guard).await);
    });
    event_loop.run_once().unwrap();
    assert!(shared.0.is_locked(), "who notifies now would not be heard");
    event_loop.run_once().unwrap();
    assert!(!shared.0.is_locked() && shared.1.statistics().waiting == 1);
    drop(task);
}

/// asyncio takes the lock again before the cancelled task goes on, because its `async with` will release it. Here the guard is inside the
/// future that is dropped.
#[test]
fn a_cancelled_wait_leaves_the_lock_free_whenever_it_is_cancelled_c135() {
    let (mutex, condvar) = (Mutex::new(()), Condvar::new());
    drop(condvar.wait(now(mutex.lock())));
    assert!(!mutex.is_locked());
    drop(Hand::waiting(condvar.wait(now(mutex.lock()))));
    assert!(!mutex.is_locked());
    let notified = Hand::waiting(condvar.wait(now(mutex.lock())));
    condvar.notify_one();
    drop(notified);
    assert!(!mutex.is_locked());
    let mut relocking = Hand::waiting(condvar.wait(now(mutex.lock())));
    let guard = now(mutex.lock());
    condvar.notify_one();
    assert!(relocking.poll().is_pending());
    drop(guard);
    drop(relocking); // it had been given the lock
    assert!(!mutex.is_locked());
    assert_eq!(condvar.statistics().waiting, 0);
}

#[test]
fn a_notification_of_one_that_is_cancelled_goes_to_the_next_c136_b19() {
    let (mut event_loop, ..) = manual();
    event_loop
        .run_until_complete(async {
            let shared = Rc::new((Mutex::new(()), Condvar::new()));
            let [first, second] = [1, 2].map(|_| {
                let shared = shared.clone();
                Mortal::spawn(async move { drop(shared.1.wait(shared.0.lock().await).await) })
            });
            yield_now().await;
            assert_eq!(shared.1.statistics().waiting, 2);
            shared.1.notify_one();
            drop(first.kill());
            second.task.await.unwrap();
        })
        .unwrap();
}

#[test]
fn a_notification_is_passed_on_also_by_one_that_waits_for_the_lock_c136() {
    let (mutex, condvar) = (Mutex::new(()), Condvar::new());
    let mut first = Hand::waiting(condvar.wait(now(mutex.lock())));
    let mut second = Hand::waiting(condvar.wait(now(mutex.lock())));
    let guard = now(mutex.lock());
    condvar.notify_one();
    assert!(first.poll().is_pending() && !second.is_woken());
    drop(first);
    assert!(second.is_woken());
    drop(guard);
    drop(second.ready());
    // One that has returned has used it.
    let mut third = Hand::waiting(condvar.wait(now(mutex.lock())));
    let fourth = Hand::waiting(condvar.wait(now(mutex.lock())));
    condvar.notify_one();
    drop(third.ready());
    drop(third);
    assert!(!fourth.is_woken());
}

#[test]
fn all_are_notified_in_order_and_none_of_them_passes_anything_on_c136() {
    let (mutex, condvar) = (Mutex::new(()), Condvar::new());
    let bells = Bells::default();
    let mut waiters = ["a", "b", "c"].map(|name| {
        let mut waiter = Hand::named(name, &bells, condvar.wait(now(mutex.lock())));
        assert!(waiter.poll().is_pending());
        waiter
    });
    condvar.notify_all();
    assert_eq!(bells.take(), ["a", "b", "c"]);
    let late = Hand::waiting(condvar.wait(now(mutex.lock())));
    let [first, second, third] = &mut waiters;
    let guard = first.ready();
    assert!(second.poll().is_pending() && third.poll().is_pending());
    drop(guard);
    assert_eq!(bells.take(), ["b"]);
    drop(waiters);
    assert!(!late.is_woken() && !mutex.is_locked());
    condvar.notify_one();
    assert!(late.is_woken());
    drop(late);
    condvar.notify_one(); // nobody waits: it is not kept
    assert!(Hand::new(condvar.wait(now(mutex.lock()))).poll().is_pending());
}

/// That waiting needs the lock is a matter of types: it takes the guard. Notifying needs none on one thread.
#[test]
fn waiting_while_a_condition_holds_asks_with_the_lock_held_c137() {
    let (mutex, condvar) = (Rc::new(Mutex::new(0)), Condvar::new());
    drop(now(condvar.wait_while(now(mutex.clone().lock_owned()), |value| *value > 0)));
    let mut waiter = Hand::waiting(condvar.wait_while(now(mutex.clone().lock_owned()), |value| {
        assert!(mutex.is_locked());
        *value < 2
    }));
    for value in 1..=2 {
        *now(mutex.lock()) = value;
        condvar.notify_all();
        assert!(waiter.is_woken());
        if value == 1 {
            assert!(waiter.poll().is_pending(), "not yet");
        }
    }
    assert_eq!(*waiter.ready(), 2);
}
