//! The thread that commits: one batch at a time goes there and comes back durable. Next: `connection.rs`.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use rustix::event::{EventfdFlags, eventfd};

use crate::batch::Batch;
use crate::log::Log;

/// The way to the disk and back.
pub(crate) struct Committer {
    to_disk: SyncSender<Batch>,
    committed: Receiver<Batch>,
    doorbell: Arc<OwnedFd>,
}

impl Committer {
    pub(crate) fn start(mut log: Log) -> io::Result<Committer> {
        let doorbell = Arc::new(eventfd(0, EventfdFlags::CLOEXEC)?);
        // One batch is on its way at most, so nobody ever waits for room.
        let (to_disk, batches) = sync_channel::<Batch>(1);
        let (back, committed) = sync_channel(1);
        let bell = doorbell.clone();
        thread::Builder::new().name("commit".to_owned()).spawn(move || {
            for batch in batches {
                if !batch.sections.is_empty()
                    && let Err(error) = log.commit(&batch)
                {
                    // What is on the disk now is unknown: nobody may be told anything any more.
                    eprintln!("relay-floor: cannot commit: {error}");
                    std::process::exit(1);
                }
                let sent = back.send(batch);
                if sent.is_err() || rustix::io::write(&bell, &1u64.to_ne_bytes()).is_err() {
                    return;
                }
            }
        })?;
        Ok(Committer { to_disk, committed, doorbell })
    }

    /// Rings for each batch that is durable. Edge-triggered, it need not be read: each ring is an edge.
    pub(crate) fn doorbell(&self) -> BorrowedFd<'_> {
        self.doorbell.as_fd()
    }

    /// Sends a batch to the disk, where no other may be.
    pub(crate) fn submit(&self, batch: Batch) -> io::Result<()> {
        self.to_disk.send(batch).map_err(|_| io::Error::other("the commit thread has ended"))
    }

    /// The batch that has become durable.
    pub(crate) fn committed(&self) -> Option<Batch> {
        self.committed.try_recv().ok()
    }
}
