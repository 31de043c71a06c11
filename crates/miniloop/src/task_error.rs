//! Why a task, or a member of a task group, ended without a value.

use std::any::Any;
use std::fmt;

use crate::panic_payload::PanicPayload;

/// Why a task, or a member of a [task group](crate::task_group), has no value.
#[doc(alias = "CancelledError")]
pub struct TaskError(Ended);

enum Ended {
    Cancelled,
    Panicked(Box<PanicPayload>),
    /// A member of a group failed, and its group has the failure.
    Failed,
}

impl TaskError {
    pub(crate) const CANCELLED: TaskError = TaskError(Ended::Cancelled);
    pub(crate) const FAILED: TaskError = TaskError(Ended::Failed);

    pub(crate) fn panicked(payload: Box<dyn Any + Send>) -> TaskError {
        TaskError(Ended::Panicked(Box::new(PanicPayload::new(payload))))
    }

    /// It was cancelled, or its loop was closed.
    pub fn is_cancelled(&self) -> bool {
        matches!(self.0, Ended::Cancelled)
    }

    /// It panicked, and [`into_panic`](TaskError::into_panic) has what with.
    pub fn is_panic(&self) -> bool {
        matches!(self.0, Ended::Panicked(_))
    }

    /// It was a member of a task group and returned an error or panicked. The group has the failure: a failure has one owner.
    pub fn is_failure(&self) -> bool {
        matches!(self.0, Ended::Failed)
    }

    /// What it panicked with, to be examined or [resumed](std::panic::resume_unwind).
    pub fn into_panic(self) -> Option<Box<dyn Any + Send>> {
        match self.0 {
            Ended::Panicked(payload) => payload.take(),
            Ended::Cancelled | Ended::Failed => None,
        }
    }
}

impl fmt::Display for TaskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Ended::Cancelled => f.write_str("the task was cancelled"),
            Ended::Panicked(payload) => write!(f, "the task panicked: {}", payload.message()),
            Ended::Failed => f.write_str("the member failed, and its task group has the failure"),
        }
    }
}

impl fmt::Debug for TaskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Ended::Cancelled => f.write_str("Cancelled"),
            Ended::Panicked(payload) => f.debug_tuple("Panicked").field(payload).finish(),
            Ended::Failed => f.write_str("Failed"),
        }
    }
}

impl std::error::Error for TaskError {}
