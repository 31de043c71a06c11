//! What those cost that wait: the memory of an idle task, of one that sleeps, of one that reads from a connection.
//!
//! It is what the process has touched, counted in pages over many of them, so what an allocator adds is in it, and what the kernel keeps
//! is not. Next: `sample.rs`.

use std::future::pending;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use bench::processor;

use crate::contenders::Contender;
use crate::contract::Runtime;
use crate::effort::{Effort, Figures};
use crate::gate::Gate;
use crate::programs::load::{Load, Traffic};
use crate::programs::server::{Duties, Server, memory_bytes};

const TASKS: usize = 100_000;
const CONNECTIONS: usize = 5_000;
const MESSAGE_LEN: usize = 64;

/// The bytes of a detached task that waits for ever, without those of its future.
pub(crate) fn of_task<R: Runtime>(effort: Effort) -> Figures {
    let wait = |started: Rc<Gate>| async move {
        started.arrive();
        pending().await
    };
    of_many::<R, _>(effort, wait, |future_len| future_len)
}

/// The bytes of a detached task that sleeps, with its future.
pub(crate) fn of_timer<R: Runtime>(effort: Effort) -> Figures {
    let wait = |started: Rc<Gate>| async move {
        started.arrive();
        R::sleep(Duration::from_secs(3_600)).await;
    };
    of_many::<R, _>(effort, wait, |_| 0)
}

fn of_many<R: Runtime, F: Future<Output = ()> + 'static>(
    effort: Effort,
    wait: impl Fn(Rc<Gate>) -> F + 'static,
    not_counted: fn(usize) -> usize,
) -> Figures {
    R::run(async move {
        let start = async |count: usize| {
            let started = Rc::new(Gate::of(count));
            for _ in 0..count {
                R::detach(R::spawn(wait(started.clone())));
            }
            started.all().await;
            memory_bytes("self").expect("the kernel says what a process uses")
        };
        let before = start(1).await;
        let count = effort.crowd(TASKS);
        let after = start(count).await;
        let bytes = (after as f64 - before as f64) / count as f64;
        vec![("bytes".to_owned(), bytes - not_counted(size_of::<F>()) as f64)]
    })
}

/// The bytes of a connection that has sent back one message and reads: the task, its future, the stream, and a buffer of one message.
pub(crate) fn of_connection(contender: Contender, effort: Effort) -> io::Result<Figures> {
    processor::pin(processor::LOAD_CORE)?;
    let server = Server::start(contender, Duties { buffer_len: MESSAGE_LEN, ticks: 0 })?;
    let traffic = Traffic { message_len: MESSAGE_LEN, deep: 1 };
    let mut first = Load::start(server.address, 1, traffic)?;
    first.run_once_round()?;
    let before = server.memory_bytes()?;
    let count = effort.crowd(CONNECTIONS);
    let mut load = Load::start(server.address, count, traffic)?;
    load.run_once_round()?;
    let bytes = (server.memory_bytes()? as f64 - before as f64) / count as f64;
    Ok(vec![("bytes".to_owned(), bytes)])
}
