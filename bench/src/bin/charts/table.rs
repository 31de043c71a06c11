//! All results as tables in Markdown: every median, spread and ratio, those that no chart shows too.
//!
//! Next: `main.rs`.

use std::fmt::Write;

use bench::{Measurement, Results};

use crate::catalogue::Run;
use crate::figures;

/// What stands above all tables.
pub(crate) const HEAD: &str = "\
# Results

Written by `cargo xtask bench charts` from the files beside this one, which hold every round; do not edit it. Contenders took turns in one
run, so ratios mean something; on another machine, or another day, the figures themselves do not.
";

/// The tables of one run, one for each program.
pub(crate) fn write(text: &mut String, described: &Run, run: &Results) {
    let machine = &run.machine;
    let lines = [
        format!("\n## {}\n", described.file.trim_end_matches(".json")),
        format!("- Command: `{}`", run.command),
        format!("- Date: {}", run.date),
        format!("- Machine: {}, {} cores, {} GiB, Linux {}", machine.processor, machine.cores, machine.memory_gib, machine.kernel),
        format!("- Compiler: {}", machine.rustc),
    ];
    let versions = run.versions.iter().map(|(contender, version)| format!("- Version of {contender}: {version}"));
    for line in lines.into_iter().chain(versions) {
        text.push_str(&escaped(&line));
        text.push('\n');
    }
    let mut programs: Vec<&str> = Vec::new();
    for measurement in &run.measurements {
        if !programs.contains(&&*measurement.program) {
            programs.push(&measurement.program);
        }
    }
    for program in programs {
        write!(text, "\n### {program}\n\n| Case | Figure | Contender | Median | Least | Greatest | Rounds | Times {} |\n", described.ours)
            .expect("a String takes everything");
        text.push_str("|---|---|---|--:|--:|--:|--:|--:|\n");
        rows(text, described.ours, program, run);
    }
}

fn rows(text: &mut String, ours: &str, program: &str, run: &Results) {
    let mut shown: Vec<(&str, &str)> = Vec::new();
    for measurement in run.measurements.iter().filter(|measurement| measurement.program == program) {
        let compared = (&*measurement.case, &*measurement.figure);
        if shown.contains(&compared) {
            continue;
        }
        shown.push(compared);
        let contenders = figures::side_by_side(run, program, compared.0, compared.1);
        let reference = contenders.iter().find(|measurement| measurement.contender == ours).copied();
        contenders.iter().for_each(|measurement| row(text, measurement, reference));
    }
}

fn row(text: &mut String, measurement: &Measurement, reference: Option<&Measurement>) {
    let (least, greatest) = measurement.spread();
    let cells = [
        measurement.case.clone(),
        measurement.figure.clone(),
        measurement.contender.clone(),
        figures::value(measurement.median()),
        figures::value(least),
        figures::value(greatest),
        measurement.rounds.len().to_string(),
        figures::ratio(measurement, reference).unwrap_or_default(),
    ];
    writeln!(text, "| {} |", cells.map(|cell| escaped(&cell)).join(" | ")).expect("a String takes everything");
}

/// Names come from files: nothing in them may be taken for a cell or for markup.
fn escaped(words: &str) -> String {
    words.replace('|', "\\|").replace('<', "&lt;")
}
