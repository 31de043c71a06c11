//! What anybody has seen is stored: after `kill -9` at any moment, and in the order of system calls.

mod support;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::rc::Rc;

use miniloop::net::TcpStream;
use support::server::{Server, stored};
use support::strace::Strace;
use support::{Data, Random, Watchdog, is_missing};

const ROUNDS: usize = 50;
const ROOMS: [&str; 3] = ["attic", "cellar", "lounge"];
const SENDERS: [&str; 2] = ["ada", "bob"];
const WINDOW: usize = 32;

/// The moment is a number of messages seen, and this is where it is drawn from.
const MOMENT_MAX: u64 = 3_000;
const SEED: u64 = 5;

#[test]
fn after_fifty_kills_under_load_what_anybody_saw_is_stored_once_and_in_order() {
    let data = Data::new();
    let mut random = Random(SEED);
    let mut known: BTreeMap<&str, Vec<String>> = ROOMS.map(|room| (room, Vec::new())).into();
    for round in 0..ROUNDS {
        let server = Server::start(&data, &["--log", "warn"]);
        for (room, known) in &known {
            let history = server.join("historian", room).history();
            assert_eq!(history, known[known.len().saturating_sub(50)..], "round {round}, {room}: history after a restart");
        }
        let moment = 1 + random.below(MOMENT_MAX);
        let seen = talk_until_killed(server, round, moment);
        for (room, known) in &mut known {
            let now = stored(&data, room);
            assert!(now.starts_with(known), "round {round}, killed at {moment}: {room} has lost or moved something");
            let new = &now[known.len()..];
            check_once_and_in_order(new, round);
            for (member, seen) in seen.iter().filter(|((seen_room, _), _)| seen_room == room) {
                assert!(new.starts_with(seen), "round {round}, killed at {moment}: what {member:?} saw is not what is stored");
            }
            *known = now;
        }
    }
    let messages: usize = known.values().map(Vec::len).sum();
    assert!(messages > ROUNDS * MOMENT_MAX as usize / 10, "{messages} messages are hardly a load");
}

/// Each sender's messages of this round, from the first on, each once.
#[track_caller]
fn check_once_and_in_order(lines: &[String], round: usize) {
    let mut next = SENDERS.map(|sender| (sender, 0)).to_vec();
    for line in lines {
        let (sender, number) = next.iter_mut().find(|(sender, _)| line.starts_with(&format!("MESSAGE {sender} "))).expect("a sender");
        assert_eq!(*line, format!("MESSAGE {sender} {round}/{number}"));
        *number += 1;
    }
}

/// Has all rooms filled with messages until so many were seen, then kills the server. Returns what each member has seen.
fn talk_until_killed(server: Server, round: usize, moment: u64) -> Vec<((&'static str, &'static str), Vec<String>)> {
    let _watchdog = Watchdog::new();
    let members: Vec<(&str, &str)> = ROOMS.iter().flat_map(|room| ["ada", "bob", "eve"].map(|name| (*room, name))).collect();
    // All have joined before anybody speaks: each sees a room's messages from the first on.
    let streams: Vec<_> = members.iter().map(|(room, name)| server.join(name, room).into_stream()).collect();
    let killing = Rc::new(Killing { left: Cell::new(moment), server: Cell::new(Some(server)) });
    let seen = miniloop::run(async {
        let tasks: Vec<_> = members
            .iter()
            .zip(streams)
            .map(|((_, name), stream)| {
                let stream = TcpStream::from_std(stream).expect("there are descriptors left");
                miniloop::spawn(talk(stream, name, round, killing.clone()))
            })
            .collect();
        let mut seen = Vec::new();
        for task in tasks {
            seen.push(task.await.expect("no client panics"));
        }
        seen
    });
    members.into_iter().zip(seen.expect("the loop runs")).collect()
}

/// The server, and how many messages must still be seen until it is killed.
struct Killing {
    left: Cell<u64>,
    server: Cell<Option<Server>>,
}

impl Killing {
    fn saw(&self, messages: u64) {
        self.left.set(self.left.get().saturating_sub(messages));
        if self.left.get() == 0
            && let Some(server) = self.server.take()
        {
            server.kill();
        }
    }
}

/// Talks, if it is a sender, until the server is gone. Returns the lines that arrived, to the last whole one.
async fn talk(stream: TcpStream, name: &str, round: usize, killing: Rc<Killing>) -> Vec<String> {
    let (mut heard, mut buffer) = (Vec::new(), vec![0; 16 * 1024]);
    let mut number = 0;
    let mut room_for = if SENDERS.contains(&name) { WINDOW } else { 0 };
    loop {
        let commands: String = (0..std::mem::take(&mut room_for)).map(|ahead| format!("MSG {round}/{}\n", number + ahead)).collect();
        number += commands.lines().count();
        // A window is far less than the kernel takes, while there is a server.
        let _ = stream.try_write(commands.as_bytes());
        let len = match stream.read(&mut buffer).await {
            Ok(0) => break,
            Ok(len) => len,
            Err(error) if error.kind() == ErrorKind::ConnectionReset => break,
            Err(error) => panic!("cannot read: {error}"),
        };
        let before = lines_of(&heard).count();
        heard.extend_from_slice(&buffer[..len]);
        let new = lines_of(&heard).skip(before);
        let (messages, own) =
            new.fold((0, 0), |(all, own), line| (all + 1, own + usize::from(line.starts_with(&format!("MESSAGE {name} ")))));
        if SENDERS.contains(&name) {
            room_for = own;
        }
        killing.saw(messages);
    }
    lines_of(&heard).map(str::to_owned).collect()
}

/// The whole lines.
fn lines_of(bytes: &[u8]) -> impl Iterator<Item = &str> {
    let len = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    std::str::from_utf8(&bytes[..len]).expect("the server says valid text").lines()
}

#[test]
fn fdatasync_has_returned_before_a_message_is_sent_to_anybody() {
    if is_missing("strace") {
        return;
    }
    let data = Data::new();
    let server = Server::start_prepared(&data, &[]);
    let mut ada = server.join("ada", "lounge");
    let mut bob = server.join("bob", "lounge");
    let strace = Strace::attach(&data, server.pid(), &["-f", "-e", "trace=pwrite64,fdatasync,sendmsg,sendto,write,writev"]);
    ada.say("MSG hello");
    ada.hears("MESSAGE ada hello");
    bob.hears("MESSAGE ada hello");
    let trace = strace.finish();

    // Each line is a thread and a call; one that takes longer has a second line when it returns.
    let lines: Vec<&str> = trace.lines().collect();
    let shows = |line: &&str| line.contains("MESSAGE ada hello");
    let written = lines.iter().position(|line| shows(line) && line.contains("pwrite64(")).expect("it is written");
    let thread = lines[written].split(' ').next().expect("a thread");
    let is_synced = |line: &&str| line.starts_with(thread) && line.contains("fdatasync") && line.ends_with("= 0");
    let synced = written + lines[written..].iter().position(is_synced).expect("it is synced");
    let sent = lines.iter().position(|line| shows(line) && !line.contains("pwrite64(")).expect("it is sent");
    assert!(synced < sent, "{trace}");
}
