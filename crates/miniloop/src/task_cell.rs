//! The body of a task: its future, its result, and who is to get that.
//!
//! One allocation with the head that every task has, seen from two sides: the loop polls it through [`RunBody`], the handle reads it
//! through [`Join`].

use std::cell::Cell;
use std::future::Future;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use pin_project_lite::pin_project;

use crate::completion::Completion;
use crate::engine::task_head::{RunBody, Spawned, TaskHead};
use crate::future_cell::FutureCell;
use crate::outcome::{Failure, Flow};
use crate::report::{Report, ReportKind};
use crate::task_error::TaskError;

/// A task as its handle sees it.
pub(crate) type JoinTask<T> = Pin<Rc<Spawned<dyn Join<T>>>>;

pub(crate) trait Join<T>: RunBody {
    fn completion(&self) -> &Completion<Result<T, TaskError>>;
    fn set_owner(&self, owner: Owner<T>);
}

/// Waits for the end of a task without taking its result.
pub(crate) struct Finished<T>(pub(crate) Option<JoinTask<T>>);

impl<T> Future for Finished<T> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let completion = self.0.as_ref().map(|task| task.body.completion());
        let Some(completion) = completion.filter(|completion| completion.is_pending()) else { return Poll::Ready(()) };
        completion.register_sole(cx.waker());
        // It may have ended while the waker was cloned.
        if completion.is_pending() { Poll::Pending } else { Poll::Ready(()) }
    }
}

/// Who gets the result.
pub(crate) enum Owner<T> {
    Handle,
    /// The task was detached: the loop takes the value apart with this and reports a failure.
    Loop(fn(T) -> Flow),
    /// The handle was dropped: a panic is reported, anything else vanishes.
    Nobody,
}

pin_project! {
    /// The body of a task.
    pub(crate) struct TaskBody<F: Future> {
        owner: Cell<Owner<F::Output>>,
        #[pin]
        future: FutureCell<F>,
        completion: Completion<Result<F::Output, TaskError>>,
    }
}

impl<F: Future> TaskBody<F> {
    pub(crate) fn new(future: F) -> TaskBody<F> {
        TaskBody { owner: Cell::new(Owner::Handle), future: FutureCell::new(Some(future)), completion: Completion::new() }
    }

    /// Drops the future. A destructor that panics is reported and changes nothing about how the task ends.
    fn end(&self, head: &TaskHead, reports: &mut dyn FnMut(Report)) {
        if let Err(payload) = self.future.drop_in_place() {
            reports(Report::of_panic(ReportKind::DropPanic, payload, format!("task `{}`", head.name()), head.place()));
        }
    }

    /// Hands the result to its owner.
    fn finish(&self, head: &TaskHead, result: Result<F::Output, TaskError>, reports: &mut dyn FnMut(Report)) {
        let outcome = match (self.owner.replace(Owner::Nobody), result) {
            (Owner::Loop(into_flow), result) => catch_unwind(AssertUnwindSafe(|| settle(result, into_flow))),
            (Owner::Nobody, Err(error)) => Ok(flow_of(error)),
            // A value that nobody reads is dropped with the cell, by whoever runs the task: its destructor is not the task.
            (Owner::Handle | Owner::Nobody, result) => {
                let completed = catch_unwind(AssertUnwindSafe(|| self.completion.complete(result)));
                if let Err(payload) = completed {
                    reports(Report::of_panic(ReportKind::Panic, payload, format!("reader of task `{}`", head.name()), head.place()));
                }
                return;
            }
        };
        if let Err(failure) = outcome.unwrap_or_else(|payload| Err(Failure::Panic(payload))) {
            reports(Report::of_failure(failure, format!("task `{}`", head.name()), head.place()));
        }
    }
}

/// What is worth a report in a result that nobody reads. Being cancelled is not.
pub(crate) fn settle<T>(result: Result<T, TaskError>, into_flow: fn(T) -> Flow) -> Flow {
    match result {
        Ok(value) => into_flow(value),
        Err(error) => flow_of(error),
    }
}

fn flow_of(error: TaskError) -> Flow {
    error.into_panic().map_or(Ok(ControlFlow::Continue(())), |payload| Err(Failure::Panic(payload)))
}

impl<F: Future> RunBody for TaskBody<F> {
    fn run(self: Pin<&Self>, head: &TaskHead, waker: &Waker, reports: &mut dyn FnMut(Report)) -> bool {
        let Poll::Ready(result) = self.project_ref().future.poll(waker) else { return false };
        self.end(head, reports);
        self.finish(head, result.map_err(TaskError::panicked), reports);
        true
    }

    fn drop_future(&self, head: &TaskHead, reports: &mut dyn FnMut(Report)) {
        self.end(head, reports);
        self.finish(head, Err(TaskError::CANCELLED), reports);
    }

    fn readers(&self, show: &mut dyn FnMut(&Waker)) {
        self.completion.readers(show);
    }
}

impl<F: Future> Join<F::Output> for TaskBody<F> {
    fn completion(&self) -> &Completion<Result<F::Output, TaskError>> {
        &self.completion
    }

    fn set_owner(&self, owner: Owner<F::Output>) {
        self.owner.set(owner);
    }
}
