//! The rules by example: small programs with the trace that the text of the rules demands, written by hand.
//!
//! Both loops are checked. They keep the model honest; without them the model and the loop could be wrong together.

use super::program::Program;
use super::{compare, reference};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;

#[track_caller]
fn check(program: &str, expected: &[&str]) {
    let program = Program::parse(program);
    assert_eq!(reference::play(&program), expected, "\n{program}");
    assert_eq!(compare::difference(&program), None);
}

#[test]
fn o1_callbacks_and_tasks_share_one_fifo_queue() {
    check(
        "clock Manual, jobs_per_poll 64
         call_soon { }
         spawn { await yield }
         call_soon { }
         run_ready
         call_soon { }
         run_ready
         Close",
        &[
            "callback 0 at 0",
            "poll task 0 at 0",
            "callback 1 at 0",
            "run: ok",
            "poll task 0 at 0",
            "task 0: yielded",
            "drop task 0",
            "callback 2 at 0",
            "run: ok",
            "close",
            "closed",
        ],
    );
}

#[test]
fn o2_what_a_round_adds_waits_for_the_next() {
    check(
        "clock Manual, jobs_per_poll 64
         call_soon { call_soon { }; spawn { } }
         call_soon { }
         run_ready
         run_ready
         Close",
        &[
            "callback 0 at 0",
            "callback 1 at 0",
            "run: ok",
            "callback 2 at 0",
            "poll task 0 at 0",
            "drop task 0",
            "run: ok",
            "close",
            "closed",
        ],
    );
}

#[test]
fn o3_ready_then_io_then_other_threads_then_timers() {
    check(
        "clock Manual, jobs_per_poll 64
         add_reader
         call_later 1 { }
         remote call_soon { }
         write pipe
         call_soon { }
         advance 1
         run_ready
         Close",
        &["callback 2 at 1", "reader 0 at 1", "callback 1 at 1", "callback 0 at 1", "run: ok", "close", "closed"],
    );
}

#[test]
fn o4_a_handle_cancelled_in_the_same_round_is_dropped_at_once_and_skipped() {
    check(
        "clock Manual, jobs_per_poll 64
         call_later 0 { cancel handle[-1]; stop }
         call_later 0 { }
         call_soon { }
         cancel handle[-1]
         cancel handle[-1]
         call_soon { cancel handle[-1] }
         run_ready
         call_soon { }
         run_forever
         Close",
        &[
            "drop callback 2",
            "callback 3 at 0",
            "callback 0 at 0",
            "callback 1 at 0",
            "run: ok",
            "callback 4 at 0",
            "run_forever: stopped",
            "close",
            "closed",
        ],
    );
    check(
        "clock Manual, jobs_per_poll 64
         call_soon { cancel handle[-1] }
         call_soon { }
         run_ready
         Close",
        &["callback 0 at 0", "drop callback 1", "run: ok", "close", "closed"],
    );
}

#[test]
fn o5_wakes_before_a_poll_are_one_and_one_during_the_poll_is_one_more() {
    check(
        "clock Manual, jobs_per_poll 64
         promise
         spawn { await promise[-1] }
         run_ready
         wake task[-1]
         wake task[-1]
         run_ready
         run_ready
         spawn { wake task[-1]; wake task[-1]; call_soon { } }
         spawn { wake task[-1]; wake task[-1]; call_soon { }; await yield; await sleep 5 }
         run_ready
         wake task[-1]
         run_ready
         wake task[-1]
         wake task[-1]
         run_ready
         wake task[-1]
         wake task[-1]
         wake task[-2]
         run_ready
         run_ready
         Close",
        &[
            "poll task 0 at 0",
            "run: ok",
            "poll task 0 at 0",
            "run: ok",
            "run: ok",
            // The newest is task 2, which has no waker before its first poll.
            "poll task 1 at 0",
            "drop task 1",
            "poll task 2 at 0",
            "run: ok",
            "callback 0 at 0",
            "poll task 2 at 0",
            "task 2: yielded",
            "callback 1 at 0",
            "run: ok",
            "poll task 2 at 0",
            "run: ok",
            "poll task 2 at 0",
            "run: ok",
            "run: ok",
            "close",
            "drop task 2",
            "drop task 0",
            "closed",
        ],
    );
}

#[test]
fn o6_other_threads_work_joins_at_every_round_of_a_busy_loop() {
    check(
        "clock Manual, jobs_per_poll 64
         remote call_soon { remote call_soon { stop }; call_soon { call_soon { call_soon { } } } }
         run_forever
         Close",
        &["callback 0 at 0", "callback 2 at 0", "callback 1 at 0", "run_forever: stopped", "close", "drop callback 3", "closed"],
    );
}

#[test]
fn o7_timers_fire_by_deadline_then_by_creation_never_early() {
    check(
        "clock Manual, jobs_per_poll 64
         call_at 3 { }
         call_at 2 { }
         spawn { await sleep 3 }
         call_at 2 { }
         run_ready
         call_at 3 { }
         advance 1
         run_ready
         next_timeout
         advance 1
         next_timeout
         run_ready
         advance 1
         run_ready
         Close",
        &[
            "poll task 0 at 0",
            "run: ok",
            "run: ok",
            "next_timeout: Some(1)",
            "next_timeout: Some(0)",
            "callback 1 at 2",
            "callback 2 at 2",
            "run: ok",
            "callback 0 at 3",
            "poll task 0 at 3",
            "task 0: slept",
            "drop task 0",
            "callback 3 at 3",
            "run: ok",
            "close",
            "closed",
        ],
    );
}

#[test]
fn o7_a_cancelled_timer_never_wakes_the_loop() {
    check(
        "clock Jumping, jobs_per_poll 64
         call_later 1 { }
         cancel handle[-1]
         call_later 2 { }
         next_timeout
         run_once
         run_once
         Close",
        &["drop callback 0", "next_timeout: Some(2)", "callback 1 at 2", "run: ok", "run: ok", "close", "closed"],
    );
}

#[test]
fn o8_waiters_run_in_registration_order_and_keep_their_place() {
    check(
        "clock Manual, jobs_per_poll 64
         promise
         share promise[-1]
         spawn { await promise[-1] }
         spawn { await promise[-1] }
         run_ready
         wake task[-2]
         run_ready
         resolve promise[-1] Ok(7)
         call_soon { }
         run_ready
         Close",
        &[
            "poll task 0 at 0",
            "poll task 1 at 0",
            "run: ok",
            "poll task 0 at 0",
            "run: ok",
            "resolve promise 0, cancelled: false",
            "poll task 0 at 0",
            "task 0: promise 0 is ok 7",
            "drop task 0",
            "poll task 1 at 0",
            "task 1: promise 0 is ok 7",
            "drop task 1",
            "callback 0 at 0",
            "run: ok",
            "close",
            "closed",
        ],
    );
}

#[test]
fn o8_completion_callbacks_go_through_the_queue() {
    check(
        "clock Manual, jobs_per_poll 64
         promise
         on_done promise[-1] { }
         call_soon { drop resolver[-1]; call_soon { } }
         spawn { fail }
         on_done task[-1] { }
         run_ready
         run_ready
         Close",
        &[
            "callback 1 at 0",
            "poll task 0 at 0",
            "drop task 0",
            "run: ok",
            "callback 0 at 0 with promise 0 is abandoned",
            "callback 3 at 0",
            "callback 2 at 0 with task 0 is failed",
            "run: ok",
            "close",
            "closed",
        ],
    );
}

#[test]
fn o9_close_drops_the_inbox_then_tasks_newest_first_then_callbacks_then_reports() {
    check(
        "clock Manual, jobs_per_poll 64
         call_soon { panic }
         run_ready
         call_later 5 { }
         spawn { await sleep 5 }
         spawn { }
         call_soon { }
         remote call_soon { }
         Close",
        &[
            "callback 0 at 0",
            "run: ok",
            "close",
            "drop callback 3",
            "drop task 1",
            "drop task 0",
            "drop callback 2",
            "drop callback 1",
            "report: callback 0 panics",
            "closed",
        ],
    );
}

#[test]
fn o10_a_poll_gets_64_operations() {
    check(
        "clock Manual, jobs_per_poll 64
         spawn { await receive 65 }
         spawn { await receive 64 }
         run_ready
         run_ready
         Close",
        &[
            "poll task 0 at 0",
            "poll task 1 at 0",
            "task 1: received",
            "drop task 1",
            "run: ok",
            "poll task 0 at 0",
            "task 0: received",
            "drop task 0",
            "run: ok",
            "close",
            "closed",
        ],
    );
}

#[test]
fn a_cancelled_task_is_dropped_in_its_own_job_after_a_poll_if_it_was_woken_unless_it_produced_a_value() {
    check(
        "clock Manual, jobs_per_poll 64
         spawn { await sleep 5 }
         spawn { }
         cancel task[-1]
         call_soon { cancel task[-2]; call_soon { } }
         run_ready
         run_ready
         spawn { cancel task[-1] }
         run_ready
         spawn { await task[-2]; cancel task[-1]; await yield }
         run_ready
         run_ready
         Close",
        &[
            "poll task 0 at 0",
            "drop task 1",
            "callback 0 at 0",
            "run: ok",
            "drop task 0",
            "callback 1 at 0",
            "run: ok",
            "poll task 2 at 0",
            "drop task 2",
            "run: ok",
            "poll task 3 at 0",
            "task 3: task 2 is ok",
            "run: ok",
            "poll task 3 at 0",
            "task 3: yielded",
            "drop task 3",
            "run: ok",
            "close",
            "closed",
        ],
    );
}

#[test]
fn a_turn_ends_with_stop_after_the_running_round() {
    check(
        "clock Manual, jobs_per_poll 64
         stop
         call_soon { call_soon { } }
         run_forever
         call_soon { stop; call_soon { } }
         call_soon { }
         run_forever
         run_forever
         Close",
        &[
            "callback 0 at 0",
            "run_forever: stopped",
            "callback 1 at 0",
            "callback 2 at 0",
            "callback 3 at 0",
            "run_forever: stopped",
            "callback 4 at 0",
            "run_forever: deadlock",
            "close",
            "closed",
        ],
    );
}

#[test]
fn an_unread_failure_is_reported_once() {
    check(
        "clock Manual, jobs_per_poll 64
         spawn { panic }
         detach task[-1]
         spawn { fail }
         detach task[-1]
         spawn { panic }
         run_ready
         drop task[-1]
         run_ready
         Close",
        &[
            "poll task 0 at 0",
            "drop task 0",
            "poll task 1 at 0",
            "drop task 1",
            "poll task 2 at 0",
            "drop task 2",
            "run: ok",
            "report: task 0 panics",
            "report: task 1 fails",
            "report: task 2 panics",
            "run: ok",
            "close",
            "closed",
        ],
    );
}

#[test]
fn programs_print_as_they_parse() {
    let (programs, mut runner) = (Program::any(), TestRunner::deterministic());
    for _ in 0..200 {
        let text = programs.new_tree(&mut runner).expect("a program").current().to_string();
        assert_eq!(Program::parse(&text).to_string(), text);
    }
}
