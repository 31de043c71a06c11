//! The parts of the runtime that several threads share, under every order in which these threads can run.
//!
//! The files under test are built into this program a second time, with loom's locks in place of the standard library's; the modules in
//! `loom/` replace what the tested files name. Loom also finds deadlocks, so "no wake is lost" is: the loop's thread always ends.

#![allow(dead_code, reason = "the tested files have more functions than the models need")]

#[path = "loom/doorbell.rs"]
mod doorbell;
#[path = "loom/engine.rs"]
mod engine;
mod outcome {
    pub(crate) type Flow = ();
}
#[path = "loom/primitives.rs"]
mod primitives;
#[path = "../src/reply.rs"]
mod reply;
#[path = "../src/thread/jobs.rs"]
mod jobs;

use std::panic::Location;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use loom::thread;

use crate::doorbell::Doorbell;
use crate::engine::inbox::{Inbox, Message};
use crate::engine::pool_jobs::{PoolJobs, PoolTicket};
use crate::engine::word::Word;
use crate::jobs::{Jobs, Ticket};
use crate::primitives::{Arc, Condvar, Mutex, lock, wait};
use crate::reply::{Receiver, reply};

/// Runs the model under every order with at most three switches away from a thread that could go on; without a bound the larger models take
/// hours, and hardly a race needs more.
fn check(model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

/// How many messages a loop takes at a time: fewer than the models send.
const MESSAGES_PER_ROUND: usize = 2;

/// A loop as the inbox sees it: it turns until it has received `expected` messages. How often it slept.
fn turn_until(inbox: &Inbox, expected: usize) -> usize {
    let (mut received, mut sleeps) = (Vec::new(), 0);
    inbox.wake_up();
    loop {
        inbox.drain(&mut received, MESSAGES_PER_ROUND);
        if received.len() == expected {
            return sleeps;
        }
        if inbox.fall_asleep() {
            sleeps += 1;
            inbox.doorbell().wait();
            inbox.wake_up();
        }
    }
}

fn push_from_threads(inbox: &Arc<Inbox>, threads: &[&'static [u64]]) -> Vec<thread::JoinHandle<()>> {
    let push_all = |numbers: &'static [u64]| {
        let inbox = Arc::clone(inbox);
        thread::spawn(move || numbers.iter().for_each(|&number| assert!(inbox.push(Message::Wake(Word(number))).is_ok())))
    };
    threads.iter().copied().map(push_all).collect()
}

fn new_inbox() -> Arc<Inbox> {
    Arc::new(Inbox::new(Doorbell::default()))
}

#[test]
fn no_push_is_lost_on_a_loop_that_falls_asleep_and_each_sleep_ends_by_one_ring_c010() {
    const PUSHES: [&[&[u64]]; 3] = [&[&[1, 2, 3]], &[&[1], &[2]], &[&[1, 2], &[3]]];
    for pushes in PUSHES {
        check(move || {
            let inbox = new_inbox();
            let threads = push_from_threads(&inbox, pushes);
            let expected = pushes.iter().map(|numbers| numbers.len()).sum();
            let sleeps = turn_until(&inbox, expected);
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            // The loop has not run before it turns: that is a sleep, too.
            assert!(inbox.doorbell().rings() <= sleeps + 1);
        });
    }
}

#[test]
fn no_push_is_lost_on_a_loop_that_is_left_and_entered_again() {
    check(|| {
        let inbox = new_inbox();
        let threads = push_from_threads(&inbox, &[&[1], &[2]]);
        let mut received = Vec::new();
        // The host turns it once, for reasons of its own, and from then on only when the bell rings.
        loop {
            inbox.wake_up();
            inbox.drain(&mut received, 1);
            let is_asleep = inbox.fall_asleep() || {
                inbox.drain(&mut received, 1);
                inbox.fall_asleep()
            };
            if received.len() == 2 {
                break;
            }
            if is_asleep {
                inbox.doorbell().wait();
            }
        }
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

#[test]
fn a_busy_loop_is_not_rung() {
    check(|| {
        let inbox = new_inbox();
        inbox.wake_up();
        let threads = push_from_threads(&inbox, &[&[1], &[2]]);
        let mut received = Vec::new();
        if inbox.has_mail() {
            inbox.drain(&mut received, MESSAGES_PER_ROUND);
            assert!(!received.is_empty(), "what has_mail saw can be drained");
        }
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(inbox.doorbell().rings(), 0);
        inbox.drain(&mut received, MESSAGES_PER_ROUND);
        assert_eq!(received.len(), 2);
    });
}

#[test]
fn a_push_that_races_with_close_is_run_given_back_or_refused_once_c177() {
    check(|| {
        let inbox = new_inbox();
        // What became of each message: pushed by the thread, dropped by the owner of its job.
        let drops = Arc::new(Mutex::new([0; 2]));
        let pusher = {
            let (inbox, drops) = (Arc::clone(&inbox), Arc::clone(&drops));
            thread::spawn(move || [0, 1].map(|number| inbox.push(CountsDrop::message(number, &drops)).is_ok()))
        };
        let mut received = Vec::new();
        inbox.wake_up();
        inbox.drain(&mut received, MESSAGES_PER_ROUND);
        received.extend(inbox.close());
        let accepted = pusher.join().unwrap();
        let refused = accepted.map(|accepted| usize::from(!accepted));
        assert_eq!(*lock(&drops), refused, "the sender drops what is refused, and nothing else is dropped");
        assert_eq!(received.len(), accepted.iter().filter(|&&accepted| accepted).count());
        drop(received);
        assert_eq!(*lock(&drops), [1, 1]);
    });
}

struct CountsDrop {
    number: usize,
    drops: Arc<Mutex<[usize; 2]>>,
}

impl CountsDrop {
    fn message(number: usize, drops: &Arc<Mutex<[usize; 2]>>) -> Message {
        let counts = CountsDrop { number, drops: Arc::clone(drops) };
        Message::Call { job: Box::new(move || drop(counts)), place: std::panic::Location::caller() }
    }
}

impl Drop for CountsDrop {
    fn drop(&mut self) {
        lock(&self.drops)[self.number] += 1;
    }
}

/// Polls as a thread that sleeps until its waker is called.
fn block_on<T>(poll: impl Fn(&Context<'_>) -> Poll<T>) -> T {
    let woken = std::sync::Arc::new(Woken::default());
    let waker = Waker::from(woken.clone());
    loop {
        if let Poll::Ready(value) = poll(&Context::from_waker(&waker)) {
            return value;
        }
        let mut is_woken = lock(&woken.is_woken);
        while !*is_woken {
            is_woken = wait(&woken.changed, is_woken);
        }
        *is_woken = false;
    }
}

fn receive<T>(receiver: &Receiver<T>) -> Option<T> {
    block_on(|cx| receiver.poll(cx))
}

#[derive(Default)]
struct Woken {
    is_woken: Mutex<bool>,
    changed: Condvar,
}

impl Wake for Woken {
    fn wake(self: std::sync::Arc<Self>) {
        *lock(&self.is_woken) = true;
        self.changed.notify_one();
    }
}

#[test]
fn an_answer_or_the_lack_of_one_always_reaches_the_receiver() {
    for sends in [true, false] {
        check(move || {
            let (sender, receiver) = reply();
            let thread = thread::spawn(move || {
                if sends {
                    assert_eq!(sender.send(7), Ok(()));
                }
            });
            assert_eq!(receive(&receiver), sends.then_some(7));
            thread.join().unwrap();
        });
    }
}

#[test]
fn an_answer_that_races_with_a_receiver_that_goes_is_owned_by_one_side() {
    check(|| {
        let (sender, receiver) = reply();
        let thread = thread::spawn(move || sender.send(7));
        let received = receiver.close();
        let came_back = thread.join().unwrap().err();
        assert_eq!([received, came_back].iter().flatten().count(), 1);
    });
}

#[test]
fn a_sender_learns_that_its_receiver_has_gone() {
    check(|| {
        let (sender, receiver) = reply::<usize>();
        let thread = thread::spawn(move || drop(receiver));
        block_on(|cx| sender.poll_gone(cx));
        thread.join().unwrap();
    });
}

#[test]
fn a_sender_that_is_asked_to_stop_learns_it_and_what_it_sends_then_is_received_c060() {
    check(|| {
        let (sender, receiver) = reply();
        let thread = thread::spawn(move || {
            let is_over = |poll: Poll<()>| if sender.is_stop_asked() { Poll::Ready(()) } else { poll };
            block_on(|cx| is_over(sender.poll_gone(cx)));
            assert_eq!(sender.send(7), Ok(()));
        });
        receiver.ask_stop();
        assert_eq!(receive(&receiver), Some(7));
        thread.join().unwrap();
    });
}

/// The life of a worker's thread, as `worker.rs` has it: the jobs that it has run.
fn work(jobs: &Jobs<Vec<usize>>) -> Vec<usize> {
    let mut done = Vec::new();
    while let Some(job) = jobs.take() {
        assert!(job(&mut done).is_none());
    }
    done
}

/// A job that writes its number down and answers with it.
fn submit(jobs: &Jobs<Vec<usize>>, number: usize) -> (Option<Ticket>, Receiver<usize>) {
    let (sender, answer) = reply();
    let job = move |done: &mut Vec<usize>| {
        done.push(number);
        // Nobody may be waiting any more.
        let _ = sender.send(number);
        None
    };
    (jobs.push(Box::new(job), usize::MAX).ok(), answer)
}

#[test]
fn a_worker_runs_all_jobs_in_order_answers_each_and_ends_when_closed() {
    check(|| {
        let jobs = Arc::new(Jobs::new());
        let worker = {
            let jobs = jobs.clone();
            thread::spawn(move || work(&jobs))
        };
        // The worker may be waiting when it comes: nothing else will wake it.
        let (_, first) = submit(&jobs, 1);
        assert_eq!(receive(&first), Some(1));
        let (_, second) = submit(&jobs, 2);
        let (_, third) = submit(&jobs, 3);
        jobs.close();
        assert_eq!((receive(&second), receive(&third)), (Some(2), Some(3)));
        assert_eq!(worker.join().unwrap(), [1, 2, 3]);
        assert!(submit(&jobs, 4).0.is_none());
    });
}

#[test]
fn a_job_is_either_withdrawn_or_run() {
    check(|| {
        let jobs = Arc::new(Jobs::new());
        let worker = {
            let jobs = jobs.clone();
            thread::spawn(move || work(&jobs))
        };
        let (ticket, answer) = submit(&jobs, 1);
        let (_, next) = submit(&jobs, 2);
        let withdrawn = jobs.withdraw(ticket.unwrap());
        jobs.close();
        let done = worker.join().unwrap();
        assert_eq!(done, if withdrawn.is_some() { vec![2] } else { vec![1, 2] });
        drop(withdrawn);
        assert_eq!((receive(&answer), receive(&next)), ((done.len() == 2).then_some(1), Some(2)));
    });
}

#[test]
fn no_caller_waits_for_ever_on_a_worker_that_ends_early() {
    check(|| {
        let jobs = Arc::new(Jobs::new());
        let worker = {
            let jobs = jobs.clone();
            thread::spawn(move || drop(jobs.end("a job panicked".into())))
        };
        let (ticket, answer) = submit(&jobs, 1);
        assert_eq!(receive(&answer), None);
        assert!(ticket.is_some() || jobs.reason().is_some());
        worker.join().unwrap();
    });
}

/// Submits a job that answers with its number, and starts a thread for it if the pool wants one, as `thread/pool.rs` does.
fn submit_to_pool(pool: &Arc<PoolJobs>, number: usize, threads: &mut Vec<thread::JoinHandle<()>>) -> (PoolTicket, Receiver<usize>) {
    let (sender, answer) = reply();
    // Nobody may be waiting any more.
    let job = Box::new(move || {
        let _ = sender.send(number);
    });
    let Ok(queued) = pool.push(job, Location::caller(), usize::MAX) else { panic!("the pool is open") };
    if queued.needs_thread {
        let pool = pool.clone();
        threads.push(thread::spawn(move || pool.work()));
    }
    (queued.ticket, answer)
}

const NEVER: Duration = Duration::MAX;

#[test]
fn a_pool_runs_every_job_and_its_threads_end_when_it_is_closed_c176() {
    for threads_max in [1, 2] {
        check(move || {
            let pool = Arc::new(PoolJobs::new(threads_max, NEVER));
            let mut threads = Vec::new();
            let (_, first) = submit_to_pool(&pool, 1, &mut threads);
            let (_, second) = submit_to_pool(&pool, 2, &mut threads);
            assert_eq!(receive(&first), Some(1));
            // A thread is free by now, or about to be.
            let (_, third) = submit_to_pool(&pool, 3, &mut threads);
            pool.close();
            assert!(pool.wait_ended(NEVER).is_ok());
            assert_eq!((receive(&second), receive(&third)), (Some(2), Some(3)));
            assert!((1..=threads_max).contains(&threads.len()));
            threads.into_iter().for_each(|thread| thread.join().unwrap());
        });
    }
}

#[test]
fn a_job_that_comes_while_the_last_thread_of_a_pool_goes_is_run() {
    check(|| {
        let pool = Arc::new(PoolJobs::new(1, Duration::ZERO));
        let mut threads = Vec::new();
        for number in [1, 2, 3] {
            let (_, answer) = submit_to_pool(&pool, number, &mut threads);
            assert_eq!(receive(&answer), Some(number));
        }
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!((pool.counts().threads, pool.survey()), (0, Vec::new()));
    });
}

#[test]
fn a_job_of_a_pool_is_either_withdrawn_or_run() {
    check(|| {
        let pool = Arc::new(PoolJobs::new(1, NEVER));
        let mut threads = Vec::new();
        let (ticket, answer) = submit_to_pool(&pool, 1, &mut threads);
        let withdrawn = pool.withdraw(ticket);
        let was_withdrawn = withdrawn.is_some();
        drop(withdrawn);
        assert_eq!(receive(&answer), (!was_withdrawn).then_some(1));
        pool.close();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

#[test]
fn closing_a_pool_without_patience_leaves_each_job_to_one_side_c176() {
    check(|| {
        let pool = Arc::new(PoolJobs::new(1, NEVER));
        let mut threads = Vec::new();
        let answers = [1, 2].map(|number| submit_to_pool(&pool, number, &mut threads).1);
        pool.close();
        let never_ran = match pool.wait_ended(Duration::ZERO) {
            Ok(()) => 0,
            Err(unfinished) => {
                assert!(unfinished.running <= 1);
                unfinished.never_ran.len()
            }
        };
        // The jobs that were left have been dropped, which tells those who wait.
        let answered = answers.iter().filter(|answer| receive(answer).is_some()).count();
        assert_eq!(answered + never_ran, 2);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

#[test]
fn whoever_waits_until_a_pool_is_quiet_is_woken() {
    check(|| {
        let pool = Arc::new(PoolJobs::new(1, NEVER));
        let mut threads = Vec::new();
        let (_, _first) = submit_to_pool(&pool, 1, &mut threads);
        let (ticket, _second) = submit_to_pool(&pool, 2, &mut threads);
        let withdrawer = {
            let pool = pool.clone();
            thread::spawn(move || drop(pool.withdraw(ticket)))
        };
        block_on(|cx| if pool.poll_quiet(cx.waker()) { Poll::Ready(()) } else { Poll::Pending });
        pool.close();
        withdrawer.join().unwrap();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
}
