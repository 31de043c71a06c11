//! `PING` and `PONG` in virtual time.

use relay_core::Settings;

use crate::world::{World, check};

#[test]
fn ping_comes_ten_seconds_after_the_join_and_the_connection_ends_five_seconds_later() {
    check(
        "
        > alice JOIN alice blue
        < alice OK JOIN alice blue
        +9999ms
        silent alice
        +1ms
        < alice PING
        +4999ms
        silent alice
        +1ms
        closed alice ping timeout
        finished
        ",
    );
}

#[test]
fn ping_comes_ten_seconds_after_the_last_pong() {
    check(
        "
        > alice JOIN alice blue
        < alice OK JOIN alice blue
        # Also one that nobody asked for.
        +7s > alice PONG
        +9999ms
        silent alice
        +1ms
        < alice PING
        +3s > alice PONG
        +9999ms
        silent alice
        +1ms
        < alice PING
        # Other lines are no sign of life.
        > alice MSG hello
        +5s
        closed alice ping timeout
        commit
        ",
    );
}

#[test]
fn a_pong_that_arrives_with_the_deadline_saves_the_client() {
    check(
        "
        > alice JOIN alice blue
        < alice OK JOIN alice blue
        > bob JOIN bob blue
        < bob OK JOIN bob blue
        +10s
        < alice PING
        < bob PING
        +5s > alice PONG
        closed bob ping timeout
        +9999ms
        silent alice
        +1ms
        < alice PING
        ",
    );
}

#[test]
fn intervals_can_be_changed_and_switched_off() {
    check(
        "
        settings heartbeat 2s 500ms
        > alice JOIN alice blue
        < alice OK JOIN alice blue
        +2s
        < alice PING
        +500ms
        closed alice ping timeout
        ",
    );
    check(
        "
        settings heartbeat off
        > alice JOIN alice blue
        < alice OK JOIN alice blue
        +86400s
        silent alice
        ",
    );
    // Without a timeout nobody is closed, and the connection is kept alive.
    check(
        "
        settings heartbeat 10s 0s
        > alice JOIN alice blue
        < alice OK JOIN alice blue
        +30s
        3 * < alice PING
        ",
    );
}

#[test]
fn without_heartbeats_a_member_has_no_deadline() {
    let mut world = World::new(Settings { heartbeat_interval: None, ..Settings::default() });
    world.join("alice", "blue");
    assert_eq!(world.hub.next_deadline(), None);
}

#[test]
fn an_ended_connection_has_no_deadline() {
    let mut world = World::new(Settings::default());
    world.join("alice", "blue");
    assert!(world.hub.next_deadline().is_some());
    world.lose("alice");
    assert_eq!(world.hub.next_deadline(), None);
}

#[test]
fn ping_may_stand_between_answers() {
    check(
        "
        > alice JOIN alice blue
        < alice OK JOIN alice blue
        > alice MSG one
        > alice hello
        +10s
        < alice PING
        > alice PONG
        commit
        < alice MESSAGE alice one
        < alice ERR expected MSG <text>, HISTORY, or QUIT
        ",
    );
}

#[test]
fn a_quitter_is_not_pinged() {
    check(
        r"
        > alice JOIN alice blue
        < alice OK JOIN alice blue
        >> alice MSG one\nQUIT\n
        +60s
        silent alice
        commit
        < alice MESSAGE alice one
        < alice OK QUIT
        closed alice quit
        ",
    );
}
