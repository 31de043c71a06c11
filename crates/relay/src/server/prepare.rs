//! The archive worker, which makes the next log file while commits go on. A commit that finds none would have to wait for it.
//!
//! When one is due, the storage knows. Next: `mod.rs`, which starts and stops all of them.

use std::convert::Infallible;
use std::io;
use std::rc::Rc;

use miniloop::thread::Worker;
use tracing::warn;

use super::state::Server;
use crate::storage::Preparer;

pub(super) fn start(server: &Rc<Server>, preparer: Preparer) -> io::Result<()> {
    let files = preparer.clone();
    let worker = Worker::new("archive", move || files)?;
    server.spawn_part("prepare", prepare(server.clone(), preparer, worker));
    Ok(())
}

async fn prepare(server: Rc<Server>, preparer: Preparer, worker: Worker<Preparer>) -> Infallible {
    let mut is_failing = false;
    loop {
        if preparer.is_due() {
            let worked = worker.call(|files| files.prepare()).await;
            // The commit that needs the file meets the same error and decides; until then nothing is lost.
            let Ok(prepared) = worked else { panic!("the archive worker has ended") };
            let was_failing = std::mem::replace(&mut is_failing, prepared.is_err());
            if let Err(error) = prepared
                && !was_failing
            {
                // Said once: it is tried again after each commit.
                warn!("the next log file cannot be made ahead of time: {error}");
            }
        }
        server.prepare.heard().await;
    }
}
