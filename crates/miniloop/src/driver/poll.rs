//! All of `poll(2)`: the driver that every Unix can run. Knows tokens and descriptors, not who waits for them.
//!
//! What to know of the kernel here. It remembers nothing between two calls: each says anew which numbers are of interest, and is told what
//! is so *now*, for as long as it is so. Hang-up and error are told whether or not anybody asked, so whoever wants silence must leave the
//! number out. A number is all that it knows: it says when one is closed, but not when it has become another file's.
//!
//! The rest of the driver thinks in epoll's terms, and they are made of this:
//!
//! ```text
//! level    ask at every call
//! edge     ask while it would be news: from the system call that found nothing until the event that says "try again". Between the two
//!          nobody is told twice, after the event nobody is asked, so nobody can miss a change or spin on what does not change
//! file     device and inode, noted when a number is added, and compared before a level event is believed
//! ```
//!
//! Cost: one system call a wait, and time in proportion to the number of descriptors; one `fstat` to add one. This file is listed for
//! `unsafe`: the numbers are the user's. Next: `selector.rs`.

use std::collections::BTreeMap;
use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, Stat, fstat};
use rustix::io::Errno;

use super::source::{Interest, Readiness};
use crate::doorbell;

pub(super) struct Poll {
    /// By number, which is also the order in which one wait tells its events.
    entries: BTreeMap<RawFd, Entry>,
    /// The question of a wait, empty between two: kept for its allocation.
    asked: Vec<PollFd<'static>>,
    /// What the last wait found.
    events: Vec<(u64, Readiness)>,
}

struct Entry {
    token: u64,
    file: FileId,
    watch: Watch,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Watch {
    Doorbell,
    Edge,
    Level(Interest),
}

impl Poll {
    pub(super) fn new() -> Self {
        Self { entries: BTreeMap::new(), asked: Vec::new(), events: Vec::new() }
    }

    pub(super) fn add_doorbell(&mut self, fd: BorrowedFd<'_>, token: u64) -> io::Result<()> {
        self.add(fd, token, Watch::Doorbell)
    }

    pub(super) fn add_edge(&mut self, fd: BorrowedFd<'_>, token: u64) -> io::Result<()> {
        self.add(fd, token, Watch::Edge)
    }

    pub(super) fn add_level(&mut self, fd: BorrowedFd<'_>, token: u64, interest: Interest) -> io::Result<()> {
        self.add(fd, token, Watch::Level(interest))
    }

    fn add(&mut self, fd: BorrowedFd<'_>, token: u64, watch: Watch) -> io::Result<()> {
        let stat = fstat(fd)?;
        if matches!(FileType::from_raw_mode(stat.st_mode), FileType::RegularFile | FileType::Directory) {
            return Err(Errno::PERM.into()); // always ready, says `poll`: nobody may wait for that, epoll says
        }
        let (number, file) = (fd.as_raw_fd(), FileId::of(&stat));
        if watch == Watch::Edge && self.entries.get(&number).is_some_and(|entry| entry.file == file) {
            return Err(Errno::EXIST.into());
        }
        self.entries.insert(number, Entry { token, file, watch });
        Ok(())
    }

    pub(super) fn modify_level(&mut self, fd: BorrowedFd<'_>, token: u64, interest: Interest) -> io::Result<bool> {
        let file = FileId::of(&fstat(fd)?);
        match self.entries.get_mut(&fd.as_raw_fd()) {
            Some(entry) if entry.file == file => {
                *entry = Entry { token, file, watch: Watch::Level(interest) };
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    pub(super) fn narrow(&mut self, number: RawFd, token: u64, interest: Interest) {
        match self.entries.get_mut(&number).filter(|entry| entry.token == token) {
            Some(_) if interest.is_none() => drop(self.entries.remove(&number)),
            Some(entry) => entry.watch = Watch::Level(interest),
            None => {}
        }
    }

    pub(super) fn wait(&mut self, timeout: Option<&Timespec>, unready: impl Fn(u64) -> Interest) -> io::Result<()> {
        self.events.clear();
        let mut asked = mem::take(&mut self.asked);
        for (number, entry) in &self.entries {
            let flags = flags(match entry.watch {
                Watch::Doorbell => Interest { read: true, write: false },
                Watch::Edge => unready(entry.token),
                Watch::Level(interest) => interest,
            });
            if !flags.is_empty() {
                // SAFETY: not -1, since a descriptor had this number when it was added, and the borrow ends with this function, whatever
                // its type says: the vector is emptied. The number goes to `poll`, to `fstat`, and to `read` if it is the doorbell, which
                // its owner keeps open. Whoever registered a number closes it after it was taken out; a user who closed it too early makes
                // `poll` answer "not open", or tell of a new file of that number, and nothing else.
                let fd = unsafe { BorrowedFd::borrow_raw(*number) };
                asked.push(PollFd::from_borrowed_fd(fd, flags));
            }
        }
        let result = poll(&mut asked, timeout).map_err(|errno| told(errno, asked.len()));
        if result.is_ok() {
            for answer in asked.iter().filter(|answer| !answer.revents().is_empty()) {
                self.collect(answer);
            }
        }
        asked.clear();
        self.asked = asked;
        result.map(drop)
    }

    /// Takes in what one number has to say.
    fn collect(&mut self, answer: &PollFd<'_>) {
        let number = answer.as_fd().as_raw_fd();
        let Some(entry) = self.entries.get(&number) else { return };
        let is_lost = match entry.watch {
            _ if answer.revents().contains(PollFlags::NVAL) => true,
            Watch::Level(_) => !fstat(answer).is_ok_and(|stat| FileId::of(&stat) == entry.file),
            Watch::Edge | Watch::Doorbell => false,
        };
        if is_lost {
            // Closed without a word. What epoll does then is done here: it forgets, without a word.
            self.entries.remove(&number);
            return;
        }
        if entry.watch == Watch::Doorbell {
            doorbell::drain(answer); // a ring is an edge, and the next one must be news again
        }
        self.events.push((entry.token, readiness(answer.revents())));
    }

    #[cfg(test)]
    pub(super) fn entry_count(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn event_count(&self) -> usize {
        self.events.len()
    }

    pub(super) fn event(&self, index: usize) -> (u64, Readiness) {
        self.events[index]
    }
}

/// The kernel refuses to be asked about more numbers than the process may open, if that limit was lowered afterwards.
fn told(errno: Errno, asked_len: usize) -> io::Error {
    if errno != Errno::INVAL {
        return errno.into();
    }
    let text = format!("poll(2) refuses to watch {asked_len} descriptors, more than a process may open: raise the limit, `ulimit -n`");
    io::Error::new(io::ErrorKind::QuotaExceeded, text)
}

/// What tells one open file from the next of the same number: not all systems can, and not for all kinds of files.
#[derive(Clone, Copy, PartialEq, Eq)]
struct FileId {
    device: i128,
    inode: i128,
}

impl FileId {
    fn of(stat: &Stat) -> Self {
        Self { device: stat.st_dev.into(), inode: stat.st_ino.into() }
    }
}

fn flags(interest: Interest) -> PollFlags {
    let mut flags = PollFlags::empty();
    flags.set(PollFlags::IN, interest.read);
    flags.set(PollFlags::OUT, interest.write);
    flags
}

/// Hang-up and error concern both directions: the next call of either fails, and must be made to be told so. The end of a stream counts as
/// readable everywhere.
fn readiness(flags: PollFlags) -> Readiness {
    let broken = flags.intersects(PollFlags::HUP | PollFlags::ERR);
    Readiness { read: broken || flags.contains(PollFlags::IN), write: broken || flags.contains(PollFlags::OUT), is_exceptional: broken }
}
