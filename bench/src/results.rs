//! Figures as they are written down: every round of every contender, and all that is needed to doubt them.
//!
//! One file holds one run. The charts and the tables of the documentation are drawn from these files and from nothing else. Next:
//! `rounds.rs`.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::machine::Machine;

/// A run: what was measured, where, when and how.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Results {
    /// What one types to repeat it.
    pub command: String,
    /// When it began, in UTC to the second.
    pub date: String,
    /// Where.
    pub machine: Machine,
    /// The version of each contender.
    pub versions: BTreeMap<String, String>,
    /// In the order in which they were taken.
    pub measurements: Vec<Measurement>,
}

/// One figure of one contender in one case of one program, once for each round.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Measurement {
    /// What was run: `yield`, `echo`, `fan-out`.
    pub program: String,
    /// With which sizes: `100 connections, 64 B, 16 deep`. Empty where there is one case only.
    pub case: String,
    /// Who ran it.
    pub contender: String,
    /// What the values are, with their unit: `ns`, `cpu ns`, `p99 us`, `publishes/s`, `bytes`.
    pub figure: String,
    /// One value for each round, in the order of the rounds.
    pub rounds: Vec<f64>,
}

impl Measurement {
    /// The value that half of the rounds do not exceed: with an even count the mean of the two in the middle. 0 without rounds.
    #[must_use]
    pub fn median(&self) -> f64 {
        let mut sorted = self.rounds.clone();
        sorted.sort_by(f64::total_cmp);
        match (sorted.len(), sorted.len() / 2) {
            (0, _) => 0.0,
            (len, middle) if len % 2 == 0 => f64::midpoint(sorted[middle - 1], sorted[middle]),
            (_, middle) => sorted[middle],
        }
    }

    /// The least and the greatest value.
    #[must_use]
    pub fn spread(&self) -> (f64, f64) {
        let least = self.rounds.iter().copied().fold(f64::INFINITY, f64::min);
        let greatest = self.rounds.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        (least, greatest)
    }
}

impl Results {
    /// A run that begins now on this machine.
    #[must_use]
    pub fn begin(command: &str, versions: BTreeMap<String, String>) -> Results {
        let now = jiff::Timestamp::now();
        let date = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        Results { command: command.to_owned(), date, machine: Machine::this(), versions, measurements: Vec::new() }
    }

    /// Adds the value of one round.
    pub fn add(&mut self, program: &str, case: &str, contender: &str, figure: &str, value: f64) {
        let is_it = |measurement: &&mut Measurement| {
            (&*measurement.program, &*measurement.case, &*measurement.contender, &*measurement.figure) == (program, case, contender, figure)
        };
        if let Some(measurement) = self.measurements.iter_mut().find(is_it) {
            measurement.rounds.push(value);
            return;
        }
        let [program, case, contender, figure] = [program, case, contender, figure].map(str::to_owned);
        self.measurements.push(Measurement { program, case, contender, figure, rounds: vec![value] });
    }

    /// What was measured of a contender.
    #[must_use]
    pub fn get(&self, program: &str, case: &str, contender: &str, figure: &str) -> Option<&Measurement> {
        self.measurements.iter().find(|measurement| {
            (&*measurement.program, &*measurement.case, &*measurement.contender, &*measurement.figure) == (program, case, contender, figure)
        })
    }

    /// Reads a run that [`Results::write`] has written.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or is not a run.
    pub fn read(path: &Path) -> io::Result<Results> {
        let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
        let text = fs::read(path).map_err(named)?;
        serde_json::from_slice(&text).map_err(|error| named(error.into()))
    }

    /// Writes it as JSON for people and programs, in place of what was there.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let mut text = serde_json::to_string_pretty(self)?;
        text.push('\n');
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(path, text).map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_read_as_it_was_written() {
        let folder = std::env::temp_dir().join(format!("bench-results-{}", std::process::id()));
        let path = folder.join("run.json");
        let mut run = Results::begin("cargo xtask bench runtime", BTreeMap::from([("tokio".to_owned(), "1".to_owned())]));
        run.add("yield", "", "tokio", "ns", 40.5);
        run.add("yield", "", "tokio", "ns", 41.5);
        run.add("yield", "", "tokio", "cpu ns", 39.0);
        run.write(&path).unwrap();
        let read = Results::read(&path);
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(read.unwrap(), run);
        assert_eq!(run.measurements.len(), 2);
        assert_eq!(run.get("yield", "", "tokio", "ns").unwrap().rounds, [40.5, 41.5]);
    }

    #[track_caller]
    fn check(rounds: &[f64], median: f64) {
        let [program, case, contender, figure] = ["", "", "", ""].map(str::to_owned);
        let measurement = Measurement { program, case, contender, figure, rounds: rounds.to_vec() };
        assert_eq!(measurement.median(), median);
    }

    #[test]
    fn the_median_is_the_value_in_the_middle() {
        check(&[], 0.0);
        check(&[3.0], 3.0);
        check(&[9.0, 1.0, 2.0], 2.0);
        check(&[9.0, 1.0, 2.0, 3.0], 2.5);
    }
}
