//! miniloop and relay beside others of their kind, measured so that the authors of the others would accept it.
//!
//! What all measurements share: where they run ([`processor`]), on which machine ([`Machine`]), in which order ([`rounds`]), and how
//! their figures are written down ([`Results`]). The programs stand in `bin`: `runtime` compares event loops, `relay` compares servers,
//! `relay-floor` is the least that a durable chat server must do, `charts` draws what was measured. `cargo xtask bench` runs them.
//!
//! Machines are shared and noisy, so a claim is a ratio of medians from one run in which the contenders took turns. Nothing here is a test.

pub mod processor;
pub mod descriptors;
mod machine;
mod results;
pub mod rounds;

pub use machine::Machine;
pub use results::{Measurement, Results};
