//! What ends the sleep of a loop besides its descriptors: other threads, signals, children, timers.

use std::sync::mpsc;
use std::time::Duration;

use miniloop::process::Command;
use miniloop::signal::{Signal, Signals};
use miniloop::{LoopHandle, sleep};
use rustix::process::{Signal as Named, getpid, kill_process};

use super::{event_loop, in_a_process_of_its_own, on_a_loop};
use crate::support;

#[test]
fn every_message_of_another_thread_ends_a_sleep() {
    let mut event_loop = event_loop();
    let remote = event_loop.handle().remote();
    let mut answers = Vec::new();
    std::thread::scope(|scope| {
        let thread = scope.spawn(move || {
            let (answer, answered) = mpsc::channel();
            for number in 0..200 {
                let answer = answer.clone();
                // Nothing is sent until this was answered, so the loop has nothing to do and sleeps.
                remote.call_soon(move || answer.send(number).unwrap()).unwrap();
                answers.push(answered.recv().unwrap());
            }
            remote.stop().unwrap();
            answers
        });
        event_loop.run_forever().unwrap();
        assert!(thread.join().unwrap().into_iter().eq(0..200));
    });
}

#[test]
fn a_message_that_comes_between_two_runs_is_not_lost() {
    let mut event_loop = event_loop();
    for _ in 0..3 {
        let remote = event_loop.handle().remote();
        support::on_another_thread(|| remote.stop().unwrap());
        event_loop.run_forever().unwrap();
    }
}

#[test]
fn every_signal_ends_a_sleep() {
    in_a_process_of_its_own(module_path!(), "every_signal_ends_a_sleep", || {
        on_a_loop(async |handle| {
            let mut signals = Signals::new([Signal::USER1]).unwrap();
            for _ in 0..3 {
                handle.call_later(Duration::from_millis(1), || kill_process(getpid(), Named::USR1));
                assert_eq!(signals.recv().await.unwrap(), Signal::USER1);
            }
        });
    });
}

#[test]
fn the_end_of_a_child_ends_a_sleep() {
    on_a_loop(async |_| {
        for _ in 0..3 {
            assert!(Command::new("true").status().await.unwrap().success());
        }
    });
}

#[test]
fn a_timer_below_a_millisecond_ends_a_sleep_and_never_early() {
    on_a_loop(async |handle: LoopHandle| {
        for micros in [0, 1, 10, 900, 1_100] {
            let (before, delay) = (handle.now(), Duration::from_micros(micros));
            sleep(delay).await;
            assert!(handle.now() - before >= delay);
        }
    });
}
