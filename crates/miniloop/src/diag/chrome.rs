//! The records of a timeline as text: JSON in the trace event format, which Chrome and Perfetto draw.
//!
//! An array of events, one per line. A stretch of time is a complete event (`"ph":"X"`), and stretches on one thread that lie inside each
//! other are drawn below each other. An arrow is a start (`"s"`) inside the stretch that woke and an end (`"f"`) at the beginning of the
//! job that was woken. Times are microseconds, here with three decimals: nanoseconds. A file that is cut off still loads, since readers
//! forgive the missing bracket. This file knows records and text, no loop and no thread.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::io::{self, Write};
use std::panic::Location;

use crate::engine::timeline::{JobKind, Records, Slice, What};

pub(crate) fn write(mut records: Records, to: &mut impl Write) -> io::Result<()> {
    // Parents before what they hold, as viewers like it.
    records.slices.sort_by_key(|slice| (slice.begin, Reverse(slice.end)));
    let name = Text(&format!("event loop {}", records.loop_number)).to_string();
    write!(to, "[\n{{\"ph\":\"M\",\"pid\":1,\"tid\":1,\"name\":\"thread_name\",\"args\":{{\"name\":{name}}}}}")?;
    let dropped = records.dropped;
    write!(to, ",\n{{\"ph\":\"M\",\"pid\":1,\"tid\":1,\"name\":\"dropped_events\",\"args\":{{\"dropped\":{dropped}}}}}")?;
    for slice in &records.slices {
        write_slice(slice, &records, to)?;
    }
    for (id, (from, until)) in arrows(&records).into_iter().enumerate() {
        let common = format!("\"pid\":1,\"tid\":1,\"cat\":\"wake\",\"name\":\"wake\",\"id\":{id}");
        write!(to, ",\n{{\"ph\":\"s\",{common},\"ts\":{}}}", Micros(from))?;
        write!(to, ",\n{{\"ph\":\"f\",\"bp\":\"e\",{common},\"ts\":{}}}", Micros(until))?;
    }
    to.write_all(b"\n]\n")
}

fn write_slice(slice: &Slice, records: &Records, to: &mut impl Write) -> io::Result<()> {
    let (category, name, place) = match slice.what {
        What::Turn => ("loop", "turn".to_owned(), None),
        What::Poll => ("loop", "poll".to_owned(), None),
        What::Wait => ("loop", "wait".to_owned(), None),
        What::Inbox => ("loop", "messages".to_owned(), None),
        What::Timers => ("loop", "timers".to_owned(), None),
        What::Round => ("loop", "round".to_owned(), None),
        What::Job { kind, place, word } => {
            ("job", job_name(kind, place, records.names.get(&word.as_u64()).map(String::as_str)), Some(place))
        }
    };
    let (begin, len) = (Micros(slice.begin), Micros(slice.end - slice.begin));
    write!(to, ",\n{{\"ph\":\"X\",\"pid\":1,\"tid\":1,\"cat\":\"{category}\",\"name\":{}", Text(&name))?;
    write!(to, ",\"ts\":{begin},\"dur\":{len}")?;
    if let Some(place) = place {
        write!(to, ",\"args\":{{\"place\":{}}}", Text(&place.to_string()))?;
    }
    to.write_all(b"}")
}

fn job_name(kind: JobKind, place: &Location<'_>, name: Option<&str>) -> String {
    let place = || format!("{}:{}", place.file().rsplit('/').next().unwrap_or_default(), place.line());
    match kind {
        JobKind::Main => "main".to_owned(),
        JobKind::Task | JobKind::Member => name.map_or_else(|| format!("task of {}", place()), str::to_owned),
        JobKind::Callback => format!("callback {}", place()),
        JobKind::Repeat => format!("repeating {}", place()),
        JobKind::Report => "error handler".to_owned(),
    }
}

/// From each wake to the job that it led to. A job is woken once before it runs; a wake whose job was cancelled leads nowhere, and one
/// outside every recorded stretch, by a host between two turns, has nothing to start from.
fn arrows(records: &Records) -> Vec<(u64, u64)> {
    let mut woken = BTreeMap::new();
    let mut wakes = records.wakes.iter().peekable();
    let mut arrows = Vec::new();
    let mut covered_until = 0;
    for slice in &records.slices {
        while let Some(wake) = wakes.next_if(|wake| wake.at < slice.begin) {
            if wake.at < covered_until {
                woken.insert(wake.woken.as_u64(), wake.at);
            }
        }
        covered_until = covered_until.max(slice.end);
        let What::Job { word, .. } = slice.what else { continue };
        if let Some(from) = woken.remove(&word.as_u64()) {
            arrows.push((from, slice.begin));
        }
    }
    arrows
}

/// Nanoseconds, in microseconds.
struct Micros(u64);

impl Display for Micros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03}", self.0 / 1_000, self.0 % 1_000)
    }
}

/// A string of JSON, with its quotes.
struct Text<'a>(&'a str);

impl Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"")?;
        for character in self.0.chars() {
            match character {
                '"' | '\\' => write!(f, "\\{character}")?,
                '\u{0}'..='\u{1f}' => write!(f, "\\u{:04x}", character as u32)?,
                _ => write!(f, "{character}")?,
            }
        }
        f.write_str("\"")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_microseconds_with_all_their_nanoseconds() {
        assert_eq!([7, 1_000, 12_345_678].map(|nanos| Micros(nanos).to_string()), ["0.007", "1.000", "12345.678"]);
    }
}
