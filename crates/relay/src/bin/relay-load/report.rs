//! What a run came to, for programs and for people.

use std::time::Duration;

use crate::run::Run;

pub(crate) struct Report<'a> {
    run: &'a Run,
    elapsed: Duration,
    cpu: Duration,
}

impl Report<'_> {
    pub(crate) fn of(run: &Run) -> Report<'_> {
        let (start, end) = run.span();
        Report { run, elapsed: end.at - start.at, cpu: end.cpu - start.cpu }
    }

    /// One line of JSON.
    pub(crate) fn json(&self) -> String {
        let options = &self.run.options;
        let latency = LATENCIES.map(|(name, per_mille)| format!(r#""{name}":{:.1}"#, self.latency_us(per_mille))).join(",");
        let fields = [
            ("rooms", options.rooms.to_string()),
            ("members", options.members.to_string()),
            ("senders", options.senders.to_string()),
            ("window", options.window.to_string()),
            ("size_bytes", options.size.to_string()),
            ("seed", options.seed.to_string()),
            ("publishes", self.run.published().to_string()),
            ("deliveries", self.run.delivered().to_string()),
            ("publishes_per_s", format!("{:.0}", self.per_second(self.run.published()))),
            ("deliveries_per_s", format!("{:.0}", self.per_second(self.run.delivered()))),
            ("elapsed_s", format!("{:.6}", self.elapsed.as_secs_f64())),
            ("cpu_s", format!("{:.6}", self.cpu.as_secs_f64())),
            ("latency_us", format!("{{{latency}}}")),
        ];
        format!("{{{}}}", fields.map(|(name, value)| format!(r#""{name}":{value}"#)).join(","))
    }

    /// One line for people.
    pub(crate) fn text(&self) -> String {
        let options = &self.run.options;
        let latency = LATENCIES.map(|(name, per_mille)| format!("{name} {:.0}", self.latency_us(per_mille))).join(", ");
        format!(
            "{} x {}, {} sending, window {}, {} bytes: {:.0} publishes/s, {:.0} deliveries/s, all once and in order; \
             latency in us: {latency}; {:.2} s, of it {:.2} s of this process' CPU",
            options.rooms,
            options.members,
            options.senders,
            options.window,
            options.size,
            self.per_second(self.run.published()),
            self.per_second(self.run.delivered()),
            self.elapsed.as_secs_f64(),
            self.cpu.as_secs_f64(),
        )
    }

    fn per_second(&self, count: u64) -> f64 {
        if self.elapsed.is_zero() { 0.0 } else { count as f64 / self.elapsed.as_secs_f64() }
    }

    fn latency_us(&self, per_mille: u64) -> f64 {
        let latency = self.run.latency.borrow();
        let ns = if per_mille == 1_000 { latency.max() } else { latency.per_mille(per_mille) };
        ns as f64 / 1e3
    }
}

/// From the write of a message to the read that brings it back to its sender.
const LATENCIES: [(&str, u64); 5] = [("p50", 500), ("p90", 900), ("p99", 990), ("p99.9", 999), ("max", 1_000)];
