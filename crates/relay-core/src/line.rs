//! What makes bytes a line of the protocol: its end, its length, its text.
//!
//! Every byte of every message passes here, so plain ASCII is judged without a branch per byte. Knows no words: those are next, in
//! `command.rs`.

use crate::limits::LINE_LEN_MAX_BYTES;

/// Why a line is not looked at further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineError {
    TooLong,
    InvalidText,
}

/// The text of a line that was ended by `\n`, which is not part of `line`.
#[inline]
pub(crate) fn text(line: &[u8]) -> Result<&[u8], LineError> {
    let text = line.strip_suffix(b"\r").unwrap_or(line);
    if text.len() > LINE_LEN_MAX_BYTES {
        Err(LineError::TooLong)
    } else if is_plain(text) || is_valid(text) {
        Ok(text)
    } else {
        Err(LineError::InvalidText)
    }
}

/// The text of a `MSG` line that nobody need look at twice: plain, not too long, and without white space before the text. `None` for any
/// other line, good ones among them.
#[inline]
pub(crate) fn plain_message(line: &[u8]) -> Option<&[u8]> {
    let text = line.strip_prefix(b"MSG ")?;
    let is_message = text.first().is_some_and(|byte| !matches!(byte, b' ' | b'\t'));
    (is_message && line.len() <= LINE_LEN_MAX_BYTES && is_plain(text)).then_some(text)
}

/// Whether no end can make this a line any more. A last `\r` may still be part of the end.
pub(crate) fn is_too_long(unfinished: &[u8]) -> bool {
    unfinished.strip_suffix(b"\r").unwrap_or(unfinished).len() > LINE_LEN_MAX_BYTES
}

/// Printable ASCII and tabs only.
///
/// No early exit, and the last block overlaps the one before instead of leaving a rest: so all of it becomes vector instructions.
#[inline]
fn is_plain(text: &[u8]) -> bool {
    const BLOCK_LEN: usize = 16;
    let is_plain_block = |block: &[u8]| block.iter().fold(true, |plain, byte| plain & ((b' '..0x7f).contains(byte) | (*byte == b'\t')));
    let (blocks, rest) = text.as_chunks::<BLOCK_LEN>();
    let blocks_are_plain = blocks.iter().fold(true, |plain, block| plain & is_plain_block(block));
    blocks_are_plain & text.last_chunk::<BLOCK_LEN>().map_or_else(|| is_plain_block(rest), |block| is_plain_block(block))
}

/// UTF-8 without control characters other than tab, those above ASCII (U+0080 to U+009F) included.
#[cold]
fn is_valid(text: &[u8]) -> bool {
    core::str::from_utf8(text).is_ok_and(|text| text.chars().all(|char| char == '\t' || !char.is_control()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: impl AsRef<[u8]>, expected: Result<&[u8], LineError>) {
        assert_eq!(text(line.as_ref()), expected);
    }

    #[test]
    fn one_carriage_return_before_the_end_is_dropped() {
        check("a b \r", Ok(b"a b "));
        check("\r", Ok(b""));
        check("a\r\r", Err(LineError::InvalidText));
    }

    #[test]
    fn the_longest_line_passes_and_one_more_byte_does_not() {
        let longest = [b'x'; LINE_LEN_MAX_BYTES];
        check(longest, Ok(&longest));
        check([&longest[..], b"\r"].concat(), Ok(&longest));
        check([&longest[..], b"x"].concat(), Err(LineError::TooLong));
        // Length is judged before text.
        check([&longest[..], b"\0"].concat(), Err(LineError::TooLong));
    }

    #[test]
    fn an_unfinished_line_is_too_long_once_no_end_can_save_it() {
        let longest = [b'x'; LINE_LEN_MAX_BYTES];
        assert!(!is_too_long(&longest));
        assert!(!is_too_long(&[&longest[..], b"\r"].concat()));
        assert!(is_too_long(&[&longest[..], b"x"].concat()));
        assert!(is_too_long(&[&longest[..], b"\r\r"].concat()));
    }

    #[test]
    fn a_plain_message_is_what_the_long_way_would_take_too() {
        let longest = [b"MSG ".as_slice(), &[b'x'; LINE_LEN_MAX_BYTES - 4]].concat();
        for (line, expected) in [
            (b"MSG hello  world\t".as_slice(), Some(b"hello  world\t".as_slice())),
            (&longest, Some(&longest[4..])),
            (&[&longest[..], b"x"].concat(), None),
            (b"MSG ", None),
            (b"MSG  x", None),
            (b"MSG \tx", None),
            (b"MSG x\r", None),
            (b"MSG \xc3\xa9", None),
            (b"MSGx", None),
            (b"HISTORY", None),
        ] {
            assert_eq!(plain_message(line), expected, "{}", line.escape_ascii());
        }
    }

    #[test]
    fn text_is_utf8_without_control_characters() {
        for good in ["", "\t", " ~", "é", "\u{a0}", "\u{2028}", "😀 a\tb"] {
            check(good, Ok(good.as_bytes()));
        }
        for bad in [
            &b"\0"[..],
            b"\x1b[m",
            b"\x7f",
            b"a\rb",
            "\u{80}".as_bytes(),
            "\u{9f}".as_bytes(),
            b"\xff",
            b"\xc3",
            b"\xed\xa0\x80",
            b"\xc0\x80",
        ] {
            check(bad, Err(LineError::InvalidText));
        }
    }
}
