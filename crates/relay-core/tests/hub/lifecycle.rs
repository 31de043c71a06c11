//! Who is let in, and how everything ends.

use std::time::Duration;

use relay_core::limits::LINE_LEN_MAX_BYTES;
use relay_core::{CloseReason, CommitError, Settings};

use crate::world::{World, check};

#[test]
fn above_the_limit_nobody_is_let_in_until_somebody_leaves() {
    check(
        "
        settings connections 2
        connect alice 127.0.0.1
        connect bob 10.0.0.1
        refused carol 10.0.0.2
        lose alice
        closed alice connection lost
        connect carol 10.0.0.2
        ",
    );
}

#[test]
fn an_address_has_its_own_limit_a_64_of_ipv6_is_one_address_and_loopback_has_none() {
    check(
        "
        settings per-address 2
        connect a 10.0.0.1
        connect b 10.0.0.1
        refused c 10.0.0.1
        # The same address, written in the other family.
        refused c ::ffff:10.0.0.1
        connect d 10.0.0.2
        connect e 2001:db8::1
        connect f 2001:db8::ffff:2
        refused g 2001:db8::3
        connect h 2001:db8:0:1::1
        # Loopback, in both families.
        connect x 127.0.0.1
        connect y 127.0.0.1
        connect z 127.0.0.1
        connect u ::1
        connect v ::ffff:127.0.0.1
        connect w ::ffff:127.0.0.1
        connect t ::ffff:127.0.0.1
        lose a
        closed a connection lost
        connect i 10.0.0.1
        refused j 10.0.0.1
        ",
    );
}

#[test]
fn refusals_are_counted() {
    let mut world = World::new(Settings { connections_max: 65, ..Settings::default() });
    let connect = |world: &mut World, number: usize, address: &str| world.connect(&number.to_string(), address.parse().unwrap()).is_ok();
    let accepted = (0..66).filter(|&number| connect(&mut world, number, "10.0.0.1")).count();
    assert_eq!(accepted, 64, "the default limit of an address");
    assert!(connect(&mut world, 100, "10.0.0.2"));
    assert!(!connect(&mut world, 101, "10.0.0.3"));
    let counters = world.hub.counters();
    assert_eq!((counters.connections, counters.refused_address_full, counters.refused_server_full), (65, 2, 1));
}

#[test]
fn lines_and_messages_that_are_refused_are_counted_and_so_are_pings() {
    let mut world = World::new(Settings::default());
    world.join("alice", "blue");
    world.send("alice", "x".repeat(LINE_LEN_MAX_BYTES + 1));
    world.send("alice", "x\nMSG one\n\0\nMSG two\n\0\n");
    world.refuse(CommitError::Full);
    world.pass(Duration::from_secs(10));
    let counters = world.hub.counters();
    let counted = [counters.lines_too_long, counters.lines_invalid, counters.messages_refused, counters.pings, counters.joins];
    assert_eq!((counted, counters.messages_accepted, counters.messages_committed), ([1, 2, 2, 1, 1], 2, 0));
}

#[test]
fn the_end_of_one_side_ends_the_connection_after_what_is_queued() {
    check(
        r"
        > alice JOIN alice blue
        < alice OK JOIN alice blue
        kernel alice 0
        > alice HISTORY
        end alice
        kernel alice all
        < alice HISTORY_BEGIN 0
        < alice HISTORY_END
        closed alice end of input
        # The last line has no end: it was never a request.
        >> bob JOIN bob blue\nMSG one\nMSG tw
        < bob OK JOIN bob blue
        end bob
        silent bob
        commit
        < bob MESSAGE bob one
        closed bob end of input
        > carol JOIN carol blue
        < carol OK JOIN carol blue
        > carol HISTORY
        < carol HISTORY_BEGIN 1
        < carol MESSAGE bob one
        < carol HISTORY_END
        ",
    );
}

#[test]
fn a_client_that_has_closed_its_side_is_answered_everything_and_shown_its_own_messages_first() {
    check(
        r"
        > bob JOIN bob blue
        < bob OK JOIN bob blue
        >> alice JOIN alice blue\nMSG one\n
        < alice OK JOIN alice blue
        take
        >> alice MSG two\nHISTORY\nhello\nMSG thr
        end alice
        # She stays a member until then: her name is in use, and she is shown what others say.
        > carol JOIN alice blue
        < carol ERR name in use
        commit
        < alice MESSAGE alice one
        < bob MESSAGE alice one
        > bob MSG between
        # It is for the disk to say how long that takes; she cannot answer a PING.
        +12s > bob PONG
        < bob PING
        silent alice
        commit
        < alice MESSAGE alice two
        < alice HISTORY_BEGIN 2
        < alice MESSAGE alice one
        < alice MESSAGE alice two
        < alice HISTORY_END
        < alice ERR expected MSG <text>, HISTORY, or QUIT
        closed alice end of input
        < bob MESSAGE alice two
        < bob MESSAGE bob between
        > carol JOIN alice blue
        < carol OK JOIN alice blue
        ",
    );
}

#[test]
fn a_client_that_has_closed_its_side_has_ten_seconds_for_its_answers_once_they_are_there() {
    check(
        r"
        > alice JOIN alice blue
        < alice OK JOIN alice blue
        kernel alice 0
        > alice MSG one
        end alice
        +60s
        commit
        +9999ms
        silent alice
        +1ms
        reset alice flush timeout
        finished
        ",
    );
}

#[test]
fn requests_that_are_kept_because_of_a_pause_are_answered_before_the_end() {
    let mut world = World::new(Settings::default());
    world.join("alice", "blue");
    let id = world.client("alice").id;
    world.send("alice", format!("MSG one\n{}MSG two\nHISTORY\nMSG thr", "x\n".repeat(100)));
    assert_ne!(world.hub.kept_len_bytes(id), 0);
    // Too early: it is said again when the shell has been told to read on.
    world.hub.end_of_input(world.now, id);
    world.end("alice");
    world.commit();
    world.commit();
    let errors = "ERR expected MSG <text>, HISTORY, or QUIT\n".repeat(100);
    let history = "HISTORY_BEGIN 2\nMESSAGE alice one\nMESSAGE alice two\nHISTORY_END\n";
    assert_eq!(world.received("alice"), format!("MESSAGE alice one\n{errors}MESSAGE alice two\n{history}"));
    assert_eq!(world.take_closed("alice").map(|closed| (closed.reason, closed.reset)), Some((CloseReason::EndOfInput, false)));
}

#[test]
fn shutdown_commits_shows_and_flushes_what_was_accepted() {
    check(
        "
        > alice JOIN alice blue
        < alice OK JOIN alice blue
        > bob JOIN bob blue
        < bob OK JOIN bob blue
        connect carol 127.0.0.1
        > alice MSG one
        take
        > alice MSG two
        shutdown
        refused dave 127.0.0.1
        > alice MSG three
        > bob HISTORY
        # Nobody is late for a server that does not read.
        +60s
        silent bob
        commit
        commit
        < alice MESSAGE alice one
        < alice MESSAGE alice two
        < bob MESSAGE alice one
        < bob MESSAGE alice two
        closed alice shutdown
        closed bob shutdown
        closed carol shutdown
        finished
        ",
    );
}

#[test]
fn shutdown_waits_ten_seconds_for_those_who_do_not_read() {
    check(
        "
        > alice JOIN alice blue
        < alice OK JOIN alice blue
        kernel alice 0
        > alice HISTORY
        shutdown
        +9999ms
        silent alice
        +1ms
        reset alice flush timeout
        finished
        ",
    );
    // Also for one that was paused, and not longer for one that had been closing already.
    check(
        "
        settings rate 1 1
        > alice JOIN alice blue
        < alice OK JOIN alice blue
        > bob JOIN bob blue
        < bob OK JOIN bob blue
        > carol JOIN carol blue
        < carol OK JOIN carol blue
        3 * > alice MSG hello
        commit
        < alice MESSAGE alice hello
        < bob MESSAGE alice hello
        < carol MESSAGE alice hello
        kernel alice 0
        kernel bob 0
        kernel carol 0
        > bob QUIT
        > carol QUIT
        +500ms
        > alice HISTORY
        +500ms
        commit
        shutdown
        +9s
        reset bob flush timeout
        reset carol flush timeout
        +999ms
        silent alice
        +1ms
        reset alice flush timeout
        finished
        ",
    );
}

#[test]
fn after_shutdown_nothing_is_read_and_nothing_kept_is_parsed() {
    let mut world = World::new(Settings::default());
    world.join("alice", "blue");
    let id = world.client("alice").id;
    world.send("alice", format!("MSG one\n{}MSG kept\n", "x\n".repeat(64)));
    world.join("bob", "green");
    world.shutdown();
    let bob = world.client("bob").id;
    assert!(!world.hub.may_read(world.now, bob));
    world.hub.receive(world.now, bob, b"MSG hello\n");
    world.commit();
    assert!(world.hub.is_finished());
    assert_eq!((world.hub.counters().messages_accepted, world.hub.kept_len_bytes(id)), (1, 0));
    assert_eq!(world.received("alice").lines().count(), 65);
}

#[test]
fn a_connection_that_breaks_while_it_is_closed_keeps_its_reason() {
    check(
        "
        > alice JOIN alice blue
        < alice OK JOIN alice blue
        kernel alice 0
        > alice QUIT
        lose alice
        reset alice quit
        ",
    );
}

#[test]
fn end_of_input_after_quit_says_nothing_new() {
    let mut world = World::new(Settings::default());
    world.join("alice", "blue");
    world.send("alice", "MSG one\nQUIT\n");
    let id = world.client("alice").id;
    world.hub.end_of_input(world.now, id);
    world.commit();
    assert_eq!(world.received("alice"), "MESSAGE alice one\nOK QUIT\n");
}

#[test]
fn a_room_stays_while_it_has_members_or_messages() {
    let mut world = World::new(Settings::default());
    world.join("alice", "blue");
    world.send("alice", "MSG one\n");
    world.lose("alice");
    assert_eq!(world.hub.room_count(), 1);
    world.refuse(CommitError::Full);
    assert_eq!(world.hub.room_count(), 0);
    world.join("bob", "blue");
    world.send("bob", "MSG one\n");
    world.commit();
    world.lose("bob");
    assert_eq!(world.hub.room_count(), 1);
}

#[test]
fn stale_ids_do_nothing() {
    let mut world = World::new(Settings::default());
    world.join("old", "blue");
    let old = world.client("old").id;
    world.lose("old");
    world.join("new", "blue");
    assert_eq!(world.client("new").id.index(), old.index(), "the place is used again");
    assert!(!world.hub.may_read(world.now, old));
    world.hub.receive(world.now, old, b"MSG hello\nQUIT\n");
    world.hub.read_dry(world.now, old);
    world.hub.sent(world.now, old, 100);
    world.hub.send_blocked(old);
    world.hub.writable(old);
    world.hub.end_of_input(world.now, old);
    world.hub.disconnect(old);
    world.turn();
    assert_eq!(world.hub.outbox(old).count(), 0);
    assert_eq!((world.hub.uncommitted_len_bytes(), world.hub.connection_count()), (0, 1));
    assert_eq!(world.hub.counters().closed_for(CloseReason::ConnectionLost), 1);
}

#[test]
fn connections_that_come_and_vanish_leave_nothing_behind() {
    let mut world = World::new(Settings::default());
    for number in 0..1000 {
        let name = format!("client{number}");
        world.join(&name, &format!("room{number}"));
        world.send(&name, ["", "MSG hel", "HISTORY\n"][number % 3]);
        world.received(&name);
        world.lose(&name);
        world.take_closed(&name);
    }
    assert_eq!((world.hub.connection_count(), world.hub.room_count(), world.hub.next_deadline()), (0, 0, None));
    assert!(world.hub.is_finished());
}

#[test]
fn a_batch_that_nobody_took_is_ignored() {
    let mut world = World::new(Settings::default());
    world.join("alice", "blue");
    world.send("alice", "MSG one\n");
    world.hub.committed(world.now, relay_core::Batch::default());
    world.turn();
    assert_eq!(world.received("alice"), "");
    world.commit();
    assert_eq!(world.received("alice"), "MESSAGE alice one\n");
}
