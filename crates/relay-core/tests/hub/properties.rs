//! What holds for every program: random requests, commits, refusals and slow clients.

use std::collections::VecDeque;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use relay_core::limits::{
    BATCH_MAX_BYTES, BEHIND_MAX_BYTES, HISTORY_LEN_MAX_MESSAGES, LINE_LEN_MAX_BYTES, SECTION_OVERHEAD_BYTES, UNCOMMITTED_MAX_BYTES,
};
use relay_core::{CloseReason, CommitError, Settings};

use crate::world::World;

const NAMES: [&str; 4] = ["ann", "ben", "cid", "dan"];

/// Two share a room, one is alone, one has large messages to himself.
const ROOMS: [&str; 4] = ["blue", "blue", "green", "blue"];

#[derive(Clone, Debug)]
enum Step {
    Request(usize, Request),
    /// So many numbered messages in one write, each of this length.
    Burst(usize, usize, usize),
    /// So many times all requests in one write, more than is answered before the next commit.
    Mixed(usize, usize),
    Take,
    Commit,
    Refuse,
    /// The client takes so many more bytes.
    Kernel(usize, usize),
    /// The client closes its side; it asks for nothing more.
    End(usize),
}

#[derive(Clone, Debug, PartialEq)]
enum Request {
    Message(String),
    History,
    Unknown,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let client = 0..NAMES.len();
    let step = prop_oneof![
        6 => client.clone().prop_map(|client| Step::Burst(client, 1, 1)),
        3 => (client.clone(), 1..80_usize, 1..3000_usize).prop_map(|(client, count, len)| Step::Burst(client, count, len)),
        2 => (client.clone(), 1..20_usize).prop_map(|(client, count)| Step::Mixed(client, count)),
        3 => client.clone().prop_map(|client| Step::Request(client, Request::History)),
        3 => client.clone().prop_map(|client| Step::Request(client, Request::Unknown)),
        1 => Just(Step::Take),
        4 => Just(Step::Commit),
        1 => Just(Step::Refuse),
        1 => (client.clone(), 0..100_000_usize).prop_map(|(client, len)| Step::Kernel(client, len)),
        1 => client.clone().prop_map(|client| Step::Kernel(client, usize::MAX)),
        1 => client.prop_map(Step::End),
    ];
    vec(step, 1..60)
}

/// How a client's stream has ended.
#[derive(Clone, Copy, PartialEq)]
enum End {
    /// Not at all: everything was shown.
    Open,
    /// The client closed its side: everything was answered.
    Answered,
    /// It was cut.
    Cut,
}

/// One client's stream against what it asked for and what was stored.
fn verify(stream: &str, name: &str, requests: &[Request], stored: &[String], end: End) {
    let mut requests: VecDeque<&Request> = requests.iter().collect();
    let mut seen: Vec<&str> = Vec::new();
    let mut lines = stream.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
    let own = format!("MESSAGE {name} ");
    while let Some(line) = lines.next() {
        if let Some(count) = line.strip_prefix("HISTORY_BEGIN ") {
            assert_eq!(requests.pop_front(), Some(&Request::History));
            let last = &seen[seen.len().saturating_sub(HISTORY_LEN_MAX_MESSAGES)..];
            assert_eq!(count.parse(), Ok(last.len()));
            for message in last {
                // The end of a stream that was cut may be missing.
                let Some(line) = lines.next() else { break };
                assert_eq!(line, *message, "a history is what was shown before it");
            }
            assert!(matches!(lines.next(), Some("HISTORY_END") | None));
        } else if line.starts_with("MESSAGE ") {
            seen.push(line);
            if let Some(text) = line.strip_prefix(&own) {
                assert_eq!(requests.pop_front(), Some(&Request::Message(text.to_owned())), "answers come in the order of the requests");
            }
        } else if line == "ERR storage full" {
            assert!(matches!(requests.pop_front(), Some(Request::Message(_))));
        } else {
            assert_eq!((line, requests.pop_front()), ("ERR expected MSG <text>, HISTORY, or QUIT", Some(&Request::Unknown)));
        }
    }
    assert!(stored.iter().zip(&seen).all(|(stored, seen)| stored == seen), "messages come once, in the order of the commits");
    assert!(seen.len() <= stored.len());
    assert!(end == End::Cut || requests.is_empty(), "everything is answered");
    assert!(end != End::Open || seen.len() == stored.len(), "everything is shown");
}

fn play(steps: &[Step], read_len_max: usize) {
    let mut world = World::new(Settings { heartbeat_interval: None, ..Settings::default() });
    world.read_len_max = read_len_max;
    let mut requests: [Vec<Request>; 4] = Default::default();
    let mut has_ended = [false; 4];
    for (name, room) in NAMES.iter().zip(ROOMS) {
        world.join(name, room);
    }
    let mut next_number = 0;
    for step in steps {
        match step {
            Step::Request(client, _) | Step::Burst(client, ..) | Step::Mixed(client, _) if has_ended[*client] => {}
            Step::Request(client, request) => {
                requests[*client].push(request.clone());
                world.send(NAMES[*client], if *request == Request::History { "HISTORY\n" } else { "hello\n" });
            }
            Step::Burst(client, count, len) => {
                let mut bytes = String::new();
                for _ in 0..*count {
                    let text = format!("{next_number:0len$}");
                    next_number += 1;
                    bytes += &format!("MSG {text}\n");
                    requests[*client].push(Request::Message(text));
                }
                world.send(NAMES[*client], bytes);
            }
            Step::Mixed(client, count) => {
                let mut bytes = String::new();
                for _ in 0..*count {
                    bytes += &format!("MSG {next_number}\nHISTORY\nhello\n");
                    let message = Request::Message(next_number.to_string());
                    requests[*client].extend([message, Request::History, Request::Unknown]);
                    next_number += 1;
                }
                world.send(NAMES[*client], bytes);
            }
            Step::Take if world.hub.uncommitted_len_bytes() > 0 && !world.is_committing() => world.take(),
            Step::Commit if world.hub.uncommitted_len_bytes() > 0 => world.commit(),
            Step::Refuse if world.hub.uncommitted_len_bytes() > 0 => world.refuse(CommitError::Full),
            Step::Take | Step::Commit | Step::Refuse => {}
            Step::Kernel(client, len) => world.set_kernel_room(NAMES[*client], *len),
            Step::End(client) => {
                has_ended[*client] = true;
                let id = world.client(NAMES[*client]).id;
                if !world.hub.may_read(world.now, id) {
                    // Also when it is paused, and has asked for what the hub could not look at yet.
                    world.hub.end_of_input(world.now, id);
                }
                world.end(NAMES[*client]);
            }
        }
        assert!(world.hub.uncommitted_len_bytes() < UNCOMMITTED_MAX_BYTES + LINE_LEN_MAX_BYTES + SECTION_OVERHEAD_BYTES + 200);
        for name in NAMES {
            let id = world.client(name).id;
            assert!(world.hub.outbox_len_bytes(id) <= BEHIND_MAX_BYTES + BATCH_MAX_BYTES);
        }
    }
    for name in NAMES {
        world.set_kernel_room(name, usize::MAX);
    }
    world.commit_all();
    for (((name, room), requests), has_ended) in NAMES.iter().zip(ROOMS).zip(&requests).zip(has_ended) {
        let stored: Vec<String> = world
            .stored
            .iter()
            .filter(|(stored_room, _)| stored_room == room)
            .flat_map(|(_, lines)| std::str::from_utf8(lines).unwrap().lines())
            .map(str::to_owned)
            .collect();
        let end = match world.take_closed(name) {
            None => End::Open,
            Some(closed) if closed.reason == CloseReason::EndOfInput => End::Answered,
            Some(_) => End::Cut,
        };
        assert!(!has_ended || end != End::Open, "who has closed its side is let go");
        let stream = world.received(name);
        verify(&stream, name, requests, &stored, end);
    }
}

/// Words and bytes that lead somewhere more often than random bytes do.
fn fragment() -> impl Strategy<Value = Vec<u8>> {
    let words = [
        "JOIN a b\n",
        "JOIN é blue\r\n",
        "MSG hello\n",
        "MSG ",
        "HISTORY\n",
        "PONG\n",
        "QUIT",
        "\n",
        "\r",
        " ",
        "\t",
        "GET /\n",
        "JOIN a/ b\n",
        "x\n",
        "é",
    ];
    prop_oneof![
        8 => prop::sample::select(words.to_vec()).prop_map(|word| word.as_bytes().to_vec()),
        2 => vec(any::<u8>(), 0..20),
        1 => (4000..4200_usize).prop_map(|len| vec![b'x'; len]),
    ]
}

/// The same programs at every run of the suite; with `PROPTEST_CASES`, so many others.
fn config() -> ProptestConfig {
    let campaign = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
    if std::env::var_os("PROPTEST_CASES").is_some() {
        return campaign;
    }
    ProptestConfig { cases: 128, rng_seed: RngSeed::Fixed(5), ..campaign }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn every_member_sees_every_committed_message_once_in_order_among_its_own_answers(
        steps in steps(),
        read_len_max in prop::sample::select(vec![64 * 1024, 1000, 17]),
    ) {
        play(&steps, read_len_max);
    }

    #[test]
    fn any_bytes_have_the_same_answers_however_they_are_split(
        joins in any::<bool>(),
        fragments in vec(fragment(), 0..60),
        splits in vec(1..3000_usize, 1..20),
    ) {
        let mut bytes = if joins { b"JOIN a b\n".to_vec() } else { Vec::new() };
        bytes.extend(fragments.concat());
        let answers = |pieces: &[usize]| {
            let mut world = World::new(Settings::default());
            world.connect("a", "127.0.0.1".parse().unwrap()).unwrap();
            let mut pieces = pieces.iter().cycle();
            let mut rest = &bytes[..];
            while !rest.is_empty() {
                let (piece, others) = rest.split_at(rest.len().min(*pieces.next().unwrap()));
                world.send("a", piece);
                rest = others;
            }
            world.commit_all();
            (world.received("a"), world.take_closed("a").map(|closed| closed.reason), world.stored)
        };
        let whole = answers(&[usize::MAX]);
        prop_assert_eq!(&answers(&splits), &whole);
        prop_assert_eq!(&answers(&[1]), &whole);
    }
}
