//! A load engine for servers that pass messages on.
//!
//! Many members sit in many rooms, some of them send, and **every one of them checks everything that it gets**: each message once, those
//! of a sender in their order, and the members of a room all in the same order. The first thing that is wrong ends the run with a sentence
//! that names it. So a figure is a figure of a server that works.
//!
//! One thread on one event loop is all of it, and it is cheaper for each message than a server is: nothing is allocated for a message, a
//! read is handled where it lies, and what it makes a member say leaves in one write.
//!
//! # Closed and open loops
//! With [`Pace::Window`] a sender waits for its own messages: that measures how much a server can do. With [`Pace::Rate`] messages are due
//! at times of their own, and latency counts from those times: that measures how a server feels at that rate, its pauses included, which a
//! closed loop hides (it stops sending while the server does).
//!
//! # Other servers
//! A server's protocol is a [`Codec`], some forty lines; [`RelayCodec`] is relay's.
//!
//! # In this process, or in another one
//! ```no_run
//! use relay_bench::{Length, Pace, RelayCodec, Workload};
//!
//! let workload = Workload { pace: Pace::Window(256), length: Length::Milliseconds(2_000), ..Workload::default() };
//! let report = relay_bench::run(RelayCodec, workload)?;
//! println!("{:.0} publishes/s", report.publishes_per_second);
//! # Ok::<(), relay_bench::BenchError>(())
//! ```
//!
//! A server that is measured should not share a core with its load, so load is mostly a child process that is pinned to another one. What
//! it is to do and what it came to are JSON, so the child is a few lines of the same program:
//!
//! ```no_run
//! use std::process::Command;
//!
//! use relay_bench::{RelayCodec, Report, Workload};
//!
//! /// `program load WORKLOAD`
//! fn child(workload: &str) -> Result<(), Box<dyn std::error::Error>> {
//!     let report = relay_bench::run(RelayCodec, serde_json::from_str(workload)?)?;
//!     println!("{}", serde_json::to_string(&report)?);
//!     Ok(())
//! }
//!
//! fn parent(workload: &Workload) -> Result<Report, Box<dyn std::error::Error>> {
//!     let mut command = Command::new("taskset");
//!     command.args(["-c", "1"]).arg(std::env::current_exe()?).args(["load", &serde_json::to_string(workload)?]);
//!     let output = command.output()?;
//!     match output.status.success() {
//!         true => Ok(serde_json::from_slice(&output.stdout)?),
//!         false => Err(String::from_utf8_lossy(&output.stderr).into()),
//!     }
//! }
//! ```

#![forbid(unsafe_code)]
#![deny(clippy::print_stdout)]

pub mod limits;
mod error;
mod workload;
mod text;
mod codec;
mod relay_codec;
mod seen;
mod schedule;
mod sender;
mod connection;
mod report;
mod run;
mod member;
mod bench;

pub use bench::{Bench, Progress, run};
pub use codec::{Codec, Event, Member};
pub use error::BenchError;
pub use relay_codec::RelayCodec;
pub use report::{Latency, Report};
pub use workload::{Length, Pace, Workload};
