//! The segment: some consecutive messages of one room, as history.db keeps them. Cuts, joins, checks and sums them.
//!
//! Pure: it knows neither SQLite nor a file. Messages are never parsed to be moved: a run says how many messages its bytes are, and only
//! where a run is cut are line ends looked for. Next: `database.rs`, which stores segments.
//!
//! ```text
//! runs   (id 7-0, time, 2 messages, 34 bytes)     (id 9-0, time, 1 message, 17 bytes)
//! lines  MESSAGE ada one\nMESSAGE bob two\n       MESSAGE ada three\n
//! ```

use crate::storage::{limits::SEGMENT_BYTES, position::MessageId};
use memchr::{memchr, memchr_iter};

/// The messages that one record of the log brought into a room, or the part of them that a segment holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Run {
    /// Of its first message. The others have the same sequence and the ordinals after it.
    pub(crate) id: MessageId,
    /// When the record was committed.
    pub(crate) unix_ms: u64,
    /// At least 1.
    pub(crate) message_count: u32,
    /// What its messages take of the lines.
    pub(crate) line_bytes: u32,
}

/// Consecutive messages of one room. One that is stored holds at least one message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) room: String,
    /// The number of its first message in the room, counted from 1 over the room's life in this database.
    pub(crate) first_number: u64,
    pub(crate) runs: Vec<Run>,
    /// `MESSAGE <name> <text>\n` lines, as they were broadcast.
    pub(crate) lines: Vec<u8>,
}

/// A message of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Message<'a> {
    pub(crate) id: MessageId,
    pub(crate) unix_ms: u64,
    /// `MESSAGE <name> <text>\n`
    pub(crate) line: &'a [u8],
}

/// A walk over runs and their lines: what is in front of it can be skipped, or moved to the end of a segment.
#[derive(Debug, Clone)]
pub(crate) struct Cursor<'a> {
    /// What is left of a run that was cut; it stands before `runs`.
    cut: Option<Run>,
    runs: &'a [Run],
    lines: &'a [u8],
}

impl Run {
    pub(crate) fn last_id(&self) -> MessageId {
        MessageId { sequence: self.id.sequence, ordinal: self.id.ordinal.saturating_add(self.message_count.saturating_sub(1)) }
    }

    /// The first `message_count` messages, which take `line_bytes`, and the others.
    fn split(self, message_count: u32, line_bytes: usize) -> (Run, Run) {
        let line_bytes = u32::try_from(line_bytes).unwrap_or(u32::MAX);
        let after = MessageId { sequence: self.id.sequence, ordinal: self.id.ordinal.saturating_add(message_count) };
        (
            Run { message_count, line_bytes, ..self },
            Run {
                id: after,
                message_count: self.message_count.saturating_sub(message_count),
                line_bytes: self.line_bytes.saturating_sub(line_bytes),
                ..self
            },
        )
    }
}

impl Segment {
    /// An empty one, to be filled.
    pub(crate) fn new(room: &str, first_number: u64) -> Segment {
        Segment { room: room.to_owned(), first_number, runs: Vec::new(), lines: Vec::new() }
    }

    /// The id of its first message; 0-0, which no message has, when there is none.
    pub(crate) fn first_id(&self) -> MessageId {
        self.runs.first().map_or(NO_ID, |run| run.id)
    }

    /// The id of its last message; 0-0, which no message has, when there is none.
    pub(crate) fn last_id(&self) -> MessageId {
        self.runs.last().map_or(NO_ID, Run::last_id)
    }

    /// When its first message was committed.
    pub(crate) fn first_ms(&self) -> u64 {
        self.runs.first().map_or(0, |run| run.unix_ms)
    }

    /// When its last message was committed. The wall clock may have jumped between the two.
    pub(crate) fn last_ms(&self) -> u64 {
        self.runs.last().map_or(0, |run| run.unix_ms)
    }

    pub(crate) fn message_count(&self) -> u32 {
        self.runs.iter().fold(0, |count, run| count.saturating_add(run.message_count))
    }

    /// The number in the room of the message that follows its last one.
    pub(crate) fn end_number(&self) -> u64 {
        self.first_number.saturating_add(u64::from(self.message_count()))
    }

    /// CRC-32C over all of it. Each part's length goes before the part, so that no two segments are the same bytes.
    pub(crate) fn checksum(&self) -> u32 {
        let runs = self.encode_runs();
        let lengths = [self.room.len() as u64, self.first_number, runs.len() as u64, self.lines.len() as u64];
        let checksum = lengths.iter().fold(0, |checksum, number| crc32c::crc32c_append(checksum, &number.to_le_bytes()));
        [self.room.as_bytes(), &runs, &self.lines].iter().fold(checksum, |checksum, part| crc32c::crc32c_append(checksum, part))
    }

    /// The runs as they are stored: for each its sequence, first ordinal, time, number of messages and bytes, little-endian.
    pub(crate) fn encode_runs(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.runs.len() * RUN_BYTES);
        for run in &self.runs {
            bytes.extend_from_slice(&run.id.sequence.to_le_bytes());
            bytes.extend_from_slice(&run.id.ordinal.to_le_bytes());
            bytes.extend_from_slice(&run.unix_ms.to_le_bytes());
            bytes.extend_from_slice(&run.message_count.to_le_bytes());
            bytes.extend_from_slice(&run.line_bytes.to_le_bytes());
        }
        bytes
    }

    /// The runs back from [`encode_runs`](Segment::encode_runs); `None` when they do not fill whole runs.
    pub(crate) fn decode_runs(bytes: &[u8]) -> Option<Vec<Run>> {
        let (runs, rest) = bytes.as_chunks::<RUN_BYTES>();
        let run = |bytes: &[u8; RUN_BYTES]| Run {
            id: MessageId { sequence: number(&bytes[..8]), ordinal: number(&bytes[8..12]) as u32 },
            unix_ms: number(&bytes[12..20]),
            message_count: number(&bytes[20..24]) as u32,
            line_bytes: number(&bytes[24..]) as u32,
        };
        rest.is_empty().then(|| runs.iter().map(run).collect())
    }

    /// Whether runs and lines agree and are what a room's history may hold.
    ///
    /// # Errors
    ///
    /// What is wrong, to be read after "its".
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        if self.first_number == 0 {
            return Err("first number is 0");
        }
        if self.runs.is_empty() {
            return Err("runs are none");
        }
        if str::from_utf8(&self.lines).is_err() {
            return Err("lines are not UTF-8");
        }
        let (mut before, mut rest) = (NO_ID, &self.lines[..]);
        for run in &self.runs {
            let last_ordinal = run.message_count.checked_sub(1).and_then(|more| run.id.ordinal.checked_add(more));
            if run.id <= before || last_ordinal.is_none() {
                return Err("runs are out of order or empty");
            }
            before = run.last_id();
            let Some((lines, after)) = rest.split_at_checked(run.line_bytes as usize) else {
                return Err("lines are shorter than its runs say");
            };
            rest = after;
            check_lines(lines, run.message_count)?;
        }
        if rest.is_empty() { Ok(()) } else { Err("lines are longer than its runs say") }
    }

    /// Its messages, oldest first.
    pub(crate) fn messages(&self) -> impl Iterator<Item = Message<'_>> {
        let mut cursor = self.cursor();
        std::iter::from_fn(move || cursor.next_message())
    }

    pub(crate) fn cursor(&self) -> Cursor<'_> {
        Cursor::new(&self.runs, &self.lines)
    }

    /// What follows its first `message_count` messages, if anything does.
    pub(crate) fn without_first(&self, message_count: u32) -> Option<Segment> {
        let mut cursor = self.cursor();
        cursor.skip_messages(message_count);
        let mut rest = Segment::new(&self.room, self.first_number.saturating_add(u64::from(message_count)));
        cursor.move_all(&mut rest);
        (!rest.runs.is_empty()).then_some(rest)
    }

    /// The messages behind the one of this id, if there are any.
    pub(crate) fn after(&self, id: MessageId) -> Option<Segment> {
        self.without_first(self.cursor().count_up_to(id))
    }

    /// The messages of the records up to this one, if there are any.
    pub(crate) fn up_to(mut self, sequence: u64) -> Option<Segment> {
        self.runs.truncate(self.runs.partition_point(|run| run.id.sequence <= sequence));
        self.lines.truncate(line_bytes(&self.runs));
        (!self.runs.is_empty()).then_some(self)
    }

    /// How many of its messages, from the first on, were committed before this time. One that was not protects those behind it, so that
    /// what is kept of a room has no gaps even when the clock jumped.
    pub(crate) fn count_older_than(&self, unix_ms: u64) -> u32 {
        self.runs.iter().take_while(|run| run.unix_ms < unix_ms).fold(0, |count, run| count.saturating_add(run.message_count))
    }

    /// Appends a run, as part of the one before it when that was one in the log.
    fn push(&mut self, run: Run) {
        match self.runs.last_mut() {
            Some(last) if continues(last, &run) => {
                last.message_count += run.message_count;
                last.line_bytes += run.line_bytes;
            }
            _ => self.runs.push(run),
        }
    }
}

impl<'a> Cursor<'a> {
    /// Over `lines`, which belong to `runs`.
    pub(crate) fn new(runs: &'a [Run], lines: &'a [u8]) -> Cursor<'a> {
        Cursor { cut: None, runs, lines }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.cut.is_none() && self.runs.is_empty()
    }

    /// The bytes in front of it.
    pub(crate) fn line_bytes(&self) -> usize {
        self.lines.len()
    }

    /// How many of the messages in front of it have this id or a lower one.
    pub(crate) fn count_up_to(&self, id: MessageId) -> u32 {
        let covered = |run: &Run| match run.id {
            first if first > id => 0,
            first if first.sequence == id.sequence => run.message_count.min((id.ordinal - first.ordinal).saturating_add(1)),
            _ => run.message_count,
        };
        self.cut.iter().chain(self.runs).map(covered).take_while(|count| *count > 0).fold(0, u32::saturating_add)
    }

    /// Steps over as many messages, or over all.
    pub(crate) fn skip_messages(&mut self, mut message_count: u32) {
        while message_count > 0
            && let Some(run) = self.next_run()
        {
            if run.message_count <= message_count {
                message_count -= run.message_count;
                self.take_lines(run.line_bytes as usize);
            } else {
                let line_bytes = end_of_line(self.lines, message_count);
                self.take_lines(line_bytes);
                self.cut = Some(run.split(message_count, line_bytes).1);
                return;
            }
        }
    }

    /// Moves messages to the end of `segment` until it is full: until the next one would make it longer than [`SEGMENT_BYTES`]. A message
    /// that is longer than that goes into a segment that is empty, alone.
    pub(crate) fn fill(&mut self, segment: &mut Segment) {
        while let Some(run) = self.next_run() {
            let room_bytes = SEGMENT_BYTES.saturating_sub(segment.lines.len());
            if run.line_bytes as usize <= room_bytes {
                self.move_run(run, segment);
                continue;
            }
            // The run is cut behind the last message that fits.
            let mut line_bytes =
                self.lines[..room_bytes.min(self.lines.len())].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
            if line_bytes == 0 && segment.lines.is_empty() {
                line_bytes = end_of_line(self.lines, 1);
            }
            let message_count = memchr_iter(b'\n', &self.lines[..line_bytes]).count() as u32;
            if message_count >= run.message_count {
                self.move_run(run, segment);
            } else if message_count > 0 {
                let (part, rest) = run.split(message_count, line_bytes);
                self.move_run(part, segment);
                self.cut = Some(rest);
            } else {
                self.cut = Some(run);
            }
            return;
        }
    }

    fn move_all(&mut self, segment: &mut Segment) {
        while let Some(run) = self.next_run() {
            self.move_run(run, segment);
        }
    }

    fn next_message(&mut self) -> Option<Message<'a>> {
        let run = self.next_run()?;
        let line_bytes = if run.message_count > 1 { end_of_line(self.lines, 1) } else { run.line_bytes as usize };
        let line = self.take_lines(line_bytes);
        if run.message_count > 1 {
            self.cut = Some(run.split(1, line_bytes).1);
        }
        Some(Message { id: run.id, unix_ms: run.unix_ms, line })
    }

    /// Takes the next run; its lines are still in front.
    fn next_run(&mut self) -> Option<Run> {
        self.cut.take().or_else(|| {
            let (run, rest) = self.runs.split_first()?;
            self.runs = rest;
            Some(*run)
        })
    }

    fn move_run(&mut self, run: Run, segment: &mut Segment) {
        let lines = self.take_lines(run.line_bytes as usize);
        segment.lines.extend_from_slice(lines);
        segment.push(run);
    }

    fn take_lines(&mut self, line_bytes: usize) -> &'a [u8] {
        let (lines, rest) = self.lines.split_at(line_bytes.min(self.lines.len()));
        self.lines = rest;
        lines
    }
}

/// What these runs take of the lines.
pub(crate) fn line_bytes(runs: &[Run]) -> usize {
    runs.iter().map(|run| run.line_bytes as usize).sum()
}

/// Whether `next` was one run with `run` in the log.
fn continues(run: &Run, next: &Run) -> bool {
    run.id.sequence == next.id.sequence
        && run.id.ordinal.checked_add(run.message_count) == Some(next.id.ordinal)
        && run.unix_ms == next.unix_ms
        && run.message_count.checked_add(next.message_count).is_some()
        && run.line_bytes.checked_add(next.line_bytes).is_some()
}

fn check_lines(lines: &[u8], message_count: u32) -> Result<(), &'static str> {
    let (mut count, mut rest) = (0u32, lines);
    while let Some(end) = memchr(b'\n', rest) {
        let name_and_text = rest[..end].strip_prefix(b"MESSAGE ").ok_or("lines are not messages")?;
        if matches!(memchr(b' ', name_and_text), None | Some(0)) {
            return Err("lines are not messages");
        }
        count = count.saturating_add(1);
        rest = &rest[end + 1..];
    }
    if rest.is_empty() && count == message_count { Ok(()) } else { Err("lines are not as many messages as its runs say") }
}

/// Behind the `count`th line end, or behind everything when there are fewer.
fn end_of_line(lines: &[u8], count: u32) -> usize {
    memchr_iter(b'\n', lines).nth((count as usize).saturating_sub(1)).map_or(lines.len(), |at| at + 1)
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte))
}

const NO_ID: MessageId = MessageId { sequence: 0, ordinal: 0 };

const RUN_BYTES: usize = 28;

#[cfg(test)]
#[path = "segment_tests.rs"]
mod tests;
