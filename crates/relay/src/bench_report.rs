//! What `relay bench` says to a person: how much, how long it took, and under what conditions. Next: `bench.rs`.

use std::fmt;

use relay_bench::{Latency, Pace, Report, Workload};

/// A report in words.
pub(crate) struct InWords<'a>(pub(crate) &'a Report);

impl fmt::Display for InWords<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let InWords(report) = self;
        let Workload { rooms, members, senders, pace, text_bytes, idle, slow, .. } = report.workload;
        writeln!(f, "{rooms} rooms x {members} members, {senders} of them sending, {text_bytes} bytes a message")?;
        match pace {
            Pace::Window(1) => writeln!(f, "not pipelined: each sender waits for its message before it sends the next")?,
            Pace::Window(window) => writeln!(f, "pipelined: each sender has up to {window} messages under way")?,
            Pace::Rate(rate) => {
                writeln!(f, "open loop: {} messages a second were due, and latency counts from when each was due", grouped(rate))?;
            }
        }
        writeln!(f)?;
        let totals = [
            ("publishes/s made durable", report.publishes_per_second, report.publishes),
            ("deliveries/s", report.deliveries_per_second, report.deliveries),
        ];
        for (what, per_second, total) in totals {
            writeln!(f, "{:>13} {what:<24} {:>13} in all", grouped(per_second as u64), grouped(total))?;
        }
        let Latency { p50, p90, p99, p99_9, max } = report.latency_us;
        let latency = [("p50", p50), ("p90", p90), ("p99", p99), ("p99.9", p99_9), ("max", max)];
        let latency = latency.map(|(name, us)| format!("{name} {}", time(us))).join("   ");
        writeln!(f, "\nlatency of a message, until its sender sees it: {latency}")?;
        if idle > 0 {
            writeln!(f, "{idle} idle members were there")?;
        }
        if let (1.., Some(cut)) = (slow, report.slow_cut) {
            writeln!(f, "of {slow} members that did not read, the server has cut {cut}")?;
        }
        match report.is_interrupted {
            true => writeln!(f, "interrupted: what was under way is not counted, and whether it would have come is not known")?,
            false => writeln!(f, "every member saw each message once and in the same order")?,
        }
        let (elapsed, cpu) = (report.elapsed_seconds, report.cpu_seconds);
        writeln!(f, "{elapsed:.2} s, of which this program computed {cpu:.2} s: where that is nearly all, it was the bottleneck")
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
        ..1e3 => format!("{us:.0} us"),
        ..1e6 => format!("{:.2} ms", us / 1e3),
        _ => format!("{:.2} s", us / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_times_are_easy_to_read() {
        let numbers = [(0, "0"), (999, "999"), (1_000, "1,000"), (12_345_678, "12,345,678")];
        numbers.into_iter().for_each(|(number, expected)| assert_eq!(grouped(number), expected));
        let times = [(0.4, "0 us"), (999.0, "999 us"), (1_234.5, "1.23 ms"), (2_000_000.0, "2.00 s")];
        times.into_iter().for_each(|(us, expected)| assert_eq!(time(us), expected));
    }

    #[track_caller]
    fn check(report: Report, expected: &[&str], unexpected: &[&str]) {
        let said = InWords(&report).to_string();
        for text in expected {
            assert!(said.contains(text), "no `{text}` in {said}");
        }
        for text in unexpected {
            assert!(!said.contains(text), "`{text}` in {said}");
        }
    }

    #[test]
    fn a_report_states_the_pipelining_and_whether_everything_was_seen() {
        let report = |pace, is_interrupted: bool| Report {
            workload: Workload { pace, slow: 3, ..Workload::default() },
            publishes: 12_000,
            deliveries: 120_000,
            publishes_per_second: 6_000.4,
            deliveries_per_second: 60_004.0,
            elapsed_seconds: 2.0,
            cpu_seconds: 0.5,
            server_cpu_seconds: None,
            latency_us: Latency { p99_9: 1_500.0, ..Latency::default() },
            slow_cut: (!is_interrupted).then_some(2),
            is_interrupted,
        };
        let whole =
            ["6,000 publishes/s made durable", "120,000 in all", "p99.9 1.50 ms", "of 3 members", "has cut 2", "once and in the same"];
        check(report(Pace::Window(16), false), &whole, &["interrupted"]);
        check(report(Pace::Window(16), false), &["pipelined: each sender has up to 16"], &[]);
        check(report(Pace::Window(1), false), &["not pipelined"], &[]);
        check(
            report(Pace::Rate(5_000), true),
            &["open loop: 5,000 messages a second", "interrupted"],
            &["once and in the same", "of 3 members"],
        );
    }
}
