//! NATS' protocol, as far as a subject with subscribers and a stream of JetStream need it. Next: `executables.rs`.

use memchr::memchr;
use relay_bench::{Codec, Event, Member};

/// `PUB` to a subject, which every subscriber of it gets, the publisher too. Nothing is kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NatsCore;

/// `PUB` to the subject of a stream, which answers to an inbox of the member when it has stored it.
///
/// Each room is a stream of its own: streams are written side by side, so this is what JetStream does best.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NatsStream;

impl Codec for NatsCore {
    fn hello(&self, member: &Member<'_>, out: &mut Vec<u8>) {
        // Without `verbose` nothing is answered, so a PONG says that everything before it is done.
        out.extend_from_slice(format!("{CONNECT}SUB {} 1\r\nPING\r\n", member.room).as_bytes());
    }

    fn publish(&self, member: &Member<'_>, text: &[u8], out: &mut Vec<u8>) {
        publish(member.room, text, out);
    }

    #[inline]
    fn cut<'a>(&self, bytes: &'a [u8]) -> Option<(Event<'a>, usize)> {
        let (said, len) = cut(bytes)?;
        let event = match said {
            Said::Payload(text) => Event::Message(text),
            Said::Line(b"PONG") => Event::Done,
            Said::Line(line) => other(line),
        };
        Some((event, len))
    }

    fn goodbye(&self, _out: &mut Vec<u8>) {}
}

impl Codec for NatsStream {
    const IS_FANNED_OUT: bool = false;

    fn hello(&self, member: &Member<'_>, out: &mut Vec<u8>) {
        let (room, inbox) = (member.room, inbox(member));
        out.extend_from_slice(format!("{CONNECT}SUB {inbox} 1\r\n").as_bytes());
        let stream = format!(r#"{{"name":"{room}","subjects":["{room}"],"storage":"file","retention":"limits","num_replicas":1}}"#);
        publish(&format!("$JS.API.STREAM.CREATE.{room} {inbox}"), stream.as_bytes(), out);
    }

    fn publish(&self, member: &Member<'_>, text: &[u8], out: &mut Vec<u8>) {
        publish(&format!("{} {}", member.room, inbox(member)), text, out);
    }

    #[inline]
    fn cut<'a>(&self, bytes: &'a [u8]) -> Option<(Event<'a>, usize)> {
        let (said, len) = cut(bytes)?;
        let event = match said {
            Said::Payload(answer) if answer.starts_with(STORED) => Event::Acknowledged,
            Said::Payload(answer) if answer.starts_with(CREATED) => Event::Done,
            Said::Payload(answer) => Event::Error(answer),
            Said::Line(line) => other(line),
        };
        Some((event, len))
    }

    fn goodbye(&self, _out: &mut Vec<u8>) {}
}

/// Where the answers to a member go.
fn inbox(member: &Member<'_>) -> String {
    format!("_INBOX.{}.{}", member.room, member.name)
}

/// `to` is a subject, and where answers go.
fn publish(to: &str, payload: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(format!("PUB {to} {}\r\n", payload.len()).as_bytes());
    out.extend_from_slice(payload);
    out.extend_from_slice(b"\r\n");
}

enum Said<'a> {
    /// What a `MSG` carries.
    Payload(&'a [u8]),
    /// Any other line.
    Line(&'a [u8]),
}

/// What stands first, and how long it is; `None` when its end has not come yet.
#[inline]
fn cut(bytes: &[u8]) -> Option<(Said<'_>, usize)> {
    let line_len = memchr(b'\n', bytes)? + 1;
    let line = bytes[..line_len].trim_ascii_end();
    let payload_len = line.strip_prefix(b"MSG ").and_then(|words| {
        let digits = words.rsplit(|byte| *byte == b' ').next()?;
        str::from_utf8(digits).ok()?.parse::<u32>().ok()
    });
    let Some(payload_len) = payload_len else { return Some((Said::Line(line), line_len)) };
    let end = line_len + payload_len as usize;
    let payload = bytes.get(line_len..end)?;
    // Behind the payload stands the end of a line.
    (bytes.len() >= end + 2).then_some((Said::Payload(payload), end + 2))
}

fn other(line: &[u8]) -> Event<'_> {
    match line {
        b"PING" => Event::Answer(b"PONG\r\n"),
        line if line.starts_with(b"INFO ") => Event::Nothing,
        line => Event::Error(line),
    }
}

const CONNECT: &str = "CONNECT {\"verbose\":false,\"pedantic\":false,\"lang\":\"rust\",\"version\":\"1\",\"protocol\":1}\r\n";
const CREATED: &[u8] = b"{\"type\":\"io.nats.jetstream.api.v1.stream_create_response\",\"config\":";
const STORED: &[u8] = b"{\"stream\":";

#[cfg(test)]
mod tests {
    use super::*;

    const MEMBER: Member<'static> = Member { name: "m00000", room: "bench-0-1" };
    const INFO: &str = "INFO {\"server_id\":\"N\",\"max_payload\":1048576}\r\n";

    fn check(codec: impl Codec, bytes: &str, expected: &[Event<'_>]) {
        let mut rest = bytes.as_bytes();
        for event in expected {
            let Some((cut, len)) = codec.cut(rest) else { panic!("nothing stands in {}", rest.escape_ascii()) };
            assert_eq!(cut, *event);
            // Nothing is believed before its end has come.
            for end in 0..len {
                assert_eq!(codec.cut(&rest[..end]), None, "{}", rest[..end].escape_ascii());
            }
            rest = &rest[len..];
        }
        assert_eq!(rest, b"");
    }

    #[test]
    fn what_a_subscriber_hears() {
        let said = "PONG\r\nMSG bench-0-1 1 5\r\na\r\nbc\r\nPING\r\n-ERR 'Slow Consumer'\r\n";
        let expected =
            [Event::Nothing, Event::Done, Event::Message(b"a\r\nbc"), Event::Answer(b"PONG\r\n"), Event::Error(b"-ERR 'Slow Consumer'")];
        check(NatsCore, &[INFO, said].concat(), &expected);
    }

    #[test]
    fn a_stream_answers_to_the_inbox() {
        let message = |text: &str| format!("MSG _INBOX.bench-0-1.m00000 1 {}\r\n{text}\r\n", text.len());
        let created = r#"{"type":"io.nats.jetstream.api.v1.stream_create_response","config":{"name":"bench-0-1"}}"#;
        let refused = r#"{"error":{"code":503,"description":"insufficient storage"}}"#;
        let said = [INFO, &message(created), &message(r#"{"stream":"bench-0-1", "seq":1}"#), &message(refused)].concat();
        check(NatsStream, &said, &[Event::Nothing, Event::Done, Event::Acknowledged, Event::Error(refused.as_bytes())]);
    }

    #[test]
    fn a_length_that_cannot_be_is_refused() {
        for line in ["MSG", "MSG a 1", "MSG a 1 x", "MSG a 1 -1", "MSG a 1 99999999999", "+OK", ""] {
            let expected = if line == "MSG a 1" { None } else { Some((Event::Error(line.as_bytes()), line.len() + 2)) };
            assert_eq!(NatsCore.cut(format!("{line}\r\n").as_bytes()), expected, "{line:?}");
        }
    }

    #[test]
    fn what_members_say_is_the_protocol() {
        let mut out = Vec::new();
        NatsCore.publish(&MEMBER, b"abc", &mut out);
        NatsStream.publish(&MEMBER, b"abc", &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), "PUB bench-0-1 3\r\nabc\r\nPUB bench-0-1 _INBOX.bench-0-1.m00000 3\r\nabc\r\n");
    }
}
