//! A disk in memory for the tests: it fails when told to, and a power cut takes what was not synced, sector by sector.
//!
//! It behaves like Linux on a journaling file system, where that is the less friendly: unsynced sectors arrive in any combination, unsynced
//! names in order but not all, and after a failed sync the pages look clean though the disk never got them.

use super::{
    disk::{Access, Disk, DiskFile, RangeLock},
    error::OpenError,
    log::{Log, Recovered},
    position::LogPosition,
};
use rustix::io::Errno;
use std::{
    collections::BTreeMap,
    io,
    ops::Range,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// The disk; clones share it. Files that are open go on working after the names are gone, as on Linux.
#[derive(Clone, Default)]
pub(crate) struct MemoryDisk {
    state: Arc<Mutex<State>>,
}

/// What the disk does at one of the calls that change it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The power goes: a write may have arrived in part, and every later call fails.
    PowerCut,
    /// A write stops half way, a sync loses what it should have written; later calls work.
    IoError,
    /// Half of a write fits; later calls find room.
    Full,
    /// A write returns after half of its bytes, without an error.
    ShortWrite,
}

#[derive(Default)]
struct State {
    files: Vec<FileState>,
    names: BTreeMap<String, usize>,
    durable_names: BTreeMap<String, usize>,
    unsynced_names: Vec<NameChange>,
    trace: Vec<String>,
    fault: Option<(usize, Fault)>,
    /// Half of a write was taken because of `Fault::Full`: the next write finds the disk full.
    full_at_next_write: bool,
    reads_fail: bool,
    /// Appears in that file when its next read has been answered: what another process writes in the meantime.
    write_behind_read: Option<(usize, u64, Vec<u8>)>,
    powered_off: bool,
    /// What the next questions for free space are told.
    free_bytes: Option<Result<u64, Errno>>,
    /// The handles made so far: each has a number, by which its locks are known.
    handle_count: u64,
}

#[derive(Default, Clone)]
struct FileState {
    /// What a process sees.
    cached: Vec<u8>,
    durable: Vec<u8>,
    unsynced: Vec<Change>,
    locks: Vec<Held>,
}

/// What has happened to a file's content and may not have reached the disk.
#[derive(Clone)]
enum Change {
    Write(u64, Vec<u8>),
    Truncate(u64),
}

/// A lock that a handle has on some bytes.
#[derive(Clone)]
struct Held {
    handle: u64,
    bytes: Range<u64>,
    lock: RangeLock,
}

enum NameChange {
    Add(String, usize),
    Rename(String, String),
    Remove(String),
}

impl MemoryDisk {
    /// Opens the log on this disk, at a time that stands still.
    pub(crate) fn open_log(&self, file_bytes: u64, position: LogPosition) -> Result<(Log, Recovered), OpenError> {
        Log::open_on(Arc::new(self.clone()), file_bytes, position, || 1_700_000_000_000)
    }

    /// Makes the `call`th call that changes the disk, counted from 1 over its life, go wrong.
    pub(crate) fn fail_at(&self, call: usize, fault: Fault) {
        self.lock().fault = Some((call, fault));
    }

    /// The calls that changed the disk so far, as `write 00000001.log 0+4096`.
    pub(crate) fn trace(&self) -> Vec<String> {
        self.lock().trace.clone()
    }

    pub(crate) fn set_free_bytes(&self, free_bytes: u64) {
        self.lock().free_bytes = Some(Ok(free_bytes));
    }

    pub(crate) fn refuse_free_bytes(&self) {
        self.lock().free_bytes = Some(Err(Errno::NOMEM));
    }

    pub(crate) fn fail_reads(&self) {
        self.lock().reads_fail = true;
    }

    pub(crate) fn write_behind_read(&self, name: &str, offset: u64, bytes: &[u8]) {
        let mut state = self.lock();
        state.write_behind_read = Some((state.names[name], offset, bytes.to_vec()));
    }

    /// A file's content as a process sees it.
    pub(crate) fn content(&self, name: &str) -> Vec<u8> {
        let state = self.lock();
        state.files[state.names[name]].cached.clone()
    }

    /// Puts a file there, durably, as somebody else would.
    pub(crate) fn put(&self, name: &str, content: Vec<u8>) {
        let mut state = self.lock();
        state.files.push(FileState { durable: content.clone(), cached: content, ..FileState::default() });
        let index = state.files.len() - 1;
        state.names.insert(name.to_owned(), index);
        state.durable_names.insert(name.to_owned(), index);
    }

    pub(crate) fn take_away(&self, name: &str) {
        let mut state = self.lock();
        state.names.remove(name);
        state.durable_names.remove(name);
    }

    /// An independent disk with the same content.
    pub(crate) fn copy(&self) -> MemoryDisk {
        let copy = MemoryDisk::default();
        for name in self.names().expect("the disk is on") {
            copy.put(&name, self.content(&name));
        }
        copy
    }

    /// The machine is started again after the power went: of what was not synced, chance decides.
    pub(crate) fn power_cut(&self, random: &mut Random) {
        let state = &mut *self.lock();
        let kept = random.below(state.unsynced_names.len() as u64 + 1) as usize;
        for change in state.unsynced_names.drain(..).take(kept) {
            change.apply(&mut state.durable_names);
        }
        state.names = state.durable_names.clone();

        let sector_bytes = [512, 4096][random.below(2) as usize];
        let arrived_percent = [0, 10, 50, 90, 100][random.below(5) as usize];
        for file in &mut state.files {
            for change in std::mem::take(&mut file.unsynced) {
                match change {
                    Change::Write(offset, bytes) => {
                        for (index, sector) in bytes.chunks(sector_bytes).enumerate() {
                            if random.below(100) < arrived_percent {
                                put_at(&mut file.durable, offset as usize + index * sector_bytes, sector);
                            }
                        }
                    }
                    Change::Truncate(byte_count) => {
                        if random.below(100) < arrived_percent {
                            file.durable.resize(byte_count as usize, 0);
                        }
                    }
                }
            }
            file.cached = file.durable.clone();
            file.locks.clear();
        }
        (state.powered_off, state.fault, state.full_at_next_write) = (false, None, false);
    }

    /// The process was killed, and another one starts: the kernel has what was written, and no locks.
    pub(crate) fn kill(&self) {
        let state = &mut *self.lock();
        state.files.iter_mut().for_each(|file| file.locks.clear());
        (state.powered_off, state.fault, state.full_at_next_write) = (false, None, false);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts and records a call that changes the disk, and says what goes wrong in it.
    fn change(&self, call: String) -> io::Result<(MutexGuard<'_, State>, Option<Fault>)> {
        let mut state = self.lock();
        if state.powered_off {
            return Err(Errno::IO.into());
        }
        state.trace.push(call);
        let fault = state.fault.filter(|(call, _)| *call == state.trace.len()).map(|(_, fault)| fault);
        state.powered_off |= fault == Some(Fault::PowerCut);
        Ok((state, fault))
    }

    fn change_names(&self, call: String, change: impl FnOnce(&State) -> io::Result<NameChange>) -> io::Result<()> {
        let (mut state, fault) = self.change(call)?;
        let change = match fault {
            None | Some(Fault::ShortWrite) => change(&state)?,
            Some(fault) => return Err(fault.error()),
        };
        change.apply(&mut state.names);
        state.unsynced_names.push(change);
        Ok(())
    }

    fn file(&self, index: usize) -> Box<dyn DiskFile> {
        let mut state = self.lock();
        state.handle_count += 1;
        Box::new(MemoryFile { disk: self.clone(), index, handle: state.handle_count })
    }
}

impl Disk for MemoryDisk {
    fn path(&self) -> &Path {
        Path::new("memory/log")
    }

    fn names(&self) -> io::Result<Vec<String>> {
        let state = self.lock();
        if state.powered_off { Err(Errno::IO.into()) } else { Ok(state.names.keys().cloned().collect()) }
    }

    fn open(&self, name: &str, _access: Access) -> io::Result<Box<dyn DiskFile>> {
        let state = self.lock();
        if state.powered_off {
            return Err(Errno::IO.into());
        }
        let index = *state.names.get(name).ok_or(Errno::NOENT)?;
        drop(state);
        Ok(self.file(index))
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let mut index = 0;
        self.lock().files.push(FileState::default());
        self.change_names(format!("create {name}"), |state| {
            index = state.files.len() - 1;
            Ok(NameChange::Add(name.to_owned(), index))
        })?;
        Ok(self.file(index))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.change_names(format!("rename {from} {to}"), |state| match state.names.contains_key(from) {
            true => Ok(NameChange::Rename(from.to_owned(), to.to_owned())),
            false => Err(Errno::NOENT.into()),
        })
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.change_names(format!("remove {name}"), |state| match state.names.contains_key(name) {
            true => Ok(NameChange::Remove(name.to_owned())),
            false => Err(Errno::NOENT.into()),
        })
    }

    fn sync_folder(&self) -> io::Result<()> {
        let (mut state, fault) = self.change("sync folder".to_owned())?;
        if let Some(fault) = fault.filter(|fault| *fault != Fault::ShortWrite) {
            return Err(fault.error());
        }
        state.unsynced_names.clear();
        state.durable_names = state.names.clone();
        Ok(())
    }

    fn free_bytes(&self) -> io::Result<u64> {
        let state = self.lock();
        if state.powered_off { Err(Errno::IO.into()) } else { Ok(state.free_bytes.unwrap_or(Ok(u64::MAX))?) }
    }

    fn identity(&self, name: &str) -> io::Result<u64> {
        self.lock().names.get(name).map(|index| *index as u64).ok_or(io::ErrorKind::NotFound.into())
    }
}

struct MemoryFile {
    disk: MemoryDisk,
    index: usize,
    handle: u64,
}

impl Drop for MemoryFile {
    fn drop(&mut self) {
        self.disk.lock().files[self.index].locks.retain(|held| held.handle != self.handle);
    }
}

impl MemoryFile {
    /// The name that the file has now.
    fn name(&self) -> String {
        let state = self.disk.lock();
        state.names.iter().find(|(_, index)| **index == self.index).map(|(name, _)| name.clone()).unwrap_or_default()
    }
}

impl DiskFile for MemoryFile {
    fn byte_count(&self) -> io::Result<u64> {
        Ok(self.disk.lock().files[self.index].cached.len() as u64)
    }

    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut state = self.disk.lock();
        if state.powered_off || state.reads_fail {
            return Err(Errno::IO.into());
        }
        let cached = state.files[self.index].cached.get(offset as usize..).unwrap_or_default();
        let count = out.len().min(cached.len());
        out[..count].copy_from_slice(&cached[..count]);
        if let Some((_, offset, bytes)) = state.write_behind_read.take_if(|(index, ..)| *index == self.index) {
            put_at(&mut state.files[self.index].cached, offset as usize, &bytes);
        }
        Ok(count)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let (mut state, fault) = self.disk.change(format!("write {} {offset}+{}", self.name(), bytes.len()))?;
        if std::mem::take(&mut state.full_at_next_write) {
            return Err(Errno::NOSPC.into());
        }
        let taken = if matches!(fault, None | Some(Fault::PowerCut)) { bytes } else { &bytes[..bytes.len() / 2] };
        let file = &mut state.files[self.index];
        put_at(&mut file.cached, offset as usize, taken);
        file.unsynced.push(Change::Write(offset, taken.to_vec()));
        match fault {
            Some(Fault::PowerCut | Fault::IoError) => Err(Errno::IO.into()),
            fault => {
                state.full_at_next_write = fault == Some(Fault::Full);
                Ok(taken.len())
            }
        }
    }

    fn sync_data(&self) -> io::Result<()> {
        let (mut state, fault) = self.disk.change(format!("sync {}", self.name()))?;
        let file = &mut state.files[self.index];
        match fault {
            None | Some(Fault::ShortWrite) => {
                for change in file.unsynced.drain(..) {
                    match change {
                        Change::Write(offset, bytes) => put_at(&mut file.durable, offset as usize, &bytes),
                        Change::Truncate(byte_count) => file.durable.resize(byte_count as usize, 0),
                    }
                }
                Ok(())
            }
            // The pages are called clean: the next sync succeeds and writes nothing.
            Some(Fault::IoError) => {
                file.unsynced.clear();
                Err(Errno::IO.into())
            }
            Some(fault) => Err(fault.error()),
        }
    }

    fn truncate(&self, byte_count: u64) -> io::Result<()> {
        let (mut state, fault) = self.disk.change(format!("truncate {} {byte_count}", self.name()))?;
        let file = &mut state.files[self.index];
        if matches!(fault, None | Some(Fault::ShortWrite | Fault::PowerCut)) {
            file.cached.resize(byte_count as usize, 0);
            file.unsynced.push(Change::Truncate(byte_count));
        }
        fault.filter(|fault| *fault != Fault::ShortWrite).map_or(Ok(()), |fault| Err(fault.error()))
    }

    fn lock(&self, bytes: Range<u64>, lock: RangeLock) -> io::Result<bool> {
        let mut state = self.disk.lock();
        let locks = &mut state.files[self.index].locks;
        let is_in_the_way = |held: &Held| {
            held.handle != self.handle
                && overlap(&held.bytes, &bytes)
                && (held.lock == RangeLock::Exclusive || lock == RangeLock::Exclusive)
        };
        if lock != RangeLock::None && locks.iter().any(is_in_the_way) {
            return Ok(false);
        }
        // What this handle had on some of the bytes goes; what it had beside them stays.
        for held in std::mem::take(locks) {
            if held.handle != self.handle || !overlap(&held.bytes, &bytes) {
                locks.push(held);
                continue;
            }
            for rest in [held.bytes.start..bytes.start, bytes.end..held.bytes.end] {
                if rest.start < rest.end {
                    locks.push(Held { bytes: rest, ..held.clone() });
                }
            }
        }
        if lock != RangeLock::None {
            locks.push(Held { handle: self.handle, bytes, lock });
        }
        Ok(true)
    }

    fn is_locked(&self, bytes: Range<u64>) -> io::Result<bool> {
        let state = self.disk.lock();
        Ok(state.files[self.index].locks.iter().any(|held| held.handle != self.handle && overlap(&held.bytes, &bytes)))
    }
}

fn overlap(left: &Range<u64>, right: &Range<u64>) -> bool {
    left.start < right.end && right.start < left.end
}

impl Fault {
    fn error(self) -> io::Error {
        match self {
            Fault::Full => Errno::NOSPC.into(),
            _ => Errno::IO.into(),
        }
    }
}

impl NameChange {
    fn apply(&self, names: &mut BTreeMap<String, usize>) {
        match self {
            NameChange::Add(name, index) => {
                names.insert(name.clone(), *index);
            }
            NameChange::Rename(from, to) => {
                if let Some(index) = names.remove(from) {
                    names.insert(to.clone(), index);
                }
            }
            NameChange::Remove(name) => {
                names.remove(name);
            }
        }
    }
}

fn put_at(content: &mut Vec<u8>, offset: usize, bytes: &[u8]) {
    if content.len() < offset + bytes.len() {
        content.resize(offset + bytes.len(), 0);
    }
    content[offset..offset + bytes.len()].copy_from_slice(bytes);
}

/// SplitMix64: the tests' chance, the same on every machine.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut value = self.0;
        value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        value ^ (value >> 31)
    }

    /// Less than `bound`, which is not 0.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}
