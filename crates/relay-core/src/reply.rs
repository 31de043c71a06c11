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
pub(crate) const HISTORY_UNAVAILABLE: &str = "ERR history unavailable\n";
pub(crate) const OK_QUIT: &str = "OK QUIT\n";
pub(crate) const PING: &str = "PING\n";

/// The answers to each message of a commit that failed. It may have had a million of one sender, so a large write must not be a thousand
/// small slices: here are many in one piece, [`LINES_PER_REFUSAL`] of them.
pub(crate) static STORAGE_FULL: [u8; 17 * LINES_PER_REFUSAL] = repeat(b"ERR storage full\n");
pub(crate) static STORAGE_UNAVAILABLE: [u8; 24 * LINES_PER_REFUSAL] = repeat(b"ERR storage unavailable\n");
pub(crate) const LINES_PER_REFUSAL: usize = 256;

const fn repeat<const LINE_LEN: usize, const LEN: usize>(line: &[u8; LINE_LEN]) -> [u8; LEN] {
    assert!(LEN == LINE_LEN * LINES_PER_REFUSAL);
    let mut repeated = [0; LEN];
    let mut at = 0;
    while at < LEN {
        repeated[at] = line[at % LINE_LEN];
        at += 1;
    }
    repeated
}

/// What a connection is told that is not let in; the shell writes it once, without waiting, and closes.
pub const SERVER_FULL: &str = "ERR server full\n";
