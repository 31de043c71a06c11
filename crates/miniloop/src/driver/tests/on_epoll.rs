//! The contract on epoll.

use crate::driver::DriverKind;

const DRIVER: DriverKind = DriverKind::Epoll;

#[path = "contract.rs"]
#[allow(clippy::duplicate_mod, reason = "it is compiled once for each driver")]
mod contract;
