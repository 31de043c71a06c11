//! The programs of the README, for `cargo test --doc` to compile and run.

#[doc = include_str!("../../../README.md")]
struct Readme;
