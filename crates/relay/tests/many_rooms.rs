//! A hundred thousand rooms with one message each, on the real server: what they cost while they are in use, after they were folded, on the
//! disk, and at a restart.

mod support;

use std::fs;
use std::net::{SocketAddr, SocketAddrV4};
use std::rc::Rc;

use miniloop::net::TcpStream;
use support::server::{Server, stored};
use support::system::{rss_of, rss_peak_of};
use support::{Data, Random};

const ROOMS: usize = 100_000;
/// Clients at a time.
const CLIENTS: usize = 256;
const SEED: u64 = 31;

/// Messages of nearly 4 KiB, in commits of one each: the log is folded after 4,096 of them, and the fold takes as long as many more.
const SAID_MAX: usize = 100_000;
const SAID_STEP: usize = 500;
const LONG_TEXT_BYTES: usize = 4_000;

/// A room that is in memory takes about 1 KiB, and the fold of all of them a window of 32 MiB. What a process has had, it does not all give
/// back.
const RSS_BYTES_MAX: u64 = 256 << 20;
/// A row with its entries in two indexes, on pages that are not all full.
const DISK_BYTES_PER_ROOM_MAX: u64 = 1024;
/// What a restart reads when everything is folded: the log's last file and up to two that are ready behind it, 64 MiB each, which must hold
/// zeros to their ends; and beside them programs, and a few pages of the history. Nothing of it grows with the rooms.
const RESTART_READ_BYTES_MAX: u64 = 3 * (64 << 20) + (2 << 20);

fn room(number: usize) -> String {
    format!("room-{number}")
}

#[test]
fn a_hundred_thousand_rooms_are_served_and_leave_memory_when_they_are_folded() {
    let data = Data::new();
    let server = Server::start(&data, &["--log", "warn", "--heartbeat-interval", "0"]);
    let rss_empty_bytes = rss_of(server.pid());
    say_something_in_every_room(server.address);
    let (in_memory, rss_full_bytes) = (server.number("relay_rooms_in_memory"), rss_of(server.pid()));

    // One room has people in it, and they talk until the log is folded and the others are forgotten.
    let mut ada = server.join("ada", "lounge");
    let mut said = 0;
    while server.number("relay_rooms_in_memory") > 1 {
        assert!(said < SAID_MAX, "rooms that nobody is in stay in memory");
        for _ in 0..SAID_STEP {
            ada.say(&format!("MSG {}", "x".repeat(LONG_TEXT_BYTES)));
            ada.line().expect("it is stored");
        }
        said += SAID_STEP;
    }
    let rss_folded_bytes = rss_of(server.pid());
    check_sample(&server, &mut Random(SEED));
    assert_eq!(server.number("relay_rooms_in_memory"), 1);
    println!(
        "{in_memory} rooms in memory before the fold; resident MiB: {} empty, {} with all rooms, {} after the fold, {} at most",
        rss_empty_bytes >> 20,
        rss_full_bytes >> 20,
        rss_folded_bytes >> 20,
        rss_peak_of(server.pid()) >> 20
    );
    assert!(rss_peak_of(server.pid()) < RSS_BYTES_MAX, "the server has had {} bytes", rss_peak_of(server.pid()));
    server.stop();

    // The next start folds the rest, the one after that has nothing to do.
    Server::start(&data, &["--log", "warn"]).stop();
    let server = Server::start(&data, &["--log", "warn", "--heartbeat-interval", "0"]);
    let read_bytes = read_bytes_of(server.pid());
    assert_eq!(server.number("relay_rooms_in_memory"), 0);
    let rss_restarted_bytes = rss_of(server.pid());
    check_sample(&server, &mut Random(SEED + 1));
    server.stop();
    let talk_bytes = (said * (LONG_TEXT_BYTES + "MESSAGE ada \n".len())) as u64;
    let history_bytes = fs::metadata(data.path().join("history.db")).expect("there is a history").len();
    let bytes_per_room = history_bytes.saturating_sub(talk_bytes) / ROOMS as u64;
    println!(
        "{bytes_per_room} bytes of the history per room; a restart reads {read_bytes} bytes and has {} MiB",
        rss_restarted_bytes >> 20
    );
    assert!(bytes_per_room < DISK_BYTES_PER_ROOM_MAX, "a room takes {bytes_per_room} bytes");
    assert!(read_bytes < RESTART_READ_BYTES_MAX, "a restart reads {read_bytes} bytes");
    assert!(rss_restarted_bytes < rss_full_bytes, "a restart has {rss_restarted_bytes} bytes");
    for number in [0, 1, ROOMS / 2, ROOMS - 1] {
        assert_eq!(stored(&data, &room(number)), [format!("MESSAGE eve hello {number}")]);
    }
}

#[track_caller]
fn check_sample(server: &Server, random: &mut Random) {
    for _ in 0..300 {
        let number = random.below(ROOMS as u64) as usize;
        let mut client = server.join("bob", &room(number));
        assert_eq!(client.history(), [format!("MESSAGE eve hello {number}")], "seed {SEED}");
        client.quit();
    }
}

/// Many clients at a time, each of which goes through rooms of its own.
fn say_something_in_every_room(address: SocketAddr) {
    let SocketAddr::V4(address) = address else { panic!("{address}: the tests use IPv4") };
    let next = Rc::new(std::cell::Cell::new(0));
    let done = miniloop::run(async move {
        let mut clients = Vec::new();
        for _ in 0..CLIENTS {
            let next = next.clone();
            clients.push(miniloop::spawn(async move {
                loop {
                    let number = next.replace(next.get() + 1);
                    if number >= ROOMS {
                        return;
                    }
                    say_hello(address, number).await;
                }
            }));
        }
        for client in clients {
            client.await.expect("no client panics");
        }
    });
    done.expect("the loop runs");
}

async fn say_hello(address: SocketAddrV4, number: usize) {
    let stream = TcpStream::connect(address).await.expect("the server listens");
    let room = room(number);
    let requests = format!("JOIN eve {room}\nMSG hello {number}\nQUIT\n");
    let written = stream.write(requests.as_bytes()).await.expect("the server takes it");
    assert_eq!(written, requests.len());
    let (mut heard, mut buffer) = (Vec::new(), [0; 256]);
    loop {
        match stream.read(&mut buffer).await.expect("the server answers") {
            0 => break,
            len => heard.extend_from_slice(&buffer[..len]),
        }
    }
    let expected = format!("OK JOIN eve {room}\nMESSAGE eve hello {number}\nOK QUIT\n");
    assert_eq!(String::from_utf8_lossy(&heard), expected);
}

/// What a process has read from files and sockets so far.
fn read_bytes_of(pid: u32) -> u64 {
    let io = fs::read_to_string(format!("/proc/{pid}/io")).expect("it runs");
    io.lines().find_map(|line| line.strip_prefix("rchar: ")?.parse().ok()).expect("the kernel says it")
}
