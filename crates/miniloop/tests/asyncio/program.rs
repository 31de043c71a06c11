//! Programs for two loops, as data: what asyncio and miniloop both can do and both promise an order for.
//!
//! Left out, because the two differ on purpose: equal deadlines (asyncio promises no order, so the players move them apart), a
//! sleeping task (ours goes on in the round that finds its deadline, asyncio's one later), the cancel of a task whose wake is pending (ours
//! is polled once first), work from other threads. Programs print as JSON, which `play.py` reads.

use std::fmt;

use proptest::collection::vec;
use proptest::prelude::*;

pub(crate) type Nth = usize;
pub(crate) type Label = u32;

#[derive(Clone, Debug)]
pub(crate) struct Program(pub(crate) Vec<Act>);

#[derive(Clone, Debug)]
pub(crate) enum Act {
    Soon(Body),
    /// Nanoseconds.
    Later(u64, Body),
    Cancel(Nth),
    Promise,
    Resolve(Nth),
    PromiseDone(Nth, Body),
    TaskDone(Nth, Body),
    Spawn(TaskBody),
    /// Cancelled before it ever ran.
    SpawnCancelled(TaskBody),
    /// Waits for ever, and is cancelled after so many nanoseconds.
    SpawnHanging(Label, u64),
    Watch(Body),
    Unwatch,
    Write,
}

#[derive(Clone, Debug)]
pub(crate) struct Body {
    pub(crate) label: Label,
    pub(crate) acts: Vec<Act>,
}

#[derive(Clone, Debug)]
pub(crate) struct TaskBody {
    pub(crate) label: Label,
    pub(crate) steps: Vec<Step>,
}

#[derive(Clone, Debug)]
pub(crate) enum Step {
    Do(Act),
    Yield,
    AwaitPromise(Nth),
    /// One that was spawned before this one, so that no two wait for each other.
    AwaitTask(Nth),
}

impl Program {
    pub(crate) fn any() -> impl Strategy<Value = Program> {
        vec(act(3), 1..10).prop_map(|mut acts| {
            let mut numbering = Numbering { next: 0 };
            acts.iter_mut().for_each(|act| numbering.act(act));
            Program(acts)
        })
    }
}

fn act(depth: u32) -> BoxedStrategy<Act> {
    let nth = || 0..4_usize;
    let leaf = prop_oneof![
        2 => Just(Act::Promise),
        2 => nth().prop_map(Act::Resolve),
        2 => nth().prop_map(Act::Cancel),
        1 => delay().prop_map(|delay| Act::SpawnHanging(0, delay)),
        1 => Just(Act::Unwatch),
        2 => Just(Act::Write),
    ];
    if depth == 0 {
        return leaf.boxed();
    }
    let body = || vec(act(depth - 1), 0..4).prop_map(|acts| Body { label: 0, acts });
    let step = prop_oneof![
        2 => act(depth - 1).prop_map(Step::Do),
        2 => Just(Step::Yield),
        2 => nth().prop_map(Step::AwaitPromise),
        1 => nth().prop_map(Step::AwaitTask),
    ];
    let task = vec(step, 0..5).prop_map(|steps| TaskBody { label: 0, steps }).boxed();
    prop_oneof![
        4 => leaf,
        2 => body().prop_map(Act::Soon),
        2 => (delay(), body()).prop_map(|(delay, body)| Act::Later(delay, body)),
        1 => (nth(), body()).prop_map(|(nth, body)| Act::PromiseDone(nth, body)),
        1 => (nth(), body()).prop_map(|(nth, body)| Act::TaskDone(nth, body)),
        3 => task.clone().prop_map(Act::Spawn),
        1 => task.prop_map(Act::SpawnCancelled),
        1 => body().prop_map(Act::Watch),
    ]
    .boxed()
}

/// Milliseconds; zero is frequent, because that is where the order is delicate.
fn delay() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0_u64), 0..4_u64].prop_map(|ms| ms * 1_000_000)
}

/// Gives everything a label of its own.
struct Numbering {
    next: Label,
}

impl Numbering {
    fn next(&mut self) -> Label {
        self.next += 1;
        self.next
    }

    fn act(&mut self, act: &mut Act) {
        match act {
            Act::Soon(body) | Act::Later(_, body) | Act::PromiseDone(_, body) | Act::TaskDone(_, body) | Act::Watch(body) => {
                self.body(body)
            }
            Act::Spawn(task) | Act::SpawnCancelled(task) => {
                task.label = self.next();
                for step in &mut task.steps {
                    if let Step::Do(act) = step {
                        self.act(act);
                    }
                }
            }
            Act::SpawnHanging(label, _) => *label = self.next(),
            Act::Cancel(_) | Act::Promise | Act::Resolve(_) | Act::Unwatch | Act::Write => {}
        }
    }

    fn body(&mut self, body: &mut Body) {
        body.label = self.next();
        body.acts.iter_mut().for_each(|act| self.act(act));
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        list(f, &self.0)
    }
}

impl fmt::Display for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Act::Soon(body) => write!(f, r#"["soon", {body}]"#),
            Act::Later(delay, body) => write!(f, r#"["later", {delay}, {body}]"#),
            Act::Cancel(nth) => write!(f, r#"["cancel", {nth}]"#),
            Act::Promise => f.write_str(r#"["promise"]"#),
            Act::Resolve(nth) => write!(f, r#"["resolve", {nth}]"#),
            Act::PromiseDone(nth, body) => write!(f, r#"["promise_done", {nth}, {body}]"#),
            Act::TaskDone(nth, body) => write!(f, r#"["task_done", {nth}, {body}]"#),
            Act::Spawn(task) => write!(f, r#"["spawn", {task}]"#),
            Act::SpawnCancelled(task) => write!(f, r#"["spawn_cancelled", {task}]"#),
            Act::SpawnHanging(label, delay) => write!(f, r#"["spawn_hanging", {label}, {delay}]"#),
            Act::Watch(body) => write!(f, r#"["watch", {body}]"#),
            Act::Unwatch => f.write_str(r#"["unwatch"]"#),
            Act::Write => f.write_str(r#"["write"]"#),
        }
    }
}

impl fmt::Display for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}, ", self.label)?;
        list(f, &self.acts)?;
        f.write_str("]")
    }
}

impl fmt::Display for TaskBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}, ", self.label)?;
        list(f, &self.steps)?;
        f.write_str("]")
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Do(act) => write!(f, "{act}"),
            Step::Yield => f.write_str(r#"["yield"]"#),
            Step::AwaitPromise(nth) => write!(f, r#"["await_promise", {nth}]"#),
            Step::AwaitTask(nth) => write!(f, r#"["await_task", {nth}]"#),
        }
    }
}

fn list<T: fmt::Display>(f: &mut fmt::Formatter<'_>, items: &[T]) -> fmt::Result {
    f.write_str("[")?;
    for (index, item) in items.iter().enumerate() {
        f.write_str(if index == 0 { "" } else { ", " })?;
        write!(f, "{item}")?;
    }
    f.write_str("]")
}
