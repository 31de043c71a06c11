//! How commits reach members, and what happens to those who do not read.

use relay_core::limits::{
    BATCH_MAX_BYTES, BEHIND_MAX_BYTES, LINE_LEN_MAX_BYTES, OUTBOX_MAX_BYTES, RELEASE_BYTES, RUN_OVERHEAD_BYTES, SECTION_OVERHEAD_BYTES,
};
use relay_core::{CloseReason, Hub, Nanos, Settings};

use crate::world::{READ_LEN_MAX, World};

fn settings() -> Settings {
    Settings { heartbeat_interval: None, ..Settings::default() }
}

/// A `MSG` of alice whose broadcast has this length, and that broadcast.
fn message(len_bytes: usize) -> (String, String) {
    let text = "x".repeat(len_bytes - "MESSAGE alice \n".len());
    (format!("MSG {text}\n"), format!("MESSAGE alice {text}\n"))
}

fn reason(world: &mut World, name: &str) -> Option<(CloseReason, bool)> {
    world.take_closed(name).map(|closed| (closed.reason, closed.reset))
}

#[test]
fn a_member_that_does_not_read_is_cut_above_256_kib_beyond_the_kernel_and_the_others_never_notice() {
    let mut world = World::new(settings());
    for name in ["alice", "bob", "carol"] {
        world.join(name, "blue");
    }
    let (request, broadcast) = message(1024);
    world.set_kernel_room("bob", 3000);
    let until_full = 3 + OUTBOX_MAX_BYTES / 1024;
    for number in 1..=until_full {
        world.send("alice", &request);
        world.commit();
        assert_eq!(world.received("carol"), broadcast);
        assert!(world.take_closed("bob").is_none(), "after {number} messages");
        if number == 3 {
            world.set_kernel_room("bob", 72);
        }
    }
    let id = world.client("bob").id;
    assert_eq!(world.hub.outbox_len_bytes(id), OUTBOX_MAX_BYTES);
    world.send("alice", "MSG x\n");
    world.commit();
    assert_eq!(reason(&mut world, "bob"), Some((CloseReason::Slow, true)));
    assert_eq!(world.received("carol"), "MESSAGE alice x\n");
    assert_eq!(world.received("bob"), broadcast.repeat(3));
    assert_eq!(world.hub.counters().closed_for(CloseReason::Slow), 1);
    // The name is free at once.
    world.connect("other", "127.0.0.1".parse().unwrap()).unwrap();
    world.send("other", "JOIN bob blue\n");
    assert_eq!(world.received("other"), "OK JOIN bob blue\n");
}

#[test]
fn the_limit_is_judged_after_the_first_attempt_to_send() {
    for (kernel_room, expected) in [(usize::MAX, None), (0, Some((CloseReason::Slow, true)))] {
        let mut world = World::new(settings());
        world.join("alice", "blue");
        world.join("bob", "blue");
        let (request, _) = message(4096);
        world.set_kernel_room("bob", kernel_room);
        let alice = world.client("alice").id;
        for _ in 0..=OUTBOX_MAX_BYTES / RELEASE_BYTES {
            world.hub.receive(world.now, alice, request.repeat(20).as_bytes());
            let batch = world.hub.take_batch().unwrap();
            world.hub.committed(world.now, batch);
            world.hub.sent(world.now, alice, usize::MAX);
        }
        let id = world.client("bob").id;
        assert_eq!(world.hub.outbox_len_bytes(id), 5 * 20 * 4096, "not judged before");
        world.turn();
        assert_eq!(reason(&mut world, "bob"), expected);
    }
}

#[test]
fn everything_that_is_queued_counts() {
    let mut world = World::new(Settings::default());
    world.join("alice", "blue");
    world.join("bob", "blue");
    world.set_kernel_room("bob", 0);
    let (request, _) = message(1024);
    for _ in 0..OUTBOX_MAX_BYTES / 1024 {
        world.send("alice", &request);
        world.commit();
    }
    assert_eq!(reason(&mut world, "bob"), None);
    world.pass(std::time::Duration::from_secs(10));
    assert_eq!(reason(&mut world, "bob"), Some((CloseReason::Slow, true)), "one PING too much");
}

#[test]
fn a_connection_is_tried_again_when_it_is_writable_or_has_taken_something() {
    let mut world = World::new(settings());
    world.join("alice", "blue");
    let alice = world.client("alice").id;
    world.hub.receive(world.now, alice, b"HISTORY\n");
    let mut is_offered = |step: fn(&mut Hub, Nanos, relay_core::ConnectionId)| {
        step(&mut world.hub, world.now, alice);
        world.hub.pop_touched().is_some_and(|touched| touched.send)
    };
    assert!(is_offered(|_, _, _| {}));
    assert!(!is_offered(|hub, _, id| hub.send_blocked(id)));
    assert!(!is_offered(|hub, now, id| hub.receive(now, id, b"HISTORY\n")));
    assert!(is_offered(|hub, _, id| hub.writable(id)));
    assert!(!is_offered(|hub, _, id| hub.send_blocked(id)));
    assert!(is_offered(|hub, now, id| hub.sent(now, id, 1)));
}

#[test]
fn error_lines_count_from_the_first_byte() {
    let mut world = World::new(settings());
    world.join("alice", "blue");
    world.join("bob", "blue");
    world.set_kernel_room("bob", 0);
    world.send("bob", "x\n".repeat(10_000));
    let id = world.client("bob").id;
    let errors = world.hub.outbox_len_bytes(id);
    assert!(errors > OUTBOX_MAX_BYTES / 2);
    let (request, _) = message(1024);
    let mut messages = 0;
    while world.take_closed("bob").is_none() {
        world.send("alice", &request);
        world.commit();
        messages += 1;
    }
    assert_eq!(messages, (OUTBOX_MAX_BYTES - errors) / 1024 + 1);
}

#[test]
fn a_commit_larger_than_the_limit_cuts_nobody_who_reads() {
    for kernel_room in [usize::MAX, 50_000, RELEASE_BYTES, 1] {
        let mut world = World::new(settings());
        world.join("alice", "blue");
        world.join("bob", "blue");
        let (request, broadcast) = message(4000);
        let count = BATCH_MAX_BYTES / 4000;
        world.set_kernel_room("bob", kernel_room);
        world.send("alice", request.repeat(count));
        world.commit();
        let mut received = world.received("bob");
        for _ in 0..if kernel_room == 1 { 10 } else { 100 } {
            world.set_kernel_room("bob", kernel_room);
            received += &world.received("bob");
        }
        assert_eq!(world.take_closed("bob").map(|closed| closed.reason), None);
        let expected = broadcast.repeat(count);
        assert!(expected.starts_with(&received));
        assert_eq!(received.len(), if kernel_room == 1 { 11 } else { expected.len() });
    }
}

#[test]
fn a_commit_is_released_64_kib_at_a_time_and_members_take_turns() {
    let now = Nanos(1);
    let mut hub = Hub::new(settings());
    let mut connect = |name: &str| {
        let id = hub.connect(now, "127.0.0.1:1".parse().unwrap()).unwrap();
        hub.receive(now, id, format!("JOIN {name} blue\n").as_bytes());
        hub.sent(now, id, format!("OK JOIN {name} blue\n").len());
        id
    };
    let (alice, bob) = (connect("alice"), connect("bob"));
    while hub.pop_touched().is_some() {}
    hub.receive(now, alice, message(4096).0.repeat(40).as_bytes());
    let batch = hub.take_batch().unwrap();
    hub.committed(now, batch);
    let mut writes = Vec::new();
    while let Some(touched) = hub.pop_touched() {
        let offered = hub.outbox(touched.id).map(<[u8]>::len).sum();
        hub.sent(now, touched.id, offered);
        writes.push((touched.id, offered));
    }
    let last = 40 * 4096 - 2 * RELEASE_BYTES;
    assert_eq!(writes, [RELEASE_BYTES, RELEASE_BYTES, last].map(|offered| [(alice, offered), (bob, offered)]).concat());
}

#[test]
fn a_member_more_than_16_mib_behind_is_cut_also_if_little_of_it_is_released() {
    // Bob is never written to, so that the other limit cannot be judged.
    let now = Nanos(1);
    let mut hub = Hub::new(settings());
    let ids = ["alice", "bob"].map(|name| {
        let id = hub.connect(now, "127.0.0.1:1".parse().unwrap()).unwrap();
        hub.receive(now, id, format!("JOIN {name} blue\n").as_bytes());
        hub.sent(now, id, format!("OK JOIN {name} blue\n").len());
        id
    });
    let mut commit = |requests: &str| {
        hub.receive(now, ids[0], requests.as_bytes());
        let batch = hub.take_batch().unwrap();
        hub.committed(now, batch);
        hub.sent(now, ids[0], usize::MAX);
        (hub.outbox_len_bytes(ids[1]), std::iter::from_fn(|| hub.pop_touched()).find_map(|touched| touched.closed))
    };
    let half_batch = message(4096).0.repeat(BATCH_MAX_BYTES / 2 / 4096);
    for number in 1..=BEHIND_MAX_BYTES / (BATCH_MAX_BYTES / 2) {
        let (len_bytes, closed) = commit(&half_batch);
        assert_eq!((len_bytes, closed.is_none()), (number * (BATCH_MAX_BYTES / 2), true));
    }
    let (_, closed) = commit("MSG x\n");
    assert_eq!(closed.map(|closed| (closed.reason, closed.reset)), Some((CloseReason::Slow, true)));
}

#[test]
fn batches_are_at_most_4_mib_and_keep_the_order() {
    let mut world = World::new(settings());
    world.join("alice", "blue");
    world.join("bob", "green");
    let (request, _) = message(4096);
    world.send("alice", request.repeat(1023));
    world.send("bob", "MSG first\n");
    // One byte more than there is room for, with what each costs beside its line.
    let overhead = 2 * SECTION_OVERHEAD_BYTES + "blue".len() + "green".len() + 3 * RUN_OVERHEAD_BYTES;
    let last = BATCH_MAX_BYTES + 1 - 1023 * 4096 - "MESSAGE bob first\n".len() - overhead;
    world.send("alice", message(last).0);
    world.send("bob", "MSG second\n");
    let mut sizes = Vec::new();
    while let Some(batch) = world.hub.take_batch() {
        let sections = batch.sections.iter().map(|section| (section.room.clone(), section.message_count, section.lines.len()));
        sizes.push(sections.collect::<Vec<_>>());
        assert!(world.hub.take_batch().is_none(), "one batch at a time");
        world.hub.committed(world.now, batch);
    }
    let (blue, green) = ("blue".to_owned(), "green".to_owned());
    let lines = ["MESSAGE bob first\n".len(), "MESSAGE bob second\n".len()];
    let first = vec![(blue.clone(), 1023, 1023 * 4096), (green.clone(), 1, lines[0])];
    assert_eq!(sizes, [first, vec![(blue, 1, last), (green, 1, lines[1])]]);
    world.turn();
    assert_eq!(world.received("bob"), "MESSAGE bob first\nMESSAGE bob second\n");
    assert_eq!(world.received("alice").len(), 1023 * 4096 + last);
}

#[test]
fn answers_inside_a_large_commit_do_not_make_it_count_more() {
    let mut world = World::new(settings());
    world.join("alice", "blue");
    world.set_kernel_room("alice", 0);
    let (request, broadcast) = message(4000);
    let block = request.repeat(15) + "x\n";
    world.send("alice", block.repeat(60));
    world.commit();
    assert!(world.take_closed("alice").is_none());
    world.set_kernel_room("alice", usize::MAX);
    let error = "ERR expected MSG <text>, HISTORY, or QUIT\n";
    assert_eq!(world.received("alice"), (broadcast.repeat(15) + error).repeat(60));
}

#[test]
fn thousands_of_pipelined_requests_have_the_same_answers_however_they_are_read() {
    let mut requests = String::new();
    for number in 0..5000 {
        requests += &format!("MSG {number}\n");
        match number % 500 {
            7 => requests += "HISTORY\r\n",
            77 => requests += "hello\n",
            177 => requests += &format!("MSG {}\n", "x".repeat(LINE_LEN_MAX_BYTES)),
            _ => {}
        }
    }
    requests += "QUIT\n";
    let play = |read_len_max| {
        let mut world = World::new(settings());
        world.read_len_max = read_len_max;
        world.join("alice", "blue");
        world.send("alice", &requests);
        world.commit_all();
        assert_eq!(reason(&mut world, "alice"), Some((CloseReason::Quit, false)));
        world.received("alice")
    };
    let whole = play(READ_LEN_MAX);
    assert_eq!(whole.lines().filter(|line| line.starts_with("HISTORY_BEGIN")).count(), 10);
    assert_eq!(whole.lines().filter(|line| *line == "ERR line too long").count(), 10);
    assert!(whole.ends_with("MESSAGE alice 4999\nOK QUIT\n"));
    for read_len_max in [1, 2, 3, 1000] {
        assert!(play(read_len_max) == whole, "reading {read_len_max} at a time");
    }
}

#[test]
fn deliveries_are_counted_for_each_member() {
    let mut world = World::new(settings());
    world.join("alice", "blue");
    world.join("bob", "blue");
    world.send("alice", "MSG one\nMSG two\n");
    world.commit();
    let counters = world.hub.counters();
    assert_eq!((counters.messages_accepted, counters.messages_committed, counters.deliveries, counters.commits), (2, 2, 4, 1));
}
