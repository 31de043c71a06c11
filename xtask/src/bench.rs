//! `cargo xtask bench`: starts the programs of the package `bench`, which is a workspace of its own, with the product's release profile.
//!
//! It knows their names and order and nothing of what they measure: what it does not know itself stands in their `--help`.
//! Read next: `main.rs`.

use std::path::Path;
use std::process::Command;
use std::{env, io};

use crate::tree::Tree;

/// In the order in which all of them run: the last one draws what the others have measured.
const PROGRAMS: [Program; 3] = [
    Program { name: "runtime", starts: &[] },
    Program { name: "relay", starts: &["relay-floor"] },
    Program { name: "charts", starts: &[] },
];

struct Program {
    name: &'static str,
    /// Other programs of the package that it expects beside itself.
    starts: &'static [&'static str],
}

impl Program {
    fn binaries(&self) -> impl Iterator<Item = &'static str> {
        [self.name].into_iter().chain(self.starts.iter().copied())
    }
}

/// Runs the program that the first argument names with the others, or all of them without any. Tells whether they have succeeded.
///
/// # Errors
/// When there is no such program, or cargo cannot be started.
pub(crate) fn run(root: &Path, tree: &Tree, arguments: &[String]) -> io::Result<bool> {
    let (programs, rest) = choose(tree, arguments)?;
    for program in programs {
        let cargo = |task: &str, binaries: &[&str]| {
            let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
            command.args([task, "--quiet", "--release", "--manifest-path", "bench/Cargo.toml"]).current_dir(root);
            for binary in binaries {
                command.args(["--bin", binary]);
            }
            command
        };
        let is_built = cargo("build", &program.binaries().collect::<Vec<_>>()).status()?.success();
        if !is_built || !cargo("run", &[program.name]).arg("--").args(rest).status()?.success() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The programs to run, and what they are given.
fn choose<'a>(tree: &Tree, arguments: &'a [String]) -> io::Result<(Vec<&'static Program>, &'a [String])> {
    let (programs, rest): (Vec<&Program>, &[String]) = match arguments.split_first() {
        None => (PROGRAMS.iter().collect(), &[]),
        Some((name, rest)) => match PROGRAMS.iter().find(|program| program.name == name) {
            Some(program) => (vec![program], rest),
            None => {
                let names = PROGRAMS.map(|program| program.name).join(", ");
                return Err(io::Error::other(format!(
                    "`bench` has no program `{name}`; it has {names}, and runs all of them without a name"
                )));
            }
        },
    };
    let is_there = |binary: &str| ["", "/main"].iter().any(|end| tree.exists(&format!("bench/src/bin/{binary}{end}.rs")));
    match programs.iter().flat_map(|program| program.binaries()).find(|binary| !is_there(binary)) {
        Some(absent) => Err(io::Error::other(format!("bench/src/bin has no program `{absent}`: name another one to run it alone"))),
        None => Ok((programs, rest)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [&str; 4] =
        ["bench/src/bin/runtime/main.rs", "bench/src/bin/relay/main.rs", "bench/src/bin/relay-floor.rs", "bench/src/bin/charts/main.rs"];

    /// `expected` is the names of the programs, then `--` and what they are given; or a part of the refusal.
    #[track_caller]
    fn check(files: &[&str], arguments: &str, expected: &str) {
        let files: Vec<(&str, &str)> = files.iter().map(|path| (*path, "")).collect();
        let arguments: Vec<String> = arguments.split_whitespace().map(str::to_owned).collect();
        let said = match choose(&Tree::of(&files), &arguments) {
            Ok((programs, rest)) => {
                let names: Vec<&str> = programs.iter().map(|program| program.name).collect();
                format!("{} -- {}", names.join(" "), rest.join(" "))
            }
            Err(error) => error.to_string(),
        };
        assert!(said.contains(expected), "{said}");
    }

    #[test]
    fn all_run_in_their_order_or_the_one_that_is_named_with_what_follows() {
        check(&ALL, "", "runtime relay charts -- ");
        check(&ALL, "runtime echo --rounds 3", "runtime -- echo --rounds 3");
        check(&ALL, "charts", "charts -- ");
    }

    #[test]
    fn what_is_missing_is_named() {
        check(&ALL, "loop", "no program `loop`; it has runtime, relay, charts");
        check(&ALL[..2], "relay", "no program `relay-floor`");
        check(&ALL[..1], "runtime", "runtime -- ");
    }
}
