//! The chat server around `relay-core`: sockets, storage, command line.

#![forbid(unsafe_code)]
#![deny(clippy::print_stdout)]

mod limits;
mod histogram;
mod error;
mod duration;
mod byte_size;
pub mod storage;
mod output;
pub mod server;
pub mod cli;
mod progress_bar;
pub mod commands;
mod bench_report;
mod bench;
mod descriptors;
mod serve;

pub use bench::bench;
pub use error::Failed;
pub use output::Log;
pub use serve::serve;
