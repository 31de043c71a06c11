//! A panel of lines: a figure against a size, both axes logarithmic, so that the same ratio is the same distance everywhere.
//!
//! Names stand at the right end of their lines, kept apart. Next: `charts.rs`.

use bench::{Measurement, Results};

use crate::catalogue::{CONTENDERS, Lines};
use crate::figures;
use crate::picture::{Picture, Point, color_class};

const PLOT_HEIGHT: f64 = 210.0;
/// Below the plot: sizes, and what they count.
const AXIS_HEIGHT: f64 = 38.0;
/// Left of the plot: the values of its grid.
const VALUES_WIDTH: f64 = 52.0;
/// Names at the ends of lines are at least so far apart.
const NAMES_DISTANCE: f64 = 15.0;
/// What one letter of a size takes, a little more than it is wide.
const SIZE_LETTER_WIDTH: f64 = 7.0;

pub(crate) const HEIGHT: f64 = PLOT_HEIGHT + AXIS_HEIGHT;

/// One contender's way through the sizes: each with what was measured there.
pub(crate) struct Curve<'a> {
    contender: &'a str,
    points: Vec<(f64, &'a Measurement)>,
}

impl<'a> Curve<'a> {
    pub(crate) fn measurements(&self) -> impl Iterator<Item = &'a Measurement> {
        self.points.iter().map(|(_, measurement)| *measurement)
    }
}

/// The lines of a panel, in the order of the contenders. Sizes that a contender lacks are left out of its line.
pub(crate) fn curves<'a>(run: &'a Results, panel: &Lines) -> Vec<Curve<'a>> {
    let mut curves: Vec<Curve<'a>> = Vec::new();
    for (size, case) in panel.cases {
        for measurement in figures::side_by_side(run, panel.program, case, panel.figure) {
            match curves.iter_mut().find(|curve| curve.contender == measurement.contender) {
                Some(curve) => curve.points.push((*size, measurement)),
                None => curves.push(Curve { contender: &measurement.contender, points: vec![(*size, measurement)] }),
            }
        }
    }
    curves.sort_by_key(|curve| CONTENDERS.iter().position(|(name, ..)| *name == curve.contender).unwrap_or(CONTENDERS.len()));
    curves
}

/// Draws the lines below and to the right of a corner. There is at least one.
pub(crate) fn draw(
    picture: &mut Picture,
    (left, top): Point,
    width: f64,
    names_width: f64,
    ours: &str,
    panel: &Lines,
    curves: &[Curve<'_>],
) {
    let (plot_left, plot_right) = (left + VALUES_WIDTH, left + width - names_width);
    let sizes = panel.cases.iter().map(|(size, _)| *size);
    let across = Axis::around(sizes, plot_left + 10.0, plot_right - 6.0);
    let medians = curves.iter().flat_map(Curve::measurements).map(Measurement::median);
    let up = Axis::around(medians, top + PLOT_HEIGHT - 12.0, top + 12.0);
    let (bottom, inside) = (top + PLOT_HEIGHT, |y: f64| y.clamp(top, top + PLOT_HEIGHT));

    for value in up.ticks() {
        let y = up.place(value);
        picture.line("faint", (plot_left, y), (plot_right, y));
        picture.words("muted small end", (plot_left - 8.0, y + 4.0), &figures::thousands(value));
    }
    picture.line("muted", (plot_left, bottom), (plot_right, bottom));
    let mut room = f64::INFINITY;
    for size in panel.cases.iter().rev().map(|(size, _)| *size) {
        let x = across.place(size);
        picture.line("muted", (x, bottom), (x, bottom + 4.0));
        let written = figures::thousands(size);
        let half_width = written.len() as f64 * SIZE_LETTER_WIDTH / 2.0;
        // Where two sizes are too near, the tick has to do.
        if x + half_width <= room {
            picture.words("muted small middle", (x, bottom + 17.0), &written);
            room = x - half_width;
        }
    }
    picture.words("muted small middle", (f64::midpoint(plot_left, plot_right), bottom + 33.0), panel.counted);

    // Ours comes last, over the others.
    for curve in curves.iter().filter(|curve| curve.contender != ours).chain(curves.iter().filter(|curve| curve.contender == ours)) {
        let color = color_class(curve.contender);
        let (thick, radius) = if curve.contender == ours { (" thick", 4.0) } else { ("", 2.75) };
        let places = curve.points.iter().map(|(size, measurement)| (across.place(*size), up.place(measurement.median())));
        let places: Vec<Point> = places.collect();
        picture.path(&format!("{color}{thick}"), &places);
        for ((_, measurement), place) in curve.points.iter().zip(places) {
            let (least, greatest) = measurement.spread();
            picture.line(&color, (place.0, inside(up.place(least))), (place.0, inside(up.place(greatest))));
            picture.dot(&color, place, radius);
        }
    }

    let ends: Vec<f64> = curves.iter().filter_map(|curve| Some(up.place(curve.points.last()?.1.median()))).collect();
    for (curve, y) in curves.iter().zip(apart(&ends, bottom)) {
        let color = color_class(curve.contender);
        let weight = if curve.contender == ours { " bold" } else { "" };
        picture.words(&format!("{color}{weight}"), (plot_right + 8.0, y + 4.5), curve.contender);
    }
}

/// A logarithmic axis from one place to another.
struct Axis {
    least: f64,
    greatest: f64,
    from: f64,
    to: f64,
}

impl Axis {
    /// Just wide enough for the values, and for a factor of 3 at least: noise shall not look like a cliff.
    fn around(values: impl Iterator<Item = f64>, from: f64, to: f64) -> Axis {
        let (least, greatest) = values
            .filter(|value| *value > 0.0)
            .fold((f64::INFINITY, 0.0_f64), |(least, greatest), value| (least.min(value), greatest.max(value)));
        let (least, greatest) = if least > greatest { (1.0, 1.0) } else { (least, greatest) };
        let widen = (3.0 * least / greatest).max(1.0).sqrt();
        Axis { least: least / widen, greatest: greatest * widen, from, to }
    }

    fn place(&self, value: f64) -> f64 {
        let part = (value.max(f64::MIN_POSITIVE) / self.least).ln() / (self.greatest / self.least).ln();
        self.from + part * (self.to - self.from)
    }

    /// Round values on it, the more of each decade the fewer decades there are.
    fn ticks(&self) -> Vec<f64> {
        let steps: &[f64] = match self.greatest / self.least {
            ..10.0 => &[1.0, 2.0, 3.0, 5.0, 7.0],
            ..1_000.0 => &[1.0, 2.0, 5.0],
            _ => &[1.0],
        };
        let decades = self.least.log10().floor() as i32..=self.greatest.log10().ceil() as i32;
        let all = decades.flat_map(|decade| steps.iter().map(move |step| step * 10_f64.powi(decade)));
        // A hair more: a value at the very end is not lost to rounding.
        all.filter(|value| (self.least * 0.999..=self.greatest * 1.001).contains(value)).collect()
    }
}

/// The heights at which names stand: as near as possible to the ends of their lines, none over another, none below `bottom`.
fn apart(ends: &[f64], bottom: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..ends.len()).collect();
    order.sort_by(|a, b| ends[*a].total_cmp(&ends[*b]));
    let mut places = ends.to_vec();
    for pair in order.windows(2) {
        places[pair[1]] = places[pair[1]].max(places[pair[0]] + NAMES_DISTANCE);
    }
    let mut room = bottom;
    for index in order.into_iter().rev() {
        places[index] = places[index].min(room);
        room = places[index] - NAMES_DISTANCE;
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_kept_apart_and_above_the_bottom() {
        assert_eq!(apart(&[50.0, 10.0, 12.0], 100.0), [50.0, 10.0, 25.0]);
        assert_eq!(apart(&[98.0, 99.0, 10.0], 100.0), [85.0, 100.0, 10.0]);
        assert!(apart(&[], 100.0).is_empty());
    }

    #[test]
    fn an_axis_has_round_values_and_is_never_narrow() {
        let axis = Axis::around([40.0, 110.0].into_iter(), 0.0, 1.0);
        assert_eq!(axis.ticks(), [50.0, 70.0, 100.0]);
        let axis = Axis::around([5.0, 50_000.0].into_iter(), 0.0, 1.0);
        assert_eq!(axis.ticks(), [10.0, 100.0, 1_000.0, 10_000.0]);
        let axis = Axis::around([100.0, 101.0].into_iter(), 0.0, 1.0);
        assert!(axis.place(101.0) - axis.place(100.0) < 0.02);
        for value in [0.0, 7.0] {
            assert!(Axis::around([value].into_iter(), 0.0, 1.0).place(7.0).is_finite());
        }
    }
}
