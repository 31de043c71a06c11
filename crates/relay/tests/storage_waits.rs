//! A storage that waits, fails or is full: what goes on beside it, and what is shown of what it does not have.
//!
//! The server is inside the test; its storage does what the test tells it, and time passes when the test says so.

mod support;

use std::time::Duration;

use relay::server::Stop;
use relay_core::Settings;
use relay_core::limits::UNCOMMITTED_MAX_BYTES;
use support::system::bytes_taken;
use support::world::{Peer, Told, World, failed, full, in_virtual_time, refused};

#[test]
fn while_the_storage_waits_two_seconds_everything_else_goes_on_and_nothing_is_shown() {
    let settings = Settings {
        heartbeat_interval: Some(Duration::from_secs(1)),
        heartbeat_timeout: Some(Duration::from_millis(500)),
        ..Settings::default()
    };
    let (verdicts, storage) = Told::new();
    in_virtual_time(settings, storage, async |world: World| {
        let mut ada = Peer::join(&world, "ada", "lounge").await;
        let mut bob = Peer::join(&world, "bob", "lounge").await;
        let mut mute = Peer::join(&world, "mute", "lounge").await;
        // The clock of who waits for a history stands still.
        world.until("relay_rooms_loaded_total", |count| count == 1.0).await;
        ada.say("MSG one").await;
        ada.say("HISTORY").await;
        bob.hears_nothing().await;

        world.clock.advance(Duration::from_secs(1));
        for peer in [&mut ada, &mut bob] {
            peer.hears("PING").await;
            peer.say("PONG").await;
        }
        mute.hears("PING").await;
        // Questions whose answers show that the PONGs before them were read.
        bob.say("HISTORY").await;
        bob.hears("HISTORY_BEGIN 0").await;
        bob.hears("HISTORY_END").await;
        Peer::join(&world, "gus", "kitchen").await.hears_nothing().await;
        let mut eve = Peer::join(&world, "eve", "lounge").await;
        eve.hears_nothing().await;
        world.clock.advance(Duration::from_millis(500));
        mute.hears_the_end().await;
        world.clock.advance(Duration::from_millis(500));
        for peer in [&mut ada, &mut bob, &mut eve] {
            peer.hears("PING").await;
            peer.say("PONG").await;
        }
        bob.hears_nothing().await;

        verdicts.send(Ok(())).expect("the storage waits");
        for peer in [&mut ada, &mut bob, &mut eve] {
            peer.hears("MESSAGE ada one").await;
        }
        // It was asked for behind the message.
        ada.hears("HISTORY_BEGIN 1").await;
        ada.hears("MESSAGE ada one").await;
        ada.hears("HISTORY_END").await;
    });
}

#[test]
fn messages_that_come_while_a_commit_waits_share_the_next_one() {
    let (verdicts, storage) = Told::new();
    in_virtual_time(Settings::default(), storage, async |world: World| {
        let mut ada = Peer::join(&world, "ada", "lounge").await;
        let mut bob = Peer::join(&world, "bob", "lounge").await;
        // It sends nothing, so its questions are answered at once, behind what was read before.
        let mut eve = Peer::join(&world, "eve", "lounge").await;
        ada.say("MSG one").await;
        eve.hears_nothing().await;
        for text in ["two", "three"] {
            for peer in [&ada, &bob] {
                peer.say(&format!("MSG {text}")).await;
                eve.hears_nothing().await;
            }
        }
        verdicts.send(Ok(())).expect("the storage waits");
        for peer in [&mut ada, &mut bob, &mut eve] {
            peer.hears("MESSAGE ada one").await;
        }
        eve.hears_nothing().await;
        // One verdict for the four of them.
        verdicts.send(Ok(())).expect("the storage waits");
        for line in ["MESSAGE ada two", "MESSAGE bob two", "MESSAGE ada three", "MESSAGE bob three"] {
            for peer in [&mut ada, &mut bob, &mut eve] {
                peer.hears(line).await;
            }
        }
    });
}

#[test]
fn nobody_is_closed_for_a_pong_that_the_server_did_not_read() {
    let (verdicts, storage) = Told::new();
    in_virtual_time(Settings::default(), storage, async |world: World| {
        let mut bob = Peer::join(&world, "bob", "kitchen").await;
        let mut mute = Peer::join(&world, "mute", "kitchen").await;
        let flood = Peer::join(&world, "ada", "lounge").await;
        world.clock.advance(Duration::from_secs(10));
        bob.hears("PING").await;
        mute.hears("PING").await;
        flood.say("PONG").await;

        // More than may wait for the disk, and than one read takes: the server reads nobody any more.
        let line = format!("MSG {}\n", "x".repeat(4_000));
        flood.send(line.repeat(UNCOMMITTED_MAX_BYTES / line.len() + 100).as_bytes()).await;
        wait_until_unread(&world, &flood).await;
        bob.say("PONG").await;
        wait_until_unread(&world, &bob).await;
        world.clock.advance(Duration::from_secs(5));
        // It did not answer, and this is the same moment.
        mute.hears_the_end().await;
        world.clock.advance(Duration::from_secs(100));
        wait_until_unread(&world, &bob).await;

        // From now on commits are made at once.
        drop(verdicts);
        let flooded = flood.listen_to_the_end();
        bob.hears_nothing().await;
        world.clock.advance(Duration::from_secs(10));
        bob.hears("PING").await;
        bob.say("PONG").await;
        bob.hears_nothing().await;
        // Time stands still here, so he must go for the server to see that he has everything.
        drop(bob);
        world.stopper.stop();
        assert!(matches!(world.serving.await, Ok(Stop::Requested)));
        drop(flooded);
    });
}

/// Turns the loop until the kernel holds something from this peer that the server has had every chance to read.
async fn wait_until_unread(world: &World, peer: &Peer) {
    let (mut left_bytes, mut unchanged_turns) = (0, 0);
    while unchanged_turns < 10 {
        // A poll, a round in which the server would read, and one more.
        for _ in 0..3 {
            miniloop::sleep_until(miniloop::now()).await;
        }
        let now_left_bytes = bytes_taken(peer.address(), world.address).unwrap_or_default();
        unchanged_turns = if now_left_bytes == 0 || now_left_bytes != left_bytes { 0 } else { unchanged_turns + 1 };
        left_bytes = now_left_bytes;
    }
}

#[test]
fn a_storage_that_fails_is_told_to_the_senders_and_ends_the_server() {
    let (verdicts, storage) = Told::new();
    in_virtual_time(Settings::default(), storage, async |world: World| {
        let mut ada = Peer::join(&world, "ada", "lounge").await;
        let mut bob = Peer::join(&world, "bob", "lounge").await;
        world.until("relay_rooms_loaded_total", |count| count == 1.0).await;
        ada.say("MSG one").await;
        ada.say("HISTORY").await;
        bob.hears_nothing().await;
        verdicts.send(Err(failed())).expect("the storage waits");
        ada.hears("ERR storage unavailable").await;
        ada.hears("HISTORY_BEGIN 0").await;
        ada.hears("HISTORY_END").await;
        ada.hears_the_end().await;
        bob.hears_the_end().await;
        // Time stands still here, so they must go for the server to see that they have everything.
        drop((ada, bob));
        assert!(matches!(world.serving.await, Ok(Stop::Storage(_))));
    });
}

#[test]
fn a_full_storage_refuses_messages_until_there_is_room_and_nothing_else() {
    let (verdicts, storage) = Told::new();
    in_virtual_time(Settings::default(), storage, async |world: World| {
        let mut ada = Peer::join(&world, "ada", "lounge").await;
        let mut bob = Peer::join(&world, "bob", "lounge").await;
        for _ in 0..3 {
            ada.say("MSG one").await;
            verdicts.send(Err(full())).expect("the storage waits");
            ada.hears("ERR storage full").await;
            bob.hears_nothing().await;
            bob.say("HISTORY").await;
            bob.hears("HISTORY_BEGIN 0").await;
            bob.hears("HISTORY_END").await;
        }
        ada.say("MSG two").await;
        verdicts.send(Ok(())).expect("the storage waits");
        ada.hears("MESSAGE ada two").await;
        bob.hears("MESSAGE ada two").await;
        assert!(!world.serving.is_finished());
    });
}

#[test]
fn a_storage_that_refuses_for_a_while_is_told_to_the_senders_and_ends_nothing() {
    let (verdicts, storage) = Told::new();
    in_virtual_time(Settings::default(), storage, async |world: World| {
        let mut ada = Peer::join(&world, "ada", "lounge").await;
        ada.say("MSG one").await;
        verdicts.send(Err(refused())).expect("the storage waits");
        ada.hears("ERR storage unavailable").await;
        ada.say("MSG two").await;
        verdicts.send(Ok(())).expect("the storage waits");
        ada.hears("MESSAGE ada two").await;
        assert!(!world.serving.is_finished());
    });
}
