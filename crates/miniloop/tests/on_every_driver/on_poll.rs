//! The bodies on poll(2).

use miniloop::DriverKind;

const DRIVER: DriverKind = DriverKind::Poll;

#[path = "bodies.rs"]
#[allow(clippy::duplicate_mod, reason = "it is compiled once for each driver")]
mod bodies;
