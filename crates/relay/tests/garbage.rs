//! Whatever strangers send and however they leave: nothing panics, and nothing is left behind.

mod support;

use std::alloc::System;
use std::net::Shutdown;
use std::time::Duration;

use relay_core::Settings;
use relay_core::limits::LINE_LEN_MAX_BYTES;
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use support::client::Client;
use support::server::Server;
use support::system::count_descriptors;
use support::world::{Peer, Told, World, in_virtual_time};
use support::{Data, Random, wait_until};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// What the storage may open meanwhile: the next log file, the one that the archive reads, and the journal of the history.
const FILES_LEN_MAX: usize = 3;

const VANISHING: usize = 10_000;

/// How many of them are connected at the same time.
const TOGETHER: usize = 100;

/// What one of them sends before it goes.
fn garbage(random: &mut Random) -> Vec<u8> {
    let len = random.below(300) as usize;
    match random.below(10) {
        0 => Vec::new(),
        1 => random.bytes(len),
        2 => vec![b'x'; LINE_LEN_MAX_BYTES + len],
        3 => [vec![b'x'; LINE_LEN_MAX_BYTES + len], b"\nMSG hello\n".to_vec()].concat(),
        4 => b"JOIN \xff\xfe lounge\nJOIN \xc3\n".to_vec(),
        5 => b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec(),
        6 => format!("JOIN guest-{} lounge\n", random.next()).into_bytes(),
        7 => format!("JOIN guest-{} lounge\nMSG I am here\nHISTORY\nMSG and now I am not\nQUI", random.next()).into_bytes(),
        8 => {
            [format!("JOIN guest-{} lounge\nMSG ", random.next()).into_bytes(), random.bytes(len), b"\nHISTORY\n\xf0\x9f".to_vec()].concat()
        }
        _ => format!("JOIN guest-{} lounge\nMSG bye\nQUIT\nHISTORY\n", random.next()).into_bytes(),
    }
}

#[test]
fn ten_thousand_who_send_anything_and_vanish_leave_no_descriptor_behind() {
    let data = Data::new();
    let server = Server::start(&data, &["--log", "warn"]);
    let mut random = Random(7);
    let mut ada = server.join("ada", "kitchen");
    ada.hears_nothing();
    let descriptors = count_descriptors(server.pid());
    for _ in 0..VANISHING / TOGETHER {
        let clients: Vec<Client> = (0..TOGETHER).map(|_| Client::connect(server.address)).collect();
        for mut client in clients {
            client.try_send(&garbage(&mut random));
            // Half of them leave politely.
            if random.below(2) == 0 {
                client.reset();
            }
        }
    }
    wait_until("all descriptors are closed", || count_descriptors(server.pid()) <= descriptors + FILES_LEN_MAX);
    ada.hears_nothing();
    ada.say("MSG still here");
    ada.hears("MESSAGE ada still here");
    assert!(count_descriptors(server.pid()) <= descriptors + FILES_LEN_MAX);
    assert_eq!(server.log(), "");
    server.stop();
}

#[test]
fn ten_thousand_who_send_anything_and_vanish_leave_no_allocation_behind() {
    in_virtual_time(Settings::default(), Told::nothing(), async |world: World| {
        let mut ada = Peer::join(&world, "ada", "lounge").await;
        let descriptors = count_descriptors(std::process::id());
        let mut random = Random(11);
        let mut live_bytes = Vec::with_capacity(VANISHING / 1_000);
        for _ in 0..VANISHING / 1_000 {
            for _ in 0..1_000 / TOGETHER {
                vanish(&world, &mut random).await;
                while count_descriptors(std::process::id()) > descriptors {
                    miniloop::sleep_until(miniloop::now()).await;
                }
            }
            fill_history(&mut ada).await;
            let stats = ALLOCATOR.stats();
            live_bytes.push(stats.bytes_allocated - stats.bytes_deallocated);
        }
        // By half-time every table has the size that a crowd needs. A byte for each that has gone since would be ten times this.
        let growth_bytes = live_bytes[live_bytes.len() - 1].saturating_sub(live_bytes[live_bytes.len() / 2]);
        assert!(growth_bytes < VANISHING / 2 / 10, "{live_bytes:?}");
    });
}

/// Makes the room's last messages the same each time: they are kept.
async fn fill_history(ada: &mut Peer) {
    ada.say("WHAT").await;
    while ada.line().await.as_deref() != Some("ERR expected MSG <text>, HISTORY, or QUIT") {}
    for number in 10..60 {
        ada.say(&format!("MSG {number}")).await;
        ada.hears(&format!("MESSAGE ada {number}")).await;
    }
}

async fn vanish(world: &World, random: &mut Random) {
    let mut peers = Vec::new();
    for _ in 0..TOGETHER {
        peers.push(Peer::connect(world).await);
    }
    for peer in peers {
        let _ = peer.stream.try_write(&garbage(random));
        match random.below(3) {
            0 => peer.stream.set_linger(Some(Duration::ZERO)).expect("it is a socket"),
            1 => peer.stream.shutdown(Shutdown::Write).expect("it is connected"),
            _ => {}
        }
    }
}

#[test]
fn garbage_is_answered_with_what_was_wrong_and_the_connection_goes_on() {
    let data = Data::new();
    let server = Server::start(&data, &[]);
    let mut ada = server.join("ada", "lounge");
    let too_long = vec![b'x'; 1_000_000];
    let cases: [(&[u8], &str); 6] = [
        (b"\xff\xff\xff", "ERR invalid text"),
        (b"MSG \xc3\x28", "ERR invalid text"),
        (b"MSG \x1b[2J", "ERR invalid text"),
        (b"MSG \0", "ERR invalid text"),
        (&too_long, "ERR line too long"),
        (b"", "ERR expected MSG <text>, HISTORY, or QUIT"),
    ];
    for (line, answer) in cases {
        ada.send(&[line, b"\n"].concat());
        ada.hears(answer);
    }
    ada.say("MSG all well");
    ada.hears("MESSAGE ada all well");
    let mut browser = Client::connect(server.address);
    browser.send(b"POST / HTTP/1.1\r\n\r\nJOIN eve lounge\r\n");
    assert_eq!(browser.hears_to_the_end().0, [""; 0]);
    assert_eq!(ada.history(), ["MESSAGE ada all well"]);
}
