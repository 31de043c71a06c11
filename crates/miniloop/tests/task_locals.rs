//! Values that travel with tasks and callbacks (C009, C049).

mod support;

use std::cell::{Cell, RefCell};
use std::future::{pending, poll_fn};
use std::ops::ControlFlow;
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::rc::Rc;

use futures_util::poll;
use miniloop::{EventLoop, LoopHandle, TaskLocal, promise, sleep, spawn, task_group, yield_now};

use crate::support::{Trace, jumping, manual, ms, on_another_thread, run_dry};

static REQUEST: TaskLocal<u64> = TaskLocal::new();
static USER: TaskLocal<String> = TaskLocal::new();

/// Notes what a job sees.
fn noting(trace: &Trace, who: &'static str) -> impl FnMut() + use<> {
    let trace = trace.clone();
    move || trace.note(format_args!("{who} {:?}", REQUEST.get()))
}

#[test]
fn every_job_sees_what_was_bound_where_it_was_made_c009() {
    let (mut event_loop, _, trace) = jumping();
    let handle = event_loop.handle();
    let (ours, _theirs) = UnixStream::pair().unwrap();
    let note = |who| noting(&trace, who);
    REQUEST.scope_sync(7, || {
        handle.call_soon(note("soon"));
        handle.call_later(ms(1), note("later"));
        let mut every = note("every");
        handle.call_every(ms(2), move || {
            every();
            ControlFlow::Break(())
        });
        let mut writer = note("writer");
        handle
            .add_writer(&ours, move || {
                writer();
                ControlFlow::<()>::Break(())
            })
            .unwrap();
        let mut task = note("task");
        handle
            .spawn(async move {
                sleep(ms(3)).await;
                task();
            })
            .detach();
    });
    event_loop.run_until_complete(async { sleep(ms(10)).await }).unwrap();
    assert_eq!(trace.take(), ["soon Some(7)", "writer Some(7)", "later Some(7)", "every Some(7)", "task Some(7)"]);
}

#[test]
fn a_completion_callback_sees_what_was_bound_where_it_was_registered_c009() {
    let (mut event_loop, _, trace) = manual();
    let handle = event_loop.handle();
    let (resolver, value) = promise::<(), miniloop::Abandoned>();
    let (mut of_promise, mut of_task) = (noting(&trace, "promise"), noting(&trace, "task"));
    let _entered = handle.enter();
    REQUEST.scope_sync(1, || value.on_done(move |_| of_promise()));
    let task = REQUEST.scope_sync(2, || handle.spawn(async {}));
    REQUEST.scope_sync(3, || task.on_done(move |_| of_task()));
    REQUEST.scope_sync(4, || resolver.set_result(()));
    run_dry(&mut event_loop);
    assert_eq!(trace.take(), ["promise Some(1)", "task Some(3)"]);
}

#[test]
fn a_value_is_seen_inside_its_scope_and_nowhere_else_c009() {
    let (mut event_loop, _, trace) = manual();
    event_loop
        .run_until_complete(async {
            let neighbour = spawn(async {
                for _ in 0..3 {
                    assert_eq!(REQUEST.get(), None);
                    yield_now().await;
                }
            });
            let scoped = async |who, request: u64| {
                for _ in 0..2 {
                    trace.note(format_args!("{who} {:?}", REQUEST.get()));
                    REQUEST.scope(request * 10, yield_now()).await;
                }
            };
            futures_util::join!(REQUEST.scope(1, scoped("a", 1)), REQUEST.scope(2, scoped("b", 2)));
            assert_eq!(REQUEST.get(), None);
            neighbour.await.unwrap();
        })
        .unwrap();
    assert_eq!(trace.take(), ["a Some(1)", "b Some(2)", "a Some(1)", "b Some(2)"]);
}

#[test]
fn an_inner_scope_hides_the_outer_one_and_leaves_other_names_alone() {
    REQUEST.scope_sync(1, || {
        USER.scope_sync("ada".into(), || {
            REQUEST.scope_sync(2, || assert_eq!((REQUEST.get(), USER.get().as_deref()), (Some(2), Some("ada"))));
            assert_eq!(REQUEST.get(), Some(1));
        });
        assert_eq!((REQUEST.get(), USER.with(String::len)), (Some(1), None));
    });
}

#[test]
fn a_scope_ends_with_a_panic_too() {
    let panicked = catch_unwind(|| REQUEST.scope_sync(1, || panic!("no luck")));
    assert!(panicked.is_err());
    assert_eq!(REQUEST.get(), None);
    let (mut event_loop, ..) = manual();
    let panicked = catch_unwind(AssertUnwindSafe(|| event_loop.run_until_complete(REQUEST.scope(1, async { panic!("no luck") }))));
    assert!(panicked.is_err());
    assert_eq!(REQUEST.get(), None);
}

#[test]
fn a_future_that_moves_to_another_task_keeps_its_own_value_and_sees_the_rest_of_where_it_is_polled() {
    let (mut event_loop, ..) = manual();
    event_loop
        .run_until_complete(async {
            let mut moved = Box::pin(REQUEST.scope(
                1,
                poll_fn(|_| {
                    assert_eq!(REQUEST.get(), Some(1));
                    USER.get().map_or(std::task::Poll::Pending, std::task::Poll::Ready)
                }),
            ));
            assert!(poll!(&mut moved).is_pending());
            let seen = USER.scope("grace".into(), async { spawn(moved).await.unwrap() }).await;
            assert_eq!(seen, "grace");
        })
        .unwrap();
}

#[test]
fn a_future_is_dropped_inside_its_scope_and_a_task_inside_its_own() {
    let (mut event_loop, _, trace) = manual();
    let seen_on_drop = |who| support::on_drop(noting(&trace, who));
    event_loop
        .run_until_complete(async {
            {
                let owned = seen_on_drop("scope");
                let mut scoped = pin!(REQUEST.scope(1, async move {
                    pending::<()>().await;
                    drop(owned);
                }));
                assert!(poll!(&mut scoped).is_pending());
            }
            let never_ends = |owned| async move {
                pending::<()>().await;
                drop(owned);
            };
            let (cancelled, closed) = (seen_on_drop("cancelled"), seen_on_drop("closed"));
            let task = REQUEST.scope_sync(2, || spawn(never_ends(cancelled)));
            REQUEST.scope_sync(3, || spawn(never_ends(closed)).detach());
            yield_now().await;
            task.cancel();
            task.await.unwrap_err();
        })
        .unwrap();
    event_loop.close();
    assert_eq!(trace.take(), ["scope Some(1)", "cancelled Some(2)", "closed Some(3)"]);
}

#[test]
fn the_error_handler_sees_what_the_failed_one_saw_c049() {
    let (mut event_loop, ..) = manual();
    let handle = event_loop.handle();
    let trace = Trace::default();
    handle.on_error({
        let trace = trace.clone();
        move |report| trace.note(format_args!("{} {:?}", report.message(), REQUEST.get()))
    });
    let callback = |request, error: &'static str| {
        REQUEST.scope_sync(request, || handle.call_soon(move || Err::<(), _>(error)));
    };
    callback(1, "callback");
    REQUEST.scope_sync(2, || handle.spawn(async { panic!("detached") }).detach());
    REQUEST.scope_sync(3, || handle.spawn(async { Err::<(), _>("error") }).detach());
    handle.call_soon(|| Err::<(), _>("bare"));
    let unread = REQUEST.scope_sync(4, || handle.spawn(async { panic!("unread") }));
    let late = REQUEST.scope_sync(5, || handle.spawn(async { Err::<(), _>("late") }));
    run_dry(&mut event_loop);
    assert_eq!(trace.take(), ["\"callback\" Some(1)", "detached Some(2)", "\"error\" Some(3)", "\"bare\" None"]);
    drop::<miniloop::Task<()>>(unread);
    late.detach();
    run_dry(&mut event_loop);
    assert_eq!(trace.take(), ["unread Some(4)", "\"late\" Some(5)"]);
    callback(6, "closing");
    event_loop.run_ready().unwrap();
    event_loop.close();
    assert_eq!(trace.take(), ["\"closing\" Some(6)"]);
}

#[test]
fn whoever_runs_the_loop_lends_its_values_to_the_main_future_alone() {
    let (mut event_loop, _, trace) = manual();
    let handle = event_loop.handle();
    handle.call_soon(noting(&trace, "callback"));
    REQUEST.scope_sync(1, || {
        event_loop
            .run_until_complete(async {
                yield_now().await;
                trace.note(format_args!("main {:?}", REQUEST.get()));
            })
            .unwrap();
        assert_eq!(REQUEST.get(), Some(1));
    });
    assert_eq!(trace.take(), ["callback None", "main Some(1)"]);
}

#[test]
fn other_threads_and_closed_loops_see_nothing() {
    REQUEST.scope_sync(1, || {
        assert_eq!(on_another_thread(|| REQUEST.get()), None);
        let (mut event_loop, _, trace) = manual();
        let handle = event_loop.handle();
        let owned = support::on_drop(noting(&trace, "callback"));
        handle.call_later(ms(1), move || drop(owned));
        handle.remote().call_soon(|| assert_eq!(REQUEST.get(), None)).unwrap();
        event_loop.run_ready().unwrap();
        event_loop.close();
        assert_eq!(trace.take(), ["callback None"]);
    });
}

#[test]
fn values_live_as_long_as_somebody_can_see_them_and_a_chain_that_binds_again_does_not_grow() {
    static LATEST: TaskLocal<Rc<Cell<usize>>> = TaskLocal::new();
    fn tick(ticks: Rc<Cell<usize>>) {
        assert!(Rc::strong_count(&ticks) < 8, "{} are alive", Rc::strong_count(&ticks));
        ticks.set(ticks.get() + 1);
        if ticks.get() < TICKS {
            LATEST.scope_sync(ticks.clone(), || LoopHandle::current().call_soon(move || tick(ticks)));
        }
    }
    // So many that a list that grew would overflow the stack when it is dropped.
    const TICKS: usize = 100_000;
    let (mut event_loop, ..) = manual();
    let ticks = Rc::new(Cell::new(0));
    let first = ticks.clone();
    event_loop.handle().call_soon(move || tick(first));
    run_dry(&mut event_loop);
    assert_eq!((ticks.get(), Rc::strong_count(&ticks)), (TICKS, 1));
}

#[test]
fn a_value_whose_destructor_panics_is_reported_and_hurts_nobody() {
    let (mut event_loop, ..) = manual();
    let reports = support::trace_reports(&event_loop.handle());
    static PANICS: TaskLocal<RefCell<Option<support::OnDrop>>> = TaskLocal::new();
    let handle = event_loop.handle();
    let callback = |handle: &LoopHandle| {
        let value = RefCell::new(Some(support::panic_on_drop("no luck")));
        PANICS.scope_sync(value, || handle.call_soon(|| ()))
    };
    callback(&handle);
    let cancelled = callback(&handle);
    callback(&handle);
    cancelled.cancel();
    run_dry(&mut event_loop);
    let of_value = "DropPanic task-local value: no luck";
    assert_eq!(reports.take(), ["DropPanic callback: no luck", of_value, of_value]);
    assert!(EventLoop::new().is_ok());
}

#[test]
fn members_of_a_group_see_what_was_bound_where_they_were_made_c009() {
    let (mut event_loop, _, trace) = manual();
    let see = |who| trace.note(format_args!("{who} {:?}", REQUEST.get()));
    event_loop
        .run_until_complete(REQUEST.scope(1, async {
            task_group(async |group| {
                group.spawn(async {
                    yield_now().await;
                    see("member");
                });
                REQUEST.scope_sync(2, || group.spawn(async { see("member of a scope") }));
                REQUEST.scope(3, yield_now()).await;
                see("body");
            })
            .await;
            see("after");
        }))
        .unwrap();
    let mut seen = trace.take();
    seen.sort();
    assert_eq!(seen, ["after Some(1)", "body Some(1)", "member Some(1)", "member of a scope Some(2)"]);
}
