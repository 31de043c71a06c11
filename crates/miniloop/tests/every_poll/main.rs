//! Every facility that waits, ended at every one of its polls: nothing is lost, and nothing stays.
//!
//! Each module below has a table of facilities. A facility is a scene: it sets something up, gives the future under test to
//! [`Probe::take`](harness::Probe::take), and says afterwards that whatever was on its way is still somewhere. `harness.rs` plays the scene
//! to its end, counting the polls of that future, then again for each of them and for each way in which a future can be ended there.
//! Memory, descriptors, timers, tasks and wakers must be after each play what they were before.
//!
//! Facilities whose documentation says that a dropped future loses something are in the tables, too; their scenes only check the rest.

#[path = "../support/mod.rs"]
mod support;

mod counting;
mod harness;
mod structure;
mod several;
mod sync;
mod streams;
mod descriptors;
mod threads;
