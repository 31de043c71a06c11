//! One run of everything that was asked for: rounds of programs of cases, in each of which the contenders take turns.
//!
//! Next: `summary.rs`.

use std::time::Duration;

use bench::{Results, rounds};
use clap::ValueEnum;
use relay_bench::{Length, Report, Workload};

use crate::cases::{self, Shape};
use crate::contender::{Contender, WHO_PASS_ON, WHO_STORE};
use crate::executables::Executables;
use crate::failure::Outcome;
use crate::load;
use crate::server::Server;

/// What can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Program {
    /// Messages that are passed on.
    FanOut,
    /// Messages that are stored and acknowledged, as fast as it goes and at half of Redis' own load.
    Durable,
    /// The same messages in 1 to 10,000 rooms.
    Rooms,
    /// What a connection costs that does nothing.
    Idle,
    /// What one member who does not read costs the others.
    Slow,
}

/// The run, and what it has come to.
pub(crate) struct Session {
    pub(crate) executables: Executables,
    pub(crate) results: Results,
    /// How long each sample sends.
    milliseconds: u64,
    /// Half of what Redis did first with `appendfsync always`: the same rate for everybody.
    half_load: Option<u64>,
}

impl Session {
    pub(crate) fn new(executables: Executables, results: Results, milliseconds: u64) -> Session {
        Session { executables, results, milliseconds, half_load: None }
    }

    /// One round: everybody once in each case.
    pub(crate) fn round(&mut self, round: usize, programs: &[Program]) -> Outcome<()> {
        for program in programs {
            match program {
                Program::FanOut => self.shapes(round, "fan-out", &cases::FAN_OUT, &WHO_PASS_ON)?,
                Program::Durable => {
                    self.shapes(round, "durable", &cases::DURABLE, &WHO_STORE)?;
                    self.half_load(round)?;
                }
                Program::Rooms => self.shapes(round, "rooms", &cases::ROOMS, &WHO_PASS_ON)?,
                Program::Idle => self.idle(round)?,
                Program::Slow => self.slow(round)?,
            }
        }
        Ok(())
    }

    fn shapes(&mut self, round: usize, program: &str, shapes: &[Shape], who: &[Contender]) -> Outcome<()> {
        for shape in shapes {
            for contender in rounds::order(round, who) {
                self.sample(program, shape.case, *contender, shape.closed())?;
            }
        }
        Ok(())
    }

    /// At half of what Redis can do, everybody has time: what is compared is how long a message takes. JetStream cannot do half of that.
    fn half_load(&mut self, round: usize) -> Outcome<()> {
        let redis = self.results.get("durable", cases::PIPELINED.case, Contender::RedisAlways.name(), PUBLISHES);
        let measured = redis.map_or(0.0, bench::Measurement::median);
        let rate = *self.half_load.get_or_insert((measured / 2.0).max(1.0) as u64);
        for contender in rounds::order(round, &[Contender::Relay, Contender::Floor, Contender::RedisAlways]) {
            self.sample("durable", "10 x 1, half of Redis' rate", *contender, cases::PIPELINED.open(rate))?;
        }
        Ok(())
    }

    fn slow(&mut self, round: usize) -> Outcome<()> {
        for (case, slow) in cases::SLOW_CASES {
            // The floor has no bound, so it would keep everything.
            for contender in rounds::order(round, &[Contender::Relay, Contender::Nats, Contender::Redis]) {
                let workload = Workload { slow, ..cases::SLOW.open(cases::SLOW_RATE) };
                self.sample("slow reader", case, *contender, workload)?;
            }
        }
        Ok(())
    }

    fn idle(&mut self, round: usize) -> Outcome<()> {
        for (case, count) in cases::IDLE {
            for contender in rounds::order(round, &WHO_PASS_ON) {
                eprintln!("idle, {case}: {}", contender.name());
                let server = Server::start(*contender, &self.executables)?;
                let before = server.memory()?;
                let connections = load::join_idle(*contender, &server, count)?;
                server.rest()?;
                let after = server.memory()?;
                let each = |before: u64, after: u64| after.saturating_sub(before) as f64 / connections.len() as f64;
                let name = contender.name();
                self.results.add("idle", case, name, "bytes", each(before.resident, after.resident));
                self.results.add("idle", case, name, "anonymous bytes", each(before.anonymous, after.anonymous));
            }
        }
        Ok(())
    }

    fn sample(&mut self, program: &str, case: &str, contender: Contender, workload: Workload) -> Outcome<()> {
        eprintln!("{program}, {case}: {}", contender.name());
        let server = Server::start(contender, &self.executables)?;
        let run = |milliseconds: u64, slow| {
            let workload = Workload { length: Length::Milliseconds(milliseconds), slow, ..workload.clone() };
            load::run(contender, &server, workload).map_err(|failure| failure.of(format!("{program}, {case}")))
        };
        // Once, so that memory and files are there as they will be for all of its life.
        run(self.milliseconds.div_ceil(WARM_UP), 0)?;
        server.rest()?;
        let report = run(self.milliseconds, workload.slow)?;
        let settling = server.rest()?;
        for (figure, value) in figures(&report, settling) {
            self.results.add(program, case, contender.name(), figure, value);
        }
        Ok(())
    }
}

/// Everything that a report says, as results call it, and what the server still had to do when nothing was asked of it any more.
fn figures(report: &Report, settling: Duration) -> Vec<(&'static str, f64)> {
    let server_cpu_seconds = report.server_cpu_seconds.unwrap_or_default();
    let is_fanned_out = report.deliveries > 0;
    let operations = if is_fanned_out { report.deliveries } else { report.publishes };
    let each = |cpu_seconds: f64| cpu_seconds * 1e9 / operations.max(1) as f64;
    let share = |cpu_seconds: f64| 100.0 * cpu_seconds / report.elapsed_seconds;
    let mut figures = vec![
        (PUBLISHES, report.publishes_per_second),
        // For each delivery, or for each publish where nothing is passed on.
        (CPU, each(server_cpu_seconds)),
        (SETTLED_CPU, each(server_cpu_seconds + settling.as_secs_f64())),
        ("p50 us", report.latency_us.p50),
        (P99, report.latency_us.p99),
        ("p99.9 us", report.latency_us.p99_9),
        // Whichever of the two is near 100 was the bottleneck.
        ("server cpu %", share(server_cpu_seconds)),
        ("load cpu %", share(report.cpu_seconds)),
    ];
    if is_fanned_out {
        figures.push(("deliveries/s", report.deliveries_per_second));
    }
    figures
}

/// What part of a sample is run before it.
const WARM_UP: u64 = 4;

pub(crate) const PUBLISHES: &str = "publishes/s";
pub(crate) const CPU: &str = "cpu ns";
pub(crate) const SETTLED_CPU: &str = "settled cpu ns";
pub(crate) const P99: &str = "p99 us";
