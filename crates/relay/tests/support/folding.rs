//! What a data folder says of a fold: whether the history is being changed, and where a kill has stopped it.
//!
//! Nothing here goes through the code under test: the journal's first byte, and SQLite on its own. Next: `world.rs`.

use std::fs::File;
use std::os::unix::fs::FileExt;

use rusqlite::{Connection, OpenFlags};

use super::Data;

/// Where a kill has found the folding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stopped {
    /// In the middle of a change of the history, which the next start takes back.
    InTransaction,
    /// Between two changes of one fold: some rooms have their messages, others do not, and `folded` has not moved.
    BetweenTransactions,
    /// Nothing of a fold is to be seen.
    Outside,
}

/// Whether pages of the history are being changed: from then on until it is done, the journal has its magic number.
pub(crate) fn is_in_transaction(data: &Data) -> bool {
    let mut first = [0];
    let read = File::open(data.path().join("history.db-journal")).and_then(|journal| journal.read_at(&mut first, 0));
    read.is_ok_and(|len| len == 1 && first != [0])
}

/// What a killed server has left.
pub(crate) fn stopped(data: &Data) -> Stopped {
    if is_in_transaction(data) {
        return Stopped::InTransaction;
    }
    // Immutable: SQLite takes the file as it is, and neither a lock nor a look at the journal.
    let uri = format!("file:{}?immutable=1", data.path().join("history.db").display());
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
    let is_ahead = Connection::open_with_flags(uri, flags).and_then(|history| {
        let newest = "(SELECT last_sequence FROM segment ORDER BY id DESC LIMIT 1)";
        history.query_row(&format!("SELECT coalesce({newest}, 0) > sequence FROM folded"), [], |row| row.get::<_, bool>(0))
    });
    match is_ahead {
        Ok(true) => Stopped::BetweenTransactions,
        // A start that was killed before it made the tables left none.
        Ok(false) | Err(_) => Stopped::Outside,
    }
}

/// Counts the transactions that begin, as far as somebody looks often enough.
#[derive(Default)]
pub(crate) struct TransactionCounter {
    was_in_one: bool,
    pub(crate) count: u64,
}

impl TransactionCounter {
    pub(crate) fn look(&mut self, data: &Data) {
        let is_in_one = is_in_transaction(data);
        self.count += u64::from(is_in_one && !self.was_in_one);
        self.was_in_one = is_in_one;
    }
}
