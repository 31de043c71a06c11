//! A server's two stores on a disk in memory, moved step by step, and what was said: the tests of this folder share it.

use super::{new_folder::Target, report::Report, room_reader::RoomReader, source::Source, verify::verify_source};
use crate::storage::{
    contract::{Archive, Storage},
    disk::{Access, Disk},
    folder::HISTORY,
    history::{Database, Disks, HistoryArchive, PAGE_BYTES, Retention, open_connection},
    log::Log,
    memory_disk::MemoryDisk,
    open::{Opened, open_on},
    position::{LogPosition, MessageId},
};
use relay_core::{Batch, Section};
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

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

    pub(crate) fn on(disk: MemoryDisk, retention: Retention, said: Said) -> World {
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
        self.archive.work(self.committed).expect("the disk works").next.goes_on()
    }

    pub(crate) fn fold(&mut self) {
        while self.step() {}
    }

    /// A copy of the disk on which something has happened to a file.
    pub(crate) fn disk_with_change(&self, name: &str, change: impl FnOnce(&mut Vec<u8>)) -> MemoryDisk {
        let disk = self.disk.copy();
        let mut content = disk.content(name);
        change(&mut content);
        disk.put(name, content);
        disk
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

/// A folder in memory that is filled and has no log files.
pub(crate) fn fill(fill: impl FnOnce(&mut Target) -> LogPosition) -> MemoryDisk {
    let disk = MemoryDisk::default();
    let connection = open_connection(Arc::new(disk.clone()), HISTORY, Access::ReadWrite).expect("the disk works");
    let database = Database::create_or_check(connection.connection).expect("it is new");
    let mut target = Target::new(database, PathBuf::from(HISTORY));
    let last = fill(&mut target);
    target.finish(last).expect("the disk works");
    disk
}

/// All that is in a folder, after checks that it is right and that a server can go on in it.
#[track_caller]
pub(crate) fn kept(disk: &MemoryDisk, rooms: &Said) -> Said {
    let mut report = Report::new(Path::new("memory"));
    verify_source(&source_of(disk), &mut report, &mut |_| {}).expect("it can be looked at");
    assert_eq!(report.findings, Vec::new());
    let disks = Disks { data: Arc::new(disk.clone()), log: Arc::new(disk.clone()) };
    let opened = open_on(disks, FILE_BYTES, Retention::default(), || 1, &mut |_, _| {});
    drop(opened.unwrap_or_else(|error| panic!("{error}")));
    read_all(disk, rooms)
}

fn read_all(disk: &MemoryDisk, rooms: &Said) -> Said {
    let mut all = Said::new();
    for room in rooms.keys() {
        let mut reader = RoomReader::new(source_of(disk), room);
        let mut read: Vec<(MessageId, String)> = Vec::new();
        while let Some(segment) = reader.next().expect("it is right") {
            read.extend(segment.messages().map(|message| (message.id, String::from_utf8_lossy(message.line).into_owned())));
        }
        if !read.is_empty() {
            all.insert(room.clone(), read);
        }
    }
    all
}

/// The file and the page of the record with the highest sequence.
pub(crate) fn last_record(disk: &MemoryDisk) -> (String, usize) {
    let names = disk.names().expect("the disk is on");
    let pages = names.iter().filter(|name| name.ends_with(".log")).flat_map(|name| (0..16).map(move |page| (name.clone(), page)));
    let sequence = |(name, page): &(String, usize)| {
        let header = disk.content(name)[page * PAGE_BYTES..][..24].to_vec();
        if header[..4] == *b"\xffRLG" { u64::from_le_bytes(header[16..24].try_into().expect("eight bytes")) } else { 0 }
    };
    pages.max_by_key(sequence).expect("there is a record")
}
