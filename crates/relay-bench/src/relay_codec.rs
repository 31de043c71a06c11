//! relay's line protocol, as `docs/protocol.md` has it. Next: `seen.rs`.

use memchr::memchr;

use crate::codec::{Codec, Event, Member};

/// Speaks relay's line protocol.
#[derive(Clone, Copy, Debug, Default)]
pub struct RelayCodec;

impl Codec for RelayCodec {
    fn hello(&self, member: &Member<'_>, out: &mut Vec<u8>) {
        out.extend_from_slice(format!("JOIN {} {}\n", member.name, member.room).as_bytes());
    }

    fn publish(&self, _member: &Member<'_>, text: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(&[b"MSG ", text, b"\n"].concat());
    }

    #[inline]
    fn cut<'a>(&self, bytes: &'a [u8]) -> Option<(Event<'a>, usize)> {
        let len = memchr(b'\n', bytes)?;
        let line = &bytes[..len];
        Some((message(line).unwrap_or_else(|| other(line)), len + 1))
    }

    fn goodbye(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"QUIT\n");
    }
}

/// The server says who speaks, and so does the text: it must be the same.
#[inline]
fn message(line: &[u8]) -> Option<Event<'_>> {
    let (name, text) = line.strip_prefix(b"MESSAGE ")?.split_first_chunk::<NAME_LEN>()?;
    let text = text.strip_prefix(b" ")?;
    text.starts_with(name).then_some(Event::Message(text))
}

fn other(line: &[u8]) -> Event<'_> {
    match line {
        b"PING" => Event::Answer(b"PONG\n"),
        b"OK QUIT" => Event::Done,
        line if line.starts_with(b"OK JOIN ") => Event::Done,
        line => Event::Error(line),
    }
}

/// A letter and five digits.
const NAME_LEN: usize = 6;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::member_name;

    #[track_caller]
    fn check(bytes: &str, expected: Option<(Event<'_>, usize)>) {
        assert_eq!(RelayCodec.cut(bytes.as_bytes()), expected);
    }

    #[test]
    fn lines_are_cut_into_what_they_mean() {
        assert_eq!(member_name(0).len(), NAME_LEN);
        check("MESSAGE m00012 m00012 0000000007 ab\nPI", Some((Event::Message(b"m00012 0000000007 ab"), 36)));
        check("OK JOIN m00012 bench-0-1\n", Some((Event::Done, 25)));
        check("OK QUIT\n", Some((Event::Done, 8)));
        check("PING\n", Some((Event::Answer(b"PONG\n"), 5)));
        for unfinished in ["M", "MESSAGE m00012 m00012 0000000007 ab", "PING"] {
            check(unfinished, None);
        }
        for line in ["", "ERR server full", "MESSAGE ada hello", "MESSAGE m00012 m00011 0000000007 ab", "MESSAGE", "OK"] {
            check(&format!("{line}\n"), Some((Event::Error(line.as_bytes()), line.len() + 1)));
        }
    }

    #[test]
    fn what_members_say_is_the_protocol() {
        let member = Member { name: "m00012", room: "bench-0-1" };
        let mut out = Vec::new();
        RelayCodec.hello(&member, &mut out);
        RelayCodec.publish(&member, b"m00012 0000000000 ab", &mut out);
        RelayCodec.goodbye(&mut out);
        assert_eq!(String::from_utf8(out).unwrap(), "JOIN m00012 bench-0-1\nMSG m00012 0000000000 ab\nQUIT\n");
    }
}
