//! What the commands do with a data folder, most of them beside a running server. Reading takes no lock but those of SQLite, for moments.
//!
//! Knows nothing of the command line. This is the last folder of `storage`.

mod room_reader;

#[cfg(test)]
pub(crate) use room_reader::print_room;
pub use room_reader::print_history;
