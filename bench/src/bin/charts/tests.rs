//! What must hold of every picture, whatever was measured. The figures here are made up.

use std::collections::{BTreeMap, BTreeSet};

use bench::{Machine, Results};
use roxmltree::{Document, Node};

use crate::catalogue::{CONTENDERS, RUNS, Run};
use crate::{figures, files};

/// Everything that the charts of a run show: the program, the case, the figure.
fn cases(described: &Run) -> BTreeSet<[&str; 3]> {
    described.charts.iter().flat_map(|chart| chart.panels.cases()).collect()
}

/// A run in which everything was measured, of each contender as many times `ours` as `times` says.
fn run(described: &Run, contenders: &[(&str, f64)]) -> Results {
    let processor = "A Processor With <A Rather> Long Name & 2.90 GHz".to_owned();
    let machine = Machine { processor, cores: 2, memory_gib: 8, kernel: "6.1.0".to_owned(), rustc: "rustc 1.95.0".to_owned() };
    let versions = contenders.iter().map(|(name, _)| ((*name).to_owned(), format!("{name} 1.23.4, and its parts"))).collect();
    let command = "cargo xtask bench".to_owned();
    let mut run = Results { command, date: "2000-01-01T00:00:00Z".to_owned(), machine, versions, measurements: Vec::new() };
    for (index, [program, case, figure]) in cases(described).into_iter().enumerate() {
        for (contender, times) in contenders {
            for noise in [0.97, 1.0, 1.0, 1.04, 0.99] {
                run.add(program, case, contender, figure, 40.0 * (index + 1) as f64 * times * noise);
            }
        }
    }
    run
}

/// As many contenders as may ever be beside each other, one of them disturbed, one with a name that means something in XML.
fn everybody(described: &Run) -> Results {
    let mut contenders: Vec<(&str, f64)> =
        CONTENDERS.iter().enumerate().map(|(index, (name, ..))| (*name, 0.7 + 0.3 * index as f64)).collect();
    contenders.push(("<b> & \"c\"", 1.5));
    let mut run = run(described, &contenders);
    for measurement in run.measurements.iter_mut().filter(|measurement| measurement.contender == CONTENDERS[5].0) {
        measurement.rounds[0] *= 50.0;
    }
    run
}

fn drawn(described: &'static Run, run: Results) -> (BTreeMap<String, String>, Vec<String>) {
    let (files, missing) = files(&[(described, run)]);
    (files.into_iter().collect(), missing)
}

fn number(node: Node<'_, '_>, attribute: &str) -> f64 {
    node.attribute(attribute).unwrap().parse().unwrap()
}

/// Where words begin and end, in the widest of common fonts.
fn ends(node: Node<'_, '_>) -> [(f64, f64); 2] {
    let class = node.attribute("class").unwrap();
    let letter_width = if class.contains("title") {
        10.8
    } else if class.contains("small") {
        6.0
    } else {
        6.7
    };
    let width = node.text().unwrap().chars().count() as f64 * letter_width;
    let start = number(node, "x")
        - if class.contains("end") {
            width
        } else if class.contains("middle") {
            width / 2.0
        } else {
            0.0
        };
    [start, start + width].map(|x| (x, number(node, "y")))
}

#[test]
fn every_chart_is_xml_and_stays_on_its_ground_whatever_the_names_and_figures() {
    for described in &RUNS {
        let (files, missing) = drawn(described, everybody(described));
        assert_eq!(missing, [""; 0]);
        assert_eq!(files.len(), described.charts.len() + 1);
        for (name, text) in files.iter().filter(|(name, _)| name.ends_with(".svg")) {
            let document = Document::parse(text).unwrap_or_else(|error| panic!("{name}: {error}"));
            let (width, height) = (number(document.root_element(), "width"), number(document.root_element(), "height"));
            for node in document.descendants() {
                let mut points: Vec<(f64, f64)> = Vec::new();
                match node.tag_name().name() {
                    "text" => points.extend(ends(node)),
                    "circle" => points.push((number(node, "cx"), number(node, "cy"))),
                    "line" => points.extend([(number(node, "x1"), number(node, "y1")), (number(node, "x2"), number(node, "y2"))]),
                    "rect" => points.push((number(node, "x") + number(node, "width"), number(node, "y") + number(node, "height"))),
                    _ => {}
                }
                for (x, y) in points {
                    assert!((0.0..=width).contains(&x) && (0.0..=height).contains(&y), "{name}: {x} {y} is outside: {node:?}");
                }
            }
        }
    }
}

#[test]
fn bars_are_as_long_as_their_medians() {
    let described = &RUNS[0];
    let (files, _) = drawn(described, run(described, &[("miniloop", 1.0), ("tokio", 2.0), ("monoio", 3.0)]));
    let document = Document::parse(&files["tasks.svg"]).unwrap();
    let bars: Vec<f64> = document.descendants().filter(|node| node.has_tag_name("rect")).skip(1).map(|bar| number(bar, "width")).collect();
    for panel in bars.chunks(3) {
        assert!((panel[1] / panel[0] - 2.0).abs() < 0.01 && (panel[2] / panel[0] - 3.0).abs() < 0.01, "{panel:?}");
    }
    assert_eq!(bars.len(), 12);
}

#[test]
fn what_was_not_measured_is_left_out_and_named() {
    let described = &RUNS[0];
    let mut half = run(described, &[("miniloop", 1.0), ("tokio", 2.0)]);
    half.measurements.retain(|measurement| measurement.program != "yield" && measurement.program != "echo");
    half.measurements.retain(|measurement| (&*measurement.program, &*measurement.contender) != ("ping-pong", "tokio"));
    let (files, missing) = drawn(described, half);
    assert!(!files["tasks.svg"].contains("A task yields") && files["tasks.svg"].contains("Spawn and await"));
    assert!(!files.contains_key("echo.svg"));
    for expected in [
        "tasks.svg: ns of `yield`, case `1 task`",
        "tasks.svg: ns of `ping-pong`, case ``, by tokio",
        "echo.svg: cpu ns of `echo`, case `100 connections, 16 KiB, 1 deep`",
    ] {
        assert!(missing.contains(&expected.to_owned()), "{expected}: {missing:?}");
    }
}

#[test]
fn in_one_chart_the_same_is_better_everywhere() {
    for chart in RUNS.iter().flat_map(|described| described.charts) {
        let more: Vec<bool> = chart.panels.cases().into_iter().map(|[.., figure]| figures::more_is_better(figure)).collect();
        assert!(more.windows(2).all(|pair| pair[0] == pair[1]), "{}", chart.file);
    }
}

#[test]
fn the_tables_have_every_measurement_with_its_ratio() {
    let described = &RUNS[0];
    let mut run = run(described, &[("miniloop", 1.0), ("tokio", 2.5)]);
    run.add("in no chart", "a|b", "tokio", "bytes", 1_234_567.0);
    let (files, _) = drawn(described, run.clone());
    let rows = files["README.md"].lines().filter(|line| line.starts_with("| ") && !line.starts_with("| Case"));
    assert_eq!(rows.count(), run.measurements.len());
    assert!(files["README.md"].contains("| a\\|b | bytes | tokio | 1,230,000 | 1,230,000 | 1,230,000 | 1 |  |"));
    assert_eq!(files["README.md"].matches("| 2.50× |").count(), (run.measurements.len() - 1) / 2);
}
