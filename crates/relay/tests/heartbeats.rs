//! `PING` and `PONG` over real sockets, in virtual time.
//!
//! All cases are scenarios of `relay-core`; here is what only the server can do wrong: the order of a poll, and the timer that wakes it.

mod support;

use std::time::Duration;

use relay_core::Settings;
use support::Data;
use support::server::Server;
use support::system::{KernelQueues, kernel_queues};
use support::world::{Peer, Told, World, in_virtual_time};

const INTERVAL: Duration = Duration::from_secs(10);
const TIMEOUT: Duration = Duration::from_secs(5);
const MOMENT: Duration = Duration::from_millis(1);

#[test]
fn ping_comes_at_ten_seconds_and_the_end_at_fifteen() {
    in_virtual_time(Settings::default(), Told::nothing(), async |world: World| {
        let mut ada = Peer::join(&world, "ada", "lounge").await;
        world.clock.advance(INTERVAL - MOMENT);
        ada.hears_nothing().await;
        world.clock.advance(MOMENT);
        ada.hears("PING").await;
        world.clock.advance(TIMEOUT - MOMENT);
        ada.hears_nothing().await;
        world.clock.advance(MOMENT);
        ada.hears_the_end().await;
    });
}

#[test]
fn a_pong_starts_the_interval_again() {
    in_virtual_time(Settings::default(), Told::nothing(), async |world: World| {
        let mut ada = Peer::join(&world, "ada", "lounge").await;
        for _ in 0..5 {
            world.clock.advance(INTERVAL);
            ada.hears("PING").await;
            world.clock.advance(TIMEOUT - MOMENT);
            ada.say("PONG").await;
            ada.hears_nothing().await;
            world.clock.advance(INTERVAL - MOMENT);
            ada.hears_nothing().await;
            world.clock.advance(MOMENT);
            ada.hears("PING").await;
            ada.say("PONG").await;
            ada.hears_nothing().await;
        }
    });
}

#[test]
fn a_pong_in_the_same_poll_as_the_deadline_saves_the_client() {
    in_virtual_time(Settings::default(), Told::nothing(), async |world: World| {
        let mut ada = Peer::join(&world, "ada", "lounge").await;
        let mut mute = Peer::join(&world, "mute", "lounge").await;
        world.clock.advance(INTERVAL);
        ada.hears("PING").await;
        mute.hears("PING").await;
        // Without giving way between: the server's next poll finds the bytes and the time.
        assert_eq!(ada.stream.try_write(b"PONG\n").expect("there is room"), 5);
        wait_for_the_kernel(&world, &ada);
        world.clock.advance(TIMEOUT);
        mute.hears_the_end().await;
        ada.hears_nothing().await;
        world.clock.advance(INTERVAL);
        ada.hears("PING").await;
    });
}

/// Until what was written has arrived at the server's end. The loop is not turned meanwhile.
fn wait_for_the_kernel(world: &World, peer: &Peer) {
    while kernel_queues(world.address, peer.address()) != Some(KernelQueues { unsent_bytes: 0, unread_bytes: 5 }) {
        std::thread::yield_now();
    }
}

#[test]
fn a_connection_that_does_not_join_is_closed_after_thirty_seconds() {
    in_virtual_time(Settings::default(), Told::nothing(), async |world: World| {
        let mut nobody = Peer::connect(&world).await;
        nobody.say("hello?").await;
        nobody.hears("ERR expected JOIN <name> <room>").await;
        world.clock.advance(Duration::from_secs(30));
        nobody.hears("ERR join timeout").await;
        nobody.hears_the_end().await;
    });
}

#[test]
fn the_command_line_sets_both_times() {
    let data = Data::new();
    let server = Server::start(&data, &["--heartbeat-interval", "200ms", "--heartbeat-timeout", "100ms"]);
    // It never answers, so that a slow machine is no different.
    let mut mute = server.join("mute", "lounge");
    assert_eq!(mute.hears_to_the_end().0, ["PING"]);
    assert!(server.log().contains("ping timeout"), "{}", server.log());
}
