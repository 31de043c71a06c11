//! The archive worker: folds what is committed into the history, off the commit path, and makes log files ahead of time.
//!
//! When work is due, `fold_schedule.rs` says; it is done piece by piece, so that loads go in between. What the archive reports moves the
//! hub's rooms out of memory and lets slowed commits go on. Next: `commit.rs`.

use std::convert::Infallible;
use std::future::pending;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use miniloop::thread::Worker;
use tracing::{error, info, warn};

use super::loads;
use super::state::Server;
use super::stop::Stop;
use crate::limits::ARCHIVE_NICENESS;
use crate::storage::{Archive, ArchiveError, Worked};

pub(super) fn start(server: &Rc<Server>, archive: impl Archive) -> io::Result<()> {
    let worker = Rc::new(Worker::new("archive", move || {
        // Commits go first. Linux means the calling thread by this; where it is refused, folding is only less polite.
        let _ = rustix::process::setpriority_process(None, ARCHIVE_NICENESS);
        archive
    })?);
    loads::start(server, worker.clone());
    server.spawn_part("archive", work(server.clone(), worker));
    Ok(())
}

async fn work<A: Archive>(server: Rc<Server>, worker: Rc<Worker<A>>) -> Infallible {
    let mut was_full = false;
    loop {
        until_due(&server).await;
        let began = server.now();
        let committed = server.folding.borrow_mut().begin();
        server.backlog.borrow_mut().work_begins();
        let Ok(worked) = worker.call(move |archive| archive.work(committed)).await else { panic!("the archive worker has ended") };
        let took = server.now().since(began);
        server.metrics.borrow_mut().work_ns.add(took.as_nanos() as u64);
        match worked {
            Ok(worked) => {
                // Not after each piece: what is full may be so for a log file only, which is tried again between them.
                if was_full && !worked.next.goes_on() {
                    was_full = false;
                    warn!("messages are moved from the log to the history again");
                }
                land(&server, committed, &worked, took);
            }
            Err(error @ (ArchiveError::Full { .. } | ArchiveError::Locked { .. })) => {
                // Said once: it is tried again and again.
                if !std::mem::replace(&mut was_full, true) {
                    warn!("{error}");
                }
                server.metrics.borrow_mut().archive_full += 1;
                server.folding.borrow_mut().disk_is_full(server.now());
                server.backlog.borrow_mut().archive_is_full();
            }
            Err(error @ ArchiveError::Failed(_)) => {
                error!("{error}");
                server.metrics.borrow_mut().archive_failed += 1;
                server.backlog.borrow_mut().archive_has_failed();
                server.stop(Stop::Archive(error));
                server.commits.ring();
                // Histories are loaded as long as that works.
                pending().await
            }
        }
        // They may wait for what was folded, and those that wait for a full disk must hear of it.
        server.commits.ring();
    }
}

async fn until_due(server: &Server) {
    loop {
        let now = server.now();
        let due_at = server.folding.borrow().due_at();
        match due_at {
            Some(at) if at <= now => return,
            Some(at) => {
                let _ = miniloop::timeout(at.since(now), server.archive.heard()).await;
            }
            None => server.archive.heard().await,
        }
    }
}

/// A piece of work with the log up to `committed` is done.
fn land(server: &Server, committed: u64, worked: &Worked, took: Duration) {
    server.metrics.borrow_mut().folded_bytes += worked.log_bytes;
    let mut backlog = server.backlog.borrow_mut();
    let has_all = worked.folded == committed;
    let has_caught_up = if has_all { backlog.folded_all(took) } else { backlog.folded(worked.log_bytes, took) };
    if has_caught_up {
        info!("the history has caught up with the log: commits are not slowed any more");
    }
    let folded = server.folding.borrow_mut().worked(server.now(), worked, took, backlog.unfolded_bytes());
    if let Some(folded) = folded {
        server.hub.borrow_mut().archived(folded.saturating_sub(server.base_sequence));
        // The hub may have more rooms to forget than it does at once: the turn arms its deadline.
        server.wake_turn();
    }
}
