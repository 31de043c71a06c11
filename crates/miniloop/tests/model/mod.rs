//! Random programs, played on a reference model and on the real loop.
//!
//! `program.rs` is what a program is, `reference` the model, written from the rules O1 to O10, `real` the loop under test, `self_test.rs`
//! the rules by example.

pub(crate) mod program;
mod parse;
mod reference;
mod real;
pub(crate) mod compare;
mod self_test;
