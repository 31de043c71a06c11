//! What a loop holds at one moment, as plain data: its tasks as a tree, what each waits for, and how much of everything else there is.
//!
//! `engine/inspect.rs` fills it in. It is a copy and knows the loop no more, so it can be kept, compared and sent to another thread. The
//! tree is a list in the order of reading, each line with its depth: a chain of a million tasks that spawned each other is one, too.

use std::fmt;
use std::panic::Location;
use std::time::Duration;

use crate::config::{DUMP_AWAITS_MAX, DUMP_INDENT_MAX, DUMP_LINES_MAX};
use crate::instant::Instant;
use crate::one_line::OneLine;

/// A loop at one moment, see [`diag`](crate::diag). It prints as a few lines of text; the fields are for programs.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Dump {
    /// The number of the loop: how many the process had made with it.
    pub loop_number: u64,
    /// When it was taken, by the clock of the loop.
    pub now: Instant,
    /// The main future, then all tasks and group members, each behind its parent, and siblings in the order in which they were spawned,
    /// tasks before members. One whose parent has ended stands at depth 0.
    pub tasks: Vec<TaskDump>,
    /// Callbacks that run again and again: timers of `call_every`, readers, writers.
    pub repeating: Vec<CallbackDump>,
    /// Jobs for the threads of the [blocking pool](crate::spawn_blocking()): those that have one, then those that wait for one, each in the
    /// order in which they were submitted.
    pub blocking: Vec<BlockingDump>,
    /// Callbacks that have yet to run once, in the queue, at a deadline or when something is done.
    pub callbacks_len: usize,
    /// Timers that are armed: sleeping tasks, timeouts, `call_later`.
    pub timers_len: usize,
    /// How long until the next of them is due.
    pub next_timer: Option<Duration>,
    /// Descriptors that the loop watches.
    pub descriptors_len: usize,
    /// Jobs in the ready queue.
    pub ready_len: usize,
    /// What other threads have sent and the loop has not yet taken.
    pub messages_len: usize,
}

/// A task, a member of a task group, or the main future.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TaskDump {
    /// What it is.
    pub kind: TaskKind,
    /// The name that was set, or `task-7` for the eighth task of its loop, `member-0` for the first member of its group; `main` for the
    /// main future, `body` for the body of a group.
    pub name: String,
    /// The line that spawned it.
    pub place: &'static Location<'static>,
    /// The index in [`Dump::tasks`] of the one that spawned it, if that lives.
    pub parent: Option<usize>,
    /// How many parents stand above it.
    pub depth: usize,
    /// What it does.
    pub state: TaskState,
    /// What it waits for, in words that complete "it waits for": `a deadline`, `a message of a channel`. Empty when nobody has said so: a
    /// future of another library, or one that gave way.
    pub waits_for: &'static str,
    /// The names of the tasks whose results it waits for, or of the member of a task group.
    pub awaits: Vec<String>,
    /// When it was last polled, or spawned when it has not been: the loop's latest reading of the clock by then. Exact in debug mode and on
    /// a virtual clock; else the true moment may be a little later, and in a loop without timers, which does not read the clock, much.
    /// `None` before the first reading.
    pub since: Option<Instant>,
    /// How often it was polled. [`u32::MAX`] is that many or more.
    pub polls: u32,
}

/// What a line of [`Dump::tasks`] stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TaskKind {
    /// The future given to `run_until_complete`.
    Main,
    /// A task of its own.
    Task,
    /// A member of a task group, below the task that polls the group.
    Member,
    /// The body of a task group, a member like the others.
    Body,
}

/// What a task does at the moment of a [`Dump`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TaskState {
    /// It is being polled: the dump was taken by it.
    Running,
    /// It stands in the ready queue.
    Ready,
    /// It waits to be woken.
    Waiting,
}

/// A callback that stays until it is cancelled.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CallbackDump {
    /// `callback of every 1s`, `reader of descriptor 7`.
    pub cause: String,
    /// The line that made it.
    pub place: &'static Location<'static>,
}

/// A job of the blocking pool. The task that awaits it says that it waits for a blocking job.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct BlockingDump {
    /// The line that submitted it.
    pub place: &'static Location<'static>,
    /// A thread has it. Otherwise it waits for one.
    pub is_running: bool,
}

impl Dump {
    /// The first task with this name.
    pub fn task(&self, name: &str) -> Option<&TaskDump> {
        self.tasks.iter().find(|task| task.name == name)
    }
}

impl fmt::Display for Dump {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "event loop {}: {} ready, ", self.loop_number, counted(self.ready_len, "job"))?;
        write!(f, "{}", counted(self.timers_len, "timer"))?;
        if let Some(next) = self.next_timer {
            write!(f, " (the next in {next:.1?})")?;
        }
        let descriptors = counted(self.descriptors_len, "descriptor");
        write!(f, ", {descriptors}, {} of other threads", counted(self.messages_len, "message"))?;
        write!(f, "\n{}:{}", counted(self.tasks.len(), "task"), TaskLines(self))?;
        write!(f, "\n{}", counted(self.callbacks_len + self.repeating.len(), "callback"))?;
        if !self.repeating.is_empty() {
            write!(f, ", of which repeat:")?;
        }
        for callback in self.repeating.iter().take(DUMP_LINES_MAX) {
            write!(f, "\n  {} at {}", callback.cause, callback.place)?;
        }
        write_rest(f, self.repeating.len())?;
        if self.blocking.is_empty() {
            return Ok(());
        }
        write!(f, "\n{}:", counted(self.blocking.len(), "blocking job"))?;
        for job in self.blocking.iter().take(DUMP_LINES_MAX) {
            write!(f, "\n  submitted at {}: {}", job.place, if job.is_running { "running" } else { "waits for a thread" })?;
        }
        write_rest(f, self.blocking.len())
    }
}

/// The tasks of a dump, a line for each, without a heading.
pub(crate) struct TaskLines<'a>(pub(crate) &'a Dump);

impl fmt::Display for TaskLines<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dump = self.0;
        for task in dump.tasks.iter().take(DUMP_LINES_MAX) {
            write!(f, "\n{:1$}", "", 2 + 2 * task.depth.min(DUMP_INDENT_MAX))?;
            task.write(f, dump.now)?;
        }
        write_rest(f, dump.tasks.len())
    }
}

fn write_rest(f: &mut fmt::Formatter<'_>, len: usize) -> fmt::Result {
    if len > DUMP_LINES_MAX { write!(f, "\n  and {} more", len - DUMP_LINES_MAX) } else { Ok(()) }
}

impl TaskDump {
    fn write(&self, f: &mut fmt::Formatter<'_>, now: Instant) -> fmt::Result {
        match self.kind {
            TaskKind::Main => write!(f, "the future given to `run_until_complete` at {}", self.place)?,
            TaskKind::Task => write!(f, "task `{}`, spawned at {}", OneLine(&self.name), self.place)?,
            TaskKind::Member => write!(f, "member `{}`, spawned at {}", OneLine(&self.name), self.place)?,
            TaskKind::Body => write!(f, "body of a task group at {}", self.place)?,
        }
        match self.state {
            TaskState::Running => write!(f, ": running")?,
            TaskState::Ready => write!(f, ": ready")?,
            TaskState::Waiting if !self.awaits.is_empty() => self.write_awaits(f)?,
            TaskState::Waiting if self.waits_for.is_empty() => write!(f, ": waits")?,
            TaskState::Waiting => write!(f, ": waits for {}", self.waits_for)?,
        }
        let age = self.since.map_or(Duration::ZERO, |since| now - since);
        if age >= Duration::from_micros(1) {
            write!(f, " for {age:.1?}")?;
        }
        match self.polls {
            0 => write!(f, ", never polled"),
            1 => write!(f, ", polled once"),
            polls => write!(f, ", polled {polls} times"),
        }
    }

    fn write_awaits(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut start = if self.waits_for == MEMBER { ": waits for member " } else { ": waits for task " };
        for name in self.awaits.iter().take(DUMP_AWAITS_MAX) {
            write!(f, "{start}`{}`", OneLine(name))?;
            start = ", ";
        }
        match self.awaits.len().saturating_sub(DUMP_AWAITS_MAX) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

// What they say that wait for one whom a dump names.

pub(crate) static TASK: &str = "a task";
pub(crate) static SHARED_RESULT: &str = "a shared result";
pub(crate) static MEMBER: &str = "a member of a task group";

fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(depth: usize) -> TaskDump {
        TaskDump {
            kind: TaskKind::Task,
            name: "x".to_owned(),
            place: Location::caller(),
            parent: None,
            depth,
            state: TaskState::Waiting,
            waits_for: "a deadline",
            awaits: Vec::new(),
            since: Some(Instant::from_nanos(0)),
            polls: 2,
        }
    }

    fn dump(tasks: Vec<TaskDump>) -> Dump {
        Dump {
            loop_number: 3,
            now: Instant::from_nanos(1_250_000_000),
            tasks,
            repeating: Vec::new(),
            blocking: Vec::new(),
            callbacks_len: 1,
            timers_len: 2,
            next_timer: Some(Duration::from_millis(5)),
            descriptors_len: 0,
            ready_len: 1,
            messages_len: 0,
        }
    }

    #[test]
    fn a_dump_prints_as_a_tree() {
        let place = Location::caller().file();
        let text = dump(vec![task(0), TaskDump { awaits: vec!["y".to_owned()], since: None, polls: 0, ..task(1) }]).to_string();
        let without_places: String =
            text.split(place).map(|part| part.trim_start_matches(|c: char| c.is_ascii_digit() || c == ':')).collect();
        assert_eq!(
            without_places,
            "event loop 3: 1 job ready, 2 timers (the next in 5.0ms), 0 descriptors, 0 messages of other threads\n2 tasks:\n  \
             task `x`, spawned at  waits for a deadline for 1.2s, polled 2 times\n    \
             task `x`, spawned at  waits for task `y`, never polled\n1 callback"
        );
    }

    #[test]
    fn a_printed_dump_is_bounded_however_many_tasks_there_are() {
        let text = dump((0..DUMP_LINES_MAX + 7).map(task).collect()).to_string();
        assert!(text.ends_with("\n  and 7 more\n1 callback"), "{text}");
        let width_max = text.lines().map(|line| line.len() - line.trim_start().len()).max();
        assert_eq!(width_max, Some(2 + 2 * DUMP_INDENT_MAX));
        let job = |is_running| BlockingDump { place: Location::caller(), is_running };
        let text = Dump { blocking: (0..1_001).map(|number| job(number < 1)).collect(), ..dump(Vec::new()) }.to_string();
        assert!(text.contains("\n1001 blocking jobs:\n  submitted at ") && text.ends_with(": waits for a thread\n  and 1 more"), "{text}");
    }

    #[test]
    fn a_task_is_one_short_line_whatever_it_is_called_and_however_many_it_waits_for() {
        let name = "a\nevent loop 7: ".repeat(100_000);
        for line in [TaskDump { awaits: vec![name.clone(); DUMP_AWAITS_MAX + 3], ..task(0) }, TaskDump { name, ..task(0) }] {
            let text = dump(vec![line]).to_string();
            assert_eq!(text.lines().count(), 4, "{text}");
            assert!(text.len() < 5_000, "{} bytes", text.len());
        }
        let awaits = vec!["y".to_owned(); DUMP_AWAITS_MAX + 3];
        assert!(dump(vec![TaskDump { awaits, ..task(0) }]).to_string().contains("`y`, `y` and 3 more"));
    }
}
