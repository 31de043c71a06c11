//! Whatever is damaged, what is kept is what was said, what is lost is named, and the result is right and goes on.

use super::*;
use crate::storage::{
    folder::{HISTORY, JOURNAL},
    history::{Database, PAGE_BYTES, Retention, open_connection},
    memory_disk::{MemoryDisk, Random},
    open,
    position::{LogPosition, MessageId},
    tools::{
        copy::{Copied, Copy},
        room_reader::RoomReader,
        target::Target,
        test_world::{FILE_BYTES, Said, World, source_of},
        verify::verify_source,
    },
};
use std::{path::PathBuf, sync::Arc};

/// A folder in memory that is filled and has no log files.
fn fill(fill: impl FnOnce(&mut Target) -> LogPosition) -> MemoryDisk {
    let disk = MemoryDisk::default();
    let connection = open_connection(Arc::new(disk.clone()), HISTORY, crate::storage::disk::Access::ReadWrite).expect("the disk works");
    let database = Database::create_or_check(connection.connection).expect("it is new");
    let mut target = Target::new(database, PathBuf::from(HISTORY));
    let last = fill(&mut target);
    target.finish(last).expect("the disk works");
    disk
}

fn repaired(disk: &MemoryDisk) -> (MemoryDisk, Losses) {
    let mut losses = Losses::default();
    let new = fill(|target| {
        salvage(&source_of(disk), &mut losses, &mut |segment| target.add(segment), &mut |_| {}).expect("the log can be opened")
    });
    (new, losses)
}

/// All that is in a folder, after checks that it is right and that a server can go on in it.
#[track_caller]
fn kept(disk: &MemoryDisk, rooms: &Said) -> Said {
    let report = verify_source(&source_of(disk), &mut |_| {}).expect("it can be looked at");
    assert_eq!(report.findings, Vec::new());
    let disks = crate::storage::history::Disks { data: Arc::new(disk.clone()), log: Arc::new(disk.clone()) };
    let opened = open::open_on(disks, FILE_BYTES, Retention::default(), || 1, &mut |_, _| {});
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

fn count(said: &Said) -> usize {
    said.values().map(Vec::len).sum()
}

/// What is kept is a part of what was said, in order.
#[track_caller]
fn check_is_part(kept: &Said, said: &Said) {
    for (room, messages) in kept {
        let mut rest = said[room].iter();
        assert!(messages.iter().all(|message| rest.any(|said| said == message)), "{room} has what was never said, or in another order");
    }
}

fn world() -> World {
    let mut world = World::new();
    for _ in 0..10 {
        world.commit(["kitchen", "lounge", "yard"], 4, 4000);
    }
    world.fold();
    for _ in 0..4 {
        world.commit(["lounge"], 2, 100);
    }
    world
}

fn with_change(world: &World, name: &str, change: impl FnOnce(&mut Vec<u8>)) -> MemoryDisk {
    let disk = world.disk.copy();
    let mut content = disk.content(name);
    change(&mut content);
    disk.put(name, content);
    disk
}

#[test]
fn nothing_is_lost_where_nothing_is_damaged() {
    let world = world();
    let (new, losses) = repaired(&world.disk);
    assert_eq!(losses, Losses::default());
    assert_eq!(kept(&new, &world.said), world.said);
}

#[test]
fn a_damaged_page_costs_what_is_on_it_and_the_rooms_are_named() {
    let world = world();
    let page_count = world.disk.content(HISTORY).len() / PAGE_BYTES;
    let mut random = Random(1);
    let mut small_losses = 0;
    for page in 0..page_count {
        let disk = with_change(&world, HISTORY, |content| content[page * PAGE_BYTES + random.below(4096) as usize] ^= 1 << random.below(8));
        let (new, losses) = repaired(&disk);
        let kept = kept(&new, &world.said);
        check_is_part(&kept, &world.said);
        let lost = count(&world.said) - count(&kept);
        if lost > 0 {
            assert!(losses.place_count > 0, "page {} cost {lost} messages and nobody was told", page + 1);
            assert!(losses.are_more || losses.known_messages == lost as u64, "page {}: {lost} are lost, not {losses:?}", page + 1);
        }
        let named = losses.places.iter().any(|place| place.contains("of room"));
        small_losses += u32::from(lost > 0 && lost <= 10 && named);
    }
    assert!(small_losses as usize > page_count / 2, "{small_losses} of {page_count} pages");
}

#[test]
fn without_a_history_the_log_is_left() {
    let world = world();
    let disk = world.disk.copy();
    disk.take_away(HISTORY);
    disk.take_away(JOURNAL);
    let (new, losses) = repaired(&disk);
    let kept = kept(&new, &world.said);
    check_is_part(&kept, &world.said);
    assert!(kept["lounge"].len() >= 8, "what was not folded is there");
    assert!(losses.are_more && losses.place_count > 0);

    let garbage = world.disk.copy();
    garbage.put(HISTORY, vec![7; 5 * PAGE_BYTES]);
    let (new, losses) = repaired(&garbage);
    assert_eq!(self::kept(&new, &world.said), kept);
    assert!(losses.places.iter().any(|place| place.contains("only what is still in the log is left")), "{losses:?}");
}

#[test]
fn a_log_damaged_in_the_middle_keeps_both_ends() {
    let world = world();
    // The four records behind the history are the last ones of the file that has the highest sequence.
    let (name, page) = last_record(&world.disk);
    let disk = with_change(&world, &name, |content| content[(page - 2) * PAGE_BYTES + 60] ^= 1);
    let (new, losses) = repaired(&disk);
    let kept = kept(&new, &world.said);
    let mut expected = world.said.clone();
    expected.get_mut("lounge").expect("it is there").retain(|(id, _)| id.sequence != world.committed - 2);
    assert_eq!(kept, expected);
    assert_eq!((losses.place_count, losses.known_messages), (1, 2), "{losses:?}");
}

fn last_record(disk: &MemoryDisk) -> (String, usize) {
    let names = crate::storage::disk::Disk::names(disk).expect("the disk is on");
    let pages = names.iter().filter(|name| name.ends_with(".log")).flat_map(|name| (0..16).map(move |page| (name.clone(), page)));
    let sequence = |(name, page): &(String, usize)| {
        let header = disk.content(name)[page * PAGE_BYTES..][..24].to_vec();
        if header[..4] == *b"\xffRLG" { u64::from_le_bytes(header[16..24].try_into().expect("eight bytes")) } else { 0 }
    };
    pages.max_by_key(sequence).expect("there is a record")
}

#[test]
fn after_any_damage_what_is_kept_was_said_and_serves() {
    let world = world();
    let names = crate::storage::disk::Disk::names(&world.disk).expect("the disk is on");
    let mut random = Random(11);
    for _ in 0..60 {
        let disk = world.disk.copy();
        let mut damage = Vec::new();
        for _ in 0..1 + random.below(4) {
            let name = &names[random.below(names.len() as u64) as usize];
            let mut content = disk.content(name);
            let at = random.below(content.len().max(1) as u64) as usize;
            let kind = random.below(4);
            damage.push((name.clone(), at, kind));
            match kind {
                0 => content.truncate(at),
                1 => content[at / PAGE_BYTES * PAGE_BYTES..].iter_mut().take(PAGE_BYTES).for_each(|byte| *byte = 0),
                _ => content.get_mut(at).into_iter().for_each(|byte| *byte ^= 1 << random.below(8)),
            }
            disk.put(name, content);
        }
        let (new, losses) = repaired(&disk);
        let kept = kept(&new, &world.said);
        check_is_part(&kept, &world.said);
        let lost = count(&world.said) - count(&kept);
        assert!(lost == 0 || losses.place_count > 0, "{lost} are lost and nobody was told: {damage:?}");
    }
}

#[test]
fn a_copy_made_while_the_server_goes_on_is_what_was_committed_when_it_began() {
    let mut went_on = 0;
    for seed in 0..40 {
        let mut random = Random(seed);
        let mut world = World::new();
        let step = |world: &mut World, random: &mut Random| match random.below(7) {
            0 => world.commit(["lounge", "kitchen"], 3, 200),
            1 => world.commit(["lounge"], 1 + random.below(5) as u32, 3000),
            2 => world.commit(["yard"], 1, 30_000),
            3 => world.fold(),
            _ => (0..random.below(4)).for_each(|_| _ = world.step()),
        };
        (0..random.below(40)).for_each(|_| step(&mut world, &mut random));
        let mut copy = Copy::begin(world.source()).expect("it is right");
        let (said, end) = (world.said.clone(), world.committed);
        assert_eq!(copy.end().sequence, end);
        let new = fill(|target| {
            loop {
                (0..random.below(4)).for_each(|_| step(&mut world, &mut random));
                match copy.next(&mut |_| {}).expect("it is right") {
                    Some(Copied::Messages(segment)) => target.add(segment).expect("the disk works"),
                    Some(Copied::Forget(room)) => target.forget(&room).expect("the disk works"),
                    None => break copy.end(),
                }
            }
        });
        went_on += world.committed - end;
        assert_eq!(kept(&new, &said), said, "seed {seed}");
    }
    assert!(went_on > 100, "{went_on}");
}

#[test]
fn a_copy_beside_retention_has_no_gaps_and_all_that_is_kept() {
    let mut forgotten = 0;
    for seed in 0..40 {
        let mut random = Random(seed);
        let mut world = World::keeping(Retention { keep_messages: Some(12), ..Retention::default() });
        for _ in 0..12 {
            world.commit(["lounge", "kitchen"], 4, 4000);
        }
        let mut copy = Copy::begin(world.source()).expect("it is right");
        let said = world.said.clone();
        let new = fill(|target| {
            loop {
                (0..random.below(8)).for_each(|_| _ = world.step());
                match copy.next(&mut |_| {}).expect("it is right") {
                    Some(Copied::Messages(segment)) => target.add(segment).expect("the disk works"),
                    Some(Copied::Forget(room)) => {
                        forgotten += 1;
                        target.forget(&room).expect("the disk works");
                    }
                    None => break copy.end(),
                }
            }
        });
        for (room, messages) in kept(&new, &said) {
            assert!(said[&room].ends_with(&messages), "seed {seed}: {} from {:?}", messages.len(), messages.first().map(|first| first.0));
            assert!(messages.len() >= 12, "seed {seed}: {}", messages.len());
        }
    }
    assert!(forgotten > 0, "retention deleted something behind what was copied");
}
