//! Batches to the commit worker and back. What it brings back is the only cause of a broadcast.
//!
//! Group commit without a timer: while one batch is on the disk the next one fills, and it is taken as soon as the disk is free. So an idle
//! server answers after one `fdatasync`, and a busy one makes thousands of messages durable with each. Next: `prepare.rs`.

use std::convert::Infallible;
use std::io;
use std::rc::Rc;

use miniloop::thread::Worker;
use relay_core::CommitError;
use tracing::{error, warn};

use super::state::Server;
use super::stop::Stop;
use super::turn;
use crate::storage::{Storage, StorageError};

pub(super) fn start(server: &Rc<Server>, storage: impl Storage) -> io::Result<()> {
    let worker = Worker::new("commit", move || storage)?;
    server.spawn_part("commit", commit_batches(server.clone(), worker));
    Ok(())
}

async fn commit_batches(server: Rc<Server>, worker: Worker<impl Storage>) -> Infallible {
    let mut is_full = false;
    loop {
        let taken = server.hub.borrow_mut().take_batch();
        let Some(batch) = taken else {
            server.commits.heard().await;
            continue;
        };
        let worked = worker.call(move |storage| (storage.commit(&batch), batch)).await;
        let Ok((committed, batch)) = worked else {
            panic!("the commit worker has ended: what it did to the batch is unknown");
        };
        let now = server.now();
        let mut hub = server.hub.borrow_mut();
        match &committed {
            Ok(()) => hub.committed(now, batch),
            Err(StorageError::Full { .. }) => hub.commit_refused(now, batch, CommitError::Full),
            Err(StorageError::Failed(_)) => hub.commit_refused(now, batch, CommitError::Unavailable),
        }
        drop(hub);
        // Written at once: everybody waits for this.
        turn::run(&server);
        server.prepare.ring();
        let was_full = std::mem::replace(&mut is_full, matches!(committed, Err(StorageError::Full { .. })));
        match committed {
            Ok(()) if was_full => warn!("there is room again: messages are stored"),
            Ok(()) => {}
            Err(error @ StorageError::Full { .. }) if !was_full => warn!("{error}"),
            Err(StorageError::Full { .. }) => {}
            Err(error) => {
                error!("{error}");
                server.stop(Stop::Storage(error));
            }
        }
    }
}
