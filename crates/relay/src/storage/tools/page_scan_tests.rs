//! The scan finds the rows that SQLite finds, of every length, and no other bytes make it fail or lie.

use super::*;
use crate::storage::{
    disk::Access,
    folder::HISTORY,
    history::open_connection,
    memory_disk::MemoryDisk,
    tools::{
        source::History,
        test_world::{World, source_of},
    },
};
use proptest::prelude::*;
use std::{
    collections::BTreeMap,
    sync::{Arc, LazyLock},
};

/// All rows on all pages of a file.
fn scan(content: &[u8]) -> Vec<Found> {
    let mut pages = |number: u32| {
        let start = (number as usize).checked_sub(1)? * PAGE_BYTES;
        content.get(start..start + PAGE_BYTES).map(<[u8]>::to_vec)
    };
    let mut all = Vec::new();
    for number in 1..=(content.len() / PAGE_BYTES) as u32 {
        let page = pages(number).expect("it is within the file");
        all.extend((0..cell_count(&page, number)).filter_map(|cell| row(&page, number, cell, &mut pages)));
    }
    all
}

/// A history with rows that take less than a page, a little more, and up to some pages.
fn world() -> World {
    let mut world = World::new();
    for (number, bytes) in (0..40).map(|step| step * 101).chain(3900..3990).chain([8000, 8170, 12_000, 30_000, 50_000, 60_000]).enumerate()
    {
        world.commit([format!("room-{number}").as_str()], 1, bytes);
        world.fold();
    }
    world
}

static CONTENT: LazyLock<Vec<u8>> = LazyLock::new(|| world().disk.content(HISTORY));

fn rows(disk: &MemoryDisk) -> (BTreeMap<i64, Stored>, LogPosition) {
    let history: History = source_of(disk).history().expect("it is right").expect("it is there");
    let stored = history.rows().map(|(row, stored)| (row, stored.expect("it is right"))).collect();
    (stored, history.database.folded().expect("it is right"))
}

#[test]
fn what_sqlite_finds_is_found_without_it() {
    let world = world();
    let (rows, folded) = rows(&world.disk);
    assert!(rows.len() > 130);
    let found = scan(&world.disk.content(HISTORY));
    for stored in rows.values() {
        assert!(found.contains(&Found::Segment(stored.clone())), "row {} of {}", stored.row, stored.segment.room);
    }
    let places: Vec<&Found> = found.iter().filter(|found| matches!(found, Found::Folded(_))).collect();
    assert_eq!(places, [&Found::Folded(folded)]);
}

/// The two tables that SQLite keeps, and another program's, are not taken for ours.
#[test]
fn rows_of_other_tables_are_left_out() {
    let world = world();
    let disk = world.disk.copy();
    let connection = open_connection(Arc::new(disk.clone()), HISTORY, Access::ReadWrite).expect("the disk works").connection;
    connection
        .execute_batch("CREATE TABLE x (a, b, c, d, e); INSERT INTO x VALUES (1, 2, 3, 4, 5), ('a', 1.5, x'00', NULL, 0)")
        .expect("it is a statement");
    drop(connection);
    assert_eq!(scan(&disk.content(HISTORY)).len(), scan(&world.disk.content(HISTORY)).len());
}

proptest! {
    #[test]
    fn any_bytes_have_an_answer(mut page in proptest::collection::vec(any::<u8>(), PAGE_BYTES), number in 1u32..3, cells in any::<u8>()) {
        let header = header_bytes(number);
        page[header] = LEAF_OF_TABLE;
        page[header + 3..header + 5].copy_from_slice(&u16::from(cells).to_be_bytes());
        let pages = page.clone();
        for cell in 0..cell_count(&page, number) {
            prop_assert_eq!(row(&page, number, cell, &mut |number| (number < 9).then(|| pages.clone())), None);
        }
        for length in [0, 1, 50, 101, 4087, 4095] {
            prop_assert_eq!(row(&page[..length], number, 0, &mut |_| None), None);
        }
    }

    #[test]
    fn changed_pages_give_rows_that_were_there_or_none(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..60),
    ) {
        let mut content = CONTENT.clone();
        for (at, byte) in changes {
            let at = at.index(content.len());
            content[at] = byte;
        }
        let said = scan(&CONTENT);
        for found in scan(&content) {
            // The row id is under no checksum but that of its page.
            let is_there = said.iter().any(|said| match (said, &found) {
                (Found::Segment(said), Found::Segment(found)) => said.segment == found.segment,
                (said, found) => said == found,
            });
            prop_assert!(is_there, "{:?} was never stored", found);
        }
    }
}
