//! `cargo xtask tidy`: the rules of the house that neither the compiler nor clippy knows.
//!
//! Each check is one file: a function from the tree to findings. A new one comes when a second offence has shown the need.
//! Read next: `finding.rs`, `source.rs`, then a check.

mod finding;
mod source;
mod modules;
mod layers;
mod unsafe_code;
mod length;
mod links;
mod mentions;

use crate::tree::Tree;

/// Runs all checks and returns one line for each offence, in the order of the paths.
pub(crate) fn findings(tree: &Tree) -> Vec<String> {
    let checks = [layers::check, unsafe_code::check, length::check, links::check, mentions::check];
    let mut found: Vec<_> = checks.iter().flat_map(|check| check(tree)).collect();
    found.sort();
    found.iter().map(ToString::to_string).collect()
}
