//! What a connection to history.db promises while nothing goes wrong, beside others of this and of other processes.

use super::*;
use crate::storage::{disk::OsDisk, memory_disk::MemoryDisk};
use std::{
    io::{BufRead, BufReader, Read, Write},
    path::Path,
    process::{Child, Command, Stdio},
};

const NAME: &str = "history.db";

/// Runs the check on both disks.
#[track_caller]
fn on_both_disks(check: fn(Arc<dyn Disk>)) {
    check(Arc::new(MemoryDisk::default()));
    let folder = tempfile::tempdir().unwrap();
    check(Arc::new(OsDisk::open(folder.path()).unwrap()));
}

/// A connection that does not wait.
#[track_caller]
fn connect(disk: &Arc<dyn Disk>, access: Access) -> Connection {
    let connection = open(disk.clone(), NAME, access).unwrap().connection;
    connection.busy_timeout(Duration::ZERO).unwrap();
    connection
}

fn fill(disk: &Arc<dyn Disk>) {
    let connection = connect(disk, Access::ReadWrite);
    connection.execute_batch("CREATE TABLE t (x TEXT) STRICT; INSERT INTO t VALUES ('kept')").unwrap();
}

fn count(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("SELECT count(*) FROM t", [], |row| row.get(0))
}

#[track_caller]
fn assert_busy<T: fmt::Debug>(result: rusqlite::Result<T>) {
    assert_eq!(result.unwrap_err().sqlite_error_code(), Some(ErrorCode::DatabaseBusy));
}

#[test]
fn what_is_committed_is_there_for_the_next_connection() {
    on_both_disks(|disk| {
        fill(&disk);
        let connection = connect(&disk, Access::Read);
        let kept: String = connection.query_row("SELECT x FROM t", [], |row| row.get(0)).unwrap();
        assert_eq!(kept, "kept");
        let checked: String = connection.pragma_query_value(None, "integrity_check", |row| row.get(0)).unwrap();
        assert_eq!(checked, "ok");
        let mut names = disk.names().unwrap();
        names.retain(|name| !name.starts_with('.'));
        names.sort();
        assert_eq!(names, ["history.db", "history.db-journal"]);
    });
}

#[test]
fn the_settings_are_those_that_the_files_count_on() {
    on_both_disks(|disk| {
        let connection = connect(&disk, Access::ReadWrite);
        let check = |pragma: &str, expected: &str| {
            let value: String =
                connection.query_row(&format!("SELECT CAST({pragma} AS TEXT) FROM pragma_{pragma}"), [], |row| row.get(0)).unwrap();
            assert_eq!(value, expected, "{pragma}");
        };
        check("page_size", "4096");
        check("journal_mode", "persist");
        check("synchronous", "2");
        check("temp_store", "2");
        check("cache_spill", "0");
        check("trusted_schema", "0");
        check("cache_size", "-16384");
        check("journal_size_limit", "67108864");
    });
}

#[test]
fn the_first_page_leaves_room_for_the_seal() {
    on_both_disks(|disk| {
        fill(&disk);
        let mut page = [0; PAGE_BYTES];
        disk.open(NAME, Access::Read).unwrap().read_at(&mut page, 0).unwrap();
        assert_eq!((page[20], page_seal::check(&page, 1)), (SEAL_BYTES as u8, Ok(())));
    });
}

#[test]
fn what_is_not_there_is_not_made_to_be_read() {
    on_both_disks(|disk| {
        let error = open(disk.clone(), NAME, Access::Read).unwrap_err();
        assert_eq!(error, ConnectError::Missing { path: disk.path().join(NAME) });
        assert!(disk.open(NAME, Access::Read).is_err());
    });
}

#[test]
fn a_database_of_another_program_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    Connection::open(folder.path().join(NAME)).unwrap().execute_batch("CREATE TABLE t (x)").unwrap();
    let before = std::fs::read(folder.path().join(NAME)).unwrap();
    let error = open(Arc::new(OsDisk::open(folder.path()).unwrap()), NAME, Access::ReadWrite).unwrap_err();
    assert!(error.to_string().contains("page 1 (offset 0): it lacks the seal of relay's pages"), "{error}");
    assert_eq!(std::fs::read(folder.path().join(NAME)).unwrap(), before);
}

#[test]
fn readers_see_the_last_commit_until_a_writer_must_have_the_file() {
    on_both_disks(|disk| {
        fill(&disk);
        let (writer, reader, late) = (connect(&disk, Access::ReadWrite), connect(&disk, Access::Read), connect(&disk, Access::Read));
        writer.execute_batch("BEGIN IMMEDIATE; INSERT INTO t VALUES ('new')").unwrap();
        reader.execute_batch("BEGIN").unwrap();
        assert_eq!(count(&reader).unwrap(), 1);
        assert_busy(connect(&disk, Access::ReadWrite).execute_batch("BEGIN IMMEDIATE"));

        assert_busy(writer.execute_batch("COMMIT"));
        assert_busy(count(&late));
        reader.execute_batch("COMMIT").unwrap();
        writer.execute_batch("COMMIT").unwrap();
        assert_eq!((count(&reader).unwrap(), count(&late).unwrap()), (2, 2));
    });
}

/// The program `sqlite3` at work on the file, one line at a time.
struct Sqlite3 {
    child: Child,
    answers: BufReader<std::process::ChildStdout>,
}

impl Sqlite3 {
    #[allow(clippy::print_stdout, reason = "the suite counts this line")]
    fn start(folder: &Path) -> Option<Sqlite3> {
        let mut command = Command::new("sqlite3");
        command.arg("-batch").arg(folder.join(NAME)).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let Ok(mut child) = command.spawn() else {
            println!("SKIPPED: sqlite3 is not installed");
            return None;
        };
        let answers = BufReader::new(child.stdout.take().unwrap());
        Some(Sqlite3 { child, answers })
    }

    /// Runs a statement, and returns what it prints until it is done.
    fn run(&mut self, statement: &str) -> Vec<String> {
        writeln!(self.child.stdin.as_mut().unwrap(), "{statement}\nSELECT 'done';").unwrap();
        self.answers.by_ref().lines().map(Result::unwrap).take_while(|line| line != "done").collect()
    }
}

impl Drop for Sqlite3 {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _status = self.child.wait();
    }
}

#[test]
fn the_program_sqlite3_reads_beside_us_and_each_holds_the_other_off() {
    let folder = tempfile::tempdir().unwrap();
    let disk: Arc<dyn Disk> = Arc::new(OsDisk::open(folder.path()).unwrap());
    fill(&disk);
    let writer = connect(&disk, Access::ReadWrite);
    let Some(mut sqlite3) = Sqlite3::start(folder.path()) else { return };
    let mut count_there = |before: &str, after: &str| sqlite3.run(&format!("{before}SELECT count(*) FROM t;{after}"));

    // Its reader stops our commit, until it is done.
    assert_eq!(count_there("BEGIN;", ""), ["1"]);
    writer.execute_batch("BEGIN IMMEDIATE; INSERT INTO t VALUES ('new')").unwrap();
    assert_busy(writer.execute_batch("COMMIT"));
    assert_eq!(count_there("", "COMMIT;"), ["1"]);
    writer.execute_batch("COMMIT").unwrap();
    assert_eq!(count_there("", ""), ["2"]);

    // While we have the file to ourselves it reads nothing, and a reader of ours keeps it from committing.
    writer.execute_batch("BEGIN EXCLUSIVE").unwrap();
    assert_eq!(count_there("", ""), [""; 0]);
    writer.execute_batch("ROLLBACK; BEGIN").unwrap();
    assert_eq!(count(&writer).unwrap(), 2);
    assert_eq!(count_there("BEGIN IMMEDIATE; DELETE FROM t;\nCOMMIT;\n", ""), ["0"]);
    writer.execute_batch("COMMIT").unwrap();
    assert_eq!(count_there("ROLLBACK;", ""), ["2"]);
    assert_eq!(count(&connect(&disk, Access::Read)).unwrap(), 2);
}

/// What is on a disk in memory, in a folder.
pub(super) fn in_folder(disk: &MemoryDisk, folder: &Path) {
    for name in disk.names().unwrap() {
        std::fs::write(folder.join(&name), disk.content(&name)).unwrap();
    }
}

#[test]
fn the_program_sqlite3_takes_back_our_unfinished_transaction_as_we_do() {
    let (disk, rows) = super::fault_tests::filled_and_hot();
    let folder = tempfile::tempdir().unwrap();
    in_folder(&disk, folder.path());
    let Some(mut sqlite3) = Sqlite3::start(folder.path()) else { return };
    assert_eq!(sqlite3.run("SELECT count(*) FROM t;"), [rows.len().to_string()]);
    let disk: Arc<dyn Disk> = Arc::new(OsDisk::open(folder.path()).unwrap());
    let connection = connect(&disk, Access::Read);
    assert_eq!(super::fault_tests::rows(&connection).unwrap(), rows);
}
