//! The texts of a run: what is sent, and what must come back.
//!
//! A text says who sent it (its name), as which of its messages (a number), and then the filler of the run. Everything has a fixed width,
//! so a text is checked to its last byte by three comparisons, and numbers are counted as text, never converted. Knows nothing of servers.
//! Next: `codec.rs`.

use std::fmt;

use crate::limits::{MEMBERS_MAX, MESSAGES_MAX};

/// What the texts of a run have in common.
pub(crate) struct Texts {
    /// What follows the number.
    filler: Vec<u8>,
}

/// What a text of this run says.
#[derive(Debug, PartialEq)]
pub(crate) struct Said<'a> {
    pub(crate) sender: usize,
    pub(crate) number: &'a [u8; NUMBER_LEN],
}

impl Texts {
    /// Texts of so many bytes. Another seed makes another filler.
    pub(crate) fn new(text_bytes: usize, seed: u64) -> Texts {
        let letters = (0..26).cycle().skip((seed % 26) as usize).map(|letter| b'a' + letter);
        let filler = [b' '].into_iter().chain(letters).take(text_bytes.saturating_sub(NUMBER_AT + NUMBER_LEN)).collect();
        Texts { filler }
    }

    /// The text of a member's message 0. Its number stands at [`NUMBER_AT`].
    pub(crate) fn first(&self, member: usize) -> Vec<u8> {
        [member_name(member).as_bytes(), b" ", Number::ZERO.as_bytes(), &self.filler].concat()
    }

    /// Reads a text; `None` if nobody in this run sends it.
    #[inline]
    pub(crate) fn parse<'a>(&self, text: &'a [u8]) -> Option<Said<'a>> {
        let (sender, rest) = text.strip_prefix(b"m")?.split_first_chunk::<MEMBER_LEN>()?;
        let (number, filler) = rest.strip_prefix(b" ")?.split_first_chunk()?;
        if filler != self.filler || !sender.iter().all(u8::is_ascii_digit) {
            return None;
        }
        let sender = sender.iter().fold(0, |index, digit| 10 * index + usize::from(digit - b'0'));
        Some(Said { sender, number })
    }
}

/// The name of a member of a room.
pub(crate) fn member_name(member: usize) -> String {
    format!("m{member:0MEMBER_LEN$}")
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

/// Counts one up in a number that stands in a text. Above its largest value it begins again.
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

pub(crate) const NUMBER_LEN: usize = 10;
const MEMBER_LEN: usize = 5;

/// Where the number stands in a text.
pub(crate) const NUMBER_AT: usize = 1 + MEMBER_LEN + 1;

const _: () = assert!(MEMBERS_MAX == 10_usize.pow(MEMBER_LEN as u32) && MESSAGES_MAX == 10_u64.pow(NUMBER_LEN as u32));

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::TEXT_BYTES;

    #[test]
    fn what_is_sent_is_what_is_accepted() {
        for text_bytes in [*TEXT_BYTES.start(), 18, 19, 64, *TEXT_BYTES.end()] {
            let texts = Texts::new(text_bytes, 3);
            let text = texts.first(12);
            assert_eq!(text.len(), text_bytes);
            assert_eq!(texts.parse(&text), Some(Said { sender: 12, number: b"0000000000" }));
        }
    }

    #[test]
    fn anything_else_is_not_a_text_of_this_run() {
        let texts = Texts::new(20, 0);
        assert!(texts.parse(b"m00012 0000000007 ab").is_some());
        let wrong: [&[u8]; 8] = [
            b"",
            b"m00012",
            b"m0001x 0000000007 ab",
            b"n00012 0000000007 ab",
            b"m00012_0000000007 ab",
            b"m00012 000000007 ab",
            b"m00012 0000000007 aB",
            b"m00012 0000000007 abc",
        ];
        for text in wrong {
            assert_eq!(texts.parse(text), None, "{}", text.escape_ascii());
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
