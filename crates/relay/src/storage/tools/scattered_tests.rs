//! A page that is damaged costs what is on it, and nothing of what is found through it.

use crate::storage::{
    disk::Access,
    folder::HISTORY,
    history::{PAGE_BYTES, Segment, open_connection},
    memory_disk::MemoryDisk,
    position::MessageId,
    tools::{
        report::Losses,
        salvage::salvage,
        test_world::{FILE_BYTES, Said, World, fill, source_of},
    },
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, LazyLock},
};

/// Some rooms with several segments, and so many that trees have three levels. The log is used again, so most is in the history alone.
static WORLD: LazyLock<(MemoryDisk, Said)> = LazyLock::new(|| {
    let mut world = World::new();
    for round in 0..4 {
        world.commit(["kitchen", "lounge", "yard"], 4, 3000 + round);
        world.fold();
    }
    let rooms: Vec<String> = (0..1500).map(|number| format!("room-{number:04}")).collect();
    for some in rooms.chunks(FILE_BYTES as usize / 4000) {
        world.commit(some.iter().map(String::as_str), 1, 2500);
        world.fold();
    }
    for _ in 0..4 {
        world.commit(["kitchen", "lounge", "yard"], 4, 3000);
    }
    world.fold();
    world.commit(["lounge"], 1, 10);
    (world.disk.copy(), world.said)
});

/// What is kept: as much as was announced.
fn repaired(disk: &MemoryDisk) -> (Said, Losses) {
    let mut announced = 0;
    let mut count = |segment: Segment| {
        announced += segment.message_count() as usize;
        Ok(())
    };
    salvage(&source_of(disk), &mut Losses::default(), &mut count, &mut |_| {}).expect("it can be read");
    let mut losses = Losses::default();
    let new =
        fill(|target| salvage(&source_of(disk), &mut losses, &mut |segment| target.add(segment), &mut |_| {}).expect("it can be read"));
    let history = source_of(&new).history().expect("it is right").expect("it is there");
    let mut rooms: BTreeMap<(String, u64), Vec<(MessageId, String)>> = BTreeMap::new();
    for (_, stored) in history.rows() {
        let segment = stored.expect("it is right").segment;
        let messages = segment.messages().map(|message| (message.id, String::from_utf8_lossy(message.line).into_owned())).collect();
        rooms.insert((segment.room.clone(), segment.first_number), messages);
    }
    let mut said = Said::new();
    for ((room, _), messages) in rooms {
        said.entry(room).or_default().extend(messages);
    }
    assert_eq!(said.values().map(Vec::len).sum::<usize>(), announced);
    (said, losses)
}

/// The rooms that lack something; what there is was said, in that order.
#[track_caller]
fn lacking<'a>(kept: &Said, said: &'a Said) -> BTreeSet<&'a str> {
    for (room, messages) in kept {
        let mut rest = said[room].iter();
        assert!(messages.iter().all(|message| rest.any(|said| said == message)), "{room} has what was never said, or in another order");
    }
    said.iter().filter(|(room, messages)| kept.get(*room) != Some(messages)).map(|(room, _)| room.as_str()).collect()
}

fn with_page(number: usize, change: impl FnOnce(&mut [u8])) -> MemoryDisk {
    let disk = WORLD.0.copy();
    let mut content = disk.content(HISTORY);
    change(&mut content[(number - 1) * PAGE_BYTES..][..PAGE_BYTES]);
    disk.put(HISTORY, content);
    disk
}

/// Pages from the second on whose first byte is this.
fn pages_of(kind: u8) -> Vec<usize> {
    let content = WORLD.0.content(HISTORY);
    (2..=content.len() / PAGE_BYTES).filter(|number| content[(number - 1) * PAGE_BYTES] == kind).collect()
}

#[test]
fn pages_through_which_others_are_found_cost_nothing() {
    let (table, index) = (pages_of(5), pages_of(2));
    assert!(table.len() >= 3 && !index.is_empty(), "{table:?} {index:?}");
    for number in [1].into_iter().chain(table).chain(index) {
        for disk in [with_page(number, |page| page[200] ^= 1), with_page(number, |page| page.fill(0x5a))] {
            let (kept, losses) = repaired(&disk);
            assert_eq!(lacking(&kept, &WORLD.1), BTreeSet::new(), "page {number}: {losses:?}");
            // When the names of all tables are gone, the file's length is too.
            assert!(losses == Losses::default() || losses.known_messages == 0, "page {number}: {losses:?}");
        }
    }
}

#[test]
fn two_pages_of_different_trees_cost_nothing_either() {
    let both = with_page(pages_of(5)[0], |page| page.fill(1));
    let mut content = both.content(HISTORY);
    content[60] ^= 1;
    both.put(HISTORY, content);
    let (kept, _) = repaired(&both);
    assert_eq!(lacking(&kept, &WORLD.1), BTreeSet::new());
}

#[test]
fn a_page_with_messages_costs_those() {
    let content = WORLD.0.content(HISTORY);
    let leaves = pages_of(0x0d);
    let (step, mut cost) = (leaves.len() / 5, 0);
    let overflow: Vec<usize> = pages_of(0).into_iter().step_by(7).take(8).collect();
    for number in leaves.iter().copied().step_by(step).chain(overflow.iter().copied()) {
        let page = String::from_utf8_lossy(&content[(number - 1) * PAGE_BYTES..][..PAGE_BYTES]).into_owned();
        let (kept, losses) = repaired(&with_page(number, |page| page.fill(0x5a)));
        let lacking = lacking(&kept, &WORLD.1);
        let is_leaf = content[(number - 1) * PAGE_BYTES] != 0;
        assert!(is_leaf || lacking.len() <= 1, "page {number} cost something of {lacking:?}");
        for room in &lacking {
            assert!(!is_leaf || page.contains(room), "page {number} is not of {room}");
            assert!(losses.places.iter().any(|place| place.contains(room)), "page {number}: nobody is told of {room}: {losses:?}");
        }
        let lost: usize = WORLD.1.iter().map(|(room, said)| said.len() - kept.get(room).map_or(0, Vec::len)).sum();
        assert!(losses.are_more || losses.known_messages == lost as u64, "page {number}: {lost} are lost, not {losses:?}");
        cost += usize::from(lost > 0);
    }
    assert!(cost > 5, "{cost} pages cost something");
}

/// As another program leaves it that writes to the file, though no message is touched.
#[test]
fn pages_without_a_seal_cost_nothing() {
    let disk = WORLD.0.copy();
    let mut content = disk.content(HISTORY);
    for page in content.chunks_mut(PAGE_BYTES) {
        page[PAGE_BYTES - 8..].fill(0);
    }
    disk.put(HISTORY, content);
    let (kept, _) = repaired(&disk);
    assert_eq!(lacking(&kept, &WORLD.1), BTreeSet::new());
}

/// What the last pages of the file held is gone, and everything before is found.
#[test]
fn a_file_that_is_cut_off_keeps_its_rest() {
    let disk = WORLD.0.copy();
    let content = disk.content(HISTORY);
    disk.put(HISTORY, content[..content.len() - 20 * PAGE_BYTES].to_vec());
    let (kept, losses) = repaired(&disk);
    let lacking = lacking(&kept, &WORLD.1);
    assert!(!lacking.is_empty() && lacking.len() <= 40, "{lacking:?}");
    assert!(losses.are_more && losses.place_count > 0, "{losses:?}");
}

/// The log's older files, which the history has no need of any more, fill what the history lost.
#[test]
fn what_the_log_has_of_lost_rows_is_put_in_its_place() {
    let mut world = World::new();
    for round in 0..6 {
        world.commit(["lounge"], 3, 2000 + round);
        world.fold();
    }
    let disk = world.disk.copy();
    let connection = open_connection(Arc::new(disk.clone()), HISTORY, Access::ReadWrite).expect("the disk works").connection;
    let rows: i64 = connection.query_row("SELECT count(*) FROM segment", [], |row| row.get(0)).expect("it is a statement");
    drop(connection);
    assert!(rows >= 1);
    let mut content = disk.content(HISTORY);
    for (at, page) in content.chunks_mut(PAGE_BYTES).enumerate().skip(1) {
        if page[0] == 0 || (page[0] == 0x0d && at % 2 == 0) {
            page.fill(9);
        }
    }
    disk.put(HISTORY, content);
    let (kept, losses) = repaired(&disk);
    assert_eq!(lacking(&kept, &world.said), BTreeSet::new(), "{losses:?}");
    assert_eq!(losses.known_messages, 0, "{losses:?}");
}
