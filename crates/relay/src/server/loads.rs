//! Histories of rooms that are not in memory, from the archive worker.
//!
//! A load is given to the worker as soon as the hub asks for it, so it waits for one piece of the archive's work at most, unless dozens are
//! there before it. They come back in the order in which they were asked for. Next: `archive.rs`.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;

use miniloop::thread::{Call, Worker};
use relay_core::{Load, Nanos};
use tracing::warn;

use super::state::Server;
use crate::limits::{LOAD_FAILURE_SAID_EVERY, LOADS_LEN_MAX};
use crate::storage::{Archive, ArchiveError, Loaded};

/// A load that the worker has.
struct Asked<A> {
    load: Load,
    at: Nanos,
    answer: Call<A, Result<Loaded, ArchiveError>>,
}

pub(super) fn start<A: Archive>(server: &Rc<Server>, worker: Rc<Worker<A>>) {
    server.spawn_part("loads", load_histories(server.clone(), worker));
}

async fn load_histories<A: Archive>(server: Rc<Server>, worker: Rc<Worker<A>>) -> Infallible {
    let mut asked = VecDeque::new();
    let mut failures = Failures::default();
    loop {
        while asked.len() < LOADS_LEN_MAX
            && let Some(next) = ask(&server, &worker)
        {
            asked.push_back(next);
        }
        let answer = poll_fn(|cx| {
            if let Some(Asked { answer, .. }) = asked.front_mut()
                && let Poll::Ready(answer) = Pin::new(answer).poll(cx)
            {
                return Poll::Ready(Some(answer));
            }
            if server.loads.poll_heard(cx) { Poll::Ready(None) } else { Poll::Pending }
        });
        let Some(answer) = answer.await else { continue };
        let (Ok(loaded), Some(Asked { load, at, .. })) = (answer, asked.pop_front()) else { panic!("the archive worker has ended") };
        land(&server, load, at, loaded, &mut failures);
    }
}

/// Has the worker load the next history that the hub wants.
fn ask<A: Archive>(server: &Server, worker: &Worker<A>) -> Option<Asked<A>> {
    let load = server.hub.borrow_mut().pop_load()?;
    let (room, up_to) = (load.name.clone(), server.base_sequence + load.commits);
    let answer = worker.call(move |archive| archive.load(&room, up_to));
    Some(Asked { load, at: server.now(), answer })
}

fn land(server: &Server, load: Load, asked_at: Nanos, loaded: Result<Loaded, ArchiveError>, failures: &mut Failures) {
    let now = server.now();
    server.metrics.borrow_mut().load_ns.add(now.since(asked_at).as_nanos() as u64);
    let mut hub = server.hub.borrow_mut();
    match loaded {
        Ok(Loaded { lines, message_count }) => hub.history_loaded(now, load.room, lines, message_count),
        Err(error) => {
            hub.history_unavailable(now, load.room);
            failures.tell(now, &load.name, &error);
        }
    }
    server.wake_turn();
}

/// Says that histories cannot be loaded, now and then: everybody who joins may ask for one.
#[derive(Default)]
struct Failures {
    said_at: Option<Nanos>,
    unsaid_len: u64,
}

impl Failures {
    fn tell(&mut self, now: Nanos, room: &str, error: &ArchiveError) {
        if self.said_at.is_some_and(|at| now.since(at) < LOAD_FAILURE_SAID_EVERY) {
            self.unsaid_len += 1;
            return;
        }
        // The name was chosen by strangers: `Debug` escapes it.
        warn!(room = ?room, unsaid = self.unsaid_len, "a history cannot be loaded: {error}");
        *self = Failures { said_at: Some(now), unsaid_len: 0 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn that_histories_cannot_be_loaded_is_said_once_a_second() {
        let mut failures = Failures::default();
        let mut unsaid_after = |at_ns| {
            failures.tell(Nanos(at_ns), "lobby", &ArchiveError::Full { folder: "relay-data".into() });
            failures.unsaid_len
        };
        assert_eq!([0, 1, 999_999_999, 1_000_000_000, 1_999_999_999].map(&mut unsaid_after), [0, 1, 2, 0, 1]);
    }
}
