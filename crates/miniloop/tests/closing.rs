//! Closing (O9, C036 to C041) and shutting down (C042): in which order things go, and what destructors may do meanwhile.

mod support;

use std::cell::{Cell, RefCell};
use std::future::{Future, pending, poll_fn};
use std::os::unix::net::UnixStream;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Waker};
use std::time::Duration;

use miniloop::{Abandoned, CancelReason, EventLoop, LoopError, LoopHandle, Report, catch, now, promise, race, sleep, spawn};
use support::{OnDrop, Trace, jumping, manual, ms, on_drop, panic_of, panic_on_drop, run_dry, trace_reports};

/// A task that waits for ever and owns `owned`.
fn spawn_owner(handle: &LoopHandle, owned: impl Sized + 'static) {
    handle
        .spawn(async move {
            let _owned = owned;
            pending::<()>().await;
        })
        .detach();
}

#[test]
fn tasks_go_newest_first_then_callbacks_then_timers_then_reports_o9() {
    let (mut event_loop, _, trace) = manual();
    let handle = event_loop.handle();
    handle.on_error({
        let (trace, _kept) = (trace.clone(), trace.on_drop("error handler"));
        move |report: &Report| {
            let _kept = &_kept;
            trace.note(format_args!("report: {}", report.message()));
        }
    });
    let owning = |what: &'static str| {
        let owned = trace.on_drop(what);
        move || drop(owned)
    };
    handle.call_later(ms(2), owning("timer 2"));
    handle.call_later(ms(1), owning("timer 1"));
    handle.call_at(miniloop::Instant::FAR_FUTURE, owning("timer never"));
    for task in ["task 1", "task 2", "task 3"] {
        spawn_owner(&handle, trace.on_drop(task));
    }
    event_loop.run_once().unwrap();
    handle.call_soon(owning("callback 1"));
    handle.call_soon(owning("callback 2"));
    spawn_owner(&handle, (trace.on_drop("task 4, never polled"), panic_on_drop("task 4 fails")));
    event_loop.close();
    assert_eq!(
        trace.take(),
        [
            "task 4, never polled",
            "task 3",
            "task 2",
            "task 1",
            "callback 1",
            "callback 2",
            "timer 1",
            "timer 2",
            "timer never",
            "report: task 4 fails",
            "error handler"
        ]
    );
}

#[test]
fn closing_twice_and_dropping_a_closed_loop_is_fine_c036_c041() {
    let (mut event_loop, _, trace) = manual();
    spawn_owner(&event_loop.handle(), trace.on_drop("task"));
    event_loop.close();
    event_loop.close();
    drop(event_loop);
    assert_eq!(trace.take(), ["task"]);
}

#[test]
fn dropping_a_loop_closes_it_c041() {
    let (event_loop, _, trace) = manual();
    let handle = event_loop.handle();
    spawn_owner(&handle, (handle.clone(), trace.on_drop("task")));
    drop(event_loop);
    assert_eq!((trace.take(), handle.is_closed()), (vec!["task".to_owned()], true));
}

#[test]
fn a_closed_loop_cannot_be_run_c037() {
    let (mut event_loop, ..) = manual();
    event_loop.close();
    assert!(matches!(event_loop.run_until_complete(async {}), Err(LoopError::Closed)));
    assert!(matches!(event_loop.run_forever(), Err(LoopError::Closed)));
    assert!(matches!(event_loop.run_once(), Err(LoopError::Closed)));
    assert!(matches!(event_loop.run_ready(), Err(LoopError::Closed)));
    assert!(matches!(event_loop.shutdown(ms(1)), Err(LoopError::Closed)));
    assert_eq!(event_loop.next_timeout(), None);
}

#[test]
fn scheduling_on_a_closed_loop_panics_names_the_caller_and_drops_what_it_was_given_c037_c039() {
    #[track_caller]
    fn check<R>(trace: &Trace, call: impl FnOnce(OnDrop) -> R) {
        let owned = trace.on_drop("dropped");
        let (message, file) = panic_of(|| call(owned));
        assert!(message.contains("the event loop is closed") && message.contains("try_call_soon"), "{message}");
        assert_eq!(file, file!());
        assert_eq!(trace.take(), ["dropped"]);
    }
    let (mut event_loop, _, trace) = manual();
    let handle = event_loop.handle();
    event_loop.close();
    check(&trace, |owned| handle.call_soon(move || drop(owned)));
    check(&trace, |owned| handle.call_later(ms(1), move || drop(owned)));
    check(&trace, |owned| handle.call_at(miniloop::Instant::FAR_FUTURE, move || drop(owned)));
    check(&trace, |mut owned| handle.call_every(ms(1), move || drop(std::mem::replace(&mut owned, on_drop(|| ())))));
    check(&trace, |owned| handle.spawn(async move { drop(owned) }));
    let owned = trace.on_drop("dropped");
    assert!(matches!(handle.try_call_soon(move || drop(owned)), Err(LoopError::Closed)));
    assert_eq!(trace.take(), ["dropped"]);
}

#[test]
fn on_a_closed_loop_descriptors_are_refused_and_removing_one_is_false_c037_c038() {
    let (mut event_loop, _, trace) = manual();
    let handle = event_loop.handle();
    let (_peer, descriptor) = UnixStream::pair().unwrap();
    handle.add_reader(&descriptor, || ()).unwrap();
    event_loop.close();
    assert!(!handle.remove_reader(&descriptor) && !handle.remove_writer(&descriptor));
    let owned = trace.on_drop("dropped");
    let refused = handle.add_reader(&descriptor, move || assert!(!std::ptr::eq(&owned, std::ptr::null())));
    assert!(refused.unwrap_err().to_string().contains("closed"));
    assert_eq!(trace.take(), ["dropped"]);
}

#[test]
fn handles_of_a_closed_loop_are_harmless_c037() {
    let (mut event_loop, _, trace) = manual();
    let handle = event_loop.handle();
    let callback = handle.call_soon(|| ());
    let timer = handle.call_later(ms(1), || ());
    let task = handle.spawn(async { 1 });
    let finished = handle.spawn(async { 2 });
    let waiting = handle.spawn(pending::<()>());
    event_loop.close();
    callback.cancel();
    timer.cancel();
    task.cancel();
    handle.stop();
    assert!(!callback.is_pending() && !timer.is_pending());
    assert_eq!(timer.when().as_nanos(), 1_000_000);
    assert!(task.is_finished() && finished.is_finished() && waiting.is_finished());
    assert_eq!((task.name(), waiting.name()), ("task-0".to_owned(), "task-2".to_owned()));
    waiting.detach();
    drop(finished);
    // A task of a closed loop can still be read elsewhere: it was cancelled.
    let (mut other, ..) = manual();
    assert!(other.run_until_complete(task).unwrap().unwrap_err().is_cancelled());
    assert!(trace.take().is_empty());
}

#[test]
fn a_result_that_is_waited_for_on_a_closed_loop_is_refused_c037() {
    let (mut event_loop, _, trace) = manual();
    let task = event_loop.handle().spawn(async { 1 });
    event_loop.close();
    let owned = trace.on_drop("dropped");
    let (message, file) = panic_of(|| task.on_done(move |_| drop(owned)));
    assert!(message.contains("the event loop is closed"), "{message}");
    assert_eq!(file, file!());
    assert_eq!(trace.take(), ["dropped"]);
}

#[test]
fn while_a_loop_closes_destructors_may_do_anything_o9() {
    let (mut event_loop, _, trace) = manual();
    let reports = support::trace_reports(&event_loop.handle());
    let handle = event_loop.handle();
    let (resolver, kept) = promise::<(), Abandoned>();
    let other = handle.spawn(pending::<()>());
    let timer = handle.call_later(ms(1), trace.noting("never called"));
    let reader = handle.spawn({
        let noting = trace.noting("never read");
        async move {
            let _ = kept.await;
            noting();
        }
    });
    event_loop.run_once().unwrap();

    let seen = trace.clone();
    let inner = handle.clone();
    spawn_owner(
        &handle,
        on_drop(move || {
            let refused = inner.spawn(seen.clone().refuse("spawned"));
            seen.note(format_args!("spawned: finished {}", refused.is_finished()));
            let refused = spawn(seen.clone().refuse("spawned by the free function"));
            seen.note(format_args!("spawned: finished {}", refused.is_finished()));
            let owned = seen.on_drop("callback dropped at once");
            let refused = inner.call_soon(move || drop(owned));
            seen.note(format_args!("callback: pending {}", refused.is_pending()));
            assert!(!inner.call_later(ms(1), || ()).is_pending() && !inner.call_every(ms(1), || ()).is_pending());
            other.cancel();
            timer.cancel();
            resolver.set_result(());
            inner.stop();
            inner.on_error(|_| ());
            panic!("and then it panics");
        }),
    );
    event_loop.close();
    assert_eq!(
        trace.take(),
        [
            "spawned dropped",
            "spawned: finished true",
            "spawned by the free function dropped",
            "spawned: finished true",
            "callback dropped at once",
            "callback: pending false"
        ]
    );
    assert!(reader.is_finished());
    assert_eq!(reports.take(), ["DropPanic task `task-2`: and then it panics"], "a closing loop keeps its error handler");
}

impl Trace {
    /// A future that must not be polled, and notes that it is dropped.
    fn refuse(self, name: &'static str) -> impl Future<Output = ()> {
        let owned = self.on_drop(format!("{name} dropped"));
        async move {
            drop(owned);
            unreachable!("{name} was polled");
        }
    }
}

#[test]
fn what_destructors_of_callbacks_hang_onto_a_closing_loop_is_dropped_too_o9() {
    let (mut event_loop, _, trace) = manual();
    let handle = event_loop.handle();
    let task = handle.spawn(pending::<()>());
    let shared = handle.spawn(pending::<()>()).shared();
    let (_resolver, promise) = promise::<(), Abandoned>();
    let seen = trace.clone();
    let owned = on_drop(move || {
        let [one, two, three] = ["on_done of a task", "on_done of a promise", "on_done of a shared task"].map(|name| seen.on_drop(name));
        task.on_done(move |_| drop(one));
        promise.on_done(move |_| drop(two));
        shared.on_done(move |_| drop(three));
    });
    handle.call_at(miniloop::Instant::FAR_FUTURE, move || drop(owned));
    drop(handle);
    event_loop.close();
    assert_eq!(trace.take(), ["on_done of a task", "on_done of a promise", "on_done of a shared task"]);
}

#[test]
fn a_failing_destructor_hurts_no_other_o9() {
    let (mut event_loop, _, trace) = manual();
    let handle = event_loop.handle();
    let reports = support::trace_reports(&handle);
    for n in 0..3 {
        spawn_owner(&handle, (trace.on_drop(format!("task {n}")), panic_on_drop("task")));
        let owned = (trace.on_drop(format!("callback {n}")), panic_on_drop("callback"));
        handle.call_soon(move || drop(owned));
        let owned = (trace.on_drop(format!("timer {n}")), panic_on_drop("timer"));
        handle.call_later(ms(n), move || drop(owned));
    }
    event_loop.close();
    assert_eq!(trace.take(), ["task 2", "task 1", "task 0", "callback 0", "callback 1", "callback 2", "timer 0", "timer 1", "timer 2"]);
    let expected = [
        ["DropPanic task `task-2`: task", "DropPanic task `task-1`: task", "DropPanic task `task-0`: task"],
        ["DropPanic callback: callback"; 3],
        ["DropPanic callback: timer"; 3],
    ];
    assert_eq!(reports.take(), expected.concat());
}

#[test]
fn an_error_handler_set_on_a_closing_or_closed_loop_is_dropped_o9() {
    let (mut event_loop, _, trace) = manual();
    let handle = event_loop.handle();
    let (inner, owned, last) = (handle.clone(), trace.on_drop("first handler"), trace.on_drop("second handler"));
    let last = RefCell::new(Some(last));
    handle.on_error(move |_| {
        let _owned = &owned;
        let (handle, last) = (inner.clone(), last.take());
        inner.on_error(move |_| {
            let _owned = (&handle, &last);
        });
    });
    spawn_owner(&handle, panic_on_drop("once"));
    event_loop.close();
    assert_eq!(trace.take(), ["second handler", "first handler"]);
    handle.on_error({
        let (handle, owned) = (handle.clone(), trace.on_drop("handler of a closed loop"));
        move |_| {
            let _owned = (&handle, &owned);
        }
    });
    assert_eq!(trace.take(), ["handler of a closed loop"]);
}

#[test]
fn a_loop_may_be_closed_inside_a_task_of_another() {
    let (mut outer, ..) = manual();
    let (mut inner, _, trace) = manual();
    let handle = inner.handle();
    let seen = trace.clone();
    spawn_owner(&handle, on_drop(move || seen.note(format_args!("inside another task: {}", miniloop::current_task().is_some()))));
    outer.run_until_complete(async move { inner.close() }).unwrap();
    assert_eq!(trace.take(), ["inside another task: false"]);
    run_dry(&mut outer);
}

#[test]
fn a_loop_and_its_handles_may_be_dropped_in_any_order() {
    let event_loop = Rc::new(RefCell::new(Some(EventLoop::new().unwrap())));
    let handle = event_loop.borrow().as_ref().unwrap().handle();
    let guard = handle.enter();
    event_loop.take();
    assert!(LoopHandle::current().is_closed(), "entered, although it was closed meanwhile");
    drop(handle);
    drop(guard);
    assert!(LoopHandle::try_current().is_none());
}

/// Also by the one that has got its id, of which there are 4,096.
#[test]
fn a_future_that_has_outlived_its_loop_is_refused_by_every_later_one() {
    let first = EventLoop::new().unwrap();
    let entered = first.handle().enter();
    let (_resolver, waiting) = promise::<(), Abandoned>();
    let (mut waiting, mut racing) = (pin!(waiting), pin!(race([pending::<()>()])));
    let mut cx = Context::from_waker(Waker::noop());
    assert!(waiting.as_mut().poll(&mut cx).is_pending() && racing.as_mut().poll(&mut cx).is_pending());
    drop(entered);
    drop(first);
    for _ in 0..4_096 {
        let later = EventLoop::new().unwrap();
        let _entered = later.handle().enter();
        let (message, _) = panic_of(|| waiting.as_mut().poll(&mut cx));
        assert!(message.contains("this promise belongs to event loop"), "{message}");
        let (message, _) = panic_of(|| racing.as_mut().poll(&mut cx));
        assert!(message.contains("this race belongs to event loop"), "{message}");
    }
}

// A shutdown, which lets everybody clean up first.

/// Spawns tasks that need so much time to clean up, and shuts down with so much grace.
#[track_caller]
fn check_shutdown(mut event_loop: EventLoop, needs_ms: &[u64], grace_ms: u64, expected: &[&str]) {
    let trace = Trace::default();
    let handle = event_loop.handle();
    let noting = trace.clone();
    handle.on_error(move |report| noting.note(format_args!("{:?} {}", report.kind(), report.subject())));
    for need in needs_ms {
        let (trace, need) = (trace.clone(), *need);
        handle
            .spawn(async move {
                let _dropped = trace.on_drop(format!("{need} dropped"));
                let cleanup = catch(pending::<()>()).await.unwrap_err();
                assert_eq!(cleanup.reason(), CancelReason::Shutdown);
                sleep(ms(need)).await;
                trace.note(format_args!("{need} is clean at {}", now().as_nanos() / 1_000_000));
            })
            .detach();
    }
    event_loop.run_ready().unwrap();
    event_loop.shutdown(ms(grace_ms)).unwrap();
    event_loop.close();
    assert_eq!(trace.take(), expected);
}

#[test]
fn shutdown_waits_for_clean_up_and_ends_what_outlasts_its_grace_c042() {
    let expected = ["3 is clean at 3", "3 dropped", "8 is clean at 8", "8 dropped"];
    check_shutdown(jumping().0, &[8, 3], 10, &expected);
    let expected = ["3 is clean at 3", "3 dropped", "20 dropped", "GraceExceeded task `task-1`"];
    check_shutdown(jumping().0, &[3, 20], 10, &expected);
    // A clock that nobody moves: what needs no time is waited for, the rest is aborted.
    check_shutdown(manual().0, &[0, 20], 10, &["0 is clean at 0", "0 dropped", "GraceExceeded task `task-1`", "20 dropped"]);
    check_shutdown(jumping().0, &[3], 0, &["3 dropped", "GraceExceeded task `task-0`"]);
}

#[test]
fn shutdown_waits_on_the_systems_clock_without_spinning_c042() {
    let mut event_loop = EventLoop::new().unwrap();
    let polls = Rc::new(Cell::new(0));
    let counting = polls.clone();
    event_loop
        .handle()
        .spawn(async move {
            let cleanup = catch(pending::<()>()).await.unwrap_err();
            let mut pause = pin!(sleep(ms(20)));
            poll_fn(|cx| {
                counting.set(counting.get() + 1);
                pause.as_mut().poll(cx)
            })
            .await;
            cleanup.finish();
        })
        .detach();
    event_loop.run_ready().unwrap();
    event_loop.shutdown(Duration::from_secs(60)).unwrap();
    assert_eq!(polls.get(), 2);
}

#[test]
fn a_task_that_stays_alive_in_a_shutdown_is_asked_once_and_aborted_c042() {
    let (mut event_loop, _, trace) = jumping();
    let reports = trace_reports(&event_loop.handle());
    let noting = trace.clone();
    event_loop
        .handle()
        .spawn(async move {
            let _dropped = noting.on_drop("dropped");
            loop {
                catch(pending::<()>()).await.unwrap_err().absorb().unwrap();
                noting.note("absorbed");
            }
        })
        .detach();
    event_loop.run_ready().unwrap();
    event_loop.shutdown(ms(5)).unwrap();
    run_dry(&mut event_loop);
    assert_eq!(trace.take(), ["absorbed", "dropped"]);
    assert_eq!(reports.take(), ["GraceExceeded task `task-0`: had not ended when the grace of the shutdown was over, and was aborted"]);
}

#[test]
fn destructors_that_spawn_without_end_do_not_hold_a_shutdown_up_c042() {
    fn spawn_another(handle: LoopHandle, spawned: Rc<Cell<Option<u32>>>) {
        let (again, counting) = (handle.clone(), spawned.clone());
        let owned = support::on_drop(move || {
            if let Some(count) = counting.get() {
                counting.set(Some(count + 1));
                spawn_another(again, counting);
            }
        });
        handle
            .spawn(async move {
                let _owned = owned;
                pending::<()>().await;
            })
            .detach();
    }
    let (mut event_loop, ..) = jumping();
    let spawned = Rc::new(Cell::new(Some(0)));
    spawn_another(event_loop.handle(), spawned.clone());
    event_loop.shutdown(Duration::MAX).unwrap();
    assert_eq!(spawned.replace(None), Some(2_000), "1,000 turns, then 1,000 by force");
}

#[test]
fn a_handler_that_brings_a_report_for_each_that_it_is_told_does_not_keep_its_loop_from_closing() {
    let (mut event_loop, ..) = manual();
    let told = Rc::new(Cell::new(0));
    let counted = told.clone();
    event_loop.handle().on_error(move |_| {
        counted.set(counted.get() + 1);
        let (resolver, promised) = promise::<(), Abandoned>();
        if counted.get() < 1_000 {
            resolver.set_error(Abandoned);
        }
        drop(promised);
    });
    event_loop.handle().call_soon(|| Err::<(), _>("broken"));
    event_loop.run_ready().unwrap();
    event_loop.close();
    assert_eq!(told.get(), 2, "the failure, and what the handler left after it; what came then is logged");
}
