//! The handle that a group's body gets: how members come in, and where their lifetimes are forgotten.
//!
//! A member borrows from the surroundings of the group, so its type has a lifetime, `'scope`, which the group's table cannot name. The one
//! line in here that forgets it, [`erase`], is sound for these reasons, and each has a test in `tests/groups`:
//!
//! - A member's future is polled and dropped by its group's future alone. The loop's slot leads to a list of words; the child and the
//!   group's table share a cell whose future only the group touches.
//! - The group's future drops all of them before anything of `'scope` can die: `run.rs` declares the guard that does so after the
//!   [`Group`] and before the body, so that body, members, group die in this order, also while a panic unwinds. `'scope` is chosen by the
//!   callee (`for<'scope>`) and invariant, hence outlives nothing that the body owns; `'env` outlives it, hence what surrounds the group.
//! - A group that is forgotten (`mem::forget`, a cycle of `Rc`) never drops its table, so that no member is polled or dropped ever again.
//!   Members keep the table that keeps them: what the guard might fail to take out of it leaks, and is not dropped late.
//! - What is left in a cell when the group has gone is its value, whose lifetime the [`Child`] carries in its type, and errors in a list
//!   that is empty by then.

use std::cell::Cell;
use std::fmt::{self, Debug};
use std::future::Future;
use std::marker::PhantomData;
use std::panic::{Location, resume_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use crate::catch::catch;
use crate::engine::cancel::CancelReason;
use crate::engine::core::Core;
use crate::engine::word::Word;
use crate::group::child::Child;
use crate::group::member::{JoinMember, MemberCell, State, describe};
use crate::group::output::{ChildOutput, ChildOwns, GroupOwns, Owner, TaskOwns};
use crate::group::roster::{Head, RunMember};
use crate::outcome::Failure;
use crate::report::Report;
use crate::shared::Source;
use crate::task::{Task, spawn_on};

/// The group that a [`task_group`](crate::task_group)'s body spawns its members into.
///
/// A reference to it may be used by the members too, and everywhere inside the group. Once the group ends, because somebody failed or it
/// was cancelled, a new member is refused: its future is dropped and its child is a cancelled one (G6).
#[doc(alias = "TaskGroup")]
#[doc(alias = "nursery")]
pub struct Group<'scope, 'env: 'scope, E: 'env> {
    state: Rc<State<E>>,
    /// Invariant in both, as in [`std::thread::Scope`]. Errors live as long as `'env`, so that the compiler, asked what outlives `'scope`,
    /// always finds `'env`.
    lifetimes: PhantomData<Cell<&'scope mut &'env ()>>,
}

impl<'scope, 'env, E: Debug + 'env> Group<'scope, 'env, E> {
    pub(super) fn new(state: Rc<State<E>>) -> Group<'scope, 'env, E> {
        Group { state, lifetimes: PhantomData }
    }

    /// Spawns a member: a future that may borrow whatever outlives the group. Its first poll comes in the next round.
    ///
    /// An error or a panic of it belongs to the group and ends that (G2); the child only tells that it failed.
    ///
    /// ```
    /// # async fn fetch(name: &str) -> Result<usize, std::io::Error> { Ok(name.len()) }
    /// # async fn total() -> Result<usize, Box<dyn std::error::Error>> {
    /// let names = [String::from("a"), String::from("bc")];
    /// let total = miniloop::task_group(async |g| {
    ///     let first = g.spawn(fetch(&names[0]));
    ///     let second = g.spawn(async { fetch(&names[1]).await });
    ///     Ok(first.await.unwrap_or(0) + second.await.unwrap_or(0))
    /// })
    /// .await?;
    /// # Ok(total)
    /// # }
    /// # assert_eq!(miniloop::run(total()).unwrap().unwrap(), 3);
    /// ```
    #[doc(alias = "create_task")]
    #[doc(alias = "start_soon")]
    #[track_caller]
    pub fn spawn<F>(&'scope self, future: F) -> Child<<F::Output as ChildOutput<E>>::Value>
    where
        F: Future + 'scope,
        F::Output: ChildOutput<E>,
    {
        self.add::<F, GroupOwns>(future, false, Location::caller())
    }

    /// Spawns a member whose failures belong to its child: awaiting that gives all that the future returned, and a panic as a
    /// [`TaskError`](crate::TaskError). A failure that nobody has read when the child is dropped goes to the group after all.
    ///
    /// ```
    /// # miniloop::run(async {
    /// miniloop::task_group(async |g| {
    ///     let tried = g.spawn_caught(async { "seven".parse::<i32>() });
    ///     let number = tried.await.unwrap().unwrap_or(7);
    ///     assert_eq!(number, 7);
    ///     Ok(())
    /// })
    /// .await
    /// # .unwrap() }).unwrap();
    /// ```
    #[track_caller]
    pub fn spawn_caught<F>(&'scope self, future: F) -> Child<F::Output>
    where
        F: Future + 'scope,
        F::Output: ChildOutput<E>,
    {
        self.add::<F, ChildOwns>(future, false, Location::caller())
    }

    /// Spawns a member that serves the others: the group does not wait for it, and cancels it once only services are left.
    ///
    /// ```
    /// use miniloop::sleep;
    /// use std::time::Duration;
    ///
    /// # miniloop::run(async {
    /// let beats = std::cell::Cell::new(0);
    /// miniloop::task_group(async |g| {
    ///     g.spawn_service(async {
    ///         loop {
    ///             beats.set(beats.get() + 1);
    ///             sleep(Duration::from_millis(1)).await;
    ///         }
    ///     });
    ///     g.spawn(sleep(Duration::from_millis(3)));
    /// })
    /// .await;
    /// assert!(beats.get() > 1);
    /// # }).unwrap();
    /// ```
    #[track_caller]
    pub fn spawn_service<F>(&'scope self, future: F) -> Child<<F::Output as ChildOutput<E>>::Value>
    where
        F: Future + 'scope,
        F::Output: ChildOutput<E>,
    {
        self.add::<F, GroupOwns>(future, true, Location::caller())
    }

    /// Ends the group: everybody in it is asked to stop, and new members are refused. That is no failure: a group whose body has its value,
    /// or makes `()`, ends as if nothing had happened; otherwise its error [is a cancelled one](crate::GroupError::is_cancelled).
    /// Cancelling again does nothing.
    ///
    /// ```
    /// # miniloop::run(async {
    /// miniloop::task_group(async |g| {
    ///     g.spawn(async { g.cancel() });
    ///     std::future::pending::<()>().await;
    /// })
    /// .await;
    /// # }).unwrap();
    /// ```
    pub fn cancel(&self) {
        self.state.roster.ask_all(CancelReason::Cancelled);
    }

    fn add<F, M>(&'scope self, future: F, is_service: bool, place: &'static Location<'static>) -> Child<M::Value>
    where
        F: Future + 'scope,
        M: Owner<F::Output, E> + 'scope,
        M::Value: 'scope,
    {
        let roster = &self.state.roster;
        if !roster.accepts() {
            let head = Head::new(Word::STALE, u32::MAX, 0, is_service, place);
            let cell = Rc::pin(MemberCell::<F, M, E>::new(head, self.state.clone(), None));
            cell.drop_future();
            roster.core.drop_safely(future, "member of a group that ends", place);
            return Child::new(erase_child(cell));
        }
        let mut child = None;
        roster.admit(is_service, place, |head| {
            let cell = Rc::pin(MemberCell::<F, M, E>::new(head, self.state.clone(), Some(future)));
            child = Some(erase_child(cell.clone()));
            erase(cell)
        });
        child.map(Child::new).unwrap_or_else(|| unreachable!("admitting a member makes it"))
    }
}

impl<'scope, 'env, E: Debug + 'env> Group<'scope, 'env, E> {
    /// Spawns a member that is a task of its own: it borrows nothing, is queued by itself, and is not slowed by the rest of the group. The
    /// group waits for it; a group that is dropped does not, and aborts it (G7).
    ///
    /// ```
    /// # miniloop::run(async {
    /// let sum = miniloop::task_group(async |g| {
    ///     let task = g.spawn_task(async { Ok::<_, std::io::Error>(1 + 1) });
    ///     Ok(task.await.unwrap())
    /// })
    /// .await;
    /// assert_eq!(sum.unwrap(), 2);
    /// # }).unwrap();
    /// ```
    #[track_caller]
    pub fn spawn_task<F>(&'scope self, future: F) -> Child<<F::Output as ChildOutput<E>>::Value>
    where
        F: Future + 'static,
        F::Output: ChildOutput<E> + 'scope,
    {
        let place = Location::caller();
        let core = &self.state.roster.core;
        if !self.state.roster.accepts() {
            core.drop_safely(future, "member of a group that ends", place);
            return self.add::<_, TaskOwns>(std::future::ready(None::<F::Output>), false, place);
        }
        let failure_in = |output: F::Output| output.into_result().err().map(describe);
        let task = OwnedTask { task: spawn_on(core, future, place), core: core.clone(), place, failure_in };
        let id = task.task.id();
        self.add::<_, TaskOwns>(run_task(task), false, place).standing_for(id)
    }
}

/// The member that stands for a task. Asked to stop it asks the task and waits for that, as long as the grace of the member lasts.
async fn run_task<T>(mut owned: OwnedTask<T>) -> Option<T> {
    let mut clean_up = None;
    let ended = match catch(&mut owned.task).await {
        Ok(ended) => ended,
        Err(guard) => {
            clean_up = Some(guard);
            // Without a limit of its own: it is dropped with this member, which has one.
            owned.task.cancel_within(Duration::MAX);
            (&mut owned.task).await
        }
    };
    drop(clean_up);
    match ended {
        Ok(value) => Some(value),
        // A panic goes on in here, where the group finds it.
        Err(error) => error.into_panic().map(|payload| resume_unwind(payload)),
    }
}

/// Dropped, it ends its task in that one's next job, or reports the failure that the task has left and nobody will read.
struct OwnedTask<T> {
    task: Task<T>,
    core: Rc<Core>,
    place: &'static Location<'static>,
    failure_in: fn(T) -> Option<Failure>,
}

impl<T> Drop for OwnedTask<T> {
    fn drop(&mut self) {
        let Some(result) = self.task.completion().take() else { return self.task.abort() };
        let failure = match result {
            Ok(output) => (self.failure_in)(output),
            Err(error) => error.into_panic().map(Failure::Panic),
        };
        if let Some(failure) = failure {
            self.core.report(Report::of_failure(failure, format!("task `{}`", self.task.name()), self.place));
        }
    }
}

/// Forgets how long a member may live, for the table of its group.
fn erase<'scope>(member: Pin<Rc<impl RunMember + 'scope>>) -> Pin<Rc<dyn RunMember>> {
    let member: Pin<Rc<dyn RunMember + 'scope>> = member;
    // SAFETY: only the lifetime of the trait object changes, not its layout. The group drops the future behind it before `'scope` ends, or
    // never polls nor drops it again; the head of this file says how.
    unsafe { std::mem::transmute::<Pin<Rc<dyn RunMember + 'scope>>, Pin<Rc<dyn RunMember>>>(member) }
}

/// The same for the child, which reads the value and never touches the future.
fn erase_child<'scope, V: 'scope>(member: Pin<Rc<impl JoinMember<V> + 'scope>>) -> Pin<Rc<dyn JoinMember<V>>> {
    let member: Pin<Rc<dyn JoinMember<V> + 'scope>> = member;
    // SAFETY: as in `erase`. `V` stands in the type of the child, so that no value outlives what it borrows.
    unsafe { std::mem::transmute::<Pin<Rc<dyn JoinMember<V> + 'scope>>, Pin<Rc<dyn JoinMember<V>>>>(member) }
}

impl<E> Debug for Group<'_, '_, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Group").field("stage", &self.state.roster.stage()).finish_non_exhaustive()
    }
}
