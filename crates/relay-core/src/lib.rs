//! Rooms, sessions and the line protocol of relay, as pure state.
#![no_std]
#![forbid(unsafe_code)]
extern crate alloc;

mod batch;

pub use batch::{Batch, Section};
