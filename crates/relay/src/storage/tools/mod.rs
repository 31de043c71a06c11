//! What the commands do with a data folder: read a room, check everything, copy it, save what is intact. All but repair work beside a
//! running server.
//!
//! Knows nothing of the command line. Reading is one thing: rows of the history, then the log behind `folded`; writing is one thing as
//! well: messages go through the fold that writes them live, into a new folder.
//!
//! ```text
//! room_reader -> export                   the messages of a room
//! check_history, check_log -> verify      what is wrong
//! backup ----------+
//!                  +--> new_folder        everything, or what is intact, in a new place
//! salvage, repair -+
//! ```

mod report;
mod overlay;
mod source;
mod room_reader;
mod export;
mod unfolded;
mod check_history;
mod check_log;
mod verify;
mod new_folder;
mod backup;
mod page_scan;
mod scattered;
mod salvage;
mod repair;

#[cfg(test)]
mod test_world;

pub use backup::back_up;
pub use export::export_room;
pub use repair::{Repair, repair_folder};
pub use report::{Finding, Losses, Progress, Report, Watch};
pub use room_reader::print_history;
#[cfg(test)]
pub(crate) use room_reader::print_room;
pub use verify::verify_folder;
