//! The messages that are accepted and not yet committed: in batches, each filled in turn, handed out for the disk, and answered for.
//!
//! ```text
//!   push --> [open, being filled]  ..  [open, full]  --take--> [in flight] --land--> fanned out, or refused
//! ```
//!
//! A message is appended to its room's section of the newest batch, formatted, in about 30 ns; nothing is looked up by name. Batches are
//! numbered from 1 and end in the order of their numbers, so "everything of mine is committed" is one comparison. Knows nothing of members:
//! who is shown a message, `hub::commits` decides. Next: `connection.rs`.

use alloc::{collections::VecDeque, string::String, vec::Vec};

use memchr::memchr;

use crate::batch::{Batch, Section};
use crate::limits::{BATCH_MAX_BYTES, RUN_OVERHEAD_BYTES, SECTION_OVERHEAD_BYTES, UNCOMMITTED_MAX_BYTES};
use crate::line;
use crate::room::{OpenSection, Room};
use crate::slots::Key;

/// Open batches and the one in flight.
#[derive(Debug)]
pub(crate) struct Uncommitted {
    /// Never holds an empty batch. Only the last one is still filled.
    open: VecDeque<OpenBatch>,
    flight: Option<Flight>,
    /// All messages with what they cost beside their lines, those in flight included.
    len_bytes: usize,
    next_number: u64,
}

#[derive(Debug)]
struct OpenBatch {
    batch: Batch,
    /// What the hub remembers of the batch while the batch itself is away.
    flight: Flight,
}

/// A batch that is on its way to disk, without its messages.
#[derive(Debug)]
pub(crate) struct Flight {
    pub(crate) number: u64,
    /// The rooms of the batch's sections.
    pub(crate) rooms: Vec<Key>,
    /// Who sent the messages, in the order of their sending.
    pub(crate) runs: Vec<Run>,
    /// As the limits count.
    len_bytes: usize,
}

/// Messages in one batch that one connection sent one after another.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) sender: Key,
    pub(crate) len_messages: u32,
}

/// The place behind a message, among those that are not committed yet.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Position {
    /// The batch's number; 0 is before all batches.
    pub(crate) batch: u64,
    /// The bytes and messages in the room's section of that batch up to here.
    pub(crate) end_bytes: u32,
    pub(crate) end_messages: u32,
}

/// What [`Uncommitted::push_more`] has appended.
pub(crate) struct More {
    pub(crate) parsed_len: usize,
    pub(crate) len_messages: u32,
    pub(crate) end: Position,
}

impl Uncommitted {
    pub(crate) fn new() -> Uncommitted {
        Uncommitted { open: VecDeque::new(), flight: None, len_bytes: 0, next_number: 1 }
    }

    /// Appends `MESSAGE <name> <text>\n` to the room's open section.
    #[inline]
    pub(crate) fn push(&mut self, sender: Key, room_key: Key, room: &mut Room, name: &str, text: &[u8]) -> Position {
        let line_len_bytes = "MESSAGE ".len() + name.len() + " ".len() + text.len() + "\n".len();
        let OpenBatch { batch, flight } = self.batch_with_space_for(line_len_bytes, room);
        let mut len_bytes = line_len_bytes;

        if room.open_section.batch != flight.number {
            room.open_section = OpenSection { batch: flight.number, index: batch.sections.len() };
            room.uncommitted_sections += 1;
            batch.sections.push(Section { room: String::from(&*room.name), message_count: 0, lines: Vec::new() });
            flight.rooms.push(room_key);
            len_bytes += section_overhead_bytes(room);
        }
        let section = &mut batch.sections[room.open_section.index];
        section.lines.reserve(line_len_bytes);
        section.lines.extend_from_slice(b"MESSAGE ");
        section.lines.extend_from_slice(name.as_bytes());
        section.lines.push(b' ');
        section.lines.extend_from_slice(text);
        section.lines.push(b'\n');
        section.message_count += 1;

        match flight.runs.last_mut() {
            Some(run) if run.sender == sender => run.len_messages += 1,
            _ => {
                flight.runs.push(Run { sender, len_messages: 1 });
                len_bytes += RUN_OVERHEAD_BYTES;
            }
        }
        flight.len_bytes += len_bytes;
        let position = Position { batch: flight.number, end_bytes: section.lines.len() as u32, end_messages: section.message_count };
        self.len_bytes += len_bytes;
        position
    }

    /// Appends what follows a message that was just pushed, as far as it is more of the same: whole `MSG` lines of plain text from the
    /// same sender to the same room, for which the batch has space. `None` when there is none. So who has sent a read full of messages is
    /// looked up once for it, and each of them is two copies.
    pub(crate) fn push_more(&mut self, sender: Key, room: &Room, name: &str, lines: &[u8]) -> Option<More> {
        let OpenBatch { batch, flight } = self.open.back_mut()?;
        let run = flight.runs.last_mut().filter(|run| run.sender == sender)?;
        let section = batch.sections.get_mut(room.open_section.index).filter(|_| room.open_section.batch == flight.number)?;
        let space_bytes = (BATCH_MAX_BYTES - flight.len_bytes).min(UNCOMMITTED_MAX_BYTES.saturating_sub(self.len_bytes));
        let begin_bytes = section.lines.len();
        let head = ["MESSAGE ", name, " "].concat();
        let (mut parsed_len, mut len_messages) = (0, 0);
        while let Some(line_len) = memchr(b'\n', &lines[parsed_len..]) {
            let end = parsed_len + line_len + 1;
            let Some(text) = line::plain_message(&lines[parsed_len..end - 1]) else { break };
            if section.lines.len() - begin_bytes + head.len() + text.len() + 1 > space_bytes {
                break;
            }
            section.lines.extend_from_slice(head.as_bytes());
            section.lines.extend_from_slice(&lines[end - 1 - text.len()..end]);
            len_messages += 1;
            parsed_len = end;
        }
        section.message_count += len_messages;
        run.len_messages += len_messages;
        let len_bytes = section.lines.len() - begin_bytes;
        flight.len_bytes += len_bytes;
        self.len_bytes += len_bytes;
        let end = Position { batch: flight.number, end_bytes: section.lines.len() as u32, end_messages: section.message_count };
        (len_messages > 0).then_some(More { parsed_len, len_messages, end })
    }

    /// The newest batch, or another one when a line of this length, with a section for its room, would be too much for it.
    #[inline]
    fn batch_with_space_for(&mut self, line_len_bytes: usize, room: &Room) -> &mut OpenBatch {
        let is_full = self.open.back().is_none_or(|OpenBatch { flight, .. }| {
            let has_section = room.open_section.batch == flight.number;
            let overhead_bytes = RUN_OVERHEAD_BYTES + if has_section { 0 } else { section_overhead_bytes(room) };
            flight.len_bytes + line_len_bytes + overhead_bytes > BATCH_MAX_BYTES
        });
        if is_full {
            let flight = Flight { number: self.next_number, rooms: Vec::new(), runs: Vec::new(), len_bytes: 0 };
            self.open.push_back(OpenBatch { batch: Batch::default(), flight });
            self.next_number += 1;
        }
        let last = self.open.len() - 1;
        &mut self.open[last]
    }

    /// The oldest open batch, unless another one is still in flight.
    pub(crate) fn take(&mut self) -> Option<Batch> {
        if self.flight.is_some() {
            return None;
        }
        let OpenBatch { batch, flight } = self.open.pop_front()?;
        self.flight = Some(flight);
        Some(batch)
    }

    /// Ends the batch in flight, if there is one.
    pub(crate) fn land(&mut self) -> Option<Flight> {
        let flight = self.flight.take()?;
        self.len_bytes -= flight.len_bytes;
        Some(flight)
    }

    /// Whether the messages before this position are still to be committed.
    #[inline]
    pub(crate) fn is_pending(&self, position: Position) -> bool {
        let first_pending = match &self.flight {
            Some(flight) => flight.number,
            None => self.next_number - self.open.len() as u64,
        };
        position.batch >= first_pending
    }

    /// Whether so much waits that nobody should be read from.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.len_bytes >= UNCOMMITTED_MAX_BYTES
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len_bytes == 0
    }

    pub(crate) fn len_bytes(&self) -> usize {
        self.len_bytes
    }
}

fn section_overhead_bytes(room: &Room) -> usize {
    SECTION_OVERHEAD_BYTES + room.name.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::BATCH_LEN_MAX_ROOMS;
    use crate::room::Rooms;
    use crate::slots::Slots;
    use alloc::format;

    /// What a flood holds in memory at the most: places that are only reserved count, and each allocation has a head.
    fn held_bytes(uncommitted: &Uncommitted) -> usize {
        const ALLOCATION_HEAD_BYTES: usize = 16;
        let section_bytes = |section: &Section| section.room.capacity() + section.lines.capacity() + 2 * ALLOCATION_HEAD_BYTES;
        let batches = uncommitted.open.iter().map(|OpenBatch { batch, flight }| {
            let lists = batch.sections.capacity() * size_of::<Section>()
                + flight.rooms.capacity() * size_of::<Key>()
                + flight.runs.capacity() * size_of::<Run>();
            lists + batch.sections.iter().map(section_bytes).sum::<usize>()
        });
        batches.sum()
    }

    /// Messages of this length, in turn to so many rooms from so many senders, until nobody would be read from any more.
    #[track_caller]
    fn check_flood(text_len_bytes: usize, rooms_len: usize, senders_len: usize) {
        let (mut rooms, mut senders, mut uncommitted) = (Rooms::new(), Slots::new(), Uncommitted::new());
        let senders: Vec<Key> = (0..senders_len).map(|_| senders.insert(())).collect();
        let text = b"x".repeat(text_len_bytes);
        let mut number = 0;
        while !uncommitted.is_full() {
            let (key, room) = rooms.open(&format!("{}", number % rooms_len), 0);
            uncommitted.push(senders[number % senders_len], key, room, "a", &text);
            number += 1;
        }
        let message_max_bytes = text_len_bytes + SECTION_OVERHEAD_BYTES + 100;
        let held_bytes = held_bytes(&uncommitted);
        assert!(held_bytes <= 2 * (UNCOMMITTED_MAX_BYTES + message_max_bytes), "{held_bytes} bytes");
        while let Some(batch) = uncommitted.take() {
            assert!(batch.sections.len() <= BATCH_LEN_MAX_ROOMS);
            let flight = uncommitted.land().expect("it was taken");
            let is_last = uncommitted.is_empty();
            assert!(flight.len_bytes <= BATCH_MAX_BYTES && (is_last || flight.len_bytes + message_max_bytes > BATCH_MAX_BYTES));
        }
        assert_eq!(uncommitted.len_bytes(), 0);
    }

    #[test]
    fn the_bounds_hold_for_memory_whatever_is_flooded() {
        for (text_len_bytes, rooms_len, senders_len) in
            [(1, 1, 1), (1, 1, 2), (1, 100_000, 1), (1, 100_000, 2), (1, 1000, 1001), (100, 1, 2), (4000, 1, 1), (4000, 7, 3)]
        {
            check_flood(text_len_bytes, rooms_len, senders_len);
        }
    }
}
