//! What the loop knows of a task, whatever its future is and whatever that makes.
//!
//! A task is one allocation: this head, and behind it a body whose type the loop never knows. So everything that the loop asks of each task
//! at each turn is a field, and only what depends on the future is a call through a table. Next: `job.rs`, whose table holds them;
//! `task_cell.rs` is the body.

use std::cell::Cell;
use std::fmt;
use std::panic::Location;
use std::pin::Pin;
use std::rc::Rc;
use std::task::Waker;

use pin_project_lite::pin_project;

use crate::engine::cancel_tree::Level;
use crate::engine::record::Record;
use crate::engine::word::Word;
use crate::report::Report;

pin_project! {
    /// A task: the head, and a body that depends on the future.
    pub(crate) struct Spawned<B>
    where
        B: ?Sized,
    {
        pub(crate) head: TaskHead,
        #[pin]
        pub(crate) body: B,
    }
}

/// A task whose body can be run. The loop never knows the type of its future or of its value.
pub(crate) type AnyTask = Pin<Rc<Spawned<dyn RunBody>>>;

/// What every task has.
pub(crate) struct TaskHead {
    pub(crate) word: Word,
    /// How many tasks the loop had spawned before this one.
    pub(crate) number: u64,
    pub(crate) record: Record,
    /// The task that spawned it, which may have ended; `STALE` if it was none.
    parent: Word,
    /// Where the task is asked to stop.
    pub(crate) level: Level,
    name: Cell<Option<Rc<str>>>,
}

impl TaskHead {
    pub(crate) fn new(word: Word, number: u64, parent: Option<Word>, record: Record) -> TaskHead {
        TaskHead { word, number, record, parent: parent.unwrap_or(Word::STALE), level: Level::new(), name: Cell::new(None) }
    }

    /// The line that spawned it.
    pub(crate) fn place(&self) -> &'static Location<'static> {
        self.record.origin.place
    }

    /// The task that spawned it, if that lives.
    pub(crate) fn parent(&self) -> Option<Word> {
        (self.parent != Word::STALE).then_some(self.parent)
    }

    /// The name that it was given.
    pub(crate) fn given_name(&self) -> Option<Rc<str>> {
        let name = self.name.take();
        self.name.set(name.clone());
        name
    }

    /// The same, or its number.
    pub(crate) fn name(&self) -> String {
        TaskName(self.given_name().as_deref(), self.number).to_string()
    }

    /// Names it.
    pub(crate) fn set_name(&self, name: Rc<str>) {
        self.name.set(Some(name));
    }
}

/// What depends on the future of a task.
pub(crate) trait RunBody {
    /// Polls the future once. True when the task has finished and its slot is to be freed.
    fn run(self: Pin<&Self>, head: &TaskHead, waker: &Waker, reports: &mut dyn FnMut(Report)) -> bool;

    /// Drops the future where it is and finishes the task as cancelled.
    fn drop_future(&self, head: &TaskHead, reports: &mut dyn FnMut(Report));

    /// Shows the wakers of those who wait for its result.
    fn readers(&self, show: &mut dyn FnMut(&Waker));
}

impl<B: RunBody + ?Sized> Spawned<B> {
    /// [`RunBody::run`] of the body, which is pinned with the task.
    pub(crate) fn run(self: Pin<&Self>, waker: &Waker, reports: &mut dyn FnMut(Report)) -> bool {
        let this = self.project_ref();
        this.body.run(this.head, waker, reports)
    }

    pub(crate) fn drop_future(&self, reports: &mut dyn FnMut(Report)) {
        self.body.drop_future(&self.head, reports);
    }
}

/// What a task is called: the name that it was given, or its number.
pub(crate) struct TaskName<'a>(pub(crate) Option<&'a str>, pub(crate) u64);

impl fmt::Display for TaskName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TaskName(Some(given), _) => f.write_str(given),
            TaskName(None, number) => write!(f, "task-{number}"),
        }
    }
}
