//! What is kept, what goes, and that nothing else does: a server's two stores on a disk in memory, with a clock that the test moves.

use super::*;
use crate::storage::{
    contract::{Archive, ArchiveError, Storage},
    history::{HistoryArchive, open_connection},
    limits::{RETENTION_STEPS_MAX, SEGMENT_BYTES},
    log::Log,
    memory_disk::MemoryDisk,
    open::{Opened, open_on},
    tools::print_room,
};
use relay_core::{Batch, Section};
use std::cell::Cell;

const FILE_BYTES: u64 = 256 << 10;
const DAY_MS: u64 = 24 * 60 * 60 * 1000;

thread_local! {
    static NOW_MS: Cell<u64> = const { Cell::new(0) };
}

struct World {
    disk: MemoryDisk,
    log: Log,
    archive: HistoryArchive,
    committed: u64,
}

impl World {
    fn new(rules: Retention) -> World {
        NOW_MS.set(1000 * DAY_MS);
        World::on(MemoryDisk::default(), rules)
    }

    fn on(disk: MemoryDisk, rules: Retention) -> World {
        let disks = Disks { data: Arc::new(disk.clone()), log: Arc::new(disk.clone()) };
        let opened = open_on(disks, FILE_BYTES, rules, || NOW_MS.get(), &mut |_, _| {}).expect("the disk is right");
        let Opened { log, archive, sequence, .. } = opened;
        World { disk, log, archive, committed: sequence }
    }

    fn reopened(self, rules: Retention) -> World {
        let World { disk, log, archive, .. } = self;
        drop((log, archive));
        World::on(disk, rules)
    }

    /// One commit with messages that are numbered from `first` on, and wide enough that `count` of them fill `bytes`.
    fn say(&mut self, room: &str, numbers: std::ops::Range<u64>, line_bytes: usize) {
        let lines: String =
            numbers.clone().map(|number| format!("{:<width$}\n", format!("MESSAGE ada {number} ."), width = line_bytes - 1)).collect();
        let message_count = (numbers.end - numbers.start) as u32;
        let sections = vec![Section { room: room.to_owned(), message_count, lines: lines.into_bytes() }];
        self.committed = self.log.commit(&Batch { sections }).expect("the disk works").sequence;
    }

    /// Works until nothing is left to be done now, and returns when more will be.
    fn work(&mut self) -> Next {
        loop {
            let worked = self.archive.work(self.committed).expect("the disk works");
            if !worked.next.goes_on() {
                assert_eq!(worked.folded, self.committed);
                return worked.next;
            }
        }
    }

    /// The numbers of a room's messages.
    fn kept(&self, room: &str) -> Vec<u64> {
        let mut printed = Vec::new();
        match print_room(Arc::new(self.disk.clone()), FILE_BYTES, room, &mut printed) {
            Ok(_) => {
                let printed = String::from_utf8(printed).expect("it was text");
                printed.lines().map(|line| line.split(' ').nth(2).and_then(|word| word.parse().ok()).expect("a number")).collect()
            }
            Err(crate::storage::HistoryError::RoomNotFound { .. }) => Vec::new(),
            Err(error) => panic!("{error}"),
        }
    }
}

fn keep_messages(count: u64) -> Retention {
    Retention { keep_messages: Some(count), ..Retention::default() }
}

fn keep_days(days: u64) -> Retention {
    Retention { keep_for: Some(Duration::from_millis(days * DAY_MS)), ..Retention::default() }
}

#[test]
fn without_a_rule_everything_stays_and_nothing_is_due() {
    let mut world = World::new(Retention::default());
    world.say("hall", 0..1000, 100);
    NOW_MS.set(100_000 * DAY_MS);
    assert_eq!(world.work(), Next::WhenCommitted);
    assert_eq!(world.kept("hall"), (0..1000).collect::<Vec<_>>());
}

#[test]
fn a_room_keeps_at_least_the_count_and_at_most_a_segment_more() {
    let mut world = World::new(keep_messages(500));
    for round in 0..10 {
        world.say("hall", 200 * round..200 * (round + 1), 100);
        world.say("attic", 10 * round..10 * (round + 1), 100);
        world.work();
        let kept = world.kept("hall");
        let said = 200 * (round + 1);
        let count_min = said.min(500) as usize;
        assert!((count_min..=count_min + SEGMENT_BYTES / 100).contains(&kept.len()), "{} of {said}", kept.len());
        assert_eq!(kept, (said - kept.len() as u64..said).collect::<Vec<_>>(), "the last ones, without a gap");
    }
    assert_eq!(world.kept("attic").len(), 100, "a room with less is left alone");
}

#[test]
fn rooms_that_are_quiet_are_looked_at_after_a_start_with_a_lower_count() {
    let mut world = World::new(Retention::default());
    for room in 0..100 {
        world.say(&format!("room{room}"), 0..700, 100);
        world.work();
    }
    let mut world = world.reopened(keep_messages(50));
    world.work();
    for room in 0..100 {
        let kept = world.kept(&format!("room{room}"));
        assert!((50..=50 + SEGMENT_BYTES / 100).contains(&kept.len()), "{} in room {room}", kept.len());
        assert_eq!(kept.last(), Some(&699));
    }
}

#[test]
fn what_is_older_goes_to_the_message_and_what_is_younger_stays() {
    let mut world = World::new(keep_days(10));
    // A day each, all in one segment; another room with many segments.
    for day in 0..20 {
        NOW_MS.set((1000 + day) * DAY_MS);
        world.say("hall", day..day + 1, 50);
        world.say("attic", 1000 * day..1000 * (day + 1), 100);
        world.work();
    }
    // The sweep is late by a hundredth at most.
    NOW_MS.set(1020 * DAY_MS + DAY_MS / 5);
    let next = world.work();
    assert_eq!(next, Next::In(Duration::from_millis(DAY_MS / 10)));
    assert_eq!(world.kept("hall"), (11..20).collect::<Vec<_>>());
    assert_eq!(world.kept("attic"), (11_000..20_000).collect::<Vec<_>>());
    NOW_MS.set(2000 * DAY_MS);
    world.work();
    assert_eq!((world.kept("hall"), world.kept("attic")), (vec![], vec![]));
    world.say("hall", 7..8, 50);
    world.work();
    assert_eq!(world.kept("hall"), [7], "the room lives on");
}

#[test]
fn a_clock_that_jumped_back_makes_no_gap() {
    let mut world = World::new(keep_days(10));
    for (number, day) in [(0, 1000), (1, 1015), (2, 1001), (3, 1016)] {
        NOW_MS.set(day * DAY_MS);
        // A segment each.
        world.say("hall", number..number + 1, SEGMENT_BYTES);
        world.work();
    }
    NOW_MS.set(1020 * DAY_MS);
    world.work();
    assert_eq!(world.kept("hall"), [1, 2, 3], "the second protects the third, though that is old");
    // The second goes, and with the sweep after that the third.
    for (hour, kept) in [(0, &[2, 3][..]), (3, &[3])] {
        NOW_MS.set(1025 * DAY_MS + DAY_MS / 2 + hour * DAY_MS / 24);
        world.work();
        assert_eq!(world.kept("hall"), kept);
    }
}

#[test]
fn a_disk_budget_drops_the_oldest_of_all_rooms() {
    const BUDGET_BYTES: u64 = 4 << 20;
    let rules = Retention { disk_budget_bytes: Some(BUDGET_BYTES), ..Retention::default() };
    let mut world = World::new(rules);
    let mut bytes_max = 0;
    for round in 0..200 {
        let room = ["hall", "attic"][round as usize % 2];
        world.say(room, 1000 * round..1000 * (round + 1), 100);
        world.work();
        let bytes = world.disk.names().expect("the disk is on").iter().map(|name| world.disk.content(name).len() as u64).sum();
        bytes_max = bytes_max.max(bytes);
    }
    // Two megabytes more than the budget: what one fold brings, before that much is deleted.
    assert!(bytes_max <= BUDGET_BYTES + (2 << 20), "{bytes_max} bytes");
    for (room, last) in [("hall", 199_000), ("attic", 200_000)] {
        let kept = world.kept(room);
        assert_eq!(kept.last(), Some(&(last - 1)));
        assert!(kept.len() > 5_000, "{} in {room}: no more goes than must", kept.len());
    }
    let first = |room: &str| world.kept(room).first().copied().expect("something is kept");
    assert!(first("hall").abs_diff(first("attic")) < 4000, "both rooms are kept about as long");
}

#[test]
fn one_step_deletes_a_bounded_number_of_segments() {
    let mut world = World::new(Retention::default());
    world.say("hall", 0..2500, 100);
    for round in 0..40 {
        world.say("hall", 2500 * round..2500 * (round + 1), 100);
        world.work();
    }
    let mut world = world.reopened(keep_messages(1));
    let mut before = world.kept("hall").len();
    let mut steps = 0;
    while world.archive.work(world.committed).expect("the disk works").next.goes_on() {
        let after = world.kept("hall").len();
        assert!(before - after <= RETENTION_STEP_SEGMENTS as usize * SEGMENT_BYTES / 100);
        steps += usize::from(after < before);
        before = after;
    }
    assert!(steps > 5, "{steps}");
}

#[test]
fn the_rules_are_kept_also_when_there_is_always_more_to_fold() {
    const BUDGET_BYTES: u64 = 4 << 20;
    let rules = Retention { disk_budget_bytes: Some(BUDGET_BYTES), ..Retention::default() };
    let mut world = World::new(rules);
    let mut folded_count = 0;
    for number in 0.. {
        world.say("hall", 1000 * number..1000 * (number + 1), 100);
        // A commit for each step: the archive never sees the end of the log.
        let before = world.archive.folded();
        let worked = world.archive.work(world.committed).expect("the disk works");
        assert!(worked.next.goes_on());
        folded_count += u32::from(worked.folded > before);
        if folded_count == 3 {
            break;
        }
    }
    let bytes = world.disk.content(HISTORY).len() as u64;
    let window_bytes = crate::storage::FOLD_WINDOW_BYTES as u64;
    assert!(bytes < BUDGET_BYTES + 2 * window_bytes, "{bytes} bytes, though three windows were folded");
}

#[test]
fn a_rule_that_deletes_much_lets_the_log_be_folded_meanwhile() {
    let mut world = World::new(Retention::default());
    // A segment in each of more rooms than are deleted between two windows.
    let rooms: Vec<String> = (0..RETENTION_STEPS_MAX * RETENTION_STEP_SEGMENTS + 1000).map(|number| format!("attic{number}")).collect();
    for some in rooms.chunks(2000) {
        let section = |room: &String| Section { room: room.clone(), message_count: 1, lines: b"MESSAGE ada 1 .\n".to_vec() };
        world.committed = world.log.commit(&Batch { sections: some.iter().map(section).collect() }).expect("the disk works").sequence;
    }
    world.work();
    NOW_MS.set(2000 * DAY_MS);
    let mut world = world.reopened(keep_days(10));
    let mut steps_of_folds = Vec::new();
    for step in 0..RETENTION_STEPS_MAX + 20 {
        // A commit for each step: there is always more to fold.
        world.say("hall", 0..1, 50);
        let before = world.archive.folded();
        let worked = world.archive.work(world.committed).expect("the disk works");
        if worked.folded > before {
            steps_of_folds.push(step);
        }
    }
    assert!(steps_of_folds.len() >= 2, "{steps_of_folds:?}");
    assert!(steps_of_folds[1] - steps_of_folds[0] >= RETENTION_STEPS_MAX, "{steps_of_folds:?}: it was not kept from deleting either");
    world.work();
    assert!(rooms.iter().step_by(500).all(|room| world.kept(room).is_empty()));
    assert!(!world.kept("hall").is_empty());
}

#[test]
fn a_clock_that_was_ahead_does_not_keep_it_from_looking() {
    let mut world = World::new(keep_days(10));
    NOW_MS.set(3000 * DAY_MS);
    world.work();
    NOW_MS.set(1000 * DAY_MS);
    world.say("hall", 0..1, 50);
    world.work();
    NOW_MS.set(1020 * DAY_MS);
    world.work();
    assert!(world.kept("hall").is_empty());
}

#[test]
fn more_crowded_rooms_than_are_known_by_name_are_found_all_the_same() {
    let mut world = World::new(Retention::default());
    for round in 0..10 {
        world.say("hall", 200 * round..200 * (round + 1), 100);
        world.work();
    }
    let connection = open_connection(Arc::new(world.disk.clone()), HISTORY, Access::ReadWrite).expect("the disk works").connection;
    let database = Database::check(connection).expect("the history is right");
    let disk: Arc<dyn Disk> = Arc::new(world.disk.clone());
    let mut retaining = Retaining::new(keep_messages(500), Disks { data: disk.clone(), log: disk });
    retaining.looked_at = None;
    retaining.rooms_grew((0..CROWDED_ROOMS_MAX).map(|number| (format!("room{number}"), 501 + number as u64)).collect());
    assert!(retaining.crowded.len() < CROWDED_ROOMS_MAX, "the first has no more than it may have");
    retaining.rooms_grew(vec![("hall".to_owned(), 2001), ("lobby".to_owned(), 2001), ("attic".to_owned(), 2001)]);
    assert!(retaining.crowded.is_empty());
    while retaining.step(&database, 0).expect("the disk works") == Some(Next::Now) {}
    assert!((500..=500 + SEGMENT_BYTES / 100).contains(&world.kept("hall").len()));
}

#[test]
fn a_log_file_that_cannot_be_made_is_told_of_though_something_is_to_be_deleted_later() {
    let mut world = World::new(keep_days(10));
    world.disk.set_free_bytes(0);
    let told = loop {
        match world.archive.work(0) {
            Ok(worked) if worked.next.goes_on() => {}
            told => break told,
        }
    };
    assert!(matches!(told, Err(ArchiveError::Full { .. })), "{told:?}");
}
