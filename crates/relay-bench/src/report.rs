//! What a run came to, for programs (as JSON) and for people. Next: `run.rs`.

use std::fmt;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::workload::{Pace, Workload};

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

impl fmt::Display for Report {
    /// For people, on a few lines.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { workload, .. } = self;
        let Workload { rooms, members, senders, text_bytes, .. } = workload;
        writeln!(f, "{rooms} rooms x {members} members, {senders} sending in each, {text_bytes} bytes a message")?;
        match workload.pace {
            Pace::Window(1) => writeln!(f, "one at a time: each sender waits for its message before it sends the next")?,
            Pace::Window(window) => writeln!(f, "pipelined: each sender keeps up to {window} messages under way")?,
            Pace::Rate(rate) => {
                writeln!(f, "{rate} messages a second were due, whatever came back; latency counts from when each was due")?
            }
        }
        writeln!(f)?;
        writeln!(f, "{:>14} publishes/s   {:>12} in all", grouped(self.publishes_per_second as u64), grouped(self.publishes))?;
        if self.deliveries > 0 {
            writeln!(f, "{:>14} deliveries/s  {:>12} in all", grouped(self.deliveries_per_second as u64), grouped(self.deliveries))?;
        }
        let Latency { p50, p90, p99, p99_9, max } = self.latency_us;
        let latency = [("p50", p50), ("p90", p90), ("p99", p99), ("p99.9", p99_9), ("max", max)];
        let latency = latency.map(|(name, us)| format!("{name} {}", time(us))).join("   ");
        writeln!(f, "latency: {latency}")?;
        writeln!(f, "{:.2} s, of which this process computed {:.2} s", self.elapsed_seconds, self.cpu_seconds)?;
        if workload.idle > 0 {
            writeln!(f, "{} idle members were there", workload.idle)?;
        }
        if let (1.., Some(cut)) = (workload.slow, self.slow_cut) {
            writeln!(f, "of {} members that did not read, the server has cut {cut}", workload.slow)?;
        }
        match self.is_interrupted {
            true => writeln!(f, "interrupted: what was under way is not counted"),
            false => writeln!(f, "each message came once and in order, at every member"),
        }
    }
}

/// A number with its digits in groups of three.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// A time in the unit that makes it easy to read.
fn time(us: f64) -> String {
    match us {
        ..1_000.0 => format!("{us:.0} us"),
        ..1_000_000.0 => format!("{:.2} ms", us / 1e3),
        _ => format!("{:.2} s", us / 1e6),
    }
}
