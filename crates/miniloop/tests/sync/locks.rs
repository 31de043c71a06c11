//! Mutex, semaphore, event and barrier (C129 to C134, C138).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use miniloop::sync::{Barrier, BrokenBarrier, Event, Mutex, Semaphore};
use miniloop::{spawn, yield_now};

use crate::by_hand::{Bells, Hand, Mortal, now};
use crate::support::{Trace, manual};

#[test]
fn a_lock_goes_to_the_first_who_waits_and_nobody_overtakes_c129() {
    let mutex = Mutex::new(0);
    let guard = now(mutex.lock());
    let mut first = Hand::waiting(mutex.lock());
    let mut second = Hand::waiting(mutex.lock());
    assert!(mutex.try_lock().is_none());
    drop(guard);
    assert!(first.is_woken() && !second.is_woken());
    assert!(mutex.is_locked() && mutex.try_lock().is_none(), "from now on it is the first waiter's, polled or not");
    assert!(second.poll().is_pending());
    let mut newcomer = Hand::waiting(mutex.lock());
    drop(first.ready());
    drop(second.ready());
    drop(newcomer.ready());
    assert!(!mutex.is_locked());
}

#[test]
fn a_newcomer_gets_the_lock_if_all_who_waited_have_gone_c129() {
    let mutex = Mutex::new(0);
    let guard = now(mutex.lock());
    let waiters = [Hand::waiting(mutex.lock()), Hand::waiting(mutex.lock())];
    drop(guard);
    assert!(mutex.try_lock().is_none());
    drop(waiters);
    assert!(mutex.try_lock().is_some());
}

#[test]
fn a_waiter_that_polls_again_keeps_its_place_o8() {
    let semaphore = Semaphore::new(0);
    let bells = Bells::default();
    let mut waiters = ["a", "b", "c"].map(|name| Hand::named(name, &bells, semaphore.acquire()));
    waiters.iter_mut().for_each(|waiter| assert!(waiter.poll().is_pending()));
    assert!(waiters[0].poll().is_pending() && waiters[1].poll().is_pending());
    semaphore.add_permits(2);
    semaphore.add_permits(1);
    assert_eq!(bells.take(), ["a", "b", "c"]);
}

/// Tasks that note when they have what they wait for, on a loop.
#[test]
fn who_waits_goes_on_in_order_through_the_queue_and_never_inside_the_call_o8_c132() {
    let (mut event_loop, _, trace) = manual();
    event_loop
        .run_until_complete(async {
            let semaphore = Rc::new(Semaphore::new(0));
            let tasks = ["a", "b", "c"].map(|name| noting(&semaphore, &trace, name));
            yield_now().await;
            semaphore.add_permits(2);
            trace.note("added 2");
            assert!(semaphore.try_acquire().is_none());
            yield_now().await;
            semaphore.add_permits(1);
            for task in tasks {
                task.task.await.unwrap();
            }
        })
        .unwrap();
    assert_eq!(trace.take(), ["added 2", "a", "b", "c"]);
}

fn noting(semaphore: &Rc<Semaphore>, trace: &Trace, name: &'static str) -> Mortal<()> {
    let (semaphore, trace) = (semaphore.clone(), trace.clone());
    Mortal::spawn(async move {
        semaphore.acquire().await.forget();
        trace.note(name);
    })
}

#[test]
fn a_waiter_cancelled_in_the_tick_of_the_release_passes_the_lock_on_c130() {
    let (mut event_loop, ..) = manual();
    event_loop
        .run_until_complete(async {
            let mutex = Rc::new(Mutex::new(0));
            let guard = mutex.lock().await;
            let [first, second] = [1, 2].map(|_| {
                let mutex = mutex.clone();
                Mortal::spawn(async move { *mutex.lock().await += 1 })
            });
            yield_now().await;
            drop(guard);
            drop(first.kill());
            second.task.await.unwrap();
            assert_eq!(*mutex.try_lock().unwrap(), 1);
        })
        .unwrap();
}

#[test]
fn a_semaphore_is_not_stuck_when_the_one_it_has_woken_is_cancelled_b16() {
    let (mut event_loop, _, trace) = manual();
    event_loop
        .run_until_complete(async {
            let semaphore = Rc::new(Semaphore::new(1));
            let held = semaphore.acquire().await;
            let [b, c] = ["b", "c"].map(|name| noting(&semaphore, &trace, name));
            yield_now().await;
            drop(held);
            drop(b.kill());
            c.task.await.unwrap();
        })
        .unwrap();
    assert_eq!(trace.take(), ["c"]);
}

#[test]
fn permits_are_served_in_order_and_nobody_overtakes_who_was_woken_c132() {
    let semaphore = Semaphore::new(0);
    let mut waiters = [1, 1, 1].map(|count| Hand::waiting(semaphore.acquire_many(count)));
    semaphore.add_permits(2);
    assert!(waiters[0].is_woken() && waiters[1].is_woken() && !waiters[2].is_woken());
    assert!(semaphore.try_acquire().is_none(), "both permits belong to somebody");
    semaphore.add_permits(2);
    drop(semaphore.try_acquire().expect("one is left over"));
    for waiter in &mut waiters {
        waiter.ready().forget();
    }
    assert_eq!(semaphore.available_permits(), 1);
}

#[test]
fn who_asks_for_much_is_not_starved_and_holds_up_nobody_when_it_goes_c132_c133() {
    let semaphore = Semaphore::new(2);
    let mut much = Hand::waiting(semaphore.acquire_many(3));
    assert!(semaphore.try_acquire().is_none(), "two are there, but somebody waits for three");
    let mut little = Hand::waiting(semaphore.acquire());
    semaphore.add_permits(1);
    assert_eq!(much.ready().count(), 3);
    assert!(little.is_woken());
    little.ready().forget();
    assert_eq!(semaphore.available_permits(), 2);

    let much = Hand::waiting(semaphore.acquire_many(3));
    let mut little = Hand::waiting(semaphore.acquire());
    drop(much);
    assert!(little.is_woken());
    little.ready().forget();
    assert_eq!(semaphore.available_permits(), 1);
}

#[test]
fn a_cancelled_waiter_neither_leaks_nor_loses_a_permit_c133() {
    let semaphore = Semaphore::new(0);
    let before = semaphore.statistics();
    drop(Hand::waiting(semaphore.acquire()));
    assert_eq!(semaphore.statistics(), before);
    let given = Hand::waiting(semaphore.acquire());
    semaphore.add_permits(1);
    assert_eq!(semaphore.available_permits(), 0);
    drop(given);
    assert_eq!(semaphore.available_permits(), 1);
}

#[test]
fn permits_can_be_forgotten_and_there_are_never_more_than_fit_c133() {
    let semaphore = Rc::new(Semaphore::new(2));
    now(semaphore.acquire()).forget();
    let rest = semaphore.clone().try_acquire_owned().unwrap();
    assert!(semaphore.clone().try_acquire_owned().is_none() && semaphore.try_acquire_many(2).is_none());
    drop(rest);
    assert_eq!(semaphore.available_permits(), 1);
    semaphore.add_permits(usize::MAX);
    assert_eq!(semaphore.available_permits(), usize::MAX);
    assert_eq!(now(semaphore.acquire_many(0)).count(), 0);
}

#[test]
fn a_panic_of_the_holder_releases_the_lock_and_poisons_nothing() {
    let mutex = Mutex::new(1);
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let mut guard = now(mutex.lock());
        *guard = 2;
        panic!("half way");
    }));
    assert!(panicked.is_err());
    assert_eq!(*mutex.try_lock().unwrap(), 2);
    assert_eq!(mutex.into_inner(), 2);
}

#[test]
fn guards_own_or_borrow_their_mutex_and_lead_to_the_value() {
    let mut mutex = Mutex::new(String::from("a"));
    mutex.get_mut().push('b');
    let mutex = Rc::new(mutex);
    let mut guard = now(mutex.clone().lock_owned());
    assert!(mutex.clone().try_lock_owned().is_none());
    assert_eq!(format!("{mutex:?}"), "Mutex { value: <locked>, .. }");
    guard.push('c');
    assert_eq!((format!("{guard}"), format!("{guard:?}")), ("abc".to_owned(), "\"abc\"".to_owned()));
    drop(guard);
    assert_eq!(format!("{mutex:?}"), "Mutex { value: \"abc\", .. }");
    assert_eq!(Rc::into_inner(mutex).unwrap().into_inner(), "abc");
    let shapes: Mutex<dyn Fn() -> u8> = Mutex::from(Box::new(|| 3_u8) as Box<dyn Fn() -> u8>);
    assert_eq!(now(shapes.lock())(), 3);
}

#[test]
fn setting_an_event_lets_all_who_wait_go_even_if_it_is_cleared_at_once_c134() {
    let event = Event::new();
    let bells = Bells::default();
    let mut waiters = ["a", "b"].map(|name| Hand::named(name, &bells, event.wait()));
    waiters.iter_mut().for_each(|waiter| assert!(waiter.poll().is_pending()));
    event.set();
    event.clear();
    assert_eq!(bells.take(), ["a", "b"]);
    let mut late = Hand::waiting(event.wait());
    waiters.iter_mut().for_each(Hand::ready);
    assert!(late.poll().is_pending() && !event.is_set());
    event.set();
    late.ready();
    now(event.wait());
}

#[test]
fn an_event_that_is_set_and_cleared_by_tasks_wakes_each_waiter_once_c134() {
    let (mut event_loop, _, trace) = manual();
    event_loop
        .run_until_complete(async {
            let event = Rc::new(Event::new());
            let tasks = ["a", "b"].map(|name| {
                let (event, trace) = (event.clone(), trace.clone());
                spawn(async move {
                    event.wait().await;
                    trace.note(name);
                })
            });
            yield_now().await;
            event.set();
            event.clear();
            trace.note("cleared");
            for task in tasks {
                task.await.unwrap();
            }
        })
        .unwrap();
    assert_eq!(trace.take(), ["cleared", "a", "b"]);
}

#[test]
fn a_barrier_lets_all_go_with_numbers_of_their_own_and_the_late_belong_to_the_next_meeting_c138() {
    let barrier = Barrier::new(3);
    let mut early = [(); 2].map(|()| Hand::waiting(barrier.wait()));
    assert_eq!(barrier.statistics().waiting, 2);
    let last = now(barrier.wait()).unwrap();
    assert!(last.is_leader() && last.index() == 2);
    // The others have not left yet, and those who come now wait for the next.
    let mut next = [(); 2].map(|()| Hand::waiting(barrier.wait()));
    assert_eq!(early.each_mut().map(|hand| hand.ready().unwrap().index()), [0, 1]);
    now(barrier.wait()).unwrap();
    assert!(next.iter_mut().all(|hand| !hand.ready().unwrap().is_leader()));
    assert_eq!(barrier.statistics().waiting, 0);
}

#[test]
fn who_leaves_a_barrier_before_all_have_come_has_not_come_c138() {
    let barrier = Barrier::new(2);
    drop(Hand::waiting(barrier.wait()));
    let mut first = Hand::waiting(barrier.wait());
    let second = now(barrier.wait()).unwrap();
    assert_eq!((first.ready().unwrap().index(), second.index()), (0, 1));
    // Who leaves after that has been let go, and is not missed.
    let given = Hand::waiting(barrier.wait());
    now(barrier.wait()).unwrap();
    drop(given);
    assert!(Hand::new(barrier.wait()).poll().is_pending());
    assert!(now(Barrier::new(0).wait()).unwrap().is_leader(), "a barrier for none is one for one");
}

#[test]
fn reset_and_abort_send_away_all_who_wait_with_an_error_c138() {
    let barrier = Barrier::new(2);
    let mut waiting = Hand::waiting(barrier.wait());
    barrier.reset();
    assert!(waiting.is_woken());
    assert_eq!(waiting.ready(), Err(BrokenBarrier));
    let mut waiting = Hand::waiting(barrier.wait());
    barrier.abort();
    assert_eq!((waiting.ready(), now(barrier.wait())), (Err(BrokenBarrier), Err(BrokenBarrier)));
    assert!(barrier.is_broken());
    barrier.reset();
    let mut waiting = Hand::waiting(barrier.wait());
    now(barrier.wait()).unwrap();
    barrier.abort(); // those whom it has let go are not concerned
    assert!(waiting.ready().is_ok());
    assert_eq!(barrier.parties(), 2);
}
