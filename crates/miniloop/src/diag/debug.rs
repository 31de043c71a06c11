//! Debug mode: what is legal, and most likely a mistake.
//!
//! asyncio's debug mode checks at run time what a compiler could have: that a coroutine is awaited (`must_use` says so here), that a
//! callback is one, that `call_soon` is called on the right thread (a [`LoopHandle`] cannot leave it), and it remembers where a handle was
//! made, which this runtime always does. What is left stands in [`LoopHandle::set_debug`].

use std::time::Duration;

use crate::engine::probes::DEBUG;
use crate::handle::LoopHandle;

impl LoopHandle {
    /// Switches debug mode on or off. In debug mode
    ///
    /// - callbacks and polls of more than 100 ms are reported, if no other limit [was set](crate::Builder::slow_callback),
    /// - a task that is dropped while it is pending, and that nobody has ever awaited, is [reported](crate::ReportKind::Unawaited): a
    ///   forgotten `await` or `detach`, since dropping cancels it,
    /// - the clock is read for each job, so that [`TaskDump::since`](crate::diag::TaskDump::since) is exact.
    ///
    /// A new loop takes it from [`Builder::debug`](crate::Builder::debug) or from the environment variable `MINILOOP_DEBUG`.
    ///
    /// ```
    /// use miniloop::{EventLoop, ReportKind};
    /// use std::ops::ControlFlow;
    ///
    /// let mut event_loop = EventLoop::new()?;
    /// let handle = event_loop.handle();
    /// handle.set_debug(true);
    /// handle.on_error(|report| {
    ///     assert_eq!(report.kind(), ReportKind::Unawaited);
    ///     ControlFlow::Break(()) // stops the loop with this report
    /// });
    /// handle.call_soon(|| {
    ///     let _ = miniloop::spawn(async { println!("never printed") });
    /// });
    /// let error = event_loop.run_forever().unwrap_err();
    /// assert!(error.to_string().contains("task `task-0` (made at "));
    /// # Ok::<(), miniloop::LoopError>(())
    /// ```
    pub fn set_debug(&self, is_debug: bool) {
        self.core.probes.set_debug(is_debug);
    }

    /// Whether debug mode is on.
    #[doc(alias = "get_debug")]
    pub fn is_debug(&self) -> bool {
        self.core.probes.has(DEBUG)
    }

    /// Changes what [`Builder::slow_callback`](crate::Builder::slow_callback) has set, from the next job on. `None` is the default again:
    /// no limit, or 100 ms in debug mode.
    #[doc(alias = "slow_callback_duration")]
    pub fn set_slow_callback(&self, limit: Option<Duration>) {
        self.core.probes.set_slow_limit(limit);
    }
}
