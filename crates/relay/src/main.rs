//! The chat server.
fn main() {}
