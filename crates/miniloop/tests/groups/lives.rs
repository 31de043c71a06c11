//! What task groups survive: being dropped, forgotten, moved and closed at any time, polled by others, and woken too late. Run it under
//! AddressSanitizer too (`TESTING.md`).

use std::cell::{Cell, RefCell};
use std::future::{Future, pending, poll_fn};
use std::panic::panic_any;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use crate::helpers::poll_once;
use crate::support::{Trace, jumping, manual, ms, on_another_thread, on_drop, run_dry, trace_reports, wait_once};
use futures_util::stream::{FuturesUnordered, StreamExt};
use miniloop::{Child, LoopHandle, sleep, spawn, task_group, yield_now};

/// Another executor's waker, which counts and may do anything else.
struct Foreign<F>(AtomicUsize, F);

impl<F: Fn() + Send + Sync + 'static> Foreign<F> {
    fn new(also: F) -> Arc<Foreign<F>> {
        Arc::new(Foreign(AtomicUsize::new(0), also))
    }

    fn wakes(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl<F: Fn() + Send + Sync + 'static> Wake for Foreign<F> {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
        (self.1)();
    }
}

/// Forgets a group or a child, and keeps its address where the leak checker finds it.
fn forget<F>(future: Pin<Box<F>>) {
    static FORGOTTEN: Mutex<Vec<usize>> = Mutex::new(Vec::new());
    FORGOTTEN.lock().unwrap().push(std::ptr::from_ref(&*future).addr());
    std::mem::forget(future);
}

async fn stay(trace: &Trace, name: &'static str) {
    let _dropped = trace.on_drop(name);
    pending::<()>().await;
}

#[test]
fn a_dropped_group_drops_its_body_then_its_members_newest_first_then_what_they_borrow_g7() {
    let (event_loop, _, trace) = manual();
    let _entered = event_loop.handle().enter();
    let borrowed = trace.on_drop("borrowed");
    let mut group = Box::pin(task_group(async |g| {
        for name in ["first", "second", "third"] {
            let (borrowed, trace) = (&borrowed, &trace);
            g.spawn(async move {
                let _borrows = borrowed;
                stay(trace, name).await;
            });
        }
        stay(&trace, "body").await;
    }));
    assert!(poll_once(&mut group).is_pending());
    assert!(poll_once(&mut group).is_pending());
    drop(group);
    drop(borrowed);
    assert_eq!(trace.take(), ["body", "third", "second", "first", "borrowed"]);
}

#[test]
fn a_group_that_was_never_polled_or_only_its_body_drops_what_there_is_g7() {
    let (event_loop, _, trace) = manual();
    let _entered = event_loop.handle().enter();
    let unpolled = trace.on_drop("captured");
    drop(task_group(async move |_| drop(unpolled)));
    assert_eq!(trace.take(), ["captured"]);
    let captured = trace.on_drop("captured by a member");
    let mut group = Box::pin(task_group(async |g| {
        g.spawn(async move {
            let _captured = captured;
            unreachable!("it never ran");
        });
        stay(&trace, "body").await;
    }));
    assert!(poll_once(&mut group).is_pending());
    drop(group);
    assert_eq!(trace.take(), ["body", "captured by a member"]);
}

#[test]
fn a_forgotten_group_stops_and_its_members_are_never_touched_again_g7() {
    let (mut event_loop, clock, trace) = manual();
    let handle = event_loop.handle();
    let entered = handle.enter();
    let wakers = RefCell::new(Vec::new());
    let child = Cell::new(None::<Child<()>>);
    {
        let (trace, wakers) = (&trace, &wakers);
        let mut on_this_frame = [1, 2, 3];
        let mut group = Box::pin(task_group(async |g| {
            let spawned = g.spawn(async {
                let _never = trace.on_drop("dropped");
                wait_once(|waker| wakers.borrow_mut().push(waker)).await;
                sleep(ms(1)).await;
                on_this_frame[0] += 1;
            });
            child.set(Some(spawned));
            wait_once(|waker| wakers.borrow_mut().push(waker)).await;
            pending::<()>().await;
        }));
        assert!(poll_once(&mut group).is_pending());
        assert!(poll_once(&mut group).is_pending());
        forget(group);
    }
    wakers.take().into_iter().for_each(|waker| on_another_thread(move || waker.wake()));
    clock.advance(ms(5));
    run_dry(&mut event_loop);
    let mut child = child.take().unwrap();
    assert!(!child.is_finished());
    assert!(Pin::new(&mut child).poll(&mut Context::from_waker(Waker::noop())).is_pending());
    child.cancel();
    drop(child);
    drop(entered);
    event_loop.close();
    assert!(trace.take().is_empty());
}

#[test]
fn a_child_may_outlive_its_group_and_be_forgotten_g3() {
    let (mut event_loop, _, trace) = manual();
    let (value, forgotten, unfinished) = event_loop
        .run_until_complete(task_group(async |g| {
            let value = g.spawn(async { Ok(trace.on_drop("value")) });
            let forgotten = g.spawn(async { Ok(trace.on_drop("forgotten")) });
            let unfinished = g.spawn_service(async {
                stay(&trace, "service").await;
                Ok(())
            });
            drop(g.spawn(async { Ok(trace.on_drop("a value that nobody waits for")) }));
            yield_now().await;
            Ok::<_, ()>((value, forgotten, unfinished))
        }))
        .unwrap()
        .unwrap();
    assert_eq!(trace.take(), ["a value that nobody waits for", "service"]);
    event_loop.close();
    assert!(value.is_finished() && unfinished.is_finished());
    drop(value);
    forget(Box::pin(forgotten));
    assert_eq!(trace.take(), ["value"]);
}

// Who polls it.

#[test]
fn a_group_that_moves_to_another_task_is_woken_there_g1() {
    let (mut event_loop, _, trace) = manual();
    let (waker, parents) = (Rc::new(Cell::new(None)), trace.clone());
    event_loop.handle().on_error(move |report| parents.note(format_args!("{}: {:?}", report.subject(), report.parents())));
    let kept = waker.clone();
    let inner = trace.clone();
    let mut group = Box::pin(async move {
        task_group(async |g| {
            g.spawn(async {
                wait_once(|waker| kept.set(Some(waker))).await;
                inner.note("woken");
                spawn(async { panic_any("bang") }).detach();
                yield_now().await;
                yield_now().await;
            });
        })
        .await;
    });
    let main = async {
        let first = spawn(async move {
            poll_fn(|cx| {
                let _ = group.as_mut().poll(cx);
                Poll::Ready(())
            })
            .await;
            yield_now().await;
            poll_fn(|cx| {
                assert!(group.as_mut().poll(cx).is_pending());
                Poll::Ready(())
            })
            .await;
            Some(group)
        });
        let group = first.named("first").await.unwrap().unwrap();
        let second = spawn(group).named("second");
        yield_now().await;
        waker.take().unwrap().wake();
        second.await.unwrap();
        yield_now().await;
        yield_now().await;
    };
    event_loop.run_until_complete(main).unwrap();
    assert_eq!(trace.take(), ["woken", "task `task-2`: [\"member `member-0`\", \"task `second`\"]"]);
}

#[test]
fn groups_may_be_polled_by_futures_unordered_g1() {
    let (mut event_loop, _, trace) = jumping();
    let main = async {
        let group = |n: u64| {
            let trace = &trace;
            async move {
                task_group(async |g| {
                    for k in 0..3 {
                        g.spawn(async move {
                            sleep(ms(10 * n + k)).await;
                            yield_now().await;
                            trace.note(format_args!("{n}.{k}"));
                        });
                    }
                })
                .await;
                n
            }
        };
        let mut groups: FuturesUnordered<_> = [2, 1].map(group).into_iter().collect();
        while let Some(n) = groups.next().await {
            trace.note(format_args!("group {n}"));
        }
    };
    event_loop.run_until_complete(main).unwrap();
    assert_eq!(trace.take(), ["1.0", "1.1", "1.2", "group 1", "2.0", "2.1", "2.2", "group 2"]);
}

#[test]
fn a_foreign_executor_is_woken_once_for_all_members_that_are_ready_g1() {
    let (mut event_loop, clock, trace) = manual();
    let entered = event_loop.handle().enter();
    let foreign = Foreign::new(|| {
        // Its waker may use the loop: nothing is borrowed while it runs.
        LoopHandle::current().call_soon(|| ());
    });
    let waker = Waker::from(foreign.clone());
    let mut group = Box::pin(task_group(async |g| {
        for n in 0..3 {
            let trace = &trace;
            g.spawn(async move {
                sleep(ms(n / 2)).await;
                trace.note(n);
            });
        }
    }));
    let mut cx = Context::from_waker(&waker);
    assert!(group.as_mut().poll(&mut cx).is_pending());
    assert_eq!(foreign.wakes(), 1, "the members are ready to begin");
    assert!(group.as_mut().poll(&mut cx).is_pending());
    assert!(group.as_mut().poll(&mut cx).is_pending());
    let woken = foreign.wakes();
    clock.advance(ms(1));
    run_dry(&mut event_loop);
    assert_eq!(foreign.wakes(), woken + 1, "once, until it is polled again");
    assert!(group.as_mut().poll(&mut cx).is_ready());
    assert_eq!(trace.take(), ["0", "1", "2"]);
    drop(entered);
}

#[test]
#[should_panic(expected = "this task group belongs to event loop")]
fn a_group_that_is_polled_under_another_loop_panics_g1() {
    let (one, ..) = manual();
    let (other, ..) = manual();
    let mut group = Box::pin(task_group(async |_| pending::<()>().await));
    let entered = one.handle().enter();
    assert!(poll_once(&mut group).is_pending());
    drop(entered);
    let _entered = other.handle().enter();
    let _ = poll_once(&mut group);
}

#[test]
fn wakers_of_members_work_from_other_threads_and_do_nothing_when_they_come_too_late_g7() {
    let (mut event_loop, _, trace) = manual();
    let wakers = Arc::new(Mutex::new(Vec::new()));
    let main = async {
        task_group(async |g| {
            g.spawn(async {
                wait_once(|waker| {
                    wakers.lock().unwrap().push(waker.clone());
                    on_another_thread(move || waker.wake());
                })
                .await;
                trace.note("woken");
            });
        })
        .await;
    };
    event_loop.run_until_complete(main).unwrap();
    let after = async {
        let mut group = Box::pin(task_group(async |g| {
            g.spawn_service(wait_once(|waker| wakers.lock().unwrap().push(waker)));
            wait_once(|waker| wakers.lock().unwrap().push(waker)).await;
        }));
        assert!(poll_once(&mut group).is_pending());
        assert!(poll_once(&mut group).is_pending());
        drop(group);
        let late = std::mem::take(&mut *wakers.lock().unwrap());
        assert_eq!(late.len(), 3);
        late.iter().for_each(Waker::wake_by_ref);
        on_another_thread(move || late.into_iter().for_each(Waker::wake));
        // Somebody else has their places by now.
        task_group(async |g| {
            g.spawn(async { trace.note("undisturbed") });
        })
        .await;
    };
    event_loop.run_until_complete(after).unwrap();
    assert_eq!(trace.take(), ["woken", "undisturbed"]);
}

// The end of the loop.

#[test]
fn a_loop_that_closes_drops_the_groups_of_its_tasks_g7() {
    let (mut event_loop, _, trace) = manual();
    let reports = trace_reports(&event_loop.handle());
    let inner = trace.clone();
    event_loop
        .handle()
        .spawn(async move {
            let late = on_drop({
                let handle = LoopHandle::current();
                move || drop(handle.spawn(async {}))
            });
            task_group(async |g| {
                g.spawn(stay(&inner, "first"));
                g.spawn(stay(&inner, "second"));
                g.spawn_task({
                    let inner = inner.clone();
                    async move { stay(&inner, "task").await }
                });
                stay(&inner, "body").await;
            })
            .await;
            drop(late);
        })
        .detach();
    run_dry(&mut event_loop);
    event_loop.close();
    assert_eq!(trace.take(), ["task", "body", "second", "first"]);
    assert!(reports.take().is_empty());
}

#[test]
fn a_group_may_outlive_its_loop_and_drops_its_members_then_g7() {
    let (mut event_loop, _, trace) = manual();
    let entered = event_loop.handle().enter();
    let kept = Cell::new(None);
    let mut group = Box::pin(task_group(async |g| {
        g.spawn(async {
            let _dropped = trace.on_drop("member");
            wait_once(|waker| kept.set(Some(waker))).await;
        });
        wait_once(|_| ()).await;
        let refused = g.spawn(async { unreachable!("its loop is closed") });
        assert!(refused.is_finished());
        pending::<()>().await;
    }));
    assert!(poll_once(&mut group).is_pending());
    assert!(poll_once(&mut group).is_pending());
    event_loop.close();
    drop(entered);
    kept.take().unwrap().wake();
    assert!(poll_once(&mut group).is_pending());
    assert!(trace.take().is_empty());
    drop(group);
    assert_eq!(trace.take(), ["member"]);
}

#[test]
fn tasks_of_a_dropped_group_are_aborted_and_go_in_their_own_next_job_g7() {
    let (mut event_loop, _, trace) = manual();
    let handle = event_loop.handle();
    let entered = handle.enter();
    let mut group = Box::pin(task_group(async |g| {
        let inner = trace.clone();
        g.spawn_task(async move { stay(&inner, "task").await }).named("pump");
        g.spawn(stay(&trace, "member"));
        pending::<()>().await;
    }));
    assert!(poll_once(&mut group).is_pending());
    run_dry(&mut event_loop);
    assert!(poll_once(&mut group).is_pending());
    drop(group);
    assert_eq!(trace.take(), ["member"]);
    run_dry(&mut event_loop);
    assert_eq!(trace.take(), ["task"]);
    drop(entered);
}

#[test]
fn what_a_task_has_left_for_a_dropped_group_is_reported_g3_g7() {
    let (mut event_loop, ..) = manual();
    let reports = trace_reports(&event_loop.handle());
    let entered = event_loop.handle().enter();
    let mut group = Box::pin(task_group(async |g| {
        g.spawn_task(async { Err::<(), _>("boom") });
        g.spawn_task(async { panic_any("bang") });
        pending::<Result<(), _>>().await
    }));
    assert!(poll_once(&mut group).is_pending());
    run_dry(&mut event_loop);
    drop(group);
    run_dry(&mut event_loop);
    assert_eq!(reports.take(), ["Panic task `task-1`: bang", "Error task `task-0`: \"boom\""]);
    drop(entered);
}
