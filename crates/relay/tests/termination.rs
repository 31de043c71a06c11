//! How the server stops: in order at the first signal, at once at the second.

mod support;

use std::io::ErrorKind;
use std::time::Duration;

use miniloop::net::TcpStream;
use relay::server::Stop;
use relay_core::Settings;
use relay_core::limits::FLUSH_TIMEOUT;
use rustix::process::Signal;
use support::client::{Client, End};
use support::server::{Server, stored};
use support::strace::Strace;
use support::system::bytes_taken;
use support::world::{Peer, Told, World, in_virtual_time};
use support::{Data, is_missing};

/// Signals come while messages are on their way to the disk.
#[track_caller]
fn check_orderly_stop(signal: Signal) {
    const MESSAGES: usize = 20_000;
    let data = Data::new();
    let server = Server::start(&data, &["--log", "info"]);
    let mut ada = server.join("ada", "lounge");
    let mut bob = server.join("bob", "lounge");
    let mut idle = server.join("idle", "kitchen");
    let commands: String = (0..MESSAGES).map(|number| format!("MSG {number}\n")).collect();
    ada.send(commands.as_bytes());
    ada.hears("MESSAGE ada 0");
    server.signal(signal);

    let (mut ada_heard, ada_end) = ada.hears_to_the_end();
    let (bob_heard, bob_end) = bob.hears_to_the_end();
    ada_heard.insert(0, "MESSAGE ada 0".to_owned());
    assert_eq!(ada_heard, stored(&data, "lounge"), "what was accepted is stored, and what is stored is shown");
    assert_eq!(ada_heard, bob_heard);
    // A reset may follow our messages that were not read any more, never one of the server's.
    assert!(matches!((ada_end, bob_end), (End::Orderly | End::Reset, End::Orderly)));
    assert_eq!(idle.hears_to_the_end(), (vec![], End::Orderly));
    let ended = server.ended();
    assert_eq!(ended.code, Some(0), "{}", ended.log);
    assert!(ended.log.contains("stopped"), "{}", ended.log);
}

#[test]
fn a_signal_stops_the_server_after_everything_accepted_is_stored_and_shown() {
    check_orderly_stop(Signal::TERM);
    check_orderly_stop(Signal::INT);
}

#[test]
fn a_stop_waits_for_the_commit_and_for_the_answers_behind_it() {
    let (verdicts, storage) = Told::new();
    in_virtual_time(Settings::default(), storage, async |world: World| {
        let mut ada = Peer::join(&world, "ada", "lounge").await;
        let mut eve = Peer::join(&world, "eve", "lounge").await;
        // The room is loaded then: what stands behind a history that is not is not read before.
        ada.say("HISTORY").await;
        for line in ["HISTORY_BEGIN 0", "HISTORY_END"] {
            ada.hears(line).await;
        }
        ada.say("MSG hello").await;
        ada.say("HISTORY").await;
        ada.say("QUIT").await;
        // What was sent before is read before.
        eve.hears_nothing().await;
        world.stopper.stop();
        for _ in 0..3 {
            miniloop::yield_now().await;
        }
        let refused = TcpStream::connect(world.address).await.map_err(|error| error.kind());
        assert_eq!(refused.err(), Some(ErrorKind::ConnectionRefused));
        eve.say("MSG too late").await;
        verdicts.send(Ok(())).expect("the storage waits");
        for line in ["MESSAGE ada hello", "HISTORY_BEGIN 1", "MESSAGE ada hello", "HISTORY_END", "OK QUIT"] {
            ada.hears(line).await;
        }
        ada.hears_the_end().await;
        eve.hears("MESSAGE ada hello").await;
        eve.hears_the_end().await;
        // Time stands still here, so they must go for the server to see that they have everything.
        drop((ada, eve));
        assert!(matches!(world.serving.await, Ok(Stop::Requested)));
    });
}

#[test]
fn a_stop_waits_ten_seconds_for_a_client_that_does_not_read() {
    in_virtual_time(Settings::default(), Told::nothing(), async |world: World| {
        let silent = Peer::join(&world, "a-silent", "lounge").await;
        let mut ada = Peer::join(&world, "ada", "lounge").await;
        let text = "x".repeat(4_000);
        let (mut sent_bytes, mut kernel_bytes) = (0, 0);
        while sent_bytes < kernel_bytes + 64 * 1024 {
            for _ in 0..16 {
                ada.say(&format!("MSG {text}")).await;
                ada.hears(&format!("MESSAGE ada {text}")).await;
                sent_bytes += "MESSAGE ada \n".len() + text.len();
            }
            kernel_bytes = bytes_taken(world.address, silent.address()).expect("it is not cut");
        }
        world.stopper.stop();
        ada.hears_the_end().await;
        world.clock.advance(FLUSH_TIMEOUT - Duration::from_millis(1));
        for _ in 0..3 {
            miniloop::sleep_until(miniloop::now()).await;
        }
        assert!(!world.serving.is_finished());
        world.clock.advance(Duration::from_millis(1));
        world.serving.await.expect("it ends in order");
    });
}

#[test]
fn a_second_signal_stops_at_once() {
    let data = Data::new();
    let server = Server::start(&data, &["--heartbeat-interval", "0"]);
    // What is queued for this one cannot be flushed, and the server gives it ten seconds.
    let silent = server.join("silent", "lounge");
    let mut ada = server.join("ada", "lounge");
    fill_until_blocked(&server, &silent, &mut ada);
    server.signal(Signal::TERM);
    server.wait_for_log("a second signal");
    ada.hears_to_the_end();
    server.signal(Signal::TERM);
    let ended = server.ended();
    assert_eq!(ended.code, Some(1), "{}", ended.log);
    assert!(ended.log.contains("stopped at once"), "{}", ended.log);
}

#[test]
fn a_log_that_nobody_can_read_stops_neither_the_server_nor_its_end() {
    // A full disk, a closed descriptor, and a reader that has gone.
    for redirection in ["2>/dev/full", "2>&-", "2> >(exit)"] {
        let command = format!(r#"exec "$0" "$@" {redirection}"#);
        let data = Data::new();
        let server = Server::start_under(&["bash", "-c", &command], &data, &["--log", "debug"]);
        let mut ada = server.join("ada", "lounge");
        // An end that is worth a line, and one that is not.
        Client::connect(server.address).say("GET / HTTP/1.1");
        server.join("bob", "lounge").quit();
        ada.say("MSG hello");
        ada.hears("MESSAGE ada hello");
        server.signal(Signal::TERM);
        ada.hears_to_the_end();
        assert_eq!(server.ended().code, Some(0), "{redirection}");
    }
}

/// Sends messages until the kernel takes no more of them for a member that does not read, and no longer.
fn fill_until_blocked(server: &Server, silent: &Client, ada: &mut Client) {
    let message = format!("MESSAGE ada {}", "x".repeat(4_000));
    let command = message.replacen("MESSAGE ada", "MSG", 1);
    let (mut sent_bytes, mut kernel_bytes) = (0, 0);
    while sent_bytes < kernel_bytes + 64 * 1024 {
        for _ in 0..16 {
            ada.say(&command);
            ada.hears(&message);
            sent_bytes += message.len() + 1;
        }
        kernel_bytes = bytes_taken(server.address_v4(), silent.address()).expect("it is not cut");
    }
}

#[test]
fn a_disk_that_fails_ends_the_server_and_shows_nothing() {
    if is_missing("strace") {
        return;
    }
    let data = Data::new();
    let server = Server::start_prepared(&data, &[]);
    let strace = Strace::attach(&data, server.pid(), &["-f", "-e", "inject=fdatasync:error=EIO"]);
    let mut ada = server.join("ada", "lounge");
    let mut bob = server.join("bob", "lounge");
    ada.say("MSG lost");
    ada.hears("ERR storage unavailable");
    assert_eq!(bob.hears_to_the_end(), (vec![], End::Orderly));
    let ended = server.ended();
    drop(strace);
    assert_eq!(ended.code, Some(1), "{}", ended.log);
    for text in ["syncing", ".log", "Input/output error", "start relay again"] {
        assert!(ended.log.contains(text), "no `{text}` in {}", ended.log);
    }
}

#[test]
fn a_full_disk_refuses_messages_until_there_is_room() {
    if is_missing("strace") {
        return;
    }
    let data = Data::new();
    let server = Server::start_prepared(&data, &[]);
    let strace = Strace::attach(&data, server.pid(), &["-f", "-e", "inject=pwrite64:error=ENOSPC"]);
    let mut ada = server.join("ada", "lounge");
    let mut bob = server.join("bob", "lounge");
    for _ in 0..2 {
        ada.say("MSG refused");
        ada.hears("ERR storage full");
        assert_eq!(bob.history(), [""; 0]);
    }
    strace.finish();
    ada.say("MSG stored again");
    ada.hears("MESSAGE ada stored again");
    bob.hears("MESSAGE ada stored again");
    assert_eq!(stored(&data, "lounge"), ["MESSAGE ada stored again"]);
    assert!(server.log().contains("messages are stored again"), "{}", server.log());
    server.stop();
}
