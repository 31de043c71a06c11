//! The engine finds fault with servers that deserve it, and with no other.

mod support;

use miniloop::net::TcpListener;
use relay_bench::{Codec, Event, Length, Member, Pace, RelayCodec, Workload};
use support::{Peer, run, small};

/// One member joins and sends two of its three messages; then the server goes on.
#[track_caller]
fn check(server: impl AsyncFnOnce(Peer) + 'static, expected: Result<(), &str>) {
    let report = run(RelayCodec, small(), async move |listener: TcpListener| {
        let (mut peer, join) = Peer::join(&listener).await;
        assert_eq!(join, "JOIN m00000 bench-9-0");
        peer.hears("MSG m00000 0000000000 j").await;
        peer.hears("MSG m00000 0000000001 j").await;
        server(peer).await;
    });
    match (report, expected) {
        (Ok(report), Ok(())) => assert_eq!((report.publishes, report.deliveries, report.is_interrupted), (3, 3, false)),
        (Err(error), Err(expected)) => assert!(error.contains(expected), "{error}"),
        (report, expected) => panic!("{report:?} instead of {expected:?}"),
    }
}

#[test]
fn a_server_that_does_what_it_should_passes() {
    check(
        async |mut peer| {
            peer.says("MESSAGE m00000 m00000 0000000000 j").await;
            peer.hears("MSG m00000 0000000002 j").await;
            peer.says("PING").await;
            peer.hears("PONG").await;
            peer.says("MESSAGE m00000 m00000 0000000001 j\nMESSAGE m00000 m00000 0000000002 j").await;
            peer.hears("QUIT").await;
            peer.says("OK QUIT").await;
        },
        Ok(()),
    );
}

#[test]
fn what_a_server_does_wrong_is_named() {
    for (lines, expected) in [
        ("MESSAGE m00000 m00000 0000000000 j\nMESSAGE m00000 m00000 0000000000 j", "came twice"),
        ("MESSAGE m00000 m00000 0000000001 j", "came early"),
        ("MESSAGE m00001 m00001 0000000000 j", "member 1, who sends none"),
        ("MESSAGE m00001 m00000 0000000000 j", "the server says `MESSAGE m00001 m00000 0000000000 j`"),
        ("MESSAGE m00000 m00000 0000000000 k", "the server says `MESSAGE m00000 m00000 0000000000 k`"),
        ("MESSAGE m00000 m00000 0000000000 j", "the server has closed the connection"),
        ("ERR storage full", "the server says `ERR storage full`"),
        ("OK QUIT", "the server says `OK QUIT`"),
    ] {
        check(async |peer| peer.says(lines).await, Err(expected));
        check(async |peer| peer.says(lines).await, Err("member 0 of room 0"));
    }
    let all = "MESSAGE m00000 m00000 0000000000 j\nMESSAGE m00000 m00000 0000000001 j\nMESSAGE m00000 m00000 0000000002 j";
    check(async move |peer| peer.says(all).await, Err("a message is confirmed that was not sent"));
}

#[test]
fn a_server_that_says_nothing_for_half_a_minute_is_given_up() {
    let expected = "nothing has come from the server for 30 s; of 1 members 1 have joined, 0 have seen everything, 0 have left";
    check(async |mut peer| peer.hears("never").await, Err(expected));
}

#[test]
fn a_line_without_an_end_is_refused() {
    check(async |peer| peer.says(&"x".repeat(200_000)).await, Err("without an end"));
}

#[test]
fn members_of_a_room_that_see_two_orders_are_named() {
    for (lines, expected) in [(["0", "1"], None), (["1", "0"], Some("another order than member 0"))] {
        let workload = Workload { members: 2, senders: 2, length: Length::Messages(1), ..small() };
        let report = run(RelayCodec, workload, async move |listener: TcpListener| {
            let (mut first, _) = Peer::join(&listener).await;
            let (mut second, _) = Peer::join(&listener).await;
            for peer in [&mut first, &mut second] {
                assert!(peer.line().await.starts_with("MSG "));
            }
            for (peer, order) in [(&mut first, ["0", "1"]), (&mut second, lines)] {
                for sender in order {
                    peer.says(&format!("MESSAGE m0000{sender} m0000{sender} 0000000000 j")).await;
                }
            }
            for peer in [&mut first, &mut second] {
                peer.hears("QUIT").await;
                peer.says("OK QUIT").await;
            }
        });
        match expected {
            None => assert_eq!(report.map(|report| (report.publishes, report.deliveries)), Ok((2, 4))),
            Some(expected) => assert!(report.is_err_and(|error| error.contains(expected))),
        }
    }
}

#[test]
fn idle_members_sit_in_rooms_of_ten_answer_pings_and_leave_last() {
    let workload = Workload { idle: 11, length: Length::Messages(1), ..small() };
    let report = run(RelayCodec, workload, async |listener: TcpListener| {
        let mut idle = Vec::new();
        for number in 0..11 {
            let (peer, join) = Peer::join(&listener).await;
            assert_eq!(join, format!("JOIN m0000{} bench-9-idle-{}", number % 10, number / 10));
            idle.push(peer);
        }
        let (mut busy, _) = Peer::join(&listener).await;
        for peer in &mut idle {
            peer.says("PING").await;
            peer.hears("PONG").await;
        }
        busy.echo("m00000").await;
        for peer in &mut idle {
            peer.hears("QUIT").await;
            peer.says("OK QUIT").await;
        }
    });
    assert_eq!(report.map(|report| (report.publishes, report.deliveries)), Ok((1, 1)));
}

#[test]
fn slow_members_read_nothing_until_the_others_have_everything() {
    let report = run(RelayCodec, Workload { slow: 1, length: Length::Messages(1), ..small() }, async |listener: TcpListener| {
        let (mut slow, _) = Peer::join(&listener).await;
        let (mut busy, _) = Peer::join(&listener).await;
        slow.says("PING\nMESSAGE m00000 m00000 0000000000 j").await;
        slow.hears_nothing().await;
        busy.echo("m00000").await;
        slow.hears("PONG").await;
        slow.hears("QUIT").await;
        slow.says("OK QUIT").await;
    });
    assert_eq!(report.map(|report| (report.slow_cut, report.deliveries)), Ok((Some(0), 1)));
}

#[test]
fn slow_members_may_be_cut_and_are_counted_and_the_others_must_have_everything() {
    let last = "MESSAGE m00000 m00000 0000000001 j";
    for (after_the_first, expected) in [(None, Ok(Some(1))), (Some(last), Ok(Some(0))), (Some("MESSAGE m00000"), Err("slow member 1"))] {
        let workload = Workload { slow: 1, length: Length::Messages(2), ..small() };
        let report = run(RelayCodec, workload, async move |listener: TcpListener| {
            let (mut slow, join) = Peer::join(&listener).await;
            assert_eq!(join, "JOIN m00001 bench-9-0");
            let (mut busy, _) = Peer::join(&listener).await;
            slow.says("MESSAGE m00000 m00000 0000000000 j").await;
            let Some(line) = after_the_first else {
                drop(slow);
                return busy.echo("m00000").await;
            };
            slow.says(line).await;
            busy.echo("m00000").await;
            slow.hears("QUIT").await;
            slow.says("OK QUIT").await;
        });
        match expected {
            Ok(cut) => assert_eq!(report.map(|report| (report.slow_cut, report.deliveries)), Ok((cut, 2))),
            Err(expected) => assert!(report.is_err_and(|error| error.contains(expected))),
        }
    }
}

/// A server that takes messages, says so, and passes none on. One leaves it by closing.
struct Acknowledging;

impl Codec for Acknowledging {
    const IS_FANNED_OUT: bool = false;

    fn hello(&self, _member: &Member<'_>, _out: &mut Vec<u8>) {}

    fn publish(&self, member: &Member<'_>, text: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(&[b"ADD ", member.room.as_bytes(), b" ", text, b"\n"].concat());
    }

    fn cut<'a>(&self, bytes: &'a [u8]) -> Option<(Event<'a>, usize)> {
        let len = bytes.iter().position(|byte| *byte == b'\n')?;
        let event = match &bytes[..len] {
            b"+" => Event::Acknowledged,
            b"?" => Event::Answer(b"!\n"),
            line => Event::Error(line),
        };
        Some((event, len + 1))
    }

    fn goodbye(&self, _out: &mut Vec<u8>) {}
}

#[test]
fn messages_that_nobody_gets_are_confirmed_by_acknowledgements() {
    for (answers, expected) in [(3, Ok((3, 0))), (2, Err("has closed the connection"))] {
        let workload = Workload { members: 2, ..small() };
        let report = run(Acknowledging, workload, async move |listener: TcpListener| {
            let mut sender = Peer::accept(&listener).await;
            let _listener = Peer::accept(&listener).await;
            for number in 0..answers {
                sender.hears(&format!("ADD bench-9-0 m00000 000000000{number} j")).await;
                // In the end it is pinged, which does not keep it from leaving.
                sender.says(if number == 2 { "?\n+" } else { "+" }).await;
            }
        });
        match (report, expected) {
            (Ok(report), Ok(expected)) => assert_eq!((report.publishes, report.deliveries), expected),
            (Err(error), Err(expected)) => assert!(error.contains(expected), "{error}"),
            (report, expected) => panic!("{report:?} instead of {expected:?}"),
        }
    }
    let slow = run(Acknowledging, Workload { slow: 1, ..small() }, async |_| ());
    assert!(slow.is_err_and(|error| error.contains("slow members need messages")));
}

#[test]
fn a_window_that_is_more_than_one_write_is_filled_all_the_same() {
    // 600 KB, all of which the server wants before it answers, again and again: soon the kernel takes all of a write at once.
    let workload = Workload { pace: Pace::Window(10), length: Length::Messages(300), text_bytes: 60_000, ..small() };
    let report = run(Acknowledging, workload, async |listener: TcpListener| {
        let mut sender = Peer::accept(&listener).await;
        for _ in 0..30 {
            for _ in 0..10 {
                assert!(sender.line().await.starts_with("ADD "));
            }
            sender.says("+\n+\n+\n+\n+\n+\n+\n+\n+\n+").await;
        }
    });
    assert_eq!(report.map(|report| report.publishes), Ok(300));
}

#[test]
fn a_time_that_is_up_ends_the_sending_and_what_was_sent_must_come() {
    let workload = Workload { pace: Pace::Window(1), length: Length::Milliseconds(2_000), ..small() };
    let report = run(RelayCodec, workload, async |listener: TcpListener| {
        let (mut peer, _) = Peer::join(&listener).await;
        for number in 0..5 {
            peer.hears(&format!("MSG m00000 000000000{number} j")).await;
            miniloop::sleep(std::time::Duration::from_millis(450)).await;
            peer.says(&format!("MESSAGE m00000 m00000 000000000{number} j")).await;
        }
        peer.hears("QUIT").await;
        peer.says("OK QUIT").await;
    });
    let report = report.expect("the server does what it should");
    assert_eq!((report.publishes, report.elapsed_seconds, report.server_cpu_seconds), (5, 2.25, Some(1.125)));
    assert!((report.latency_us.max - 450_000.0).abs() < 450.0, "{report:?}");
}
