//! The chat server around `relay-core`: sockets, storage, command line.

pub mod storage;
