//! Waiting for several things: joins, races, `wait`, `as_completed`, and the combinators of `futures`.

mod support;

use std::cell::{Cell, RefCell};
use std::future::{pending, poll_fn, ready};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures_util::future::FusedFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use futures_util::{FutureExt, join, select};
use miniloop::{
    EventLoop, ReportKind, Task, VirtualClock, all_completed, as_completed, catch, first_completed, first_error, join_all, now, promise,
    race, shield, sleep, spawn, timeout, try_join_all, wait, yield_now,
};
use support::{Trace, jumping, ms, panic_of, panic_on_drop, trace_reports};

type Fallible<E> = Pin<Box<dyn Future<Output = Result<(), E>>>>;

#[track_caller]
fn run<T>(body: impl AsyncFnOnce(Trace) -> T) -> T {
    let (mut event_loop, _clock, trace) = jumping();
    event_loop.run_until_complete(body(trace)).unwrap()
}

async fn after<T>(delay: u64, value: T) -> T {
    sleep(ms(delay)).await;
    value
}

fn elapsed() -> u64 {
    now().as_nanos() / 1_000_000
}

#[test]
fn a_join_gives_outputs_in_order_of_the_futures_c092() {
    run(async |_| {
        assert_eq!(join_all([30, 10, 20].map(|ms| after(ms, ms))).await, [30, 10, 20]);
        assert_eq!(elapsed(), 30);
        let tasks = [3, 1, 2].map(|ms| spawn(after(ms, ms)));
        let values: Vec<_> = join_all(tasks).await.into_iter().map(Result::unwrap).collect();
        assert_eq!(values, [3, 1, 2]);
        assert!(join_all(Vec::<std::future::Ready<()>>::new()).await.is_empty());
    });
}

#[test]
fn the_same_result_can_be_joined_twice_c093() {
    run(async |_| {
        let runs = Rc::new(Cell::new(0));
        let count = runs.clone();
        let shared = spawn(async move { count.set(count.get() + 1) }).shared();
        let results = join_all([shared.clone(), shared]).await;
        assert_eq!((results.len(), runs.get()), (2, 1));
    });
}

#[test]
fn the_first_error_ends_a_join_at_once_and_tasks_kept_elsewhere_go_on_c094() {
    run(async |trace| {
        let fail = async |delay| Err::<(), _>(after(delay, delay).await);
        assert_eq!(try_join_all([30, 10, 20].map(fail)).await, Err(10));
        assert_eq!(elapsed(), 10);
        let note = trace.clone();
        let sibling = spawn(async move {
            sleep(ms(50)).await;
            note.note("sibling");
            Ok::<_, u64>(())
        })
        .shared();
        let readers: Vec<Fallible<u64>> = vec![Box::pin(sibling.clone().map(|_| Ok(()))), Box::pin(async { Err(after(1, 1).await) })];
        assert_eq!(try_join_all(readers).await, Err(1));
        assert!(trace.take().is_empty());
        sibling.await.as_ref().as_ref().unwrap().unwrap();
        assert_eq!(trace.take(), ["sibling"]);
        assert_eq!(try_join_all([1, 2].map(|n| ready(Ok::<_, ()>(n)))).await, Ok(vec![1, 2]));
    });
}

#[test]
fn errors_and_cancels_of_tasks_are_values_of_a_join_c095_c096() {
    run(async |_| {
        let cancelled = spawn(pending::<i32>());
        cancelled.cancel();
        let results = join_all([spawn(async { 1 }), cancelled, spawn(async { panic!("no") })]).await;
        assert_eq!(*results[0].as_ref().unwrap(), 1);
        assert!(results[1].as_ref().unwrap_err().is_cancelled());
        assert!(results[2].as_ref().unwrap_err().is_panic());
    });
}

#[test]
fn dropping_a_join_cancels_what_it_owns_c097() {
    run(async |trace| {
        let task = |name: &'static str| {
            let guard = trace.on_drop(name);
            spawn(async move {
                let _guard = guard;
                pending::<()>().await;
            })
        };
        let joined = join_all([task("a"), task("b")]);
        assert!(timeout(ms(5), joined).await.is_err());
        yield_now().await;
        yield_now().await;
        assert_eq!(trace.take(), ["a", "b"]);
    });
}

#[test]
fn a_wake_polls_its_branch_and_no_other() {
    const COUNT: usize = 10_000;
    run(async |_| {
        let polls = Rc::new(Cell::new(0_usize));
        let (resolvers, promises): (Vec<_>, Vec<_>) = (0..COUNT).map(|_| promise::<(), miniloop::Abandoned>()).unzip();
        let branches = promises.into_iter().map(|mut promise| {
            let polls = polls.clone();
            poll_fn(move |cx| {
                polls.set(polls.get() + 1);
                Pin::new(&mut promise).poll(cx)
            })
        });
        let joined = join_all(branches.collect::<Vec<_>>());
        let resolve = spawn(async move {
            for resolver in resolvers.into_iter().rev() {
                resolver.set_result(());
                yield_now().await;
            }
        });
        assert_eq!(joined.await.len(), COUNT);
        resolve.await.unwrap();
        assert!(polls.get() <= 2 * COUNT, "{} polls", polls.get());
    });
}

#[test]
fn a_join_gives_way_after_32_branches() {
    run(async |trace| {
        let note = trace.clone();
        let other = spawn(async move { note.note("other") });
        let branches = (0..40).map(|n| {
            let trace = trace.clone();
            async move { trace.note(n) }
        });
        join_all(branches.collect::<Vec<_>>()).await;
        other.await.unwrap();
        let order = trace.take();
        assert_eq!((order[31].as_str(), order[32].as_str(), order[33].as_str()), ("31", "other", "32"));
    });
}

#[test]
fn wait_returns_who_has_ended_and_leaves_the_rest_running_c098_c099() {
    run(async |_| {
        let mut tasks: Vec<_> = [30, 10, 20, 10].map(|ms| spawn(after(ms, ms))).into();
        let done = wait(&mut tasks, first_completed).await;
        assert_eq!((done.len(), tasks.len(), elapsed()), (2, 2, 10)); // two in one round
        for task in done {
            assert_eq!(task.now_or_never().unwrap().unwrap(), 10);
        }
        assert!(timeout(ms(5), wait(&mut tasks, all_completed)).await.is_err());
        assert_eq!(tasks.len(), 2);
        assert_eq!(wait(&mut tasks, all_completed).await.len(), 2);
        assert_eq!((tasks.len(), elapsed()), (0, 30));
    });
}

#[test]
fn an_error_or_a_panic_is_enough_and_a_cancel_is_not_c099() {
    run(async |_| {
        let task = |delay, result: Result<(), ()>| spawn(after(delay, result));
        let cancelled = task(1_000, Ok(()));
        cancelled.cancel();
        let mut tasks = vec![cancelled, task(10, Ok(())), task(20, Err(())), task(30, Ok(()))];
        assert_eq!((wait(&mut tasks, first_error).await.len(), elapsed()), (3, 20));
        let mut tasks = vec![task(10, Ok(())), spawn(async { panic!("no") })];
        assert_eq!((wait(&mut tasks, first_error).await.len(), elapsed()), (1, 20));
        let mut tasks = vec![task(1, Ok(())), task(2, Ok(()))];
        assert_eq!((wait(&mut tasks, first_error).await.len(), elapsed()), (2, 22));
    });
}

#[test]
fn waiting_for_nothing_ends_at_once_c100() {
    run(async |_| assert!(wait(&mut Vec::<Task<()>>::new(), first_completed).await.is_empty()));
}

#[test]
fn a_dropped_wait_leaves_the_tasks_alone_c101() {
    run(async |_| {
        let mut tasks: Vec<_> = [10, 20].map(|ms| spawn(after(ms, ms))).into();
        for _ in 0..3 {
            assert!(timeout(ms(2), wait(&mut tasks, all_completed)).await.is_err());
        }
        for (task, expected) in tasks.into_iter().zip([10, 20]) {
            assert_eq!(task.await.unwrap(), expected);
        }
    });
}

#[test]
fn outputs_come_in_order_of_completion_and_a_limit_loses_none_c106() {
    run(async |_| {
        let mut stream = as_completed([30, 10, 20].map(|ms| after(ms, ms)));
        assert_eq!(stream.next().await, Some((1, 10)));
        assert!(timeout(ms(5), stream.next()).await.is_err());
        assert_eq!(stream.next().await, Some((2, 20)));
        assert_eq!(StreamExt::collect::<Vec<_>>(stream).await, [(0, 30)]);
        assert_eq!(elapsed(), 30);
    });
}

#[test]
fn the_first_future_of_a_race_wins_and_the_others_are_dropped() {
    run(async |trace| {
        let runner = |ms: u64| {
            let guard = trace.on_drop(ms);
            async move {
                let _guard = guard;
                after(ms, ms).await
            }
        };
        let raced = race([30, 10, 20].map(runner)).await;
        assert_eq!((raced.index, raced.value, raced.late, elapsed()), (1, 10, vec![], 10));
        assert_eq!(trace.take(), ["10", "30", "20"]);
    });
}

#[test]
fn a_loser_that_is_woken_already_is_polled_once_and_its_value_is_late_c12() {
    run(async |_| {
        // Both deadlines are found by one poll.
        let raced = race([10, 10, 10].map(|ms| after(ms, ms))).await;
        assert_eq!((raced.index, raced.late), (0, vec![(1, 10), (2, 10)]));
        // Woken, but not done: dropped after that one poll.
        let raced = race([1, 2].map(async |rounds| {
            for _ in 0..rounds {
                sleep(ms(1)).await;
            }
            rounds
        }));
        assert_eq!(raced.await.late, vec![]);
    });
}

#[test]
fn losers_clean_up_before_the_race_ends_and_may_still_give_a_value() {
    run(async |trace| {
        let runner = |ms: u64| {
            let trace = trace.clone();
            async move {
                match catch(after(ms, ms)).await {
                    Ok(ms) => ms,
                    Err(cleanup) => {
                        sleep(Duration::from_millis(5)).await;
                        trace.note(format!("{ms} {}", cleanup.finish()));
                        ms + 1
                    }
                }
            }
        };
        let raced = race([30, 10, 20].map(runner)).await;
        assert_eq!((raced.index, raced.value, raced.late, elapsed()), (1, 10, vec![(0, 31), (2, 21)], 15));
        assert_eq!(trace.len(), 2);
    });
}

#[test]
fn a_loser_out_of_grace_is_dropped_and_reported() {
    let clock = VirtualClock::jumping();
    let mut event_loop = EventLoop::builder().clock(&clock).grace(ms(100)).build().unwrap();
    let kinds = Rc::new(RefCell::new(Vec::new()));
    let seen = kinds.clone();
    event_loop.handle().on_error(move |report| seen.borrow_mut().push((report.kind(), report.subject().to_owned())));
    let value = event_loop.run_until_complete(async {
        let raced = race([true, false].map(async |is_slow| {
            if is_slow && let Err(_cleanup) = catch(pending::<()>()).await {
                pending::<()>().await;
            }
            yield_now().await;
        }))
        .await;
        yield_now().await;
        (raced.index, raced.late.len(), elapsed())
    });
    assert_eq!(value.unwrap(), (1, 0, 100));
    assert_eq!(*kinds.borrow(), [(ReportKind::GraceExceeded, "branch 0 of a race".to_owned())]);
}

#[test]
fn a_race_is_cancelled_from_outside_like_any_future() {
    run(async |trace| {
        let note = trace.clone();
        let task = spawn(async move {
            race([1, 2].map(|n| {
                let trace = note.clone();
                async move {
                    if let Err(cleanup) = catch(pending::<()>()).await {
                        sleep(ms(n)).await;
                        trace.note(n);
                        cleanup.finish();
                    }
                }
            }))
            .await
        });
        yield_now().await;
        task.cancel();
        // The first one that has cleaned up ends, and so wins.
        let raced = task.await.unwrap();
        assert_eq!((raced.index, trace.take()), (0, vec!["1".to_owned(), "2".to_owned()]));
    });
}

#[test]
fn a_race_of_nobody_never_ends() {
    run(async |_| assert!(timeout(ms(10), race(Vec::<std::future::Ready<()>>::new())).await.is_err()));
}

#[test]
fn whatever_is_dropped_at_any_poll_is_dropped_whole() {
    /// Polls a future of three branches `polls` times, then drops it. How many branches are left?
    fn check<F: Future>(name: &str, make: impl Fn(Vec<Fallible<()>>) -> F) {
        for polls in 0..8 {
            run(async |_| {
                let alive = Rc::new(());
                let branch = |rounds: usize| -> Fallible<()> {
                    let guard = alive.clone();
                    Box::pin(async move {
                        let _guard = guard;
                        for _ in 0..rounds {
                            yield_now().await;
                        }
                        Ok(())
                    })
                };
                let mut future = Box::pin(make(vec![branch(1), branch(3), branch(2)]));
                for _ in 0..polls {
                    if poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx))).await.is_ready() {
                        break;
                    }
                    yield_now().await;
                }
                drop(future);
                assert_eq!(Rc::strong_count(&alive), 1, "{name} after {polls} polls");
            });
        }
    }
    check("join_all", join_all);
    check("try_join_all", try_join_all);
    check("race", race);
    check("as_completed", |futures| async { as_completed(futures).collect::<Vec<_>>().await });
}

#[test]
fn a_panic_of_a_branch_is_the_tasks() {
    let (mut event_loop, ..) = jumping();
    let reports = trace_reports(&event_loop.handle());
    let result = event_loop.run_until_complete(async {
        spawn(async { join_all([1, 2].map(async |n| if n == 2 { panic!("two") } else { pending().await })).await }).await
    });
    assert!(result.unwrap().unwrap_err().is_panic());
    assert!(reports.take().is_empty());
}

#[test]
fn destructors_of_branches_that_panic_are_reported_and_harm_nobody() {
    let (mut event_loop, ..) = jumping();
    let reports = trace_reports(&event_loop.handle());
    let branches = || {
        [1, 2, 3, 4].map(|ms| async move {
            let _panics = (ms > 1).then(|| panic_on_drop("cannot flush"));
            after(ms, ms).await
        })
    };
    let won = event_loop.run_until_complete(async {
        let won = race(branches()).await;
        assert!(timeout(ms(1), join_all(branches())).await.is_err());
        assert_eq!(as_completed(branches()).next().await, Some((0, 1)));
        yield_now().await;
        won
    });
    let won = won.unwrap();
    assert_eq!((won.value, won.late.len()), (1, 0));
    let reports = reports.take();
    assert_eq!(reports.len(), 9);
    assert!(reports.iter().all(|report| report == "DropPanic branch: cannot flush"), "{reports:?}");
}

#[test]
fn outside_a_loop_a_join_says_so() {
    let (message, _) = panic_of(|| {
        let mut joined = pin!(join_all([ready(())]));
        let _ = joined.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    });
    assert!(message.contains("no event loop"), "{message}");
}

#[test]
fn the_combinators_of_the_futures_crate_work() {
    run(async |_| {
        assert_eq!(join!(after(20, "a"), after(10, "b")), ("a", "b"));
        let (mut slow, mut fast) = (pin!(after(20, 1).fuse()), pin!(after(5, 2).fuse()));
        let first = select! { value = slow => value, value = fast => value };
        assert_eq!((first, slow.is_terminated(), slow.await), (2, false, 1));
        let mut ticks = miniloop::interval(ms(10));
        let mut nap = sleep(ms(25));
        let mut count = 0;
        loop {
            select! {
                _ = ticks.next() => count += 1,
                () = nap => break,
            }
        }
        assert_eq!(count, 3);
        let mut set: FuturesUnordered<_> = [3, 1, 2].into_iter().map(|ms| after(ms, ms)).collect();
        let mut order = Vec::new();
        while let Some(ms) = set.next().await {
            order.push(ms);
        }
        assert_eq!(order, [1, 2, 3]);
    });
}

#[test]
fn a_wait_and_a_shield_may_stand_in_a_select_again_and_again() {
    run(async |_| {
        let mut tasks = vec![spawn(after(2, ())), spawn(after(4, ()))];
        let (mut waiting, mut shielded) = (wait(&mut tasks, all_completed), pin!(shield(after(3, ()))));
        let mut ended = Vec::new();
        loop {
            select! {
                done = waiting => ended.push(done.len()),
                () = shielded => ended.push(0),
                complete => break,
            }
        }
        assert_eq!(ended, [0, 2]);
    });
}
