//! How long a sample takes, and how a steady one is got: repeat with more and more until it is long enough, throw that away, measure.
//!
//! It must know neither programs nor contenders. Next: `programs/mod.rs`, then one program after the other.

use std::io;
use std::time::{Duration, Instant};

use bench::processor;

/// What was measured, each with its unit, in the order in which it is shown.
pub(crate) type Figures = Vec<(String, f64)>;

/// How much is done for one sample.
#[derive(Clone, Copy)]
pub(crate) enum Effort {
    /// Long enough to be steady.
    Full,
    /// As little as shows that the program works; the programs check more than they do while they are measured.
    Quick,
}

impl Effort {
    /// How long the measured part of a sample should take.
    pub(crate) fn sample(self) -> Duration {
        Duration::from_millis(match self {
            Effort::Full => 100,
            Effort::Quick => 1,
        })
    }

    /// The same where two processes talk to each other.
    pub(crate) fn conversation(self) -> Duration {
        Duration::from_millis(match self {
            Effort::Full => 1_000,
            Effort::Quick => 10,
        })
    }

    /// How many take part, where that many do when it counts.
    pub(crate) fn crowd(self, full: usize) -> usize {
        match self {
            Effort::Full => full,
            Effort::Quick => full.min(100),
        }
    }

    /// Whether there is time to look at things that would be seen in the figures.
    pub(crate) fn checks_everything(self) -> bool {
        matches!(self, Effort::Quick)
    }
}

/// What a stretch of time has brought.
#[derive(Clone, Copy, Default)]
pub(crate) struct Stretch {
    operations: u64,
    wall: Duration,
    processor: Duration,
}

impl Stretch {
    /// In which so much was done.
    pub(crate) fn of(self, operations: u64) -> Stretch {
        Stretch { operations, ..self }
    }

    pub(crate) fn wall(&self) -> Duration {
        self.wall
    }

    pub(crate) fn add(&mut self, other: Stretch) {
        self.operations += other.operations;
        self.wall += other.wall;
        self.processor += other.processor;
    }

    pub(crate) fn wall_ns(&self) -> (String, f64) {
        ("ns".to_owned(), self.wall.as_nanos() as f64 / self.operations as f64)
    }

    /// All threads of this process: a contender may have started some.
    pub(crate) fn processor_ns(&self) -> (String, f64) {
        ("cpu ns".to_owned(), self.processor.as_nanos() as f64 / self.operations as f64)
    }
}

/// A stretch that has begun.
pub(crate) struct Stopwatch {
    wall: Instant,
    processor: Duration,
}

impl Stopwatch {
    pub(crate) fn start() -> Stopwatch {
        let processor = used();
        Stopwatch { wall: Instant::now(), processor }
    }

    pub(crate) fn stop(&self) -> Stretch {
        let wall = self.wall.elapsed();
        Stretch { operations: 0, wall, processor: used().saturating_sub(self.processor) }
    }
}

fn used() -> Duration {
    processor::used_here().unwrap_or_else(|error: io::Error| panic!("the kernel keeps the processor time of each process: {error}"))
}

/// Calls `run` with a number of repetitions: first few and more each time, which warms everything up, then as many as fill a sample.
pub(crate) async fn steady(effort: Effort, mut run: impl AsyncFnMut(u64) -> Stretch) -> Figures {
    let sample = effort.sample();
    let mut repetitions = 1;
    let warm = loop {
        let stretch = run(repetitions).await;
        if stretch.wall >= sample / 4 {
            break stretch;
        }
        // Not more than doubled, since the first of all repetitions is no measure.
        repetitions *= 2;
    };
    let scale = sample.as_secs_f64() / warm.wall.as_secs_f64();
    let stretch = run(((repetitions as f64 * scale) as u64).max(1)).await;
    vec![stretch.wall_ns(), stretch.processor_ns()]
}
