//! The handle of a member.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use futures_core::FusedFuture;

use crate::dump;
use crate::engine::context;
use crate::engine::word::Word;
use crate::group::member::JoinMember;
use crate::group::roster::Roster;
use crate::task::TaskId;
use crate::task_error::TaskError;

/// A member of a [task group](crate::task_group): await it for its value, or let it go.
///
/// Dropping it does nothing, for the group owns its members. Only a failure that a [`spawn_caught`](crate::Group::spawn_caught) left in
/// here goes to the group then.
///
/// # Errors
/// [`is_failure`](TaskError::is_failure) when the member failed and its group has the failure, which ends the group: who awaits this inside
/// the group is about to be cancelled. [`is_cancelled`](TaskError::is_cancelled) when it was cancelled. With `spawn_caught`,
/// [`is_panic`](TaskError::is_panic) and the panic.
///
/// # Panics
/// Polling it panics when the value has been taken, when the member awaits itself, and under another loop than the first time.
pub struct Child<T> {
    member: Pin<Rc<dyn JoinMember<T>>>,
}

impl<T> Child<T> {
    pub(super) fn new(member: Pin<Rc<dyn JoinMember<T>>>) -> Child<T> {
        Child { member }
    }

    /// This member stands for a task.
    pub(super) fn standing_for(self, task: TaskId) -> Child<T> {
        self.member.head().task.set(task.0);
        self
    }

    /// Names the member in reports and dumps, where it is `member-3` otherwise; with it the task of a
    /// [`spawn_task`](crate::Group::spawn_task).
    ///
    /// ```
    /// # miniloop::run(async {
    /// miniloop::task_group(async |g| {
    ///     g.spawn(async {}).named("reader");
    /// })
    /// .await;
    /// # }).unwrap();
    /// ```
    #[doc(alias = "set_name")]
    pub fn named(self, name: impl Into<String>) -> Child<T> {
        let (name, head): (Rc<str>, _) = (name.into().into(), self.member.head());
        let Roster { core, list, .. } = self.member.roster();
        if !self.is_finished() {
            list.set_name(head.word, name.clone());
        }
        if let Some(task) = core.task_at(head.task.get()) {
            task.head.set_name(name.clone());
        }
        *head.name.borrow_mut() = Some(name);
        self
    }

    /// Keeps the group out of what goes wrong in here: an error or a panic of this member goes to
    /// [`on_error`](crate::LoopHandle::on_error) and ends nobody else. This is for members that serve strangers, the connections of a
    /// server.
    ///
    /// ```
    /// # let mut event_loop = miniloop::EventLoop::new()?;
    /// # event_loop.handle().on_error(|_| ());
    /// # event_loop.run_until_complete(async {
    /// let served = miniloop::task_group(async |g| {
    ///     g.spawn(async { Err::<(), _>("connection reset") }).isolate();
    ///     g.spawn(async { Ok(()) });
    ///     Ok(2)
    /// });
    /// assert_eq!(served.await.unwrap(), 2);
    /// # })?;
    /// # Ok::<(), miniloop::LoopError>(())
    /// ```
    pub fn isolate(self) -> Child<T> {
        self.member.head().is_isolated.set(true);
        self
    }

    /// Asks this member to stop: it is dropped in the next poll of its group, or cleans up first if it wants to. It ends with
    /// [`TaskError::is_cancelled`], which is no failure and ends nobody else. One that has its value by then ends with that value.
    pub fn cancel(&self) {
        if !self.is_finished() {
            self.member.roster().ask(self.member.head().word);
        }
    }

    /// Whether the member has ended.
    #[doc(alias = "done")]
    pub fn is_finished(&self) -> bool {
        !self.member.completion().is_pending()
    }

    /// The identity of the member, which [`current_task`](crate::current_task) returns inside it.
    pub fn id(&self) -> TaskId {
        TaskId(self.member.head().word)
    }
}

impl<T> Future for Child<T> {
    type Output = Result<T, TaskError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let head = self.member.head();
        if head.word == Word::STALE {
            // It was refused. Whoever spawns again and again into a group that ends must give way, or its grace never ends.
            ready!(context::poll_at_once(cx));
        }
        let polled = self.member.completion().poll_take(cx, "member of a task group", &dump::MEMBER);
        if polled.is_pending() {
            context::awaits(head.word);
        }
        assert!(polled.is_ready() || context::current_task() != Some(head.word), "{} awaits itself and would never end", head.describe());
        polled
    }
}

impl<T> FusedFuture for Child<T> {
    fn is_terminated(&self) -> bool {
        self.member.completion().is_taken()
    }
}

impl<T> Drop for Child<T> {
    fn drop(&mut self) {
        self.member.head().is_child_gone.set(true);
        self.member.completion().forget_sole();
        if let Some(result) = self.member.completion().take() {
            self.member.discard(result);
        }
    }
}

impl<T> fmt::Debug for Child<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Child").field("member", &self.member.head().describe()).field("is_finished", &self.is_finished()).finish()
    }
}
