//! The archive's steps one by one, on a disk in memory: what each does, what it says of itself, and what it leaves when it fails.

use super::*;
use crate::storage::{
    contract::Storage,
    disk::{Access, Disk},
    history::{Database, open_connection},
    log::Log,
    memory_disk::{Fault, MemoryDisk},
    open::{Opened, open_on},
};
use relay_core::{Batch, Section};
use std::sync::Arc;

const FILE_BYTES: u64 = 8 << 20;

struct World {
    disk: MemoryDisk,
    log: Log,
    archive: HistoryArchive,
    committed: u64,
    log_bytes: u64,
}

impl World {
    fn new() -> World {
        let disk = MemoryDisk::default();
        let disks = Disks { data: Arc::new(disk.clone()), log: Arc::new(disk.clone()) };
        let opened = open_on(disks, FILE_BYTES, Retention::default(), || 0, &mut |_, _| {}).expect("the disk is empty");
        let Opened { log, archive, sequence, .. } = opened;
        World { disk, log, archive, committed: sequence, log_bytes: 0 }
    }

    fn commit(&mut self, room: &str, message_count: u32, text_bytes: usize) {
        let lines = format!("MESSAGE ada {}\n", "x".repeat(text_bytes)).repeat(message_count as usize).into_bytes();
        let batch = Batch { sections: vec![Section { room: room.to_owned(), message_count, lines }] };
        let committed = self.log.commit(&batch).expect("the disk works");
        self.committed = committed.sequence;
        self.log_bytes += committed.log_bytes;
    }

    /// Steps until one does not ask for the next at once; returns them.
    fn work(&mut self) -> Vec<Worked> {
        let mut steps = Vec::new();
        loop {
            let worked = self.archive.work(self.committed).expect("the disk works");
            steps.push(worked);
            if !worked.next.goes_on() {
                return steps;
            }
        }
    }

    fn loaded_count(&mut self, room: &str, up_to: u64) -> u32 {
        self.archive.load(room, up_to).expect("the disk works").message_count
    }

    fn calls(&self, since: usize, action: &str) -> usize {
        self.disk.trace()[since..].iter().filter(|call| call.starts_with(action)).count()
    }
}

#[test]
fn the_steps_of_a_fold_say_how_much_of_the_log_is_done_and_all_of_it_in_the_end() {
    let mut world = World::new();
    for _ in 0..20 {
        world.commit("hall", 1000, 400);
    }
    let steps = world.work();
    assert_eq!(steps.iter().map(|step| step.log_bytes).sum::<u64>(), world.log_bytes);
    let moved: Vec<u64> = steps.iter().map(|step| step.folded).filter(|folded| *folded > 0).collect();
    assert!(moved.iter().all(|folded| *folded == 20) && !moved.is_empty(), "it moves once, at the end");
    let most = steps.iter().map(|step| step.log_bytes).max().unwrap_or(0);
    assert!(steps.len() > 8 && most < 2 * FOLD_TRANSACTION_BYTES as u64, "{} steps of up to {most} bytes", steps.len());
    assert_eq!(world.work(), [Worked { folded: 20, log_bytes: 0, next: Next::WhenCommitted }], "nothing is left");
}

#[test]
fn one_transaction_is_about_as_long_as_it_should_be_also_with_a_thousand_rooms() {
    let mut world = World::new();
    for room in 0..2000 {
        world.commit(&format!("room{room}"), 1, 10);
    }
    let mut written_max = 0;
    loop {
        let before = world.disk.trace().len();
        let next = world.archive.work(world.committed).expect("the disk works").next;
        if world.disk.trace()[before..].iter().any(|call| call.starts_with("sync history.db")) {
            written_max = written_max.max(world.calls(before, "write history.db "));
        }
        if !next.goes_on() {
            break;
        }
    }
    let pages_max = 2 * FOLD_TRANSACTION_BYTES / 4096;
    assert!(written_max > 10 && written_max <= pages_max, "{written_max} pages");
}

#[test]
fn files_that_are_folded_come_back_and_no_more_than_needed_stay() {
    let mut world = World::new();
    for _ in 0..10 {
        world.commit("hall", 1000, 4000);
        world.commit("hall", 1000, 3000);
        world.work();
    }
    let files: Vec<String> = world.disk.names().expect("the disk is on").into_iter().filter(|name| name.ends_with(".log")).collect();
    assert!(files.len() <= 4 && !files.contains(&"00000001.log".to_owned()), "{files:?}");
    assert!(world.archive.files.recycled_count() > 3);
}

#[test]
fn a_room_is_loaded_right_between_any_two_steps() {
    let mut world = World::new();
    world.commit("attic", 7, 100);
    world.commit("hall", 9, 100);
    world.work();
    // The attic is in use from here on, the hall is not.
    for _ in 0..8 {
        world.commit("attic", 3000, 300);
    }
    loop {
        assert_eq!(world.loaded_count("hall", 2), 9);
        assert_eq!(world.loaded_count("attic", 1), 7, "what is committed later is in memory already");
        if !world.archive.work(world.committed).expect("the disk works").next.goes_on() {
            break;
        }
    }
    assert_eq!(world.loaded_count("attic", world.committed), HISTORY_LEN_MAX_MESSAGES as u32);
    assert_eq!(world.loaded_count("nowhere", world.committed), 0);
}

#[test]
fn another_program_that_reads_makes_it_wait_and_nothing_is_lost() {
    let mut world = World::new();
    world.commit("hall", 5, 100);
    let reader = open_connection(Arc::new(world.disk.clone()), HISTORY, Access::Read).expect("the disk works").connection;
    reader.execute_batch("BEGIN; SELECT count(*) FROM segment;").expect("the disk works");
    let waiting = world.work().pop().expect("there was a step");
    assert_eq!((waiting.folded, waiting.next), (0, Next::In(BUSY_RETRY)));
    // It is told of when it lasts, and tried again whenever somebody asks.
    for _ in 1..BUSY_TRIES_MAX {
        assert_eq!(world.work().pop().expect("there was a step").next, Next::In(BUSY_RETRY));
    }
    for _ in 0..2 {
        let error = world.archive.work(world.committed).expect_err("it has lasted").to_string();
        assert!(error.contains("another program keeps memory/") && error.contains("fuser"), "{error}");
    }
    reader.execute_batch("COMMIT").expect("it was begun");
    assert_eq!(world.work().pop().expect("there was a step").folded, 1);
    assert_eq!(world.loaded_count("hall", 1), 5);
}

#[test]
fn a_full_disk_stops_it_until_there_is_room_and_any_other_failure_for_good() {
    #[track_caller]
    fn check(fault: Fault) {
        for call in 1.. {
            let mut world = World::new();
            world.work();
            world.commit("hall", 5, 100);
            world.disk.fail_at(world.disk.trace().len() + call, fault);
            let calls_before = world.disk.trace().len();
            let ended = loop {
                match world.archive.work(world.committed) {
                    Ok(worked) if worked.next.goes_on() => {}
                    ended => break ended,
                }
            };
            match ended {
                Ok(worked) => {
                    assert_eq!(worked.folded, 1);
                    if world.disk.trace().len() - calls_before < call {
                        assert!(call > 5, "the calls of a fold were tried one by one");
                        return;
                    }
                }
                Err(ArchiveError::Full { .. }) => {
                    assert_eq!(fault, Fault::Full);
                    assert_eq!(world.work().pop().expect("there was a step").folded, 1);
                }
                Err(error @ ArchiveError::Locked { .. }) => panic!("nobody else is here: {error}"),
                Err(ArchiveError::Failed(text)) => {
                    assert_eq!(fault, Fault::IoError);
                    let names_both = text.contains(HISTORY) && text.contains("relay verify --data");
                    assert!(names_both || text.contains("memory/log"), "{text}");
                }
            }
            if fault == Fault::Full {
                assert_eq!(world.loaded_count("hall", 1), 5);
            }
        }
    }
    check(Fault::Full);
    check(Fault::IoError);
}

#[test]
fn a_decayed_page_is_an_error_of_the_load_that_names_it_and_never_an_answer() {
    let mut world = World::new();
    world.commit("hall", 50, 2000);
    world.work();
    let World { disk, log, archive, .. } = world;
    drop((log, archive));
    let mut content = disk.content(HISTORY);
    let page = content.len() / 4096 - 3;
    content[page * 4096 + 100] ^= 1;
    disk.take_away(HISTORY);
    disk.put(HISTORY, content);
    let connection = open_connection(Arc::new(disk.clone()), HISTORY, Access::Read).expect("the first page is right");
    let database = Database::check(connection.connection).expect("the schema is right");
    let error = database.last_messages("hall", 50, 1).expect_err("a page has decayed");
    assert!(matches!(error, DatabaseError::Damaged { .. }), "{error}");
    let detail = connection.failure.take().expect("the files know");
    assert!(detail.contains(HISTORY) && detail.contains(&format!("page {}", page + 1)), "{detail}");
}

#[test]
fn a_history_that_was_removed_or_replaced_stops_it_before_a_log_file_is_used_again() {
    #[track_caller]
    fn check(harm: impl Fn(&MemoryDisk), expected: &str) {
        let mut world = World::new();
        world.commit("hall", 1000, 4000);
        world.work();
        harm(&world.disk);
        world.commit("hall", 1000, 4000);
        world.commit("hall", 1000, 4000);
        let ended = loop {
            match world.archive.work(world.committed) {
                Ok(worked) => assert!(worked.folded == 1 && worked.next.goes_on()),
                Err(error) => break error.to_string(),
            }
        };
        assert!(ended.contains(expected) && ended.contains("the log keeps what is not in it yet"), "{ended}");
        assert!(world.disk.names().expect("the disk is on").contains(&"00000001.log".to_owned()));
    }
    check(|disk| disk.take_away(HISTORY), "it was removed");
    check(|disk| disk.put(HISTORY, disk.content(HISTORY)), "another file was put in its place");
}
