//! Redis' protocol, RESP3, as far as pub/sub and streams need it.
//!
//! RESP3 lets a connection listen and publish; with RESP2 each sender would need two, which costs Redis more. Next: `nats_codec.rs`.

use memchr::memchr;
use relay_bench::{Codec, Event, Member};

/// `PUBLISH` to a channel, which every subscriber of it gets. Nothing is kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RedisPublish;

/// `XADD` to a stream, which is acknowledged with an id.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RedisStream;

impl Codec for RedisPublish {
    fn hello(&self, member: &Member<'_>, out: &mut Vec<u8>) {
        command(&[b"HELLO", b"3"], out);
        command(&[b"SUBSCRIBE", member.room.as_bytes()], out);
    }

    fn publish(&self, member: &Member<'_>, text: &[u8], out: &mut Vec<u8>) {
        command(&[b"PUBLISH", member.room.as_bytes(), text], out);
    }

    #[inline]
    fn cut<'a>(&self, bytes: &'a [u8]) -> Option<(Event<'a>, usize)> {
        if let Some(rest) = bytes.strip_prefix(MESSAGE) {
            let (_channel, rest) = bulk(rest)?;
            let (text, rest) = bulk(rest)?;
            return Some((Event::Message(text), bytes.len() - rest.len()));
        }
        let value = &bytes[..value_len(bytes)?];
        let event = match value {
            [b'-', ..] => Event::Error(value),
            value if value.starts_with(SUBSCRIBED) => Event::Done,
            // How many a message went to, and what HELLO is answered.
            [b':' | b'%', ..] => Event::Nothing,
            value => Event::Error(value),
        };
        Some((event, value.len()))
    }

    fn goodbye(&self, _out: &mut Vec<u8>) {}
}

impl Codec for RedisStream {
    const IS_FANNED_OUT: bool = false;

    fn hello(&self, _member: &Member<'_>, _out: &mut Vec<u8>) {}

    fn publish(&self, member: &Member<'_>, text: &[u8], out: &mut Vec<u8>) {
        command(&[b"XADD", member.room.as_bytes(), b"*", b"text", text], out);
    }

    #[inline]
    fn cut<'a>(&self, bytes: &'a [u8]) -> Option<(Event<'a>, usize)> {
        let value = &bytes[..value_len(bytes)?];
        let event = if value.starts_with(b"$") { Event::Acknowledged } else { Event::Error(value) };
        Some((event, value.len()))
    }

    fn goodbye(&self, _out: &mut Vec<u8>) {}
}

/// A command is an array of strings that say how long they are.
fn command(words: &[&[u8]], out: &mut Vec<u8>) {
    out.extend_from_slice(format!("*{}\r\n", words.len()).as_bytes());
    for word in words {
        out.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        out.extend_from_slice(word);
        out.extend_from_slice(b"\r\n");
    }
}

/// The string that stands first, and what follows it; `None` when there is none, or not all of it.
#[inline]
fn bulk(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (len, rest) = line(bytes.strip_prefix(b"$")?)?;
    let (string, rest) = rest.split_at_checked(number(len)?)?;
    Some((string, rest.strip_prefix(b"\r\n")?))
}

/// How long the value is that stands first, with all that it contains; `None` when its end has not come yet.
///
/// What is not understood is a value of one line: whoever looks at it refuses it.
fn value_len(bytes: &[u8]) -> Option<usize> {
    let mut rest = bytes;
    let mut values_left = 1;
    while values_left > 0 {
        values_left -= 1;
        let (head, after) = line(rest)?;
        rest = match (head.first(), head.get(1..).and_then(number)) {
            (Some(b'$'), Some(len)) => after.get(len + 2..)?,
            (Some(b'*' | b'>' | b'~'), Some(count)) => {
                values_left += count;
                after
            }
            (Some(b'%'), Some(pairs)) => {
                values_left += 2 * pairs;
                after
            }
            _ => after,
        };
    }
    Some(bytes.len() - rest.len())
}

#[inline]
fn line(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = memchr(b'\n', bytes)?;
    let (line, rest) = (&bytes[..end], &bytes[end + 1..]);
    Some((line.strip_suffix(b"\r").unwrap_or(line), rest))
}

/// A number of at most 32 bits, so that some of them can be added without looking.
#[inline]
fn number(digits: &[u8]) -> Option<usize> {
    str::from_utf8(digits).ok()?.parse::<u32>().ok().map(|number| number as usize)
}

const MESSAGE: &[u8] = b">3\r\n$7\r\nmessage\r\n";
const SUBSCRIBED: &[u8] = b">3\r\n$9\r\nsubscribe\r\n";

#[cfg(test)]
mod tests {
    use super::*;

    const MEMBER: Member<'static> = Member { name: "m00000", room: "bench-0-1" };

    fn check(codec: impl Codec, bytes: &str, expected: &[Event<'_>]) {
        let mut rest = bytes.as_bytes();
        for event in expected {
            assert_eq!(codec.cut(rest).map(|(event, _)| event).as_ref(), Some(event), "{}", rest.escape_ascii());
            let len = codec.cut(rest).map_or(0, |(_, len)| len);
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
        let hello = "%2\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nmodules\r\n*0\r\n";
        let subscribed = ">3\r\n$9\r\nsubscribe\r\n$9\r\nbench-0-1\r\n:1\r\n";
        let message = ">3\r\n$7\r\nmessage\r\n$9\r\nbench-0-1\r\n$4\r\na\nbc\r\n";
        let (answer, refusal) = (":12\r\n", "-ERR max number of clients reached\r\n");
        let expected = [Event::Nothing, Event::Done, Event::Message(b"a\nbc"), Event::Nothing, Event::Error(refusal.as_bytes())];
        check(RedisPublish, &[hello, subscribed, message, answer, refusal].concat(), &expected);
    }

    #[test]
    fn what_is_added_is_acknowledged_with_an_id() {
        let refusal = "-MISCONF errors writing to the AOF file\r\n";
        check(RedisStream, &["$5\r\n123-0\r\n", refusal].concat(), &[Event::Acknowledged, Event::Error(refusal.as_bytes())]);
    }

    #[test]
    fn lengths_that_cannot_be_end_nothing_but_the_line() {
        for value in ["$-1\r\n", "$99999999999999999999\r\n", "*-1\r\n", "?\r\n", "\r\n"] {
            assert_eq!(value_len(value.as_bytes()), Some(value.len()), "{value:?}");
        }
        assert_eq!(value_len(b"$4294967295\r\nab"), None);
        assert_eq!(value_len(b"*4294967295\r\n:1\r\n"), None);
    }

    #[test]
    fn commands_say_how_long_their_words_are() {
        let mut out = Vec::new();
        RedisPublish.hello(&MEMBER, &mut out);
        RedisPublish.publish(&MEMBER, b"abc", &mut out);
        let expected = "*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n*2\r\n$9\r\nSUBSCRIBE\r\n$9\r\nbench-0-1\r\n\
                        *3\r\n$7\r\nPUBLISH\r\n$9\r\nbench-0-1\r\n$3\r\nabc\r\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
