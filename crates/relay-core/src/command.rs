//! What a client may ask for: the words of a line.
//!
//! Takes text that `line` has passed. Knows nothing of who asks or in which state: `hub::requests` decides what a command means there.
//! Next: `kept.rs`.

/// A line, understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Command<'a> {
    Join {
        name: &'a str,
        room: &'a str,
    },
    /// The text is not empty and not only white space.
    Message {
        text: &'a [u8],
    },
    History,
    Pong,
    Quit,
    /// The first word is an HTTP method. Only before joining does anybody care.
    Http,
    Unknown,
}

impl<'a> Command<'a> {
    #[inline]
    pub(crate) fn parse(text: &'a [u8]) -> Command<'a> {
        // Nearly every line looks like this; the rest of this function would understand it too, four times slower.
        if let Some(text) = text.strip_prefix(b"MSG ")
            && text.first().is_some_and(|byte| !is_white_space(byte))
        {
            return Command::Message { text };
        }
        let text = skip_white_space(text);
        let word_len = text.iter().position(is_white_space).unwrap_or(text.len());
        let (word, rest) = text.split_at(word_len);
        let rest = skip_white_space(rest);
        match word {
            b"MSG" if !rest.is_empty() => Command::Message { text: rest },
            b"HISTORY" if rest.is_empty() => Command::History,
            b"PONG" if rest.is_empty() => Command::Pong,
            b"QUIT" if rest.is_empty() => Command::Quit,
            b"JOIN" => Command::parse_join(rest),
            b"GET" | b"HEAD" | b"POST" | b"PUT" | b"PATCH" | b"DELETE" | b"OPTIONS" | b"CONNECT" | b"TRACE" | b"PRI" => Command::Http,
            _ => Command::Unknown,
        }
    }

    fn parse_join(rest: &'a [u8]) -> Command<'a> {
        let mut words = rest.split(is_white_space).filter(|word| !word.is_empty());
        let (Some(name), Some(room), None) = (words.next(), words.next(), words.next()) else { return Command::Unknown };
        // White space is ASCII, so the words of valid text are valid.
        match (core::str::from_utf8(name), core::str::from_utf8(room)) {
            (Ok(name), Ok(room)) => Command::Join { name, room },
            _ => Command::Unknown,
        }
    }
}

fn is_white_space(byte: &u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

fn skip_white_space(text: &[u8]) -> &[u8] {
    let len = text.iter().position(|byte| !is_white_space(byte)).unwrap_or(text.len());
    &text[len..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Command<'_>) {
        assert_eq!(Command::parse(text.as_bytes()), expected, "{text:?}");
    }

    #[test]
    fn words_are_separated_by_spaces_and_tabs() {
        let join = Command::Join { name: "alice", room: "blue" };
        check("JOIN alice blue", join);
        check("\t JOIN \talice  blue \t", join);
        check("  QUIT\t", Command::Quit);
        check("HISTORY ", Command::History);
        check(" PONG", Command::Pong);
        // Other white space of Unicode is part of a word.
        check("JOIN\u{a0}alice blue", Command::Unknown);
    }

    #[test]
    fn the_text_of_a_message_is_everything_after_the_white_space_behind_the_word() {
        check("MSG hello", Command::Message { text: b"hello" });
        check("  MSG \t hello  world \t", Command::Message { text: b"hello  world \t" });
        check("MSG \u{a0}", Command::Message { text: "\u{a0}".as_bytes() });
        check("MSG MSG", Command::Message { text: b"MSG" });
    }

    #[test]
    fn everything_else_is_unknown() {
        for text in [
            "",
            " ",
            "MSG",
            "MSG \t ",
            "MSGhello",
            "msg hello",
            "QUIT now",
            "HISTORY 5",
            "PONG 1",
            "JOIN",
            "JOIN a",
            "JOIN a b c",
            "join a b",
        ] {
            check(text, Command::Unknown);
        }
    }

    #[test]
    fn http_methods_are_known_by_the_first_word() {
        for verb in ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE", "PRI"] {
            check(verb, Command::Http);
            check(&alloc::format!(" {verb} / HTTP/1.1"), Command::Http);
        }
        check("get /", Command::Unknown);
        check("GETTING", Command::Unknown);
    }
}
