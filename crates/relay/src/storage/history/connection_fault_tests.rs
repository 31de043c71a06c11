//! Whatever moment the power goes, a call fails or a byte decays at: what was committed is there, the one transaction without an answer is
//! there whole or not at all, and nothing that is read is wrong.

use super::*;
use crate::storage::memory_disk::{Fault, MemoryDisk, Random};
use rusqlite::{Transaction, TransactionBehavior};
use std::collections::BTreeMap;

const NAME: &str = "history.db";
const JOURNAL: &str = "history.db-journal";
const LIVES: usize = 3;

pub(super) type Rows = BTreeMap<i64, String>;

/// The life of one file over several processes, of which the fault ends one or hinders it.
struct Run {
    disk: MemoryDisk,
    random: Random,
    /// What the file may hold: what was last committed, and what transactions without an answer since would have made of it.
    possible: Vec<Rows>,
}

impl Run {
    fn new(seed: u64) -> Run {
        Run { disk: MemoryDisk::default(), random: Random(seed), possible: vec![Rows::new()] }
    }

    /// One process: some transactions, and perhaps it goes on after the one that fails.
    fn live(&mut self) -> Result<(), Box<dyn Error>> {
        let mut connection = self.open()?;
        for _ in 0..1 + self.random.below(3) {
            let before = rows(&connection)?;
            assert!(self.possible.contains(&before), "{} rows are none of {:?}", before.len(), self.lens());
            let (after, change) = self.change(&before);
            match commit(&mut connection, &change) {
                Ok(()) => self.possible = vec![after],
                Err(error) => {
                    self.possible.push(after);
                    match self.random.below(3) {
                        0 => return Err(error.into()),
                        // Trouble does not come alone.
                        1 => self.disk.fail_at(self.disk.trace().len() + 1 + self.random.below(12) as usize, Fault::PowerCut),
                        _ => {}
                    }
                }
            }
        }
        Ok(())
    }

    fn open(&mut self) -> Result<Connection, Box<dyn Error>> {
        let connection = open(Arc::new(self.disk.clone()), NAME, Access::ReadWrite)?.connection;
        connection.busy_timeout(Duration::ZERO)?;
        connection.execute_batch("CREATE TABLE IF NOT EXISTS t (id INTEGER PRIMARY KEY, x TEXT) STRICT")?;
        Ok(connection)
    }

    /// Several processes, each ended by a kill or by a power cut.
    fn live_on(&mut self) {
        for _ in 0..LIVES {
            let _ended = self.live();
            match self.random.below(2) {
                0 => self.disk.power_cut(&mut self.random),
                _ => self.disk.kill(),
            }
        }
    }

    /// Nothing goes wrong any more.
    fn live_in_peace(&mut self) {
        self.disk.power_cut(&mut self.random);
        for _ in 0..2 {
            self.live().expect("the disk works");
            let connection = self.open().expect("the disk works");
            let checked: String = connection.pragma_query_value(None, "integrity_check", |row| row.get(0)).expect("the disk works");
            assert_eq!(checked, "ok");
        }
    }

    /// Rows that come, of which some have pages of their own, and rows that go.
    fn change(&mut self, before: &Rows) -> (Rows, Vec<(i64, Option<String>)>) {
        let mut after = before.clone();
        let mut change = Vec::new();
        for _ in 0..1 + self.random.below(4) {
            let id = self.random.below(12) as i64;
            let len = [10, 500, 9000, 20_000][self.random.below(4) as usize];
            let text = (self.random.below(3) > 0).then(|| format!("{id}-{}", self.random.next()).repeat(len / 10));
            match &text {
                Some(text) => after.insert(id, text.clone()),
                None => after.remove(&id),
            };
            change.push((id, text));
        }
        (after, change)
    }

    fn lens(&self) -> Vec<usize> {
        self.possible.iter().map(Rows::len).collect()
    }
}

fn commit(connection: &mut Connection, change: &[(i64, Option<String>)]) -> rusqlite::Result<()> {
    let transaction = Transaction::new(connection, TransactionBehavior::Immediate)?;
    for (id, text) in change {
        match text {
            Some(text) => transaction.execute("INSERT INTO t VALUES (?1, ?2) ON CONFLICT DO UPDATE SET x = ?2", (id, text))?,
            None => transaction.execute("DELETE FROM t WHERE id = ?1", [id])?,
        };
    }
    transaction.commit()
}

pub(super) fn rows(connection: &Connection) -> rusqlite::Result<Rows> {
    connection.prepare_cached("SELECT id, x FROM t")?.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
}

/// Lets each call of a run fail once, for some runs.
fn fail_at_every_call(fault: Fault, seeds: u64) {
    for seed in 0..seeds {
        let mut call = 1;
        loop {
            let mut run = Run::new(seed);
            run.disk.fail_at(call, fault);
            let described = format!("seed {seed}, {fault:?} at call {call}");
            let lived = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                run.live_on();
                let call_count = run.disk.trace().len();
                run.live_in_peace();
                call_count
            }));
            match lived {
                Ok(call_count) if call_count < call => break,
                Ok(_) => call += 1,
                Err(_) => panic!("{described}: {:?}", run.disk.trace().get(call - 1)),
            }
        }
        assert!(call > 30, "the runs are too short to say much");
    }
}

#[test]
fn a_power_cut_at_any_call_leaves_what_was_committed() {
    fail_at_every_call(Fault::PowerCut, 6);
}

#[test]
fn a_failed_call_takes_back_its_transaction_only() {
    fail_at_every_call(Fault::IoError, 6);
}

#[test]
fn a_full_disk_takes_back_its_transaction_only() {
    fail_at_every_call(Fault::Full, 4);
}

#[test]
fn a_journal_that_could_not_be_closed_is_not_mixed_with_the_next() {
    // After three transactions, of which the fault hits the last sync of the second, the power goes in the third.
    let run = |close_call: Option<usize>, cut_call: Option<usize>| {
        let (disk, mut possible) = filled();
        let disk = disk.copy();
        let mut history = open(Arc::new(disk.clone()), NAME, Access::ReadWrite).unwrap();
        let mut run = Run::new(3);
        let mut states = Vec::new();
        for fault in [None, close_call.map(|call| (call, Fault::IoError)), cut_call.map(|call| (call, Fault::PowerCut))] {
            if let Some((call, fault)) = fault {
                disk.fail_at(disk.trace().len() + call, fault);
            }
            let (after, change) = run.change(&possible);
            let committed = commit(&mut history.connection, &change);
            assert_eq!(committed.is_err(), fault.is_some(), "{committed:?}");
            possible = after.clone();
            states.push((after, disk.trace()));
        }
        drop(history);
        (disk, states)
    };
    let (_, calm) = run(None, None);
    let calls_of = |index: usize| &calm[index].1[calm[index - 1].1.len()..];
    assert_eq!(calls_of(1).last().unwrap(), "sync history.db-journal");
    let close_call = calls_of(1).len();
    let expected: Vec<&Rows> = calm.iter().map(|(rows, _)| rows).collect();
    for cut_call in 1..=calls_of(2).len() {
        for seed in 0..12 {
            let (disk, _) = run(Some(close_call), Some(cut_call));
            disk.power_cut(&mut Random(seed));
            let rows = read(&disk, Access::ReadWrite).unwrap_or_else(|error| panic!("call {cut_call}, seed {seed}: {error}"));
            assert!(expected.contains(&&rows), "call {cut_call}, seed {seed}");
        }
    }
}

/// A file of several pages, and what is in it.
fn filled() -> (MemoryDisk, Rows) {
    let mut run = Run::new(1);
    let mut connection = run.open().unwrap();
    let mut rows = Rows::new();
    for _ in 0..6 {
        let (after, change) = run.change(&rows);
        commit(&mut connection, &change).unwrap();
        rows = after;
    }
    drop(connection);
    (run.disk, rows)
}

/// The same, in the middle of a transaction: its process was killed when all pages were written and none synced.
pub(super) fn filled_and_hot() -> (MemoryDisk, Rows) {
    let (disk, rows) = filled();
    let mut run = Run::new(2);
    let (_, change) = run.change(&rows);
    for skipped in 0.. {
        let attempt = disk.copy();
        let mut connection = open(Arc::new(attempt.clone()), NAME, Access::ReadWrite).unwrap().connection;
        attempt.fail_at(attempt.trace().len() + 1 + skipped, Fault::PowerCut);
        commit(&mut connection, &change).expect_err("the process was killed");
        drop(connection);
        attempt.kill();
        if attempt.trace().last().is_some_and(|call| call == "sync history.db") {
            assert_ne!(attempt.content(NAME), disk.content(NAME));
            return (attempt, rows);
        }
    }
    unreachable!("a transaction syncs the database")
}

/// Opens and reads everything.
fn read(disk: &MemoryDisk, access: Access) -> Result<Rows, Box<dyn Error>> {
    let history = open(Arc::new(disk.clone()), NAME, access)?;
    let read = rows(&history.connection);
    read.map_err(|error| history.failure.take().map_or_else(|| error.into(), Into::into))
}

fn with_flipped_byte(disk: &MemoryDisk, name: &str, offset: usize) -> MemoryDisk {
    let flipped = disk.copy();
    let mut content = disk.content(name);
    content[offset] ^= 0x41;
    flipped.put(name, content);
    flipped
}

#[test]
fn a_transaction_that_was_killed_is_taken_back_by_the_next_that_may_write() {
    let (disk, expected) = filled_and_hot();
    assert_eq!(
        read(&disk, Access::Read).unwrap_err().to_string(),
        ConnectError::Unfinished { path: "memory/log/history.db".into() }.to_string()
    );
    assert_eq!(read(&disk, Access::ReadWrite).unwrap(), expected);
    assert_eq!(read(&disk, Access::Read).unwrap(), expected);
}

#[test]
fn a_changed_byte_of_the_database_is_found_by_whoever_reads_its_page() {
    let (disk, _) = filled();
    let page_count = disk.content(NAME).len() / PAGE_BYTES;
    assert!(page_count > 10);
    for page in 0..page_count {
        for within in [0, 1, 16, 17, 20, 28, 100, 105, 2000, 4087, 4088, 4091, 4092, 4095] {
            let offset = page * PAGE_BYTES + within;
            let error = read(&with_flipped_byte(&disk, NAME, offset), Access::ReadWrite).expect_err(&format!("offset {offset}"));
            let place = format!("memory/log/history.db is damaged: page {} (offset {}): ", page + 1, page * PAGE_BYTES);
            assert!(error.to_string().starts_with(&place), "{error}");
        }
    }
}

#[test]
fn a_changed_byte_of_a_journal_that_is_needed_is_found_or_does_no_harm() {
    let (disk, expected) = filled_and_hot();
    let journal = disk.content(JOURNAL);
    let mut found_count = 0;
    let places = (0..512).chain((512..journal.len()).step_by(97)).chain((512..journal.len()).step_by(4104)).chain(4..8);
    for offset in places {
        match read(&with_flipped_byte(&disk, JOURNAL, offset), Access::ReadWrite) {
            Ok(rows) => assert_eq!(rows, expected, "offset {offset}"),
            Err(error) => {
                assert!(error.to_string().starts_with("memory/log/history.db-journal is damaged: "), "offset {offset}: {error}");
                found_count += 1;
            }
        }
    }
    assert!(found_count > 512, "{found_count}");
}

#[test]
fn a_journal_that_is_cut_off_is_not_played_back_in_part() {
    let (disk, _) = filled_and_hot();
    let mut journal = disk.content(JOURNAL);
    journal.truncate(512 + 4104);
    disk.put(JOURNAL, journal);
    let error = read(&disk, Access::ReadWrite).unwrap_err().to_string();
    assert!(error.starts_with("memory/log/history.db-journal is damaged: it ends before the last of its "), "{error}");
}

#[test]
fn a_changed_byte_of_a_journal_that_is_not_needed_does_no_harm_or_is_found() {
    let (disk, expected) = filled();
    for offset in (0..512).chain((512..disk.content(JOURNAL).len()).step_by(997)) {
        match read(&with_flipped_byte(&disk, JOURNAL, offset), Access::ReadWrite) {
            Ok(rows) => assert_eq!(rows, expected, "offset {offset}"),
            // A magic that is neither there nor cleared: a change may have been under way.
            Err(error) => {
                assert!(offset < 8 && error.to_string().contains("history.db-journal is damaged: its header"), "{offset}: {error}")
            }
        }
    }
}

#[test]
fn pages_that_are_taken_and_given_back_at_once_stay_zeros_and_are_in_order() {
    let disk = MemoryDisk::default();
    let connection = Run { disk: disk.clone(), ..Run::new(0) }.open().unwrap();
    connection.execute_batch("BEGIN; INSERT INTO t VALUES (1, hex(zeroblob(20000))); DELETE FROM t; COMMIT").unwrap();
    let content = disk.content(NAME);
    let pages = content.chunks(PAGE_BYTES).zip(1..).map(|(page, number)| (<&Page>::try_from(page).unwrap(), number));
    assert!(pages.clone().any(|(page, number)| page_seal::check(page, number).is_err()));
    assert!(pages.clone().all(|(page, number)| page_seal::check_unasked(page, number).is_ok()));
}

#[test]
fn a_page_that_is_needed_and_became_zeros_is_found() {
    let (disk, _) = filled();
    let content = disk.content(NAME);
    for page in 0..content.len() / PAGE_BYTES {
        let emptied = disk.copy();
        let mut content = content.clone();
        content[page * PAGE_BYTES..][..PAGE_BYTES].fill(0);
        emptied.put(NAME, content);
        let error = read(&emptied, Access::ReadWrite).expect_err(&format!("page {}", page + 1));
        assert!(error.to_string().contains(&format!("page {} (offset", page + 1)), "{error}");
    }
}

#[test]
fn a_page_in_the_place_of_another_is_found() {
    let (disk, _) = filled();
    let mut content = disk.content(NAME);
    let (left, right) = content.split_at_mut(3 * PAGE_BYTES);
    left[2 * PAGE_BYTES..].swap_with_slice(&mut right[..PAGE_BYTES]);
    disk.put(NAME, content);
    assert!(read(&disk, Access::ReadWrite).unwrap_err().to_string().contains("its checksum does not match"));
}

#[test]
fn a_database_that_is_gone_is_not_made_anew_beside_its_journal() {
    for disk in [filled_and_hot().0, filled().0] {
        disk.take_away(NAME);
        let error = read(&disk, Access::ReadWrite).unwrap_err().to_string();
        assert!(error.starts_with("memory/log/history.db is gone or empty, though its journal history.db-journal is there"), "{error}");
        disk.put(NAME, Vec::new());
        assert_eq!(read(&disk, Access::Read).unwrap_err().to_string(), error);
    }
}
