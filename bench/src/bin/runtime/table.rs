//! The figures of a run, for people: a row for each contender, beside the best of the others. Next: `main.rs`.

use std::fmt::Write;

use bench::{Measurement, Results};

/// Everything that was measured, in its order: medians, with the least and the greatest value, and how many times the best of the
/// others that is (the floor is no other).
pub(crate) fn draw(results: &Results) -> String {
    let mut text = String::new();
    let mut drawn: Vec<[&str; 3]> = Vec::new();
    for first in &results.measurements {
        let kind = kind(first);
        if drawn.contains(&kind) {
            continue;
        }
        if drawn.last().is_none_or(|last| last[..2] != kind[..2]) {
            let [program, case, _] = kind;
            let separator = if case.is_empty() { "" } else { ": " };
            let _ = writeln!(text, "\n{program}{separator}{case}");
        }
        drawn.push(kind);
        let of_kind: Vec<&Measurement> = results.measurements.iter().filter(|measurement| self::kind(measurement) == kind).collect();
        for measurement in &of_kind {
            let others = of_kind.iter().filter(|other| other.contender != measurement.contender && other.contender != "floor");
            let best = others.map(|other| other.median()).min_by(f64::total_cmp).filter(|best| *best > 0.0);
            let ratio = best.map_or(String::new(), |best| format!("{:.2} x", measurement.median() / best));
            let (least, greatest) = measurement.spread();
            let [median, least, greatest] = [measurement.median(), least, greatest].map(shown);
            let (figure, contender, spread) = (&first.figure, &measurement.contender, format!("{least} .. {greatest}"));
            let _ = writeln!(text, "  {figure:<12}{contender:<16}{median:>10}   {spread:<24}{ratio:>8}");
        }
    }
    text
}

fn kind(measurement: &Measurement) -> [&str; 3] {
    [&measurement.program, &measurement.case, &measurement.figure]
}

fn shown(value: f64) -> String {
    if value < 100.0 { format!("{value:.1}") } else { format!("{value:.0}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn each_is_compared_with_the_best_of_the_others_and_nobody_with_the_floor() {
        let mut run = Results::begin("", BTreeMap::new());
        for (contender, value) in [("floor", 10.0), ("a", 40.0), ("b", 20.0), ("c", 200.0)] {
            run.add("echo", "1 deep", contender, "ns", value);
            run.add("echo", "1 deep", contender, "cpu ns", value);
        }
        let text = draw(&run);
        let ratios: Vec<&str> = text.lines().filter_map(|line| line.trim_start().strip_prefix("ns ")?.trim().split("  ").last()).collect();
        assert_eq!(ratios.iter().map(|ratio| ratio.trim()).collect::<Vec<_>>(), ["0.50 x", "2.00 x", "0.50 x", "10.00 x"], "{text}");
        assert_eq!(text.matches("echo: 1 deep").count(), 1, "{text}");
    }
}
