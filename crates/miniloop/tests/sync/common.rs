//! What holds for all of them: one thread, no loop needed, a share of the loop for everybody else.

use std::cell::Cell;
use std::pin::{Pin, pin};
use std::rc::Rc;

use futures_util::future::FusedFuture;
use futures_util::poll;
use miniloop::sync::{
    Barrier, Condvar, Event, Mutex, MutexGuard, OwnedMutexGuard, OwnedSemaphorePermit, Queue, Semaphore, SemaphorePermit, broadcast,
    channel, watch,
};
use miniloop::{EventLoop, spawn};

use crate::by_hand::Hand;
use crate::support::{manual, panic_of, run_dry};

/// Compiles only for a type that is not `Send`: for another it would be unclear which `is_not_send` is meant.
macro_rules! is_not_send {
    ($($type:ty),* $(,)?) => {
        trait IsNotSend<Ambiguous> {
            fn is_not_send() {}
        }
        impl<T: ?Sized> IsNotSend<()> for T {}
        impl<T: ?Sized + Send> IsNotSend<u8> for T {}
        $(<$type as IsNotSend<_>>::is_not_send();)*
    };
}

#[test]
fn nothing_leaves_its_thread() {
    is_not_send!(
        Mutex<()>,
        MutexGuard<'_, ()>,
        OwnedMutexGuard<()>,
        Semaphore,
        SemaphorePermit<'_>,
        OwnedSemaphorePermit,
        Event,
        Condvar,
        Barrier,
        Queue<()>,
        channel::Sender<()>,
        channel::Receiver<()>,
        broadcast::Sender<()>,
        broadcast::Receiver<()>,
        watch::Sender<()>,
        watch::Receiver<()>,
        watch::Ref<()>,
    );
}

/// One task does `operation`, which never has to wait, again and again.
#[track_caller]
fn check_share<F: Future>(operation: impl Fn() -> F + 'static) {
    let (mut event_loop, ..) = manual();
    let count = Rc::new(Cell::new(0));
    let counted = count.clone();
    let task = event_loop.handle().spawn(async move {
        loop {
            drop(operation().await);
            counted.set(counted.get() + 1);
            assert!(counted.get() < 1_000, "nobody else has run");
        }
    });
    for polls in 1..=3 {
        event_loop.run_once().unwrap();
        assert_eq!(count.get(), polls * 64);
    }
    drop(task);
}

#[test]
fn an_operation_that_never_waits_gives_way_after_its_share_o10() {
    let mutex = Rc::new(Mutex::new(()));
    check_share(move || mutex.clone().lock_owned());
    let semaphore = Rc::new(Semaphore::new(1));
    check_share(move || semaphore.clone().acquire_owned());
    let event = Rc::new(Event::new());
    event.set();
    check_share(move || {
        let event = event.clone();
        async move { event.wait().await }
    });
    let barrier = Rc::new(Barrier::new(1));
    check_share(move || {
        let barrier = barrier.clone();
        async move { barrier.wait().await }
    });
    let queue = Queue::new(1);
    check_share(move || {
        let queue = queue.clone();
        async move {
            queue.try_put(()).unwrap();
            queue.get().await
        }
    });
    let queue = Queue::new(1);
    check_share(move || {
        let queue = queue.clone();
        async move {
            queue.put(()).await.unwrap();
            queue.try_get().unwrap();
        }
    });
    check_share(move || async { Queue::<()>::new(1).join().await });
    check_share(move || async {
        let (sender, _receiver) = channel(1);
        sender.send(()).await
    });
    check_share(move || async {
        let (sender, mut receiver) = channel(1);
        sender.try_send(()).unwrap();
        receiver.recv().await
    });
    check_share(move || async {
        let (sender, mut receiver) = broadcast(1);
        sender.send(()).unwrap();
        receiver.recv().await
    });
    check_share(move || async {
        let (sender, mut receiver) = watch(());
        sender.send(()).unwrap();
        receiver.changed().await
    });
    check_share(move || async { watch(()).1.wait_for(|()| true).await.map(drop) });
    check_share(move || async { drop(Condvar::new().wait_while(Mutex::new(()).try_lock().unwrap(), |()| false).await) });
}

#[test]
fn two_tasks_that_feed_each_other_for_ever_do_not_stop_the_loop_o10() {
    let (mut event_loop, _, trace) = manual();
    let (ping, from_ping) = channel(100);
    let (pong, from_pong) = channel(100);
    (0..100).for_each(|number| ping.try_send(number).unwrap());
    let tasks = [(from_ping, pong), (from_pong, ping)].map(|(mut receiver, sender)| {
        event_loop.handle().spawn(async move {
            while let Some(number) = receiver.recv().await {
                sender.send(number).await.unwrap();
            }
        })
    });
    event_loop.handle().call_soon(trace.noting("somebody else"));
    for _ in 0..10 {
        event_loop.run_once().unwrap();
    }
    assert_eq!(trace.take(), ["somebody else"]);
    assert!(tasks.iter().all(|task| !task.is_finished()));
}

#[track_caller]
fn check_home(future: impl Future + Unpin) {
    let mut future = future;
    let [mut first, mut second] = [(); 2].map(|()| EventLoop::new().unwrap());
    assert!(first.run_until_complete(async { poll!(&mut future).is_pending() }).unwrap());
    let (message, _) = panic_of(|| second.run_until_complete(async { poll!(&mut future).is_pending() }));
    assert!(message.contains("belongs to event loop") && message.contains("await it where it belongs"), "{message}");
}

#[test]
fn a_future_stays_with_the_loop_under_which_it_waited_first() {
    check_home(Semaphore::new(0).acquire());
    check_home(channel::<()>(1).1.recv());
    check_home(Event::new().wait());
}

#[test]
fn a_future_that_is_done_says_so_and_refuses_to_be_polled() {
    let event = Event::new();
    let mut future = event.wait();
    assert!(!future.is_terminated());
    event.set();
    assert!(Hand::new(&mut future).poll().is_ready() && future.is_terminated());
    let (message, _) = panic_of(|| Hand::new(future).poll());
    assert!(message.contains("an event to be set was polled after it was done"), "{message}");
    let (sender, mut receiver) = channel(1);
    sender.try_send(()).unwrap();
    let mut future = receiver.recv();
    assert!(Hand::new(&mut future).poll().is_ready() && future.is_terminated());
    let (message, _) = panic_of(|| Hand::new(future).poll());
    assert!(message.contains("polled after it was done"), "{message}");
}

#[test]
fn a_future_that_goes_to_another_task_wakes_that_one_and_keeps_its_place() {
    let semaphore = Semaphore::new(0);
    let mut moving = semaphore.acquire();
    let mut left = Hand::new(&mut moving);
    assert!(left.poll().is_pending());
    let second = Hand::waiting(semaphore.acquire());
    drop(left);
    let mut next = Hand::new(&mut moving);
    assert!(next.poll().is_pending());
    semaphore.add_permits(1);
    assert!(next.is_woken() && !second.is_woken() && next.poll().is_ready());
}

/// A lock that is held across a wait, in a group of tasks that all want it, under a loop: the everyday use.
#[test]
fn tasks_take_turns() {
    let (mut event_loop, _, trace) = manual();
    event_loop
        .run_until_complete(async {
            let mutex = Rc::new(Mutex::new(0));
            let tasks = ["a", "b", "c"].map(|name| {
                let (mutex, trace) = (mutex.clone(), trace.clone());
                spawn(async move {
                    let mut guard = mutex.lock().await;
                    miniloop::yield_now().await;
                    *guard += 1;
                    trace.note(format_args!("{name}{guard}"));
                })
            });
            for task in tasks {
                task.await.unwrap();
            }
        })
        .unwrap();
    assert_eq!(trace.take(), ["a1", "b2", "c3"]);
}

#[test]
fn another_executor_of_the_thread_will_do() {
    let (sender, mut receiver) = channel(1);
    let producer = async {
        for number in 0..100 {
            sender.send(number).await.unwrap();
        }
    };
    let consumer = async {
        for number in 0..100 {
            assert_eq!(receiver.recv().await, Some(number));
        }
    };
    let mut both = pin!(futures_util::future::join(producer, consumer));
    let mut hand = Hand::new(async move { both.as_mut().await });
    while hand.poll().is_pending() {
        assert!(hand.is_woken(), "nobody would poll it again");
    }
}

#[test]
fn two_loops_of_one_thread_feed_each_other() {
    let [(mut left, ..), (mut right, ..)] = [manual(), manual()];
    let (sender, mut receiver) = channel(1);
    let consumer = left.handle().spawn(async move {
        let mut sum = 0;
        while let Some(number) = receiver.recv().await {
            sum += number;
        }
        sum
    });
    let producer = right.handle().spawn(async move {
        for number in 0..10 {
            sender.send(number).await.unwrap();
        }
    });
    while !(consumer.is_finished() && producer.is_finished()) {
        assert!([&mut left, &mut right].iter_mut().map(|event_loop| run_dry(event_loop)).sum::<usize>() > 0, "somebody must be awake");
    }
    assert_eq!(left.run_until_complete(consumer).unwrap().unwrap(), 45);
}

#[test]
fn futures_can_be_moved_while_they_wait() {
    let semaphore = Semaphore::new(0);
    let mut futures = vec![semaphore.acquire()];
    assert!(Hand::new(Pin::new(&mut futures[0])).poll().is_pending());
    for _ in 0..10 {
        futures.push(semaphore.acquire());
    }
    semaphore.add_permits(1);
    assert!(Hand::new(Pin::new(&mut futures[0])).poll().is_ready());
}
