//! Catch points: where a task that is asked to stop cleans up, and may await meanwhile.
//!
//! Rust cancels a future by dropping it, and destructors cannot await. A catch point is asked instead: it drops its own body, and hands out
//! a [`Cleanup`], under which whatever follows runs undisturbed. The innermost one is asked first; when its guard goes, the next one
//! outwards is. Who comes when is decided in `engine/cancel_tree.rs`. The idea is Trio's cancel scope, turned into a value.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::FusedFuture;
use pin_project_lite::pin_project;

use crate::engine::cancel::{Guard, Point};
use crate::engine::cancel_tree::CancelReason;

/// Awaits `future`, and tells when it is stopped from outside: by [`Task::cancel`](crate::Task::cancel), a time limit, a group, a shutdown.
///
/// ```
/// use miniloop::{CancelReason, Cancelled, catch, sleep, spawn, yield_now};
/// use std::time::Duration;
///
/// async fn serve() -> Result<(), Cancelled> {
///     match catch(sleep(Duration::MAX)).await {
///         Ok(()) => Ok(()),
///         Err(cleanup) => {
///             yield_now().await; // says goodbye; nothing disturbs it until its grace ends
///             Err(cleanup.finish())
///         }
///     }
/// }
///
/// miniloop::run(async {
///     let task = spawn(serve());
///     yield_now().await;
///     task.cancel();
///     assert_eq!(task.await.unwrap().unwrap_err().reason(), CancelReason::Cancelled);
/// })?;
/// # Ok::<(), miniloop::LoopError>(())
/// ```
///
/// The future is polled first: a value that is ready is never lost, and only a future that is pending is stopped. Of nested catch points
/// the innermost is asked first; several are asked at once when they stand beside each other, as in a `join!`. Outside any task it is as
/// if `catch` were not there.
///
/// # Errors
/// [`Cleanup`] when somebody asked to stop. The future has been dropped by then.
///
/// # Cancellation
/// Dropping it drops the future, without clean-up; the request goes on to the catch point above.
pub fn catch<F: Future>(future: F) -> Catch<F> {
    Catch { point: Point::catch(), body: Some(future) }
}

pin_project! {
    /// The future of [`catch`].
    #[must_use = "futures do nothing unless awaited"]
    pub struct Catch<F> {
        // Goes before the body: what that held answers to the catch point above.
        point: Point,
        #[pin]
        body: Option<F>,
    }
}

impl<F: Future> Catch<F> {
    /// Runs `clean_up` when the future is stopped, and says so in the end.
    ///
    /// ```
    /// use miniloop::{CancelReason, catch, sleep, spawn, yield_now};
    /// use std::time::Duration;
    ///
    /// miniloop::run(async {
    ///     let task = spawn(catch(sleep(Duration::MAX)).cleanup(async |reason| {
    ///         assert_eq!(reason, CancelReason::Cancelled);
    ///         yield_now().await;
    ///     }));
    ///     yield_now().await;
    ///     task.cancel();
    ///     assert!(task.await.unwrap().is_err());
    /// })?;
    /// # Ok::<(), miniloop::LoopError>(())
    /// ```
    ///
    /// Future and clean-up exist at the same time here. Where both need the same `&mut`, `match` on [`catch`] instead: there the future has
    /// been dropped before the clean-up begins.
    ///
    /// # Errors
    /// [`Cancelled`] after the clean-up.
    pub async fn cleanup(self, clean_up: impl AsyncFnOnce(CancelReason)) -> Result<F::Output, Cancelled> {
        match self.await {
            Ok(value) => Ok(value),
            Err(cleanup) => {
                clean_up(cleanup.reason()).await;
                Err(cleanup.finish())
            }
        }
    }
}

impl<F: Future> Future for Catch<F> {
    type Output = Result<F::Output, Cleanup>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let body = this.body.as_mut().as_pin_mut().expect("this `catch` was polled after it had given its value");
        let inside = this.point.enter(cx.waker());
        let ended = match body.poll(cx) {
            Poll::Ready(value) => {
                drop(inside);
                Ok(value)
            }
            Poll::Pending => match inside.and_then(|inside| inside.fire(cx)) {
                Some(guard) => Err(Cleanup { guard }),
                None => return Poll::Pending,
            },
        };
        this.point.remove();
        this.body.set(None);
        Poll::Ready(ended)
    }
}

impl<F: Future> FusedFuture for Catch<F> {
    fn is_terminated(&self) -> bool {
        self.body.is_none()
    }
}

impl<F> fmt::Debug for Catch<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Catch").field("is_terminated", &self.body.is_none()).finish_non_exhaustive()
    }
}

/// Clean-up is going on. While this lives, nothing else at its level or below is asked to stop: what is awaited now runs undisturbed, with
/// time limits of its own if it sets any, until the grace of the request ends.
///
/// When it goes, in whatever way, the request goes on: to the catch point above, or whoever was asked is dropped. Dropping it and carrying
/// on is therefore no escape; [`absorb`](Cleanup::absorb) is.
#[must_use = "clean up, then `finish` it: when it is dropped the request goes on to the level above"]
pub struct Cleanup {
    guard: Guard,
}

impl Cleanup {
    /// Why one is to stop.
    pub fn reason(&self) -> CancelReason {
        self.guard.reason()
    }

    /// The clean-up is done.
    pub fn finish(self) -> Cancelled {
        Cancelled { reason: self.guard.reason() }
    }

    /// Takes the request back and stays alive: asyncio's `uncancel`. Possible only for a request that was made at this very level, with no
    /// other catch point, scope, time limit or group in between, and before its grace has ended.
    ///
    /// A member that takes back what its group has asked of it goes on, a service as well, and the
    /// group, which asks once, waits for it for as long as it takes.
    ///
    /// ```
    /// use miniloop::{catch, sleep, spawn, yield_now};
    /// use std::time::Duration;
    ///
    /// miniloop::run(async {
    ///     let task = spawn(async {
    ///         if let Err(cleanup) = catch(sleep(Duration::MAX)).await {
    ///             cleanup.absorb().expect("the task itself was cancelled");
    ///         }
    ///         sleep(Duration::from_millis(1)).await;
    ///         "still here"
    ///     });
    ///     yield_now().await;
    ///     task.cancel();
    ///     assert_eq!(task.await.unwrap(), "still here");
    /// })?;
    /// # Ok::<(), miniloop::LoopError>(())
    /// ```
    ///
    /// # Errors
    /// The guard itself, when the request comes from further up.
    #[doc(alias = "uncancel")]
    pub fn absorb(self) -> Result<(), Cleanup> {
        if self.guard.absorb() { Ok(()) } else { Err(self) }
    }
}

impl fmt::Debug for Cleanup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cleanup").field("reason", &self.reason()).finish_non_exhaustive()
    }
}

/// Somebody asked to stop, and that has been done. A plain value; compare [`Elapsed`](crate::Elapsed), where you set the limit yourself.
#[doc(alias = "CancelledError")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cancelled {
    reason: CancelReason,
}

impl Cancelled {
    pub(crate) fn new(reason: CancelReason) -> Cancelled {
        Cancelled { reason }
    }

    /// Why.
    pub fn reason(&self) -> CancelReason {
        self.reason
    }
}

impl fmt::Display for Cancelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.reason {
            CancelReason::Cancelled => "it was cancelled",
            CancelReason::Deadline => "it was stopped by a time limit",
            CancelReason::GroupEnded => "it was stopped because its group ends",
            CancelReason::RaceLost => "it was stopped because another branch of its race was first",
            CancelReason::Shutdown => "it was stopped because its loop shuts down",
        })
    }
}

impl std::error::Error for Cancelled {}
