//! The commands that read or rescue a data folder, for a person at a terminal: what they print, and how they end.
//!
//! Results go to standard output, what goes wrong to standard error. Knows nothing of files. Next: `main.rs`.

mod progress;
mod room;
mod verify;
mod repair;
mod backup;

pub use backup::backup;
pub use repair::repair;
pub use room::{export, history};
pub use verify::verify;
