//! `relay bench` on the real server: what it measures, and how it ends.

mod support;

use relay_bench::{Length, Pace};
use rustix::process::{Pid, Signal, kill_process};
use support::bench::{begin_bench, bench, report};
use support::server::{Server, relay};
use support::{Data, wait_until};

#[test]
fn a_closed_loop_counts_every_message_and_every_delivery() {
    let data = Data::new();
    let server = Server::start(&data, &["--log", "warn"]);
    let report = bench(&server, "--rooms 3 --members 4 --senders 2 --window 8 --messages 50 --seed 1");
    assert_eq!((report.publishes, report.deliveries, report.is_interrupted), (300, 1_200, false));
    assert_eq!((report.workload.pace, report.workload.length), (Pace::Window(8), Length::Messages(50)));
    let latency = report.latency_us;
    assert!(0.0 < latency.p50 && latency.p50 <= latency.p99 && latency.p99 <= latency.max, "{latency:?}");
    assert_eq!(server.number("relay_messages_committed_total"), 300);
    server.stop();
}

#[test]
fn an_open_loop_sends_what_is_due_in_its_time() {
    let data = Data::new();
    let server = Server::start(&data, &["--log", "warn"]);
    let report = bench(&server, "--rooms 2 --members 3 --senders 3 --rate 900 --seconds 1");
    assert_eq!((report.publishes, report.deliveries), (900, 2_700));
    // The last one is due 1.1 ms before the second is over.
    assert!(report.elapsed_seconds > 0.998, "{report:?}");
    server.stop();
}

#[test]
fn idle_members_stay_slow_ones_are_cut_and_nobody_else_notices() {
    let data = Data::new();
    let server = Server::start(&data, &["--log", "warn", "--heartbeat-interval", "1s"]);
    // 40 MB for each slow member.
    let report = bench(&server, "--rooms 2 --members 3 --messages 10000 --size 4000 --idle 15 --slow 5");
    assert_eq!((report.publishes, report.deliveries, report.slow_cut), (20_000, 60_000, Some(5)));
    assert_eq!(server.number("relay_connections_closed_total{reason=\"slow\"}"), 5);
    server.stop();
}

#[test]
fn slow_members_for_whom_little_is_queued_are_not_cut_and_miss_nothing() {
    let data = Data::new();
    let server = Server::start(&data, &["--log", "warn"]);
    let report = bench(&server, "--rooms 2 --members 3 --messages 10 --slow 3");
    assert_eq!((report.publishes, report.deliveries, report.slow_cut), (20, 60, Some(0)));
    server.stop();
}

#[test]
fn control_c_ends_it_with_what_was_measured_so_far() {
    let data = Data::new();
    let server = Server::start(&data, &["--log", "warn"]);
    let bench = begin_bench(&server, "--seconds 3600");
    // More than can be under way: some of it was seen.
    wait_until("messages", || server.number("relay_messages_committed_total") > 1_000);
    kill_process(Pid::from_child(&bench), Signal::INT).expect("it runs");
    let report = report(bench, 130);
    assert!(report.is_interrupted && report.publishes > 0 && report.slow_cut.is_none(), "{report:?}");
    assert!(report.latency_us.p50 > 0.0, "{report:?}");
    server.stop();
}

#[test]
fn people_are_told_in_words_and_what_is_wrong_with_the_way_out() {
    let data = Data::new();
    let server = Server::start(&data, &["--log", "warn"]);
    let address = server.address.to_string();
    let ended = relay(&data, &["bench", "--address", &address, "--messages", "100"]);
    assert_eq!((ended.code, ended.log.as_str()), (Some(0), ""));
    for text in ["made durable", "deliveries/s", "p99.9", "up to 16 messages under way", "each message once"] {
        assert!(ended.output.contains(text), "no `{text}` in {}", ended.output);
    }
    let somebody = server.join("m00003", "bench-0-7");
    let ended = relay(&data, &["bench", "--address", &address]);
    for text in ["member 3 of room 7", "ERR name in use", "--seed"] {
        assert!(ended.code == Some(1) && ended.log.contains(text), "no `{text}` in {}", ended.log);
    }
    somebody.quit();
    server.stop();
    let ended = relay(&data, &["bench", "--address", &address]);
    for text in [&address, "nobody listens", "relay --data", "--address"] {
        assert!(ended.code == Some(1) && ended.log.contains(text), "no `{text}` in {}", ended.log);
    }
}
