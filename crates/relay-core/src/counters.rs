//! What has happened since the start, for metrics and tests. Each limit that bites is counted.
//!
//! Knows nothing of who reads them. Next: `slots.rs`, the first mechanism.

use crate::closing::CloseReason;

/// Sums since the hub was made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Connections let in.
    pub connections: u64,
    /// Connections turned away because of all others.
    pub refused_server_full: u64,
    /// Connections turned away because of others from the same address.
    pub refused_address_full: u64,
    /// Joins of rooms.
    pub joins: u64,
    /// Messages accepted from clients.
    pub messages_accepted: u64,
    /// Messages committed.
    pub messages_committed: u64,
    /// Messages that the storage refused.
    pub messages_refused: u64,
    /// Committed messages, times the members that they were queued for.
    pub deliveries: u64,
    /// Batches committed.
    pub commits: u64,
    /// Lines above the limit.
    pub lines_too_long: u64,
    /// Lines that are not text.
    pub lines_invalid: u64,
    /// Connections paused because too much waits for its commit.
    pub pauses_for_commits: u64,
    /// Connections paused because too many of their answers wait for a commit.
    pub pauses_for_answers: u64,
    /// Connections paused because they send too fast.
    pub pauses_for_rate: u64,
    /// Connections paused because they do not take their answers.
    pub pauses_for_outbox: u64,
    /// Connections paused because the history that they asked for is not loaded yet.
    pub pauses_for_history: u64,
    /// Rooms whose history was loaded from the archive.
    pub rooms_loaded: u64,
    /// Histories that could not be loaded, each attempt.
    pub loads_failed: u64,
    /// Rooms that are no longer in memory.
    pub rooms_forgotten: u64,
    /// `PING`s sent.
    pub pings: u64,
    /// Connections ended, by reason, in the order of [`CloseReason::ALL`].
    pub closed: [u64; CloseReason::ALL.len()],
}

impl Counters {
    /// How many connections ended for this reason.
    pub fn closed_for(&self, reason: CloseReason) -> u64 {
        self.closed[reason as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_its_own_place_and_words() {
        for (place, reason) in CloseReason::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, place);
            assert!(CloseReason::ALL[..place].iter().all(|other| other.as_str() != reason.as_str()));
        }
    }
}
