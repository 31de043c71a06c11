//! The bodies on epoll.

use miniloop::DriverKind;

const DRIVER: DriverKind = DriverKind::Epoll;

#[path = "bodies.rs"]
#[allow(clippy::duplicate_mod, reason = "it is compiled once for each driver")]
mod bodies;
