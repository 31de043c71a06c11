//! Rooms: who is in them and what was said last.
//!
//! Both maps are ordered: what strangers choose is compared, never hashed, so nobody can make the keys collide, and a step costs one
//! comparison of short strings. They are searched on `JOIN` and on leaving only; a message finds its room by key. Knows keys of
//! connections, not connections. Next: `uncommitted.rs`.

use alloc::{collections::BTreeMap, rc::Rc};

use crate::slots::{Key, Slots};
use crate::tail::Tail;

/// One room.
#[derive(Debug)]
pub(crate) struct Room {
    pub(crate) name: Rc<str>,
    /// The connections of the members, in the order of their names.
    pub(crate) members: BTreeMap<Rc<str>, Key>,
    pub(crate) tail: Tail,
    pub(crate) open_section: OpenSection,
    /// The batches that hold messages of this room: until they are committed the room stays, also without members.
    pub(crate) uncommitted_sections: u32,
}

/// Where a room's newest open messages are collected (`uncommitted` does it).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OpenSection {
    /// The batch's number; of no batch yet 0.
    pub(crate) batch: u64,
    /// The section's place in that batch.
    pub(crate) index: usize,
}

/// All rooms that have members or messages.
#[derive(Debug)]
pub(crate) struct Rooms {
    rooms: Slots<Room>,
    by_name: BTreeMap<Rc<str>, Key>,
}

impl Rooms {
    pub(crate) fn new() -> Rooms {
        Rooms { rooms: Slots::new(), by_name: BTreeMap::new() }
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, key: Key) -> Option<&mut Room> {
        self.rooms.get_mut(key)
    }

    /// The room of this name, made if it is not there.
    pub(crate) fn open(&mut self, name: &str) -> (Key, &mut Room) {
        let key = match self.by_name.get(name) {
            Some(&key) => key,
            None => {
                let name: Rc<str> = name.into();
                let room = Room {
                    name: Rc::clone(&name),
                    members: BTreeMap::new(),
                    tail: Tail::default(),
                    open_section: OpenSection::default(),
                    uncommitted_sections: 0,
                };
                let key = self.rooms.insert(room);
                self.by_name.insert(name, key);
                key
            }
        };
        let Some(room) = self.rooms.get_mut(key) else { unreachable!("`by_name` names living rooms") };
        (key, room)
    }

    /// Whether a member of that name is in the room of that name.
    pub(crate) fn has_member(&self, room: &str, name: &str) -> bool {
        let room = self.by_name.get(room).and_then(|&key| self.rooms.get(key));
        room.is_some_and(|room| room.members.contains_key(name))
    }

    /// Drops a room that nobody could tell from a new one. Rooms with messages stay: their history is asked for later.
    pub(crate) fn forget_if_unused(&mut self, key: Key) {
        let Some(room) = self.rooms.get(key) else { return };
        if room.members.is_empty() && room.tail.is_empty() && room.uncommitted_sections == 0 {
            self.by_name.remove(&room.name);
            self.rooms.remove(key);
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.rooms.len()
    }
}
