//! How the server stops: in order at the first signal, at once at the second.

mod support;

use rustix::process::Signal;
use support::client::{Client, End};
use support::server::{Server, stored};
use support::strace::Strace;
use support::system::kernel_queues;
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
fn answers_that_are_queued_are_still_given() {
    let data = Data::new();
    let server = Server::start(&data, &[]);
    let mut ada = server.join("ada", "lounge");
    ada.send(b"MSG hello\nQUIT\n");
    server.signal(Signal::TERM);
    let (heard, end) = ada.hears_to_the_end();
    // The signal may come before the lines are read; answers may be missing then, but never only some of a line's.
    let all = ["MESSAGE ada hello", "OK QUIT"];
    assert!(end == End::Orderly && (heard == all || heard == all[..0]), "{heard:?}, {end:?}");
    assert_eq!(stored(&data, "lounge").len(), heard.len().min(1));
    assert_eq!(server.ended().code, Some(0));
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
        let at_the_server = kernel_queues(server.address_v4(), silent.address()).expect("it is not cut");
        let at_the_client = kernel_queues(silent.address(), server.address_v4()).expect("it is open");
        kernel_bytes = at_the_server.unsent_bytes + at_the_client.unread_bytes;
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
    assert!(server.log().contains("there is room again"), "{}", server.log());
    server.stop();
}
