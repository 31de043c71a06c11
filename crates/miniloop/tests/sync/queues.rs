//! Queues (C123 to C128).

use std::cell::Cell;
use std::rc::Rc;
use std::task::Poll;

use miniloop::sync::{Queue, SendError, TaskDoneError, TryRecvError, TrySendError};
use miniloop::yield_now;

use crate::by_hand::{Hand, Mortal, now};
use crate::support::{manual, panic_of};

#[track_caller]
fn check_order(queue: &Queue<(u8, &'static str)>, expected: &str) {
    for item in [(2, "a"), (1, "b"), (2, "c"), (1, "d")] {
        now(queue.put(item)).unwrap();
    }
    let got: String = (0..4).map(|_| now(queue.get()).unwrap().1).collect();
    assert_eq!(got, expected);
    assert_eq!(queue.try_get(), Err(TryRecvError::Empty));
}

#[test]
fn items_leave_in_the_order_that_the_queue_is_for_c123() {
    check_order(&Queue::new(None), "abcd");
    check_order(&Queue::lifo(4), "dcba");
    let by_number = Queue::priority(None);
    for (number, name) in (0..16).zip('a'..) {
        now(by_number.put(ByNumber(number % 2, name))).unwrap();
    }
    let got: String = (0..16).map(|_| now(by_number.get()).unwrap().1).collect();
    assert_eq!(got, "acegikmobdfhjlnp", "the smallest first, and of equal ones that which came first");
}

/// Compared by its number alone.
struct ByNumber(u8, char);

impl Ord for ByNumber {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.cmp(&other.0)
    }
}

impl PartialOrd for ByNumber {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for ByNumber {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for ByNumber {}

#[test]
fn putting_waits_for_a_place_and_getting_for_an_item_in_order_c123() {
    let queue = Queue::new(1);
    let mut getters = [(); 2].map(|()| Hand::waiting(queue.get()));
    now(queue.put(1)).unwrap();
    assert!(getters[0].is_woken() && !getters[1].is_woken());
    assert_eq!(queue.try_get(), Err(TryRecvError::Empty), "the item is the first getter's");
    assert!(getters[1].poll().is_pending());
    assert_eq!(getters[0].ready(), Some(1));
    now(queue.put(2)).unwrap();
    assert_eq!(getters[1].ready(), Some(2));

    now(queue.put(3)).unwrap();
    let mut putters = [4, 5].map(|item| Hand::waiting(queue.put(item)));
    assert_eq!(queue.try_put(6), Err(TrySendError::Full(6)));
    assert_eq!(now(queue.get()), Some(3));
    assert!(putters[0].is_woken() && !putters[1].is_woken());
    assert_eq!(queue.try_put(6), Err(TrySendError::Full(6)), "the place is the first putter's");
    assert_eq!(putters[0].ready(), Ok(()));
    assert_eq!(now(queue.get()), Some(4));
    assert_eq!(putters[1].ready(), Ok(()));
    assert_eq!((now(queue.get()), queue.len()), (Some(5), 0));
    let narrow = Queue::new(0);
    assert_eq!((narrow.try_put(1), narrow.try_put(2)), (Ok(()), Err(TrySendError::Full(2))));
}

#[test]
fn a_cancelled_getter_passes_its_item_on_or_leaves_it_c124_b20() {
    let (mut event_loop, ..) = manual();
    event_loop
        .run_until_complete(async {
            let queue = Queue::new(None);
            let get = |queue: &Queue<&'static str>| {
                let queue = queue.clone();
                Mortal::spawn(async move { queue.get().await })
            };
            let (first, second) = (get(&queue), get(&queue));
            yield_now().await;
            queue.try_put("x").unwrap();
            drop(first.kill());
            assert_eq!(second.task.await.unwrap(), Some(Some("x")));

            let only = get(&queue);
            yield_now().await;
            queue.try_put("x").unwrap();
            assert_eq!(only.kill().await.unwrap(), None);
            assert_eq!(queue.try_get(), Ok("x"));
        })
        .unwrap();
}

#[test]
fn an_item_that_is_passed_on_keeps_its_place_among_the_others_c124() {
    let queue = Queue::new(None);
    let mut getters = [(); 3].map(|()| Some(Hand::waiting(queue.get())));
    for item in ["a", "b", "c", "d"] {
        queue.try_put(item).unwrap();
    }
    getters[0] = None;
    assert_eq!(queue.try_get(), Ok("a"), "what the first did not want");
    assert_eq!(getters[2].as_mut().unwrap().ready(), Some("b"));
    assert_eq!(getters[1].as_mut().unwrap().ready(), Some("c"));
    assert_eq!(queue.try_get(), Ok("d"));
}

#[test]
fn a_cancelled_putter_passes_its_place_on_and_puts_nothing_c125() {
    let (mut event_loop, ..) = manual();
    event_loop
        .run_until_complete(async {
            let queue = Queue::new(1);
            queue.try_put(1).unwrap();
            let [first, second] = [2, 3].map(|item| {
                let queue = queue.clone();
                Mortal::spawn(async move { queue.put(item).await })
            });
            yield_now().await;
            assert_eq!(queue.try_get(), Ok(1));
            drop(first.kill());
            second.task.await.unwrap().unwrap().unwrap();
            assert_eq!((queue.try_get(), queue.try_get()), (Ok(3), Err(TryRecvError::Empty)));
        })
        .unwrap();
}

#[test]
fn cancelled_waiters_leave_no_trace_c126() {
    let queue = Queue::new(1);
    let empty = queue.statistics();
    for _ in 0..1_000 {
        drop(Hand::waiting(queue.get()));
    }
    assert_eq!(queue.statistics(), empty);
    queue.try_put(Rc::new(0)).unwrap();
    let full = queue.statistics();
    let item = Rc::new(1);
    for _ in 0..1_000 {
        drop(Hand::waiting(queue.put(item.clone())));
        drop(Hand::waiting(queue.join()));
    }
    assert_eq!((queue.statistics(), Rc::strong_count(&item)), (full, 1));
}

#[test]
fn joining_waits_for_as_many_as_were_put_and_one_too_many_is_an_error_c127() {
    let queue = Queue::new(None);
    now(queue.join());
    for item in 0..2 {
        queue.try_put(item).unwrap();
    }
    let mut joiners = [(); 2].map(|()| Hand::waiting(queue.join()));
    assert_eq!((queue.try_get(), queue.try_get()), (Ok(0), Ok(1)));
    queue.task_done().unwrap();
    assert!(joiners.iter_mut().all(|joiner| joiner.poll().is_pending()));
    queue.task_done().unwrap();
    // More work does not concern those whose work was done.
    queue.try_put(2).unwrap();
    joiners.iter_mut().for_each(Hand::ready);
    queue.task_done().unwrap();
    assert_eq!(queue.task_done(), Err(TaskDoneError));
    assert_eq!(queue.statistics().unfinished, 0);
}

#[test]
fn a_closed_queue_takes_nothing_and_gives_what_is_left_c128() {
    let queue = Queue::new(1);
    queue.try_put(1).unwrap();
    let mut putter = Hand::waiting(queue.put(2));
    queue.close();
    assert!(putter.is_woken());
    assert_eq!((putter.ready(), now(queue.put(3))), (Err(SendError(2)), Err(SendError(3))));
    assert_eq!(queue.try_put(4), Err(TrySendError::Closed(4)));
    assert_eq!((now(queue.get()), now(queue.get())), (Some(1), None));
    assert_eq!(queue.try_get(), Err(TryRecvError::Closed));
    queue.close();
    assert!(queue.is_closed());
    // A putter that had been given a place when it was closed puts nothing either.
    let queue = Queue::new(1);
    queue.try_put(1).unwrap();
    let mut putter = Hand::waiting(queue.put(2));
    assert_eq!(queue.try_get(), Ok(1));
    queue.close();
    assert_eq!((putter.ready(), now(queue.get())), (Err(SendError(2)), None));
}

#[test]
fn getters_of_a_queue_that_is_closed_are_told_when_nothing_can_come_any_more_c128() {
    let queue = Queue::<u8>::new(None);
    let mut getters = [(); 2].map(|()| Hand::waiting(queue.get()));
    queue.close();
    assert!(getters.iter_mut().all(|getter| getter.is_woken() && getter.ready().is_none()));

    // While an item belongs to somebody it may still be passed on: the others wait for that.
    let queue = Queue::new(None);
    let mut getters = [(); 3].map(|()| Some(Hand::waiting(queue.get())));
    queue.try_put(1).unwrap();
    queue.close();
    assert!(getters.iter_mut().skip(1).flatten().all(|getter| getter.poll().is_pending()));
    getters[0] = None;
    assert_eq!(getters[1].as_mut().unwrap().ready(), Some(1));
    assert_eq!(getters[2].as_mut().unwrap().poll(), Poll::Ready(None));
}

#[test]
fn closing_at_once_takes_everything_out_and_counts_it_as_done_c128() {
    let queue = Queue::priority(3);
    for item in [3, 1, 2] {
        queue.try_put(item).unwrap();
    }
    let mut putter = Hand::waiting(queue.put(4));
    assert_eq!(queue.try_get(), Ok(1));
    let mut joiner = Hand::waiting(queue.join());
    assert_eq!(queue.close_now(), [2, 3]);
    assert_eq!(putter.ready(), Err(SendError(4)));
    assert!(joiner.poll().is_pending(), "one is in work");
    queue.task_done().unwrap();
    joiner.ready();
    assert_eq!((now(queue.get()), queue.task_done()), (None, Err(TaskDoneError)));
    // An item that belonged to somebody who had not run is taken out as well.
    let queue = Queue::new(None);
    let mut getters = [(); 2].map(|()| Some(Hand::waiting(queue.get())));
    queue.try_put(1).unwrap();
    queue.try_put(2).unwrap();
    assert_eq!(queue.close_now(), [1, 2]);
    assert_eq!(getters[0].as_mut().unwrap().ready(), None);
    getters[1] = None;
    assert_eq!((now(queue.get()), queue.len()), (None, 0));
    now(queue.join());
}

/// Compares as `compare` says.
struct Compared(fn() -> u8);

impl Ord for Compared {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.0)().cmp(&(other.0)())
    }
}

impl PartialOrd for Compared {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Compared {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Compared {}

#[test]
fn comparing_that_panics_leaves_the_counts_right() {
    let queue = Queue::priority(3);
    queue.try_put(Compared(|| 1)).unwrap();
    let (message, _) = panic_of(|| queue.try_put(Compared(|| panic!("incomparable"))));
    assert_eq!((message.as_str(), queue.len()), ("incomparable", 2), "it is in");
    let (message, _) = panic_of(|| queue.try_put(Compared(|| panic!("incomparable"))));
    assert_eq!((message.as_str(), queue.len()), ("incomparable", 3));
    assert!(matches!(queue.try_put(Compared(|| 0)), Err(TrySendError::Full(_))));
    let (message, _) = panic_of(|| queue.try_get());
    assert_eq!((message.as_str(), queue.len()), ("incomparable", 2), "the panic has taken one along");
    assert_eq!(queue.statistics().unfinished, 2);
    drop(panic_of(|| queue.try_put(Compared(|| 0))));
    let (message, _) = panic_of(|| queue.close_now());
    assert_eq!((message.as_str(), queue.len(), queue.statistics().unfinished), ("incomparable", 0, 0));
    now(queue.join());
}

#[test]
fn comparing_may_look_at_the_queue_and_not_change_it() {
    thread_local! {
        static QUEUE: Queue<Compared> = Queue::priority(3);
        static GETS: Cell<bool> = const { Cell::new(true) };
    }
    let get = || if GETS.get() { QUEUE.with(|queue| queue.try_get().map_or(0, |_| 0)) } else { 9 };
    QUEUE.with(|queue| {
        queue.try_put(Compared(|| 1)).unwrap();
        queue.try_put(Compared(|| QUEUE.with(|queue| queue.statistics().len as u8))).unwrap();
        let (message, _) = panic_of(|| queue.try_put(Compared(get)));
        assert!(message.contains("must not put into it or get from it"), "{message}");
        assert_eq!(queue.len(), 3);
        GETS.set(false);
        assert!((0..3).all(|_| queue.try_get().is_ok()), "what it asked for in vain is still there");
    });
}
