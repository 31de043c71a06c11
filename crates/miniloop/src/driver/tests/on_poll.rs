//! The contract on poll(2).

use crate::driver::DriverKind;

const DRIVER: DriverKind = DriverKind::Poll;

#[path = "contract.rs"]
#[allow(clippy::duplicate_mod, reason = "it is compiled once for each driver")]
mod contract;
