//! A server's two stores on a disk in memory, moved step by step, and what was said: the tests of this folder share it.

use super::source::Source;
use crate::storage::{
    contract::{Archive, Next, Storage},
    disk::Disk,
    history::{Disks, HistoryArchive, Retention},
    log::Log,
    memory_disk::MemoryDisk,
    open::{Opened, open_on},
    position::MessageId,
};
use relay_core::{Batch, Section};
use std::{collections::BTreeMap, sync::Arc};

/// Sixteen pages, so that a few commits fill a file.
pub(crate) const FILE_BYTES: u64 = 64 << 10;

pub(crate) const UNIX_MS: u64 = 1_700_000_000_000;

pub(crate) type Said = BTreeMap<String, Vec<(MessageId, String)>>;

pub(crate) struct World {
    pub(crate) disk: MemoryDisk,
    pub(crate) log: Log,
    pub(crate) archive: HistoryArchive,
    pub(crate) committed: u64,
    /// The messages of each room.
    pub(crate) said: Said,
}

impl World {
    pub(crate) fn new() -> World {
        World::keeping(Retention::default())
    }

    pub(crate) fn keeping(retention: Retention) -> World {
        World::on(MemoryDisk::default(), retention, Said::new())
    }

    fn on(disk: MemoryDisk, retention: Retention, said: Said) -> World {
        let disks = Disks { data: Arc::new(disk.clone()), log: Arc::new(disk.clone()) };
        let Opened { log, archive, sequence, .. } =
            open_on(disks, FILE_BYTES, retention, || UNIX_MS, &mut |_, _| {}).expect("the disk is right");
        World { disk, log, archive, committed: sequence, said }
    }

    /// One commit, in which each of the rooms gets as many messages.
    pub(crate) fn commit<'a>(&mut self, rooms: impl IntoIterator<Item = &'a str>, message_count: u32, text_bytes: usize) {
        let sequence = self.committed + 1;
        let mut sections = Vec::new();
        for room in rooms {
            let mut lines = Vec::new();
            for ordinal in 0..message_count {
                let line = format!("MESSAGE ada {room} {sequence}-{ordinal} {}\n", "x".repeat(text_bytes));
                lines.extend_from_slice(line.as_bytes());
                self.said.entry(room.to_owned()).or_default().push((MessageId { sequence, ordinal }, line));
            }
            sections.push(Section { room: room.into(), message_count, lines });
        }
        self.committed = self.log.commit(&Batch { sections }).expect("the disk works").sequence;
    }

    /// One step of the archive. False if there is nothing to do.
    pub(crate) fn step(&mut self) -> bool {
        self.archive.work(self.committed).expect("the disk works").next == Next::Now
    }

    pub(crate) fn fold(&mut self) {
        while self.step() {}
    }

    pub(crate) fn source(&self) -> Source {
        source_of(&self.disk)
    }

    /// The number of the first log file that is there.
    pub(crate) fn first_file(&self) -> String {
        self.disk.names().expect("the disk is on").iter().find(|name| name.ends_with(".log")).cloned().unwrap_or_default()
    }
}

pub(crate) fn source_of(disk: &MemoryDisk) -> Source {
    Source { data_dir: "memory".into(), disk: Arc::new(disk.clone()), log: Arc::new(disk.clone()), file_bytes: FILE_BYTES }
}

/// Enough rooms for a fold of several transactions.
pub(crate) fn many_rooms() -> Vec<String> {
    std::iter::once("lounge".to_owned()).chain((0..400).map(|number| format!("room-{number:03}"))).collect()
}
