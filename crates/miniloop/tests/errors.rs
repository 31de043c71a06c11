//! Failures never disappear and stop nobody else (C045 to C048): who hears of them, with what, and in which order.

mod support;

use std::future::pending;
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::panic::panic_any;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use miniloop::{Abandoned, EventLoop, LoopError, LoopHandle, Report, ReportKind, promise, sleep, spawn, yield_now};
use tracing_subscriber::util::SubscriberInitExt;

use support::{check_reports as check, in_a_process_of_its_own, jumping, manual, ms, panic_on_drop, run_dry, trace_reports};

#[test]
fn what_fails_is_reported_with_kind_subject_and_message_c045() {
    let err = || Err::<(), _>("no such room");
    check(move |l| drop(l.call_soon(err)), &["Error callback: \"no such room\""]);
    check(|l| drop(l.call_soon(|| panic!("boom"))), &["Panic callback: boom"]);
    check(|l| drop(l.call_soon(|| panic!("boom {}", 2))), &["Panic callback: boom 2"]);
    check(|l| drop(l.call_soon(|| panic_any(7))), &["Panic callback: (a panic without a text)"]);
    check(move |l| drop(l.call_later(ms(0), err)), &["Error callback: \"no such room\""]);
    check(move |l| l.spawn(async move { err() }).named("pump").detach(), &["Error task `pump`: \"no such room\""]);
    check(|l| l.spawn(async { panic!("boom") }).named("pump").detach(), &["Panic task `pump`: boom"]);
    check(|l| drop(l.call_soon(|| Ok::<Result<(), &str>, ()>(Err("inner")))), &["Error callback: \"inner\""]);
}

#[test]
fn what_is_no_failure_is_not_reported_c045_c061() {
    check(|l| drop(l.call_soon(|| Ok::<(), &str>(()))), &[]);
    check(|l| drop(l.call_soon(|| ControlFlow::Break(()))), &[]);
    check(|l| drop(l.spawn(async { Err::<(), _>("dropped with its handle") })), &[]);
    check(|l| l.spawn(pending::<()>()).cancel(), &[]);
    check(|_| drop(promise::<(), Abandoned>()), &[]);
    check(|_| drop(promise::<(), Abandoned>().1), &[]);
}

#[test]
fn a_panic_that_the_dropped_handle_would_have_told_is_reported_c045_c070() {
    fn spawn_failing(handle: &LoopHandle) -> miniloop::Task<()> {
        handle.spawn(async { panic!("boom") }).named("pump")
    }
    // Dropped after it has failed, and dropped while the panic is still to come.
    check(
        |l| {
            let task = spawn_failing(&l);
            l.call_soon(move || drop(task));
        },
        &["Panic task `pump`: boom"],
    );
    check(
        |l| {
            let task = l
                .spawn(async {
                    let _in_the_destructor = panic_on_drop("boom");
                    pending::<()>().await;
                })
                .named("pump");
            l.call_soon(move || drop(task));
        },
        &["DropPanic task `pump`: boom"],
    );
    check(
        |l| {
            let task = spawn_failing(&l);
            l.call_soon(move || task.detach());
        },
        &["Panic task `pump`: boom"],
    );
}

#[test]
fn an_error_set_on_a_promise_that_nobody_reads_is_reported_c061() {
    #[derive(Debug)]
    enum Refused {
        Abandoned,
        Full,
    }
    impl From<Abandoned> for Refused {
        fn from(_: Abandoned) -> Refused {
            Refused::Abandoned
        }
    }
    check(
        |_| {
            let (resolver, promise) = promise::<(), Refused>();
            resolver.set_error(Refused::Full);
            drop(promise);
        },
        &["Error promise: Full"],
    );
    check(
        |_| {
            let (resolver, promise) = promise::<(), Refused>();
            resolver.set_error(Refused::Full);
            drop(promise.shared());
        },
        &["Error promise: Full"],
    );
    // Read, or cancelled before it was set, or nobody set anything: silent.
    check(
        |l| {
            let (resolver, promise) = promise::<(), Refused>();
            resolver.set_error(Refused::Full);
            l.spawn(async { assert!(matches!(promise.await, Err(Refused::Full))) }).detach();
            let (resolver, promise) = self::promise::<(), Refused>();
            drop(promise);
            resolver.set_error(Refused::Full);
            let (resolver, promise) = self::promise::<(), Refused>();
            drop(resolver);
            assert!(promise.is_done(), "{:?}", Refused::Abandoned);
        },
        &[],
    );
}

#[test]
fn a_report_is_a_job_of_the_queue_behind_what_is_ready_c045_o1() {
    let (mut event_loop, _, trace) = manual();
    let handle = event_loop.handle();
    let reports = trace.clone();
    handle.on_error(move |report| reports.note(report.message()));
    handle.call_soon(|| Err::<(), _>("failed"));
    handle.call_soon({
        let (handle, trace) = (handle.clone(), trace.clone());
        move || {
            trace.note("same round");
            handle.call_soon(trace.noting("next round"));
        }
    });
    event_loop.run_once().unwrap();
    assert_eq!(trace.take(), ["same round"]);
    event_loop.run_once().unwrap();
    assert_eq!(trace.take(), ["\"failed\"", "next round"]);
}

#[test]
fn a_report_says_where_it_was_made_and_by_whom_it_was_spawned_c071() {
    let (mut event_loop, _, trace) = jumping();
    let handle = event_loop.handle();
    handle.on_error({
        let trace = trace.clone();
        move |report| {
            assert_eq!(report.place().file(), file!());
            assert!(report.to_string().contains(&format!("made at {}:{}:", file!(), report.place().line())), "{report}");
            trace.note(format_args!("{} by {:?}", report.subject(), report.parents()));
        }
    });
    event_loop
        .run_until_complete(async {
            let server = spawn(async {
                let session = spawn(async {
                    spawn(async { Err::<(), _>("failed") }).named("pump").detach();
                    sleep(ms(1)).await;
                })
                .named("session");
                session.await.unwrap();
                spawn(async { Err::<(), _>("failed") }).named("late pump").detach();
                sleep(ms(1)).await;
            })
            .named("server");
            server.await.unwrap();
        })
        .unwrap();
    assert_eq!(trace.take(), ["task `pump` by [\"task `session`\", \"task `server`\"]", "task `late pump` by [\"task `server`\"]"]);
}

#[test]
fn a_report_names_the_nearest_parents_only() {
    fn nest(depth: usize) -> Pin<Box<dyn Future<Output = Result<(), &'static str>>>> {
        Box::pin(async move {
            if depth == 0 {
                return Err("failed");
            }
            spawn(nest(depth - 1)).named(format!("{}", depth - 1)).detach();
            pending().await
        })
    }
    let (mut event_loop, _, trace) = manual();
    let handle = event_loop.handle();
    let parents = trace.clone();
    handle.on_error(move |report| report.parents().iter().for_each(|parent| parents.note(parent)));
    handle.spawn(nest(100)).named("100").detach();
    run_dry(&mut event_loop);
    assert_eq!(trace.take(), (1..=16).map(|depth| format!("task `{depth}`")).collect::<Vec<_>>());
}

#[test]
fn a_parent_on_another_loop_is_not_looked_for_here() {
    let (mut outer, ..) = manual();
    let (mut inner, ..) = manual();
    let reports = trace_reports(&inner.handle());
    let handle = inner.handle();
    // Both tasks are the first of their loops: they have the same place in the tables.
    outer.handle().spawn(async move { handle.spawn(async { Err::<(), _>("failed") }).detach() }).detach();
    run_dry(&mut outer);
    run_dry(&mut inner);
    assert_eq!(reports.take(), ["Error task `task-0`: \"failed\""]);
}

#[test]
fn the_last_handler_set_gets_the_reports_c046() {
    let (mut event_loop, ..) = manual();
    let first = trace_reports(&event_loop.handle());
    let second = trace_reports(&event_loop.handle());
    event_loop.handle().call_soon(|| Err::<(), _>(1));
    run_dry(&mut event_loop);
    assert_eq!((first.take(), second.take()), (vec![], vec!["Error callback: 1".to_owned()]));
}

#[test]
fn a_handler_that_breaks_stops_the_run_with_that_report_and_the_loop_runs_again() {
    let (mut event_loop, _, trace) = jumping();
    let handle = event_loop.handle();
    handle.on_error(|_| ControlFlow::Break(()));
    handle.spawn(async { Err::<(), _>("strict") }).named("pump").detach();
    handle.call_later(ms(1), trace.noting("goes on in the next run"));
    let Err(LoopError::Failed(report)) = event_loop.run_forever() else { panic!("it should have failed") };
    assert_eq!((report.kind(), report.subject(), report.message()), (ReportKind::Error, "task `pump`", "\"strict\""));
    assert!(trace.take().is_empty());

    handle.call_soon(|| panic_any(7));
    event_loop.run_ready().unwrap();
    let Err(LoopError::Failed(report)) = event_loop.run_ready() else { panic!("it should have failed") };
    assert_eq!(*report.take_panic_payload().unwrap().downcast::<i32>().unwrap(), 7);
    assert!(report.take_panic_payload().is_none());

    event_loop.run_until_complete(async { sleep(ms(2)).await }).unwrap();
    assert_eq!(trace.take(), ["goes on in the next run"]);
}

#[test]
fn a_break_in_the_round_in_which_the_main_future_is_done_costs_its_value() {
    let (mut event_loop, _, trace) = manual();
    let handle = event_loop.handle();
    handle.on_error(|_| ControlFlow::Break(()));
    handle.call_soon(|| Err::<(), _>("strict"));
    let value = trace.on_drop("the value");
    let result = event_loop.run_until_complete(async {
        // Behind the callback in the first round, beside the report in the second.
        yield_now().await;
        value
    });
    assert!(matches!(result, Err(LoopError::Failed(_))));
    assert_eq!(trace.take(), ["the value"]);
}

#[test]
fn the_first_of_two_breaks_in_one_round_is_returned_and_the_second_logged() {
    let (mut event_loop, ..) = manual();
    let handle = event_loop.handle();
    handle.on_error(|_| ControlFlow::Break(()));
    handle.call_soon(|| Err::<(), _>("first"));
    handle.call_soon(|| Err::<(), _>("second"));
    let log = log_of(|| {
        let Err(LoopError::Failed(report)) = event_loop.run_forever() else { panic!("it should have failed") };
        assert_eq!(report.message(), "\"first\"");
    });
    assert!(log.contains("failed: \"second\"") && !log.contains("first"), "{log}");
}

#[test]
fn a_handler_that_fails_is_logged_with_both_errors_c047() {
    #[track_caller]
    fn check<O: miniloop::Outcome>(handler: impl FnMut(&Report) -> O + 'static, expected: &str) {
        let (mut event_loop, _, trace) = manual();
        let handle = event_loop.handle();
        handle.on_error(handler);
        handle.call_soon(|| Err::<(), _>("no such room"));
        let log = log_of(|| {
            run_dry(&mut event_loop);
        });
        assert!(log.contains(expected) && log.contains("callback") && log.contains("no such room"), "{log}");
        handle.call_soon(trace.noting("the loop goes on"));
        run_dry(&mut event_loop);
        assert_eq!(trace.take(), ["the loop goes on"]);
    }
    check(|_| panic!("handler panics"), "the error handler failed: handler panics");
    check(|_| Err::<(), _>("handler errs"), "the error handler failed: \"handler errs\"");
}

#[test]
fn without_a_handler_a_report_goes_to_tracing_c045() {
    let (mut event_loop, ..) = manual();
    event_loop.handle().spawn(async { Err::<(), _>("no such room") }).named("pump").detach();
    let log = log_of(|| {
        run_dry(&mut event_loop);
    });
    assert!(log.contains("ERROR") && log.contains("task `pump`") && log.contains("no such room") && log.contains(file!()), "{log}");
}

#[test]
fn without_a_subscriber_a_report_is_one_line_on_standard_error_c045() {
    let stderr = in_a_process_of_its_own("without_a_subscriber_a_report_is_one_line_on_standard_error_c045", || {
        let mut event_loop = EventLoop::new().unwrap();
        event_loop.handle().call_soon(|| Err::<(), _>("no such room"));
        run_dry(&mut event_loop);
    });
    let lines: Vec<_> = stderr.lines().collect();
    assert!(
        matches!(&lines[..], [line] if line.starts_with("miniloop: callback (made at ") && line.ends_with("failed: \"no such room\"")),
        "{stderr}"
    );
}

#[test]
fn a_subscriber_that_fails_too_costs_only_a_line_on_standard_error_c048() {
    struct Failing;
    impl Write for Failing {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            panic!("the subscriber fails");
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let stderr = in_a_process_of_its_own("a_subscriber_that_fails_too_costs_only_a_line_on_standard_error_c048", || {
        let mut event_loop = EventLoop::new().unwrap();
        event_loop.handle().call_soon(|| Err::<(), _>("no such room"));
        let subscriber = tracing_subscriber::fmt().with_writer(|| Failing).finish().set_default();
        run_dry(&mut event_loop);
        drop(subscriber);
        event_loop.run_until_complete(yield_now()).unwrap();
    });
    assert!(stderr.contains("miniloop: callback") && stderr.contains("no such room"), "{stderr}");
}

#[test]
fn a_failure_that_comes_out_after_the_loop_has_closed_is_logged() {
    let (mut event_loop, ..) = manual();
    let handle = event_loop.handle();
    let detached = handle.spawn(async { Err::<(), _>("detached late") });
    let dropped = handle.spawn(async { panic!("dropped late") });
    let (resolver, unread) = promise::<(), Abandoned>();
    run_dry(&mut event_loop);
    event_loop.close();
    let log = log_of(move || {
        detached.detach();
        drop::<miniloop::Task<()>>(dropped);
        let _entered = handle.enter();
        resolver.set_result(());
        drop(unread);
        let (resolver, unread) = promise::<(), Late>();
        resolver.set_error(Late);
        drop(unread);
    });
    for expected in ["detached late", "dropped late", "promise"] {
        assert!(log.contains(expected), "{expected}: {log}");
    }

    #[derive(Debug)]
    struct Late;
    impl From<Abandoned> for Late {
        fn from(_: Abandoned) -> Late {
            Late
        }
    }
}

#[test]
fn an_error_in_a_reader_is_reported_with_its_descriptor_and_it_stays_c045() {
    let (mut event_loop, ..) = manual();
    let handle = event_loop.handle();
    let reports = trace_reports(&handle);
    let (peer, descriptor) = UnixStream::pair().unwrap();
    rustix::io::write(&peer, b"x").unwrap();
    let number = descriptor.as_raw_fd();
    handle.add_reader(&descriptor, || Err::<(), _>("cannot read")).unwrap();
    handle.add_writer(&descriptor, || -> ControlFlow<()> { panic!("cannot write") }).unwrap();
    event_loop.run_once().unwrap();
    assert!(handle.remove_writer(&number));
    event_loop.run_once().unwrap();
    assert!(handle.remove_reader(&number));
    run_dry(&mut event_loop);
    let reader = format!("Error reader of descriptor {number}: \"cannot read\"");
    assert_eq!(reports.take(), [reader.clone(), format!("Panic writer of descriptor {number}: cannot write"), reader]);
}

#[test]
fn a_repeating_timer_goes_on_after_an_error_and_after_a_panic_c045() {
    let (mut event_loop, clock, trace) = manual();
    let handle = event_loop.handle();
    let reports = trace_reports(&handle);
    let mut calls = 0;
    let noting = trace.clone();
    handle.call_every(ms(1), move || {
        calls += 1;
        noting.note(calls);
        match calls {
            1 => Err("first"),
            2 => panic!("second"),
            _ => Ok(ControlFlow::Break(())),
        }
    });
    for _ in 0..5 {
        clock.advance(ms(1));
        run_dry(&mut event_loop);
    }
    assert_eq!(trace.take(), ["1", "2", "3"]);
    assert_eq!(reports.take(), ["Error callback of every 1ms: \"first\"", "Panic callback of every 1ms: second"]);
}

/// What `work` logs through `tracing` on this thread.
fn log_of(work: impl FnOnce()) -> String {
    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);
    impl Write for Log {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish().set_default();
    work();
    drop(subscriber);
    String::from_utf8(log.0.lock().unwrap().clone()).unwrap()
}
