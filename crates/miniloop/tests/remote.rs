//! A loop and other threads: order, wakes, remote tasks, and what happens to each when the loop closes (O6, O9).

mod support;

use std::cell::RefCell;
use std::future::pending;
use std::rc::Rc;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use futures_util::poll;
use miniloop::{EventLoop, LoopError, Remote, ReportKind, TaskError, VirtualClock, sleep, yield_now};

use support::panic_of;

/// A loop on a thread of its own, running until it is stopped.
fn elsewhere() -> (Remote, thread::JoinHandle<()>) {
    let (sender, remote) = mpsc::channel();
    let thread = thread::Builder::new().spawn(move || {
        let mut event_loop = EventLoop::new().unwrap();
        sender.send(event_loop.handle().remote()).unwrap();
        event_loop.run_forever().unwrap();
    });
    (remote.recv().unwrap(), thread.unwrap())
}

fn on_a_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    thread::Builder::new().spawn(work).unwrap().join().unwrap()
}

#[test]
fn a_blocked_loop_is_woken_and_runs_calls_in_arrival_order_c010() {
    let (remote, thread) = elsewhere();
    let (sender, seen) = mpsc::channel();
    for number in 0..100 {
        let sender = sender.clone();
        remote.call_soon(move || sender.send((number, thread::current().id())).unwrap()).unwrap();
    }
    let runner = thread.thread().id();
    assert!(seen.iter().take(100).eq((0..100).map(|number| (number, runner))));
    remote.stop().unwrap();
    thread.join().unwrap();
}

#[test]
fn a_call_from_the_loops_own_thread_waits_for_its_turn_c010() {
    let mut event_loop = EventLoop::new().unwrap();
    let (handle, remote) = (event_loop.handle(), event_loop.handle().remote());
    let trace = Arc::new(std::sync::Mutex::new(Vec::new()));
    let note = |what| {
        let trace = trace.clone();
        move || trace.lock().unwrap().push(what)
    };
    let (sent, next) = (note("sent"), note("next"));
    handle.call_soon(move || {
        remote.call_soon(sent).unwrap();
        remote.stop().unwrap();
    });
    handle.call_soon(next);
    event_loop.run_forever().unwrap();
    assert_eq!(*trace.lock().unwrap(), ["next", "sent"]);
}

#[test]
fn a_closed_loop_refuses_everything_and_runs_nothing_c177() {
    let mut event_loop = EventLoop::new().unwrap();
    let remote = event_loop.handle().remote();
    let owned = Arc::new(());
    let never = |owned: &Arc<()>| {
        let owned = owned.clone();
        move || unreachable!("{owned:?}")
    };
    remote.call_soon(never(&owned)).unwrap();
    event_loop.close();
    assert!(matches!(remote.call_soon(never(&owned)), Err(LoopError::Closed)));
    assert!(matches!(remote.spawn(async || ()), Err(LoopError::Closed)));
    assert!(matches!(remote.stop(), Err(LoopError::Closed)));
    assert_eq!(Arc::strong_count(&owned), 1);
}

#[test]
fn a_failed_call_is_reported_with_the_line_that_sent_it() {
    let mut event_loop = EventLoop::new().unwrap();
    let reports = Rc::new(RefCell::new(Vec::new()));
    event_loop.handle().on_error({
        let reports = reports.clone();
        move |report| reports.borrow_mut().push((report.kind(), report.message().to_owned(), report.place().file()))
    });
    let remote = event_loop.handle().remote();
    on_a_thread(move || remote.call_soon(|| Err::<(), _>(3))).unwrap();
    event_loop.run_ready().unwrap();
    event_loop.run_ready().unwrap();
    assert_eq!(*reports.borrow(), [(ReportKind::Error, "3".to_owned(), file!())]);
}

#[test]
fn a_remote_task_ends_with_its_value_or_its_panic_c075() {
    let (remote, thread) = elsewhere();
    let value = remote.spawn(|| async {
        let local = Rc::new(41);
        yield_now().await;
        *local + 1
    });
    assert_eq!(value.unwrap().join().unwrap(), 42);
    let panics = |result: Result<(), TaskError>| result.unwrap_err().into_panic().unwrap().downcast_ref() == Some(&"no luck");
    assert!(panics(remote.spawn(|| async { panic!("no luck") }).unwrap().join()));
    assert!(panics(remote.spawn(|| -> std::future::Ready<()> { panic!("no luck") }).unwrap().join()));
    remote.stop().unwrap();
    thread.join().unwrap();
}

#[test]
fn a_remote_task_is_cancelled_when_its_handle_is_dropped_c060() {
    let (remote, thread) = elsewhere();
    let (sender, seen) = mpsc::channel::<()>();
    let task = remote.spawn(move || async move {
        sender.send(()).unwrap();
        std::future::pending::<()>().await;
    });
    seen.recv().unwrap();
    drop(task);
    assert!(seen.recv().is_err(), "the future, which owns the sender, has been dropped");
    remote.stop().unwrap();
    thread.join().unwrap();
}

#[test]
fn a_remote_task_ends_as_cancelled_when_its_loop_closes_c075() {
    let mut event_loop = EventLoop::new().unwrap();
    let remote = event_loop.handle().remote();
    let started = remote.spawn(std::future::pending::<()>).unwrap();
    event_loop.run_ready().unwrap();
    event_loop.run_ready().unwrap();
    let queued = remote.spawn(std::future::pending::<()>).unwrap();
    let joins = thread::Builder::new().spawn(|| [started.join(), queued.join()]).unwrap();
    event_loop.close();
    assert!(joins.join().unwrap().iter().all(|result| result.as_ref().is_err_and(TaskError::is_cancelled)));
}

#[test]
fn a_virtual_clock_waits_for_a_task_of_another_loop() {
    let (sender, remote) = mpsc::channel();
    let (go, may_go) = mpsc::channel::<()>();
    let thread = thread::Builder::new().spawn(move || {
        let mut event_loop = EventLoop::new().unwrap();
        sender.send(event_loop.handle().remote()).unwrap();
        may_go.recv().unwrap();
        event_loop.run_forever().unwrap();
    });
    let remote = remote.recv().unwrap();
    let mut event_loop = EventLoop::builder().clock(VirtualClock::jumping()).build().unwrap();
    // A clock that does not wait finds nothing that could ever happen.
    let result = event_loop.run_until_complete(async {
        let mut task = remote.spawn(async || 42).unwrap();
        assert!(poll!(&mut task).is_pending());
        go.send(()).unwrap();
        task.await
    });
    assert_eq!(result.unwrap().unwrap(), 42);
    remote.stop().unwrap();
    thread.unwrap().join().unwrap();
}

#[test]
fn a_virtual_clock_does_not_wait_for_a_remote_task_of_its_own_loop() {
    let clock = VirtualClock::jumping();
    let mut event_loop = EventLoop::builder().clock(&clock).build().unwrap();
    let remote = event_loop.handle().remote();
    let hour = Duration::from_secs(3_600);
    event_loop.run_until_complete(remote.spawn(move || sleep(hour)).unwrap()).unwrap().unwrap();
    assert_eq!(u128::from(clock.now().as_nanos()), hour.as_nanos());
}

#[test]
fn cancelling_a_remote_task_cancels_the_task_and_tells_how_it_ended_c060_c075() {
    let (remote, thread) = elsewhere();
    let (sender, seen) = mpsc::channel::<()>();
    let task = remote.spawn(move || async move {
        sender.send(()).unwrap();
        std::future::pending::<()>().await;
    });
    let task = task.unwrap();
    seen.recv().unwrap();
    task.cancel();
    task.cancel();
    assert!(seen.recv().is_err(), "the future, which owns the sender, has been dropped");
    assert!(task.join().unwrap_err().is_cancelled());
    remote.stop().unwrap();
    thread.join().unwrap();
}

#[test]
fn a_task_that_is_cancelled_on_its_loop_ends_as_cancelled_for_the_other_thread_c060() {
    let mut event_loop = EventLoop::new().unwrap();
    let task = event_loop.handle().remote().spawn(std::future::pending::<()>).unwrap();
    event_loop.run_ready().unwrap();
    event_loop.shutdown(Duration::from_secs(60)).unwrap();
    assert!(on_a_thread(|| task.join()).unwrap_err().is_cancelled());
}

#[test]
fn a_remote_task_that_is_cancelled_before_it_begins_does_not_run() {
    let mut event_loop = EventLoop::new().unwrap();
    let remote = event_loop.handle().remote();
    let owned = Arc::new(());
    let never = owned.clone();
    let task = remote.spawn(move || async move { unreachable!("{never:?}") }).unwrap();
    task.cancel();
    assert!(!task.is_finished());
    event_loop.run_ready().unwrap();
    assert!(task.is_finished());
    assert_eq!(Arc::strong_count(&owned), 1);
    let result: Result<(), TaskError> = on_a_thread(|| task.join());
    assert!(result.unwrap_err().is_cancelled());
}

#[test]
fn a_join_on_the_thread_of_the_tasks_own_loop_panics_instead_of_waiting_for_ever() {
    let mut event_loop = EventLoop::new().unwrap();
    let remote = event_loop.handle().remote();
    let message = "`join` would wait for ever: the event loop of this task is this thread's, to be run here";
    let task = remote.spawn(pending::<()>).unwrap();
    assert_eq!(panic_of(|| drop(task.join())).0, message);
    let task = remote.spawn(pending::<()>).unwrap();
    assert_eq!(panic_of(|| drop(task.join_timeout(Duration::MAX))).0, message);
    // One that has ended is not waited for.
    let (ended, cancelled) = (remote.spawn(async || 42).unwrap(), remote.spawn(pending::<()>).unwrap());
    while !ended.is_finished() {
        event_loop.run_ready().unwrap();
    }
    assert_eq!(ended.join().unwrap(), 42);
    drop(event_loop);
    assert!(cancelled.join().unwrap_err().is_cancelled());
}

#[test]
fn a_join_whose_time_is_up_gives_the_task_back_c075() {
    let (remote, thread) = elsewhere();
    let (sender, receiver) = mpsc::channel();
    let task = remote.spawn(move || async move {
        while receiver.try_recv().is_err() {
            yield_now().await;
        }
        42
    });
    let task = task.unwrap().join_timeout(Duration::ZERO).unwrap_err();
    sender.send(()).unwrap();
    assert_eq!(task.join_timeout(Duration::MAX).unwrap().unwrap(), 42);
    remote.stop().unwrap();
    thread.join().unwrap();
}

#[test]
fn a_task_that_cleans_up_while_its_loop_shuts_down_ends_with_its_value_for_the_other_thread_c060() {
    let mut event_loop = EventLoop::new().unwrap();
    let make = || async {
        match miniloop::catch(std::future::pending::<()>()).await {
            Ok(()) => "not cancelled",
            Err(_cleanup) => {
                yield_now().await;
                "cleaned up"
            }
        }
    };
    let task = event_loop.handle().remote().spawn(make).unwrap();
    event_loop.run_ready().unwrap();
    event_loop.run_ready().unwrap();
    event_loop.shutdown(Duration::from_secs(60)).unwrap();
    assert_eq!(on_a_thread(|| task.join()).unwrap(), "cleaned up");
}

#[test]
fn a_panic_of_a_task_whose_handle_has_gone_is_reported() {
    let mut event_loop = EventLoop::new().unwrap();
    let reports = Rc::new(RefCell::new(Vec::new()));
    event_loop.handle().on_error({
        let reports = reports.clone();
        move |report| reports.borrow_mut().push(report.to_string())
    });
    drop(event_loop.handle().remote().spawn(|| -> std::future::Ready<()> { panic!("no luck") }).unwrap());
    for _ in 0..4 {
        event_loop.run_ready().unwrap();
    }
    let [report] = &reports.borrow()[..] else { panic!("one report: {reports:?}") };
    assert!(report.starts_with("task of another thread") && report.ends_with("panicked: no luck"), "{report}");
}
