//! What is run: every program with its cases, and who takes part in it. Next: `programs/yielding.rs`, or `command_line.rs`.

mod yielding;
mod ping_pong;
mod spawning;
mod timers;
mod sync;
mod wake;
mod load;
mod server;
mod echo;
mod memory;

pub(crate) use server::Duties;

use std::io;

use bench::processor;

use crate::contenders::Contender;
use crate::contenders::async_executor::AsyncExecutor;
use crate::contenders::compio::Compio;
use crate::contenders::miniloop::Miniloop;
use crate::contenders::monoio::Monoio;
use crate::contenders::smol::Smol;
use crate::contenders::tokio::Tokio;
use crate::contract::Runtime;
use crate::effort::{Effort, Figures};
use load::Traffic;

/// One program with its sizes.
#[derive(Clone, Copy)]
pub(crate) enum Case {
    Yield { tasks: usize },
    PingPong,
    Spawn { batch: usize },
    TimerCancelled { others: usize },
    TimersFired { timers: usize },
    Channel,
    Mutex { tasks: u64 },
    Group { members: u64 },
    Wake { loops: usize },
    Echo { connections: usize, message_len: usize, deep: usize },
    TimerUnderFlood,
    MemoryOfTask,
    MemoryOfTimer,
    MemoryOfConnection,
}

impl Case {
    /// What is run when nobody asks for something else, in the order of the tables.
    pub(crate) fn usual() -> Vec<Case> {
        let mut cases = Vec::new();
        cases.extend([1, 10, 1_000, 100_000].map(|tasks| Case::Yield { tasks }));
        cases.push(Case::PingPong);
        cases.extend([1, 10, 1_000, 100_000].map(|batch| Case::Spawn { batch }));
        cases.extend([0, 10, 1_000, 100_000].map(|others| Case::TimerCancelled { others }));
        cases.extend([10, 1_000, 100_000].map(|timers| Case::TimersFired { timers }));
        cases.push(Case::Channel);
        cases.extend([2, 10].map(|tasks| Case::Mutex { tasks }));
        cases.push(Case::Group { members: 10_000 });
        cases.extend([1, 8, 64].map(|loops| Case::Wake { loops }));
        cases.extend([1, 10, 100, 1_000, 15_000].map(|connections| Case::Echo { connections, message_len: 64, deep: 1 }));
        let others = [(64, 16), (1 << 10, 1), (16 << 10, 1)];
        cases.extend(others.map(|(message_len, deep)| Case::Echo { connections: 100, message_len, deep }));
        cases.extend([Case::TimerUnderFlood, Case::MemoryOfTask, Case::MemoryOfTimer, Case::MemoryOfConnection]);
        cases
    }

    /// Also what shows how a contender grows.
    pub(crate) fn all() -> Vec<Case> {
        let mut cases = Case::usual();
        let growing = [(1, 1 << 10), (1_000, 1 << 10), (1, 16 << 10), (1_000, 16 << 10)];
        cases.extend(growing.map(|(connections, message_len)| Case::Echo { connections, message_len, deep: 1 }));
        cases.extend([1 << 10, 16 << 10].map(|message_len| Case::Echo { connections: 100, message_len, deep: 16 }));
        cases
    }

    pub(crate) fn program(self) -> &'static str {
        match self {
            Case::Yield { .. } => "yield",
            Case::PingPong => "ping-pong",
            Case::Spawn { .. } => "spawn",
            Case::TimerCancelled { .. } => "timer-cancelled",
            Case::TimersFired { .. } => "timers-fired",
            Case::Channel => "channel",
            Case::Mutex { .. } => "mutex",
            Case::Group { .. } => "group",
            Case::Wake { .. } => "cross-thread-wake",
            Case::Echo { .. } => "echo",
            Case::TimerUnderFlood => "timer-under-flood",
            Case::MemoryOfTask | Case::MemoryOfTimer | Case::MemoryOfConnection => "memory",
        }
    }

    /// The sizes, in words.
    pub(crate) fn sizes(self) -> String {
        match self {
            Case::Yield { tasks } => counted(tasks, "task"),
            Case::Spawn { batch: 1 } => "one by one".to_owned(),
            Case::Spawn { batch } => format!("batch of {}", grouped(batch)),
            Case::TimerCancelled { others } => format!("{} others armed", grouped(others)),
            Case::TimersFired { timers } => counted(timers, "timer"),
            Case::Mutex { tasks } => counted(tasks as usize, "task"),
            Case::Group { members } => counted(members as usize, "member"),
            Case::Wake { loops } => counted(loops, "loop"),
            Case::Echo { connections, message_len, deep } => {
                let len = if message_len < 1 << 10 { format!("{message_len} B") } else { format!("{} KiB", message_len >> 10) };
                format!("{}, {len}, {deep} deep", counted(connections, "connection"))
            }
            Case::MemoryOfTask => "idle task, without its future".to_owned(),
            Case::MemoryOfTimer => "sleeping task, with its future".to_owned(),
            Case::MemoryOfConnection => "idle connection, with its task".to_owned(),
            Case::PingPong | Case::Channel | Case::TimerUnderFlood => String::new(),
        }
    }

    /// Whether somebody takes part in this.
    pub(crate) fn has(self, contender: Contender) -> bool {
        match self {
            Case::Echo { .. } | Case::MemoryOfConnection => contender != Contender::AsyncExecutor,
            Case::TimerUnderFlood => ![Contender::AsyncExecutor, Contender::Floor].contains(&contender),
            // It runs a task that has woken itself again at once: there are no turns, and nobody would wait for the lock.
            Case::Yield { tasks: 2.. } | Case::Mutex { .. } => ![Contender::Monoio, Contender::Floor].contains(&contender),
            _ => contender != Contender::Floor,
        }
    }

    /// Takes one sample, in this process. Contenders would meet each other's threads and memory in one, so each sample has its own.
    pub(crate) fn run(self, contender: Contender, effort: Effort) -> io::Result<Figures> {
        match self {
            Case::Echo { connections, message_len, deep } => {
                return echo::measure(contender, effort, effort.crowd(connections), Traffic { message_len, deep });
            }
            Case::TimerUnderFlood => return echo::timer_under_flood(contender, effort),
            Case::MemoryOfConnection => return memory::of_connection(contender, effort),
            // Its threads have cores of their own.
            Case::Wake { .. } => {}
            _ => processor::pin(processor::SERVER_CORE)?,
        }
        match contender {
            Contender::Miniloop => Ok(self.run_on::<Miniloop>(effort)),
            Contender::Tokio => Ok(self.run_on::<Tokio>(effort)),
            Contender::Smol => Ok(self.run_on::<Smol>(effort)),
            Contender::AsyncExecutor => Ok(self.run_on::<AsyncExecutor>(effort)),
            Contender::Monoio => Ok(self.run_on::<Monoio>(effort)),
            Contender::Compio => Ok(self.run_on::<Compio>(effort)),
            Contender::Floor => Err(io::Error::other("the floor has no tasks: it takes part in `echo` and in the memory of connections")),
        }
    }

    fn run_on<R: Runtime>(self, effort: Effort) -> Figures {
        match self {
            Case::Yield { tasks } => yielding::measure::<R>(effort, effort.crowd(tasks)),
            Case::PingPong => ping_pong::measure::<R>(effort),
            Case::Spawn { batch } => spawning::measure::<R>(effort, effort.crowd(batch)),
            Case::TimerCancelled { others } => timers::armed_and_cancelled::<R>(effort, effort.crowd(others)),
            Case::TimersFired { timers } => timers::fired::<R>(effort, effort.crowd(timers)),
            Case::Channel => sync::channel::<R>(effort),
            Case::Mutex { tasks } => sync::mutex::<R>(effort, tasks),
            Case::Group { members } => sync::group::<R>(effort, members),
            Case::Wake { loops } => wake::measure::<R>(effort, loops),
            Case::MemoryOfTask => memory::of_task::<R>(effort),
            Case::MemoryOfTimer => memory::of_timer::<R>(effort),
            Case::Echo { .. } | Case::TimerUnderFlood | Case::MemoryOfConnection => unreachable!("the server has a process of its own"),
        }
    }
}

/// The process in which the server of a contender runs.
pub(crate) fn serve(contender: Contender, duties: Duties) -> io::Result<()> {
    match contender {
        Contender::Miniloop => server::main::<Miniloop>(duties),
        Contender::Tokio => server::main::<Tokio>(duties),
        Contender::Smol => server::main::<Smol>(duties),
        Contender::AsyncExecutor => server::main::<AsyncExecutor>(duties),
        Contender::Monoio => server::main::<Monoio>(duties),
        Contender::Compio => server::main::<Compio>(duties),
        Contender::Floor => server::main_of_floor(duties),
    }
}

fn counted(count: usize, what: &str) -> String {
    format!("{} {what}{}", grouped(count), if count == 1 { "" } else { "s" })
}

/// `100,000`.
fn grouped(count: usize) -> String {
    match count / 1_000 {
        0 => count.to_string(),
        thousands => format!("{},{:03}", grouped(thousands), count % 1_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_cases_have_one_name() {
        let mut names: Vec<_> = Case::all().into_iter().map(|case| (case.program(), case.sizes())).collect();
        let all = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), all);
        assert!(names.contains(&("echo", "15,000 connections, 64 B, 1 deep".to_owned())));
    }
}
