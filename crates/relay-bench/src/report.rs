//! What a run came to. Next: `run.rs`.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::workload::Workload;

/// What was done and how long it took. As JSON it can be read back, so that a process can report to another one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// What was asked for.
    pub workload: Workload,
    /// Messages that the server has confirmed to their senders: shown to them, or acknowledged.
    pub publishes: u64,
    /// Messages that came to the members of the rooms, the slow ones not counted, each checked to be the one that had to come.
    pub deliveries: u64,
    /// Publishes, by the time they took.
    pub publishes_per_second: f64,
    /// Deliveries, by the time they took.
    pub deliveries_per_second: f64,
    /// From the moment at which all had joined to the one at which the last member had everything.
    pub elapsed_seconds: f64,
    /// Of that, the processor time of this process, all threads.
    pub cpu_seconds: f64,
    /// The same of the server, where it is known: see [`Bench::with_server_clock`](crate::Bench::with_server_clock).
    pub server_cpu_seconds: Option<f64>,
    /// How long messages took to be confirmed.
    pub latency_us: Latency,
    /// How many slow members the server has cut. `None`: the run was interrupted before they were looked at.
    pub slow_cut: Option<usize>,
    /// It was ended early: what was under way is not in it, and nobody knows whether it would have come.
    pub is_interrupted: bool,
}

/// How long messages took, in microseconds, each right to a thousandth: so many of a hundred took no longer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Latency {
    pub p50: f64,
    pub p90: f64,
    pub p99: f64,
    pub p99_9: f64,
    pub max: f64,
}

impl Latency {
    pub(crate) fn of(latency_ns: &Histogram<u64>) -> Latency {
        let us = |ns: u64| ns as f64 / 1e3;
        let quantile = |quantile| us(latency_ns.value_at_quantile(quantile));
        Latency { p50: quantile(0.5), p90: quantile(0.9), p99: quantile(0.99), p99_9: quantile(0.999), max: us(latency_ns.max()) }
    }
}
