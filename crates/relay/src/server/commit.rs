//! Batches to the commit worker and back. What it brings back is the only cause of a broadcast.
//!
//! Group commit without a timer: while one batch is on the disk the next one fills, and it is taken as soon as the disk is free. So an idle
//! server answers after one `fdatasync`, and a busy one makes thousands of messages durable with each. Only when the archive is far behind
//! do batches wait for it, and grow meanwhile: `backlog.rs` says when. Next: `mod.rs`, which starts and stops all of them.

use std::convert::Infallible;
use std::io;
use std::rc::Rc;

use miniloop::thread::{Call, Worker};
use relay_core::{Batch, CommitError, Nanos};
use tracing::{error, warn};

use super::backlog::Verdict;
use super::state::Server;
use super::stop::Stop;
use super::turn;
use crate::storage::{Committed, Storage, StorageError};

/// A batch that the worker has, and since when.
struct OnDisk<S> {
    submitted: Nanos,
    call: Call<S, (Result<Committed, StorageError>, Batch)>,
}

pub(super) fn start(server: &Rc<Server>, storage: impl Storage) -> io::Result<()> {
    let worker = Worker::new("commit", move || storage)?;
    server.spawn_part("commit", commit_batches(server.clone(), worker));
    Ok(())
}

async fn commit_batches<S: Storage>(server: Rc<Server>, worker: Worker<S>) -> Infallible {
    let mut is_refusing = false;
    let mut next = None;
    loop {
        let OnDisk { submitted, call } = match next.take() {
            Some(on_disk) => on_disk,
            None => next_commit(&server, &worker, &mut is_refusing).await,
        };
        let Ok((committed, batch)) = call.await else {
            panic!("the commit worker has ended: what it did to the batch is unknown");
        };
        land(&server, submitted, &committed, batch);
        // The disk works while this batch is shown.
        next = submit_if_allowed(&server, &worker);
        // Shown at once: everybody waits for it.
        turn::run(&server);
        is_refusing = tell(&server, committed, is_refusing);
    }
}

/// Waits until there is something to commit and the archive is not too far behind, and submits it.
async fn next_commit<S: Storage>(server: &Rc<Server>, worker: &Worker<S>, is_refusing: &mut bool) -> OnDisk<S> {
    let mut waits_since = None;
    let mut is_at_bound = false;
    loop {
        if server.hub.borrow().uncommitted_len_bytes() == 0 {
            server.commits.heard().await;
            continue;
        }
        let now = server.now();
        let verdict = server.backlog.borrow().verdict(now);
        match verdict {
            Verdict::Go => {
                if let Some(on_disk) = submit(server, worker, now) {
                    if let Some(since) = waits_since {
                        let mut metrics = server.metrics.borrow_mut();
                        metrics.commit_delay_ns.add(now.since(since).as_nanos() as u64);
                        metrics.commits_delayed_at_bound += u64::from(is_at_bound);
                    }
                    return on_disk;
                }
            }
            Verdict::NotBefore(_) | Verdict::WhenFolded => {
                waits_since.get_or_insert(now);
                is_at_bound |= verdict == Verdict::WhenFolded;
                tell_slow(server);
            }
            Verdict::Full => {
                refuse(server, is_refusing);
                continue;
            }
        }
        // What the archive reports is heard here too.
        if let Verdict::NotBefore(at) = verdict {
            let _ = miniloop::timeout(at.since(now), server.commits.heard()).await;
        } else {
            server.commits.heard().await;
        }
    }
}

/// Has the worker commit what is open, if there is something and the archive allows it.
fn submit_if_allowed<S: Storage>(server: &Server, worker: &Worker<S>) -> Option<OnDisk<S>> {
    let now = server.now();
    let verdict = server.backlog.borrow().verdict(now);
    if verdict == Verdict::Go { submit(server, worker, now) } else { None }
}

/// Has the worker commit what is open, if there is something. The worker has it from now on, whether or not anybody awaits.
fn submit<S: Storage>(server: &Server, worker: &Worker<S>, submitted: Nanos) -> Option<OnDisk<S>> {
    let batch = server.hub.borrow_mut().take_batch()?;
    server.backlog.borrow_mut().submitted(submitted);
    Some(OnDisk { submitted, call: worker.call(move |storage| (storage.commit(&batch), batch)) })
}

fn land(server: &Server, submitted: Nanos, committed: &Result<Committed, StorageError>, batch: Batch) {
    let mut hub = server.hub.borrow_mut();
    let mut metrics = server.metrics.borrow_mut();
    let now = server.now();
    let error = match committed {
        Ok(committed) => {
            let messages_before = hub.counters().messages_committed;
            hub.committed(now, batch);
            metrics.commit_ns.add(now.since(submitted).as_nanos() as u64);
            metrics.commit_messages.add(hub.counters().messages_committed - messages_before);
            metrics.commit_log_bytes.add(committed.log_bytes);
            let mut backlog = server.backlog.borrow_mut();
            backlog.committed(committed.log_bytes);
            if server.folding.borrow_mut().committed(now, *committed, backlog.unfolded_bytes()) {
                server.archive.ring();
            }
            return;
        }
        Err(StorageError::Full { .. }) => CommitError::Full,
        Err(StorageError::Refused(_) | StorageError::Failed(_)) => CommitError::Unavailable,
    };
    metrics.commits_refused += 1;
    hub.commit_refused(now, batch, error);
}

/// Refuses what is open: the log may not grow, and the disk is too full to fold it.
fn refuse(server: &Rc<Server>, is_refusing: &mut bool) {
    let batch = server.hub.borrow_mut().take_batch();
    if let Some(batch) = batch {
        server.metrics.borrow_mut().commits_refused += 1;
        server.hub.borrow_mut().commit_refused(server.now(), batch, CommitError::Full);
        turn::run(server);
    }
    if !std::mem::replace(is_refusing, true) {
        warn!(
            "the log has reached its bound, and the disk is too full to move messages to the history: messages are refused until it is not"
        );
    }
}

/// Says once that the storage refuses, once that it does so no longer, and stops the server when it has failed. Returns whether it refuses.
fn tell(server: &Server, committed: Result<Committed, StorageError>, was_refusing: bool) -> bool {
    match committed {
        Ok(_) if was_refusing => {
            warn!("messages are stored again");
            if server.folding.borrow_mut().disk_has_room() {
                server.archive.ring();
            }
        }
        Ok(_) => {}
        Err(error @ (StorageError::Full { .. } | StorageError::Refused(_))) => {
            if !was_refusing {
                warn!("{error}");
            }
            return true;
        }
        Err(error) => {
            error!("{error}");
            server.stop(Stop::Storage(error));
        }
    }
    false
}

/// Says once per episode that commits wait for the archive.
fn tell_slow(server: &Server) {
    let mut backlog = server.backlog.borrow_mut();
    if backlog.begin_slowing() {
        server.metrics.borrow_mut().slow_episodes += 1;
        warn!(
            unfolded_bytes = backlog.unfolded_bytes(),
            bound_bytes = backlog.bytes_max(),
            "the history is behind the log: commits are slowed to the pace at which it follows"
        );
    }
}
