//! The chat server around `relay-core`: sockets, storage, command line.

mod limits;
mod error;
mod duration;
pub mod storage;
pub mod server;
pub mod cli;
mod descriptors;
mod serve;

pub use error::Failed;
pub use serve::serve;
