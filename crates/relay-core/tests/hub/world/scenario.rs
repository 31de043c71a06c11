//! The language of the scenarios: one step per line, one turn of the server after each.
//!
//! ```text
//! > alice MSG hello           alice sends this line; at first mention she connects, from this machine
//! >> alice MSG hel            she sends these bytes, without a line's end; \n \r \t \\ and \xNN are understood
//! < alice MESSAGE alice hello the next line that she receives is this one, written with the same escapes
//! silent alice                she has received nothing more
//! +10s                        time passes; also before another step, which then happens just at its end
//! commit | take               the batch in flight, or the next one, is on disk | it is on its way
//! refuse full | unavailable   it is not
//! end alice | lose alice      she closes her side | her connection breaks
//! closed alice quit           it has ended, for this reason | `reset`: with something dropped
//! kernel alice 100            the kernel takes 100 more bytes for her, then no more; `all`: whatever comes
//! connect bob 10.0.0.1        bob connects from there | `refused`: he tries
//! stored blue MESSAGE a b     a line of the room's history from before the start
//! hold                        from now on the archive answers only when it is told to
//! load blue | fail blue       it answers the oldest question for this room | it says that it cannot
//! archived | rooms 2          all commits so far are in the archive | so many rooms are in memory
//! shutdown | finished         the server stops | nothing is left to do
//! settings heartbeat 10s 5s   before all others; or `heartbeat off`, `rate 20 100`, `per-address 64`, `connections 2`
//! 64 * > alice HISTORY        any step so many times
//! # a remark
//! ```
//!
//! At the end every line must have been looked at and every end announced.

use std::time::Duration;

use relay_core::{CommitError, PeerLimits, Rate, Settings};

use super::{READ_LEN_MAX, World};

/// Plays a scenario, with whole reads and byte by byte: the result must be the same.
#[track_caller]
pub(crate) fn check(scenario: &str) {
    for read_len_max in [READ_LEN_MAX, 1, 7] {
        play(scenario, read_len_max);
    }
}

#[track_caller]
fn play(scenario: &str, read_len_max: usize) {
    let mut settings = Settings::default();
    let mut world = None;
    for (number, line) in scenario.lines().enumerate() {
        let line = line.strip_prefix("        ").unwrap_or(line);
        let at = format!("line {}, {line:?}, reading {read_len_max} at a time", number + 1);
        match line.strip_prefix("settings ") {
            Some(setting) => configure(&mut settings, setting),
            None if line.trim().is_empty() || line.starts_with('#') => {}
            None => {
                let world = world.get_or_insert_with(|| {
                    let mut world = World::new(settings.clone());
                    world.read_len_max = read_len_max;
                    world
                });
                step(world, line, &at);
            }
        }
    }
    let left_over = world.map(|world| world.left_over()).unwrap_or_default();
    assert!(left_over.is_empty(), "nobody looked at {left_over:#?}, reading {read_len_max} at a time");
}

#[track_caller]
fn step(world: &mut World, line: &str, at: &str) {
    let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
    if let (Ok(count), Some(repeated)) = (word.parse::<usize>(), rest.strip_prefix("* ")) {
        return (0..count).for_each(|_| step(world, repeated, at));
    }
    if let Some(wait) = word.strip_prefix('+') {
        if rest.is_empty() {
            return world.pass(duration(wait));
        }
        world.pass_up_to(duration(wait));
        return step(world, rest, at);
    }
    let (name, text) = rest.split_once(' ').unwrap_or((rest, ""));
    match word {
        ">" | ">>" => {
            if !world.has_client(name) {
                world.connect(name, "127.0.0.1".parse().unwrap()).expect(at);
            }
            let bytes = if word == ">" { format!("{text}\n").into_bytes() } else { unescape(text) };
            world.send(name, bytes);
        }
        "<" => assert_eq!(world.received_line(name), Some(String::from_utf8(unescape(text)).unwrap()), "{at}"),
        "silent" => assert_eq!(world.received(name), "", "{at}"),
        "commit" => world.commit(),
        "take" => world.take(),
        "refuse" if rest == "full" => world.refuse(CommitError::Full),
        "refuse" if rest == "unavailable" => world.refuse(CommitError::Unavailable),
        "end" => world.end(name),
        "lose" => world.lose(name),
        "closed" | "reset" => {
            let closed = world.take_closed(name).unwrap_or_else(|| panic!("still there: {at}"));
            assert_eq!((closed.reason.as_str(), closed.reset), (text, word == "reset"), "{at}");
        }
        "kernel" => world.set_kernel_room(name, text.parse().unwrap_or(usize::MAX)),
        "connect" => world.connect(name, text.parse().unwrap()).expect(at),
        "refused" => assert!(world.connect(name, text.parse().unwrap()).is_err(), "{at}"),
        "stored" => world.store(name, text),
        "hold" => world.holds_loads = true,
        "load" | "fail" => world.answer_load(name, word == "load"),
        "archived" => world.archive_up_to(world.hub.counters().commits),
        "rooms" => assert_eq!(world.hub.room_count().to_string(), rest, "{at}"),
        "shutdown" => world.shutdown(),
        "finished" => assert!(world.hub.is_finished(), "{at}"),
        _ => panic!("no such step: {at}"),
    }
}

fn configure(settings: &mut Settings, setting: &str) {
    let words: Vec<&str> = setting.split(' ').collect();
    let number = |word: &str| word.parse().unwrap();
    match words[..] {
        ["heartbeat", "off"] => settings.heartbeat_interval = None,
        ["heartbeat", interval, timeout] => {
            (settings.heartbeat_interval, settings.heartbeat_timeout) = (Some(duration(interval)), Some(duration(timeout)));
        }
        ["rate", per_second, burst] => settings.loopback.rate = Some(Rate { per_second: number(per_second), burst: number(burst) }),
        ["per-address", max] => {
            settings.remote = PeerLimits { connections_per_address_max: Some(number(max)), rate: None };
        }
        ["connections", max] => settings.connections_max = max.parse().unwrap(),
        _ => panic!("no such setting: {setting}"),
    }
}

fn duration(text: &str) -> Duration {
    match (text.strip_suffix("ms"), text.strip_suffix('s')) {
        (Some(ms), _) => Duration::from_millis(ms.parse().unwrap()),
        (None, Some(s)) => Duration::from_secs(s.parse().unwrap()),
        _ => panic!("no such time: {text}"),
    }
}

fn unescape(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let escaped = if byte == b'\\' { rest.next() } else { None };
        bytes.push(match escaped {
            None => byte,
            Some(b'n') => b'\n',
            Some(b'r') => b'\r',
            Some(b't') => b'\t',
            Some(b'x') => {
                let digits = [rest.next(), rest.next()].map(|digit| digit.expect("two digits") as char);
                u8::from_str_radix(&String::from_iter(digits), 16).unwrap()
            }
            Some(other) => other,
        });
    }
    bytes
}
