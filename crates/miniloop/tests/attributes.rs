//! `#[miniloop::main]`, `#[miniloop::test]`, and what they stand for.

#![cfg(feature = "macros")]

mod support;

use std::error::Error;
use std::fmt;
use std::future::pending;
use std::num::ParseIntError;
use std::process::{ExitCode, Termination};
use std::time::Duration;

use miniloop::{LoopHandle, catch, now, sleep, spawn, testing, yield_now};
use support::panic_of;

#[miniloop::test]
async fn a_test_runs_in_virtual_time() {
    let start = now();
    sleep(Duration::from_secs(1_000_000)).await;
    assert_eq!(now() - start, Duration::from_secs(1_000_000));
}

#[miniloop::test]
async fn a_test_may_return_a_result() -> Result<(), ParseIntError> {
    assert_eq!("7".parse::<i32>()?, 7);
    Ok(())
}

#[miniloop::test]
#[should_panic(expected = "out of paper")]
async fn a_test_that_panics_fails_with_its_message() {
    panic!("out of paper");
}

/// The type of the result is known in the body, as in any function: the boxes become those of the type.
#[miniloop::test]
async fn a_result_may_need_its_type_to_be_made() -> Result<(), Box<dyn Error>> {
    if now().as_nanos() > 0 {
        return Err(Box::new(fmt::Error));
    }
    Ok(())
}

#[miniloop::test]
async fn a_test_may_return_whatever_ends_a_program() -> impl Termination {
    yield_now().await;
    ExitCode::SUCCESS
}

#[miniloop::test(system_clock)]
async fn a_test_can_have_the_systems_clock() {
    assert!(now().as_nanos() > 1_000_000_000);
}

#[track_caller]
fn check(test: impl Future<Output = ()>, expected: &[&str]) {
    let (message, blamed) = panic_of(|| testing::run(test));
    for text in expected {
        assert!(message.contains(text), "{text} in {message}");
    }
    assert!(blamed.ends_with("attributes.rs") && !message.contains("testing.rs"), "at {blamed}: {message}");
}

#[test]
fn a_failure_that_nobody_reads_fails_the_test() {
    check(
        async {
            spawn(async { Err::<(), _>("no such room") }).named("lost").detach();
            sleep(Duration::from_secs(1)).await;
        },
        &["lost", "no such room"],
    );
    check(
        async {
            LoopHandle::current().call_soon(|| panic!("in a callback"));
            sleep(Duration::from_secs(1)).await;
        },
        &["in a callback"],
    );
}

#[test]
fn a_failure_of_what_a_test_leaves_behind_fails_it() {
    check(
        async {
            spawn(async {
                if catch(pending::<()>()).await.is_err() {
                    panic!("while cleaning up");
                }
            })
            .detach();
            yield_now().await;
        },
        &["while cleaning up"],
    );
}

#[test]
fn a_deadlock_is_told_with_who_waits_for_what() {
    check(
        async {
            let (_resolver, promise) = miniloop::promise::<(), miniloop::Abandoned>();
            let stuck = spawn(promise).named("stuck");
            let _ = stuck.await;
        },
        &["stuck", "a promise", "attributes.rs", "miniloop::test(system_clock)"],
    );
}

mod program {
    /// What the attributes write means the crates, whatever is called like them here.
    mod miniloop {
        pub(super) use ::miniloop::{main, yield_now};
    }
    mod core {}

    #[miniloop::main]
    pub(super) async fn main() -> i32 {
        miniloop::yield_now().await;
        42
    }
}

#[test]
fn main_runs_on_a_loop_of_its_own() {
    assert_eq!(program::main(), 42);
}
