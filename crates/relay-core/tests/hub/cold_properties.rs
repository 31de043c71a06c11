//! Rooms that come into memory and go, against a model: random clients, commits and refusals, and an archive that is slow and fails.

use std::collections::BTreeSet;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use relay_core::limits::HISTORY_LEN_MAX_MESSAGES;
use relay_core::{CloseReason, CommitError, Settings};

use crate::world::World;

const COMMAND_ERROR: &str = "ERR expected MSG <text>, HISTORY, or QUIT\n";
const NAMES: [&str; 5] = ["ann", "ben", "cid", "dan", "eve"];
const ROOMS: [&str; 2] = ["blue", "green"];

#[derive(Clone, Debug)]
enum Step {
    /// Who is not there joins this room.
    Join(usize, usize),
    Messages(usize, usize),
    /// A message, a `HISTORY` and something else, so many times in one write.
    Mixed(usize, usize),
    History(usize),
    Leave(usize, Leave),
    Take,
    Commit,
    Refuse,
    /// Every commit but so many is archived.
    Archive(u64),
    /// The archive answers one question, whichever it is, or says that it cannot.
    Answer(usize, bool),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Leave {
    Quit,
    End,
    Lost,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let client = 0..NAMES.len();
    let leave = prop_oneof![2 => Just(Leave::Quit), 2 => Just(Leave::End), 1 => Just(Leave::Lost)];
    let step = prop_oneof![
        6 => (client.clone(), 0..ROOMS.len()).prop_map(|(client, room)| Step::Join(client, room)),
        5 => (client.clone(), 1..40_usize).prop_map(|(client, count)| Step::Messages(client, count)),
        3 => (client.clone(), 1..5_usize).prop_map(|(client, count)| Step::Mixed(client, count)),
        5 => client.clone().prop_map(Step::History),
        4 => (client, leave).prop_map(|(client, leave)| Step::Leave(client, leave)),
        1 => Just(Step::Take),
        6 => Just(Step::Commit),
        2 => Just(Step::Refuse),
        4 => (0..3_u64).prop_map(Step::Archive),
        6 => (any::<usize>(), prop::bool::weighted(0.7)).prop_map(|(place, succeeds)| Step::Answer(place, succeeds)),
    ];
    vec(step, 1..200)
}

/// A client from its `JOIN` to its end.
struct Session {
    /// What the world knows it by.
    connection: String,
    name: &'static str,
    room: &'static str,
    /// The room's messages that were committed before it joined.
    joined_after: usize,
    /// What it sent and what is to be answered.
    requests: Vec<String>,
    leave: Option<Leave>,
    /// Everything it received.
    stream: String,
}

impl Session {
    /// The stream against the room's messages, of which this is everything that is committed by now. So it is known at each place of the
    /// stream what had been committed, and nothing else may be in a history there.
    fn verify(&self, world: &World, failed: &BTreeSet<String>) {
        let committed: Vec<&str> = world.archive.get(self.room).into_iter().flatten().map(|(_, line)| line.as_str()).collect();
        let mut requests = self.requests.iter();
        let mut seen = self.joined_after;
        let mut lines = self.stream.split_inclusive('\n');
        let own = format!("MESSAGE {} ", self.name);
        assert_eq!(lines.next(), Some(format!("OK JOIN {} {}\n", self.name, self.room).as_str()));
        while let Some(line) = lines.next() {
            if let Some(count) = line.strip_prefix("HISTORY_BEGIN ") {
                assert_eq!(requests.next().map(String::as_str), Some("HISTORY"));
                let expected = &committed[..seen][seen.saturating_sub(HISTORY_LEN_MAX_MESSAGES)..];
                assert_eq!(count.trim_end().parse(), Ok(expected.len()));
                let history: Vec<&str> = lines.by_ref().take(expected.len()).collect();
                assert_eq!(history, expected);
                assert_eq!(lines.next(), Some("HISTORY_END\n"));
            } else if line.starts_with("MESSAGE ") {
                assert_eq!(committed.get(seen), Some(&line), "every message is shown, once, in order");
                seen += 1;
                // Who had the name before may have left a message behind.
                let own = line.strip_prefix(&own).map(|text| format!("MSG {}", text.trim_end()));
                if own.as_ref().is_some_and(|message| self.requests.contains(message)) {
                    assert_eq!(requests.next(), own.as_ref());
                }
            } else if line == "ERR storage full\n" {
                assert!(requests.next().is_some_and(|request| request.starts_with("MSG ")));
            } else if line == "ERR history unavailable\n" {
                assert_eq!(requests.next().map(String::as_str), Some("HISTORY"));
                assert!(failed.contains(self.room));
            } else {
                let request = requests.next().map(String::as_str);
                assert!(matches!((line, request), (COMMAND_ERROR, Some("hello")) | ("OK QUIT\n", Some("QUIT"))), "{line:?} to {request:?}");
            }
        }
        if self.leave.is_none_or(|leave| leave != Leave::Lost) {
            assert_eq!(requests.next(), None, "everything is answered");
        }
        if self.leave.is_none() {
            assert_eq!(seen, committed.len(), "everything is shown");
        }
    }
}

/// The clients' side of a world whose archive is slow and fails.
struct Play {
    world: World,
    sessions: [Option<Session>; NAMES.len()],
    /// Rooms that could not be loaded at least once.
    failed: BTreeSet<String>,
    next_number: u32,
}

impl Play {
    fn step(&mut self, step: &Step) {
        let Play { world, .. } = self;
        let has_uncommitted = world.hub.uncommitted_len_bytes() > 0;
        match *step {
            Step::Join(client, room) if self.sessions[client].is_none() => self.join(client, room),
            Step::Messages(client, count) => self.send(client, &["MSG"], count),
            Step::Mixed(client, count) => self.send(client, &["MSG", "HISTORY", "hello"], count),
            Step::History(client) => self.send(client, &["HISTORY"], 1),
            Step::Leave(client, leave) => self.leave(client, leave),
            Step::Take if has_uncommitted && !world.is_committing() => world.take(),
            Step::Commit if has_uncommitted => world.commit(),
            Step::Refuse if has_uncommitted => world.refuse(CommitError::Full),
            Step::Archive(behind) => {
                let commits = world.hub.counters().commits.saturating_sub(behind).max(world.archived);
                world.archive_up_to(commits);
            }
            Step::Answer(place, succeeds) if !world.loads.is_empty() => {
                let name = world.loads[place % world.loads.len()].name.clone();
                if !succeeds {
                    self.failed.insert(name.clone());
                }
                world.answer_load(&name, succeeds);
            }
            Step::Join(..) | Step::Take | Step::Commit | Step::Refuse | Step::Answer(..) => {}
        }
        self.end_sessions();
    }

    fn join(&mut self, client: usize, room: usize) {
        let (name, room) = (NAMES[client], ROOMS[room]);
        let joined_after = self.world.archive.get(room).map_or(0, Vec::len);
        let connection = format!("{name} {}", self.world.hub.counters().connections);
        self.world.connect(&connection, "127.0.0.1".parse().unwrap()).unwrap();
        self.world.send(&connection, format!("JOIN {name} {room}\n"));
        self.sessions[client] =
            Some(Session { connection, name, room, joined_after, requests: Vec::new(), leave: None, stream: String::new() });
    }

    fn send(&mut self, client: usize, words: &[&str], count: usize) {
        let Some(Session { connection, requests, leave: None, .. }) = &mut self.sessions[client] else { return };
        let before = requests.len();
        for _ in 0..count {
            requests.extend(words.iter().map(|word| if *word == "MSG" { format!("MSG {}", self.next_number) } else { word.to_string() }));
            self.next_number += 1;
        }
        self.world.send(connection, requests[before..].join("\n") + "\n");
    }

    fn leave(&mut self, client: usize, how: Leave) {
        let Some(Session { connection, requests, leave, .. }) = &mut self.sessions[client] else { return };
        if leave.is_none() || how == Leave::Lost {
            *leave = Some(how);
            match how {
                Leave::Quit => {
                    requests.push("QUIT".to_owned());
                    self.world.send(connection, "QUIT\n");
                }
                Leave::End => self.world.end(connection),
                Leave::Lost => self.world.lose(connection),
            }
        }
    }

    /// Looks at those whose end was announced, and forgets them.
    fn end_sessions(&mut self) {
        for place in &mut self.sessions {
            let Some(session) = place else { continue };
            session.stream += &self.world.received(&session.connection);
            if let Some(closed) = self.world.take_closed(&session.connection) {
                let reason = match session.leave.expect("nobody is closed without a reason") {
                    Leave::Quit => CloseReason::Quit,
                    Leave::End => CloseReason::EndOfInput,
                    Leave::Lost => CloseReason::ConnectionLost,
                };
                assert_eq!(closed.reason, reason);
                let session = place.take().unwrap();
                session.verify(&self.world, &self.failed);
            }
        }
    }

    /// Everything is answered and committed; then everybody leaves.
    fn finish(mut self) {
        while self.world.hub.uncommitted_len_bytes() > 0 || !self.world.loads.is_empty() {
            self.step(&Step::Answer(0, true));
            self.step(&Step::Commit);
        }
        let committed: usize = self.world.archive.values().map(Vec::len).sum();
        assert_eq!(self.world.hub.counters().messages_committed, committed as u64);
        for session in self.sessions.iter().flatten() {
            session.verify(&self.world, &self.failed);
        }
        for client in 0..NAMES.len() {
            self.step(&Step::Leave(client, Leave::End));
        }
        assert_eq!(self.world.hub.connection_count(), 0);
        self.step(&Step::Archive(0));
        let counters = self.world.hub.counters();
        assert_eq!(self.world.hub.room_count(), 0);
        assert!(counters.rooms_loaded <= counters.rooms_forgotten);
    }
}

/// The same programs at every run of the suite; with `PROPTEST_CASES`, so many others.
fn config() -> ProptestConfig {
    let campaign = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
    if std::env::var_os("PROPTEST_CASES").is_some() {
        return campaign;
    }
    ProptestConfig { cases: 512, rng_seed: RngSeed::Fixed(5), ..campaign }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn every_history_is_what_was_committed_before_it_whatever_was_forgotten_and_loaded(
        steps in steps(),
        read_len_max in prop::sample::select(vec![64 * 1024, 17]),
    ) {
        let mut world = World::new(Settings { heartbeat_interval: None, ..Settings::default() });
        world.holds_loads = true;
        world.read_len_max = read_len_max;
        let mut play = Play { world, sessions: Default::default(), failed: BTreeSet::new(), next_number: 0 };
        for step in &steps {
            play.step(step);
        }
        play.finish();
    }
}
