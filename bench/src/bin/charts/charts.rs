//! A whole chart: its title, how to read it, its panels, and where the figures come from.
//!
//! Next: `table.rs`.

use std::collections::BTreeSet;

use bench::{Measurement, Results};

use crate::catalogue::{Bars, Chart, Lines, Panels};
use crate::lines::Curve;
use crate::picture::Picture;
use crate::{bars, figures, lines};

const WIDTH: f64 = 880.0;
const MARGIN: f64 = 26.0;
const HEAD_LINE_HEIGHT: f64 = 19.0;
const BELOW_HEAD: f64 = 22.0;
const PANEL_TITLE_HEIGHT: f64 = 22.0;
const BETWEEN_COLUMNS: f64 = 36.0;
const BETWEEN_ROWS: f64 = 22.0;
/// Nothing here can measure letters: those of common fonts are hardly wider.
const LETTER_WIDTH: f64 = 7.2;
const SOURCE_LINE_HEIGHT: f64 = 15.0;
/// So many letters of the small size fit beside each other.
const SOURCE_LINE_LEN_MAX: usize = 140;

/// One panel and what of it was measured.
enum Panel<'a> {
    Bars(&'a str, Vec<&'a Measurement>),
    Lines(&'a Lines, Vec<Curve<'a>>),
}

impl<'a> Panel<'a> {
    fn measurements(&self) -> Vec<&'a Measurement> {
        match self {
            Panel::Bars(_, shown) => shown.clone(),
            Panel::Lines(_, curves) => curves.iter().flat_map(Curve::measurements).collect(),
        }
    }
}

/// The SVG of a chart; none when nothing of it was measured.
pub(crate) fn draw(chart: &Chart, run: &Results, ours: &str) -> Option<String> {
    let panels = measured_panels(chart, run);
    let title = title(chart);
    let reading = reading(ours, &panels)?;
    let mut picture = Picture::default();
    picture.words("plain title", (MARGIN, 40.0), &title);
    let mut top = 42.0;
    for line in [&reading, chart.note].into_iter().filter(|line| !line.is_empty()) {
        top += HEAD_LINE_HEIGHT;
        picture.words("muted", (MARGIN, top), line);
    }
    top += BELOW_HEAD;

    let names = panels.iter().flat_map(Panel::measurements).map(|measurement| measurement.contender.chars().count());
    let names_width = names.max().unwrap_or(0) as f64 * LETTER_WIDTH + 10.0;
    // Two panels below each other have room for long bars; more would be a long way to scroll.
    let columns = if panels.len() > 2 { 2 } else { 1 };
    let panel_width = (WIDTH - 2.0 * MARGIN - BETWEEN_COLUMNS * (columns - 1) as f64) / columns as f64;
    for row in panels.chunks(columns) {
        let mut height: f64 = 0.0;
        for (column, panel) in row.iter().enumerate() {
            let left = MARGIN + column as f64 * (panel_width + BETWEEN_COLUMNS);
            let corner = (left, top + PANEL_TITLE_HEIGHT);
            let (name, panel_height) = match panel {
                Panel::Bars(name, shown) => {
                    bars::draw(&mut picture, corner, panel_width, names_width, ours, shown);
                    (*name, bars::height(shown.len()))
                }
                Panel::Lines(panel, curves) => {
                    lines::draw(&mut picture, corner, panel_width, names_width, ours, panel, curves);
                    (panel.title, lines::HEIGHT)
                }
            };
            picture.words("plain bold", (left, top + 12.0), name);
            height = height.max(panel_height);
        }
        top += PANEL_TITLE_HEIGHT + height + BETWEEN_ROWS;
    }

    picture.line("faint", (MARGIN, top - 6.0), (WIDTH - MARGIN, top - 6.0));
    for line in source_lines(run) {
        top += SOURCE_LINE_HEIGHT;
        picture.words("muted small", (MARGIN, top), &line);
    }
    Some(picture.finish(&format!("{title}. {reading} {}", chart.note), (WIDTH, top + 16.0)))
}

/// Panels without any measurement are left out.
fn measured_panels<'a>(chart: &'a Chart, run: &'a Results) -> Vec<Panel<'a>> {
    let panels: Vec<Panel<'a>> = match chart.panels {
        Panels::Bars(panels) => {
            let shown = |panel: &Bars| figures::side_by_side(run, panel.program, panel.case, panel.figure);
            panels.iter().map(|panel| Panel::Bars(panel.title, shown(panel))).collect()
        }
        Panels::Lines(panels) => panels.iter().map(|panel| Panel::Lines(panel, lines::curves(run, panel))).collect(),
    };
    panels.into_iter().filter(|panel| !panel.measurements().is_empty()).collect()
}

/// What the chart would show if it had been measured: cases, and those of its contenders who lack one.
pub(crate) fn missing(chart: &Chart, run: &Results) -> Vec<String> {
    let cases = chart.panels.cases();
    let measured = |[program, case, figure]: [&str; 3]| {
        let shown = figures::side_by_side(run, program, case, figure);
        shown.into_iter().map(|measurement| &*measurement.contender).collect::<Vec<&str>>()
    };
    let everybody: BTreeSet<&str> = cases.iter().flat_map(|case| measured(*case)).collect();
    let mut missing = Vec::new();
    for [program, case, figure] in cases {
        let what = format!("{}.svg: {figure} of `{program}`, case `{case}`", chart.file);
        let measured = measured([program, case, figure]);
        if measured.is_empty() {
            missing.push(what);
            continue;
        }
        missing
            .extend(everybody.iter().filter(|contender| !measured.contains(*contender)).map(|contender| format!("{what}, by {contender}")));
    }
    missing
}

fn title(chart: &Chart) -> String {
    let more_is_better = chart.panels.cases().into_iter().any(|[.., figure]| figures::more_is_better(figure));
    let better = match (&chart.panels, more_is_better) {
        (Panels::Bars(_), false) => "shorter",
        (Panels::Bars(_), true) => "longer",
        (Panels::Lines(_), false) => "lower",
        (Panels::Lines(_), true) => "higher",
    };
    format!("{} ({better} is better)", chart.title)
}

/// What bars, lines and figures stand for; none without panels.
fn reading(ours: &str, panels: &[Panel<'_>]) -> Option<String> {
    let rounds = panels.iter().flat_map(Panel::measurements).map(|measurement| measurement.rounds.len()).min()?;
    let medians = match rounds {
        1 => "One round.".to_owned(),
        _ => format!("Median of {rounds} rounds; the thin line spans them all."),
    };
    Some(match panels {
        [Panel::Lines(..), ..] => format!("{medians} Both axes are logarithmic."),
        _ => format!("{medians} At the right: times {ours}. Each panel has its own scale."),
    })
}

/// How the figures came about, in lines that are not too long. Of a version that says more than itself, the beginning: the tables have all.
fn source_lines(run: &Results) -> Vec<String> {
    let machine = &run.machine;
    let mut parts = vec![
        run.command.clone(),
        run.date.replace('T', " ").replace('Z', " UTC"),
        format!("{}, {} cores, {} GiB", machine.processor, machine.cores, machine.memory_gib),
        format!("Linux {}", machine.kernel),
        machine.rustc.clone(),
    ];
    for (contender, version) in &run.versions {
        let version = version.split([',', ';']).next().unwrap_or_default();
        parts.push(if version.starts_with(contender) { version.to_owned() } else { format!("{contender}: {version}") });
    }
    let mut lines = vec![parts.remove(0)];
    for part in parts {
        match lines.last_mut() {
            Some(line) if line.chars().count() + part.chars().count() < SOURCE_LINE_LEN_MAX => *line += &format!(" · {part}"),
            _ => lines.push(part),
        }
    }
    lines
}
