//! Task groups: the rules G1 to G8, and what groups survive. Random groups: `random_groups.rs`.

mod cancel;
mod destructors;
mod failures;
mod helpers;
mod lives;
#[path = "../support/mod.rs"]
mod support;
mod together;
