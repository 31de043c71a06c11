//! One call of the file system, on a thread of the loop's pool.

use std::io;

use crate::thread::pool::spawn_blocking;

/// Makes the call. Dropping the future withdraws it if no thread has it yet; else it runs to its end.
pub(super) async fn off_the_loop<R: Send + 'static>(call: impl FnOnce() -> io::Result<R> + Send + 'static) -> io::Result<R> {
    spawn_blocking(call).await?
}
