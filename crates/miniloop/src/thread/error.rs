//! Why a worker, or the pool, did not give a result.

use std::any::Any;
use std::fmt;
use std::io;
use std::panic::Location;
use std::sync::Arc;

use crate::panic_payload::PanicPayload;

/// A job has no result, and the worker will run no other: a job panicked, this one or an earlier one.
#[derive(Debug)]
pub struct WorkerGone {
    worker: Arc<str>,
    cause: Cause,
}

#[derive(Debug)]
enum Cause {
    ThisJob(Box<PanicPayload>),
    /// The job never ran.
    Earlier(Arc<str>),
}

impl WorkerGone {
    pub(crate) fn by_this_job(worker: Arc<str>, payload: PanicPayload) -> WorkerGone {
        WorkerGone { worker, cause: Cause::ThisJob(Box::new(payload)) }
    }

    pub(crate) fn before(worker: Arc<str>, reason: Arc<str>) -> WorkerGone {
        WorkerGone { worker, cause: Cause::Earlier(reason) }
    }

    /// It was this job that panicked. Otherwise the job never ran.
    pub fn is_panic(&self) -> bool {
        matches!(self.cause, Cause::ThisJob(_))
    }

    /// What this job panicked with, to be examined or [resumed](std::panic::resume_unwind).
    pub fn into_panic(self) -> Option<Box<dyn Any + Send>> {
        match self.cause {
            Cause::ThisJob(payload) => payload.take(),
            Cause::Earlier(_) => None,
        }
    }
}

impl fmt::Display for WorkerGone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.cause {
            Cause::ThisJob(payload) => {
                write!(f, "this job panicked, and worker `{}` has ended with it: {}", self.worker, payload.message())
            }
            Cause::Earlier(reason) => write!(f, "worker `{}` has ended: {reason}; make a new one", self.worker),
        }
    }
}

impl std::error::Error for WorkerGone {}

/// A blocking job has no result: it panicked, or it never ran.
#[derive(Debug)]
pub struct BlockingError {
    place: &'static Location<'static>,
    cause: NoResult,
}

#[derive(Debug)]
enum NoResult {
    Panicked(Box<PanicPayload>),
    /// The loop was closed before the job's turn came.
    Closed,
    NoThread(io::Error),
}

impl BlockingError {
    pub(crate) fn panicked(payload: PanicPayload, place: &'static Location<'static>) -> BlockingError {
        BlockingError { place, cause: NoResult::Panicked(Box::new(payload)) }
    }

    pub(crate) fn closed(place: &'static Location<'static>) -> BlockingError {
        BlockingError { place, cause: NoResult::Closed }
    }

    pub(crate) fn no_thread(error: io::Error, place: &'static Location<'static>) -> BlockingError {
        BlockingError { place, cause: NoResult::NoThread(error) }
    }

    /// The job panicked. Otherwise it never ran.
    pub fn is_panic(&self) -> bool {
        matches!(self.cause, NoResult::Panicked(_))
    }

    /// The job never ran because its loop was closed.
    pub fn is_cancelled(&self) -> bool {
        matches!(self.cause, NoResult::Closed)
    }

    /// What the job panicked with, to be examined or [resumed](std::panic::resume_unwind).
    pub fn into_panic(self) -> Option<Box<dyn Any + Send>> {
        match self.cause {
            NoResult::Panicked(payload) => payload.take(),
            NoResult::Closed | NoResult::NoThread(_) => None,
        }
    }
}

impl fmt::Display for BlockingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the blocking job (submitted at {}) ", self.place)?;
        match &self.cause {
            NoResult::Panicked(payload) => write!(f, "panicked: {}", payload.message()),
            NoResult::Closed => f.write_str("never ran: its event loop was closed"),
            NoResult::NoThread(error) => write!(f, "never ran: the system has no thread left for it: {error}"),
        }
    }
}

impl std::error::Error for BlockingError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.cause {
            NoResult::NoThread(error) => Some(error),
            NoResult::Panicked(_) | NoResult::Closed => None,
        }
    }
}

impl From<BlockingError> for io::Error {
    fn from(error: BlockingError) -> io::Error {
        io::Error::other(error)
    }
}

/// A queue has no room for a job of [`Worker::try_call`](super::Worker::try_call) or of
/// [`try_spawn_blocking`](crate::try_spawn_blocking).
#[derive(Debug)]
pub struct Full {
    /// `None`: the pool's.
    worker: Option<Arc<str>>,
}

impl Full {
    pub(crate) const OF_POOL: Full = Full { worker: None };

    pub(crate) fn of_worker(worker: Arc<str>) -> Full {
        Full { worker: Some(worker) }
    }
}

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.worker {
            Some(worker) => write!(f, "the queue of worker `{worker}` is full; `call` waits for its turn"),
            None => f.write_str("the queue of the event loop's blocking threads is full; `spawn_blocking` waits for its turn"),
        }
    }
}

impl std::error::Error for Full {}
