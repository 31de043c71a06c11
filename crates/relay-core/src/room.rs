//! Rooms in memory: who is in them and what was said last.
//!
//! ```text
//!   JOIN --> in use: members, or messages to be committed --> unused, not archived --archived--> forgotten
//!                ^                                   |               |                              ^
//!                +--------------- JOIN --------------|---------------+                              |
//!                                                    +-- no message here, or all are archived ------+
//! ```
//!
//! A room that is not in memory may have messages in the archive. So a new one is cold: what it had is asked for once, at the first `JOIN`,
//! and goes before what is said meanwhile. What is forgotten can be loaded again.
//!
//! All maps are ordered: what strangers choose is compared, never hashed, so nobody can make the keys collide, and a step costs one
//! comparison of short strings. They are searched on `JOIN` and on leaving only; a message finds its room by key. Knows keys of
//! connections, not connections. Next: `uncommitted.rs`.

use alloc::{
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
};

use crate::limits::FORGOTTEN_AT_ONCE_MAX_ROOMS;
use crate::once_queue::OnceQueue;
use crate::slots::{Key, Slots};
use crate::tail::Tail;

/// One room.
#[derive(Debug)]
pub(crate) struct Room {
    pub(crate) name: Rc<str>,
    /// The connections of the members, in the order of their names.
    pub(crate) members: BTreeMap<Rc<str>, Key>,
    /// Its last messages; until `past` is loaded only those since the room is in memory.
    pub(crate) tail: Tail,
    pub(crate) past: Past,
    /// How many commits there had been when the room was made. It had no message then that was not committed, so exactly what they hold of
    /// it is its past.
    pub(crate) past_commits: u64,
    /// The number of the last commit with messages that are in memory; without any 0.
    pub(crate) last_commit: u64,
    pub(crate) open_section: OpenSection,
    /// The batches that hold messages of this room: until they are committed the room stays, also without members.
    pub(crate) uncommitted_sections: u32,
}

/// The messages of a room from before it was in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Past {
    /// They are to be asked for.
    Wanted,
    /// The archive was asked, and has not answered.
    Asked,
    /// They could not be loaded, and nobody has wanted them since.
    Unavailable,
    /// They are in the tail.
    Loaded,
}

/// Where a room's newest open messages are collected (`uncommitted` does it).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OpenSection {
    /// The batch's number; of no batch yet 0.
    pub(crate) batch: u64,
    /// The section's place in that batch.
    pub(crate) index: usize,
}

/// All rooms that have members, or messages that are not archived.
#[derive(Debug)]
pub(crate) struct Rooms {
    rooms: Slots<Room>,
    by_name: BTreeMap<Rc<str>, Key>,
    /// Rooms whose past is to be loaded, in the order in which they came into memory. Some may be forgotten or asked for by now.
    to_load: OnceQueue,
    /// Those of them that a member waits for: they go first.
    waited_for: OnceQueue,
    /// Rooms that nobody uses and that stay for their messages, in the order of their last commits.
    unarchived: BTreeSet<(u64, Key)>,
    /// So many commits are in the archive.
    archived_commits: u64,
}

impl Rooms {
    pub(crate) fn new() -> Rooms {
        Rooms {
            rooms: Slots::new(),
            by_name: BTreeMap::new(),
            to_load: OnceQueue::default(),
            waited_for: OnceQueue::default(),
            unarchived: BTreeSet::new(),
            archived_commits: 0,
        }
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, key: Key) -> Option<&mut Room> {
        self.rooms.get_mut(key)
    }

    /// The room of this name for one more member, made if it is not there: after so many commits.
    pub(crate) fn open(&mut self, name: &str, commits: u64) -> (Key, &mut Room) {
        let key = match self.by_name.get(name) {
            Some(&key) => key,
            None => {
                let name: Rc<str> = name.into();
                let room = Room {
                    name: Rc::clone(&name),
                    members: BTreeMap::new(),
                    tail: Tail::default(),
                    past: Past::Wanted,
                    past_commits: commits,
                    last_commit: 0,
                    open_section: OpenSection::default(),
                    uncommitted_sections: 0,
                };
                let key = self.rooms.insert(room);
                self.by_name.insert(name, key);
                self.to_load.push(key.index);
                key
            }
        };
        let Some(room) = self.rooms.get_mut(key) else { unreachable!("`by_name` names living rooms") };
        if room.members.is_empty() {
            self.unarchived.remove(&(room.last_commit, key));
        }
        (key, room)
    }

    /// Whether a member of that name is in the room of that name.
    pub(crate) fn has_member(&self, room: &str, name: &str) -> bool {
        let room = self.by_name.get(room).and_then(|&key| self.rooms.get(key));
        room.is_some_and(|room| room.members.contains_key(name))
    }

    /// A member waits for a room's past: it is asked for before those that nobody waits for, and after a failure again.
    pub(crate) fn wait_for_past(&mut self, key: Key) {
        let Some(room) = self.rooms.get_mut(key) else { return };
        if room.past == Past::Unavailable {
            room.past = Past::Wanted;
        }
        if room.past == Past::Wanted {
            self.waited_for.push(key.index);
        }
    }

    /// How many rooms may want their past to be loaded.
    pub(crate) fn to_load_len(&self) -> usize {
        self.waited_for.len() + self.to_load.len()
    }

    /// The next room whose past is to be loaded. The archive is asked for it.
    pub(crate) fn pop_to_load(&mut self) -> Option<(Key, &Room)> {
        while let Some(index) = self.waited_for.pop().or_else(|| self.to_load.pop()) {
            let Some(key) = self.rooms.key_at(index) else { continue };
            if self.rooms.get(key).is_some_and(|room| room.past == Past::Wanted) {
                let room = self.rooms.get_mut(key)?;
                room.past = Past::Asked;
                return Some((key, room));
            }
        }
        None
    }

    /// Drops a room that nobody uses, now or once its messages are archived. Says whether it is gone.
    pub(crate) fn forget_if_unused(&mut self, key: Key) -> bool {
        let Some(room) = self.rooms.get(key) else { return false };
        if !room.members.is_empty() || room.uncommitted_sections > 0 {
            return false;
        }
        if room.last_commit > self.archived_commits {
            self.unarchived.insert((room.last_commit, key));
            return false;
        }
        self.remove(key);
        true
    }

    /// Notes that so many commits are archived: [`Rooms::forget_archived`] drops the rooms that waited for that.
    pub(crate) fn note_archived(&mut self, commits: u64) {
        self.archived_commits = self.archived_commits.max(commits);
    }

    /// Drops rooms that need not stay for their messages any more, at most [`FORGOTTEN_AT_ONCE_MAX_ROOMS`]. Says how many.
    pub(crate) fn forget_archived(&mut self) -> usize {
        let mut forgotten = 0;
        while forgotten < FORGOTTEN_AT_ONCE_MAX_ROOMS
            && self.has_archived()
            && let Some((_, key)) = self.unarchived.pop_first()
        {
            self.remove(key);
            forgotten += 1;
        }
        forgotten
    }

    /// Whether there is something to forget.
    pub(crate) fn has_archived(&self) -> bool {
        self.unarchived.first().is_some_and(|&(last_commit, _)| last_commit <= self.archived_commits)
    }

    fn remove(&mut self, key: Key) {
        if let Some(room) = self.rooms.remove(key) {
            self.by_name.remove(&room.name);
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.rooms.len()
    }
}
