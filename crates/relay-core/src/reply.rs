//! The lines that the server answers with. Clients compare them byte for byte.
//!
//! When each is said, `hub` decides. Next: `outbox.rs`.

pub(crate) const EXPECTED_JOIN: &str = "ERR expected JOIN <name> <room>\n";
pub(crate) const EXPECTED_COMMAND: &str = "ERR expected MSG <text>, HISTORY, or QUIT\n";
pub(crate) const LINE_TOO_LONG: &str = "ERR line too long\n";
pub(crate) const INVALID_TEXT: &str = "ERR invalid text\n";
pub(crate) const INVALID_NAME: &str = "ERR invalid name\n";
pub(crate) const INVALID_ROOM: &str = "ERR invalid room\n";
pub(crate) const NAME_IN_USE: &str = "ERR name in use\n";
pub(crate) const JOIN_TIMEOUT: &str = "ERR join timeout\n";
pub(crate) const TOO_MUCH_BEFORE_JOIN: &str = "ERR too much before JOIN\n";
pub(crate) const STORAGE_FULL: &str = "ERR storage full\n";
pub(crate) const STORAGE_UNAVAILABLE: &str = "ERR storage unavailable\n";
pub(crate) const OK_QUIT: &str = "OK QUIT\n";
pub(crate) const PING: &str = "PING\n";

/// What a connection is told that is not let in; the shell writes it once, without waiting, and closes.
pub const SERVER_FULL: &str = "ERR server full\n";
