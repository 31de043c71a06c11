//! The results as a person wants to see them first: medians with their spread, and what they are beside the floor and beside the best of
//! the others. Next: `main.rs`.

use std::collections::BTreeSet;
use std::fmt::Write;

use bench::{Measurement, Results};

use crate::contender::Contender;
use crate::session::{CPU, P99, PUBLISHES, SETTLED_CPU};

/// One line for each contender and figure that says who is better, case by case.
pub(crate) fn summary(results: &Results) -> String {
    let mut text = String::new();
    let shown = |measurement: &&Measurement| FIGURES.contains(&&*measurement.figure);
    let mut titles: Vec<_> = results.measurements.iter().filter(shown).map(title).collect();
    let mut seen = BTreeSet::new();
    titles.retain(|title| seen.insert(*title));
    for (program, case, figure) in titles {
        let _ = writeln!(text, "\n{program}, {case}: {figure}");
        for measurement in results.measurements.iter().filter(|measurement| title(measurement) == (program, case, figure)) {
            let (least, greatest) = measurement.spread();
            let (median, name) = (measurement.median(), &measurement.contender);
            let _ = write!(text, "  {name:<24} {median:>14.1}  ({least:.1} .. {greatest:.1})");
            for (what, other) in [("the floor's", floors(results, measurement)), ("the best other's", best_other(results, measurement))] {
                if let Some(other) = other.filter(|other| *other > 0.0) {
                    let _ = write!(text, "  {:.2} x {what}", median / other);
                }
            }
            text.push('\n');
        }
    }
    text
}

fn title(measurement: &Measurement) -> (&str, &str, &str) {
    (&measurement.program, &measurement.case, &measurement.figure)
}

fn floors(results: &Results, of: &Measurement) -> Option<f64> {
    let floor = Contender::Floor.name();
    (of.contender != floor).then(|| results.get(&of.program, &of.case, floor, &of.figure)).flatten().map(Measurement::median)
}

/// The best median of those who are not from here, beside ours.
fn best_other(results: &Results, of: &Measurement) -> Option<f64> {
    let ours = [Contender::Relay.name(), Contender::Floor.name()];
    let is_other = |other: &&Measurement| title(other) == title(of) && !ours.contains(&&*other.contender);
    let medians = results.measurements.iter().filter(is_other).map(Measurement::median).filter(|_| of.contender == ours[0]);
    if of.figure == PUBLISHES { medians.max_by(f64::total_cmp) } else { medians.min_by(f64::total_cmp) }
}

const FIGURES: [&str; 5] = [PUBLISHES, CPU, SETTLED_CPU, P99, "anonymous bytes"];

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn relay_is_compared_with_the_floor_and_with_the_best_other() {
        let mut results = Results::begin("", BTreeMap::new());
        for (contender, rate, cpu_ns) in
            [("relay", 80.0, 20.0), ("durable floor", 100.0, 10.0), ("NATS", 40.0, 50.0), ("Redis", 20.0, 40.0)]
        {
            results.add("fan-out", "10 x 1", contender, PUBLISHES, rate);
            results.add("fan-out", "10 x 1", contender, CPU, cpu_ns);
        }
        let text = summary(&results);
        let relay: Vec<&str> = text.lines().filter(|line| line.starts_with("  relay")).collect();
        assert!(relay[0].ends_with("0.80 x the floor's  2.00 x the best other's"), "{text}");
        assert!(relay[1].ends_with("2.00 x the floor's  0.50 x the best other's"), "{text}");
        assert!(text.lines().any(|line| line.contains("NATS") && line.ends_with("0.40 x the floor's")), "{text}");
    }
}
