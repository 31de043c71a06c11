//! What a connection to history.db promises.

use super::*;
use crate::storage::{disk::OsDisk, memory_disk::MemoryDisk};

const NAME: &str = "history.db";

#[test]
fn what_is_committed_is_there_for_the_next_connection() {
    let folder = tempfile::tempdir().unwrap();
    let disks: [Arc<dyn Disk>; 2] = [Arc::new(MemoryDisk::default()), Arc::new(OsDisk::open(folder.path()).unwrap())];
    for disk in disks {
        let history = open(disk.clone(), NAME, Access::ReadWrite).unwrap();
        history.connection.execute_batch("CREATE TABLE t (x TEXT) STRICT; INSERT INTO t VALUES ('kept')").unwrap();
        drop(history);
        let history = open(disk.clone(), NAME, Access::Read).unwrap();
        let kept: String = history.connection.query_row("SELECT x FROM t", [], |row| row.get(0)).unwrap();
        assert_eq!(kept, "kept");
        let checked: String = history.connection.pragma_query_value(None, "integrity_check", |row| row.get(0)).unwrap();
        assert_eq!(checked, "ok");
    }
}
