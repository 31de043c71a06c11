//! Batches to the commit worker and back. What it brings back is the only cause of a broadcast.
//!
//! Group commit without a timer: while one batch is on the disk the next one fills, and it is taken as soon as the disk is free. So an idle
//! server answers after one `fdatasync`, and a busy one makes thousands of messages durable with each. Next: `prepare.rs`.

use std::convert::Infallible;
use std::io;
use std::rc::Rc;

use miniloop::thread::{Call, Worker};
use relay_core::{Batch, CommitError};
use tracing::{error, warn};

use super::state::Server;
use super::turn;
use crate::storage::{Storage, StorageError};

/// A batch that the worker has.
type OnDisk<S> = Call<S, (Result<(), StorageError>, Batch)>;

pub(super) fn start(server: &Rc<Server>, storage: impl Storage) -> io::Result<()> {
    let worker = Worker::new("commit", move || storage)?;
    server.spawn_part("commit", commit_batches(server.clone(), worker));
    Ok(())
}

async fn commit_batches<S: Storage>(server: Rc<Server>, worker: Worker<S>) -> Infallible {
    let mut is_refusing = false;
    let mut next = None;
    loop {
        let Some(on_disk) = next.take().or_else(|| submit(&server, &worker)) else {
            server.commits.heard().await;
            continue;
        };
        let Ok((committed, batch)) = on_disk.await else {
            panic!("the commit worker has ended: what it did to the batch is unknown");
        };
        land(&server, &committed, batch);
        // The disk works while this batch is shown.
        next = submit(&server, &worker);
        // Shown at once: everybody waits for it.
        turn::run(&server);
        server.prepare.ring();
        is_refusing = tell(&server, committed, is_refusing);
    }
}

/// Has the worker commit what is open, if there is something. The worker has it from now on, whether or not anybody awaits.
fn submit<S: Storage>(server: &Server, worker: &Worker<S>) -> Option<OnDisk<S>> {
    let batch = server.hub.borrow_mut().take_batch()?;
    Some(worker.call(move |storage| (storage.commit(&batch).map(|_committed| ()), batch)))
}

fn land(server: &Server, committed: &Result<(), StorageError>, batch: Batch) {
    let mut hub = server.hub.borrow_mut();
    let now = server.now();
    match committed {
        Ok(()) => hub.committed(now, batch),
        Err(StorageError::Full { .. }) => hub.commit_refused(now, batch, CommitError::Full),
        Err(StorageError::Refused(_) | StorageError::Failed(_)) => hub.commit_refused(now, batch, CommitError::Unavailable),
    }
}

/// Says once that the storage refuses, once that it does so no longer, and stops the server when it has failed. Returns whether it refuses.
fn tell(server: &Server, committed: Result<(), StorageError>, was_refusing: bool) -> bool {
    match committed {
        Ok(()) if was_refusing => warn!("messages are stored again"),
        Ok(()) => {}
        Err(error @ (StorageError::Full { .. } | StorageError::Refused(_))) => {
            if !was_refusing {
                warn!("{error}");
            }
            return true;
        }
        Err(error) => {
            error!("{error}");
            server.storage_failed(error);
        }
    }
    false
}
