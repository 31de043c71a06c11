//! A run from outside: connects the members, keeps the time, and says what it came to. Next: `lib.rs`.

use std::fmt;
use std::future::pending;
use std::rc::Rc;
use std::time::Duration;

use miniloop::net::TcpStream;
use miniloop::promise;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::codec::Codec;
use crate::error::BenchError;
use crate::limits::{DESCRIPTORS_RESERVED, STALL_MAX};
use crate::member::{Member, Place};
use crate::report::Report;
use crate::run::Run;
use crate::workload::{Length, Workload};

/// Runs a workload to its end, on a loop of its own. It blocks this thread, which is best the only busy one of its core: what the members
/// cannot keep up with looks like latency of the server.
///
/// # Errors
/// The workload cannot be, nobody listens, or the first thing that the server did wrong.
pub fn run<C: Codec>(codec: C, workload: Workload) -> Result<Report, BenchError> {
    let bench = Bench::new(codec, workload)?;
    miniloop::run(bench.run())?
}

/// A run on the loop of the caller, who can look at it meanwhile.
pub struct Bench<C> {
    run: Rc<Run<C>>,
}

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// What is being done: "joining", "sending".
    pub what: &'static str,
    /// Of those below.
    pub done: u64,
    /// Members, milliseconds or messages.
    pub total: u64,
}

impl<C: Codec> Bench<C> {
    /// Prepares a run. Nothing is connected yet.
    ///
    /// # Errors
    /// The workload cannot be, or is more than this process may open connections. Its limit of open files is raised as far as it goes.
    pub fn new(codec: C, workload: Workload) -> Result<Bench<C>, BenchError> {
        workload.check()?;
        if workload.slow > 0 && !C::IS_FANNED_OUT {
            return Err(BenchError::Workload("slow members need messages that they could read: this server passes none on".to_owned()));
        }
        check_descriptors(workload.everybody() as u64)?;
        Ok(Bench { run: Rc::new(Run::new(codec, workload)) })
    }

    /// Has the report say how much processor time the server has used from the start to the end, which `clock` says: how much it has used
    /// so far. So joining and leaving are not in it.
    #[must_use]
    pub fn with_server_clock(self, clock: impl Fn() -> Duration + 'static) -> Bench<C> {
        self.run.set_server_clock(clock);
        self
    }

    /// Runs it to its end. Once only.
    ///
    /// # Errors
    /// Nobody listens, or the first thing that the server did wrong.
    ///
    /// # Panics
    /// Outside a loop.
    ///
    /// # Cancellation
    /// Dropping it closes all connections. [`report`](Bench::report) says what it came to until then.
    pub async fn run(&self) -> Result<Report, BenchError> {
        let (resolver, end) = promise();
        self.run.end_with(resolver);
        // Dropped, and so ended, with this call.
        let _watch = miniloop::spawn(fail_when_stalled(self.run.clone()));
        let _members = miniloop::spawn(connect_all(self.run.clone()));
        end.await?;
        Ok(self.run.report())
    }

    /// How far it is.
    ///
    /// # Panics
    /// Outside a loop.
    pub fn progress(&self) -> Progress {
        let (what, done, total) = self.run.progress();
        Progress { what, done, total }
    }

    /// What it has come to so far.
    ///
    /// # Panics
    /// Outside a loop.
    pub fn report(&self) -> Report {
        self.run.report()
    }
}

impl<C> fmt::Debug for Bench<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bench").finish_non_exhaustive()
    }
}

/// Raises the soft limit of open files to the hard one, and compares it with what is needed.
fn check_descriptors(connections: u64) -> Result<(), BenchError> {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    // Where it may not be raised, the old limit is what there is.
    let limit = if setrlimit(Resource::Nofile, raised).is_ok() { limit.maximum } else { limit.current };
    match limit {
        Some(limit) if limit < connections + DESCRIPTORS_RESERVED => Err(BenchError::Workload(format!(
            "{connections} connections are needed, and this process may open {limit} files: allow {} with `ulimit -n`",
            connections + DESCRIPTORS_RESERVED
        ))),
        _ => Ok(()),
    }
}

/// Connects one member after the other, so that the listener's queue is never full, and keeps them.
async fn connect_all<C: Codec>(run: Rc<Run<C>>) {
    let mut members = Vec::new();
    for place in Place::all(&run) {
        match connect(&run, place).await {
            Ok(member) => {
                let run = run.clone();
                members.push(miniloop::spawn(async move { run.left(member.await) }));
            }
            Err(error) => return run.fail(error),
        }
    }
    keep_time(&run).await;
    pending().await
}

async fn connect<C: Codec>(run: &Rc<Run<C>>, place: Place) -> Result<Member<C>, BenchError> {
    let address = run.workload.address;
    let stream = TcpStream::connect(address).await.map_err(|error| BenchError::Connect { address, error })?;
    Member::new(run.clone(), place, stream)
}

/// Says what is due, or when the time is up, once all have joined.
async fn keep_time<C: Codec>(run: &Run<C>) {
    let started_at = run.start().await;
    match (run.schedule, run.workload.length) {
        (Some(schedule), _) => loop {
            let due = schedule.due((miniloop::now() - started_at).as_nanos() as u64);
            run.set_due(due);
            if due == schedule.total {
                return run.end_time();
            }
            miniloop::sleep_until(started_at + Duration::from_nanos(schedule.due_at_ns(due))).await;
        },
        (None, Length::Milliseconds(milliseconds)) => {
            miniloop::sleep_until(started_at + Duration::from_millis(milliseconds)).await;
            run.end_time();
        }
        (None, Length::Messages(_)) => {}
    }
}

async fn fail_when_stalled<C: Codec>(run: Rc<Run<C>>) {
    let mut signs = run.signs_of_life();
    loop {
        miniloop::sleep(STALL_MAX).await;
        let before = std::mem::replace(&mut signs, run.signs_of_life());
        if before == signs {
            run.fail(run.stall());
        }
    }
}
