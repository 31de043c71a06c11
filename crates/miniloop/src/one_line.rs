//! A name inside a line of text.
//!
//! Names may come from strangers (``client `nick` ``), and stand in logs and dumps that somebody reads in a terminal. There a line break
//! would forge a line of its own, an escape sequence would command the terminal, and a megabyte would hide everything else.

use std::fmt::{self, Display, Write};

use crate::config::NAME_PRINTED_CHARS_MAX;

/// Prints what stays within its line as it is, the rest as `\n` or `\u{1b}`, and no more than the first so many characters of all.
pub(crate) struct OneLine<'a>(pub(crate) &'a str);

impl Display for OneLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut characters = self.0.chars();
        for character in characters.by_ref().take(NAME_PRINTED_CHARS_MAX) {
            if leaves_its_line(character) { write!(f, "{}", character.escape_default())? } else { f.write_char(character)? }
        }
        if characters.next().is_some() { f.write_str("..") } else { Ok(()) }
    }
}

/// Control characters, what Unicode calls line and paragraph separators, and what turns the direction of writing.
fn leaves_its_line(character: char) -> bool {
    character.is_control() || matches!(character, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, expected: &str) {
        assert_eq!(OneLine(name).to_string(), expected);
    }

    #[test]
    fn a_name_stays_within_its_line_and_is_cut_off() {
        check("client `Zoë` \\ \"🎉\"", "client `Zoë` \\ \"🎉\"");
        check("a\nb\r\t\u{0}\u{1b}[31m\u{85}", "a\\nb\\r\\t\\u{0}\\u{1b}[31m\\u{85}");
        check("\u{202e}\u{2028}\u{2066}", "\\u{202e}\\u{2028}\\u{2066}");
        check(&"é".repeat(NAME_PRINTED_CHARS_MAX), &"é".repeat(NAME_PRINTED_CHARS_MAX));
        check(&"é".repeat(NAME_PRINTED_CHARS_MAX + 1), &format!("{}..", "é".repeat(NAME_PRINTED_CHARS_MAX)));
    }
}
