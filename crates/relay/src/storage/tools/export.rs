//! `relay export ROOM`: a room's messages as lines of JSON, `{"id":"12-0","time":"2026-11-30T21:00:00.123Z","name":"ada","text":"hello"}`.
//!
//! Streams: memory does not grow with the room. Costs one pass over each text and no allocation of its own. Next: `unfolded.rs`.

use super::{
    report::{Progress, Watch},
    room_reader::each_segment,
    source::Source,
};
use crate::storage::{error::HistoryError, position::MessageId};
use jiff::Timestamp;
use serde::{Serialize, Serializer};
use std::{
    fmt,
    io::{self, Write},
    path::Path,
};

/// Writes every stored message of `room` to `out`, oldest first, as JSON with a line for each. Returns their number.
///
/// # Errors
///
/// As [`print_history`](super::print_history).
pub fn export_room(data_dir: &Path, room: &str, out: &mut dyn Write, watch: &mut Watch<'_>) -> Result<u64, HistoryError> {
    let source = Source::open(data_dir)?;
    // What the log has beyond that is not counted before it is read.
    let last = match source.history()? {
        Some(history) => history.ask(|database| database.last_summary(room))?,
        None => None,
    };
    let total = last.map_or(0, |last| last.end_number());
    let mut done = 0;
    let exported = each_segment(source, room, &mut |segment| {
        for message in segment.messages() {
            let line = message.line.strip_suffix(b"\n").unwrap_or(message.line);
            write_json_line(out, message.id, message.unix_ms, line).map_err(HistoryError::Output)?;
        }
        done += u64::from(segment.message_count());
        watch(Progress { what: "exporting", done, total: total.max(done) });
        Ok(())
    });
    // Also what stands before damage.
    out.flush().map_err(HistoryError::Output)?;
    exported
}

/// Writes a stored message, given without its line feed, as one line.
fn write_json_line(out: &mut dyn Write, id: MessageId, unix_ms: u64, line: &[u8]) -> io::Result<()> {
    let line = str::from_utf8(line).ok().and_then(|line| line.strip_prefix("MESSAGE ")?.split_once(' '));
    // What was committed has this form. What has not, passed its checksum all the same, so relay itself is wrong.
    let (name, text) =
        line.ok_or_else(|| io::Error::other(format!("message {} has not the form of a message: please report it", Id(id))))?;
    serde_json::to_writer(&mut *out, &Message { id: Id(id), time: Time(unix_ms), name, text })?;
    out.write_all(b"\n")
}

#[derive(Serialize)]
struct Message<'a> {
    id: Id,
    time: Time,
    name: &'a str,
    text: &'a str,
}

/// The record's place in the log, and the message's in the record.
struct Id(MessageId);

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.0.sequence, self.0.ordinal)
    }
}

impl Serialize for Id {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Milliseconds since 1970, shown in RFC 3339. A clock that stands beyond the year 9999 is shown as its last moment.
struct Time(u64);

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let time = i64::try_from(self.0).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok()).unwrap_or(Timestamp::MAX);
        serializer.collect_str(&format_args!("{time:.3}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, unix_ms: u64, expected: &str) {
        let mut out = Vec::new();
        let id = MessageId { sequence: 12, ordinal: 3 };
        write_json_line(&mut out, id, unix_ms, line.as_bytes()).expect("it is a message");
        assert_eq!(str::from_utf8(&out).expect("JSON is text"), format!("{expected}\n"));
    }

    #[test]
    fn a_message_is_one_line_whatever_it_says() {
        let time = r#"{"id":"12-3","time":"2026-11-30T21:00:00.123Z","#;
        let unix_ms = 1_796_072_400_123;
        check("MESSAGE ada hello", unix_ms, &format!(r#"{time}"name":"ada","text":"hello"}}"#));
        check("MESSAGE ada  two  spaces ", unix_ms, &format!(r#"{time}"name":"ada","text":" two  spaces "}}"#));
        check("MESSAGE жук \"q\" \\ \t ü", unix_ms, &format!(r#"{time}"name":"жук","text":"\"q\" \\ \t ü"}}"#));
    }

    #[test]
    fn a_time_has_milliseconds_always_and_no_clock_is_too_wrong() {
        check("MESSAGE a b", 0, r#"{"id":"12-3","time":"1970-01-01T00:00:00.000Z","name":"a","text":"b"}"#);
        check("MESSAGE a b", 1_000, r#"{"id":"12-3","time":"1970-01-01T00:00:01.000Z","name":"a","text":"b"}"#);
        check("MESSAGE a b", u64::MAX, r#"{"id":"12-3","time":"9999-12-30T22:00:00.999Z","name":"a","text":"b"}"#);
    }

    #[test]
    fn what_is_no_message_is_an_error_and_not_half_a_line() {
        for wrong in [&b""[..], b"MESSAGE ada", b"MSG ada hello", b"MESSAGE ada \xff"] {
            let mut out = Vec::new();
            let id = MessageId { sequence: 1, ordinal: 0 };
            write_json_line(&mut out, id, 0, wrong).expect_err("it is none");
            assert!(out.is_empty());
        }
    }
}
