//! Whatever is damaged, what is kept is what was said, what is lost is named, and the result is right and goes on.

use super::*;
use crate::storage::{
    disk::Access,
    folder::{HISTORY, JOURNAL},
    history::{PAGE_BYTES, Retention, open_connection},
    memory_disk::{MemoryDisk, Random},
    tools::test_world::{self, Said, World, fill, kept, last_record, source_of},
};
use std::sync::Arc;

fn repaired(disk: &MemoryDisk) -> (MemoryDisk, Losses) {
    let mut losses = Losses::default();
    let new = fill(|target| {
        salvage(&source_of(disk), &mut losses, &mut |segment| target.add(segment), &mut |_| {}).expect("the log can be opened")
    });
    (new, losses)
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
        let disk =
            world.disk_with_change(HISTORY, |content| content[page * PAGE_BYTES + random.below(4096) as usize] ^= 1 << random.below(8));
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
    assert_eq!(test_world::kept(&new, &world.said), kept);
    assert!(losses.places.iter().any(|place| place.contains("only what is still in the log is left")), "{losses:?}");
}

#[test]
fn a_log_damaged_in_the_middle_keeps_both_ends() {
    let world = world();
    // The four records behind the history are the last ones of the file that has the highest sequence.
    let (name, page) = last_record(&world.disk);
    let disk = world.disk_with_change(&name, |content| content[(page - 2) * PAGE_BYTES + 60] ^= 1);
    let (new, losses) = repaired(&disk);
    let kept = kept(&new, &world.said);
    let mut expected = world.said.clone();
    expected.get_mut("lounge").expect("it is there").retain(|(id, _)| id.sequence != world.committed - 2);
    assert_eq!(kept, expected);
    assert_eq!((losses.place_count, losses.known_messages), (1, 2), "{losses:?}");
}

/// Its sequences begin where those of the original ended, in a first file.
#[test]
fn a_restored_folder_whose_place_in_the_log_is_lost_keeps_what_was_said_since() {
    let (new, _) = repaired(&world().disk);
    let mut restored = World::on(new, Retention::default(), world().said);
    restored.commit(["lounge"], 2, 100);
    restored.commit(["yard"], 1, 100);
    let disk = restored.disk.copy();
    let connection = open_connection(Arc::new(disk.clone()), HISTORY, Access::ReadWrite).expect("the disk works").connection;
    connection.execute_batch("UPDATE folded SET offset = 1").expect("it is a statement");
    drop(connection);
    let (new, losses) = repaired(&disk);
    assert_eq!(test_world::kept(&new, &restored.said), restored.said);
    assert_eq!((losses.place_count, losses.known_messages), (2, 0), "{losses:?}");
    assert!(losses.places[1].contains("what was committed before 15 is left as far as it is in history.db"), "{losses:?}");
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
