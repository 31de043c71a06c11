//! Blocking jobs on real loops. Threads meet only at channels and joins, so nothing here depends on who is faster.

use std::cell::RefCell;
use std::panic::Location;
use std::rc::Rc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crate::config::{BLOCKING_QUEUE_LEN, BLOCKING_THREADS};
use crate::diag;
use crate::engine::pool_jobs::{PoolCounts, PoolJobs};
use crate::thread::{Blocking, BlockingError};
use crate::{EventLoop, LoopHandle, ReportKind, VirtualClock, spawn, spawn_blocking, try_spawn_blocking, yield_now};

/// A job that says when it has begun and goes on when it may.
struct Gate {
    job: Blocking<()>,
    begun: Receiver<()>,
    open: Sender<()>,
}

fn gate() -> Gate {
    let (open, opened) = mpsc::channel();
    let (begins, begun) = mpsc::channel();
    let job = spawn_blocking(move || {
        begins.send(()).unwrap();
        // An error opens it, too: the test has ended.
        let _ = opened.recv();
    });
    Gate { job, begun, open }
}

/// The running loop's threads, and the jobs that wait for one.
fn counts() -> (usize, usize) {
    let counts = LoopHandle::current().core.pool.jobs().counts();
    (counts.threads, counts.waiting)
}

/// The answer comes before the thread is free; until then the next job starts another one.
async fn a_thread_is_free() {
    let is_one_free = |counts: PoolCounts| counts.threads > counts.running;
    while !is_one_free(LoopHandle::current().core.pool.jobs().counts()) {
        yield_now().await;
    }
}

fn with_threads(threads: usize) -> EventLoop {
    EventLoop::builder().blocking_threads(threads).build().unwrap()
}

fn run<T>(future: impl Future<Output = T>) -> T {
    crate::run(future).unwrap()
}

#[test]
fn a_job_runs_on_another_thread_and_gives_its_value_or_its_error_c175() {
    run(async {
        let elsewhere = spawn_blocking(|| thread::current().id()).await.unwrap();
        assert_ne!(elsewhere, thread::current().id());
        assert_eq!(spawn_blocking(|| "x".parse::<u8>().map_err(|_| "no number")).await.unwrap(), Err("no number"));
    });
}

#[test]
fn a_panic_reaches_the_caller_and_harms_nobody_else() {
    run(async {
        let error: BlockingError = spawn_blocking(|| -> () { panic!("no luck") }).await.unwrap_err();
        assert!(error.is_panic() && !error.is_cancelled());
        assert!(error.to_string().ends_with(") panicked: no luck") && error.to_string().contains(file!()), "{error}");
        assert_eq!(error.into_panic().unwrap().downcast_ref(), Some(&"no luck"));
        a_thread_is_free().await;
        assert_eq!(spawn_blocking(|| 1).await.unwrap(), 1);
        assert_eq!(counts(), (1, 0), "the thread has survived it");
    });
}

#[test]
fn a_job_asks_its_loop_for_another_one_by_a_remote_and_cannot_do_it_itself() {
    run(async {
        let error = spawn_blocking(|| drop(spawn_blocking(|| ()))).await.unwrap_err();
        assert!(error.to_string().contains("no event loop is running on this thread"), "{error}");
        let remote = LoopHandle::current().remote();
        let inner = spawn_blocking(move || remote.spawn(|| spawn_blocking(|| 42)).unwrap()).await.unwrap();
        assert_eq!(inner.await.unwrap().unwrap(), 42);
    });
}

#[test]
fn destructors_that_panic_on_a_thread_do_not_cost_it() {
    struct Panics;
    impl Drop for Panics {
        fn drop(&mut self) {
            panic!("no luck");
        }
    }
    let mut event_loop = with_threads(1);
    event_loop
        .run_until_complete(async {
            // Nobody is left to read when they run: a value that is there before would be dropped here.
            let gate = gate();
            spawn_blocking(|| Panics).leave();
            spawn_blocking(|| std::panic::panic_any(Panics)).leave();
            gate.open.send(()).unwrap();
            assert_eq!(spawn_blocking(|| 1).await.unwrap(), 1);
            assert_eq!(counts(), (1, 0));
        })
        .unwrap();
}

#[test]
fn a_loop_without_jobs_has_no_thread_and_no_thread_starts_while_another_is_free() {
    run(async {
        assert_eq!(counts(), (0, 0));
        for _ in 0..3 {
            let gate = gate();
            assert_eq!(counts().0, 1);
            gate.begun.recv().unwrap();
            gate.open.send(()).unwrap();
            gate.job.await.unwrap();
            a_thread_is_free().await;
        }
    });
}

#[test]
fn as_many_jobs_run_at_a_time_as_there_are_threads_and_the_others_wait_in_order() {
    let mut event_loop = with_threads(2);
    event_loop
        .run_until_complete(async {
            let gates = [gate(), gate()];
            gates.iter().for_each(|gate| gate.begun.recv().unwrap());
            let order = Arc::new(Mutex::new(Vec::new()));
            let note = |number| {
                let order = order.clone();
                spawn_blocking(move || order.lock().unwrap().push(number))
            };
            let waiting = [1, 2, 3].map(note);
            assert_eq!(counts(), (2, 3));
            // One thread takes them all.
            gates[0].open.send(()).unwrap();
            for job in waiting {
                job.await.unwrap();
            }
            assert_eq!(*order.lock().unwrap(), [1, 2, 3]);
            drop(gates);
        })
        .unwrap();
}

#[test]
fn who_looks_sees_the_jobs_that_run_and_those_that_wait() {
    let mut event_loop = with_threads(1);
    event_loop
        .run_until_complete(async {
            assert_eq!(diag::stats().blocking_threads, 0);
            assert!(diag::dump().blocking.is_empty());
            let gate = gate();
            gate.begun.recv().unwrap();
            let waiting = [(); 2].map(|()| spawn_blocking(|| ()));
            let line = Location::caller().line() - 1;
            let stats = diag::stats();
            assert_eq!((stats.blocking_threads, stats.blocking_running, stats.blocking_waiting, stats.blocking_waits), (1, 1, 2, 2));
            let jobs: Vec<_> = diag::dump().blocking.into_iter().map(|job| (job.place.line() == line, job.is_running)).collect();
            assert_eq!(jobs, [(false, true), (true, false), (true, false)]);
            drop(gate);
            for job in waiting {
                job.await.unwrap();
            }
            a_thread_is_free().await;
            let stats = diag::stats();
            assert_eq!((stats.blocking_running, stats.blocking_waiting, stats.blocking_waits), (0, 0, 2));
        })
        .unwrap();
    let closed = event_loop.handle();
    event_loop.close();
    assert_eq!((closed.stats().blocking_threads, closed.dump().blocking.len()), (0, 0));
}

#[test]
fn a_loop_has_32_threads_unless_it_is_told_otherwise_and_one_at_least() {
    run(async {
        let gates: Vec<_> = (0..BLOCKING_THREADS).map(|_| gate()).collect();
        gates.iter().for_each(|gate| gate.begun.recv().unwrap());
        let one_more = spawn_blocking(|| ());
        assert_eq!(counts(), (BLOCKING_THREADS, 1));
        drop((gates, one_more));
    });
    assert_eq!(with_threads(0).run_until_complete(async { spawn_blocking(|| 1).await.unwrap() }).unwrap(), 1);
}

#[test]
fn a_job_that_has_not_begun_is_withdrawn_with_its_caller() {
    with_threads(1)
        .run_until_complete(async {
            let gate = gate();
            gate.begun.recv().unwrap();
            let owned = Arc::new(());
            let never = owned.clone();
            let job = spawn_blocking(move || unreachable!("{never:?}"));
            drop(job);
            assert_eq!((Arc::strong_count(&owned), counts()), (1, (1, 0)), "the job is dropped at once");
        })
        .unwrap();
}

#[test]
fn a_cancelled_caller_does_not_wait_for_the_thread_and_the_late_result_is_dropped_there_c175() {
    run(async {
        let (open, opened) = mpsc::channel::<()>();
        let (begins, begun) = mpsc::channel();
        let (drops, dropped) = mpsc::channel();
        #[derive(Debug)]
        struct Tells(Sender<thread::ThreadId>);
        impl Drop for Tells {
            fn drop(&mut self) {
                self.0.send(thread::current().id()).unwrap();
            }
        }
        let job = spawn_blocking(move || {
            begins.send(thread::current().id()).unwrap();
            opened.recv().unwrap();
            Tells(drops)
        });
        let caller = spawn(job);
        let on = begun.recv().unwrap();
        caller.cancel();
        assert!(caller.await.unwrap_err().is_cancelled());
        open.send(()).unwrap();
        assert_eq!(dropped.recv(), Ok(on));
    });
}

#[test]
fn a_full_queue_refuses_try_spawn_and_lets_spawn_wait() {
    with_threads(1)
        .run_until_complete(async {
            let gate = gate();
            gate.begun.recv().unwrap();
            let mut waiting: Vec<_> = (0..BLOCKING_QUEUE_LEN).map(|_| try_spawn_blocking(|| ()).unwrap()).collect();
            let error = try_spawn_blocking(|| ()).unwrap_err();
            assert_eq!(error.to_string(), "the queue of the event loop's blocking threads is full; `spawn_blocking` waits for its turn");
            let patient = spawn_blocking(|| ());
            waiting.truncate(BLOCKING_QUEUE_LEN - 1);
            assert!(try_spawn_blocking(|| ()).is_err(), "whoever waited first has the room");
            waiting.truncate(BLOCKING_QUEUE_LEN - 2);
            assert!(try_spawn_blocking(|| ()).is_ok());
            drop(gate);
            patient.await.unwrap();
        })
        .unwrap();
}

#[test]
fn a_thread_ends_when_it_was_idle_for_its_time() {
    let jobs = Arc::new(PoolJobs::new(1, Duration::ZERO));
    let (ran, has_run) = mpsc::channel();
    assert!(jobs.push(Box::new(move || ran.send(()).unwrap()), Location::caller(), 1).is_ok_and(|queued| queued.needs_thread));
    jobs.work();
    assert_eq!((has_run.recv(), jobs.counts()), (Ok(()), PoolCounts::default()));
}

#[test]
fn a_job_for_which_there_is_no_thread_is_refused_and_one_that_can_wait_for_another_thread_waits() {
    let jobs = PoolJobs::new(2, Duration::ZERO);
    let push = || jobs.push(Box::new(|| ()), Location::caller(), 9).ok().unwrap();
    let (first, second) = (push(), push());
    assert!(first.needs_thread && second.needs_thread);
    assert!(jobs.has_other_thread());
    assert!(!jobs.has_other_thread(), "now nobody is left");
    assert!(jobs.withdraw(first.ticket).is_some() && jobs.withdraw(second.ticket).is_some());
    assert!(push().needs_thread, "the next one tries again");
}

#[test]
fn closing_finishes_what_was_submitted_also_what_nobody_waits_for_o9_c176() {
    let ran = Arc::new(Mutex::new(Vec::new()));
    let note = |what| {
        let ran = ran.clone();
        move || ran.lock().unwrap().push(what)
    };
    let mut event_loop = with_threads(1);
    let gate = event_loop.run_until_complete(async { gate() }).unwrap();
    gate.begun.recv().unwrap();
    let (left, held, task) = (note("left"), note("held"), note("task"));
    let handle = event_loop.handle();
    // Tasks are dropped newest first, so the thread goes on once the other one's job has been withdrawn.
    handle.spawn(async move { drop(gate) }).detach();
    handle.spawn_blocking(left).leave();
    let held = handle.spawn_blocking(held);
    let withdrawn = handle.spawn_blocking(task);
    handle.spawn(async { drop(withdrawn.await) }).detach();
    event_loop.close();
    assert_eq!(*ran.lock().unwrap(), ["left", "held"], "the task's job went with the task");
    drop(event_loop);
    run(held).unwrap();
}

#[test]
fn a_limit_does_not_bite_for_threads_without_a_job() {
    let jobs = PoolJobs::new(1, Duration::MAX);
    let queued = jobs.push(Box::new(|| ()), Location::caller(), 1).ok().unwrap();
    assert!(jobs.withdraw(queued.ticket).is_some());
    jobs.close();
    assert_eq!(jobs.counts().threads, 1, "a thread that was asked for and has not come yet");
    assert!(jobs.wait_ended(Duration::ZERO).is_ok());
}

#[test]
fn a_limit_that_bites_is_reported_and_a_late_thread_touches_nothing_c176_c177_b21() {
    let mut event_loop = EventLoop::builder().blocking_threads(1).blocking_grace(Duration::ZERO).build().unwrap();
    let reports = Rc::new(RefCell::new(Vec::new()));
    event_loop.handle().on_error({
        let reports = reports.clone();
        move |report| reports.borrow_mut().push((report.kind(), report.to_string()))
    });
    let owned = Arc::new(());
    let (waits, gate, never) = event_loop
        .run_until_complete(async {
            let gate = gate();
            gate.begun.recv().unwrap();
            let owned = owned.clone();
            (LoopHandle::current().core.pool.jobs().clone(), gate, spawn_blocking(move || drop(owned)))
        })
        .unwrap();
    let handle = event_loop.handle();
    handle.spawn(async { drop(gate.job.await) }).detach();
    event_loop.close();
    let [(ReportKind::Degraded, report)] = &reports.borrow()[..] else { panic!("one report: {reports:?}") };
    assert!(report.contains("1 blocking jobs still run and 1 never ran"), "{report}");
    assert_eq!(Arc::strong_count(&owned), 1);
    gate.open.send(()).unwrap();
    assert!(waits.wait_ended(Duration::MAX).is_ok());
    assert!(run(never).unwrap_err().is_cancelled());
}

#[test]
fn a_loop_that_is_closing_takes_no_job_and_says_so() {
    let mut event_loop = EventLoop::new().unwrap();
    let handle = event_loop.handle();
    let late = Rc::new(RefCell::new(None));
    struct SpawnsLate(Rc<RefCell<Option<Blocking<()>>>>);
    impl Drop for SpawnsLate {
        fn drop(&mut self) {
            *self.0.borrow_mut() = Some(spawn_blocking(|| unreachable!("nobody runs it")));
        }
    }
    let spawns_late = SpawnsLate(late.clone());
    handle.call_soon(move || drop(spawns_late));
    event_loop.close();
    let error = run(late.take().unwrap()).unwrap_err();
    assert!(error.is_cancelled() && error.to_string().ends_with("never ran: its event loop was closed"), "{error}");
}

#[test]
fn a_virtual_clock_waits_for_jobs_here_and_of_another_loop() {
    let mut event_loop = EventLoop::builder().clock(VirtualClock::jumping()).build().unwrap();
    let (open, opened) = mpsc::channel::<()>();
    let value = event_loop.run_until_complete(async {
        let job = spawn_blocking(move || opened.recv().map(|()| 1));
        let task = spawn(job);
        yield_now().await;
        open.send(()).unwrap();
        task.await.unwrap().unwrap()
    });
    assert_eq!(value.unwrap(), Ok(1));
    let mut elsewhere = EventLoop::new().unwrap();
    let gate = elsewhere.run_until_complete(async { gate() }).unwrap();
    gate.open.send(()).unwrap();
    event_loop.run_until_complete(gate.job).unwrap().unwrap();
}

#[test]
fn a_shutdown_turns_the_loop_until_jobs_that_may_want_something_of_it_are_done_c176() {
    for clock in [crate::Clock::SYSTEM, VirtualClock::jumping().into()] {
        let mut event_loop = EventLoop::builder().clock(clock).build().unwrap();
        let remote = event_loop.handle().remote();
        let asks = event_loop.handle().spawn_blocking(move || {
            let (told, hears) = mpsc::channel();
            remote.call_soon(move || told.send(()).unwrap()).unwrap();
            let task = remote.spawn(std::future::pending::<()>).unwrap();
            (hears.recv(), task.join().unwrap_err().is_cancelled())
        });
        event_loop.shutdown(Duration::from_secs(600)).unwrap();
        assert!(event_loop.handle().core.pool.jobs().poll_quiet(std::task::Waker::noop()));
        assert_eq!(event_loop.run_until_complete(asks).unwrap().unwrap(), (Ok(()), true));
    }
}

#[test]
fn a_shutdown_waits_for_jobs_no_longer_than_its_grace() {
    let mut event_loop = EventLoop::builder().blocking_grace(Duration::ZERO).build().unwrap();
    let gate = event_loop.run_until_complete(async { gate() }).unwrap();
    event_loop.shutdown(Duration::ZERO).unwrap();
    drop(gate);
}
