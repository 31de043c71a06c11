//! Promises: a result that one side sets and others wait for (C050 to C061).

mod support;

use std::cell::RefCell;
use std::future::pending;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Wake, Waker};

use futures_util::{FutureExt, poll};
use miniloop::{Abandoned, LoopHandle, Promise, Resolver, Shared, promise, sleep, spawn, yield_now};
use support::{Trace, jumping, manual, ms, panic_of, run_dry};

fn numbers() -> (Resolver<u32, Abandoned>, Promise<u32, Abandoned>) {
    promise()
}

#[test]
fn a_promise_is_pending_until_it_is_set_and_gives_what_was_set_c050_c051() {
    let (mut event_loop, ..) = manual();
    event_loop
        .run_until_complete(async {
            let (resolver, mut promise) = numbers();
            assert!(!promise.is_done() && poll!(&mut promise).is_pending());
            resolver.set_result(7);
            assert!(promise.is_done());
            assert_eq!(promise.await, Ok(7));

            let (resolver, promise) = self::promise::<u32, Text>();
            resolver.set_error(Text("no such room".to_owned()));
            assert_eq!(promise.await, Err(Text("no such room".to_owned())));
        })
        .unwrap();
}

/// A user's error that can also say that nobody set anything.
#[derive(Debug, PartialEq)]
struct Text(String);

impl From<Abandoned> for Text {
    fn from(abandoned: Abandoned) -> Text {
        Text(abandoned.to_string())
    }
}

#[test]
fn a_resolver_dropped_unset_answers_instead_of_leaving_the_reader_to_wait_c050() {
    let (mut event_loop, ..) = manual();
    let (resolver, promise) = numbers();
    event_loop.handle().call_soon(move || drop(resolver));
    assert_eq!(event_loop.run_until_complete(promise).unwrap(), Err(Abandoned));

    let (resolver, promise) = self::promise::<(), Text>();
    drop(resolver);
    let Err(Text(text)) = event_loop.run_until_complete(promise).unwrap() else { panic!("it was not set") };
    assert!(text.contains("dropped without setting"), "{text}");
}

#[test]
fn dropping_the_promise_cancels_and_setting_then_is_silent_c053_c059() {
    let (mut event_loop, _, trace) = manual();
    let reports = support::trace_reports(&event_loop.handle());
    let (resolver, promise) = promise::<support::OnDrop, Abandoned>();
    assert!(!resolver.is_cancelled());
    drop(promise);
    assert!(resolver.is_cancelled());
    resolver.set_result(trace.on_drop("the value goes at once"));
    assert_eq!(trace.take(), ["the value goes at once"]);
    let (resolver, promise) = numbers();
    drop(promise);
    resolver.set_error(Abandoned);
    run_dry(&mut event_loop);
    assert!(reports.take().is_empty());
}

#[test]
fn the_resolver_can_wait_for_the_cancel_c053_c060() {
    let (mut event_loop, _, trace) = jumping();
    event_loop
        .run_until_complete(async {
            let (resolver, promise) = numbers();
            let noting = trace.noting("cancelled");
            let worker = spawn(async move {
                resolver.cancelled().await;
                noting();
            });
            sleep(ms(1)).await;
            assert!(trace.take().is_empty());
            drop(promise);
            worker.await.unwrap();
        })
        .unwrap();
    assert_eq!(trace.take(), ["cancelled"]);
}

#[test]
fn readers_are_never_called_inline_and_go_on_in_registration_order_o8_c054_c063() {
    let (mut event_loop, _, trace) = manual();
    event_loop
        .run_until_complete(async {
            let (resolver, promise) = numbers();
            let shared = promise.shared();
            shared.on_done(noting(&trace, "callback 1")); // its handle may be dropped
            let task = spawn(reader(&shared, &trace, "task 1"));
            yield_now().await;
            shared.on_done(noting(&trace, "callback 2"));
            let other = spawn(reader(&shared, &trace, "task 2"));
            yield_now().await;
            resolver.set_result(7);
            trace.note("set");
            task.await.unwrap();
            other.await.unwrap();
        })
        .unwrap();
    assert_eq!(trace.take(), ["set", "callback 1: 7", "task 1: 7", "callback 2: 7", "task 2: 7"]);
}

fn noting(trace: &Trace, name: &'static str) -> impl FnOnce(Rc<Result<u32, Abandoned>>) + use<> {
    let trace = trace.clone();
    move |result| trace.note(format_args!("{name}: {}", result.unwrap()))
}

fn reader(shared: &Shared<Result<u32, Abandoned>>, trace: &Trace, name: &'static str) -> impl Future<Output = ()> + 'static + use<> {
    let (shared, note) = (shared.clone(), noting(trace, name));
    async move { note(shared.await) }
}

#[test]
fn a_reader_that_polls_again_keeps_its_place_o8() {
    let (mut event_loop, _, trace) = manual();
    event_loop
        .run_until_complete(async {
            let (resolver, promise) = numbers();
            let shared = promise.shared();
            let mut wakers = Vec::new();
            let mut first = reader(&shared, &trace, "first").boxed_local();
            let first = spawn({
                let (send, receive) = std::sync::mpsc::channel();
                wakers.push(receive);
                std::future::poll_fn(move |cx| {
                    send.send(cx.waker().clone()).unwrap();
                    first.as_mut().poll(cx)
                })
            });
            let second = spawn(reader(&shared, &trace, "second"));
            yield_now().await;
            wakers[0].recv().unwrap().wake(); // polls without need
            yield_now().await;
            resolver.set_result(1);
            second.await.unwrap();
            first.await.unwrap();
        })
        .unwrap();
    assert_eq!(trace.take(), ["first: 1", "second: 1"]);
}

#[test]
fn a_callback_added_to_a_finished_promise_runs_in_the_next_round_c055() {
    let (mut event_loop, _, trace) = manual();
    event_loop.handle().call_soon({
        let trace = trace.clone();
        move || {
            let (resolver, promise) = numbers();
            resolver.set_result(7);
            promise.on_done({
                let trace = trace.clone();
                move |result| trace.note(format_args!("sole: {result:?}"))
            });
            let (resolver, promise) = numbers();
            resolver.set_result(8);
            promise.shared().on_done(noting(&trace, "shared"));
            trace.note("this round");
        }
    });
    event_loop.run_once().unwrap();
    assert_eq!(trace.take(), ["this round"]);
    event_loop.run_once().unwrap();
    assert_eq!(trace.take(), ["sole: Ok(7)", "shared: 8"]);
}

#[test]
fn a_completion_callback_can_be_taken_back_c056() {
    let (mut event_loop, _, trace) = manual();
    let handle = event_loop.handle();
    let (resolver, promise) = numbers();
    let shared = promise.shared();
    {
        let _entered = handle.enter();
        let first = shared.on_done(noting(&trace, "first"));
        shared.on_done(noting(&trace, "second"));
        let third = shared.on_done(noting(&trace, "third"));
        first.cancel();
        assert!(!first.is_pending() && third.is_pending());
        resolver.set_result(7);
        third.cancel(); // queued already
    }
    run_dry(&mut event_loop);
    assert_eq!(trace.take(), ["second: 7"]);
}

#[test]
fn cancelling_the_callback_of_a_sole_reader_cancels_the_promise_c056() {
    let (event_loop, ..) = manual();
    let (resolver, promise) = numbers();
    let callback = {
        let _entered = event_loop.handle().enter();
        promise.on_done(|_| ())
    };
    assert!(!resolver.is_cancelled());
    callback.cancel();
    assert!(resolver.is_cancelled());
}

#[test]
fn callbacks_may_add_and_remove_callbacks_while_they_run_c057() {
    let (mut event_loop, _, trace) = manual();
    let (resolver, promise) = numbers();
    let shared = promise.shared();
    {
        let _entered = event_loop.handle().enter();
        let victim = Rc::new(std::cell::OnceCell::<miniloop::CallbackHandle>::new());
        shared.on_done({
            let (shared, trace, victim) = (shared.clone(), trace.clone(), victim.clone());
            move |_| {
                trace.note("first");
                shared.on_done(noting(&trace, "added"));
                victim.get().unwrap().cancel();
            }
        });
        victim.set(shared.on_done(noting(&trace, "removed"))).unwrap();
        shared.on_done(noting(&trace, "last"));
    }
    resolver.set_result(7);
    run_dry(&mut event_loop);
    assert_eq!(trace.take(), ["first", "last: 7", "added: 7"]);
}

#[test]
fn awaiting_what_is_done_does_not_yield_c058() {
    let (mut event_loop, _, trace) = manual();
    event_loop
        .run_until_complete(async {
            let (resolver, promise) = numbers();
            resolver.set_result(1);
            let (resolver, shared) = numbers();
            resolver.set_result(2);
            let shared = shared.shared();
            LoopHandle::current().call_soon(trace.noting("next round"));
            promise.await.unwrap();
            shared.clone().await.unwrap();
            shared.await.unwrap();
            trace.note("same round");
        })
        .unwrap();
    assert_eq!(trace.take(), ["same round"]);
    run_dry(&mut event_loop);
    assert_eq!(trace.take(), ["next round"]);
}

#[test]
fn dropping_one_of_many_readers_changes_nothing_and_the_last_cancels_c053() {
    let (mut event_loop, ..) = manual();
    event_loop
        .run_until_complete(async {
            let (resolver, promise) = numbers();
            let shared = promise.shared();
            let (mut first, second) = (shared.clone(), shared.clone());
            assert!(poll!(&mut first).is_pending());
            drop(first);
            drop(shared);
            assert!(!resolver.is_cancelled());
            drop(second);
            assert!(resolver.is_cancelled());
        })
        .unwrap();
}

#[test]
fn a_promise_polled_after_its_value_panics_and_says_so_c051() {
    let (mut event_loop, ..) = manual();
    let (resolver, mut promise) = numbers();
    resolver.set_result(7);
    event_loop.run_until_complete(&mut promise).unwrap().unwrap();
    let (message, _) = panic_of(|| event_loop.run_until_complete(promise));
    assert!(message.contains("polled after it had given its value"), "{message}");
}

#[test]
fn a_promise_that_changes_its_reader_wakes_the_last_one_c054() {
    let (mut event_loop, _, trace) = manual();
    event_loop
        .run_until_complete(async {
            let (resolver, mut promise) = numbers();
            assert!(poll!(&mut promise).is_pending()); // by this task
            let noting = trace.noting("read");
            let task = spawn(async move {
                promise.await.unwrap();
                noting();
            });
            yield_now().await;
            resolver.set_result(1);
            task.await.unwrap();
        })
        .unwrap();
    assert_eq!(trace.take(), ["read"]);
}

#[test]
fn setting_needs_no_running_loop_and_wakes_the_loop_that_waits_c054() {
    let (mut event_loop, _, trace) = manual();
    let (resolver, promise) = numbers();
    let noting = trace.noting("read");
    event_loop
        .handle()
        .spawn(async move {
            promise.await.unwrap();
            noting();
        })
        .detach();
    event_loop.run_once().unwrap();
    assert_eq!(event_loop.next_timeout(), None);
    resolver.set_result(1);
    assert_eq!(event_loop.next_timeout(), Some(std::time::Duration::ZERO));
    event_loop.run_once().unwrap();
    assert_eq!(trace.take(), ["read"]);
}

#[test]
fn promises_tasks_and_sleeps_are_fused_for_select() {
    let (mut event_loop, ..) = jumping();
    let first = event_loop
        .run_until_complete(async {
            let (resolver, mut promise) = numbers();
            let mut task = spawn(pending::<()>());
            let mut limit = sleep(ms(5));
            LoopHandle::current().call_later(ms(3), move || resolver.set_result(7));
            let mut woken = Vec::new();
            for _ in 0..2 {
                futures_util::select! {
                    value = promise => woken.push(format!("promise: {}", value.unwrap())),
                    _ = task => woken.push("task".to_owned()),
                    () = limit => woken.push("limit".to_owned()),
                }
            }
            woken
        })
        .unwrap();
    assert_eq!(first, ["promise: 7", "limit"]);
}

#[test]
fn the_waker_of_who_waited_alone_may_set_the_promise_when_it_goes() {
    thread_local!(static ON_DROP: RefCell<Option<Box<dyn FnOnce()>>> = const { RefCell::new(None) });
    /// Runs what the test wants when the last waker goes, as those of an executor that frees its tasks may.
    struct Sets;
    impl Wake for Sets {
        fn wake(self: Arc<Self>) {}
    }
    impl Drop for Sets {
        fn drop(&mut self) {
            ON_DROP.take().into_iter().for_each(|call| call());
        }
    }
    let (mut event_loop, ..) = manual();
    let (resolver, mut promise) = numbers();
    ON_DROP.set(Some(Box::new(move || resolver.set_result(7))));
    event_loop
        .run_until_complete(async { assert!(promise.poll_unpin(&mut Context::from_waker(&Waker::from(Arc::new(Sets)))).is_pending()) })
        .unwrap();
    let shared = promise.shared();
    assert_eq!(*event_loop.run_until_complete(shared).unwrap(), Ok(7));
}
