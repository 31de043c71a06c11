//! What the commands do with a data folder: read a room, check everything, copy it, save what is intact. All but repair work beside a
//! running server.
//!
//! Knows nothing of the command line. Reading is one thing: rows of the history, then the log behind `folded`; writing is one thing as
//! well: messages go through the fold that writes them live, into a new folder.
//!
//! ```text
//! room_reader -> export            the messages of a room
//! check_history, check_log -> verify
//! copy    --+
//!           +--> target -> new folder, verified    backup, repair
//! salvage --+
//! ```

mod progress;
mod overlay;
mod source;
mod json_line;
mod room_reader;
mod export;
mod finding;
mod rows;
mod unfolded;
mod check_history;
mod check_log;
mod verify;
mod target;
mod copy;
mod losses;
mod salvage;
mod new_folder;
mod backup;
mod repair;

#[cfg(test)]
mod test_world;

pub use backup::back_up;
pub use export::export_room;
pub use finding::{Finding, Report};
pub use losses::Losses;
pub use progress::{Progress, Watch};
pub use repair::{Repair, repair_folder};
pub use room_reader::print_history;
#[cfg(test)]
pub(crate) use room_reader::print_room;
pub use verify::verify_folder;
