//! The inside of a task: its future, its result, and who is to get that.
//!
//! One allocation, seen from two sides: the loop polls it through [`RunTask`], the handle reads it through [`Join`].

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use pin_project_lite::pin_project;

use crate::completion::Completion;
use crate::engine::cancel::Level;
use crate::engine::job::RunTask;
use crate::engine::locals::{self, Locals};
use crate::engine::word::Word;
use crate::future_cell::FutureCell;
use crate::outcome::{Failure, Flow};
use crate::report::{Report, ReportKind};
use crate::task_error::TaskError;

/// A task as its handle sees it.
pub(crate) trait Join<T>: RunTask {
    fn completion(&self) -> &Completion<Result<T, TaskError>>;
    fn set_owner(&self, owner: Owner<T>);
    fn word(&self) -> Word;
    fn place(&self) -> &'static Location<'static>;
    /// The task-locals that it saw in the end.
    fn locals(&self) -> Locals;
}

/// Waits for the end of a task without taking its result.
pub(crate) struct Finished<T>(pub(crate) Option<Pin<Rc<dyn Join<T>>>>);

impl<T> Future for Finished<T> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let Some(cell) = self.0.as_ref().filter(|cell| cell.completion().is_pending()) else { return Poll::Ready(()) };
        cell.completion().register_sole(cx.waker());
        // It may have ended while the waker was cloned.
        if cell.completion().is_pending() { Poll::Pending } else { Poll::Ready(()) }
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
    pub(crate) struct TaskCell<F: Future> {
        word: Word,
        number: u64,
        place: &'static Location<'static>,
        parent: Option<Word>,
        name: RefCell<Option<Rc<str>>>,
        level: Level,
        owner: Cell<Owner<F::Output>>,
        #[pin]
        future: FutureCell<F>,
        completion: Completion<Result<F::Output, TaskError>>,
        // What it saw when it finished, for a report that comes later: the slot is gone by then.
        locals: RefCell<Locals>,
    }
}

impl<F: Future> TaskCell<F> {
    pub(crate) fn new(future: F, word: Word, number: u64, parent: Option<Word>, place: &'static Location<'static>) -> TaskCell<F> {
        TaskCell {
            word,
            number,
            place,
            parent,
            name: RefCell::new(None),
            level: Level::new(),
            owner: Cell::new(Owner::Handle),
            future: FutureCell::new(Some(future)),
            completion: Completion::new(),
            locals: RefCell::default(),
        }
    }

    /// Drops the future. A destructor that panics is reported and changes nothing about how the task ends.
    fn end(&self, reports: &mut dyn FnMut(Report)) {
        if let Err(payload) = self.future.drop_in_place() {
            reports(Report::of_panic(ReportKind::DropPanic, payload, format!("task `{}`", self.name()), self.place));
        }
    }

    /// Hands the result to its owner.
    fn finish(&self, result: Result<F::Output, TaskError>, reports: &mut dyn FnMut(Report)) {
        self.locals.replace(locals::current());
        let outcome = match (self.owner.replace(Owner::Nobody), result) {
            (Owner::Loop(into_flow), result) => catch_unwind(AssertUnwindSafe(|| settle(result, into_flow))),
            (Owner::Nobody, Err(error)) => Ok(flow_of(error)),
            // A value that nobody reads is dropped with the cell, by whoever runs the task: its destructor is not the task.
            (Owner::Handle | Owner::Nobody, result) => {
                let completed = catch_unwind(AssertUnwindSafe(|| self.completion.complete(result)));
                if let Err(payload) = completed {
                    reports(Report::of_panic(ReportKind::Panic, payload, format!("reader of task `{}`", self.name()), self.place));
                }
                return;
            }
        };
        if let Err(failure) = outcome.unwrap_or_else(|payload| Err(Failure::Panic(payload))) {
            reports(Report::of_failure(failure, format!("task `{}`", self.name()), self.place));
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

impl<F: Future> RunTask for TaskCell<F> {
    fn run(self: Pin<&Self>, waker: &Waker, reports: &mut dyn FnMut(Report)) -> bool {
        let Poll::Ready(result) = self.project_ref().future.poll(waker) else { return false };
        self.end(reports);
        self.finish(result.map_err(TaskError::panicked), reports);
        true
    }

    fn drop_future(&self, reports: &mut dyn FnMut(Report)) {
        self.end(reports);
        self.finish(Err(TaskError::CANCELLED), reports);
    }

    fn level(&self) -> &Level {
        &self.level
    }

    fn number(&self) -> u64 {
        self.number
    }

    fn given_name(&self) -> Option<Rc<str>> {
        self.name.borrow().clone()
    }

    fn set_name(&self, name: Rc<str>) {
        *self.name.borrow_mut() = Some(name);
    }

    fn readers(&self, show: &mut dyn FnMut(&Waker)) {
        self.completion.readers(show);
    }

    fn parent(&self) -> Option<Word> {
        self.parent
    }
}

impl<F: Future> Join<F::Output> for TaskCell<F> {
    fn completion(&self) -> &Completion<Result<F::Output, TaskError>> {
        &self.completion
    }

    fn set_owner(&self, owner: Owner<F::Output>) {
        self.owner.set(owner);
    }

    fn word(&self) -> Word {
        self.word
    }

    fn place(&self) -> &'static Location<'static> {
        self.place
    }

    fn locals(&self) -> Locals {
        self.locals.borrow().clone()
    }
}
