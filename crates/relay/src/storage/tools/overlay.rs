//! A disk that is read, with writes that stay in memory: so a change of history.db that was cut off can be taken back for a look at it,
//! while the folder is left as it was found.
//!
//! Holds the pages that were written, which a transaction bounds. Locks for reading are taken on the disk below; those for writing are not
//! needed, because nothing is written there. Next: `source.rs`.

use crate::storage::disk::{Access, Disk, DiskFile, RangeLock};
use std::{
    collections::BTreeMap,
    io,
    ops::Range,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

pub(crate) struct Overlay {
    below: Arc<dyn Disk>,
    /// A file that is taken for missing.
    without: Option<&'static str>,
    files: Arc<Mutex<BTreeMap<String, Changed>>>,
}

/// What is different from the file below.
#[derive(Default)]
struct Changed {
    /// Whole blocks, by their number.
    blocks: BTreeMap<u64, Box<[u8; BLOCK_BYTES]>>,
    /// The length, if it is another.
    byte_count: Option<u64>,
    is_removed: bool,
}

struct OverlayFile {
    name: String,
    /// `None` for a file that was made here.
    below: Option<Box<dyn DiskFile>>,
    files: Arc<Mutex<BTreeMap<String, Changed>>>,
}

impl Overlay {
    pub(crate) fn new(below: Arc<dyn Disk>) -> Overlay {
        Overlay { below, without: None, files: Arc::default() }
    }

    /// The same without this file.
    pub(crate) fn without(below: Arc<dyn Disk>, name: &'static str) -> Overlay {
        Overlay { without: Some(name), ..Overlay::new(below) }
    }
}

impl Disk for Overlay {
    fn path(&self) -> &Path {
        self.below.path()
    }

    fn names(&self) -> io::Result<Vec<String>> {
        self.below.names()
    }

    fn open(&self, name: &str, _access: Access) -> io::Result<Box<dyn DiskFile>> {
        let is_made_here = match lock(&self.files).get(name) {
            Some(changed) if changed.is_removed => return Err(io::ErrorKind::NotFound.into()),
            changed => changed.is_some(),
        };
        let below = match self.below.open(name, Access::Read) {
            _ if self.without == Some(name) && is_made_here => None,
            _ if self.without == Some(name) => return Err(io::ErrorKind::NotFound.into()),
            Ok(file) => Some(file),
            Err(error) if error.kind() == io::ErrorKind::NotFound && is_made_here => None,
            Err(error) => return Err(error),
        };
        Ok(Box::new(OverlayFile { name: name.to_owned(), below, files: self.files.clone() }))
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        lock(&self.files).insert(name.to_owned(), Changed { byte_count: Some(0), ..Changed::default() });
        Ok(Box::new(OverlayFile { name: name.to_owned(), below: None, files: self.files.clone() }))
    }

    fn rename(&self, _from: &str, _to: &str) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        lock(&self.files).insert(name.to_owned(), Changed { is_removed: true, ..Changed::default() });
        Ok(())
    }

    fn sync_folder(&self) -> io::Result<()> {
        Ok(())
    }

    fn free_bytes(&self) -> io::Result<u64> {
        Ok(u64::MAX)
    }

    fn identity(&self, name: &str) -> io::Result<u64> {
        self.below.identity(name)
    }
}

impl OverlayFile {
    /// A block as it is here.
    fn block(&self, changed: Option<&Changed>, number: u64) -> io::Result<Box<[u8; BLOCK_BYTES]>> {
        if let Some(block) = changed.and_then(|changed| changed.blocks.get(&number)) {
            return Ok(block.clone());
        }
        let mut block = Box::new([0; BLOCK_BYTES]);
        let Some(below) = &self.below else { return Ok(block) };
        let mut filled = 0;
        while filled < BLOCK_BYTES {
            match below.read_at(&mut block[filled..], number * BLOCK_BYTES as u64 + filled as u64) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(block)
    }

    fn length(&self, changed: Option<&Changed>) -> io::Result<u64> {
        match (changed.and_then(|changed| changed.byte_count), &self.below) {
            (Some(byte_count), _) => Ok(byte_count),
            (None, Some(below)) => below.byte_count(),
            (None, None) => Ok(0),
        }
    }
}

impl DiskFile for OverlayFile {
    fn byte_count(&self) -> io::Result<u64> {
        self.length(lock(&self.files).get(&self.name))
    }

    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
        let files = lock(&self.files);
        let changed = files.get(&self.name);
        let byte_count = self.length(changed)?;
        let within = (offset % BLOCK_BYTES as u64) as usize;
        let count = out.len().min(BLOCK_BYTES - within).min(usize::try_from(byte_count.saturating_sub(offset)).unwrap_or(usize::MAX));
        let block = self.block(changed, offset / BLOCK_BYTES as u64)?;
        out[..count].copy_from_slice(&block[within..within + count]);
        Ok(count)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let mut files = lock(&self.files);
        let within = (offset % BLOCK_BYTES as u64) as usize;
        let count = bytes.len().min(BLOCK_BYTES - within);
        let number = offset / BLOCK_BYTES as u64;
        let mut block = self.block(files.get(&self.name), number)?;
        block[within..within + count].copy_from_slice(&bytes[..count]);
        let byte_count = self.length(files.get(&self.name))?.max(offset + count as u64);
        let changed = files.entry(self.name.clone()).or_default();
        changed.blocks.insert(number, block);
        changed.byte_count = Some(byte_count);
        Ok(count)
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn truncate(&self, byte_count: u64) -> io::Result<()> {
        let mut files = lock(&self.files);
        let number = byte_count / BLOCK_BYTES as u64;
        let mut block = self.block(files.get(&self.name), number)?;
        block[(byte_count % BLOCK_BYTES as u64) as usize..].fill(0);
        let before = self.length(files.get(&self.name))?;
        let changed = files.entry(self.name.clone()).or_default();
        changed.blocks.retain(|block_number, _| *block_number < number);
        // What was beyond is zeros if the file grows again.
        for beyond in number..before.div_ceil(BLOCK_BYTES as u64) {
            changed.blocks.insert(beyond, Box::new([0; BLOCK_BYTES]));
        }
        changed.blocks.insert(number, block);
        changed.byte_count = Some(byte_count);
        Ok(())
    }

    fn lock(&self, bytes: Range<u64>, lock: RangeLock) -> io::Result<bool> {
        match (lock, &self.below) {
            (RangeLock::Exclusive, _) | (_, None) => Ok(true),
            (lock, Some(below)) => below.lock(bytes, lock),
        }
    }

    fn is_locked(&self, bytes: Range<u64>) -> io::Result<bool> {
        self.below.as_ref().map_or(Ok(false), |below| below.is_locked(bytes))
    }
}

fn lock(files: &Mutex<BTreeMap<String, Changed>>) -> MutexGuard<'_, BTreeMap<String, Changed>> {
    files.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A page of the database.
const BLOCK_BYTES: usize = 4096;
