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

use crate::batch::{Batch, Section};
use crate::limits::{BATCH_LEN_MAX_ROOMS, BATCH_MAX_BYTES, UNCOMMITTED_MAX_BYTES};
use crate::room::{OpenSection, Room};
use crate::slots::Key;

/// Open batches and the one in flight.
#[derive(Debug)]
pub(crate) struct Uncommitted {
    /// Never holds an empty batch. Only the last one is still filled.
    open: VecDeque<OpenBatch>,
    flight: Option<Flight>,
    /// All messages, those in flight included.
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

impl Uncommitted {
    pub(crate) fn new() -> Uncommitted {
        Uncommitted { open: VecDeque::new(), flight: None, len_bytes: 0, next_number: 1 }
    }

    /// Appends `MESSAGE <name> <text>\n` to the room's open section.
    #[inline]
    pub(crate) fn push(&mut self, sender: Key, room_key: Key, room: &mut Room, name: &str, text: &[u8]) -> Position {
        let line_len_bytes = "MESSAGE ".len() + name.len() + " ".len() + text.len() + "\n".len();
        let OpenBatch { batch, flight } = self.batch_with_space_for(line_len_bytes, room.open_section);

        if room.open_section.batch != flight.number {
            room.open_section = OpenSection { batch: flight.number, index: batch.sections.len() };
            room.uncommitted_sections += 1;
            batch.sections.push(Section { room: String::from(&*room.name), message_count: 0, lines: Vec::new() });
            flight.rooms.push(room_key);
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
            _ => flight.runs.push(Run { sender, len_messages: 1 }),
        }
        flight.len_bytes += line_len_bytes;
        let position = Position { batch: flight.number, end_bytes: section.lines.len() as u32, end_messages: section.message_count };
        self.len_bytes += line_len_bytes;
        position
    }

    /// The newest batch, or another one when a line of this length, or a section for its room, would be too much for it.
    #[inline]
    fn batch_with_space_for(&mut self, line_len_bytes: usize, section: OpenSection) -> &mut OpenBatch {
        let is_full = self.open.back().is_none_or(|OpenBatch { flight, .. }| {
            let is_new_room = section.batch != flight.number;
            flight.len_bytes + line_len_bytes > BATCH_MAX_BYTES || (is_new_room && flight.rooms.len() >= BATCH_LEN_MAX_ROOMS)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::room::Rooms;
    use crate::slots::Slots;
    use alloc::format;

    #[test]
    fn a_batch_has_a_bound_of_rooms_and_those_that_are_in_it_may_go_on() {
        let (mut rooms, mut uncommitted) = (Rooms::new(), Uncommitted::new());
        let sender = Slots::new().insert(());
        for number in (0..BATCH_LEN_MAX_ROOMS).chain([0, BATCH_LEN_MAX_ROOMS, 0]) {
            let (key, room) = rooms.open(&format!("{number}"));
            uncommitted.push(sender, key, room, "ada", b"hello");
        }
        let mut next_batch = || {
            let batch = uncommitted.take().expect("a batch is open");
            uncommitted.land();
            (batch.sections.len(), batch.sections[0].message_count)
        };
        assert_eq!([next_batch(), next_batch()], [(BATCH_LEN_MAX_ROOMS, 2), (2, 1)]);
    }
}
