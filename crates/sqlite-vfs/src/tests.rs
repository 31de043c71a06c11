//! SQLite works on files in memory, and what they answer reaches it as what it is.

use crate::{Access, Error, File, Files, Kind, Lock, register};
use rusqlite::{Connection, OpenFlags, ffi};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

type Content = Arc<Mutex<Vec<u8>>>;

/// Files in memory, and how the next calls of a name fail.
#[derive(Clone, Default)]
struct Memory {
    files: Arc<Mutex<BTreeMap<String, Content>>>,
    failing: Arc<Mutex<Option<(&'static str, Failing)>>>,
}

#[derive(Clone, Copy)]
enum Failing {
    With(Error),
    Panic,
}

struct MemoryFile {
    content: Content,
    memory: Memory,
}

impl Memory {
    fn fail(&self, call: &'static str, failing: Failing) {
        *self.failing.lock().unwrap() = Some((call, failing));
    }

    fn call(&self, call: &'static str) -> Result<(), Error> {
        let failing = *self.failing.lock().unwrap();
        match failing {
            Some((failing_call, Failing::With(error))) if failing_call == call => Err(error),
            Some((failing_call, Failing::Panic)) if failing_call == call => panic!("{call} panics"),
            _ => Ok(()),
        }
    }

    fn connect(&self, vfs: &str) -> Connection {
        register(vfs, self.clone()).unwrap();
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
        Connection::open_with_flags_and_vfs("database", flags, vfs).unwrap()
    }
}

impl Files for Memory {
    fn open(&self, name: &str, _kind: Kind, access: Access) -> Result<Box<dyn File>, Error> {
        self.call("open")?;
        let mut files = self.files.lock().unwrap();
        if access != Access::Create && !files.contains_key(name) {
            return Err(Error::NotFound);
        }
        let content = files.entry(name.to_owned()).or_default().clone();
        Ok(Box::new(MemoryFile { content, memory: self.clone() }))
    }

    fn remove(&self, name: &str, _sync_folder: bool) -> Result<(), Error> {
        self.call("remove")?;
        self.files.lock().unwrap().remove(name).map(|_| ()).ok_or(Error::NotFound)
    }

    fn exists(&self, name: &str) -> Result<bool, Error> {
        Ok(self.files.lock().unwrap().contains_key(name))
    }
}

impl File for MemoryFile {
    fn read_at(&mut self, out: &mut [u8], offset: u64) -> Result<usize, Error> {
        self.memory.call("read")?;
        let content = self.content.lock().unwrap();
        let content = content.get(offset as usize..).unwrap_or_default();
        let count = content.len().min(out.len());
        out[..count].copy_from_slice(&content[..count]);
        out[count..].fill(0xee);
        Ok(count)
    }

    fn write_at(&mut self, bytes: &[u8], offset: u64) -> Result<(), Error> {
        self.memory.call("write")?;
        let mut content = self.content.lock().unwrap();
        let end = offset as usize + bytes.len();
        if content.len() < end {
            content.resize(end, 0);
        }
        content[offset as usize..end].copy_from_slice(bytes);
        Ok(())
    }

    fn truncate(&mut self, byte_count: u64) -> Result<(), Error> {
        self.content.lock().unwrap().resize(byte_count as usize, 0);
        Ok(())
    }

    fn sync(&mut self) -> Result<(), Error> {
        self.memory.call("sync")
    }

    fn byte_count(&mut self) -> Result<u64, Error> {
        Ok(self.content.lock().unwrap().len() as u64)
    }

    fn lock(&mut self, _lock: Lock) -> Result<(), Error> {
        self.memory.call("lock")
    }

    fn unlock(&mut self, _lock: Lock) -> Result<(), Error> {
        Ok(())
    }

    fn is_reserved(&mut self) -> Result<bool, Error> {
        Ok(false)
    }
}

#[test]
fn what_is_written_is_there_for_the_next_connection() {
    let memory = Memory::default();
    memory.connect("kept").execute_batch("CREATE TABLE t (x); INSERT INTO t VALUES (41), (42);").unwrap();
    let sum: i64 = memory.connect("kept").query_row("SELECT sum(x) FROM t", [], |row| row.get(0)).unwrap();
    assert_eq!(sum, 83);
    assert_eq!(memory.files.lock().unwrap().keys().collect::<Vec<_>>(), ["database"]);
}

#[test]
fn an_error_of_a_file_is_the_error_of_the_statement() {
    #[track_caller]
    fn check(vfs: &str, call: &'static str, failing: Failing, expected: i32) {
        let memory = Memory::default();
        memory.connect(vfs).execute_batch("CREATE TABLE t (x)").unwrap();
        let connection = memory.connect(vfs);
        connection.busy_timeout(std::time::Duration::ZERO).unwrap();
        memory.fail(call, failing);
        let error = connection.execute_batch("INSERT INTO t VALUES (1)").unwrap_err();
        let code = error.sqlite_error().map(|error| error.extended_code);
        assert_eq!(code, Some(expected), "{error}");
    }
    check("busy", "lock", Failing::With(Error::Busy), ffi::SQLITE_BUSY);
    check("full", "write", Failing::With(Error::Full), ffi::SQLITE_FULL);
    check("damaged", "read", Failing::With(Error::Damaged), ffi::SQLITE_IOERR_DATA);
    check("unreadable", "read", Failing::With(Error::Io), ffi::SQLITE_IOERR_READ);
    check("unwritable", "write", Failing::With(Error::Io), ffi::SQLITE_IOERR_WRITE);
    check("not synced", "sync", Failing::With(Error::Io), ffi::SQLITE_IOERR_FSYNC);
    check("no journal", "open", Failing::With(Error::Io), ffi::SQLITE_CANTOPEN);
    check("panic", "sync", Failing::Panic, ffi::SQLITE_IOERR_FSYNC);
}
