//! Who asked for a job on another thread, as the job sees it.
//!
//! It travels with the job, of a worker or of the pool. Next: `jobs.rs`.

use crate::engine::in_flight::InFlight;
use crate::panic_payload::PanicPayload;
use crate::reply::Sender;

/// Answered first, then the loop is told that the job is in flight no more, whether or not anybody reads the answer.
pub(super) struct Asker<R> {
    pub(super) sender: Sender<Result<R, PanicPayload>>,
    _in_flight: Option<InFlight>,
}

impl<R> Asker<R> {
    pub(super) fn new(sender: Sender<Result<R, PanicPayload>>, in_flight: Option<InFlight>) -> Asker<R> {
        Asker { sender, _in_flight: in_flight }
    }
}
