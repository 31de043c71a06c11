//! Rooms, and the batch that fills while another one is on the disk: from lines that a client sent to sections that can
//! be stored and shown.
//!
//! Knows no sockets. A message costs two copies of its bytes, its line's end and nothing else. Next: `server.rs`.

use std::collections::HashMap;
use std::sync::Arc;

use memchr::memchr;

use crate::batch::{Batch, Section};
use crate::connection::Member;

/// All rooms that anybody was ever in.
#[derive(Default)]
pub(crate) struct Rooms {
    rooms: Vec<Room>,
    numbers: HashMap<Arc<str>, usize>,
    open: Batch,
    /// Buffers of sections that were shown, for those to come.
    spare_lines: Vec<Vec<u8>>,
}

struct Room {
    name: Arc<str>,
    members: Vec<usize>,
    /// Which section of the open batch is this room's.
    section: Option<usize>,
}

impl Rooms {
    pub(crate) fn join(&mut self, connection: usize, name: &str, room_name: &str) -> Member {
        let room = *self.numbers.entry(room_name.into()).or_insert_with_key(|name| {
            self.rooms.push(Room { name: name.clone(), members: Vec::new(), section: None });
            self.rooms.len() - 1
        });
        self.rooms[room].members.push(connection);
        Member { room, prefix: format!("MESSAGE {name} ").into_bytes() }
    }

    pub(crate) fn leave(&mut self, connection: usize, member: &Member) {
        self.rooms[member.room].members.retain(|other| *other != connection);
    }

    pub(crate) fn members(&self, room: usize) -> &[usize] {
        &self.rooms[room].members
    }

    /// Adds the messages that `lines` begins with to the open batch, and returns what follows them.
    pub(crate) fn add_messages<'a>(&mut self, member: &Member, lines: &'a [u8]) -> &'a [u8] {
        if !lines.starts_with(MESSAGE) {
            return lines;
        }
        let section = self.open_section(member.room);
        let mut rest = lines;
        while let Some(text) = rest.strip_prefix(MESSAGE)
            && let Some(len) = memchr(b'\n', text)
        {
            let (line, after) = text.split_at(len + 1);
            section.lines.reserve(member.prefix.len() + line.len());
            section.lines.extend_from_slice(&member.prefix);
            match line {
                [text @ .., b'\r', b'\n'] => {
                    section.lines.extend_from_slice(text);
                    section.lines.push(b'\n');
                }
                line => section.lines.extend_from_slice(line),
            }
            section.message_count += 1;
            rest = after;
        }
        rest
    }

    pub(crate) fn quit(&mut self, connection: usize) {
        self.open.quitting.push(connection);
    }

    /// Takes the open batch, if there is anything in it.
    pub(crate) fn take_batch(&mut self) -> Option<Batch> {
        if self.open.is_empty() {
            return None;
        }
        for section in &self.open.sections {
            self.rooms[section.room].section = None;
        }
        Some(std::mem::take(&mut self.open))
    }

    /// Takes the memory of a section that was shown.
    pub(crate) fn reuse(&mut self, section: Section) {
        let mut lines = section.lines;
        lines.clear();
        self.spare_lines.push(lines);
    }

    fn open_section(&mut self, room_number: usize) -> &mut Section {
        let room = &mut self.rooms[room_number];
        let index = *room.section.get_or_insert_with(|| {
            let lines = self.spare_lines.pop().unwrap_or_default();
            self.open.sections.push(Section { room: room_number, room_name: room.name.clone(), message_count: 0, lines });
            self.open.sections.len() - 1
        });
        &mut self.open.sections[index]
    }
}

const MESSAGE: &[u8] = b"MSG ";

#[cfg(test)]
mod tests {
    use super::*;

    /// What ada's lines become, and what of them is no message.
    #[track_caller]
    fn check(lines: &str, expected: &str, rest: &str) {
        let mut rooms = Rooms::default();
        let ada = rooms.join(0, "ada", "lobby");
        assert_eq!(rooms.add_messages(&ada, lines.as_bytes()), rest.as_bytes());
        let batch = rooms.take_batch();
        let lines = batch.iter().flat_map(|batch| &batch.sections).map(|section| String::from_utf8_lossy(&section.lines).into_owned());
        assert_eq!(lines.collect::<String>(), expected);
        let counted: u32 = batch.iter().flat_map(|batch| &batch.sections).map(|section| section.message_count).sum();
        assert_eq!(counted as usize, expected.lines().count());
    }

    #[test]
    fn lines_become_messages_up_to_the_first_that_is_none() {
        check("MSG a b\nMSG c\r\nPONG\nMSG d\n", "MESSAGE ada a b\nMESSAGE ada c\n", "PONG\nMSG d\n");
        check("QUIT\n", "", "QUIT\n");
        check("", "", "");
    }

    #[test]
    fn a_room_has_one_section_in_a_batch_whoever_speaks() {
        let mut rooms = Rooms::default();
        let (ada, grace, alan) = (rooms.join(0, "ada", "lobby"), rooms.join(1, "grace", "lobby"), rooms.join(2, "alan", "attic"));
        for (member, text) in [(&ada, "MSG 1\n"), (&alan, "MSG 2\n"), (&grace, "MSG 3\n")] {
            rooms.add_messages(member, text.as_bytes());
        }
        let batch = rooms.take_batch().unwrap();
        let sections: Vec<_> = batch.sections.iter().map(|section| (&*section.room_name, section.lines.as_slice())).collect();
        assert_eq!(sections, [("lobby", &b"MESSAGE ada 1\nMESSAGE grace 3\n"[..]), ("attic", b"MESSAGE alan 2\n")]);
        assert!(rooms.take_batch().is_none());
        rooms.add_messages(&ada, b"MSG 4\n");
        assert_eq!(rooms.take_batch().unwrap().sections[0].lines, b"MESSAGE ada 4\n");
        assert_eq!(rooms.members(ada.room), [0, 1]);
    }
}
