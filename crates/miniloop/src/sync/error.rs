//! Why a value was not taken, or why there is none: the errors of channels and queues.

use std::fmt;

/// Nobody will ever take the value: the other side has gone, or it was closed. Here it is back.
#[doc(alias = "QueueShutDown")]
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SendError<T>(
    /// What was not sent.
    pub T,
);

impl<T> fmt::Debug for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SendError(..)")
    }
}

impl<T> fmt::Display for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("nobody will take this value: the other side has gone, or it was closed")
    }
}

impl<T> std::error::Error for SendError<T> {}

/// The value was not taken now. Here it is back.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum TrySendError<T> {
    /// There is no room for it, or others wait for room.
    #[doc(alias = "QueueFull")]
    Full(T),
    /// Nobody will ever take it.
    Closed(T),
}

impl<T> TrySendError<T> {
    /// What was not sent.
    pub fn into_inner(self) -> T {
        match self {
            TrySendError::Full(value) | TrySendError::Closed(value) => value,
        }
    }

    /// Whether it is worth trying again.
    pub fn is_full(&self) -> bool {
        matches!(self, TrySendError::Full(_))
    }
}

impl<T> fmt::Debug for TrySendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_full() { "Full(..)" } else { "Closed(..)" })
    }
}

impl<T> fmt::Display for TrySendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TrySendError::Full(_) => f.write_str("there is no room for this value now; the waiting method waits for some"),
            TrySendError::Closed(_) => f.write_str("nobody will take this value: the other side has gone, or it was closed"),
        }
    }
}

impl<T> std::error::Error for TrySendError<T> {}

/// There is no value now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TryRecvError {
    /// Nothing is there for this caller: what there may be belongs to those who wait.
    #[doc(alias = "QueueEmpty")]
    Empty,
    /// Nothing is there, and nothing will come.
    Closed,
}

impl fmt::Display for TryRecvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TryRecvError::Empty => "there is no value now; the waiting method waits for one",
            TryRecvError::Closed => "there will be no more values: the other side has gone, or it was closed",
        })
    }
}

impl std::error::Error for TryRecvError {}
