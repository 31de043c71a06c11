//! Random programs, played on a reference model and on the real loop.
//!
//! `program.rs` is what a program is, `reference*.rs` the model, written from the rules O1 to O10, `self_test.rs` the rules by example.

pub(crate) mod program;
pub(crate) mod reference;
mod reference_jobs;
mod reference_completion;
mod real;
pub(crate) mod compare;
mod parse;
mod self_test;
