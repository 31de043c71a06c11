//! Which figures belong side by side, in which order, and how they are written.
//!
//! Next: `bars.rs`.

use bench::{Measurement, Results};

use crate::catalogue::CONTENDERS;

/// What everybody who took part has for one figure of one case, in the order of [`CONTENDERS`], those that are not listed last.
pub(crate) fn side_by_side<'a>(run: &'a Results, program: &str, case: &str, figure: &str) -> Vec<&'a Measurement> {
    let wanted = |m: &&Measurement| (&*m.program, &*m.case, &*m.figure) == (program, case, figure) && !m.rounds.is_empty();
    let mut found: Vec<&Measurement> = run.measurements.iter().filter(wanted).collect();
    found.sort_by_key(|measurement| CONTENDERS.iter().position(|(name, ..)| *name == measurement.contender).unwrap_or(CONTENDERS.len()));
    found
}

/// A value with three significant digits, its thousands set apart: nobody has to compare M with k.
pub(crate) fn value(value: f64) -> String {
    let integer_digits = if value.abs() < 1.0 { 1 } else { value.abs().log10().floor() as i32 + 1 };
    if integer_digits < 3 {
        let decimals = (3 - integer_digits) as usize;
        return format!("{value:.decimals$}");
    }
    let unit = 10_f64.powi(integer_digits - 3);
    thousands((value / unit).round() * unit)
}

/// The same with its unit: `2,980,000/s`, `41.3 ns`.
pub(crate) fn value_with_unit(number: f64, figure: &str) -> String {
    let number = value(number);
    match unit(figure) {
        "us" => format!("{number} µs"),
        unit if unit.ends_with("/s") => format!("{number}/s"),
        unit => format!("{number} {unit}"),
    }
}

/// How many times `ours` a median is: none where there is nothing to divide by.
pub(crate) fn ratio(measurement: &Measurement, ours: Option<&Measurement>) -> Option<String> {
    let ours = ours?.median();
    let ratio = measurement.median() / ours;
    let decimals = match ratio {
        ..0.0995 => 3,
        ..9.995 => 2,
        _ => 0,
    };
    (ours > 0.0).then(|| format!("{ratio:.decimals$}×"))
}

/// Rates are wished high, all else low.
pub(crate) fn more_is_better(figure: &str) -> bool {
    unit(figure).ends_with("/s")
}

/// All digits of a number, its thousands set apart where it is an integer.
pub(crate) fn thousands(number: f64) -> String {
    let digits = number.to_string();
    if number.fract() != 0.0 {
        return digits;
    }
    let mut written = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) && !written.ends_with('-') {
            written.push(',');
        }
        written.push(digit);
    }
    written
}

/// The last word of a figure's name.
fn unit(figure: &str) -> &str {
    figure.rsplit(' ').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_three_digits_and_a_unit() {
        #[track_caller]
        fn check(number: f64, figure: &str, expected: &str) {
            assert_eq!(value_with_unit(number, figure), expected);
        }
        check(41.27, "ns", "41.3 ns");
        check(4.0, "p99 us", "4.00 µs");
        check(0.1234, "cpu ns", "0.12 ns");
        check(0.0, "ns", "0.00 ns");
        check(99.96, "ns", "100.0 ns");
        check(327.4, "cpu ns", "327 ns");
        check(999.6, "ns", "1,000 ns");
        check(3_589.0, "cpu ns", "3,590 ns");
        check(2_981_234.0, "publishes/s", "2,980,000/s");
        check(1_072.0, "bytes", "1,070 bytes");
    }

    #[test]
    fn contenders_come_in_the_order_of_the_catalogue_and_strangers_last() {
        let mut run = Results::begin("", Default::default());
        for contender in ["stranger", "tokio", "miniloop"] {
            run.add("yield", "", contender, "ns", 1.0);
            run.add("yield", "", contender, "cpu ns", 1.0);
            run.add("echo", "", contender, "ns", 1.0);
        }
        let contenders = side_by_side(&run, "yield", "", "ns").into_iter().map(|measurement| &*measurement.contender);
        assert_eq!(contenders.collect::<Vec<_>>(), ["miniloop", "tokio", "stranger"]);
    }
}
