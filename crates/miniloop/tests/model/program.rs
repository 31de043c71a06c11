//! Random programs as data: what callbacks, tasks and the host do, as a tree that both the reference model and the real loop can play.
//!
//! It must not know either of them. A program names earlier things by their distance from the newest (`task[-1]`), so every program
//! means something however proptest shrinks it; where there is no such thing, the step does nothing. Programs are finite trees: each ends.
//! Read next: `reference/mod.rs`.

use std::fmt;

use proptest::collection::vec;
use proptest::prelude::*;

/// One random program: how the loop is built, what its host does, and how it ends.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    /// What a blocking poll does when only timers are left.
    pub(crate) clock: ClockKind,
    /// The loop's `jobs_per_poll`.
    pub(crate) jobs_per_poll: usize,
    /// What the host does, in order.
    pub(crate) steps: Vec<Step>,
    /// The last step of all.
    pub(crate) end: End,
}

/// The two virtual clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClockKind {
    /// Moved by `Act::Advance` only.
    Manual,
    /// Jumps to the next deadline when nothing else is left to do.
    Jumping,
}

/// A step of the host, outside the loop.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// An act between two runs.
    Do(Act),
    /// One poll and one round.
    RunOnce,
    /// The same with timeout 0.
    RunReady,
    /// Turns until `stop`.
    RunForever,
    /// Turns until this main future is done.
    RunUntilComplete(TaskBody),
    /// Asks how long the host may sleep.
    NextTimeout,
}

/// How the host leaves the loop.
#[derive(Clone, Copy, Debug)]
pub(crate) enum End {
    /// `close()`.
    Close,
    /// `shutdown(grace)`, with a grace that nothing here exceeds.
    Shutdown,
}

/// What callbacks, tasks and the host can do without waiting. `Nth` 0 is the newest thing of its kind.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    Soon(Body),
    Later(Ms, Body),
    /// Milliseconds since the program began, so the deadline may have passed.
    At(Ms, Body),
    /// A period and the number of runs after which the callback breaks.
    Every(Ms, u8, Body),
    /// A callback that schedules itself so many times before it runs the body: the busy chain of O2 and O6.
    Chain(u8, Body),
    CancelHandle(Nth),
    Spawn(TaskBody),
    CancelTask(Nth),
    DropTask(Nth),
    Detach(Nth),
    OnTaskDone(Nth, Body),
    ShareTask(Nth),
    NewPromise,
    Resolve(Nth, Value),
    DropResolver(Nth),
    DropPromise(Nth),
    OnPromiseDone(Nth, Body),
    SharePromise(Nth),
    /// Wakes the task through the waker of its last poll, which may be stale by now.
    Wake(Nth),
    /// The same from another thread, through the inbox.
    WakeFromThread(Nth),
    /// `Remote::call_soon`: work for the inbox.
    Remote(Body),
    Advance(Ms),
    Stop,
    AddReader,
    RemoveReader,
    /// Makes the watched descriptor readable until its reader runs.
    WritePipe,
}

/// A callback.
#[derive(Clone, Debug)]
pub(crate) struct Body {
    pub(crate) acts: Vec<Act>,
    pub(crate) ending: Ending,
    /// What the destructor does, if the callback is dropped without having run (or stops repeating).
    pub(crate) on_drop: Vec<Act>,
}

/// A task.
#[derive(Clone, Debug, Default)]
pub(crate) struct TaskBody {
    pub(crate) steps: Vec<TaskStep>,
    pub(crate) ending: Ending,
    /// What the destructor of the future does.
    pub(crate) on_drop: Vec<Act>,
}

/// One step of a task.
#[derive(Clone, Debug)]
pub(crate) enum TaskStep {
    Do(Act),
    Await(Wait),
    Timeout(Ms, Wait),
}

/// What a task can wait for.
#[derive(Clone, Debug)]
pub(crate) enum Wait {
    Yield,
    Sleep(Ms),
    Promise(Nth),
    Task(Nth),
    /// So many successful reads of one byte (O10).
    Receive(u16),
}

/// How a callback or a task ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Ending {
    #[default]
    Return,
    Fail,
    Panic,
}

/// What a promise is completed with.
pub(crate) type Value = Result<u8, u8>;
/// Milliseconds of virtual time.
pub(crate) type Ms = u64;
/// A distance from the newest thing of a kind, modulo their number.
pub(crate) type Nth = usize;

/// The index of the `nth` newest of `len` things.
pub(crate) fn pick(nth: Nth, len: usize) -> Option<usize> {
    (len > 0).then(|| len - 1 - nth % len.max(1))
}

impl Program {
    /// Every program that the property test draws from.
    pub(crate) fn any() -> impl Strategy<Value = Self> {
        let clock = prop_oneof![Just(ClockKind::Manual), Just(ClockKind::Jumping)];
        let jobs_per_poll = prop_oneof![Just(1_usize), Just(2), Just(64)];
        let end = prop_oneof![3 => Just(End::Close), 1 => Just(End::Shutdown)];
        let steps = vec(prop_oneof![4 => vec(step(), 1..3), 1 => scene()], 1..8).prop_map(|parts| parts.concat());
        (clock, jobs_per_poll, steps, end).prop_map(|(clock, jobs_per_poll, steps, end)| Self { clock, jobs_per_poll, steps, end })
    }
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => act(DEPTH_MAX).prop_map(Step::Do),
        2 => Just(Step::RunOnce),
        4 => Just(Step::RunReady),
        2 => Just(Step::RunForever),
        2 => task_body(DEPTH_MAX).prop_map(Step::RunUntilComplete),
        1 => Just(Step::NextTimeout),
    ]
}

/// A part of a scene in which several things meet: chance alone would seldom let three tasks wait for one promise.
fn scene() -> impl Strategy<Value = Vec<Step>> {
    let scenes = SCENES.map(|scene| scene.lines().map(|line| Step::parse(line.trim())).collect::<Vec<_>>());
    prop::sample::select(scenes.to_vec()).prop_flat_map(|scene| {
        let len = scene.len();
        prop::sample::subsequence(scene, len * 2 / 3..=len)
    })
}

/// Each shows what one rule is about, in the text form that programs print.
const SCENES: [&str; 7] = [
    // O8: waiters of a promise, one of which is polled in between.
    "promise
     share promise[-1]
     spawn { await promise[-1] }
     on_done promise[-1] { }
     spawn { timeout 3 promise[-1] }
     spawn { await promise[-1]; await yield }
     run_ready
     wake task[-3]
     wake_from_thread task[-2]
     run_ready
     cancel task[-1]
     resolve promise[-1] Ok(1)
     run_ready",
    // O8: the same with a task.
    "spawn { await yield; await sleep 2 }
     share task[-1]
     spawn { await task[-3] }
     spawn { await task[-3] }
     on_done task[-3] { stop }
     run_ready
     wake task[-2]
     run_ready
     advance 2
     run_forever",
    // O3: everything at one poll.
    "add_reader
     call_later 1 { call_later 0 { } }
     remote call_soon { write pipe }
     spawn { await sleep 1 }
     write pipe
     advance 1
     call_soon { remote call_soon { } }
     run_once",
    // O5: one task, many wakes.
    "spawn { wake task[-1]; await yield; wake task[-1]; wake_from_thread task[-1]; await sleep 2; await sleep 2 }
     run_ready
     wake task[-1]
     wake_from_thread task[-1]
     wake task[-1]
     run_ready
     advance 2
     wake task[-1]
     run_ready",
    // O6 and jobs_per_poll: others write while the loop is busy.
    "add_reader
     remote call_soon { remote call_soon { } }
     call_soon { write pipe; remote call_soon { } }
     chain 3 { wake_from_thread task[-1]; remote call_soon { }; write pipe }
     chain 64 { stop }
     run_forever",
    // A promise that was given up: whoever waited for it is not woken any more.
    "promise
     spawn { timeout 2 promise[-1]; await sleep 5 }
     run_ready
     advance 2
     run_ready
     drop resolver[-1]
     run_ready",
    // Failures: each has one reader, or is reported.
    "promise
     spawn { await yield; panic }
     share task[-1]
     spawn { timeout 1 task[-2]; fail }
     detach task[-1]
     spawn { await yield; panic }
     on_done task[-1] { panic } dropped { drop task[-3] }
     resolve promise[-1] Err(2)
     run_ready
     drop promise[-1]
     cancel handle[-1]
     drop task[-3]
     run_ready
     run_forever",
];

fn act(depth: u32) -> BoxedStrategy<Act> {
    let plain = prop_oneof![
        3 => nth().prop_map(Act::CancelHandle),
        2 => nth().prop_map(Act::CancelTask),
        1 => nth().prop_map(Act::DropTask),
        1 => nth().prop_map(Act::Detach),
        2 => nth().prop_map(Act::ShareTask),
        3 => Just(Act::NewPromise),
        3 => (nth(), value()).prop_map(|(nth, value)| Act::Resolve(nth, value)),
        1 => nth().prop_map(Act::DropResolver),
        1 => nth().prop_map(Act::DropPromise),
        2 => nth().prop_map(Act::SharePromise),
        3 => nth().prop_map(Act::Wake),
        1 => nth().prop_map(Act::WakeFromThread),
        2 => ms().prop_map(Act::Advance),
        1 => Just(Act::Stop),
        1 => Just(Act::AddReader),
        1 => Just(Act::RemoveReader),
        2 => Just(Act::WritePipe),
    ];
    if depth == 0 {
        return plain.boxed();
    }
    // Made once and shared: the strategies of each level would otherwise be built ten times over.
    let (body, task_body) = (body(depth - 1).boxed(), task_body(depth - 1).boxed());
    prop_oneof![
        10 => plain,
        4 => body.clone().prop_map(Act::Soon),
        3 => (ms(), body.clone()).prop_map(|(delay, body)| Act::Later(delay, body)),
        1 => (ms(), body.clone()).prop_map(|(when, body)| Act::At(when, body)),
        1 => (1..4_u64, 1..4_u8, body.clone()).prop_map(|(period, runs, body)| Act::Every(period, runs, body)),
        1 => (chain_len(), body.clone()).prop_map(|(len, body)| Act::Chain(len, body)),
        6 => task_body.prop_map(Act::Spawn),
        1 => (nth(), body.clone()).prop_map(|(nth, body)| Act::OnTaskDone(nth, body)),
        1 => (nth(), body.clone()).prop_map(|(nth, body)| Act::OnPromiseDone(nth, body)),
        2 => body.prop_map(Act::Remote),
    ]
    .boxed()
}

fn body(depth: u32) -> impl Strategy<Value = Body> {
    (vec(act(depth), 0..4), ending(), on_drop(depth)).prop_map(|(acts, ending, on_drop)| Body { acts, ending, on_drop })
}

fn task_body(depth: u32) -> impl Strategy<Value = TaskBody> {
    let step = prop_oneof![
        3 => act(depth).prop_map(TaskStep::Do),
        4 => wait().prop_map(TaskStep::Await),
        1 => (1..6_u64, wait()).prop_map(|(limit, wait)| TaskStep::Timeout(limit, wait)),
    ];
    (vec(step, 0..5), ending(), on_drop(depth)).prop_map(|(steps, ending, on_drop)| TaskBody { steps, ending, on_drop })
}

/// Mostly nothing; what there is, is simple.
fn on_drop(depth: u32) -> impl Strategy<Value = Vec<Act>> {
    prop_oneof![9 => Just(Vec::new()), 1 => vec(act(depth.min(1)), 1..3)]
}

fn wait() -> impl Strategy<Value = Wait> {
    prop_oneof![
        4 => Just(Wait::Yield),
        3 => ms().prop_map(Wait::Sleep),
        5 => nth().prop_map(Wait::Promise),
        4 => nth().prop_map(Wait::Task),
        1 => prop_oneof![Just(1_u16), Just(64), Just(65), Just(130)].prop_map(Wait::Receive),
    ]
}

fn ending() -> impl Strategy<Value = Ending> {
    prop_oneof![8 => Just(Ending::Return), 1 => Just(Ending::Fail), 1 => Just(Ending::Panic)]
}

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![(0..10_u8).prop_map(Ok), (0..10_u8).prop_map(Err)]
}

/// Few different durations, so that equal deadlines are common.
fn ms() -> impl Strategy<Value = Ms> {
    prop_oneof![2 => Just(0_u64), 2 => Just(1), 3 => Just(2), 2 => Just(3), 1 => Just(5), 1 => Just(10)]
}

/// Below, at and beyond the default `jobs_per_poll`.
fn chain_len() -> impl Strategy<Value = u8> {
    prop_oneof![4 => 1..5_u8, 1 => 60..70_u8]
}

fn nth() -> impl Strategy<Value = Nth> {
    prop_oneof![4 => Just(0_usize), 3 => Just(1), 2 => Just(2), 1 => Just(3), 1 => Just(4)]
}

/// How deep callbacks and tasks are nested.
const DEPTH_MAX: u32 = 3;

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "clock {:?}, jobs_per_poll {}", self.clock, self.jobs_per_poll)?;
        for step in &self.steps {
            match step {
                Step::Do(act) => writeln!(f, "{act}")?,
                Step::RunOnce => writeln!(f, "run_once")?,
                Step::RunReady => writeln!(f, "run_ready")?,
                Step::RunForever => writeln!(f, "run_forever")?,
                Step::RunUntilComplete(body) => writeln!(f, "run_until_complete {body}")?,
                Step::NextTimeout => writeln!(f, "next_timeout")?,
            }
        }
        write!(f, "{:?}", self.end)
    }
}

impl fmt::Display for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Soon(body) => write!(f, "call_soon {body}"),
            Self::Later(delay, body) => write!(f, "call_later {delay} {body}"),
            Self::At(when, body) => write!(f, "call_at {when} {body}"),
            Self::Every(period, runs, body) => write!(f, "call_every {period} x{runs} {body}"),
            Self::Chain(len, body) => write!(f, "chain {len} {body}"),
            Self::CancelHandle(nth) => write!(f, "cancel handle{}", Back(*nth)),
            Self::Spawn(body) => write!(f, "spawn {body}"),
            Self::CancelTask(nth) => write!(f, "cancel task{}", Back(*nth)),
            Self::DropTask(nth) => write!(f, "drop task{}", Back(*nth)),
            Self::Detach(nth) => write!(f, "detach task{}", Back(*nth)),
            Self::OnTaskDone(nth, body) => write!(f, "on_done task{} {body}", Back(*nth)),
            Self::ShareTask(nth) => write!(f, "share task{}", Back(*nth)),
            Self::NewPromise => write!(f, "promise"),
            Self::Resolve(nth, value) => write!(f, "resolve promise{} {value:?}", Back(*nth)),
            Self::DropResolver(nth) => write!(f, "drop resolver{}", Back(*nth)),
            Self::DropPromise(nth) => write!(f, "drop promise{}", Back(*nth)),
            Self::OnPromiseDone(nth, body) => write!(f, "on_done promise{} {body}", Back(*nth)),
            Self::SharePromise(nth) => write!(f, "share promise{}", Back(*nth)),
            Self::Wake(nth) => write!(f, "wake task{}", Back(*nth)),
            Self::WakeFromThread(nth) => write!(f, "wake_from_thread task{}", Back(*nth)),
            Self::Remote(body) => write!(f, "remote call_soon {body}"),
            Self::Advance(ms) => write!(f, "advance {ms}"),
            Self::Stop => write!(f, "stop"),
            Self::AddReader => write!(f, "add_reader"),
            Self::RemoveReader => write!(f, "remove_reader"),
            Self::WritePipe => write!(f, "write pipe"),
        }
    }
}

impl fmt::Display for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        list(f, &self.acts, self.ending, &self.on_drop)
    }
}

impl fmt::Display for TaskBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        list(f, &self.steps, self.ending, &self.on_drop)
    }
}

impl fmt::Display for TaskStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Do(act) => write!(f, "{act}"),
            Self::Await(wait) => write!(f, "await {wait}"),
            Self::Timeout(limit, wait) => write!(f, "timeout {limit} {wait}"),
        }
    }
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Yield => write!(f, "yield"),
            Self::Sleep(ms) => write!(f, "sleep {ms}"),
            Self::Promise(nth) => write!(f, "promise{}", Back(*nth)),
            Self::Task(nth) => write!(f, "task{}", Back(*nth)),
            Self::Receive(count) => write!(f, "receive {count}"),
        }
    }
}

/// `[-1]` is the newest.
struct Back(Nth);

impl fmt::Display for Back {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[-{}]", self.0 + 1)
    }
}

fn list<T: fmt::Display>(f: &mut fmt::Formatter<'_>, items: &[T], ending: Ending, on_drop: &[Act]) -> fmt::Result {
    write!(f, "{{ ")?;
    for item in items {
        write!(f, "{item}; ")?;
    }
    f.write_str(match ending {
        Ending::Return => "}",
        Ending::Fail => "fail }",
        Ending::Panic => "panic }",
    })?;
    match on_drop {
        [] => Ok(()),
        acts => {
            f.write_str(" dropped ")?;
            list(f, acts, Ending::Return, &[])
        }
    }
}
