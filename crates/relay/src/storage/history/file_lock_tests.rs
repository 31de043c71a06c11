//! Two open files of one database exclude each other as SQLite's locks say, on the disk in memory and on the real one.

use super::*;
use crate::storage::{
    disk::{Access, Disk, OsDisk},
    memory_disk::MemoryDisk,
};

/// A handle and its lock.
struct Handle {
    file: Box<dyn DiskFile>,
    lock: FileLock,
}

impl Handle {
    fn raise(&mut self, wanted: Lock) -> bool {
        self.lock.raise(self.file.as_ref(), wanted).unwrap()
    }

    fn lower(&mut self, wanted: Lock) {
        self.lock.lower(self.file.as_ref(), wanted).unwrap();
    }

    fn is_reserved(&self) -> bool {
        self.lock.is_reserved(self.file.as_ref()).unwrap()
    }
}

/// Runs the check on both disks, each with a file and three handles of it.
#[track_caller]
fn on_both_disks(check: fn([Handle; 3])) {
    let folder = tempfile::tempdir().unwrap();
    let disks: [&dyn Disk; 2] = [&MemoryDisk::default(), &OsDisk::open(folder.path()).unwrap()];
    for disk in disks {
        drop(disk.create("file").unwrap());
        check([(); 3].map(|()| Handle { file: disk.open("file", Access::ReadWrite).unwrap(), lock: FileLock::new() }));
    }
}

#[test]
fn readers_share_and_one_may_reserve_beside_them() {
    on_both_disks(|[mut one, mut other, mut third]| {
        assert!(one.raise(Lock::Shared) && other.raise(Lock::Shared));
        assert!(!one.is_reserved());
        assert!(one.raise(Lock::Reserved));
        assert!(one.is_reserved() && other.is_reserved());
        assert!(!other.raise(Lock::Reserved));
        assert!(third.raise(Lock::Shared));
    });
}

#[test]
fn a_writer_waits_for_the_readers_and_lets_no_new_ones_come() {
    on_both_disks(|[mut writer, mut reader, mut late]| {
        assert!(reader.raise(Lock::Shared) && writer.raise(Lock::Shared) && writer.raise(Lock::Reserved));
        assert!(!writer.raise(Lock::Exclusive));
        assert_eq!(writer.lock.held(), Lock::Pending);
        assert!(!late.raise(Lock::Shared));
        reader.lower(Lock::None);
        assert!(writer.raise(Lock::Exclusive));
        assert!(!reader.raise(Lock::Shared));
        writer.lower(Lock::Shared);
        assert!(late.raise(Lock::Shared) && !late.is_reserved());
        writer.lower(Lock::None);
        assert!(late.raise(Lock::Reserved) && late.raise(Lock::Exclusive));
    });
}

#[test]
fn two_that_would_roll_back_a_journal_leave_each_other_readers() {
    on_both_disks(|[mut one, mut other, mut third]| {
        assert!(one.raise(Lock::Shared) && other.raise(Lock::Shared));
        assert!(!one.raise(Lock::Exclusive) && !other.raise(Lock::Exclusive));
        assert_eq!((one.lock.held(), other.lock.held()), (Lock::Shared, Lock::Shared));
        assert!(third.raise(Lock::Shared));
    });
}

#[test]
fn a_file_that_is_closed_leaves_no_lock() {
    on_both_disks(|[mut one, mut other, _]| {
        assert!(one.raise(Lock::Shared) && one.raise(Lock::Reserved) && one.raise(Lock::Exclusive));
        assert!(!other.raise(Lock::Shared));
        drop(one);
        assert!(other.raise(Lock::Shared) && other.raise(Lock::Reserved) && other.raise(Lock::Exclusive));
    });
}
