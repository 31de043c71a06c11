//! A loop may be looked into wherever user code runs: in callbacks, handlers, destructors and wakers, also while it closes.

mod support;

use std::future::{Future, pending};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use miniloop::{EventLoop, LoopHandle, promise, spawn, spawn_blocking, task_group, yield_now};

use support::{manual, on_drop, run_dry};

/// Looks at all there is, and counts.
#[derive(Clone)]
struct Look {
    handle: LoopHandle,
    looks: Arc<AtomicUsize>,
}

impl Look {
    fn look(&self) {
        let dump = self.handle.dump();
        assert_eq!(dump.to_string().lines().next().map(|line| line.starts_with("event loop ")), Some(true));
        let _ = self.handle.stats();
        self.looks.fetch_add(1, Ordering::Relaxed);
    }
}

/// Sets a scene, runs the loop and closes it: everything looks once.
#[track_caller]
fn check(expected: usize, scene: impl FnOnce(&mut EventLoop, Look)) {
    let (mut event_loop, ..) = manual();
    let look = Look { handle: event_loop.handle(), looks: Arc::default() };
    scene(&mut event_loop, look.clone());
    run_dry(&mut event_loop);
    event_loop.close();
    assert_eq!(look.looks.load(Ordering::Relaxed), expected);
}

#[test]
fn in_callbacks_and_handlers() {
    check(1, |l, look| drop(l.handle().call_soon(move || look.look())));
    check(1, |l, look| drop(l.handle().call_later(Duration::ZERO, move || look.look())));
    check(1, |l, look| {
        l.handle().on_error(move |_| look.look());
        l.handle().call_soon(|| Err::<(), _>("broken"));
    });
    check(1, |l, look| {
        let _ = l.run_until_complete(async move {
            let (resolver, promised) = promise::<(), miniloop::Abandoned>();
            let shared = promised.shared();
            shared.on_done(move |_| look.look());
            resolver.set_result(());
            yield_now().await;
        });
    });
}

#[test]
fn in_destructors_also_while_the_loop_closes() {
    check(1, |l, look| {
        let owned = on_drop(move || look.look());
        l.handle().call_later(Duration::MAX, move || drop(owned));
    });
    check(2, |l, look| {
        let (cancelled, closed) = (look.clone(), look);
        let waiting = |look: Look| async move {
            let _owned = on_drop(move || look.look());
            pending::<()>().await;
        };
        let task = l.handle().spawn(waiting(cancelled));
        l.handle().call_soon(move || drop(task));
        l.handle().spawn(waiting(closed)).detach();
    });
    check(1, |l, look| {
        let body = async move {
            task_group(async |g| {
                g.spawn(async {
                    let _owned = on_drop(move || look.look());
                    pending::<()>().await;
                });
            })
            .await;
        };
        l.handle().spawn(body).detach();
    });
    check(1, |l, look| {
        let owned = on_drop(move || look.look());
        l.handle().on_error(move |_| {
            let _ = &owned;
        });
    });
}

#[test]
fn in_the_waker_of_another_executor() {
    struct Looking(std::thread::ThreadId, Arc<AtomicUsize>);
    impl Wake for Looking {
        fn wake(self: Arc<Self>) {
            assert_eq!(std::thread::current().id(), self.0);
            let _ = miniloop::diag::dump();
            self.1.fetch_add(1, Ordering::Relaxed);
        }
    }
    check(1, |l, look| {
        let waker = Waker::from(Arc::new(Looking(std::thread::current().id(), look.looks)));
        let event = std::rc::Rc::new(miniloop::sync::Event::new());
        let other = event.clone();
        let _ = l.run_until_complete(async move {
            let mut waiting = pin!(event.wait());
            assert!(waiting.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
            spawn(async move { other.set() }).await.unwrap();
        });
    });
}

#[test]
fn while_blocking_jobs_are_refused_and_finished() {
    check(1, |l, look| {
        let owned = on_drop(move || {
            let late = spawn_blocking(|| ());
            look.look();
            drop(late);
        });
        l.handle().call_later(Duration::MAX, move || drop(owned));
    });
}
