//! When the server stops reading a client, and what that does to its clock.

use std::time::Duration;

use relay_core::limits::{BEHIND_MAX_BYTES, LINE_LEN_MAX_BYTES, OUTBOX_PAUSE_BYTES, UNCOMMITTED_MAX_BYTES, WAITING_ANSWERS_MAX};
use relay_core::{CloseReason, CommitError, Hub, Nanos, Settings};

use crate::world::{World, check};

const COMMAND_ERROR: &str = "ERR expected MSG <text>, HISTORY, or QUIT\n";

/// A message of the greatest length, as a client sends it.
fn longest_message() -> String {
    format!("MSG {}\n", "x".repeat(LINE_LEN_MAX_BYTES - "MSG ".len()))
}

/// Accepts messages of this client until nobody is read from any more.
#[track_caller]
fn fill_with_uncommitted(world: &mut World, name: &str) {
    let burst = longest_message().repeat(15);
    while world.unread_len(name) == 0 {
        world.send(name, &burst);
    }
    let len_bytes = world.hub.uncommitted_len_bytes();
    assert!((UNCOMMITTED_MAX_BYTES..UNCOMMITTED_MAX_BYTES + LINE_LEN_MAX_BYTES + 200).contains(&len_bytes), "{len_bytes} bytes");
}

#[test]
fn with_64_answers_waiting_nothing_more_is_read_until_the_commit() {
    let mut world = World::new(Settings::default());
    world.join("alice", "blue");
    world.send("alice", "MSG one\n");
    for _ in 0..WAITING_ANSWERS_MAX {
        world.send("alice", "hello\n");
        assert_eq!(world.unread_len("alice"), 0);
    }
    world.send("alice", "PONG\nHISTORY\n");
    assert_eq!(world.unread_len("alice"), 13);
    assert_eq!(world.hub.counters().pauses_for_answers, 1);
    world.commit();
    assert_eq!(world.unread_len("alice"), 0);
    let history = "HISTORY_BEGIN 1\nMESSAGE alice one\nHISTORY_END\n";
    assert_eq!(world.received("alice"), format!("MESSAGE alice one\n{}{history}", COMMAND_ERROR.repeat(WAITING_ANSWERS_MAX)));
}

#[test]
fn what_was_read_together_with_the_reason_to_pause_is_kept_and_answered_in_order() {
    let scenario = r"
        > alice JOIN alice blue
        < alice OK JOIN alice blue
        >> alice MSG one\nLINES
        commit
        < alice MESSAGE alice one
        200 * < alice ERR expected MSG <text>, HISTORY, or QUIT
        commit
        < alice MESSAGE alice two
        < alice OK QUIT
        closed alice quit
        ";
    check(&scenario.replace("LINES", &format!(r"{}MSG two\nQUIT\n", r"x\n".repeat(200))));
}

#[test]
fn what_arrives_behind_the_line_that_must_wait_is_kept_behind_it() {
    let mut world = World::new(Settings::default());
    world.join("alice", "blue");
    let id = world.client("alice").id;
    world.send("alice", format!("MSG one\n{}QU", "x\n".repeat(WAITING_ANSWERS_MAX)));
    // The shell had read this before it could know.
    world.hub.receive(world.now, id, b"X\nMSG two\n");
    world.hub.receive(world.now, id, b"QUIT\n");
    assert_eq!(world.hub.kept_len_bytes(id), "QUX\nMSG two\nQUIT\n".len());
    assert_eq!(world.hub.counters().pauses_for_answers, 1);
    world.commit_all();
    let errors = COMMAND_ERROR.repeat(WAITING_ANSWERS_MAX + 1);
    assert_eq!(world.received("alice"), format!("MESSAGE alice one\n{errors}MESSAGE alice two\nOK QUIT\n"));
    assert_eq!(world.take_closed("alice").map(|closed| closed.reason), Some(CloseReason::Quit));
}

#[test]
fn waiting_histories_count_with_the_most_that_they_may_queue() {
    let mut world = World::new(Settings::default());
    world.join("alice", "blue");
    for messages in 1..4 {
        // Each may count 64 KiB, and half of the limit may be promised: with the third it is more.
        world.send("alice", "MSG one\nHISTORY\nHISTORY\nHISTORY\n");
        world.send("alice", "HISTORY\n");
        let id = world.client("alice").id;
        assert_eq!((world.hub.kept_len_bytes(id), world.unread_len("alice")), (0, "HISTORY\n".len()), "three were parsed");
        assert_eq!(world.hub.counters().pauses_for_answers, messages);
        world.commit();
        assert_eq!(world.unread_len("alice"), 0);
        let received = world.received("alice");
        let histories = received.matches(&format!("HISTORY_BEGIN {messages}\n")).count();
        assert_eq!((histories, received.lines().count()), (4, 1 + 4 * (2 + messages as usize)));
    }
}

#[test]
fn with_half_of_its_limit_queued_a_client_is_not_read_until_it_takes_some() {
    let mut world = World::new(Settings::default());
    world.join("alice", "blue");
    world.set_kernel_room("alice", 0);
    let requests = 20_000;
    world.send("alice", "x\n".repeat(requests));
    let id = world.client("alice").id;
    // However little it takes, and however much of its requests the server has read: only so many are answered at once.
    for pauses in 1..5 {
        let queued = world.hub.outbox_len_bytes(id);
        assert!((OUTBOX_PAUSE_BYTES..OUTBOX_PAUSE_BYTES + COMMAND_ERROR.len() + 1).contains(&queued), "{queued} bytes");
        assert_eq!(world.hub.counters().pauses_for_outbox, pauses);
        world.set_kernel_room("alice", 100);
    }
    world.send("alice", "x\n");
    assert_eq!(world.unread_len("alice"), 2);
    world.set_kernel_room("alice", usize::MAX);
    assert_eq!(world.received("alice"), COMMAND_ERROR.repeat(requests + 1));
}

#[test]
fn a_client_that_does_not_read_does_not_stop_its_clock() {
    let mut world = World::new(Settings::default());
    world.join("alice", "blue");
    world.set_kernel_room("alice", 0);
    world.send("alice", "x\n".repeat(20_000));
    world.send("alice", "PONG\n");
    world.pass(Duration::from_millis(14_999));
    assert!(world.take_closed("alice").is_none());
    world.pass(Duration::from_millis(1));
    assert_eq!(world.take_closed("alice").map(|closed| closed.reason), Some(CloseReason::PingTimeout));
}

#[test]
fn after_a_pause_of_the_server_a_client_that_does_not_read_has_the_time_that_was_left() {
    let mut world = World::new(Settings::default());
    world.join("alice", "blue");
    world.join("carol", "green");
    world.set_kernel_room("alice", 0);
    world.pass(Duration::from_secs(12));
    world.send("carol", "PONG\n");
    // Alice has had 2 of the 5 seconds for her PONG.
    fill_with_uncommitted(&mut world, "carol");
    world.send("alice", "x\n".repeat(20_000));
    world.pass(Duration::from_secs(60));
    world.commit_all();
    assert_eq!(world.hub.counters().pauses_for_outbox, 1);
    world.pass(Duration::from_millis(2_999));
    assert!(world.take_closed("alice").is_none());
    world.pass(Duration::from_millis(1));
    assert_eq!(world.take_closed("alice").map(|closed| closed.reason), Some(CloseReason::PingTimeout));
}

#[test]
fn a_client_that_reads_slowly_is_not_closed_for_a_pong_behind_its_unread_requests() {
    let mut world = World::new(Settings::default());
    world.join("alice", "blue");
    world.set_kernel_room("alice", 0);
    world.send("alice", "x\n".repeat(5_000));
    world.pass(Duration::from_secs(9));
    for _ in 0..20 {
        // Less than what makes the server read on.
        world.set_kernel_room("alice", 10);
        world.pass(Duration::from_secs(4));
    }
    assert!(world.take_closed("alice").is_none());
}

#[test]
fn above_16_mib_uncommitted_nobody_is_read_and_nothing_is_lost() {
    let mut world = World::new(Settings { heartbeat_interval: None, ..Settings::default() });
    let senders = ["a", "b", "c"];
    for name in senders {
        world.join(name, "blue");
    }
    world.send("a", "MSG x\n");
    world.take();
    fill_with_uncommitted(&mut world, "a");
    world.send("b", "HISTORY\nMSG from b\n");
    world.send("c", longest_message().repeat(3000));
    assert_eq!((world.unread_len("b"), world.unread_len("c")), (19, 3000 * (LINE_LEN_MAX_BYTES + 1)));
    assert_eq!(world.hub.counters().pauses_for_commits, 3);
    let accepted = world.hub.counters().messages_accepted;

    // Still more than the limit without the small batch that was in flight.
    world.commit();
    assert_eq!(world.unread_len("b"), 19);
    world.take();
    assert_eq!(world.unread_len("b"), 19, "also in flight it is uncommitted");
    world.commit();
    assert_eq!(world.unread_len("b"), 0, "those who waited go on in their order");
    assert_ne!(world.unread_len("c"), 0);
    world.commit_all();
    assert_eq!(world.unread_len("c"), 0);
    let committed = world.hub.counters().messages_committed;
    assert!(committed > accepted + 3000);
    let received = senders.map(|name| world.received(name));
    let messages = |text: &str| text.lines().filter(|line| line.starts_with("MESSAGE")).count() as u64;
    assert_eq!(messages(&received[0]), committed);
    assert_eq!(received[0], received[2]);
}

#[test]
fn a_client_is_not_cut_for_the_refusals_of_what_was_accepted_from_it() {
    let mut world = World::new(Settings { heartbeat_interval: None, ..Settings::default() });
    world.join("a", "blue");
    let mut sent = 0;
    while world.unread_len("a") == 0 {
        world.send("a", "MSG x\n".repeat(10_000));
        sent += 10_000;
    }
    let refuse_all = |world: &mut World| {
        while world.hub.uncommitted_len_bytes() > 0 {
            world.refuse(CommitError::Full);
        }
    };
    // Her kernel is full for a moment, just when everything that waited for the disk is refused.
    world.set_kernel_room("a", 0);
    refuse_all(&mut world);
    let id = world.client("a").id;
    assert!(world.hub.outbox_len_bytes(id) > BEHIND_MAX_BYTES);
    world.set_kernel_room("a", usize::MAX);
    refuse_all(&mut world);
    assert!(world.take_closed("a").is_none());
    assert!(world.received("a") == "ERR storage full\n".repeat(sent));
}

#[test]
fn refusals_that_a_client_does_not_read_make_its_requests_wait_and_do_not_stop_its_clock() {
    let mut world = World::new(Settings::default());
    world.join("alice", "blue");
    world.set_kernel_room("alice", 0);
    let refusal = "ERR storage full\n";
    for _ in 0..OUTBOX_PAUSE_BYTES / refusal.len() {
        world.send("alice", "MSG x\n");
        world.refuse(CommitError::Full);
        assert_eq!(world.unread_len("alice"), 0);
    }
    world.send("alice", "MSG x\n");
    world.refuse(CommitError::Full);
    world.send("alice", "MSG x\nPONG\n");
    assert_eq!((world.unread_len("alice"), world.hub.counters().pauses_for_outbox), (11, 1));
    world.pass(Duration::from_secs(15));
    assert_eq!(world.take_closed("alice").map(|closed| closed.reason), Some(CloseReason::PingTimeout));
}

#[test]
fn the_clock_stands_still_while_the_server_does_not_read() {
    let mut world = World::new(Settings::default());
    for name in ["alice", "bob", "carol"] {
        world.join(name, "blue");
    }
    world.pass(Duration::from_secs(10));
    for name in ["alice", "bob", "carol"] {
        assert_eq!(world.received(name), "PING\n");
    }
    fill_with_uncommitted(&mut world, "carol");
    // Alice answers, and the server does not read it. Bob does not answer.
    world.send("alice", "PONG\n");
    world.pass(Duration::from_secs(60));
    let closed = ["alice", "bob", "carol"].map(|name| world.take_closed(name).map(|closed| closed.reason));
    assert_eq!(closed, [None, Some(CloseReason::PingTimeout), None]);
    world.commit_all();
    world.received("alice");
    world.pass(Duration::from_millis(9_999));
    assert_eq!(world.received("alice"), "");
    world.pass(Duration::from_millis(1));
    assert_eq!(world.received("alice"), "PING\n");
    // Carol never answered; what was left of her five seconds began with the reading.
    assert_eq!(world.take_closed("carol").map(|closed| closed.reason), Some(CloseReason::PingTimeout));
}

#[test]
fn a_resumed_client_is_judged_only_when_it_was_read_dry() {
    let second = |number: u64| Nanos(number * 1_000_000_000);
    let mut hub = Hub::new(Settings::default());
    let id = hub.connect(second(0), "127.0.0.1:1".parse().unwrap()).unwrap();
    hub.receive(second(0), id, b"JOIN alice blue\n");
    hub.tick(second(10));
    hub.receive(second(12), id, format!("MSG one\n{}", "x\n".repeat(WAITING_ANSWERS_MAX)).as_bytes());
    assert!(!hub.may_read(second(12), id));
    // Nothing more had come so far, but since then nobody has looked.
    hub.read_dry(second(12), id);
    hub.tick(second(40));
    let batch = hub.take_batch().unwrap();
    hub.committed(second(40), batch);
    // Resumed, but the shell has not had the time to read.
    hub.tick(second(41));
    let touched = hub.pop_touched().unwrap();
    assert!(touched.read && touched.closed.is_none());
    assert!(hub.may_read(second(45), id));
    hub.read_dry(second(45), id);
    // The PING of second 10 had 3 s left at second 12.
    assert_eq!(hub.next_deadline(), Some(second(48)));
    hub.tick(second(48));
    assert_eq!(hub.pop_touched().unwrap().closed.unwrap().reason, CloseReason::PingTimeout);
}

#[test]
fn an_empty_bucket_pauses_reading_and_loses_nothing() {
    check(
        "
        settings rate 20 100
        > alice JOIN alice blue
        < alice OK JOIN alice blue
        103 * > alice MSG hello
        > alice HISTORY
        commit
        100 * < alice MESSAGE alice hello
        +49ms
        silent alice
        +1ms
        commit
        < alice MESSAGE alice hello
        +100ms
        commit
        2 * < alice MESSAGE alice hello
        # The bucket is empty again: what is not a message waits too.
        silent alice
        +50ms
        < alice HISTORY_BEGIN 50
        50 * < alice MESSAGE alice hello
        < alice HISTORY_END
        # A silence fills it.
        +9s
        100 * > alice MSG hello
        commit
        100 * < alice MESSAGE alice hello
        ",
    );
}

#[test]
fn a_client_that_is_paused_for_its_rate_is_not_closed_for_an_unread_pong() {
    check(
        "
        settings rate 1 1
        settings heartbeat 2s 1s
        > alice JOIN alice blue
        < alice OK JOIN alice blue
        10 * > alice MSG hello
        > alice PONG
        +10s
        commit
        10 * < alice MESSAGE alice hello
        ",
    );
}

#[test]
fn clients_from_elsewhere_have_a_rate_and_loopback_has_none_by_default() {
    let mut world = World::new(Settings::default());
    for (name, address, accepted) in [("far", "10.0.0.1", 100), ("near", "127.0.0.1", 300)] {
        world.connect(name, address.parse().unwrap()).unwrap();
        world.send(name, format!("JOIN {name} {name}\n"));
        let before = world.hub.counters().messages_accepted;
        world.send(name, "MSG hello\n".repeat(300));
        assert_eq!(world.hub.counters().messages_accepted - before, accepted, "{name}");
    }
    assert_eq!(world.hub.counters().pauses_for_rate, 1);
}

#[test]
fn a_client_that_the_shell_reads_on_later_is_not_judged_before() {
    let second = |seconds: u64| Nanos(seconds * 1_000_000_000);
    let mut hub = Hub::new(Settings::default());
    let id = hub.connect(second(0), "127.0.0.1:1".parse().unwrap()).unwrap();
    hub.receive(second(0), id, b"JOIN alice blue\n");
    hub.read_dry(second(0), id);
    hub.tick(second(10));
    // The PONG is behind more than one turn may read.
    hub.receive(second(14), id, b"hello\n");
    hub.read_later(second(14), id);
    hub.tick(second(15));
    hub.tick(second(60));
    hub.receive(second(60), id, b"PONG\n");
    hub.read_dry(second(60), id);
    assert_eq!((hub.next_deadline(), hub.counters().closed_for(CloseReason::PingTimeout)), (Some(second(70)), 0));
    // Without one, the rest of its time is counted from then on.
    hub.tick(second(70));
    hub.read_later(second(72), id);
    hub.read_dry(second(80), id);
    assert_eq!(hub.next_deadline(), Some(second(83)));
}
