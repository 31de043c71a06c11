//! Members that do not read are cut, and nobody else notices.

mod support;

use relay_core::limits::OUTBOX_MAX_BYTES;
use rustix::io::Errno;
use support::Data;
use support::bench::bench;
use support::client::Client;
use support::server::Server;
use support::system::{bytes_taken, rss_of, rss_peak_of};

/// More than any kernel takes for a socket.
const SENT_MAX_BYTES: usize = 64 << 20;

/// What a slow member may cost the server beyond its kernel's buffers.
const RSS_GROWTH_MAX_BYTES: u64 = 16 << 20;

/// What a fold may have in memory: its window of 32 MiB and SQLite's pages, 16 MiB.
const RSS_FOLD_MAX_BYTES: u64 = 48 << 20;

#[test]
fn a_member_that_stops_reading_is_cut_at_256_kib_beyond_what_the_kernel_took() {
    let data = Data::new();
    let server = Server::start(&data, &["--heartbeat-interval", "0"]);
    // The first in the room, so that it is written to before the others hear of a message.
    let mut silent = server.join("a-silent", "lounge");
    let silent_address = silent.address();
    let mut ada = server.join("ada", "lounge");
    let mut bob = server.join("bob", "lounge");
    let rss = rss_of(server.pid());

    let message = format!("MESSAGE ada {}", "x".repeat(4_000));
    let message_bytes = message.len() + 1;
    let command = message.replacen("MESSAGE ada", "MSG", 1);
    let (mut sent_bytes, mut kernel_bytes) = (0, 0);
    let end = loop {
        ada.say(&command);
        ada.hears(&message);
        bob.hears(&message);
        sent_bytes += message_bytes;
        assert!(sent_bytes < SENT_MAX_BYTES, "it is not cut");
        // The kernel takes nothing more long before the limit is reached, so that now and then is often enough.
        if sent_bytes % (16 * message_bytes) == 0
            && let Some(bytes) = bytes_taken(server.address_v4(), silent_address)
        {
            kernel_bytes = bytes;
        }
        if let Some(error) = silent.take_error() {
            break error;
        }
    };
    assert_eq!(end, Errno::CONNRESET);
    let refused_bytes = sent_bytes - kernel_bytes;
    // The end comes after the message that was too much, and is seen here after the next one at the latest.
    let most = OUTBOX_MAX_BYTES + 2 * message_bytes;
    assert!((OUTBOX_MAX_BYTES..=most).contains(&refused_bytes), "{sent_bytes} sent, {kernel_bytes} taken by the kernel");
    let growth_bytes = rss_peak_of(server.pid()).saturating_sub(rss);
    assert!(growth_bytes < RSS_GROWTH_MAX_BYTES, "{growth_bytes} bytes more");

    ada.say("MSG still here");
    for client in [&mut ada, &mut bob] {
        client.hears("MESSAGE ada still here");
        assert_eq!(client.history().len(), 50);
    }
    let (heard, _) = silent.hears_to_the_end();
    assert!(heard.iter().all(|line| *line == message), "what it heard is what was said");
    let log = server.log();
    let closed = log.lines().find(|line| line.contains("a-silent")).unwrap_or_default();
    for word in ["slow", "lounge", &silent_address.to_string()] {
        assert!(closed.contains(word), "no `{word}` in the log: {log}");
    }
    server.stop();
}

#[test]
fn a_room_under_load_does_not_notice_members_that_never_read() {
    let data = Data::new();
    let server = Server::start(&data, &["--heartbeat-interval", "0"]);
    let silent: Vec<Client> = (0..20).map(|number| server.join(&format!("silent-{number}"), "bench-5-0")).collect();
    let rss = rss_of(server.pid());
    bench(&server, "--rooms 2 --members 10 --senders 10 --window 16 --messages 1000 --size 1000 --seed 5");
    let growth_bytes = rss_peak_of(server.pid()).saturating_sub(rss);
    // Enough is said that it is folded meanwhile.
    assert!(growth_bytes < RSS_GROWTH_MAX_BYTES + RSS_FOLD_MAX_BYTES, "{growth_bytes} bytes more");
    for client in &silent {
        assert_eq!(client.take_error(), Some(Errno::CONNRESET), "10 MB were too much for it");
    }
    server.stop();
}
