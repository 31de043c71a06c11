//! What was panicked with: its text, and the value itself for whoever comes first.
//!
//! A panic payload is `Send` but not `Sync`, and errors that hold one should be both, so that they fit into every error type. The lock that
//! makes it so is taken once in the life of a panic.

use std::any::Any;
use std::fmt;
use std::sync::{Mutex, PoisonError};

pub(crate) struct PanicPayload {
    message: String,
    value: Mutex<Option<Box<dyn Any + Send>>>,
}

impl PanicPayload {
    pub(crate) fn new(value: Box<dyn Any + Send>) -> PanicPayload {
        let message = if let Some(message) = value.downcast_ref::<&'static str>() {
            (*message).to_owned()
        } else if let Some(message) = value.downcast_ref::<String>() {
            message.clone()
        } else {
            "(a panic without a text)".to_owned()
        };
        PanicPayload { message, value: Mutex::new(Some(value)) }
    }

    /// The text of a panic whose value nobody will see.
    pub(crate) fn into_message(value: Box<dyn Any + Send>) -> String {
        PanicPayload::new(value).discard()
    }

    /// The same. A value that is more than a text is leaked: its destructor might panic in turn, and so without end.
    pub(crate) fn discard(self) -> String {
        if let Some(value) = self.take()
            && !value.is::<&'static str>()
            && !value.is::<String>()
        {
            std::mem::forget(value);
        }
        self.message
    }

    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    pub(crate) fn take(&self) -> Option<Box<dyn Any + Send>> {
        self.value.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl fmt::Debug for PanicPayload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.message)
    }
}
