//! Why a worker did not give a result.

use std::any::Any;
use std::fmt;
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

/// A worker's queue has no room for a job of [`Worker::try_call`](super::Worker::try_call).
#[derive(Debug)]
pub struct Full {
    pub(crate) worker: Arc<str>,
}

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the queue of worker `{}` is full; `call` waits for its turn", self.worker)
    }
}

impl std::error::Error for Full {}
