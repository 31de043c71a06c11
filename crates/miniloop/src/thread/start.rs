//! The one place where threads start.
//!
//! So there is one place to look for threads that nobody asked for, and one for what each of them must have: a name, by which debuggers
//! and `top -H` show it, and somebody who keeps its handle.

use std::io;
use std::thread::{Builder, JoinHandle};

/// Starts a thread. The system shows the first 15 bytes of its name.
///
/// # Errors
/// The system has no thread left.
///
/// # Panics
/// When `name` contains a zero byte.
pub(crate) fn start(name: &str, body: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    Builder::new().name(name.to_owned()).spawn(body)
}
