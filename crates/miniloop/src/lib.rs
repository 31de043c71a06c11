//! An event loop and async runtime with asyncio's model.
mod config;
mod instant;
mod clock;
mod slots;
mod outcome;
mod engine;

pub use clock::{Clock, Hold, VirtualClock};
pub use instant::Instant;
pub use outcome::Outcome;
