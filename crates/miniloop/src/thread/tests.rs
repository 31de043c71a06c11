//! Workers on real loops. Threads meet only at channels and joins, so nothing here depends on who is faster.

use std::cell::RefCell;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};
use std::thread;

use crate::config::WORKER_QUEUE_LEN;
use crate::thread::{Call, Worker, WorkerGone};
use crate::{EventLoop, VirtualClock, spawn, yield_now};

/// Writes its steps down, also its own end. Not `Send`, like a connection to a database.
struct Log {
    steps: Steps,
    _not_send: Rc<()>,
}

type Steps = Arc<Mutex<Vec<String>>>;

impl Log {
    fn write(&self, step: &str) {
        self.steps.lock().unwrap().push(step.to_owned());
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.write("dropped");
    }
}

fn log_worker() -> (Worker<Log>, Steps) {
    let steps = Steps::default();
    let worker = Worker::new("log", {
        let steps = steps.clone();
        move || Log { steps, _not_send: Rc::new(()) }
    });
    (worker.unwrap(), steps)
}

/// Occupies the worker until something is sent.
fn hold(worker: &Worker<Log>) -> (Call<Log, ()>, Sender<()>, Receiver<()>) {
    let (release, released) = mpsc::channel();
    let (started, has_started) = mpsc::channel();
    let call = worker.call(move |_| {
        started.send(()).unwrap();
        // An error is a release, too: the test has ended.
        let _ = released.recv();
    });
    (call, release, has_started)
}

fn steps(steps: &Steps) -> Vec<String> {
    steps.lock().unwrap().clone()
}

fn run<T>(future: impl Future<Output = T>) -> T {
    crate::run(future).unwrap()
}

#[test]
fn the_state_is_made_used_in_order_and_dropped_on_its_own_thread_c175() {
    run(async {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let note = |seen: &Arc<Mutex<Vec<_>>>| {
            let seen = seen.clone();
            move || seen.lock().unwrap().push(thread::current().name().unwrap().to_owned())
        };
        struct OnDrop<F: Fn()>(F);
        impl<F: Fn()> Drop for OnDrop<F> {
            fn drop(&mut self) {
                (self.0)();
            }
        }
        let (built, dropped) = (note(&seen), note(&seen));
        let worker = Worker::new("archive", move || {
            built();
            OnDrop(dropped)
        })
        .unwrap();
        let used = note(&seen);
        worker.call(move |_| used()).await.unwrap();
        worker.close().await.unwrap();
        assert_eq!(*seen.lock().unwrap(), ["archive"; 3]);
    });
}

#[test]
fn jobs_run_in_the_order_of_their_calls_polled_or_not() {
    run(async {
        let (worker, steps_of) = log_worker();
        let calls = ["a", "b", "c"].map(|step| worker.call(move |log| log.write(step)));
        for call in calls.into_iter().rev() {
            call.await.unwrap();
        }
        assert_eq!(steps(&steps_of), ["a", "b", "c"]);
    });
}

#[test]
fn close_finishes_what_is_queued_and_resolves_once_the_state_is_dropped() {
    run(async {
        let (worker, steps_of) = log_worker();
        let (_holding, release, _started) = hold(&worker);
        let call = worker.call(|log| log.write("last"));
        let close = spawn(worker.close());
        yield_now().await;
        release.send(()).unwrap();
        close.await.unwrap().unwrap();
        assert_eq!(steps(&steps_of), ["last", "dropped"]);
        call.await.unwrap();
    });
}

#[test]
fn dropping_a_worker_finishes_what_is_queued_and_joins() {
    run(async {
        let (worker, steps_of) = log_worker();
        let call = worker.call(|log| log.write("last"));
        drop(worker);
        assert_eq!(steps(&steps_of), ["last", "dropped"]);
        call.await.unwrap();
    });
}

#[test]
fn a_job_that_has_not_started_is_withdrawn_with_its_caller() {
    run(async {
        let (worker, steps_of) = log_worker();
        let (holding, release, started) = hold(&worker);
        started.recv().unwrap();
        let owned = Arc::new(());
        let withdrawn = worker.call({
            let owned = owned.clone();
            move |log| {
                log.write("never");
                drop(owned);
            }
        });
        let next = worker.call(|log| log.write("next"));
        drop(withdrawn);
        assert_eq!(Arc::strong_count(&owned), 1, "the job is dropped at once");
        release.send(()).unwrap();
        holding.await.unwrap();
        next.await.unwrap();
        assert_eq!(steps(&steps_of), ["next"]);
    });
}

#[test]
fn a_late_result_is_dropped_when_nobody_waits_c175_b21() {
    let (worker, _steps) = log_worker();
    let owned = Arc::new(());
    let (release, released) = mpsc::channel::<()>();
    let (started, has_started) = mpsc::channel();
    let mut event_loop = EventLoop::new().unwrap();
    let handle = event_loop.handle();
    let result = owned.clone();
    let call = worker.call(move |_| {
        started.send(()).unwrap();
        released.recv().unwrap();
        result
    });
    handle.spawn(async move { call.await.map(drop) }).detach();
    event_loop.run_ready().unwrap();
    has_started.recv().unwrap();
    event_loop.close();
    release.send(()).unwrap();
    drop(worker);
    assert_eq!(Arc::strong_count(&owned), 1);
}

#[test]
fn a_panic_reaches_its_caller_and_ends_the_worker() {
    run(async {
        let (worker, steps_of) = log_worker();
        let (_holding, release, _started) = hold(&worker);
        let panics = worker.call(|_| panic!("disk is gone"));
        let queued = worker.call(|log| log.write("never"));
        release.send(()).unwrap();
        let error: WorkerGone = panics.await.map(|(): ()| ()).unwrap_err();
        assert_eq!(error.to_string(), "this job panicked, and worker `log` has ended with it: disk is gone");
        assert_eq!(error.into_panic().unwrap().downcast_ref(), Some(&"disk is gone"));
        let gone = "worker `log` has ended: an earlier job panicked: disk is gone; make a new one";
        let later = worker.call(|_| ());
        for call in [queued, later] {
            let error = call.await.unwrap_err();
            assert_eq!((error.is_panic(), error.to_string().as_str()), (false, gone));
        }
        assert_eq!(worker.close().await.unwrap_err().to_string(), gone);
        assert_eq!(steps(&steps_of), ["dropped"]);
    });
}

#[test]
fn a_panic_is_told_once_the_state_is_dropped_and_before_those_behind_it_are_told() {
    struct Note(&'static str, Steps);
    impl Wake for Note {
        fn wake(self: Arc<Self>) {
            self.1.lock().unwrap().push(self.0.to_owned());
        }
    }
    let (worker, steps_of) = log_worker();
    let (_holding, release, _started) = hold(&worker);
    let mut panics = worker.call(|_| -> () { panic!("disk is gone") });
    let mut queued = worker.call(|_| ());
    for (call, name) in [(&mut panics as &mut (dyn Future<Output = _> + Unpin), "told"), (&mut queued, "told, too")] {
        let waker = Waker::from(Arc::new(Note(name, steps_of.clone())));
        assert!(Pin::new(call).poll(&mut Context::from_waker(&waker)).is_pending());
    }
    release.send(()).unwrap();
    drop(worker);
    assert_eq!(steps(&steps_of), ["dropped", "told", "told, too"]);
}

#[test]
fn a_full_queue_refuses_try_call_and_lets_call_wait() {
    run(async {
        let (worker, _steps) = log_worker();
        let (holding, release, started) = hold(&worker);
        started.recv().unwrap();
        let mut waiting: Vec<_> = (0..WORKER_QUEUE_LEN).map(|_| worker.try_call(|_| ()).unwrap()).collect();
        let error = worker.try_call(|_| ()).unwrap_err();
        assert_eq!(error.to_string(), "the queue of worker `log` is full; `call` waits for its turn");
        let patient = worker.call(|_| ());
        waiting.pop();
        assert!(worker.try_call(|_| ()).is_err(), "whoever waited first has the room");
        waiting.pop();
        assert!(worker.try_call(|_| ()).is_ok());
        release.send(()).unwrap();
        holding.await.unwrap();
        patient.await.unwrap();
    });
}

#[test]
fn a_state_that_cannot_be_built_is_an_error_of_try_new() {
    run(async {
        let refused = Worker::<Log>::try_new("log", || Err(io::Error::other("no such folder"))).await;
        assert_eq!(refused.unwrap_err().to_string(), "no such folder");
        let worker = Worker::try_new("log", || Ok::<_, io::Error>(3)).await.unwrap();
        assert_eq!(worker.call(|n| *n).await.unwrap(), 3);
    });
}

#[test]
fn a_panic_of_build_is_its_makers_or_its_callers() {
    let payload = catch_unwind(|| run(Worker::<Log>::try_new("log", || -> io::Result<Log> { panic!("no luck") }))).unwrap_err();
    assert_eq!(payload.downcast_ref(), Some(&"no luck"));
    run(async {
        let worker = Worker::<Log>::new("log", || panic!("no luck")).unwrap();
        let error = worker.call(|_| ()).await.unwrap_err();
        assert_eq!(error.to_string(), "worker `log` has ended: building its state panicked: no luck; make a new one");
    });
}

#[test]
fn a_destructor_that_panics_is_an_error_of_close() {
    struct Panics;
    impl Drop for Panics {
        fn drop(&mut self) {
            panic!("cannot flush");
        }
    }
    run(async {
        let worker = Worker::new("log", || Panics).unwrap();
        let error = worker.close().await.unwrap_err();
        assert_eq!(error.to_string(), "worker `log` has ended: dropping its state panicked: cannot flush; make a new one");
        // The value that nobody waits for is not the worker's.
        let worker = Worker::new("log", || ()).unwrap();
        let (started, has_started) = mpsc::channel();
        let (release, released) = mpsc::channel::<()>();
        let call = worker.call(move |()| {
            started.send(()).unwrap();
            released.recv().unwrap();
            Panics
        });
        has_started.recv().unwrap();
        drop(call);
        release.send(()).unwrap();
        worker.close().await.unwrap();
    });
}

#[test]
fn many_answers_to_a_sleeping_loop_are_one_ring_in_order() {
    let (worker, _steps) = log_worker();
    let mut event_loop = EventLoop::new().unwrap();
    let handle = event_loop.handle();
    let (_holding, release, _started) = hold(&worker);
    let answers = Rc::new(RefCell::new(Vec::new()));
    for number in 0..10 {
        let (call, answers) = (worker.call(move |_| number), answers.clone());
        handle.spawn(async move { call.await.map(|number| answers.borrow_mut().push(number)) }).detach();
    }
    event_loop.run_ready().unwrap();
    release.send(()).unwrap();
    drop(worker);
    let mut rings = [0; 8];
    rustix::io::read(handle.core.inbox.doorbell(), &mut rings).unwrap();
    assert_eq!(u64::from_ne_bytes(rings), 1);
    event_loop.run_ready().unwrap();
    assert!(answers.borrow().iter().copied().eq(0..10));
}

#[test]
fn a_virtual_clock_knows_of_a_job_from_its_call_until_its_answer_or_its_end() {
    let mut event_loop = EventLoop::builder().clock(VirtualClock::jumping()).build().unwrap();
    let in_flight = {
        let core = event_loop.handle().core.clone();
        move || core.jobs_in_flight.get()
    };
    // The message that says so comes behind the answer.
    let until_none_is_in_flight = async || {
        while in_flight() > 0 {
            yield_now().await;
        }
    };
    event_loop
        .run_until_complete(async {
            let (worker, _steps) = log_worker();
            let (holding, release, _started) = hold(&worker);
            let withdrawn = worker.call(|_| ());
            assert_eq!(in_flight(), 2);
            drop(withdrawn);
            assert_eq!(in_flight(), 1);
            release.send(()).unwrap();
            holding.await.unwrap();
            until_none_is_in_flight().await;
            let elsewhere = worker.call(|_| ());
            thread::scope(|scope| scope.spawn(move || drop(elsewhere)).join().unwrap());
            until_none_is_in_flight().await;
            worker.close().await.unwrap();
        })
        .unwrap();
}

#[test]
fn a_worker_may_be_dropped_by_its_own_job() {
    let (worker, _steps) = log_worker();
    let worker = Arc::new(Mutex::new(Some(worker)));
    let own = worker.clone();
    let (dropped, has_dropped) = mpsc::channel();
    let call = worker.lock().unwrap().as_ref().unwrap().call(move |_| {
        let worker = own.lock().unwrap().take();
        dropped.send(catch_unwind(AssertUnwindSafe(|| drop(worker))).is_ok()).unwrap();
    });
    assert!(has_dropped.recv().unwrap());
    run(call).unwrap();
}
