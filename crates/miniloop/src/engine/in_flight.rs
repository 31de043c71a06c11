//! Work that a loop has outside: while some is under way, its virtual clock must wait for the answer instead of jumping.
//!
//! Counted per loop, from submission until the loop has been sent the answer, or the work is withdrawn. A guard may travel to another
//! thread, with the job or with the future that holds it; dropped there, it sends the loop a message, which comes behind the answer.

use std::ops::ControlFlow;
use std::panic::Location;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use crate::engine::context;
use crate::engine::core::Core;
use crate::engine::inbox::{Inbox, Message};
use crate::engine::word::LoopId;

/// One piece of work under way for a loop.
pub(crate) struct InFlight {
    id: LoopId,
    inbox: Arc<Inbox>,
}

impl InFlight {
    /// `None` on a system clock, which waits for nobody.
    pub(crate) fn new(core: &Core) -> Option<InFlight> {
        core.clock.as_virtual()?;
        core.jobs_in_flight.set(core.jobs_in_flight.get() + 1);
        Some(InFlight { id: core.id, inbox: core.inbox.clone() })
    }
}

/// Polls for what comes from another thread. The current loop keeps from jumping until it has come, if it does not know of that otherwise.
pub(crate) fn poll_counted<T>(
    cx: &Context<'_>,
    is_known_to: impl FnOnce(&Core) -> bool,
    poll: impl FnOnce(&Context<'_>) -> Poll<T>,
) -> Poll<T> {
    match context::try_current().filter(|core| !is_known_to(core)) {
        Some(core) => poll(&Context::from_waker(&counted(cx.waker(), &core))),
        None => poll(cx),
    }
}

/// A waker that keeps its loop from jumping until it has been used, or is not needed any more.
fn counted(waker: &Waker, core: &Core) -> Waker {
    match InFlight::new(core) {
        Some(in_flight) => Arc::new(Counted { waker: waker.clone(), _in_flight: in_flight }).into(),
        None => waker.clone(),
    }
}

struct Counted {
    waker: Waker,
    _in_flight: InFlight,
}

impl Wake for Counted {
    fn wake(self: Arc<Self>) {
        self.waker.wake_by_ref();
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let land_here = |core: &Core| {
            // Another loop may have the id by now.
            if Arc::ptr_eq(&core.inbox, &self.inbox) {
                land(core);
            }
        };
        if context::with_resident(self.id, land_here).is_none() {
            // The loop that runs this is not always the current one: a task of it may have entered another.
            let id = self.id;
            let land_there = move || {
                context::with_resident(id, land);
                Ok(ControlFlow::Continue(()))
            };
            // A closed loop refuses: its clock has stopped.
            let _ = self.inbox.push(Message::Call { job: Box::new(land_there), place: Location::caller() });
        }
    }
}

fn land(core: &Core) {
    core.jobs_in_flight.set(core.jobs_in_flight.get() - 1);
}
