//! The hub's deadlines: one timer, armed for the earliest.
//!
//! The timer is a callback of the loop, so it runs after the I/O of the same poll: a `PONG` that has arrived is read before the deadline
//! that would have closed its sender is judged. Costs one comparison per turn while the earliest deadline stays. Next: `turn.rs`.

use std::rc::Rc;

use miniloop::Instant;

use super::state::Server;

/// Arms the timer for the hub's next deadline, if it is not yet.
pub(super) fn arm(server: &Rc<Server>) {
    let next = server.hub.borrow().next_deadline().map(|at| Instant::from_nanos(at.0));
    let mut deadline = server.deadline.borrow_mut();
    if deadline.as_ref().map(|timer| timer.when()) == next {
        return;
    }
    if let Some(timer) = deadline.take() {
        timer.cancel();
    }
    *deadline = next.map(|at| {
        let (event_loop, server) = (&server.event_loop, Rc::downgrade(server));
        event_loop.call_at(at, move || {
            if let Some(server) = server.upgrade() {
                server.deadline.take();
                let now = server.now();
                server.hub.borrow_mut().tick(now);
                server.wake_turn();
            }
        })
    });
}
