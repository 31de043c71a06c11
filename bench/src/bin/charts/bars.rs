//! A panel of bars: the median as length, the spread as a thin line over its end, the figure behind it.
//!
//! It costs one row for each contender. Next: `lines.rs`.

use bench::Measurement;

use crate::figures;
use crate::picture::{Picture, Point, color_class};

const ROW_HEIGHT: f64 = 20.0;
const BAR_HEIGHT: f64 = 14.0;
/// For the figure behind the longest bar, and for the ratio at the right edge.
const FIGURES_WIDTH: f64 = 132.0;
/// A disturbed round may be many times as long as all others: what is longer than this, measured in the longest bar, is cut, and an
/// arrowhead says so. The table has all of it.
const SPREAD_MAX: f64 = 1.15;

pub(crate) fn height(rows: usize) -> f64 {
    rows as f64 * ROW_HEIGHT
}

/// Draws what is [side by side](figures::side_by_side) below and to the right of a corner.
pub(crate) fn draw(picture: &mut Picture, (left, top): Point, width: f64, names_width: f64, ours: &str, shown: &[&Measurement]) {
    let longest = shown.iter().map(|measurement| measurement.median()).fold(f64::MIN_POSITIVE, f64::max);
    let start = left + names_width;
    let length = |value: f64| value / longest * (width - names_width - FIGURES_WIDTH) / SPREAD_MAX;
    let reference = shown.iter().find(|measurement| measurement.contender == ours).copied();

    for (row, measurement) in shown.iter().enumerate() {
        let middle = top + (row as f64 + 0.5) * ROW_HEIGHT;
        let baseline = middle + 4.5;
        let color = color_class(&measurement.contender);
        let weight = if measurement.contender == ours { "plain bold" } else { "plain" };
        picture.words(&format!("{weight} end"), (start - 8.0, baseline), &measurement.contender);

        let median = measurement.median();
        picture.rectangle(&color, (start, middle - BAR_HEIGHT / 2.0), (length(median), BAR_HEIGHT));
        let (least, greatest) = measurement.spread();
        let longest_drawn = longest * SPREAD_MAX;
        let (from, to) = (start + length(least), start + length(greatest.min(longest_drawn)));
        picture.line("plain", (from, middle), (to, middle));
        for (end, cut) in [(from, false), (to, greatest > longest_drawn)] {
            match cut {
                false => picture.line("plain", (end, middle - 3.0), (end, middle + 3.0)),
                true => picture.path("plain", &[(end - 3.0, middle - 3.0), (end, middle), (end - 3.0, middle + 3.0)]),
            }
        }

        let figure = figures::value_with_unit(median, &measurement.figure);
        picture.words(weight, (to.max(start + length(median)) + 7.0, baseline), &figure);
        if let Some(ratio) = figures::ratio(measurement, reference) {
            picture.words("muted small end", (left + width, baseline), &ratio);
        }
    }
}
