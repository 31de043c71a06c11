//! Draws the charts that the README and the book show, and the tables of all results, from what `runtime` and `relay` have written.
//!
//! It measures nothing, and draws the same from the same files. `cargo xtask bench charts` starts it. What is drawn where is decided in
//! `catalogue.rs`, to be read first.

mod catalogue;
mod picture;
mod figures;
mod bars;
mod lines;
mod charts;
mod table;
#[cfg(test)]
mod tests;

use std::fs;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use bench::Results;
use catalogue::{RUNS, Run};

/// The book shows the charts, and only what is in its folder gets into it.
const CHARTS_FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../book/src/charts");
const RESULTS_FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/results");

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("charts: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> io::Result<()> {
    let mut measured = Vec::new();
    for described in &RUNS {
        let path = Path::new(RESULTS_FOLDER).join(described.file);
        match path.exists() {
            true => measured.push((described, Results::read(&path)?)),
            false => eprintln!("{} does not exist: `cargo xtask bench` writes it", path.display()),
        }
    }
    if measured.is_empty() {
        return Err(io::Error::other("there is nothing to draw: run `cargo xtask bench` first"));
    }
    let (files, missing) = files(&measured);
    for line in missing {
        eprintln!("not measured, not drawn: {line}");
    }
    fs::create_dir_all(CHARTS_FOLDER)?;
    for (name, text) in files {
        let folder = if name.ends_with(".svg") { CHARTS_FOLDER } else { RESULTS_FOLDER };
        fs::write(Path::new(folder).join(name), text)?;
    }
    Ok(())
}

/// The files to write, by name, and what they lack.
fn files(measured: &[(&Run, Results)]) -> (Vec<(String, String)>, Vec<String>) {
    let (mut files, mut missing) = (Vec::new(), Vec::new());
    let mut tables = table::HEAD.to_owned();
    for (described, run) in measured {
        for chart in described.charts {
            let drawn = charts::draw(chart, run, described.ours);
            files.extend(drawn.map(|svg| (format!("{}.svg", chart.file), svg)));
            missing.extend(charts::missing(chart, run));
        }
        table::write(&mut tables, described, run);
    }
    files.push(("README.md".to_owned(), tables));
    (files, missing)
}
