//! The lines of a run: what is sent, and what must come back.
//!
//! A message says who sent it (its name), as which of its messages (a number), and then the filler of the run. Everything has a fixed
//! width, so a line is checked to its last byte by three comparisons, and numbers are counted as text, never converted. Next: `seen.rs`.

use std::fmt;
use std::ops::RangeInclusive;

use relay_core::limits::LINE_LEN_MAX_BYTES;

/// What the texts of a run have in common.
pub(crate) struct Wire {
    /// What follows the number.
    filler: Vec<u8>,
}

/// A `MESSAGE` line of this run.
#[derive(Debug, PartialEq)]
pub(crate) struct Message<'a> {
    pub(crate) sender: usize,
    pub(crate) number: &'a [u8; NUMBER_LEN],
}

impl Wire {
    /// Messages with texts of `text_bytes`, one of [`TEXT_BYTES`]. Another seed makes another filler.
    pub(crate) fn new(text_bytes: usize, seed: u64) -> Wire {
        let letters = (seed..).map(|letter| b'a' + (letter % 26) as u8);
        let filler = [b' '].into_iter().chain(letters).take(text_bytes - NUMBER_LEN).collect();
        Wire { filler }
    }

    /// The command that sends message 0; the number stands at [`NUMBER_AT`].
    pub(crate) fn first_command(&self) -> Vec<u8> {
        [b"MSG ".as_slice(), Number::ZERO.as_bytes(), &self.filler, b"\n"].concat()
    }

    /// Reads a line without its end; `None` if nobody in this run sends such a message.
    #[inline]
    pub(crate) fn parse<'a>(&self, line: &'a [u8]) -> Option<Message<'a>> {
        let (sender, rest) = line.strip_prefix(b"MESSAGE m")?.split_first_chunk::<MEMBER_LEN>()?;
        let (number, filler) = rest.strip_prefix(b" ")?.split_first_chunk()?;
        if filler != self.filler || !sender.iter().all(u8::is_ascii_digit) {
            return None;
        }
        let sender = sender.iter().fold(0, |index, digit| 10 * index + usize::from(digit - b'0'));
        Some(Message { sender, number })
    }
}

/// The name of a member of a room.
pub(crate) fn member_name(member: usize) -> String {
    format!("m{member:0MEMBER_LEN$}")
}

/// The name of a room. Another seed makes other rooms, so that runs on one server do not meet.
pub(crate) fn room_name(seed: u64, room: usize) -> String {
    format!("load-{seed}-{room}")
}

/// A number as text, which counts without being converted.
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct Number([u8; NUMBER_LEN]);

impl Number {
    pub(crate) const ZERO: Number = Number([b'0'; NUMBER_LEN]);

    #[inline]
    pub(crate) fn as_bytes(&self) -> &[u8; NUMBER_LEN] {
        &self.0
    }

    #[inline]
    pub(crate) fn increment(&mut self) {
        increment(&mut self.0);
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.escape_ascii().fmt(f)
    }
}

/// Counts one up in a number that stands in a line. Above its largest value it begins again.
#[inline]
pub(crate) fn increment(digits: &mut [u8]) {
    for digit in digits.iter_mut().rev() {
        if *digit < b'9' {
            *digit += 1;
            return;
        }
        *digit = b'0';
    }
}

/// Enough for an hour at 2.7 million messages a second from one sender.
const NUMBER_LEN: usize = 10;
const MEMBER_LEN: usize = 5;

/// Where the number stands in a command.
pub(crate) const NUMBER_AT: std::ops::Range<usize> = 4..4 + NUMBER_LEN;

/// How many messages one sender can tell apart.
pub(crate) const MESSAGES_MAX: u64 = 10_u64.pow(NUMBER_LEN as u32);

/// How many members of a room, and by the same token rooms, there can be.
pub(crate) const MEMBERS_MAX: usize = 10_usize.pow(MEMBER_LEN as u32);

/// How long a text may be.
pub(crate) const TEXT_BYTES: RangeInclusive<usize> = NUMBER_LEN..=LINE_LEN_MAX_BYTES - 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_is_what_is_accepted() {
        for text_bytes in [*TEXT_BYTES.start(), 11, 12, 64, *TEXT_BYTES.end()] {
            let wire = Wire::new(text_bytes, 3);
            let command = wire.first_command();
            assert_eq!(command.len(), 4 + text_bytes + 1);
            let line = [b"MESSAGE ".as_slice(), member_name(12).as_bytes(), b" ", &command[4..command.len() - 1]].concat();
            assert_eq!(wire.parse(&line), Some(Message { sender: 12, number: b"0000000000" }));
        }
    }

    #[test]
    fn anything_else_is_not_a_message_of_this_run() {
        let wire = Wire::new(13, 0);
        assert!(wire.parse(b"MESSAGE m00012 0000000007 ab").is_some());
        let wrong: [&[u8]; 9] = [
            b"",
            b"MESSAGE m00012",
            b"MESSAGE m0001x 0000000007 ab",
            b"MESSAGE n00012 0000000007 ab",
            b"MESSAGE m00012_0000000007 ab",
            b"MESSAGE m00012 000000007 ab",
            b"MESSAGE m00012 0000000007 aB",
            b"MESSAGE m00012 0000000007 abc",
            b"message m00012 0000000007 ab",
        ];
        for line in wrong {
            assert_eq!(wire.parse(line), None, "{}", line.escape_ascii());
        }
    }

    #[test]
    fn numbers_count() {
        let mut number = Number::ZERO;
        for expected in 0..1_234 {
            assert_eq!(number.to_string(), format!("{expected:010}"));
            number.increment();
        }
    }
}
