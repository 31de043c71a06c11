//! `cargo xtask bench`: starts the programs of the package `bench`, which is a workspace of its own, with the product's release profile.
//!
//! It knows their names and order and nothing of what they measure: what it does not know itself stands in their `--help`.
//! Read next: `main.rs`.

use std::path::Path;
use std::process::Command;
use std::{env, io};

use crate::tree::Tree;

/// In the order in which all of them run: the last one draws what the others have measured.
const PROGRAMS: [&str; 3] = ["runtime", "relay", "charts"];

/// Runs the program that the first argument names with the others, or all of them without any. Tells whether they have succeeded.
///
/// # Errors
/// When there is no such program, or cargo cannot be started.
pub(crate) fn run(root: &Path, tree: &Tree, arguments: &[String]) -> io::Result<bool> {
    let (programs, rest) = choose(tree, arguments)?;
    for program in programs {
        let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        command.args(["run", "--quiet", "--release", "--manifest-path", "bench/Cargo.toml", "--bin", program, "--"]);
        if !command.args(rest).current_dir(root).status()?.success() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The programs to run, and what they are given.
fn choose<'a>(tree: &Tree, arguments: &'a [String]) -> io::Result<(Vec<&'static str>, &'a [String])> {
    let (programs, rest): (Vec<&str>, &[String]) = match arguments.split_first() {
        None => (PROGRAMS.to_vec(), &[]),
        Some((name, rest)) => match PROGRAMS.iter().find(|program| *program == name) {
            Some(program) => (vec![program], rest),
            None => {
                let names = PROGRAMS.join(", ");
                return Err(io::Error::other(format!(
                    "`bench` has no program `{name}`; it has {names}, and runs all of them without a name"
                )));
            }
        },
    };
    match programs.iter().find(|program| !tree.exists(&format!("bench/src/bin/{program}/main.rs"))) {
        Some(absent) => Err(io::Error::other(format!("bench/src/bin has no program `{absent}`: name another one to run it alone"))),
        None => Ok((programs, rest)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [&str; 3] = ["bench/src/bin/runtime/main.rs", "bench/src/bin/relay/main.rs", "bench/src/bin/charts/main.rs"];

    /// `expected` is the names of the programs, then `--` and what they are given; or a part of the refusal.
    #[track_caller]
    fn check(files: &[&str], arguments: &str, expected: &str) {
        let files: Vec<(&str, &str)> = files.iter().map(|path| (*path, "")).collect();
        let arguments: Vec<String> = arguments.split_whitespace().map(str::to_owned).collect();
        let said = match choose(&Tree::of(&files), &arguments) {
            Ok((programs, rest)) => format!("{} -- {}", programs.join(" "), rest.join(" ")),
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
        check(&ALL[..1], "relay", "no program `relay`: name another");
        check(&ALL[..2], "", "no program `charts`");
        check(&ALL[..1], "runtime", "runtime -- ");
    }
}
