//! What once went wrong, each with the least program that shows it.

mod support;

use std::cell::{Cell, RefCell};
use std::future::pending;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::panic::panic_any;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Wake, Waker};
use std::thread;
use std::time::Duration;

use miniloop::thread::Worker;
use miniloop::{Abandoned, EventLoop, LoopHandle, promise, sleep, sock_recv, sock_sendall, timeout};

use support::{jumping, manual, ms, on_another_thread, on_drop, run_dry, trace_reports, wait_once};

#[test]
fn threads_that_send_without_end_do_not_keep_a_loop_from_returning() {
    let mut event_loop = EventLoop::new().unwrap();
    let remote = event_loop.handle().remote();
    let is_over = &AtomicBool::new(false);
    let (returned, has_returned) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| while !is_over.load(Ordering::Relaxed) && remote.call_soon(|| ()).is_ok() {});
        }
        let in_time = scope.spawn(move || {
            let in_time = has_returned.recv_timeout(Duration::from_secs(6)).is_ok();
            is_over.store(true, Ordering::Relaxed);
            in_time
        });
        while event_loop.next_timeout().is_none() {
            event_loop.run_ready().unwrap();
        }
        returned.send(()).unwrap();
        assert!(in_time.join().unwrap(), "one poll and one round lasted as long as there was something to receive");
    });
}

/// As many messages as join the queue at a time.
const MESSAGES_PER_ROUND: usize = 1_024;

#[test]
fn a_flood_of_messages_keeps_no_timer_waiting_and_joins_in_order() {
    let (mut event_loop, clock, trace) = manual();
    let handle = event_loop.handle();
    let received = Arc::new(Mutex::new(Vec::new()));
    for number in 0..3 * MESSAGES_PER_ROUND {
        let received = received.clone();
        handle.remote().call_soon(move || received.lock().unwrap().push(number)).unwrap();
    }
    let seen = (trace.clone(), received.clone());
    handle.call_later(ms(1), move || seen.0.note(seen.1.lock().unwrap().len()));
    clock.advance(ms(1));
    run_dry(&mut event_loop);
    assert_eq!(trace.take(), [MESSAGES_PER_ROUND.to_string()]);
    assert!(received.lock().unwrap().iter().copied().eq(0..3 * MESSAGES_PER_ROUND));
}

#[test]
fn a_flood_of_stale_wakes_hides_no_message_behind_it() {
    let (mut event_loop, _, trace) = jumping();
    let handle = event_loop.handle();
    let stale = Rc::new(RefCell::new(Vec::new()));
    for _ in 0..2 {
        let stale = stale.clone();
        handle.spawn(wait_once(move |waker| stale.borrow_mut().push(waker))).detach();
    }
    run_dry(&mut event_loop);
    stale.borrow().iter().for_each(Waker::wake_by_ref);
    run_dry(&mut event_loop);
    let (wakers, remote, seen) = (&stale.take(), &handle.remote(), &Arc::new(AtomicBool::new(false)));
    let send = || {
        // One after the other, because a wake that repeats the newest message is not sent.
        (0..2 * MESSAGES_PER_ROUND).for_each(|_| wakers.iter().for_each(Waker::wake_by_ref));
        let seen = seen.clone();
        remote.call_soon(move || seen.store(true, Ordering::Relaxed)).unwrap();
    };
    on_another_thread(send);
    run_dry(&mut event_loop);
    assert!(seen.swap(false, Ordering::Relaxed), "a host is told to turn it until nothing is left");
    on_another_thread(send);
    let noted = (trace.clone(), seen.clone());
    handle.call_later(ms(1), move || noted.0.note(noted.1.load(Ordering::Relaxed)));
    event_loop.run_until_complete(async { sleep(ms(2)).await }).unwrap();
    assert_eq!(trace.take(), ["true"], "the clock has not jumped before");
}

/// The waker of an executor with a defect.
struct Broken;

impl Wake for Broken {
    fn wake(self: Arc<Self>) {
        panic!("cannot wake");
    }
}

/// Polls a future once, outside any task, so that it waits with a waker that panics.
#[track_caller]
fn wait_with_a_broken_waker(future: impl Future + Unpin) {
    assert!(pin!(future).poll(&mut Context::from_waker(&Arc::new(Broken).into())).is_pending());
}

#[test]
fn a_waker_that_panics_when_io_comes_costs_nobody_else_the_wake_up() {
    let (mut event_loop, ..) = manual();
    let handle = event_loop.handle();
    let reports = trace_reports(&handle);
    let _entered = handle.enter();
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    let (others, mut their_peer) = UnixStream::pair().unwrap();
    let mut byte = [0];
    let mut broken = sock_recv(&ours, &mut byte);
    wait_with_a_broken_waker(&mut broken);
    let task = handle.spawn(async move { sock_recv(&others, &mut [0]).await.unwrap() });
    run_dry(&mut event_loop);
    theirs.write_all(b"x").unwrap();
    their_peer.write_all(b"x").unwrap();
    event_loop.run_ready().unwrap();
    run_dry(&mut event_loop);
    assert!(task.is_finished());
    assert_eq!(reports.take(), ["Panic waker: cannot wake"]);
}

#[test]
fn a_waker_that_panics_when_its_time_comes_stops_no_loop() {
    let (mut event_loop, clock, trace) = manual();
    let handle = event_loop.handle();
    let reports = trace_reports(&handle);
    let mut broken = {
        let _entered = handle.enter();
        sleep(ms(1))
    };
    wait_with_a_broken_waker(&mut broken);
    handle.call_later(ms(1), trace.noting("timer"));
    clock.advance(ms(1));
    event_loop.run_ready().unwrap();
    run_dry(&mut event_loop);
    assert_eq!((trace.take(), reports.take()), (vec!["timer".to_owned()], vec!["Panic waker: cannot wake".to_owned()]));
}

#[test]
fn a_waker_that_panics_when_a_task_ends_is_reported_and_stops_neither_loop_nor_close() {
    let (mut event_loop, _, trace) = manual();
    let handle = event_loop.handle();
    let reports = trace_reports(&handle);
    let (mut short, mut long) = (handle.spawn(async { 1 }).named("short"), handle.spawn(pending::<()>()).named("long"));
    wait_with_a_broken_waker(&mut short);
    wait_with_a_broken_waker(&mut long);
    run_dry(&mut event_loop);
    assert_eq!(reports.take(), ["Panic reader of task `short`: cannot wake"]);
    let callback = trace.on_drop("callback");
    handle.call_later(ms(1), move || drop(callback));
    event_loop.close();
    assert!(handle.is_closed());
    assert_eq!(trace.take(), ["callback"]);
    assert_eq!(reports.take(), ["Panic reader of task `long`: cannot wake"]);
}

#[test]
fn a_waker_that_panics_costs_the_other_readers_of_a_shared_result_nothing() {
    let (mut event_loop, ..) = manual();
    let handle = event_loop.handle();
    let reports = trace_reports(&handle);
    let (resolver, promise) = promise::<_, Abandoned>();
    let mut broken = promise.shared();
    let reader = broken.clone();
    wait_with_a_broken_waker(&mut broken);
    let task = handle.spawn(async move { *reader.await });
    run_dry(&mut event_loop);
    handle.call_soon(move || resolver.set_result(7));
    run_dry(&mut event_loop);
    assert!(task.is_finished());
    assert_eq!(reports.take(), ["Panic callback: cannot wake"]);
}

/// What a very bad program panics with: dropping it panics again, with another one.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic_any(Bomb);
    }
}

#[test]
fn a_panic_whose_payload_panics_is_reported_twice_and_not_without_end() {
    let (mut event_loop, ..) = manual();
    let handle = event_loop.handle();
    let reports = trace_reports(&handle);
    handle.call_soon(|| drop(Bomb));
    run_dry(&mut event_loop);
    let expected = ["Panic callback: (a panic without a text)", "DropPanic error handler: (a panic without a text)"];
    assert_eq!(reports.take(), expected);
    let bomb = Bomb;
    handle.call_later(ms(1), move || drop(bomb));
    event_loop.close();
    assert_eq!(reports.len(), 2);
}

#[test]
fn a_worker_whose_job_panics_with_what_panics_again_tells_everybody() {
    let (event_loop, ..) = manual();
    let _entered = event_loop.handle().enter();
    let worker = Worker::new("bombs", || ()).unwrap();
    let (begun, has_begun) = mpsc::channel();
    let (go, may_go) = mpsc::channel::<()>();
    let unread = worker.call(move |()| {
        begun.send(()).unwrap();
        may_go.recv().unwrap();
        drop(Bomb);
    });
    has_begun.recv().unwrap();
    drop(unread);
    let mut waiting = worker.call(|()| ());
    let (ended, has_ended) = mpsc::channel();
    assert!(Pin::new(&mut waiting).poll(&mut Context::from_waker(&Arc::new(Tell(ended)).into())).is_pending());
    go.send(()).unwrap();
    has_ended.recv_timeout(Duration::from_secs(20)).expect("the call is answered");
}

struct Tell(mpsc::Sender<()>);

impl Wake for Tell {
    fn wake(self: Arc<Self>) {
        self.0.send(()).unwrap();
    }
}

#[test]
fn a_waker_of_a_loop_that_is_gone_fires_no_timer_of_a_later_loop_with_its_id() {
    const IDS: usize = 4_096;
    let (mut first, ..) = manual();
    let stale = Rc::new(RefCell::new(Vec::new()));
    for _ in 0..4 {
        let stale = stale.clone();
        first.handle().spawn(wait_once(move |waker| stale.borrow_mut().push(waker))).detach();
    }
    run_dry(&mut first);
    first.close();
    for _ in 0..=IDS {
        let (mut event_loop, _, trace) = manual();
        for _ in 0..4 {
            event_loop.handle().call_later(ms(1), trace.noting("early"));
        }
        stale.borrow().iter().for_each(Waker::wake_by_ref);
        run_dry(&mut event_loop);
        assert_eq!(trace.len(), 0);
    }
}

#[test]
fn the_share_of_operations_is_for_tasks_and_blocks_no_callback() {
    let (mut event_loop, _, trace) = manual();
    let note = trace.noting("all sent");
    event_loop.handle().call_soon(move || {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        for _ in 0..100 {
            let sent = pin!(sock_sendall(&ours, b"x")).poll(&mut Context::from_waker(Waker::noop()));
            assert!(sent.is_ready());
        }
        note();
    });
    run_dry(&mut event_loop);
    assert_eq!(trace.take(), ["all sent"]);
}

#[test]
fn a_sleep_does_not_end_early_because_its_loop_is_closed() {
    let (mut event_loop, clock, _) = manual();
    let mut sleeping = {
        let _entered = event_loop.handle().enter();
        sleep(ms(1))
    };
    let mut poll = || pin!(&mut sleeping).poll(&mut Context::from_waker(Waker::noop()));
    assert!(poll().is_pending());
    event_loop.close();
    assert!(poll().is_pending());
    clock.advance(ms(1));
    assert!(poll().is_ready());
}

#[test]
fn a_call_whose_answer_nobody_reads_yet_does_not_hold_up_a_virtual_clock() {
    let (mut event_loop, ..) = jumping();
    let remote = event_loop.handle().remote();
    let (awaken, is_awake) = mpsc::channel();
    thread::scope(|scope| {
        // A loop that hangs is stopped, and the test fails.
        scope.spawn(move || is_awake.recv_timeout(Duration::from_secs(20)).is_err().then(|| remote.stop()));
        event_loop
            .run_until_complete(async {
                let worker = Worker::new("unread", || ()).unwrap();
                let unread = worker.call(|()| 7);
                sleep(Duration::from_secs(1)).await;
                assert_eq!(unread.await.unwrap(), 7);
                worker.close().await.unwrap();
            })
            .expect("the clock jumps");
        awaken.send(()).unwrap();
    });
}

#[test]
fn a_remote_task_whose_result_nobody_reads_yet_does_not_hold_up_a_virtual_clock() {
    let (mut event_loop, ..) = jumping();
    let own = event_loop.handle().remote();
    let (started, remote) = mpsc::channel();
    let (awaken, is_awake) = mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(move || {
            let mut elsewhere = EventLoop::new().unwrap();
            started.send(elsewhere.handle().remote()).unwrap();
            elsewhere.run_forever().unwrap();
        });
        let remote = remote.recv().unwrap();
        let their_end = remote.clone();
        // Loops that hang are stopped, and the test fails.
        scope.spawn(move || {
            if is_awake.recv_timeout(Duration::from_secs(20)).is_err() {
                own.stop().unwrap();
            }
            their_end.stop().unwrap();
        });
        event_loop
            .run_until_complete(async {
                let mut unread = remote.spawn(|| async { sleep(ms(5)).await }).unwrap();
                assert_eq!(timeout(Duration::ZERO, &mut unread).await.ok().map(drop), None);
                sleep(Duration::from_secs(1)).await;
                unread.await.unwrap();
            })
            .expect("the clock jumps");
        awaken.send(()).unwrap();
    });
}

#[test]
fn what_is_sent_to_a_loop_reaches_it_while_a_task_of_it_has_entered_another() {
    let (mut event_loop, _, trace) = jumping();
    let (other, ..) = manual();
    let (handle, remote, entered) = (event_loop.handle(), event_loop.handle().remote(), other.handle());
    handle
        .spawn(async move {
            let _entered = entered.enter();
            pending::<()>().await;
        })
        .detach();
    send_that_a_call_has_landed(&event_loop);
    let task = on_another_thread(|| remote.spawn(|| async { 7 })).unwrap();
    handle.call_later(ms(1), trace.noting("the clock has jumped"));
    handle.call_later(ms(2), move || on_another_thread(|| remote.stop()));
    event_loop.run_forever().expect("it is this loop that is stopped");
    assert_eq!(trace.take(), ["the clock has jumped"]);
    event_loop.close();
    assert_eq!(other.next_timeout(), None, "nothing has come here");
    assert_eq!(task.join().unwrap(), 7);
}

/// Leaves the loop a message without which its clock never jumps: the answer of a call that nobody awaits any more has come.
fn send_that_a_call_has_landed(event_loop: &EventLoop) {
    let _entered = event_loop.handle().enter();
    let worker = Worker::new("unread", || ()).unwrap();
    let (begun, has_begun) = mpsc::channel();
    let (go, may_go) = mpsc::channel::<()>();
    let unread = worker.call(move |()| {
        begun.send(()).unwrap();
        may_go.recv().unwrap();
    });
    has_begun.recv().unwrap();
    drop(unread);
    go.send(()).unwrap();
    // Dropping the worker waits for its thread.
}

#[test]
fn a_shutdown_ends_on_a_virtual_clock_though_destructors_spawn_again_and_again() {
    fn spawn_again(handle: LoopHandle, goes_on: Rc<Cell<bool>>) {
        let again = on_drop({
            let handle = handle.clone();
            move || {
                if goes_on.get() {
                    spawn_again(handle, goes_on);
                }
            }
        });
        let body = async move {
            let _again = again;
            pending::<()>().await;
        };
        handle.spawn(body).detach();
    }
    for (mut event_loop, ..) in [manual(), jumping()] {
        let goes_on = Rc::new(Cell::new(true));
        spawn_again(event_loop.handle(), goes_on.clone());
        event_loop.shutdown(ms(1)).unwrap();
        goes_on.set(false);
    }
}
