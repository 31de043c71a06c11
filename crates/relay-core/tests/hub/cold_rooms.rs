//! Rooms that are not in memory: loaded when they are joined, waited for by `HISTORY` only, forgotten once the archive has them.

use std::time::Duration;

use relay_core::limits::{FORGOTTEN_AT_ONCE_MAX_ROOMS, HISTORY_LEN_MAX_MESSAGES};
use relay_core::{CloseReason, CommitError, ConnectionId, Hub, Nanos, Settings};

use crate::world::{World, check};

const COMMAND_ERROR: &str = "ERR expected MSG <text>, HISTORY, or QUIT\n";

/// A world whose archive answers only when it is told to.
fn held() -> World {
    let mut world = World::new(Settings::default());
    world.holds_loads = true;
    world
}

/// What is asked for and not answered: the rooms, each with the number of the last commit that is wanted.
fn asked(world: &World) -> Vec<(&str, u64)> {
    world.loads.iter().map(|load| (load.name.as_str(), load.commits)).collect()
}

#[test]
fn only_history_waits_for_the_archive_and_its_answer_comes_in_its_place() {
    check(
        r"
        stored blue MESSAGE old 1
        hold
        > alice JOIN alice blue
        < alice OK JOIN alice blue
        >> alice MSG one\nhello\nHISTORY\nMSG two\nhello\n
        > bob JOIN bob blue
        < bob OK JOIN bob blue
        > bob MSG three
        commit
        < bob MESSAGE alice one
        < bob MESSAGE bob three
        < alice MESSAGE alice one
        < alice ERR expected MSG <text>, HISTORY, or QUIT
        < alice MESSAGE bob three
        # A message is shown while her history is on its way: it will hold that, too.
        > bob MSG four
        commit
        < bob MESSAGE bob four
        < alice MESSAGE bob four
        silent alice
        load blue
        < alice HISTORY_BEGIN 4
        < alice MESSAGE old 1
        < alice MESSAGE alice one
        < alice MESSAGE bob three
        < alice MESSAGE bob four
        < alice HISTORY_END
        # What she sent behind it was not looked at before.
        silent alice
        commit
        < alice MESSAGE alice two
        < alice ERR expected MSG <text>, HISTORY, or QUIT
        < bob MESSAGE alice two
        # It is loaded now.
        > bob HISTORY
        < bob HISTORY_BEGIN 5
        < bob MESSAGE old 1
        < bob MESSAGE alice one
        < bob MESSAGE bob three
        < bob MESSAGE bob four
        < bob MESSAGE alice two
        < bob HISTORY_END
        ",
    );
}

#[test]
fn a_history_behind_own_messages_waits_for_the_archive_and_for_their_commit() {
    for (result, answer, count) in [("commit", "MESSAGE alice one", 2), ("refuse full", "ERR storage full", 1)] {
        for load_is_first in [true, false] {
            let (first, second) = if load_is_first { ("load blue", result) } else { (result, "load blue") };
            let between = if load_is_first { "" } else { &format!("< alice {answer}") };
            let behind = if load_is_first { &format!("< alice {answer}") } else { "" };
            let own = if count == 2 { "< alice MESSAGE alice one" } else { "" };
            check(&format!(
                r"
        stored blue MESSAGE old 1
        hold
        > alice JOIN alice blue
        < alice OK JOIN alice blue
        >> alice MSG one\nHISTORY\n
        take
        {first}
        {between}
        silent alice
        {second}
        {behind}
        < alice HISTORY_BEGIN {count}
        < alice MESSAGE old 1
        {own}
        < alice HISTORY_END
        "
            ));
        }
    }
}

#[test]
fn a_room_is_asked_for_once_up_to_the_commits_before_it_was_made() {
    let mut world = held();
    world.join("alice", "blue");
    assert_eq!(asked(&world), [("blue", 0)]);
    world.send("alice", "MSG one\n");
    world.take();
    world.join("carol", "green");
    assert_eq!(asked(&world), [("blue", 0), ("green", 0)], "a batch on its way is not committed");
    world.commit();
    world.join("bob", "blue");
    world.send("bob", "HISTORY\n");
    world.send("alice", "HISTORY\n");
    world.join("dave", "red");
    assert_eq!(asked(&world), [("blue", 0), ("green", 0), ("red", 1)]);
    world.answer_load("blue", true);
    world.send("bob", "HISTORY\n");
    assert_eq!(asked(&world), [("green", 0), ("red", 1)]);
    let history = "HISTORY_BEGIN 1\nMESSAGE alice one\nHISTORY_END\n";
    assert_eq!(world.received("bob"), history.repeat(2));
    assert_eq!(world.received("alice"), format!("MESSAGE alice one\n{history}"));
    let counters = world.hub.counters();
    assert_eq!((counters.pauses_for_history, counters.rooms_loaded, counters.loads_failed), (2, 1, 0));
}

#[test]
fn without_the_archive_whoever_waits_is_told_and_the_next_history_asks_for_the_same_again() {
    let mut world = held();
    world.store("blue", "MESSAGE old 1");
    for name in ["alice", "bob", "carol"] {
        world.join(name, "blue");
    }
    world.send("alice", "MSG one\nHISTORY\nhello\n");
    world.send("bob", "HISTORY\n");
    world.answer_load("blue", false);
    let unavailable = "ERR history unavailable\n";
    assert_eq!([world.received("bob"), world.received("alice")], [unavailable, ""]);
    world.commit();
    assert_eq!(world.received("alice"), format!("MESSAGE alice one\n{unavailable}{COMMAND_ERROR}"));
    assert_eq!(world.received("bob"), "MESSAGE alice one\n");
    world.join("dave", "blue");
    assert_eq!(asked(&world), [], "nobody wants to know");

    world.send("bob", "HISTORY\nHISTORY\n");
    world.send("alice", "HISTORY\n");
    assert_eq!(asked(&world), [("blue", 0)], "what was committed since is in memory");
    world.answer_load("blue", false);
    assert_eq!([world.received("alice"), world.received("bob")], [unavailable; 2]);
    assert_eq!(asked(&world), [("blue", 0)], "bob has asked twice");
    world.send("alice", "MSG two\n");
    world.commit();
    world.answer_load("blue", true);
    let two = "MESSAGE alice two\n";
    let history = format!("HISTORY_BEGIN 3\nMESSAGE old 1\nMESSAGE alice one\n{two}HISTORY_END\n");
    assert_eq!(world.received("bob"), format!("{two}{history}"));
    assert_eq!(world.received("alice"), two);
    let counters = world.hub.counters();
    assert_eq!((counters.pauses_for_history, counters.rooms_loaded, counters.loads_failed), (5, 1, 2));
}

#[test]
fn the_last_fifty_of_stored_and_new_messages_are_the_history() {
    for (stored, new) in [(0, 0), (1, 0), (60, 0), (60, 1), (30, 20), (30, 21), (60, 49), (60, 50), (60, 51), (1, 200)] {
        for batch_len in [1, 20, 200] {
            let mut world = held();
            let mut lines: Vec<String> = (0..stored).map(|number| format!("MESSAGE old {number}\n")).collect();
            for line in &lines {
                world.store("blue", line.trim_end());
            }
            world.join("alice", "blue");
            for number in 0..new {
                world.send("alice", format!("MSG {number}\n"));
                lines.push(format!("MESSAGE alice {number}\n"));
                if number % batch_len == batch_len - 1 {
                    world.commit();
                }
            }
            world.commit_all();
            world.received("alice");
            world.send("alice", "HISTORY\n");
            world.answer_load("blue", true);
            let last = &lines[lines.len().saturating_sub(HISTORY_LEN_MAX_MESSAGES)..];
            let expected = format!("HISTORY_BEGIN {}\n{}HISTORY_END\n", last.len(), last.concat());
            assert_eq!(world.received("alice"), expected, "{stored} stored, {new} new, {batch_len} at a time");
        }
    }
}

#[test]
fn an_empty_room_is_forgotten_with_its_last_member_loaded_or_not_and_an_answer_for_it_is_ignored() {
    let mut world = held();
    world.store("blue", "MESSAGE old 1");
    world.join("alice", "blue");
    world.lose("alice");
    assert_eq!((world.hub.room_count(), world.hub.counters().rooms_forgotten), (0, 1));
    let late = world.loads.pop_front().unwrap();
    world.join("bob", "blue");
    world.send("bob", "HISTORY\n");
    assert_eq!(asked(&world), [("blue", 0)]);
    world.hub.history_loaded(world.now, late.room, b"MESSAGE wrong 1\n".to_vec(), 1);
    world.hub.history_unavailable(world.now, late.room);
    world.turn();
    assert_eq!(world.received("bob"), "");
    let twice = world.loads[0].room;
    world.answer_load("blue", true);
    let history = "HISTORY_BEGIN 1\nMESSAGE old 1\nHISTORY_END\n";
    assert_eq!(world.received("bob"), history);
    // No answer counts twice.
    world.hub.history_loaded(world.now, twice, b"MESSAGE wrong 1\n".to_vec(), 1);
    world.hub.history_unavailable(world.now, twice);
    world.send("bob", "HISTORY\n");
    assert_eq!(world.received("bob"), history);
    world.lose("bob");
    let counters = world.hub.counters();
    assert_eq!((counters.rooms_loaded, counters.loads_failed, world.hub.room_count(), counters.rooms_forgotten), (1, 0, 0, 2));
}

#[test]
fn a_room_that_is_forgotten_before_its_turn_is_not_asked_for() {
    let now = Nanos(1);
    let mut hub = Hub::new(Settings::default());
    let join = |hub: &mut Hub, room: &str| {
        let id = hub.connect(now, "127.0.0.1:1".parse().unwrap()).unwrap();
        hub.receive(now, id, format!("JOIN alice {room}\n").as_bytes());
        id
    };
    let names = |hub: &mut Hub| std::iter::from_fn(|| hub.pop_load()).map(|load| load.name).collect::<Vec<_>>();
    for number in 0..1000 {
        let id = join(&mut hub, &format!("room{number}"));
        hub.disconnect(id);
    }
    assert_eq!(names(&mut hub), [""; 0]);
    let ids = ["blue", "green", "red"].map(|room| join(&mut hub, room));
    hub.disconnect(ids[0]);
    join(&mut hub, "grey");
    let mut rooms = names(&mut hub);
    rooms.sort();
    assert_eq!(rooms, ["green", "grey", "red"]);
}

#[test]
fn rooms_that_somebody_waits_for_are_asked_for_first_and_each_once() {
    let now = Nanos(1);
    let mut hub = Hub::new(Settings::default());
    let ids: Vec<ConnectionId> = (0..6)
        .map(|number| {
            let id = hub.connect(now, "127.0.0.1:1".parse().unwrap()).unwrap();
            hub.receive(now, id, format!("JOIN alice room{number}\n").as_bytes());
            id
        })
        .collect();
    let first = hub.pop_load().unwrap();
    for place in [4, 0, 2] {
        hub.receive(now, ids[place], b"HISTORY\n");
    }
    assert!(hub.loads_len() > 0);
    let names: Vec<String> = std::iter::from_fn(|| hub.pop_load()).map(|load| load.name).collect();
    assert_eq!((first.name.as_str(), names), ("room0", ["room4", "room2", "room1", "room3", "room5"].map(str::to_owned).to_vec()));
    assert_eq!(hub.loads_len(), 0);
}

#[test]
fn a_history_that_is_in_memory_as_a_whole_waits_for_nothing() {
    let mut world = held();
    world.store("blue", "MESSAGE old 1");
    world.join("alice", "blue");
    let said: Vec<String> = (0..HISTORY_LEN_MAX_MESSAGES).map(|number| format!("MSG {number}\n")).collect();
    world.send("alice", said[1..].concat());
    world.commit();
    world.join("bob", "blue");
    world.send("bob", "HISTORY\n");
    assert_eq!(world.received("bob"), "", "one is missing");
    world.send("alice", &said[0]);
    world.commit();
    world.received("alice");
    world.send("alice", "HISTORY\n");
    let received = world.received("alice");
    assert!(received.starts_with(&format!("HISTORY_BEGIN {HISTORY_LEN_MAX_MESSAGES}\nMESSAGE alice 1\n")), "{received}");
    assert!(received.ends_with("MESSAGE alice 0\nHISTORY_END\n"), "{received}");
}

#[test]
fn a_room_without_members_stays_until_the_last_of_its_messages_is_archived() {
    let mut world = held();
    world.join("alice", "blue");
    world.join("bob", "green");
    for (name, text) in [("alice", "one"), ("bob", "two"), ("alice", "three"), ("bob", "four")] {
        world.send(name, format!("MSG {text}\n"));
        world.commit();
    }
    world.lose("alice");
    let left = |world: &World| (world.hub.room_count(), world.hub.counters().rooms_forgotten);
    assert_eq!(left(&world), (2, 0));
    world.archive_up_to(2);
    assert_eq!(left(&world), (2, 0));
    // It is still in memory.
    world.join("carol", "blue");
    world.archive_up_to(3);
    assert_eq!(left(&world), (2, 0), "somebody is there");
    world.hub.archived(2);
    world.lose("carol");
    assert_eq!(left(&world), (1, 1), "what is archived stays archived, and nothing is left to wait for");
    world.lose("bob");
    assert_eq!(left(&world), (1, 1));
    world.archive_up_to(4);
    assert_eq!(left(&world), (0, 2));

    world.loads.clear();
    world.join("dave", "blue");
    world.send("dave", "HISTORY\n");
    assert_eq!(asked(&world), [("blue", 4)]);
    world.answer_load("blue", true);
    assert_eq!(world.received("dave"), "HISTORY_BEGIN 2\nMESSAGE alice one\nMESSAGE alice three\nHISTORY_END\n");
}

#[test]
fn messages_that_nobody_is_left_to_see_keep_their_room_until_they_are_archived_or_refused() {
    for is_refused in [false, true] {
        let mut world = held();
        world.join("alice", "blue");
        world.send("alice", "MSG one\n");
        world.commit();
        world.send("alice", "MSG two\n");
        world.take();
        world.archive_up_to(1);
        world.lose("alice");
        assert_eq!(world.hub.room_count(), 1, "a message is on its way to disk");
        if is_refused {
            world.refuse(CommitError::Full);
        } else {
            world.commit();
            assert_eq!(world.hub.room_count(), 1);
            world.archive_up_to(2);
        }
        assert_eq!(world.hub.room_count(), 0);
    }
}

#[test]
fn a_history_that_comes_when_everybody_has_left_is_there_for_the_next_member() {
    let mut world = held();
    world.store("blue", "MESSAGE old 1");
    world.join("alice", "blue");
    world.send("alice", "MSG one\nHISTORY\n");
    world.lose("alice");
    world.commit();
    world.answer_load("blue", true);
    world.join("bob", "blue");
    world.send("bob", "HISTORY\n");
    assert_eq!(asked(&world), []);
    assert_eq!(world.received("bob"), "HISTORY_BEGIN 2\nMESSAGE old 1\nMESSAGE alice one\nHISTORY_END\n");
}

#[test]
fn many_rooms_are_forgotten_in_several_turns() {
    let now = Nanos(1);
    let mut hub = Hub::new(Settings { heartbeat_interval: None, ..Settings::default() });
    let rooms = 2 * FORGOTTEN_AT_ONCE_MAX_ROOMS + 2;
    let mut last = None;
    for number in 0..rooms {
        let id = hub.connect(now, "127.0.0.1:1".parse().unwrap()).unwrap();
        hub.receive(now, id, format!("JOIN alice room{number}\nMSG one\n").as_bytes());
        if let Some(before) = last.replace(id) {
            hub.disconnect(before);
        }
    }
    let batch = hub.take_batch().unwrap();
    hub.committed(now, batch);
    hub.disconnect(last.unwrap());
    assert_eq!((hub.room_count(), hub.next_deadline()), (rooms, None));
    hub.archived(1);
    assert!(hub.next_deadline().is_some_and(|at| at <= now), "there is more to do");
    assert_eq!(hub.room_count(), rooms - FORGOTTEN_AT_ONCE_MAX_ROOMS);
    // Two that still wait for their turn are joined, and one of them is left again.
    let ids = [rooms - 1, rooms - 2].map(|number| {
        let id = hub.connect(now, "127.0.0.1:1".parse().unwrap()).unwrap();
        hub.receive(now, id, format!("JOIN alice room{number}\n").as_bytes());
        id
    });
    assert_eq!(hub.room_count(), rooms - FORGOTTEN_AT_ONCE_MAX_ROOMS);
    hub.disconnect(ids[0]);
    assert_eq!(hub.room_count(), rooms - FORGOTTEN_AT_ONCE_MAX_ROOMS - 1);
    hub.tick(now);
    assert_eq!((hub.room_count(), hub.next_deadline().is_some_and(|at| at <= now)), (1, false));
    hub.disconnect(ids[1]);
    assert_eq!((hub.room_count(), hub.next_deadline(), hub.counters().rooms_forgotten), (0, None, rooms as u64));
}

#[test]
fn the_clock_of_who_waits_for_a_history_stands_still() {
    let mut world = held();
    for name in ["alice", "bob"] {
        world.join(name, "blue");
    }
    world.pass(Duration::from_secs(12));
    // Her PING has 3 s left, and her PONG is not looked at. Bob says nothing.
    world.send("alice", "HISTORY\nPONG\n");
    world.pass(Duration::from_secs(60));
    assert_eq!(world.take_closed("bob").map(|closed| closed.reason), Some(CloseReason::PingTimeout));
    world.answer_load("blue", true);
    assert_eq!(world.received("alice"), "PING\nHISTORY_BEGIN 0\nHISTORY_END\n");
    world.pass(Duration::from_millis(9_999));
    assert_eq!(world.received("alice"), "");
    world.pass(Duration::from_millis(1));
    assert_eq!(world.received("alice"), "PING\n");
    assert!(world.take_closed("alice").is_none());
}

#[test]
fn nothing_is_read_from_who_waits_for_a_history_and_nothing_is_lost() {
    let mut world = held();
    world.join("alice", "blue");
    world.send("alice", "HISTORY\nhello\nhel");
    world.send("alice", "lo\nMSG one\n");
    world.end("alice");
    let id = world.client("alice").id;
    assert_eq!((world.unread_len("alice"), world.hub.kept_len_bytes(id)), (11, 9));
    // Also if the shell has read more before it could know, and meets the end.
    world.hub.receive(world.now, id, b"lo\n");
    world.hub.end_of_input(world.now, id);
    world.answer_load("blue", true);
    world.commit();
    let history = "HISTORY_BEGIN 0\nHISTORY_END\n";
    assert_eq!(world.received("alice"), format!("{history}{}MESSAGE alice one\n", COMMAND_ERROR.repeat(3)));
    assert_eq!(world.take_closed("alice").map(|closed| closed.reason), Some(CloseReason::EndOfInput));
}

#[test]
fn who_waits_for_a_history_may_vanish_or_be_cut_and_the_others_are_answered() {
    check(
        r"
        stored blue MESSAGE old 1
        hold
        > alice JOIN alice blue
        < alice OK JOIN alice blue
        > bob JOIN bob blue
        < bob OK JOIN bob blue
        > carol JOIN carol blue
        < carol OK JOIN carol blue
        >> alice HISTORY\nQUIT\n
        > bob HISTORY
        lose bob
        closed bob connection lost
        > carol QUIT
        < carol OK QUIT
        closed carol quit
        # The name is free, and who has it now has not asked.
        > carol2 JOIN bob blue
        < carol2 OK JOIN bob blue
        load blue
        < alice HISTORY_BEGIN 1
        < alice MESSAGE old 1
        < alice HISTORY_END
        < alice OK QUIT
        closed alice quit
        silent carol2
        ",
    );
}

#[test]
fn shutdown_does_not_wait_for_the_archive() {
    check(
        r"
        hold
        > alice JOIN alice blue
        < alice OK JOIN alice blue
        > bob JOIN bob blue
        < bob OK JOIN bob blue
        > carol JOIN carol green
        < carol OK JOIN carol green
        >> alice MSG one\nHISTORY\nhello\n
        >> bob HISTORY\nhello\n
        > carol HISTORY
        shutdown
        silent bob
        # As long as something is to be committed, it still may come.
        load green
        < carol HISTORY_BEGIN 0
        < carol HISTORY_END
        commit
        < alice MESSAGE alice one
        < alice ERR history unavailable
        < bob MESSAGE alice one
        < bob ERR history unavailable
        closed alice shutdown
        closed bob shutdown
        closed carol shutdown
        load blue
        finished
        ",
    );
}

#[test]
fn who_has_waited_for_a_history_is_parsed_on_when_the_shell_comes_to_it() {
    let now = Nanos(1);
    let mut hub = Hub::new(Settings::default());
    let request = b"HISTORY\nhello\nhello\nMSG one\n";
    let kept_len = request.len() - "HISTORY\n".len();
    let ids: Vec<ConnectionId> = (0..1000)
        .map(|number| {
            let id = hub.connect(now, "127.0.0.1:1".parse().unwrap()).unwrap();
            hub.receive(now, id, format!("JOIN member{number} blue\n").as_bytes());
            hub.receive(now, id, request);
            id
        })
        .collect();
    while hub.pop_touched().is_some() {}
    let load = hub.pop_load().unwrap();
    hub.history_loaded(now, load.room, Vec::new(), 0);
    assert!(ids.iter().all(|&id| hub.kept_len_bytes(id) == kept_len), "the answer of all is given in one go, and nothing else is done");
    assert_eq!((hub.counters().messages_accepted, hub.touched_len()), (0, ids.len()));
    // What the shell has read before it could know stays in order.
    hub.receive(now, ids[0], b"MSG two\n");
    for place in 1..=ids.len() {
        let touched = hub.pop_touched().unwrap();
        assert!(touched.read);
        assert!(hub.may_read(now, touched.id));
        assert_eq!(hub.counters().messages_accepted, place as u64 + 1);
        assert_eq!(hub.kept_len_bytes(touched.id), 0);
    }
    assert!(hub.take_batch().unwrap().sections[0].lines.starts_with(b"MESSAGE member0 one\nMESSAGE member0 two\nMESSAGE member1 one\n"));
}
