//! In an open loop messages are due at times of their own: a server that stops is seen in all that were due meanwhile.

mod support;

use std::time::Duration;

use miniloop::net::TcpListener;
use miniloop::sleep;
use relay_bench::{Length, Pace, RelayCodec, Report, Workload};
use support::{Peer, run, small};

#[track_caller]
fn check_us(what: f64, expected_us: f64) {
    assert!((what - expected_us).abs() <= expected_us / 1_000.0, "{what} us instead of {expected_us} us");
}

#[test]
fn a_stop_of_a_second_is_in_the_latency_of_every_message_that_was_due_meanwhile() {
    // Due at 0, 100 ms, .. 1.9 s; from 0.5 s on, the server does nothing for a second.
    let workload = Workload { pace: Pace::Rate(10), length: Length::Milliseconds(2_000), ..small() };
    let report = run(RelayCodec, workload, async |listener: TcpListener| {
        let (mut peer, _) = Peer::join(&listener).await;
        for number in 0..20 {
            let line = peer.line().await;
            assert_eq!(line, format!("MSG m00000 {number:010} j"));
            if number == 5 {
                sleep(Duration::from_secs(1)).await;
            }
            peer.says(&line.replace("MSG", "MESSAGE m00000")).await;
        }
        peer.hears("QUIT").await;
        peer.says("OK QUIT").await;
    });
    let Report { publishes, elapsed_seconds, latency_us, .. } = report.expect("the server is slow and right");
    assert_eq!((publishes, elapsed_seconds), (20, 1.9));
    // Ten of twenty took no time; those due at 0.5, 0.6, .. 1.4 s came at 1.5 s.
    assert_eq!(latency_us.p50, 0.0);
    check_us(latency_us.p90, 800_000.0);
    check_us(latency_us.max, 1_000_000.0);
}

#[test]
fn what_a_full_socket_keeps_from_being_sent_counts_from_when_it_was_due() {
    // 60 MB in a second, and a server that begins to read when all of it is due.
    let workload = Workload { pace: Pace::Rate(1_000), length: Length::Messages(1_000), text_bytes: 60_000, ..small() };
    let report = run(RelayCodec, workload, async |listener: TcpListener| {
        let (mut peer, _) = Peer::join(&listener).await;
        sleep(Duration::from_secs(2)).await;
        peer.echo("m00000").await;
    });
    let Report { publishes, elapsed_seconds, latency_us, .. } = report.expect("the server is slow and right");
    assert_eq!((publishes, elapsed_seconds), (1_000, 2.0));
    check_us(latency_us.p50, 1_501_000.0);
    check_us(latency_us.max, 2_000_000.0);
}

#[test]
fn senders_take_turns_and_a_rate_is_that_of_all_of_them() {
    // Two rooms with two senders each: one message every 250 ms, of each sender one a second.
    let workload = Workload { rooms: 2, members: 2, senders: 2, pace: Pace::Rate(4), length: Length::Milliseconds(3_000), ..small() };
    let report = run(RelayCodec, workload, async |listener: TcpListener| {
        let mut peers = Vec::new();
        for _ in 0..4 {
            peers.push(Peer::join(&listener).await.0);
        }
        let start = miniloop::now();
        for index in 0..12 {
            // Member 0 of both rooms, then member 1.
            let (room, member) = (index % 2, index / 2 % 2);
            let line = peers[room * 2 + member].line().await;
            assert_eq!(line, format!("MSG m0000{member} {:010} j", index / 4));
            assert_eq!(miniloop::now() - start, Duration::from_millis(250 * index as u64));
            for peer in &peers[room * 2..room * 2 + 2] {
                peer.says(&line.replace("MSG", &format!("MESSAGE m0000{member}"))).await;
            }
        }
        for peer in &mut peers {
            peer.hears("QUIT").await;
            peer.says("OK QUIT").await;
        }
    });
    assert_eq!(report.map(|report| (report.publishes, report.deliveries)), Ok((12, 24)));
}
