//! A member of a task group: its future, its value, and where its failure goes.
//!
//! One allocation, seen from two sides, as a task is: the group polls it through [`RunMember`], the child reads it through [`JoinMember`].
//! The child may outlive the group, and then finds the value, or that there is none; the future is gone by then (G1, G7).

use std::any::Any;
use std::cell::RefCell;
use std::fmt::Debug;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Poll, Waker};

use pin_project_lite::pin_project;

use crate::completion::Completion;
use crate::engine::cancel::CancelReason;
use crate::future_cell::FutureCell;
use crate::group::error::MemberFailure;
use crate::group::output::{Ended, Owner};
use crate::group::roster::{End, Head, Panic, Roster, RunMember, Stage};
use crate::outcome::Failure;
use crate::report::{Report, ReportKind};
use crate::task_error::TaskError;

/// A member as its child sees it.
pub(super) trait JoinMember<V>: RunMember {
    fn completion(&self) -> &Completion<Result<V, TaskError>>;

    /// Finds the owner of a failure in a result that nobody will read.
    fn discard(&self, result: Result<V, TaskError>);

    fn roster(&self) -> &Roster;
}

/// The state of one group, kept alive by its members.
pub(super) struct State<E> {
    pub(super) roster: Roster,
    failures: RefCell<Vec<MemberFailure<E>>>,
}

pin_project! {
    pub(super) struct MemberCell<F: Future, M: Owner<F::Output, E>, E> {
        head: Head,
        state: Rc<State<E>>,
        #[pin]
        future: FutureCell<F>,
        completion: Completion<Result<M::Value, TaskError>>,
    }
}

impl<E: Debug> State<E> {
    pub(super) fn new(roster: Roster) -> State<E> {
        State { roster, failures: RefCell::default() }
    }

    pub(super) fn take_failures(&self) -> Vec<MemberFailure<E>> {
        self.failures.take()
    }

    /// A member has returned an error, or a child has been dropped with one.
    pub(super) fn fail(&self, head: &Head, error: E) {
        if head.is_isolated.get() || self.roster.stage() == Stage::Over {
            return self.report_error(head, error);
        }
        let was_cancelling = self.roster.stage() == Stage::Ending;
        let failure = MemberFailure { error, subject: head.describe(), place: head.place, was_cancelling };
        self.failures.borrow_mut().push(failure);
        self.roster.ask_all(CancelReason::GroupEnded);
    }

    /// The same for a panic. The first one is the group's, which resumes it (G5).
    pub(super) fn fail_with_panic(&self, head: &Head, payload: Box<dyn Any + Send>) {
        let is_owner = !head.is_isolated.get() && self.roster.stage() != Stage::Over;
        let panic = Panic { payload, subject: head.describe(), place: head.place };
        let ownerless = if is_owner { self.roster.keep_panic(panic) } else { Some(panic) };
        if let Some(panic) = ownerless {
            self.roster.report(panic.into_report());
        }
        if is_owner {
            self.roster.ask_all(CancelReason::GroupEnded);
        }
    }

    fn report_error(&self, head: &Head, error: E) {
        self.roster.report(Report::of_failure(describe(error), head.describe(), head.place));
    }

    /// Nobody will be given the failures of this group any more: it was dropped, or it ends with a panic.
    pub(super) fn report_all(&self) {
        for MemberFailure { error, subject, place, .. } in self.take_failures() {
            self.roster.report(Report::of_failure(describe(error), subject, place));
        }
    }
}

/// An error as it prints. To print and to drop it is user code.
pub(super) fn describe(error: impl Debug) -> Failure {
    let described = catch_unwind(AssertUnwindSafe(move || format!("{error:?}")));
    described.map_or_else(Failure::Panic, Failure::Error)
}

impl<F: Future, M: Owner<F::Output, E>, E: Debug> MemberCell<F, M, E> {
    pub(super) fn new(head: Head, state: Rc<State<E>>, future: Option<F>) -> MemberCell<F, M, E> {
        MemberCell { head, state, future: FutureCell::new(future), completion: Completion::new() }
    }

    /// Drops the future. A destructor that panics is reported and changes nothing about how the member ends.
    fn end(&self) {
        if let Err(payload) = self.future.drop_in_place() {
            let report = Report::of_panic(ReportKind::DropPanic, payload, self.head.describe(), self.head.place);
            self.state.roster.report(report);
        }
    }

    /// Finds the owner of each part of the output.
    fn settle(&self, output: Result<F::Output, Box<dyn Any + Send>>) -> End {
        let is_childs = M::IS_CHILD && !self.head.is_child_gone.get();
        let told = match output.map(M::split) {
            Ok(Ended::Value(value)) => Ok(value),
            Ok(Ended::Cancelled) => Err(TaskError::CANCELLED),
            Ok(Ended::Failed(error)) => {
                self.state.fail(&self.head, error);
                return End::Failed;
            }
            Err(payload) if is_childs => Err(TaskError::panicked(payload)),
            Err(payload) => {
                self.state.fail_with_panic(&self.head, payload);
                return End::Failed;
            }
        };
        self.finish(told);
        End::Told
    }

    fn finish(&self, result: Result<M::Value, TaskError>) {
        let finished = catch_unwind(AssertUnwindSafe(|| {
            if self.head.is_child_gone.get() {
                self.discard(result);
            } else {
                self.completion.complete(result);
            }
        }));
        if let Err(payload) = finished {
            // A value that nobody reads, or the waker of a reader that belongs to another executor.
            let report = Report::of_panic(ReportKind::DropPanic, payload, format!("value of {}", self.head.describe()), self.head.place);
            self.state.roster.report(report);
        }
    }
}

impl<F: Future, M: Owner<F::Output, E>, E: Debug> RunMember for MemberCell<F, M, E> {
    fn head(&self) -> &Head {
        &self.head
    }

    fn poll(self: Pin<&Self>, waker: &Waker) -> Poll<End> {
        self.project_ref().future.poll(waker).map(|output| {
            self.end();
            self.settle(output)
        })
    }

    fn tell_failure(&self) {
        self.finish(Err(TaskError::FAILED));
    }

    fn drop_future(&self) {
        self.end();
        self.finish(Err(TaskError::CANCELLED));
    }
}

impl<F: Future, M: Owner<F::Output, E>, E: Debug> JoinMember<M::Value> for MemberCell<F, M, E> {
    fn completion(&self) -> &Completion<Result<M::Value, TaskError>> {
        &self.completion
    }

    fn discard(&self, result: Result<M::Value, TaskError>) {
        match result {
            Ok(value) => {
                if let Some(error) = M::unread(value) {
                    self.state.fail(&self.head, error);
                }
            }
            Err(error) => {
                if let Some(payload) = error.into_panic() {
                    self.state.fail_with_panic(&self.head, payload);
                }
            }
        }
    }

    fn roster(&self) -> &Roster {
        &self.state.roster
    }
}
