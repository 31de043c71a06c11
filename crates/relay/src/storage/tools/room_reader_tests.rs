//! A room is read beside a server that commits, folds and uses log files again at any moment.

use super::*;
use crate::storage::{
    memory_disk::Random,
    tools::test_world::{World, many_rooms},
};

/// Adds the messages of a segment to those that were read.
fn note(read: &mut Vec<(MessageId, String)>, segment: &Segment) {
    read.extend(segment.messages().map(|message| (message.id, String::from_utf8(message.line.to_vec()).expect("it is text"))));
}

fn read_all(reader: &mut RoomReader, read: &mut Vec<(MessageId, String)>) {
    while let Some(segment) = reader.next().expect("nothing is damaged") {
        note(read, &segment);
    }
}

#[test]
fn a_room_is_whole_wherever_its_messages_are() {
    let mut world = World::new();
    for round in 0..3 {
        world.commit(["lounge", "kitchen"], 3, 100);
        let mut read = Vec::new();
        read_all(&mut RoomReader::new(world.source(), "lounge"), &mut read);
        assert_eq!(read, world.said["lounge"], "all in the log, round {round}");
        world.fold();
        world.commit(["lounge"], 2, 100);
        let mut read = Vec::new();
        read_all(&mut RoomReader::new(world.source(), "lounge"), &mut read);
        assert_eq!(read, world.said["lounge"], "in both, round {round}");
    }
}

#[test]
fn whatever_the_server_does_between_two_steps_nothing_is_missing_or_there_twice() {
    let rooms = many_rooms();
    let rooms: Vec<&str> = rooms.iter().map(String::as_str).collect();
    let (mut went_back_count, mut in_between_count) = (0, 0);
    for seed in 0..150 {
        let mut random = Random(seed);
        let mut world = World::new();
        let mut reader = RoomReader::new(world.source(), "lounge");
        let mut read = Vec::new();
        let mut was_in_log = false;
        for _ in 0..100 {
            match random.below(8) {
                0 => world.commit(rooms.iter().copied(), 1, 20),
                1 => world.commit(["lounge"], 1 + random.below(20) as u32, 500),
                2 => world.commit(["kitchen"], 1, 30_000),
                3 => world.fold(),
                4 | 5 => (0..random.below(6)).for_each(|_| in_between_count += u32::from(world.step())),
                _ => {}
            }
            if random.below(4) == 0
                && let Some(segment) = reader.next().expect("nothing is damaged")
            {
                note(&mut read, &segment);
            }
            went_back_count += u32::from(was_in_log && reader.scan.is_none());
            was_in_log = reader.scan.is_some();
            assert!(world.said.get("lounge").is_none_or(|said| said.starts_with(&read)), "seed {seed}");
        }
        read_all(&mut reader, &mut read);
        assert_eq!(read, world.said.remove("lounge").unwrap_or_default(), "seed {seed}");
    }
    assert!(went_back_count > 50, "log files were used again under the reader {went_back_count} times");
    assert!(in_between_count > 1000, "{in_between_count}");
}

#[test]
fn what_stands_before_damage_is_printed_and_the_place_is_named() {
    let mut world = World::new();
    world.commit(["lounge"], 2, 10);
    world.fold();
    world.commit(["lounge"], 1, 10);
    world.commit(["lounge"], 1, 10);
    let mut content = world.disk.content(&world.first_file());
    let offset = 4096;
    content[offset + 100] ^= 1;
    let disk = world.disk.copy();
    disk.put(&world.first_file(), content);
    let mut printed = Vec::new();
    let error = print_from(crate::storage::tools::test_world::source_of(&disk), "lounge", &mut printed).expect_err("it is damaged");
    assert!(error.to_string().contains("offset 4096"), "{error}");
    let before: String = world.said["lounge"][..2].iter().map(|(_, line)| line.as_str()).collect();
    assert_eq!(str::from_utf8(&printed).expect("it is text"), before);
}
