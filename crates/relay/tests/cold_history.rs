//! The history of a room that nobody is in: read from a large history.db in a few pages, on the real server.

mod support;

use std::fmt::Write;
use std::fs;

use relay::storage::{Archive, Opened, Retention, Storage, open};
use relay_core::{Batch, Section};
use support::client::Client;
use support::server::Server;
use support::strace::Strace;
use support::{Data, Random, is_missing, wait_until};

const ROOMS: usize = 10_000;
/// Each pass says something in every room, so the segments of a room lie far from each other.
const PASSES: usize = 5;
const MESSAGES_PER_PASS: usize = 200;
const ROOMS_PER_COMMIT: usize = 250;
const SEED: u64 = 21;

/// The most pages that one history takes: page 1, which says whether the file has changed; three on the way down the index, three on the
/// way down the table; and the row, up to 32 KiB of messages with what describes them on ten pages. Here the last segment of a room always
/// has the 50 messages that are shown; where it is newer than that, the segment before it is read in the same way.
const PAGES_MAX: usize = 1 + 3 + 3 + 10;

fn room(number: usize) -> String {
    format!("room-{number}")
}

fn lines(pass: usize, room: usize) -> Vec<String> {
    (0..MESSAGES_PER_PASS).map(|number| format!("MESSAGE ada {pass}/{number} in {room}, a few words")).collect()
}

/// Ten million messages in the history.
fn ten_million_messages() -> Data {
    let data = Data::new();
    let opened = open(&data.path(), Retention::default(), &mut |_, _| {}).expect("the folder is new");
    let Opened { mut log, mut archive, sequence: mut committed, .. } = opened;
    for pass in 0..PASSES {
        for first in (0..ROOMS).step_by(ROOMS_PER_COMMIT) {
            let section = |number: usize| {
                let mut text = String::new();
                lines(pass, number).iter().for_each(|line| writeln!(text, "{line}").expect("a string takes it"));
                Section { room: room(number), message_count: MESSAGES_PER_PASS as u32, lines: text.into_bytes() }
            };
            let sections = (first..first + ROOMS_PER_COMMIT).map(section).collect();
            committed = log.commit(&Batch { sections }).expect("the disk works").sequence;
        }
        while archive.work(committed).expect("the disk works").folded < committed {}
    }
    data
}

#[test]
fn the_history_of_a_cold_room_among_ten_million_messages_is_a_few_page_reads() {
    if is_missing("strace") {
        return;
    }
    let data = ten_million_messages();
    let history_bytes = fs::metadata(data.path().join("history.db")).expect("there is a history").len();
    let server = Server::start(&data, &["--log", "warn"]);
    let mut random = Random(SEED);
    let mut reads = Vec::new();
    for _ in 0..20 {
        let number = random.below(ROOMS as u64) as usize;
        let mut client = Client::connect(server.address);
        let strace = Strace::attach(&data, archive_thread(server.pid()), &["-y", "-e", "trace=pread64,read,preadv,preadv2,mmap"]);
        client.say(&format!("JOIN eve {}", room(number)));
        client.hears(&format!("OK JOIN eve {}", room(number)));
        check_history(&mut client, number);
        let trace = strace.finish();
        let of_history: Vec<&str> = trace.lines().filter(|line| line.contains("/history.db>")).collect();
        assert!(of_history.iter().all(|line| line.starts_with("pread64(")), "{trace}");
        reads.push(of_history.len());
    }
    println!("history.db has {} MiB; page reads of 20 cold rooms, seed {SEED}: {reads:?}", history_bytes >> 20);
    assert!(reads.iter().all(|reads| (1..=PAGES_MAX).contains(reads)), "{reads:?}: at most {PAGES_MAX} pages");

    // Not held to anything: what it takes is for people to read.
    let mut times_us = Vec::new();
    for _ in 0..200 {
        let number = random.below(ROOMS as u64) as usize;
        let mut client = Client::connect(server.address);
        let start = started();
        client.send(format!("JOIN eve {}\nHISTORY\n", room(number)).as_bytes());
        client.hears(&format!("OK JOIN eve {}", room(number)));
        client.hears("HISTORY_BEGIN 50");
        while client.line().expect("a history") != "HISTORY_END" {}
        times_us.push(start.elapsed().as_micros());
    }
    times_us.sort_unstable();
    println!(
        "from JOIN and HISTORY to HISTORY_END: median {} us, 99 of 100 {} us, most {} us",
        times_us[100], times_us[198], times_us[199]
    );
    server.stop();
}

#[expect(clippy::disallowed_methods, reason = "it is printed, and nothing depends on it")]
fn started() -> std::time::Instant {
    std::time::Instant::now()
}

#[track_caller]
fn check_history(client: &mut Client, number: usize) {
    let all = lines(PASSES - 1, number);
    assert_eq!(client.history(), all[all.len() - 50..]);
}

/// The thread that reads histories. It gives itself its name.
fn archive_thread(pid: u32) -> u32 {
    let find = || {
        let tasks = fs::read_dir(format!("/proc/{pid}/task")).expect("it runs").filter_map(Result::ok);
        let named = |task: &fs::DirEntry| fs::read_to_string(task.path().join("comm")).is_ok_and(|name| name.trim() == "archive");
        tasks.into_iter().find(named).and_then(|task| task.file_name().to_str()?.parse().ok())
    };
    wait_until("a thread of the archive", || find().is_some());
    find().expect("it was there")
}
