//! Why a task ended without a value.

use std::any::Any;
use std::fmt;

use crate::panic_payload::PanicPayload;

/// Why a task has no value.
#[doc(alias = "CancelledError")]
pub struct TaskError(Ended);

enum Ended {
    Cancelled,
    Panicked(Box<PanicPayload>),
}

impl TaskError {
    pub(crate) const CANCELLED: TaskError = TaskError(Ended::Cancelled);

    pub(crate) fn panicked(payload: Box<dyn Any + Send>) -> TaskError {
        TaskError(Ended::Panicked(Box::new(PanicPayload::new(payload))))
    }

    /// It was cancelled, or its loop was closed.
    pub fn is_cancelled(&self) -> bool {
        matches!(self.0, Ended::Cancelled)
    }

    /// It panicked.
    pub fn is_panic(&self) -> bool {
        !self.is_cancelled()
    }

    /// What it panicked with, to be examined or [resumed](std::panic::resume_unwind).
    pub fn into_panic(self) -> Option<Box<dyn Any + Send>> {
        match self.0 {
            Ended::Panicked(payload) => payload.take(),
            Ended::Cancelled => None,
        }
    }
}

impl fmt::Display for TaskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Ended::Cancelled => f.write_str("the task was cancelled"),
            Ended::Panicked(payload) => write!(f, "the task panicked: {}", payload.message()),
        }
    }
}

impl fmt::Debug for TaskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Ended::Cancelled => f.write_str("Cancelled"),
            Ended::Panicked(payload) => f.debug_tuple("Panicked").field(payload).finish(),
        }
    }
}

impl std::error::Error for TaskError {}
