//! Looking inside a loop: dumps, counters, reports of what is slow or forgotten (C070, C179 to C182). `watching.rs` has the watchdog and
//! the timeline.

mod support;

use std::cell::RefCell;
use std::env;
use std::future::pending;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::panic::Location;
use std::process::Command;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use miniloop::diag::{self, Dump, TaskKind, TaskState};
use miniloop::{Abandoned, EventLoop, LoopError, LoopHandle, VirtualClock, promise, sleep, sock_recv, spawn, task_group, yield_now};
use tracing_subscriber::util::SubscriberInitExt;

use support::{jumping, manual, ms, run_dry, trace_reports};

/// The tasks of a dump as an outline: `name state: what it waits for`.
fn outline(dump: &Dump) -> Vec<String> {
    let line = |task: &diag::TaskDump| {
        let waits_for = if task.awaits.is_empty() { task.waits_for.to_owned() } else { task.awaits.join("+") };
        format!("{:1$}{2} {3:?}: {waits_for}", "", 2 * task.depth, task.name, task.state)
    };
    dump.tasks.iter().map(line).collect()
}

#[test]
fn a_dump_is_the_tree_of_tasks_in_order_of_spawning_and_says_who_waits_for_what() {
    let (mut event_loop, ..) = jumping();
    let (ours, _theirs) = UnixStream::pair().unwrap();
    ours.set_nonblocking(true).unwrap();
    let dump = event_loop
        .run_until_complete(async {
            let first = spawn(async move {
                let _child = spawn(async move { sock_recv(&ours, &mut [0]).await }).named("reader");
                sleep(ms(50)).await;
            })
            .named("first");
            let first = first.shared();
            let (resolver, promised) = promise::<(), Abandoned>();
            let _second = spawn(promised).named("second");
            let (one, two) = (first.clone(), first.clone());
            let _third = spawn(async move { drop(one.await) }).named("third");
            let _fourth = spawn(async move {
                let inner = spawn(async move { drop(two.await) }).named("inner");
                inner.await
            })
            .named("fourth");
            yield_now().await;
            yield_now().await;
            yield_now().await;
            let _fifth = spawn(pending::<()>()).named("fifth");
            drop(resolver);
            diag::dump()
        })
        .unwrap();
    let expected = [
        "main Running: ",
        "  first Waiting: a deadline",
        "    reader Waiting: a descriptor to be readable",
        "  second Ready: a promise",
        "  third Waiting: first",
        "  fourth Waiting: inner",
        "    inner Waiting: first",
        "  fifth Ready: ",
    ];
    let outline = outline(&dump);
    assert_eq!(outline.len(), expected.len(), "{outline:#?}");
    for (line, expected) in outline.iter().zip(expected) {
        // What a raw descriptor is waited for with is another file's business.
        assert!(line == expected || line.starts_with("    reader Waiting"), "{line} is not {expected}");
    }
    assert_eq!(dump.tasks.iter().map(|task| task.polls).collect::<Vec<_>>(), [4, 1, 1, 1, 1, 1, 1, 0]);
    assert_eq!(dump.tasks[2].parent, Some(1));
    assert_eq!((dump.tasks[0].kind, dump.tasks[1].kind), (TaskKind::Main, TaskKind::Task));
    assert_eq!((dump.timers_len, dump.next_timer, dump.descriptors_len, dump.ready_len), (1, Some(ms(50)), 1, 2));
}

#[test]
fn members_of_groups_stand_below_the_task_that_polls_the_group() {
    let (mut event_loop, ..) = jumping();
    let dump = RefCell::new(None);
    event_loop
        .run_until_complete(async {
            task_group(async |g| {
                g.spawn(async { sleep(ms(5)).await }).named("first");
                g.spawn(async {
                    task_group(async |inner| {
                        inner.spawn(async { sleep(ms(5)).await });
                        let _task = spawn(pending::<()>()).named("a task");
                        sleep(ms(5)).await;
                    })
                    .await;
                });
                yield_now().await;
                yield_now().await;
                dump.replace(Some(diag::dump()));
            })
            .await;
        })
        .unwrap();
    let dump = dump.take().unwrap();
    let expected = [
        "main Running: ",
        "  body Running: ",
        "  first Waiting: a deadline",
        "  member-1 Waiting: the members of its task group",
        "    body Waiting: a deadline",
        "      a task Ready: ",
        "    member-0 Waiting: a deadline",
    ];
    assert_eq!(outline(&dump), expected);
    let kinds: Vec<_> = dump.tasks.iter().map(|task| task.kind).collect();
    assert_eq!((kinds[1], kinds[2], kinds[5]), (TaskKind::Body, TaskKind::Member, TaskKind::Task));
}

#[test]
fn a_slow_member_of_a_group_is_blamed_and_not_who_polls_it_c179() {
    check_slow(
        |l, clock| {
            let slow = async move {
                task_group(async |g| {
                    let other = clock.clone();
                    g.spawn(async move { clock.advance(ms(150)) }).named("slow");
                    g.spawn(async move { other.advance(ms(90)) });
                })
                .await;
            };
            l.spawn(slow).detach();
        },
        &["Slow member `slow`: for 150.0ms; the limit is 100ms"],
    );
    // None of them is slow, all of them together are.
    check_slow(
        |l, clock| {
            let slow = async move {
                task_group(async |g| {
                    for _ in 0..3 {
                        let clock = clock.clone();
                        g.spawn(async move { clock.advance(ms(50)) });
                    }
                })
                .await;
            };
            l.spawn(slow).named("group").detach();
        },
        &["Slow task `group`: for 150.0ms; the limit is 100ms"],
    );
}

#[test]
fn a_dump_lists_repeating_callbacks_and_counts_the_others() {
    let (mut event_loop, ..) = manual();
    let (ours, _theirs) = UnixStream::pair().unwrap();
    let handle = event_loop.handle();
    handle.add_reader(&ours, || ()).unwrap();
    let line = Location::caller().line() - 1;
    handle.call_every(ms(20), || ());
    handle.call_later(ms(30), || ());
    handle.call_soon(|| ());
    let dump = handle.dump();
    let causes: Vec<_> = dump.repeating.iter().map(|callback| callback.cause.split(" of ").last().unwrap()).collect();
    assert_eq!(causes.len(), 2);
    assert_eq!((causes[0], dump.repeating[1].place.line()), ("every 20ms", line));
    assert_eq!((dump.callbacks_len, dump.timers_len, dump.descriptors_len, dump.ready_len), (2, 2, 1, 1));
    assert_eq!(dump.next_timer, Some(ms(20)));
    assert!(dump.to_string().contains("\n4 callbacks, of which repeat:\n  callback of every 20ms at "), "{dump}");
    event_loop.close();
    let dump = handle.dump();
    assert_eq!((dump.callbacks_len, dump.timers_len, dump.descriptors_len, dump.ready_len), (0, 0, 0, 0));
}

#[test]
fn a_dump_says_since_when_by_the_clock_of_the_loop() {
    let (mut event_loop, clock, _) = manual();
    let handle = event_loop.handle();
    let _sleeper = handle.spawn(async { sleep(Duration::from_secs(9)).await }).named("sleeper");
    clock.advance(ms(5));
    run_dry(&mut event_loop);
    clock.advance(ms(1_500));
    let dump = handle.dump();
    let sleeper = dump.task("sleeper").unwrap();
    assert_eq!((dump.now - sleeper.since.unwrap(), sleeper.state), (ms(1_500), TaskState::Waiting));
    assert!(dump.to_string().contains(": waits for a deadline for 1.5s, polled once\n"), "{dump}");
    // Looking has not told the loop what time it is.
    let another = handle.spawn(pending::<()>()).named("another");
    assert_eq!(handle.dump().task("another").unwrap().since.unwrap() + ms(1_500), clock.now());
    drop(another);
}

#[test]
fn a_chain_of_tasks_is_dumped_whatever_its_length() {
    const LEN: usize = 50_000;
    fn spawn_next(left: usize) {
        spawn(async move {
            if left > 1 {
                spawn_next(left - 1);
            }
            pending::<()>().await;
        })
        .detach();
    }
    let (mut event_loop, ..) = manual();
    event_loop.handle().call_soon(|| spawn_next(LEN));
    run_dry(&mut event_loop);
    let dump = event_loop.handle().dump();
    assert_eq!((dump.tasks.len(), dump.tasks[LEN - 1].depth), (LEN, LEN - 1));
    assert!(dump.to_string().contains("\n  and 49000 more"));
}

#[test]
fn a_task_whose_parent_has_ended_is_dumped_without_one() {
    let (mut event_loop, ..) = manual();
    let handle = event_loop.handle();
    handle.spawn(async { spawn(pending::<()>()).named("orphan").detach() }).named("parent").detach();
    run_dry(&mut event_loop);
    assert_eq!(outline(&handle.dump()), ["orphan Waiting: "]);
}

#[test]
fn a_deadlock_carries_a_dump() {
    let (mut event_loop, ..) = jumping();
    let error = event_loop
        .run_until_complete(async {
            let (_resolver, promised) = promise::<(), Abandoned>();
            drop(spawn(promised).named("stuck").await);
        })
        .unwrap_err();
    assert!(error.to_string().contains(": waits for task `stuck`, polled once\n    task `stuck`, spawned at "), "{error}");
    let LoopError::Deadlock(dump) = error else { panic!("{error}") };
    assert_eq!(outline(&dump), ["main Waiting: stuck", "  stuck Waiting: a promise"]);
}

#[test]
fn what_is_counted_adds_up() {
    let (mut event_loop, ..) = manual();
    let handle = event_loop.handle();
    let before = handle.stats();
    let _waiting = handle.spawn(async { sleep(ms(10)).await });
    handle.spawn(async {}).detach();
    handle.call_soon(|| ());
    handle.call_later(ms(0), || ());
    handle.remote().call_soon(|| ()).unwrap();
    assert_eq!((handle.stats().inbox, handle.stats().ready), (1, 3));
    run_dry(&mut event_loop);
    let after = handle.stats();
    assert_eq!((after.jobs - before.jobs, after.tasks_spawned, after.messages, after.timers_fired), (5, 2, 1, 1));
    assert_eq!((after.tasks_alive, after.timers, after.inbox, after.ready), (1, 1, 0, 0));
    assert_eq!((after.turns_full, after.budgets_spent, after.messages_left), (0, 0, 0));
    assert!(after.turns > 0 && after.rounds >= after.turns - 1);
}

#[test]
fn every_bound_that_bites_is_counted() {
    let (mut event_loop, ..) = jumping();
    let handle = event_loop.handle();
    for _ in 0..1_025 {
        handle.remote().call_soon(|| ()).unwrap();
    }
    let (ours, theirs) = UnixStream::pair().unwrap();
    ours.set_nonblocking(true).unwrap();
    (&theirs).write_all(&[0; 200]).unwrap();
    event_loop
        .run_until_complete(async {
            let chatty = spawn(async move {
                for _ in 0..200 {
                    sock_recv(&ours, &mut [0]).await.unwrap();
                }
            });
            for _ in 0..100 {
                yield_now().await;
            }
            chatty.await.unwrap();
        })
        .unwrap();
    let stats = handle.stats();
    assert_eq!((stats.messages_left, stats.budgets_spent), (1, 3));
    assert!(stats.turns_full > 0, "{stats:?}");
}

#[test]
fn a_turn_ends_after_64_jobs_unless_the_loop_is_told_otherwise() {
    let (mut event_loop, ..) = manual();
    let mut full_turns = |jobs: u64| {
        let before = event_loop.handle().stats();
        let yields = async {
            for _ in 1..jobs {
                yield_now().await;
            }
        };
        event_loop.run_until_complete(yields).unwrap();
        let after = event_loop.handle().stats();
        assert_eq!(after.jobs - before.jobs, jobs);
        after.turns_full - before.turns_full
    };
    assert_eq!([64, 65, 128, 129].map(&mut full_turns), [0, 1, 1, 2]);
}

#[test]
fn no_name_forges_a_line_of_a_report_or_a_dump() {
    let (mut event_loop, ..) = manual();
    let handle = event_loop.handle();
    let name = "a\nevent loop 7: all is well\u{1b}[2J".to_owned() + &"x".repeat(1_000_000);
    let seen = Rc::new(RefCell::new(Vec::new()));
    let reports = seen.clone();
    handle.on_error(move |report| reports.borrow_mut().push(report.to_string()));
    let waiting = handle.spawn(pending::<()>()).named(name.clone());
    handle.spawn(async { spawn(async { Err::<(), _>("broken") }).detach() }).named(name.clone()).detach();
    run_dry(&mut event_loop);
    assert_eq!(waiting.name(), name, "it is its name all the same");
    let dump = handle.dump();
    assert!(dump.task(&name).is_some());
    for text in seen.take().into_iter().chain([dump.to_string()]) {
        assert!(text.len() < 2_000 && !text.contains('\u{1b}') && !text.contains("\nevent"), "{text:.2000}");
    }
}

/// A loop in which a job takes as long as it likes, and what is reported of it.
fn check_slow(work: impl FnOnce(LoopHandle, VirtualClock), expected: &[&str]) {
    let clock = VirtualClock::manual();
    let mut event_loop = EventLoop::builder().clock(&clock).slow_callback(ms(100)).build().unwrap();
    let reports = trace_reports(&event_loop.handle());
    work(event_loop.handle(), clock);
    run_dry(&mut event_loop);
    assert_eq!(reports.take(), expected);
    assert_eq!(event_loop.handle().stats().slow_jobs, expected.len() as u64);
}

#[test]
fn a_job_that_takes_longer_than_the_limit_is_reported_with_its_name_c179() {
    let took = "for 101.0ms; the limit is 100ms";
    check_slow(|l, clock| drop(l.call_soon(move || clock.advance(ms(101)))), &[&format!("Slow callback: {took}")]);
    check_slow(|l, clock| drop(l.call_soon(move || clock.advance(ms(100)))), &[]);
    check_slow(|l, clock| l.spawn(async move { clock.advance(ms(101)) }).named("pump").detach(), &[&format!("Slow task `pump`: {took}")]);
    check_slow(|l, clock| l.spawn(async move { clock.advance(ms(101)) }).detach(), &[&format!("Slow task `task-0`: {took}")]);
    check_slow(
        |l, clock| {
            let timer = l.call_every(ms(1), move || clock.advance(ms(101)));
            l.call_soon(move || drop(timer));
        },
        &[],
    );
    // Only what it takes by itself: the others' time is not its own.
    check_slow(
        |l, clock| {
            let other = clock.clone();
            l.spawn(async move {
                clock.advance(ms(60));
                yield_now().await;
                clock.advance(ms(60));
            })
            .detach();
            l.call_soon(move || other.advance(ms(60)));
        },
        &[],
    );
}

#[test]
fn a_slow_error_handler_is_not_told_of_itself_c179() {
    let clock = VirtualClock::manual();
    let mut event_loop = EventLoop::builder().clock(&clock).slow_callback(ms(100)).build().unwrap();
    let handle = event_loop.handle();
    let count = Rc::new(RefCell::new(0));
    let calls = count.clone();
    let (first, second) = (clock.clone(), clock.clone());
    handle.on_error(move |_| {
        *calls.borrow_mut() += 1;
        first.advance(ms(500));
    });
    handle.call_soon(move || second.advance(ms(500)));
    for _ in 0..10 {
        event_loop.run_ready().unwrap();
    }
    assert_eq!((*count.borrow(), handle.stats().slow_jobs), (1, 2));
}

/// What went to the log, as one text.
fn logged(work: impl FnOnce()) -> String {
    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);
    impl Write for Log {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).set_default();
    work();
    drop(subscriber);
    let text = log.0.lock().unwrap().clone();
    String::from_utf8(text).unwrap()
}

#[test]
fn without_a_handler_what_is_slow_is_a_warning_that_names_its_place_c179_c182() {
    let text = logged(|| {
        let clock = VirtualClock::manual();
        let mut event_loop = EventLoop::builder().clock(&clock).slow_callback(ms(100)).build().unwrap();
        event_loop.handle().call_soon(move || clock.advance(ms(250)));
        run_dry(&mut event_loop);
    });
    assert!(text.contains(" WARN ") && text.contains(&format!("callback (made at {}:", file!())), "{text}");
    assert!(text.contains(") blocked the loop: for 250.0ms; the limit is 100ms"), "{text}");
}

#[test]
fn debug_mode_has_a_limit_of_its_own_and_is_switched_at_run_time_c179_c181() {
    let (mut event_loop, clock, _) = manual();
    let handle = event_loop.handle();
    let reports = trace_reports(&handle);
    let mut check = |takes: u64, expected: usize| {
        let clock = clock.clone();
        handle.call_soon(move || clock.advance(ms(takes)));
        run_dry(&mut event_loop);
        assert_eq!(reports.take().len(), expected, "{takes} ms");
    };
    check(1_000, 0);
    handle.set_debug(true);
    assert!(handle.is_debug());
    check(101, 1);
    check(100, 0);
    handle.set_slow_callback(Some(ms(10)));
    check(11, 1);
    handle.set_debug(false);
    check(11, 1);
    handle.set_slow_callback(None);
    check(1_000, 0);
}

#[test]
fn debug_mode_can_be_switched_by_the_environment_and_by_the_builder_c181() {
    const EXPECTED: &str = "MINILOOP_TEST_EXPECTED";
    if let Ok(expected) = env::var(EXPECTED) {
        assert_eq!(EventLoop::new().unwrap().handle().is_debug().to_string(), expected);
        assert!(!EventLoop::builder().debug(false).build().unwrap().handle().is_debug());
        assert!(EventLoop::builder().debug(true).build().unwrap().handle().is_debug());
        return;
    }
    for (value, expected) in [("1", "true"), ("0", "false"), ("", "false")] {
        let test = "debug_mode_can_be_switched_by_the_environment_and_by_the_builder_c181";
        let mut child = Command::new(env::current_exe().unwrap());
        let output = child.args([test, "--exact"]).env("MINILOOP_DEBUG", value).env(EXPECTED, expected).output().unwrap();
        assert!(output.status.success(), "{value}: {}", String::from_utf8_lossy(&output.stdout));
    }
}

/// What debug mode reports of `work`, a task of its own.
fn check_unawaited<F: Future<Output = ()> + 'static>(work: impl FnOnce() -> F, expected: &[&str]) {
    let (mut event_loop, ..) = jumping();
    let handle = event_loop.handle();
    handle.set_debug(true);
    let reports = trace_reports(&handle);
    let work = work();
    event_loop
        .run_until_complete(async {
            work.await;
            yield_now().await;
            yield_now().await;
        })
        .unwrap();
    let short: Vec<_> = reports.take().iter().map(|report| report.split_once(", and so ").unwrap().0.to_owned()).collect();
    assert_eq!(short, expected);
}

#[test]
fn a_pending_task_that_nobody_awaited_is_reported_when_it_is_dropped_in_debug_mode_c070() {
    let pending_pump = || spawn(pending::<()>()).named("pump");
    check_unawaited(|| async move { drop(pending_pump()) }, &["Unawaited task `pump`: before it ran"]);
    check_unawaited(
        || async move {
            let _pump = pending_pump();
            yield_now().await;
        },
        &["Unawaited task `pump`: while it was pending"],
    );
    // What was meant: awaited once, asked to stop, given to the loop, ended.
    check_unawaited(|| async move { drop(miniloop::timeout(ms(5), pending_pump()).await) }, &[]);
    check_unawaited(|| async move { pending_pump().cancel() }, &[]);
    check_unawaited(|| async move { pending_pump().detach() }, &[]);
    check_unawaited(
        || async move {
            let _done = spawn(async {});
            yield_now().await;
        },
        &[],
    );
    // Its owner is cancelled, and it goes with it.
    check_unawaited(
        || async move {
            let owner = spawn(async move {
                let _pump = pending_pump();
                pending::<()>().await;
            });
            yield_now().await;
            owner.cancel();
            drop(owner.await);
        },
        &[],
    );
}

#[test]
fn outside_debug_mode_and_at_the_end_of_a_loop_a_dropped_task_is_not_reported_c070() {
    for is_debug in [false, true] {
        let (mut event_loop, ..) = jumping();
        let handle = event_loop.handle();
        let reports = trace_reports(&handle);
        if is_debug {
            handle.set_debug(true);
            handle
                .spawn(async {
                    let _pump = spawn(pending::<()>());
                    pending::<()>().await;
                })
                .detach();
            run_dry(&mut event_loop);
            event_loop.close();
        } else {
            drop(handle.spawn(pending::<()>()));
            run_dry(&mut event_loop);
        }
        assert_eq!(reports.take(), [""; 0]);
    }
}
