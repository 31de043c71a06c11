//! The callback face of the loop: what runs when.
//!
//! `cargo run -p miniloop --example callbacks_and_timers`; next: `promises.rs`, the other face.

use std::ops::ControlFlow;
use std::time::Duration;

use miniloop::{EventLoop, LoopError, LoopHandle};

fn main() -> Result<(), LoopError> {
    // The loop belongs to this thread. Callbacks get handles: they schedule, the owner runs.
    let mut event_loop = EventLoop::new()?;
    let handle = event_loop.handle();

    // One queue, first in, first out. A timer that is due at once still stands behind what is ready already.
    handle.call_soon(|| println!("1: scheduled first"));
    handle.call_later(Duration::ZERO, || println!("3: due at once, so at the next look at the clock"));
    handle.call_soon(|| println!("2: scheduled second"));

    // Timers run in the order of their deadlines, not in the order of these lines.
    let ticking = handle.clone();
    handle.call_later(Duration::from_millis(20), move || {
        println!("5: 20 ms later");
        start_ticking(ticking);
    });
    handle.call_later(Duration::from_millis(10), || println!("4: 10 ms later"));

    // Cancelling drops the callback at once. It never wakes the loop.
    let cancelled = handle.call_later(Duration::from_millis(15), || println!("nobody reads this"));
    cancelled.cancel();

    // A callback that fails does not stop the others. The failure goes to the error handler.
    handle.on_error(|report| println!("{} failed: {}", report.subject(), report.message()));
    handle.call_soon(|| Err::<(), _>("no such file"));

    event_loop.run_forever() // until somebody calls `stop`
}

/// A repeating timer lives until its callback returns `Break`.
fn start_ticking(handle: LoopHandle) {
    let mut ticks = 0;
    handle.clone().call_every(Duration::from_millis(5), move || {
        ticks += 1;
        println!("tick {ticks}");
        if ticks < 3 {
            return ControlFlow::Continue(());
        }
        handle.stop();
        ControlFlow::Break(())
    });
}
