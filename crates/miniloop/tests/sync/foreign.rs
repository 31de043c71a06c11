//! Wakers and values are foreign code: they may use what they belong to, and they may panic.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Wake, Waker};

use miniloop::sync::{Barrier, Condvar, Event, Mutex, Queue, Semaphore, broadcast, channel, watch};

use crate::by_hand::{Hand, now};
use crate::support::{OnDrop, on_drop, panic_of};

thread_local!(static ON_WAKE: RefCell<Rc<dyn Fn()>> = RefCell::new(Rc::new(|| ())));

/// Runs whatever the test wants inside the wake, as an executor may that polls at once.
struct Inline;

impl Wake for Inline {
    fn wake(self: Arc<Self>) {
        let call = ON_WAKE.with_borrow(Rc::clone);
        call();
    }
}

/// `wait` waits, `give` ends that; inside the wake, `touch` uses the object.
#[track_caller]
fn check<F: Future>(wait: F, give: impl FnOnce(), touch: impl Fn() + 'static) {
    let mut future = Box::pin(wait);
    let waker = Waker::from(Arc::new(Inline));
    assert!(future.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    let touched = Rc::new(Cell::new(0));
    let count = touched.clone();
    ON_WAKE.set(Rc::new(move || {
        touch();
        count.set(count.get() + 1);
    }));
    give();
    assert_eq!(touched.get(), 1);
    assert!(future.as_mut().poll(&mut Context::from_waker(&waker)).is_ready());
    ON_WAKE.set(Rc::new(|| ()));
}

#[test]
fn who_is_woken_may_use_what_woke_it_at_once() {
    let semaphore = Rc::new(Semaphore::new(0));
    let touched = semaphore.clone();
    check(
        semaphore.acquire(),
        || semaphore.add_permits(1),
        move || {
            assert!(touched.try_acquire().is_none() && touched.statistics().waiting == 0);
            drop(Hand::waiting(touched.acquire()));
            touched.add_permits(1);
        },
    );
    let mutex = Rc::new(Mutex::new(()));
    let guard = now(mutex.lock());
    let touched = mutex.clone();
    check(mutex.lock(), || drop(guard), move || drop(Hand::waiting(touched.lock())));
    let event = Rc::new(Event::new());
    let touched = event.clone();
    check(
        event.wait(),
        || event.set(),
        move || {
            touched.clear();
            drop(Hand::waiting(touched.wait()));
        },
    );
    let barrier = Rc::new(Barrier::new(2));
    let touched = barrier.clone();
    check(
        barrier.wait(),
        || assert!(now(barrier.wait()).is_ok()),
        move || {
            let waiting = Hand::waiting(touched.wait());
            touched.abort();
            touched.reset();
            drop(waiting);
        },
    );
    let shared = Rc::new((Mutex::new(()), Condvar::new()));
    let touched = shared.clone();
    check(
        shared.1.wait(now(shared.0.lock())),
        || shared.1.notify_one(),
        move || {
            touched.1.notify_all();
            drop(Hand::waiting(touched.1.wait(now(touched.0.lock()))));
        },
    );
    let queue = Queue::new(1);
    let touched = queue.clone();
    check(
        queue.get(),
        || queue.try_put(1).unwrap(),
        move || {
            assert!(touched.try_get().is_err() && touched.len() == 1);
            touched.close();
        },
    );
    let queue = Queue::new(1);
    queue.try_put(1).unwrap();
    let touched = queue.clone();
    check(queue.put(2), || assert!(queue.try_get().is_ok()), move || assert!(touched.try_put(3).is_err()));
    let touched = queue.clone();
    check(queue.join(), || (0..2).for_each(|_| queue.task_done().unwrap()), move || drop(touched.close_now()));
}

#[test]
fn who_is_woken_may_use_the_channel_that_woke_it_at_once() {
    let (sender, mut receiver) = channel(2);
    let touched = sender.clone();
    check(receiver.recv(), || sender.try_send(1).unwrap(), move || touched.try_send(2).unwrap());
    let touched = sender.clone();
    check(
        async {
            sender.try_send(3).unwrap();
            sender.send(4).await
        },
        || drop(receiver),
        move || assert!(touched.try_send(5).is_err()),
    );
    let (sender, mut receiver) = broadcast(1);
    let touched = sender.clone();
    check(receiver.recv(), || assert!(sender.send(1).is_ok()), move || drop((touched.subscribe(), touched.send(2))));
    let (sender, mut receiver) = watch(1);
    let touched = sender.clone();
    check(receiver.changed(), || sender.send_modify(|value| *value = 2), move || drop(touched.send_replace(3)));
}

#[test]
fn a_waker_that_panics_keeps_nobody_from_being_woken() {
    let event = Event::new();
    let mut others = [Hand::waiting(event.wait()), Hand::waiting(event.wait())];
    let mut future = Box::pin(event.wait());
    let waker = Waker::from(Arc::new(Inline));
    assert!(future.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    let last = Hand::waiting(event.wait());
    ON_WAKE.set(Rc::new(|| panic!("a foreign waker")));
    assert_eq!(panic_of(|| event.set()).0, "a foreign waker");
    assert!(others.iter_mut().all(|other| other.is_woken()) && last.is_woken());
    // While another panic unwinds it ends there.
    let mutex = Mutex::new(());
    let guard = now(mutex.lock());
    let mut future = Box::pin(mutex.lock());
    assert!(future.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    let unwound = catch_unwind(AssertUnwindSafe(|| {
        let _guard = guard;
        panic!("the holder");
    }));
    assert_eq!(unwound.unwrap_err().downcast_ref(), Some(&"the holder"));
    ON_WAKE.set(Rc::new(|| ()));
}

/// A value whose destructor does something with the object that it is in, and is counted.
fn with_destructor<R>(dropped: &Rc<Cell<usize>>, call: impl Fn() -> R + 'static) -> Rc<OnDrop> {
    let dropped = dropped.clone();
    Rc::new(on_drop(move || {
        let _ = call();
        dropped.set(dropped.get() + 1);
    }))
}

#[test]
fn values_may_use_what_they_are_in_while_they_are_dropped() {
    let dropped = &Rc::new(Cell::new(0));
    // Of a channel whose receiver goes, of a send that is cancelled.
    let (sender, receiver) = channel(1);
    let in_channel = sender.clone();
    sender.try_send(with_destructor(dropped, move || (in_channel.statistics(), in_channel.clone()))).unwrap();
    let in_send = sender.clone();
    drop(Hand::waiting(sender.send(with_destructor(dropped, move || in_send.statistics()))));
    drop(receiver);
    assert_eq!(dropped.take(), 2);
    // Of a queue that is closed.
    let queue = Queue::new(None);
    let in_queue = queue.clone();
    queue.try_put(with_destructor(dropped, move || in_queue.try_get().is_ok())).unwrap();
    drop(queue.close_now());
    assert_eq!(dropped.take(), 1);
    // Of a broadcast: overwritten, read by the last, not read by anybody.
    let (sender, mut receiver) = broadcast(1);
    let send = || {
        let in_broadcast = sender.clone();
        sender.send(with_destructor(dropped, move || in_broadcast.subscribe())).unwrap();
    };
    (0..3).for_each(|_| send());
    assert_eq!(dropped.get(), 2);
    assert!(receiver.try_recv().is_err() && receiver.try_recv().is_ok());
    send();
    drop(receiver);
    assert_eq!(dropped.take(), 4);
    // Of a watched value that is replaced.
    let (sender, _receiver) = watch(Rc::new(on_drop(|| ())));
    let in_watch = sender.clone();
    sender.send(with_destructor(dropped, move || in_watch.borrow())).unwrap();
    sender.send(Rc::new(on_drop(|| ()))).unwrap();
    assert_eq!(dropped.take(), 1);
}

#[test]
fn a_value_whose_destructor_panics_leaves_the_rest_in_order() {
    let (sender, receiver) = channel(2);
    let dropped = Rc::new(Cell::new(false));
    let seen = dropped.clone();
    sender.try_send(on_drop(|| panic!("a foreign value"))).unwrap();
    sender.try_send(on_drop(move || seen.set(true))).unwrap();
    let waiting = Hand::waiting(sender.send(on_drop(|| ())));
    assert_eq!(panic_of(|| drop(receiver)).0, "a foreign value");
    assert!(dropped.get() && waiting.is_woken() && sender.is_closed());
}
