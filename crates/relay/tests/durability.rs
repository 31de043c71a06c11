//! What anybody has seen is stored: after `kill -9` at any moment, and in the order of system calls.

mod support;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::rc::Rc;

use miniloop::net::TcpStream;
use support::folding::{Stopped, TransactionCounter, stopped};
use support::server::{Server, Starting, stored};
use support::strace::Strace;
use support::{Data, Random, Watchdog, is_missing};

/// Data folders, each of which has all of [`KILLS`]: what is stored does not grow until checking it is all that the test does.
const FOLDERS: usize = 10;
const KILLS: [Kill; 20] = {
    let mut kills = [Kill::Talking; 20];
    kills[8] = Kill::Folding;
    let mut index = 9;
    while index < 16 {
        kills[index] = Kill::Starting;
        index += 1;
    }
    kills
};

const ROOMS: [&str; 3] = ["attic", "cellar", "lounge"];
const SENDERS: [&str; 2] = ["ada", "bob"];
const WINDOW: usize = 32;
const SEED: u64 = 5;

/// The moment of a kill among short messages is a number of them seen, up to this.
const SEEN_MAX: u64 = 3_000;
/// Among long messages it is a transaction of the fold that they set off, up to this; but never more messages seen than this, some times
/// what a fold needs that rests between its pieces.
const TRANSACTIONS_MAX: u64 = 20;
const LONG_SEEN_MAX: u64 = 300_000;
/// And in a start, which goes on with that fold, a transaction up to this. Several starts have to be killed until it is done.
const START_TRANSACTIONS_MAX: u64 = 6;
/// A kill comes up to so many looks at the journal after its transaction has begun. A look takes some microseconds.
const LOOKS_MAX: u64 = 300;
/// A start that is to be killed before it folds is killed after up to so many looks.
const FIRST_LOOKS_MAX: u64 = 3_000;

/// A long message is 4,000 bytes. Its text says so, so that one that is cut off is not taken for a short one.
const PADDING: &str = {
    const BYTES: [u8; 3_970] = [b'x'; 3_970];
    match std::str::from_utf8(&BYTES) {
        Ok(padding) => padding,
        Err(_) => panic!("x is a letter"),
    }
};

/// When a server is killed.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Kill {
    /// While short messages are said.
    Talking,
    /// While long messages are said and those before them are moved into the history.
    Folding,
    /// While a start moves into the history what stands in the log.
    Starting,
}

#[test]
fn after_two_hundred_kills_under_load_and_in_folds_what_anybody_saw_is_stored_once_and_in_order() {
    let mut random = Random(SEED);
    let (mut live, mut in_transaction, mut between_transactions, mut messages) = (0, 0, 0, 0);
    for folder in 0..FOLDERS {
        let data = Data::new();
        let mut rooms = Rooms::default();
        for (index, kill) in KILLS.into_iter().enumerate() {
            let round = folder * KILLS.len() + index;
            if kill == Kill::Starting {
                kill_a_start(&data, &mut random);
            } else {
                let server = Server::start(&data, &["--log", "warn"]);
                rooms.check(&data, &ROOMS);
                rooms.check_histories(&server);
                rooms.talked = Some(talk_until_killed(server, &data, round, kill, &mut random));
            }
            live += usize::from(kill == Kill::Folding && stopped(&data) != Stopped::Outside);
            match stopped(&data) {
                // Only a start may take it back: it is looked at beside the next one.
                Stopped::InTransaction => in_transaction += 1,
                Stopped::BetweenTransactions => between_transactions += 1,
                Stopped::Outside => {}
            }
            if stopped(&data) != Stopped::InTransaction {
                // As the log and the history have it together. All rooms are looked at beside the next server that listens.
                let room = ROOMS[random.below(3) as usize];
                rooms.check(&data, &[room]);
            }
        }
        let server = Server::start(&data, &["--log", "warn"]);
        rooms.check(&data, &ROOMS);
        rooms.check_histories(&server);
        server.stop();
        rooms.check(&data, &ROOMS);
        messages += rooms.known.values().map(Vec::len).sum::<usize>();
    }
    let kills = FOLDERS * KILLS.len();
    println!(
        "{kills} kills, seed {SEED}: {in_transaction} in a transaction of a fold, {between_transactions} between two of one; {live} of \
         those beside commits, the others in a start; {messages} messages stored"
    );
    assert!(in_transaction + between_transactions >= kills / 4, "few kills hit a fold");
    assert!(in_transaction > 0 && between_transactions > 0 && live > FOLDERS / 2, "kills hit folds in too few ways");
    assert!(messages > kills * SEEN_MAX as usize / 10, "{messages} messages are hardly a load");
}

/// What is known of each room. Messages are without their padding.
#[derive(Default)]
struct Rooms {
    known: BTreeMap<&'static str, Vec<String>>,
    /// What was said since all rooms were looked at.
    talked: Option<Talked>,
}

/// A round of talk that ended with a kill.
struct Talked {
    round: usize,
    kill: Kill,
    /// What each member has seen, from the first message on.
    seen: Vec<((&'static str, &'static str), Vec<String>)>,
}

impl Rooms {
    /// What is stored of these rooms is what was known, and behind it what was said since then, at least as far as anybody saw it.
    #[track_caller]
    fn check(&mut self, data: &Data, rooms: &[&'static str]) {
        for room in rooms {
            let now: Vec<String> = stored(data, room).iter().map(|line| without_padding(line)).collect();
            let known = self.known.entry(room).or_default();
            assert!(now.starts_with(known), "{room} has lost or moved something");
            let new = &now[known.len()..];
            let Some(Talked { round, kill, seen }) = &self.talked else {
                assert_eq!(new, [""; 0], "{room}: nobody has said this");
                continue;
            };
            check_once_and_in_order(new, *round, *kill);
            for (member, seen) in seen.iter().filter(|((seen_room, _), _)| seen_room == room) {
                assert!(new.starts_with(seen), "round {round}, {kill:?}: what {member:?} saw is not what is stored");
            }
            if rooms.len() == ROOMS.len() {
                *known = now;
            }
        }
        if rooms.len() == ROOMS.len() {
            self.talked = None;
        }
    }

    /// The server shows the end of what is known.
    #[track_caller]
    fn check_histories(&self, server: &Server) {
        for (room, known) in &self.known {
            let history: Vec<String> = server.join("historian", room).history().iter().map(|line| without_padding(line)).collect();
            assert_eq!(history, known[known.len().saturating_sub(50)..], "{room}: history after a restart");
        }
    }
}

/// Each sender's messages of this round, from the first on, each once.
#[track_caller]
fn check_once_and_in_order(lines: &[String], round: usize, kill: Kill) {
    let mut next = SENDERS.map(|sender| (sender, 0)).to_vec();
    for line in lines {
        let (sender, number) = next.iter_mut().find(|(sender, _)| line.starts_with(&format!("MESSAGE {sender} "))).expect("a sender");
        let text = text(round, kill, *number);
        assert_eq!(*line, without_padding(&format!("MESSAGE {sender} {text}")));
        *number += 1;
    }
}

fn text(round: usize, kill: Kill, number: usize) -> String {
    match kill {
        Kill::Folding => format!("{round}/{number}+ {PADDING}"),
        Kill::Talking | Kill::Starting => format!("{round}/{number}"),
    }
}

/// The line without what makes it long, which must be all there.
#[track_caller]
fn without_padding(line: &str) -> String {
    match line.split_once("+ ") {
        Some((short, padding)) => {
            assert_eq!(padding, PADDING, "after {short}");
            format!("{short}+")
        }
        None => {
            assert!(!line.contains('+'), "{line} has lost its end");
            line.to_owned()
        }
    }
}

/// Kills a server before it listens, while it folds what the one before has left; if it is faster, after that.
fn kill_a_start(data: &Data, random: &mut Random) {
    let transactions = random.below(1 + START_TRANSACTIONS_MAX);
    let looks = random.below(if transactions == 0 { FIRST_LOOKS_MAX } else { LOOKS_MAX });
    let starting = Starting::begin(data, &["--log", "warn"]);
    let mut counter = TransactionCounter::default();
    while counter.count < transactions && !starting.is_over() {
        counter.look(data);
        std::thread::yield_now();
    }
    for _ in 0..looks {
        counter.look(data);
    }
    starting.kill();
}

/// Has all rooms filled with messages until the moment has come, then kills the server. Returns what each member has seen.
fn talk_until_killed(server: Server, data: &Data, round: usize, kill: Kill, random: &mut Random) -> Talked {
    let _watchdog = Watchdog::new();
    let members: Vec<(&str, &str)> = ROOMS.iter().flat_map(|room| ["ada", "bob", "eve"].map(|name| (*room, name))).collect();
    // All have joined before anybody speaks: each sees a room's messages from the first on.
    let streams: Vec<_> = members.iter().map(|(room, name)| server.join(name, room).into_stream()).collect();
    let (seen_max, transactions) = match kill {
        Kill::Folding => (LONG_SEEN_MAX, 1 + random.below(TRANSACTIONS_MAX)),
        Kill::Talking | Kill::Starting => (1 + random.below(SEEN_MAX), u64::MAX),
    };
    let killing = Rc::new(Killing {
        left: Cell::new(seen_max),
        transactions,
        looks: random.below(LOOKS_MAX),
        counter: RefCell::default(),
        server: Cell::new(Some(server)),
        data: Data::at(data.path()),
    });
    let seen = miniloop::run(async {
        let mut tasks = Vec::new();
        for ((_, name), stream) in members.iter().zip(streams) {
            let stream = TcpStream::from_std(stream).expect("there are descriptors left");
            tasks.push(miniloop::spawn(talk(stream, name, round, kill, killing.clone())));
        }
        let mut seen = Vec::new();
        for task in tasks {
            seen.push(task.await.expect("no client panics"));
        }
        seen
    });
    Talked { round, kill, seen: members.into_iter().zip(seen.expect("the loop runs")).collect() }
}

/// The server, and what must still happen until it is killed.
struct Killing {
    /// So many messages are seen.
    left: Cell<u64>,
    /// Or so many transactions of a fold have begun, and the history was looked at so often after that.
    transactions: u64,
    looks: u64,
    counter: RefCell<TransactionCounter>,
    server: Cell<Option<Server>>,
    data: Data,
}

impl Killing {
    fn saw(&self, messages: u64) {
        self.left.set(self.left.get().saturating_sub(messages));
        let mut counter = self.counter.borrow_mut();
        if self.transactions != u64::MAX {
            counter.look(&self.data);
        }
        if (self.left.get() == 0 || counter.count >= self.transactions)
            && let Some(server) = self.server.take()
        {
            for _ in 0..self.looks {
                counter.look(&self.data);
            }
            server.kill();
        }
    }
}

/// Talks, if it is a sender, until the server is gone. Returns the lines that arrived, to the last whole one.
async fn talk(stream: TcpStream, name: &str, round: usize, kill: Kill, killing: Rc<Killing>) -> Vec<String> {
    let (mut seen, mut unread, mut buffer) = (Vec::new(), Vec::new(), vec![0; 64 * 1024]);
    let mut number = 0;
    let mut room_for = if SENDERS.contains(&name) { WINDOW } else { 0 };
    loop {
        let commands: String = (number..number + room_for).map(|number| format!("MSG {}\n", text(round, kill, number))).collect();
        number += std::mem::take(&mut room_for);
        // A window is less than the kernel takes, while there is a server.
        let _ = stream.try_write(commands.as_bytes());
        let len = match stream.read(&mut buffer).await {
            Ok(0) => break,
            Ok(len) => len,
            Err(error) if error.kind() == ErrorKind::ConnectionReset => break,
            Err(error) => panic!("cannot read: {error}"),
        };
        unread.extend_from_slice(&buffer[..len]);
        let whole = unread.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let before = seen.len();
        seen.extend(std::str::from_utf8(&unread[..whole]).expect("the server says valid text").lines().map(without_padding));
        unread.drain(..whole);
        if SENDERS.contains(&name) {
            room_for = seen[before..].iter().filter(|line| line.starts_with(&format!("MESSAGE {name} "))).count();
        }
        killing.saw((seen.len() - before) as u64);
    }
    seen
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
