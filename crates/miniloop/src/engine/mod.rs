//! The engine: what a turn of the loop is made of. Private; the two faces above it are `handle.rs` (callbacks) and `task.rs` (await).

pub(crate) mod word;
