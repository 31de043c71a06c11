//! The context of a job: the task-local values that it sees, and that what it schedules inherits.
//!
//! A list that never changes, so to inherit it is to copy a pointer: one word in each slot, null for jobs of programs without task-locals,
//! and then nothing else is paid. Whoever runs a job for the loop (`run_job.rs`, `failures.rs`, `close.rs`) enters its list, user code
//! above adds to the list with `task_local.rs`. A name stands in a list once, so a chain of jobs that bind it again and again does not
//! grow; looking one up costs a step for each name bound since.

use std::any::Any;
use std::cell::Cell;
use std::rc::Rc;

/// What a job sees.
pub(crate) type Locals = Option<Rc<Local>>;

/// One binding, and those around it.
pub(crate) struct Local {
    key: u64,
    value: Rc<dyn Any>,
    outer: Locals,
}

thread_local!(static CURRENT: Cell<Locals> = const { Cell::new(None) });

/// What the code that runs now sees. Nothing at the very end of a thread.
pub(crate) fn current() -> Locals {
    let look = |cell: &Cell<Locals>| {
        let locals = cell.take();
        let current = locals.clone();
        cell.set(locals);
        current
    };
    CURRENT.try_with(look).unwrap_or(None)
}

/// The value that is bound to `key`.
pub(crate) fn find(locals: &Locals, key: u64) -> Option<&Rc<dyn Any>> {
    std::iter::successors(locals.as_ref(), |local| local.outer.as_ref()).find(|local| local.key == key).map(|local| &local.value)
}

/// The same list with a value for `key`, in place of the one that it may have.
pub(crate) fn bind(locals: &Locals, key: u64, value: Rc<dyn Any>) -> Locals {
    Some(Rc::new(Local { key, value, outer: without(locals, key) }))
}

fn without(locals: &Locals, key: u64) -> Locals {
    let Some(local) = locals.as_ref().filter(|_| find(locals, key).is_some()) else { return locals.clone() };
    if local.key == key {
        return local.outer.clone();
    }
    Some(Rc::new(Local { key: local.key, value: local.value.clone(), outer: without(&local.outer, key) }))
}

pub(crate) fn is_same(one: &Locals, other: &Locals) -> bool {
    one.as_ref().map(Rc::as_ptr) == other.as_ref().map(Rc::as_ptr)
}

/// Makes this what the code that runs sees, while the guard lives. Guards are dropped in the reverse order. The values belong to users:
/// whoever enters a list keeps another reference to it, and drops the last one with care.
#[must_use = "it is left when the guard is dropped"]
pub(crate) fn enter(locals: Locals) -> InLocals {
    InLocals(CURRENT.try_with(|cell| cell.replace(locals)).unwrap_or(None))
}

/// Holds what was seen before.
pub(crate) struct InLocals(Locals);

impl Drop for InLocals {
    fn drop(&mut self) {
        let before = self.0.take();
        let left = CURRENT.try_with(|cell| cell.replace(before));
        drop(left);
    }
}
